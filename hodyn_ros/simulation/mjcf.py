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
from xml.etree import ElementTree

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


def elastic_mjcf(
    model: RobotModel,
    drives: Mapping[str, Drive],
    time_step: float,
    integrator: str = 'RK4',
    visible: bool = False,
) -> str:
    """Describe a robot with its motors and springs in MuJoCo's language.

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
    str
        XML text. Bodies whose inertia MuJoCo would refuse hold a stand-in, see `compiled`.

    Raises
    ------
    SimulationError
        If the robot has mimic or helical joints.
    """
    check_model(model)
    return _Writer(model, drives, visible).text(time_step, integrator)


def compiled(model: RobotModel, mjcf: str) -> Any:
    """Compile a description made by `elastic_mjcf`.

    Parameters
    ----------
    model : RobotModel
        From which it was made.
    mjcf : str

    Returns
    -------
    mujoco.MjModel
        With the inertias of the robot model, also those that MuJoCo's compiler refuses: published
        data violate the triangle inequality slightly.

    Raises
    ------
    SimulationError
    """
    library = mujoco()
    try:
        result = library.MjModel.from_xml_string(mjcf)
    except ValueError as error:
        raise SimulationError(f'MuJoCo refuses the robot: {error}') from error
    replaced = False
    for i, name in enumerate(model.body_names):
        inertia = body_inertia(model, i)
        if not inertia.is_accepted:
            body = result.jnt_bodyid[_joint_id(result, link_joint(name))]
            result.body_mass[body] = inertia.mass
            result.body_inertia[body] = inertia.moments
            replaced = True
    if replaced:
        library.mj_setConst(result, library.MjData(result))
    return result


def _joint_id(compiled_model: Any, name: str) -> int:
    library = mujoco()
    return int(library.mj_name2id(compiled_model, library.mjtObj.mjOBJ_JOINT, name))


