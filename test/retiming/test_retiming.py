"""Fast time laws on a path: limits kept everywhere, and what cannot be retimed."""

from contextlib import suppress

import numpy as np
import pinocchio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import robots
from support.examples import EXPENSIVE
from support.motion_limits import FRANKA, PANDA, excess, jittery_panda, unlimited
from support.random_trees import random_robot
from support.records import changed

from hodyn_ros import RobotModel, friction, inverse_dynamics
from hodyn_ros.errors import ScalingError
from hodyn_ros.model import find_violations, motion_limits
from hodyn_ros.resources import share_file
from hodyn_ros.retiming import new_timing, retime, stretched
from hodyn_ros.trajectory import fit_spline, jtc_motion

RAIL = RobotModel.from_urdf(robots.OTHER_JOINTS)  # 1 kg
OPEN_END = np.full((4, 7), np.nan)
RISE_TIME, WINDOW = 0.02, 0.008  # s, by default


def panda_path(seed, at_rest):
    random = np.random.default_rng(seed)
    middle = 0.5 * (PANDA.limits.lower + PANDA.limits.upper)
    half = 0.5 * (PANDA.limits.upper - PANDA.limits.lower)
    points = middle + 0.35 * half * random.uniform(-1.0, 1.0, (5, 7))
    distances = np.linalg.norm(np.diff(points, axis=0), axis=1)
    ends = None if at_rest else OPEN_END
    return fit_spline(np.append(0.0, np.cumsum(distances)), points, start=ends, end=ends)


LIMITS = motion_limits(PANDA, FRANKA)


def violations(model, limits, motion, samples=100_003):
    """What exceeds its limit at many instants that have nothing to do with the optimisation."""
    dense = motion(np.linspace(motion.start_time, motion.end_time, samples))
    return find_violations(model, limits, dense, inverse_dynamics(model, dense))


def minimum_jerk(standing, stroke=0.8, rate=100.0):
    """Samples of a move of 1 s, with a standstill before and behind it."""
    t = np.linspace(0.0, 1.0 + 2.0 * standing, round(rate * (1.0 + 2.0 * standing)) + 1)
    x = np.clip(t - standing, 0.0, 1.0)
    start = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.5])
    direction = np.array([1.0, 0.4, -0.4, 0.6, 0.2, 0.5, 0.0])
    return t, start + stroke * direction * (10.0 * x**3 - 15.0 * x**4 + 6.0 * x**5)[:, None]


def test_standstills_at_the_ends_are_kept_though_their_samples_are_noisy():
    results, noise, standing = [], 1e-15, 0.3
    for pause in (0.0, standing):
        t, q = minimum_jerk(pause)
        q += noise * np.random.default_rng(0).uniform(-1.0, 1.0, q.shape)
        path = fit_spline(t, q, start=OPEN_END, end=OPEN_END)
        results.append(retime(PANDA, path, LIMITS, intervals=32))
    without, result = results
    assert without.standstill == 0.0
    assert result.standstill == pytest.approx(2.0 * standing, abs=1e-9)
    assert result.duration - result.standstill == pytest.approx(without.duration, rel=4e-2)
    # At rest for as long as the path is, up to the snap.
    t = np.linspace(0.0, standing, 99)
    for motion in map(result.motion, (t, np.clip(result.duration - t, 0.0, None))):
        assert np.abs(motion[:, 1:]).max() <= 1e-9 + 1e14 * noise


@pytest.mark.parametrize('rate', [100.0, 400.0, 1000.0])
def test_limits_hold_as_joint_trajectory_controller_executes_the_samples(rate):
    result = retime(PANDA, panda_path(2, False), LIMITS, intervals=32, rate=rate)
    np.testing.assert_allclose(np.diff(result.motion.times), 1.0 / rate, rtol=1e-9)
    times = np.rint(1e9 * result.motion.times)
    np.testing.assert_array_equal(times / 1e9, result.motion.times)
    rows = np.swapaxes(result.motion(result.motion.times, 2), 0, 1)
    played = jtc_motion(result.motion.times, *rows)
    for phase in (0.0, 0.00037):
        motion = played(np.arange(phase, played.duration, 1e-3), 2)
        steps = np.abs(np.diff(inverse_dynamics(PANDA, motion)[:, 0], axis=0))
        assert steps.max() <= 1.0 + 1e-9
        assert steps.max() > 0.8


