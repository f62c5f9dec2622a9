"""A robot with elastic joints, simulated by MuJoCo."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial
from itertools import chain
from typing import Any, Union
from xml.etree.ElementTree import Element, indent, tostring

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.drives import Actuator
from hodyn_ros.checks import check_choice, checked_number, finite_array
from hodyn_ros.errors import DeflectionError, SimulationError
from hodyn_ros.kinematics.closed_loops import ClosedMotion, opened
from hodyn_ros.model.friction import FrictionLaw, JointFriction
from hodyn_ros.model.robot import ModelWarning, RobotModel
from hodyn_ros.names import listed
from hodyn_ros.simulation.imperfections import FALL_VELOCITY, Imperfections
from hodyn_ros.simulation.mjcf import (
    INTEGRATORS,
    PASSIVE,
    SMALLEST,
    SimulatedJoint,
    add,
    body_inertia,
    callbacks,
    compiled,
    mujoco,
    robot_mjcf,
    rotor_inertia,
    simulated_joints,
    split_friction,
)
from hodyn_ros.typing import Array

Indices = NDArray[np.intp]

Torque = Union[ArrayLike, Callable[[float], ArrayLike]]  # noqa: UP007


class ElasticPlant:
    """A robot whose joints are driven by motors through springs.

    The equations of motion are MuJoCo's; nothing of this package's dynamics takes part. The links
    move by the torque of the springs, Q = f(theta - q) + D (theta' - q'), and the motors by
    B theta'' + Q + friction = torque.

    Parameters
    ----------
    model : RobotModel, str or path-like
        Without mimic and helical joints; or a URDF, read without friction. Its friction and
        armature are those of the links. Closed loops are equalities of MuJoCo, as stiff as its
        time step lets them be; those that slide are refused.
    actuators : Actuators or mapping of joint name to Actuator
        Joints that are not named are rigid and have motors without inertia.
    time_step : float
        Of the integration [s].
    integrator : str
        RK4 (fourth order), Euler (semi-implicit), implicit or implicitfast (first order).
    imperfections : Imperfections, optional
        How the robot differs from model and actuators; by default it does not.
    end_stops : bool
        Whether joints go no farther than the limits of their positions.

    Attributes
    ----------
    model : RobotModel
    actuators : Actuators
        Both as given, without the imperfections.
    joint_names, motor_names : tuple of str
        In the order of all arrays, n and m of them.
    time_step : float
        [s]
    mujoco_model, mujoco_data
        For what this class does not offer.

    Raises
    ------
    SimulationError, JointNameError, ActuatorError
        If MuJoCo is not installed, or the robot, its actuators or a setting cannot be simulated.

    Examples
    --------
    An arm that its motors hold, with the weight in its springs:

    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import SeriesElastic
    >>> from hodyn_ros.simulation import ElasticPlant
    >>> plant = ElasticPlant('two_link', {'shoulder': SeriesElastic(2000.0, 0.5)})
    >>> torque = plant.holding_torque([0.3, 0.5])
    >>> plant.reset([0.3, 0.5])
    >>> torque.round(2), plant.deflection.round(4)
    (array([39.64,  6.83]), array([0.0198, 0.    ]))
    """

    def __init__(
        self,
        model: RobotModel | str | os.PathLike[str],
        actuators: Actuators | Mapping[str, Actuator],
        time_step: float = 1e-4,
        integrator: str = 'RK4',
        imperfections: Imperfections | None = None,
        end_stops: bool = False,
    ) -> None:
        if not isinstance(model, RobotModel):
            model = RobotModel.from_urdf(model)
        checked_number('time_step', time_step, SimulationError, above=0.0, unit='s')
        check_choice('The integrator', integrator, INTEGRATORS, SimulationError)
        if not isinstance(actuators, Actuators):
            actuators = Actuators(model, actuators)
        actuators.check_suits(model)
        self.model: RobotModel = model
        self.actuators: Actuators = actuators
        self.time_step: float = float(time_step)
        faults = imperfections or Imperfections()
        driven = simulated_joints(model, actuators, faults)
        self._joints = tuple(driven.values())
        self.joint_names: tuple[str, ...] = model.joint_names
        self.motor_names: tuple[str, ...] = actuators.motor_names
        tree, closure = model.tree, model.closure
        joints = {name: driven.get(name, PASSIVE) for name in tree.joint_names}
        rotors = [bool(x.gear_ratio) * rotor_inertia(x) for x in joints.values()]
        self._tree = faults.links(tree, np.array(rotors))
        self._mjcf = robot_mjcf(
            self._tree, joints, self.time_step, integrator, end_stops, closure
        )
        self._library = mujoco()
        self.mujoco_model: Any = compiled(self._mjcf, self._tree, joints)
        self.mujoco_data: Any = self._library.MjData(self.mujoco_model)
        self._find_addresses()
        self._find_laws()
        breakaway, coulomb = (
            faults.of(name, self.joint_names)[self._joint]
            for name in ('breakaway', 'coulomb')
        )
        self._fall = np.maximum(breakaway - coulomb, 0.0)
        self._dry = np.array(self.mujoco_model.dof_frictionloss[self._motor])
        start = np.zeros(model.n_joints)
        if closure is not None:
            start = closure.start[closure.independent]
        self.reset(start, theta=start[self._joint])

    def _find_addresses(self) -> None:
        """Find where joints and motors are in MuJoCo's arrays."""
        joints = self._joints
        self._links = self._addresses(self._tree.joint_names)
        self._link = self._addresses(self.joint_names)
        self._motor = self._addresses(chain(*(joint.coordinates for joint in joints)))
        # Of each motor: its joint, how much the link follows it, its range of deflections.
        self._joint = self.actuators.joint_of_motor
        self._coupling = np.array([c for joint in joints for c in joint.coupling])
        of_motor = [joints[j] for j in self._joint]
        self._lowest, self._highest = np.array([joint.range for joint in of_motor]).T
        # How far a degree of freedom of MuJoCo turns what it belongs to.
        self._turns = np.ones(self.mujoco_model.nv)
        self._turns[self._motor] = [1.0 / joint.ratio for joint in of_motor]

    def _addresses(self, names: Iterable[str]) -> Indices:
        """Degrees of freedom by the names of joints; positions have the same, all being scalar."""
        addresses = [self.mujoco_model.joint(name).dofadr[0] for name in names]
        return np.array(addresses, dtype=np.intp)

    def _find_laws(self) -> None:
        """Collect laws that MuJoCo does not compute itself: they are added while it steps."""
        self._springs = list[tuple[SimulatedJoint, Array, Indices, Any]]()
        self._friction: dict[int, FrictionLaw] = {}
        friction = self._tree.friction
        frictions = [
            (friction.get(name), address)
            for name, address in zip(self._tree.joint_names, self._links)
        ]
        for j, joint in enumerate(self._joints):
            motors = self._motor[self._joint == j]
            if joint.law is not None and not joint.stiffness:
                coupling = np.array(joint.coupling)
                self._springs.append((joint, coupling, motors, self._link[j]))
            frictions += zip(joint.frictions, motors)
        for law, address in frictions:
            rest = split_friction(law).rest
            if rest is not None:
                before = self._friction.get(int(address))
                self._friction[int(address)] = rest if before is None else before + rest

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return float(self.mujoco_data.time)

    @property
    def q(self) -> Array:
        """Joint positions, shape (n,) [rad] or [m]."""
        return self._of(self.mujoco_data.qpos, self._link)

    @property
    def qd(self) -> Array:
        """Joint velocities, shape (n,)."""
        return self._of(self.mujoco_data.qvel, self._link)

    @property
    def theta(self) -> Array:
        """Motor positions in joint coordinates, shape (m,); those of rigid joints are q."""
        return self._of(self.mujoco_data.qpos, self._motor)

    @property
    def thetad(self) -> Array:
        """Motor velocities, shape (m,)."""
        return self._of(self.mujoco_data.qvel, self._motor)

    @property
    def deflection(self) -> Array:
        """Deflection of the spring at each motor, shape (m,); zero where a joint is rigid."""
        return self.theta - self._coupling * self.q[self._joint]

    @property
    def spring_torque(self) -> Array:
        """Torques of springs and dampers on the links, shape (n,); zero where a joint is rigid."""
        torque = np.zeros(len(self._joints))
        np.add.at(torque, self._joint, self._coupling * self._motor_load())
        return torque

    def _motor_load(self) -> Array:
        """Torques of springs and dampers on the motors, shape (m,)."""
        damping = np.array([joint.damping for joint in self._joints])[self._joint]
        rate = self.thetad - self._coupling * self.qd[self._joint]
        return self._spring_load(self.deflection) + damping * rate

    def _spring_load(self, deflection: Array) -> Array:
        load = np.zeros(len(deflection))
        for j, joint in enumerate(self._joints):
            own = self._joint == j
            load[own] = joint.torque(deflection[own])
        return load

    def _of(self, values: Any, addresses: Indices) -> Array:
        found: Array = values[addresses] * self._turns[addresses]
        return found

    def reset(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        theta: ArrayLike | None = None,
        thetad: ArrayLike | None = None,
        time: float = 0.0,
        stiffness: Mapping[str, float] | None = None,
    ) -> None:
        """Put the robot into a state.

        Parameters
        ----------
        q, qd : array-like, shape (n,)
            Joint positions [rad] or [m] and velocities, which are zero by default.
        theta, thetad : array-like, shape (m,), optional
            Motor positions and velocities, ignored for rigid joints; by default the springs carry
            the weight of links at rest, and motors are as fast as the joints.
        time : float
            Simulated time [s].
        stiffness : mapping of joint name to float, optional
            Stiffness of joints where it can be chosen [N m/rad]; needed there unless theta is
            given.

        Raises
        ------
        SimulationError, DeflectionError
            If an argument cannot be used, or a spring would be deflected beyond its range.
        """
        data = self.mujoco_data
        time = checked_number('time', time, SimulationError, unit='s')
        position = self._vector('q', q, self.joint_names)
        velocity = self._vector(
            'qd', 0.0 * position if qd is None else qd, self.joint_names
        )
        if theta is None:
            theta = self._at_rest(position, self._chosen(stiffness))
        motor_position = self._vector('theta', theta, self.motor_names)
        if thetad is None:
            thetad = self._coupling * velocity[self._joint]
        motor_velocity = self._vector('thetad', thetad, self.motor_names)
        self._library.mj_resetData(self.mujoco_model, data)
        data.time = time
        # The links come last: a rigid joint has both positions in one place.
        turns = self._turns[self._motor]
        data.qpos[self._motor], data.qvel[self._motor] = (
            motor_position / turns,
            motor_velocity / turns,
        )
        state = opened(self.model, np.stack([position, velocity]))[1]
        data.qpos[self._links], data.qvel[self._links] = state
        data.ctrl[:] = self._motor_load()
        self._check()

    def push(self, joint: str, force: ArrayLike) -> None:
        """Push a link at its centre of mass, from now until the next push or reset.

        Parameters
        ----------
        joint : str
            The joint that moves the link.
        force : array-like, shape (3,)
            In the axes of the base [N].
        """
        check_choice('The joint', joint, self.model.body_names, SimulationError)
        body = self.mujoco_model.joint(joint).bodyid[0]
        vector = self._vector('force', force, ('x', 'y', 'z'))
        self.mujoco_data.xfrc_applied[:] = 0.0
        self.mujoco_data.xfrc_applied[body, :3] = vector

    def weight(self, q: ArrayLike) -> Array:
        """Joint torques that hold links at rest, as MuJoCo computes them.

        Parameters
        ----------
        q : array-like, shape (n,)
            [rad] or [m]

        Returns
        -------
        ndarray, shape (n,)
            [N m] or [N]

        Raises
        ------
        SimulationError
            If the argument cannot be used.
        """
        position = self._vector('q', q, self.joint_names)
        data = self._library.MjData(self.mujoco_model)
        data.qpos[self._links] = opened(self.model, position[None])[1][0]
        self._library.mj_kinematics(self.mujoco_model, data)
        self._library.mj_comPos(self.mujoco_model, data)
        self._library.mj_fwdVelocity(self.mujoco_model, data)
        weight = self._of(data.qfrc_bias, self._links)
        if self.model.closure is None:
            return weight
        closed = ClosedMotion(self.model, position[None, None])
        efforts: Array = closed.efforts(weight[None, None])[0][0, 0]
        return efforts

    def holding_torque(
        self, q: ArrayLike, stiffness: Mapping[str, float] | None = None
    ) -> Array:
        """Motor torques that hold the links at rest.

        Parameters
        ----------
        q : array-like, shape (n,)
            [rad] or [m]
        stiffness : mapping of joint name to float, optional
            As of `reset`.

        Returns
        -------
        ndarray, shape (m,)
            [N m] or [N]

        Raises
        ------
        SimulationError, DeflectionError
            As of `reset`.
        """
        position = self._vector('q', q, self.joint_names)
        motors = self._at_rest(position, self._chosen(stiffness))
        load = self._spring_load(motors - self._coupling * position[self._joint])
        is_rigid = np.array([joint.law is None for joint in self._joints])[self._joint]
        return np.where(is_rigid, self.weight(position)[self._joint], load)

    def _chosen(self, stiffness: Mapping[str, float] | None) -> Mapping[str, float]:
        """Stiffnesses by joint, refused where there is none to choose."""
        if stiffness is None:
            return {}
        able = [name for name in self.joint_names if self.actuators[name].needs_stiffness]
        if not isinstance(stiffness, Mapping):
            raise SimulationError(
                f'stiffness is {stiffness!r}, expected a mapping of joints.'
            )
        for name, value in stiffness.items():
            if name not in able:
                raise SimulationError(
                    f'A stiffness is given for {name!r}; joints that can choose theirs: '
                    f'{listed(able)}.'
                )
            checked_number(f'Joint {name!r}: the stiffness', value, SimulationError)
        return stiffness

    def _at_rest(self, position: Array, stiffness: Mapping[str, float]) -> Array:
        """Motor positions at which the springs carry the weight of the links."""
        motors = np.empty(len(self._joint))
        for j, (name, Q) in enumerate(zip(self.joint_names, self.weight(position))):
            joint, own = self._joints[j], self._joint == j
            try:
                actuator, given = self.actuators[name], [[position[j]], [Q / joint.factor]]
                if actuator.needs_stiffness:
                    if name not in stiffness:
                        raise SimulationError(
                            'The weight alone does not determine the positions of its motors; '
                            'give its stiffness, or theta of the motors '
                            f'{listed(self.motor_names)}.'
                        )
                    given.append([stiffness[name]])
                motors[own] = actuator.motors(*given).position[:, 0]
                motors[own] += 0.5 * joint.backlash * np.sign(Q)
            except DeflectionError as error:
                raise DeflectionError(f'Joint {name!r}: {error}', joint=name) from None
            except SimulationError as error:
                raise SimulationError(f'Joint {name!r}: {error}') from None
        return motors

    def step(self, torque: Torque, steps: int = 1) -> None:
        """Integrate the equations of motion.

        Parameters
        ----------
        torque : array-like, shape (m,), or callable
            Motor torques [N m], held during all steps as a drive does between two commands; or a
            function of the time [s], which is evaluated wherever the integrator asks for it.
        steps : int
            Number of time steps, zero or more.

        Raises
        ------
        SimulationError, DeflectionError
            If an argument cannot be used, the simulation diverges, or a spring leaves its range.
        """
        checked_number('steps', steps, SimulationError, least=0, whole=True)
        data, control = self.mujoco_data, None
        if callable(torque):
            control = partial(self._command, torque)
        else:
            data.ctrl[:] = self.checked_torque(torque)
        with callbacks(control=control, passive=self._passive()):
            if self._fall.any():
                for _ in range(steps):
                    self._let_friction_fall()
                    self._library.mj_step(self.mujoco_model, data)
            else:
                self._library.mj_step(self.mujoco_model, data, nstep=steps)
        self._check()

    def _command(self, torque: Callable[[float], ArrayLike], model: Any, data: Any) -> None:
        data.ctrl[:] = self.checked_torque(torque(float(data.time)))

    def _let_friction_fall(self) -> None:
        """Set the dry friction of motors by their speeds."""
        fall = self._fall * np.exp(-((self.thetad / FALL_VELOCITY) ** 2))
        dry = self._dry + fall * self._turns[self._motor]
        self.mujoco_model.dof_frictionloss[self._motor] = dry

    def checked_torque(self, torque: ArrayLike) -> Array:
        """Motor torques (m,) [N m] or [N] as an array, if the simulation takes them.

        Raises
        ------
        SimulationError
            If the shape is wrong, or a value is not finite or above 1e10: because of one such
            value MuJoCo would leave out the torques of all motors.
        """
        vector = self._vector('torque', torque, self.motor_names)
        largest = float(self._library.mjMAXVAL)
        beyond = np.abs(vector) > largest
        if beyond.any():
            i = int(np.argmax(beyond))
            raise SimulationError(
                f'The torque of motor {self.motor_names[i]!r} is {vector[i]:.6g}, expected '
                f'magnitudes up to {largest:.6g}, the largest that MuJoCo takes.'
            )
        return vector

    def acceleration(self, torque: ArrayLike) -> tuple[Array, Array]:
        """Accelerations in the present state.

        Parameters
        ----------
        torque : array-like, shape (m,)
            Of the motors [N m] or [N].

        Returns
        -------
        joints : ndarray, shape (n,)
            [rad/s^2] or [m/s^2]
        motors : ndarray, shape (m,)
            In joint coordinates.

        Raises
        ------
        SimulationError
            If the argument cannot be used.
        """
        data = self.mujoco_data
        data.ctrl[:] = self.checked_torque(torque)
        with callbacks(control=None, passive=self._passive()):
            self._library.mj_forward(self.mujoco_model, data)
        return self._of(data.qacc, self._link), self._of(data.qacc, self._motor)

    def to_mjcf(self) -> str:
        """MJCF file of the robot, for MuJoCo without this package.

        Loaded there it moves as this plant does; its keyframe `start` is the present state. Joints
        have the names of the robot description, motors of elastic joints are the joints
        `<name>_motor`. Geometries for displays can be added to the bodies, which are named as
        their joints.

        Returns
        -------
        str

        Raises
        ------
        SimulationError
            If MuJoCo alone does not have it: springs that are not linear, variable stiffness,
            friction that is neither viscous nor Coulomb's without smoothing, `breakaway` and
            `gear_ratio`.

        Warns
        -----
        ModelWarning
            Of moments of inertia that no body has, which MuJoCo refuses; the nearest are written.
        """
        lacking = [
            ('springs that are not linear', self._springs),
            ('friction that is neither viscous nor Coulomb friction', self._friction),
            ('breakaway', self._fall.any()),
            ('gear_ratio', [joint for joint in self._joints if joint.gear_ratio]),
        ]
        if missing := [what for what, there in lacking if there]:
            raise SimulationError(
                f'The robot has {listed(missing)}, which MJCF files do not have: only '
                'this package simulates it.'
            )
        for i, name in enumerate(self._tree.body_names):
            moments, taken = (x := body_inertia(self._tree, i)).moments, x.taken[1]
            if np.abs(taken - moments).max() > 1e-6 * moments[2] + 2.0 * SMALLEST:
                warnings.warn(
                    f'The link of joint {name!r} has principal moments of inertia '
                    f'{listed(moments)} kg m^2, which no body has; the file has {listed(taken)}.',
                    ModelWarning,
                    stacklevel=2,
                )
        data, root = self.mujoco_data, copy(self._mjcf)
        state = {name: getattr(data, name) for name in ('time', 'qpos', 'qvel', 'ctrl')}
        add(add(root, 'keyframe'), 'key', name='start', **state)
        indent(root)
        return tostring(root, 'unicode')

    def to_ros2_control(self, mjcf_path: str) -> str:
        """Elements that a URDF needs for the simulation by mujoco_ros2_control.

        Parameters
        ----------
        mjcf_path : str
            Of the file with the text of `to_mjcf`.

        Returns
        -------
        str
            A link and a joint for the motor of every elastic joint, since ros2_control asks for
            its joints in the URDF; and the tag `ros2_control`: positions and velocities of joints
            and motors, efforts of motors.
        """
        root = Element('robot')
        control = Element('ros2_control', name='MujocoSystem', type='system')
        hardware = add(control, 'hardware')
        add(hardware, 'plugin').text = 'mujoco_ros2_control/MujocoSystemInterface'
        for name, value in (('mujoco_model', mjcf_path), ('initial_keyframe', 'start')):
            add(hardware, 'param', name=name).text = value
        moved = dict.fromkeys(chain(*(joint.coordinates for joint in self._joints)))
        for name in dict.fromkeys((*self.joint_names, *moved)):
            joint = add(control, 'joint', name=name)
            if name in moved:
                add(joint, 'command_interface', name='effort')
            for kind in ('position', 'velocity'):
                add(joint, 'state_interface', name=kind)
            if name not in self.joint_names:
                add(root, 'link', name=name)
                motor = add(root, 'joint', name=name, type='continuous')
                add(motor, 'parent', link=self.model.base_link)
                add(motor, 'child', link=name)
        root.append(control)
        for element in root:
            indent(element)
        return '\n'.join(tostring(element, 'unicode') for element in root)

    def _passive(self) -> Callable[[Any, Any], None] | None:
        return self._add_passive if self._springs or self._friction else None

    def _add_passive(self, model: Any, data: Any) -> None:
        turns = self._turns
        for joint, coupling, motors, link in self._springs:
            positions = data.qpos[motors] * turns[motors]
            torque = joint.torque(positions - coupling * data.qpos[link])
            data.qfrc_passive[motors] -= torque * turns[motors]
            data.qfrc_passive[link] += coupling @ torque
        if self._friction:
            effort = JointFriction(self._friction)((data.qvel * turns)[:, None])
            data.qfrc_passive[:] -= effort[:, 0] * turns

    def _check(self) -> None:
        """Refuse to go on from a state that means nothing."""
        data, kinds = self.mujoco_data, self._library.mjtWarning
        bad = (kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC)
        # MuJoCo itself looks at the state at the beginning of a step only.
        state = np.concatenate((data.qpos, data.qvel))
        is_usable = np.all(np.abs(state) <= self._library.mjMAXVAL)
        if not is_usable or any(data.warning[kind].number for kind in bad):
            raise SimulationError(
                f'The simulation has diverged at {data.time:.6g} s; take a shorter time_step '
                f'(it is {self.time_step} s) or check what commands the motors.'
            )
        deflection = self.deflection
        outside = (deflection < self._lowest) | (deflection > self._highest)
        if np.any(outside):
            i = int(np.flatnonzero(outside)[0])
            joint = self.joint_names[self._joint[i]]
            raise DeflectionError(
                f'Joint {joint!r}: the deflection at motor {self.motor_names[i]!r} is '
                f'{deflection[i]:.4g} at {data.time:.6g} s, the range of its spring is '
                f'{self._lowest[i]:.4g} to {self._highest[i]:.4g}.',
                joint=joint,
            )

    def _vector(self, what: str, values: ArrayLike, names: tuple[str, ...]) -> Array:
        vector = finite_array(what, values, SimulationError)
        if vector.shape != (len(names),):
            raise SimulationError(
                f'{what} is {values!r}, expected {len(names)} finite numbers for {listed(names)}.'
            )
        return vector
