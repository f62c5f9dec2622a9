"""Kernels of link motions and of the equations of motion give what NumPy gives.

Errors are relative to the largest value of the same order of derivatives over all samples.
"""

import dataclasses
import functools
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from support.engine_cases import kernels_of, load, needs_compiler, random_chain
from support.random_trees import random_gravity, random_robot, seeds

from hodyn_ros import (
    HodynError,
    RobotModel,
    coriolis_matrix,
    forward_kinematics,
    friction,
    gravity_effort,
    inverse_dynamics_derivatives,
    mass_matrix,
    regressor,
)
from hodyn_ros.dynamics.matrices import _closed_form
from hodyn_ros.engine import engine
from hodyn_ros.engine.engine import (
    SAMPLES_BEFORE_COMPILING,
    LinkResult,
    Term,
    engine_of,
)
from hodyn_ros.engine.program import MASS_MATRIX, ProgramTooLong, Recorder
from hodyn_ros.errors import MotionError
from hodyn_ros.model.robot import ModelWarning

pytestmark = needs_compiler

PANDA = Path(__file__).resolve().parents[2] / 'urdf' / 'panda.urdf'
TOLERANCE = 1e-14
EXPRESSIONS = ('body', 'spatial', 'hybrid')
TERMS = {
    'mass matrix': mass_matrix,
    'Coriolis matrix': coriolis_matrix,
    'other Coriolis matrix': lambda model, motion: coriolis_matrix(model, motion, False),
    'weight': gravity_effort,
    'regressor': regressor,
    'partial derivatives': inverse_dynamics_derivatives,
}
# How many more derivatives a motion has than a term.
MORE = {
    'Coriolis matrix': 1,
    'other Coriolis matrix': 1,
    'regressor': 2,
    'partial derivatives': 2,
}
LAWS = (
    friction.Viscous(0.7),
    friction.Coulomb(1.3, smoothing=0.4),
    friction.Sigmoid(1.1, 3.0, 0.2),
    friction.Viscous(0.2) + friction.Offset(2.0) + friction.Coulomb(0.9, smoothing=0.6),
    friction.Stribeck(1.2, 0.5, smoothing=0.3),
    friction.Stribeck(1.2, 0.5),
)


@pytest.fixture(scope='module')
def panda():
    """Panda for tests that do not mind whether it is warm."""
    return RobotModel.from_urdf(PANDA, tip_link='panda_link8')


@pytest.fixture
def cold():
    return RobotModel.from_urdf(PANDA, tip_link='panda_link8')


def random_model(seed, angles=1.0):
    # A prismatic joint should not follow one that turns very far.
    return random_tree(seed, 0.0 if angles == 1e6 else 0.25)


@functools.cache
def random_tree(seed, mimic_probability):
    """Model for tests that do not mind whether it is warm."""
    robot = random_robot(seed, mimic_probability=mimic_probability)
    return load(robot.xml, gravity=random_gravity(seed))


