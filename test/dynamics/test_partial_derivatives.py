"""Partial derivatives of the efforts: the chain rule, friction and armature.

Entries are compared with complex steps in test/contract.
"""

import functools

import numpy as np
import pytest
from support.engine_cases import needs_compiler
from support.random_trees import random_screw_model, random_wrenches

from hodyn_ros import (
    RobotModel,
    Wrench,
    friction,
    inverse_dynamics,
    inverse_dynamics_derivatives,
)
from hodyn_ros.errors import ModelError

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

LAWS = {
    'viscous': friction.Viscous(0.7),
    'Coulomb': friction.Coulomb(1.3, smoothing=0.4),
    'sigmoid': friction.Sigmoid(1.1, 3.0, 0.2),
    'sum': friction.Viscous(0.2)
    + friction.Offset(2.0)
    + friction.Coulomb(0.9, smoothing=0.6),
    'Stribeck': friction.Stribeck(1.2, 0.5, smoothing=0.3),
    'sharp Stribeck': friction.Stribeck(1.2, 0.5),
}


@pytest.fixture(scope='module')
def panda():
    """Panda for tests that do not mind whether it is warm."""
    return RobotModel.from_urdf('panda')


def motion_of(model, K, shape=(), seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (*shape, K, model.n_joints))


@needs_compiler
def test_wrenches_of_many_samples_are_compiled_and_broadcast():
    model = RobotModel.from_urdf('two_link')
    motion = motion_of(model, 4)
    values = np.random.default_rng(1).uniform(-9.0, 9.0, (80, 2, 6))
    wrench = functools.partial(Wrench, 'tool', expressed_in='hybrid')
    found = [inverse_dynamics_derivatives(model, motion, wrench(item)) for item in values]
    model.warm_up(0, lambda: inverse_dynamics_derivatives(model, motion, wrench(values[0])))
    batch = inverse_dynamics_derivatives(model, motion, wrench(values))
    assert np.abs(batch - found).max() <= 1e-14 * np.abs(found).max()
    # The code without a wrench is another one.
    assert np.abs(inverse_dynamics_derivatives(model, motion) - found[0]).max() > 1.0


@pytest.mark.parametrize('seed', range(8))
def test_the_chain_rule_gives_the_next_time_derivative_up_to_order_five(seed):
    # A third of the joints is helical, the others turn or slide.
    model = random_screw_model(seed, n=6)
    model = model.with_armature({name: 0.3 for name in model.joint_names})
    model = model.with_friction(dict(zip(model.body_names, LAWS.values())))
    motion = motion_of(model, 8, seed=seed)
    expected = inverse_dynamics(model, motion, algorithm='nth_order')[1:]
    found = inverse_dynamics_derivatives(model, motion[:-1])
    rates = np.einsum('mikj,kj->mi', found, motion[1:])
    scale = np.abs(expected).max(axis=-1, keepdims=True)
    assert np.all(np.abs(rates - expected) <= 1e-11 * scale)


@pytest.mark.parametrize('seed', range(4))
def test_wrenches_whose_coordinates_are_constant_obey_the_chain_rule(seed):
    # Two for each frame in which they are expressed, on several links.
    model = random_screw_model(seed, n=6)
    motion = motion_of(model, 6, seed=seed)

    def wrenches(orders):
        cases = random_wrenches(seed, [*model.links], 6)
        for link, values, expressed_in, acting in cases:
            values[1:] = 0.0
            yield Wrench(link, values[:orders], expressed_in, acting)

    expected = inverse_dynamics(model, motion, [*wrenches(4)], algorithm='nth_order')[1:]
    found = inverse_dynamics_derivatives(model, motion[:-1], [*wrenches(3)])
    rates = np.einsum('mikj,kj->mi', found, motion[1:])
    scale = np.abs(expected).max(axis=-1, keepdims=True)
    assert np.all(np.abs(rates - expected) <= 1e-11 * scale)


def test_sharp_coulomb_friction_adds_nothing(panda):
    law = friction.Coulomb(1.3) + friction.Offset(0.4)
    model = panda.with_friction(dict.fromkeys(panda.joint_names, law))
    motion = motion_of(panda, 4)
    np.testing.assert_array_equal(
        inverse_dynamics_derivatives(model, motion),
        inverse_dynamics_derivatives(panda, motion),
    )


def test_a_friction_law_of_ones_own_is_refused(panda):
    class Square(friction.FrictionLaw):
        def effort(self, velocity):
            return velocity**2

    model = panda.with_friction({panda.joint_names[3]: Square()})
    for shape in ((), (200,)):
        with pytest.raises(ModelError, match=r"'panda_joint4'.*partial.*with_friction"):
            inverse_dynamics_derivatives(model, motion_of(panda, 3, shape))


@pytest.mark.parametrize('name', ['two_link', 'five_bar'])
def test_a_wrench_on_the_base_adds_samples_and_nothing_else(name):
    model = RobotModel.from_urdf(name)
    motion = 0.1 * motion_of(model, 3)
    wrench = Wrench(model.base_link, np.ones((2, 1, 6)))
    found = inverse_dynamics_derivatives(model, motion, wrench)
    expected = inverse_dynamics_derivatives(model, motion)
    np.testing.assert_allclose(found, np.stack([expected] * 2), rtol=1e-12, atol=1e-12)
