"""Chunks of positions spliced into a motion: class C4, limits kept everywhere, rest at the end."""

from dataclasses import replace

import numpy as np
import pytest
from support import robots
from support.motion_limits import FRANKA, PANDA, excess
from support.records import changed

from hodyn_ros import RobotModel
from hodyn_ros.errors import JointNameError, StaleError, TrajectoryError
from hodyn_ros.model import motion_limits
from hodyn_ros.retiming import splice
from hodyn_ros.trajectory import Waypoints, fit_spline

LIMITS = motion_limits(PANDA, FRANKA)
HOME = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8])
STEP = 0.01


def task(t):
    """A smooth motion out of rest at home."""
    t = np.maximum(np.asarray(t, dtype=float), 0.0)[..., None]
    swing = np.sin(2.0 * t + np.arange(7)) - np.sin(np.arange(7))
    return HOME + 0.3 * (1.0 - np.exp(-(t**2))) * swing


def chunk_of(times, positions, names=PANDA.joint_names):
    return Waypoints(names, np.atleast_1d(times), np.atleast_2d(positions))


def sent(times, positions, limits=LIMITS, current=HOME, join=0.0, **options):
    """The motion that goes on with positions, of all joints in their order."""
    chunk = chunk_of(times, positions)
    return splice(PANDA, limits, chunk, current, join, **{'step': STEP, **options})


def test_torque_rate_is_kept_by_leaving_the_chunk():
    strict = changed(LIMITS, effort_dot=np.full(7, 60.0))
    times = 0.02 * np.arange(50)
    fast, slow = (sent(times, task(4.0 * times), limits) for limits in (LIMITS, strict))
    assert excess(strict, fast, fast.times, 5) > 0.5
    assert excess(strict, slow, slow.times, 5) < 1e-6
    assert np.abs(slow(0.5, 0) - HOME).max() > 0.1


def test_noise_is_smoothed_without_delay():
    t, times = np.arange(0.3, 1.5, 0.01), 0.02 * np.arange(100)
    noise = 2e-3 * np.random.default_rng(4).normal(size=(100, 7))
    clean, noisy = sent(times, task(times)), sent(times, task(times) + noise)
    assert np.std(noisy(t, 0) - clean(t, 0)) < 0.75 * 2e-3
    sluggish = sent(times, task(times) + noise, bandwidth=2.0)
    assert np.abs(sluggish(t)[:, 3]).max() < 0.3 * np.abs(noisy(t)[:, 3]).max()


def test_a_late_chunk_is_refused():
    with pytest.raises(StaleError, match='lies 0.1 s before .* longer chunks'):
        sent(0.1 * np.arange(3.0), task(np.zeros(3)), join=0.3)


@pytest.mark.parametrize('time', [0.0, 0.8])
def test_one_point_is_approached_by_its_time_and_held(time):
    goal = HOME + 0.05
    motion = sent(time, goal)
    np.testing.assert_allclose(motion(motion.end_time, 0)[0], goal, atol=1e-3)
    assert excess(LIMITS, motion, motion.times, 5) < 1e-6
    if time:  # it goes there evenly
        np.testing.assert_allclose(motion(0.4, 0)[0], HOME + 0.025, atol=2e-3)


def test_joints_come_in_any_order():
    times, order = 0.02 * np.arange(20), np.array([3, 1, 0, 2, 6, 5, 4])
    names = tuple(np.array(PANDA.joint_names)[order].tolist())
    given = chunk_of(times, task(times)), chunk_of(times, task(times)[:, order], names)
    one, other = (splice(PANDA, LIMITS, chunk, HOME, 0.0) for chunk in given)
    np.testing.assert_array_equal(one.expansions, other.expansions)


def test_a_chunk_far_ahead_of_an_end_that_comes_first_does_not_shorten_the_way_to_rest():
    times = 0.02 * np.arange(100)
    motion = sent(1.0, task(1.0), current=sent(times, task(times)), join=1.0)
    assert 1.0 + motion.end_time >= 2.4
    assert excess(LIMITS, motion, motion.times, 5) < 1e-6


