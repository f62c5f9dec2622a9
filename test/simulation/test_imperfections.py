"""What a simulated robot has beyond its model, against Pinocchio and closed forms."""

import importlib.util
import warnings

import numpy as np
import pytest
from support import robots

if importlib.util.find_spec('mujoco') is None:
    pytest.skip('mujoco is not installed', allow_module_level=True)
pytest.importorskip('pinocchio')

from support.control_cases import (  # noqa: E402
    HOME,
    MOTOR_INERTIA,
    PANDA,
    STIFFNESS,
    Condition,
)

from hodyn_ros import ModelWarning, RobotModel  # noqa: E402
from hodyn_ros.actuators.actuator import RigidDrive  # noqa: E402
from hodyn_ros.actuators.sea import SeriesElastic  # noqa: E402
from hodyn_ros.actuators.springs import CubicSpring  # noqa: E402
from hodyn_ros.actuators.vsa.mechanisms import Qbmove  # noqa: E402
from hodyn_ros.actuators.vsa.model import VariableStiffness  # noqa: E402
from hodyn_ros.errors import JointNameError, ModelError, SimulationError  # noqa: E402
from hodyn_ros.simulation import (  # noqa: E402
    ElasticPlant,
    Imperfections,
    SampledPlant,
    Sensors,
    simulate_tracking,
)

HOME = np.array(HOME)


@pytest.fixture(scope='module')
def panda():
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return RobotModel.from_urdf(PANDA)


def elastic_panda(model, time_step=1e-4, **imperfections):
    springs = zip(model.joint_names, STIFFNESS, MOTOR_INERTIA)
    return ElasticPlant(
        model,
        {name: SeriesElastic(k, b) for name, k, b in springs},
        time_step,
        imperfections=Imperfections(**imperfections),
    )


# The names of the plant by Pinocchio, and those of the simulation.
SMOOTH = [
    ({'stiffness': -0.1}, {'stiffness_error': -0.1}),
    ({'inertia': 0.1}, {'inertia_error': 0.1}),
    ({'payload': 1.0}, {'payload': {'panda_link8': 1.0}}),
    ({'damping': 3.0}, {'damping': 3.0}),
    ({'backlash': 4e-3}, {'backlash': 4e-3}),
    ({'gear_ratio': 100.0}, {'gear_ratio': 100.0}),
    (
        {
            'stiffness': 0.2,
            'inertia': -0.1,
            'payload': 2.0,
            'damping': 1.0,
            'gear_ratio': 20.0,
        },
        {
            'stiffness_error': 0.2,
            'inertia_error': -0.1,
            'payload': {'panda_link8': 2.0},
            'damping': 1.0,
            'gear_ratio': 20.0,
        },
    ),
]


@pytest.mark.parametrize(('theirs', 'ours'), SMOOTH)
def test_accelerations_are_those_of_pinocchio(panda, theirs, ours):
    reference, plant = Condition(**theirs).plant(), elastic_panda(panda, **ours)
    exact = Condition().plant()
    rng = np.random.default_rng(4)
    for _ in range(5):
        q, qd, thetad, torque = rng.uniform(-1.0, 1.0, (4, 7))
        theta = q + rng.uniform(-0.02, 0.02, 7)
        plant.reset(q, qd, theta, thetad)
        found = np.array(plant.acceleration(torque))
        expected = np.array(reference.accelerations(q, qd, theta, thetad, torque))
        np.testing.assert_allclose(
            found, expected, rtol=0.0, atol=1e-12 * abs(expected).max()
        )
        differs = np.abs(expected - exact.accelerations(q, qd, theta, thetad, torque)).max()
        assert differs > 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize(('theirs', 'ours'), SMOOTH)
