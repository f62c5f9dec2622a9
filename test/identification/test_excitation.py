"""Motions that show parameters: limits, smoothness and information by Pinocchio and NumPy."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from support.records import changed

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, CubicSpring, SeriesElastic
from hodyn_ros.analysis import motion_limits
from hodyn_ros.errors import (
    IdentificationError,
    JointNameError,
    ModelError,
    RequestError,
    UnlimitedError,
)
from hodyn_ros.identification import excitation, excite

pin = pytest.importorskip('pinocchio')

ROOT = Path(__file__).resolve().parents[2]
URDF = ROOT / 'urdf' / 'panda.urdf'
JOINTS = tuple(f'panda_joint{number}' for number in range(1, 8))
NOISE, RATE, SHARE = 0.1, 100.0, 0.8
BOX = np.array([[-0.3, -0.6, 0.1], [0.8, 0.6, 1.2]])
# Place of a parameter among the ten of Pinocchio.
PLACES = {
    name: place
    for place, name in enumerate(
        ('mass', 'hx', 'hy', 'hz', 'ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')
    )
}

# Gaz et al. 2019, supplementary material, Table II: velocities in sines b and cosines a of the
# multiples of 0.15 pi rad/s, rows 1 to 5; positions in the middle.
GAZ_COSINES = [
    [-0.2031, -0.0699, 0.3076, 0.1269, -0.2773, 0.2100, -0.2273],
    [0.1295, -0.5380, 0.5864, -0.0253, -0.0857, -0.1194, -0.5636],
    [-0.0090, -0.2015, -0.4813, -0.2405, 0.4810, -0.0950, -0.2099],
    [0.2319, -0.5535, -0.1228, 0.2178, 0.5311, -0.0964, 0.5725],
    [-0.7598, 0.2352, -0.5273, 0.6984, -0.1639, -0.0399, -0.3748],
]
GAZ_SINES = [
    [-0.1136, -0.2437, 0.3898, 0.0401, 0.5491, 0.0692, 0.2023],
    [0.6600, 0.1820, -0.0268, -0.1503, 0.1046, -0.6946, -0.2570],
    [-0.1858, -0.2390, 0.0179, 0.2359, 0.0407, -0.4442, -0.5010],
    [0.1867, -0.2647, 0.4767, -0.2022, -0.0432, -0.5749, 0.0774],
    [0.2357, 0.4252, 0.2726, 0.3693, 0.2448, -0.0698, -0.4833],
]
GAZ_MIDDLE = [-0.5850, -0.1744, -0.3373, -1.8767, -1.0631, 1.7917, -0.7284]


def quick(*arguments, trials, **settings):
    """What is found with fewer trials."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(excitation, '_TRIALS', trials)
        return excite(*arguments, **settings)


@pytest.fixture(scope='module')
def panda():
    return RobotModel.from_urdf('panda')


@pytest.fixture(scope='module')
def limits(panda):
    text = (ROOT / 'config' / 'panda.yaml').read_text()
    return motion_limits(panda, yaml.safe_load(text)['/**']['ros__parameters']['limits'])


@pytest.fixture(scope='module')
def found(panda, limits):
    return quick(panda, limits, rate=RATE, trials=300)


@pytest.fixture(scope='module')
def oracle():
    model = pin.buildModelFromUrdf(str(URDF))
    return model, model.createData()


def torques(oracle, motion):
    return np.array([pin.rnea(*oracle, *sample[:3]) for sample in motion])


def columns(oracle, motion, names):
    """Regressor (7 N, p) of named columns by Pinocchio and written down plainly."""
    wanted = np.zeros((len(motion), 7, len(names)))
    whole = np.array(
        [pin.computeJointTorqueRegressor(*oracle, *sample[:3]).copy() for sample in motion]
    )
    _, qd, q2d = np.moveaxis(motion[:, :3], 1, 0)
    of_joints = {
        'viscous': qd,
        'coulomb': np.sign(qd),
        'offset': np.ones_like(qd),
        'armature': q2d,
    }
    for place, name in enumerate(names):
        joint, quantity = name.removesuffix(' + ...').split()
        j = JOINTS.index(joint)
        if quantity in PLACES:
            wanted[:, :, place] = whole[:, :, 10 * j + PLACES[quantity]]
        else:
            wanted[:, j, place] = of_joints[quantity][:, j]
    return wanted.reshape(-1, len(names))


def scaled_condition(Y):
    return np.linalg.cond(Y / np.linalg.norm(Y, axis=0))


