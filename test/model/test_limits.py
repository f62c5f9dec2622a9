"""Limits: where a motion exceeds them, and what may be given as one."""

import pickle
from collections import Counter

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel
from hodyn_ros.errors import ModelError
from hodyn_ros.model import (
    LimitCheck,
    MotionLimits,
    find_violations,
    motion_limits,
)

MODEL = RobotModel.from_urdf(robots.TWO_LINK)  # |q| <= 2, |qd| <= 3, |Q| <= 50
EXTRA = {
    'elbow': {'acceleration': 5.0, 'jerk': 7.0, 'effort_dot': 11.0, 'effort_ddot': 13.0}
}


def violations(motion, effort, extra=EXTRA):
    limits = motion_limits(MODEL, extra)
    return {
        (v.quantity, v.joint_name): v
        for v in find_violations(MODEL, limits, motion, effort)
    }


@pytest.mark.parametrize('signs', [(1.0, -1.0), (-1.0, 1.0)])
def test_worst_sample_is_that_on_the_side_that_is_exceeded_by_more(signs):
    motion = np.zeros((4, 5, 2))
    motion[1:3, 1, 1] = 3.3 * signs[0], 3.6 * signs[1]
    (found,) = violations(motion, np.zeros((4, 3, 2))).values()
    assert (found.value, found.limit, found.sample) == (3.6 * signs[1], 3.0 * signs[1], 2)


def test_orders_that_are_not_known_are_not_checked():
    motion, effort = np.full((1, 3, 2), 1e3), np.full((1, 1, 2), 1e3)
    assert {quantity for quantity, _ in violations(motion, effort)} == {
        'position',
        'velocity',
        'acceleration',
        'effort',
    }
    assert violations(motion[:0], effort[:0]) == {}


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('extra', 'reason'),
    [
        ({'elbow': {'snap': 1.0}}, 'limits.elbow.snap is unknown'),
        ({'finger': {'jerk': 1.0}}, 'has no joint finger; its joints are shoulder, elbow'),
        ({'elbow': {'jerk': float('nan')}}, 'expected a number above 0'),
    ],
)
def test_bad_limit_is_refused_with_the_reason(extra, reason):
    with pytest.raises(ModelError, match=reason):
        motion_limits(MODEL, extra)


@pytest.mark.parametrize('orders', [5, 4, 3])
def test_quick_check_of_samples_counts_what_the_search_finds(orders):
    limits = motion_limits(MODEL, EXTRA)
    check = LimitCheck(MODEL, limits)
    names = (
        'upper',
        'velocity',
        'acceleration',
        'jerk',
        'effort',
        'effort_dot',
        'effort_ddot',
    )
    bounds = np.array([getattr(limits, name) for name in names])
    bounds[np.isinf(bounds)] = 1e9
    bounds = np.insert(bounds, 4, 1e9, axis=0)
    random = np.random.default_rng(4)
    kept, hits = 0, Counter()
    for _ in range(500):
        # Most values within, some on and some beyond their limits; any value where there is none.
        factors = random.choice([0.0, -0.5, 0.9, 1.0, -1.0, 1.0 + 1e-12, 1.1, -1.1], (8, 2))
        values = np.where(random.random((8, 2)) < 0.7, 0.5 * factors, factors) * bounds
        motion, effort = values[:orders], values[5 : 3 + orders]
        found = find_violations(MODEL, limits, motion[None], effort[None])
        assert check.look(motion, effort) == (found != ())
        kept += found == ()
        hits.update(f'{item.quantity} of {item.joint_name}' for item in found)
    assert 50 < kept < 450
    assert check.take_hits() == hits
    assert check.take_hits() == {}, 'they are taken once'


def test_the_worst_of_long_motions_is_found_wherever_it_is_and_whatever_is_not_known():
    rng = np.random.default_rng(3)
    for n_samples in (255, 273, 5000):
        motion = rng.uniform(-0.1, 0.1, (n_samples, 3, MODEL.n_joints))
        effort = rng.uniform(-0.1, 0.1, (n_samples, 1, MODEL.n_joints))
        motion[rng.random(motion.shape) < 0.2] = np.nan
        at = int(rng.integers(n_samples))
        motion[at, 1, 0] = -1e3
        found = find_violations(MODEL, MODEL.limits, motion, effort)
        assert [(v.quantity, v.sample, v.value) for v in found] == [('velocity', at, -1e3)]


def test_limits_may_be_lists_and_stay_arrays():
    limits = MODEL.limits._replace(velocity=[1, 2], jerk=[5.0, 6.0])
    again = pickle.loads(pickle.dumps(limits))
    assert type(again) is type(limits) is MotionLimits
    assert again.velocity.dtype == float and again.velocity.tolist() == [1.0, 2.0]
    motion = np.zeros((4, 2))
    motion[1], motion[3] = 3.0, 7.0
    found = find_violations(MODEL, limits, motion, np.zeros((1, 2)))
    assert [(v.quantity, v.limit) for v in found] == [
        ('velocity', 1.0),
        ('velocity', 2.0),
        ('jerk', 5.0),
        ('jerk', 6.0),
    ]
    for given, said in (
        (np.nan, 'jerk are nan'),
        (['fast', 1.0], 'jerk are .*fast'),
        (3.0, r'jerk have the shape \(\), those of lower \(2,\)'),
    ):
        with pytest.raises(ModelError, match=said):
            limits._replace(jerk=given)
