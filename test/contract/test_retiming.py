"""How fast motions may be: what a controller executes keeps all limits, and is fast.

A controller interpolates samples of position, velocity and acceleration by polynomials of degree
5, which SciPy does here; torques and their rates are those of Pinocchio.
"""

import numpy as np
import pinocchio
import pytest
from scipy.interpolate import BPoly
from scipy.spatial import KDTree
from support import robots

from hodyn_ros import RobotModel, actuators, friction
from hodyn_ros.analysis import motion_limits
from hodyn_ros.errors import HodynError, ScalingError, TrajectoryError, UnlimitedError
from hodyn_ros.resources import share_file
from hodyn_ros.retiming import new_timing, retime, splice, stretched, uniform_scaling
from hodyn_ros.trajectory import Waypoints, fit_spline, jtc_motion

PLACES = 100_001
PANDA = RobotModel.from_urdf('panda')
ACCELERATIONS = (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)
GIVEN = {
    name: {'acceleration': most, 'jerk': 500.0 * most, 'effort_dot': 1000.0}
    for name, most in zip(PANDA.joint_names, ACCELERATIONS)
}
LIMITS = motion_limits(PANDA, GIVEN)
HOME = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8])
POINTS = HOME + 0.5 * np.random.default_rng(3).uniform(-1.0, 1.0, (5, 7))
PATH = fit_spline(np.arange(5.0), POINTS)


def executed(motion, places=PLACES):
    """Times, and position to jerk of the controller at them, shape (places, 4, n)."""
    polynomial = BPoly.from_derivatives(motion.times.copy(), motion(motion.times, 2))
    times = np.linspace(motion.start_time, motion.end_time, places)
    return times, np.stack([polynomial(times, k) for k in range(4)], axis=1)


def torques(rows, viscous=0.0, coulomb=0.0, width=0.1):
    """Torques (N, 7) and their rates by Pinocchio, with friction written down plainly."""
    robot = pinocchio.buildModelFromUrdf(str(share_file('urdf/panda.urdf')))
    data = robot.createData()
    found = np.zeros((2, len(rows), 7))
    for k, (q, v, a, jerk) in enumerate(rows):
        by_q, by_v, inertia = pinocchio.computeRNEADerivatives(robot, data, q, v, a)
        inertia = np.triu(inertia) + np.triu(inertia, 1).T
        found[:, k] = data.tau, by_q @ v + by_v @ a + inertia @ jerk
    slope = viscous + coulomb / width / np.cosh(rows[:, 1] / width) ** 2
    found[0] += viscous * rows[:, 1] + coulomb * np.tanh(rows[:, 1] / width)
    found[1] += slope * rows[:, 2]
    return found


def use(rows, *laws, limits=LIMITS):
    """Largest share of each limit that is used."""
    values = *np.moveaxis(rows[:, 1:], 1, 0), *torques(rows, *laws)
    names = 'velocity', 'acceleration', 'jerk', 'effort', 'effort_dot'
    return {name: np.abs(x / getattr(limits, name)).max() for name, x in zip(names, values)}


@pytest.fixture(scope='module')
def retimed():
    return retime(PANDA, PATH, LIMITS, intervals=64)


@pytest.mark.parametrize('law', [(), (2.0, 3.0)], ids=['free', 'rubbing'])
def test_a_retimed_motion_as_executed_keeps_all_limits_and_reaches_one(retimed, law):
    found = retimed
    if law:
        rubbing = friction.Viscous(law[0]) + friction.Coulomb(law[1], 0.1)
        model = PANDA.with_friction(dict.fromkeys(PANDA.joint_names, rubbing))
        found = retime(model, PATH, LIMITS, intervals=64)
    _, rows = executed(found.motion, 20_001 if law else PLACES)
    assert 0.99 < max(use(rows, *law).values()) <= 1.0 + 1e-7
    assert np.all((LIMITS.lower < rows[:, 0]) & (rows[:, 0] < LIMITS.upper))
    assert found.duration == pytest.approx(found.motion.duration)
    assert found.duration < 0.75 * uniform_scaling(PANDA, PATH, LIMITS).factor * 4.0


def test_a_retimed_motion_stays_on_its_path_from_end_to_end(retimed):
    _, rows = executed(retimed.motion, 2001)
    way = PATH(np.linspace(0.0, 4.0, 40_001), 1)
    _, nearest = KDTree(way[:, 0]).query(rows[:, 0])
    assert np.all(np.diff(nearest) >= 0)
    beside = rows[:, 0] - way[nearest, 0]
    along = (
        way[nearest, 1] / np.maximum(np.linalg.norm(way[nearest, 1], axis=1), 1e-9)[:, None]
    )
    beside -= (beside * along).sum(axis=1)[:, None] * along
    assert np.all(np.abs(beside).max(axis=0) <= 1.01 * retimed.deviation + 1e-9)
    assert retimed.deviation.max() < 1e-3
    np.testing.assert_allclose(rows[[0, -1], 0], POINTS[[0, -1]], atol=1e-12)


