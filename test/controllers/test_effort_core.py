"""The core of the C++ controllers follows, eases and refuses efforts, whatever comes in."""

import math

import numpy as np
import pytest
from support.compilers import CPP_COMPILERS, WARNINGS, run
from support.effort_driver import (
    EFFORT,
    INCLUDE,
    RATE,
    TICK,
    Script,
    compiled,
    wave,
)

pytestmark = pytest.mark.skipif(not CPP_COMPILERS, reason='there is no C++ compiler')

(
    NONE,
    OTHER,
    MISSING,
    TWICE,
    BASE,
    SIZE,
    NOT_FINITE,
    STALE,
    FUTURE,
    OVERTAKEN,
) = range(10)


@pytest.fixture(scope='module')
def driver(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp('driver'), 'driver')


@pytest.mark.every_case
@pytest.mark.parametrize(('wanted', 'known'), [(2, 2), (1, 2), (2, 1), (0, 2)])
def test_samples_are_extrapolated_by_their_derivatives(driver, wanted, known):
    script, values, t = Script({'extrapolation': wanted}), wave(0.0), 1e-3 * np.arange(45)
    script.message(0, 0, values, order=known)
    for i in range(45):
        script.tick(i * TICK)
    ran = script.run(driver, values[0].tolist())
    taylor = values / [[1.0], [1.0], [2.0]]
    expected = np.polynomial.polynomial.polyval(t, taylor[: min(wanted, known) + 1]).T
    np.testing.assert_allclose(ran.efforts, expected, rtol=0.0, atol=1e-9)


@pytest.mark.every_case
@pytest.mark.parametrize('holds', [False, True])
def test_lost_efforts_are_eased_to_zero_or_held(driver, holds):
    script = Script({'fallback': int(holds), 'ease_time': 0.1})
    last = np.array([20.0, -10.0, 5.0])
    script.message(0, 0, [last], order=0)
    for i in range(200):
        script.tick(i * TICK)
    ran = script.run(driver, last.tolist())
    assert ran.states == ['following'] * 51 + ['easing'] * 100 + ['fallback'] * 49
    x = np.clip(1e-3 * np.arange(149) / 0.1, 0.0, 1.0)[:, None]
    share = 1.0 if holds else 1.0 - (10.0 * x**3 - 15.0 * x**4 + 6.0 * x**5)
    expected = np.broadcast_to(share * last, (149, 3))
    np.testing.assert_allclose(ran.efforts[51:], expected, rtol=0.0, atol=1e-9)


REFUSED = {
    'another joint': (OTHER, {'names': ('a', 'b', 'x')}),
    'a joint is missing': (MISSING, {'names': ('a', 'b'), 'values': np.ones((3, 2))}),
    'a joint twice': (TWICE, {'names': ('a', 'b', 'b')}),
    'another base link': (BASE, {'base': 'another'}),
    'a value is missing': (SIZE, {'values': np.ones((3, 2))}),
    'order 3': (SIZE, {'order': 3}),
    'NaN': (NOT_FINITE, {'values': np.full((3, 3), np.nan)}),
    'old': (STALE, {'stamp': -60 * TICK}),
    'of the future': (FUTURE, {'stamp': 30 * TICK}),
    'before the epoch': (STALE, {'stamp': -1, 'absolute': True}),
    'the stamp of the one before': (OVERTAKEN, {'stamp': -TICK}),
}


@pytest.mark.every_case
@pytest.mark.parametrize('what', REFUSED)
def test_what_cannot_be_followed_is_refused_and_moves_nothing(driver, what):
    code, given = REFUSED[what]
    ran = []
    for refused in (False, True):
        script = Script({'ease_time': 0.01}, base='base')
        good = {'values': wave(0.0), 'base': 'base'}
        script.message(-TICK, -TICK, **good)
        for i in range(100):
            script.tick(i * TICK)
            if refused and i < 20:
                script.message(0, **{'stamp': i * TICK, **good, **given})
        ran.append(script.run(driver))
    without, with_it = ran
    assert with_it.refusals == [NONE] + [code] * 20
    assert (with_it.efforts == without.efforts).all()
    assert without.states[-1] == 'fallback'
    assert with_it.states[-1] == 'refused'


def test_joints_come_in_any_order_and_a_stamp_of_zero_is_now(driver):
    script = Script({'ease_time': 1e-3})
    script.message(0, 0, [[3.0, 1.0, 2.0]], names=('c', 'a', 'b'), order=0, absolute=True)
    for i in range(40):
        script.tick(i * TICK)
    ran = script.run(driver)
    assert ran.refusals == [NONE]
    assert (ran.efforts[-1] == [1.0, 2.0, 3.0]).all()
    assert ran.age[-1] == pytest.approx(0.039)


@pytest.mark.parametrize('jump', [-3600.0, 3600.0])
def test_after_a_jump_of_the_clock_efforts_are_eased_and_then_followed_again(driver, jump):
    script = Script({'ease_time': 0.02})
    states, jump = [], int(1e9 * jump)
    for i in range(600):
        at = i * TICK + (jump if i >= 200 else 0)
        # For 100 ms nothing comes with the new time.
        if not i % 10 and not 200 <= i < 300:
            script.message(at, at, wave(1e-9 * i * TICK))
        script.tick(at, 1e-3 if i != 200 else 1e-9 * jump)
    ran = script.run(driver)
    assert set(ran.refusals) == {NONE}
    states = list(dict.fromkeys(ran.states))
    assert states == ['following', 'easing', 'fallback']
    assert ran.states[-1] == 'following'
    assert_no_step(ran.efforts)


