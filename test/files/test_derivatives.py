"""Derivatives that contradict the positions are refused, noise is told from motion."""

import re
from pathlib import Path

import numpy as np
import pytest

from hodyn_ros import RobotModel
from hodyn_ros.errors import MotionError
from hodyn_ros.files import Samples, compute, to_motion
from hodyn_ros.trajectory import Waypoints, panda_sinusoids, plan_motion

URDF = Path(__file__).resolve().parents[2] / 'urdf' / 'panda.urdf'
MODEL = RobotModel.from_urdf(URDF)
# Splines through random waypoints swing out farther than any joint of a Panda turns.
FAR_TURNING = RobotModel.from_urdf(
    re.sub(r'(lower|upper)="(-?)[\d.]+"', r'\1="\g<2>99"', URDF.read_text(encoding='utf-8'))
)
REFERENCE = panda_sinusoids()


def samples(times, motion, **more):
    return Samples(MODEL.joint_names, times, motion, name='motion.csv', **more)


def at(rate, function=REFERENCE.motion, duration=REFERENCE.duration):
    times = np.linspace(0.0, duration, round(duration * rate) + 1)
    return times, function(times)


def planned(seed, interpolation, given):
    """Motion through random waypoints, with as many orders given, and its duration."""
    random = np.random.default_rng(seed)
    count = int(random.integers(3, 12))
    times = np.concatenate([[0.0], np.cumsum(random.uniform(0.3, 1.5, count - 1))])
    positions = random.uniform(-1.0, 1.0, (count, 7))
    velocities = random.normal(0.0, 0.5, (count, 7))
    velocities[[0, -1]] = 0.0
    orders = (velocities, np.zeros_like(velocities))
    waypoints = Waypoints(MODEL.joint_names, times, positions, *orders[:given])
    plan = plan_motion(waypoints, MODEL.joint_names, interpolation=interpolation)
    return plan.motion, times[-1]


def taken(model, given):
    """What is made of samples with derivatives: all that was given, as it is."""
    times, motion, _ = to_motion(model, given, derivatives='given')
    np.testing.assert_array_equal(times, given.times)
    np.testing.assert_array_equal(motion, given.motion)


@pytest.mark.parametrize('rate', (100, 10, 1000))
@pytest.mark.parametrize('interpolation, given', [('spline', 0), ('spline', 2), ('jtc', 1)])
def test_motions_are_consistent_however_they_are_sampled_and_written(
    interpolation, given, rate
):
    for seed in range(3):
        times, motion = at(rate, *planned(seed, interpolation, given))
        for written in (motion, motion[:, :3], np.round(motion, 3), motion.astype('f4')):
            taken(FAR_TURNING, samples(times, written))


@pytest.mark.every_case
@pytest.mark.parametrize(
    'noise, step, lag', [(1e-5, 0.0, 0.005), (1e-3, 0.0, 0.02), (0.0, 1e-3, 0.01)]
)
def test_recordings_with_plausible_velocities_are_consistent(noise, step, lag):
    random = np.random.default_rng(0)
    times, motion = at(250)
    positions = motion[:, 0] + noise * random.standard_normal(motion[:, 0].shape)
    if step:
        positions = np.round(positions / step) * step
    velocities = REFERENCE.motion(np.maximum(times - lag, 0.0))[:, 1]
    velocities = velocities + 0.01 * random.standard_normal(velocities.shape)
    velocities[np.abs(velocities) < 0.02] = 0.0  # as many drivers have it
    recorded = np.stack([positions, velocities], axis=1)
    for late in (0.0, 0.4 / 250):
        taken(MODEL, samples(times + random.uniform(0.0, late, len(times)), recorded))


