"""Motions of this package beside a model of the controller that shares no code with them."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from support.jtc_model import SECOND, Jtc

from hodyn_ros.errors import TrajectoryError
from hodyn_ros.trajectory.jtc import jtc_motion
from hodyn_ros.trajectory.planning import StartState, Waypoints, plan_motion

NAMES = ('shoulder', 'elbow', 'wrist')
PERIOD = SECOND // 1000
REST = np.zeros(3)
NAN = np.nan


def nanoseconds(t):
    return int(round(t * SECOND))


def message(times, positions, velocities=None, accelerations=None, effort=None, stamp=0):
    """JointTrajectory; rows of NaN are left out."""

    def row(values, i):
        return [] if values is None or np.isnan(values[i][0]) else list(values[i])

    points = [
        SimpleNamespace(
            time_from_start=SimpleNamespace(
                sec=nanoseconds(t) // SECOND, nanosec=nanoseconds(t) % SECOND
            ),
            positions=list(positions[i]),
            velocities=row(velocities, i),
            accelerations=row(accelerations, i),
            effort=row(effort, i),
        )
        for i, t in enumerate(times)
    ]
    header = SimpleNamespace(
        stamp=SimpleNamespace(sec=stamp // SECOND, nanosec=stamp % SECOND)
    )
    return SimpleNamespace(header=header, joint_names=list(NAMES), points=points)


class Ideal:
    """The controller on a robot that does exactly what is desired."""

    def __init__(self, start=REST, now=SECOND, **options):
        self.jtc, self.now = Jtc(NAMES, PERIOD, **options), now
        self.q, self.v = np.array(start), REST
        self.step()

    def take(self, *rows, **others):
        self.jtc.take(message(*rows, **others), self.now)

    def step(self):
        """One period: what is desired in it, positions, velocities, accelerations, efforts."""
        self.jtc.update(self.now, self.q, self.v)
        desired = self.jtc.desired
        self.q, self.v = desired.positions, desired.velocities
        self.now += PERIOD
        return np.array([self.q, self.v, desired.accelerations, desired.effort])

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


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('K', [1, 2, 3])
def test_motion_is_that_of_the_controller(seed, K):
    times, *rows = random_path(seed, K)
    controlled = Ideal(rows[0][0])
    controlled.take(times, *rows)
    motion = jtc_motion(times, *rows)
    t = 1e-3 * np.arange(round(1e3 * times[-1]))
    assert_same(controlled.run(len(t))[:, :3], motion(t, 2))
    # At the end it commands the last point, with zeros for what that does not have.
    end = controlled.run(3)[:, :3]
    expected = np.zeros((3, 3))
    expected[:K] = [row[-1] for row in rows]
    np.testing.assert_allclose(end, [expected] * 3, atol=1e-12)


def test_mixed_points_are_joined_by_what_both_have():
    times, q, v, a = random_path(3, 3)
    v[2], a[[1, 2]] = NAN, NAN
    controlled = Ideal(q[0])
    controlled.take(times, q, v, a)
    t = 1e-3 * np.arange(round(1e3 * times[-1]))
    assert_same(controlled.run(len(t))[:, :3], jtc_motion(times, q, v, a)(t, 2))


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


def test_upsampled_motion_is_that_of_the_controller():
    times, q = random_path(5, 1, 8)
    controlled = Ideal(q[0], positions_upsampling=True)
    controlled.take(times, q)
    t = 1e-3 * np.arange(round(1e3 * times[-1]))
    motion = jtc_motion(times, q, positions_upsampling=True)
    assert_same(controlled.run(len(t))[:, :3], motion(t, 2))
    assert motion.continuous_derivative == 2


@pytest.mark.parametrize('given', [1, 2])
def test_one_given_derivative_and_nothing_is_upsampled(given):
    times, q, v, a = random_path(6, 3)
    rows = [np.full_like(q, NAN), np.full_like(q, NAN)]
    rows[given - 1][-1] = 0.0
    upsampled = jtc_motion(times, q, *rows, positions_upsampling=True)
    np.testing.assert_array_equal(upsampled.degrees, 1)
    np.testing.assert_array_equal(
        upsampled.expansions, jtc_motion(times, q, *rows).expansions
    )


def test_plan_is_upsampled_before_waypoints_are_left_out():
    times, q = random_path(7, 1)
    state = np.random.default_rng(7).standard_normal((5, 3))
    start = StartState((times[1] + times[2]) / 2.0, state, in_progress=True)
    waypoints = Waypoints(NAMES, times, q)
    plan = plan_motion(waypoints, NAMES, start=start, interpolation='jtc_upsampled')
    whole = jtc_motion(times, q, positions_upsampling=True)
    t = np.linspace(times[2], times[-1], 99)
    assert_same(plan.motion(t, 2), whole(t, 2))
    np.testing.assert_allclose(plan.motion(start.time)[:2], state[:2])
    assert plan.interpolation == 'jtc_upsampled'
    assert 'Given: 5 waypoints with positions, 0 with velocities' in plan.remarks[0]


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
    assert_same(controlled.run(len(t))[:, :3], plan.motion(t, 2))


def test_before_a_stamp_that_lies_ahead_the_controller_is_on_its_way():
    times, *rows = random_path(9, 2)
    controlled = Ideal(REST)
    ahead = 0.05
    controlled.take(times, *rows, stamp=controlled.now + nanoseconds(ahead))
    start = StartState(-ahead, np.zeros((5, 3)), in_progress=False)
    plan = plan_motion(
        Waypoints(NAMES, times, *rows), NAMES, start=start, interpolation='jtc'
    )
    t = -ahead + 1e-3 * np.arange(round(1e3 * (ahead + times[-1])))
    assert_same(controlled.run(len(t))[:, :3], plan.motion(t, 2))
    assert np.abs(plan.motion(-ahead / 2, 0)).max() > 0.1


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
    assert_same(controlled.run(len(t))[:, :3], plan.motion(t, 2))


def test_until_the_stamp_of_a_new_trajectory_the_old_one_is_followed():
    old_times, *old = random_path(12, 3)
    times, *new = random_path(13, 3)
    controlled = Ideal(old[0][0], interpolate_from_desired_state=True)
    controlled.take(old_times, *old)
    before, ahead = 20, 120
    controlled.run(before)
    controlled.take(times + 0.03, *new, stamp=controlled.now + ahead * PERIOD)
    motion = jtc_motion(old_times, *old)
    # From the first waypoint of the old trajectory on, it is a period late.
    t = 1e-3 * np.arange(before, before + ahead)
    behind = t > old_times[1] + 1e-3
    assert behind.sum() > 10
    followed = controlled.run(ahead)[:, :3]
    assert_same(followed[behind], motion(t[behind] - 1e-3, 2))


def test_without_replacement_a_new_trajectory_begins_where_the_robot_is():
    controlled = Ideal(REST, allow_trajectory_replacement=False)
    controlled.take([0.1], [[1.0, 1.0, 1.0]])
    controlled.run(50)
    q, v = controlled.q, controlled.v
    controlled.take([0.1], [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]])
    plan = plan_motion(
        Waypoints(NAMES, [0.1], [REST], [REST]),
        NAMES,
        start=StartState(0.0, np.array([q, v, REST, REST, REST]), in_progress=True),
        interpolation='jtc',
    )
    assert_same(controlled.run(100)[:, :3], plan.motion(1e-3 * np.arange(100), 2))


# Efforts, cancelling and refusals: what users of efforts should know


def test_efforts_are_on_lines_and_none_is_zero():
    controlled = Ideal(REST)
    controlled.take(
        [0.0, 0.1, 0.2, 0.3],
        np.zeros((4, 3)),
        effort=np.array([[1.0] * 3, [2.0] * 3, [NAN] * 3, [4.0] * 3]),
    )
    efforts = controlled.run(350)[:, 3, 0]
    np.testing.assert_allclose(
        efforts[[0, 50, 100, 150, 200, 250]], [1.0, 1.5, 2.0, 1.0, 0.0, 2.0]
    )
    np.testing.assert_array_equal(efforts[300:], 4.0)  # it stays


def test_command_is_velocity_effort_and_feedback():
    jtc = Jtc(NAMES, PERIOD, p=10.0, d=2.0, ff_velocity_scale=3.0)
    jtc.update(SECOND, REST, REST)
    jtc.take(message([0.0, 0.1], [[0.0] * 3, [0.1] * 3], effort=np.ones((2, 3))), SECOND)
    command = jtc.update(SECOND + PERIOD, REST, REST)
    np.testing.assert_allclose(command['effort'], 3.0 * 1.0 + 1.0 + 2.0 * 1.0)
    command = jtc.update(SECOND + 2 * PERIOD, REST, REST)
    np.testing.assert_allclose(command['effort'], 6.0 + 10.0 * 1e-3)


def test_cancelling_holds_the_position_without_effort():
    controlled = Ideal(REST)
    controlled.take([0.0, 0.1], [[0.0] * 3, [1.0] * 3], effort=np.ones((2, 3)))
    controlled.run(50)
    controlled.jtc.cancel()
    held = controlled.run(50)
    np.testing.assert_array_equal(held[:, 0], [held[0, 0]] * 50)
    np.testing.assert_array_equal(held[:, 1:], 0.0)


def test_cancelling_decelerates_if_it_is_told_to():
    controlled = Ideal(REST, max_deceleration=np.array([20.0, 40.0, 80.0]))
    controlled.take([0.0, 1.0], [[0.0] * 3, [1.0, -1.0, 2.0]])
    controlled.run(100)
    v = controlled.v
    q = controlled.q - 1e-3 * v  # what was measured last
    controlled.jtc.cancel()
    motion = controlled.run(100)
    np.testing.assert_allclose(motion[20, 2], [-20.0, 40.0, -80.0])
    np.testing.assert_allclose(motion[-1, 0], q + v * np.abs(v) / [40.0, 80.0, 160.0])
    np.testing.assert_array_equal(motion[:, 3], 0.0)


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
