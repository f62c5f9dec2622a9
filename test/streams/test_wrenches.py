"""Wrenches that act: what becomes of what is given or measured until a motion needs it."""

import re
from functools import lru_cache, partial
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.interpolate import BPoly
from scipy.spatial.transform import Rotation
from support import robots
from support.random_trees import random_motion
from support.tool_cases import (
    GRAVITY,
    PANDA,
    RPY,
    XYZ,
    PinPoses,
    derivatives_at_zero,
    moved,
)

from hodyn_ros import RobotModel, Wrench, inverse_dynamics
from hodyn_ros.errors import StaleError, WrenchError
from hodyn_ros.streams import Wrenches
from hodyn_ros.streams.acting_wrenches import FADE_TIME, LEVER
from hodyn_ros.trajectory import Estimate

START, MS, SECOND = 1_000_000_000_000, 1_000_000, 1_000_000_000
VALUES = np.random.default_rng(5).normal(size=(3, 6)) * [[3.0], [10.0], [50.0]]
AS_FORCES = np.array([LEVER] * 3 + [1.0] * 3)
SENSOR = Rotation.from_euler('xyz', RPY).as_matrix()
MOTION = random_motion(8, 7, 5)


class KnownSignal:
    """Estimator that knows a polynomial in time about `START`, as far ahead as `reach` [ns].

    Like all estimators of wrenches, it has to do with forces alone, [N]: moments over `LEVER`.
    Deviations are a hundredth of a newton, and ten times as much with each derivative.
    """

    def __init__(self, values=VALUES, orders=3, ready_after=1, reach=10**18, keeps=10**18):
        self.values, self.orders, self.ready_after = values, orders, ready_after
        self.reach, self.keeps, self.samples = reach, keeps, []

    def update(self, time, values):
        self.samples.append((time, values * AS_FORCES))

    def at(self, time):
        ahead = time - self.samples[-1][0]
        is_known = -self.keeps <= ahead <= self.reach
        if len(self.samples) < self.ready_after or not is_known:
            return None
        known = polynomial(self.values, (time - START) / 1e9) / AS_FORCES
        motion, K = known[: self.orders], self.orders
        factor = np.broadcast_to(np.diag(0.01 * 10.0 ** np.arange(K)), (6, K, K))
        std = np.linalg.norm(factor, axis=2).T
        return Estimate(START, motion, std, factor, K - 1, 0.0, std[0])


def polynomial(values, t):
    W, Wd, W2d = values
    return np.array([W + t * Wd + t * t / 2 * W2d, Wd + t * W2d, W2d])


def options(estimation=0.1, **given):
    """Settings of a node; the sensor reads what the robot exerts."""
    wrench = {
        'timeout': 0.05,
        'stale_policy': 'stop',
        'link': '',
        'acting': 'on_environment',
        **given,
    }
    wrench = type('Options', (), wrench)()  # equal to itself alone
    estimator = SimpleNamespace(enabled=True, delay=estimation)
    return SimpleNamespace(wrench=wrench, estimator=estimator)


class Acting(Wrenches):
    """Wrenches with estimators that know the signal; all that were made are in `made`."""

    def __init__(self, make=KnownSignal, model=None, **given):
        self.made, self.model = [], model or panda()

        def make_one(**_):
            self.made.append(make())
            return self.made[-1]

        super().__init__(options(**given), make_one)

    def measure(self, values=VALUES[0], frame='panda_link8', time=START, now=None):
        now = time if now is None else now
        return self.take_measured(frame, np.array(values), time, self.model, now)

    def give(
        self, values=VALUES, link='panda_link8', expressed_in='body', time=START, now=None
    ):
        given = link, expressed_in, 'on_robot', values
        return self.take_given(given, time, self.model, time if now is None else now)

    def after(self, seconds, motion=MOTION):
        return self.at(START + round(seconds * SECOND), motion, self.model)

    def values(self, seconds, motion=MOTION):
        (wrench,) = self.after(seconds, motion).wrenches
        return wrench.values

    @property
    def links(self):
        return [wrench.link for wrench in self.latest()]


@lru_cache
def panda():
    return RobotModel.from_urdf(PANDA, gravity=GRAVITY)


