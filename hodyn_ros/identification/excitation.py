"""Motions that show the parameters of a robot: what they are worth, and the search for good ones.

Efforts that are linear in parameters, Y pi, and carry white noise of the standard deviation sigma
give the information sum Y^T Y / sigma^2 about them, whose inverse is the covariance of the least
squares estimate. Source: Swevers et al. 1997, "Optimal robot excitation and identification".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.drives import SeriesElastic
from hodyn_ros.actuators.springs import CubicSpring, Spring
from hodyn_ros.checks import check_choice, checked_number, finite_array
from hodyn_ros.display import shown
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.errors import (
    JointNameError,
    MotionError,
    RequestError,
    ScalingError,
    UnlimitedError,
)
from hodyn_ros.files.samples import Samples
from hodyn_ros.identification.equations import Equations, Parameter
from hodyn_ros.identification.recording import Stretch
from hodyn_ros.kinematics.closed_loops import closes_readily
from hodyn_ros.kinematics.forward import forward_kinematics
from hodyn_ros.kinematics.motions import link_or_tip
from hodyn_ros.model.limits import (
    MAGNITUDES,
    MotionLimits,
    scaled_limits,
    velocity_use,
)
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import find_violations, motion_limits, tightened
from hodyn_ros.names import SPRING, TARGETS, listed
from hodyn_ros.retiming.robot_limits import RobotLimits, refuse_extremes
from hodyn_ros.retiming.scaling import check_of
from hodyn_ros.trajectory.motion import PiecewiseMotion
from hodyn_ros.trajectory.spline import MotionSpline, fit_spline
from hodyn_ros.typing import Array

_GROUPS = {
    'bodies': ('bodies', 'armature', 'viscous', 'coulomb', 'offset'),
    'payload': ('payload',),
    'friction': ('viscous', 'coulomb', 'offset'),
    'springs': SPRING,
}
# Twice as many waypoints per second [Hz]: friction is to see slow parts, springs quick changes.
_BANDWIDTH = dict(zip(TARGETS, (0.6, 0.6, 0.3, 1.5)))
_FEWEST, _STARTS, _TRIALS = 8, 100, 1500  # Waypoints; motions that are compared.
_LARGEST_STEP, _SMALLEST_STEP = 0.6, 0.03
# Rounds in which joints that approach their limits too fast are slowed down, at most by this.
_ROUNDS, _SLOWER = 20, 0.9
# Scores that differ less are equal, so that rounding does not lead to another motion.
_BETTER = 1e-6
# The distances of waypoints become shorter by this factor from the first to the last: friction
# needs slow parts, inertia fast ones.
_QUICKER = 2.0
# Weight of log det of the correlations beside that of the information: it keeps the condition low.
_BALANCE = 3.0
_PER_WAYPOINT, _DENSE = 8, 200.0  # Samples of the search; those in the end [Hz].
_WORST = 1e6  # Condition number from which on parameters are not told apart.


def simulated_recording(
    robot: RobotModel,
    motion: PiecewiseMotion,
    rate: float = 100.0,
    *,
    noise: ArrayLike = 0.0,
    resolution: ArrayLike = 0.0,
    seed: int = 0,
) -> Samples:
    """Recording that a robot would make along a motion: its positions and efforts.

    Parameters
    ----------
    robot : RobotModel
        Of n joints, as it is: with its payload and friction.
    motion : PiecewiseMotion
        Such as of `fit_spline` and `Excitation`.
    rate : float
        So many samples a second, or more [Hz].
    noise : float or array-like, shape (n,)
        Standard deviation of what is added to the efforts [N m] or [N].
    resolution : float or array-like, shape (n,)
        Step to which the positions are rounded [rad] or [m]; 0: none.
    seed : int
        Of the noise: the same one gives the same recording.

    Returns
    -------
    Samples
        Measured, from the start to the end of the motion.

    Raises
    ------
    RequestError
        If the rate is not positive, or noise and resolution are not numbers from zero on.
    MotionError
        If the motion is that of another number of joints.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import compare, simulated_recording
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model = RobotModel.from_urdf('two_link')
    >>> swing = fit_spline(range(5), [[0, 0], [1, -1], [-1, 1], [1, 0], [0, 0]])
    >>> recording = simulated_recording(model.with_payload('tool', 0.5), swing, noise=0.1)
    >>> compare(model, recording).explanations[0].text
    'a payload of 0.5 kg at tool'
    """
    times = _sampled(motion, rate)
    along, n = motion(times), robot.n_joints
    effort = inverse_dynamics(robot, along)[:, 0]
    deviation, step = (
        np.broadcast_to(_from_zero_on(*given, n), (n,))
        for given in (('noise', noise), ('resolution', resolution))
    )
    effort += deviation * np.random.default_rng(seed).normal(size=effort.shape)
    scale = np.where(step > 0.0, step, 1.0)
    position = np.where(step > 0.0, np.round(along[:, 0] / scale) * scale, along[:, 0])
    return Samples.of_model(
        robot, times, position[:, None], effort[:, None], name='recording', is_measured=True
    )


def _sampled(motion: PiecewiseMotion, rate: float) -> Array:
    """Times (N,) of a motion in equal steps, of so many a second or more [s]."""
    checked_number('The rate', rate, RequestError, above=0.0, unit='Hz')
    start, end = motion.times[[0, -1]].tolist()
    return np.linspace(start, end, int(np.ceil((end - start) * rate)) + 1)


def _from_zero_on(name: str, given: ArrayLike, n: int) -> Array:
    """Numbers from zero on, one or n of them."""
    values = finite_array(name, given, RequestError)
    if values.shape not in ((), (n,)) or (values < 0.0).any():
        raise RequestError(f'{name} is {given!r}, expected one or {n} numbers from 0 on.')
    return values


@shown
class Excitation(NamedTuple):
    """A motion that shows parameters, see `excite`.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros.identification import Excitation
    >>> from hodyn_ros.trajectory import fit_spline
    >>> motion = fit_spline([0.0, 1.0, 2.0], [[0.0], [1.0], [0.0]])
    >>> excitation = Excitation(motion, ('elbow viscous',), np.array([[400.0]]))
    >>> excitation.duration, excitation.std, excitation.samples(100.0)[1].shape
    (2.0, array([0.05]), (201, 5, 1))
    """

    motion: MotionSpline
    """Of class C4, from rest to rest."""
    names: tuple[str, ...]
    """Of the p parameters; those of the bodies that act only with others end in ' + ...'."""
    information: Array
    """The sum of Y^T Y / sigma^2 along the motion, shape (p, p); that of several motions adds."""

    @property
    def duration(self) -> float:
        """Time from rest to rest [s]."""
        return self.motion.duration

    @property
    def condition(self) -> float:
        """Condition number of the regressor with columns of the length 1 (rows over the noise)."""
        return float(np.sqrt(np.linalg.cond(_correlations(self.information))))

    @property
    def std(self) -> Array:
        """Expected standard deviations of the parameters in SI units, shape (p,)."""
        covariance = np.linalg.inv(_correlations(self.information))
        return np.asarray(np.sqrt(np.diag(covariance) / np.diag(self.information)))

    def samples(self, rate: float) -> tuple[Array, Array]:
        """Times (N,) [s] and position to snap (N, 5, n), at so many samples a second or more.

        Parameters
        ----------
        rate : float
            [Hz]

        Returns
        -------
        times : ndarray, shape (N,)
            In equal steps from the start to the end [s].
        motion : ndarray, shape (N, 5, n)
            [rad/s^k] or [m/s^k]

        Raises
        ------
        RequestError
            If the rate is not positive.
        """
        times = _sampled(self.motion, rate)
        return times, self.motion(times)


def excite(
    model: RobotModel,
    limits: MotionLimits | None = None,
    *,
    target: str = 'bodies',
    link: str | None = None,
    joints: Sequence[str] | None = None,
    box: ArrayLike | None = None,
    duration: float = 20.0,
    share: float = 0.8,
    effort_noise: ArrayLike = 0.1,
    rate: float = 1000.0,
    actuators: Actuators | None = None,
    seed: int = 0,
) -> Excitation:
    """Find a motion along which measured efforts show parameters well.

    It begins and ends at rest in the middle of the ranges of position, or near to it in a pose
    that keeps box and torques.

    Parameters
    ----------
    model : RobotModel
        As far as it is known: its efforts are compared with the limits.
    limits : MotionLimits, optional
        By default those of the model. Velocities are needed, and positions but of continuous
        joints, which turn by up to pi. What else is infinite is not limited.
    target : {'bodies', 'payload', 'friction', 'springs'}
        bodies: base parameters of bodies, viscous and Coulomb friction, offset and armature of
        the joints, all together. payload: the ten parameters of what `link` carries, in its
        frame. friction: viscous, Coulomb and offset, by slower motions. springs: stiffness,
        cubic stiffness and damping of series elastic joints, by torques and deflections. But for
        bodies, all else is known.
    link : str, optional
        Of the payload; by default the tip.
    joints : sequence of str, optional
        Those that move, and whose friction and springs matter; by default all.
    box : array-like, shape (2, 3), optional
        Lowest and highest x, y, z in the base frame [m], for the origins of all links that move,
        at 200 samples per second. Collisions are not checked: links are more than that.
    duration : float
        [s]
    share : float
        Part of each limit that may be used, of positions about the middle of their range, so that
        controllers can follow and efforts are not clipped.
    effort_noise : float or array-like, shape (n,)
        Standard deviation sigma of measured efforts, white [N m] or [N].
    rate : float
        Of the measurements, which are independent of each other [Hz].
    actuators : Actuators, optional
        Torques also keep the ranges of their springs; needed for springs.
    seed : int
        Equal seeds give equal motions.

    Returns
    -------
    Excitation

    Raises
    ------
    RequestError, IdentificationError
        If an argument cannot be used, the box cannot be kept, or the motion cannot show all of
        the parameters.
    UnlimitedError
        If a limit that is needed is infinite.
    ModelError, JointNameError
        If the link or a joint does not exist.

    Notes
    -----
    Of many motions through random waypoints the best is changed at random as long as it becomes
    better: log det of the information (D-optimality), plus three times that of the information
    scaled to a diagonal of ones, which keeps the condition number low. The limits are kept between
    samples too, see `uniform_scaling`. Source: see the module.

    Examples
    --------
    A motion that shows the friction of both joints, and how well it does:

    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import excite
    >>> found = excite(RobotModel.from_urdf('two_link'), duration=5.0, target='friction')
    >>> len(found.names), found.condition < 10.0
    (6, True)
    """
    check_choice('target', target, _BANDWIDTH, RequestError)
    _refuse_numbers(share, duration, rate, seed)
    chosen = model.joint_names if joints is None else tuple(joints)
    noise, corners = _checked_arrays(model, chosen, effort_noise, box)
    springs: dict[str, Spring] = {}
    if actuators is not None:
        actuators.check_suits(model)
        drives = actuators.by_joint.items()
        springs = {name: d.spring for name, d in drives if isinstance(d, SeriesElastic)}
    moved = [j for j, name in enumerate(model.joint_names) if name in chosen]
    bounds = _bounds(model, limits, moved, share, springs)
    regressor = _Regressor(model, target, link, chosen, actuators)
    weights = np.broadcast_to(np.sqrt(rate) / noise, model.n_joints)[:, None]
    task = _Task(model, bounds, corners, moved, regressor, weights)
    model.warm_up(1)
    rng = np.random.default_rng(seed)
    rest = task.rest(rng)
    search = _Search(task, rest, duration, _BANDWIDTH[target])
    times, waypoints = search.times, search.found(rng)
    made = (fit_spline(times, rest + x * waypoints) for x in 0.97 ** np.arange(150.0))
    motion = next(filter(task.keeps, made), None)
    if motion is None:
        raise RequestError(
            'No motion from the pose of rest keeps the limits; give a larger box.'
        )
    dense = motion(_middles(duration, int(np.ceil(duration * _DENSE))), 3)
    information = task.information(dense, inverse_dynamics(model, dense), duration)
    found = Excitation(motion, regressor.names, information)
    if found.condition > _WORST:
        raise task.hidden()
    return found


def _refuse_numbers(share: float, duration: float, rate: float, seed: int) -> None:
    """Refuse numbers that are out of their ranges, with a `RequestError`."""
    numbers = ('share', share, 1.0), ('duration', duration, None), ('rate', rate, None)
    for name, value, most in numbers:
        checked_number(name, value, RequestError, above=0.0, most=most)
    checked_number('seed', seed, RequestError, least=0, whole=True)


def _checked_arrays(
    model: RobotModel, chosen: Sequence[str], effort_noise: ArrayLike, box: ArrayLike | None
) -> tuple[Array, Array | None]:
    """Noise and corners of the box, for joints that the model has."""
    noise = finite_array('effort_noise', effort_noise, RequestError)
    if noise.shape not in ((), (model.n_joints,)) or not np.all(noise > 0.0):
        raise RequestError(
            f'effort_noise is {effort_noise!r}, expected a number above zero or {model.n_joints} '
            'of them.'
        )
    if not chosen or not set(chosen) <= set(model.joint_names):
        raise JointNameError(
            f'The joints to be moved are {listed(chosen)}; expected some of '
            f'{listed(model.joint_names)}.'
        )
    corners = None if box is None else finite_array('box', box, RequestError)
    if corners is not None and not (
        corners.shape == (2, 3) and np.all(corners[0] < corners[1])
    ):
        raise RequestError(
            f'The box is {corners.tolist()}, expected the lowest and then the highest x, y, z [m].'
        )
    return noise, corners


class _Regressor:
    """Derivatives of efforts by the parameters of a target.

    Parameters
    ----------
    model : RobotModel
    target : {'bodies', 'payload', 'friction', 'springs'}
        See `excite`.
    link : str or None
        Of the payload.
    joints : sequence of str
        Those that move.
    actuators : Actuators or None
        With elastic joints.

    Attributes
    ----------
    names : tuple of str
        Of the p parameters.
    """

    def __init__(
        self,
        model: RobotModel,
        target: str,
        link: str | None,
        joints: Sequence[str],
        actuators: Actuators | None,
    ) -> None:
        groups, self._kind = _GROUPS[target], 'spring' if target == 'springs' else 'effort'
        link = link_or_tip(model, link) if target == 'payload' else None
        drives = actuators if target == 'springs' else None
        self._equations = Equations(model, drives, link, groups)
        columns = self._equations.columns
        shown = np.arange(len(columns))
        ends = np.full(len(columns), '')
        if target == 'bodies':
            shown, mapping = self._equations.structure(shown, ('effort',))
            ends = np.where(np.abs(mapping).sum(axis=1) > 1.0 + 1e-9, ' + ...', '')
        elif target != 'payload':
            kept = [self._is_shown(column, joints) for column in columns]
            shown, ends = shown[kept], ends[kept]
        if not len(shown):
            raise RequestError(
                'None of the joints that move is series elastic; see actuators.'
            )
        self._places = shown
        self.names = tuple(f'{columns[k]}{end}' for k, end in zip(shown, ends))

    def _is_shown(self, column: Parameter, joints: Sequence[str]) -> bool:
        """Whether a parameter is one of a joint that moves, and has it."""
        equations = self._equations
        if column.owner not in joints or self._kind == 'effort':
            return column.owner in joints
        j = equations.model.joint_names.index(column.owner)
        return bool(equations.elastic[j]) and (
            column.name != 'cubic_stiffness'
            or isinstance(equations.drive(j).spring, CubicSpring)
        )

    def columns(self, motion: Array, effort: Array) -> Array:
        """Columns of the parameters, shape (S, n, p).

        Parameters
        ----------
        motion : ndarray, shape (S, 4, n)
            [rad/s^k] or [m/s^k]
        effort : ndarray, shape (S, 2, n)
            By which springs are deflected [N m] or [N], and its rate.

        Returns
        -------
        ndarray, shape (S, n, p)
        """
        equations, motors = self._equations, motion[:, :3].copy()
        for j in np.flatnonzero(equations.elastic).tolist():
            deflection = equations.drive(j).spring.deflection_series(effort[:, :, j])
            motors[:, :2, j] += deflection
        stretch = Stretch.exact(motion[:, :3], motors)
        bodies = equations.of_bodies(motion[:, :3])
        return equations.columns_of(self._kind, stretch, bodies)[..., self._places]


def _bounds(
    model: RobotModel,
    limits: MotionLimits | None,
    moved: Sequence[int],
    share: float,
    springs: Mapping[str, Spring],
) -> MotionLimits:
    """Limits as far as they may be used, with finite positions, and torques of springs."""
    limits = tightened(model, motion_limits(model) if limits is None else limits)
    lower, upper = limits.lower, limits.upper
    free = np.isin(model.joint_types, 'continuous') | ~np.isin(
        np.arange(model.n_joints), moved
    )
    free &= ~np.isfinite(upper - lower)
    lower, upper = np.where(free, [[-np.pi], [np.pi]], [lower, upper])
    for what, limit in (('position', upper - lower), ('velocity', limits.velocity)):
        if without := [model.joint_names[j] for j in moved if not 0.0 < limit[j] < np.inf]:
            raise UnlimitedError(
                f'The {what} of {listed(without)} has no finite range above zero; give limits, or '
                'name other joints.'
            )
    middle, half = 0.5 * (upper + lower), 0.5 * share * (upper - lower)
    scaled = scaled_limits(limits, dict.fromkeys(MAGNITUDES, share))
    scaled = scaled._replace(lower=middle - half, upper=middle + half)
    for name, spring in springs.items():
        j = model.joint_names.index(name)
        scaled.effort[j] = min(scaled.effort[j], share * np.abs(spring.torque_range).min())
    return scaled


class _Task(NamedTuple):
    """What a motion is to keep, and what it is to show.

    Attributes
    ----------
    model : RobotModel
    bounds : MotionLimits
        As far as they may be used.
    box : ndarray, shape (2, 3), or None
        Lowest and highest place of links [m].
    moved : list of int
        Joints that move, m of them.
    regressor : _Regressor
        The p parameters.
    weights : ndarray, shape (n, 1)
        Root of the rate over the noise of each effort.
    """

    model: RobotModel
    bounds: MotionLimits
    box: Array | None
    moved: list[int]
    regressor: _Regressor
    weights: Array

    def information(self, motion: Array, effort: Array, duration: float) -> Array:
        """Information of samples (S, 4, n) that stand for a duration, shape (p, p).

        Parameters
        ----------
        motion : ndarray, shape (S, 4, n)
            Position to jerk.
        effort : ndarray, shape (S, 2, n)
            Efforts and their rates.
        duration : float
            [s]

        Returns
        -------
        ndarray, shape (p, p)
        """
        rows = self.regressor.columns(motion, effort) * self.weights
        rows = rows.reshape(-1, rows.shape[-1])
        return np.asarray(rows.T @ rows * (duration / len(motion)))

    def hidden(self) -> RequestError:
        """Error for motions that do not tell all of the parameters apart."""
        return RequestError(
            f'No motion of {listed(np.take(self.model.joint_names, self.moved))} was found that '
            f'keeps the limits and shows all of {listed(self.regressor.names)}; move more joints, '
            'give a larger box or more time, or choose another target or link.'
        )

    def leaves_box(self, positions: Array) -> bool:
        """Whether a link leaves the box at one of the positions (N, n)."""
        if self.box is None:
            return False
        moving = [link for link, frame in self.model.links.items() if frame.body != BASE]
        poses = (
            forward_kinematics(self.model, positions[:, None], link).pose for link in moving
        )
        places = (pose[:, :3, 3] for pose in poses)
        return any(
            np.any((place < self.box[0]) | (place > self.box[1])) for place in places
        )

    def exceeds(self, motion: Array, effort: Array) -> bool:
        """Whether one of the samples (N, 4, n) exceeds a limit or leaves the box."""
        found = find_violations(self.model, self.bounds, motion, effort)
        return bool(found) or self.leaves_box(motion[:, 0])

    def keeps(self, motion: MotionSpline) -> bool:
        """Whether a motion keeps the limits between samples too, and densely the box.

        Parameters
        ----------
        motion : MotionSpline

        Returns
        -------
        bool
        """
        times = np.linspace(
            0.0, motion.duration, int(np.ceil(motion.duration * _DENSE)) + 1
        )
        try:
            robot = RobotLimits(self.model, self.bounds)
            refuse_extremes(robot, motion)
            kept = check_of(robot, motion).is_kept
        except (ScalingError, MotionError):  # the latter where closed loops do not close
            return False
        return kept and not self.leaves_box(motion(times, 0)[:, 0])

    def rest(self, rng: np.random.Generator) -> Array:
        """Middle of the ranges, or a pose near to it that keeps the box and the torques.

        Parameters
        ----------
        rng : numpy.random.Generator
            By which other poses are chosen.

        Returns
        -------
        ndarray, shape (n,)
            [rad] or [m]

        Raises
        ------
        RequestError
            If none of the poses that are tried keeps them.
        """
        middle, half = (
            self.bounds.upper + sign * self.bounds.lower for sign in (1.0, -1.0)
        )
        # Rather one with half of the torques, which leaves more of them for the motion.
        for torque, spread in product((2.0, 1.0), (0.0, *np.linspace(0.05, 1.0, 1000))):
            still = np.zeros((1, 4, len(middle)))
            still[0, 0] = 0.5 * (middle + spread * rng.uniform(-half, half))
            try:
                effort = torque * inverse_dynamics(self.model, still)
            except MotionError:  # as in `keeps`
                continue
            if not self.exceeds(still, effort):
                return np.asarray(still[0, 0])
        raise RequestError(
            'No pose was found that keeps the box and the torques; give a larger box [m], in the '
            f'axes of {self.model.base_link}, for the origins of all links.'
        )


class _Search:
    """Waypoints about the rest whose motion is worth most.

    Parameters
    ----------
    task : _Task
    rest : ndarray, shape (n,)
        Pose in which the motion begins and ends.
    duration : float
        [s]
    bandwidth : float
        Half of the number of waypoints per second, about [Hz].

    Attributes
    ----------
    times : ndarray, shape (N,)
        Of the waypoints [s].
    """

    def __init__(self, task: _Task, rest: Array, duration: float, bandwidth: float) -> None:
        self._task, self._rest, self._duration = task, rest, duration
        N = max(int(np.ceil(2.0 * bandwidth * duration)) + 1, _FEWEST)
        times = np.append(0.0, np.cumsum(np.geomspace(_QUICKER, 1.0, N - 1)))
        self.times = np.append(duration * times[:-1] / times[-1], duration)
        # A spline is linear in its waypoints: samples (S, 4, n) are B (S, 4, N) times these.
        self._B = fit_spline(self.times, np.eye(N))(
            _middles(duration, _PER_WAYPOINT * N), 3
        )
        moved, bounds = task.moved, task.bounds
        self._low, self._high = (bound[moved] - rest[moved] for bound in bounds[:2])
        self._allowed = np.array(bounds[2:5])[:, moved]
        self._half = 0.5 * (self._high - self._low)

    def found(self, rng: np.random.Generator) -> Array:
        """Best waypoints (N, n) about the rest that were found, see `excite`.

        Parameters
        ----------
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, shape (N, n)
            [rad] or [m]

        Raises
        ------
        RequestError
            If no motion keeps the limits and shows all parameters.
        """
        best, found = self._best_start(rng)
        if np.isinf(best):
            raise self._task.hidden()
        every = np.zeros((len(self.times), len(self._rest)))
        every[:, self._task.moved] = self._improved(best, found, rng)
        return every

    def _scaled(self, waypoints: Array) -> tuple[Array, Array]:
        """Motion (S, 4, n) of waypoints (N, m), scaled so that joints keep limits, and these."""
        own = np.tensordot(self._B, waypoints, (2, 0))
        with np.errstate(divide='ignore'):
            used = (
                own[:, 0] / self._high,
                own[:, 0] / self._low,
                *np.rollaxis(abs(own[:, 1:]) / self._allowed, 1),
            )
        scale = 1.0 / np.maximum(np.max(used, axis=(0, 1)), 1.0)
        motion, moved = np.zeros((len(own), 4, len(self._rest))), self._task.moved
        for _ in range(_ROUNDS):
            motion[:, 0] = self._rest
            motion[:, :, moved] = scale * own
            motion[:, 0, moved] += self._rest[moved]
            use = np.abs(velocity_use(self._task.bounds, motion))[:, moved].max(axis=0)
            if (use <= 1.0).all():
                break
            # Some approach a limit of their position too fast, see `velocity_range`.
            scale *= np.where(use > 1.0, np.maximum(1.0 / use, _SLOWER), 1.0)
        return motion, scale * waypoints

    def _judged(self, waypoints: Array) -> tuple[float, Array]:
        """Score of waypoints (N, m), minus infinity if they cannot be used, and them scaled."""
        motion, waypoints = self._scaled(waypoints)
        if not closes_readily(self._task.model, motion[:, 0]):
            return -np.inf, waypoints
        try:
            effort = inverse_dynamics(self._task.model, motion)
        except MotionError:  # positions at which closed loops do not close
            return -np.inf, waypoints
        if self._task.exceeds(motion, effort):
            return -np.inf, waypoints
        return _score(self._task.information(motion, effort, self._duration)), waypoints

    def _best_start(self, rng: np.random.Generator) -> tuple[float, Array]:
        """Score and the best of random waypoints (N, m), the first and last of which rest."""
        best, found = -np.inf, np.zeros((len(self.times), len(self._half)))
        for _ in range(_STARTS):
            size = self._half * rng.uniform(-1.0, 1.0, found.shape)
            waypoints = size * rng.uniform(0.2, 2.0)
            waypoints[[0, -1]] = 0.0
            for shrunk in 0.5 ** np.arange(10.0 if np.isinf(best) else 1.0):
                judged = self._judged(shrunk * waypoints)
                best, found = max((best, found), judged, key=lambda each: each[0])
        return best, found

    def _improved(self, best: float, found: Array, rng: np.random.Generator) -> Array:
        """Waypoints (N, m) changed one by one at random, as long as their score grows."""
        N, m = found.shape
        step = _LARGEST_STEP
        for _ in range(_TRIALS):
            waypoints = found.copy()
            change = rng.normal(size=m) * (rng.random(m) < 0.5)
            waypoints[rng.integers(1, N - 1)] += step * self._half * change
            score, waypoints = self._judged(waypoints)
            if score > best + _BETTER:
                best, found, step = score, waypoints, min(1.5 * step, _LARGEST_STEP)
            else:
                step = max(0.93 * step, _SMALLEST_STEP)
        return found


def _score(information: Array) -> float:
    """Worth of a motion, see `excite`; minus infinity if it does not show everything."""
    scale = np.diag(information)
    if not np.all(scale > 0.0):
        return -np.inf
    sign, log_det = np.linalg.slogdet(_correlations(information))
    return (
        float(np.log(scale).sum() + (1.0 + _BALANCE) * log_det) if sign > 0.0 else -np.inf
    )


def _correlations(information: Array) -> Array:
    """Information about parameters in units such that each one alone has 1."""
    scale = np.sqrt(np.diag(information))
    return np.asarray(information / np.outer(scale, scale))


def _middles(duration: float, count: int) -> Array:
    """Middles of equal parts of a duration."""
    return np.asarray((np.arange(count) + 0.5) * duration / count)
