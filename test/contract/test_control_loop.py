"""A robot under the control loop: it follows, is held, stopped, and moves on when it may.

The robot is Spong's equations by Pinocchio; trajectories, faults and forces come at any time.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.robots import HEAVIER_TWO_LINK
from support.stream_host import (
    DRIVE,
    PERIOD,
    START,
    ControlledRobot,
)

from hodyn_ros.errors import ControlError, HodynError, ModelError, MotionError, StaleError

# The laws warn of what the tests want.
pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning')

LIMIT, SPEED = 2.0, 3.0  # of the robot description
REST = 0.1  # rad/s; the springs have no damping
VIOLENT = START + [2.0, 0.0]  # if it is to be there in 0.2 s
AWAY = START + [0.8, -0.8]
SLIP = np.array([[0.5, 0.0], [0.0, 0.0]] * 2)  # of the encoders of the shoulder
ELBOW = (30.0, 4.0)  # N m, of shoulder and elbow
MS = 1_000_000


def errors(answers):
    return np.array([answer.error for answer in answers])


def torques(answers):
    return np.array([answer.command.torque for answer in answers])


def test_robot_is_held_against_its_weight_and_follows_a_trajectory_to_its_end():
    robot = ControlledRobot(rests=0.0)
    held = robot.run(0.1)
    np.testing.assert_array_equal(held[0].error, 0.0)
    weight = robot.plant.weight(START)
    np.testing.assert_allclose(torques(held), np.tile(weight, (100, 1)), rtol=1e-6)
    robot.send(AWAY)
    way = robot.run(1.1)
    assert np.abs(errors(way)).max() < 1e-5  # the robot is the one that the law knows
    np.testing.assert_allclose(robot.q[-1], AWAY, atol=1e-6)
    # Answers are references beside what was measured: from rest to rest, without a step.
    reference = errors(way) + robot.q[-1100:]
    steps = np.diff(reference, axis=0)
    assert np.abs(np.diff(steps, 3, axis=0)).max() < 1e-6
    assert robot.why == ''


def test_heavier_robot_without_velocities_is_led_to_its_goal_all_the_same():
    robot = ControlledRobot(HEAVIER_TWO_LINK, has_velocities=False)
    robot.send(START + [0.6, -0.3])
    robot.run(0.5)
    assert np.abs(robot.sample().error).max() < 5e-3
    robot.run(1.0)
    assert not robot.why
    np.testing.assert_allclose(robot.q[-1], START + [0.6, -0.3], atol=1e-3)


def test_robot_that_cannot_follow_is_stopped_until_it_rests_and_is_sent_elsewhere():
    robot = ControlledRobot()
    robot.send(VIOLENT, seconds=0.2)
    robot.run_until_stopped(push=[-60.0, 0.0])
    bounds = ('max_tracking_error', 'velocity_margin', 'max_drive_error')
    assert any(bound in robot.why for bound in bounds)
    with pytest.raises(ControlError, match='does not move on yet'):
        robot.send(START)
    with pytest.raises(ControlError, match='The robot has been stopped'):
        robot.control.check_reference()
    with pytest.raises(ControlError, match='has been stopped'):
        robot.set(controller='joint_impedance')
    robot.run(2.0)
    # It stays within its limits, rests, and is held against its weight.
    assert abs(robot.q).max() < LIMIT
    assert abs(robot.qd[-100:]).max() < REST
    assert np.ptp(robot.q[-500:], axis=0).max() < 2e-3
    robot.run(0.05, push=[40.0, 0.0])
    with pytest.raises(ControlError, match='shoulder still moves'):
        robot.send(START)
    robot.run(1.2)
    rested = len(robot.record)
    robot.send(START, seconds=1.5)
    robot.run(1.7)
    np.testing.assert_allclose(robot.q[-1], START, atol=1e-3)
    assert abs(robot.qd[rested:]).max() < SPEED
    assert robot.control.report()['stops'] == '1' and not robot.why


@pytest.mark.every_case
@pytest.mark.parametrize('law', ['tracking', 'feed_forward_2', 'flatness'])
@pytest.mark.parametrize(('row', 'value'), [(0, 0.7), (1, 9.0)])
def test_few_bad_samples_neither_stop_nor_jerk_the_robot_and_more_do(law, row, value):
    robot, other = (ControlledRobot(controller=law) for _ in range(2))
    for each in (robot, other):
        each.send(START + 0.3)
        each.run(0.3)
    bad = np.zeros((4, 2))
    bad[row::2, 0] = value
    for _ in range(2):
        for _ in range(4):  # of five that it takes, one after the other
            found = robot.sample(bad).command.torque, other.sample().command.torque
            np.testing.assert_allclose(*found, atol=0.05)
        for each in (robot, other):
            each.run(0.05)
    assert not robot.why
    for _ in range(5):
        robot.sample(bad)
    assert ('shoulder' in robot.why) == (row == 0)  # speeds are known without a measurement
    robot.run(1.2)
    assert abs(robot.qd[-1]).max() < REST


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('row', 'text'),
    [
        (0, 'elastic_state: the position of shoulder is nan'),
        (1, 'elastic_state: the velocity of shoulder is nan'),
        (2, 'elastic_state: the motor_position of shoulder is nan'),
    ],
)
def test_measurements_that_are_no_numbers_are_refused_and_count_as_lost(row, text):
    robot = ControlledRobot()
    robot.send(AWAY)
    robot.run(0.2)
    bad = np.zeros((4, 2))
    bad[row, 0] = math.nan
    for count in (10, 60):
        for _ in range(count):
            with pytest.raises(MotionError, match=text):
                robot.measure(bad)
            assert robot.control.answer_newest() is None
            robot.lose(1)
        assert not robot.why
        robot.run(0.01)
    assert 'no measurement was answered' in robot.why
    robot.run(0.9)
    assert abs(robot.qd[-1]).max() < REST
    assert robot.control.report()['stops'] == '1'


def test_sensor_that_slips_stops_the_robot_where_it_is_until_an_empty_trajectory():
    robot = ControlledRobot()
    robot.run(0.01, change=SLIP)
    assert "positions of joint 'shoulder' one after the other cannot be true" in robot.why
    robot.control.begin_anew('time jumped back')
    robot.stamp = 10**8
    robot.run(1.0, change=SLIP)
    # The sensor has slipped, not the robot.
    np.testing.assert_allclose(robot.q[-1], START, atol=0.02)
    assert robot.why
    robot.send()
    robot.run(0.2, change=SLIP)
    assert not robot.why
    np.testing.assert_allclose(robot.q[-1], START, atol=0.02)


def test_robot_that_was_silent_while_its_trajectory_went_on_does_not_rush_after_it():
    robot = ControlledRobot()
    robot.send(AWAY)
    robot.run(0.4)
    begin, robot.stamp = len(robot.record), robot.stamp + 2 * 10**9
    robot.run(1.0)
    assert 'no measurement was answered for 2' in robot.why
    assert abs(robot.qd[begin:]).max() < 1.2 * abs(robot.qd[:begin]).max()
    assert abs(robot.qd[-1]).max() < REST


def test_stop_that_saturates_does_not_pull_the_robot_back_from_afar():
    weak = {**DRIVE, 'max_motor_torque': 14.0}
    robot = ControlledRobot(drive=weak, max_tracking_error=0.1, stop_duration=0.05)
    robot.send(START + [1.2, 0.0], seconds=0.8)
    robot.run_until_stopped(push=[6.0, 0.0])
    answers = robot.run(2.0)
    largest = np.abs(torques(answers)).max()
    assert largest == 14.0  # more than that the motor cannot do
    assert np.abs(errors(answers)).max() < 0.1 + 1e-9
    assert abs(robot.qd[-1]).max() < REST and abs(robot.q).max() < LIMIT


def test_motor_that_is_at_its_limit_for_long_stops_the_robot():
    weak = {**DRIVE, 'max_motor_torque': 14.0}
    robot = ControlledRobot(drive=weak, max_tracking_error=10.0, max_drive_error=20.0)
    weight = robot.plant.weight(START)[0]
    robot.run_until_stopped(push=[-np.sign(weight) * (16.0 - abs(weight)), 0.0])
    at_limit = np.abs([torque for *_, torque in robot.record]).max(axis=1) == 14.0
    assert 'torque limit for 0.2' in robot.why and 200 <= at_limit.sum() < 250


def test_law_that_diverges_is_stopped_by_another_one():
    # Exact linearisation with a tool that it does not know.
    robot = ControlledRobot(HEAVIER_TWO_LINK, controller='flatness', bandwidth=15.0)
    robot.send(START + 0.8)
    robot.run_until_stopped()
    robot.run(1.5)
    assert abs(robot.qd[-200:]).max() < REST and abs(robot.q).max() < LIMIT


def test_motor_whose_encoder_stands_still_is_left_to_the_weight_of_its_links():
    robot = ControlledRobot()
    robot.send(AWAY)
    robot.run(0.4)
    stands, change = robot.state[2, 0], np.zeros((4, 2))
    for _ in range(600):
        change[2, 0] = stands - robot.state[2, 0]
        robot.sample(change=change)
    assert "encoder of motor 'shoulder' stands still" in robot.why
    assert 'brakes must close' in robot.why
    assert abs(robot.qd).max() < 3.0 * SPEED


def lost(robot):
    for _ in range(10):  # bridged
        robot.run(0.02)
        robot.lose(2)
    assert not robot.why
    robot.lose(60)
    robot.sample()


def hit(robot):
    robot.run(0.4)
    assert not robot.why
    robot.run(0.3, force=[0.0, 6.0])


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('happens', 'why'), [(lost, 'no measurement'), (hit, 'external torque of elbow')]
)
def test_lost_measurements_and_collisions_stop_it_until_it_is_sent_on(happens, why):
    robot = ControlledRobot(max_external_torque=ELBOW)
    robot.send(AWAY, seconds=1.5)
    happens(robot)
    assert why in robot.why
    robot.run(1.2)
    moved = (robot.q[-1] - START) * [1.0, -1.0]
    assert (moved > 0.01).all() and (moved < 0.79).all()  # it rests on the way
    assert abs(robot.qd[-1]).max() < REST
    robot.send(AWAY)
    robot.run(1.3)
    assert not robot.why
    np.testing.assert_allclose(robot.q[-1], AWAY, atol=1e-3)


def test_robot_that_collides_may_float_until_the_next_trajectory():
    robot = ControlledRobot(collision_reaction='float', max_external_torque=(0.0, ELBOW[1]))
    robot.send(AWAY, seconds=1.5)
    robot.run(0.4)
    robot.run(0.1, force=[0.0, 8.0])
    assert 'external torque of elbow' in robot.why
    robot.run(0.8)
    led = robot.q[-1]
    robot.run(0.3, force=[0.0, 1.0])
    assert robot.q[-1][1] - led[1] > 0.02  # it gives way
    robot.run(1.5)
    robot.send(START)
    assert not robot.why


def test_laws_are_changed_at_rest_without_a_step():
    robot = ControlledRobot(tool_link='tool', joint_stiffness=60.0)
    force = np.array([2.0, 1.0])
    robot.run(1.0, force=force)
    for law in (
        'joint_impedance',
        'cartesian_impedance',
        'gravity_compensation',
        'tracking',
    ):
        before = robot.record[-1][2]
        robot.set(controller=law)
        answer = robot.sample(force=force)
        np.testing.assert_allclose(answer.command.torque, before, atol=0.1)
        robot.run(0.02 if law == 'gravity_compensation' else 0.6, force=force)
    assert not robot.why
    # The observer, which was never at a loss, tells the force.
    observed = robot.control.observed(robot.stamp - PERIOD)
    np.testing.assert_allclose(observed.external_torque, force, rtol=0.2)
    robot.send(AWAY)
    robot.run(0.5)
    with pytest.raises(ControlError, match='at rest, but .* still moves'):
        robot.set(controller='gravity_compensation')


def test_impedance_yields_by_its_stiffness():
    robot = ControlledRobot(controller='joint_impedance', joint_stiffness=(50.0, 20.0))
    robot.run(1.2, force=[2.5, 1.0])
    moved = robot.q[-1] - START
    np.testing.assert_allclose(moved, [2.5 / 50.0, 1.0 / 20.0], rtol=0.05)


def test_robot_that_is_led_by_hand_takes_no_motion_and_is_held_where_it_was_led():
    robot = ControlledRobot()
    robot.set(controller='gravity_compensation')
    robot.run(0.5, force=[2.0, 1.0])
    assert robot.q[-1, 1] - START[1] > 0.05 and not robot.why
    for move in (robot.control.check_reference, lambda: robot.send(AWAY)):
        with pytest.raises(ControlError, match='The robot is led by hand'):
            move()
    robot.run(1.0)
    with pytest.raises(ControlError, match='set without_reference to hold first'):
        robot.set(controller='tracking', without_reference='stop')
    robot.set(controller='tracking')
    np.testing.assert_array_equal(robot.sample().error, 0.0)


def test_stop_of_a_robot_that_is_led_by_hand_ends_with_an_empty_trajectory():
    robot = ControlledRobot()
    robot.set(controller='gravity_compensation')
    robot.run_until_stopped(force=[30.0, 0.0])
    robot.run(1.2)
    with pytest.raises(ControlError, match='has been stopped'):
        robot.set(controller='tracking')
    with pytest.raises(ControlError, match='The robot is led by hand'):
        robot.send(AWAY)
    robot.send()
    robot.run(0.05)
    assert not robot.why
    robot.set(controller='tracking')


def test_law_that_cannot_keep_its_period_commands_nothing_until_it_can():
    robot = ControlledRobot()
    robot.send(AWAY)
    robot.run(0.3)
    with pytest.raises(ControlError, match='gets no commands, so that its brakes close'):
        for _ in range(40):  # every other one is lost
            robot.sample()
            robot.lose(1)
    assert 'sample_period is 0.001 s' in robot.why
    robot.state = robot.plant.at_rest(robot.state[0])  # by its brakes
    for period, is_slow in ((2, True), (1, False)):
        for _ in range(40):
            robot.stamp += period * PERIOD
            robot.measure()
            with pytest.raises(ControlError, match='gets no commands'):
                robot.control.answer_newest()
        if is_slow:
            with pytest.raises(ControlError, match=r'does not move on yet: .*0\.002 s'):
                robot.send(AWAY)
    robot.send(AWAY)
    robot.run(1.2)
    np.testing.assert_allclose(robot.q[-1], AWAY, atol=1e-3)


def test_stream_of_references_goes_on_by_its_derivatives_and_is_then_brought_to_rest():
    robot = ControlledRobot(reference_timeout=0.05)
    rows = np.zeros((5, 2))
    rows[0], rows[1], rows[2], rows[3], rows[4] = START, 0.2, -1.0, 4.0, 100.0
    begin = robot.stamp
    robot.control.take_reference(rows, begin)
    reference = errors(robot.run(0.049)) + robot.q[-49:]
    t = 1e-3 * np.arange(49)[:, None]
    taylor = sum(rows[k] * t**k / math.factorial(k) for k in range(5))
    np.testing.assert_allclose(reference, taylor, atol=1e-7)
    robot.run(0.7)
    assert abs(robot.qd[-1]).max() < 1e-3
    assert (robot.q[-1] > taylor[-1]).all() and not robot.why
    with pytest.raises(StaleError, match='older than the measurements'):
        robot.control.take_reference(rows, begin)
    rows[1] = 1e3
    with pytest.raises(MotionError, match='velocity of shoulder'):
        robot.control.take_reference(rows, robot.stamp)


def test_without_a_reference_or_with_stale_measurements_there_is_no_command():
    robot = ControlledRobot(rests=0.0, without_reference='stop')
    with pytest.raises(StaleError, match='There is no reference'):
        robot.sample()
    with pytest.raises(StaleError, match='There is no measurement yet'):
        ControlledRobot(rests=0.0).send(AWAY)
    robot = ControlledRobot(rests=0.0, measurement_timeout=0.1)
    for late, text in ((1000, '0.999 s in the past|1.000 s'), (130, 'too much to do')):
        robot.host.time = robot.stamp + late * MS
        with pytest.raises(StaleError, match=text):
            robot.sample()
    robot.host.time = robot.stamp + MS
    assert robot.sample().stamp == robot.stamp - PERIOD
    robot.host.time = robot.stamp + 500 * MS
    with pytest.raises(StaleError):
        robot.sample()


def test_only_the_newest_of_several_measurements_is_answered():
    robot = ControlledRobot()
    for _ in range(3):
        robot.stamp += PERIOD
        robot.measure()
    assert robot.control.answer_newest().stamp == robot.stamp
    assert robot.control.answer_newest() is None
    assert robot.host.diagnostics.count(('dropped', 'elastic_state')) == 2


def test_time_that_jumps_back_ends_the_motion_and_stamps_of_before_are_taken():
    robot = ControlledRobot()
    robot.send(AWAY)
    robot.run(0.1)
    robot.control.begin_anew('time jumped back')
    (text,) = robot.host.texts('error')
    assert text == 'The running trajectory is stopped: time jumped back.'
    robot.stamp = 10**8
    assert np.isfinite(robot.sample().command.torque).all()


def test_what_no_law_can_do_is_refused_and_changes_nothing():
    robot = ControlledRobot(rests=0.0, controller='cartesian_impedance')
    assert 'cartesian_impedance needs tool_link' in robot.control.preparation.error
    with pytest.raises(ModelError):
        robot.control.ready()
    robot = ControlledRobot()
    with pytest.raises(HodynError, match="no link 'hand'"):
        robot.set(tool_link='hand')
    with pytest.raises(HodynError, match='with a bandwidth|bandwidth'):
        robot.set(bandwidth=1e4)
    np.testing.assert_allclose(robot.sample().command.torque, robot.record[0][2], rtol=1e-6)


EVENTS = ('wait', 'push', 'slip', 'gap', 'move', 'jump', 'empty', 'silence')


@given(st.lists(st.sampled_from(EVENTS), max_size=12))
def test_in_any_order_a_stopped_robot_stays_stopped_until_a_trajectory_is_taken(events):
    robot = ControlledRobot(
        drive={**DRIVE, 'max_motor_torque': 80.0}, max_external_torque=9.0
    )
    slips = False
    for event in events:
        before, is_taken = robot.why, False
        if event == 'slip':
            slips = not slips
        elif event == 'gap':
            robot.lose(70)
        elif event == 'silence':
            robot.stamp += 10**9
        elif event == 'jump':
            robot.control.begin_anew('time jumped')
            robot.stamp -= 10**8
        elif event in ('move', 'empty'):
            try:
                robot.send(*([AWAY] if event == 'move' else []))
                is_taken = True
            except HodynError as refused:
                assert before and 'does not move on yet' in str(refused)
        force = [15.0, -15.0] if event == 'push' else [0.0, 0.0]
        try:
            answers = robot.run(0.04, force=force, change=SLIP * slips)
        except ControlError:
            answers = []
            assert robot.why
        assert not answers or np.abs(torques(answers)).max() <= 80.0
        assert is_taken or robot.why or not before
    assert abs(robot.q).max() < LIMIT