def test_a_retimed_motion_is_of_class_c4_from_rest_to_rest(retimed):
    motion = retimed.motion
    polynomial = BPoly.from_derivatives(motion.times.copy(), motion(motion.times, 2))
    inside = motion.times[1:-1]
    for k in (3, 4):
        each = polynomial.derivative(k)
        jumps = each(inside) - each(np.nextafter(inside, 0.0))
        assert np.abs(jumps).max() < 1e-4 * np.abs(each(inside)).max()
    assert not motion([0.0, motion.duration])[:, 1:].any()


LONG = robots.OTHER_JOINTS.replace('velocity="3" effort="50"', 'velocity="{}" effort="{}"')


@pytest.mark.parametrize(
    ('velocity', 'effort', 'bounds', 'duration'),
    [
        (1.0, 1e6, {'acceleration': 2.0, 'jerk': 8.0}, 1.5 + 0.5 + 0.25),
        (1.0, 1e6, {'acceleration': 2.0}, 1.5 + 0.5),
        (1e3, 1e6, {'acceleration': 2.0}, 2.0 * np.sqrt(1.5 / 2.0)),
        (1e3, 1e6, {'jerk': 8.0}, np.cbrt(32.0 * 1.5 / 8.0)),
        (1.0, 2.0, {'effort_dot': 8.0}, 1.5 + 0.5 + 0.25),
        (1e3, 1e6, {'effort_ddot': 32.0}, (384.0 * 1.5 / 32.0) ** 0.25),
    ],
)
def test_durations_are_those_of_time_optimal_control(velocity, effort, bounds, duration):
    """Of 1 kg on a level rail over 1.5 m: bang-bang in what is limited."""
    rail = RobotModel.from_urdf(LONG.format(velocity, effort), gravity=(0.0, 0.0, 0.0))
    path = fit_spline([0.0, 1.0], [[-0.5], [1.0]])
    limits = motion_limits(rail, {'rail': bounds})
    found = retime(rail, path, limits, intervals=64, rise_time=0.0)
    assert duration * (1.0 - 1e-9) <= found.duration < 1.01 * duration
    _, rows = executed(found.motion, 20_001)
    largest = np.abs(rows[:, :, 0]).max(axis=0)[1:] * (1.0 - 1e-9)
    most = velocity, bounds.get('acceleration', effort), bounds.get('jerk', np.inf)
    assert np.all(largest <= most) and largest[2] <= bounds.get('effort_dot', np.inf)


def test_motors_behind_springs_keep_their_torques(retimed):
    inertia, stiffness = 0.6, 1e4
    spring = actuators.SeriesElastic(stiffness, inertia)
    driven = actuators.Actuators(PANDA, dict.fromkeys(PANDA.joint_names, spring))
    most = 0.5 * PANDA.limits.effort
    bounds = {
        name: {'motor_torque': x} for name, x in zip(PANDA.joint_names, most.tolist())
    }
    given = {'actuators': driven, 'motor_limits': actuators.motor_limits(driven, bounds)}
    found = retime(PANDA, PATH, LIMITS, intervals=64, **given)
    used = []
    for each in (retimed, found):
        times, rows = executed(each.motion, 5001)
        torque, rate = torques(rows)
        twice = np.gradient(rate, times, axis=0)
        motor = inertia * (rows[:, 2] + twice / stiffness) + torque
        used.append(np.abs(motor / most).max())
    assert 0.7 < used[1] < 1.0 + 1e-3 < used[0]
    assert retimed.duration < found.duration < 2.0 * retimed.duration


def test_a_path_stands_still_where_waypoints_repeat_and_as_long():
    points = POINTS[[0, 1, 1, 1, 2]]
    path = fit_spline([0.0, 1.0, 1.2, 1.4, 2.4], points)
    kept, dropped = (
        retime(PANDA, path, LIMITS, intervals=32, keep_standstills=keep)
        for keep in (True, False)
    )
    times, rows = executed(kept.motion, 5001)
    stands = (np.abs(rows[:, 1:]).max(axis=(1, 2)) < 1e-9) & (times > 0.1)
    stands &= times < kept.duration - 0.1
    assert stands.mean() * kept.duration == pytest.approx(0.4, abs=5e-3)
    np.testing.assert_allclose(rows[stands, 0], points[1] + np.zeros((stands.sum(), 7)))
    assert kept.duration == pytest.approx(dropped.duration + 0.4, abs=1e-9)


def test_one_factor_for_the_whole_motion_is_the_smallest_that_keeps_the_limits():
    found = uniform_scaling(PANDA, PATH, LIMITS)
    rows = PATH(np.linspace(0.0, 4.0, 5001), 3)
    used = [use(stretched(rows, share * found.factor)) for share in (1.0, 0.999)]
    assert max(used[0].values()) <= 1.0 + 1e-7 < 1.0 + 1e-4 < max(used[1].values())
    assert found.limiting.quantity == max(used[0], key=used[0].get)


