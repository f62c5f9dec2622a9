"""From samples to efforts: where derivatives come from, and what the motors do."""

from dataclasses import replace

import numpy as np
import pytest
from support.io_cases import model, samples, swing

from hodyn_ros import Wrench, inverse_dynamics
from hodyn_ros.actuators import (
    Actuators,
    LinearSpring,
    SeriesElastic,
)
from hodyn_ros.errors import (
    ActuatorError,
    JointNameError,
    MotionError,
    WrenchError,
)
from hodyn_ros.files import Samples, compute, to_motion
from hodyn_ros.trajectory.smoother import smooth

MODEL = model()


def elastic():
    return Actuators(
        MODEL,
        {name: SeriesElastic(LinearSpring(400.0), 0.2) for name in MODEL.joint_names},
    )


def measured(count=1500, noise=1e-7, seed=0):
    times = 0.002 * np.arange(count)
    motion = swing(times, orders=1)
    motion += noise * np.random.default_rng(seed).normal(size=motion.shape)
    return Samples(MODEL.joint_names, times, motion, is_measured=True)


def test_joints_are_matched_by_name_and_others_left_out():
    whole = samples()
    shuffled = Samples(
        ('finger', 'elbow', 'shoulder'),
        whole.times,
        np.concatenate([np.zeros((200, 5, 1)), whole.motion[:, :, ::-1]], axis=2),
    )
    found = compute(MODEL, shuffled)
    np.testing.assert_array_equal(found.motion, whole.motion)
    assert 'Left out, since the model does not have them: finger.' in found.remarks
    with pytest.raises(JointNameError, match='elbow missing; it has shoulder'):
        compute(MODEL, replace(whole, joint_names=('shoulder', 'wrist')))


def test_jerk_without_snap_gives_one_derivative_less_and_says_so():
    found = compute(MODEL, samples(orders=4))
    assert found.effort.shape[1] == 2
    assert found.remarks == ('Not given, and left out: snap.',)


def test_rate_says_how_often_a_spline_is_evaluated():
    times, motion, _ = to_motion(MODEL, samples(orders=1), rate=250.0)
    np.testing.assert_allclose(np.diff(times), 0.004, rtol=0.01)
    assert len(motion) == len(times) == 499


def test_deviations_of_efforts_are_those_that_drawn_motions_have():
    found = compute(MODEL, measured(400, noise=1e-4))
    assert found.source == 'measured'
    assert np.isfinite(found.effort).all()
    stamps = np.rint(1e9 * found.times).astype(np.int64)
    covariance = smooth(stamps, measured(400, noise=1e-4).motion[:, 0]).covariance
    rng = np.random.default_rng(0)
    for row in (0, 200, 399):
        drawn = np.stack(
            [rng.multivariate_normal(np.zeros(5), 1e-4 * c, 4000) for c in covariance[row]],
            axis=2,
        )
        efforts = inverse_dynamics(MODEL, found.motion[row] + drawn)
        np.testing.assert_allclose(
            100.0 * efforts.std(axis=0), found.effort_std[row], rtol=0.06
        )
    truth = inverse_dynamics(MODEL, swing(found.times))
    assert (np.abs(found.effort - truth) < 1.96 * found.effort_std).mean() > 0.9


def test_what_is_less_certain_than_it_is_large_is_given_and_said():
    whole = measured(600, noise=0.05)
    found = compute(MODEL, whole)
    assert np.isfinite(found.effort).all() and np.isfinite(found.effort_std).all()
    told = [remark for remark in found.remarks if remark.startswith('Less certain')]
    assert len(told) == 2 and 'snap of' in told[0] and 'effort_ddot of' in told[1]
    quiet = compute(MODEL, measured(600, noise=1e-8)).remarks
    assert not [remark for remark in quiet if remark.startswith('Less certain')]


def test_too_few_measurements_give_an_error_not_an_empty_result():
    with pytest.raises(MotionError, match='nothing could be estimated.*max_gap'):
        compute(MODEL, measured().at(slice(20)))
    slow = replace(measured(), times=np.arange(1500.0))
    with pytest.raises(MotionError, match='intervals of less than 0.1 s'):
        compute(MODEL, slow)


