"""Forward dynamics: back from inverse dynamics, and robots that have no accelerations."""

import numpy as np
import pytest
from support.engine_cases import load, wrench_cases
from support.random_trees import random_robot, random_screw_model

from hodyn_ros import (
    Inertia,
    RobotModel,
    Wrench,
    floating_base_forward_dynamics,
    forward_dynamics,
    hybrid_dynamics,
    inverse_dynamics,
    mass_matrix,
)
from hodyn_ros.errors import (
    HodynError,
    JointNameError,
    ModelError,
    MotionError,
    WrenchError,
)
from hodyn_ros.model.friction import (
    Coulomb,
    Offset,
    Sigmoid,
    Stribeck,
    Viscous,
)

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

ALGORITHMS = [
    'auto',
    'mass_matrix',
    'articulated_bodies',
]


def motion_of(model, K, seed=0, shape=(3,)):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (*shape, K, model.n_joints))


def assert_returns(model, motion, found, worst=1e-11):
    """Compare accelerations of each order, beside the condition of the mass matrix."""
    condition = np.linalg.cond(mass_matrix(model, motion[..., :1, :])[..., 0, :, :]).max()
    expected = motion[..., 2:, :]
    assert found.shape == expected.shape
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error <= worst * condition


@pytest.mark.parametrize('seed', range(30))
def test_random_trees_of_all_joints_come_back_by_both_ways(seed):
    model = random_screw_model(seed, n=2 + seed % 9)
    motion = motion_of(model, 5, seed)
    effort = inverse_dynamics(model, motion, algorithm='nth_order')
    both = [
        forward_dynamics(model, motion[:, :2], effort, algorithm=algorithm)
        for algorithm in ('auto', 'mass_matrix', 'articulated_bodies')
    ]
    for found in both:
        assert_returns(model, motion, found)


@pytest.mark.parametrize('algorithm', ALGORITHMS[:2])
def test_friction_armature_mimic_joints_and_wrenches_are_part_of_it(algorithm):
    robot = random_robot(12, n_moving=6, mimic_probability=0.5)
    model = load(robot.xml)
    assert model.n_bodies > model.n_joints
    laws = [
        Viscous(0.3),
        Coulomb(0.5, 0.1),
        Sigmoid(1.0, 5.0, 0.1) + Offset(0.2),
        Coulomb(0.4),
    ]
    laws += [Stribeck(0.6, 0.5, 0.2) + Coulomb(0.3, 0.2), Stribeck(0.6, 0.5)]
    model = model.with_armature(dict.fromkeys(model.body_names, 0.2)).with_friction(
        {name: laws[i % len(laws)] for i, name in enumerate(model.body_names)}
    )
    motion = motion_of(model, 5)
    given = [
        Wrench(*case)
        for case in wrench_cases(np.random.default_rng(2), robot.links[:6], 3, (3,))
    ]
    effort = inverse_dynamics(model, motion, given, algorithm='nth_order')
    found = forward_dynamics(model, motion[:, :2], effort, given, algorithm=algorithm)
    assert_returns(model, motion, found)


# --- What cannot be computed --------------------------------------------------------------------


def massless_end(name='slider'):
    X = [[0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0.6, 0.8]]
    return RobotModel.from_body_screws(
        np.array(X),
        np.tile(np.eye(4), (3, 1, 1)),
        inertias=[Inertia(1.0, (0.1, 0.0, 0.0), np.eye(3)), Inertia(1.0), None],
        joint_names=['turn', 'slide', name],
    )


@pytest.mark.parametrize('algorithm', ALGORITHMS)
def test_a_joint_that_moves_no_inertia_is_named(algorithm):
    model = massless_end()
    state, effort = np.zeros((2, 3)), np.ones((2, 3))
    with pytest.raises(ModelError, match="singular.*'slider'.*armature"):
        forward_dynamics(model, state, effort, algorithm=algorithm)
    helped = model.with_armature({'slider': 0.1})
    assert np.all(np.isfinite(forward_dynamics(helped, state, effort, algorithm=algorithm)))
    # The free joints of the same robot have inertia.
    assert hybrid_dynamics(model, np.zeros((4, 3)), effort, ['slider']).motion.shape == (
        4,
        3,
    )
    with pytest.raises(ModelError, match="'slider'"):
        hybrid_dynamics(model, np.zeros((4, 3)), effort, ['slide'])


@pytest.mark.parametrize('algorithm', ALGORITHMS)
def test_parallel_joints_with_nothing_between_are_singular_though_rounding_is_not_zero(
    algorithm,
):
    e = np.array([0.3, -0.5, 0.7]) / np.linalg.norm([0.3, -0.5, 0.7])
    X = np.array([[0, 0, 0, *e], [0, 0, 0, *e]])
    model = RobotModel.from_body_screws(
        X, np.tile(np.eye(4), (2, 1, 1)), inertias=[None, Inertia(0.7, (0.1, 0.2, 0.3))]
    )
    with pytest.raises(ModelError, match="singular.*'joint1'"):
        forward_dynamics(model, np.zeros((2, 2)), np.ones((1, 2)), algorithm=algorithm)


