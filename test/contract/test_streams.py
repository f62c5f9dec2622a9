"""Streams of motions: what is sent when trajectories, stops, clocks and robots do as they like."""

import numpy as np
import pytest
from support import robots
from support.stream_machine import (
    EXACT,
    LATEST_LOSS,
    SETTLED,
    check,
    check_samples,
    run_in_any_order,
)
from support.stream_world import CHUNK, MS, SECOND, Delays, World

from hodyn_ros import HodynError, RobotModel
from hodyn_ros.streams import Instant, ScaledClock


def test_guarantees_hold_in_any_order_of_events():
    run_in_any_order(0, examples=8, steps=20)


def test_what_a_state_machine_would_not_notice_is_noticed():
    """The checks can fail: a controller that gets its motions late, samples with a step."""
    world = World(delays=Delays(sending=400 * MS, is_fixed=True))
    for goal in ((0.7, 0.5), (0.0, 0.5)):
        world.send([goal], [2.0])
        world.pass_time(1.5)
    assert world.late == 1  # it has been learned
    check_samples(world)
    stamp, motion = world.samples[-1][300]
    for k in range(5):
        peak = max(np.abs(x[k]).max() for _, x in world.samples[-1])
        step = 0.07 * peak * np.eye(5)[k][:, None]
        world.samples[-1][300] = stamp, motion + step
        assert (world.defects() > EXACT).any()


@pytest.mark.parametrize('takes', [150, 15])
def test_trajectories_that_replace_each_other_join_when_the_old_one_is_nearly_over(takes):
    world, rng = World(seed=3, delays=Delays(planning=takes * MS)), np.random.default_rng(4)
    for _ in range(6):
        world.send([world.position, rng.uniform(-0.5, 0.5, 2)], [0.0, 0.8])
        while world.waits:
            world.pass_time(0.01)
        last = world.taken[-1].planned.last
        world.pass_time((last - world.now) / SECOND - rng.uniform(0.005, 0.08))
    world.pass_time(SETTLED)
    check(world)
    check_samples(world)
    assert world.sent >= 6 and not world.refusals


def test_motion_passes_its_waypoints_at_their_times_and_ends_at_rest_once():
    world = World(has_controller=False, delays=Delays(is_fixed=True))
    begin = world.now + 60 * MS  # nothing is left out, however long planning takes
    world.send([(0, 0), (0.5, 0.2), (0.1, 0.6)], [0, 0.7, 1.5])
    world.pass_time(2.0)
    ((times, x),) = world.runs
    assert (
        round(times[0] * SECOND) == begin and round(times[-1] * SECOND) == begin + 1500 * MS
    )
    np.testing.assert_allclose(
        x[[0, 700, -1], 0], [(0, 0), (0.5, 0.2), (0.1, 0.6)], atol=1e-9
    )
    np.testing.assert_allclose(x[[0, -1], 1:], 0.0, atol=1e-7)
    check_samples(world)
    assert world.state == 'idle'


def test_stamp_of_a_trajectory_is_kept_by_what_comes_early_and_by_what_comes_late():
    for ahead in (1000 * MS, -100 * MS):
        world = World(has_controller=False)
        world.send([(0, 0), (0.5, 0.2), (0.1, 0.6)], [0, 0.7, 1.5], world.now + ahead)
        end = world.now + ahead + 1500 * MS
        world.pass_time(3.0)
        ((times, x),) = world.runs
        assert abs(times[-1] * SECOND - end) < MS
        np.testing.assert_allclose(x[-1, 0], [0.1, 0.6], atol=1e-9)


def test_new_motion_joins_the_one_in_progress_without_a_jump_up_to_the_snap():
    for is_stop in (False, True):  # a stop as well
        world = World()
        world.send([(0.8, 0.4), (0, 0.6)], [1, 2])
        world.pass_time(0.7)
        world.stop() if is_stop else world.send([(0.5, 0.5), (1, 1)], [0.5, 1.5])
        while len(world.taken) < 2:
            world.pass_time(0.001)
        new = world.taken[-1].planned
        before, behind = (world.look(new.first + ns) for ns in (-1, 1))
        size = np.abs(before).max(axis=1)
        # The fifth derivative may jump, so over two nanoseconds the fourth changes by some 1e-6.
        assert (np.abs(behind - before).max(axis=1) <= 1e-5 * size).all()
        assert np.abs(before[1:3]).min(axis=1).all()


