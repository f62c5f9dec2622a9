"""Motions of this package beside a model of the controller that shares no code with them."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from support.jtc_model import SECOND, Jtc, Point

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory import StartState, Waypoints, jtc_motion, plan_motion

NAMES = ('shoulder', 'elbow', 'wrist')
PERIOD = SECOND // 1000
REST = np.zeros(3)
NAN = np.nan


class Ideal:
    """The controller on a robot that does exactly what is desired."""

    def __init__(self, start=REST, now=SECOND, **options):
        self.jtc, self.now = Jtc(NAMES, PERIOD, **options), now
        self.q, self.v = np.array(start), REST
        self.step()

    def take(self, times, *rows):
        points = [Point(round(t * SECOND), *row) for t, *row in zip(times, *rows)]
        self.jtc.take_points(points, 0, self.now)

    def step(self):
        """One period: what is desired in it, positions, velocities, accelerations."""
        self.jtc.update(self.now, self.q, self.v)
        desired = self.jtc.desired
        self.q, self.v = desired.positions, desired.velocities
        self.now += PERIOD
        return np.array([self.q, self.v, desired.accelerations])

    def run(self, steps):
        return np.array([self.step() for _ in range(steps)])


def random_path(seed, K, N=5):
    """Times that are whole periods, and K rows of derivatives at every waypoint."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(30, 150, N)) * 1e-3
    rows = rng.standard_normal((K, N, len(NAMES)))
    rows[1:2, -1] = 0.0  # the end is at rest, or is refused
    return np.concatenate([[0.0], times[:-1]]), *rows


def assert_same(actual, expected):
    scale = np.abs(expected).max(axis=(0, 2), keepdims=True) + 1e-9
    assert np.abs((actual - expected) / scale).max() < 1e-9


# Upsampling


@pytest.mark.parametrize('N', [2, 3, 4, 40])
def test_upsampled_positions_are_a_cubic_spline_of_class_c2_from_rest_to_rest(N):
    times, q = random_path(N, 1, N)
    motion = jtc_motion(times, q, positions_upsampling=True)
    spline = CubicSpline(times, q, bc_type='clamped')
    t = np.linspace(0.0, times[-1], 777)[:-1]
    assert_same(motion(t, 2), np.stack([spline(t, k) for k in range(3)], axis=1))
    assert motion.continuous_derivative == (4 if N == 2 else 2)
    np.testing.assert_array_equal(motion(times[[0, -1]])[:, 1], 0.0)


# Where a motion begins


@pytest.mark.parametrize('K', [1, 2, 3])
@pytest.mark.parametrize('upsampling', [False, True])
def test_motion_begins_where_the_robot_stands(K, upsampling):
    times, *rows = random_path(8, K)
    times = times + 0.2
    here = np.full((5, 3), NAN)
    here[0] = 0.3, -0.2, 0.1
    controlled = Ideal(here[0], positions_upsampling=upsampling)
    controlled.take(times, *rows)
    kind = 'jtc_upsampled' if upsampling else 'jtc'
    start = StartState(0.0, here, in_progress=False)
    plan = plan_motion(
        Waypoints(NAMES, times, *rows), NAMES, start=start, interpolation=kind
    )
    t = 1e-3 * np.arange(round(1e3 * times[-1]))
    assert_same(controlled.run(len(t)), plan.motion(t, 2))


@pytest.mark.parametrize('new_rows', [1, 2, 3])
@pytest.mark.parametrize('old_rows', [1, 2, 3])
def test_motion_in_progress_is_continued_as_far_as_the_next_waypoint_has_it(
    old_rows, new_rows
):
    old_times, *old = random_path(10, old_rows)
    times, *new = random_path(11, new_rows)
    times = times + 0.04
    controlled = Ideal(old[0][0])
    controlled.take(old_times, *old)
    taken = round(1e3 * old_times[1]) + 17
    controlled.run(taken)
    controlled.take(times, *new)
    # It goes on from what was desired a period ago, as if that were now.
    at_join = jtc_motion(old_times, *old)(1e-3 * (taken - 1), 4)
    plan = plan_motion(
        Waypoints(NAMES, times, *new),
        NAMES,
        start=StartState(0.0, at_join, in_progress=True),
        interpolation='jtc',
    )
    t = 1e-3 * np.arange(round(1e3 * times[-1]))
    assert_same(controlled.run(len(t)), plan.motion(t, 2))


# Efforts, cancelling and refusals: what users of efforts should know


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('rows', 'what'),
    [
        (([0.0, 0.1], np.zeros((2, 3)), np.ones((2, 3))), 'velocity'),
        (([0.1, 0.1], np.zeros((2, 3))), 'strictly'),
    ],
)
def test_what_the_controller_refuses_is_refused_or_remarked(rows, what):
    with pytest.raises(ValueError, match=what):
        Ideal().take(*rows)
    try:
        plan = plan_motion(Waypoints(NAMES, *rows), NAMES, interpolation='jtc')
    except TrajectoryError as error:
        assert what in str(error)
    else:
        assert any(what in warning for warning in plan.warnings)
