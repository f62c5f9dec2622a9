"""Controllers of elastic joints against a robot by Pinocchio that they know nothing of."""

import re
import warnings

import numpy as np
import pytest
from support.control_cases import STIFFNESS
from support.elastic_cases import (
    BANDWIDTH,
    PERIOD,
    elastic_three_link,
    mixed_three_link,
    panda,
)
from support.robots import HEAVIER_TWO_LINK, TWO_LINK

from hodyn_ros import RobotModel
from hodyn_ros.actuators import (
    Actuators,
    LinearSpring,
    SeriesElastic,
)
from hodyn_ros.control import (
    ControlWarning,
    FeedForwardController,
    FlatnessController,
    Law,
    TrackingController,
    motor_gains,
)
from hodyn_ros.errors import (
    ControlError,
    DeflectionError,
    MotionError,
)

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning')


def static_stiffness(case, w, q):
    """Small torque on each joint by how far it moves a robot at rest, by Pinocchio."""
    law, h, none = FlatnessController(case.model, case.actuators, w), 1e-4, np.zeros(len(q))
    desired = np.zeros((5, len(q)))
    desired[0] = q

    def missing(moved, pushed):
        at = q + moved
        weight = case.oracle.effort(np.stack([at, none, none]))
        theta = case.state(np.stack([at, none, none, none]))[2] - pushed / STIFFNESS
        return law.command(desired, at, none, theta, none) - weight + pushed

    differences = [
        np.column_stack([change(h * e) - change(-h * e) for e in np.eye(len(q))])
        for change in (lambda d: missing(d, none), lambda d: missing(none, d))
    ]
    return 1.0 / np.diagonal(np.linalg.solve(differences[0], -differences[1]))


@pytest.mark.every_case
@pytest.mark.parametrize('lead', [0.0, 5e-4])
def test_exact_linearisation_takes_the_motion_that_the_springs_tell(lead):
    case, rng = elastic_three_link(), np.random.default_rng(3)
    law = FlatnessController(case.model, case.actuators, 9.0, lead=lead, torque_limits=1e4)
    motion, desired = 0.4 * rng.normal(size=(4, 3)), 0.4 * rng.normal(size=(5, 3))
    torque = law.command_from_motion(desired, motion)
    np.testing.assert_allclose(law.command(desired, *case.state(motion)), torque, rtol=1e-8)


def test_exact_linearisation_warns_of_how_soft_it_is():
    case = panda(STIFFNESS)
    model, actuators = case.model, case.actuators
    middle = 0.5 * (model.limits.lower + model.limits.upper)
    expected = static_stiffness(case, 25.0, middle)
    with pytest.warns(
        ControlWarning, match='Static stiffness in the middle of the range'
    ) as seen:
        FlatnessController(model, actuators, 25.0)
    (warning,) = seen
    assert warning.filename == __file__
    found = re.findall(
        r'panda_joint\d (\S+) \(spring (\d+), usable from (\d+) rad/s', str(warning.message)
    )
    for (own, spring, usable), stiffness, k in zip(found, expected, STIFFNESS):
        assert float(spring) == k
        if float(usable) > 25.0:
            assert float(own) == pytest.approx(abs(stiffness), rel=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        FlatnessController(model, actuators, 1.1 * float(found[-1][2]))
        FlatnessController(model, Actuators(model, {}), 25.0)  # no springs
        FeedForwardController(model, actuators, motor_gains(model, actuators, 20.0, middle))


def test_a_bandwidth_puts_all_poles_there():
    case = mixed_three_link()
    gains = FlatnessController(case.model, case.actuators, [5.0, 6.0, 7.0]).gains
    np.testing.assert_allclose(gains[:, 0], [625.0, 500.0, 150.0, 20.0])
    np.testing.assert_allclose(gains[:, 1], [36.0, 12.0, 0.0, 0.0])
    np.testing.assert_allclose(gains[:, 2], [2401.0, 1372.0, 294.0, 28.0])


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('make', 'message'),
    [
        (
            lambda m, a: FlatnessController(m, a, 9.0, torque_limits=[1.0, 2.0]),
            '3 positive',
        ),
        (lambda m, a: FlatnessController(m, a, 9.0, torque_limits=-1.0), 'limits is -1.0'),
        (lambda m, a: FlatnessController(m, a, 9.0, lead=-0.1), 'lead is -0.1, expected a'),
        (lambda m, a: FlatnessController(m, None, 9.0), r'expected Actuators\(model'),
        (lambda m, a: FlatnessController(m, a, -3.0), 'bandwidth is -3.0'),
        (lambda m, a: FlatnessController(m, a, 1e308), r'1e\+308.* up to 1e\+06'),
        (lambda m, a: FlatnessController(m, a, [5.0, 5.0]), 'one or 3 positive'),
        (lambda m, a: FlatnessController(m, a, {'j1': 5.0}), 'one or 3 positive'),
        (lambda m, a: motor_gains(m, a, 0, np.zeros(3)), 'bandwidth is 0'),
        (lambda m, a: motor_gains(m, a, 1e308, np.zeros(3)), r'1e\+308.* up to 1e\+06'),
        (lambda m, a: FeedForwardController(m, a, (1.0, 1.0), 3), 'number from 0 to 2'),
        (lambda m, a: FeedForwardController(m, a, (1.0, -2.0)), 'expected'),
        (
            lambda m, a: FlatnessController(
                m, Actuators(m, {'j2': SeriesElastic(100.0, 0.2, damping=0.5)}), 9.0
            ),
            "spring of joint 'j2' has a damper",
        ),
        (
            lambda m, a: FlatnessController(m.with_armature({'j2': 0.3}), a, 9.0),
            "Joint 'j2': .*count twice",
        ),
    ],
)
def test_unusable_options_are_refused(make, message):
    case = elastic_three_link()
    with pytest.raises(ControlError, match=message):
        make(case.model, case.actuators)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('index', 'value', 'message'),
    [
        (0, np.zeros((4, 3)), r'desired has the shape \(4, 3\), expected \(5, 3\)'),
        (1, np.zeros(2), r'q has the shape \(2,\), expected \(3,\)'),
        (2, [0.0, np.nan, 0.0], 'qd is .*nan.* must be finite'),
        (2, [1e200, 0.0, 0.0], 'overflow|out of range|not finite|finite'),
    ],
)
def test_unusable_states_and_references_are_refused(index, value, message):
    case = elastic_three_link()
    arguments = [np.zeros((5, 3)), *np.zeros((4, 3))]
    arguments[index] = value
    controller = FlatnessController(case.model, case.actuators, BANDWIDTH)
    with pytest.raises(MotionError, match=message):
        controller.command(*arguments)