WRONG = {
    'ten times as fast': lambda t, m: (t / 10.0, m),
    'zeros': lambda t, m: (t, m[:, :2] * [[1.0], [0.0]]),
    'degrees': lambda t, m: (t, m[:, :2] * [[1.0], [57.3]]),
    'sign': lambda t, m: (t, m[:, :2] * [[1.0], [-1.0]]),
    'zero acceleration': lambda t, m: (t, m[:, :3] * [[1.0], [1.0], [0.0]]),
    'no jerk': lambda t, m: (t, m[:, :4] * [[1.0], [1.0], [1.0], [0.0]]),
    'other joint': lambda t, m: (t, np.stack([m[:, 0], m[:, 1, ::-1]], axis=1)),
}


@pytest.mark.every_case
@pytest.mark.parametrize('wrong', WRONG)
def test_contradictions_are_refused_whichever_way_the_motion_is_taken(wrong):
    times, motion = WRONG[wrong](*at(100))
    for derivatives in ('given', 'spline'):
        if derivatives == 'spline' and motion.shape[1] > 3:
            continue
        with pytest.raises(
            MotionError, match=r'given as .* but its .* changes by|looks like'
        ):
            to_motion(MODEL, samples(times, motion), derivatives=derivatives)
    to_motion(MODEL, samples(times, motion[:, :1]))  # nothing contradicts these alone


def test_contradictions_are_found_in_any_part_of_a_long_motion():
    times, motion = at(1000)
    motion[6500:6600, 1, 0] += 1.0
    with pytest.raises(MotionError, match=r'panda_joint1 .* at 6\.[56]'):
        compute(MODEL, samples(times, motion))


def test_waypoints_may_have_any_velocities_and_few_samples_anything():
    times, motion = np.linspace(0.0, 8.0, 17), REFERENCE.motion(np.linspace(0.0, 8.0, 17))
    resting = motion[:, :2] * [[1.0], [0.0]]
    for few in (
        samples(times, resting, is_waypoints=True),
        samples(times[:3], resting[:3]),
    ):
        found_times, found, _ = to_motion(MODEL, few)
        places = np.searchsorted(found_times, few.times - 1e-9)
        np.testing.assert_allclose(found[places, :2], few.motion, atol=1e-9)
    with pytest.raises(MotionError, match=r'nothing but zeros.*\.yaml'):
        to_motion(MODEL, samples(times, resting))


def test_measurements_that_come_late_or_twice_contradict_nothing():
    times, motion = at(250)
    rows = np.arange(len(times))
    rows[[500, 501]] = rows[[501, 500]]
    rows = np.insert(rows, 900, 900)
    taken(MODEL, samples(times[rows], motion[rows], is_measured=True))


def noise_of(times, motion):
    remarks = to_motion(FAR_TURNING, samples(times, motion), derivatives='spline')[2]
    return [remark for remark in remarks if 'looks measured' in remark]


@pytest.mark.every_case
@pytest.mark.parametrize('what', ['1e-5 rad', 'encoder'])
def test_measured_positions_are_recognised_and_the_way_out_is_said(what):
    random = np.random.default_rng(0)
    times, motion = at(250)
    motion = motion[:, :1].copy()
    if what == 'encoder':
        motion = np.round(motion * 2**16) / 2**16
    else:
        motion += 1e-5 * random.standard_normal(motion.shape)
    (remark,) = noise_of(times, motion)
    assert remark.startswith('The position of panda_')
    assert '--derivatives estimate' in remark


@pytest.mark.every_case
@pytest.mark.parametrize('wrong', ['late', 'noisy', 'late acceleration'])
def test_derivatives_that_would_make_a_spline_oscillate_are_left_out(wrong):
    random = np.random.default_rng(0)
    times, motion = at(250)
    recorded, k = motion[:, :2].copy(), 1
    if wrong == 'late':
        recorded[:, 1] = REFERENCE.motion(np.maximum(times - 0.01, 0.0))[:, 1]
    elif wrong == 'noisy':
        recorded[:, 1] += 1e-3 * random.standard_normal(recorded[:, 1].shape)
    else:
        recorded, k = motion[:, :3].copy(), 2
        recorded[:, 2] = REFERENCE.motion(np.maximum(times - 0.01, 0.0))[:, 2]
    _, found, remarks = to_motion(MODEL, samples(times, recorded))
    said = f'The {("position", "velocity", "acceleration")[k]} is not used'
    assert any(remark.startswith(said) for remark in remarks)
    off = np.abs(found - motion[:, :5])[50:-50].max(axis=(0, 2))
    assert (off < 2e-3 * np.abs(motion[:, :5]).max(axis=(0, 2))).all()
    for orders in (2, 3):
        remarks = to_motion(MODEL, samples(times, motion[:, :orders].round(6)))[2]
        assert not any('not used' in remark for remark in remarks)


