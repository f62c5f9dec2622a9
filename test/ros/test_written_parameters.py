"""Files of parameters that identification writes, as nodes read them."""

import pytest
from rclpy.node import Node
from support.output_cases import DRIVES, FRICTION
from support.ros_harness import own_domain

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators
from hodyn_ros.identification import actuator_config, friction_config, write_parameters
from hodyn_ros.ros.base.node_settings import NodeSettings
from hodyn_ros.ros.base.parameters import Parameters
from hodyn_ros.streams.robot import drives_of

MODEL = RobotModel.from_urdf('two_link')


@pytest.fixture(scope='module')
def context():
    with own_domain() as made:
        yield made


def made_from(path, context):
    node = Node(
        'reader',
        context=context,
        cli_args=['--ros-args', '--params-file', str(path)],
        automatically_declare_parameters_from_overrides=True,
    )
    try:
        parameters = Parameters(node, NodeSettings)
        parameters.declare_joints(MODEL.joint_names)
        return parameters.settings
    finally:
        node.destroy_node()


@pytest.mark.parametrize('drive', DRIVES, ids=lambda drive: str(drive)[:60])
def test_a_node_has_the_friction_and_the_actuators_that_are_written(
    drive, context, tmp_path
):
    path = tmp_path / 'robot.yaml'
    model = MODEL.with_friction(FRICTION)
    actuators = actuator_config(Actuators(model, {'elbow': drive}))
    write_parameters(path, {'friction': friction_config(model), 'actuators': actuators})
    settings = made_from(path, context)
    assert settings.friction_laws() == FRICTION
    assert drives_of(model, settings.actuators).actuators['elbow'] == drive


def test_friction_that_is_not_complete_at_the_start_is_refused(context, tmp_path):
    path = tmp_path / 'robot.yaml'
    write_parameters(path, {'friction': {'elbow': {'phi1': 0.5, 'phi2': 5.0}}})
    with pytest.raises(
        ValueError, match='friction.elbow: phi3 must be set, too, with phi1, phi2'
    ):
        made_from(path, context)
