"""Limits: where a motion exceeds them, and what may be given as one."""

from collections import Counter

import numpy as np
import pytest
from support import robots

from hodyn_ros import RobotModel
from hodyn_ros.errors import ModelError
from hodyn_ros.model.limits import (
    LimitCheck,
    find_violations,
    find_violations_in_blocks,
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


def test_nothing_is_found_within_the_limits_and_on_them():
    motion = np.zeros((3, 5, 2))
    motion[1] = [[2.0, -2.0], [-3.0, 3.0], [1e9, 5.0], [1e9, -7.0], [1e9, 1e9]]
    effort = np.zeros((3, 3, 2))
    effort[2] = [[50.0, -50.0], [1e9, 11.0], [1e9, 13.0]]
    assert violations(motion, effort) == {}


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


@pytest.mark.parametrize('K', [3, 4, 5])
def test_violations_in_blocks_are_those_of_all_samples_together(K):
    rng = np.random.default_rng(K)
    motion, effort = (
        4.0 * rng.normal(size=(60, K, 2)),
        40.0 * rng.normal(size=(60, K - 2, 2)),
    )
    limits = motion_limits(MODEL, EXTRA)
    blocks = [(motion[:7], effort[:7])]
    blocks += [
        (motion[part].reshape(-1, 4, K, 2), effort[part].reshape(-1, 4, K - 2, 2))
        for part in (slice(7, 27), slice(27, 59))
    ]
    blocks.append((motion[59:], effort[59:]))
    found = find_violations_in_blocks(MODEL, limits, blocks)
    assert found == find_violations(MODEL, limits, motion, effort)
    # What is found, and which is the worst, from the definition.
    series = {
        'position': motion[:, 0],
        'velocity': motion[:, 1],
        'acceleration': motion[:, 2],
        'effort': effort[:, 0],
    }
    if K > 3:
        series |= {'jerk': motion[:, 3], 'effort_dot': effort[:, 1]}
    if K > 4:
        series |= {'effort_ddot': effort[:, 2]}
    expected = []
    for quantity, values in series.items():
        bound = limits.upper if quantity == 'position' else getattr(limits, quantity)
        for j in range(2):
            worst = int(np.abs(values[:, j]).argmax())
            if abs(values[worst, j]) > bound[j]:
                limit = np.copysign(bound[j], values[worst, j])
                name = MODEL.joint_names[j]
                expected.append((quantity, name, values[worst, j], limit, worst))
    assert len(expected) > 4
    assert [tuple(item) for item in found] == expected


@pytest.mark.parametrize(
    ('quantity', 'order', 'limit'),
    [('effort', 0, 50.0), ('effort_dot', 1, 11.0), ('effort_ddot', 2, 13.0)],
)
def test_worst_sample_of_the_effort_is_reported(quantity, order, limit):
    effort = np.zeros((4, 3, 2))
    effort[3, order, 1] = -limit * 1.5
    (found,) = violations(np.zeros((4, 5, 2)), effort).items()
    assert found[0] == (quantity, 'elbow')
    assert (found[1].limit, found[1].sample) == (-limit, 3)


def test_orders_that_are_not_known_are_not_checked():
    motion, effort = np.full((1, 3, 2), 1e3), np.full((1, 1, 2), 1e3)
    assert {quantity for quantity, _ in violations(motion, effort)} == {
        'position',
        'velocity',
        'acceleration',
        'effort',
    }
    assert violations(motion[:0], effort[:0]) == {}


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