def differences(values, step):
    return (values[2:] - values[:-2]) / (2.0 * step)


def assert_within_limits(oracle, limits, found, share=SHARE):
    """Keeps the limits at samples, all derivatives by differences, torques by Pinocchio."""
    step, slack = 1e-3, 1.0 + 1e-4
    motion = found.samples(1.0 / step)[1]
    position, torque = motion[:, 0], torques(oracle, motion)
    middle, half = 0.5 * (limits.upper + limits.lower), 0.5 * (limits.upper - limits.lower)
    assert np.all(np.abs(position - middle) <= slack * share * half)
    for limit in (limits.velocity, limits.acceleration, limits.jerk):
        position = differences(position, step)
        assert np.all(np.abs(position) <= slack * share * limit)
    assert np.all(np.abs(torque) <= slack * share * limits.effort)
    assert np.all(np.abs(differences(torque, step)) <= slack * share * limits.effort_dot)


def assert_from_rest_to_rest_in_class_c4(motion, scale=1.0):
    for time in (motion.start_time, motion.end_time):
        assert np.abs(motion(time)[1:]).max() <= 1e-9
    inside = motion.times[1:-1]
    before, behind = motion(inside - 1e-9), motion(inside + 1e-9)
    size = np.abs(before).max(axis=(0, 2)) + 1.0
    assert np.all(np.abs(before - behind).max(axis=(0, 2)) <= 1e-5 * scale * size)


# --- Bodies -------------------------------------------------------------------------------------


def test_the_motion_keeps_all_limits_with_a_reserve(found, oracle, limits):
    assert_within_limits(oracle, limits, found)
    motion = found.samples(100.0)[1]
    # It uses them, too.
    assert np.abs(motion[:, 1] / limits.velocity).max() > 0.6


def test_the_motion_is_of_class_c4_from_rest_to_rest(found):
    assert_from_rest_to_rest_in_class_c4(found.motion)
    assert found.duration == 20.0


def test_the_parameters_are_all_that_can_be_told_apart(found, oracle):
    rng = np.random.default_rng(3)
    motion = rng.normal(size=(60, 3, 7))
    every = [
        f'{joint} {quantity}'
        for joint in JOINTS
        for quantity in (*PLACES, 'viscous', 'coulomb', 'offset', 'armature')
    ]
    rank = np.linalg.matrix_rank(columns(oracle, motion, every), tol=1e-8)
    chosen = np.linalg.matrix_rank(columns(oracle, motion, found.names), tol=1e-8)
    assert len(found.names) == rank == chosen == 69


def test_information_condition_and_deviations_are_those_of_the_regressor_of_pinocchio(
    found, oracle
):
    Y = columns(oracle, found.samples(RATE)[1], found.names)
    information = Y.T @ Y / NOISE**2
    scale = np.sqrt(np.diag(information))
    assert np.abs((found.information - information) / np.outer(scale, scale)).max() <= 5e-3
    assert found.condition == pytest.approx(scaled_condition(Y), rel=0.02)
    np.testing.assert_allclose(
        found.std, np.sqrt(np.diag(np.linalg.inv(information))), rtol=0.02
    )


def test_identified_parameters_scatter_as_expected(found, oracle):
    times, motion = found.samples(RATE)
    Y = columns(oracle, motion, found.names)
    true = (
        torques(oracle, motion).ravel()
        + (motion[:, 1] * 3.0 + np.sign(motion[:, 1])).ravel()
    )
    rng = np.random.default_rng(0)
    measured = true[:, None] + rng.normal(scale=NOISE, size=(len(true), 300))
    identified = np.linalg.lstsq(Y, measured, rcond=None)[0]
    assert np.abs(Y @ identified.mean(axis=1) - true).max() <= NOISE
    np.testing.assert_allclose(identified.std(axis=1), found.std, rtol=0.17)


def test_it_shows_more_than_a_published_motion_of_the_same_duration(panda, limits, oracle):
    found = excite(panda, limits)
    times, motion = found.samples(50.0)
    k = 0.15 * np.pi * np.arange(1.0, 6.0)[:, None]
    sine, cosine = np.sin(times[:, None] * k.T), np.cos(times[:, None] * k.T)
    a, b = np.array(GAZ_COSINES), np.array(GAZ_SINES)
    published = np.stack(
        (
            GAZ_MIDDLE + sine @ (a / k) - cosine @ (b / k),
            cosine @ a + sine @ b,
            cosine @ (b * k) - sine @ (a * k),
        ),
        axis=1,
    )
    ours, theirs = (columns(oracle, each, found.names) for each in (motion, published))
    assert scaled_condition(ours) < 0.9 * scaled_condition(theirs)
    log_det = [np.linalg.slogdet(Y.T @ Y)[1] for Y in (ours, theirs)]
    assert log_det[0] > log_det[1] + 40.0