class _Writer:
    def __init__(self, model: RobotModel, drives: Mapping[str, Drive], visible: bool) -> None:
        self.model, self.drives, self.visible = model, drives, visible

    def text(self, time_step: float, integrator: str) -> str:
        root = ElementTree.Element('mujoco', model=self.model.name)
        ElementTree.SubElement(
            root,
            'compiler',
            angle='radian',
            autolimits='true',
            inertiafromgeom='false',
            balanceinertia='false',
        )
        option = ElementTree.SubElement(
            root,
            'option',
            timestep=repr(float(time_step)),
            gravity=_numbers(self.model.gravity),
            integrator=integrator,
        )
        # A simulation that has broken down must not start again at zero unnoticed.
        ElementTree.SubElement(option, 'flag', contact='disable', autoreset='disable')
        world = ElementTree.SubElement(root, 'worldbody')
        if self.visible:
            _scenery(root, world)
        elements = {BASE: world}
        for i in range(self.model.n_bodies):
            elements[i] = self._link(elements[int(self.model.parent[i])], i)
        elastic = [name for name in self.model.joint_names if self.drives[name].is_elastic]
        for name in elastic:
            for i, motor in enumerate(self.drives[name].motors):
                self._motor(world, motor, self.drives[name], i)
        tendons = ElementTree.SubElement(root, 'tendon')
        for name in elastic:
            if self.drives[name].stiffness or self.drives[name].damping:
                self._spring(tendons, name)
        actuators = ElementTree.SubElement(root, 'actuator')
        for name, drive in self.drives.items():
            for motor in drive.motors:
                moved = motor_joint(motor) if drive.is_elastic else link_joint(name)
                ElementTree.SubElement(actuators, 'motor', name=motor, joint=moved)
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding='unicode') + '\n'

    def _link(self, parent: ElementTree.Element, i: int) -> ElementTree.Element:
        model, name = self.model, self.model.body_names[i]
        body = ElementTree.SubElement(
            parent, 'body', name=name, pos=_numbers(model.B[i, :3, 3]), quat=_quat(model.B[i])
        )
        inertia = body_inertia(model, i)
        mass, moments = (
            (inertia.mass, inertia.moments) if inertia.is_accepted else _STAND_IN
        )
        ElementTree.SubElement(
            body,
            'inertial',
            pos=_numbers(inertia.com),
            quat=_quat(inertia.axes),
            mass=repr(mass),
            diaginertia=_numbers(np.asarray(moments)),
        )
        X, drive = model.X[i], self.drives[name]
        turns = bool(X[:3].any())
        friction = split_friction(model.friction.get(name))
        armature = float(model.armature[i])
        viscous, dry = friction.viscous, friction.dry
        if not drive.is_elastic:
            of_motor = split_friction(drive.frictions[0])
            armature += drive.inertias[0]
            viscous, dry = viscous + of_motor.viscous, dry + of_motor.dry
        ElementTree.SubElement(
            body,
            'joint',
            name=link_joint(name),
            type='hinge' if turns else 'slide',
            axis=_numbers(X[:3] if turns else X[3:]),
            pos=_numbers(np.cross(X[:3], X[3:])),
            armature=repr(armature),
            damping=repr(viscous),
            frictionloss=repr(dry),
        )
        if self.visible:
            origin = model.B[i, :3, 3]
            if np.linalg.norm(origin) > 1e-6:
                ElementTree.SubElement(
                    parent,
                    'geom',
                    type='capsule',
                    fromto=_numbers(np.concatenate([np.zeros(3), origin])),
                    size='0.045',
                    mass='0',
                    rgba='0.85 0.87 0.9 1',
                )
            ElementTree.SubElement(
                body, 'geom', type='sphere', size='0.06', mass='0', rgba='0.2 0.4 0.7 1'
            )
        return body

    def _motor(self, world: ElementTree.Element, motor: str, drive: Drive, i: int) -> None:
        body = ElementTree.SubElement(world, 'body', name=motor_joint(motor))
        # A flywheel, also for a prismatic joint: gravity does not turn it, and where it is does
        # not matter. The mass is without effect.
        B = repr(float(drive.inertias[i]))
        ElementTree.SubElement(
            body, 'inertial', pos='0 0 0', mass='1', diaginertia=f'{B} {B} {B}'
        )
        friction = split_friction(drive.frictions[i])
        ElementTree.SubElement(
            body,
            'joint',
            name=motor_joint(motor),
            type='hinge',
            axis='0 0 1',
            damping=repr(friction.viscous),
            frictionloss=repr(friction.dry),
        )

    def _spring(self, tendons: ElementTree.Element, name: str) -> None:
        drive = self.drives[name]
        tendon = ElementTree.SubElement(
            tendons,
            'fixed',
            name=name,
            stiffness=repr(float(drive.stiffness)),
            damping=repr(float(drive.damping)),
            springlength='0 0',
        )
        ElementTree.SubElement(
            tendon, 'joint', joint=motor_joint(drive.motors[0]), coef='1'
        )
        ElementTree.SubElement(tendon, 'joint', joint=link_joint(name), coef='-1')


def _scenery(root: ElementTree.Element, world: ElementTree.Element) -> None:
    visual = ElementTree.SubElement(root, 'visual')
    ElementTree.SubElement(visual, 'global', offwidth='1280', offheight='960')
    ElementTree.SubElement(visual, 'headlight', ambient='0.4 0.4 0.4', diffuse='0.5 0.5 0.5')
    ElementTree.SubElement(world, 'light', pos='1 -1 3', dir='-0.3 0.3 -1')
    ElementTree.SubElement(
        world, 'geom', type='plane', size='1.5 1.5 0.1', rgba='0.93 0.93 0.9 1'
    )


def _numbers(values: Array) -> str:
    # repr keeps every bit.
    return ' '.join(repr(float(value)) for value in values)


def _quat(pose: Array) -> str:
    x, y, z, w = Rotation.from_matrix(pose[:3, :3]).as_quat()
    return _numbers(np.array([w, x, y, z]))