def test_old_motion_goes_on_until_the_stamp_of_the_new_one():
    world = World(has_controller=False)
    world.send([(0.4, 0.8)], [4])
    alone = World(has_controller=False)
    alone.send([(0.4, 0.8)], [4])
    world.send([(0.5, 0.5)], [1], world.now + 3 * SECOND)
    for played in (world, alone):
        played.pass_time(5)
    begin = world.taken[1].planned.first
    both = zip(world.samples[0], alone.samples[0])
    assert all(np.array_equal(a, b) for (t, a), (_, b) in both if t < begin)
    np.testing.assert_allclose(world.position, [0.5, 0.5], atol=1e-9)
    check_samples(world)


def test_newer_motion_replaces_all_that_would_begin_later():
    world = World()
    for goal, ahead in ((0.3, 4), (0.5, 3), (0.2, 1)):
        world.send([(goal, goal)], [1], world.now + ahead * SECOND)
        world.pass_time(0.2)
    assert world.plans[-1].remarks == ('It replaces 1 that had not begun.',)
    world.pass_time(SETTLED)
    np.testing.assert_allclose(world.position, 0.2, atol=1e-6)
    check(world)


def test_newest_of_many_is_what_the_robot_does_in_the_end():
    world = World(seed=5)
    for number in range(40):
        world.send([(0.01 * number, 0.3)], [0.8])
        world.pass_time(0.005)
    world.pass_time(SETTLED)
    check(world)
    check_samples(world)
    np.testing.assert_allclose(world.position, [0.39, 0.3], atol=1e-6)
    remarks = [plan.remarks[0] for plan in world.plans if plan.planned is None]
    assert remarks and {'overtaken' in text for text in remarks} == {True}


def test_chunks_of_a_policy_are_followed_within_limits_and_the_newest_wins():
    given = {name: {'acceleration': 6.0, 'jerk': 150.0} for name in ('shoulder', 'elbow')}
    world = World(has_controller=False, delays=Delays(planning=8 * MS), given_limits=given)
    begin = world.now

    def aim(t):
        return np.transpose([0.4 - 0.4 * np.cos(2.0 * t), 0.3 * np.sin(2.5 * t) ** 2])

    for k in range(12):
        times = 0.1 * k + np.arange(16) / 30.0
        world.send(aim(times), times - 0.1 * k, world.now, CHUNK)
        world.pass_time(0.1)
    ((times, x),) = world.runs
    assert (world.defects()[:3] <= EXACT[:3]).all()
    assert np.abs(x[300:, 0] - aim(times[300:] - begin / SECOND)).max() < 0.01
    bounds = world.limits.velocity, world.limits.acceleration, world.limits.jerk
    assert (np.abs(x[:, 1:4]).max(axis=0) <= 1.001 * np.array(bounds)).all()
    world.hang_planner()
    for _ in range(5):
        world.send(aim(times[:9]), times[:9] - times[0], world.now, CHUNK)
    assert world.waits == 2 and world.plans[-1].topic == CHUNK
    assert not world.refusals


def test_of_trajectories_for_later_the_oldest_give_way_to_a_flood():
    world = World(has_controller=False)
    world.hang_planner()
    for number in range(100):
        world.send([(0.1, 0.2)], [1], world.now + (1 + number) * SECOND)
    assert world.waits < 40
    assert len(world.refusals) + world.waits == 100
    assert all('newer trajectories' in why for why in world.refusals)
    world = World(has_controller=False, delays=Delays(planning=2 * MS))
    for number in range(70):  # planned, and to be begun later
        world.send([(0.1, 0.2)], [1], world.now + (1 + number) * SECOND)
        world.pass_time(0.005)
    assert len(world.taken) < 70
    assert all('wait already' in why for why in world.refusals)


class Slower(World):
    """A planner that takes the times that it is told, one after the other [s]."""

    def plan(self, task):
        self.delays = Delays(round(self.takes.pop(0) * SECOND), is_fixed=True)
        super().plan(task)


