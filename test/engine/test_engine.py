"""The engine's kernels compute what the formulations do, whatever they are given.

Errors are measured per order, relative to the largest effort of that order over all joints and
contributions, against an oracle in extended precision where there is one.
"""

import copy
import functools
import gc
import pickle
import sys
import threading
import time
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
from support.coverings import covering
from support.engine_cases import (
    COMPILED,
    FORMS,
    load,
    needs_compiler,
    random_chain,
    relative_errors,
    wrench_cases,
)
from support.oracles import taylor_rnea, taylor_terms
from support.random_trees import random_robot

from hodyn_ros import (
    HodynError,
    RobotModel,
    Wrench,
    forward_kinematics,
    friction,
    inverse_dynamics,
    mass_matrix,
)
from hodyn_ros.dynamics.inverse import chosen_algorithm
from hodyn_ros.engine.engine import SAMPLES_BEFORE_COMPILING, Efforts, engine_of
from hodyn_ros.errors import MotionError
from hodyn_ros.lie import leibniz
from hodyn_ros.model.robot import ModelWarning

PANDA = Path(__file__).resolve().parents[2] / 'urdf' / 'panda.urdf'
EARTH = (0.0, 0.0, -9.81)
TOLERANCE = 1e-14


@pytest.fixture(scope='module')
def panda():
    """Panda for tests that do not mind whether it is warm."""
    return RobotModel.from_urdf(PANDA)


@pytest.fixture
def cold():
    return RobotModel.from_urdf(PANDA)


def random_motion(model, seed=0, shape=(), K=5):
    return np.random.default_rng(seed).standard_normal((*shape, K, model.n_joints))


