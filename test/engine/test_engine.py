"""Compiled code computes what mechanics says, for all numbers and all kinds of arrays.

Errors are measured per order, relative to the largest effort of that order over all joints and
contributions. Robots of the package are compared in test/contract.
"""

import copy
import gc
import pickle
import re
import threading
import time
import weakref
from functools import cache, partial

import numpy as np
import pytest
from support.engine_cases import (
    COMPILED,
    load,
    needs_compiler,
    random_chain,
    relative_errors,
)
from support.oracles import taylor_terms
from support.random_trees import random_robot, random_wrenches

from hodyn_ros import (
    HodynError,
    RobotModel,
    Wrench,
    coriolis_matrix,
    forward_dynamics,
    forward_kinematics,
    friction,
    generate_code,
    gravity_effort,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    mass_matrix,
    regressor,
)
from hodyn_ros.dynamics import chosen_algorithm
from hodyn_ros.engine import KernelRequest, engine_of
from hodyn_ros.engine.requests import EFFORTS
from hodyn_ros.errors import MotionError, WrenchError

pytestmark = needs_compiler

TOLERANCE = 1e-14
forms = pytest.mark.parametrize('form', COMPILED)


@pytest.fixture(scope='module')
def panda():
    """A model that is warm after the first of the tests that share it."""
    model = RobotModel.from_urdf('panda', tip_link='panda_link8')
    model.warm_up()
    return model


@pytest.fixture
def cold():
    return RobotModel.from_urdf('panda', tip_link='panda_link8')


def random_motion(model, seed=0, shape=(), K=5):
    return np.random.default_rng(seed).standard_normal((*shape, K, model.n_joints))


# --- Right --------------------------------------------------------------------------------------


@cache
def random_tree(seed, mimic_probability, n_moving=None):
    robot = random_robot(seed, n_moving, mimic_probability)
    return robot, load(robot.xml)


@forms
@pytest.mark.parametrize('n, K, wrenches', [(None, 5, 3), (30, 3, 0), (7, 7, 0), (1, 5, 0)])
def test_random_trees_match_power_series_at_small_and_large_angles(form, n, K, wrenches):
    for angles in (1e-9, 1.0, 1e6):
        # The angle of a mimic joint is rounded before anything is computed.
        robot, model = random_tree(202, 0.0 if angles == 1e6 else 0.25, n)
        motion = random_motion(model, 1, (5,), K)
        motion[:, 0, [kind != 'prismatic' for kind in model.joint_types]] *= angles
        cases = (
            random_wrenches(2, robot.links[1 : 1 + wrenches], K, (5,)) if wrenches else ()
        )
        terms = taylor_terms(robot.xml, model.joint_names, model.gravity, motion, cases)
        scale = np.abs(terms).max(axis=(0, 1, 3))
        effort = inverse_dynamics(model, motion, [Wrench(*case) for case in cases], form)
        assert np.all(relative_errors(effort, terms.sum(axis=0), scale) <= 5 * TOLERANCE)


@pytest.mark.parametrize('angle', [1e-9, 0.0, 1e-17, 1e-12, 1e-6, 1e-3, 0.02, 1.5])
def test_almost_parallel_axes_cost_no_accuracy(angle):
    model = random_chain(4, angle=angle)
    motion = random_motion(model, shape=(10,))
    expected = inverse_dynamics(model, motion, algorithm='nth_order')
    effort = inverse_dynamics(model, motion, algorithm='compiled_robot')
    assert np.all(relative_errors(effort, expected) <= TOLERANCE)


@forms
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
    effort = inverse_dynamics(pendulum, motion, algorithm=form)[:, 0, 0]
    # The effort of a pendulum is a constant, a sine and a cosine.
    waves = np.stack([np.ones_like(angles), np.sin(angles), np.cos(angles)], axis=1)
    fit = np.linalg.lstsq(waves[:9], effort[:9], rcond=None)[0]
    assert np.abs(waves @ fit - effort).max() <= 1e-12 * np.abs(effort).max()


class Quadratic(friction.FrictionLaw):
    """A law of a user: v |v|, to order 2."""

    def effort(self, velocity):
        v, a, j = np.moveaxis(velocity, -1, 0)
        return np.sign(v)[..., None] * np.stack([v * v, 2 * v * a, 2 * (a * a + v * j)], -1)


