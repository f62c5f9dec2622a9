"""One judgement of what a file holds, whichever way its motion is taken."""

import re

import numpy as np
import pytest

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.errors import MotionError
from hodyn_ros.files import Samples, compute, to_motion
from hodyn_ros.files.inspection import inspect

BODY = (
    '<inertial><origin xyz="0.02 0.01 0.1"/><mass value="{}"/><inertia ixx="0.01" iyy="0.012" '
    'izz="0.008" ixy="0.001" ixz="0" iyz="0"/></inertial>'
)


def robot(kinds=('continuous', 'revolute', 'continuous'), reach=1.7):
    """Arm with joints along z, y and x."""
    parts = ['<robot name="arm"><link name="l0"/>']
    for i, (kind, axis) in enumerate(zip(kinds, ('0 0 1', '0 1 0', '1 0 0')), start=1):
        parts.append(
            f'<link name="l{i}">{BODY.format(1.0 / i)}</link><joint name="j{i}" type="{kind}">'
            f'<parent link="l{i - 1}"/><child link="l{i}"/><origin xyz="0 0 0.2"/>'
            f'<axis xyz="{axis}"/><limit lower="-{reach}" upper="{reach}" effort="50" '
            'velocity="3"/></joint>'
        )
    return RobotModel.from_urdf(''.join(parts) + '</robot>')


MODEL = robot()
MIDDLE, SIZE = np.array([2.6, -0.4, -2.8]), np.array([0.9, 0.4, 0.8])
RATE, PHASE = np.array([1.3, 1.9, 1.6]), np.array([0.0, 1.0, 2.0])


def true_motion(times, orders=5):
    """Sines that leave (-pi, pi] and their derivatives, shape (N, orders, 3)."""
    angles = times[:, None] * RATE + PHASE
    rates = [SIZE * RATE**k * np.sin(angles + k * np.pi / 2.0) for k in range(orders)]
    rates[0] = rates[0] + MIDDLE
    return np.stack(rates, axis=1)


def wrapped(motion):
    found = motion.copy()
    for j in (0, 2):
        found[:, 0, j] = -((np.pi - found[:, 0, j]) % (2.0 * np.pi)) + np.pi
    return found


def samples(times, motion, model=MODEL, **more):
    return Samples(model.joint_names, times, motion, name='motion.csv', **more)


TIMES = np.arange(0.0, 4.0, 0.01)


@pytest.mark.parametrize('orders', [1, 2, 3, 5])
def test_continuous_joints_within_one_turn_give_the_torques_of_the_motion(orders):
    truth = true_motion(TIMES)
    recorded = wrapped(truth)[:, :orders]
    assert np.abs(np.diff(recorded[:, 0], axis=0)).max() > 6.0
    found = compute(MODEL, samples(TIMES, recorded))
    expected = inverse_dynamics(MODEL, truth)
    inner = slice(20, -20)
    scale = np.abs(expected).max(axis=(0, 2))
    error = np.abs(found.effort[inner, :1] - expected[inner, :1]).max(axis=(0, 2))
    assert (error < 1e-4 * scale[:1]).all()
    np.testing.assert_allclose(found.motion[:, 0], truth[:, 0], rtol=0.0, atol=1e-12)
    told = [remark for remark in found.remarks if 'by a turn' in remark]
    assert sorted({remark.partition(' ')[0] for remark in told}) == ['j1', 'j3']


def test_a_gap_longer_than_half_a_turn_is_passed_as_fast_as_before():
    times = TIMES[(TIMES < 1.0) | (TIMES > 1.7)]
    spin = np.zeros((len(times), 1, 3))
    spin[:, 0, 0] = 6.0 * times
    recorded = wrapped(spin)
    found = to_motion(MODEL, samples(times, recorded))
    np.testing.assert_allclose(found[1][:, 0], spin[:, 0], rtol=0.0, atol=1e-12)


def test_fast_wheels_that_count_their_turns_are_taken_as_they_are():
    times = np.arange(0.0, 4.0, 0.05)
    wheel = np.zeros((len(times), 1, 3))
    wheel[:, 0, 0] = 90.0 * times + np.sin(times)  # 4.5 rad from sample to sample
    found = to_motion(MODEL, samples(times, wheel))
    np.testing.assert_array_equal(found[1][:, 0], wheel[:, 0])


def test_a_jump_that_is_neither_motion_nor_a_turn_is_refused_by_joint_and_time():
    recorded = true_motion(TIMES, 1)
    recorded[200:, 0, 2] += 4.0
    for derivatives in ('auto', 'given', 'spline', 'estimate'):
        with pytest.raises(MotionError, match=r'j3 goes by .* from 1\.99 to 2 s'):
            to_motion(MODEL, samples(TIMES, recorded), derivatives=derivatives)