def helical_robot(seed):
    helical = pytest.importorskip('support.random_trees', exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return helical.helical_model(seed)


# --- Right ------------------------------------------------------------------------------------


@functools.cache
def random_tree(seed, mimic_probability):
    """A random robot and its model, for tests that do not mind whether it is warm."""
    robot = random_robot(seed, mimic_probability=mimic_probability)
    return robot, load(robot.xml)


@needs_compiler
@pytest.mark.parametrize('wrenches', [False, True])
@pytest.mark.parametrize(
    ('form', 'angles', 'first'), covering(COMPILED, [1e-9, 1.0, 1e6], [200, 203])
)
def test_random_trees_match_power_series(form, wrenches, angles, first):
    for seed in range(first, first + 3):
        # The angle of a mimic joint is rounded before anything is computed.
        robot, model = random_tree(seed, 0.0 if angles == 1e6 else 0.25)
        rng = np.random.default_rng(seed)
        motion = rng.standard_normal((5, 5, model.n_joints))
        motion[:, 0, [kind != 'prismatic' for kind in model.joint_types]] *= angles
        cases = wrench_cases(rng, robot.links[1:4] if wrenches else (), 3, (5,))
        terms = taylor_terms(robot.xml, model.joint_names, EARTH, motion, cases)
        scale = np.abs(terms).max(axis=(0, 1, 3))
        effort = inverse_dynamics(model, motion, [Wrench(*case) for case in cases], form)
        assert np.all(relative_errors(effort, terms.sum(axis=0), scale) <= TOLERANCE)


@pytest.mark.parametrize('wrenches', [False, True])
@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('seed', range(3))
def test_helical_joints_match_the_formulations(seed, form, wrenches):
    model = helical_robot(seed)
    rng = np.random.default_rng(seed)
    motion = random_motion(model, seed, (20,))
    links = list(model.links)[1:4] if wrenches else ()
    cases = [Wrench(*case) for case in wrench_cases(rng, links, 3, (20,))]
    expected = inverse_dynamics(model, motion, cases, 'nth_order')
    effort = inverse_dynamics(model, motion, cases, form)
    assert np.all(relative_errors(effort, expected) <= TOLERANCE)


@pytest.mark.parametrize('K', [3, 4, 5])
@pytest.mark.parametrize('form', FORMS)
def test_each_order_is_the_same_whatever_is_asked_for(panda, form, K):
    motion = random_motion(panda, shape=(11,))
    expected = inverse_dynamics(panda, motion, algorithm='nth_order')[:, : K - 2]
    effort = inverse_dynamics(panda, motion[:, :K], algorithm=form)
    assert np.all(relative_errors(effort, expected) <= TOLERANCE)


@pytest.mark.parametrize('form', FORMS)
def test_third_and_fourth_derivatives_match_power_series(panda, form):
    motion = random_motion(panda, shape=(11,), K=7)
    expected = taylor_rnea(PANDA.read_text(), panda.joint_names, EARTH, motion)
    wrench = Wrench('panda_link5', random_motion(panda, 1, (11,))[:, :, :6], 'spatial')
    effort = inverse_dynamics(panda, motion, algorithm=form)
    assert np.all(relative_errors(effort, expected) <= TOLERANCE)
    loaded = inverse_dynamics(panda, motion, wrench, form)
    expected = inverse_dynamics(panda, motion, wrench, 'nth_order')
    assert np.all(relative_errors(loaded, expected) <= TOLERANCE)


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('n, branching', [(1, False), (2, False), (30, True)])
def test_small_and_large_robots(form, n, branching):
    model = random_chain(n, branching=branching)
    motion = random_motion(model, shape=(10,))
    expected = inverse_dynamics(model, motion, algorithm='nth_order')
    errors = relative_errors(inverse_dynamics(model, motion, algorithm=form), expected)
    assert np.all(errors <= 5 * TOLERANCE)  # what nth_order itself is off by


@pytest.mark.parametrize(
    'angle', [0.0, 1e-17, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.02, 0.2, 1.5]
)
def test_almost_parallel_axes_cost_no_accuracy(angle):
    model = random_chain(6, angle=angle)
    motion = random_motion(model, shape=(10,))
    expected = inverse_dynamics(model, motion, algorithm='nth_order')
    effort = inverse_dynamics(model, motion, algorithm='compiled_robot')
    assert np.all(relative_errors(effort, expected) <= TOLERANCE)


class Quadratic(friction.FrictionLaw):
    """A law of a user: v |v|."""

    def effort(self, velocity):
        speed = np.sign(velocity[..., :1]) * velocity
        return (leibniz.multiplication(speed) @ velocity[..., None])[..., 0]


FRICTION_LAWS = {
    'panda_joint1': friction.Viscous(0.3),
    'panda_joint2': friction.Coulomb(0.5, smoothing=0.1),
    'panda_joint3': friction.Coulomb(0.4),
    'panda_joint5': friction.Sigmoid(0.7, 5.0, -0.04),
    'panda_joint6': friction.Offset(0.2),
    'panda_joint7': friction.Stribeck(0.6, 0.3, 0.1) + friction.Stribeck(0.5, 0.2),
    # Of a mimic joint: one finger of the hand follows the other.
    'panda_finger_joint2': friction.Viscous(0.1)
    + friction.Coulomb(0.3, 0.01)
    + friction.Sigmoid(0.5, 9.0, 0.1),
}


@pytest.mark.parametrize(
    'laws',
    [FRICTION_LAWS, {**FRICTION_LAWS, 'panda_joint4': Quadratic()}],
    ids=['own', "user's"],
)
@pytest.mark.parametrize('form', FORMS)
def test_every_friction_law_is_included(form, laws):
    model = RobotModel.from_urdf(PANDA.with_name('panda_with_hand.urdf')).with_friction(
        laws
    )
    motion = random_motion(model, shape=(60,))
    motion[:10, 1] *= 1e-6
    motion[10:20, 1] *= 1e3
    motion[20, 1] = 0.0
    model.warm_up()
    for part in (motion[:10], motion[10:20], motion[20:], motion[20]):
        expected = inverse_dynamics(model, part, algorithm='nth_order')
        effort = inverse_dynamics(model, part, algorithm=form)
        assert np.all(relative_errors(effort, expected) <= TOLERANCE)
        assert np.all(relative_errors(inverse_dynamics(model, part), expected) <= TOLERANCE)


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('N', [0, 1, 2, 7, 8, 9, 15, 16, 17, 1025])
def test_every_sample_of_a_batch_is_the_one_alone(panda, form, N):
    motion = random_motion(panda, shape=(N,))
    together = inverse_dynamics(panda, motion, algorithm=form)
    assert together.shape == (N, 3, 7)
    for i in {0, 1, N // 2, N - 2, N - 1} & set(range(N)):
        alone = inverse_dynamics(panda, motion[i], algorithm=form)
        assert np.all(relative_errors(together[i], alone) <= TOLERANCE)


@needs_compiler
@pytest.mark.parametrize('width', [1, 2, 4, 8])
def test_every_register_width_gives_the_same(panda, width, monkeypatch):
    from hodyn_ros.engine import kernels

    motion = random_motion(panda, shape=(21,))
    expected = inverse_dynamics(panda, motion, algorithm='nth_order')
    monkeypatch.setattr(kernels, 'vector_width', lambda: width)
    for form in COMPILED:
        effort = np.empty((21, 3, 7))
        assert Efforts(2, (), form).make(panda).evaluate(motion, None, effort)
        assert np.all(relative_errors(effort, expected) <= TOLERANCE)


@pytest.mark.parametrize('form', FORMS)
def test_sines_are_exact_for_all_angles(form):
    pendulum = random_chain(1).with_payload('link1', 1.0, (0.3, 0.0, 0.0), np.zeros((3, 3)))
    angles = np.concatenate(
        [
            np.linspace(-10.0, 10.0, 999),
            np.arange(-64, 64) * (np.pi / 2),
            np.geomspace(1e-300, 1e15, 999),
            -np.geomspace(1.6e6, 1.7e6, 99),
        ]
    )
    motion = np.zeros((len(angles), 3, 1))
    motion[:, 0, 0] = angles
    expected = inverse_dynamics(pendulum, motion, algorithm='nth_order')
    effort = inverse_dynamics(pendulum, motion, algorithm=form)
    assert np.all(np.abs(effort - expected) <= 4e-15 * np.abs(expected).max())


# --- Given and returned arrays ----------------------------------------------------------------


@pytest.mark.parametrize('form', ['auto', *FORMS])
def test_out_takes_the_result(panda, form):
    if form == 'auto':
        panda.warm_up()
    for shape in ((), (5,), (2, 3)):
        motion = random_motion(panda, shape=shape)
        out = np.full((*shape, 3, 7), np.nan)
        assert inverse_dynamics(panda, motion, algorithm=form, out=out) is out
        expected = inverse_dynamics(panda, motion, algorithm='nth_order')
        assert np.all(relative_errors(out, expected) <= TOLERANCE)


@pytest.mark.parametrize(
    'out, words',
    [
        (np.empty((3, 6)), r'shape \(3, 6\).*expected \(3, 7\)'),
        (np.empty((1, 3, 7)), 'shape'),
        (np.empty((3, 7), dtype=np.float32), 'float32'),
        (np.empty((3, 7), dtype='>f8'), 'contiguous|>f8|expected'),
        (np.empty((7, 3)).T, 'contiguous'),
        ([0.0], 'NumPy array'),
    ],
)
@pytest.mark.parametrize('algorithm', ['auto', 'nth_order'])
def test_out_that_cannot_take_the_result_is_refused(panda, out, words, algorithm):
    panda.warm_up()
    with pytest.raises(HodynError, match=words):
        inverse_dynamics(panda, random_motion(panda), algorithm=algorithm, out=out)


def test_out_that_is_read_only_or_shares_memory_is_refused(panda):
    panda.warm_up()
    out = np.zeros((3, 7))
    out.setflags(write=False)
    with pytest.raises(HodynError, match='writeable'):
        inverse_dynamics(panda, random_motion(panda), out=out)
    motion = random_motion(panda, shape=(4,))
    with pytest.raises(HodynError, match='shares memory'):
        inverse_dynamics(panda, motion, out=motion.reshape(-1)[: 4 * 21].reshape(4, 3, 7))


@needs_compiler
@pytest.mark.parametrize('joints, K', [(7, 5), (7, 7), (20, 5)])
def test_a_result_that_overlaps_the_motion_is_refused_warm_as_cold(joints, K):
    model = random_chain(joints)
    memory = np.zeros((3 * K, joints))
    motion = memory[K : 2 * K]
    motion[:] = random_motion(model, K=K)
    expected = inverse_dynamics(model, motion, algorithm='nth_order')
    before = memory.copy()
    for warm in (False, True):
        if warm:
            model.warm_up(K - 3)
        for start in range(3, 2 * K):
            with pytest.raises(HodynError, match='shares memory'):
                inverse_dynamics(model, motion, out=memory[start : start + K - 2])
        np.testing.assert_array_equal(memory, before)
    for start in (2, 2 * K):
        effort = inverse_dynamics(model, motion, out=memory[start : start + K - 2])
        assert np.all(relative_errors(effort, expected) <= 1e-11)


ACTINGS = ('on_environment', 'on_robot')


def some_wrenches(model, count, expressed_in='body', acting='on_environment', seed=3):
    """Wrenches on the last links of a robot."""
    values = np.random.default_rng(seed).standard_normal((count, 3, 6))
    links = list(model.links)[-count:]
    return [Wrench(link, v, expressed_in, acting) for link, v in zip(links, values)]


@needs_compiler
@pytest.mark.parametrize('acting', ACTINGS)
@pytest.mark.parametrize('expressed_in', ['body', 'spatial', 'hybrid'])
@pytest.mark.parametrize('count', [1, 3])
def test_a_sample_with_wrenches_takes_the_compiled_call(panda, expressed_in, acting, count):
    motion, out = random_motion(panda), np.empty((3, 7))
    wrenches = some_wrenches(panda, count, expressed_in, acting)
    panda.warm_up(2, lambda: inverse_dynamics(panda, motion, wrenches))
    expected = inverse_dynamics(panda, motion, wrenches, 'nth_order')
    for given in (wrenches, tuple(wrenches), *(wrenches if count == 1 else ())):
        for options in ({}, {'out': out}):
            called = []

            def note(frame, event, _, called=called):
                if event == 'call' and 'hodyn_ros' in frame.f_code.co_filename:
                    called.append(frame.f_code.co_name)

            before = sys.getprofile()
            sys.setprofile(note)
            try:
                effort = inverse_dynamics(panda, motion, given, **options)
            finally:
                sys.setprofile(before)
            assert len([name for name in called if not name.startswith('<')]) <= 3, called
            assert np.all(relative_errors(effort, expected) <= TOLERANCE)
            assert not options or effort is out


@needs_compiler
def test_what_a_wrench_is_now_counts(panda):
    motion = random_motion(panda)
    wrench, other = some_wrenches(panda, 2)
    panda.warm_up(
        2, *(lambda w=w: inverse_dynamics(panda, motion, w) for w in (wrench, other))
    )
    for name, value in (
        ('link', other.link),
        ('acting', 'on_robot'),
        ('expressed_in', 'spatial'),
        ('values', -other.values),
        ('values', np.asfortranarray(other.values)),
        ('values', other.values.astype(np.float32)),
        ('values', np.stack([other.values, wrench.values])),
    ):
        object.__setattr__(wrench, name, value)
        effort = inverse_dynamics(panda, motion, wrench)
        expected = inverse_dynamics(panda, motion, wrench, 'nth_order')
        assert np.all(relative_errors(effort, expected) <= TOLERANCE), name


class Lookalike:
    """No wrench, though it has all that one has."""

    def __init__(self, wrench):
        self.__dict__.update(vars(wrench))


@needs_compiler
def test_wrenches_that_do_not_fit_are_refused_warm_as_cold(panda, cold):
    motion, (first, last) = random_motion(panda), some_wrenches(panda, 2)
    panda.warm_up(
        2, *(lambda w=w: inverse_dynamics(panda, motion, w) for w in (last, [first, last]))
    )
    wrong = Wrench(last.link, np.zeros((2, 6)))
    endless = Wrench(last.link, np.zeros((3, 6)))
    endless.values.setflags(write=True)
    endless.values[1, 2] = np.nan
    holed = motion.copy()
    holed[1, 2] = np.inf
    shared = np.zeros(40)
    own = Wrench(last.link, np.zeros((3, 6)))
    object.__setattr__(own, 'values', shared[:18].reshape(3, 6))
    cases = [
        (motion, wrong, None),
        (motion, [wrong], None),
        (motion, [first, wrong], None),
        (motion, [wrong, wrong], None),
        (motion, [first, last, last.values], None),
        (motion, last.values, None),
        (motion, Lookalike(last), None),
        (motion, [first, Lookalike(last)], None),
        (motion, Wrench('nowhere', last.values), None),
        (motion, {0: last}, None),
        (motion, endless, None),
        (motion, [first, endless], None),
        (holed, last, None),
        (holed[:, :6], last, None),
        (motion, last, np.zeros((3, 6))),
        (motion, last, np.zeros((2, 3, 7))),
        (motion, last, [0.0]),
        (motion, last, motion[:3]),
        (motion, own, shared[:21].reshape(3, 7)),
        (motion, own, shared[17:38].reshape(3, 7)),
    ]
    for case in cases:
        told = []
        for model in (cold, panda):
            with pytest.raises(HodynError) as caught:
                inverse_dynamics(model, *case[:2], out=case[2])
            told.append((type(caught.value), str(caught.value)))
        assert told[0] == told[1]
    after = inverse_dynamics(panda, motion, own, out=shared[18:39].reshape(3, 7))
    assert np.all(relative_errors(after, inverse_dynamics(panda, motion)) <= TOLERANCE)


SINGLE_CALLS = {
    'inverse_dynamics': inverse_dynamics,
    'inverse_dynamics with a wrench': lambda model, motion: inverse_dynamics(
        model, motion, some_wrenches(model, 1)
    ),
    'mass_matrix': mass_matrix,
    'forward_kinematics': lambda model, motion: forward_kinematics(model, motion).pose,
}


@needs_compiler
@pytest.mark.parametrize('name', SINGLE_CALLS)
def test_what_the_compiled_call_for_one_sample_does_not_take_is_looked_at(name):
    model = random_chain(3)
    call, motion = SINGLE_CALLS[name], random_motion(model, K=5)
    model.warm_up(2, lambda: call(model, motion))
    expected = call(model, motion)
    # What this call does not take is converted, or refused with the reason.
    for given in (motion.tolist(), motion.astype(np.float32), np.asfortranarray(motion)):
        np.testing.assert_allclose(call(model, given), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(MotionError, match='shape'):
        call(model, 'text')


@pytest.mark.parametrize('number', [0, -1, 1.5, 'two', None])
def test_number_of_threads_is_checked(panda, number):
    with pytest.raises(HodynError, match='num_threads'):
        inverse_dynamics(panda, random_motion(panda, shape=(2,)), num_threads=number)


@pytest.mark.parametrize('form', FORMS)
def test_threads_share_a_batch(panda, form):
    motion = random_motion(panda, shape=(5003,))
    alone = inverse_dynamics(panda, motion, algorithm=form)
    for threads in (2, 3, 64):
        together = inverse_dynamics(panda, motion, algorithm=form, num_threads=threads)
        np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)
    motion[4000, 2, 3] = np.nan
    with pytest.raises(MotionError, match=r'\(4000, 2, 3\)'):
        inverse_dynamics(panda, motion, algorithm=form, num_threads=3)


@pytest.mark.parametrize('form', ['auto', *FORMS])
def test_motions_of_all_kinds_of_arrays(panda, form):
    panda.warm_up()
    for shape in ((), (9,)):
        motion = np.round(random_motion(panda, shape=shape) * 4.0)  # exact in every type
        expected = inverse_dynamics(panda, motion, algorithm='nth_order')
        read_only = motion.copy()
        read_only.setflags(write=False)
        reversed_joints = np.ascontiguousarray(motion[..., ::-1])[..., ::-1]
        for given in (
            motion.astype(np.float32),
            motion.astype(np.float16),
            motion.astype('>f8'),
            motion.astype(int),
            motion.tolist(),
            np.asfortranarray(motion),
            reversed_joints,
            read_only,
            np.repeat(motion, 2, axis=-1)[..., ::2],
        ):
            effort = inverse_dynamics(panda, given, algorithm=form)
            assert effort.dtype == np.float64
            assert effort.flags.c_contiguous
            assert np.all(relative_errors(effort, expected) <= TOLERANCE)


@pytest.mark.parametrize('dtype', [np.float64, np.float32])
def test_files_mapped_into_memory_are_computed_in_blocks(
    panda, tmp_path, dtype, monkeypatch
):
    monkeypatch.setattr('hodyn_ros.dynamics.inverse.COMPILED_BLOCK', 64)
    N = 1000
    motion = np.memmap(tmp_path / 'motion', dtype=dtype, mode='w+', shape=(N, 5, 7))
    motion[:] = random_motion(panda, shape=(N,))
    out = np.memmap(tmp_path / 'effort', dtype=np.float64, mode='w+', shape=(N, 3, 7))
    panda.warm_up()
    assert inverse_dynamics(panda, motion, out=out) is out
    expected = inverse_dynamics(panda, np.array(motion), algorithm='nth_order')
    assert np.all(relative_errors(out, expected) <= TOLERANCE)
    motion[777, 1, 2] = np.inf
    with pytest.raises(MotionError, match=r'inf at index \(777, 1, 2\)'):
        inverse_dynamics(panda, motion, out=out)


# --- Bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize('form', ['auto', *FORMS])
@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_every_number_of_the_motion_is_checked(panda, form, bad):
    # Also those that no effort depends on, such as the position of the first joint.
    panda.warm_up()
    for shape in ((), (9,), (2, 3)):
        motion = random_motion(panda, shape=shape)
        for where in [(*(s - 1 for s in shape), k, j) for k in range(5) for j in (0, 6)]:
            spoiled = motion.copy()
            spoiled[where] = bad
            with pytest.raises(MotionError) as refusal:
                inverse_dynamics(panda, spoiled, algorithm=form)
            assert f'index {where}' in str(refusal.value)


@pytest.mark.parametrize('form', ['auto', *FORMS])
def test_overflow_is_refused(panda, form):
    panda.warm_up()
    for shape in ((), (9,)):
        motion = random_motion(panda, shape=shape)
        motion[..., 1, 3] = 1e200
        with pytest.raises(MotionError, match='overflow'):
            inverse_dynamics(panda, motion, algorithm=form)


@pytest.mark.parametrize('form', ['engine', *FORMS])
def test_orders_above_four_are_left_to_the_formulations(panda, form):
    motion = random_motion(panda, K=8)
    with pytest.raises(HodynError, match='orders up to 4'):
        inverse_dynamics(panda, motion, algorithm=form)
    assert chosen_algorithm(panda, motion) == 'nth_order'
    assert inverse_dynamics(panda, motion).shape == (6, 7)


def test_unknown_algorithms_are_named_with_the_known_ones(panda):
    with pytest.raises(HodynError, match='nth_order.*engine.*compiled_tree'):
        inverse_dynamics(panda, random_motion(panda), algorithm='fastest')


# --- What is chosen ---------------------------------------------------------------------------


@needs_compiler
def test_warm_up_makes_what_suits_the_robot(cold):
    motion = random_motion(cold)
    assert chosen_algorithm(cold, motion) == 'nth_order'
    cold.warm_up()
    for K in (3, 4, 5):
        assert chosen_algorithm(cold, motion[:K]) == 'compiled_robot'
        assert chosen_algorithm(cold, motion[None, :K]) == 'compiled_robot'
    large = random_chain(30)
    large.warm_up(order=0)
    motion = random_motion(large)
    assert chosen_algorithm(large, motion[:3]) == 'compiled_tree'
    assert chosen_algorithm(large, motion) == 'nth_order'
    assert chosen_algorithm(large, motion, algorithm='hybrid') == 'hybrid'


@needs_compiler
def test_a_control_loop_gets_compiled_code_in_the_background(cold):
    motion = random_motion(cold)
    expected = inverse_dynamics(cold, motion, algorithm='nth_order')
    wrench = Wrench('panda_link8', np.ones((3, 6)), 'hybrid')
    loaded = inverse_dynamics(cold, motion, wrench, 'nth_order')
    end = time.monotonic() + 60.0
    calls = 0
    while {chosen_algorithm(cold, motion), chosen_algorithm(cold, motion, wrench)} != {
        'compiled_robot'
    }:
        assert time.monotonic() < end
        assert np.all(
            relative_errors(inverse_dynamics(cold, motion), expected) <= TOLERANCE
        )
        effort = inverse_dynamics(cold, motion, wrench)
        assert np.all(relative_errors(effort, loaded) <= TOLERANCE)
        calls += 1
    assert calls >= SAMPLES_BEFORE_COMPILING
    assert np.all(relative_errors(inverse_dynamics(cold, motion), expected) <= TOLERANCE)


@needs_compiler
def test_a_few_samples_start_no_compiler(cold):
    for _ in range(SAMPLES_BEFORE_COMPILING - 1):
        inverse_dynamics(cold, random_motion(cold))
    assert not engine_of(cold).pending
    inverse_dynamics(cold, random_motion(cold))
    assert engine_of(cold).pending


@needs_compiler
def test_a_failing_compiler_is_reported_once_and_replaced(cold, monkeypatch, caplog):
    from hodyn_ros.engine import engine

    def fail(*_):
        raise RuntimeError('no such processor')

    engine.compiling_thread().submit(int).result()  # what other tests have started
    monkeypatch.setattr(engine.Efforts, 'make', fail)
    motion = random_motion(cold, shape=(100,))
    expected = inverse_dynamics(cold, motion, algorithm='nth_order')
    for _ in range(3):
        np.testing.assert_array_equal(inverse_dynamics(cold, motion), expected)
        engine.compiling_thread().submit(int).result()  # after the attempt
    assert [record.message for record in caplog.records] == [
        'Compiling the dynamics of panda failed; slower code is used.'
    ]


def test_a_copy_of_a_warm_model_is_a_model_of_its_own(cold):
    cold.warm_up()
    motion = random_motion(cold)
    effort = inverse_dynamics(cold, motion)
    for other in (pickle.loads(pickle.dumps(cold)), copy.copy(cold), copy.deepcopy(cold)):
        assert not other.derived.efforts and not other.derived.kept
        np.testing.assert_allclose(inverse_dynamics(other, motion), effort, rtol=1e-12)
    lighter = cold.with_armature({'panda_joint1': 1.0})
    lighter.warm_up()
    np.testing.assert_allclose(
        inverse_dynamics(lighter, motion)[:, 0] - effort[:, 0], motion[2:, 0], atol=1e-12
    )


@pytest.mark.parametrize('n', [7, 30])
def test_calls_from_many_threads_do_not_meet(n):
    model = random_chain(n)
    model.warm_up()
    motions = random_motion(model, shape=(40,))
    expected = inverse_dynamics(model, motions, algorithm='nth_order')
    wrong = []

    def work(first):
        for i in np.roll(np.arange(40), first):
            for effort, wanted in (
                (inverse_dynamics(model, motions[i]), expected[i]),
                (inverse_dynamics(model, motions[i:]), expected[i:]),
            ):
                if not np.all(relative_errors(effort, wanted) <= 1e-12):
                    wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@needs_compiler
def test_machine_code_goes_with_its_model(cold):
    motion = random_motion(cold)
    cold.warm_up(order=0)
    assert np.all(np.isfinite(inverse_dynamics(cold, motion[:3])))
    kernel = engine_of(cold).prepare(Efforts(0))
    codes = [weakref.ref(code) for code, _ in kernel.codes]
    assert all(code() is not None for code in codes)
    model = cold.with_armature({'panda_joint1': 0.1})
    model.warm_up(order=0)
    other = weakref.ref(engine_of(model).prepare(Efforts(0)).codes[0][0])
    del model
    gc.collect()
    assert other() is None
    assert all(code() is not None for code in codes)
    expected = inverse_dynamics(cold, motion[:3], algorithm='nth_order')
    assert np.all(
        relative_errors(inverse_dynamics(cold, motion[:3]), expected) <= TOLERANCE
    )


def test_names_of_compiled_forms():
    assert set(COMPILED) == {'compiled_robot', 'compiled_tree'}
