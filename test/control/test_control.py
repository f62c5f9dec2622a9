"""Controllers of elastic joints against a robot by Pinocchio that they know nothing of."""

import re
import warnings

import numpy as np
import pytest
from support.elastic_cases import (
    BANDWIDTH,
    PERIOD,
    THREE_LINK,
    elastic_three_link,
    mixed_three_link,
    panda,
    rms,
    sampled_error,
    sway,
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
    gains_from_poles,
    motor_gains,
)
from hodyn_ros.errors import (
    ControlError,
    DeflectionError,
    JointNameError,
    MotionError,
)
from hodyn_ros.trajectory import panda_sinusoids

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.control.ControlWarning')


OFFSET = np.array([[0.05], [-0.2], [0.9], [6.0]])  # of position to jerk


def test_without_error_all_exact_laws_give_the_torque_that_the_plant_needs():
    """On the reference itself the plant must get the acceleration of the motors that it has."""
    case = elastic_three_link()
    reference = sway(3)
    t, h = 0.7, 1e-3
    state = case.state(reference(t)[:4])
    # Fourth-order differences of the motors' velocity along the reference.
    rates = [case.state(reference(t + i * h)[:4])[3] for i in (-2, -1, 1, 2)]
    theta2d = np.array([1.0, -8.0, 8.0, -1.0]) @ np.array(rates) / (12.0 * h)
    needed = case.plant.inertia * theta2d + case.plant.spring_torque(state[2] - state[0])
    gains = motor_gains(case.model, case.actuators, BANDWIDTH, np.zeros(3))
    for controller in (
        FlatnessController(case.model, case.actuators, BANDWIDTH),
        FeedForwardController(case.model, case.actuators, gains, 2),
    ):
        command = controller.command(reference(t), *state)
        np.testing.assert_allclose(command, needed, rtol=1e-7, atol=1e-7)


@pytest.mark.every_case
@pytest.mark.parametrize('law', ['feed_forward', 'flatness'])
def test_a_robot_at_rest_is_held_against_its_weight(law):
    case = elastic_three_link()
    gains = motor_gains(case.model, case.actuators, BANDWIDTH, np.zeros(3))
    controller = {
        'feed_forward': FeedForwardController(case.model, case.actuators, gains, 0),
        'flatness': FlatnessController(case.model, case.actuators, BANDWIDTH),
    }[law]
    reference = np.zeros((5, 3))
    reference[0] = [0.3, -0.6, 0.4]
    torque = controller.command(reference, *case.state(reference[:4]))
    q2d, theta2d = case.plant.accelerations(*case.state(reference[:4]), torque)
    np.testing.assert_allclose([q2d, theta2d], 0.0, atol=1e-9)


def motor_side_laws(case, position, lead=0.0):
    model, actuators = case.model, case.actuators
    gains = motor_gains(model, actuators, BANDWIDTH, position)
    return {
        'all': FeedForwardController(model, actuators, gains, 2, lead=lead),
        'Q, Qd': FeedForwardController(model, actuators, gains, 1, lead=lead),
        'Q': FeedForwardController(model, actuators, gains, 0, lead=lead),
    }


def test_looking_ahead_takes_out_the_delay_of_a_held_torque():
    case = panda([1000.0] * 4 + [500.0] * 3)
    error = [
        rms(sampled_error(case, controller, panda_sinusoids(), 1.5, 150))
        for controller in (
            FlatnessController(case.model, case.actuators, BANDWIDTH, lead=lead)
            for lead in (0.0, PERIOD / 2.0)
        )
    ]
    assert error[1] < 0.05 * error[0]


def test_linearisation_damps_what_feed_forward_leaves_swinging():
    case = panda([300.0] * 4 + [100.0] * 3)
    sinusoids = panda_sinusoids()
    gains = motor_gains(case.model, case.actuators, BANDWIDTH, sinusoids.centre)
    lead = PERIOD / 2.0
    errors = [
        sampled_error(case, law, sinusoids, 1.5, 450, disturbance=0.02)[-50:]
        for law in (
            FlatnessController(case.model, case.actuators, BANDWIDTH, lead=lead),
            FeedForwardController(case.model, case.actuators, gains, 2, lead=lead),
        )
    ]
    assert rms(errors[0]) < 0.1 * rms(errors[1])


