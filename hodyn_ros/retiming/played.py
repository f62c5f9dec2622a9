"""Limited quantities of a motion at samples, as functions of the rate at which it is played.

At the rate s = 1 / c the k-th derivative of a motion takes the factor s^k, and that of its efforts
is s^m G_m + s^(m+2) D_m: gravity with wrenches, and the motion. See doc/trajectories.rst.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.dynamics.inverse import friction_efforts
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import DeflectionError, MotionError, ScalingError
from hodyn_ros.kinematics.motions import checked_motion
from hodyn_ros.model.limits import LIMITED
from hodyn_ros.model.violations import worst_violations
from hodyn_ros.retiming.robot_limits import (
    Limiting,
    RobotLimits,
    UniformScaling,
    at_rate,
    out_of_range,
    rigid_efforts,
)
from hodyn_ros.typing import Array, Indices

# Rate at which joints and motors count as held still.
_SLOWEST = 1e-9
# Half of the excess that counts as rounding, see model/violations.py.
_ROUNDING = 5e-10
# With friction or actuators: rates that are tried to find the scale of the first that is too high,
# those that are tried below it, and how often the interval in which it lies is halved.
_COARSE, _FINE = 4.0 ** np.arange(-14.0, 15.0), np.geomspace(1e-3, 1.0, 40)
_HALVINGS = 36
_FROM_ONE = 1e-3 * 4.0 ** np.arange(20.0)
# Distance from the edge, and how much faster the motion is played to see what is in the way.
_EDGE, _FASTER = 1e-11, 1e-6
# Efforts that are as good as none, so that nothing is divided by zero.
_TINY = 1e-60


class Played:
    """All C limited quantities of a motion at N samples, as functions of the rate s.

    Parameters
    ----------
    robot : RobotLimits
    motion : array-like, shape (N, K, n)
        At the rate one.
    wrenches : sequence of Wrench
        At the samples.
    times : ndarray, shape (N,), optional
        Of the samples [s].

    Attributes
    ----------
    labels : list of (str, str)
        Quantity and joint or motor of each column.

    Raises
    ------
    MotionError
        If the motion has no samples, or too few orders for a limit.
    ScalingError
        If samples leave their position limits, or what has a limit of zero moves.
    """

    def __init__(
        self,
        robot: RobotLimits,
        motion: ArrayLike,
        wrenches: Sequence[Wrench] = (),
        times: Array | None = None,
    ) -> None:
        motion = checked_motion(robot.model, motion)
        if motion.ndim != 3 or not len(motion):
            raise MotionError(
                f'The motion has shape {motion.shape}, expected (N, K, {robot.model.n_joints}) '
                'with N >= 1.'
            )
        joints, N = robot.joints, len(motion)
        self._robot, self._motion, self._of_all = robot, motion, joints.motion(motion)
        self._wrenches = wrenches
        self.times: Array | None = times
        places, known = self._of_all[:, 0], joints.limits
        for worst in worst_violations('position', joints.names, places, *known[:2]):
            raise out_of_range(worst, None if times is None else times[worst.sample])
        self._weight = rigid_efforts(robot.model, motion, wrenches)
        self._is_polynomial = not robot.model.friction and robot.actuators is None
        self.labels: list[tuple[str, str]] = []
        self._rows: list[tuple[str, int, Indices]] = []
        limits = [np.empty((1, 0)), *self._limited()]
        rows = max(map(len, limits))  # one, unless a limit depends on the position
        limit = np.concatenate(
            [np.broadcast_to(each, (rows, each.shape[1])) for each in limits], axis=1
        )
        self._limit = np.broadcast_to(limit, (N, limit.shape[1]))
        if (is_zero := limit == 0.0).any():
            self._refuse_motion(is_zero)
            limit[is_zero] = np.inf
        self._bound = np.broadcast_to(limit + _ROUNDING * (limit + 1.0), self._limit.shape)

    def _limited(self) -> Iterator[Array]:
        """Limits (1, c) or (N, c) of each limited quantity; notes which these are."""
        robot, names, K = self._robot, self._robot.joints.names, self._motion.shape[1]
        # Of one sample without torques, which every spring can have.
        series = self._series_of(0.0 * self._of_all[:1], 0.0 * self._weight[:1])
        for quantity, kind, order in LIMITED:
            if kind not in series:
                continue
            if kind in ('motion', 'effort'):
                low, limit = robot.joints.bounds(quantity, self._of_all[:, 0])
                if limit.ndim > 1:
                    limit = np.where(self._of_all[:, 1] < 0.0, -low, limit)
            else:
                limit = np.asarray(getattr(robot.motor_limits, quantity))
            limit = np.atleast_2d(limit)
            # Springs cannot be deflected beyond their range, whether there are limits or not.
            is_limited = np.isfinite(limit).any(axis=0) | (quantity == 'deflection')
            if not is_limited.any():
                continue
            if order >= (orders := series[kind].shape[1]):
                raise MotionError(
                    f'{quantity} is limited, which needs a motion with K >= '
                    f'{K + order + 1 - orders} derivatives (the zeroth included), but K is {K}; '
                    'give more derivatives, or limits without it.'
                )
            if robot.actuators is not None and kind in ('position', 'torque'):
                names = robot.actuators.motor_names
            columns = np.flatnonzero(is_limited)
            self.labels += [(quantity, names[column]) for column in columns.tolist()]
            self._rows.append((kind, order, columns))
            yield limit[:, columns]

    def _refuse_motion(self, is_zero: NDArray[np.bool_]) -> None:
        """Refuse motion where a limit is zero; at rest it is kept at any rate."""
        moves = np.where(is_zero, np.abs(self._values(1.0)), 0.0)
        if moves.max() <= _ROUNDING:
            return
        found = self._found(int(moves.argmax()), 1.0)
        place = ''
        if (
            found.quantity == 'velocity'
            and not is_zero[:, moves.max(axis=0).argmax()].all()
        ):
            place = ', so near to the limit of its position'
        raise ScalingError(
            f'No time factor makes the motion keep its limits: at {found.place}, joint '
            f'{found.name!r} has {found.quantity} = {found.value:.6g}, and its limit is 0{place}. '
            'Change the path, or write its true limit.',
            limiting=found,
        )

    @cached_property
    def _dynamic(self) -> Array:
        """What the motion needs of the efforts, at the rate one."""
        twice = [
            replace(item, values=at_rate(np.asarray(item.values), 2.0))
            for item in self._wrenches
        ]
        # At the rate 2, s^-m Q^(m) is G_m + 4 D_m.
        model, motion = self._robot.model, at_rate(self._motion, 2.0)
        at_two = at_rate(rigid_efforts(model, motion, twice), 0.5)
        return np.asarray((at_two - self._weight) / 3.0)

    def _series(self, s: float) -> dict[str, Array]:
        """Motion and efforts of joints and motors at a rate."""
        s = max(s, _SLOWEST)
        if s == 1.0:
            return self._series_of(self._of_all, self._weight)
        effort = self._weight + (s * s - 1.0) * self._dynamic
        return self._series_of(at_rate(self._of_all, s), at_rate(effort, s))

    def _series_of(self, of_all: Array, effort: Array) -> dict[str, Array]:
        """Series by kinds of a motion with rigid efforts."""
        model, actuators = self._robot.model, self._robot.actuators
        motion = of_all[..., : model.n_joints]
        if model.friction:
            effort = effort + friction_efforts(model, motion)
        found = {'motion': of_all, 'effort': effort}
        if actuators is not None:
            from hodyn_ros.actuators.motors import motor_motion

            found |= motor_motion(actuators, motion, effort, order=None)._asdict()
        return found

    def _values(self, s: float) -> Array:
        """Values (N, C) at a rate; raises DeflectionError where a spring has none."""
        series = self._series(s)
        blocks = [series[kind][:, order, joints] for kind, order, joints in self._rows]
        return np.concatenate([np.empty((len(self._motion), 0)), *blocks], axis=1)

    def shares(self, s: float) -> Array:
        """Shares (N, C) of the limits that are used at a rate.

        Parameters
        ----------
        s : float
            Rate; zero: held still.

        Returns
        -------
        ndarray, shape (N, C)
            Above one beyond a limit by more than rounding. Where a spring cannot have its torque
            one is infinite; what the others are is not known then, they are zero.
        """
        try:
            return np.asarray(np.abs(self._values(s)) / self._bound)
        except DeflectionError as error:
            shares = np.zeros(self._bound.shape)
            column = self.labels.index(('deflection', error.joint))
            shares[error.sample[0], column] = np.inf
            return shares

    def fastest(self, most: float = np.inf, halvings: int = _HALVINGS) -> float:
        """Rate up to which all limits are kept, but for rounding.

        Parameters
        ----------
        most : float
            Rate above which nothing matters.
        halvings : int
            Of the interval in which the rate is searched.

        Returns
        -------
        float
            Zero if they are not kept at rest, `most` if nothing limits the rate.
        """
        edges = np.cumsum([len(joints) for *_, joints in self._rows[:-1]])
        bounds = np.split(self._bound, edges, axis=1)
        for (kind, order, joints), bound in zip(self._rows, bounds):
            if kind != 'motion' and not self._is_polynomial:
                continue
            if kind == 'motion':
                size = np.maximum(np.abs(self._of_all[:, order, joints]), _TINY)
                first = (bound / size) ** (1.0 / order)
            else:
                dynamic = self._dynamic[:, order, joints]
                weight = self._weight[:, order, joints] - dynamic
                first = _first_crossing(order, weight, dynamic, bound)
            if (rate := float(first.min()) * (1.0 - _EDGE)) < _COARSE[-1]:
                most = min(most, rate)
        if self._is_polynomial:
            return most
        if self._exceeds(0.0):
            return 0.0
        scale = most if most < np.inf else next(filter(self._exceeds, _COARSE), np.inf)
        rates = scale * _FINE if scale < np.inf else ()
        return self._crossed(rates, 0.0, True, most, halvings)

    def nearest(self) -> float:
        """Rate next to one up to which, or from which on, all limits are kept.

        Returns
        -------
        float
            Infinite if nothing limits the rate, zero if they are kept at none below one.
        """
        is_kept = not self._exceeds(1.0)
        if self._is_polynomial and ((first := self.fastest()) >= 1.0) == is_kept:
            return first
        if is_kept:
            return self._crossed(1.0 + _FROM_ONE, 1.0, True, np.inf)
        return self._crossed(1.0 / (1.0 + _FROM_ONE), 1.0, False, 0.0)

    def _crossed(
        self,
        rates: Iterable[float],
        last: float,
        is_kept: bool,
        none: float,
        halvings: int = _HALVINGS,
    ) -> float:
        """Rate that keeps all limits, next to the first of some where that changes.

        Parameters
        ----------
        rates : iterable of float
        last : float
            The one before the first of them.
        is_kept : bool
            Whether the limits are kept there.
        none : float
            Rate if nothing changes.
        halvings : int
            Of the interval between the rate where it changes and the last one.

        Returns
        -------
        float
        """
        for rate in rates:
            if self._exceeds(rate) == is_kept:
                low, high = sorted((last, rate))
                for _ in range(halvings):
                    middle = 0.5 * (low + high)
                    exceeds = self._exceeds(middle)
                    low, high = (low, middle) if exceeds else (middle, high)
                return float(low)
            last = rate
        return none

    def _exceeds(self, s: float) -> bool:
        """Whether a limit is exceeded at a rate."""
        return bool((self.shares(s) > 1.0).any())

    def scaling(self, rate: float) -> UniformScaling:
        """Scaling by a rate up to which the limits are kept.

        Parameters
        ----------
        rate : float
            Infinite if nothing limits it.

        Returns
        -------
        UniformScaling

        Raises
        ------
        ScalingError
            If the rate is zero.
        """
        if rate == np.inf:
            return UniformScaling(0.0, None)
        shares = self.shares(rate * (1.0 + _FASTER))
        try:
            found = self._found(int(shares.argmax()), rate)
        except DeflectionError as error:
            raise ScalingError(
                f'No time factor makes the motion possible. Held still: {error}'
            ) from error
        if np.isinf(shares.max()):  # at the end of the range of a spring
            found = found._replace(limit=found.value)
        if rate > 0.0:
            return UniformScaling(1.0 / rate, found)
        raise ScalingError(
            f'No time factor makes the motion keep its limits: to hold still at {found.place}, '
            f'{found.name!r} already needs {found.quantity} = {abs(found.value):.6g}, more than '
            f'{abs(found.limit):.6g}. Change the path, the load or the limits.',
            limiting=found,
        )

    def _found(self, place: int, s: float) -> Limiting:
        """Value and limit of something at a rate, by its place in the array of values."""
        sample, column = divmod(place, len(self.labels))
        value = float(self._values(s)[sample, column])
        limit = float(np.copysign(self._limit[sample, column], value))
        of_limit = *self.labels[column], None, value, limit
        if self.times is None:
            return Limiting(*of_limit)._replace(sample=sample)
        return Limiting(*of_limit, float(self.times[sample]))

    def peaks(self, s: float) -> Array:
        """Peaks in time of what may exceed its limit next to them, and the highest value.

        Parameters
        ----------
        s : float
            Rate.

        Returns
        -------
        ndarray, shape (P, 4)
            Column, time, distance to the farther neighbour, how large the share may be there.
        """
        assert self.times is not None
        steps = np.concatenate(([0.0], np.diff(self.times), [0.0]))
        width = np.maximum(steps[:-1], steps[1:])
        shares = self.shares(s)
        padded = np.pad(shares, ((1, 1), (0, 0)), mode='edge')
        before, behind = padded[:-2], padded[2:]
        # A parabola through three samples rises above the middle one by less than an eighth of
        # what that one stands above both; the whole of it leaves room for narrower peaks.
        possible = shares + (shares - np.minimum(before, behind))
        is_peak = (shares >= before) & (shares >= behind) & (possible > 1.0)
        highest = shares.argmax()
        is_peak.flat[highest], possible.flat[highest] = True, np.inf
        sample, column = np.nonzero(is_peak)
        found = column, self.times[sample], width[sample], possible[sample, column]
        return np.column_stack(found)


def _first_crossing(order: int, weight: Array, dynamic: Array, limit: Array) -> Array:
    """Smallest rates s at which |s^order (weight + s^2 dynamic)| reaches a limit, in closed form.

    With w of the sign that makes b = |dynamic|, it is w + b s^2 times s^order that rises above the
    limit for good, and before may fall below the negative limit for a while.

    Parameters
    ----------
    order : int
        0, 1 or 2: of the derivative of the effort.
    weight, dynamic : ndarray, shape (N, C)
        What does not, and what does depend on the speed, at the rate one.
    limit : ndarray, shape (C,) or (N, C)
        Largest magnitude.

    Returns
    -------
    ndarray, shape (N, C)
        Zero where the weight alone exceeds the limit.
    """
    b = np.maximum(np.abs(dynamic), _TINY)
    w = weight * np.copysign(1.0, dynamic)
    if order == 0:
        falls = w < -limit
        below, above = np.zeros_like(b), np.sqrt(np.maximum(limit - w, 0.0) / b)
    elif order == 1:
        # The roots of a cubic without a square, by the cosine of three times an angle.
        c = 2.0 * np.sqrt(np.maximum(np.abs(w), _TINY) / (3.0 * b))
        ratio = 4.0 * limit / (b * c**3)
        falls = (w < 0.0) & (ratio < 1.0)
        below = c * np.sin(np.arcsin(np.minimum(ratio, 1.0)) / 3.0)
        falling = c * np.cosh(np.arccosh(ratio + 0j) / 3.0).real
        above = np.where(w < 0.0, falling, c * np.sinh(np.arcsinh(ratio) / 3.0))
    else:
        half, share = 0.5 * np.maximum(np.abs(w), _TINY) / b, limit / b
        falls = (w < 0.0) & (half**2 > share)
        below = np.sqrt(share / (half + np.sqrt(np.maximum(half**2 - share, 0.0))))
        larger = half + np.sqrt(half**2 + share)
        above = np.sqrt(np.where(w < 0.0, larger, share / larger))
    return np.where(falls, below, above)
