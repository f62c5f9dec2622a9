"""What a law does with missing time, wrong measurements, and robots that do not follow.

The robot is that of Pinocchio, which shares no code with the law.
"""

import re

import numpy as np
import pinocchio
import pytest
from support import control_simulation, robots
from support.control_cases import (
    HOME,
    THERE,
    TORQUE_LIMITS,
    Condition,
    PointToPoint,
)
from support.followed import AT_REST, FLOATING, Followed, T, law, springs

from hodyn_ros import ModelWarning, RobotModel
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import (
    GravityCompensation,
    Guards,
    TrackingController,
    tracking_controller,
)
from hodyn_ros.errors import ControlError, MotionError


@pytest.fixture(scope='module')
def panda():
    return control_simulation.panda()


@pytest.fixture(scope='module')
def undisturbed(panda):
    return Followed(law(panda)).run(1.5)


@pytest.mark.parametrize('share', [0.05, 0.2])
def test_missing_samples_cost_next_to_nothing(panda, undisturbed, share):
    random = np.random.default_rng(1)

    def drop(robot):
        if robot.k and robot.missing < 5 and random.random() < share:
            robot.elapsed = None

    robot = Followed(law(panda)).run(1.5, drop)
    assert robot.rms < (1.5 if share == 0.05 else 3.0) * undisturbed.rms
    assert not robot.law.reason


def test_samples_that_come_at_other_times_are_taken_for_what_they_are(panda):
    """The measurement is that of another time by up to 0.3 ms."""
    random = np.random.default_rng(2)
    shift, knows = [0.0, 0.0], 1.0

    def jitter(robot):
        shift[0], shift[1] = shift[1], random.uniform(-3e-4, 3e-4)
        for row, values in ((1, robot.q), (3, robot.theta)):
            values += shift[1] * robot.state[row]
        robot.late = shift[1]
        robot.elapsed = T + (shift[1] - shift[0]) * knows

    errors = []
    for knows in (1.0, 0.0):  # noqa: B007
        shift[:] = 0.0, 0.0
        errors.append(Followed(law(panda, guards=None)).run(1.0, jitter).rms)
    assert errors[0] < 0.3 * errors[1]


@pytest.mark.parametrize(
    ('which', 'joint', 'value'),
    [
        ('q', 3, 1.0),
        ('theta', 1, 0.15),
        ('theta', 6, -0.3),
        ('q', 2, np.nan),
        ('q', 0, np.inf),
    ],
)
def test_one_wrong_position_is_taken_for_the_one_expected(
    panda, undisturbed, which, joint, value
):
    def glitch(robot):
        if robot.k == 700:
            getattr(robot, which)[joint] += value

    robot = Followed(law(panda)).run(1.5, glitch)
    assert robot.law.observer.gated == 1
    assert robot.rms < 1.2 * undisturbed.rms
    assert max(robot.rates) < 1.5 * max(undisturbed.rates)


@pytest.mark.parametrize('by', [0.1, 0.3])
def test_encoder_that_slips_stops_the_robot(panda, by):
    def slip(robot):
        if robot.k >= 700:
            robot.q[4] += by

    robot = Followed(law(panda)).run(1.3, slip)
    assert robot.law.reason == (
        "5 positions of joint 'panda_joint5' one after the other cannot be true."
    )
    assert np.abs(robot.state[1]).max() < 0.3
    assert robot.speed < 1.1
    if by == 0.3:  # no spring bears that
        with pytest.raises(ControlError, match='cannot be true'):
            robot.law.release()


def test_wall_stops_the_robot_where_it_is(panda):
    """At about 0.15 m/s, with 1e4 N/m."""
    slow = PointToPoint((HOME, THERE), (0.0, 3.6))
    robot = Followed(law(panda, guards=Guards(max_external_torque=30.0)), slow)
    model, data = robot.plant.model, robot.plant.data
    way = []

    def wall(robot):
        pinocchio.forwardKinematics(model, data, robot.state[0])
        way.append(data.oMi[7].translation[1])
        inside = max(way[-1] - way[0] - 0.1, 0.0)
        robot.plant.force[:] = 0.0, -1e4 * inside, 0.0
        if inside and not touched:
            touched.append((robot.k, robot.state[0].copy()))

    touched = []
    robot.run(3.4, wall)
    begin, place = touched[0]
    assert 0.12 < (way[begin] - way[begin - 20]) / (20 * T) < 0.3
    assert 'external torque' in robot.law.reason
    assert np.abs(robot.state[0] - place).max() < 0.1
    assert abs(way[begin + 100] - way[begin + 400]) < 0.005
    assert robot.speed < 1.0


