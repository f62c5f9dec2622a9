"""Laws refuse limits and observers that they cannot use, and can be sent to another process."""

import pickle

import numpy as np
import pytest
from support.robots import TWO_LINK

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import (
    FeedForwardController,
    FlatnessController,
    GravityCompensation,
    GuardedController,
    JointImpedance,
    StateObserver,
    TorqueControl,
    TrackingController,
)
from hodyn_ros.errors import ControlError, MotionError

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning')

T = 1e-3
LIMITS = np.array([80.0, 40.0])
# N m: machine code and Python, which answers until there is some, round otherwise.
ROUNDING = 1e-10 * LIMITS.max()
OF_OBSERVER = {
    TrackingController: {},
    JointImpedance: {'stiffness': 50.0},
    GravityCompensation: {},
    TorqueControl: {},
}
WITHOUT = FeedForwardController, FlatnessController
KINDS = *OF_OBSERVER, *WITHOUT, GuardedController


def drives(spring=2000.0, **changes):
    model = RobotModel.from_urdf(TWO_LINK).changed(**changes)
    return Actuators(model, {'elbow': SeriesElastic(spring, 0.5)})


def law(kind, actuators=None, **options):
    actuators = actuators or drives()
    if kind is FeedForwardController:
        return kind(actuators.model, actuators, (400.0, 40.0), torque_limits=LIMITS)
    if kind is FlatnessController:
        return kind(actuators.model, actuators, 20.0, torque_limits=LIMITS)
    if kind is GuardedController:
        return kind(law(FeedForwardController, actuators), T)
    return kind(actuators, T, torque_limits=LIMITS, **OF_OBSERVER[kind], **options)


def answers(law, samples=range(30)):
    desired = np.zeros((5, 2))
    if isinstance(law, TorqueControl):
        desired[0] = 20.0
    torques = []
    for k in samples:
        q = 1e-3 * np.sin([0.1 * k, 0.2 * k])
        theta = q + [0.0, 9.81 / 2000.0]
        torques.append(law.command(desired[: law.orders], q, 0.0 * q, theta, 0.0 * q))
    return np.array(torques)


@pytest.mark.every_case
@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize(
    'wrong', [[np.nan, 50.0], [-30.0, 50.0], [0.0, 0.0], [1.0, 2.0, 3.0], 'much', None]
)
def test_torque_limits_that_are_not_positive_are_refused_and_change_nothing(kind, wrong):
    changed, other = law(kind), law(kind)
    with pytest.raises(ControlError, match='torque_limits is .* positive numbers'):
        changed.limit(wrong)
    assert np.array_equal(changed.torque_limits, LIMITS)
    assert np.allclose(answers(changed), answers(other), rtol=0.0, atol=ROUNDING)


@pytest.mark.every_case
@pytest.mark.parametrize('kind', KINDS)
def test_torque_limits_may_be_infinite_and_one_for_all_motors(kind):
    limited = law(kind)
    limited.limit([np.inf, 3.0])
    assert np.array_equal(limited.torque_limits, [np.inf, 3.0])
    limited.limit(6.0)
    assert np.array_equal(limited.torque_limits, [6.0, 6.0])
    assert np.abs(answers(limited)).max() == 6.0


@pytest.mark.every_case
@pytest.mark.parametrize('kind', KINDS)
def test_law_that_was_pickled_goes_on_as_the_law_itself(kind):
    first = law(kind)
    answers(first)
    second = pickle.loads(pickle.dumps(first))
    later = range(30, 60)
    expected = answers(first, later)
    assert np.allclose(answers(second, later), expected, rtol=0.0, atol=ROUNDING)


def test_observer_that_was_pickled_goes_on_as_the_observer_itself():
    first = StateObserver(drives(), T, 50.0)
    second = None
    for k in range(20):
        q = 1e-3 * np.sin([0.1 * k, 0.2 * k])
        for observer in filter(None, (first, second)):
            observer.update(q, None, q + [0.0, 9.81 / 2000.0], None)
            observer.apply(np.array([40.0, 9.81]), 0.0)
        second = second or pickle.loads(pickle.dumps(first))
    for one, other in zip(first.state(), second.state()):
        assert np.allclose(one, other, rtol=0.0, atol=ROUNDING)