def test_times_from_long_ago_do_not_disturb_the_derivatives():
    times, motion = at(1000)
    positions = motion[:, :1]
    expected = to_motion(MODEL, samples(times, positions))[1]
    stamps = 1.7e9 + times  # 2.4e-7 s apart at least
    kept, found, remarks = to_motion(MODEL, samples(stamps, positions))
    np.testing.assert_array_equal(kept, stamps)
    assert np.abs(found - expected)[:, 3].max() < 1e-3 * np.abs(expected[:, 3]).max()
    assert not [remark for remark in remarks if 'subtract' in remark]
    uneven = times + 2e-4 * np.sin(7.0 * times)
    for since, count in ((0.0, 0), (1.7e9, 1)):
        remarks = to_motion(MODEL, samples(since + uneven, positions))[2]
        assert (
            len([remark for remark in remarks if 'subtract the first' in remark]) == count
        )


@pytest.mark.parametrize('rate', (100, 10, 1000))
def test_what_is_exact_is_not_taken_for_measured(rate):
    times, motion = at(rate)
    for orders in (1, 2, 3):
        assert not noise_of(times, motion[:, :orders])
    # At 1 kHz a sixth decimal would be noise of 1,000 rad/s^3, which is told.
    assert not noise_of(times, np.round(motion[:, :1], 6 if rate < 1000 else 9))
    part = np.clip(times - 2.0, 0.0, 4.0) / 4.0  # rests at both ends
    smooth = 10.0 * part**3 - 15.0 * part**4 + 6.0 * part**5
    corners = np.interp(times, [0.0, 1.0, 2.3, 8.0], [0.0, 1.0, 0.3, 2.0])
    for path in (smooth, corners):
        assert not noise_of(times, path[:, None, None] * np.ones((1, 1, 7)))
    for seed in range(3):
        curve, duration = planned(seed, 'spline', 0)
        assert not noise_of(*at(max(rate, 100), lambda t, f=curve: f(t)[:, :1], duration))


def test_positions_in_a_table_that_are_far_apart_are_waypoints_as_in_a_trajectory():
    times, angles = np.arange(4.0), np.array([0.0, 0.1, 0.3, 0.2])[:, None] * np.ones(7)
    found = [
        to_motion(MODEL, samples(times, angles[:, None], is_waypoints=known))
        for known in (False, True)
    ]
    for ours, theirs in zip(*found):
        np.testing.assert_array_equal(ours, theirs)
    assert not found[0][1][[0, -1], 1:3].any()
    assert 'The motion ends at rest.' in found[0][2]
    remarks = to_motion(MODEL, samples(0.05 * times, angles[:, None]))[2]
    assert 'need not begin and end at rest' in remarks[-1]


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('time', 'angle', 'words'),
    [
        (1e3, 1.0, 'milliseconds.*1e3'),
        (1e6, 1.0, 'microseconds.*1e6'),
        (1.0, 180.0 / np.pi, 'degrees'),
    ],
)
def test_other_units_are_refused_by_name(time, angle, words):
    times = np.arange(0.0, 3.0, 0.01)
    motion = 0.5 * np.sin(2.0 * times)[:, None, None] * np.ones(7)
    recording = samples(time * times, angle * motion)
    for derivatives in ('given', 'spline', 'estimate'):
        with pytest.raises(MotionError, match=f'looks like {words}'):
            to_motion(MODEL, recording, derivatives=derivatives)