def test_brake_stops_the_law_and_the_robot_finds_back(panda):
    robot = Followed(law(panda)).run(0.6)
    robot.locks = True
    robot.run(0.5)
    assert 'drive error' in robot.law.reason
    robot.locks = False
    robot.run(0.1)
    with pytest.raises(ControlError, match='still moves'):
        robot.law.release()
    robot.run(0.9)
    robot.law.release()
    robot.rates.clear()
    robot.run(1.6)
    assert robot.errors[-1] < 1e-3
    assert robot.speed < 1.2
    assert robot.rates[0] < 1.0
    assert max(robot.rates) < 10000.0  # it damps what rings on the springs
    assert not robot.law.reason
    assert not robot.reasons[-1]


def test_drives_that_are_off_stop_the_law(panda):
    robot = Followed(law(panda)).run(0.6)

    def off(robot):
        robot.plant.limits = 1e-9 if robot.k < 750 else TORQUE_LIMITS

    robot.run(0.5, off)
    assert 'drive error' in robot.law.reason
    assert robot.speed < 1.2


def test_wrong_motor_inertia_ends_in_a_stop(panda):
    robot = Followed(law(panda, inertia=0.1)).run(2.5)
    assert robot.law.reason
    assert robot.speed < 1.3
    assert np.abs(robot.state[3]).max() < 0.1


def test_motor_at_its_limit_for_long_stops_the_robot(panda):
    weak = np.where(np.arange(7) == 1, 25.0, TORQUE_LIMITS)
    loose = Guards(max_tracking_error=9.0, max_drive_error=1e3, velocity_margin=9.0)
    robot = Followed(law(panda, torque_limits=weak, guards=loose)).run(1.5)
    assert 'saturation_time' in robot.law.reason


def test_gap_in_motion_stops_the_robot_and_one_at_rest_does_not(panda):
    def leave_out(robot):
        if robot.k in range(first, first + 70):
            robot.elapsed = None

    first = 500
    robot = Followed(law(panda)).run(0.9, leave_out)
    assert 'max_gap' in robot.law.reason
    still = Followed(law(panda), lambda times: np.zeros((len(times), 5, 7)) + AT_REST)
    still.run(0.9, leave_out)
    assert not still.law.reason
    assert still.errors[-1] < 1e-4


@pytest.mark.parametrize('elapsed', [0.0, -1e-3, np.nan])
def test_clock_that_stands_still_leaves_the_torque(panda, elapsed):
    robot = Followed(law(panda)).run(0.1)
    given = AT_REST, robot.q, None, robot.theta, None
    command = robot.law.evaluate(*given, elapsed=elapsed)
    assert np.array_equal(command.torque, robot.torque)
    assert 'expected a positive time' in command.reason
    assert robot.run(0.2).errors[-1] < 1e-4
    robot.law.reset()
    with pytest.raises(MotionError, match='elapsed'):
        robot.law.evaluate(*given, elapsed=elapsed)


def test_law_that_begins_far_away_approaches_within_the_limits(panda):
    far = AT_REST.copy()
    far[0] += 0.8
    robot = Followed(law(panda), lambda times: np.zeros((len(times), 5, 7)) + AT_REST)
    robot.motion = lambda times: np.zeros((len(times), 5, 7)) + far
    robot.run(3.0)
    assert not robot.law.reason
    assert robot.errors[-1] < 2e-3
    assert robot.speed < 0.6
    assert max(robot.rates) < 2000.0


def test_robot_that_is_led_is_not_let_go_faster_than_its_joints_may(panda):
    """Pushed by 100 N."""
    robot = Followed(law(panda, GravityCompensation, damping=0.5))
    robot.motion = lambda times: np.zeros((len(times), 5, 7)) + AT_REST
    robot.plant.force[:] = 0.0, 100.0, 0.0

    def let_go(robot):
        if robot.law.reason:
            robot.plant.force[:] = 0.0

    robot.run(1.2, let_go)
    assert 'velocity' in robot.law.reason
    assert robot.speed < 1.6
    assert np.abs(robot.state[1]).max() < 0.5


