"""The tracking law with joints whose stiffness is chosen, on the simulated robot."""

import numpy as np
import pytest
from support.robots import HEAVIER_TWO_LINK, TWO_LINK

pytest.importorskip('mujoco')

from hodyn_ros import RobotModel  # noqa: E402
from hodyn_ros.actuators import Actuators, Qbmove, SeriesElastic, VariableStiffness  # noqa: E402
from hodyn_ros.control import Guards, tracking_controller  # noqa: E402
from hodyn_ros.errors import ControlError  # noqa: E402
from hodyn_ros.simulation.plant import ElasticPlant  # noqa: E402
from hodyn_ros.simulation.sampling import SampledPlant  # noqa: E402
from hodyn_ros.trajectory import fit_spline  # noqa: E402

T = 1e-3
DRIVES = {
    'shoulder': VariableStiffness(Qbmove(6.0, 20.0), 0.2),
    'elbow': SeriesElastic(300.0, 0.1),
}
MOTION = fit_spline([0.0, 1.0], [[0.3, -0.4], [0.8, 0.1]])
LOW, HIGH = 300.0, 500.0  # N m/rad


def stiffness_at(time):
    """Stiffness and two derivatives, which rises during the motion."""
    s = np.clip(time, 0.0, 1.0)
    rise = [
        s**3 * (10 - 15 * s + 6 * s**2),
        30 * s**2 * (1 - s) ** 2,
        60 * s * (1 - s) * (1 - 2 * s),
    ]
    return {'shoulder': (HIGH - LOW) * np.array(rise) + [LOW, 0.0, 0.0]}


def errors(urdf):
    """Errors of the links (N, 2) and of the stiffness at the end."""
    model = RobotModel.from_urdf(TWO_LINK)
    law = tracking_controller(Actuators(model, DRIVES), T, torque_limits=np.inf)
    plant = ElasticPlant(RobotModel.from_urdf(urdf), DRIVES)
    start = MOTION(0.0)[0]
    robot = SampledPlant(plant, T)
    robot.reset(start, theta=law.resting(start, stiffness_at(0.0)))
    found = []
    for k in range(2500):
        measured = robot.measurement
        time = min(k * T + law.lead, 1.0)
        torque = law.evaluate(
            MOTION(time),
            measured.q,
            None,
            measured.theta,
            None,
            stiffness=stiffness_at(time),
        ).torque
        robot.advance(torque)
        found.append(robot.measurement.q - MOTION(min((k + 1) * T, 1.0))[0])
    last = robot.measurement
    elastic = DRIVES['shoulder'].elastic(last.q[:1], last.theta[:2, None])
    return np.array(found), elastic.stiffness[0] - HIGH


@pytest.mark.parametrize('asked', [1.0, 1e5])
def test_stiffness_that_is_not_possible_gives_way_to_the_nearest(asked):
    model = RobotModel.from_urdf(TWO_LINK)
    shoulder = VariableStiffness(Qbmove(6.0, 20.0, max_deflection=0.3), 0.2)
    drives = {**DRIVES, 'shoulder': shoulder}
    law = tracking_controller(Actuators(model, drives), T, torque_limits=np.inf)
    robot, start = SampledPlant(ElasticPlant(model, drives), T), MOTION(0.0)[0]
    robot.reset(start, theta=law.resting(start, stiffness_at(0.0)))
    for k in range(1500):
        wanted = {'shoulder': np.array([asked, 0.0, 0.0])} if k > 100 else stiffness_at(0.0)
        measured = robot.measurement
        command = law.evaluate(
            MOTION(0.0), measured.q, None, measured.theta, None, stiffness=wanted
        )
        robot.advance(command.torque)
        assert bool(command.remark) == (k > 100)
    assert f'shoulder is to be {asked:.6g}, but can be' in command.remark
    last = robot.measurement
    assert np.abs(last.q - start).max() < 1e-3
    elastic = shoulder.elastic(last.q[:1], last.theta[:2, None])
    lowest, highest = shoulder.stiffness_range(elastic.effort[0])
    expected = 1.1 * lowest if asked < LOW else highest  # where motors can follow
    np.testing.assert_allclose(elastic.stiffness[0], expected, rtol=0.02)


def test_motion_and_stiffness_are_followed():
    motion, stiffness = errors(TWO_LINK)
    assert np.abs(motion).max() < 1e-3
    assert abs(stiffness) < 1.0


def test_a_heavier_robot_is_followed_and_rests_where_it_should():
    motion, stiffness = errors(HEAVIER_TWO_LINK)
    assert np.abs(motion).max() < 0.03
    assert np.abs(motion[-1]).max() < 1e-3
    assert abs(stiffness) < 0.1 * HIGH


def test_motors_of_variable_stiffness_are_held():
    actuators = Actuators(RobotModel.from_urdf(TWO_LINK), DRIVES)
    guards = Guards(reactions={'max_external_torque': 'float'})
    with pytest.raises(ControlError, match='drift apart'):
        tracking_controller(actuators, T, torque_limits=np.inf, guards=guards)