def test_a_spring_beyond_its_range_is_reported_with_its_joint():
    case = elastic_three_link()
    drives = {
        name: SeriesElastic(LinearSpring(100.0, 0.1), 0.2)
        for name in case.model.joint_names
    }
    actuators = Actuators(case.model, drives)
    flat = FlatnessController(case.model, actuators, BANDWIDTH)
    zero, theta = np.zeros(3), np.array([0.05, 0.11, 0.0])
    with pytest.raises(DeflectionError, match="joint 'j2' is deflected by 0.11") as caught:
        flat.command(np.zeros((5, 3)), zero, zero, theta, zero)
    assert caught.value.joint == 'j2'
    feed_forward = FeedForwardController(case.model, actuators, (1.0, 1.0))
    fast = np.zeros((5, 3))
    fast[2, 0] = 1e4
    with pytest.raises(DeflectionError, match="Joint 'j1': LinearSpring is asked"):
        feed_forward.command(fast, zero, zero, zero, zero)


def test_actuators_of_another_robot_with_the_same_joints_are_refused():
    model = RobotModel.from_urdf(TWO_LINK)
    actuators = Actuators(model, {'elbow': SeriesElastic(100.0, 0.2)})
    longer = TWO_LINK.replace('<origin xyz="0.4 0 0.05"', '<origin xyz="0.5 0 0.05"')
    sliding = TWO_LINK.replace(
        'name="elbow" type="revolute"', 'name="elbow" type="prismatic"'
    )
    for xml, what in ((longer, 'kinematics'), (sliding, 'types of joints')):
        assert xml != TWO_LINK
        other = RobotModel.from_urdf(xml)
        with pytest.raises(ControlError, match=f'robot with other {what}'):
            FlatnessController(other, actuators, BANDWIDTH)
        # Meant for it, they are made for it.
        FlatnessController(other, Actuators(other, actuators.by_joint), BANDWIDTH)
    for alike in (
        RobotModel.from_urdf(TWO_LINK),
        model.with_payload('tool', 1.0),
        RobotModel.from_urdf(HEAVIER_TWO_LINK),
    ):
        FlatnessController(alike, actuators, BANDWIDTH)


@pytest.mark.every_case
@pytest.mark.parametrize('estimates', [False, True])
def test_all_laws_are_used_alike(estimates):
    case = elastic_three_link()
    q, none = np.array([0.3, -0.6, 0.4]), np.zeros(3)
    desired = np.zeros((5, 3))
    desired[0] = q
    theta = case.state(desired[:4])[2]
    if estimates:
        law = TrackingController(case.actuators, PERIOD, torque_limits=100.0)
    else:
        law = FlatnessController(case.model, case.actuators, BANDWIDTH, 100.0)
    assert isinstance(law, Law) and law.estimates == estimates
    law.begin()
    state = np.array([q, none, theta, none])
    first = law.evaluate(desired, *state, None, None, PERIOD)
    torque = law.command(desired, q, none, theta, none, elapsed=PERIOD)
    np.testing.assert_allclose(torque, first.torque, atol=1e-6)
    assert law.unrest() == '' and law.gated == 0
    law.limit(np.full(3, 1e-3))
    assert law.evaluate(desired, q, none, theta, none).is_limited.any()
    law.release()
    law.reset()
    assert (law.state, law.reason) == ('following', '')
    assert (len(law.memory) > 0) == estimates
