"""The robot that the laws are compared on has the faults that its cases name."""

import numpy as np
import pytest

pinocchio = pytest.importorskip('pinocchio')

from support.control_cases import HOME, MOTOR_INERTIA, PERIOD, STIFFNESS  # noqa: E402
from support.elastic_cases import (  # noqa: E402
    BANDWIDTH,
    elastic_three_link,
    mixed_three_link,
    sway,
)

from benchmarks.comparison_laws import make_compared  # noqa: E402
from benchmarks.disturbed_robot import Case, Robot, follow  # noqa: E402
from hodyn_ros.control import Command  # noqa: E402

START = np.array(HOME)


class Held:
    """The weight of the start, given at all times; remembers what it was told."""

    lead, estimates = 0.0, False

    def __init__(self):
        self.torque, self.told = Robot().weight(START), []

    def evaluate(self, desired, q, qd, theta, thetad, elapsed):
        self.told.append((q.copy(), theta.copy(), elapsed))
        return Command(self.torque, self.torque)


def resting(**options):
    def motion(times):
        return np.concatenate([START[None], np.zeros((4, 7))])[None].repeat(len(times), 0)

    motion.duration = 1.0
    return Case(motion=motion, rest=0.0, **options)


def state_after(robot, torque, milliseconds, state=None):
    state = robot.at_rest(START) if state is None else state
    for _ in range(milliseconds):
        state = robot.advance(state, torque, 1e-3)
    return state


def test_robot_that_is_held_by_its_weight_rests_and_its_encoders_say_so():
    law = Held()
    run = follow(law, resting())
    assert run.peak < 1e-6 and not run.diverged
    q, theta, elapsed = law.told[-1]
    np.testing.assert_allclose(q, START, atol=2.0 * np.pi / 2**20)
    np.testing.assert_allclose(theta - q, law.torque / STIFFNESS, atol=1e-5)
    assert np.abs(theta - q).max() > 1e-3, 'springs carry the weight'
    assert elapsed == pytest.approx(PERIOD)


def test_glitch_dropped_calls_and_scaled_motors_reach_the_law():
    law = Held()
    run = follow(law, resting(dropped=0.5, motor_scale=-1.0))
    assert 0.4 < len(law.told) / len(run.torque) < 0.6
    np.testing.assert_allclose(law.told[-1][1], -START, atol=0.05)
    law = Held()
    follow(law, resting(glitch=('link', 3, 1.0)))
    off = [abs(q[3] - START[3]) > 0.5 for q, _, _ in law.told]
    assert np.flatnonzero(off).tolist() == [800]


def test_a_push_bends_the_robot_and_a_wall_holds_it_up():
    pushed = follow(Held(), resting(push=10.0))
    assert np.abs(pushed.error[:500]).max() < 1e-6 < np.abs(pushed.error[600]).max()
    height = Robot().tip(START)[0][2]
    walled = follow(Held(), resting(wall=(height + 1e-3, 1e4)))
    assert walled.force[0] == pytest.approx(10.0)
    assert walled.error[50, 1] < -1e-5, 'joint 2 leans back'


def test_drives_follow_their_current_loop_and_brakes_hold_the_motors():
    robot = Robot(Case(current_loop=100.0))
    state = robot.at_rest(START)
    before = robot.torque.copy()
    state_after(robot, before + 1.0, 5, state)
    risen = 1.0 - np.exp(-2.0 * np.pi * 100.0 * 5e-3)
    np.testing.assert_allclose(robot.torque - before, risen, rtol=1e-9)
    robot = Robot()
    robot.locked = True
    moved = state_after(robot, np.full(7, 80.0), 20)
    np.testing.assert_array_equal(moved[2], robot.at_rest(START)[2])


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_hysteresis_is_a_torque_between_motors_and_links_against_what_turns(sign):
    robot, plain = Robot(Case(hysteresis=2.0)), Robot()
    start = robot.at_rest(START)
    start[2] += 0.02 * sign
    state = state_after(robot, robot.torque, 5, start)
    found, others = (one.accelerations(*state, robot.torque) for one in (robot, plain))
    M = pinocchio.crba(robot.model, robot.data, state[0])
    M = np.triu(M) + np.triu(M, 1).T
    on_links = M @ (found[0] - others[0])
    np.testing.assert_allclose(MOTOR_INERTIA * (found[1] - others[1]), -on_links, atol=1e-9)
    # Deflections shrink.
    assert np.all(-sign * on_links > 0.5) and np.all(np.abs(on_links) <= 2.0 + 1e-9)


def test_a_rigid_robot_gets_the_computed_torque():
    case = mixed_three_link((0, 1, 2))
    motion = sway(3)(0.1)
    arguments = sway(3)(0.2), motion[0], motion[1], motion[0], motion[1]
    flat, rigid = (
        make_compared(kind, case.actuators, BANDWIDTH).command(*arguments)
        for kind in ('flatness', 'rigid_computed_torque')
    )
    np.testing.assert_allclose(flat, rigid, rtol=1e-12)


def test_motor_control_with_weight_holds_a_robot_at_rest():
    case = elastic_three_link()
    reference = np.zeros((5, 3))
    reference[0] = [0.3, -0.6, 0.4]
    state = case.state(reference[:4])
    law = make_compared('pd_gravity', case.actuators, BANDWIDTH)
    q2d, theta2d = case.plant.accelerations(*state, law.command(reference, *state))
    np.testing.assert_allclose([q2d, theta2d], 0.0, atol=1e-9)
