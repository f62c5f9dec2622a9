"""Laws for interaction on a plant that shares no code with them: touched, pushed, led by hand."""

import numpy as np
import pytest
from support import control_simulation
from support.control_cases import (
    HOME,
    JOINTS,
    MOTOR_INERTIA,
    PANDA,
    PERIOD,
    STIFFNESS,
    TORQUE_LIMITS,
    Condition,
)
from support.control_plant import Plant
from support.interaction_cases import ramped, tip, touch, wall

from hodyn_ros import RobotModel
from hodyn_ros.actuators import (
    Actuators,
    Qbmove,
    SeriesElastic,
    VariableStiffness,
)
from hodyn_ros.control import (
    CartesianImpedance,
    GravityCompensation,
    JointImpedance,
    TorqueControl,
)
from hodyn_ros.errors import ControlError

HOME = np.array(HOME)
AT_HOME = np.vstack([HOME, np.zeros((4, 7))])
# Ratios of stiffness that springs of 1000 and 500 N m/rad leave room for.
STIFFER = np.array([200.0] * 4 + [100.0] * 3)


TIP_STIFFNESS = np.array([20.0, 30.0, 25.0, 400.0, 700.0, 500.0])  # rotations first
GIVEN = {
    JointImpedance: {'stiffness': STIFFER},
    CartesianImpedance: {'stiffness': TIP_STIFFNESS, 'link': 'panda_link8'},
    GravityCompensation: {'damping': 1.0},
}


@pytest.fixture(scope='module')
def panda():
    return control_simulation.panda()


def law(kind, model, rigid=(), **options):
    options = {'torque_limits': TORQUE_LIMITS, **options}
    return kind(control_simulation.drives(model, rigid=rigid), PERIOD, **options)


def held(controller, desired=AT_HOME):
    return lambda t, measured: controller.command(desired, *measured)


def test_links_are_as_stiff_as_demanded_with_some_rigid_joints(panda):
    rigid = (1, 5)
    springs = [None if j in rigid else float(k) for j, k in enumerate(STIFFNESS)]
    plant = Plant(PANDA, JOINTS, springs, MOTOR_INERTIA, limits=TORQUE_LIMITS)
    state = np.zeros((4, 7))
    state[0] = HOME
    plant.torque = plant.weight(HOME)
    compliance = np.array([0.0 if k is None else 1.0 / k for k in springs])
    state[2] = HOME + compliance * plant.torque
    controller = law(JointImpedance, panda, rigid, stiffness=STIFFER)
    run = touch(
        plant,
        held(controller),
        ramped([0, 10.0, 5.0, 1.0, 0, 0]),
        1.5,
        state=state,
        substeps=1,
    )
    pushed = tip(plant, run.states[-1, 0])[1].T @ [0, 10.0, 5.0, 1.0, 0, 0]
    moved = run.states[-1, 0] - HOME
    np.testing.assert_allclose(STIFFER * moved, pushed, atol=0.02 * np.abs(pushed).max())


def test_stretched_arm_is_softer_rather_than_unstable(panda):
    plant, stretched = Condition().plant(), np.array([0.0, 1.2, 0.0, -0.1, 0.0, 1.4, 0.0])
    stiff = np.array([20.0, 20.0, 20.0, 780.0, 780.0, 780.0])
    controller = law(CartesianImpedance, panda, link='panda_link8', stiffness=stiff)
    goal = AT_HOME.copy()
    goal[0] = stretched
    start = plant.at_rest(stretched)
    run = touch(
        plant,
        held(controller, goal),
        ramped([0, 10.0, 0, 0, 0, 0]),
        0.6,
        state=start,
        substeps=1,
    )
    assert run.position[-1, 1] - run.position[0, 1] > 1.1 * 10.0 / 780.0
    assert run.energy.min() > -1e-4
    assert np.abs(run.states[-1, 1]).max() < 0.2


def test_contact_with_a_stiff_wall_comes_to_rest(panda):
    plant = Condition().plant()
    pose, J = tip(plant, HOME)
    goal = AT_HOME.copy()
    goal[0] += np.linalg.pinv(J) @ [0.0, 0.0, -0.05, 0.0, 0.0, 0.0]
    controller = law(JointImpedance, panda, stiffness=STIFFER)
    run = touch(
        plant, held(controller, goal), wall(pose.translation[2] - 0.01), 0.9, substeps=2
    )
    assert run.wrench[:, 2].max() > 10.0
    assert np.all(run.wrench[-300:, 2] > 5.0)
    assert np.ptp(run.wrench[-300:, 2]) < 2.0


@pytest.mark.parametrize(('stiffness', 'feeds_back'), [(-0.2, False), (0.05, True)])
def test_weight_does_not_hang_on_the_springs(panda, stiffness, feeds_back):
    """A robot that is left alone: fed back, their error is taken for weight."""
    plant, controller = (
        Condition(stiffness=stiffness).plant(),
        law(
            GravityCompensation,
            panda,
            damping=0.5,
            feeds_torque_back=feeds_back,
            guards=None,
        ),
    )
    state = plant.at_rest(np.array(HOME))
    for _ in range(1500):
        torque = controller.command(AT_HOME, state[0], None, state[2], None)
        state = plant.hold(state, torque, PERIOD, 1)
    moved = np.abs(state[0] - HOME).max()
    assert moved > 0.3 if feeds_back else moved < 1e-3


def of_joints(panda, **given):
    law(JointImpedance, panda, **given)


def of_tip(panda, **given):
    law(CartesianImpedance, panda, **{**GIVEN[CartesianImpedance], **given})


def aimed(panda, pose):
    law(CartesianImpedance, panda, **GIVEN[CartesianImpedance]).aim(pose)


def of_variable(panda):
    variable = VariableStiffness(Qbmove(a=8.9992, k=0.0019, max_deflection=0.8), 0.1)
    GravityCompensation(Actuators(panda, {JOINTS[0]: variable}), PERIOD, torque_limits=9.0)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ('make', 'given', 'message'),
    [
        (of_joints, {'stiffness': -1.0}, 'without negative'),
        (of_joints, {'stiffness': np.eye(7) + np.eye(7, k=1)}, 'symmetric'),
        (of_joints, {'stiffness': np.nan}, 'finite'),
        (of_joints, {'stiffness': STIFFER, 'damping_ratio': 20.0}, 'sample time permits'),
        (of_tip, {'stiffness': np.ones(7)}, '6 of them'),
        (of_tip, {'stiffness': 1e5}, 'more than the springs'),
        (aimed, {'pose': np.eye(3)}, r'\(4, 4\)'),
        (aimed, {'pose': 2.0 * np.eye(4) - np.diag([0, 0, 0, 1.0])}, 'rotation'),
        (of_variable, {}, 'variable stiffness: use TrackingController'),
    ],
)
def test_bad_arguments_are_refused(panda, make, given, message):
    with pytest.raises(ControlError, match=message):
        make(panda, **given)


def test_torques_at_rest_take_a_list():
    model = RobotModel.from_urdf('two_link')
    law = TorqueControl(Actuators(model, {'elbow': SeriesElastic(2000.0, 0.5)}), 0.001)
    np.testing.assert_array_equal(
        law.at_rest([0.1, 0.2]), law.at_rest(np.array([0.1, 0.2]))
    )
