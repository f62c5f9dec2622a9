"""Loops of one's own follow efforts as the controller in C++ does, in Python and in C."""

import ctypes
from pathlib import Path

import numpy as np
import pytest
from support.compilers import C_COMPILERS, CPP_COMPILERS, WARNINGS, run
from support.effort_driver import EFFORT, INCLUDE, RATE, TICK, Script, compiled, wave
from support.scripts import load

from hodyn_ros.control import EffortFollower
from hodyn_ros.errors import ControlError

ROOT = Path(__file__).resolve().parents[2]
generate_effort_rule = load(ROOT / 'hodyn_controllers' / 'generate_effort_rule.py')

HARNESS = """
#include "hodyn_controllers/effort_rule.h"
static EffortRule rule;
static double memory[EFFORT_RULE_MEMORY(3)];
int begin(const double *, const double *, int, int);
int take(double, double, int, const double *);
int update(double, double, double *);
int begin(const double *efforts, const double *rates, int extrapolation, int holds)
{
    int wrong = effort_rule_begin(&rule, 3, memory, efforts, rates);
    rule.extrapolation = extrapolation;
    rule.holds = holds;
    rule.ease_time = 0.03;
    return wrong;
}
int take(double now, double stamp, int order, const double *values)
{
    return effort_rule_take(&rule, now, stamp, order, values);
}
int update(double now, double period, double *command)
{
    effort_rule_update(&rule, now, period);
    for (int j = 0; j < 3; ++j) { command[j] = rule.command[j]; }
    return rule.state;
}
"""
STATES = 'waiting', 'following', 'easing', 'fallback', 'refused'


def drawn(seed, ticks=4000):
    """Ticks of a random run: now [ns], period [s], and what comes before: stamp [ns], rows."""
    rng = np.random.default_rng(seed)
    now, silent, shift, scale, found = 777, 0, 0.0, 1.0, []
    for _ in range(ticks):
        late = rng.random() < 0.05
        period = 1e-3 * (rng.integers(2, 9) if late else 1.0)
        now += int(1e9 * period) + int(rng.integers(1, 1000))
        if rng.random() < 0.003:
            now -= 30 * TICK  # the clock is set back
            period = -0.03
        if rng.random() < 0.006:
            silent = int(rng.integers(20, 160))
        if rng.random() < 0.02:
            shift, scale = rng.normal(), rng.choice([1.0, 4.0])
        silent, sample = silent - 1, None
        if silent <= 0 and rng.random() < 0.2:
            stamp = now - int(rng.integers(0, 12 * TICK))
            rows = (wave(1e-9 * stamp + shift) * scale)[: rng.integers(1, 4)]
            kind = rng.random()
            if kind < 0.05:
                rows[rng.integers(len(rows)), rng.integers(3)] = rng.choice(
                    [np.nan, np.inf]
                )
            elif kind < 0.1:
                rows[rng.integers(len(rows)), rng.integers(3)] = rng.choice([1e6, -1e300])
            elif kind < 0.15:
                stamp += int(rng.choice([-70, 40])) * TICK
            if kind < 0.15 and rng.random() < 0.4:
                silent = 120  # nothing better comes
            sample = stamp, rows
        found.append((now, float(period), sample))
    return found


def python_run(ticks, holds, extrapolation):
    """Reasons, states, limits and efforts of the follower in Python."""
    follower = EffortFollower(
        EFFORT,
        RATE,
        ease_time=0.03,
        extrapolation=extrapolation,
        fallback='hold' if holds else 'zero',
    )
    reasons, states, limited, efforts = [], [], [], []
    for now, period, sample in ticks:
        if sample:
            reasons.append(follower.give(1e-9 * now, 1e-9 * sample[0], *sample[1]))
        efforts.append(follower.update(1e-9 * now, period))
        states.append(follower.state)
        limited.append(follower.limited)
    return reasons, states, np.array(limited), np.array(efforts)


CASES = pytest.mark.parametrize(
    ('seed', 'holds', 'extrapolation'), [(1, 0, 2), (2, 1, 2), (3, 0, 1), (4, 1, 0)]
)


@pytest.fixture(scope='module')
def driver(tmp_path_factory):
    if not CPP_COMPILERS:
        pytest.skip('there is no C++ compiler')
    return compiled(tmp_path_factory.mktemp('driver'), 'driver')


