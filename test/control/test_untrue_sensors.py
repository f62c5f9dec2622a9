"""What a law does with encoders that stand still, and with samples that nobody told of.

The robot is that of Pinocchio, which shares no code with the law.
"""

import numpy as np
import pytest
from support import control_simulation
from support.control_cases import HOME, MOTION, Condition, PointToPoint
from support.followed import AT_REST, FLOATING, Followed, T, law, resting

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import (
    ControlWarning,
    GravityCompensation,
    GuardedController,
    Guards,
    make_controller,
    tracking_controller,
)
from hodyn_ros.errors import ControlError
from hodyn_ros.simulation import ElasticPlant

OTHERWISE = pytest.param(
    Condition(stiffness=-0.2, payload=2.0), id='another robot', marks=pytest.mark.every_case
)
STRIBECK = {'coulomb': 1.0, 'breakaway': 1.5}


@pytest.fixture(scope='module')
def panda():
    return control_simulation.panda()


class Standing:
    """Encoders that stand still from a time on."""

    def __init__(self, motors, begin):
        self.motors, self.begin, self.values = list(motors), round(begin / T), None

    def __call__(self, robot):
        if robot.k >= self.begin:
            if self.values is None:
                self.values = robot.theta[self.motors]
            robot.theta[self.motors] = self.values


class Lost:
    """Encoders of motors that slip, or do not answer, from a time on, for good."""

    def __init__(self, motors, begin, way):
        self.motors, self.begin, self.way = list(motors), round(begin / T), way

    def __call__(self, robot):
        if robot.k >= self.begin:
            robot.theta[self.motors] += self.way


def is_held_by_its_link(robot, motor, said='stands still', speed=1.7):
    """Whether it is, and the robot is brought to rest by it."""
    assert f"motor 'panda_joint{motor + 1}'" in robot.law.reason
    assert said in robot.law.reason
    assert 'held by the position of its link, and brakes must close' in robot.law.reason
    assert robot.reasons[-1] == robot.law.reason
    assert robot.speed < speed
    return max(robot.speeds[-300:])


@pytest.mark.parametrize('motor', [0, 1])
@pytest.mark.parametrize('condition', [Condition(), OTHERWISE])
def test_motor_encoder_that_stands_still_leaves_its_joint_to_its_link(
    panda, motor, condition
):
    robot = Followed(law(panda), condition=condition).run(1.6, Standing([motor], 0.6))
    assert is_held_by_its_link(robot, motor) < 0.4


def test_robot_without_any_motor_encoder_does_not_run_away(panda):
    robot = Followed(law(panda)).run(2.0, Standing(range(7), 0.6))
    assert is_held_by_its_link(robot, 0, speed=2.5) < 1.5


@pytest.mark.parametrize('way', [np.nan, 0.5])
@pytest.mark.parametrize('motors', [[0], [3], range(7)])
@pytest.mark.parametrize('condition', [Condition(), OTHERWISE])
def test_joints_whose_motor_encoders_are_lost_are_braked_by_their_links(
    panda, way, motors, condition
):
    """They coasted, with the weight alone, and nobody asked for brakes."""
    robot = Followed(law(panda), condition=condition).run(1.6, Lost(motors, 0.6, way))
    assert is_held_by_its_link(robot, min(motors), 'cannot be true', 1.2) < 0.5
    with pytest.raises(ControlError, match='its measured positions cannot be true'):
        robot.law.release()


@pytest.mark.parametrize('how', ['led', 'at rest', 'gives way', 'stopped'])
def test_nor_does_it_where_the_robot_does_not_follow_a_motion(panda, how):
    options = {'guards': Guards(reactions=FLOATING)} if how == 'gives way' else {}
    kind = {'kind': GravityCompensation, 'damping': 0.5} if how == 'led' else {}
    robot = Followed(law(panda, **kind, **options), resting).run(0.1)
    if how == 'stopped':
        robot.law.stop('Asked for.')
    motor = 1 if how == 'stopped' else 3
    robot.run(1.0, Standing([motor], 0.1))
    assert is_held_by_its_link(robot, motor, speed=3.0) < 1.0


@pytest.mark.parametrize('condition', [Condition(), Condition(stiffness=-0.2, **STRIBECK)])
def test_motor_that_a_brake_holds_is_not_taken_for_one_without_encoder(panda, condition):
    robot = Followed(law(panda), condition=condition).run(0.6)
    robot.locks = True
    robot.run(0.4)
    assert 'drive error' in robot.law.reason
    assert not robot.law.observer.doubted.any()


