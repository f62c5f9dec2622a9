"""What is built on the dynamics of robots with closed loops: derivatives, regressors, bases."""

from math import comb, factorial

import numpy as np
import pytest
from support import mechanisms
from support.mechanisms import (
    PIN,
    START,
    at,
    random_mechanism,
    some_closed_motion,
    some_motion,
)
from support.random_trees import random_motion

from hodyn_ros import (
    RobotModel,
    Wrench,
    base_parameters,
    floating_base_forward_dynamics,
    forward_kinematics,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    jacobian,
    joint_regressor,
    moving_base_inverse_dynamics,
    regressor,
)
from hodyn_ros.dynamics import inter_body_wrenches, loop_efforts
from hodyn_ros.errors import MotionError
from hodyn_ros.kinematics import complete_motion
from hodyn_ros.lie import se3
from hodyn_ros.model import Coupling
from hodyn_ros.model.friction import Coulomb, Viscous

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

# Of central differences of order 8.


@pytest.fixture(scope='module')
def five_bar():
    return mechanisms.five_bar()


def assert_rates(model, motion, link):
    """Efforts along a motion (6, n) change as partial derivatives and rates of wrenches say."""
    values = random_motion(1, 6, 4)

    def wrenches(of):
        return [Wrench(link, of, frame) for frame in ('body', 'spatial')]

    partials = inverse_dynamics_derivatives(model, motion[:5], wrenches(values[:3]))
    rates = np.einsum('mikj,kj->mi', partials, motion[1:])
    rates += inverse_dynamics(model, motion[:5], wrenches(values[1:]))
    rates -= inverse_dynamics(model, motion[:5])
    expected = inverse_dynamics(model, motion, wrenches(values))[1:]
    scale = np.einsum('mikj,kj->m', np.abs(partials), np.abs(motion[1:]))
    assert (np.abs(rates - expected).max(axis=1) < 3e-13 * scale).all()


@pytest.mark.parametrize('seed', range(10))
def test_partial_derivatives_along_the_motion_are_rates(seed):
    model, motion = some_closed_motion(seed, 6)
    assert_rates(model, motion, model.closure.loops[0].link_b)


def test_partial_derivatives_know_friction_armature_and_couplings(five_bar):
    laws = {'left': Coulomb(0.5, 0.3) + Viscous(0.1), 'right_rod': Viscous(0.2)}
    law = Coupling('gear', 'left_rod', 'left', (0.3, -0.5, 0.2, 0.1))
    for model in (
        five_bar.with_friction(laws).with_armature({'left': 0.1, 'left_rod': 0.02}),
        mechanisms.planar().with_loops([law]),
    ):
        assert_rates(model, some_motion(model, (), 6), 'left_tip')


def test_wrenches_in_loops_have_their_time_derivatives(five_bar):
    motion, step = some_motion(five_bar, ()), 1e-4
    at_times = [
        [
            sum(row * t**k / factorial(k) for k, row in enumerate(motion[d:]))
            for d in range(5)
        ]
        for t in (-step, 0.0, step)
    ]
    tool = Wrench('right_tip', random_motion(5, 6, 3)[:1] * [[1.0], [0.0], [0.0]])
    before, now, after = loop_efforts(five_bar, np.array(at_times), tool).wrenches['pin']
    slope = (after - before)[:2] / (2.0 * step)
    np.testing.assert_allclose(slope, now[1:], atol=1e-5 * np.abs(now).max())


def test_partial_derivatives_of_batches_are_those_of_samples(five_bar):
    motion = some_motion(five_bar, (2, 3))
    wrench = Wrench('left_tip', random_motion(1, 6, 3, (3,)))
    found = inverse_dynamics_derivatives(five_bar, motion, wrench)
    alone = inverse_dynamics_derivatives(
        five_bar, motion[1, 2], Wrench('left_tip', np.asarray(wrench.values)[2])
    )
    assert found.shape == (2, 3, 3, 2, 5, 2)
    np.testing.assert_allclose(found[1, 2], alone, rtol=1e-12, atol=1e-12)
    motion[1, 2, 0] = [np.pi, 0.0]
    with pytest.raises(MotionError, match='cannot be closed at sample 5'):
        inverse_dynamics_derivatives(five_bar, motion)


@pytest.mark.parametrize('seed', [4, 6, 8, 10])
def test_efforts_are_linear_in_base_parameters_and_those_of_joints(seed):
    model = random_mechanism(seed)[1]
    motion = random_motion(1, model.n_joints, 5, (4,))
    motion[:, 0] = model.closure.start[model.closure.independent]
    base = base_parameters(model)
    assert base.pivots[base.rank - 1] > 1e-7
    assert base.pivots[base.rank :].max(initial=0.0) < 1e-14
    expected = inverse_dynamics(model, motion)
    Y = regressor(model, motion)[..., base.independent]
    found = Y @ (base.mapping @ model.inertial_parameters)
    np.testing.assert_allclose(
        found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max()
    )
    values = np.random.default_rng(2).uniform(0.1, 1.0, (model.n_bodies, 2))
    rubbing = model.with_armature(dict(zip(model.body_names, values[:, 1]))).with_friction(
        dict(zip(model.body_names, map(Viscous, values[:, 0])))
    )
    of_joints = joint_regressor(model, motion, [Viscous(1.0), 'armature']) @ values.ravel()
    expected = inverse_dynamics(rubbing, motion) - expected
    size = np.abs(expected).max()
    np.testing.assert_allclose(of_joints, expected, rtol=1e-9, atol=1e-11 * size)