def assert_no_step(efforts, period=1e-3):
    steps = np.abs(np.diff(efforts, axis=0))
    assert (steps <= RATE * period * (1.0 + 1e-12) + 1e-12).all()
    assert (np.abs(efforts) <= EFFORT).all()


@pytest.mark.parametrize('seed', range(2))
def test_whatever_comes_there_is_never_a_step(driver, seed):
    random = np.random.default_rng(seed)
    script = Script({'ease_time': 0.01, 'fallback': seed % 2})
    scales = 10.0 ** random.integers(-2, 4, 3000)
    clock = 0
    for i in range(3000):
        jumps = TICK, 50 * TICK, -40 * TICK, 10**12, -(10**12)
        clock += int(random.choice(jumps, p=[0.9, 0.04, 0.04, 0.01, 0.01]))
        if i % 500 > 200 and random.random() < 0.3:
            stamp = clock + int(random.integers(-80, 40)) * TICK
            values = scales[i] * random.normal(size=(3, 3))
            values[random.random((3, 3)) < 0.02] = random.choice([np.nan, np.inf, -1e308])
            script.message(clock, stamp, values, order=int(random.integers(0, 3)))
        if random.random() < 0.02:
            script.reference(clock, scales[i] * random.normal(size=9))
        script.tick(clock)
    ran = script.run(driver, begin=(0.0, 3.0, -5.0))
    assert np.isfinite(ran.efforts).all()
    assert {'following', 'easing', 'fallback'} <= set(ran.states)
    assert (ran.limited == 1).any() and (ran.limited == 2).any()
    assert_no_step(ran.efforts)


def test_references_are_extrapolated_between_renewals_and_then_lost_unless_they_rest(
    driver,
):
    script = Script({'ease_time': 1e-3})
    for i in range(400):
        script.reference(i * TICK, wave(1e-9 * TICK * (i - i % 4)))
        script.tick(i * TICK)
    exact = np.array([wave(1e-3 * i)[0] for i in range(400)])
    assert np.abs(script.run(driver).efforts - exact)[100:].max() < 1e-4
    moving, resting = [], []
    for values, states in ((wave(0.0), moving), (wave(0.0) * [[1], [0], [0]], resting)):
        script = Script({'ease_time': 0.01})
        for i in range(200):
            script.reference(i * TICK, values)
            script.tick(i * TICK)
        states.extend(script.run(driver).states)
    assert set(moving[70:]) == {'fallback'}
    assert set(resting) == {'following'}


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('is_chained', 'k', 'value'), [(False, 0, 1e6), (False, 2, -1e308), (True, 1, 1e12)]
)
def test_efforts_far_beyond_their_limits_are_refused(driver, is_chained, k, value):
    script = Script({'ease_time': 0.01})
    for i in range(130):
        # Good ones, then absurd ones, then good ones again.
        values = np.array([[3.0, -2.0, 1.0], [0.0] * 3, [0.0] * 3])
        if 40 <= i < 80:
            values[k, 1] = value
        if is_chained:
            script.reference(i * TICK, values)
        else:
            script.message(i * TICK, i * TICK - TICK, values)
        script.tick(i * TICK)
    ran = script.run(driver)
    assert ran.states[39] == ran.states[129] == 'following'
    # The polynomial of references begins at their tick.
    assert 'following' not in ran.states[41 : 80 if k == 0 or not is_chained else 70]
    assert ran.states[60] == 'refused'
    assert (ran.efforts[60] == 0.0).all()
    assert (ran.efforts[129] == [3.0, -2.0, 1.0]).all()
    assert_no_step(ran.efforts)


def test_late_tick_moves_efforts_no_further_than_the_longest_period_from_where_they_are(
    driver,
):
    script = Script({'ease_time': 1e-3})
    script.message(0, 0, [EFFORT], order=0)
    for i in range(3):
        script.tick(i * 10 * TICK, 0.5)
    ran = script.run(driver, begin=(30.0, math.nan, 1e9))
    assert ran.efforts[0] == pytest.approx([30.0, 0.0, EFFORT[2]], abs=0.1)
    assert ran.efforts[1][1] - ran.efforts[0][1] == pytest.approx(RATE[1] * 0.005)
    assert ran.limited[1][1] == 2


def test_headers_stand_alone_and_readers_of_the_buffer_see_whole_values(tmp_path):
    """`colcon test` needs nothing but the files of the package; its threads race."""
    program, package = tmp_path / 'core_test', INCLUDE.parent
    options = '-std=c++17', *WARNINGS, '-pthread', f'-I{INCLUDE}'
    run(CPP_COMPILERS[0], *options, package / 'test' / 'core_test.cpp', '-o', program)
    assert run(program) == 'correct\n'
    word, taken = run(compiled(tmp_path, 'race')).split()
    assert word == 'right'
    assert int(taken) > 0


@pytest.mark.parametrize('sanitizer', ['thread', 'address,undefined'])
def test_sanitizers_find_nothing_in_the_buffer(sanitizer, tmp_path):
    """Much is compiled."""
    assert run(compiled(tmp_path, 'race', f'-fsanitize={sanitizer}')).startswith('right')
