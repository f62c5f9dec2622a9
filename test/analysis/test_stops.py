"""Causes of stops are where they were put, as large as they were made, and none elsewhere.

Faults are made by hand in samples whose differences are known from plain arithmetic.
"""

import numpy as np
import pytest
from support import robots
from support.records import changed

from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.analysis import Recorded, find_stop_causes, motion_limits

MODEL = RobotModel.from_urdf(robots.TWO_LINK)  # |q| <= 2, |qd| <= 3, |Q| <= 50
LIMITS = motion_limits(
    MODEL,
    dict.fromkeys(
        MODEL.joint_names, {'acceleration': 15.0, 'jerk': 7500.0, 'effort_dot': 1000.0}
    ),
)
H = 1e-3
TIMES = H * np.arange(2001)
AT = 1204  # sample of the fault
ENCODER = 2.0 * np.pi / 2**14


def rise(u):
    """From 0 to 1, with four continuous derivatives, while u does."""
    u = np.clip(u, 0.0, 1.0)
    return u**5 * (126.0 - 420.0 * u + 540.0 * u**2 - 315.0 * u**3 + 70.0 * u**4)


def way(times):
    """Positions from rest at 0.2 s to rest at 1.8 s, shape (N, 2)."""
    return rise((times - 0.2) / 1.6)[:, None] * [0.7, -0.4] + [-0.3, 0.5]


def causes(times, position, effort=None, measured=None):
    commanded = Recorded(times, position, effort=effort)
    return find_stop_causes(MODEL, LIMITS, commanded, measured).causes


def worst(cause, quantity, source='commanded'):
    (found,) = (e for e in cause.excesses if (e.quantity, e.source) == (quantity, source))
    return found


def held(q, count, later=0):
    first = AT + later
    q[first : first + count] = q[first - 1]
    return q


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('make', 'kind', 'quantity'),
    [
        (lambda q: held(q, 3), 'missed cycle', 'jerk'),
        (lambda q: held(held(q, 1), 1, 6), 'missed cycle', 'acceleration'),
        (
            lambda q: np.insert(q, AT, q[AT - 1], axis=0)[: len(q)],
            'repeated command',
            'jerk',
        ),
    ],
)
def test_faults_of_commands_are_found_where_they_are(make, kind, quantity):
    (cause, *others) = causes(TIMES, make(way(TIMES)))
    assert cause.kind == kind and cause.is_certain
    assert not any(other.is_certain for other in others)
    assert abs(cause.time - TIMES[AT]) <= 1.5 * H
    assert worst(cause, quantity).joint_name == 'shoulder'


def test_torques_are_differenced_by_themselves():
    effort = 20.0 * np.sin(TIMES)[:, None] * np.ones(2)
    effort[AT:, 1] += 1.7
    (cause,) = causes(TIMES, way(TIMES), effort)
    found = worst(cause, 'effort_dot')
    assert cause.kind == 'torque step'
    assert (found.joint_name, found.time) == ('elbow', pytest.approx(TIMES[AT]))
    assert found.value == pytest.approx(1700.0 + 20.0 * np.cos(TIMES[AT]), rel=1e-3)
    effort[AT:, 1] -= 1.7
    effort[300:340, 0] = 50.0 * 1.25  # a step, and for 40 ms too large
    found = [
        (c.kind, worst(c, 'effort').factor)
        for c in causes(TIMES, way(TIMES), effort)
        if any(e.quantity == 'effort' for e in c.excesses)
    ]
    assert found == [('torque too large', pytest.approx(1.25))]


def test_a_motion_that_is_too_fast_is_no_step():
    q = 1.2 * np.sin(4.0 * TIMES)[:, None] ** 2 * [1.0, 0.1]
    (first, *_) = causes(TIMES, q)
    assert first.kind == 'motion too fast'
    assert abs(worst(first, 'velocity').value) == pytest.approx(4.8, rel=1e-4)
    assert worst(first, 'acceleration').factor == pytest.approx(38.4 / 15.0, rel=1e-3)