def carried_five_bar():
    """A five-bar, its base on a joint that turns and one that slides, and the same on the ground.

    Base link of the second is the link of the carrier that the cranks are on.
    """
    plain = mechanisms.five_bar().closure.tree
    tree = RobotModel.from_body_screws(
        [(0, 1, 0, 0, 0, 0), (0, 0, 0, 1, 0, 0), *plain.X],
        [at(0.1, 0.3), at(0.2), *plain.B],
        parents=[-1, 0, 1, 2, 1, 4],
        inertias=[(3.0, (0.1, 0.0, 0.2), 0.1 * np.eye(3)), CARRIER]
        + [
            (1.0 + k, (0.2, 0.01 * k, 0.0), np.diag([0.001, 0.02, 0.021])) for k in range(4)
        ],
        joint_names=['turn', 'slide', *plain.joint_names],
        link_names=['turned', 'carrier', *(x for x in plain.links if x != 'base')],
        gravity=plain.gravity,
    )
    names = ['turn', 'slide', 'left', 'right']
    return tree.with_loops([PIN], independent=names, start=START)


CARRIER = (2.0, (0.0, 0.1, 0.0), np.eye(3))


def test_a_moving_base_needs_what_its_carrier_gives(five_bar):
    carried = carried_five_bar()
    motion = random_motion(2, 4, 5, (3,))
    motion[:, 0, 2:] = [2.1, 1.1]
    base = forward_kinematics(carried, motion, 'carrier')
    model = five_bar.with_payload(five_bar.base_link, *CARRIER)
    tool = Wrench('right_tip', random_motion(5, 6, 3), 'body')
    found = moving_base_inverse_dynamics(model, motion[..., 2:], base, tool)
    expected = inverse_dynamics(carried, motion, tool)
    np.testing.assert_allclose(found.effort, expected[..., 2:], rtol=1e-10, atol=1e-9)
    # The joint that slides is along x of the carrier.
    pushed = found.base_wrench[..., 3]
    np.testing.assert_allclose(pushed, expected[..., 1], rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize('seed', range(5))
def test_a_floating_base_moves_as_it_is_pushed(seed):
    model, motion = some_closed_motion(seed)
    inertia = np.diag([0.1, 0.2, 0.15])
    model = model.with_payload(model.base_link, 2.0, (0.1, 0.0, 0.05), inertia)
    model = model.with_friction({model.joint_names[0]: Viscous(0.3)})
    base = se3.exp(random_motion(seed, 6, 1)[0] / np.pi), random_motion(seed + 1, 6, 4)
    link = model.closure.loops[0].link_b
    wrenches = [Wrench(link, random_motion(3, 6, 3), kind) for kind in ('body', 'hybrid')]
    needed = moving_base_inverse_dynamics(model, motion, base, wrenches)
    found = floating_base_forward_dynamics(
        model,
        motion[:2],
        (base[0], base[1][:1]),
        needed.effort,
        wrenches,
        base_wrench=needed.base_wrench,
    )
    np.testing.assert_allclose(found.acceleration, motion[2:], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.twist_rate, base[1][1:], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize('seed', range(6))
def test_joints_without_motors_transmit_nothing_along_their_screws(seed):
    model, motion = some_closed_motion(seed)
    wrench = Wrench(model.closure.loops[0].link_b, random_motion(2, 6, 3))
    transmitted = inter_body_wrenches(model, motion, wrench)
    tree, whole = model.closure.tree, complete_motion(model, motion)[:3]
    assert transmitted.shape == (3, tree.n_bodies, 6)
    efforts = np.zeros(whole.shape)
    for i, p in enumerate(tree.parent):
        screws = spatial_jacobian(tree, whole, i)
        if p >= 0:
            screws = screws - spatial_jacobian(tree, whole, p)
        for k, j in zip(*np.tril_indices(3)):
            efforts[k] += comb(k, j) * transmitted[k - j, i] @ screws[j]
    expected = np.zeros(whole.shape)
    expected[..., model.closure.independent] = inverse_dynamics(model, motion, wrench)
    scale = np.abs(transmitted).max()
    np.testing.assert_allclose(efforts, expected, rtol=1e-9, atol=1e-12 * scale)


def spatial_jacobian(tree, motion, body):
    link = next(name for name, frame in tree.links.items() if frame.body == body)
    return jacobian(tree, motion, link, 'spatial')


def test_transmitted_wrenches_have_derivatives_of_any_order(five_bar):
    motion = 0.3 * np.random.default_rng(1).standard_normal((8, five_bar.n_joints))
    motion[0] += five_bar.closure.start[five_bar.closure.independent]

    def at(time):
        powers = [time**k / factorial(k) for k in range(8)]
        return np.stack([np.tensordot(powers[: 8 - k], motion[k:], 1) for k in range(7)])

    (before, after), h = inter_body_wrenches(five_bar, [at(-1e-4), at(1e-4)]), 1e-4
    slope = (after - before)[:-1] / (2.0 * h)
    np.testing.assert_allclose(
        inter_body_wrenches(five_bar, motion[:7])[1:], slope, rtol=1e-5, atol=1e-4
    )