def test_a_spike_of_a_measurement_leaves_no_turn_behind():
    random = np.random.default_rng(0)
    recorded = true_motion(TIMES, 1)
    clean = recorded.copy()
    recorded += 1e-4 * random.standard_normal(recorded.shape)
    recorded[200, 0, 0] += 3.5
    found = to_motion(MODEL, samples(TIMES, wrapped(recorded), is_measured=True))[1]
    assert np.abs(found[250:, 0] - clean[250:, 0]).max() < 1e-3


def test_waypoints_are_taken_as_they_are_and_the_long_way_round_is_said():
    points = np.array([3.0, -3.0])[:, None, None] * np.ones(3) * [[1.0, 0.1, 1.0]]
    found = to_motion(MODEL, samples(np.array([0.0, 2.0]), points, is_waypoints=True))
    assert (found[1][0, 0, 0], found[1][-1, 0, 0]) == (3.0, -3.0)
    assert any('j1 goes by -6 rad from 0 to 2 s' in remark for remark in found[2])


def sine(size, times=TIMES):
    return np.sin(0.2 * times)[:, None, None] * np.asarray(size)


LIMITED = robot(('revolute', 'revolute', 'revolute'))
WAYS = ('given', 'spline', 'estimate')


@pytest.mark.parametrize('derivatives', WAYS)
@pytest.mark.parametrize('size', [(14.0, 13.0, 0.1), (100.0, 0.1, 0.1)])
def test_degrees_below_three_turns_are_refused_with_joint_value_and_limit(
    derivatives, size
):
    recorded = samples(TIMES, sine(size), LIMITED)
    farthest = f'{np.abs(recorded.motion[:, 0, 0]).max():.4g}'
    with pytest.raises(
        MotionError, match=f'j1 is at {farthest}, .* limit of 1.7 rad.*degrees, or percent'
    ):
        to_motion(LIMITED, recorded, derivatives=derivatives)


@pytest.mark.parametrize('derivatives', WAYS)
def test_one_joint_beyond_its_limit_is_a_remark(derivatives):
    recorded = samples(TIMES, sine((0.1, 0.1, 14.0)), LIMITED)
    remarks = to_motion(LIMITED, recorded, derivatives=derivatives)[2]
    (remark,) = [text for text in remarks if 'degrees' in text]
    assert remark.startswith('j3 is at 10.02, 5.9 times its limit of 1.7 rad')
    within = samples(TIMES, sine((0.1, 0.1, 1.9)), LIMITED)
    remarks = to_motion(LIMITED, within, derivatives=derivatives)[2]
    assert not [text for text in remarks if 'limit' in text]


def test_millimetres_are_refused_and_continuous_joints_turn_as_far_as_they_like():
    sliding = robot(('prismatic', 'revolute', 'continuous'), reach=0.5)
    with pytest.raises(MotionError, match='j1 is at .* expected metres.*millimetres'):
        to_motion(sliding, samples(TIMES, sine((400.0, 0.1, 0.1)), sliding))
    to_motion(sliding, samples(TIMES, sine((0.3, 0.1, 500.0)), sliding))


def remarks_on(times, motion, model=MODEL, **more):
    return to_motion(model, samples(times, motion, model), **more)[2]


@pytest.mark.every_case
@pytest.mark.parametrize('noise', [0.0, 1e-4])
@pytest.mark.parametrize('held', [2, 5])
def test_held_values_are_used_once(noise, held):
    truth = true_motion(TIMES)[:400:held, :1]
    truth = truth + noise * np.random.default_rng(0).standard_normal(truth.shape)
    found = to_motion(MODEL, samples(TIMES, np.repeat(truth, held, axis=0)))
    np.testing.assert_allclose(found[0], TIMES[::held], rtol=0.0, atol=1e-12)
    assert any(f'held for about {held} samples' in remark for remark in found[2])
    alone = to_motion(MODEL, samples(TIMES[::held], truth))
    np.testing.assert_array_equal(found[1], alone[1])


def test_what_stands_still_or_creeps_is_not_taken_for_held():
    resting = true_motion(np.minimum(TIMES, 1.0), 1)
    creeping = np.round(1e-4 * TIMES, 6)[:, None, None] * np.ones(3)
    for motion in (resting, creeping, np.round(true_motion(TIMES, 1), 2)):
        assert len(to_motion(MODEL, samples(TIMES, motion))[0]) == len(TIMES)