def test_torques_that_the_model_needs_are_compared_too():
    t = TIMES[:, None]
    rows = 0.6 * (1.0 - np.cos(2.0 * t)), 1.2 * np.sin(2.0 * t), 2.4 * np.cos(2.0 * t)
    motion = np.stack(rows, axis=1) * [1.0, 0.2]
    Q = np.abs(inverse_dynamics(MODEL, motion)[:, 0]).max(axis=0)
    limits = changed(LIMITS, effort=np.array([Q[0] / 1.25, np.inf]))
    (cause,) = find_stop_causes(MODEL, limits, Recorded(TIMES, motion[:, 0])).causes[:1]
    assert cause.kind == 'torque of the model'
    assert worst(cause, 'effort', 'computed').factor == pytest.approx(1.25, rel=1e-2)


def test_stamps_and_missing_commands():
    q, keep = way(TIMES), np.ones(len(TIMES), dtype=bool)
    keep[[800, AT, AT + 1]] = False
    (missing,) = causes(TIMES[keep], q[keep])
    assert missing.kind == 'missing commands' and not missing.is_certain
    assert missing.advice.startswith(
        '3 commands are missing in motion, at 2 places, at most 2'
    )
    for step in (0.004, 0.5, -0.3):
        (cause,) = causes(TIMES + step * (TIMES >= TIMES[AT]), q)
        assert (cause.kind, cause.excesses, cause.is_certain) == (
            'step of the stamps',
            (),
            False,
        )
        assert f'by {1e3 * step:g} ms before {TIMES[AT] + step:g} s' in cause.advice


