"""Inertial parameters go into a model and come back; which of them matter; what is refused."""

import dataclasses
import warnings

import numpy as np
import pytest
from support.random_trees import random_motion, random_robot

from hodyn_ros import (
    ModelWarning,
    RobotModel,
    base_parameters,
    inverse_dynamics,
    joint_regressor,
    regressor,
)
from hodyn_ros.errors import ModelError
from hodyn_ros.model.friction import Viscous

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


@pytest.fixture(scope='module')
def panda():
    return RobotModel.from_urdf('panda')


@pytest.mark.parametrize('seed', [11, 0, 3, 5])
def test_parameters_go_into_a_model_and_come_back(seed):
    # With branches, prismatic and mimic joints, several of these on one path.
    model = RobotModel.from_urdf(random_robot(seed).xml)
    with warnings.catch_warnings():
        if not model.warnings:
            warnings.simplefilter('error')
        same = model.with_inertial_parameters(model.inertial_parameters)
    np.testing.assert_allclose(same.M_body, model.M_body, atol=1e-14)
    np.testing.assert_array_equal(same.inertial_parameters, model.inertial_parameters)
    parameters = np.random.default_rng(0).normal(size=10 * model.n_bodies)
    other = model.with_inertial_parameters(parameters)
    np.testing.assert_array_equal(other.inertial_parameters, parameters)
    assert (other.joint_names, [*other.links]) == (model.joint_names, [*model.links])


@pytest.mark.every_case
@pytest.mark.parametrize(
    'changed, message',
    [
        ({0: -1.0}, 'negative mass'),
        ({0: 0.0}, 'first moments but a mass of 0.0 kg'),
        ({0: 1e-200}, 'first moments but a mass of 1e-200 kg'),
        ({4: -2.0}, 'not positive semi-definite'),
        ({4: 1.0, 7: 1.0, 9: 5.0, 1: 0.0, 2: 0.0, 3: 0.0}, 'triangle inequality'),
    ],
)
def test_parameters_that_no_body_has_are_used_with_a_warning_that_names_it(
    panda, changed, message
):
    parameters = panda.inertial_parameters
    for place, value in changed.items():
        parameters[20 + place] = value
    with pytest.warns(ModelWarning, match=f"'panda_joint3'.*{message}") as found:
        model = panda.with_inertial_parameters(parameters)
    assert not [item for item in found if "joint 'panda_joint2'" in str(item.message)]
    assert any(message in remark for remark in model.warnings)
    motion = random_motion(5, 7, 3)
    expected = regressor(panda, motion) @ parameters
    np.testing.assert_allclose(inverse_dynamics(model, motion), expected, atol=1e-12)
    # What is said of parameters ends with them.
    assert model.with_inertial_parameters(panda.inertial_parameters).warnings == ()


def test_parameters_of_another_shape_or_not_finite_are_refused(panda):
    with pytest.raises(ModelError, match=r'shape \(7, 10\), expected \(70,\)'):
        panda.with_inertial_parameters(panda.inertial_parameters.reshape(7, 10))
    with pytest.raises(ModelError, match='inf at index'):
        panda.with_inertial_parameters(np.full(70, np.inf))
    with pytest.raises(ModelError, match='not an array of numbers'):
        panda.with_inertial_parameters('panda')


@pytest.mark.parametrize('term', ['damping', 1.0, None])
def test_unknown_terms_are_refused(panda, term):
    for call in (
        lambda terms: joint_regressor(panda, np.zeros((3, 7)), terms),
        lambda terms: base_parameters(panda, terms),
    ):
        with pytest.raises(ModelError, match=f"A term is {term!r}, expected .*'armature'"):
            call([Viscous(1.0), term])


def test_what_does_not_matter_depends_on_gravity():
    upright = RobotModel.from_body_screws(
        [[0, 0, 1, 0, 0, 0]], [np.eye(4)], inertias=[(1.0, (0.1, 0, 0), np.eye(3))]
    )
    assert list(base_parameters(upright).independent) == [9]
    assert (
        base_parameters(dataclasses.replace(upright, gravity=np.array([9.81, 0, 0]))).rank
        == 3
    )


def test_armature_is_told_apart_from_inertia_where_more_than_the_joint_moves_it(panda):
    # That of the first two joints is not: the body turns about their axes by the joint alone.
    assert base_parameters(panda, ['armature']).rank == 43 + 7 - 2
