"""A robot with elastic joints as a model of MuJoCo.

The links are the bodies of the robot model, without meshes and contacts. Each motor is a flywheel
of its own that turns in the world: its inertia is the reflected one, its angle is the motor
position in joint coordinates. A fixed tendon of the length theta - q is the spring, with damper.
So the kinetic energy of a rotor is B theta'^2 / 2 and nothing else, as assumed in Spong 1987,
"Modeling and Control of Elastic Joint Robots".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from hodyn_ros.errors import SimulationError
from hodyn_ros.model.friction import Coulomb, FrictionLaw, Sum, Viscous
from hodyn_ros.model.inertia import inertia_parts
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.model.screws import pitches
from hodyn_ros.simulation.backend import mujoco
from hodyn_ros.simulation.drives import Drive

Array = NDArray[np.float64]

INTEGRATORS = ('RK4', 'Euler', 'implicit', 'implicitfast')

# MuJoCo refuses bodies below these and tensors that no body can have. They are compiled with
# stand-ins, and the numbers of the model are written into what was compiled.
_SMALLEST_MASS = 1e-9
_STAND_IN = (1.0, (1.0, 1.0, 1.0))

# Time steps in which dry friction may bring a joint to rest, as few as MuJoCo takes. It is a soft
# constraint there: with the 20 ms that it has by default it even drives what brakes faster.
_STICTION = 2.0


class BodyInertia(NamedTuple):
    """Mass and principal moments of inertia of one body."""

    mass: float
    moments: Array
    is_accepted: bool
    """Whether MuJoCo accepts them as they are."""
    com: Array
    axes: Array
    """Rotation matrix of the principal axes."""


class JointFriction(NamedTuple):
    """Friction of one joint, split into what MuJoCo has itself and the rest."""

    viscous: float = 0.0
    dry: float = 0.0
    rest: FrictionLaw | None = None


def link_joint(joint: str) -> str:
    """Name of the joint that moves a link."""
    return f'link: {joint}'


def motor_joint(motor: str) -> str:
    """Name of the joint that moves a motor of an elastic joint."""
    return f'motor: {motor}'


def split_friction(law: FrictionLaw | None) -> JointFriction:
    """Split a law of friction.

    Parameters
    ----------
    law : FrictionLaw or None

    Returns
    -------
    JointFriction
        Viscous friction becomes damping of MuJoCo and Coulomb friction without smoothing its dry
        friction, which can stick; all other laws are computed by this package.
    """
    viscous = dry = 0.0
    rest: list[FrictionLaw] = []
    terms = law.laws if isinstance(law, Sum) else () if law is None else (law,)
    for term in terms:
        if type(term) is Viscous and term.coefficient >= 0.0:
            viscous += term.coefficient
        elif type(term) is Coulomb and term.smoothing == 0.0 and term.level >= 0.0:
            dry += term.level
        else:
            rest.append(term)
    return JointFriction(viscous, dry, Sum(tuple(rest)) if rest else None)


def body_inertia(model: RobotModel, i: int) -> BodyInertia:
    """Mass, centre of mass and principal moments of a body."""
    parts = inertia_parts(f'Body of joint {model.body_names[i]!r}', model.M_body[i])
    moments, axes = np.linalg.eigh(np.asarray(parts.inertia_com))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    # With the moments in ascending order only one triangle inequality can fail.
    is_accepted = (
        parts.mass > _SMALLEST_MASS
        and moments[0] > _SMALLEST_MASS
        and moments[0] + moments[1] >= moments[2]
    )
    com = np.asarray(parts.com, dtype=np.float64)
    return BodyInertia(float(parts.mass), moments, bool(is_accepted), com, axes)


def check_model(model: RobotModel) -> None:
    """Refuse robots for which the simulation has no exact counterpart.

    Raises
    ------
    SimulationError
    """
    mimic = [name for name in model.body_names if name not in model.joint_names]
    if mimic:
        raise SimulationError(
            f'The joints {", ".join(mimic)} follow other joints. MuJoCo couples joints only '
            'approximately, so they are not simulated; choose a chain without them (tip_link).'
        )
    if np.any(pitches(model.X)):
        name = model.body_names[int(np.flatnonzero(pitches(model.X))[0])]
        raise SimulationError(f'Joint {name!r} is helical; MuJoCo has no such joints.')


def elastic_model(
    model: RobotModel,
    drives: Mapping[str, Drive],
    time_step: float,
    integrator: str = 'RK4',
    visible: bool = False,
) -> Any:
    """Compile a robot with its motors and springs for MuJoCo.

    Parameters
    ----------
    model : RobotModel
        Its friction and armature are those of the links' joints.
    drives : mapping of joint name to Drive
        One for every joint.
    time_step : float
        [s]
    integrator : str
        One of `INTEGRATORS`.
    visible : bool
        Whether the links are drawn, as capsules between the joints.

    Returns
    -------
    mujoco.MjModel
        With the inertias of the robot model, also those that MuJoCo's compiler refuses: published
        data violate the triangle inequality slightly.

    Raises
    ------
    SimulationError
        If the robot has mimic or helical joints, or MuJoCo refuses it.
    """
    check_model(model)
    library = mujoco()
    spec = library.MjSpec()
    spec.modelname = model.name
    spec.compiler.degree = False
    spec.option.timestep = time_step
    spec.option.gravity = model.gravity
    spec.option.integrator = getattr(library.mjtIntegrator, f'mjINT_{integrator.upper()}')
    off = library.mjtDisableBit
    # A simulation that has broken down must not start again at zero unnoticed.
    spec.option.disableflags = off.mjDSBL_CONTACT.value | off.mjDSBL_AUTORESET.value
    _add_robot(spec, model, drives, visible)
    try:
        result = spec.compile()
    except ValueError as error:
        raise SimulationError(f'MuJoCo refuses the robot: {error}') from error
    for i, name in enumerate(model.body_names):
        inertia = body_inertia(model, i)
        if not inertia.is_accepted:
            body = result.joint(link_joint(name)).bodyid[0]
            result.body_mass[body] = inertia.mass
            result.body_inertia[body] = inertia.moments
    library.mj_setConst(result, library.MjData(result))
    return result


def _add_robot(spec: Any, model: RobotModel, drives: Mapping[str, Drive], visible: bool) -> None:
    if visible:
        _add_scenery(spec)
    bodies = {BASE: spec.worldbody}
    for i in range(model.n_bodies):
        parent = bodies[int(model.parent[i])]
        bodies[i] = _add_link(parent, model, drives, i, visible)
    for name in model.joint_names:
        drive = drives[name]
        if drive.is_elastic:
            for motor, inertia, law in zip(drive.motors, drive.inertias, drive.frictions):
                _add_motor(spec.worldbody, motor, inertia, law)
        if drive.stiffness or drive.damping:
            tendon = spec.add_tendon(
                name=name, stiffness=drive.stiffness, damping=drive.damping, springlength=(0, 0)
            )
            tendon.wrap_joint(motor_joint(drive.motors[0]), 1.0)
            tendon.wrap_joint(link_joint(name), -1.0)
        for motor in drive.motors:
            moved = motor_joint(motor) if drive.is_elastic else link_joint(name)
            spec.add_actuator(name=motor, target=moved, trntype=mujoco().mjtTrn.mjTRN_JOINT)
    for joint in spec.joints:
        joint.solref_friction = (_STICTION * spec.option.timestep, 1.0)


def _add_link(
    parent: Any, model: RobotModel, drives: Mapping[str, Drive], i: int, visible: bool
) -> Any:
    name, inertia = model.body_names[i], body_inertia(model, i)
    mass, moments = (inertia.mass, inertia.moments) if inertia.is_accepted else _STAND_IN
    body = parent.add_body(
        name=name,
        pos=model.B[i, :3, 3],
        quat=_quat(model.B[i, :3, :3]),
        explicitinertial=True,
        mass=mass,
        ipos=inertia.com,
        iquat=_quat(inertia.axes),
        inertia=moments,
    )
    X, drive, kinds = model.X[i], drives[name], mujoco().mjtJoint
    turns = bool(X[:3].any())
    friction = split_friction(model.friction.get(name))
    armature, viscous, dry = float(model.armature[i]), friction.viscous, friction.dry
    if not drive.is_elastic:
        of_motor = split_friction(drive.frictions[0])
        armature += drive.inertias[0]
        viscous, dry = viscous + of_motor.viscous, dry + of_motor.dry
    body.add_joint(
        name=link_joint(name),
        type=kinds.mjJNT_HINGE if turns else kinds.mjJNT_SLIDE,
        axis=X[:3] if turns else X[3:],
        pos=np.cross(X[:3], X[3:]),
        armature=armature,
        damping=viscous,
        frictionloss=dry,
    )
    if visible:
        shapes, start, end = mujoco().mjtGeom, np.zeros(3), model.B[i, :3, 3]
        if np.linalg.norm(end) > 1e-6:
            parent.add_geom(
                type=shapes.mjGEOM_CAPSULE,
                fromto=np.concatenate([start, end]),
                size=(0.045, 0, 0),
                mass=0,
                rgba=(0.85, 0.87, 0.9, 1),
            )
        body.add_geom(
            type=shapes.mjGEOM_SPHERE, size=(0.06, 0, 0), mass=0, rgba=(0.2, 0.4, 0.7, 1)
        )
    return body


def _add_motor(world: Any, name: str, inertia: float, law: FrictionLaw | None) -> None:
    # A flywheel, also for a prismatic joint: gravity does not turn it, and where it is does not
    # matter. The mass is without effect.
    body = world.add_body(
        name=motor_joint(name), explicitinertial=True, mass=1.0, inertia=np.full(3, inertia)
    )
    friction = split_friction(law)
    body.add_joint(
        name=motor_joint(name),
        type=mujoco().mjtJoint.mjJNT_HINGE,
        axis=(0, 0, 1),
        damping=friction.viscous,
        frictionloss=friction.dry,
    )


def _add_scenery(spec: Any) -> None:
    view = spec.visual
    view.global_.offwidth, view.global_.offheight = 1280, 960
    view.headlight.ambient, view.headlight.diffuse = (0.4, 0.4, 0.4), (0.5, 0.5, 0.5)
    world, shapes = spec.worldbody, mujoco().mjtGeom
    world.add_light(pos=(1, -1, 3), dir=(-0.3, 0.3, -1))
    world.add_geom(type=shapes.mjGEOM_PLANE, size=(1.5, 1.5, 0.1), rgba=(0.93, 0.93, 0.9, 1))


def _quat(rotation: Array) -> Array:
    x, y, z, w = Rotation.from_matrix(rotation).as_quat()
    return np.array([w, x, y, z])