def test_commands_at_a_lower_rate_than_the_recording():
    (cause,) = causes(TIMES, way(TIMES[(np.arange(len(TIMES)) // 8) * 8]))
    assert cause.kind == 'held commands' and not cause.is_certain
    assert '8 ms' in cause.advice


def test_edges_in_motion_are_doubtful_unless_the_robot_was_at_rest():
    q = way(TIMES)
    found = causes(TIMES[600:1400], q[600:1400])
    assert {cause.kind for cause in found} == {'start in motion', 'end in motion'}
    assert not any(cause.is_certain for cause in found)
    still = Recorded(TIMES[500:900], np.tile(q[600], (400, 1)))
    start = causes(TIMES[600:1400], q[600:1400], measured=still)[0]
    assert start.kind == 'start in motion' and start.is_certain
    assert start.factor == pytest.approx((q[601, 0] - q[600, 0]) / H**2 / 15.0)


def test_first_command_away_from_the_robot():
    measured = Recorded(TIMES, np.tile(way(TIMES[:1]), (len(TIMES), 1)))
    q = way(TIMES) + [0.0, 0.08]
    (cause, *_) = causes(TIMES[100:250], q[100:250], measured=measured)
    assert cause.kind == 'jump at the start' and cause.is_certain
    assert worst(cause, 'velocity').factor == pytest.approx(0.08 / H / 3.0)


def test_what_came_right_before_the_end_is_most_probable():
    q = held(way(TIMES), 1)[: AT + 40]
    q[700:, 1] += 0.01  # larger, but the robot went on behind it
    kinds = [cause.kind for cause in causes(TIMES[: len(q)], q)]
    assert kinds == ['missed cycle', 'jump']  # and no end in motion, which follows


def nearly(times):
    """A motion that uses 97 % of the limit of the acceleration."""
    u = np.linspace(0.0, 1.0, 20_001)
    most = 0.7 * np.gradient(np.gradient(rise(u), u), u).max()
    duration = np.sqrt(most / (0.97 * 15.0))
    return rise((times - 0.1) / duration)[:, None] * [0.7, -0.4] + [-0.3, 0.5]


def six_digits(values):
    return np.vectorize(lambda x: float(f'{x:.6g}'))(values)


def decimated(times, rng):
    rows = np.arange(0, len(times) - 20, 10) + rng.integers(0, 4, len(times) // 10 - 1)
    return times[rows], nearly(times)[rows]


def latched(times, rng):
    """At 100 Hz, by a clock that knows nothing of that of the commands."""
    seen = times[20:-20:10] + rng.uniform(-1.0, 1.0, len(times[20:-20:10])) * H
    return times[20:-20:10], nearly(H * np.floor(seen / H))


@pytest.mark.parametrize(
    'record',
    [
        lambda t, rng: (t, nearly(t)),
        lambda t, rng: (t, nearly(t).round(4)),
        lambda t, rng: (t, six_digits(nearly(t))),
        lambda t, rng: (t, nearly(t).astype(np.float32).astype(float)),
        lambda t, rng: (t + rng.exponential(5e-4, len(t)), nearly(t)),
        lambda t, rng: (1.7e9 + t, nearly(t)),
        decimated,
        latched,
    ],
    ids=[
        'exact',
        'decimals',
        'digits',
        'single',
        'late',
        'since 1970',
        'uneven',
        'latched',
    ],
)
def test_clean_commands_have_no_cause(record):
    t, q = record(H * np.arange(2501), np.random.default_rng(0))
    assert find_stop_causes(MODEL, LIMITS, Recorded(t, q)).causes == ()


@pytest.mark.parametrize('stride', [1, 4, 33])
@pytest.mark.parametrize('noise', [1e-6, 1e-4])
def test_clean_measurements_have_no_cause(stride, noise):
    rng, times = np.random.default_rng(stride), H * np.arange(0, 2501, stride)
    q = nearly(times) + noise * rng.standard_normal((len(times), 2))
    measured = Recorded(
        times + rng.uniform(-2e-4, 2e-4, len(times)),
        ENCODER * np.round(q / ENCODER),
        np.gradient(nearly(times), times, axis=0) + 1e-3 * rng.standard_normal(q.shape),
        0.1 * np.round(10.0 * (10.0 + rng.standard_normal(q.shape) * 0.1)),
    )
    assert find_stop_causes(MODEL, LIMITS, None, measured).causes == ()
    both = find_stop_causes(MODEL, LIMITS, Recorded(times, nearly(times)), measured)
    assert both.causes == ()
    assert abs(both.deviation.value) < 5e-3


@pytest.mark.parametrize(
    ('share', 'noise', 'verdict'),
    [(0.5, 1e-5, 'kept'), (1.25, 1e-5, 'exceeded'), (1.02, 0.05, 'undecided')],
)
@pytest.mark.parametrize('quantity', ['acceleration', 'jerk'])
def test_derivatives_of_measured_positions_are_compared(quantity, share, noise, verdict):
    order, (size, rate) = {'acceleration': 2, 'jerk': 3}[quantity], (0.3, 4.0)
    limit = size * rate**order / share
    limits = motion_limits(MODEL, {'shoulder': {quantity: limit}})
    rng = np.random.default_rng(order)
    q = size * np.sin(rate * TIMES)[:, None] * [1.0, 0.0] + noise * rng.standard_normal(
        (2001, 2)
    )
    found = find_stop_causes(MODEL, limits, None, Recorded(TIMES, q))
    assert found.verdict == verdict
    if verdict == 'exceeded':
        assert worst(found.causes[0], quantity, 'measured').factor == pytest.approx(
            share, rel=0.1
        )
    names = [(item.quantity, item.joint_names) for item in found.undecided]
    assert names == [(quantity, ('shoulder',))] * (verdict == 'undecided')


def test_measured_values_beyond_limits():
    q, effort = way(TIMES), np.zeros((2001, 2))
    effort[AT : AT + 300, 0] = 50.0 * 1.1
    effort += 0.02 * np.random.default_rng(0).standard_normal(effort.shape)
    measured = Recorded(TIMES, q, effort=effort)
    found = causes(TIMES, q, measured=measured)
    assert {cause.kind for cause in found} == {'measured excess'}
    assert all('no command does' in cause.advice for cause in found)
    beyond = [e for cause in found for e in cause.excesses if e.quantity == 'effort']
    assert [e.factor for e in beyond] == [pytest.approx(1.1, abs=0.01)]


def test_recordings_may_be_lists():
    model = RobotModel.from_urdf('two_link')
    times = 0.001 * np.arange(1000)
    q = 0.3 * np.sin(2.0 * times)[:, None] ** 2 * np.ones(2)
    q[500] = q[499]
    limits = motion_limits(model, {'shoulder': {'acceleration': 15.0}})
    listed = find_stop_causes(model, limits, Recorded(times.tolist(), q.tolist()))
    assert [cause.kind for cause in listed.causes][0] == 'missed cycle'
