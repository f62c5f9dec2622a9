"""The smallest uniform time factor, against a plain search with the check of limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import robots
from support.examples import EXPENSIVE
from support.motion_limits import FRANKA, PANDA, excess, jittery_panda, unlimited
from support.random_trees import random_robot
from support.records import changed

from hodyn_ros import RobotModel, Wrench, actuators, friction, inverse_dynamics
from hodyn_ros.actuators import find_motor_violations, motor_limits, motor_motion
from hodyn_ros.errors import (
    DeflectionError,
    MotionError,
)
from hodyn_ros.model import find_violations, motion_limits
from hodyn_ros.retiming import stretched, uniform_scaling
from hodyn_ros.trajectory import fit_spline, jtc_motion

TWO_LINK = RobotModel.from_urdf(robots.TWO_LINK)


def panda_spline(seed, points=5, duration=1.0):
    random = np.random.default_rng(seed)
    middle = 0.5 * (PANDA.limits.lower + PANDA.limits.upper)
    half = 0.5 * (PANDA.limits.upper - PANDA.limits.lower)
    positions = middle + 0.4 * half * random.uniform(-1.0, 1.0, (points, 7))
    return fit_spline(duration * np.arange(points), positions)


class Played:
    """A spline that is played with a time factor."""

    start_time = 0.0

    def __init__(self, spline, factor):
        self.spline, self.factor, self.times = spline, factor, factor * spline.times
        self.end_time = self.times[-1]

    def __call__(self, t, highest_derivative=4):
        time = np.minimum(t / self.factor, self.spline.end_time)
        return stretched(self.spline(time, highest_derivative), self.factor)


def slower(wrench, factor):
    """The wrench as a function of the place on the path."""
    orders = np.asarray(wrench.values).shape[-2]
    values = wrench.values / factor ** np.arange(orders)[:, None]
    return Wrench(wrench.link, values, wrench.expressed_in, wrench.acting)


def keeps(model, limits, motion, factor, wrench=None, driven=None, bounds=None):
    """Whether a motion keeps its limits with a factor, by computing it anew."""
    K = motion.shape[1]
    played = motion / factor ** np.arange(K)[:, None]
    effort = inverse_dynamics(model, played, wrench and slower(wrench, factor))
    if find_violations(model, limits, played, effort):
        return False
    if driven is None:
        return True
    try:
        motors = motor_motion(driven, played, effort)
    except DeflectionError:
        return False
    return not find_motor_violations(driven, bounds, motors)


def check_minimal(result, *case, **more):
    """The limits are kept at the factor and above, and not where it is one per mille smaller."""
    assert result.factor > 0.0
    assert keeps(*case, result.factor, **more)
    assert not keeps(*case, 0.999 * result.factor, **more)
    for factor in (1.001, 1.1, 1.5, 3.0, 100.0):
        assert keeps(*case, factor * result.factor, **more)


@pytest.mark.parametrize(
    'quantity', ['velocity', 'acceleration', 'jerk', 'effort', 'effort_dot', 'effort_ddot']
)
@pytest.mark.parametrize('tightness', [0.02, 0.3, 5.0])
def test_what_limits_the_motion_is_named(quantity, tightness):
    motion = panda_spline(7)(np.linspace(0.0, 4.0, 101))
    effort = inverse_dynamics(PANDA, motion)
    still = motion.copy()
    still[:, 1:] = 0.0
    series = {'velocity': motion[:, 1], 'acceleration': motion[:, 2], 'jerk': motion[:, 3]}
    series.update(effort=effort[:, 0], effort_dot=effort[:, 1], effort_ddot=effort[:, 2])
    largest = np.abs(series[quantity]).max(axis=0)
    if quantity == 'effort':
        largest = np.abs(inverse_dynamics(PANDA, still)[:, 0]).max(axis=0) + 1.0
        tightness += 1.0
    limits = unlimited(7, **{quantity: tightness * largest})
    result = uniform_scaling(PANDA, motion, limits)
    check_minimal(result, PANDA, limits, motion)
    found = result.limiting
    assert found.quantity == quantity
    faster = motion / (0.9999 * result.factor) ** np.arange(5)[:, None]
    violations = find_violations(PANDA, limits, faster, inverse_dynamics(PANDA, faster))
    assert (found.name, found.sample) in {(v.joint_name, v.sample) for v in violations}
    assert found.value == pytest.approx(found.limit, rel=1e-8)


def test_kinematic_limits_give_the_factor_in_closed_form():
    motion = np.zeros((3, 4, 2))
    motion[1] = [[0.1, 0.2], [4.0, -2.0], [9.0, 1.0], [-64.0, 8.0]]
    for limits, factor in (
        (unlimited(2, velocity=2.0), 2.0),
        (unlimited(2, acceleration=1.0), 3.0),
        (unlimited(2, jerk=1.0), 4.0),
        (unlimited(2, velocity=16.0), 0.25),
        (unlimited(2, velocity=2.0, acceleration=1.0, jerk=1e9), 3.0),
    ):
        result = uniform_scaling(TWO_LINK, motion, limits)
        assert result.factor == pytest.approx(factor, rel=2e-9)
        assert result.is_kept == (factor <= 1.0)


@pytest.mark.parametrize('seed', range(6))
def test_no_slower_motion_exceeds_limits_be_it_in_a_narrow_band_of_speeds(seed):
    random = np.random.default_rng(seed)
    motion = random.normal(size=(1, 5, 2)) * random.choice([0.1, 1.0, 10.0], (1, 5, 2))
    factors = np.append(np.geomspace(0.03, 30.0, 4001), 1e9)  # the last one is rest
    played = motion / factors[:, None, None] ** np.arange(5)[:, None]
    effort = inverse_dynamics(TWO_LINK, played)
    # Low enough to be exceeded at times, but kept at the last of the factors and at this one.
    limit = 1.0001 * np.abs(effort[[2000 + 300 * seed, -1]]).max(axis=0)
    names = ('effort', 'effort_dot', 'effort_ddot')
    limits = unlimited(2, **dict(zip(names, limit)))
    result = uniform_scaling(TWO_LINK, motion, limits)
    exceeds = factors[np.any(np.abs(effort) > limit, axis=(1, 2))]
    assert exceeds.max() < result.factor < exceeds.max() * (factors[1] / factors[0])


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
@EXPENSIVE
@given(seed=st.integers(0, 10**6))
def test_factor_of_random_robots_is_minimal(seed):
    model = RobotModel.from_urdf(random_robot(seed).xml)
    # The positions are not made for the ranges of joints that follow others.
    anywhere = {'lower': -np.inf, 'upper': np.inf}
    followers = {name: changed(x, **anywhere) for name, x in model.follower_limits.items()}
    model = model.changed(follower_limits=followers)
    random = np.random.default_rng(seed)
    n = model.n_joints
    if not n:
        return
    motion = random.normal(size=(8, 5, n)) * random.choice([0.1, 1.0, 10.0], (1, 5, n))
    still = motion.copy()
    still[:, 1:] = 0.0
    links = list(model.links)
    wrench = Wrench(
        links[random.integers(len(links))],
        random.normal(size=(8, 3, 6)),
        ('body', 'spatial', 'hybrid')[seed % 3],
    )
    at_rest = np.abs(inverse_dynamics(model, still, slower(wrench, 1e12))[:, 0]).max(axis=0)
    limits = unlimited(
        n,
        velocity=random.uniform(0.5, 5.0, n),
        acceleration=random.uniform(1.0, 50.0, n),
        jerk=random.uniform(1.0, 500.0, n),
        effort=at_rest * 1.01 + random.uniform(0.1, 30.0, n),
        effort_dot=random.uniform(1.0, 500.0, n),
    )
    result = uniform_scaling(model, motion, limits, wrench=wrench)
    check_minimal(result, model, limits, motion, wrench=wrench)


LINEAR = actuators.LinearSpring(800.0)
LAWS = {
    'viscous': friction.Viscous(2.0),
    'coulomb': friction.Coulomb(3.0) + friction.Viscous(0.5) + friction.Offset(0.3),
    'stribeck': friction.Coulomb(3.0, 0.05) + friction.Stribeck(2.0, 0.4, 0.05),
    'sigmoid': friction.Sigmoid(5.0, 7.0, 0.01) + friction.Viscous(0.5),
}


@pytest.mark.parametrize('law', LAWS)
@pytest.mark.parametrize('quantity', ['effort', 'effort_dot'])
def test_friction_is_scaled_as_its_law_says(law, quantity):
    model = PANDA.with_friction({name: LAWS[law] for name in PANDA.joint_names})
    motion = panda_spline(3)(np.linspace(0.0, 4.0, 101))
    limit = PANDA.limits.effort if quantity == 'effort' else 60.0
    limits = unlimited(7, **{quantity: limit})
    result = uniform_scaling(model, motion, limits)
    check_minimal(result, model, limits, motion)
    assert result.limiting.quantity == quantity
    frictionless = uniform_scaling(PANDA, motion, limits).factor
    assert abs(result.factor / frictionless - 1.0) > 1e-4


@pytest.mark.parametrize(
    ('spring', 'law'),
    [
        (LINEAR, None),
        (LINEAR, friction.Coulomb(2.0, 0.1)),
        (actuators.CubicSpring(600.0, 900.0), friction.Viscous(1.0)),
        (actuators.CubicSpring(800.0, 0.01, 0.1), None),
    ],
)
@pytest.mark.parametrize(
    'bound',
    [
        {'motor_velocity': 2.0},
        {'motor_torque': 80.0},
        {'motor_torque_rate': 400.0},
        {'deflection': 0.09},
    ],
)
def test_limits_of_motors_are_kept(spring, law, bound):
    joints = {
        name: actuators.SeriesElastic(spring, 0.3, friction=law)
        for name in PANDA.joint_names[:3]
    }
    joints[PANDA.joint_names[3]] = actuators.RigidDrive(0.2, friction.Coulomb(1.0))
    driven = actuators.Actuators(PANDA, joints)
    bounds = motor_limits(driven, {name: bound for name in joints})
    motion = panda_spline(5)(np.linspace(0.0, 4.0, 41), 5)
    limits = unlimited(7, jerk=1e5)
    result = uniform_scaling(PANDA, motion, limits, actuators=driven, motor_limits=bounds)
    check_minimal(result, PANDA, limits, motion, driven=driven, bounds=bounds)
    assert result.limiting.quantity in (*bound, 'deflection')


def test_motion_that_nothing_limits_has_the_factor_zero():
    motion = panda_spline(0)(np.linspace(0.0, 4.0, 11))
    result = uniform_scaling(PANDA, motion, unlimited(7))
    assert (result.factor, result.limiting) == (0.0, None)
    assert result.is_kept
    standing = fit_spline([0.0, 1.0], np.tile(panda_spline(0)(0.0)[0], (2, 1)))
    assert uniform_scaling(PANDA, standing) == (0.0, None)


def test_limits_are_kept_on_every_segment_of_a_long_spline():
    limits = motion_limits(PANDA, FRANKA)
    spline = jittery_panda(2500)
    result = uniform_scaling(PANDA, spline, limits)
    for share, is_kept in ((1.0, True), (0.999, False)):
        slow = Played(spline, share * result.factor)
        assert (excess(limits, slow, slow.times, 23) == 0.0) == is_kept
    # What limits it is where it is said to be.
    played = stretched(spline(result.limiting.time), result.factor)
    effort = inverse_dynamics(PANDA, played)
    rows = {'jerk': played[3], 'effort_dot': effort[1]}
    value = rows[result.limiting.quantity][PANDA.joint_names.index(result.limiting.name)]
    assert value == pytest.approx(result.limiting.limit, rel=1e-6)


def wiggle():
    """A motion of 600 s that rests for most of it and moves for 0.1 s in between."""
    t = [0.0, 300.0, 300.05, 300.1, 600.0]
    points = np.array([0.0, 0.0, 0.005, 0.0, 0.0])[:, None] + np.zeros(2)
    rest = np.zeros((5, 2))
    return jtc_motion(t, points, rest, rest)


def test_short_wiggle_in_a_long_motion_is_seen():
    motion = wiggle()
    largest = np.abs(motion(np.linspace(300.0, 300.1, 10_001))[:, 1]).max()
    factor = uniform_scaling(TWO_LINK, motion, unlimited(2, velocity=1e-3)).factor
    assert factor == pytest.approx(largest / 1e-3, rel=1e-6)


def test_derivative_that_jumps_at_a_knot_is_examined_on_both_sides():
    # Accelerations go from 0 to 2 on the first segment, which only its end sees, and are -0.5 on
    # the second; backwards, 2 is at the start of the second.
    positions, velocities = (
        np.array([0.0, 1.0 / 3.0, 13.0 / 12.0]),
        np.array([0.0, 1.0, 0.5]),
    )
    limits = unlimited(2, acceleration=0.5)
    for p, v in ((positions, velocities), (positions[::-1], -velocities[::-1])):
        both = np.ones(2)
        motion = jtc_motion([0.0, 1.0, 2.0], p[:, None] * both, v[:, None] * both)
        factor = uniform_scaling(TWO_LINK, motion, limits).factor
        assert factor == pytest.approx(2.0, rel=1e-8)


class Wave:
    """A function of time without knots."""

    start_time, end_time = 0.0, 1.0

    def __call__(self, t, highest_derivative=4):
        k = np.arange(highest_derivative + 1)[:, None]
        phase = 4.0 * (np.asarray(t, dtype=float)[..., None, None] - 0.32512)
        return [1.0, 0.99] * 4.0 ** (k - 1.0) * np.sin(phase + 0.5 * np.pi * k)


def test_peaks_between_samples_are_found():
    assert np.abs(Wave()(np.linspace(0.0, 1.0, 2001))[:, 1]).max() < 1.0 - 1e-8
    result = uniform_scaling(TWO_LINK, Wave(), unlimited(2, velocity=0.5))
    assert result.factor == pytest.approx(2.0, rel=2e-9)


def test_joints_with_damping_are_scaled_by_what_their_motors_do():
    drives = {'panda_joint2': actuators.SeriesElastic(800.0, 0.5, damping=2.0)}
    driven = actuators.Actuators(PANDA, drives)
    limits = actuators.motor_limits(driven, {'panda_joint2': {'motor_velocity': 0.7}})
    t, k = np.linspace(0.0, 2.0, 101)[:, None, None], np.arange(6)[:, None]
    motion = 0.4 * 2.0**k * np.sin(2.0 * t + 0.5 * np.pi * k) * np.ones(7)
    given = {'actuators': driven, 'motor_limits': limits}
    c = uniform_scaling(PANDA, motion, unlimited(7), **given).factor
    for factor, expected in ((1.0001 * c, 0), (0.9999 * c, 1)):
        slower = motion / factor**k
        motors = actuators.motor_motion(driven, slower)
        found = actuators.find_motor_violations(driven, limits, motors)
        assert len(found) == expected


def test_orders_that_are_missing_are_named():
    with pytest.raises(MotionError, match='jerk is limited.* K >= 4 .* K is 3'):
        uniform_scaling(TWO_LINK, np.zeros((2, 3, 2)), unlimited(2, jerk=1.0))
    with pytest.raises(MotionError, match='effort_dot is limited.* K >= 4'):
        uniform_scaling(TWO_LINK, np.zeros((2, 3, 2)), unlimited(2, effort_dot=1.0))
    spring = actuators.SeriesElastic(100.0, 0.1)
    driven = actuators.Actuators(TWO_LINK, {'elbow': spring})
    for quantity, K in (
        ('motor_velocity', 4),
        ('motor_torque', 5),
        ('motor_torque_rate', 6),
    ):
        given = {'motor_limits': motor_limits(driven, {'elbow': {quantity: 1.0}})}
        with pytest.raises(MotionError, match=f'{quantity} is limited.* K >= {K}'):
            short = np.zeros((2, K - 1, 2))
            uniform_scaling(TWO_LINK, short, unlimited(2), actuators=driven, **given)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('motion', 'reason'),
    [
        (np.zeros((0, 5, 2)), 'N >= 1'),
        (np.zeros((4, 5, 3)), 'shape'),
        (np.full((4, 5, 2), np.nan), 'nan'),
        ('fast', 'motion'),
    ],
)
def test_bad_motion_is_refused_with_the_reason(motion, reason):
    with pytest.raises(MotionError, match=reason):
        uniform_scaling(TWO_LINK, motion)


@pytest.mark.every_case
@pytest.mark.parametrize('factor', [0.0, -1.0, np.nan, np.inf])
def test_bad_factor_is_refused(factor):
    with pytest.raises(MotionError, match='time factor'):
        stretched(np.zeros((5, 2)), factor)
    with pytest.raises(MotionError, match='shape'):
        stretched(np.zeros(2), 1.0)