def test_information_of_motions_adds_and_grows_with_rate_and_less_noise(
    panda, limits, found
):
    other = quick(panda, limits, rate=4.0 * RATE, effort_noise=[NOISE] * 7, trials=300)
    # Compiled code and what computes until it is there differ by rounding.
    rounding = 1e-12 * other.information.max()
    np.testing.assert_allclose(
        other.information, 4.0 * found.information, rtol=1e-9, atol=rounding
    )
    np.testing.assert_allclose(other.std, found.std / 2.0, rtol=1e-6)
    both = changed(found, information=found.information + other.information)
    np.testing.assert_allclose(both.std, found.std / np.sqrt(5.0), rtol=1e-6)


def test_equal_seeds_give_equal_motions(panda, limits):
    one, same, other = (quick(panda, limits, trials=20, seed=seed) for seed in (4, 4, 5))
    assert np.array_equal(one.motion.states, same.motion.states)
    assert not np.array_equal(one.motion.states, other.motion.states)


def test_all_links_stay_in_the_box(panda, limits, oracle):
    found = quick(panda, limits, box=BOX, trials=100)
    assert_within_limits(oracle, limits, found)
    model, data = oracle
    places = []
    for q in found.samples(100.0)[1][:, 0]:
        pin.framesForwardKinematics(model, data, q)
        moving = [i for i, frame in enumerate(model.frames) if frame.parentJoint > 0]
        places.append([data.oMf[i].translation.copy() for i in moving])
    places = np.array(places)
    assert np.all(places >= BOX[0] - 1e-6) and np.all(places <= BOX[1] + 1e-6)
    # Some come near to it, and without it they leave it.
    assert np.min(np.abs(places - BOX[:, None, None])) < 0.05


# --- Payload, friction, springs -----------------------------------------------------------------


def test_information_about_a_payload_is_that_of_its_torques(panda, limits, oracle):
    found = quick(
        panda, limits, target='payload', link='panda_link8', trials=100, rate=RATE
    )
    motion = found.samples(RATE)[1]
    mass, com, inertia = 1.7, np.array([0.03, -0.05, 0.1]), np.diag([0.02, 0.03, 0.01])
    loaded = pin.buildModelFromUrdf(str(URDF))
    frame = loaded.frames[loaded.getFrameId('panda_link8')]
    body = pin.Inertia(mass, com, inertia)
    loaded.inertias[frame.parentJoint] += frame.placement.act(body)
    more = torques((loaded, loaded.createData()), motion) - torques(oracle, motion)
    about_origin = inertia + mass * (com @ com * np.eye(3) - np.outer(com, com))
    parameters = [mass, *(mass * com), *about_origin[np.triu_indices(3)]]
    assert [name.split()[-1] for name in found.names] == [
        'mass',
        'hx',
        'hy',
        'hz',
        'ixx',
        'ixy',
        'ixz',
        'iyy',
        'iyz',
        'izz',
    ]
    expected = np.sum(more**2) / NOISE**2
    assert parameters @ found.information @ parameters == pytest.approx(expected, rel=2e-3)
    assert found.condition < 10.0


def test_friction_is_shown_from_slow_to_fast_in_both_directions(panda, limits, oracle):
    found = quick(panda, limits, target='friction', duration=30.0, trials=100)
    assert_within_limits(oracle, limits, found)
    assert_from_rest_to_rest_in_class_c4(found.motion)
    assert found.names[:3] == tuple(
        f'panda_joint1 {x}' for x in ('viscous', 'coulomb', 'offset')
    )
    _, motion = found.samples(100.0)
    speeds = motion[:, 1] / np.abs(motion[:, 1]).max(axis=0)
    for low, high in ((0.002, 0.05), (0.05, 0.3), (0.3, 1.0)):
        for way in (1.0, -1.0):
            within = (way * speeds > low) & (way * speeds <= high)
            assert np.count_nonzero(within, axis=0).min() >= 50
    Y = columns(oracle, motion, found.names)
    std = np.sqrt(np.diag(np.linalg.inv(Y.T @ Y * 10.0))) * NOISE
    np.testing.assert_allclose(found.std, std, rtol=0.03)