@CASES
def test_python_follows_as_the_controller_in_cpp(driver, seed, holds, extrapolation):
    ticks = drawn(seed)
    script = Script({'fallback': holds, 'ease_time': 0.03, 'extrapolation': extrapolation})
    for now, period, sample in ticks:
        if sample:
            stamp, rows = sample
            script.message(now, stamp, [*rows], order=len(rows) - 1)
        script.tick(now, period)
    ran = script.run(driver)
    reasons, states, limited, efforts = python_run(ticks, holds, extrapolation)
    assert [bool(reason) for reason in reasons] == [refusal > 0 for refusal in ran.refusals]
    assert states == ran.states
    assert set(states) == set(STATES)
    assert (limited == ran.limited).all()
    assert set(limited.ravel()) == {0, 1, 2}
    np.testing.assert_allclose(efforts, ran.efforts, rtol=0.0, atol=1e-7)
    assert (np.abs(efforts) <= EFFORT).all()
    periods = np.clip([period for _, period, _ in ticks], 0.0, 0.005)[1:, None]
    assert (np.abs(np.diff(efforts, axis=0)) <= RATE * periods + 1e-12).all()


@pytest.mark.skipif(not C_COMPILERS, reason='there is no C compiler')
@CASES
def test_python_and_c_give_the_same_bits(tmp_path, seed, holds, extrapolation):
    source, library = tmp_path / 'rule.c', tmp_path / 'rule.so'
    source.write_text(HARNESS)
    options = '-std=c99', *WARNINGS, '-O2', '-ffp-contract=off', '-shared', '-fPIC'
    run(C_COMPILERS[0], *options, f'-I{INCLUDE}', source, '-lm', '-o', library)
    c, array, number = ctypes.CDLL(str(library)), ctypes.c_double * 3, ctypes.c_double
    assert c.begin(array(*EFFORT), array(*[np.nan, 0.0, -1.0]), 0, 0) == 3
    assert c.begin(array(*EFFORT), array(*RATE), extrapolation, holds) == 0
    command, ticks, came = array(), drawn(seed), []
    _, states, _, efforts = python_run(ticks, holds, extrapolation)
    for i, (now, period, sample) in enumerate(ticks):
        if sample:
            values = sample[1].ravel().tolist()
            given = (number * len(values))(*values)
            now_and_stamp = number(1e-9 * now), number(1e-9 * sample[0])
            came.append(c.take(*now_and_stamp, len(sample[1]) - 1, given))
        assert STATES[c.update(number(1e-9 * now), number(period), command)] == states[i]
        assert [*command] == efforts[i].tolist()
    assert set(came) == {0, 2, 3, 4, 5}
    assert c.take(number(0.0), number(0.0), 3, (number * 12)()) == 1


def test_the_header_is_what_its_generator_writes():
    assert (
        generate_effort_rule.PATH.read_text(encoding='utf-8')
        == generate_effort_rule.header()
    )


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ({'effort_limits': [1.0]}, 'shapes'),
        ({'effort_limits': [1.0, np.nan]}, 'above zero'),
        ({'effort_rate_limits': [1.0, 0.0]}, 'above zero'),
        ({'extrapolation': 3}, 'expected a whole number from 0 to 2'),
        ({'fallback': 'stop'}, 'expected one of zero, hold'),
        ({'max_age': 0.0}, 'max_age'),
        ({'ease_time': np.nan}, 'ease_time'),
    ],
)
def test_settings_that_cannot_be_are_refused(given, message):
    with pytest.raises(ControlError, match=message):
        EffortFollower(
            **{'effort_limits': [1.0, 1.0], 'effort_rate_limits': [1.0, 1.0], **given}
        )


def test_samples_of_another_size_are_refused():
    follower = EffortFollower([1.0, 1.0], [1.0, 1.0])
    with pytest.raises(ControlError, match='effort_dot has the shape'):
        follower.give(0.0, 0.0, [0.0, 0.0], [0.0])


@pytest.mark.every_case
@pytest.mark.parametrize('now, stamp', [(np.nan, 1.01), (1.0, np.nan), (np.inf, np.inf)])
def test_times_that_are_no_numbers_are_refused_as_such_and_leave_the_clock(now, stamp):
    follower = EffortFollower([1.0], [100.0], ease_time=0.0)
    assert follower.give(1.0, 1.0, [0.5]) == ''
    follower.update(1.0, 0.001)
    assert follower.give(now, stamp, [0.5]) == 'has values that are not finite'
    follower.update(2.0, 0.001)
    assert follower.state == 'refused'
    assert follower.give(2.0, 0.99, [0.5]) == 'is older than max_age'
    assert follower.give(1.01, 1.01, [0.5]) == ''  # the clock was set back