@pytest.mark.every_case
@pytest.mark.parametrize('wrong', ['spike', 'frozen', 'zeros'])
def test_steps_that_no_joint_makes_are_told_with_joint_and_time(wrong):
    recorded = true_motion(TIMES, 1)
    if wrong == 'spike':
        recorded[150, 0, 1] += 0.5
    elif wrong == 'frozen':
        recorded[100:106] = recorded[100]
    else:
        recorded[:5] = 0.0
    where = {
        'spike': r'j2 jumps by -?0\.5',
        'frozen': r'1\.05 to 1\.06 s',
        'zeros': r'0\.04 to 0\.05 s',
    }
    text = ' '.join(remarks_on(TIMES, recorded))
    assert re.search(where[wrong], text) and 'jumps' in text
    assert 'jumps' not in ' '.join(remarks_on(TIMES, true_motion(TIMES, 1)))


def test_joints_far_faster_than_their_limits_are_told_as_other_units():
    text = ' '.join(remarks_on(TIMES, np.rad2deg(true_motion(TIMES, 1)) * [1.0, 0.0, 1.0]))
    assert re.search(r'j\d moves \d\d times as fast as its limit of velocity', text)


def test_numbers_of_samples_in_place_of_times_are_told():
    text = ' '.join(remarks_on(np.arange(400.0), true_motion(TIMES, 1)))
    assert 'are they numbers of samples?' in text


@pytest.mark.every_case
@pytest.mark.parametrize('derivatives', ['spline', 'estimate', 'auto'])
@pytest.mark.parametrize('orders', [1, 3, 4])
def test_a_gap_is_told_however_the_motion_is_taken(derivatives, orders):
    kept = (TIMES < 1.0) | (TIMES > 1.6)
    remarks = remarks_on(
        TIMES[kept], true_motion(TIMES, orders)[kept], derivatives=derivatives
    )
    assert any(
        'no samples for 0.62 s, a gap from 0.99 to 1.61 s' in remark for remark in remarks
    )


def test_what_happens_in_a_gap_contradicts_nothing():
    times = np.arange(0.0, 4.0, 0.002)
    truth = true_motion(times, 4)
    for begin in np.arange(0.3, 3.0, 0.1):
        kept = (times < begin) | (times > begin + 0.6)
        found = to_motion(MODEL, samples(times[kept], truth[kept]), derivatives='given')
        np.testing.assert_array_equal(found[1], truth[kept])


def test_a_clock_that_jumps_ahead_leaves_samples_and_not_waypoints():
    times = TIMES + 3600.0 * (TIMES >= 2.0)
    found = to_motion(MODEL, samples(times, true_motion(TIMES, 1)))
    truth = true_motion(TIMES)
    np.testing.assert_array_equal(found[0], times)
    inner = np.r_[20:180, 220:380]
    off = np.abs(found[1] - truth)[inner, :3].max(axis=(0, 2))
    assert (off < 1e-3 * np.abs(truth).max(axis=(0, 2))[:3]).all()


@pytest.mark.parametrize('clock', ['random walk', 'ticks of 4 ms'])
def test_a_clock_that_errs_makes_measurements_and_is_told(clock):
    steps = np.random.default_rng(3).choice([0.008, 0.012], len(TIMES) - 1)
    walk = np.append(0.0, np.cumsum(steps))
    stamps = walk if clock == 'random walk' else 0.004 * np.rint(TIMES / 0.004)
    found = compute(MODEL, samples(stamps, true_motion(TIMES, 1)))
    assert found.source == 'measured' and any('the clock' in text for text in found.remarks)
    truth = inverse_dynamics(MODEL, true_motion(TIMES))[:, 0]
    assert np.abs(found.effort[:, 0] - truth).max() < 0.3 * np.abs(truth).max()
    # Samples that were taken at these times are no measurements.
    found = inspect(MODEL, samples(stamps, true_motion(stamps, 1)))
    assert found.kind == 'samples' and not found.samples.remarks


def test_a_derivative_that_joints_lack_is_left_out():
    recorded = true_motion(TIMES, 2)
    recorded[:, 1, 2] = np.nan
    found = to_motion(MODEL, samples(TIMES, recorded))
    np.testing.assert_array_equal(
        found[1], to_motion(MODEL, samples(TIMES, recorded[:, :1]))[1]
    )
    assert any('some joints alone are not used' in remark for remark in found[2])


def test_all_commands_judge_a_recording_alike():
    random = np.random.default_rng(0)
    noisy = true_motion(TIMES, 1) + 1e-4 * random.standard_normal((len(TIMES), 1, 3))
    given = samples(TIMES, noisy)
    assert inspect(MODEL, given).kind == 'measured'
    assert compute(MODEL, given).source == 'measured'
    for motion, kind in ((true_motion(TIMES, 1), 'samples'), (noisy[::20], 'waypoints')):
        times = TIMES[:: 400 // len(motion)]
        assert inspect(MODEL, samples(times, motion)).kind == kind
