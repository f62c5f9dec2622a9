"""When trajectories replace each other, stop or come too late: time and planner by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from support.motion_limits import FRANKA
from support.stream_world import SETTINGS

from hodyn_ros import HodynError, RobotModel
from hodyn_ros.analysis import motion_limits
from hodyn_ros.resources import share_file
from hodyn_ros.streams import motion_stream
from hodyn_ros.streams.motion_stream import (
    CHUNK,
    FOLLOWING,
    IDLE,
    JOINING,
    LOST,
    STOPPING,
    TRANSITIONS,
    Instant,
    Leads,
    MotionStream,
    Plan,
    Request,
    stop_within,
)
from hodyn_ros.streams.timeline import MOST_PENDING, PlannedMotion, State, Timeline
from hodyn_ros.trajectory.piecewise import PiecewiseMotion
from hodyn_ros.trajectory.planning import StartState, Waypoints, plan_motion
from hodyn_ros.trajectory.spline import stop_motion

SECOND = 10**9
NAMES = ('a', 'b')


class Planner:
    """Notes what it is asked for; plans when the test says so."""

    def __init__(self):
        self.tasks, self.accepted, self.published = [], [], []

    def plan(self, task):
        self.tasks.append(task)

    def accept(self, number, start):
        self.accepted.append((number, start))

    def publish(self, planned, remark):
        self.published.append(planned)


class Setup:
    """A stream with a clock by hand; `has_controller`: motions are sent to one."""

    def __init__(self, has_controller=False, **parameters):
        self.now = 100 * SECOND
        self.waited = 0.0
        self.settings = SimpleNamespace(**{**SETTINGS, **parameters})
        self.planner = Planner()
        self.sent = []
        self.done = []
        self.measured = None
        self.stream = MotionStream(
            self.planner,
            lambda: self.settings,
            lambda now: self.measured,
            self.done.append,
            has_controller,
        )
        self.follow(NAMES, False)

    @property
    def at(self):
        return Instant(self.now, self.waited)

    def follow(self, names, is_held, types=None):
        """Plan for a robot with these joints, or for none; whether a motion is stopped."""
        types = types or ('revolute',) * len(names or ())
        model = SimpleNamespace(joint_names=names, joint_types=types)
        robot = names and SimpleNamespace(model=model, limits=None)
        return self.stream.follow(robot, is_held, self.at)

    @property
    def timeline(self):
        return self.stream.timeline

    def take(self, positions, times, stamp=0, topic=motion_stream.TRAJECTORY):
        data = bytes(8 * len(positions))
        lost = self.stream.take(Request(data, stamp, topic), self.at)
        self.sent.append((np.array(positions, dtype=float), np.array(times)))
        return lost

    def plan(self, takes=0.0, which=-1, duration=0.0):
        """Plan the last task, for the last or another message, as the planning does."""
        task = self.planner.tasks[-1]
        positions, times = self.sent[which]
        start = None
        if task.known is not None:
            seconds = (task.known_time - task.start) / SECOND
            start = StartState(seconds, task.known.motion, task.known.in_progress)
            if not start.in_progress:  # the motion begins where the robot is
                ahead = times > seconds
                positions, times = positions[ahead], times[ahead]
        plan = plan_motion(Waypoints(NAMES, times, positions), NAMES, start=start)
        self.now += round(takes * SECOND)
        planned = PlannedMotion(NAMES, plan.motion, task.start, plan.continuous_derivative)
        self.stream.on_plan(Plan(task.number, planned, duration=duration), self.at)

    def run(self, positions, times, **options):
        self.take(positions, times, **options)
        self.plan()

    def sample(self, time):
        """Motion that is streamed at a time."""
        due = self.stream.sample(Instant(time, self.at.steady))
        return None if due is None else due[0].at(due[1])


@pytest.fixture
def setup():
    return Setup()


def derivative_jumps(timeline, join):
    """Change of the motion over a nanosecond at the join, for each derivative."""
    before, behind = (timeline.state(join + offset).motion for offset in (-1, 1))
    return np.abs(behind - before).max(axis=1)


def test_first_motion_starts_when_it_is_planned_and_nothing_is_left_out(setup):
    setup.take([(0, 0), (1, 2)], [0, 1])
    setup.plan(takes=0.7)
    ((_, start),) = setup.planner.accepted
    assert start == setup.now
    np.testing.assert_array_equal(setup.sample(setup.now)[0], [0, 0])


def test_start_that_is_given_is_kept_however_long_planning_takes(setup):
    setup.take([(0, 0), (1, 2)], [0, 1], stamp=100 * SECOND)
    setup.plan(takes=0.5)
    ((_, start),) = setup.planner.accepted
    assert start == 100 * SECOND
    np.testing.assert_allclose(setup.sample(setup.now)[0], [0.5, 1.0])


def test_new_motion_joins_the_one_in_progress_without_a_jump(setup):
    setup.run([(0, 0), (1, 2), (0, 1)], [0, 1, 2])
    setup.now += round(0.6 * SECOND)
    setup.take([(0.5, 0.5), (2, 2)], [0.5, 1.5])
    setup.plan(takes=0.01)
    join = setup.done[-1].planned.first
    assert setup.now < join
    size = np.abs(setup.timeline.state(join).motion).max(axis=1)
    # The fifth derivative may jump, so over two nanoseconds the fourth changes by some 1e-6.
    assert np.all(derivative_jumps(setup.timeline, join) <= 1e-5 * size)
    np.testing.assert_allclose(setup.done[-1].planned.at(setup.now + 2 * SECOND)[0], [2, 2])


def test_old_motion_goes_on_until_the_new_one_begins(setup):
    setup.run([(0, 0), (1, 2)], [0, 4])
    old = setup.timeline.later(0)
    setup.run([(0, 0), (5, 5)], [0, 1], stamp=103 * SECOND)
    for time in (setup.now, 102 * SECOND, 103 * SECOND - 1):
        np.testing.assert_array_equal(setup.sample(time), old.at(time))
    assert setup.sample(103 * SECOND + SECOND // 2)[0, 0] > 1.1
    np.testing.assert_array_equal(setup.sample(104 * SECOND)[0], [5, 5])
    assert setup.sample(105 * SECOND) is None


def test_plan_that_comes_too_late_is_made_again_with_more_time(setup):
    setup.run([(0, 0), (1, 2)], [0, 10])
    setup.now += SECOND
    setup.take([(1, 1), (2, 2)], [3, 4])
    first = setup.planner.tasks[-1]
    setup.plan(takes=0.3)
    second = setup.planner.tasks[-1]
    assert second.number != first.number
    assert len(setup.planner.accepted) == 1
    assert second.known_time >= setup.now + 0.3 * SECOND
    assert second.start == second.known_time  # nothing of it is left out, nor hurried
    setup.plan(takes=0.3)
    assert len(setup.planner.accepted) == 2
    assert setup.now <= setup.done[-1].planned.first


def test_planning_that_is_always_too_late_is_given_up(setup):
    setup.run([(0, 0), (1, 2)], [0, 1000])
    setup.now += SECOND
    setup.take([(1, 1), (2, 2)], [800, 1600])
    for takes in (0.1, 1.0, 10.0, 100.0):
        setup.plan(takes=takes)
    assert len(setup.planner.accepted) == 1
    assert 'longer than expected' in setup.done[-1].error
    assert setup.timeline.state(setup.now).in_progress


def test_motion_is_planned_again_if_the_one_that_it_should_continue_has_ended(setup):
    setup.run([(0, 0), (1, 2)], [0, 1])
    setup.now += round(0.6 * SECOND)
    setup.take([(3, 3)], [3.0])
    setup.now += SECOND
    assert setup.sample(setup.now) is not None  # the end, before the plan is there
    setup.plan()
    assert len(setup.planner.accepted) == 1
    setup.plan()
    assert len(setup.planner.accepted) == 2
    np.testing.assert_allclose(setup.sample(setup.now)[0], [1, 2])


def test_trajectories_are_planned_one_after_the_other(setup):
    setup.take([(0, 0), (1, 2)], [0, 1])
    setup.take([(1, 1), (3, 3)], [1, 2])
    assert len(setup.planner.tasks) == 1
    setup.plan(which=0)
    assert len(setup.planner.tasks) == 2
    assert setup.planner.tasks[1].known.in_progress


def test_of_several_without_stamps_the_newest_wins(setup):
    for number in range(5):
        setup.take([(0, 0), (number, 2)], [0, 1])
    setup.plan(which=0)
    setup.plan(which=-1)
    assert len(setup.planner.tasks) == 2
    assert sum('has overtaken' in ''.join(plan.remarks) for plan in setup.done) == 3
    assert not any(plan.error for plan in setup.done)
    end = setup.done[-1].planned.last
    np.testing.assert_allclose(setup.sample(end + 1)[0], [4, 2])


def test_newest_wins_over_those_that_would_begin_at_its_time_or_later(setup):
    setup.take([(0, 0), (1, 2)], [0, 1])  # is being planned
    for ahead in (3, 1, 2):
        setup.take([(0, 0), (ahead, 2)], [0, 1], stamp=setup.now + ahead * SECOND)
    assert setup.stream.waiting(setup.at)[0] == 1 + 2  # at 1 s and at 2 s
    setup.take([(0, 0), (5, 2)], [0, 1])
    assert setup.stream.waiting(setup.at)[0] == 1 + 1


def test_of_a_flood_the_oldest_give_way(setup):
    for number in range(100):
        setup.take([(0, 0), (number, 2)], [0, 1], stamp=setup.now + number * SECOND)
    assert len(setup.done) == 100 - 1 - motion_stream.MOST_WAITING
    assert all('newer trajectories' in plan.error for plan in setup.done)


def test_empty_trajectory_brings_the_motion_smoothly_to_rest(setup):
    setup.run([(0, 0), (1, 2)], [0, 2])
    setup.now += SECOND
    moving = setup.timeline.state(setup.now).motion
    setup.take([], [])
    np.testing.assert_allclose(setup.sample(setup.now), moving, rtol=1e-9, atol=1e-9)
    end = setup.now + round(setup.settings.stop_duration * SECOND)
    final = setup.sample(end)
    np.testing.assert_allclose(final[1:], 0.0, atol=1e-9)
    assert np.all(final[0] > moving[0])  # it went on in its direction
    assert setup.sample(end + SECOND) is None
    assert len(setup.planner.published) == 1
    assert not setup.done[-1].error


def test_empty_trajectory_of_the_future_stops_then(setup):
    setup.run([(0, 0), (1, 2)], [0, 4])
    setup.take([], [], stamp=102 * SECOND)
    old = setup.timeline.later(0)
    np.testing.assert_array_equal(setup.sample(101 * SECOND), old.at(101 * SECOND))
    end = 102 * SECOND + round(setup.settings.stop_duration * SECOND)
    assert np.abs(setup.sample(end)[1:]).max() < 1e-9


def test_stop_in_the_future_holds_for_trajectories_that_are_planned_before_it(setup):
    setup.take([(0, 0), (1, 2)], [0, 4], stamp=100 * SECOND)
    setup.take([(5, 5), (6, 6)], [7, 8])  # waits for the one before
    setup.take([], [], stamp=102 * SECOND)
    setup.plan(which=0)
    setup.plan(which=1)
    end = 102 * SECOND + round(setup.settings.stop_duration * SECOND)
    assert np.abs(setup.sample(102 * SECOND - 1)[1]).min() > 0.1
    assert np.abs(setup.sample(end)[1:]).max() < 1e-9
    assert not setup.timeline


def test_motion_that_begins_behind_another_starts_where_that_will_end(setup):
    setup.run([(0, 0), (1, 2)], [0, 2])
    setup.now += SECOND
    setup.measured = State(np.full((5, 2), 0.3), False, setup.now, 'now')
    setup.take([(3, 3)], [1.0], stamp=103 * SECOND)
    known = setup.planner.tasks[-1].known
    np.testing.assert_allclose(known.motion[0], [1, 2])
    assert not known.in_progress


def test_stop_without_duration_ends_the_stream_at_once():
    setup = Setup(stop_duration=0.0)
    setup.run([(0, 0), (1, 2)], [0, 4])
    setup.now += SECOND
    setup.take([], [])
    _, stamp = setup.timeline.sample(setup.now + 1)
    assert stamp == setup.now
    assert setup.sample(setup.now + 2) is None
    assert not setup.timeline


def test_stop_without_duration_in_the_future_ends_the_stream_then():
    setup = Setup(stop_duration=0.0)
    setup.run([(0, 0), (1, 2)], [0, 4])
    motion = setup.timeline.later(0)
    setup.take([], [], stamp=102 * SECOND)
    np.testing.assert_array_equal(setup.sample(101 * SECOND), motion.at(101 * SECOND))
    np.testing.assert_array_equal(setup.sample(103 * SECOND), motion.at(102 * SECOND))
    assert setup.sample(104 * SECOND) is None
    assert not setup.planner.published


def test_end_of_a_motion_is_sent_also_when_the_next_one_has_begun(setup):
    setup.run([(0, 0), (1, 2)], [0, 1])
    setup.run([(1, 2), (5, 5)], [0, 1], stamp=101 * SECOND + SECOND // 20)
    setup.sample(100 * SECOND + SECOND // 2)
    np.testing.assert_array_equal(setup.sample(101 * SECOND + SECOND // 2)[0], [1, 2])
    assert setup.sample(101 * SECOND + SECOND // 2)[0, 0] > 1.0


def test_empty_trajectory_overtakes_those_that_wait_to_be_planned(setup):
    setup.run([(0, 0), (1, 2)], [0, 4])
    setup.now += SECOND
    setup.take([(1, 1), (3, 3)], [1, 2])
    setup.take([(1, 1), (4, 4)], [1, 2])
    late = setup.planner.tasks[-1]
    setup.take([], [])
    texts = [plan.remarks[-1].split()[-1] for plan in setup.done[1:]]
    assert texts == ['one.', 'one.', 'rest.']
    motion = setup.timeline.later(0).motion
    planned = PlannedMotion(NAMES, motion, setup.now + SECOND, 4)
    setup.stream.on_plan(Plan(late.number, planned), setup.at)
    assert len(setup.timeline._motions) == 2  # the old one and the stop
    assert len(setup.planner.tasks) == 2


def test_empty_trajectory_at_rest_stops_what_would_start_later(setup):
    setup.run([(0, 0), (1, 2)], [0, 4], stamp=200 * SECOND)
    setup.take([], [])
    assert not setup.timeline
    assert not setup.done[-1].error


def test_jump_of_time_drops_motions_also_those_that_are_being_planned(setup):
    setup.run([(0, 0), (1, 2)], [0, 4])
    setup.take([(1, 1), (3, 3)], [1, 2])
    late = setup.planner.tasks[-1]
    assert setup.stream.clear('time jumped')
    planned = PlannedMotion(NAMES, _motion(), 101 * SECOND, 4)
    setup.stream.on_plan(Plan(late.number, planned), setup.at)
    assert not setup.timeline
    assert setup.timeline.state(setup.now) is None
    assert setup.done[-1].error == 'time jumped'


def _motion() -> PiecewiseMotion:
    return plan_motion(Waypoints(NAMES, [0.0, 1.0], [[0, 0], [1, 1]]), NAMES).motion


def test_robot_with_other_joints_drops_motions_and_plans(setup):
    setup.run([(0, 0), (1, 2)], [0, 4])
    setup.take([(1, 1), (3, 3)], [1, 2])
    assert setup.follow(('c',), False)
    assert not setup.timeline
    assert 'other joints' in setup.done[-1].error


def test_trajectories_wait_for_the_first_robot(setup):
    setup.follow(None, True)
    setup.take([(0, 0), (1, 2)], [0, 1])
    assert not setup.planner.tasks
    setup.follow(NAMES, False)
    assert len(setup.planner.tasks) == 1


def test_trajectories_that_wait_in_vain_are_refused(setup):
    setup.follow(None, True)
    setup.take([(0, 0), (1, 2)], [0, 1])
    setup.follow(None, False)
    assert 'no robot model' in setup.done[-1].error
    setup.take([(0, 0), (1, 2)], [0, 1])
    assert len([plan for plan in setup.done if 'no robot model' in plan.error]) == 2


def test_motion_after_the_end_of_another_begins_where_that_has_ended(setup):
    setup.run([(0, 0), (1, 2)], [0, 1])
    setup.now += 3 * SECOND
    assert setup.sample(setup.now) is not None  # the end
    setup.run([(3, 3)], [2.0])
    np.testing.assert_allclose(setup.sample(setup.now)[0], [1, 2])
    np.testing.assert_allclose(setup.sample(setup.now + 2 * SECOND)[0], [3, 3])


def test_measured_state_counts_before_the_end_of_the_last_motion(setup):
    setup.run([(0, 0), (1, 2)], [0, 1])
    setup.now += 3 * SECOND
    setup.sample(setup.now)
    motion = np.zeros((5, 2))
    motion[0] = 7.0, 8.0
    setup.measured = State(motion, False, setup.now, 'as measured')
    setup.take([(3, 3)], [2.0])
    np.testing.assert_array_equal(setup.planner.tasks[-1].known.motion[0], [7, 8])


def test_motions_that_wait_for_their_time_are_bounded():
    timeline = Timeline()
    for number in range(MOST_PENDING + 1):
        timeline.add(PlannedMotion(NAMES, _motion(), number * 10 * SECOND, 4))
    with pytest.raises(HodynError, match='wait already'):
        timeline.add(PlannedMotion(NAMES, _motion(), 10**6 * SECOND, 4))


def test_motion_that_will_not_begin_any_more_is_named(setup):
    setup.run([(0, 0), (1, 2)], [0, 4], stamp=200 * SECOND)
    setup.run([(0, 0), (1, 2)], [0, 4], stamp=150 * SECOND)
    assert setup.done[-1].remarks[-1] == 'It replaces 1 that had not begun.'


def test_end_of_a_motion_counts_more_than_what_was_measured_before_it(setup):
    setup.run([(0, 0), (1, 2)], [0, 1])
    setup.measured = State(np.full((5, 2), 0.3), False, setup.now, 'as measured')
    setup.now += 3 * SECOND
    setup.sample(setup.now)
    setup.take([(3, 3)], [2.0])
    np.testing.assert_array_equal(setup.planner.tasks[-1].known.motion[0], [1, 2])


def test_stop_that_is_sent_again_and_again_takes_no_longer(setup):
    setup.run([(0, 0), (1, 2)], [0, 4])
    setup.now += SECOND
    end = setup.now + round(setup.settings.stop_duration * SECOND)
    while setup.now < end:
        setup.take([], [])
        setup.sample(setup.now)
        setup.now += SECOND // 50
    assert np.abs(setup.sample(end)[1:]).max() < 1e-9
    assert len(setup.planner.published) == 1


@pytest.mark.parametrize('has_stamp', [False, True])
def test_only_a_trajectory_with_a_stamp_can_be_over_before_it_is_planned(setup, has_stamp):
    setup.follow(None, True)
    setup.take([(0, 0), (1, 2)], [0, 1], stamp=setup.now if has_stamp else 0)
    arrival = setup.now
    setup.now += 10 * SECOND
    setup.follow(NAMES, False)
    assert setup.planner.tasks[-1].now == (setup.now if has_stamp else arrival)
    setup.plan(which=0)
    if not has_stamp:
        np.testing.assert_array_equal(setup.sample(setup.now)[0], [0, 0])


@pytest.mark.parametrize(
    ('ahead', 'waits', 'duration', 'begins'),
    [
        (0, 1.9, 0.0, True),
        (0, 2.1, 0.0, False),
        (0, 9.0, 8.0, True),
        (5, 6.9, 0.0, True),
        (5, 7.1, 0.0, False),
    ],
)
def test_trajectory_whose_plan_is_late_by_more_than_planning_never_begins(
    setup, ahead, waits, duration, begins
):
    stamp = setup.now + ahead * SECOND if ahead else 0
    setup.take([(0, 0), (1, 2)], [0, 20], stamp=stamp)
    setup.waited += waits
    setup.plan(takes=waits, duration=duration)
    assert bool(setup.timeline) is begins
    assert [plan.kind for plan in setup.done if plan.error] == ([] if begins else ['stale'])


def test_what_waits_too_long_is_dropped_at_once_with_a_word(setup):
    setup.take([(0, 0), (1, 2)], [0, 1])
    setup.waited += 1.0
    setup.take([(1, 2), (2, 2)], [0, 1])
    setup.waited += 1.5
    assert setup.stream.waiting(setup.at) == (2, 2.5)
    setup.stream.drop_overdue(True, setup.at)  # a long one is being planned
    assert setup.done == []
    setup.stream.drop_overdue(False, setup.at)
    assert 'has waited for 2.5 s' in setup.done[-1].error
    assert len(setup.planner.tasks) == 2  # it is the turn of the next one
    setup.waited += 0.6
    setup.stream.drop_overdue(False, setup.at)
    assert [plan.kind for plan in setup.done if plan.error] == ['stale'] * 2
    assert setup.stream.waiting(setup.at) == (0, 0.0)


def test_planning_that_takes_long_is_said_and_what_is_for_now_gets_too_old(setup):
    setup.take([(0, 0), (1, 2)], [0, 20])
    said = []
    for _ in range(44):
        setup.waited += 0.25
        said.append(setup.stream.long_planning(setup.at))
        setup.stream.drop_overdue(True, setup.at)
    after = [0.25 * (k + 1) for k, text in enumerate(said) if text]
    assert after == [2.0, 4.0, 8.0]
    assert (
        'not planned yet, 2.0 s after it came. Older than 10 s it does not begin' in said[7]
    )
    (refused,) = setup.done
    assert (refused.kind, refused.planned) == ('stale', None)
    assert 'Send fewer points, or a stamp' in refused.error
    setup.plan(duration=11.0)  # it comes all the same
    assert not setup.timeline
    # One with a stamp is as late as it is.
    setup.take([(0, 0), (1, 2)], [0, 20], stamp=setup.now)
    setup.waited += 11.0
    setup.stream.drop_overdue(True, setup.at)
    assert 'Older' not in setup.stream.long_planning(setup.at)
    setup.plan(duration=11.0)
    assert setup.timeline


def test_time_until_the_planner_has_the_robot_does_not_count(setup):
    setup.waited += 100.0
    setup.stream.drop_overdue(True, setup.at, is_ready=False)
    setup.take([(0, 0), (1, 2)], [0, 20])
    for _ in range(20):
        setup.waited += 0.25
        setup.stream.drop_overdue(False, setup.at, is_ready=False)
    assert 'is still being made ready' in setup.stream.long_planning(setup.at, False)
    setup.waited += 1.9
    setup.stream.drop_overdue(False, setup.at)
    assert setup.done == []
    setup.waited += 0.2
    setup.stream.drop_overdue(False, setup.at)
    assert 'has waited for 2.1 s' in setup.done[0].error


def test_trajectories_behind_a_long_one_are_not_begun_late_but_a_stop_is(setup):
    setup.run([(0, 0), (1, 2)], [0, 20])
    setup.take([(0, 0), (1, 2)], [0, 1])
    setup.take([(5, 5)], [1.0])
    setup.take([], [], stamp=setup.now + SECOND)
    setup.waited += 3.0
    setup.stream.drop_overdue(True, setup.at)
    assert setup.stream.waiting(setup.at)[0] == 2
    assert 'has waited for 3.0 s' in setup.done[-1].error
    setup.stream.drop_overdue(False, setup.at)
    assert setup.stream.waiting(setup.at)[0] == 0
    assert len(setup.planner.published) == 1  # the motion to rest


@pytest.mark.parametrize(
    'derivatives', [(0.7, 15.0, 500.0), (0.5, -10.0, -300.0), (1.5, 0.0, 0.0)]
)
def test_stop_keeps_limits_where_another_duration_does(derivatives):
    model = RobotModel.from_urdf(share_file('urdf/panda.urdf'))
    limits = motion_limits(model, FRANKA)
    state = np.zeros((5, 7))
    state[0] = [0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8]
    state[1:4, 6] = derivatives
    motion = stop_within(limits, state, 0.5)
    np.testing.assert_allclose(motion(0.0)[:4], state[:4], rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(motion(motion.end_time)[1:], 0.0, atol=1e-6)
    samples = np.abs(motion(np.linspace(0.0, motion.end_time, 1001)))
    most = np.maximum(
        (limits.velocity, limits.acceleration, limits.jerk), np.abs(state[1:4])
    )
    excess = (samples[:, 1:4] / most).max()
    at_once = np.abs(stop_motion(state, 0.5)(np.linspace(0.0, 0.5, 1001)))
    assert excess <= max(1.0 + 1e-3, 0.7 * (at_once[:, 1:4] / most).max())
    if derivatives[1] == 0.0:
        assert motion.duration == 0.5


def test_every_state_is_reached_and_every_event_leads_somewhere():
    states = {state for state, _ in TRANSITIONS} | set(TRANSITIONS.values())
    assert states == {IDLE, FOLLOWING, JOINING, STOPPING, LOST}
    reached = {IDLE}
    for _ in states:
        reached |= {
            after for (before, _), after in TRANSITIONS.items() if before in reached
        }
    assert reached == states


def test_states_of_a_motion_that_is_joined_and_stopped(setup):
    assert setup.stream.state == IDLE
    setup.run([(0, 0), (1, 2)], [0, 4])
    assert setup.stream.state == FOLLOWING
    setup.now += SECOND
    setup.take([(1, 1), (3, 3)], [1, 2])
    assert setup.stream.state == JOINING
    setup.plan()
    assert setup.stream.state == FOLLOWING
    setup.now += SECOND
    setup.take([], [])
    setup.sample(setup.now)
    assert setup.stream.state == STOPPING
    setup.now += SECOND
    setup.sample(setup.now)
    assert setup.stream.state == IDLE


def test_motion_goes_on_if_the_one_that_should_continue_it_is_refused(setup):
    setup.run([(0, 0), (1, 2)], [0, 4])
    setup.now += SECOND
    setup.take([(1, 1), (3, 3)], [1, 2])
    setup.stream.on_plan(
        Plan(setup.planner.tasks[-1].number, None, error='too hard'), setup.at
    )
    assert setup.stream.state == FOLLOWING
    assert setup.done[-1].error == 'too hard'
    assert setup.timeline.state(setup.now).in_progress


def test_trajectory_that_comes_while_a_motion_is_brought_to_rest_follows_it(setup):
    setup.run([(0, 0), (1, 2)], [0, 4])
    setup.now += SECOND
    setup.take([], [])
    setup.now += SECOND // 10
    setup.sample(setup.now)
    setup.take([(1, 1), (3, 3)], [1, 2])
    setup.plan(takes=0.01)
    assert setup.stream.state == STOPPING  # until the new one begins
    join = setup.done[-1].planned.first
    size = np.abs(setup.timeline.state(join).motion).max(axis=1)
    assert np.all(derivative_jumps(setup.timeline, join) <= 1e-5 * size)
    setup.sample(join)
    assert setup.stream.state == FOLLOWING


def test_end_of_the_old_motion_within_the_lead_is_waited_for(setup):
    setup.run([(0, 0), (1, 2)], [0, 1])
    setup.now += SECOND - SECOND // 100
    setup.take([(1, 2), (2, 2)], [0, 1])
    task = setup.planner.tasks[-1]
    assert not task.known.in_progress
    np.testing.assert_allclose(task.known.motion[0], [1, 2])
    assert task.start == task.known_time >= 101 * SECOND
    setup.plan(takes=0.5)
    begin = setup.done[-1].planned.first
    assert begin >= setup.now  # however late: nothing of it is left out
    np.testing.assert_allclose(setup.done[-1].planned.at(begin)[:2], [[1, 2], [0, 0]])


def test_stamped_motion_from_a_known_rest_is_planned_again_until_it_is_in_time(setup):
    setup.measured = State(np.zeros((5, 2)), False, setup.now, 'as measured')
    setup.take([(0, 0), (1, 2)], [0, 1], stamp=setup.now)
    setup.plan(takes=0.3)
    assert not setup.planner.accepted
    setup.plan(takes=0.3)
    (motion,) = setup.timeline._motions
    assert motion.first >= setup.now
    np.testing.assert_array_equal(motion.at(motion.first), np.zeros((5, 2)))


def test_controller_has_motions_and_stops_before_their_first_point():
    setup = Setup(has_controller=True)
    leads = setup.stream.leads
    setup.run([(0, 0), (1, 2)], [0, 4])
    assert setup.timeline.later(0).first == setup.now + round(leads.delivery * SECOND)
    setup.now += SECOND
    setup.take([], [])
    (stop,) = setup.planner.published
    assert stop.first == setup.now + round(leads.of_stop * SECOND)
    before = setup.timeline.state(setup.now).motion
    np.testing.assert_array_equal(setup.sample(setup.now), before)  # the old one goes on


def test_leads_grow_with_late_deliveries_and_shrink_again():
    leads = Leads(has_controller=True)
    first = leads.delivery
    leads.note_delivery(0.1)
    assert leads.delivery > 0.2
    leads.note_delivery(5.0)
    assert leads.delivery == 10.0 + motion_stream.LEAD_IN
    assert leads.of_stop == 0.1 + motion_stream.LEAD_IN  # which is sent at once
    for _ in range(50):
        leads.note_delivery(0.001)
    assert 0.0 < leads.delivery < first


@pytest.mark.parametrize('ahead', [-3600, 0, 3600])
def test_stop_stops_whatever_its_stamp_says(setup, ahead):
    setup.run([(0, 0), (1, 2)], [0, 4])
    setup.now += SECOND
    setup.take([], [], stamp=setup.now + ahead * SECOND)
    end = setup.now + round(setup.settings.stop_duration * SECOND)
    np.testing.assert_allclose(setup.sample(end)[1:], 0.0, atol=1e-9)
    assert bool(setup.done[-1].warnings) is (ahead > 0)
    assert not setup.done[-1].error


def observe(setup, position, seconds):
    """Let time pass with the robot at a position; return what is said at the end."""
    said = ''
    for _ in range(round(100 * seconds)):
        setup.now += SECOND // 100
        setup.sample(setup.now)
        said = said or setup.stream.observe(np.array(position, dtype=float), setup.now)
    return said


def test_robot_that_does_not_follow_is_lost_and_the_next_motion_begins_where_it_is(setup):
    setup.run([(0, 0), (1, 2)], [0, 1])
    said = observe(setup, [0.0, 0.0], 1.0)
    assert 'does not follow: b stands still while its motion goes on' in said
    assert setup.stream.state == LOST
    assert setup.sample(setup.now) is None
    assert not setup.timeline
    setup.measured = State(np.zeros((5, 2)), False, setup.now, 'as measured')
    setup.take([(0, 0), (1, 2)], [0, 1])
    np.testing.assert_array_equal(setup.planner.tasks[-1].known.motion[0], [0, 0])
    setup.plan()
    assert setup.stream.state == FOLLOWING


def test_controller_has_two_motions_at_most_that_have_not_begun():
    """It falls back with each; of those that come meanwhile the newest is planned then."""
    setup = Setup(has_controller=True)
    setup.run([(0, 0), (1, 2)], [0, 1])
    setup.now += SECOND // 5
    assert setup.sample(setup.now) is not None
    for number in range(5):
        setup.take([(1 + number, 2)], [1])
        if number < motion_stream.MOST_AHEAD:
            setup.plan()
        setup.now += SECOND // 1000
        setup.sample(setup.now)
    assert len(setup.planner.accepted) == 1 + motion_stream.MOST_AHEAD
    assert setup.stream.waiting(setup.at)[0] == 1
    tasks = len(setup.planner.tasks)
    setup.now += SECOND // 5
    setup.sample(setup.now)
    assert len(setup.planner.tasks) == tasks + 1
    setup.plan()
    assert setup.timeline.state(setup.now + 3 * SECOND).motion[0, 0] == 5.0


def test_stop_does_not_wait_for_motions_that_have_not_begun():
    setup = Setup(has_controller=True)
    setup.run([(0, 0), (1, 2)], [0, 1])
    setup.now += SECOND // 5
    for number in range(motion_stream.MOST_AHEAD):
        setup.run([(number, 2)], [1])
    setup.take([(7, 7)], [1])
    assert setup.stream.waiting(setup.at)[0] == 1
    setup.take([], [])
    assert len(setup.planner.published) == 1


@pytest.mark.parametrize('ahead', [1.0, 3600.0])
def test_stop_cancels_what_a_controller_has_and_has_not_begun(ahead):
    setup = Setup(has_controller=True)
    stamp = setup.now + round(ahead * SECOND)
    setup.run([(0.2, 0.1), (1, 2)], [0, 1], stamp=stamp)
    setup.take([], [])
    (stop,) = setup.planner.published
    assert stop.first <= setup.now + SECOND // 10
    np.testing.assert_allclose(
        stop.at(stop.last), np.eye(5)[:, :1] * [0.2, 0.1], atol=1e-12
    )
    assert setup.timeline.later(stop.last) is None
    setup.now += SECOND
    setup.sample(setup.now)
    assert setup.sample(setup.now) is None
    assert setup.stream.state == IDLE


def test_motions_far_ahead_keep_nothing_waiting():
    setup = Setup(has_controller=True)
    for hours in range(1, 4):
        setup.take([(0, 0), (1, 2)], [0, 1], stamp=setup.now + hours * 3600 * SECOND)
        setup.plan()
    setup.run([(0, 0), (1, 2)], [0, 1])
    assert len(setup.planner.accepted) == 4


def test_what_waits_is_refused_when_the_robot_is_lost(setup):
    setup.run([(0, 0), (1, 2)], [0, 1])
    setup.take([(1, 2), (3, 3)], [0, 1])
    assert observe(setup, [0.0, 0.0], 1.0)
    assert 'does not follow' in setup.done[-1].error
    assert setup.stream.waiting(setup.at) == (0, 0.0)


def test_robot_that_lags_for_a_short_time_or_a_short_way_follows(setup):
    setup.run([(0, 0), (1, 2)], [0, 1])
    setup.now += SECOND // 2
    there = setup.timeline.state(setup.now).motion[0]
    assert not observe(setup, there - 0.3, 0.15)
    there = setup.timeline.state(setup.now).motion[0]
    assert not setup.stream.observe(there - 0.1, setup.now)
    assert setup.stream.state == FOLLOWING


def test_trajectory_for_a_robot_that_is_away_begins_where_it_is_measured(setup):
    """Before it is lost: what is planned is not where it is."""
    setup.run([(0, 0), (1, 2)], [0, 1])
    setup.now += SECOND // 2
    assert not observe(setup, [0.0, 0.0], 0.1)
    assert setup.stream.state == FOLLOWING
    setup.measured = State(np.zeros((5, 2)), False, setup.now, 'as measured')
    assert 'does not follow: b is farther' in setup.take([(0, 0), (1, 2)], [0, 1])
    assert setup.stream.state == LOST
    assert not setup.timeline
    setup.plan()
    np.testing.assert_array_equal(setup.planner.tasks[-1].known.motion[0], [0, 0])
    assert setup.stream.state == FOLLOWING
    assert setup.take([(0, 0), (1, 2)], [0, 1]) == ''


def test_robot_that_stands_still_near_its_motion_is_lost_soon(setup):
    """Its controller was switched off at a time when it was slow."""
    setup.run([(0, 0), (0.4, 0.6)], [0, 3])
    setup.now += SECOND // 2
    begin, there = setup.now, setup.timeline.state(setup.now).motion[0]
    while not setup.stream.observe(there, setup.now):
        setup.now += SECOND // 100
    assert setup.now - begin < 6 * SECOND // 10
    assert 'b stands still' in setup.stream.why_lost


def test_trajectory_for_a_robot_that_has_just_been_held_begins_where_it_is(setup):
    setup.run([(0, 0), (0.4, 0.6)], [0, 1])
    setup.now += SECOND // 2
    there = setup.timeline.state(setup.now).motion[0]
    assert not observe(setup, there, 0.12)
    setup.measured = State(
        np.vstack([there, np.zeros((4, 2))]), False, setup.now, 'measured'
    )
    assert 'stands still' in setup.take([(0, 0), (1, 2)], [0, 1])


def test_measurements_that_come_again_say_nothing_new(setup):
    """Joint states at 5 Hz."""
    setup.run([(0, 0), (1, 2)], [0, 2])
    for _ in range(19):
        setup.now += SECOND // 10
        seen = setup.timeline.state(setup.now).motion[0], setup.now
        for _ in range(10):
            assert not setup.stream.observe(*seen)
    assert setup.stream.state == FOLLOWING


@pytest.mark.parametrize('takes', [0.0, 0.005, 0.02, 0.1, 0.2])
def test_trajectories_from_rest_one_after_the_other_join(takes):
    """The second is asked for before the first, which has been taken, begins."""
    setup = Setup(has_controller=True)
    setup.run([(0, 0), (0, 0)], [0, 0.001])
    setup.now += SECOND
    setup.sample(setup.now)
    setup.take([(1, 1)], [0.5])
    setup.take([(-1, -1)], [0.5])
    setup.plan(which=-2)
    setup.plan(takes=takes)
    while setup.stream.waiting(setup.at)[0]:
        setup.plan()
    first = setup.done[-1].planned.first
    jumps = derivative_jumps(setup.timeline, first)
    assert max(jumps[:3]) < 1e-6


def test_stop_of_a_robot_that_is_away_stops(setup):
    setup.run([(0, 0), (1, 2)], [0, 1])
    setup.now += SECOND // 2
    assert not observe(setup, [0.0, 0.0], 0.1)
    assert setup.take([], []) == ''
    assert setup.done[-1].planned is not None


def test_robot_that_is_not_to_be_watched_is_never_lost():
    setup = Setup(path_tolerance=0.0)
    setup.run([(0, 0), (1, 2)], [0, 1])
    assert not observe(setup, [9.0, 9.0], 0.9)


def test_robot_that_is_no_longer_to_be_watched_is_not_away(setup):
    setup.run([(0, 0), (1, 2)], [0, 1])
    setup.now += SECOND // 2
    assert not observe(setup, [0.0, 0.0], 0.1)
    setup.settings.path_tolerance = 0.0
    assert not observe(setup, [0.0, 0.0], 0.1)
    assert setup.take([(0, 0), (1, 2)], [0, 1]) == ''


def test_continuous_joint_is_where_it_is_after_a_turn(setup):
    setup.follow(NAMES, False, ('continuous', 'revolute'))
    setup.run([(0, 0), (0.01, 0.01)], [0, 1])
    assert not observe(setup, [2.0 * np.pi, 0.0], 0.9)
    setup.run([(0.01, 0.01), (0, 0)], [0, 1])
    assert observe(setup, [0.0, 2.0 * np.pi], 0.9)


def test_chunk_gives_way_to_a_newer_one(setup):
    setup.run([(0, 0), (1, 2)], [0, 4])
    for _ in range(3):
        setup.take([(0, 0), (1, 2)], [0, 1], topic=CHUNK)
    assert setup.stream.waiting(setup.at)[0] == 2
    assert setup.done[-1].topic == CHUNK
    assert not setup.done[-1].error