@pytest.mark.parametrize('takes', [(0.1, 0.1), (0.1, 0.4, 1.6, 6.4)])
def test_plan_that_comes_too_late_is_made_again_with_more_time_up_to_four_times(takes):
    world = Slower()
    world.takes = [0.001, *takes]
    world.send([(0.3, 0.2)], [60])
    world.pass_time(0.5)
    world.send([(0.2, 0.2)], [40])
    while world.waits:
        world.pass_time(0.01)
    assert world.takes == [] and world.state == 'following'
    assert len(world.taken) == (2 if len(takes) == 2 else 1)
    assert ['longer than expected' in why for why in world.refusals] == [True] * (
        len(takes) == 4
    )
    world.pass_time(0.5)
    check(world)
    check_samples(world)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('ahead', 'begins'),
    [(None, 0.0), (-3600.0, 0.0), (0.0, 0.0), (0.3, 0.28), (3600.0, 0.1)],
)
def test_stop_stops_in_its_time_whatever_its_stamp_says_and_whoever_hangs(ahead, begins):
    world = World(seed=7)
    world.send([(0.7, 0.5)], [2.0])
    world.pass_time(0.9)
    world.hang_planner()
    for _ in range(2):
        world.send([(0.0, 0.5)], [2.0])
    world.stop(0 if ahead is None else world.now + round(ahead * SECOND))
    world.pass_time(begins)
    assert world.state != 'stopping'
    there, speed = world.position, world.velocity
    world.pass_time(0.12)
    assert world.state == 'stopping' and world.waits == 0
    world.pass_time(0.51)
    assert world.state == 'idle' and not world.velocity.any()
    assert ((world.position - there) * speed > 0.0).all()  # it went on in its direction
    assert bool(world.plans[-1].warnings) is (ahead == 3600)
    check(world)
    check_samples(world)


def test_stop_for_later_stops_then_also_what_is_planned_until_then():
    world = World(has_controller=False, delays=Delays(150 * MS, is_fixed=True))
    world.send([(0.7, 0.5)], [1.5])
    world.pass_time(0.4)
    world.send([(1.2, 1.0)], [1.5])
    world.stop(world.now + SECOND)
    world.send([(0.0, 0.0)], [3.0], world.now + 5 * SECOND)
    world.pass_time(0.99)
    assert world.velocity.min() > 0.1 and (world.position > (0.7, 0.5)).all()
    world.pass_time(0.52)
    assert not world.velocity.any() and world.state != 'lost'
    check_samples(world)


def test_stop_cancels_what_a_controller_has_and_has_not_begun():
    world = World()
    world.send([(0.7, 0.5)], [1.0], world.now + SECOND)
    world.pass_time(0.3)
    world.stop()
    world.pass_time(3.0)
    np.testing.assert_allclose(world.position, 0.0, atol=1e-12)
    assert world.state == 'idle'


def test_plan_that_a_stop_has_overtaken_is_dropped_also_beside_a_newer_one():
    world = World(has_controller=False, delays=Delays(planning=50 * MS, is_fixed=True))
    world.send([(0.7, 0.5)], [1.0])
    world.pass_time(0.04)
    world.stop()
    world.send([(0.1, 0.2)], [1.0])
    world.pass_time(0.03)
    assert not world.taken and world.waits == 1
    world.pass_time(2.0)
    np.testing.assert_allclose(world.position, [0.1, 0.2], atol=1e-9)


def test_stop_without_a_duration_ends_the_stream_at_once():
    world = World(has_controller=False, stop_duration=0.0)
    world.send([(0.7, 0.5)], [1.0])
    world.pass_time(0.5)
    world.stop()
    world.pass_time(0.1)
    assert world.state == 'idle'
    (run,) = world.runs
    assert abs(run[0][-1] * SECOND - (world.now - 100 * MS)) <= MS


def test_stop_takes_another_time_where_it_would_exceed_limits():
    panda = RobotModel.from_urdf('panda')
    names = panda.joint_names
    given = {name: {'acceleration': 7.5, 'jerk': 300.0} for name in names}
    start = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8])
    found = []
    for speed in (0.1, 1.0):
        world = World(has_controller=False, model=panda, given_limits=given, start=start)
        world.send([start + [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.2 * speed]], [1.2])
        world.pass_time(0.6)
        world.stop()
        world.pass_time(2.5)
        (_, x) = world.runs[0]
        stop = world.taken[1].planned
        found.append((stop.last - stop.first) / SECOND)
        bounds = world.limits.acceleration, world.limits.jerk
        braked = x[round(stop.first / MS) - round(world.runs[0][0][0] * 1e3) :]
        for k, bound in zip((2, 3), bounds):
            assert (np.abs(braked[:, k]).max(axis=0) <= 1.001 * bound).all()
        check_samples(world)
    assert found[0] == 0.5 < found[1]


def test_robot_that_does_not_follow_is_lost_and_starts_where_it_stands():
    world = World(seed=6)
    world.send([(0.7, 0.5)], [1.0])
    world.pass_time(0.5)
    world.deactivate()
    there = world.position.copy()
    world.send([(0.3, 0.5)], [4.0], world.now + 9 * SECOND)
    world.hang_planner()
    world.send([(0.3, 0.5)], [4.0], world.now + 9 * SECOND)
    world.pass_time(LATEST_LOSS)
    assert world.state == 'lost' and 'stands still while its motion goes on' in world.said
    assert not world.samples[-1]
    assert world.refusals == [world.said] * world.refusals.count(world.said) != []
    world.activate()
    world.kill_planner()
    world.pass_time(0.1)
    world.send([(0.0, 0.0)], [2.0])
    world.pass_time(SETTLED)
    check(world)
    np.testing.assert_allclose(world.runs[-1][1][0, 0], there, atol=1e-9)
    np.testing.assert_allclose(world.position, 0.0, atol=1e-6)