@pytest.mark.filterwarnings(
    'ignore::hodyn_ros.ModelWarning'
)  # an axis that is not of unit length
def test_feed_forward_stands_as_stiff_as_springs_and_motor_control_in_series():
    model = RobotModel.from_urdf(THREE_LINK, gravity=(0.0, 0.0, 0.0))
    springs, gains = np.array([300.0, 200.0, 80.0]), np.array([60.0, 50.0, 40.0])
    drives = {name: SeriesElastic(k, 0.2) for name, k in zip(model.joint_names, springs)}
    controller = FeedForwardController(model, Actuators(model, drives), (gains, 8.0))
    expected = springs * gains / (springs + gains)
    np.testing.assert_allclose(
        controller.static_stiffness(np.zeros(3)), expected, rtol=1e-6
    )


def softness_by_formula(case, q, w, K):
    """How far a torque moves each link under exact linearisation with all poles at -w."""
    oracle, n = case.oracle, len(q)
    at_rest = oracle.effort(np.stack([q, 0 * q, 0 * q]))
    M = np.column_stack(
        [oracle.effort(np.stack([q, 0 * q, e])) - at_rest for e in np.eye(n)]
    )
    weight, h = lambda x: oracle.effort(np.stack([x, 0 * q, 0 * q])), 1e-5
    G = np.column_stack(
        [(weight(q + h * e) - weight(q - h * e)) / (2 * h) for e in np.eye(n)]
    )
    M_inverse = np.linalg.inv(M)
    return -np.diagonal(M_inverse @ (np.diag(K) + G - 6 * w**2 * M) @ M_inverse) / w**4


@pytest.mark.parametrize('w', [25.0, 150.0])
def test_stiffer_springs_make_a_softer_robot_under_exact_linearisation(w):
    q = panda_sinusoids().centre
    for factor in (1.0, 5.0):
        K = factor * np.array([1000.0] * 4 + [500.0] * 3)
        case = panda(K)
        found = FlatnessController(case.model, case.actuators, w).static_stiffness(q)
        np.testing.assert_allclose(
            1.0 / found, softness_by_formula(case, q, w, K), rtol=1e-5
        )
        if w == 25.0:  # the spring of the last joint has 500 and 2500 N m/rad
            assert abs(found[-1]) == pytest.approx(0.018 / factor, rel=0.05)


def test_exact_linearisation_warns_of_how_soft_it_is():
    case = panda([1000.0] * 4 + [500.0] * 3)
    model, actuators = case.model, case.actuators
    with pytest.warns(
        ControlWarning, match='Static stiffness in the middle of the range'
    ) as seen:
        controller = FlatnessController(model, actuators, 25.0)
    (warning,) = seen
    assert warning.filename == __file__
    middle = 0.5 * (model.limits.lower + model.limits.upper)
    for j, stiffness in enumerate(np.abs(controller.static_stiffness(middle))):
        spring = 1000 if j < 4 else 500
        expected = (
            rf'panda_joint{j + 1} {stiffness:.3g} \(spring {spring}, usable from \d+ rad/s'
        )
        assert re.search(expected, str(warning.message)), expected
    last = re.search(r'panda_joint7 .*usable from (\d+) rad', str(warning.message))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        FlatnessController(model, actuators, 1.1 * float(last[1]))
        FlatnessController(model, Actuators(model, {}), 25.0)  # no springs
        FeedForwardController(model, actuators, motor_gains(model, actuators, 20.0, middle))


def test_limits_cut_torques_and_say_so():
    case = elastic_three_link()
    limits = np.array([1.0, 200.0, np.inf])
    free = FlatnessController(case.model, case.actuators, BANDWIDTH)
    limited = FlatnessController(
        case.model, case.actuators, BANDWIDTH, torque_limits=limits
    )
    state = case.state(sway(3)(0.0)[:4] - OFFSET)
    demand = free.command(sway(3)(0.0), *state)
    command = limited.evaluate(sway(3)(0.0), *state)
    np.testing.assert_array_equal(command.demand, demand)
    np.testing.assert_array_equal(command.torque, np.clip(demand, -limits, limits))
    np.testing.assert_array_equal(command.is_limited, abs(demand) > limits)
    assert command.is_limited[0] and not command.is_limited[2]


