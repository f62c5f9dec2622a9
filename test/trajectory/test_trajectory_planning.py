"""Motions from where the robot is: start states, joints that are left out, and remarks."""

import numpy as np
import pytest

from hodyn_ros.errors import JointNameError, TrajectoryError
from hodyn_ros.trajectory import StartState, Waypoints, fit_spline, jtc_motion, plan_motion

NAMES = ('shoulder', 'elbow', 'wrist')
NAN = np.nan
UNKNOWN = np.full((4, 3), NAN)
BOTH = pytest.mark.parametrize('interpolation', ['spline', 'jtc'])


def path(times=(1.0, 2.0, 3.5), rows=0, seed=0, names=NAMES):
    """Waypoints with some rows of derivatives, at rest at the end."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1.0, 1.0, (3, len(times), len(names)))
    values[1:, -1] = 0.0
    return Waypoints(names, times, *values[: rows + 1])


def state(time, in_progress=False, derivatives=UNKNOWN, seed=1):
    rng = np.random.default_rng(seed)
    motion = np.concatenate([rng.uniform(-1.0, 1.0, (1, 3)), derivatives])
    return StartState(time, motion, in_progress)


def moving_state(time, seed=2):
    """State of a motion in progress."""
    return state(time, True, np.random.default_rng(seed).uniform(-1.0, 1.0, (4, 3)), seed)


def has_remark(plan, *parts):
    return any(
        all(part in remark for part in parts) for remark in (*plan.remarks, *plan.warnings)
    )


def assert_same_motion(actual, expected):
    np.testing.assert_array_equal(actual.times, expected.times)
    t = np.linspace(expected.start_time, expected.end_time, 200)
    scale = np.abs(expected(t)).max(axis=(0, 2), keepdims=True) + 1e-12
    assert np.abs((actual(t) - expected(t)) / scale).max() < 1e-11


# Without a start state


@BOTH
@pytest.mark.parametrize('rows', [0, 1, 2])
def test_without_a_start_state_the_motion_begins_at_the_first_waypoint(interpolation, rows):
    points = path(rows=rows)
    fit = {'spline': fit_spline, 'jtc': jtc_motion}[interpolation]
    expected = fit(points.times, points.positions, points.velocities, points.accelerations)
    plan = plan_motion(points, NAMES, interpolation=interpolation)
    assert_same_motion(plan.motion, expected)
    assert has_remark(plan, 'begins at the first waypoint, at 1 s')
    assert plan.continuous_derivative == {'spline': 4, 'jtc': rows}[interpolation]


@BOTH
def test_single_waypoint_needs_a_start_state(interpolation):
    with pytest.raises(TrajectoryError) as error:
        plan_motion(path([1.0]), NAMES, interpolation=interpolation)
    for way_out in ('joint_states', 'start_state', 'first waypoint'):
        assert way_out in str(error.value)


# From a robot that stands or is measured


@BOTH
@pytest.mark.parametrize('count', [1, 3])
def test_motion_begins_at_the_robot_if_the_first_waypoint_lies_later(interpolation, count):
    points = path([1.0, 2.0, 3.5][:count])
    start = state(0.25)
    plan = plan_motion(points, NAMES, start=start, interpolation=interpolation)
    np.testing.assert_array_equal(plan.motion.times, [0.25, *points.times])
    np.testing.assert_array_equal(plan.motion(0.25, 0)[0], start.motion[0])
    np.testing.assert_array_equal(plan.motion(points.times, 0)[:, 0], points.positions)
    assert has_remark(plan, 'begins at the given start state, at 0.25 s')


@BOTH
@pytest.mark.parametrize('time', [1.0, 1.5, 3.5, 9.0])
def test_waypoints_are_taken_as_they_are_if_the_first_one_does_not_lie_later(
    interpolation, time
):
    points = path()
    plan = plan_motion(points, NAMES, start=state(time), interpolation=interpolation)
    expected = plan_motion(points, NAMES, interpolation=interpolation)
    assert_same_motion(plan.motion, expected.motion)
    # Beyond the end there is no motion to be away from.
    assert has_remark(plan, f'At {time:g} s the robot is away from the motion') == (
        time < 9.0
    )


# One waypoint that is not ahead


@BOTH
def test_only_waypoint_at_the_time_of_a_robot_that_stands_there_is_held(interpolation):
    start = state(1.0)
    points = Waypoints(NAMES, [1.0], start.motion[:1] + [1e-4, 0.0, -1e-4])
    plan = plan_motion(points, NAMES, start=start, interpolation=interpolation)
    assert (plan.motion.start_time, plan.motion.duration) == (1.0, 1.0)
    motion = plan.motion(np.linspace(1.0, 1.0 + 1.0, 9))
    np.testing.assert_allclose(motion[:, 0] - points.positions, 0.0, atol=1e-14)
    np.testing.assert_allclose(motion[:, 1:], 0.0, atol=1e-12)
    assert has_remark(plan, 'it is held there, for 1 s')


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('time', 'offset', 'velocity', 'message'),
    [
        (1.0, 0.1, 0.0, r'1 s, but not there \(elbow 0.1 away\): the robot would jump'),
        (1.0, 0.0, 0.1, 'time of the start state, which moves: the robot would jump'),
        (0.5, 0.0, 0.0, 'lies at 0.5 s, before the start state at 1 s'),
    ],
)
def test_only_waypoint_that_asks_for_a_jump_is_refused(time, offset, velocity, message):
    derivatives = UNKNOWN.copy()
    derivatives[0] = velocity
    start = state(1.0, derivatives=derivatives)
    points = Waypoints(NAMES, [time], start.motion[:1] + [0.0, offset, 0.0])
    with pytest.raises(TrajectoryError, match=message):
        plan_motion(points, NAMES, start=start)


# From a motion in progress


@pytest.mark.parametrize('rows', [0, 1, 2])
@pytest.mark.parametrize('time', [0.2, 1.0, 1.4])
def test_motion_in_progress_is_continued_with_all_its_derivatives(time, rows):
    start, points = moving_state(time), path(rows=rows)
    plan = plan_motion(points, NAMES, start=start)
    np.testing.assert_array_equal(plan.motion(time), start.motion)
    later = points.times > time
    np.testing.assert_array_equal(plan.motion.times, [time, *points.times[later]])
    states = plan.motion(points.times[later])
    for k, row in enumerate(points.rows[: rows + 1]):
        np.testing.assert_array_equal(states[:, k], row[later])
    assert plan.continuous_derivative == 4
    assert has_remark(plan, f'The motion in progress is continued from {time:g} s on')


@pytest.mark.parametrize('rows', [0, 1, 2])
def test_controller_continues_up_to_what_the_next_waypoint_has(rows):
    start = moving_state(1.2)
    plan = plan_motion(path(rows=rows), NAMES, start=start, interpolation='jtc')
    initial = plan.motion(1.2)
    np.testing.assert_array_equal(initial[: rows + 1], start.motion[: rows + 1])
    assert plan.continuous_derivative == rows
    jump = np.abs(initial - start.motion)[rows + 1]
    quantity = ('velocity', 'acceleration', 'jerk')[rows]
    assert has_remark(plan, f'begins, the {quantity} jumps', f'shoulder {jump[0]:.3g}')


# Joints that are left out


@BOTH
@pytest.mark.parametrize('rows', [0, 1, 2])
def test_joints_that_are_left_out_hold_their_position(interpolation, rows):
    points = path(rows=rows, names=('wrist',))
    start = state(0.0)
    plan = plan_motion(
        points, NAMES, start=start, interpolation=interpolation, allow_partial_joints=True
    )
    motion = plan.motion(np.linspace(0.0, 3.5, 50))
    np.testing.assert_allclose(motion[:, 0, :2] - start.motion[0, :2], 0.0, atol=1e-14)
    np.testing.assert_allclose(motion[:, 1:, :2], 0.0, atol=1e-12)
    np.testing.assert_array_equal(
        plan.motion(points.times, 0)[:, 0, 2], points.positions[:, 0]
    )
    assert has_remark(plan, 'held where they are at the start: shoulder, elbow.')


def test_held_joint_that_moves_at_the_start_comes_back():
    start = moving_state(0.0)
    start.motion[1:, 0] = 0.0
    points = path(names=('wrist',))
    plan = plan_motion(points, NAMES, start=start, allow_partial_joints=True)
    assert has_remark(plan, 'Of these, elbow move at the start and come back')
    np.testing.assert_array_equal(plan.motion(points.times, 0)[:, 0, 1], start.motion[0, 1])


def test_joints_left_out_need_a_start_state():
    with pytest.raises(TrajectoryError, match='leave out shoulder, elbow.*start_state'):
        plan_motion(path(names=('wrist',)), NAMES, allow_partial_joints=True)


@pytest.mark.every_case
@pytest.mark.parametrize('allow', [False, True])
@pytest.mark.parametrize('problem', ['unknown: gripper', 'repeated: wrist'])
def test_unknown_and_repeated_names_are_always_refused(problem, allow):
    points = path(names=('wrist', problem.split()[1]))
    with pytest.raises(JointNameError, match=problem):
        plan_motion(points, NAMES, start=state(0.0), allow_partial_joints=allow)


# Refusals


def test_unknown_interpolation_is_refused_with_those_that_exist():
    with pytest.raises(
        TrajectoryError, match="'cubic', expected one of spline, jtc, jtc_up"
    ):
        plan_motion(path(), NAMES, interpolation='cubic')


def test_accelerations_without_velocities_have_a_spline_only():
    accelerations = np.zeros((3, 3))
    points = Waypoints(NAMES, [0, 1, 2], path().positions, None, accelerations)
    plan = plan_motion(points, NAMES)
    assert np.isnan(plan.deviation_from_jtc).all()
    assert has_remark(plan, 'Waypoints 0 and 1 have accelerations')
    with pytest.raises(TrajectoryError, match='Waypoints 0 and 1.*use the spline'):
        plan_motion(points, NAMES, interpolation='jtc')


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('start', 'message'),
    [
        (StartState(NAN, np.zeros((5, 3)), False), 'time of the start state is nan'),
        (StartState(0.0, np.zeros((5, 2)), False), r'start state has shape \(5, 2\)'),
        (StartState(0.0, np.full((5, 3), NAN), False), 'has no position, which it needs'),
        (
            StartState(0.0, np.full((5, 3), np.inf), False),
            r'\[0, 0\] is inf \(joint shoulder\)',
        ),
        (
            state(0.0, True),
            'has no velocity, acceleration, jerk, snap, which a motion in prog',
        ),
    ],
)
def test_unusable_start_states_are_refused_with_the_reason(start, message):
    with pytest.raises(TrajectoryError, match=message):
        plan_motion(path(), NAMES, start=start)


def test_motion_in_progress_is_not_forced_to_a_waypoint_that_is_about_to_pass():
    waypoints = Waypoints(
        NAMES, [0.0, 1.0, 2.0, 3.0], np.outer([0.0, 1.0, 0.5, 3.0], np.ones(3))
    )
    state = np.zeros((5, 3))
    state[0], state[1] = 0.5, 0.4  # far from where the waypoints lead
    plan = plan_motion(waypoints, NAMES, start=StartState(0.95, state, True))
    assert list(plan.motion.times) == [0.95, 2.0, 3.0]
    assert any(
        'next waypoint is left out' in remark for remark in (*plan.remarks, *plan.warnings)
    )
    assert plan.extremes.highest.max() < 4.0
    last = plan_motion(waypoints, NAMES, start=StartState(2.9, 2.0 + state, True))
    assert list(last.motion.times) == [2.9, 3.0]


def test_motion_in_progress_is_not_continued_where_no_time_is_left():
    waypoints = Waypoints(NAMES, [0.0, 1.0], np.outer([0.0, 1.0], np.ones(3)))
    state = np.zeros((5, 3))
    with pytest.raises(TrajectoryError, match='only 5 ms'):
        plan_motion(waypoints, NAMES, start=StartState(0.995, state, True))


def test_motion_in_progress_is_not_led_far_away():
    waypoints = Waypoints(
        NAMES, [0.0, 0.005, 0.04, 2.0], np.outer([0, 1, -1, 1], np.ones(3))
    )
    with pytest.raises(TrajectoryError, match='would leave them by shoulder .* rad'):
        plan_motion(waypoints, NAMES, start=StartState(0.0, np.zeros((5, 3)), True))
    # Nobody is forced into it: a motion that starts with it is told.
    assert plan_motion(waypoints, NAMES).warnings