def at_rest(turn=0.0):
    motion = np.zeros((5, 7))
    motion[0] = MOTION[0] + turn
    return motion


@pytest.mark.every_case
@pytest.mark.parametrize('acting', ['on_environment', 'on_robot'])
@pytest.mark.parametrize(
    ('link', 'frame'),
    [
        ('', 'panda_link8'),
        ('', 'sensor'),
        ('panda_link7', 'sensor'),
        ('panda_link7', 'panda_link0'),
    ],
)
def test_contact_wrench_is_recovered_from_what_a_sensor_measures(link, frame, acting):
    poses, motion = PinPoses(), random_motion(1, 7, 5)
    # By the robot, in base axes about the base origin.
    contact = np.random.default_rng(1).normal(size=(3, 6)) * 5.0
    sign = 1.0 if acting == 'on_environment' else -1.0

    def reading(time):
        q = moved(motion, time)
        R, r = poses(q, link if frame == 'panda_link0' else frame)
        moment, force = np.split(sign * polynomial(contact, time)[0], 2)
        if frame == 'panda_link0':
            return np.concatenate([moment, force])
        return np.concatenate([R.T @ (moment - np.cross(r, force)), R.T @ force])

    measured = derivatives_at_zero(reading)
    given = {'link': link, 'acting': acting}
    wrenches = Acting(lambda: KnownSignal(measured), **given)
    wrenches.measure(measured[0], frame)
    for K in (3, 5):
        result = wrenches.after(0.0, motion[:K])
        assert result.order == K - 3
        exact = Wrench(link or frame, contact[: K - 2], 'spatial')
        np.testing.assert_allclose(
            inverse_dynamics(panda(), motion[:K], result.wrenches),
            inverse_dynamics(panda(), motion[:K], exact),
            atol=1e-6,
        )


def test_wrench_in_a_frame_at_rest_is_turned_to_the_base():
    urdf = robots.TWO_LINK.replace('"shoulder" type="revolute"', '"shoulder" type="fixed"')
    wrenches = Acting(model=RobotModel.from_urdf(urdf), link='tool')
    wrenches.measure(frame='upper')
    R = Rotation.from_euler('xyz', (0.1, 0.0, 0.2)).as_matrix()
    moment, force = R @ VALUES[0, :3], R @ VALUES[0, 3:]
    spatial = [*(moment + np.cross((0.4, 0.0, 0.05), force)), *force]
    np.testing.assert_allclose(wrenches.values(0.0, np.zeros((3, 1)))[0], spatial)


@pytest.mark.parametrize(('orders', 'K'), [(2, 5), (1, 5), (3, 4)])
def test_nothing_above_the_vouched_order_is_permitted(orders, K):
    wrenches = Acting(lambda: KnownSignal(orders=orders))
    wrenches.give(link='panda_link4')
    wrenches.measure()
    result = wrenches.after(0.0, MOTION[:K])
    assert result.order == min(K - 3, orders - 1)
    assert [w.values.shape for w in result.wrenches] == [(result.order + 1, 6)] * 2
    assert Acting().after(0.0, MOTION[:4]) == ([], 1, [])


def test_without_an_estimate_the_latest_sample_stands_without_derivatives():
    wrenches = Acting(lambda: KnownSignal(ready_after=3))
    for k in range(3):
        wrenches.measure(VALUES[0] + k, time=START + k * MS)
        expected = [VALUES[0] + k] if k < 2 else polynomial(VALUES, 0.002)
        np.testing.assert_allclose(wrenches.values(1e-3 * k), expected, rtol=1e-12)


def take(wrenches, kind, **options):
    return wrenches.give(**options) if kind == 'given' else wrenches.measure(**options)


