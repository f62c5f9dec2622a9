"""Recorded programs: what is folded, shared and dropped, and how long those of robots are."""

import operator
from pathlib import Path

import numpy as np
import pytest
from support.engine_cases import random_chain

from hodyn_ros import RobotModel
from hodyn_ros.engine.body_programs import BRANCH, GENERAL, SIMPLE, body_programs
from hodyn_ros.engine.frames import frames
from hodyn_ros.engine.program import Attachment, Recorder, StraightLineProgram
from hodyn_ros.engine.robot_program import robot_program

PANDA = Path(__file__).resolve().parents[2] / 'urdf' / 'panda.urdf'
BINARY = {'add': operator.add, 'subtract': operator.sub, 'multiply': operator.mul}


def run(program, **arrays):
    """Interpret a program, step by step."""
    values = []
    for kind, a, b in program.operations:
        if kind == 'input':
            values.append(arrays[a][b])
        elif kind in BINARY:
            values.append(BINARY[kind](values[a], values[b]))
        else:
            values.append(a if kind == 'constant' else -values[a])
    return [values[output.step] for output in program.outputs]


def record(formula):
    recorder = Recorder()
    x, y = recorder.inputs('x', 2)
    recorder.outputs('r', formula(x, y))
    return recorder.program()


@pytest.mark.parametrize(
    'formula, flops',
    [
        (lambda x, y: [x * 0.0 + y * 1.0 - 0.0], 0),
        (lambda x, y: [x * -1.0 + y], 1),
        (lambda x, y: [operator.neg(-x), 0.0 * y, x - x], 0),
        (lambda x, y: [x * y, y * x, -(x * y)], 1),
        (lambda x, y: [x - y, y - x], 1),
        (lambda x, y: [x + y, -x - y], 1),
        (lambda x, y: [(x + y) * (-x), (y + x) * x], 2),
        (lambda x, y: [2.0 * x - 3.0, 3.0 - x * 2.0], 2),
        (lambda x, y: [np.float64(2.0) * x, x * np.float64(-2.0)], 1),
        (lambda x, y: [x * y * y * 0.0 + x], 0),
        (lambda x, y: [1.5, -2.0], 0),
        (lambda x, y: [2.0 - x, x - 2.0, x + -2.0], 1),
    ],
)
def test_equal_and_empty_work_is_done_once_or_never(formula, flops):
    program = record(formula)
    assert program.flops == flops
    expected = formula(0.7, -1.3)
    assert run(program, x=[0.7, -1.3]) == pytest.approx(expected, rel=1e-15, abs=0.0)


def test_steps_that_no_output_needs_are_dropped():
    program = record(lambda x, y: [(x + y) * 0.0 + 1.0 * x])
    assert program.counts() == {'input': 1}


def test_operands_come_before_their_use():
    for step, (kind, *operands) in enumerate(robot_program(*_panda(), 2).operations):
        if kind in (*BINARY, 'negate'):
            assert all(operand is None or operand < step for operand in operands)


def _panda():
    model = RobotModel.from_urdf(PANDA)
    return model, frames(model)


def test_programs_are_as_short_as_documented():
    counts = [robot_program(*_panda(), order).flops for order in range(3)]
    assert counts == [593, 1304, 2258]  # doc/formulations/body_fixed.rst
    per_body = [sum(p.flops for p in body_programs(2, kind, False)) for kind in range(3)]
    assert per_body[SIMPLE] < per_body[BRANCH] < per_body[GENERAL]


def test_length_grows_linearly_with_the_bodies():
    flops = []
    for n in (10, 20, 30):
        model = random_chain(n)
        flops.append(robot_program(model, frames(model), 2).flops)
    assert flops[2] - flops[1] == pytest.approx(flops[1] - flops[0], rel=0.02)


def test_wrenches_cost_nothing_where_there_are_none():
    model, constants = _panda()
    plain = robot_program(model, constants, 2)
    on_base = robot_program(model, constants, 2, (Attachment('panda_link0', 'spatial'),))
    assert on_base.flops == plain.flops
    at_tip = robot_program(model, constants, 2, (Attachment('panda_link8', 'body'),))
    assert plain.flops < at_tip.flops < plain.flops + 300


def test_regrouping_leaves_zeros_and_the_same_efforts():
    model = random_chain(5, branching=True)
    rng = np.random.default_rng(0)
    motion = rng.standard_normal((5, 5))
    arrays = {
        'motion': motion.ravel(),
        'sine': np.sin(motion[0]),
        'cosine': np.cos(motion[0]),
    }
    regrouped, plain = frames(model), frames(model, regroup=False)
    for body in regrouped.bodies:
        assert (body.mass, body.h[2], body.J[5]) == (0.0, 0.0, 0.0)
    programs = [robot_program(model, constants, 2) for constants in (regrouped, plain)]
    assert programs[0].flops < programs[1].flops
    one, other = (np.array(run(program, **arrays)) for program in programs)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-14 * np.abs(other).max())


def test_an_empty_program_is_a_program():
    assert Recorder().program() == StraightLineProgram((), ())