def test_motors_that_stick_are_not_taken_for_those_without_encoder(panda):
    """Slow, with pushes: each motor stands still for many samples."""
    slow = PointToPoint((HOME, MOTION([1.3])[0, 0]), (0.0, 20.0))
    robot = Followed(law(panda), slow, Condition(**STRIBECK))

    def push(robot):
        robot.plant.force[:] = 0.0, 30.0 * np.sin(6.0 * robot.k * T), 0.0

    robot.run(1.2, push)
    assert not robot.law.reason


def test_encoder_that_counts_backwards_leaves_its_motor_to_link_and_brakes(panda):
    """It moves, so that nothing doubts it, until its spring would carry more than any can."""
    begin = []

    def turned_round(robot):
        begin.append(robot.theta[3])
        robot.theta[3] = 2.0 * begin[0] - robot.theta[3]

    controller = law(panda, guards=Guards(stop_duration=0.05))
    robot = Followed(controller, resting).run(0.1)
    controller.stop('Asked for.')
    robot.plant.force[:] = 0.0, 0.0, 20.0
    robot.run(0.02)
    robot.plant.force[:] = 0.0
    robot.run(0.8, turned_round)
    assert is_held_by_its_link(robot, 3, 'cannot be true', 5.0) < 5.0
    with pytest.raises(ControlError, match='could not bring it to rest'):
        controller.release()


@pytest.mark.parametrize('joints', [[4], [6], [1, 4], range(7)])
@pytest.mark.parametrize('stiffness', [1000.0, 5000.0])
def test_links_whose_encoders_are_lost_stay_with_their_motors(panda, joints, stiffness):
    """The state of a light link that nothing measured grew without bounds."""
    springs = dict.fromkeys(panda.joint_names, SeriesElastic(stiffness, 0.5))
    drives = Actuators(panda, springs)
    controller = tracking_controller(drives, T, torque_limits=[87.0] * 4 + [12.0] * 3)
    plant = ElasticPlant(panda, drives, time_step=1e-4)
    plant.reset(AT_REST[0])
    for k in range(1500):
        q = plant.q.copy()
        q[joints] += np.nan if k > 200 else 0.0
        command = controller.evaluate(AT_REST, q, None, plant.theta, None)
        plant.step(command.torque, steps=10)
    names = [f"joint 'panda_joint{joint + 1}' one after" for joint in joints]
    assert names[0] in controller.reason
    assert np.abs(plant.q - AT_REST[0]).max() < 1e-2
    assert np.abs(plant.qd).max() < 1e-2


def test_law_that_is_called_twice_says_so_and_the_torque_stays(panda):
    robot, said = Followed(law(panda)), set()

    def twice(robot):
        if robot.k % 20 == 10 and robot.k > 200:
            given = robot.motion([robot.k * T + robot.law.lead])[0], *before
            said.add(robot.law.evaluate(*given).reason)
        before[:] = robot.q.copy(), None, robot.theta.copy(), None
        robot.elapsed = T

    before = []
    robot.run(1.0, twice)
    assert len(said) == 1
    assert 'called twice' in said.pop()
    assert robot.rms < 0.01
    assert not robot.law.reason


class Untold(Followed):
    """A robot whose law misses samples, and is not told."""

    def _answer(self):
        if self.elapsed is not None:
            self.missing = 0
        super()._answer()


@pytest.mark.parametrize('samples', [1, 4, 8])
def test_samples_that_nobody_told_of_are_found_in_the_motion_and_said(panda, samples):
    robot, remarks = Untold(law(panda)), []

    def burst(robot):
        if robot.k % 100 < samples and robot.k > 300:
            robot.elapsed = None

    evaluate = robot.law.evaluate

    def noted(*given, **more):
        remarks.append((command := evaluate(*given, **more)).remark)
        return command

    robot.law.evaluate = noted
    robot.run(1.0, burst)
    assert not robot.law.reason
    assert robot.rms < 0.3
    expected = f'{(samples + 1) * T:.3g} s since the measurement before'
    assert any(expected in remark for remark in remarks)


def test_long_gap_that_nobody_told_of_is_called_by_its_name(panda):
    def gap(robot):
        if 600 <= robot.k < 630:
            robot.elapsed = None

    robot = Untold(law(panda)).run(1.0, gap)
    assert 'give elapsed where samples are missing. (max_gap)' in robot.law.reason
    assert robot.speed < 1.2


def test_stop_of_a_robot_that_touches_something_has_no_way_on(panda):
    ways = []
    for touches in (False, True):
        robot = Followed(law(panda)).run(0.6)
        begin = robot.state[2].copy()
        robot.law.stop('Asked for.', touches=touches)
        robot.run(0.15)
        ways.append(np.abs(robot.state[2] - begin).max())
    assert ways[1] < 0.7 * ways[0]