@pytest.mark.every_case
@pytest.mark.parametrize('kind', ['given', 'measured'])
def test_wrench_without_news_stops_the_output_or_comes_to_rest(kind):
    for policy, word in (('stop', 'stops'), ('hold', 'held'), ('fade', 'fading out')):
        wrenches = Acting(lambda: KnownSignal(keeps=80 * MS), stale_policy=policy)
        take(wrenches, kind)
        np.testing.assert_allclose(
            wrenches.values(0.05), polynomial(VALUES, 0.05), rtol=1e-9
        )
        assert wrenches.report(START + 60 * MS)['panda_link8'].endswith(word)
        with pytest.raises(WrenchError, match='-0.090 s away'):
            wrenches.after(-0.09)
        if policy == 'stop':
            for late in (0.051, 1000.0):
                with pytest.raises(WrenchError, match='wrench_timeout'):
                    wrenches.after(late)
            continue
        begin, end = polynomial(VALUES, 0.05), np.zeros((3, 6))
        end[0] = begin[0] * (policy == 'hold')
        fit = BPoly.from_derivatives([0.05, 0.05 + FADE_TIME], [begin, end])
        for t in np.linspace(0.05, 0.05 + FADE_TIME, 9)[1:-1]:
            exact = [fit(t), fit.derivative(1)(t), fit.derivative(2)(t)]
            np.testing.assert_allclose(wrenches.values(t), exact, atol=1e-6)
        if policy == 'fade':
            assert wrenches.after(10.0) == ([], 2, [])
        else:
            np.testing.assert_allclose(wrenches.values(10.0), end, rtol=1e-12)


def test_motion_that_lags_has_the_wrench_of_its_own_instant():
    wrenches = Acting(lambda: KnownSignal(keeps=80 * MS))
    wrenches.measure()
    for lag in (0.02, 0.08):  # also beyond the time-out
        np.testing.assert_allclose(
            wrenches.values(-lag), polynomial(VALUES, -lag), rtol=1e-9
        )
    given = Acting()
    for k in range(150):
        given.give(VALUES * (k + 1), time=START + k * 10 * MS)
    for ms, k in ((1490, 149), (1137, 113), (503, 50), (1530, 149)):
        exact = polynomial(VALUES * (k + 1), 1e-3 * (ms - 10 * k))
        np.testing.assert_allclose(given.values(1e-3 * ms), exact, rtol=1e-9)
    with pytest.raises(WrenchError, match='away from the motion'):
        given.after(0.3)  # they are kept for a second


def put_out(wrenches, times, motion):
    """Wrenches (N, 3, 6) at times, zero where none acts or a derivative is not vouched for."""
    wrenches.measure()
    series = np.zeros((len(times), 3, 6))
    for found, t in zip(series, times):
        for wrench in wrenches.after(t, motion(t)).wrenches:
            found[: len(wrench.values)] = wrench.values
    return series