@pytest.mark.parametrize('time', [0.43, 2.0, 5.0])
def test_any_motion_can_be_joined(time):
    spline = fit_spline([0.0, 1.0, 2.0], [HOME, HOME + 0.2, HOME + 0.1])
    times = time + 0.02 * np.arange(50)
    state = spline(min(time, 2.0))
    held = chunk_of(times, np.repeat(state[:1], 50, axis=0))
    motion = splice(PANDA, LIMITS, held, spline, time)
    np.testing.assert_allclose(
        motion(0.0)[:4], state[:4] if time < 2.0 else motion(0.0)[:4]
    )
    np.testing.assert_allclose(motion(motion.end_time, 0)[0], state[0], atol=1e-3)
    assert excess(LIMITS, motion, motion.times, 5) < 1e-6


def test_positions_stay_in_their_range_where_smoothing_would_leave_it():
    upper = LIMITS.upper.copy()
    upper[0] = 0.3
    times = 0.02 * np.arange(60)
    positions = np.tile(HOME, (60, 1))
    positions[times > 0.3, 0] = 0.3
    t = np.linspace(0.0, 1.6, 2000)
    highest = [
        sent(times, positions, limits)(t, 0)[:, 0, 0].max()
        for limits in (LIMITS, changed(LIMITS, upper=upper))
    ]
    assert highest[0] > 0.301
    assert 0.295 < highest[1] <= 0.3 + 1e-12


def test_continuous_joints_take_the_shorter_way():
    description = robots.TWO_LINK.replace(
        '"elbow" type="revolute"', '"elbow" type="continuous"'
    )
    model = RobotModel.from_urdf(description)
    goal = Waypoints(model.joint_names, [0.5], [[0.1, 0.2 + 6.0 * np.pi]])
    motion = splice(model, model_limits(model), goal, np.zeros(2), 0.0)
    np.testing.assert_allclose(motion(motion.end_time, 0)[0], [0.1, 0.2], atol=1e-3)


def model_limits(model):
    return changed(
        motion_limits(model), lower=np.full(2, -np.inf), upper=np.full(2, np.inf)
    )


def test_a_weight_that_is_too_heavy_is_refused_and_the_motion_goes_on():
    weak = changed(LIMITS, effort=np.full(7, 5.0))
    times = 0.02 * np.arange(20)
    with pytest.raises(
        TrajectoryError, match='effort of panda_joint4 is .* the motion in prog'
    ):
        splice(PANDA, weak, chunk_of(times, task(times)), HOME, 0.0)


GOOD = chunk_of(0.02 * np.arange(20), task(0.02 * np.arange(20)))


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('changes', 'error', 'message'),
    [
        (
            {'chunk': replace(GOOD, positions=GOOD.positions + [0, 0, 0, 0, 0, 0, 2.3])},
            TrajectoryError,
            'Waypoint .* position .* of panda_joint7, whose limit is 2.8973',
        ),
        (
            {
                'chunk': Waypoints(
                    PANDA.joint_names[:-1], GOOD.times, GOOD.positions[:, :-1]
                )
            },
            JointNameError,
            'missing: panda_joint7',
        ),
        ({'current': HOME[:-1]}, TrajectoryError, r'has \(6,\) joints, expected 7'),
        ({'current': np.full(7, np.nan)}, TrajectoryError, 'current holds nan at index'),
        ({'join': np.nan}, TrajectoryError, 'join is nan, expected a finite number'),
        ({'step': 0.0}, TrajectoryError, 'step is 0.0, expected a finite number above 0'),
        ({'bandwidth': -1.0}, TrajectoryError, 'bandwidth is -1.0'),
        (
            {'stop_duration': 1e3},
            TrajectoryError,
            r'would have 100038 steps .* expected 2000',
        ),
    ],
)
def test_what_cannot_be_spliced_is_refused(changes, error, message):
    arguments = {'chunk': GOOD, 'current': HOME, 'join': 0.0, **changes}
    with pytest.raises(error, match=message):
        splice(PANDA, LIMITS, **arguments)
