"""Wrench inputs of the node: what becomes of messages until a motion needs them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Vector3, WrenchStamped
from geometry_msgs.msg import Wrench as WrenchMessage
from hodyn_msgs.msg import WrenchMotion
from scipy.interpolate import BPoly
from scipy.spatial.transform import Rotation
from support import robots
from support.random_trees import random_motion
from support.tool_cases import (
    CENTER,
    GRAVITY,
    MASS,
    PANDA,
    PinPoses,
    derivatives_at_zero,
    moved,
)

from hodyn_ros import RobotModel, Wrench, inverse_dynamics
from hodyn_ros.errors import WrenchError
from hodyn_ros.ros.base.inputs import WrenchMessages as Wrenches
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.parameters import make_settings
from hodyn_ros.streams.wrench_sources import LEVER
from hodyn_ros.trajectory import Estimate

START = 1_000_000_000_000
MS = 1_000_000
RNG = np.random.default_rng(5)
VALUES = RNG.normal(size=(3, 6)) * [[3.0], [10.0], [50.0]]
AS_FORCES = np.array([LEVER] * 3 + [1.0] * 3)
XYZ, RPY = (0.02, -0.03, 0.08), (0.3, -0.5, 1.9)
MOTION = random_motion(8, 7, 5)


def answer_of(motion):
    """Estimate whose values are off by a hundredth of a newton, and by more in each derivative."""
    K = len(motion)
    factor = np.broadcast_to(np.diag(0.01 * 10.0 ** np.arange(K)), (6, K, K))
    std = np.linalg.norm(factor, axis=2).T
    return Estimate(START, motion, std, factor, K - 1, 0.0, std[0])


class KnownSignal:
    """Estimator that knows the signal: a polynomial in time about `START`.

    Like all estimators of wrenches, it has to do with forces alone, [N]: moments over `LEVER`.
    """

    def __init__(self, values=VALUES, orders=3, ready_after=1):
        self.values, self.orders, self.ready_after = values, orders, ready_after
        self.samples = []

    def update(self, time_ns, values):
        self.samples.append((time_ns, values * AS_FORCES))

    def at(self, time_ns):
        if len(self.samples) < self.ready_after:
            return None
        forces = polynomial(self.values, (time_ns - START) / 1e9) / AS_FORCES
        return answer_of(forces[: self.orders])


def polynomial(values, t):
    W, Wd, W2d = values
    return np.array([W + t * Wd + t * t / 2 * W2d, Wd + t * W2d, W2d])


def stamp(time):
    return Time(sec=time // 10**9, nanosec=time % 10**9)


def message_of(values):
    mx, my, mz, fx, fy, fz = (float(value) for value in values)
    return WrenchMessage(torque=Vector3(x=mx, y=my, z=mz), force=Vector3(x=fx, y=fy, z=fz))


def stamped(values=VALUES[0], frame='panda_link8', time=START):
    message = WrenchStamped(wrench=message_of(values))
    message.header.frame_id, message.header.stamp = frame, stamp(time)
    return message


def given(
    values=VALUES, link='panda_link8', time=START, expressed_in=WrenchMotion.BODY, acting=0
):
    message = WrenchMotion(expressed_in=expressed_in, acting=acting)
    message.header.frame_id, message.header.stamp = link, stamp(time)
    message.wrench, message.wrench_dot, message.wrench_ddot = (
        message_of(v) for v in values
    )
    return message


@pytest.fixture(scope='module')
def model():
    return RobotModel.from_urdf(PANDA, gravity=GRAVITY)


def wrench_settings(**fields) -> NodeSettings:
    """Defaults but for some of wrenches; the sensor reads what the robot exerts."""
    fields = {'acting': 'on_environment', **fields}
    settings = make_settings(NodeSettings, {})
    return replace(settings, wrench=replace(settings.wrench, **fields))


def wrenches_with(new_estimator=KnownSignal, **settings):
    """Wrenches of one test; all estimators that they make are in the list `made`."""
    made = []

    def make(**options):
        made.append(new_estimator())
        return made[-1]

    wrenches = Wrenches(wrench_settings(**settings), make)
    wrenches.made = made
    return wrenches


def at_rest(turn=0.0):
    motion = np.zeros((5, 7))
    motion[0] = MOTION[0] + turn
    return motion


def only(result):
    (wrench,) = result.wrenches
    return wrench


# Frames, signs, tool


@pytest.mark.parametrize('acting', ['on_environment', 'on_robot'])
@pytest.mark.parametrize(
    ('link', 'frame'),
    [
        ('', 'panda_link7'),
        ('', 'panda_link8'),
        ('panda_link7', 'panda_link7'),
        ('panda_link7', 'panda_link8'),
        ('panda_link7', 'panda_link0'),
        ('panda_link8', 'panda_link7'),
        ('panda_link8', 'panda_link0'),
    ],
)
@pytest.mark.parametrize('seed', range(2))
def test_contact_wrench_is_recovered_from_what_a_sensor_measures(
    model, seed, link, frame, acting
):
    poses, motion = PinPoses(), random_motion(seed, 7, 5)
    rng = np.random.default_rng(seed)
    # By the robot, in base axes about the base origin.
    contact = rng.normal(size=(3, 6)) * 5.0
    sensor_R = Rotation.from_euler('xyz', RPY).as_matrix()
    sign = 1.0 if acting == 'on_environment' else -1.0

    def reading(time):
        q = moved(motion, time)
        sensor_link = link if frame == 'panda_link0' else frame
        R, r = poses(q, sensor_link)
        R, r = R @ sensor_R, r + R @ XYZ
        # What the robot holds: minus the weight of the tool, and the contact.
        moment, force = np.split(sign * polynomial(contact, time)[0], 2)
        weight = MASS * GRAVITY
        moment = moment - sign * np.cross(r + R @ CENTER, weight)
        force = force - sign * weight
        if frame == 'panda_link0':
            return np.concatenate([moment, force])
        return np.concatenate([R.T @ (moment - np.cross(r, force)), R.T @ force])

    measured = derivatives_at_zero(reading)
    wrenches = wrenches_with(
        lambda: KnownSignal(measured),
        link=link,
        acting=acting,
        sensor_xyz=XYZ,
        sensor_rpy=RPY,
        tool_mass=MASS,
        tool_center_of_mass=tuple(CENTER),
    )
    wrenches.take_stamped(stamped(measured[0], frame), model, START)
    acting_link = link or frame
    for K in (3, 4, 5):
        result = wrenches.at(START, motion[:K], model)
        assert result.order == K - 3
        wrench = only(result)
        assert (wrench.link, wrench.acting) == (acting_link, acting)
        expected = inverse_dynamics(
            model, motion[:K], Wrench(acting_link, contact[: K - 2], 'spatial')
        )
        np.testing.assert_allclose(
            inverse_dynamics(model, motion[:K], result.wrenches), expected, atol=1e-6
        )


# Orders


@pytest.mark.parametrize('orders', [1, 2, 3])
@pytest.mark.parametrize('tool_mass', [0.0, MASS])
@pytest.mark.parametrize('K', [3, 4, 5])
def test_nothing_above_the_vouched_order_is_permitted(model, orders, tool_mass, K):
    wrenches = wrenches_with(lambda: KnownSignal(orders=orders), tool_mass=tool_mass)
    wrenches.take_motion(given(link='panda_link4'), model, START)
    wrenches.take_stamped(stamped(), model, START)
    result = wrenches.at(START, MOTION[:K], model)
    assert result.order == min(K - 3, orders - 1)
    assert [np.shape(wrench.values) for wrench in result.wrenches] == [
        (result.order + 1, 6)
    ] * 2
    inverse_dynamics(model, MOTION[: result.order + 3], result.wrenches)


def test_without_wrenches_the_motion_alone_decides(model):
    assert wrenches_with().at(START, MOTION[:4], model) == ([], 1, [])


def test_given_wrench_vouches_for_two_derivatives(model):
    wrenches = wrenches_with()
    wrenches.take_motion(given(), model, START)
    result = wrenches.at(START + 40 * MS, random_motion(1, 7, 7), model)
    assert result.order == 2
    np.testing.assert_allclose(only(result).values, polynomial(VALUES, 0.04), rtol=1e-12)


def test_without_an_estimate_the_latest_sample_stands_without_derivatives(model):
    wrenches = wrenches_with(lambda: KnownSignal(ready_after=3))
    for index in range(3):
        sample = VALUES[0] + index
        time = START + index * MS
        wrenches.take_stamped(stamped(sample, time=time), model, time)
        result = wrenches.at(time, MOTION, model)
        assert result.order == (0 if index < 2 else 2)
        expected = [sample] if index < 2 else polynomial(VALUES, 0.002)
        np.testing.assert_allclose(only(result).values, expected, rtol=1e-12)


@pytest.mark.parametrize('rate', [125])
def test_estimated_wrench_of_a_noisy_sensor_is_close_to_the_true_one(model, rate):
    estimator = pytest.importorskip('hodyn_ros.trajectory.estimator')
    wrenches = wrenches_with(
        lambda: estimator.DerivativeEstimator(
            6, highest_derivative=2, delay=0.1, smallest_motion=1.0
        )
    )
    rng = np.random.default_rng(rate)
    amplitude = np.array([1.0, 0.0, 0.5, 20.0, 0.0, -7.0])
    noise = np.array([0.005] * 3 + [0.1] * 3)
    omega, delay = 2 * np.pi, 100 * MS
    errors, orders = [], []
    for time in range(START, START + 5 * 10**9, 10**9 // rate):
        t = (time - START) / 1e9
        sample = amplitude * np.sin(omega * t) + noise * rng.normal(size=6)
        wrenches.take_stamped(stamped(sample, time=time), model, time)
        if t < 2.0:
            continue
        result = wrenches.at(time - delay, MOTION, model)
        values, phase = only(result).values, omega * (t - 0.1)
        true = [np.sin(phase), omega * np.cos(phase), -(omega**2) * np.sin(phase)]
        errors.append(np.abs(values[:2] - np.outer(true, amplitude)[: len(values)][:2]))
        orders.append(result.order)
    assert min(orders) >= 1
    value_error, rate_error = np.sqrt((np.array(errors) ** 2).mean(axis=0))
    assert np.all(value_error < 0.6 * noise)
    assert np.all(rate_error < 20.0 * noise)  # the force changes by up to 126 N/s


# Stale wrenches


def take(wrenches, kind, model):
    if kind == 'given':
        wrenches.take_motion(given(), model, START)
    else:
        wrenches.take_stamped(stamped(), model, START)


kinds = pytest.mark.parametrize('kind', ['given', 'measured'])


@kinds
def test_stale_wrench_stops_the_output_by_default(model, kind):
    wrenches = wrenches_with(timeout=0.05)
    take(wrenches, kind, model)
    wrenches.at(START + 50 * MS, MOTION, model)
    for time in (START + 51 * MS, START + 10**12):
        with pytest.raises(WrenchError, match='wrench_timeout'):
            wrenches.at(time, MOTION, model)


class RecentSignal(KnownSignal):
    """Keeps 80 ms, as an estimator with this delay does."""

    def at(self, time_ns):
        return super().at(time_ns) if time_ns >= self.samples[-1][0] - 80 * MS else None


@kinds
@pytest.mark.parametrize('policy', ['stop', 'hold', 'fade'])
def test_motion_long_before_the_wrench_has_no_efforts_under_any_policy(model, kind, policy):
    wrenches = wrenches_with(RecentSignal, timeout=0.05, stale_policy=policy)
    take(wrenches, kind, model)
    with pytest.raises(WrenchError, match='-0.090 s away'):
        wrenches.at(START - 90 * MS, MOTION, model)


def test_motion_that_lags_has_the_measured_wrench_of_its_own_instant(model):
    wrenches = wrenches_with(RecentSignal, timeout=0.05)
    wrenches.take_stamped(stamped(), model, START)
    for lag in (0.02, 0.08):  # also beyond the time-out
        result = wrenches.at(START - round(lag * 1e9), MOTION, model)
        assert result.order == 2
        np.testing.assert_allclose(only(result).values, polynomial(VALUES, -lag), rtol=1e-9)


def test_motion_that_lags_has_the_wrench_that_was_given_for_its_instant(model):
    wrenches = wrenches_with(timeout=0.05)
    for index in range(30):
        wrenches.take_motion(
            given(VALUES * (index + 1), time=START + index * 10 * MS), model, START + 10**9
        )
    for time, index in ((0, 0), (3, 0), (10, 1), (137, 13), (299, 29), (330, 29)):
        values = only(wrenches.at(START + time * MS, MOTION, model)).values
        expected = polynomial(VALUES * (index + 1), 1e-3 * (time - 10 * index))
        np.testing.assert_allclose(values, expected, rtol=1e-9)


def test_given_wrenches_are_kept_for_a_second(model):
    wrenches = wrenches_with(timeout=0.05)
    for index in range(3000):
        wrenches.take_motion(given(time=START + index * MS), model, START + 3 * 10**9)
    newest = START + 2999 * MS
    for time, kept in ((newest - 990 * MS, True), (newest - 1100 * MS, False)):
        if kept:
            np.testing.assert_allclose(
                only(wrenches.at(time, MOTION, model)).values, VALUES
            )
        else:
            with pytest.raises(WrenchError, match='away from the motion'):
                wrenches.at(time, MOTION, model)


@kinds
@pytest.mark.parametrize('policy', ['hold', 'fade'])
def test_stale_wrench_comes_to_rest_from_what_it_is_at_the_timeout(model, kind, policy):
    timeout, fade_time = 0.05, 0.4
    wrenches = wrenches_with(timeout=timeout, stale_policy=policy, fade_time=fade_time)
    take(wrenches, kind, model)
    begin = polynomial(VALUES, timeout)
    end = np.zeros((3, 6))
    if policy == 'hold':
        end[0] = begin[0]
    fit = BPoly.from_derivatives([timeout, timeout + fade_time], [begin, end])
    for t in np.linspace(timeout, timeout + fade_time, 9)[:-1]:
        expected = [fit(t), fit.derivative(1)(t), fit.derivative(2)(t)]
        result = wrenches.at(START + round(t * 1e9), MOTION, model)
        assert result.order == 2
        np.testing.assert_allclose(only(result).values, expected, atol=1e-6)
    later = wrenches.at(START + 10 * 10**9, MOTION, model)
    if policy == 'fade':
        assert later == ([], 2, [])
    else:
        np.testing.assert_array_equal(only(later).values[1:], 0.0)
        np.testing.assert_allclose(only(later).values[0], begin[0], rtol=1e-12)


@pytest.mark.parametrize('policy', ['hold', 'fade'])
@pytest.mark.parametrize('tool_mass', [0.0, MASS])
def test_published_derivatives_are_those_of_what_is_published(model, policy, tool_mass):
    """Also where the tool is compensated and across the time-out, as long as motions come."""
    timeout, fade_time = 0.05, 0.2
    wrenches = wrenches_with(
        timeout=timeout,
        stale_policy=policy,
        fade_time=fade_time,
        tool_mass=tool_mass,
        tool_center_of_mass=tuple(CENTER),
    )
    wrenches.take_stamped(stamped(), model, START)
    step = 1e-4
    times = step * np.arange(4000)
    series = []
    for t in times:
        motion = np.array([moved(MOTION[m:], t) for m in range(5)])
        result = wrenches.at(START + round(t * 1e9), motion, model)
        series.append(only(result).values if result.wrenches else np.zeros((3, 6)))
    series = np.array(series)
    for order in (0, 1):
        differences = (series[2:, order] - series[:-2, order]) / (2 * step)
        scale = np.abs(series[:, order + 1]).max(axis=0)
        # No jump: a jump of the value by x shows as x / step.
        error = np.abs(differences - series[1:-1, order + 1]) / scale
        assert error.max() < 0.02
    assert np.abs(series[:, 0]).max() > 1.0


def test_tool_compensation_of_a_stale_wrench_does_not_turn_with_the_link(model):
    wrenches = wrenches_with(
        lambda: KnownSignal(np.vstack([VALUES[:1], np.zeros((2, 6))])),
        timeout=0.05,
        stale_policy='hold',
        fade_time=0.1,
        tool_mass=MASS,
    )
    wrenches.take_stamped(stamped(), model, START)
    rest = at_rest()
    fresh = only(wrenches.at(START, rest, model)).values[0]
    turned = at_rest(1.0)
    held = only(wrenches.at(START + 10**9, turned, model)).values
    np.testing.assert_allclose(held[0], fresh, atol=1e-12)
    np.testing.assert_array_equal(held[1:], 0.0)


def test_first_motion_after_the_timeout_compensates_the_tool_in_its_own_pose(model):
    wrenches = wrenches_with(
        timeout=0.05,
        stale_policy='hold',
        fade_time=0.1,
        tool_mass=MASS,
        tool_center_of_mass=tuple(CENTER),
    )
    wrenches.take_stamped(stamped(), model, START)
    R, _ = PinPoses()(MOTION[0], 'panda_link8')
    force = MASS * R.T @ GRAVITY
    expected = polynomial(VALUES, 0.05)[0] + [*np.cross(CENTER, force), *force]
    for motion in (MOTION, random_motion(99, 7, 5)):
        held = only(wrenches.at(START + 10**9, motion, model)).values[0]
        np.testing.assert_allclose(held, expected, atol=1e-10)


def test_contact_goes_on_by_its_derivatives_from_the_last_motion_before_the_timeout(model):
    wrenches = wrenches_with(
        timeout=0.05, stale_policy='hold', fade_time=0.1, tool_mass=MASS
    )
    wrenches.take_stamped(stamped(), model, START)
    wrenches.at(START + 10 * MS, at_rest(), model)
    R, _ = PinPoses()(MOTION[0], 'panda_link8')
    held = only(wrenches.at(START + 10**9, at_rest(1.0), model)).values[0]
    expected = polynomial(VALUES, 0.05)[0, 3:] + MASS * R.T @ GRAVITY
    np.testing.assert_allclose(held[3:], expected, rtol=1e-9)


def test_other_settings_do_not_go_on_from_what_was_computed_with_the_old_ones(model):
    settings = wrench_settings(timeout=0.05, stale_policy='hold', tool_mass=MASS)
    wrenches = wrenches_with()
    wrenches.use(settings, model)
    wrenches.take_stamped(stamped(), model, START)
    wrenches.at(START, at_rest(), model)
    wrenches.use(
        replace(settings, wrench=replace(settings.wrench, tool_mass=2.0 * MASS)), model
    )
    R, _ = PinPoses()(MOTION[0], 'panda_link8')
    held = only(wrenches.at(START + 10**9, at_rest(), model)).values[0]
    expected = polynomial(VALUES, 0.05)[0, 3:] + 2.0 * MASS * R.T @ GRAVITY
    np.testing.assert_allclose(held[3:], expected, rtol=1e-9)


def test_motion_of_long_ago_does_not_decide_what_is_held(model):
    wrenches = wrenches_with(
        lambda: KnownSignal(np.vstack([VALUES[:1], np.zeros((2, 6))])),
        timeout=0.05,
        stale_policy='hold',
        tool_mass=MASS,
    )
    wrenches.take_stamped(stamped(), model, START)
    wrenches.at(START, MOTION, model)
    last = START + 60 * 10**9
    wrenches.take_stamped(stamped(time=last), model, last)
    turned = at_rest(1.0)
    R, _ = PinPoses()(turned[0], 'panda_link8')
    held = only(wrenches.at(last + 10**9, turned, model)).values[0]
    np.testing.assert_allclose(held[3:], VALUES[0, 3:] + MASS * R.T @ GRAVITY, atol=1e-12)


@pytest.mark.parametrize('policy', ['hold', 'fade'])
def test_stale_wrench_permits_no_more_than_it_did_before(model, policy):
    wrenches = wrenches_with(
        lambda: KnownSignal(orders=2), timeout=0.05, stale_policy=policy, fade_time=1.0
    )
    wrenches.take_stamped(stamped(), model, START)
    assert wrenches.at(START + 500 * MS, MOTION, model).order == 1
    assert wrenches.at(START + 5000 * MS, MOTION, model).order == (
        2 if policy == 'fade' else 1
    )


@pytest.mark.parametrize('tool_mass', [0.0, MASS])
def test_where_the_estimator_does_not_reach_the_timeout_the_sample_is_held(
    model, tool_mass
):
    class UpToLastSample(KnownSignal):
        def at(self, time_ns):
            return super().at(time_ns) if time_ns <= self.samples[-1][0] else None

    wrenches = wrenches_with(
        UpToLastSample, timeout=0.05, stale_policy='hold', tool_mass=tool_mass
    )
    wrenches.take_stamped(stamped(), model, START)
    before = wrenches.at(START + 49 * MS, at_rest(), model)
    after = wrenches.at(START + 10**9, at_rest(), model)
    assert (before.order, after.order) == (0, 0)
    np.testing.assert_allclose(only(after).values, only(before).values, rtol=1e-12)


class NearSignal(KnownSignal):
    """Vouches for two derivatives up to 10 ms after the last sample, for one up to 20 ms."""

    def at(self, time_ns):
        ahead = time_ns - self.samples[-1][0]
        if ahead > 20 * MS:
            return None
        answer = super().at(time_ns)
        return answer if ahead <= 10 * MS else answer_of(answer.motion[:2])


@pytest.mark.parametrize('tool_mass', [0.0, MASS])
@pytest.mark.parametrize('policy', ['hold', 'fade'])
def test_output_does_not_jump_where_the_estimator_gives_up(model, policy, tool_mass):
    wrenches = wrenches_with(
        NearSignal, timeout=0.05, stale_policy=policy, fade_time=0.2, tool_mass=tool_mass
    )
    wrenches.take_stamped(stamped(), model, START)
    series, orders = [], []
    for t in 1e-4 * np.arange(3000):
        result = wrenches.at(START + round(t * 1e9), at_rest(), model)
        series.append(only(result).values[0] if result.wrenches else np.zeros(6))
        orders.append(result.order)
    steps = np.abs(np.diff(series, axis=0)) / 1e-4
    # The fading itself changes the wrench by no more than that.
    bound = 1.3 * np.abs(VALUES[1]) + 20.0 * np.abs(series).max(axis=0)
    assert np.all(steps.max(axis=0) < bound)
    assert [orders[i] for i in (0, 100, 101, 200, 201, 499, 501, 2400)] == [
        2,
        2,
        1,
        1,
        0,
        0,
        0,
        0,
    ]
    later = wrenches.at(START + 10**9, at_rest(), model)
    if policy == 'fade':
        assert later == ([], 2, [])


# Messages that are refused, left out, or end a wrench


BAD_STAMPED = [
    (stamped(frame='hand'), {}, "unknown link: frame_id is 'hand'"),
    (stamped(frame=''), {}, "frame_id is ''"),
    (stamped(frame='panda_link0'), {}, 'Set wrench.link'),
    (stamped(), {'link': 'gripper'}, "wrench.link is 'gripper'"),
    (stamped(), {'link': 'panda_link0'}, 'wrench.link names is at rest'),
    (stamped(frame='panda_link4'), {'link': 'panda_link7'}, 'panda_link7, panda_link8'),
    (stamped([math.nan] * 6), {}, "'panda_link8': all values must be finite"),
    (
        stamped(time=START + 101 * MS),
        {},
        r"'panda_link8': the stamp lies 0.101 s in the future",
    ),
]


@pytest.mark.parametrize(('message', 'settings', 'reason'), BAD_STAMPED)
def test_bad_measured_wrench_is_refused_with_the_reason(model, message, settings, reason):
    wrenches = wrenches_with(**settings)
    with pytest.raises(WrenchError, match=reason):
        wrenches.take_stamped(message, model, START)
    assert wrenches.latest() == []


BAD_GIVEN = [
    (given(link='hand'), "frame_id is 'hand', the links are panda_link0"),
    (given(np.full((3, 6), math.inf)), "'panda_link8': all values must be finite"),
    (given(expressed_in=9), "'panda_link8': expressed_in is 9"),
    (given(acting=4), "'panda_link8': acting is 4"),
    (given(time=START + 101 * MS), "'panda_link8': the stamp lies 0.101 s in the future"),
]


def test_bad_given_wrench_is_refused_with_the_reason(model):
    wrenches = wrenches_with()
    for message, reason in BAD_GIVEN:
        with pytest.raises(WrenchError, match=reason):
            wrenches.take_motion(message, model, START)
        assert wrenches.latest() == []


@pytest.mark.parametrize('make', [given, stamped])
def test_stamp_that_is_no_time_is_refused_with_the_link(model, make):
    message = make()
    message.header.stamp.nanosec = 2 * 10**9
    wrenches = wrenches_with()
    take = wrenches.take_motion if make is given else wrenches.take_stamped
    with pytest.raises(WrenchError, match=r"'panda_link8'.*2000000000 ns"):
        take(message, model, START)


def test_stamp_of_zero_means_now(model):
    wrenches = wrenches_with()
    wrenches.take_stamped(stamped(time=0), model, START + 3)
    assert wrenches.made[0].samples[0][0] == START + 3
    wrenches.take_motion(given(link='panda_link4', time=0), model, START + 10**9)
    wrenches.use(wrench_settings(stale_policy='fade', fade_time=1e-3), model)
    result = wrenches.at(START + 10**9, MOTION, model)
    assert [wrench.link for wrench in result.wrenches] == ['panda_link4']
    np.testing.assert_allclose(only(result).values, VALUES)


def test_late_and_repeated_samples_are_left_out_and_counted(model):
    wrenches = wrenches_with()
    for offset in (0, 5, 3, 5, 6):
        wrenches.take_stamped(stamped(time=START + offset), model, START)
    assert [time - START for time, _ in wrenches.made[0].samples] == [0, 5, 6]
    assert wrenches.dropped == 2


def test_late_message_does_not_revive_a_wrench_that_has_ended(model):
    wrenches = wrenches_with()
    assert wrenches.take_motion(given(time=START), model, START)
    assert wrenches.take_motion(given(np.zeros((3, 6)), time=START + 9), model, START)
    assert not wrenches.take_motion(given(time=START + 8), model, START)
    assert wrenches.latest() == []
    assert wrenches.dropped == 1
    assert wrenches.take_motion(given(time=START + 10), model, START)


def test_sensor_that_reads_zero_goes_on(model):
    wrenches = wrenches_with(lambda: KnownSignal(np.zeros((3, 6))))
    for offset in (0, MS):
        wrenches.take_stamped(stamped(np.zeros(6), time=START + offset), model, START)
    assert len(wrenches.made) == 1
    assert len(wrenches.made[0].samples) == 2
    assert len(wrenches.at(START, MOTION, model).wrenches) == 1


def test_second_source_on_a_link_is_refused_while_the_first_is_alive(model):
    sources = {
        'wrench_motion': lambda w, t: w.take_motion(given(time=t), model, t),
        "wrench (frame_id 'panda_link8')": lambda w, t: w.take_stamped(
            stamped(time=t), model, t
        ),
        "wrench (frame_id 'panda_link7')": lambda w, t: w.take_stamped(
            stamped(frame='panda_link7', time=t), model, t
        ),
    }
    for first, take_first in sources.items():
        for second, take_second in sources.items():
            if first == second:
                continue
            wrenches = wrenches_with(link='panda_link8', timeout=0.05)
            take_first(wrenches, START)
            with pytest.raises(WrenchError) as caught:
                take_second(wrenches, START + 50 * MS)
            assert f'from {second}: {first} acts on the same link' in str(caught.value)
            take_first(wrenches, START + 50 * MS)
            take_second(wrenches, START + 101 * MS)
            assert list(wrenches.report(START + 101 * MS)) == ['panda_link8']
            assert second in wrenches.report(START + 101 * MS)['panda_link8']


def test_zeros_on_wrench_motion_end_a_measured_wrench_that_is_stale(model):
    wrenches = wrenches_with(timeout=0.05)
    wrenches.take_stamped(stamped(), model, START)
    zeros = given(np.zeros((3, 6)), time=0)
    with pytest.raises(WrenchError, match='acts on the same link'):
        wrenches.take_motion(zeros, model, START)
    assert wrenches.take_motion(zeros, model, START + 51 * MS)
    assert wrenches.at(START + 10**9, MOTION, model).wrenches == []


def test_wrenches_on_two_links_of_one_body_both_act(model):
    wrenches = wrenches_with()
    wrenches.take_motion(given(link='panda_link7'), model, START)
    wrenches.take_stamped(stamped(frame='panda_link8'), model, START)
    effort = inverse_dynamics(model, MOTION, wrenches.at(START, MOTION, model).wrenches)
    both = [Wrench('panda_link7', VALUES), Wrench('panda_link8', VALUES)]
    np.testing.assert_allclose(effort, inverse_dynamics(model, MOTION, both), rtol=1e-12)


# For the node


def test_latest_has_the_links_and_expressions_that_will_act_in_their_order(model):
    wrenches = wrenches_with(link='panda_link7')
    spatial = given(link='panda_link8', expressed_in=WrenchMotion.SPATIAL)
    changed = [
        wrenches.take_motion(spatial, model, START),
        wrenches.take_stamped(stamped(frame='panda_link0'), model, START),
        wrenches.take_motion(given(link='panda_link2'), model, START),
        wrenches.take_stamped(stamped(frame='panda_link0', time=START + 1), model, START),
        wrenches.take_motion(spatial, model, START),
        wrenches.take_motion(given(link='panda_link2', expressed_in=2), model, START),
    ]
    assert changed == [True, True, True, False, False, True]
    kinds = [(w.link, w.expressed_in) for w in wrenches.latest()]
    assert kinds == [
        ('panda_link2', 'hybrid'),
        ('panda_link7', 'spatial'),
        ('panda_link8', 'spatial'),
    ]
    acting = wrenches.at(START, MOTION, model).wrenches
    assert [(w.link, w.expressed_in) for w in acting] == kinds


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
def test_new_model_keeps_the_wrenches_that_it_has_a_place_for(model):
    settings, wrenches = wrench_settings(), wrenches_with()
    wrenches.take_motion(given(link='panda_link4'), model, START)
    wrenches.take_stamped(stamped(), model, START)
    assert wrenches.use(settings, model) == []
    short = RobotModel.from_urdf(PANDA, tip_link='panda_link4')
    assert wrenches.use(settings, short) == ['panda_link8']
    assert [w.link for w in wrenches.latest()] == ['panda_link4']
    # Of a link that is gone nothing is remembered.
    wrenches.take_stamped(stamped(time=START - 1), model, START)
    assert wrenches.dropped == 0
    two_link = RobotModel.from_urdf(robots.TWO_LINK)
    assert wrenches.use(settings, two_link) == ['panda_link4', 'panda_link8']


def test_frame_that_comes_to_rest_in_a_new_model_is_dropped():
    def stiff(joint):
        return RobotModel.from_urdf(
            robots.TWO_LINK.replace(f'"{joint}" type="revolute"', f'"{joint}" type="fixed"')
        )

    settings, wrenches = wrench_settings(link='tool'), wrenches_with(link='tool')
    wrenches.take_stamped(stamped(frame='upper'), stiff('elbow'), START)
    assert [w.expressed_in for w in wrenches.latest()] == ['body']
    assert wrenches.use(settings, stiff('elbow')) == []
    assert wrenches.use(settings, stiff('shoulder')) == ['tool']


def test_after_a_jump_of_time_nothing_is_left(model):
    wrenches = wrenches_with()
    wrenches.take_motion(given(link='panda_link4'), model, START)
    wrenches.take_stamped(stamped(), model, START)
    wrenches.clear()
    assert wrenches.latest() == []
    wrenches.take_stamped(stamped(time=START - 10**9), model, START - 10**9)
    assert wrenches.dropped == 0
    assert len(wrenches.made) == 2


def test_settings_are_replaced_as_a_whole(model):
    wrenches = wrenches_with()
    wrenches.take_motion(given(link='panda_link4'), model, START)
    wrenches.take_stamped(stamped(), model, START)
    wrenches.use(wrench_settings(acting='on_robot', sensor_xyz=(0.0, 0.0, 0.1)), model)
    _, measured = wrenches.at(START, MOTION, model).wrenches
    assert measured.acting == 'on_robot'
    np.testing.assert_allclose(
        measured.values[:, :3], VALUES[:, :3] + np.cross([0.0, 0.0, 0.1], VALUES[:, 3:])
    )
    wrenches.use(wrench_settings(link='panda_link7'), model)
    assert [w.link for w in wrenches.latest()] == ['panda_link4']
    wrenches.take_stamped(stamped(time=START + 1), model, START)
    assert [w.link for w in wrenches.latest()] == ['panda_link4', 'panda_link7']


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('wrench.acting', 'both'),
        ('wrench_stale_policy', 'ignore'),
        ('wrench.sensor_xyz', (0.0, 1.0)),
        ('wrench.sensor_rpy', (0.0, math.nan, 0.0)),
        ('wrench.tool_center_of_mass', (math.inf, 0.0, 0.0)),
        ('wrench.tool_mass', -1.0),
        ('wrench_timeout', 0.0),
        ('wrench_fade_time', math.nan),
    ],
)
def test_parameter_that_cannot_be_used_is_named(name, value):
    with pytest.raises(ValueError, match=f'Parameter {name} is '):
        make_settings(NodeSettings, {name: value})


def test_report_says_what_becomes_of_each_wrench(model):
    for policy, words in (
        ('stop', ['the output stops', 'the output stops']),
        ('hold', ['held', 'held']),
        ('fade', ['fading out', 'faded out']),
    ):
        wrenches = wrenches_with(timeout=0.05, fade_time=0.1, stale_policy=policy)
        wrenches.take_stamped(stamped(), model, START)
        fresh = wrenches.report(START + 20 * MS)['panda_link8']
        assert fresh == "wrench (frame_id 'panda_link8'), 0.020 s old"
        later = [wrenches.report(START + ms * MS)['panda_link8'] for ms in (60, 151)]
        assert [text.rpartition(', ')[2] for text in later] == words


@pytest.mark.parametrize(
    ('parameters', 'is_alike'),
    [
        ({'publish_rate': 50.0}, True),
        ({'wrench.delay': 0.3}, False),
        ({'wrench.delay': 0.05}, True),  # the joints are estimated with more
        ({'wrench.noise': 0.2}, False),
        ({'wrench.bandwidth': 9.0}, False),
        ({'wrench_timeout': 1.0}, False),
        ({'estimator.delay': 0.3}, False),
    ],
)
def test_changed_estimation_holds_for_streams_that_go_on(model, parameters, is_alike):
    wrenches = wrenches_with()
    wrenches.take_stamped(stamped(), model, START)
    wrenches.take_motion(given(link='panda_link5'), model, START)
    wrenches.use(make_settings(NodeSettings, parameters), model)
    wrenches.take_stamped(stamped(time=START + MS), model, START + MS)
    counts = [len(estimator.samples) for estimator in wrenches.made]
    assert counts == ([2] if is_alike else [1, 1])
    assert len(wrenches.at(START + MS, MOTION, model).wrenches) == 2


def test_zeros_without_a_stamp_end_a_wrench_that_came_with_a_stamp_ahead(model):
    wrenches = wrenches_with(timeout=0.1)
    wrenches.take_motion(given(time=START + 50 * MS), model, START)
    zeros = given(np.zeros((3, 6)))
    zeros.header.stamp = Time()
    wrenches.take_motion(zeros, model, START + 20 * MS)
    assert not wrenches.latest()
    assert not wrenches.dropped


def test_deviations_of_a_measured_wrench_come_in_the_axes_of_the_link(model):
    wrenches = wrenches_with(sensor_xyz=XYZ, sensor_rpy=RPY)
    wrenches.take_stamped(stamped(), model, START)
    wrenches.take_motion(given(link='panda_link5'), model, START)
    result = wrenches.at(START, MOTION, model)
    assert [wrench.link for wrench in result.wrenches] == ['panda_link5', 'panda_link8']
    exact, deviations = result.deviations
    assert exact is None
    covariance = np.einsum('skx,sky->kxy', deviations, deviations)
    R = Rotation.from_euler('xyz', RPY).as_matrix()
    r = np.cross(XYZ, np.eye(3)).T  # of a vector: XYZ x vector
    to_link = np.block([[R, r @ R], [np.zeros((3, 3)), R]])
    for k in range(3):
        own = np.diag((0.01 * 10.0**k * AS_FORCES) ** 2)
        np.testing.assert_allclose(
            covariance[k], to_link @ own @ to_link.T, atol=1e-15 * 100**k
        )