@forms
@pytest.mark.parametrize('law', [friction.Coulomb(0.4), Quadratic()])
def test_laws_of_friction_that_jump_or_are_ones_own_are_part_of_it(form, law):
    bare = RobotModel.from_urdf('two_link')
    laws = law, friction.Stribeck(0.6, 0.3, 0.1) + friction.Coulomb(0.5, 1e-3)
    model = bare.with_friction(dict(zip(bare.joint_names, laws)))
    motion = random_motion(model, shape=(60,))
    motion[:20, 1] *= np.repeat([1e-6, 1e3], 10)[:, None]
    motion[20, 1] = 0.0
    added = [x.effort(motion[:, 1:4, j]) for j, x in enumerate(laws)]
    expected = inverse_dynamics(bare, motion) + np.stack(added, axis=-1)
    effort = inverse_dynamics(model, motion, algorithm=form)
    assert np.all(relative_errors(effort, expected) <= 1e-13)


@pytest.mark.parametrize('name', ['five_bar', 'palletiser'])
def test_friction_of_joints_that_closed_loops_move_is_part_of_it(name):
    frictionless = RobotModel.from_urdf(name)
    laws = (
        friction.Coulomb(1.0, 0.1) + friction.Stribeck(0.3, 0.2, 0.1),
        friction.Sigmoid(0.5, 5.0, 0.03) + friction.Coulomb(0.2),
    )
    joints = frictionless.tree.joint_names
    tree = frictionless.tree.with_friction(
        {joint: laws[i % 2] for i, joint in enumerate(joints)}
    )
    closure = frictionless.closure
    model = tree.with_loops(
        [*closure.loops, *closure.couplings], independent=frictionless.joint_names
    )
    motion = 0.05 * random_motion(model, shape=(20,), K=4)
    motion[:, 0] += closure.start[closure.independent]
    expected = inverse_dynamics(model, motion, algorithm='nth_order')
    model.warm_up(1)
    assert np.all(relative_errors(inverse_dynamics(model, motion), expected) <= 1e-11)
    alone = np.array([inverse_dynamics(model, sample) for sample in motion])
    assert np.all(relative_errors(alone, expected) <= 1e-11)


# --- Given and returned arrays ------------------------------------------------------------------


@forms
def test_every_sample_of_a_batch_is_the_one_alone(panda, form):
    motion = random_motion(panda, shape=(1025,))
    alone = inverse_dynamics(panda, motion, algorithm='nth_order')
    for N in (0, 1, 2, 7, 8, 9, 15, 16, 17, 1025):
        together = inverse_dynamics(panda, motion[:N], algorithm=form)
        assert together.shape == (N, 3, 7)
        assert np.abs(together - alone[:N]).max(initial=0.0) <= 1e-13 * np.abs(alone).max()
    for threads in (2, 3, 64):
        shared = inverse_dynamics(panda, motion, algorithm=form, num_threads=threads)
        assert np.all(relative_errors(shared, alone) <= TOLERANCE)


CALLS = {
    'efforts': inverse_dynamics,
    'efforts with a wrench': lambda model, motion: inverse_dynamics(
        model,
        motion,
        Wrench('panda_link8', np.ones((1, 6)), 'hybrid'),
    ),
    'mass matrix': mass_matrix,
    'Coriolis matrix': coriolis_matrix,
    'weight': gravity_effort,
    'regressor': regressor,
    'partial derivatives': inverse_dynamics_derivatives,
    'twist': lambda model, motion: forward_kinematics(model, motion).twist,
}


class PlainArray(np.ndarray):
    """What is an array, but not of NumPy's own class."""


@pytest.mark.parametrize('name', CALLS)
def test_motions_of_all_kinds_of_arrays_are_taken_warm_as_cold(cold, name):
    call = CALLS[name]
    motion = np.round(random_motion(cold, K=3) * 4.0)  # exact in every type
    expected = call(cold, motion)
    read_only = motion.copy()
    read_only.setflags(write=False)
    unaligned = np.frombuffer(b' ' + motion.tobytes(), np.uint8)[1:].view(motion.dtype)
    unaligned = unaligned.reshape(motion.shape)
    for _ in range(2):
        for given in (
            motion.astype(np.float32),
            motion.astype('>f8'),
            motion.astype(int),
            motion.tolist(),
            np.asfortranarray(motion),
            read_only,
            np.repeat(motion, 2, axis=-1)[..., ::2],
            unaligned,
            motion.view(PlainArray),
        ):
            found = call(cold, given)
            assert found.dtype == np.float64 and found.flags.c_contiguous
            assert np.abs(found - expected).max() <= 1e-13 * np.abs(expected).max()
        cold.warm_up(0, lambda: call(cold, motion))
    first = call(cold, motion)
    kept = first.copy()
    call(cold, -motion)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.every_case
