"""A robot with elastic joints, simulated by MuJoCo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import JointNameError, SimulationError
from hodyn_ros.model.friction import FrictionLaw, joint_friction
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.simulation.backend import callbacks, mujoco
from hodyn_ros.simulation.drives import Drive
from hodyn_ros.simulation.mjcf import (
    INTEGRATORS,
    compiled,
    elastic_mjcf,
    link_joint,
    motor_joint,
    split_friction,
)

Array = NDArray[np.float64]

Torque = ArrayLike | Callable[[float], ArrayLike]


class ElasticPlant:
    """A robot whose joints are driven by motors through springs.

    The equations of motion are MuJoCo's; nothing of this package's dynamics takes part. The links
    move by the torque of the springs, Q = f(theta - q) + D (theta' - q'), and the motors by
    B theta'' + Q + friction = torque.

    Parameters
    ----------
    model : RobotModel or str or path-like
        Without mimic and helical joints; or a URDF, read without friction.
    drives : mapping of joint name to Drive
        Joints that are not named are rigid and have motors without inertia.
    time_step : float
        Of the integration [s].
    integrator : str
        RK4 (fourth order), Euler (semi-implicit), implicit or implicitfast (first order).
    visible : bool
        Whether links can be drawn.

    Attributes
    ----------
    model : RobotModel
    joint_names, motor_names : tuple of str
        In the order of all arrays; a motor has the name of its joint.
    mjcf : str
        The description that MuJoCo has compiled.
    mujoco_model, mujoco_data
        For what this class does not offer.

    Raises
    ------
    SimulationError
        If MuJoCo is not installed, or the robot or a setting cannot be simulated.
    JointNameError
        If a drive belongs to no joint.
    """

    def __init__(
        self,
        model: RobotModel | str,
        drives: Mapping[str, Drive],
        time_step: float = 1e-4,
        integrator: str = 'RK4',
        visible: bool = False,
    ) -> None:
        if not isinstance(model, RobotModel):
            model = RobotModel.from_urdf(model)
        if not (np.isfinite(time_step) and time_step > 0.0):
            raise SimulationError(f'time_step is {time_step} s, expected more than zero.')
        if integrator not in INTEGRATORS:
            raise SimulationError(
                f'The integrator {integrator!r} is unknown; choose one of {listed(INTEGRATORS)}.'
            )
        unknown = [name for name in drives if name not in model.joint_names]
        if unknown:
            raise JointNameError(
                f'There are drives for {listed(unknown)}, which are no joints of the model; '
                f'its joints are {listed(model.joint_names)}.'
            )
        self.drives = {name: drives.get(name, Drive()) for name in model.joint_names}
        for name, drive in self.drives.items():
            drive.check(name)
        self.model = model
        self.time_step = float(time_step)
        self.joint_names = self.motor_names = model.joint_names
        self.mjcf = elastic_mjcf(model, self.drives, self.time_step, integrator, visible)
        self._library = mujoco()
        self.mujoco_model = compiled(model, self.mjcf)
        self.mujoco_data = self._library.MjData(self.mujoco_model)
        self._link = self._addresses(link_joint(name) for name in self.joint_names)
        self._motor = self._addresses(
            motor_joint(name) if drive.is_elastic else link_joint(name)
            for name, drive in self.drives.items()
        )
        self._find_laws()
        self._largest = np.array([drive.max_deflection for drive in self.drives.values()])
        self.reset(np.zeros(model.n_joints))

    def _addresses(self, names: Any) -> NDArray[np.intp]:
        """Degrees of freedom by the names of joints; positions have the same, all being scalar."""
        joint = self._library.mjtObj.mjOBJ_JOINT
        ids = [self._library.mj_name2id(self.mujoco_model, joint, name) for name in names]
        return np.array(self.mujoco_model.jnt_dofadr[ids], dtype=np.intp)

    def _find_laws(self) -> None:
        """Collect what MuJoCo does not compute itself: it is added while it steps."""
        self._springs = [
            (j, drive.spring)
            for j, drive in enumerate(self.drives.values())
            if drive.spring is not None
        ]
        self._friction: dict[int, FrictionLaw] = {}
        for j, (name, drive) in enumerate(self.drives.items()):
            for law, address in (
                (self.model.friction.get(name), self._link[j]),
                (drive.friction, self._motor[j]),
            ):
                rest = split_friction(law).rest
                if rest is not None:
                    before = self._friction.get(address)
                    self._friction[address] = rest if before is None else before + rest

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
        """Motor positions in joint coordinates, shape (n,); those of rigid joints are q."""
        return self._of(self.mujoco_data.qpos, self._motor)

    @property
    def thetad(self) -> Array:
        """Motor velocities, shape (n,)."""
        return self._of(self.mujoco_data.qvel, self._motor)

    @staticmethod
    def _of(values: Any, addresses: NDArray[np.intp]) -> Array:
        return np.array(values[addresses], dtype=np.float64)

    def reset(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        theta: ArrayLike | None = None,
        thetad: ArrayLike | None = None,
        time: float = 0.0,
    ) -> None:
        """Put the robot into a state.

        Parameters
        ----------
        q : array-like, shape (n,)
            Joint positions [rad] or [m].
        qd : array-like, shape (n,), optional
            Joint velocities; zero by default.
        theta : array-like, shape (n,), optional
            Motor positions; by default the springs carry the links' weight. Ignored for rigid
            joints.
        thetad : array-like, shape (n,), optional
            Motor velocities; by default those of the joints.
        time : float
            Simulated time [s].

        Raises
        ------
        SimulationError
            If an array has a wrong shape or holds values that are not finite.
        """
        data, model = self.mujoco_data, self.mujoco_model
        position = self._vector('q', q)
        velocity = np.zeros_like(position) if qd is None else self._vector('qd', qd)
        motor_velocity = velocity if thetad is None else self._vector('thetad', thetad)
        self._library.mj_resetData(model, data)
        data.time = time
        if theta is None:
            data.qpos[self._motor] = position
            data.qpos[self._link] = position
            self._library.mj_forward(model, data)
            load = data.qfrc_bias[self._link]
            motor_position = position + np.array(
                [drive.deflection_at(Q) for drive, Q in zip(self.drives.values(), load)]
            )
        else:
            motor_position = self._vector('theta', theta)
        # The links come last: a rigid joint has both positions in one place.
        data.qpos[self._motor], data.qvel[self._motor] = motor_position, motor_velocity
        data.qpos[self._link], data.qvel[self._link] = position, velocity
        self._check()

    def step(self, torque: Torque, steps: int = 1) -> None:
        """Integrate the equations of motion.

        Parameters
        ----------
        torque : array-like, shape (n,), or callable
            Motor torques [N m], held during all steps as a drive does between two commands; or a
            function of the time [s], which is evaluated wherever the integrator asks for it.
        steps : int
            Number of time steps.

        Raises
        ------
        SimulationError
            If the torque has a wrong shape or holds values that are not finite, if the simulation
            diverges, or if a deflection exceeds the range of its spring.
        """
        control = None
        if callable(torque):
            function = torque

            def control(model: Any, data: Any) -> None:
                data.ctrl[:] = self._vector('torque', function(float(data.time)))
        else:
            self.mujoco_data.ctrl[:] = self._vector('torque', torque)
        passive = self._add_passive if self._springs or self._friction else None
        with callbacks(control=control, passive=passive):
            self._library.mj_step(self.mujoco_model, self.mujoco_data, nstep=steps)
        self._check()

    def acceleration(self, torque: ArrayLike) -> tuple[Array, Array]:
        """Accelerations of joints and motors in the present state.

        Parameters
        ----------
        torque : array-like, shape (n,)
            Motor torques [N m].

        Returns
        -------
        q2d, theta2d : ndarray, shape (n,)
        """
        data = self.mujoco_data
        data.ctrl[:] = self._vector('torque', torque)
        passive = self._add_passive if self._springs or self._friction else None
        with callbacks(control=None, passive=passive):
            self._library.mj_forward(self.mujoco_model, data)
        return self._of(data.qacc, self._link), self._of(data.qacc, self._motor)

    def mass_matrix(self) -> Array:
        """Mass matrix of the links at the present position, with armature, shape (n, n).

        It comes from MuJoCo, for comparison.
        """
        size = self.mujoco_model.nv
        full = np.zeros((size, size))
        self._library.mj_forward(self.mujoco_model, self.mujoco_data)
        for j in range(size):
            unit, column = np.zeros(size), np.zeros(size)
            unit[j] = 1.0
            self._library.mj_mulM(self.mujoco_model, self.mujoco_data, column, unit)
            full[:, j] = column
        return full[np.ix_(self._link, self._link)]

    def _add_passive(self, model: Any, data: Any) -> None:
        for j, spring in self._springs:
            motor, link = self._motor[j], self._link[j]
            Q = spring(float(data.qpos[motor] - data.qpos[link]))
            data.qfrc_passive[motor] -= Q
            data.qfrc_passive[link] += Q
        if self._friction:
            effort = joint_friction(self._friction, np.array(data.qvel)[:, None])
            data.qfrc_passive[:] -= effort[:, 0]

    def _check(self) -> None:
        data = self.mujoco_data
        if not (np.all(np.isfinite(data.qpos)) and np.all(np.isfinite(data.qvel))) or any(
            data.warning[kind].number
            for kind in (
                self._library.mjtWarning.mjWARN_BADQPOS,
                self._library.mjtWarning.mjWARN_BADQVEL,
                self._library.mjtWarning.mjWARN_BADQACC,
            )
        ):
            raise SimulationError(
                f'The simulation has diverged at {data.time:.6g} s; take a shorter time_step '
                f'(it is {self.time_step} s) or check the controller.'
            )
        deflection = data.qpos[self._motor] - data.qpos[self._link]
        for j in np.flatnonzero(np.abs(deflection) > self._largest):
            raise SimulationError(
                f'Joint {self.joint_names[j]!r}: the deflection is {deflection[j]:.4g} at '
                f'{data.time:.6g} s, the range of its spring ends at {self._largest[j]:.4g}.'
            )

    def _vector(self, what: str, values: ArrayLike) -> Array:
        try:
            vector = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise SimulationError(f'{what} is not an array of numbers ({error}).') from error
        n = self.model.n_joints
        if vector.shape != (n,) or not np.all(np.isfinite(vector)):
            raise SimulationError(
                f'{what} is {values!r}, expected {n} finite numbers for the joints '
                f'{listed(self.joint_names)}.'
            )
        return vector
