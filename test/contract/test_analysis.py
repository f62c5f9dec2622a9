"""What exceeds limits, what has none, why a robot stopped, and points for controllers."""

import json

import numpy as np
import pinocchio
import pytest
from support import robots
from support.control_cases import HOME, PANDA

from hodyn_ros import RobotModel
from hodyn_ros.analysis import (
    Recorded,
    controller_trajectory,
    find_position_violations,
    find_stop_causes,
    find_unlimited,
    find_violations,
    motion_limits,
)
from hodyn_ros.errors import ModelError, MotionError, RequestError
from hodyn_ros.trajectory import fit_spline

MODEL = RobotModel.from_urdf(robots.TWO_LINK)  # |q| <= 2, |qd| <= 3, |Q| <= 50
RATES = {'acceleration': 15.0, 'jerk': 7500.0, 'effort_dot': 1000.0}
LIMITS = motion_limits(MODEL, dict.fromkeys(MODEL.joint_names, RATES))
H, AT = 1e-3, 1204  # period, and the sample of a fault
TIMES = H * np.arange(2001)


def test_violations_are_all_that_plain_comparisons_find():
    random = np.random.default_rng(0)
    motion = random.normal(size=(400, 5, 2)) * [[1.0], [1.5], [8.0], [4e3], [1.0]]
    effort = random.normal(size=(400, 3, 2)) * [[25.0], [500.0], [1.0]]
    series = *np.moveaxis(motion[:, :4], 1, 0), *np.moveaxis(effort[:, :2], 1, 0)
    names = 'position', 'velocity', 'acceleration', 'jerk', 'effort', 'effort_dot'
    expected = set()
    for name, values, limit in zip(names, series, (2.0, 3.0, 15.0, 7500.0, 50.0, 1000.0)):
        worst = np.abs(values).argmax(axis=0)
        for j in np.flatnonzero(np.abs(values).max(axis=0) > limit):
            value = values[worst[j], j]
            expected.add(
                (name, MODEL.joint_names[j], value, np.copysign(limit, value), worst[j])
            )
    found = find_violations(MODEL, LIMITS, motion, effort)
    assert {
        (v.quantity, v.joint_name, v.value, v.limit, v.sample) for v in found
    } == expected
    assert len(found) == len(expected) > 8
    assert find_violations(MODEL, LIMITS, 0.01 * motion, 0.01 * effort) == ()
    beyond = find_position_violations(MODEL, LIMITS, motion[:, 0])
    assert {v.quantity for v in beyond} == {'position'} and len(beyond) == 2


def test_limits_that_nobody_gave_are_named_with_what_the_motion_reaches():
    motion = np.random.default_rng(1).normal(size=(50, 5, 2))
    effort = np.random.default_rng(2).normal(size=(50, 3, 2))
    given = motion_limits(
        MODEL, {'elbow': {'jerk': 9.0}, 'shoulder': {'acceleration': 5.0}}
    )
    found = find_unlimited(MODEL, given, motion, effort)
    assert {each.quantity: each.names for each in found} == {
        'acceleration': ('elbow',),
        'jerk': ('shoulder',),
        'effort_dot': ('shoulder', 'elbow'),
        'effort_ddot': ('shoulder', 'elbow'),
    }
    largest = {each.quantity: each.largest for each in found}
    assert largest['acceleration'] == np.abs(motion[:, 2, 1]).max()
    assert largest['jerk'] == np.abs(motion[:, 3, 0]).max()
    assert largest['effort_dot'] == np.abs(effort[:, 1]).max()
    with pytest.raises(ModelError, match='wrist'):
        motion_limits(MODEL, {'wrist': RATES})


def way(times):
    """Positions from rest at 0.2 s to rest at 1.8 s, with four continuous derivatives."""
    u = np.clip((times - 0.2) / 1.6, 0.0, 1.0)
    rise = u**5 * (126.0 - 420.0 * u + 540.0 * u**2 - 315.0 * u**3 + 70.0 * u**4)
    return rise[:, None] * [0.7, -0.4] + [-0.3, 0.5]