def robot_that_ends_on_its_axis(seed, ratio):
    """Three joints with random axes; the ratio is that of the last link's inertias."""
    rng = np.random.default_rng(seed)
    axes = rng.standard_normal((3, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    B = np.tile(np.eye(4), (3, 1, 1))
    B[:, :3, 3] = rng.uniform(-0.3, 0.3, (3, 3))
    e, length = axes[2], rng.uniform(0.05, 0.5)
    thin = np.zeros((3, 3))
    if ratio:
        thin = length**2 * (np.eye(3) + (ratio - 1.0) * np.outer(e, e))
    inertias = [Inertia(1.0, x, 0.02 * np.eye(3)) for x in rng.uniform(-0.2, 0.2, (2, 3))]
    inertias.append(Inertia(1.0, length * e, thin))
    return RobotModel.from_body_screws(
        np.hstack([axes, np.zeros((3, 3))]), B, inertias=inertias
    )


@pytest.mark.parametrize('algorithm', ALGORITHMS)
def test_a_point_mass_on_the_last_axis_is_singular_though_rounding_is_not_zero(algorithm):
    effort = np.ones((1, 3))
    for seed in range(6):
        model = robot_that_ends_on_its_axis(seed, 0.0)
        state = motion_of(model, 2, seed, ())
        with pytest.raises(ModelError, match="singular.*'joint3'"):
            forward_dynamics(model, state, effort, algorithm=algorithm)
        with pytest.raises(ModelError, match="singular.*'joint3'"):
            hybrid_dynamics(model, np.vstack([state, state[:1]]), effort, ['joint1'])
        with pytest.raises(ModelError, match="singular.*'joint3'"):
            floating_base_forward_dynamics(
                model, state, (np.eye(4), np.zeros((1, 6))), effort
            )


@pytest.mark.parametrize('algorithm', ALGORITHMS)
@pytest.mark.parametrize('ratio', [1e-4, 1e-8, 1e-12])
def test_a_thin_last_link_has_the_digits_that_its_inertia_leaves(algorithm, ratio):
    for seed in range(10):
        model = robot_that_ends_on_its_axis(seed, ratio)
        motion = motion_of(model, 3, seed, ())
        effort = inverse_dynamics(model, motion)
        found = forward_dynamics(model, motion[:2], effort, algorithm=algorithm)
        assert np.abs(found - motion[2]).max() <= 1e-13 / ratio


STATE, EFFORT = np.zeros((2, 7)), np.zeros((3, 7))


@pytest.mark.every_case
@pytest.mark.parametrize(
    'arguments, error, message',
    [
        ((STATE, np.zeros((0, 7))), MotionError, r'm >= 1'),
        ((STATE, np.zeros((3, 6))), MotionError, r'\(3, 6\)'),
        ((np.zeros((2, 2, 7)), np.zeros((3, 1, 7))), MotionError, 'do not broadcast'),
        ((STATE, np.full((1, 7), 1e308)), MotionError, 'overflows'),
        ((STATE, EFFORT, Wrench('panda_link8', np.zeros((2, 6)))), WrenchError, '3'),
    ],
)
def test_what_does_not_fit_is_refused_with_what_was_expected(arguments, error, message):
    model = RobotModel.from_urdf('panda')
    with pytest.raises(error, match=message):
        forward_dynamics(model, *arguments)


def test_unknown_algorithms_outputs_and_joints_are_refused():
    model = RobotModel.from_urdf('panda')
    with pytest.raises(HodynError, match="algorithm.*'fast'"):
        forward_dynamics(model, STATE, EFFORT, algorithm='fast')
    with pytest.raises(HodynError, match=r'out has shape \(3, 6\)'):
        forward_dynamics(model, STATE, EFFORT, out=np.empty((3, 6)))
    with pytest.raises(HodynError, match='Articulated bodies'):
        wrench = Wrench('panda_link8', np.zeros((3, 6)))
        forward_dynamics(model, STATE, EFFORT, wrench, algorithm='articulated_bodies')
    with pytest.raises(JointNameError, match='elbow'):
        hybrid_dynamics(model, np.zeros((5, 7)), EFFORT, ['elbow'])
    with pytest.raises(MotionError, match='K = m'):
        hybrid_dynamics(model, np.zeros((4, 7)), EFFORT, ['panda_joint1'])


@pytest.mark.parametrize('algorithm', ALGORITHMS)
def test_results_are_not_written_over_the_state_and_rightly_over_efforts(algorithm):
    model = RobotModel.from_urdf('two_link')
    given = motion_of(model, 2, shape=())
    expected = forward_dynamics(model, given, given.copy(), algorithm=algorithm)
    with pytest.raises(HodynError, match='out shares memory'):
        forward_dynamics(model, given, given.copy(), algorithm=algorithm, out=given)
    found = forward_dynamics(model, given.copy(), given, algorithm=algorithm, out=given)
    assert found is given and found == pytest.approx(expected, rel=1e-12)


def test_no_samples_have_no_accelerations():
    model = RobotModel.from_urdf('two_link')
    none, effort = np.zeros((0, 2, 2)), np.zeros((0, 3, 2))
    assert forward_dynamics(model, none, effort).shape == (0, 3, 2)
    found = hybrid_dynamics(model, np.zeros((0, 5, 2)), effort, [model.joint_names[0]])
    assert found.motion.shape == (0, 5, 2)


@pytest.mark.parametrize(
    'effort', ['abc', np.zeros((3, 7)) * 1j, np.ma.masked_all((3, 7)), None]
)
def test_hybrid_dynamics_takes_efforts_as_forward_dynamics_does(effort):
    model = RobotModel.from_urdf('panda')
    for call in (
        lambda: hybrid_dynamics(model, np.zeros((5, 7)), effort, ['panda_joint1']),
        lambda: forward_dynamics(model, STATE, effort),
    ):
        with pytest.raises(MotionError, match='effort'):
            call()
    with pytest.raises(JointNameError, match='None'):
        hybrid_dynamics(model, np.zeros((5, 7)), EFFORT, None)
