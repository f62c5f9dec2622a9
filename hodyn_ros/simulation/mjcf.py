"""A robot with elastic joints as a model of MuJoCo, which is imported when something is simulated.

Each motor is a flywheel of its own that turns in the world, and a fixed tendon of the length
theta - q is the spring, with damper: the model of Spong 1987, "Modeling and Control of Elastic
Joint Robots". The links have neither meshes nor contacts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.drives import (
    Actuator,
    RigidDrive,
    SeriesElastic,
    VariableStiffness,
)
from hodyn_ros.actuators.springs import LinearSpring
from hodyn_ros.errors import SimulationError
from hodyn_ros.lie import se3
from hodyn_ros.model.friction import Coulomb, FrictionLaw, Sum, Viscous
from hodyn_ros.model.inertia import inertia_parts
from hodyn_ros.model.mechanism import BASE, Closure
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.resources import optional_import_module
from hodyn_ros.simulation.imperfections import Imperfections
from hodyn_ros.typing import Array

Callback = Callable[[Any, Any], None]

INTEGRATORS = ('RK4', 'Euler', 'implicit', 'implicitfast')

# MuJoCo refuses bodies below these and tensors that no body can have. They are compiled with
# stand-ins, and the numbers of the model are written into what was compiled.
_SMALLEST_MASS = 1e-9
_STAND_IN = (1.0, (1.0, 1.0, 1.0))

# Time steps in which dry friction may bring a joint to rest, as few as MuJoCo takes. It is a soft
# constraint there: with the 20 ms that it has by default it even drives what brakes faster. And
# its impedance, as high as it may be: by default what sticks creeps a thousand times faster.
_STICTION, _HARDNESS = 2.0, 0.9999
# Half the distance of the points that make a hinge of two balls [m].
_LEVER = 0.1
# Likewise of end stops; and how far those are that a joint has on one side only [rad, m].
_END_STOP, _NO_STOP = 4.0, 1e6

# A function that gives the torque may simulate something else on its way.
_STEPPING = threading.RLock()


@dataclass(frozen=True)
class SimulatedJoint:
    """What stands between the motors and the link of a joint, in coordinates behind the gear.

    A joint has m motors with the positions theta_i; each is coupled to the link by the deflection
    d_i = theta_i - c_i q. The springs pull at motor i with the torque t_i(d_1 ... d_m), and at the
    link with Q = sum of c_i t_i. A series elastic joint has one motor and c = 1.

    Attributes
    ----------
    motors : tuple of str
        Names.
    inertias : tuple of float
        Reflected [kg m^2], for a prismatic joint [kg].
    frictions : tuple of FrictionLaw or None
        Of each motor, by its velocity.
    is_elastic : bool
        Whether the motors move on their own.
    stiffness : float
        Of a linear spring, which MuJoCo has itself [N m/rad] or [N/m]; zero if there is none.
    damping : float
        Of the damper beside it, likewise [N m s/rad] or [N s/m].
    law : callable, optional
        Torques (m,) of other springs by deflections (m,).
    coupling : tuple of float
        The c_i.
    range : tuple of two float
        Of the deflection [rad] or [m].
    backlash : float
        Of a linear spring [rad] or [m].
    softening : float
        Torque of the spring that the model has, over that of this one.
    gear_ratio : float
        Of a rotor, whose coordinate it is that moves in MuJoCo.
    is_carried : bool
        Whether the rotor is on the link in front of the joint.
    """

    motors: tuple[str, ...]
    inertias: tuple[float, ...]
    frictions: tuple[FrictionLaw | None, ...]
    is_elastic: bool = True
    stiffness: float = 0.0
    damping: float = 0.0
    law: Callable[[Array], Array] | None = None
    coupling: tuple[float, ...] = (1.0,)
    range: tuple[float, float] = (-np.inf, np.inf)
    backlash: float = 0.0
    softening: float = 1.0
    gear_ratio: float = 1.0
    is_carried: bool = False

    def torque(self, deflection: Array) -> Array:
        """Torques of the springs, without dampers.

        Parameters
        ----------
        deflection : ndarray, shape (m,)
            [rad] or [m]

        Returns
        -------
        ndarray, shape (m,)
            On the motors [N m] or [N].
        """
        if self.law is not None:
            return self.law(deflection)
        return self.stiffness * slack(deflection, self.backlash)


PASSIVE = SimulatedJoint((), (0.0,), (None,), is_elastic=False)
"""A joint without motor, which closed loops move."""


def slack(deflection: Array, backlash: float) -> Array:
    """Deflection of a spring itself, behind its backlash.

    Parameters
    ----------
    deflection : ndarray
        Between motor and link [rad] or [m].
    backlash : float
        Range without torque, half of it to either side.

    Returns
    -------
    ndarray
    """
    return deflection - np.minimum(np.maximum(deflection, -0.5 * backlash), 0.5 * backlash)


def simulated_joints(
    model: RobotModel, actuators: Actuators, imperfections: Imperfections
) -> dict[str, SimulatedJoint]:
    """What moves the joints of a robot.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators
    imperfections : Imperfections

    Returns
    -------
    dict of str to SimulatedJoint
        In the order of the joints.

    Raises
    ------
    SimulationError
        If it cannot be simulated, or a joint cannot have an imperfection.
    JointNameError
        If an imperfection is given for an unknown joint.
    """
    names = model.joint_names
    elastic = [name for name in names if isinstance(actuators[name], SeriesElastic)]
    turning = [
        name for name in elastic if model.joint_types[names.index(name)] != 'prismatic'
    ]
    stiffness, damping, backlash = (
        imperfections.of(name, names, elastic)
        for name in ('stiffness_error', 'damping', 'backlash')
    )
    gear_ratio = imperfections.of('gear_ratio', names, turning)
    viscous, coulomb = (imperfections.of(name, names) for name in ('viscous', 'coulomb'))
    found = {}
    for j, name in enumerate(names):
        joint = simulated_joint(name, actuators[name])
        more = Viscous(viscous[j]) + Coulomb(coulomb[j])
        joint = replace(
            joint,
            frictions=tuple(more if law is None else law + more for law in joint.frictions),
            damping=joint.damping + damping[j],
        )
        if gear_ratio[j]:
            joint = replace(joint, gear_ratio=gear_ratio[j], is_carried=True)
        if stiffness[j] or backlash[j]:
            joint = _with_other_spring(joint, 1.0 + stiffness[j], backlash[j])
        found[name] = joint
    return found


def _with_other_spring(
    joint: SimulatedJoint, factor: float, backlash: float
) -> SimulatedJoint:
    law = joint.law
    return replace(
        joint,
        stiffness=factor * joint.stiffness,
        law=law and (lambda d: factor * law(slack(d, backlash))),
        range=(joint.range[0] - 0.5 * backlash, joint.range[1] + 0.5 * backlash),
        backlash=backlash,
        softening=1.0 / factor,
    )


def simulated_joint(joint: str, actuator: Actuator) -> SimulatedJoint:
    """Actuator of a joint as it is simulated.

    Parameters
    ----------
    joint : str
    actuator : Actuator

    Returns
    -------
    SimulatedJoint
    """
    names = tuple(joint + suffix for suffix in actuator.motor_suffixes)
    inertias = actuator.motor_inertias
    if isinstance(actuator, RigidDrive):
        return SimulatedJoint(names, inertias, (actuator.friction,), is_elastic=False)
    if isinstance(actuator, SeriesElastic):
        spring = actuator.spring
        stiffness, law = 0.0, None
        if type(spring) is LinearSpring:
            stiffness = spring.stiffness
        else:
            law = lambda d: spring.derivatives(d, 0)[..., 0]  # noqa: E731
        return SimulatedJoint(
            names,
            inertias,
            (actuator.friction,),
            True,
            stiffness,
            actuator.damping,
            law,
            range=spring.range,
        )
    assert isinstance(actuator, VariableStiffness)
    model = actuator.model
    return SimulatedJoint(
        names,
        inertias,
        actuator.friction_laws,
        law=lambda d: model.series(d[:, None]).motor_effort[:, 0],
        coupling=model.link_coupling,
    )


def mujoco() -> ModuleType:
    """The module of MuJoCo.

    Raises
    ------
    SimulationError
        If it is not installed.
    """
    need = 'The simulation needs MuJoCo'
    return optional_import_module('mujoco', need, 'simulation', SimulationError)


@contextmanager
def callbacks(**functions: Callback | None) -> Iterator[None]:
    """Callbacks of MuJoCo while a block runs, in which it writes no warnings to files.

    They are those of the whole process, not of one simulation; so blocks exclude each other. What
    a callback raises is raised behind the block: it must not unwind through the C code.

    Parameters
    ----------
    **functions
        By the name of the callback, such as control; each takes model and data. None: no callback.
    """
    library = mujoco()
    raised: list[Exception] = []

    def guarded(function: Callback) -> Callback:
        def call(model: Any, data: Any) -> None:
            try:
                function(model, data)
            except Exception as error:
                raised.append(error)

        return call

    with _STEPPING:
        before = {name: getattr(library, f'get_mjcb_{name}')() for name in functions}
        warning = library.get_mju_user_warning()
        try:
            # What it warns of is also in the data. Left alone, it writes MUJOCO_LOG.TXT.
            library.set_mju_user_warning(lambda text: None)
            for name, function in functions.items():
                setter = getattr(library, f'set_mjcb_{name}')
                setter(None if function is None else guarded(function))
            yield
        finally:
            library.set_mju_user_warning(warning)
            for name, function in before.items():
                getattr(library, f'set_mjcb_{name}')(function)
    if raised:
        raise raised[0]


class _BodyInertia(NamedTuple):
    """Mass, principal moments of inertia, centre of mass and principal axes of one body.

    Attributes
    ----------
    mass : float
        [kg]
    moments : ndarray, shape (3,)
        About the centre of mass, rising [kg m^2].
    is_accepted : bool
        Whether MuJoCo accepts them as they are.
    com : ndarray, shape (3,)
        In the axes of the body [m].
    axes : ndarray, shape (3, 3)
        Rotation matrix, the axes in its columns.
    """

    mass: float
    moments: Array
    is_accepted: bool
    com: Array
    axes: Array


class _Friction(NamedTuple):
    """Friction of one joint, split into what MuJoCo has itself and the rest.

    Attributes
    ----------
    viscous : float
        Coefficient [N m s/rad] or [N s/m].
    dry : float
        Level [N m] or [N].
    rest : FrictionLaw, optional
        Computed by this package.
    """

    viscous: float
    dry: float
    rest: FrictionLaw | None


def link_joint(joint: str) -> str:
    """Name of the joint that moves a link."""
    return f'link: {joint}'


def motor_joint(motor: str) -> str:
    """Name of the joint that moves a motor of an elastic joint."""
    return f'motor: {motor}'


def rotor_inertia(joint: SimulatedJoint) -> float:
    """Of the rotor of a joint with a single motor, about its axis [kg m^2]."""
    return joint.inertias[0] / joint.gear_ratio**2


def split_friction(law: FrictionLaw | None) -> _Friction:
    """Friction, split into what MuJoCo has itself and the rest.

    Viscous friction becomes damping of MuJoCo and Coulomb friction without smoothing its dry
    friction, which can stick; all other laws are computed by this package.

    Parameters
    ----------
    law : FrictionLaw, optional

    Returns
    -------
    _Friction
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
    return _Friction(viscous, dry, Sum(tuple(rest)) if rest else None)