@pytest.mark.parametrize(
    'out, words',
    [
        (np.empty((1, 3, 7)), r'shape \(1, 3, 7\).*expected \(3, 7\)'),
        (np.empty((3, 7), dtype=np.float32), 'float32'),
        (np.empty((7, 3)).T, 'contiguous'),
        ([0.0], 'NumPy array'),
        (np.broadcast_to(0.0, (3, 7)), 'writeable|contiguous'),
    ],
)
def test_out_that_cannot_take_the_result_is_refused(panda, out, words):
    for algorithm in ('auto', 'nth_order'):
        with pytest.raises(HodynError, match=words):
            inverse_dynamics(panda, random_motion(panda), algorithm=algorithm, out=out)


@pytest.mark.parametrize('joints', [7, 20])
def test_a_result_that_overlaps_the_motion_is_refused_warm_as_cold(joints):
    model = random_chain(joints)
    memory = random_motion(model, K=15)
    motion, before = memory[5:10], memory.copy()
    expected = inverse_dynamics(model, motion, algorithm='nth_order')
    for _ in range(2):
        for start in (3, 5, 9):
            with pytest.raises(HodynError, match='shares memory'):
                inverse_dynamics(model, motion, out=memory[start : start + 3])
        np.testing.assert_array_equal(memory, before)
        model.warm_up()
    for start in (2, 10):
        effort = inverse_dynamics(model, motion, out=memory[start : start + 3])
        assert np.all(relative_errors(effort, expected) <= 1e-11)


def batched(wrench_axes):
    """Wrenches on two links of the Panda whose values have these leading axes."""
    values = np.random.default_rng(3).standard_normal((2, *wrench_axes, 3, 6))
    choices = ('panda_link8', 'hybrid'), ('panda_link5', 'body', 'on_robot')
    return [Wrench(link, v, *rest) for (link, *rest), v in zip(choices, values)]


OF_BATCHES = {
    'efforts': inverse_dynamics,
    'efforts with a wrench for all': lambda model, motion: inverse_dynamics(
        model, motion, batched(())[0]
    ),
    'efforts with a wrench each': lambda model, motion: inverse_dynamics(
        model, motion, batched(motion.shape[:-2])[0]
    ),
    'efforts with two wrenches each': lambda model, motion: inverse_dynamics(
        model, motion, batched(motion.shape[:-2])
    ),
    'forward dynamics': lambda model, motion: forward_dynamics(
        model, motion[..., :2, :].copy(), motion[..., 2:, :].copy()
    ),
    'mass matrix': mass_matrix,
    'regressor': regressor,
    'partial derivatives': inverse_dynamics_derivatives,
    'pose': lambda model, motion: forward_kinematics(model, motion).pose,
    'twist': lambda model, motion: forward_kinematics(model, motion, None, 'hybrid').twist,
}


@pytest.mark.parametrize('name', OF_BATCHES)
def test_leading_axes_hold_the_samples_alone(panda, name):
    call = OF_BATCHES[name]
    motion = random_motion(panda, 5, (2, 13, 11))
    with_axes = [motion[0, 0, 0], motion[0, 0], motion[:, 0, :2], motion[:, :, :5], motion]
    cold = [call(panda, np.ascontiguousarray(given)) for given in with_axes]
    panda.warm_up(2, *(partial(call, panda, given) for given in with_axes[:1]))
    for given, expected in zip(with_axes, cold):
        for values in (np.ascontiguousarray(given), np.asfortranarray(given)):
            found = call(panda, values)
            assert found.shape == expected.shape
            assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()


def test_as_many_samples_as_wrenches_are_not_mixed_up(panda):
    motion, wrenches = random_motion(panda, 6, (2,)), batched((2,))
    for _ in range(2):
        together = inverse_dynamics(panda, motion, wrenches)
        for i in range(2):
            own = [Wrench(w.link, w.values[i], w.expressed_in, w.acting) for w in wrenches]
            alone = inverse_dynamics(panda, motion[i], own)
            np.testing.assert_allclose(together[i], alone, rtol=1e-10, atol=1e-10)
        panda.warm_up(2, partial(inverse_dynamics, panda, motion[0], own))


def test_samples_from_another_process_are_computed_as_ones_own(panda):
    motion = random_motion(panda, 7, (3,))
    expected = inverse_dynamics(panda, motion)
    np.testing.assert_array_equal(
        inverse_dynamics(panda, pickle.loads(pickle.dumps(motion))), expected
    )