def test_glitch_of_a_link_that_is_small_is_taken_for_the_one_expected(panda):
    def glitch(robot):
        if robot.k == 700:
            robot.q[1] += 0.005

    robot = Followed(law(panda)).run(0.75, glitch)
    assert robot.law.observer.gated == 1
    assert max(robot.rates) < 1000.0


def with_sensors(robot, wrong):
    """Let the law have torque sensors, with what is added to them by the number of a sample."""
    evaluate = robot.law.evaluate

    def measured(*given, **more):
        torque = robot.plant.stiffness * (robot.state[2] - robot.state[0])
        return evaluate(*given, spring_torque=torque + wrong(robot.k), **more)

    robot.law.evaluate = measured
    return robot


@pytest.mark.parametrize('value', [np.nan, 60.0])
def test_torques_of_a_sensor_that_cannot_be_true_are_bridged_and_then_stop_the_robot(
    panda, value
):
    """A spring that is softer than known makes the sensor differ from the deflection anyway."""

    def wrong(k):
        is_wrong = k > 820 or (k % 100 < 3 and k >= 100)
        return np.where((np.arange(7) == 3) & is_wrong, value, 0.0)

    softer = Condition(stiffness=-0.2, damping=0.5)
    runs = [
        with_sensors(Followed(law(panda), condition=softer), given).run(0.8)
        for given in (lambda k: np.zeros(7), wrong)
    ]
    assert not runs[1].law.reason
    assert runs[1].law.observer.gated == 21
    assert max(runs[1].rates) < 1.2 * max(runs[0].rates)
    robot = runs[1].run(0.4)
    assert "5 torques of the sensor of joint 'panda_joint4'" in robot.law.reason
    assert robot.speed < 1.1
    assert max(robot.run(2.4).speeds[-50:]) < 0.05
    with pytest.raises(ControlError, match='torque sensor of panda_joint4 cannot be true'):
        robot.law.release()


def test_limits_that_nobody_knows_are_said_and_those_of_the_description_count(panda):
    """A law with infinite torques is not one of a robot whose measurements may be anything."""
    drives = Actuators(panda, dict.fromkeys(panda.joint_names, SeriesElastic(1000.0, 0.5)))
    inner = make_controller(panda, 'feed_forward_2', drives, bandwidth=20.0)
    assert np.isinf(inner.torque_limits).all()
    guarded, q = GuardedController(inner, T), AT_REST[0].copy()
    theta = guarded.resting(q)
    before = guarded.evaluate(AT_REST, q, None, theta, None).torque
    for wrong in (q, theta):
        wrong[3] += 1e4
        np.testing.assert_allclose(
            guarded.evaluate(AT_REST, q, None, theta, None).torque, before, atol=0.1
        )
        wrong[3] -= 1e4
    limits = panda.limits
    where = np.arange(7) == 1
    limits = limits._replace(
        velocity=np.where(where, 0.0, limits.velocity),
        effort=np.where(where, np.inf, limits.effort),
    )
    unknown = panda.changed(limits=limits)
    drives = Actuators(unknown, drives.by_joint)
    said = 'velocity of panda_joint2 and the torque of panda_joint2: wrong measurements'
    with pytest.warns(ControlWarning, match=said):
        tracking_controller(drives, T, torque_limits=np.inf)


def test_robot_that_is_led_by_hand_is_in_motion_for_a_gap_and_one_at_rest_is_not(panda):
    """Whatever motion is wanted, at which the law does not look."""
    for moves in (False, True):
        led = Followed(law(panda, kind=GravityCompensation, damping=0.5), MOTION)
        led.state = led.plant.at_rest(AT_REST[0])
        led.run(0.2)
        led.plant.force[:] = 0.0, 0.0, 15.0 * moves
        led.run(0.3)

        def gap(robot):
            robot.elapsed = None if robot.k < 570 else T

        led.run(0.1, gap)
        assert ('max_gap' in led.law.reason) == moves


@pytest.mark.every_case
@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_infinite_positions_are_bridged_like_nan_where_no_limit_is_known(value):
    model = RobotModel.from_urdf('two_link')
    drives = Actuators(model, {'elbow': SeriesElastic(2000.0, 0.5)})
    law = tracking_controller(drives, 1e-3, torque_limits=np.inf)
    links, motors = np.zeros(2), law.resting(np.zeros(2))
    for number in range(20):
        noise = 1e-7 * np.sin(number) * np.array([1.0, 0.0])
        before = law.evaluate(np.zeros((5, 2)), links + noise, None, motors, None).torque
    wrong = motors.copy()
    wrong[1] = value
    torque = law.evaluate(np.zeros((5, 2)), links, None, wrong, None).torque
    np.testing.assert_allclose(torque, before, atol=0.1)
    assert not law.reason
