"""Whatever is sent, stopped, switched off or killed in any order: what is guaranteed holds."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from support.stream_world import SECOND, SWING, Delays, World

from hodyn_ros.streams.motion_stream import IDLE, LOST, STOPPING

POSITIONS = st.lists(st.tuples(*[st.integers(-7, 7)] * 2), min_size=1, max_size=3)
GAPS = st.integers(5, 12)  # tenths of a second between waypoints
# Lead, the time in which a motion is brought to rest, and planning, all at their longest.
SETTLED = 4.0  # s
LATEST_LOSS = 0.5  # s, once the motion is far away from a robot that stands still


def check(world):
    """What holds at every instant."""
    largest = world.largest
    assert largest['joint'] <= 1e-9, 'a motion begins elsewhere than the one before is'
    assert largest['away'] <= SWING, 'what is commanded is not what the stream plans'
    assert largest['effort'] <= 1.05, 'an effort is beyond its limit and the motions'
    assert not world.late, 'the controller had a trajectory after its stamp'


class Machine(RuleBasedStateMachine):
    """Users, controllers and planners that do anything in any order."""

    def __init__(self):
        super().__init__()
        self.world = World()

    @rule(
        positions=POSITIONS, gap=GAPS, begins_here=st.booleans(), ahead=st.integers(-5, 20)
    )
    def send(self, positions, gap, begins_here, ahead):
        """A trajectory; of those with a stamp some are late and some far ahead."""
        world = self.world
        waypoints = [np.array(item) / 10.0 for item in positions]
        times = [0.1 * gap * (number + 1) for number in range(len(waypoints))]
        if begins_here:
            waypoints, times = [world.position, *waypoints], [0.0, *times]
        has_stamp = ahead % 3 == 0
        world.send(waypoints, times, world.now + ahead * SECOND // 10 if has_stamp else 0)

    @rule(ahead=st.sampled_from([None, -3600, 0, 1, 3600]))
    def stop(self, ahead):
        """A stop, whatever its stamp says."""
        world = self.world
        world.stop(0 if ahead is None else world.now + ahead * SECOND)

    @rule()
    def stop_and_wait(self):
        """A stop stops: then nothing moves any more, nor will it."""
        self.world.stop()
        self.world.pass_time(SETTLED)
        assert self.world.stream.state in (IDLE, LOST)
        assert not self.world.velocity.any()
        assert not self.world.stream.timeline

    @rule(tenths=st.integers(1, 10))
    def wait(self, tenths):
        """Time goes on."""
        self.world.pass_time(0.1 * tenths)

    @rule()
    def switch_off_and_wait(self):
        """The robot no longer follows: nothing more is sent, and it is known."""
        world = self.world
        moving = world.stream.timeline.under_way(world.now)
        world.deactivate()
        world.pass_time(LATEST_LOSS)
        planned = world.stream.timeline.under_way(world.now)
        if planned is not None and planned is moving:
            # What is still sent has not gone far from where the robot stands.
            before = max(planned.first, world.now - SECOND // 2)
            away = [
                np.abs(planned.at(time)[0] - world.position).max()
                for time in np.linspace(before, world.now, 20).astype(int)
            ]
            assert min(away) <= world.settings.path_tolerance
        world.activate()

    @rule()
    def restart_controller(self):
        """It is off and on again within a cycle."""
        self.world.deactivate()
        self.world.activate()

    @rule()
    def kill_planner(self):
        self.world.kill_planner()

    @rule()
    def hang_planner(self):
        self.world.hang_planner()

    @rule(seconds=st.sampled_from([0.01, 5.0]))
    def jump_back(self, seconds):
        """The clock is set back."""
        self.world.jump_back(seconds)

    @rule(count=st.integers(2, 30))
    def flood(self, count):
        """Trajectories that replace each other every ten milliseconds: the newest wins."""
        world = self.world
        for number in range(count):
            world.send([(0.01 * number, -0.01 * number)], [1.0])
            world.pass_time(0.01)

    @invariant()
    def guarantees(self):
        """What holds at every instant."""
        check(self.world)


def run(cls, examples, steps):
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    run_state_machine_as_test(cls, settings=chosen)


@pytest.mark.parametrize('number', range(2))
def test_guarantees_hold_in_any_order_of_events(number):
    run(seed(number)(type('Short', (Machine,), {})), examples=8, steps=25)


@pytest.mark.slow
@pytest.mark.parametrize('number', range(5))
def test_guarantees_hold_over_ten_thousand_steps(number):
    run(seed(100 + number)(type('Long', (Machine,), {})), examples=100, steps=100)


@pytest.mark.parametrize('busy', [False, True])
def test_trajectories_that_replace_each_other_when_the_old_one_is_nearly_over(busy):
    """As `found`: without stamps, their predecessor ending 5 to 80 ms later."""
    slow = Delays(planning=150_000_000) if busy else None
    world, rng = World(seed=3, delays=slow), np.random.default_rng(4)
    for _ in range(20):
        world.send([world.position, rng.uniform(-0.5, 0.5, 2)], [0.0, 0.8])
        while world.stream.waiting(world.at)[0]:
            world.pass_time(0.01)
        last = world.stream.timeline._motions[-1].last
        world.pass_time((last - world.now) / SECOND - rng.uniform(0.005, 0.08))
    world.pass_time(SETTLED)
    check(world)
    assert world.sent >= 20
    assert not any(plan.error for plan in world.done)


def test_newest_of_many_is_what_the_robot_does_in_the_end():
    world = World(seed=5)
    for number in range(40):
        world.send([(0.01 * number, 0.3)], [0.8])
        world.pass_time(0.005)
    world.pass_time(SETTLED)
    check(world)
    np.testing.assert_allclose(world.position, [0.39, 0.3], atol=1e-6)


def test_robot_whose_controller_is_switched_off_is_lost_and_starts_where_it_stands():
    world = World(seed=6)
    world.send([(0.7, 0.5)], [1.0])
    world.pass_time(0.5)
    world.deactivate()
    there = world.position
    world.pass_time(0.5)
    assert world.stream.state == LOST
    world.activate()
    world.pass_time(0.1)
    world.send([(0.0, 0.0)], [2.0])
    world.pass_time(0.1)
    (motion,) = world.stream.timeline._motions
    np.testing.assert_allclose(motion.at(motion.first)[0], there)
    world.pass_time(SETTLED)
    check(world)
    np.testing.assert_allclose(world.position, 0.0, atol=1e-6)


def test_stop_while_planning_hangs_stops_all_the_same():
    world = World(seed=7)
    world.send([(0.7, 0.5)], [2.0])
    world.pass_time(0.6)
    world.hang_planner()
    world.send([(0.0, 0.5)], [2.0])
    world.stop()
    world.pass_time(0.1)
    assert world.stream.state == STOPPING
    world.pass_time(1.0)
    assert not world.velocity.any()
    check(world)


def test_motions_that_are_sent_late_are_counted():
    """The check can fail: sending takes longer than any lead that was learned."""
    world = World(seed=8, delays=Delays(sending=400_000_000))
    world.settings = SimpleNamespace(**vars(world.settings))
    world.rng = SimpleNamespace(integers=lambda low, high: high - 1, random=lambda: 1.0)
    world.send([(0.7, 0.5)], [2.0])
    world.pass_time(1.0)
    assert world.late == 1
    world.send([(0.0, 0.5)], [2.0])
    world.pass_time(2.0)
    assert world.late == 1  # it has been learned