def _body_inertia(model: RobotModel, i: int) -> _BodyInertia:
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
    return _BodyInertia(float(parts.mass), moments, bool(is_accepted), com, axes)


def _check_model(model: RobotModel) -> None:
    """Refuse robots for which the simulation has no exact counterpart."""
    mimic = [name for name in model.body_names if name not in model.joint_names]
    if mimic:
        raise SimulationError(
            f'The joints {", ".join(mimic)} follow other joints. MuJoCo couples joints only '
            'approximately, so they are not simulated; choose a chain without them (tip_link).'
        )
    if np.any(se3.pitches(model.X)):
        name = model.body_names[int(np.flatnonzero(se3.pitches(model.X))[0])]
        raise SimulationError(f'Joint {name!r} is helical; MuJoCo has no such joints.')


def elastic_model(
    model: RobotModel,
    joints: Mapping[str, SimulatedJoint],
    time_step: float,
    integrator: str = 'RK4',
    end_stops: bool = False,
    closure: Closure | None = None,
) -> Any:
    """Robot with its motors and springs, compiled for MuJoCo.

    Friction and armature of the model are those of the links' joints. The result has the inertias
    of the robot model, also those that MuJoCo's compiler refuses: published data violate the
    triangle inequality slightly.

    Parameters
    ----------
    model : RobotModel
        Without mimic and helical joints.
    joints : mapping of str to SimulatedJoint
    time_step : float
        Of the integration [s].
    integrator : str
        One of `INTEGRATORS`.
    end_stops : bool
        Whether joints go no farther than the limits of their positions.
    closure : Closure, optional
        Closed loops, of which the model is the tree.

    Returns
    -------
    mujoco.MjModel

    Raises
    ------
    SimulationError
        If MuJoCo is not installed, or the robot cannot be simulated.
    """
    _check_model(model)
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
    _add_robot(spec, model, joints)
    if end_stops:
        _add_end_stops(spec, model)
    if closure is not None:
        _add_loops(spec, model, closure)
    try:
        result = spec.compile()
    except ValueError as error:
        raise SimulationError(f'MuJoCo refuses the robot: {error}') from error
    _write_inertias(result, model, joints)
    library.mj_setConst(result, library.MjData(result))
    return result