def missed(q):
    q[AT] = q[AT - 1]


def jumped(q):
    q[AT:, 0] += 1e-3


def turned(q):
    q[AT:, 0] += 0.1 * (TIMES[AT:] - TIMES[AT - 1])


def pushed(q):
    q[:, 0] += 9.0 * H**2 * np.cumsum(np.cumsum(np.arange(len(q)) >= AT))


@pytest.mark.parametrize(
    ('fault', 'kind', 'order', 'row'),
    [
        (missed, 'missed cycle', 2, AT + 1),
        (jumped, 'jump', 2, AT + 1),
        (turned, 'velocity step', 2, AT),
        (pushed, 'acceleration step', 3, AT),
    ],
)
def test_causes_of_stops_are_where_they_were_put_and_as_large(fault, kind, order, row):
    q = way(TIMES)
    fault(q)
    q = q[: AT + 20]
    found = find_stop_causes(MODEL, LIMITS, Recorded(TIMES[: len(q)], q))
    cause = found.causes[0]
    assert (cause.kind, cause.is_certain, found.verdict) == (kind, True, 'exceeded')
    assert abs(cause.time - TIMES[AT]) <= 1.5 * H
    quantity, limit = {2: ('acceleration', 15.0), 3: ('jerk', 7500.0)}[order]
    expected = np.diff(q[row - order : row + 1, 0], order)[0] / H**order
    (worst,) = (
        e for e in cause.excesses if (e.quantity, e.source) == (quantity, 'commanded')
    )
    assert worst.value == pytest.approx(expected, rel=1e-6)
    assert worst.factor == pytest.approx(abs(expected) / limit, rel=1e-6)
    assert (worst.joint_name, worst.time) == ('shoulder', pytest.approx(TIMES[row]))
    assert worst.unit == f'rad/s^{order}'
    said, records = str(found.answer), json.loads(found.answer.json)['causes'][0]
    assert said.startswith(f'1. {kind} at ') and f'[{worst.unit}]' in said
    assert (records['kind'], records['is_certain']) == (kind, True)
    assert {'quantity', 'value', 'unit'} <= set(records['excesses'][0])


@pytest.mark.parametrize(('noise', 'verdict'), [(0.0, 'kept'), (2e-5, 'undecided')])
def test_motions_that_keep_limits_have_no_cause_and_noise_decides_nothing(noise, verdict):
    q = way(TIMES) + noise * np.random.default_rng(0).standard_normal((2001, 2))
    found = find_stop_causes(MODEL, LIMITS, Recorded(TIMES, q))
    assert (found.causes, found.verdict) == ((), verdict)
    assert bool(found.undecided) == (verdict == 'undecided')


def test_recordings_that_cannot_be_judged_are_refused():
    with pytest.raises(MotionError, match='There is no recording'):
        find_stop_causes(MODEL, LIMITS)
    with pytest.raises(MotionError, match='3 samples, expected at least 5'):
        find_stop_causes(MODEL, LIMITS, Recorded(TIMES[:3], way(TIMES[:3])))


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
@pytest.mark.parametrize('tolerance', [1.0, 0.03])
def test_efforts_between_points_for_controllers_are_within_the_tolerance(tolerance):
    model, robot = RobotModel.from_urdf(PANDA), pinocchio.buildModelFromXML(PANDA)
    data, random = robot.createData(), np.random.default_rng(4)
    motion = fit_spline([0.0, 0.6, 1.5, 2.0], HOME + 0.1 * random.normal(size=(4, 7)))
    points = controller_trajectory(model, motion, tolerance)
    looks = np.linspace(0.0, 2.0, 2001)
    exact = np.array([pinocchio.rnea(robot, data, *row) for row in motion(looks, 2)])
    sent = np.array([np.interp(looks, points.times, each) for each in points.effort.T]).T
    assert np.abs(sent - exact).max() <= 1.02 * points.error <= 1.02 * tolerance
    assert len(points.times) < 0.5 * len(looks)
    with pytest.raises(RequestError, match='tolerance'):
        controller_trajectory(model, motion, 0.0)
