"""The loop of libfranka that the documentation shows, on a robot that only looks at torques."""

import re
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from support.compilers import CPP_COMPILERS, WARNINGS, run
from support.effort_driver import INCLUDE

HERE = Path(__file__).parent
PAGES = HERE.parents[1] / 'doc'
BLOCK = re.compile(r'\.\. code-block:: cpp\n\n((?: +.*\n|\n)+)')
BOUND = 'rule.max_period = 0.001;'
LIMITS = np.array([87.0] * 4 + [12.0] * 3)  # N m
RATE = 900.0  # N m/s
CYCLES = 3000
PERIODS = np.where(np.arange(CYCLES) % 99, 1e-3, 2e-3)  # of the robot that stands in
PERIODS[0] = 0.0
NOW = np.cumsum(PERIODS)
AMPLITUDE, FREQUENCY = np.array([20.0, 30.0, 15.0, 10.0, 3.0, 2.0, 1.0]), 9.0
OVER_100_HZ = 10  # cycles


def loop_of_the_page():
    """Text of the one block that moves a robot by libfranka."""
    texts = [
        dedent(block)
        for page in sorted(PAGES.rglob('*.rst'))
        for block in BLOCK.findall(page.read_text(encoding='utf-8'))
        if 'franka::Torques' in block
    ]
    (text,) = texts
    return text


def compiled(folder, text, compiler=CPP_COMPILERS[0] if CPP_COMPILERS else ''):
    """Program around the text of a loop."""
    if not compiler:
        pytest.skip('there is no C++ compiler')
    head, body = folder / 'head.inc', folder / 'body.inc'
    lines = text.splitlines(keepends=True)
    is_head = [line.startswith('#include') for line in lines]
    head.write_text(''.join(line for line, first in zip(lines, is_head) if first))
    body.write_text(''.join(line for line, first in zip(lines, is_head) if not first))
    files = [
        f'-DHEAD="{head}"',
        f'-DLOOP="{body}"',
        f'-I{HERE / "stand_ins"}',
        f'-I{INCLUDE}',
    ]
    options = '-std=c++14', *WARNINGS, '-O1'
    run(compiler, *options, *files, HERE / 'franka_loop.cpp', '-o', folder / 'loop')
    return folder / 'loop'


@pytest.fixture(scope='module')
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp('loop'), loop_of_the_page())


def wave(t):
    """Torques and two derivatives at a time, (3, 7)."""
    phases = FREQUENCY * t + 0.5 * np.pi * np.arange(3)[:, None]
    return AMPLITUDE * FREQUENCY ** np.arange(3)[:, None] * np.sin(phases)


def played(program, folder, samples, cycles=CYCLES):
    """Torques that the robot took (N, 7), and the last word; samples are cycle, stamp, values."""
    lines = [
        ' '.join(
            [str(cycle), repr(float(stamp)), *(repr(float(x)) for x in values.ravel())]
        )
        for cycle, stamp, values in samples
    ]
    script = folder / 'script.txt'
    script.write_text('\n'.join([*lines, str(cycles)]) + '\n')
    *rows, last = run(program, '127.0.0.1', script).splitlines()
    return np.array([np.array(row.split(), dtype=float) for row in rows]), last


def waves(first=0, last=CYCLES, late=2):
    """Samples at 100 Hz that come some cycles late."""
    return [
        (k + late, NOW[k], wave(NOW[k]))
        for k in range(first, last, OVER_100_HZ)
        if k + late < CYCLES
    ]


def steps(torque):
    return np.abs(np.diff(torque, axis=0, prepend=np.zeros((1, 7))))


def test_torques_go_on_between_messages_and_ease_when_they_end(program, tmp_path):
    silent = 1500, 2300
    samples = [*waves(0, silent[0]), *waves(silent[1])]
    torque, last = played(program, tmp_path, samples)
    assert (last, len(torque)) == ('over', CYCLES)
    wanted = np.array([wave(t)[0] for t in NOW])
    # Third derivative over the age of a sample: 12 cycles, and one more that was lost.
    rest = (0.013**3 / 6.0) * AMPLITUDE * FREQUENCY**3
    followed = np.r_[600 : silent[0], silent[1] + 600 : CYCLES]
    assert (np.abs(torque - wanted)[followed] <= rest + 1e-12).all()
    held = np.array([wave(NOW[k // 10 * 10])[0] for k in followed])
    assert np.abs(held - wanted[followed]).max() > 100.0 * rest.max()
    # 50 ms behind the last sample torques begin to fade, for 500 ms.
    assert np.abs(torque[silent[0] + 570 : silent[1]]).max() == 0.0
    assert np.abs(torque[silent[0] + 100]).max() > 1.0
    assert (steps(torque) <= RATE * 1e-3 + 1e-12).all()


def test_whatever_comes_torques_and_their_steps_stay_within_limits(program, tmp_path):
    random = np.random.default_rng(5)
    samples = []
    for cycle, stamp, values in waves():
        kind = random.random()
        if kind < 0.05:
            values[random.integers(3), random.integers(7)] = random.choice([np.nan, np.inf])
        elif kind < 0.1:
            values[0] *= random.choice([-8.0, 1e5])
        elif kind < 0.15:
            stamp += random.choice([-1.0, 1.0])
        elif kind < 0.2:
            values[2] = 1e300
        elif kind < 0.3:
            values += random.normal(size=7) * [[20.0], [0.0], [0.0]]
        samples.append((cycle, stamp, values))
    torque, last = played(program, tmp_path, samples)
    assert (last, len(torque)) == ('over', CYCLES)
    assert (np.abs(torque) <= LIMITS).all()
    assert steps(torque).max() == pytest.approx(RATE * 1e-3, abs=1e-12)


def test_behind_a_lost_state_a_step_of_two_cycles_stops_the_robot(tmp_path):
    """What one line of the page is for."""
    text = loop_of_the_page()
    assert text.count(BOUND) == 1
    jump = np.zeros((3, 7))
    samples = [(0, 0.0, jump.copy())]
    samples += [(k, NOW[k], jump.copy()) for k in range(10, 690, 10)]
    jump[0, 1] = 60.0
    samples += [(k, NOW[k], jump.copy()) for k in range(690, 800, 10)]
    bare, whole = tmp_path / 'bare', tmp_path / 'whole'
    for folder, own, said in (
        (whole, text, 'over'),
        (bare, text.replace(BOUND, ''), 'libfranka: controller_torque_discontinuity'),
    ):
        folder.mkdir()
        torque, last = played(compiled(folder, own), folder, samples, 800)
        assert last == said
        assert steps(torque).max() == pytest.approx(0.9, abs=1e-12)
    assert len(torque) == 693  # the 693rd cycle, from 0, is behind a lost state