def _write_inertias(
    result: Any, model: RobotModel, joints: Mapping[str, SimulatedJoint]
) -> None:
    """Write what the compiler would not take: some inertias of links, and those of rotors."""
    for i, name in enumerate(model.body_names):
        inertia = _body_inertia(model, i)
        if not inertia.is_accepted:
            body = result.joint(link_joint(name)).bodyid[0]
            result.body_mass[body] = inertia.mass
            result.body_inertia[body] = inertia.moments
        joint = joints[name]
        if joint.is_carried:
            # The mass of the rotor is that of the link in front, and so is its inertia but for
            # that about its axis.
            body = result.joint(motor_joint(joint.motors[0])).bodyid[0]
            result.body_mass[body] = 0.0
            result.body_inertia[body] = 0.0, 0.0, rotor_inertia(joint)
            result.body_iquat[body] = 1.0, 0.0, 0.0, 0.0  # the compiler turned the stand-in


def _add_robot(spec: Any, model: RobotModel, joints: Mapping[str, SimulatedJoint]) -> None:
    bodies = {BASE: spec.worldbody}
    for i in range(model.n_bodies):
        parent = bodies[int(model.parent[i])]
        bodies[i] = _add_link(parent, model, joints, i)
    for i, name in enumerate(model.body_names):
        joint = joints[name]
        if joint.is_carried:
            carrier = bodies[int(model.parent[i])]
            axis = model.B[i, :3, :3] @ model.X[i, :3]
            _add_motor(
                carrier, joint.motors[0], 1.0, joint.frictions[0], joint.gear_ratio, axis
            )
        elif joint.is_elastic:
            for motor, inertia, law in zip(joint.motors, joint.inertias, joint.frictions):
                _add_motor(spec.worldbody, motor, inertia, law)
    for name in model.joint_names:
        joint = joints[name]
        if joint.stiffness or joint.damping:
            half = 0.5 * joint.backlash
            tendon = spec.add_tendon(
                name=name,
                stiffness=joint.stiffness,
                damping=joint.damping,
                springlength=(-half, half),
            )
            tendon.wrap_joint(motor_joint(joint.motors[0]), 1.0 / joint.gear_ratio)
            tendon.wrap_joint(link_joint(name), -1.0)
        for motor in joint.motors:
            moved = motor_joint(motor) if joint.is_elastic else link_joint(name)
            gear = (1.0 / joint.gear_ratio, 0, 0, 0, 0, 0)
            kind = mujoco().mjtTrn.mjTRN_JOINT
            spec.add_actuator(name=motor, target=moved, trntype=kind, gear=gear)
    for joint in spec.joints:
        joint.solref_friction = (_STICTION * spec.option.timestep, 1.0)
        joint.solimp_friction = (_HARDNESS, _HARDNESS, 1.0, 0.5, 1.0)


