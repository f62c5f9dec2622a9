"""A robot with elastic joints as MJCF, the XML of MuJoCo, which is imported when it is compiled.

Each motor is a flywheel of its own that turns in the world, and a fixed tendon of the length
theta - q is the spring, with damper: the model of Spong 1987, "Modeling and Control of Elastic
Joint Robots". The links have neither meshes nor contacts. Joints have the names of the robot
description; the motor of an elastic joint has a joint of its own, `<name>_motor`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.drives import SeriesElastic, VariableStiffness
from hodyn_ros.actuators.mechanisms import VsaModel
from hodyn_ros.actuators.springs import LinearSpring, Spring
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

# MuJoCo refuses bodies below this [kg, kg m^2] and moments that no body can have.
SMALLEST = 1e-12

# Time steps in which dry friction may bring a joint to rest, as few as MuJoCo takes. It is a soft
# constraint there: with the 20 ms that it has by default it even drives what brakes faster. And
# its impedance, as high as it may be: by default what sticks creeps a thousand times faster.
_STICTION, _HARDNESS = 2.0, (0.9999, 0.9999, 1.0, 0.5, 1.0)
# Half the distance of the points that make a hinge of two balls [m].
_LEVER = 0.1
# Likewise of end stops; and how far those are that a joint has on one side only [rad, m].
_END_STOP, _NO_STOP = 4.0, 1e6

# A function that gives the torque may simulate something else on its way.
_STEPPING = threading.RLock()


@dataclass(frozen=True)
class SimulatedJoint:
    """Motors and springs of a joint as simulated, in coordinates behind the gear.

    A joint has m motors with the positions theta_i; each is coupled to the link by the deflection
    d_i = theta_i - c_i q. The springs pull at motor i with the torque t_i(d_1 ... d_m), and at the
    link with Q = sum of c_i t_i. A series elastic joint has one motor and c = 1.

    Attributes
    ----------
    motors, coordinates : tuple of str
        Names of the motors, and of the joints of MuJoCo that they move.
    inertias : tuple of float
        Reflected [kg m^2], for a prismatic joint [kg].
    frictions : tuple of FrictionLaw or None
        Of each motor, by its velocity.
    torque_limit : float
        Of each motor [N m] or [N].
    law : callable, optional
        Torques (m,) of the springs by their deflections (m,), as in the model; None: rigid.
    factor : float
        Torque of a spring over that of the model.
    stiffness : float
        Of a linear spring, which MuJoCo has itself [N m/rad] or [N/m]; zero if there is none.
    damping : float
        Of the damper beside it, likewise [N m s/rad] or [N s/m].
    coupling : tuple of float
        The c_i.
    range : tuple of two float
        Of the deflection [rad] or [m].
    backlash : float
        Range of deflections without torque [rad] or [m].
    gear_ratio : float
        Of a rotor on the link in front of the joint; zero if it turns in the world.
    """

    motors: tuple[str, ...] = ()
    coordinates: tuple[str, ...] = ()
    inertias: tuple[float, ...] = (0.0,)
    frictions: tuple[FrictionLaw | None, ...] = (None,)
    torque_limit: float = np.inf
    law: Callable[[Array], Array] | None = None
    factor: float = 1.0
    stiffness: float = 0.0
    damping: float = 0.0
    coupling: tuple[float, ...] = (1.0,)
    range: tuple[float, float] = (-np.inf, np.inf)
    backlash: float = 0.0
    gear_ratio: float = 0.0

    @property
    def ratio(self) -> float:
        """How far a motor turns what moves in MuJoCo."""
        return self.gear_ratio or 1.0

    def torque(self, deflection: Array) -> Array:
        """Torques (m,) of the springs on the motors at deflections (m,), without dampers."""
        if self.law is None:
            return np.zeros_like(deflection)
        half = 0.5 * self.backlash
        return self.factor * self.law(deflection - np.clip(deflection, -half, half))


PASSIVE = SimulatedJoint()
"""A joint without motor, which closed loops move."""


def simulated_joints(
    model: RobotModel, actuators: Actuators, faults: Imperfections
) -> dict[str, SimulatedJoint]:
    """Motors and springs of the joints of a robot, in their order.

    Parameters
    ----------
    model : RobotModel
    actuators : Actuators
    faults : Imperfections

    Raises
    ------
    SimulationError
        If a joint cannot have an imperfection.
    JointNameError
        If one is given for an unknown joint.
    """
    names = model.joint_names
    elastic = [name for name in names if isinstance(actuators[name], SeriesElastic)]
    types = dict(zip(names, model.joint_types))
    able = dict.fromkeys(('stiffness_error', 'damping', 'backlash'), elastic)
    able['gear_ratio'] = [name for name in elastic if types[name] != 'prismatic']
    values = {
        fault: faults.of(fault, names, able.get(fault)).tolist()
        for fault in (*able, 'coulomb', 'torque_limit')
    }
    found = {}
    for j, name in enumerate(names):
        fault = {key: column[j] for key, column in values.items()}
        actuator, dry = actuators[name], Coulomb(fault['coulomb'])
        known: dict[str, Any] = {
            'motors': tuple(name + suffix for suffix in actuator.motor_suffixes),
            'inertias': actuator.motor_inertias,
            'frictions': tuple(
                dry if law is None else law + dry for law in actuator.friction_laws
            ),
            'torque_limit': fault['torque_limit'],
            'coordinates': (name,),
        }
        if isinstance(actuator, VariableStiffness):
            known |= {
                'coordinates': known['motors'],
                'law': partial(_torques_of_pair, actuator.model),
                'coupling': actuator.model.link_coupling,
            }
        elif isinstance(actuator, SeriesElastic):
            spring, factor = actuator.spring, 1.0 + fault['stiffness_error']
            half = 0.5 * fault['backlash']
            linear = spring.stiffness if isinstance(spring, LinearSpring) else 0.0
            known |= {
                'coordinates': (f'{name}_motor',),
                'law': partial(_torque_of_spring, spring),
                'factor': factor,
                'stiffness': factor * linear,
                'damping': actuator.damping + fault['damping'],
                'range': (spring.range[0] - half, spring.range[1] + half),
                'backlash': fault['backlash'],
                'gear_ratio': fault['gear_ratio'],
            }
        found[name] = SimulatedJoint(**known)
    return found


def _torque_of_spring(spring: Spring, deflection: Array) -> Array:
    torque: Array = spring.derivatives(deflection, 0)[..., 0]
    return torque


def _torques_of_pair(model: VsaModel, deflection: Array) -> Array:
    return model.series(deflection[:, None]).motor_effort[:, 0]


def mujoco() -> ModuleType:
    """The module of MuJoCo; a `SimulationError` if it is not installed."""
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
    """Inertia of a body: as it is, and the nearest one that MuJoCo's compiler takes.

    Attributes
    ----------
    mass : float
        [kg]
    moments : ndarray, shape (3,)
        Principal moments about the centre of mass, rising [kg m^2].
    com : ndarray, shape (3,)
        Centre of mass in the axes of the body [m].
    axes : ndarray, shape (3, 3)
        Principal axes in the columns, of either handedness.
    taken : tuple of float and ndarray
        Mass and moments that the compiler takes.
    """

    mass: float
    moments: Array
    com: Array
    axes: Array
    taken: tuple[float, Array]


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


def rotor_inertia(joint: SimulatedJoint) -> float:
    """Of the rotor of a joint with a single motor, about its axis [kg m^2]."""
    return joint.inertias[0] / joint.ratio**2


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


def body_inertia(model: RobotModel, i: int) -> _BodyInertia:
    """Inertia of a body of a tree.

    Parameters
    ----------
    model : RobotModel
    i : int

    Returns
    -------
    _BodyInertia
    """
    parts = inertia_parts(f'Body of joint {model.body_names[i]!r}', model.M_body[i])
    moments, axes = np.linalg.eigh(np.asarray(parts.inertia_com))
    mass, near = float(parts.mass), np.maximum(moments, SMALLEST)
    # With the moments in ascending order only one triangle inequality can fail.
    near[0] = max(near[0], (near[2] - near[1]) * (1.0 + SMALLEST))
    com = np.asarray(parts.com, dtype=np.float64)
    return _BodyInertia(mass, moments, com, axes, (max(mass, SMALLEST), near))


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


def add(parent: Element, tag: str, **attributes: Any) -> Element:
    """Element below another one; numbers are written with all digits."""
    written = {
        name: value
        if isinstance(value, str)
        else ' '.join(repr(float(x)) for x in np.ravel(value))
        for name, value in attributes.items()
    }
    return SubElement(parent, tag, written)


def robot_mjcf(
    model: RobotModel,
    joints: Mapping[str, SimulatedJoint],
    time_step: float,
    integrator: str = 'RK4',
    end_stops: bool = False,
    closure: Closure | None = None,
) -> Element:
    """Robot with its motors and springs as MJCF.

    Friction and armature of the model are those of the links' joints.

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
    Element

    Raises
    ------
    SimulationError
        If the robot cannot be simulated.
    """
    _check_model(model)
    root = Element('mujoco', model=model.name)
    add(root, 'compiler', angle='radian')
    option = add(
        root, 'option', timestep=time_step, gravity=model.gravity, integrator=integrator
    )
    # A simulation that has broken down must not start again at zero unnoticed.
    add(option, 'flag', contact='disable', autoreset='disable')
    soon, default = (_STICTION * time_step, 1.0), add(root, 'default')
    add(
        default,
        'joint',
        solreffriction=soon,
        solimpfriction=_HARDNESS,
        solreflimit=(_END_STOP * time_step, 1.0),
    )
    add(default, 'equality', solref=soon, solimp=_HARDNESS)
    bodies = {BASE: add(root, 'worldbody')}
    for i in range(model.n_bodies):
        parent = bodies[int(model.parent[i])]
        bodies[i] = _add_link(parent, model, joints[model.body_names[i]], i, end_stops)
    _add_motors(root, bodies, model, joints)
    if closure is not None:
        _add_loops(add(root, 'equality'), bodies, model, closure)
    return root


def _add_link(
    parent: Element, model: RobotModel, joint: SimulatedJoint, i: int, end_stops: bool
) -> Element:
    name, inertia, X = model.body_names[i], body_inertia(model, i), model.X[i]
    frame, turns = model.B[i], bool(model.X[i, :3].any())
    body = add(parent, 'body', name=name, pos=frame[:3, 3], xyaxes=frame[:3, :2].T)
    mass, moments = inertia.taken
    add(
        body,
        'inertial',
        pos=inertia.com,
        xyaxes=inertia.axes[:, :2].T,
        mass=mass,
        diaginertia=moments,
    )
    friction = split_friction(model.friction.get(name))
    armature, viscous, dry = float(model.armature[i]), friction.viscous, friction.dry
    if joint.law is None:
        of_motor = split_friction(joint.frictions[0])
        armature += joint.inertias[0]
        viscous, dry = viscous + of_motor.viscous, dry + of_motor.dry
    stops: dict[str, Any] = {}
    limits = model.limits.lower, model.limits.upper
    if end_stops and name in model.joint_names:
        j = model.joint_names.index(name)
        ends = max(limits[0][j], -_NO_STOP), min(limits[1][j], _NO_STOP)
        if ends != (-_NO_STOP, _NO_STOP):
            stops['range'] = ends
    add(
        body,
        'joint',
        name=name,
        type='hinge' if turns else 'slide',
        axis=X[:3] if turns else X[3:],
        pos=np.cross(X[:3], X[3:]),
        armature=armature,
        damping=viscous,
        frictionloss=dry,
        **stops,
    )
    return body


def _add_motors(
    root: Element,
    bodies: Mapping[int, Element],
    model: RobotModel,
    joints: Mapping[str, SimulatedJoint],
) -> None:
    """Add flywheels, also for prismatic joints, with their springs and torques.

    Gravity does not turn them, and where they are does not matter. Their mass is without effect.
    """
    tendons, actuators = Element('tendon'), Element('actuator')
    for i, name in enumerate(model.body_names):
        joint, axis = joints[name], model.B[i, :3, :3] @ model.X[i, :3]
        carrier = bodies[int(model.parent[i]) if joint.gear_ratio else BASE]
        for motor, moved, inertia, law in zip(
            joint.motors, joint.coordinates, joint.inertias, joint.frictions
        ):
            if joint.law is not None:
                along = axis if joint.gear_ratio else (0.0, 0.0, 1.0)
                body = add(carrier, 'body', name=moved, zaxis=along)
                add(body, 'inertial', pos=(0, 0, 0), mass=1.0, diaginertia=(inertia,) * 3)
                of_motor = split_friction(law)
                add(
                    body,
                    'joint',
                    name=moved,
                    damping=of_motor.viscous / joint.ratio**2,
                    frictionloss=of_motor.dry / joint.ratio,
                )
            limit = joint.torque_limit
            range_of = {'ctrlrange': (-limit, limit)} if np.isfinite(limit) else {}
            gear = 1.0 / joint.ratio
            add(actuators, 'motor', name=motor, joint=moved, gear=gear, **range_of)
        if joint.stiffness or joint.damping:
            half = 0.5 * joint.backlash
            tendon = add(
                tendons,
                'fixed',
                name=name,
                stiffness=joint.stiffness,
                damping=joint.damping,
                springlength=(-half, half),
            )
            add(tendon, 'joint', joint=joint.coordinates[0], coef=1.0 / joint.ratio)
            add(tendon, 'joint', joint=name, coef=-1.0)
    root.extend((tendons, actuators))


def _add_loops(
    equality: Element, bodies: Mapping[int, Element], tree: RobotModel, closure: Closure
) -> None:
    """Close loops by equalities: of points and frames of links, and of joints."""
    for coupling in closure.couplings:
        if len(coupling.coefficients) > 5 or len(coupling.followed) > 1:
            raise SimulationError(
                f'Coupling {coupling.name!r} has {len(coupling.coefficients)} coefficients and '
                f'follows {listed(coupling.followed)}; MuJoCo has polynomials of up to five '
                'coefficients of one joint.'
            )
        factors = np.zeros(5)
        factors[: len(coupling.coefficients)] = coupling.coefficients
        followed = coupling.followed[0]
        add(equality, 'joint', joint1=coupling.joint, joint2=followed, polycoef=factors)
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
            for site, link, pose in zip(sites, (loop.link_a, loop.link_b), loop.poses):
                place = tree.link(link)
                frame = place.pose @ pose @ at
                add(
                    bodies[place.body],
                    'site',
                    name=site,
                    pos=frame[:3, 3],
                    xyaxes=frame[:3, :2].T,
                )
            kind = 'weld' if loop.kind == 'weld' else 'connect'
            add(equality, kind, site1=sites[0], site2=sites[1])


def compiled(mjcf: Element, model: RobotModel, joints: Mapping[str, SimulatedJoint]) -> Any:
    """Compiled robot, with the inertias of the robot model.

    Also with those that MuJoCo's compiler refuses: published data violate the triangle inequality
    slightly, and a rotor on a link has its moment of inertia about its axis alone, since the mass
    of the link in front, and its other moments, include those of the rotor.

    Parameters
    ----------
    mjcf : Element
        As of `robot_mjcf`.
    model : RobotModel
    joints : mapping of str to SimulatedJoint

    Returns
    -------
    mujoco.MjModel

    Raises
    ------
    SimulationError
        If MuJoCo is not installed or refuses the robot.
    """
    library = mujoco()
    try:
        result = library.MjModel.from_xml_string(tostring(mjcf, 'unicode'))
    except ValueError as error:
        raise SimulationError(f'MuJoCo refuses the robot: {error}') from error
    for i, name in enumerate(model.body_names):
        inertia, body = body_inertia(model, i), result.body(name).id
        if inertia.mass != inertia.taken[0] or np.any(inertia.moments != inertia.taken[1]):
            result.body_mass[body] = inertia.mass
            result.body_inertia[body] = inertia.moments
        joint = joints[name]
        if joint.gear_ratio:
            body = result.body(joint.coordinates[0]).id
            result.body_mass[body] = 0.0
            result.body_inertia[body] = 0.0, 0.0, rotor_inertia(joint)
    library.mj_setConst(result, library.MjData(result))
    return result