def helical_model(seed):
    helical = pytest.importorskip('support.random_trees', exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return helical.helical_model(seed)


def random_motion(model, K, shape=(), seed=0, angles=1.0):
    motion = np.random.default_rng(seed).standard_normal((*shape, K, model.n_joints))
    motion[..., 0, [kind != 'prismatic' for kind in model.joint_types]] *= angles
    return motion


def by_numpy(function, model, motion, *arguments):
    """What a model computes that has not been asked for more than a few samples."""
    fresh = dataclasses.replace(model)
    assert motion.size < SAMPLES_BEFORE_COMPILING * motion[0].size
    result = function(fresh, motion, *arguments)
    assert not kernels_of(fresh)
    return result


def by_kernel(function, model, motion, *arguments):
    """What a kernel computes, sample by sample and all together."""
    model.warm_up(0, lambda: function(model, motion[0], *arguments))
    kernels = len(kernels_of(model))
    together = function(model, motion, *arguments)
    alone = [function(model, sample, *arguments) for sample in motion]
    assert len(kernels_of(model)) == kernels
    return together, alone


def assert_equal_by_order(actual, expected, tolerance=TOLERANCE):
    """Compare arrays of shape (N, orders, ...)."""
    assert actual.shape == expected.shape
    axes = tuple(k for k in range(expected.ndim) if k != 1)
    scale = np.abs(expected).max(axis=axes, initial=0.0)
    error = np.abs(actual - expected).max(axis=axes, initial=0.0)
    assert np.all(error <= tolerance * np.where(scale > 0.0, scale, 1.0)), error / scale


def assert_same_link_motion(model, motion, link, expressed_in):
    expected = by_numpy(forward_kinematics, model, motion, link, expressed_in)
    together, alone = by_kernel(forward_kinematics, model, motion, link, expressed_in)
    for pose, twist in (together, map(np.stack, zip(*alone))):
        size = max(1.0, np.abs(expected.pose).max())
        np.testing.assert_allclose(pose, expected.pose, rtol=0.0, atol=TOLERANCE * size)
        np.testing.assert_array_equal(pose[:, 3], [[0.0, 0.0, 0.0, 1.0]] * len(pose))
        assert_equal_by_order(twist, expected.twist)


def moving_links(model):
    return [link for link, frame in model.links.items() if frame.body >= 0]


# --- Right --------------------------------------------------------------------------------------


@pytest.mark.parametrize('angles', [1e-9, 1.0, 1e6])
@pytest.mark.parametrize('expressed_in', EXPRESSIONS)
@pytest.mark.parametrize('seed', seeds(range(6), short=1))
def test_motion_of_a_link_of_a_random_tree(seed, expressed_in, angles):
    model = random_model(seed, angles)
    link = moving_links(model)[-1]
    motion = random_motion(model, 5, (20,), seed, angles)
    assert_same_link_motion(model, motion, link, expressed_in)


@pytest.mark.parametrize('expressed_in', EXPRESSIONS)
@pytest.mark.parametrize('seed', seeds(range(4)))
def test_motion_of_a_link_behind_helical_joints(seed, expressed_in):
    model = helical_model(seed)
    motion = random_motion(model, 5, (20,), seed)
    assert_same_link_motion(model, motion, moving_links(model)[-1], expressed_in)


@pytest.mark.parametrize('K', [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize('expressed_in', EXPRESSIONS)
def test_motion_of_the_panda_of_each_order(panda, expressed_in, K):
    assert_same_link_motion(
        panda, random_motion(panda, K, (20,)), 'panda_link8', expressed_in
    )


@pytest.mark.parametrize('angles', [1e-9, 1.0, 1e6])
@pytest.mark.parametrize('name', TERMS)
@pytest.mark.parametrize('seed', seeds([25, 21, 20, 22, 24, 26], short=1))
def test_terms_of_a_random_tree(seed, name, angles):
    model = random_model(seed, angles)
    motion = random_motion(model, 3, (20,), seed, angles)
    expected = by_numpy(TERMS[name], model, motion)
    together, alone = by_kernel(TERMS[name], model, motion)
    assert_equal_by_order(together, expected)
    assert_equal_by_order(np.stack(alone), expected)


@pytest.mark.parametrize('name', TERMS)
@pytest.mark.parametrize('seed', seeds(range(4), short=1))
def test_terms_of_a_robot_with_helical_joints(seed, name):
    model = helical_model(seed)
    motion = random_motion(model, 3, (20,), seed)
    together, _ = by_kernel(TERMS[name], model, motion)
    assert_equal_by_order(together, by_numpy(TERMS[name], model, motion))


@pytest.mark.parametrize(
    ('name', 'K'),
    [
        pytest.param(name, K, marks=[pytest.mark.slow] * (K + MORE.get(name, 0) > 4))
        for name in TERMS
        for K in (
            [1, 2, 3] if name in ('regressor', 'partial derivatives') else [1, 2, 3, 4]
        )
    ],
)
def test_terms_of_the_panda_of_each_order(panda, name, K):
    model = panda.with_armature({joint: 0.1 for joint in panda.joint_names})
    model = model.with_friction(dict(zip(panda.joint_names, LAWS)))
    motion = random_motion(model, K + MORE.get(name, 0), (20,))
    together, alone = by_kernel(TERMS[name], model, motion)
    expected = by_numpy(TERMS[name], model, motion)
    assert together.shape[1] == K
    assert_equal_by_order(together, expected)
    assert_equal_by_order(np.stack(alone), expected)
    if name == 'mass matrix':
        np.testing.assert_array_equal(together, np.swapaxes(together, -1, -2))


# --- Given and returned arrays ------------------------------------------------------------------


@pytest.mark.parametrize('shape', [(), (5,), (2, 3), (0,)])
def test_leading_axes_are_kept(panda, shape):
    motion = random_motion(panda, 3, shape)
    panda.warm_up(
        0, lambda: mass_matrix(panda, motion), lambda: forward_kinematics(panda, motion)
    )
    assert mass_matrix(panda, motion).shape == (*shape, 3, 7, 7)
    pose, twist = forward_kinematics(panda, motion)
    assert pose.shape == (*shape, 4, 4)
    assert twist.shape == (*shape, 2, 6)


def test_motions_of_all_kinds_are_taken(panda):
    motion = np.round(8.0 * random_motion(panda, 3, (6,))) / 8.0
    panda.warm_up(
        0,
        lambda: mass_matrix(panda, motion[0]),
        lambda: forward_kinematics(panda, motion[0]),
    )
    expected = mass_matrix(panda, motion), *forward_kinematics(panda, motion)
    strided = np.zeros((6, 3, 14))
    strided[..., ::2] = motion
    for given in (motion.astype(np.float32), motion.tolist(), strided[..., ::2]):
        found = mass_matrix(panda, given), *forward_kinematics(panda, given)
        for array, reference in zip(found, expected):
            np.testing.assert_allclose(array, reference, rtol=0.0, atol=1e-14)
        alone = mass_matrix(panda, given[2])
        np.testing.assert_allclose(alone, expected[0][2], rtol=0.0, atol=1e-14)


def test_every_call_gives_new_arrays(panda):
    motions = random_motion(panda, 2, (2,))
    panda.warm_up(
        0,
        lambda: mass_matrix(panda, motions[0]),
        lambda: forward_kinematics(panda, motions[0]),
    )
    first = mass_matrix(panda, motions[0]), *forward_kinematics(panda, motions[0])
    kept = [array.copy() for array in first]
    second = mass_matrix(panda, motions[1]), *forward_kinematics(panda, motions[1])
    for array, copy, other in zip(first, kept, second):
        np.testing.assert_array_equal(array, copy)
        assert not np.array_equal(array, other)


# --- Refused ------------------------------------------------------------------------------------


def message(function, *arguments):
    with pytest.raises(HodynError) as caught:
        function(*arguments)
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize('function', [forward_kinematics, *TERMS.values()])
def test_errors_are_the_same_with_and_without_a_kernel(cold, function):
    cases = []
    for shape in ((), (3,)):
        motion = random_motion(cold, 3, shape)
        cases += [
            motion[..., :0, :],
            motion[..., :3],
            np.full(motion.shape, 'a'),
            motion[..., 0],
        ]
        for value in (np.nan, np.inf, -np.inf):
            wrong = motion.copy()
            wrong[..., 1, 2] = value
            cases.append(wrong)
        cases.append(1e200 * motion)
    before = [message(function, cold, case) for case in cases]
    cold.warm_up(0, lambda: function(cold, motion))
    assert len(kernels_of(cold)) > 1
    function(cold, motion)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert [message(function, cold, case) for case in cases] == before
    assert 'nan at index' in before[4][1]
    assert 'overflows' in before[-1][1]


def test_overflow_of_a_joint_that_does_not_move_the_link_is_no_error(panda):
    motion = random_motion(panda, 3)
    expected = forward_kinematics(panda, motion, 'panda_link3')
    motion[2, 6] = 1e300
    panda.warm_up(0, lambda: forward_kinematics(panda, motion, 'panda_link3'))
    found = forward_kinematics(panda, motion, 'panda_link3')
    np.testing.assert_allclose(found.twist, expected.twist, atol=1e-14)


def test_unknown_links_and_expressions_are_refused(panda):
    motion = random_motion(panda, 3)
    panda.warm_up(0, lambda: forward_kinematics(panda, motion))
    assert 'no link' in message(forward_kinematics, panda, motion, 'nowhere')[1]
    assert 'expressed_in' in message(forward_kinematics, panda, motion, None, 'world')[1]
    forward_kinematics(panda, motion, 'panda_link0')  # the base


# --- When there is a kernel ---------------------------------------------------------------------


def test_only_what_is_asked_for_is_prepared(cold):
    cold.warm_up(0)
    assert len(kernels_of(cold)) == 1
    motion = random_motion(cold, 4)
    cold.warm_up(
        0,
        lambda: forward_kinematics(cold, motion, None, 'spatial'),
        lambda: mass_matrix(cold, motion[:2]),
    )
    kernels = kernels_of(cold)
    assert set(kernels) >= {LinkResult('panda_link8', 'spatial', 4), Term(MASS_MATRIX, 2)}
    assert len(kernels) == 3


def test_kernel_comes_in_the_background_after_some_samples(cold):
    motion = random_motion(cold, 1, (SAMPLES_BEFORE_COMPILING - 1,))
    first = mass_matrix(cold, motion)
    assert not engine_of(cold).pending
    mass_matrix(cold, motion[0])
    deadline = time.monotonic() + 60.0
    while Term(MASS_MATRIX, 1) not in kernels_of(cold):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert_equal_by_order(mass_matrix(cold, motion), first)


def test_long_programs_are_left_to_numpy(cold, monkeypatch):
    monkeypatch.setattr(engine, 'LARGEST_PROGRAM', 10)
    motion = random_motion(cold, 1, (5,))
    cold.warm_up(0, lambda: mass_matrix(cold, motion))
    assert Term(MASS_MATRIX, 1) not in kernels_of(cold)
    np.testing.assert_array_equal(
        mass_matrix(cold, motion), by_numpy(mass_matrix, cold, motion)
    )


@pytest.mark.parametrize('warm', [False, True])
def test_mass_matrix_of_a_large_robot_matches_the_closed_form(warm):
    model = random_chain(40).with_armature({'joint3': 2.0})
    model = model.with_friction({'joint5': friction.Coulomb(1.0) + friction.Offset(0.5)})
    motion = random_motion(model, 1, (2, 3))
    if warm:
        model.warm_up(0, lambda: mass_matrix(model, motion))
    M = mass_matrix(model, motion)
    assert M.shape == (2, 3, 1, 40, 40)
    expected = _closed_form(model, motion.reshape(6, 1, 40), MASS_MATRIX)
    assert_equal_by_order(M.reshape(6, 1, 40, 40), expected)
    np.testing.assert_array_equal(M, np.swapaxes(M, -1, -2))
    assert_equal_by_order(mass_matrix(model, motion[1, 2])[None], M[1, 2][None])
    assert mass_matrix(model, motion[:0]).shape == (0, 3, 1, 40, 40)
    motion[1, 0, 0, 7] = np.nan
    with pytest.raises(MotionError, match=r'finite'):
        mass_matrix(model, motion)


def test_recorder_stops_at_its_limit():
    recorder = Recorder(longest=10)
    x = recorder.input('x', 0)
    with pytest.raises(ProgramTooLong):
        for _ in range(20):
            x = x * x


def test_errors_inside_a_warm_up_come_out_and_leave_nothing_behind(cold):
    with pytest.raises(MotionError):
        cold.warm_up(0, lambda: mass_matrix(cold, [[np.nan] * 7]))
    mass_matrix(cold, random_motion(cold, 2))
    assert Term(MASS_MATRIX, 2) not in kernels_of(cold)