@pytest.mark.every_case
def test_batches_that_cannot_be_computed_are_refused_warm_as_cold(panda):
    memory = random_motion(panda, 8, (40,))
    motion = memory[10:20]
    with pytest.raises(HodynError, match='shares memory'):
        inverse_dynamics(
            panda, motion, out=memory.ravel()[400 : 400 + 210].reshape(10, 3, 7)
        )
    with pytest.raises(HodynError, match=r'out has shape \(5, 6, 7\)'):
        inverse_dynamics(panda, motion, out=np.empty((5, 6, 7)))
    wrong = motion.copy()
    wrong[7, 1, 2] = np.nan
    with pytest.raises(MotionError, match=r'nan at index \(7, 1, 2\)'):
        inverse_dynamics(panda, wrong)
    with pytest.raises(WrenchError, match='leading axes'):
        inverse_dynamics(panda, motion, batched((9,)))
    with pytest.raises(MotionError, match='do not broadcast'):
        forward_dynamics(panda, motion[:, :2].copy(), motion[:9, 2:].copy())
    assert inverse_dynamics(panda, motion[:0]).shape == (0, 3, 7)


@pytest.mark.parametrize('number', [0, -1, 1.5, 'two', None])
def test_number_of_threads_is_checked(panda, number):
    with pytest.raises(HodynError, match='num_threads'):
        inverse_dynamics(panda, random_motion(panda, shape=(2,)), num_threads=number)


def test_overflow_of_a_joint_that_does_not_move_the_link_is_no_error(panda):
    motion = random_motion(panda, K=3)
    expected = forward_kinematics(panda, motion, 'panda_link3')
    motion[2, 6] = 1e300
    panda.warm_up(0, lambda: forward_kinematics(panda, motion, 'panda_link3'))
    found = forward_kinematics(panda, motion, 'panda_link3')
    np.testing.assert_allclose(found.twist, expected.twist, atol=1e-14)


# --- Single precision ---------------------------------------------------------------------------


@forms
@pytest.mark.parametrize('seed, wrenches', [(301, 0), (302, 2), (305, 1)])
def test_single_precision_is_as_good_as_documented(form, seed, wrenches):
    robot, model = random_tree(seed, 0.25)
    cases = random_wrenches(2, robot.links[1 : 1 + wrenches], 5, (70,)) if wrenches else ()
    given = [Wrench(*case) for case in cases]
    motion = random_motion(model, 1, (70,)).astype(np.float32)
    double = inverse_dynamics(model, motion, given, form)
    assert double.dtype == np.float64
    single = inverse_dynamics(model, motion, given, form, dtype=np.float32)
    assert single.dtype == np.float32
    assert np.all(relative_errors(single, double) <= 1e-6)
    for N in (0, 1, 7, 15, 16, 17, 33):
        which = [
            Wrench(w.link, w.values[:N], *rest) for w, (_, _, *rest) in zip(given, cases)
        ]
        part = inverse_dynamics(model, motion[:N], which, form, dtype='float32')
        scale = np.abs(single).max(axis=(0, 2))[:, None]
        assert np.all(np.abs(part - single[:N]) <= 1e-6 * scale)


def test_single_precision_has_friction_and_rounds_what_only_double_precision_computes(
    panda,
):
    law = friction.Stribeck(0.6, 0.3, 0.1) + friction.Coulomb(0.5, 1e-3)
    rough = panda.with_friction(dict.fromkeys(panda.joint_names, law))
    own = panda.with_friction(
        {panda.joint_names[0]: law, panda.joint_names[1]: Quadratic()}
    )
    loops = RobotModel.from_urdf('five_bar')
    for model, algorithm in (
        (rough, 'engine'),
        (own, 'compiled_tree'),
        (panda, 'nth_order'),
        (loops, 'auto'),
    ):
        motion = 0.1 * random_motion(model, 4, (2, 20))
        motion = motion.astype(np.float32)
        double = inverse_dynamics(model, motion, algorithm=algorithm)
        single = inverse_dynamics(model, motion, algorithm=algorithm, dtype=np.float32)
        assert single.dtype == np.float32 and single.shape == double.shape
        assert np.abs(single - double).max() <= 1e-6 * np.abs(double).max()


@pytest.mark.parametrize('algorithm', ['engine', 'nth_order'])
def test_what_single_precision_cannot_hold_is_refused(panda, algorithm):
    motion = random_motion(panda, 4, (20,))
    for k, large in ((2, 1e300), (1, 1e30)):
        given = motion.copy()
        given[11, k, 3] = large
        with pytest.raises(
            MotionError, match=f'overflows.*motion {large:.0e}'.replace('+', '.')
        ):
            inverse_dynamics(panda, given, algorithm=algorithm, dtype=np.float32)
    given[11, 1, 3] = np.nan
    with pytest.raises(MotionError, match=r'nan at index \(11, 1, 3\)'):
        inverse_dynamics(panda, given, algorithm=algorithm, dtype=np.float32)
    with pytest.raises(HodynError, match='of type float64, expected .* and float32'):
        out = np.empty((20, 3, 7))
        inverse_dynamics(panda, motion, algorithm=algorithm, out=out, dtype=np.float32)