@pytest.mark.parametrize('timing', ['path', 'uniform'])
def test_slower_only_leaves_a_slow_motion_and_makes_a_fast_one_slower(timing):
    slow, fast = (fit_spline(scale * np.arange(5.0), POINTS) for scale in (10.0, 0.1))
    kept, found = (
        new_timing(PANDA, path, LIMITS, timing=timing, slower_only=True)
        for path in (slow, fast)
    )
    np.testing.assert_array_equal(kept.samples, slow(kept.times))
    assert kept.duration == kept.duration_before == slow.duration
    assert max(use(executed(found.motion, 5001)[1]).values()) <= 1.0 + 1e-7
    assert found.duration > 1.5 * found.duration_before == pytest.approx(0.6)
    assert abs(found.limiting.value) == pytest.approx(abs(found.limiting.limit), rel=0.02)
    fastest = new_timing(PANDA, slow, LIMITS, timing=timing)
    assert fastest.duration == pytest.approx(found.duration, rel=0.02)
    # Too fast at one place alone: elsewhere nothing becomes faster.
    factor = uniform_scaling(PANDA, PATH, LIMITS).factor
    near = fit_spline(0.97 * factor * np.arange(5.0), POINTS)
    there = new_timing(PANDA, near, LIMITS, timing=timing, slower_only=True)
    assert near.duration <= there.duration < 1.04 * near.duration


def test_chunks_that_contradict_each_other_are_spliced_within_the_limits():
    random, current, begin = np.random.default_rng(1), HOME, 0.0
    for now in np.arange(0.0, 1.0, 0.05):
        times = now + 0.02 * np.arange(16)
        wanted = HOME + 0.3 * np.sin(times)[:, None] ** 2 + 0.03 * random.normal(size=7)
        chunk = Waypoints(PANDA.joint_names, times - begin, wanted)
        motion = splice(PANDA, LIMITS, chunk, current, now - begin)
        if now:
            before, behind = current(now - begin), motion(0.0)
            scale = np.abs(motion(motion.times)).max(axis=(0, 2))
            assert np.all(np.abs(before - behind).max(axis=1) <= 1e-9 * scale)
            played = executed(current, 301)
            assert max(use(played[1][played[0] <= now - begin]).values()) <= 1.0 + 1e-6
        current, begin = motion, now
    _, rows = executed(current, 2001)
    assert max(use(rows).values()) <= 1.0 + 1e-6
    assert np.abs(rows[-1, 1:]).max() < 1e-6
    np.testing.assert_allclose(rows[-1, 0], wanted[-1], atol=5e-3)


RAIL = RobotModel.from_urdf(robots.OTHER_JOINTS)
STROKE = fit_spline([0.0, 1.0], [[0.0], [1.0]])
NO_LIMITS = RobotModel.from_urdf(LONG.format('inf', 'inf'))


def test_a_rough_path_is_slowed_down_until_it_keeps_the_limits():
    u = np.linspace(0.0, 1.0, 500)[:, None]
    rough = 0.4 * np.sin(6.0 * u) + 2e-3 * np.random.default_rng(0).normal(size=(500, 1))
    limits = motion_limits(RAIL, {'rail': {'acceleration': 20.0}})
    found = retime(RAIL, fit_spline(u[:, 0], rough), limits, intervals=256)
    _, rows = executed(found.motion, 50_001)
    used = np.abs(rows[:, 1:3, 0]).max(axis=0) / [3.0, 20.0]
    assert 0.9 < used.max() <= 1.0 + 1e-7 and found.repair > 1.01


@pytest.mark.parametrize(
    ('change', 'error', 'words'),
    [
        ({'path': fit_spline([0.0, 1.0], [[0.0], [2.5]])}, ScalingError, "'rail' .* 2.5"),
        ({'path': fit_spline([0.0, 1.0], [[0.5], [0.5]])}, HodynError, 'does not move'),
        (
            {'path': jtc_motion([0, 1, 2], [[0.0], [1.0], [0.5]])},
            TrajectoryError,
            'expected 4',
        ),
        ({'path': PATH}, HodynError, 'expected'),
        ({'path': np.zeros((5, 1))}, HodynError, 'expected a function'),
        ({'model': RobotModel.from_urdf(LONG.format(3, 5))}, ScalingError, 'hold still'),
        ({'rate': 0.0}, TrajectoryError, 'rate is 0.0'),
        ({'window': np.nan}, TrajectoryError, 'window is nan'),
        ({'shortest': -1.0}, TrajectoryError, 'shortest is -1.0'),
        ({'intervals': 2.5}, TrajectoryError, 'intervals is 2.5'),
    ],
)
def test_motions_that_no_timing_saves_are_refused_with_the_reason(change, error, words):
    with pytest.raises(error, match=words):
        retime(**{'model': RAIL, 'path': STROKE, 'intervals': 8, **change})


def test_a_speed_that_nothing_limits_is_an_error_that_says_so():
    with pytest.raises(UnlimitedError, match='Nothing limits the speed'):
        retime(NO_LIMITS, STROKE)