def _add_loops(spec: Any, tree: RobotModel, closure: Closure) -> None:
    """Close loops by equalities: of points and frames of links, and of joints."""
    library = mujoco()
    for coupling in closure.couplings:
        data = np.zeros(library.mjNEQDATA)
        if len(coupling.coefficients) > 5 or len(coupling.followed) > 1:
            raise SimulationError(
                f'Coupling {coupling.name!r} has {len(coupling.coefficients)} coefficients and '
                f'follows {listed(coupling.followed)}; MuJoCo has polynomials of up to five '
                'coefficients of one joint.'
            )
        data[: len(coupling.coefficients)] = coupling.coefficients
        spec.add_equality(
            type=library.mjtEq.mjEQ_JOINT,
            name1=link_joint(coupling.joint),
            name2=link_joint(coupling.followed[0]),
            data=data,
        )
    for loop in closure.loops:
        if loop.kind == 'slider':
            raise SimulationError(
                f'Loop {loop.name!r} is a slider, which MuJoCo does not have: make it a joint of '
                'the tree, and close the loop by a weld.'
            )
        levers = (-_LEVER, _LEVER) if loop.kind == 'hinge' else (0.0,)
        for number, lever in enumerate(levers):
            at = se3.pose(np.eye(3), lever * loop.direction)
            sites = [f'{loop.name}: {side}{number}' for side in 'ab']
            links = loop.link_a, loop.link_b
            for site, link, pose in zip(sites, links, loop.poses):
                place = tree.link(link)
                name = 'world' if place.body == BASE else tree.body_names[place.body]
                frame = place.pose @ pose @ at
                spec.body(name).add_site(
                    name=site, pos=frame[:3, 3], quat=_quat(frame[:3, :3])
                )
            kind = 'WELD' if loop.kind == 'weld' else 'CONNECT'
            spec.add_equality(
                type=getattr(library.mjtEq, f'mjEQ_{kind}'),
                objtype=library.mjtObj.mjOBJ_SITE,
                name1=sites[0],
                name2=sites[1],
            )
    for equality in spec.equalities:
        equality.solref = (_STICTION * spec.option.timestep, 1.0)
        equality.solimp = (_HARDNESS, _HARDNESS, 1.0, 0.5, 1.0)


