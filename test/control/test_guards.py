"""What a law does with missing time, wrong measurements, and robots that do not follow.

The robot is that of Pinocchio, which shares no code with the law.
"""

import re

import numpy as np
import pytest
from support import control_simulation, robots
from support.control_cases import (
    HOME,
    Condition,
)
from support.followed import AT_REST, FLOATING, Followed, T, law, resting

from hodyn_ros import ModelWarning, RobotModel
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import (
    ControlWarning,
    GravityCompensation,
    Guards,
    tracking_controller,
)
from hodyn_ros.errors import ControlError, MotionError


@pytest.fixture(scope='module')
def panda():
    return control_simulation.panda()


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


def test_wrong_motor_inertia_ends_in_a_stop(panda):
    robot = Followed(law(panda, inertia=0.1)).run(2.5)
    assert robot.law.reason
    assert robot.speed < 1.3
    assert np.abs(robot.state[3]).max() < 0.1


def test_gap_at_rest_does_not_stop_the_robot(panda):
    def leave_out(robot):
        if robot.k in range(300, 370):
            robot.elapsed = None

    still = Followed(law(panda), resting).run(0.6, leave_out)
    assert not still.law.reason
    assert still.errors[-1] < 1e-4


@pytest.mark.every_case
@pytest.mark.parametrize('elapsed', [0.0, -1e-3, np.nan, np.inf])
def test_clock_that_stands_still_leaves_the_torque(panda, elapsed):
    robot = Followed(law(panda)).run(0.1)
    given = AT_REST, robot.q, None, robot.theta, None
    command = robot.law.evaluate(*given, elapsed=elapsed)
    assert np.array_equal(command.torque, robot.torque)
    assert 'expected a positive time' in command.reason
    assert robot.run(0.2).errors[-1] < 1e-4
    robot.law.reset()  # behind which no time has been measured
    assert robot.law.evaluate(*given, elapsed=elapsed).reason == ''
    with pytest.raises(MotionError, match='elapsed'):
        robot.law.evaluate(*given, elapsed='soon')


def test_robot_that_is_led_is_not_let_go_faster_than_its_joints_may(panda):
    """Pushed by 100 N."""
    robot = Followed(law(panda, GravityCompensation, damping=0.5), resting)
    robot.plant.force[:] = 0.0, 100.0, 0.0

    def let_go(robot):
        if robot.law.reason:
            robot.plant.force[:] = 0.0

    robot.run(1.2, let_go)
    assert 'velocity' in robot.law.reason
    assert robot.speed < 1.6
    assert np.abs(robot.state[1]).max() < 0.5


@pytest.mark.parametrize(('stiffness', 'push'), [(-0.3, 0.0), (0.3, 50.0)])
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


@pytest.mark.every_case
@pytest.mark.parametrize('is_new', [False, True])
def test_stop_outlives_a_gap_and_holds_the_robot_where_it_is_found(panda, is_new):
    robot = Followed(law(panda))
    if not is_new:
        robot.run(0.5)
    robot.law.stop('by hand')
    if not is_new:
        robot.run(0.5)
        robot.missing = 60
        robot.state[[0, 2]] += 0.1  # it has been led there meanwhile
    else:
        with pytest.raises(ControlError, match='has not been measured'):
            robot.law.release()
    found = robot.state[0].copy()
    robot.run(0.6)
    assert robot.law.reason == 'by hand'
    assert np.abs(robot.state[0] - found).max() < 0.03
    assert np.abs(robot.state[3]).max() < 0.05
    robot.law.release()


@pytest.mark.parametrize('guards', [Guards(), None])
def test_sensors_that_slip_while_the_robot_is_stopped_are_got_over(panda, guards):
    robot = Followed(law(panda, guards=guards)).run(0.3)
    robot.law.stop('by hand')
    robot.run(0.2)
    found = robot.state[0].copy()

    def slip(robot):
        robot.q[3] += 0.5
        robot.theta[3] += 0.5

    robot.run(0.5, slip)
    assert "5 positions of joint 'joint4'" in robot.law.reason.replace('panda_', '')
    assert 'cannot be true' in robot.law.reason
    assert np.abs(robot.state[0] - found).max() < 0.02
    robot.run(1.0, slip)
    assert np.abs(robot.state[0] - found).max() < 0.02
    assert np.abs(robot.state[3]).max() < 0.05
    robot.law.release()
    assert robot.law.state == 'following'


