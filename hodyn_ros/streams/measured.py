"""Joint positions as measured, those that loops give, and their derivatives, estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hodyn_ros.kinematics.closed_loops import complete_motion
from hodyn_ros.kinematics.loop_states import complete_joint_state
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.streams.timeline import NANOSECONDS, State, nearest_turn
from hodyn_ros.trajectory.estimator import DerivativeEstimator, Estimate
from hodyn_ros.typing import Array

# A speed that is no larger than so many of its standard deviations is none.
_STANDING = 3.0


_HIGHEST_DERIVATIVE = 4  # of positions: efforts have two less
_MAX_GAP = 0.1  # s without measurements after which the estimate starts anew


class MeasuredMotion:
    """Motion of a robot as it is estimated from its joint states.

    Attributes
    ----------
    joint_names : tuple of str
        Of the robot.
    """

    def __init__(self) -> None:
        self._in_use: tuple[Any, tuple[str, ...], tuple[str, ...]] | None = None
        self.joint_names: tuple[str, ...] = ()
        self._turns = np.zeros(0, dtype=np.bool_)
        self.reset()

    def use(self, settings: Any, names: tuple[str, ...], types: tuple[str, ...]) -> None:
        """Estimate the motion of a robot from now on; anew if anything is different.

        Parameters
        ----------
        settings : object
            The parameters `estimator.*`: `enabled` and `delay` [s].
        names, types : tuple of str
            Of the n joints; positions of a `continuous` one may start anew after each turn.
        """
        if (settings, names, types) != self._in_use:
            self._in_use, self.joint_names = (settings, names, types), names
            self._turns = np.array([kind == 'continuous' for kind in types])
            self.reset()

    def reset(self) -> None:
        """Forget all measurements."""
        self._last_position = np.zeros(0)
        self._last_stamp = 0
        self._estimator: DerivativeEstimator | None = None
        if self._in_use is not None and self._in_use[0].enabled:
            settings = self._in_use[0]
            self._estimator = DerivativeEstimator(
                len(self.joint_names),
                highest_derivative=_HIGHEST_DERIVATIVE,
                delay=settings.delay,
                max_gap=_MAX_GAP,
            )

    def take(self, position: Array, stamp: int) -> Estimate | None:
        """Take measured positions.

        Parameters
        ----------
        position : ndarray, shape (n,)
            [rad] or [m]
        stamp : int
            Their time [ns].

        Returns
        -------
        Estimate or None
            None as long as nothing is known, or if nothing is estimated.
        """
        estimator = self._estimator
        if estimator is None:
            return None
        position = self._unwrapped(position)
        gaps = estimator.gaps
        estimate = estimator.update(stamp, position)
        if estimator.gaps > gaps or stamp > self._last_stamp:
            self._last_position, self._last_stamp = position, stamp
        return estimate

    @property
    def counts(self) -> tuple[int, int]:
        """Measurements that came too late, and those that made the estimate start anew."""
        estimator = self._estimator
        return (0, 0) if estimator is None else (estimator.dropped, estimator.gaps)

    @property
    def latest(self) -> tuple[Array, int] | None:
        """Latest measured position (n,) and its stamp [ns]; None if there is none."""
        return (self._last_position, self._last_stamp) if len(self._last_position) else None

    def state(self, now: int, timeout: float) -> State | None:
        """Position and speed near an instant, to start a motion from.

        Parameters
        ----------
        now : int
            [ns]
        timeout : float
            How old the latest measurement may be [s]; 0: any age.

        Returns
        -------
        State or None
            None if there is none. NaN stands for derivatives that are not known; a speed within
            three standard deviations is taken for rest.
        """
        stamp = self._last_stamp
        if (
            self._estimator is None
            or not len(self._last_position)
            or (timeout and abs(now - stamp) > timeout * NANOSECONDS)
        ):
            return None
        motion = np.full((5, len(self.joint_names)), np.nan)  # NaN: not known
        motion[0] = self._last_position
        latest = self._estimator.at(max(now, stamp))
        if latest is not None:
            motion[0] = latest.motion[0]
            if latest.valid_order >= 1:
                if np.any(np.abs(latest.motion[1]) > _STANDING * latest.std[1]):
                    motion[1] = latest.motion[1]
                else:
                    motion[1:] = 0.0
        return State(motion, False, stamp, 'as measured')

    def _unwrapped(self, position: Array) -> Array:
        """Positions of continuous joints without the turns after which encoders start anew."""
        if not (self._turns.any() and len(self._last_position)):
            return position
        return nearest_turn(position, self._last_position, self._turns)


class MechanismStates:
    """States of all joints of a robot with closed loops: as measured, or else as asked for.

    Attributes
    ----------
    joint_names : tuple of str
        All joints of the tree; none of a robot without closed loops.
    deviations : mapping of str to float
        Latest measured position of each joint minus what the loops say [rad] or [m].
    """

    def __init__(self) -> None:
        self._model: RobotModel | None = None
        self._near: Array | None = None
        self._measured_at: int | None = None
        self.joint_names: tuple[str, ...] = ()
        self.deviations: Mapping[str, float] = {}

    def use(self, model: RobotModel) -> None:
        """Complete states of a robot from now on."""
        before, self._model = self._model, model
        self.joint_names = model.tree.joint_names if model.closure else ()
        if before is None or before.joint_names != model.joint_names:
            self._near = self._measured_at = None

    def take(self, names: Sequence[str], values: Array, now: int) -> Array | None:
        """State of all joints from measured ones; joints of others are ignored.

        Parameters
        ----------
        names : sequence of str
        values : ndarray, shape (K, M)
            Positions, and velocities if K is 2. Joints with a position of NaN are not measured,
            and with one velocity of NaN no velocity is.
        now : int
            [ns]

        Returns
        -------
        ndarray, shape (K, N)
            None if no joint of the robot is measured.

        Raises
        ------
        JointNameError, MotionError
            As `complete_joint_state`.
        """
        model, known = self._model, self.joint_names
        is_known = ~np.isnan(values[0])
        used = [i for i, name in enumerate(names) if name in known and is_known[i]]
        if not used or model is None:
            return None
        rows = values[: 1 if np.isnan(values[:, used]).any() else None, used]
        given = [names[i] for i in used]
        motion, off = complete_joint_state(model, given, rows, near=self._near)
        self._near = motion[0, [known.index(name) for name in model.joint_names]]
        self._measured_at = now
        self.deviations = dict(zip(given, off[0].tolist()))
        return motion

    def asked(self, motion: Array, now: int, timeout: float) -> Array | None:
        """State of all joints of a motion (K, n), where none is measured.

        Parameters
        ----------
        motion : ndarray, shape (K, n)
        now : int
            [ns]
        timeout : float
            For how long a measurement counts [s]; 0: for ever.

        Returns
        -------
        ndarray, shape (2, N)
            None while measurements come, and without closed loops.
        """
        if self._model is None or not self.joint_names:
            return None
        at = self._measured_at
        if at is not None and not (timeout and abs(now - at) > timeout * NANOSECONDS):
            return None
        return complete_motion(self._model, motion[:2])