def test_springs_see_the_torques_that_pinocchio_computes(panda, limits, oracle):
    stiff = SeriesElastic(800.0, 0.6)
    soft = SeriesElastic(CubicSpring(200.0, 3000.0, 0.2), 0.3)
    actuators = Actuators(panda, {'panda_joint2': stiff, 'panda_joint4': soft})
    found = quick(
        panda, limits, target='springs', actuators=actuators, trials=200, rate=RATE
    )
    assert_within_limits(oracle, limits, found)
    assert found.names == (
        'panda_joint2 stiffness',
        'panda_joint2 damping',
        'panda_joint4 stiffness',
        'panda_joint4 cubic_stiffness',
        'panda_joint4 damping',
    )
    motion = found.samples(1000.0)[1]
    torque = torques(oracle, motion)
    assert np.abs(torque[:, 3]).max() <= SHARE * (200.0 * 0.2 + 3000.0 * 0.2**3)
    # The law of the soft spring increases: its inverse is interpolated in a dense table.
    table = np.linspace(-0.2, 0.2, 200_001)
    delta = np.interp(torque[:, 3], 200.0 * table + 3000.0 * table**3, table)
    linear = torque[:, 1] / 800.0
    for own, column in (
        (slice(0, 2), [linear, np.gradient(linear, 1e-3)]),
        (slice(2, 5), [delta, delta**3, np.gradient(delta, 1e-3)]),
    ):
        Y = np.stack(column, axis=1)
        std = NOISE * np.sqrt(np.diag(np.linalg.inv(Y.T @ Y * RATE / 1000.0)))
        np.testing.assert_allclose(found.std[own], std, rtol=0.02)
    # The torques reach far, and change quickly.
    assert (
        np.ptp(torque[:, 1]) > 50.0 and np.abs(np.gradient(torque[:, 1], 1e-3)).max() > 50.0
    )


def test_only_some_joints_move(panda, limits):
    wrist = JOINTS[4:]
    found = quick(
        panda,
        limits,
        target='payload',
        link='panda_link8',
        joints=wrist,
        duration=8.0,
        trials=50,
    )
    motion = found.samples(50.0)[1]
    assert np.all(np.ptp(motion[:, 0, :4], axis=0) == 0.0)
    assert np.all(np.ptp(motion[:, 0, 4:], axis=0) > 0.5)


# --- What cannot be done ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('settings', 'error', 'words'),
    [
        ({'target': 'all'}, RequestError, 'expected one of bodies, payload'),
        ({'target': 'springs'}, RequestError, 'series elastic'),
        ({'target': 'payload', 'link': 'hand'}, ModelError, "no link 'hand'"),
        ({'target': 'payload', 'link': 'panda_link0'}, IdentificationError, 'never moves'),
        (
            {'target': 'payload', 'link': 'panda_link1'},
            RequestError,
            'shows all of panda_link1 mass',
        ),
        ({'joints': ['panda_joint9']}, JointNameError, 'panda_joint9; expected some of'),
        ({'joints': []}, JointNameError, 'none; expected some of'),
        ({'box': [[0, 0, 0], [0.1, 0.1, 0.1]]}, RequestError, 'No pose was found'),
        ({'box': [[0, 0, 1], [1, 1, 0]]}, RequestError, 'the lowest and then the highest'),
        ({'duration': -1.0}, RequestError, 'duration is -1.0'),
        ({'share': 1.5}, RequestError, 'share is 1.5'),
        ({'effort_noise': 0.0}, RequestError, 'number above zero or 7'),
        ({'effort_noise': [0.1, 0.2]}, RequestError, 'number above zero or 7'),
    ],
)
def test_what_cannot_be_is_refused(panda, limits, settings, error, words):
    with pytest.raises(error, match=words):
        quick(panda, limits, trials=5, **settings)


def test_limits_that_are_needed_are_named(panda, limits):
    velocity = limits.velocity.copy()
    velocity[[1, 4]] = np.inf
    with pytest.raises(
        UnlimitedError, match='velocity of panda_joint2, panda_joint5 has no'
    ):
        excite(panda, changed(limits, velocity=velocity))
    with pytest.raises(UnlimitedError, match='position of panda_joint3 has no'):
        lower = np.where(np.arange(7) == 2, -np.inf, limits.lower)
        excite(panda, changed(limits, lower=lower))