def test_positions_that_contradict_each_other_are_not_believed_in_a_stop_either(panda):
    robot = Followed(law(panda)).run(0.3)
    robot.law.stop('by hand')

    def slip(robot):
        robot.theta[3] += 0.5

    robot.run(0.3, slip)
    with pytest.raises(ControlError, match='cannot be true'):
        robot.law.release()


@pytest.mark.parametrize('kind', ['first', 'gap'])
def test_first_speeds_that_cannot_be_are_bounded(panda, kind):
    """As of a driver that takes differences over its period, behind a gap."""
    wrong = np.array([1e3, -1e3, np.nan, 1e5, 0.0, np.nan, -1e3])
    wrong = np.nan_to_num(wrong) if kind == 'first' else wrong
    torques, errors = [], []
    for bounded in (False, True):
        robot = Followed(law(panda), resting)
        if kind == 'gap':
            robot.run(0.1)
            robot.missing = 200
        first = robot.k

        def speeds(robot, bounded=bounded, first=first):
            if robot.k == first:
                law = robot.law
                fastest = (1.0 + law.guards.velocity_margin) * law.model.limits.velocity
                speed = np.nan_to_num(np.clip(wrong, -fastest, fastest))
                robot.qd = robot.thetad = speed if bounded else wrong

        torques.append(robot.run(T, speeds).torque)
        errors.append(robot.run(1.5).errors[-1])
    assert np.isfinite(torques).all()
    assert np.array_equal(*torques)
    assert max(errors) < 0.5


def test_law_behind_another_one_knows_nothing_of_long_ago(panda):
    robot = Followed(law(panda)).run(0.2)
    other, first = law(panda, GravityCompensation, observer=robot.law.observer), robot.law
    first.stop('by hand')
    robot.run(0.1)
    other.begin()
    robot.law = other
    robot.state[[0, 2]] += 1e-3
    robot.run(0.3)
    before, torque = robot.state[0].copy(), robot.torque
    first.begin()
    assert np.array_equal(first.command(AT_REST, robot.q, None, robot.theta, None), torque)
    robot.law = first
    robot.run(0.5)
    assert np.abs(robot.state[0] - before).max() < 0.03


def test_motion_that_ended_while_nothing_was_measured_stops_the_robot(panda):
    robot = Followed(law(panda)).run(0.3)
    robot.missing, rest = 2000, np.zeros((1, 5, panda.n_joints))
    rest[0, 0] = robot.state[0] + 0.1
    robot.motion = lambda times: rest
    robot.run(T)
    assert 'no measurement was answered for 2' in robot.law.reason


def test_robot_beyond_a_limit_of_its_position_is_not_released(panda):
    robot = Followed(law(panda)).run(0.1)
    robot.law.stop('by hand')
    robot.missing = 60
    robot.state[[0, 2], 1] = panda.limits.upper[1] + 0.2
    robot.run(0.5)
    with pytest.raises(ControlError, match='not move on yet: The position .*joint2'):
        robot.law.release()


def test_torque_limits_that_nobody_knows_are_asked_for():
    with pytest.warns(ModelWarning, match='effort limit'):
        model = RobotModel.from_urdf(
            re.sub('effort="[^"]*"', 'effort="0"', robots.TWO_LINK)
        )
    drives = dict.fromkeys(model.joint_names, SeriesElastic(500.0, 0.1))
    actuators = Actuators(model, drives)
    with pytest.raises(ControlError, match=r"'shoulder' is not known.*np.inf"):
        tracking_controller(actuators, T)
    with pytest.warns(ControlWarning, match='torque of shoulder, elbow: wrong meas'):
        law = tracking_controller(actuators, T, torque_limits=np.inf)
    assert np.isinf(law.torque_limits).all()


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ({'max_external_torque': [1.0, 2.0]}, '7 positive'),
        ({'max_drive_error': np.nan}, 'max_drive_error'),
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