@pytest.mark.parametrize('policy', ['fade', 'hold'])
def test_output_has_its_derivatives_and_no_jump_whatever_ends(policy):
    """Measurements for longer than the time-out, or what the estimator knows."""
    given = {'stale_policy': policy}
    step = 4e-4
    series = put_out(
        Acting(**given),
        step * np.arange(1500),
        lambda t: np.array([moved(MOTION[m:], t) for m in range(5)]),
    )
    for k in (0, 1):
        slope = (series[2:, k] - series[:-2, k]) / (2.0 * step)
        scale = np.abs(series[:, k + 1]).max(axis=0)
        # A jump of the value by x shows as x / step.
        assert (np.abs(slope - series[1:-1, k + 1]) / scale).max() < 0.02
    short = Acting(lambda: KnownSignal(reach=20 * MS), **given)
    series = put_out(short, 1e-3 * np.arange(600), lambda t: at_rest())
    steps = np.abs(np.diff(series[:, 0], axis=0)).max(axis=0) / 1e-3
    largest = np.abs(series[:, 0]).max(axis=0)
    # The fading itself changes the wrench by no more than that.
    assert (steps < 1.3 * np.abs(VALUES[1]) + 20.0 * largest).all() and largest.max() > 1.0
    assert series[20, 1].any() and not series[21:, 1:].any()


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('kind', 'given', 'settings', 'reason'),
    [
        ('measured', {'frame': 'hand'}, {}, "unknown link: frame_id is 'hand'"),
        ('measured', {'frame': 'panda_link0'}, {}, 'Set wrench.link'),
        ('measured', {}, {'link': 'gripper'}, "wrench.link is 'gripper'"),
        ('measured', {}, {'link': 'panda_link0'}, 'wrench.link names is at rest'),
        (
            'measured',
            {'frame': 'panda_link4'},
            {'link': 'panda_link7'},
            'panda_link7, panda_link8',
        ),
        ('measured', {'values': [np.nan] * 6}, {}, 'all values must be finite'),
        ('measured', {'now': START - 51 * MS}, {}, 'lies 0.051 s in the future'),
        ('given', {'link': 'hand'}, {}, "frame_id is 'hand', the links are panda_link0"),
        ('given', {'now': START - 51 * MS}, {}, 'lies 0.051 s in the future'),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(kind, given, settings, reason):
    wrenches = Acting(**settings)
    with pytest.raises((StaleError, WrenchError), match=reason):
        take(wrenches, kind, **given)
    assert wrenches.latest() == []


def test_late_and_repeated_samples_are_left_out_and_revive_nothing():
    wrenches = Acting()
    taken = [wrenches.measure(time=START + offset) for offset in (0, 5, 3, 5, 6)]
    assert taken == [True, True, False, False, True]
    wrenches.measure(time=0, now=START + 7)  # without a stamp: now
    stamps = [time - START for time, _ in wrenches.made[0].samples]
    assert stamps == [0, 5, 6, 7]
    given = Acting()
    assert given.give()
    assert given.give(np.zeros((3, 6)), time=START + 9, now=START)  # zeros end it
    assert not given.give(time=START + 8, now=START)
    assert given.links == []
    assert given.give(time=START + 10, now=START)
    given.give(np.zeros((3, 6)), time=0, now=START + 9)  # whatever stamp was ahead
    assert given.links == []
    zero = Acting(lambda: KnownSignal(np.zeros((3, 6))))
    zero.measure(np.zeros(6))  # a sensor that reads zero goes on
    assert zero.links == ['panda_link8']
    zero.clear()  # time has jumped
    assert zero.measure(time=START - SECOND)
    assert zero.links == ['panda_link8']


def test_second_source_on_a_link_is_refused_while_the_first_is_alive():
    sources = {
        'wrench_motion': Acting.give,
        "wrench (frame_id 'panda_link8')": Acting.measure,
        "wrench (frame_id 'panda_link7')": partial(Acting.measure, frame='panda_link7'),
    }
    for first, second in permutations(sources, 2):
        wrenches = Acting(link='panda_link8')
        sources[first](wrenches)
        refused = re.escape(f'{second}: {first} acts on the same link')
        with pytest.raises(WrenchError, match=refused):
            sources[second](wrenches, time=START + 50 * MS)
        sources[second](wrenches, time=START + 101 * MS)
        assert second in wrenches.report(START + 101 * MS)['panda_link8']


@pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')
def test_new_model_or_settings_keep_the_wrenches_that_have_a_place():
    wrenches = Acting()
    for kind in ('spatial', 'spatial', 'hybrid'):
        assert wrenches.give(link='panda_link4', expressed_in=kind)
        assert wrenches.axes == {'panda_link4': kind}
    assert wrenches.measure()
    known = [(wrench.link, wrench.expressed_in) for wrench in wrenches.latest()]
    assert known == [('panda_link4', 'hybrid'), ('panda_link8', 'body')]
    wrenches.use(options(estimation=0.3), panda())
    wrenches.measure(time=START + 1)
    assert len(wrenches.made) == 2  # the delay of the joints counts
    short = RobotModel.from_urdf(PANDA, tip_link='panda_link4')
    assert wrenches.use(options(), short) == ['panda_link8']
    assert wrenches.use(options(), RobotModel.from_urdf(robots.TWO_LINK)) == ['panda_link4']


def test_deviations_of_a_measured_wrench_come_in_the_axes_of_the_link():
    wrenches = Acting(link='panda_link8')
    wrenches.measure(frame='sensor')
    wrenches.give(link='panda_link5')
    exact, deviations = wrenches.after(0.0).deviations
    assert exact is None
    covariance = np.einsum('skx,sky->kxy', deviations, deviations)
    R, r = SENSOR, np.cross(XYZ, np.eye(3)).T  # of a vector: XYZ x vector
    to_link = np.block([[R, r @ R], [np.zeros((3, 3)), R]])
    for k in range(3):
        own = np.diag((0.01 * 10.0**k * AS_FORCES) ** 2)
        expected = to_link @ own @ to_link.T
        np.testing.assert_allclose(covariance[k], expected, atol=1e-15 * 100**k)