def test_lower_laws_do_not_look_at_higher_derivatives():
    case = elastic_three_link()
    state = case.state(sway(3)(0.2)[:4])
    for controller in motor_side_laws(case, np.zeros(3)).values():
        reference = sway(3)(0.0)
        expected = controller.command(reference, *state)
        reference[controller.orders :] = 1e6
        np.testing.assert_array_equal(controller.command(reference, *state), expected)
        reference[controller.orders - 1] += 1.0
        assert np.all(controller.command(reference, *state) != expected)


@pytest.mark.parametrize(
    'poles',
    [[-3.0], [-1.0, -5.0], [-4.0 + 2.0j, -4.0 - 2.0j], [-9.0, -2.0, -3 + 1j, -3 - 1j]],
)
def test_gains_place_the_poles(poles):
    gains = gains_from_poles(poles)
    companion = np.diag(np.ones(len(poles) - 1), 1)
    companion[-1] = -gains
    found = np.linalg.eigvals(companion)
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(poles), atol=1e-9)


def test_a_bandwidth_puts_all_poles_there():
    case = mixed_three_link()
    by_joint = {'j3': 7.0, 'j1': [-5.0] * 4, 'j2': 6.0}
    for poles in ([5.0, 6.0, 7.0], by_joint):
        gains = FlatnessController(case.model, case.actuators, poles).gains
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
        (lambda m, a: FlatnessController(m, a, 9.0, lead=True), 'lead is True'),
        (lambda m, a: FlatnessController(None, a, 9.0), 'not a RobotModel'),
        (lambda m, a: FlatnessController(m, None, 9.0), r'expected Actuators\(model'),
        (lambda m, a: motor_gains(m, a, 0, np.zeros(3)), 'bandwidth is 0'),
        (lambda m, a: motor_gains(m, a, 1e308, np.zeros(3)), "of joint 'j1', .* neither"),
        (lambda m, a: FeedForwardController(m, a, (1.0, 1.0), 3), 'number from 0 to 2'),
        (lambda m, a: FeedForwardController(m, a, (1.0, 1.0), True), 'a whole number'),
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
    ('poles', 'error', 'message'),
    [
        (
            -3.0,
            ControlError,
            "bandwidth of joint 'j1' is -3.0, expected a finite number above 0",
        ),
        (True, ControlError, 'expected a bandwidth'),
        (1e308, ControlError, "Joint 'j1': .* gains would be infinite or zero"),
        ({'j1': 5.0, 'j2': 5.0}, JointNameError, 'missing: j3'),
        ({'j1': 5.0, 'j2': 5.0, 'j3': 5.0, 'j4': 5.0}, JointNameError, 'unknown: j4'),
        (
            {'j1': [-1.0, -2.0], 'j2': 5.0, 'j3': 5.0},
            ControlError,
            "'j1' has 2 poles, expected 4",
        ),
        (
            {'j1': [-1, -2, -3, 4], 'j2': 5.0, 'j3': 5.0},
            ControlError,
            'negative real parts',
        ),
        ({'j1': [-1, -2, -3, -4 + 1j], 'j2': 5, 'j3': 5}, ControlError, 'conjugate pairs'),
    ],
)
def test_unusable_poles_are_refused(poles, error, message):
    case = elastic_three_link()
    with pytest.raises(error, match=message):
        FlatnessController(case.model, case.actuators, poles)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('index', 'value', 'message'),
    [
        (0, np.zeros((4, 3)), r'desired has the shape \(4, 3\), expected \(5, 3\)'),
        (1, np.zeros(2), r'q has the shape \(2,\), expected \(3,\)'),
        (2, [0.0, np.nan, 0.0], 'qd is .*nan.* must be finite'),
        (3, 'abc', 'theta is str, expected numbers'),
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
    law.note(first.torque, *state, elapsed=PERIOD)
    state[1] = np.nan
    law.complete(state)
    torque = law.command(desired, q, none, theta, none, elapsed=PERIOD)
    np.testing.assert_allclose(torque, first.torque, atol=1e-6)
    assert law.lost(q, theta) == '' and law.gated == 0
    law.limit(np.full(3, 1e-3))
    assert law.evaluate(desired, q, none, theta, none).is_limited.any()
    law.release()
    law.reset()
    assert (law.state, law.reason) == ('following', '')
    if estimates:
        np.testing.assert_allclose(state[1], 0.0, atol=1e-6)
    else:
        assert np.isnan(state[1]).all() and len(law.memory) == 0