def test_springs_carry_the_real_weight_after_a_reset(panda, theirs, ours):
    # Turned, so that no joint is without weight, on which side of its backlash it would be.
    q = HOME + 0.3
    plant, reference = elastic_panda(panda, **ours), Condition(**theirs).plant()
    plant.reset(q)
    expected = reference.at_rest(q)[2]
    loaded = np.abs(reference.torque) > 1e-6
    np.testing.assert_allclose(plant.theta[loaded], expected[loaded], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(plant.spring_torque, reference.torque, rtol=0.0, atol=1e-9)
    plant.step(plant.holding_torque(q), 200)
    assert np.abs(plant.q - q).max() < 1e-9


@pytest.mark.parametrize(
    ('theirs', 'ours', 'largest'),
    [
        ({'coulomb': 2.0}, {'coulomb': 2.0}, 5e-5),
        pytest.param(
            {'link_coulomb': 2.0}, {'link_coulomb': 2.0}, 5e-5, marks=pytest.mark.slow
        ),
        pytest.param(
            {'coulomb': 1.0, 'breakaway': 3.0},
            {'coulomb': 1.0, 'breakaway': 3.0},
            4e-4,
            marks=pytest.mark.slow,
        ),
        ({'rate_limit': 500.0}, {'torque_rate_limit': 500.0}, 1e-9),
        (
            {'coulomb': 1.0, 'gear_ratio': 100.0, 'breakaway': 2.0},
            {'coulomb': 1.0, 'gear_ratio': 100.0, 'breakaway': 2.0},
            4e-4,
        ),
    ],
)
def test_swinging_arm_goes_where_that_of_pinocchio_goes(panda, theirs, ours, largest):
    """Motors reverse, stick and break away; the error is that of the instant at which they do."""
    limits = {'torque_limit': {'': 87.0, **dict.fromkeys(panda.joint_names[4:], 12.0)}}
    limits = limits if 'rate_limit' in theirs else {}
    plant = elastic_panda(panda, 5e-5, **ours, **limits)
    free, reference = Condition().plant(), Condition(**theirs).plant()
    state, other = reference.at_rest(HOME), free.at_rest(HOME)
    plant.reset(HOME)
    weight, swing = (
        reference.torque.copy(),
        np.array([20.0, 30.0, 15.0, 15.0, 5.0, 5.0, 3.0]),
    )
    for k in range(250):
        torque = weight + swing * np.sin(2.0 * np.pi * 4.0 * 1e-3 * k)
        state, other = (
            reference.hold(state, torque, 1e-3, 20),
            free.hold(other, torque, 1e-3, 20),
        )
        plant.step(torque, 20)
        assert np.abs(plant.q - state[0]).max() < largest
        assert np.abs(plant.theta - state[2]).max() < largest
    assert np.abs(other[0] - state[0]).max() > 20.0 * largest


def single(time_step=1e-4, stiffness=300.0, inertia=0.5, **imperfections):
    """A robot whose shoulder has a spring with so much backlash that its motor is free."""
    model = RobotModel.from_urdf(robots.TWO_LINK)
    plant = ElasticPlant(
        model,
        {'shoulder': SeriesElastic(stiffness, inertia), 'elbow': RigidDrive(0.1)},
        time_step,
        imperfections=Imperfections(backlash={'shoulder': 1e3}, **imperfections),
    )
    plant.reset([0.0, 0.0], theta=[0.0, 0.0])
    return plant


@pytest.mark.parametrize('speed', [1e-3, 0.02, 0.05, 1.0])
def test_dry_and_viscous_friction_follow_their_law(speed):
    h, viscous = 1e-5, 0.7
    plant = single(h, coulomb=1.0, breakaway=3.0, stribeck_velocity=0.03, viscous=viscous)
    plant.reset([0.0, 0.0], theta=[0.0, 0.0], thetad=[-speed, 0.0])
    plant.step([0.0, 0.0])
    expected = 1.0 + 2.0 * np.exp(-((speed / 0.03) ** 2)) + viscous * speed
    assert 0.5 * (plant.thetad[0] + speed) / h == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize('gear_ratio', [0.0, 50.0])
def test_motor_sticks_until_it_breaks_away(gear_ratio):
    plant = single(coulomb=1.0, breakaway=2.0, gear_ratio={'shoulder': gear_ratio})
    speeds = []
    for _ in range(1000):
        plant.step([1.95, 0.0], 10)
        speeds.append(plant.thetad[0])
    assert np.abs(speeds).max() < 1e-6  # MuJoCo lets it creep, but it does not chatter
    assert np.ptp(speeds[100:]) < 1e-9
    plant.step([2.05, 0.0], 10_000)
    # Once it is fast, 1 N m is left of the friction.
    assert plant.thetad[0] == pytest.approx((2.05 - 1.0) / 0.5, rel=0.1)


def test_link_sticks_in_its_bearing():
    plant = single(link_coulomb={'elbow': 40.0}, torque_limit=1e6)
    plant.reset([0.0, 0.3], theta=[0.0, 0.3])
    weight = plant.weight([0.0, 0.3])[1]
    plant.step([0.0, weight + 20.0], 100)
    before = plant.q[1]
    plant.step([0.0, weight + 20.0], 1000)
    assert abs(plant.q[1] - before) < 1e-3
    plant.step([0.0, weight + 300.0], 1000)
    assert abs(plant.q[1] - before) > 0.1


def test_motor_has_no_more_torque_than_its_limit():
    plant = single(torque_limit={'shoulder': 5.0})
    plant.step([50.0, 0.0], 1000)
    assert plant.theta[0] == pytest.approx(0.5 * 5.0 / 0.5 * 0.1**2, rel=1e-6)
    plant.step(lambda time: [-50.0, 0.0], 2000)
    assert plant.thetad[0] == pytest.approx(-5.0 / 0.5 * 0.1, rel=1e-6)


@pytest.mark.parametrize('is_function', [False, True])
def test_torque_changes_no_faster_than_its_limit(is_function):
    plant, rate = single(1e-5, torque_rate_limit=200.0), 200.0
    plant.step((lambda time: [1e3, 0.0]) if is_function else [1e3, 0.0], 10_000)
    assert plant.thetad[0] == pytest.approx(0.5 * rate * 0.1**2 / 0.5, rel=1e-3)


def test_other_springs_have_errors_and_backlash_too():
    model = RobotModel.from_urdf(robots.TWO_LINK)
    plant = ElasticPlant(
        model,
        {'elbow': SeriesElastic(CubicSpring(300.0, 5e3), 0.2)},
        imperfections=Imperfections(stiffness_error=0.2, backlash=0.02, gear_ratio=10.0),
    )
    plant.reset([0.2, -0.4], theta=[0.2, -0.3])
    expected = 1.2 * (300.0 * 0.09 + 5e3 * 0.09**3)
    np.testing.assert_allclose(plant.spring_torque, [0.0, expected], rtol=1e-12)
    plant.reset([0.2, -0.4])
    np.testing.assert_allclose(
        plant.spring_torque[1], plant.weight([0.2, -0.4])[1], rtol=1e-9
    )
    assert (
        max(np.abs(a).max() for a in plant.acceleration(plant.weight([0.2, -0.4]))) < 1e-9
    )


def test_half_the_step_changes_nothing_that_matters(panda):
    """The step of the tables, for the stiffest springs of theirs and all imperfections."""
    ends = []
    for time_step in (2e-4, 1e-4, 5e-5):
        stiff = {
            n: SeriesElastic(20000.0, b) for n, b in zip(panda.joint_names, MOTOR_INERTIA)
        }
        imperfections = Imperfections(payload={'panda_link8': 1.0}, damping=3.0)
        plant = ElasticPlant(panda, stiff, time_step, imperfections=imperfections)
        plant.reset(HOME)
        for k in range(100):
            torque = plant.weight(HOME) + 5.0 * np.sin(0.1 * k)
            plant.step(torque, round(1e-3 / time_step))
        ends.append(plant.q)
    assert np.abs(ends[0] - ends[2]).max() < 1e-8
    assert np.abs(ends[1] - ends[2]).max() < 1e-9


def test_torque_sensors_measure_springs_with_noise(panda):
    sampled = SampledPlant(elastic_panda(panda), sensors=Sensors(torque_noise=0.2))
    held = sampled.plant.holding_torque(HOME)
    sampled.reset(HOME, torque=held)
    found = np.array([sampled.advance(held).spring_torque - held for _ in range(500)])
    assert found.std() == pytest.approx(0.2, rel=0.05)
    assert abs(found.mean()) < 0.02


def test_controller_may_be_handed_the_torque_of_the_springs(panda):
    seen = []

    class Holding:
        def command(self, reference, q, qd, theta, thetad, spring_torque):
            seen.append(spring_torque - STIFFNESS * (theta - q))
            return spring_torque

    at_home = np.zeros((5, 7))
    at_home[0] = HOME
    simulate_tracking(
        elastic_panda(panda),
        Holding(),
        lambda times: np.repeat(at_home[None], len(times), 0),
        0.01,
        start=lambda sampled: sampled.reset(HOME + 0.1),
        torque_sensors=True,
    )
    np.testing.assert_allclose(seen, 0.0, atol=1e-9)


def test_values_come_by_joint_and_for_all_others(panda):
    made = Imperfections.from_tables(
        {
            '': {'coulomb': 1.0, 'damping': 2.0},
            'panda_joint3': {'coulomb': 4.0},
            'panda_link8': {'payload': 1.5},
        }
    )
    assert made.of('coulomb', panda.joint_names).tolist() == [1.0, 1.0, 4.0] + [1.0] * 4
    assert made.of('damping', panda.joint_names).tolist() == [2.0] * 7
    assert made.of('backlash', panda.joint_names).tolist() == [0.0] * 7
    assert made.payload == {'panda_link8': 1.5}
    only = Imperfections(torque_limit={'panda_joint1': 10.0})
    assert only.of('torque_limit', panda.joint_names).tolist() == [10.0] + [np.inf] * 6


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        (
            {'stiffness_error': -1.0},
            'stiffness_error is -1.0, expected a finite number above -1',
        ),
        ({'coulomb': -0.1}, 'coulomb is -0.1, expected a finite number from 0 on'),
        (
            {'coulomb': {'elbow': np.nan}},
            "coulomb of 'elbow' is nan, expected a finite number",
        ),
        ({'torque_limit': 0.0}, 'torque_limit is 0.0, expected a number above 0'),
        ({'gear_ratio': 'high'}, "gear_ratio is 'high', expected a finite number"),
        ({'payload': 1.0}, 'payload is 1.0, expected a mapping of link names'),
        ({'backlash': np.inf}, 'backlash is inf, expected a finite number'),
    ],
)
def test_values_that_cannot_be_are_refused(given, message):
    with pytest.raises(SimulationError, match=message):
        Imperfections(**given)


@pytest.mark.parametrize(
    ('given', 'error', 'message'),
    [
        (
            {'coulomb': {'wrist': 1.0}},
            JointNameError,
            "coulomb is given for 'wrist', expected",
        ),
        ({'payload': {'hand': 1.0}}, ModelError, 'hand'),
        (
            {'backlash': {'shoulder': 1.0}},
            SimulationError,
            "'shoulder'; joints that can have it",
        ),
        (
            {'gear_ratio': {'elbow': 9.0}},
            SimulationError,
            "'elbow'; joints that can have it: ",
        ),
    ],
)
def test_robots_that_cannot_have_them_are_refused(given, error, message):
    model = RobotModel.from_urdf(robots.TWO_LINK)
    drives = {'elbow': VariableStiffness(Qbmove(6.7, 0.3), 0.02)}
    with pytest.raises(error, match=message):
        ElasticPlant(model, drives, imperfections=Imperfections(**given))
    with pytest.raises(
        SimulationError, match="The imperfection is 'colomb', expected one of"
    ):
        Imperfections.from_tables({'': {'colomb': 1.0}})