def _add_end_stops(spec: Any, model: RobotModel) -> None:
    """Let joints go no farther than their limits."""
    limits = model.limits
    for name, lower, upper in zip(model.joint_names, limits.lower, limits.upper):
        if np.isfinite(lower) or np.isfinite(upper):
            joint = spec.joint(link_joint(name))
            joint.limited = mujoco().mjtLimited.mjLIMITED_TRUE
            joint.range = max(lower, -_NO_STOP), min(upper, _NO_STOP)
            joint.solref_limit = (_END_STOP * spec.option.timestep, 1.0)


def _add_link(
    parent: Any, model: RobotModel, joints: Mapping[str, SimulatedJoint], i: int
) -> Any:
    name, inertia = model.body_names[i], _body_inertia(model, i)
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
    X, joint, kinds = model.X[i], joints[name], mujoco().mjtJoint
    turns = bool(X[:3].any())
    friction = split_friction(model.friction.get(name))
    armature, viscous, dry = float(model.armature[i]), friction.viscous, friction.dry
    if not joint.is_elastic:
        of_motor = split_friction(joint.frictions[0])
        armature += joint.inertias[0]
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
    return body


def _add_motor(
    carrier: Any,
    name: str,
    inertia: float,
    law: FrictionLaw | None,
    ratio: float = 1.0,
    axis: Any = (0.0, 0.0, 1.0),
) -> None:
    """Add a flywheel, also for a prismatic joint.

    Gravity does not turn it, and where it is does not matter. Its mass is without effect.

    Parameters
    ----------
    carrier : mujoco.MjsBody
        What it turns in: the world, or a link.
    name : str
    inertia : float
        Of the coordinate that moves, about its axis [kg m^2].
    law : FrictionLaw, optional
        By the velocity of the motor behind the gear.
    ratio : float
        How many times as far as the motor behind the gear it turns.
    axis : array-like, shape (3,)
        In the axes of the carrier.
    """
    along = np.empty(4)
    mujoco().mju_quatZ2Vec(along, np.asarray(axis))
    inertias = np.full(3, inertia)
    body = carrier.add_body(
        name=motor_joint(name),
        quat=along,
        explicitinertial=True,
        mass=1.0,
        inertia=inertias,
    )
    friction = split_friction(law)
    body.add_joint(
        name=motor_joint(name),
        type=mujoco().mjtJoint.mjJNT_HINGE,
        axis=(0, 0, 1),
        damping=friction.viscous / ratio**2,
        frictionloss=friction.dry / ratio,
    )


def _quat(rotation: Array) -> Array:
    """Quaternion (w, x, y, z) of a rotation matrix (3, 3)."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(rotation).as_quat()
    return np.array([w, x, y, z])
