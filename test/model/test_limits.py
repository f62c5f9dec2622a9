"""Limits: where a motion exceeds them, and what may be given as one."""

from collections import Counter

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel
from hodyn_ros.errors import ModelError
from hodyn_ros.model import (
    LimitCheck,
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


@pytest.mark.parametrize(
    ('quantity', 'order', 'limit'),
    [
        ('position', 0, 2.0),
        ('velocity', 1, 3.0),
        ('acceleration', 2, 5.0),
        ('jerk', 3, 7.0),
    ],
)
@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_worst_sample_of_the_motion_is_reported(quantity, order, limit, sign):
    motion = np.zeros((4, 5, 2))
    motion[1, order, 1] = sign * limit * 1.1
    motion[2, order, 1] = sign * limit * 1.2
    (found,) = violations(motion, np.zeros((4, 3, 2))).items()
    assert found[0] == (quantity, 'elbow')
    assert found[1].value == sign * limit * 1.2
    assert found[1].limit == sign * limit
    assert found[1].sample == 2


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
        ({'elbow': {'jerk': 0.0}}, 'limits.elbow.jerk is 0.0'),
        (
            {'elbo': {'jerk': 1.0}},
            r'limits\.elbo: arm has no joint elbo\. Is elbow meant',
        ),
        ({'finger': {'jerk': 1.0}}, 'has no joint finger. Its joints are shoulder, elbow'),
        ({'elbow': {'jerk': -1.0}}, 'expected a number above 0'),
        ({'elbow': {'jerk': float('nan')}}, 'expected a number above 0'),
    ],
)
def test_bad_limit_is_refused_with_the_reason(extra, reason):
    with pytest.raises(ModelError, match=reason):
        motion_limits(MODEL, extra)


@pytest.mark.parametrize('orders', [3, 4, 5])
def test_quick_check_of_samples_counts_what_the_search_finds(orders):
    limits = motion_limits(MODEL, EXTRA)
    check = LimitCheck(MODEL, limits)
    bounds = np.array(
        [limits.upper, limits.velocity, limits.acceleration, limits.jerk, [np.inf, np.inf]]
    )[:orders]
    bounds_of_effort = np.array([limits.effort, limits.effort_dot, limits.effort_ddot])
    random = np.random.default_rng(4)
    kept, hits = [], Counter()
    for _ in range(500):
        # Most values within, some on and some beyond their limits; any value where there is none.
        factors = random.choice([0.0, -0.5, 0.9, 1.0, -1.0, 1.0 + 1e-12, 1.1, -1.1], (8, 2))
        factors = np.where(random.random((8, 2)) < 0.7, 0.5 * factors, factors)
        motion = factors[:orders] * np.where(np.isfinite(bounds), bounds, 1e9)
        bound = bounds_of_effort[: orders - 2]
        effort = factors[5 : 5 + orders - 2] * np.where(np.isfinite(bound), bound, 1e9)
        found = find_violations(MODEL, limits, motion[None], effort[None])
        kept.append(not check.look(motion, effort))
        assert kept[-1] == (found == ())
        hits.update(f'{item.quantity} of {item.joint_name}' for item in found)
    assert 50 < sum(kept) < 450
    assert check.take_hits() == hits
    assert check.take_hits() == {}, 'they are taken once'