@pytest.mark.every_case
@pytest.mark.parametrize('dtype', [int, np.float16, None, 'single precision', 3])
def test_other_types_of_numbers_are_refused(panda, dtype):
    with pytest.raises(HodynError, match='dtype is .*expected numpy.float64 or'):
        inverse_dynamics(panda, random_motion(panda), dtype=dtype)


# --- What is chosen -----------------------------------------------------------------------------


def test_warm_up_makes_what_suits_the_robot(cold):
    motion = random_motion(cold, K=9)
    cold.warm_up()
    for K in (3, 4, 5):
        assert chosen_algorithm(cold, motion[:K]) == 'compiled_robot'
    large = random_chain(30)
    large.warm_up(order=0)
    assert chosen_algorithm(large, random_motion(large, K=3)) == 'compiled_tree'
    assert chosen_algorithm(large, random_motion(large)) == 'nth_order'
    with pytest.raises(HodynError, match='orders up to 5'):
        inverse_dynamics(cold, motion, algorithm='engine')
    assert chosen_algorithm(cold, motion) == 'nth_order'
    with pytest.raises(MotionError):
        cold.warm_up(0, lambda: mass_matrix(cold, [[np.nan] * 7]))


def test_a_control_loop_gets_compiled_code_in_the_background(cold):
    motion, wrench = random_motion(cold), Wrench('panda_link8', np.ones((3, 6)), 'hybrid')
    expected = [inverse_dynamics(cold, motion, w, 'nth_order') for w in (None, wrench)]
    end, names = time.monotonic() + 300.0, []
    while names != ['compiled_robot'] * 2:
        assert time.monotonic() < end
        for w, effort in zip((None, wrench), expected):
            found = inverse_dynamics(cold, motion, w)
            assert np.all(relative_errors(found, effort) <= TOLERANCE)
        names = [chosen_algorithm(cold, motion, w) for w in (None, wrench)]


def test_programs_are_no_longer_than_documented(tmp_path):
    # doc/formulations/index.rst; the C code is the same program.
    def operations(model, order):
        text = generate_code(model, tmp_path, name='arm')[1].read_text()
        steps = re.findall(rf'arm_inverse_dynamics_{order}_steps\w*\(\n([^}}]*)', text)
        return len(re.findall(r' [-+*] ', ''.join(steps)))

    panda = RobotModel.from_urdf('panda')
    counts = [operations(panda, order) for order in range(3)]
    assert all(count <= bound for count, bound in zip(counts, (600, 1320, 2280)))
    few, some, many = (operations(random_chain(n), 2) for n in (5, 10, 15))
    assert many - some < 1.1 * (some - few)


# --- Models and processes -----------------------------------------------------------------------


def test_a_copy_of_a_warm_model_is_a_model_of_its_own(panda):
    motion = random_motion(panda)
    effort = inverse_dynamics(panda, motion)
    for other in (
        pickle.loads(pickle.dumps(panda)),
        copy.copy(panda),
        copy.deepcopy(panda),
    ):
        np.testing.assert_allclose(inverse_dynamics(other, motion), effort, rtol=1e-12)
    heavier = panda.with_armature({'panda_joint1': 1.0})
    heavier.warm_up()
    added = inverse_dynamics(heavier, motion)[:, 0] - effort[:, 0]
    np.testing.assert_allclose(added, motion[2:, 0], atol=1e-12)


def test_calls_from_many_threads_do_not_meet(panda):
    motions = random_motion(panda, shape=(40,))
    expected, wrong = inverse_dynamics(panda, motions, algorithm='nth_order'), []

    def work(first):
        for i in np.roll(np.arange(40), first):
            for effort, wanted in (
                (inverse_dynamics(panda, motions[i]), expected[i]),
                (inverse_dynamics(panda, motions[i:]), expected[i:]),
            ):
                if not np.all(relative_errors(effort, wanted) <= 1e-12):
                    wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_warm_model_that_nobody_uses_goes():
    model = RobotModel.from_urdf('two_link')
    model.warm_up(2, partial(mass_matrix, model, random_motion(model)))
    kernel = weakref.ref(engine_of(model).prepare(KernelRequest(EFFORTS, 5)))
    known = weakref.ref(model)
    del model
    gc.collect()
    assert known() is None and kernel() is None