def played(world, seconds):
    """Go on; return samples as executed, and what the controller desires, (N, 3, n) each."""
    rows = []
    for _ in range(round(1000 * seconds)):
        world.pass_time(0.001)
        if world.samples[-1]:
            motion, speed, desired = (
                world.samples[-1][-1][1],
                world.clock.speed,
                world.jtc.desired,
            )
            scaled = desired.positions, desired.velocities, desired.accelerations
            powers = speed ** np.arange(3.0)[:, None]
            rows.append((world.clock.executed(motion), powers * scaled))
    return np.array([x[:3] for x, _ in rows]), np.array([y for _, y in rows])


def test_motion_is_the_one_of_a_controller_that_is_slowed_down_stopped_and_goes_on():
    world = World(blends=False)
    world.send([(0.8, 0.4), (0.0, 0.6)], [1, 2])
    world.pass_time(0.3)
    executed = []
    for speed, seconds in ((0.3, 0.5), (0.0, 1.0), (1.0, 0.3), (0.5, 3.0)):
        world.scale(speed)
        begin = world.now
        motion, desired = played(world, seconds)
        for k, size in enumerate((1e-6, 1e-4, 1e-2)):  # of polynomials of degree 5
            np.testing.assert_allclose(motion[:, k], desired[:, k], rtol=0.0, atol=size)
        assert bool(np.abs(motion[-1, 1]).max() > 1e-3) is (speed in (0.3, 1.0))
        if speed == 0.3:
            rows = [world.clock.executed(x) for _, x in world.samples[-1][-400:]]
            stamps = begin + MS * np.arange(101, 501)
            executed.append(list(zip(stamps.tolist(), rows)))
    assert world.state == 'idle' and not world.said
    np.testing.assert_allclose(world.position, (0.0, 0.6), atol=1e-9)
    check(world)
    check_samples(world)
    world.samples = executed  # whose derivatives are those in the time that passes
    check_samples(world)


@pytest.mark.every_case
@pytest.mark.parametrize('blends', [False, True])
@pytest.mark.parametrize('speed', [0.3, 0.5, 1.0])
def test_new_motion_joins_one_that_is_slowed_down_where_the_controller_is(blends, speed):
    sending = 9 * MS
    world = World(seed=8, blends=blends, delays=Delays(sending=sending, is_fixed=True))
    world.send([(0.8, 0.4), (0.0, 0.6)], [1, 2])
    world.pass_time(0.4)
    world.scale(speed)
    world.pass_time(0.3)
    world.send([(0.5, 0.5), (1.0, 1.0)], [0.5, 1.5])
    while len(world.taken) < 2 or world.at.now < world.taken[-1].planned.first:
        played(world, 0.01)
    motion, desired = played(world, 0.3)
    # Times that were sent are old when they arrive.
    bound = 1e-4 + sending / SECOND * np.abs(desired[:, 1]).max() / speed
    assert np.abs(motion[:, 0] - desired[:, 0]).max() <= bound
    assert (np.abs(motion[:, 1]).max(axis=0) > 0.2 * speed).all()
    check(world)
    check_samples(world)
    world.pass_time(6.0)
    np.testing.assert_allclose(world.position, (1.0, 1.0), atol=1e-6)


def test_stop_of_a_robot_that_stands_by_its_speed_is_executed_when_it_goes_on():
    world = World(blends=False)
    world.send([(0.8, 0.4)], [1])
    world.pass_time(0.5)
    world.scale(0.0)
    world.pass_time(3.0)
    there = world.position
    world.stop()
    world.pass_time(3.0)
    np.testing.assert_allclose(world.position, there, atol=1e-4)
    assert world.state == 'following' and not world.said
    world.scale(0.5)
    world.pass_time(1.3)
    assert world.state == 'idle' and not world.velocity.any()
    assert ((there < world.position) & (world.position < (0.8, 0.4))).all()
    check(world)