def test_wrenches_are_cut_to_what_is_needed_and_refused_if_it_is_not_there():
    whole = samples()
    values = np.random.default_rng(0).normal(size=(200, 3, 6))
    loaded = replace(whole, wrenches=(Wrench('tool', values),))
    found = compute(MODEL, loaded, order=1)
    expected = inverse_dynamics(MODEL, whole.motion[:, :4], Wrench('tool', values[:, :2]))
    np.testing.assert_allclose(found.effort, expected, rtol=1e-10, atol=1e-10)
    poor = replace(whole, wrenches=(Wrench('tool', values[:, :1]),))
    with pytest.raises(
        MotionError, match="'tool' has 1 orders, but 3 are needed .* order=0"
    ):
        compute(MODEL, poor)
    assert compute(MODEL, poor, order=0).effort.shape == (200, 1, 2)
    with pytest.raises(WrenchError, match='unknown link'):
        compute(MODEL, replace(whole, wrenches=(Wrench('hand', values),)))


def test_derivatives_of_wrenches_come_from_a_spline_too():
    times = 0.01 * np.arange(200)
    values = np.stack([np.sin(times + k * np.pi / 2) for k in range(3)], axis=1)
    values = values[:, :, None] * np.arange(1.0, 7.0)
    loaded = samples(orders=1, wrenches=(Wrench('tool', values[:, :1]),))
    found = compute(MODEL, loaded)
    expected = inverse_dynamics(MODEL, swing(times), Wrench('tool', values))
    error = np.abs(found.effort - expected)[20:-20].max(axis=(0, 2))
    assert np.all(error < 1e-5 * np.abs(expected).max(axis=(0, 2)))


def test_wrenches_are_estimated_to_any_order_that_is_wanted():
    recorded = measured(300, noise=1e-5)
    push = np.sin(recorded.times)[:, None, None] * np.ones((1, 6))
    recorded = replace(recorded, wrenches=(Wrench('tool', push),))
    found = compute(MODEL, recorded, order=3)
    values = found.wrenches[0].values
    assert values.shape == (300, 4, 6) and found.effort.shape == (300, 4, 2)
    inner = slice(30, -30)
    np.testing.assert_allclose(values[inner, 0], push[inner, 0], atol=1e-3)
    rate = np.cos(recorded.times)[inner, None]
    np.testing.assert_allclose(values[inner, 1], rate * np.ones(6), atol=0.05)


def test_motors_are_known_as_far_as_the_efforts_are():
    whole, rest = samples(), slice(0, 50)
    expected = compute(MODEL, samples(), actuators=elastic()).motors
    whole.motion[50:80, 4] = np.nan
    whole.motion[90, 1, 0] = np.nan
    found = compute(MODEL, whole, actuators=elastic()).motors
    for ours, theirs in zip(found, expected):
        orders = np.isfinite(ours).all(axis=2).sum(axis=1)
        assert (orders[rest] == theirs.shape[1]).all() and orders[90] == 0
        assert (orders[50:80] == theirs.shape[1] - 1).all()
        np.testing.assert_array_equal(ours[rest], theirs[rest])


@pytest.mark.every_case
@pytest.mark.parametrize(
    'options, message',
    [
        ({'derivatives': 'guess'}, "'guess', expected one of auto, given"),
        ({'order': -1}, 'order is -1, expected a whole number from 0 to'),
        ({'order': True}, 'order is True'),
        ({'rate': 0.0}, 'rate is 0.0, expected a finite number above 0'),
        ({'rate': 1e9}, 'choose a lower rate'),
        ({'derivatives': 'given'}, 'efforts need the acceleration too'),
        ({'derivatives': 'estimate', 'estimator': {'speed': 1}}, 'speed'),
        (
            {'derivatives': 'spline', 'order': 3},
            'a spline has derivatives up to 4',
        ),
    ],
)
def test_options_that_cannot_be_used_are_refused(options, message):
    with pytest.raises(MotionError, match=message):
        compute(MODEL, samples(orders=2), **options)


def test_actuators_of_another_robot_are_refused():
    from support.robots import OTHER_JOINTS

    other = Actuators(type(MODEL).from_urdf(OTHER_JOINTS), {})
    with pytest.raises(
        ActuatorError, match='those of rail, but the model has shoulder, elbow'
    ):
        compute(MODEL, samples(), actuators=other)
    with pytest.raises(MotionError, match='no samples'):
        compute(MODEL, samples(0))
