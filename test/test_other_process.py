"""Kernels that another process makes: the same results, and a reason where there are none."""

import pickle
import sys

import numpy as np
import pytest
import robots

from hodyn_ros import HodynError, RobotModel, Wrench, inverse_dynamics
from hodyn_ros.dynamics.inverse import chosen_algorithm
from hodyn_ros.engine.engine import COMPILED_TREE, STRAIGHT_LINE, engine_of, unavailable
from hodyn_ros.engine.other_process import Compiler
from hodyn_ros.engine.robot_program import Attachment

MOTION = np.random.default_rng(5).normal(size=(4, 5, 2))
WRENCH = Wrench('tool', np.random.default_rng(6).normal(size=(3, 6)), 'hybrid')
ATTACHED = (Attachment('tool', 'hybrid'),)


@pytest.fixture
def model():
    return RobotModel.from_urdf(robots.TWO_LINK)


def test_kernels_of_another_process_compute_the_same(model):
    Compiler().prepare(model, [(2, ()), (1, ()), (2, ATTACHED)])
    form = STRAIGHT_LINE if unavailable() else 'compiled_robot'
    for motion, wrench in ((MOTION, None), (MOTION[:, :4], None), (MOTION, WRENCH)):
        assert chosen_algorithm(model, motion, wrench) == form
        expected = inverse_dynamics(model, motion, wrench, 'nth_order')
        np.testing.assert_allclose(
            inverse_dynamics(model, motion, wrench), expected, rtol=1e-12, atol=1e-12
        )
        np.testing.assert_allclose(
            inverse_dynamics(model, motion[0], wrench), expected[0], rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize('form', [None, COMPILED_TREE, STRAIGHT_LINE])
def test_kernels_can_be_pickled(model, form):
    if form == COMPILED_TREE and unavailable():
        pytest.skip(f'no compiler: {unavailable()}')
    kernel = engine_of(model).make(2, (), form)
    efforts = [np.empty((4, 3, 2)) for _ in range(2)]
    for one, effort in zip((kernel, pickle.loads(pickle.dumps(kernel))), efforts):
        assert one.evaluate(MOTION, None, effort)
    np.testing.assert_array_equal(*efforts)


def test_expected_kernels_are_not_made_in_the_background(model):
    engine = engine_of(model)
    assert engine.expect(2)
    assert not engine.expect(2)
    inverse_dynamics(model, np.tile(MOTION[0], (10_000, 1, 1)))
    assert chosen_algorithm(model, MOTION) == 'nth_order'
    engine.prepare(2)
    assert not engine.expect(2)
    assert chosen_algorithm(model, MOTION) != 'nth_order'


@pytest.mark.parametrize(
    ('executable', 'reason'),
    [('', 'no Python'), ('/nowhere/python', 'can be started'), ('/bin/false', 'exit code 1')],
)
def test_process_that_fails_says_why(model, monkeypatch, executable, reason):
    monkeypatch.setattr(sys, 'executable', executable)
    with pytest.raises(HodynError, match=reason):
        Compiler().prepare(model, [(2, ())])


def test_closed_compiler_starts_no_process(model):
    compiler = Compiler()
    compiler.close()
    with pytest.raises(HodynError, match='No more'):
        compiler.prepare(model, [(2, ())])