@pytest.mark.parametrize(
    ('given', 'rise_time', 'bound'),
    [
        (np.inf, 0.01, 1e5),
        (np.inf, RISE_TIME, 1000.0 / RISE_TIME),
        (3e4, RISE_TIME, 3e4),
    ],
)
def test_torque_rates_change_no_faster_than_they_may(given, rise_time, bound):
    law = friction.Viscous(2.0) + friction.Coulomb(3.0, 0.1)
    model = PANDA.with_friction(dict.fromkeys(PANDA.joint_names, law))
    limits, path = changed(LIMITS, effort_ddot=np.full(7, given)), panda_path(2, False)
    result = retime(model, path, limits, intervals=64, rise_time=rise_time)
    np.testing.assert_array_equal(result.limits.effort_ddot, bound)
    # Second differences of Pinocchio's torques.
    robot, step = pinocchio.buildModelFromUrdf(str(share_file('urdf/panda.urdf'))), 1e-4
    data, t = robot.createData(), np.arange(0.0, result.duration, step)
    motion = result.motion(t, 2)
    torque = np.array([pinocchio.rnea(robot, data, *row) for row in motion])
    torque += 2.0 * motion[:, 1] + 3.0 * np.tanh(motion[:, 1] / 0.1)
    largest = np.abs(np.diff(torque, 2, axis=0)).max() / step**2
    assert 0.8 * bound < largest < 1.001 * bound
    without = retime(model, path, LIMITS, intervals=64, rise_time=0.0)
    assert without.duration < result.duration < 1.04 * without.duration


def test_motion_takes_as_long_as_is_asked_for():
    t, q = minimum_jerk(0.2)
    path = fit_spline(t, q, start=OPEN_END, end=OPEN_END)
    fast = retime(PANDA, path, LIMITS, intervals=32)
    slow = retime(PANDA, path, LIMITS, intervals=32, shortest=path.duration)
    assert fast.duration < path.duration <= slow.duration < path.duration + 0.01
    assert fast.standstill == slow.standstill == pytest.approx(0.4)
    assert violations(PANDA, LIMITS, slow.motion, 20_011) == ()


def test_limits_are_kept_on_every_segment_though_intervals_are_few():
    path = jittery_panda(2500)
    result = retime(PANDA, path, LIMITS, intervals=32)
    motion = result.motion
    # Instants at which the motion passes the knots of its path.
    t = np.linspace(0.0, motion.duration, 400_001)
    knots = np.interp(path.times, result.parameter(t, 0)[:, 0, 0], t)
    assert excess(LIMITS, motion, knots, 23) == 0.0
    assert result.duration <= result.uniform_duration


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
@EXPENSIVE
@given(seed=st.integers(0, 10**6))
def test_random_robots_keep_random_limits_and_are_not_slower_than_uniform(seed):
    random = np.random.default_rng(seed)
    model = RobotModel.from_urdf(random_robot(seed, n_moving=1 + seed % 5).xml)
    n = model.n_joints
    law = (None, friction.Viscous(1.0) + friction.Coulomb(0.5, 0.05), friction.Viscous(0.5))
    model = model.with_friction({name: law[seed % 3] for name in model.body_names})
    points = int(random.integers(2, 5))
    ends = None if random.random() < 0.5 else np.full((4, n), np.nan)
    path = fit_spline(range(points), random.normal(size=(points, n)), start=ends, end=ends)
    slow = path(np.linspace(0.0, points - 1.0, 101))
    slow[:, 1] *= 1e-9
    slow[:, 2:] = 0.0
    weight = np.abs(inverse_dynamics(model, slow)[:, 0]).max(axis=0)
    size = 10.0 ** random.uniform(-1.0, 1.0, 5)
    limits = unlimited(
        n,
        velocity=2.0 * size[0],
        acceleration=10.0 * size[1],
        jerk=100.0 * size[2],
        effort=1.1 * weight + 1.0 + 10.0 * size[3],
        effort_dot=200.0 * size[4],
    )
    result = retime(model, path, limits, intervals=12)
    assert violations(model, limits, result.motion, 20_011) == ()
    # The window, and whole periods.
    assert result.duration <= 1.01 * result.uniform_duration + WINDOW + 0.002


