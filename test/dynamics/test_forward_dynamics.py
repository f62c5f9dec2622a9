"""Robots that have no accelerations, or few digits of them, and arguments that do not fit."""

import numpy as np
import pytest

from hodyn_ros import (
    Inertia,
    RobotModel,
    Wrench,
    floating_base_forward_dynamics,
    forward_dynamics,
    hybrid_dynamics,
    inverse_dynamics,
    moving_base_inverse_dynamics,
)
from hodyn_ros.errors import (
    HodynError,
    JointNameError,
    ModelError,
    MotionError,
    WrenchError,
)

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')

ALGORITHMS = ['auto', 'mass_matrix', 'articulated_bodies']


def motion_of(model, K, seed=0, shape=(3,)):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (*shape, K, model.n_joints))


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
    found = hybrid_dynamics(model, np.zeros((4, 3)), effort, ['slider']).motion
    assert np.isfinite(found).all()
    with pytest.raises(ModelError, match="'slider'"):
        hybrid_dynamics(model, np.zeros((4, 3)), effort, ['slide'])


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


WRENCH = Wrench('panda_link8', np.zeros((3, 6)))


@pytest.mark.every_case
@pytest.mark.parametrize(
    'arguments, options, error, message',
    [
        ((STATE, np.zeros((0, 7))), {}, MotionError, r'm >= 1'),
        ((STATE, np.zeros((3, 6))), {}, MotionError, r'\(3, 6\)'),
        ((np.zeros((2, 2, 7)), np.zeros((3, 1, 7))), {}, MotionError, 'not broadcast'),
        ((STATE, np.full((1, 7), 1e308)), {}, MotionError, 'overflows'),
        ((STATE, EFFORT[:2], WRENCH), {}, WrenchError, '3'),
        ((STATE, EFFORT), {'algorithm': 'fast'}, HodynError, "algorithm.*'fast'"),
        ((STATE, EFFORT), {'out': EFFORT[:, 1:]}, HodynError, r'out has shape \(3, 6\)'),
        (
            (STATE, EFFORT, WRENCH),
            {'algorithm': 'articulated_bodies'},
            HodynError,
            'Articulated bodies',
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_what_was_expected(
    arguments, options, error, message
):
    model = RobotModel.from_urdf('panda')
    with pytest.raises(error, match=message):
        forward_dynamics(model, *arguments, **options)


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
    model = model.with_payload(model.base_link, 1.0, (0.0, 0.0, 0.1), np.eye(3))
    none, effort = np.zeros((0, 2, 2)), np.zeros((0, 3, 2))
    base = np.zeros((0, 4, 4)), np.zeros((0, 4, 6))
    assert forward_dynamics(model, none, effort).shape == (0, 3, 2)
    floating = floating_base_forward_dynamics(model, none, base, effort)
    assert floating.twist_rate.shape == (0, 3, 6)
    given = moving_base_inverse_dynamics(model, np.zeros((0, 5, 2)), base)
    assert given.effort.shape == (0, 3, 2)
    found = hybrid_dynamics(model, np.zeros((0, 5, 2)), effort, [model.joint_names[0]])
    assert found.motion.shape == (0, 5, 2)


def test_hybrid_dynamics_takes_efforts_as_forward_dynamics_does():
    model, first, motion = RobotModel.from_urdf('panda'), ['panda_joint1'], np.zeros((5, 7))
    for effort in ('abc', EFFORT * 1j, np.ma.masked_all((3, 7)), None):
        with pytest.raises(MotionError, match='effort'):
            hybrid_dynamics(model, motion, effort, first)
        with pytest.raises(MotionError, match='effort'):
            forward_dynamics(model, STATE, effort)
    with pytest.raises(JointNameError, match='None'):
        hybrid_dynamics(model, motion, EFFORT, None)
    with pytest.raises(MotionError, match='K = m'):
        hybrid_dynamics(model, motion[:4], EFFORT, first)
