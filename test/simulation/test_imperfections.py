"""What a simulated robot has beyond its model, against Pinocchio and closed forms."""

import numpy as np
import pytest
from support import control_simulation, robots
from support.control_cases import HOME, TORQUE_LIMITS, Condition

from hodyn_ros import RobotModel
from hodyn_ros.actuators import (
    CubicSpring,
    Qbmove,
    RigidDrive,
    SeriesElastic,
    VariableStiffness,
)
from hodyn_ros.errors import JointNameError, ModelError, SimulationError
from hodyn_ros.simulation import ElasticPlant, Imperfections

pytest.importorskip('mujoco')
HOME, TWO_LINK = np.array(HOME), RobotModel.from_urdf(robots.TWO_LINK)


def both(condition, time_step=1e-4):
    """The robot of a condition, and that of Pinocchio."""
    model = control_simulation.panda()
    faults = control_simulation.imperfections(condition)
    drives = control_simulation.drives(model)
    return ElasticPlant(model, drives, time_step, imperfections=faults), condition.plant()


@pytest.mark.parametrize(
    ('given', 'largest'),
    [
        ({'coulomb': 1.0, 'gear_ratio': 100.0, 'breakaway': 2.0}, 4e-4),
        ({'coulomb': 2.0}, 5e-5),
    ],
)
def test_swinging_arm_goes_where_that_of_pinocchio_goes(given, largest):
    """Motors reverse, stick and break away; the error is that of the instant at which they do."""
    plant, reference = both(Condition(**given), 1e-4)
    free = Condition().plant()
    state, other = reference.at_rest(HOME), free.at_rest(HOME)
    plant.reset(HOME)
    weight, swing = reference.torque.copy(), np.array([20.0, 30, 15, 15, 5, 5, 3])
    for k in range(150):
        torque = weight + swing * np.sin(2.0 * np.pi * 4.0 * 1e-3 * k)
        torque = np.clip(torque, -TORQUE_LIMITS, TORQUE_LIMITS)
        state, other = (
            reference.hold(state, torque, 1e-3, 10),
            free.hold(other, torque, 1e-3, 2),
        )
        plant.step(torque, 10)
        assert np.abs(plant.q - state[0]).max() < largest
    assert np.abs(other[0] - state[0]).max() > 10.0 * largest


def single(time_step=1e-4, **faults):
    """A robot whose shoulder has a spring with so much backlash that its motor is free."""
    faults = Imperfections(backlash={'shoulder': 1e3}, **faults)
    drives = {'shoulder': SeriesElastic(300.0, 0.5), 'elbow': RigidDrive(0.1)}
    plant = ElasticPlant(TWO_LINK, drives, time_step, imperfections=faults)
    plant.reset([0.0, 0.0], theta=[0.0, 0.0])
    return plant


@pytest.mark.every_case
@pytest.mark.parametrize('speed', [1e-3, 0.02, 0.05, 1.0])
def test_dry_friction_falls_with_the_speed(speed):
    h = 1e-5
    plant = single(h, coulomb=1.0, breakaway=3.0)
    plant.reset([0.0, 0.0], theta=[0.0, 0.0], thetad=[-speed, 0.0])
    plant.step([0.0, 0.0])
    expected = 1.0 + 2.0 * np.exp(-((speed / 0.01) ** 2))
    assert 0.5 * (plant.thetad[0] + speed) / h == pytest.approx(expected, rel=0.03)


def test_other_springs_have_errors_and_backlash_too():
    plant = ElasticPlant(
        TWO_LINK,
        {'elbow': SeriesElastic(CubicSpring(300.0, 5e3), 0.2)},
        imperfections=Imperfections(stiffness_error=0.2, backlash=0.02, gear_ratio=10.0),
    )
    plant.reset([0.2, -0.4], theta=[0.2, -0.3])
    expected = 1.2 * (300.0 * 0.09 + 5e3 * 0.09**3)
    np.testing.assert_allclose(plant.spring_torque, [0.0, expected], rtol=1e-12)
    plant.reset([0.2, -0.4])
    weight = plant.weight([0.2, -0.4])
    np.testing.assert_allclose(plant.spring_torque[1], weight[1], rtol=1e-9)
    assert max(np.abs(a).max() for a in plant.acceleration(weight)) < 1e-9


def test_values_come_by_joint_and_for_all_others():
    tables = {'': {'coulomb': 1.0}, 'elbow': {'coulomb': 4.0}, 'tool': {'payload': 1.5}}
    made = Imperfections.from_tables(tables)
    assert made.of('coulomb', TWO_LINK.joint_names).tolist() == [1.0, 4.0]
    assert made.of('backlash', TWO_LINK.joint_names).tolist() == [0.0, 0.0]
    assert made.payload == {'tool': 1.5}


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('given', 'error', 'message'),
    [
        ({'stiffness_error': -1.0}, SimulationError, 'expected a finite number above -1'),
        ({'coulomb': {'elbow': np.nan}}, SimulationError, "coulomb of 'elbow' is nan"),
        ({'payload': 1.0}, SimulationError, 'expected a mapping of link names'),
        ({'coulomb': {'wrist': 1.0}}, JointNameError, "is given for 'wrist', expected"),
        ({'payload': {'hand': 1.0}}, ModelError, 'hand'),
        (
            {'backlash': {'shoulder': 1.0}},
            SimulationError,
            "'shoulder', expected one of the joints that can have it: none",
        ),
    ],
)
def test_imperfections_that_cannot_be_are_refused(given, error, message):
    drives = {'elbow': VariableStiffness(Qbmove(6.7, 0.3), 0.02)}
    with pytest.raises(error, match=message):
        ElasticPlant(TWO_LINK, drives, imperfections=Imperfections(**given))