def test_what_is_in_the_way_is_named_with_its_time():
    result = retime(PANDA, panda_path(2, True), LIMITS, intervals=32)
    found = result.limiting
    motion = result.motion(found.time)
    effort = inverse_dynamics(PANDA, motion)
    rows = {'velocity': motion[1], 'acceleration': motion[2], 'jerk': motion[3]}
    rows.update(effort=effort[0], effort_dot=effort[1])
    value = rows[found.quantity][PANDA.joint_names.index(found.name)]
    # Whole periods leave a little room.
    assert value == pytest.approx(found.limit, rel=2e-3)


def test_position_between_samples_is_refused():
    # The highest position is between any even samples.
    path = fit_spline([0.0, 0.7, 2.0], [[0.0], [1.9], [0.0]])
    highest = path(np.linspace(0.0, 2.0, 100_001), 0).max()
    with pytest.raises(ScalingError, match='beyond its limit'):
        retime(RAIL, path, unlimited(1, velocity=1.0, upper=highest - 1e-7))


def test_path_that_must_be_followed_fast_is_refused_with_what_its_weight_needs():
    # Up to where the weight is too much, and back: only with swing.
    pendulum = RobotModel.from_urdf(
        robots.robot(
            '<link name="base"/>', robots.link('arm'), robots.joint('swing', 'base', 'arm')
        )
    )
    angles = np.linspace(-np.pi, np.pi, 100_001)
    still = np.zeros((len(angles), 3, 1))
    still[:, 0, 0] = angles
    weight = inverse_dynamics(pendulum, still)[:, 0, 0]
    hanging = angles[:-1][(weight[:-1] < 0.0) & (weight[1:] >= 0.0)][0]
    path = fit_spline([0.0, 1.0, 2.0], [[hanging], [hanging + 1.2], [hanging]])
    limits = unlimited(1, effort=0.97 * weight.max() * np.sin(1.2))
    with pytest.raises(ScalingError, match='hold still') as caught:
        retime(pendulum, path, limits)
    found = caught.value.limiting
    assert abs(found.value) == pytest.approx(weight.max() * np.sin(1.2), rel=1e-3)
    assert found[:2] == ('effort', 'swing') and found.time == pytest.approx(1.0, abs=0.01)
    # It is no timing that is asked for where it keeps its limits as it is.
    times = np.linspace(0.0, 2.0, 201)
    for factor in np.geomspace(0.1, 3.0, 100):
        given = factor * times, stretched(path(times), factor)
        with suppress(ScalingError):
            kept = new_timing(
                pendulum, None, limits, timing='uniform', slower_only=True, given=given
            )
            break
    assert kept.factor == 1.0 and kept.duration == 2.0 * factor


@pytest.mark.slow
def test_limits_of_joints_that_loops_move_are_in_the_law():
    description = share_file('urdf/five_bar.urdf').read_text()
    knees = ('knee_front', 'knee_back')
    for knee in knees:
        own = f'<joint name="{knee}" type="{{}}">'
        limit = '<limit lower="-3.1" upper="3.1" velocity="2" effort="9" acceleration="8"/>'
        given = own.format('continuous'), own.format('revolute') + limit
        assert given[0] in description
        description = description.replace(*given)
    description = description.replace('<robot ', '<robot version="1.2" ')
    model = RobotModel.from_urdf(description)
    ends = np.full((4, 2), np.nan)
    path = fit_spline([0.0, 1.0], [[0.4, -0.3], [-0.3, 0.4]], start=ends, end=ends)
    result = retime(model, path, intervals=16)
    assert result.limiting.name in knees and result.repair < 1.01
    assert violations(model, model.limits, result.motion, 503) == ()
