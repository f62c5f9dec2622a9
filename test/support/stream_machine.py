"""Whatever is sent, stopped, switched off or killed in any order: a machine of such events."""

import numpy as np
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from support.stream_world import SECOND, World

POSITIONS = st.lists(st.tuples(*[st.integers(-7, 7)] * 2), min_size=1, max_size=3)
GAPS = st.integers(5, 12)  # tenths of a second between waypoints
# Lead, the time in which a motion is brought to rest, and planning, all at their longest.
SETTLED = 4.0  # s
LATEST_LOSS = 0.5  # s, once the motion is far away from a robot that stands still
# Of the trapezoids by which samples are judged. Between two samples the snap may have a kink, at a
# knot of a short and steep piece: 0.022 was seen. A step of 7 % of the snap is seen for certain.
EXACT = [1e-6, 1e-6, 1e-4, 3e-2]


def check(world):
    """What holds at every instant."""
    assert not world.broken
    assert not world.late, 'the controller had a trajectory after its stamp'


def check_samples(world):
    """Samples are continuous up to the snap, with derivatives that are those of the samples."""
    assert (world.defects() <= EXACT).all(), world.defects()


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
        self.world.stop(0 if ahead is None else self.world.now + ahead * SECOND)

    @rule()
    def stop_and_wait(self):
        """A stop stops: then nothing moves any more, nor will it."""
        self.world.stop()
        self.world.pass_time(SETTLED)
        assert self.world.state in ('idle', 'lost')
        assert not self.world.velocity.any()
        assert not self.world.samples[-1]

    @rule(tenths=st.integers(1, 10))
    def wait(self, tenths):
        self.world.pass_time(0.1 * tenths)

    @rule()
    def switch_off_and_wait(self):
        """The robot no longer follows: what is still streamed is not far from where it stands."""
        world = self.world
        before = len(world.samples)
        world.deactivate()
        world.pass_time(LATEST_LOSS)
        run = world.samples[-1]
        if run and len(world.samples) == before:
            away = [np.abs(x[0] - world.position).max() for _, x in run[-500:]]
            assert min(away) <= world.settings.path_tolerance
        world.activate()

    @rule()
    def restart_controller(self):
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
        self.world.jump_back(seconds)

    @rule(count=st.integers(2, 30))
    def flood(self, count):
        """Trajectories that replace each other every ten milliseconds."""
        for number in range(count):
            self.world.send([(0.01 * number, -0.01 * number)], [1.0])
            self.world.pass_time(0.01)

    @rule(speed=st.sampled_from([0.0, 0.1, 0.5]), tenths=st.integers(1, 5), goal=POSITIONS)
    def slow_down(self, speed, tenths, goal):
        """The controller slows down or stands for a while, in which a trajectory comes."""
        world = self.world
        world.scale(speed)
        world.pass_time(0.03)
        world.send([np.array(goal[0]) / 10.0], [0.8])
        world.pass_time(0.1 * tenths)
        world.scale(1.0)

    @invariant()
    def guarantees(self):
        check(self.world)

    def teardown(self):
        check_samples(self.world)


def run_in_any_order(number, examples, steps):
    """Run as many machines, each with as many steps, of a seed.

    What a few steps show is shown at once, without a search for fewer.
    """
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=tuple(Phase) if steps > 20 else (Phase.generate,),
    )
    own = type('Machine', (Machine,), {})
    run_state_machine_as_test(seed(number)(own), settings=chosen)
