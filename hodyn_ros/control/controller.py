"""What all controllers have in common: one call, and limits of the motor torques."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.control.drives import Drives
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.matrices import gravity_effort, mass_matrix
from hodyn_ros.errors import ControlError, MotionError
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

_INVERSE_FACTORIALS = np.array([1.0, 1.0, 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0])
# Of positions and of accelerations by torques, for numerical derivatives.
_DIFFERENCE = 1e-4
_STATE = ('q', 'qd', 'theta', 'thetad')


class Command(NamedTuple):
    """What a controller answers to a measurement."""

    torque: Array
    """Motor torque within the limits, shape (n,) [N m] or [N]."""
    demand: Array
    """Motor torque without limits, shape (n,)."""

    @property
    def is_limited(self) -> NDArray[np.bool_]:
        """Whether the limit of each motor has cut its torque, shape (n,)."""
        limited: NDArray[np.bool_] = self.torque != self.demand
        return limited


class Controller(ABC):
    """A control law without memory: the same arguments give the same torques.

    Parameters
    ----------
    model : RobotModel
        The link side; what it holds as friction and armature acts there.
    actuators : Actuators
        Rigid drives and series elastic ones without damping.
    torque_limits : float or array-like, shape (n,), optional
        Largest motor torque in both directions [N m] or [N]; infinite where there is none.
    lead : float
        How much later than the measurement the torque acts, in the mean [s]: half of the period
        for which it is held. References are those of that later time. Zero is for continuous
        time. A known delay until the torque is applied may be added for the motor-side laws, not
        for `FlatnessController`.

    Attributes
    ----------
    orders : int
        How many rows of a reference the law looks at: 5 if it needs position to snap.

    Raises
    ------
    ControlError
        If the actuators are of another robot or kind, a limit is not positive, or the lead is
        negative.
    """

    orders: int = 5

    def __init__(
        self,
        model: RobotModel,
        actuators: Actuators,
        torque_limits: ArrayLike | None = None,
        lead: float = 0.0,
    ) -> None:
        self.drives = Drives(model, actuators)
        self.model = model
        n = model.n_joints
        self.torque_limits = per_joint(
            'torque_limits', np.inf if torque_limits is None else torque_limits, n, np.inf
        )
        is_number = isinstance(lead, (int, float, np.integer, np.floating))
        if not is_number or isinstance(lead, bool) or not 0.0 <= lead < np.inf:
            raise ControlError(f'The lead is {lead!r}, expected zero or more seconds.')
        self.lead = float(lead)

    def command(
        self,
        reference: ArrayLike,
        q: ArrayLike,
        qd: ArrayLike,
        theta: ArrayLike,
        thetad: ArrayLike,
    ) -> Array:
        """Motor torques for a measured state.

        Parameters
        ----------
        reference : array-like, shape (5, n)
            Wanted position of the links and its first four time derivatives [rad/s^k] or [m/s^k],
            `lead` after the measurement. What the law does not look at, see `orders`, may be any
            finite number.
        q, qd : array-like, shape (n,)
            Position and velocity of the links.
        theta, thetad : array-like, shape (n,)
            Position and velocity of the motors, reflected to the links; those of rigid drives are
            not looked at.

        Returns
        -------
        ndarray, shape (n,)
            [N m] or [N], within the limits.

        Raises
        ------
        MotionError
            If a shape is wrong or a value is not finite.
        DeflectionError
            If a spring is measured, or would have to be, outside of its range.
        """
        return self.evaluate(reference, q, qd, theta, thetad).torque

    def evaluate(
        self,
        reference: ArrayLike,
        q: ArrayLike,
        qd: ArrayLike,
        theta: ArrayLike,
        thetad: ArrayLike,
    ) -> Command:
        """Motor torques for a measured state, and what they would be without limits.

        Parameters
        ----------
        reference, q, qd, theta, thetad
            See `command`.

        Returns
        -------
        Command

        Raises
        ------
        MotionError, DeflectionError
            See `command`.
        """
        state = self._state(q, qd, theta, thetad)
        return self.limited(self._demand(self._reference(reference), state))

    def limited(self, demand: Array) -> Command:
        """Torques within the limits.

        Raises
        ------
        MotionError
            If a torque is not finite: the state is out of all proportion.
        """
        if not np.isfinite(demand).all():
            joint = int(np.argmin(np.isfinite(demand)))
            raise MotionError(
                f'The motor torque of joint {self.model.joint_names[joint]!r} would be '
                f'{demand[joint]}: the reference or the state is out of range.'
            )
        return Command(np.clip(demand, -self.torque_limits, self.torque_limits), demand)

    def static_stiffness(self, position: ArrayLike) -> Array:
        """How stiff the links are that the law holds in a position.

        Parameters
        ----------
        position : array-like, shape (n,)
            Where the robot is to rest.

        Returns
        -------
        ndarray, shape (n,)
            Constant torque on one link that the law does not know of, by how far this joint has
            moved when the robot has come to rest [N m/rad] or [N/m], for small torques; negative
            where it moves against the torque.

        Raises
        ------
        MotionError, DeflectionError
            See `command`.
        """
        model, n = self.model, self.model.n_joints
        reference = np.zeros((5, n))
        fill(reference[0], 'position', position)
        inertia = np.diagonal(mass_matrix(model, reference[:1])[0]) + self.drives.inertia

        def missing(moved: Array, pushed: Array) -> Array:
            """Motor torques that the law wants beyond what keeps the robot at rest."""
            state = np.zeros((4, n))
            state[0] = reference[0] + moved
            torque: Array = gravity_effort(model, state[:1]) - pushed
            state[2] = state[0] + self.drives.deflections(torque)[0]
            excess: Array = self._demand(reference, state) - torque[0]
            return excess

        none, steps = np.zeros(n), _DIFFERENCE * np.eye(n)
        by_motion = np.column_stack([missing(d, none) - missing(-d, none) for d in steps])
        steps *= inertia
        by_torque = np.column_stack([missing(none, d) - missing(none, -d) for d in steps])
        compliance = np.linalg.solve(by_motion, -by_torque / inertia)
        stiffness: Array = 1.0 / np.diagonal(compliance)
        return stiffness

    @abstractmethod
    def _demand(self, reference: Array, state: Array) -> Array:
        """Torques without limits for a reference (5, n) and a state (4, n), see `_state`.

        Both are finite.
        """

    def _state(
        self, q: ArrayLike, qd: ArrayLike, theta: ArrayLike, thetad: ArrayLike
    ) -> Array:
        """State (4, n): q, q', theta, theta'; the motors of rigid drives are where the links are.

        Raises
        ------
        MotionError
            If a shape is wrong or a value is not finite.
        """
        state = np.empty((4, self.model.n_joints))
        for row, name, values in zip(state, _STATE, (q, qd, theta, thetad)):
            fill(row, name, values)
        rigid = self.drives.rigid
        if len(rigid):
            state[2:, rigid] = state[:2, rigid]
        return state

    def _reference(self, reference: ArrayLike) -> Array:
        rows = np.empty((5, self.model.n_joints))
        fill(rows, 'reference', reference)
        return rows


def middle_of_range(model: RobotModel) -> Array:
    """Positions that the robot can have, shape (n,): in the middle of their limits, or zero."""
    middle: Array = 0.5 * (model.limits.lower + model.limits.upper)
    return np.where(np.isfinite(middle), middle, 0.0)


def shifted(motion: Array, time: float) -> Array:
    """Motion (K, n) some time later, by its Taylor polynomial."""
    if time == 0.0:
        return motion
    K = len(motion)
    powers = time ** np.arange(K) * _INVERSE_FACTORIALS[:K]
    return np.array([powers[: K - k] @ motion[k:] for k in range(K)])


def fill(target: Array, name: str, values: ArrayLike) -> None:
    """Copy an argument of a control law into an array of the shape that is expected.

    Raises
    ------
    MotionError
        If it has another shape or holds NaN or infinite values.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise MotionError(f'{name} is {type(values).__name__}, expected numbers.') from None
    if array.shape != target.shape:
        raise MotionError(f'{name} has the shape {array.shape}, expected {target.shape}.')
    if not np.isfinite(array).all():
        raise MotionError(f'{name} is {array.tolist()}; all values must be finite.')
    target[...] = array


def per_joint(name: str, values: ArrayLike, n: int, highest: float = np.finfo(float).max) -> Array:
    """Values of all joints, from one for all or one each.

    Raises
    ------
    ControlError
        If they are not one or n numbers above zero.
    """
    try:
        array = np.array(np.broadcast_to(np.asarray(values, dtype=np.float64), (n,)))
    except (TypeError, ValueError):
        array = np.full(n, np.nan)
    if not np.all((array > 0.0) & (array <= highest)):
        raise ControlError(f'{name} is {values!r}, expected one or {n} positive numbers.')
    array.flags.writeable = False
    return array


def warm_up(model: RobotModel) -> None:
    """Have everything compiled that the controllers compute with a model.

    Without it the first seconds of control are slower, see `RobotModel.warm_up`.
    """
    motion = np.zeros((5, model.n_joints))
    model.warm_up(
        2, lambda: mass_matrix(model, motion[:1]), lambda: gravity_effort(model, motion[:1])
    )
    for rows in (3, 4, 5):
        inverse_dynamics(model, motion[:rows])