@pytest.mark.parametrize('reaction', ['hold', 'float'])
def test_robot_that_met_a_push_is_held_or_gives_way(panda, reaction):
    """A push of 50 N, with which it stops, and which then goes on for 2 s."""
    guards = Guards(max_external_torque=15.0, reactions={'max_external_torque': reaction})
    robot = Followed(law(panda, guards=guards))
    robot.motion = lambda times: np.zeros((len(times), 5, 7)) + AT_REST
    robot.run(0.1)
    robot.plant.force[:] = 0.0, 50.0, 0.0
    robot.run(0.2)
    assert robot.law.state == 'stopped'
    assert 'external torque' in robot.law.reason
    assert robot.law.reason.endswith('gives way.') == (reaction == 'float')
    assert robot.reasons[-1] == robot.law.reason
    place = robot.state[0].copy()
    robot.run(1.0)
    moved = np.abs(robot.state[0] - place).max()
    assert moved > 0.2 if reaction == 'float' else moved < 0.05
    assert robot.speed < 1.0
    assert np.abs(np.array(robot.rates[300:])).max() < 5e3
    robot.plant.force[:] = 0.0
    robot.run(0.5)
    let_go = robot.state[0].copy()
    robot.run(0.5)
    stays = np.abs(robot.state[0] - let_go).max()
    assert stays < 0.01  # without the push it does not go back by itself


@pytest.mark.parametrize('stiffness', [-0.3, 0.3])
@pytest.mark.parametrize('push', [0.0, 50.0])
def test_arm_that_gives_way_is_slow_whatever_it_carries(panda, stiffness, push):
    """With a fifth of its own mass at the flange, which nobody knows."""
    condition = Condition(stiffness=stiffness, payload=0.2 * panda.M_body[:, 5, 5].sum())
    guards = Guards(max_tracking_error=1e-3, reactions=FLOATING)
    robot = Followed(law(panda, guards=guards), condition=condition)
    robot.plant.force[:] = 0.0, push, 0.0
    robot.run(2.0)
    assert robot.law.reason.endswith('gives way.')
    assert robot.speed < 0.6
    assert np.abs(robot.state[0] - HOME).max() > 0.3


def test_stop_that_gives_way_has_no_larger_step_than_one_that_holds(panda):
    steps = []
    for reaction in ('hold', 'float'):
        guards = Guards(reactions={'max_drive_error': reaction})
        robot = Followed(law(panda, guards=guards)).run(0.6)
        robot.locks = True
        while not robot.law.reason:
            robot.run(T)
        robot.locks = False
        begin = len(robot.rates) - 1
        robot.run(0.3)
        steps.append((T * robot.rates[begin], T * max(robot.rates[begin:])))
        assert np.abs(robot.state[3]).max() < 0.3
    held, floating = np.array(steps)
    assert floating[0] <= held[0] + 1e-9
    assert floating[1] <= held[1] + 0.5


def test_torque_limits_are_those_of_the_description(panda):
    controller = TrackingController(springs(panda), T)
    np.testing.assert_array_equal(controller.torque_limits, panda.limits.effort)
    q = np.array(HOME)
    theta = 100.0 * controller.resting(q)
    for wrong in (theta, -theta / 100.0):
        with pytest.raises(ControlError, match='contradict'):
            controller.evaluate(AT_REST, q, None, wrong, None)


def test_torque_limits_that_nobody_knows_are_asked_for():
    with pytest.warns(ModelWarning, match='effort limit'):
        model = RobotModel.from_urdf(
            re.sub('effort="[^"]*"', 'effort="0"', robots.TWO_LINK)
        )
    actuators = Actuators(
        model, {name: SeriesElastic(500.0, 0.1) for name in model.joint_names}
    )
    with pytest.raises(ControlError, match=r"'shoulder' is not known.*np.inf"):
        tracking_controller(actuators, T)
    law = tracking_controller(actuators, T, torque_limits=np.inf)
    assert np.isinf(law.torque_limits).all()


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ({'max_tracking_error': -1.0}, 'max_tracking_error'),
        ({'max_external_torque': [1.0, 2.0]}, '7 positive'),
        ({'max_drive_error': np.nan}, 'max_drive_error'),
        ({'velocity_margin': -0.1}, 'velocity_margin'),
        ({'violation_samples': 0}, 'violation_samples'),
        ({'stop_duration': 0.0}, 'stop_duration'),
        ({'reactions': 'float'}, 'expected a mapping'),
        ({'reactions': {'max_gaps': 'float'}}, r"'max_gaps'.*max_gap"),
        (
            {'reactions': {'max_gap': 'limp'}},
            "'limp', expected 'hold' or 'float' to one of pos",
        ),
    ],
)
def test_guards_that_cannot_be_are_refused(panda, given, message):
    with pytest.raises(ControlError, match=message):
        law(panda, guards=Guards(**given))
