"""The estimator of derivatives: what it vouches for, other times, and bad streams."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import EXPENSIVE
from support.streams import (
    SECOND,
    coverage,
    errors,
    point_to_point,
    rest,
    robot_motion,
    run,
    same,
    sinusoid,
    stamps,
    stream,
)

from hodyn_ros.errors import MotionError
from hodyn_ros.trajectory import DerivativeEstimator

# What is vouched for


def test_order_lost_in_a_motion_does_not_come_back_in_a_pause():
    motion = point_to_point(0.5, 0.7, 1.0)
    estimates = run(DerivativeEstimator(1), *stream(motion, 200, 9.0, 1e-3))
    orders = np.array([estimate.valid_order for estimate in estimates])
    times = 1e-9 * np.array([estimate.time for estimate in estimates])
    assert orders[times < 1.0].max() == 4
    assert orders[times > 3.0].max() < 4


def test_smallest_motion_decides_at_rest():
    last = [
        run(
            DerivativeEstimator(1, smallest_motion=smallest),
            *stream(rest(), 200, 2.0, 1e-3),
        )[-1]
        for smallest in (1e-5, 1e-3, 10.0)
    ]
    orders = [estimate.valid_order for estimate in last]
    assert orders[0] < orders[1] < orders[2] == 4


def test_estimates_are_not_changed_later():
    times, values = stream(robot_motion, 200, 2.0, 1e-5)
    estimator = DerivativeEstimator(6)
    estimates = run(estimator, times[:200], values[:200])
    kept = pickle.loads(pickle.dumps(estimates))
    run(estimator, times[200:], values[200:])
    assert same(estimates, kept)


# Other times


def test_at_grows_less_sure_ahead_and_stays_honest():
    times, values = stream(robot_motion, 200, 6.0, 1e-5)
    estimator = DerivativeEstimator(6)
    ahead = []
    for i, (time, value) in enumerate(zip(times, values)):
        if estimator.update(time, value) is None:
            continue
        sequence = [estimator.at(time + offset * 1_000_000) for offset in (-50, 0, 10, 20)]
        orders = [estimate.valid_order for estimate in sequence]
        assert orders == sorted(orders, reverse=True)
        for earlier, later in zip(sequence, sequence[1:]):
            assert np.all(later.std >= 0.99 * earlier.std[: later.valid_order + 1])
        if i % 5 == 0:
            ahead.append(sequence[2])
    assert ahead[-1].delay == pytest.approx(-0.01)
    for order in range(2):
        error, std = errors(ahead, robot_motion, order)
        assert len(error) > 100
        assert 0.85 <= coverage(error, std)


def test_at_gives_nothing_where_nothing_is_known():
    estimator = DerivativeEstimator(6)
    assert estimator.at(0) is None
    times, values = stream(robot_motion, 200, 2.0, 1e-5)
    assert run(estimator, times, values)
    assert estimator.at(times[0]) is None
    assert estimator.at(times[-1] + 3600 * SECOND) is None
    estimator.reset()
    assert estimator.at(times[-1]) is None


# Streams that are not as they should be


def test_late_and_repeated_measurements_are_dropped_and_counted():
    times, values = stream(robot_motion, 200, 2.0, 1e-5)
    clean, disturbed = DerivativeEstimator(6), DerivativeEstimator(6)
    expected = run(clean, times, values)
    found = []
    for i, (time, value) in enumerate(zip(times, values)):
        found.append(disturbed.update(time, value))
        if i > 10 and i % 7 == 0:
            assert disturbed.update(time, value + 1.0) is None
            assert disturbed.update(times[i - 3], values[i - 3]) is None
    assert same([estimate for estimate in found if estimate is not None], expected)
    assert disturbed.dropped == 2 * len([i for i in range(11, 400) if i % 7 == 0])
    assert clean.dropped == disturbed.gaps == 0


@pytest.mark.parametrize('offset', [-(10**18), SECOND])
def test_single_absurd_stamp_changes_nothing(offset):
    times, values = stream(robot_motion, 200, 2.0, 1e-5, first=2 * 10**18)
    clean, disturbed = DerivativeEstimator(6), DerivativeEstimator(6)
    expected = run(clean, times, values)
    found = run(disturbed, times[:200], values[:200])
    assert disturbed.update(times[200] + offset, values[200] + 7.0) is None
    found += run(disturbed, times[200:], values[200:])
    assert same(found, expected)
    assert (disturbed.dropped, disturbed.gaps) == (1, 0)


@pytest.mark.parametrize('offset', [-10 * SECOND, 3 * SECOND])
def test_stream_that_goes_on_elsewhere_starts_anew(offset):
    times, values = stream(robot_motion, 200, 2.0, 1e-5, first=2 * 10**17)
    estimator = DerivativeEstimator(6)
    run(estimator, times, values)
    later = [time + offset for time in times]
    found = run(estimator, later, values)
    assert same(found, run(DerivativeEstimator(6), later, values))
    assert (estimator.dropped, estimator.gaps) == (0, 1)


@pytest.mark.parametrize('offset', [0.02, 2.0 * np.pi])
def test_value_that_jumps_takes_the_vouch_for_derivatives_away(offset):
    """A joint that wraps around: from the second value on it is no outlier any more."""
    times = np.arange(0, 12 * SECOND, 2_000_000)
    motion = sinusoid(0.5)
    noise = 1e-5 * np.random.default_rng(3).standard_normal(len(times))
    values = motion(times / SECOND)[:, 0, 0] + noise
    jump = len(times) // 3
    values[jump:] += offset
    estimator = DerivativeEstimator(1)
    orders, times_found = [], []
    for time, value in zip(times, values):
        found = estimator.update(int(time), [value])
        if found is None:
            continue
        orders.append(found.valid_order)
        times_found.append(time - times[jump])
        if found.valid_order > 0 and time > times[jump]:
            true = motion(np.array([found.time / SECOND]))[0, :, 0]
            error = np.abs(found.motion[:, 0] - true[: len(found.motion)])
            assert np.all(error[1:] < 8.0 * found.std[1:, 0]), time
    orders, times_found = np.array(orders), np.array(times_found)
    assert np.all(orders[(times_found > 0) & (times_found < 0.2 * SECOND)] == 0)
    assert orders[times_found < 0][-1] >= 3
    assert orders[-1] >= 3  # and it comes back
    assert 1 <= estimator.outliers <= 3
    assert abs(found.motion[0, 0] - offset - true[0]) < 1e-4


@pytest.mark.parametrize('offset', [0.005, 2.0 * np.pi])
def test_single_values_that_are_wrong_are_left_out(offset, rate=100):
    times, values = stream(robot_motion, rate, 8.0, 1e-5)
    clean = run(DerivativeEstimator(6), times, values)
    rng = np.random.default_rng(7)
    wrong = rng.choice(np.arange(rate, len(times), 3), 2 * rate // 25, replace=False)
    values[wrong, rng.integers(6, size=len(wrong))] += offset
    estimator = DerivativeEstimator(6)
    estimates = run(estimator, times, values)
    assert estimator.outliers >= len(wrong)
    assert estimator.dropped == 0
    assert min(estimate.valid_order for estimate in estimates[rate:]) >= 3
    for order in range(4):
        (error, std), (least, _) = (
            errors(x, robot_motion, order) for x in (estimates, clean)
        )
        assert coverage(error, std) >= 0.9
        assert np.abs(error).max() < 1.5 * np.abs(least).max()


@pytest.mark.every_case
@pytest.mark.parametrize(
    'arguments, part',
    [
        ((10**9, [0.0, np.nan]), 'finite'),
        ((10**9, [1e101, 0.0]), 'finite'),
        ((10**9, [0.0]), r'shape \(1,\), expected \(2,\)'),
        ((10**9, [0.0, 0.0], [np.inf, 0.0]), 'rates'),
        ((1e9, [0.0, 0.0]), 'integer'),
        ((10**9, np.ma.masked_equal([0.0, 1.0], 1.0)), 'masked'),
    ],
)
def test_bad_measurements_are_refused_and_change_nothing(arguments, part):
    motion = point_to_point()
    times, values = stream(motion, 200, 2.0, 1e-5)
    values = np.repeat(values, 2, axis=1)
    clean, disturbed = DerivativeEstimator(2), DerivativeEstimator(2)
    expected = run(clean, times, values)
    found = run(disturbed, times[:150], values[:150])
    with pytest.raises(MotionError, match=part):
        disturbed.update(*arguments)
    found += run(disturbed, times[150:], values[150:])
    assert same(found, expected)
    assert disturbed.dropped == 0


@pytest.mark.every_case
@pytest.mark.parametrize(
    'parameters',
    [
        {'n': 0},
        {'n': 2, 'highest_derivative': 0},
        {'n': 2, 'delay': -0.1},
        {'n': 2, 'max_gap': 0.0},
        {'n': 2, 'noise': 0.0},
        {'n': 2, 'rate_noise': 1.0},
        {'n': 2, 'smallest_motion': np.inf},
    ],
)
def test_bad_parameters_are_refused(parameters):
    with pytest.raises(MotionError, match='expected|without noise'):
        DerivativeEstimator(**parameters)


@EXPENSIVE
@given(st.data())
def test_no_stream_makes_it_return_nan(data):
    estimator = DerivativeEstimator(
        2, highest_derivative=data.draw(st.sampled_from([1, 4]))
    )
    size = data.draw(st.sampled_from([1e-99, 1e-12, 1.0, 1e9, 1e99]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    steps = st.sampled_from([1, 1000, 10**6, 5 * 10**6, 10**8, -(10**6), 10**10, -(10**12)])
    time = 10**18
    for _ in range(data.draw(st.integers(1, 8))):
        step = data.draw(steps)
        hold = data.draw(st.booleans())
        for _ in range(40):
            time += step
            values = size * (np.ones(2) if hold else rng.standard_normal(2))
            for estimate in (estimator.update(time, values), estimator.at(time + 10**7)):
                if estimate is not None:
                    assert np.isfinite(estimate.motion).all()
                    assert np.isfinite(estimate.factor).all() and (estimate.std > 0.0).all()


# Measured rates


def test_measured_rates_help_where_their_noise_is_given():
    rng = np.random.default_rng(0)
    times, t = stamps(200, 5.0, rng)
    truth = robot_motion(t)
    values = truth[:, 0] + 1e-3 * rng.standard_normal((len(t), 6))
    rates = truth[:, 1] + 1e-3 * rng.standard_normal((len(t), 6))
    spread = []
    for given_rates in (rates, np.full_like(rates, np.nan)):
        estimator = DerivativeEstimator(6, noise=1e-3, rate_noise=1e-3)
        estimates = [estimator.update(*row) for row in zip(times, values, given_rates)]
        estimates = [estimate for estimate in estimates if estimate is not None]
        error, std = errors(estimates, robot_motion, 1)
        assert 0.85 <= coverage(error, std)
        spread.append(np.sqrt(np.mean(error**2)))
    assert spread[0] < 0.3 * spread[1]
    without = run(DerivativeEstimator(6, noise=1e-3), times, values)
    assert same(estimates, without)


# Invariances and long runs


def test_fixed_bandwidth_cuts_off_what_is_faster():
    estimates = {}
    for frequency in (0.5, 8.0):
        motion = sinusoid(frequency, 0.1)
        times, values = stream(motion, 500, 3.0, 1e-3)
        estimator = DerivativeEstimator(1, bandwidth=2.0, vouched_fraction=1e6)
        estimates[frequency] = run(estimator, times, values)[-1000:]
    passed = np.ptp([estimate.motion[0, 0] for estimate in estimates[0.5]])
    stopped = np.ptp([estimate.motion[0, 0] for estimate in estimates[8.0]])
    assert passed > 0.195
    assert stopped < 0.05