@pytest.mark.every_case
@pytest.mark.parametrize('kind', OF_OBSERVER)
def test_observer_of_equal_actuators_and_other_limits_is_shared(kind):
    observer = StateObserver(drives(), T, 50.0)
    assert law(kind, drives(), observer=observer).observer is observer
    model = RobotModel.from_urdf(TWO_LINK)
    faster = drives(limits=model.limits._replace(velocity=2.0 * model.limits.velocity))
    assert law(kind, faster, observer=observer).observer is observer


@pytest.mark.every_case
@pytest.mark.parametrize('kind', OF_OBSERVER)
def test_observer_of_another_robot_or_sample_period_is_refused(kind):
    model = RobotModel.from_urdf(TWO_LINK)
    loaded = drives(M_body=1.1 * model.M_body)
    panda = RobotModel.from_urdf('panda')
    for observer, said in (
        (
            StateObserver(drives(), 2.0 * T, 25.0),
            'sample period of 0.002 s and the law one of',
        ),
        (StateObserver(drives(200.0), T, 50.0), "another actuator of 'elbow' than the law"),
        (StateObserver(loaded, T, 50.0), 'another inertia than the law'),
        (
            StateObserver(drives(gravity=np.zeros(3)), T, 50.0),
            'another gravity than the law',
        ),
        (StateObserver(Actuators(panda, {}), T, 50.0), 'another robot than the law'),
        (5, 'observer is of type int, expected a StateObserver'),
    ):
        with pytest.raises(ControlError, match=said):
            law(kind, observer=observer)


def test_guards_are_put_around_laws_without_memory_only():
    with pytest.raises(
        ControlError, match='TrackingController, which has guards of its own'
    ):
        GuardedController(law(TrackingController), T)
    with pytest.raises(ControlError, match='The law is of type int; expected'):
        GuardedController(5, T)
    with pytest.raises(ControlError, match='guards is True, expected Guards'):
        law(TrackingController, guards=True)


@pytest.mark.every_case
@pytest.mark.parametrize('kind', OF_OBSERVER)
def test_a_position_at_rest_is_one_of_each_joint_and_may_be_a_list(kind):
    controller = law(kind)
    np.testing.assert_array_equal(
        controller.at_rest([0.3, 0.5]), controller.at_rest(np.array([0.3, 0.5]))
    )
    for given, said in (
        ([0.0], r'shape \(1,\), expected \(2,\)'),
        ([0.0, np.nan], 'must be finite'),
        ('home', 'expected real numbers'),
        ([True] * 2, 'bool, expected real numbers'),
        (np.zeros(2) * 1j, 'complex128, expected real numbers'),
        (np.ma.masked_array([0.0, 0.1], [False, True]), 'all values must be finite'),
    ):
        with pytest.raises(MotionError, match=said):
            controller.at_rest(given)


def test_observers_take_lists_and_refuse_what_no_joint_has():
    observer = StateObserver(drives(), T, 50.0)
    w = [0.0, 200.0]
    np.testing.assert_array_equal(observer.poles(w), observer.poles(np.array(w)))
    observer.expect([1.0, np.inf], [80.0, 40.0])
    reach = observer.record.reach.copy()
    observer.expect(np.array([1.0, np.inf]), LIMITS)
    np.testing.assert_array_equal(observer.record.reach, reach)
    for call in (
        lambda: observer.poles([1.0, 2.0, 3.0]),
        lambda: observer.poles([1.0, np.nan]),
        lambda: observer.expect([1.0, -1.0], LIMITS),
        lambda: observer.expect([1.0, 1.0], [80.0, 40.0, 1.0]),
    ):
        with pytest.raises(ControlError, match='expected one or 2 numbers from 0 on'):
            call()


def test_a_stiffness_that_no_joint_can_choose_is_refused():
    controller = law(TrackingController)
    given = np.zeros((5, 2)), np.zeros(2), None, controller.resting(np.zeros(2)), None
    with pytest.raises(MotionError, match='given for elbow, but no joint of this robot'):
        controller.evaluate(*given, stiffness={'elbow': [100.0, 0.0, 0.0]})
    assert not controller.evaluate(*given, stiffness={}).reason