def test_delay_of_a_slow_motion_ends_with_it_and_slows_the_time_until_a_stamp():
    world = World(blends=False)
    world.scale(0.5)
    for ahead, begins in ((0.0, 0.1), (1.0, 2.0)):
        stamp = world.now + round(ahead * SECOND) if ahead else 0
        world.send([world.position, world.position + 0.3], [0.0, 1.0], stamp)
        sent, count = world.now, len(world.runs)
        while len(world.runs) == count:
            world.pass_time(0.001)
        assert world.now - sent == pytest.approx(begins * SECOND, abs=0.1 * SECOND)
        world.pass_time(3.0)
        assert world.state == 'idle' and world.clock.delay(world.now) > SECOND
    check(world)
    for percent in (-1.0, 1e6, np.nan):
        with pytest.raises(HodynError, match='from 0 to 1000'):
            world.clock.take(percent, world.now)
    world.clock.check(world.now, 0.0)
    for clock, how in ((ScaledClock(), 'has come,'), (world.clock, 'has come for')):
        with pytest.raises(HodynError, match=how):
            clock.check(world.now, 0.5)


CONTINUOUS = RobotModel.from_urdf(robots.TWO_LINK.replace('revolute', 'continuous'))


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('away', 'seconds', 'is_lost', 'options'),
    [
        (0.3, 0.15, False, {}),
        (0.1, 0.5, False, {}),
        (0.3, 0.3, True, {}),
        (2.0 * np.pi, 0.5, True, {}),
        (2.0 * np.pi, 0.5, False, {'model': CONTINUOUS}),
        (9.0, 0.5, False, {'path_tolerance': 0.0}),
    ],
)
def test_robot_is_lost_that_is_too_far_away_for_too_long(away, seconds, is_lost, options):
    world = World(has_controller=False, **options)
    world.send([(0.5, 0.5)], [2.0])
    world.pass_time(0.5)
    said = ''
    for _ in range(round(100 * seconds)):
        motion = world.look(world.now + 10 * MS)
        if motion is None:
            break
        for _ in range(3):  # measurements that come again say nothing new
            said = said or world.stream.observe(motion[0] - away, world.now)
    assert ('does not follow' in said) is is_lost is (world.state == 'lost')


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('ahead', 'waits', 'is_planned', 'begins'),
    [
        (0.0, 1.9, False, True),
        (0.0, 2.1, False, False),
        (5.0, 6.9, False, True),
        (5.0, 7.1, False, False),
        (0.0, 9.9, True, True),
        (0.0, 10.1, True, False),  # it was for now
        (0.1, 10.1, True, True),
    ],
)
def test_trajectory_that_waits_for_too_long_is_refused(ahead, waits, is_planned, begins):
    world = World(has_controller=False)
    world.hang_planner()
    world.send([(0.1, 0.2)], [1.0], world.now + round(ahead * SECOND) if ahead else 0)
    later = Instant(world.now + round(waits * SECOND), waits)
    world.stream.drop_overdue(is_planned, later)
    assert world.waits == begins
    assert len(world.plans) == (0 if begins else 1)
    assert all('not begin any more' in why for why in world.refusals)


def test_clock_that_is_set_back_drops_all_motions_and_plans_with_the_reason():
    world = World(seed=2)
    world.send([(0.7, 0.5)], [2.0])
    world.pass_time(0.5)
    world.send([(0.0, 0.5)], [2.0])
    world.jump_back(0.2)
    assert world.refusals == ['time jumped'] and world.state == 'idle'
    there = world.position.copy()
    world.pass_time(1.0)
    np.testing.assert_array_equal(world.position, there)
    assert not world.samples[-1]
    world.send([(0.1, 0.1)], [1.0])
    world.pass_time(2.0)
    np.testing.assert_allclose(world.position, [0.1, 0.1], atol=1e-6)


def test_trajectories_wait_for_a_robot_that_is_on_its_way_and_end_with_another_one():
    world = World(has_controller=False)
    world.stream.follow(None, True, world.at)
    world.send([(0.7, 0.5)], [1.0])
    world.pass_time(0.5)
    assert world.waits == 1 and not world.plans
    world.stream.follow(world, False, world.at)
    world.pass_time(0.5)
    assert world.velocity.any()
    assert world.stream.follow(None, False, world.at)  # a motion is stopped
    world.pass_time(0.1)
    assert not world.samples[-1] and world.state == 'idle'
    world.send([(0.7, 0.5)], [1.0])
    assert 'no robot model' in world.refusals[-1]


def test_way_that_is_too_hard_is_refused_and_the_motion_in_progress_goes_on():
    world = World()
    world.send([(0.7, 0.5)], [2.0])
    world.pass_time(0.5)
    world.send([(-0.7, 0.5), (0.7, 0.6)], [0.001, 0.1])
    world.pass_time(2.5)
    assert any('more than' in why for why in world.refusals)
    np.testing.assert_allclose(world.position, [0.7, 0.5], atol=1e-6)
    check_samples(world)
