"""How many functions in how many files a message, a call and a command pass."""

import numpy as np
import pytest
from click.testing import CliRunner
from support.walks import walk_of, walking

from hodyn_ros import RobotModel, inverse_dynamics

pytestmark = pytest.mark.filterwarnings('ignore::hodyn_ros.ModelWarning')


@pytest.fixture(scope='module')
def model():
    made = RobotModel.from_urdf('panda')
    made.warm_up()
    return made


def assert_within(walk, functions, files):
    assert 0 < len(walk.functions) <= functions and len(walk.files) <= files, str(walk)


def test_way_of_one_sample(model):
    motion = np.full((5, 7), 0.1)
    assert_within(walk_of(lambda: inverse_dynamics(model, motion)), 2, 2)


def test_way_of_a_batch(model):
    motions = np.full((500, 5, 7), 0.1)
    assert_within(walk_of(lambda: inverse_dynamics(model, motions)), 10, 6)


def test_way_of_the_command_that_retimes(tmp_path):
    from hodyn_ros.cli.main import hodyn

    runner = CliRunner()
    made = runner.invoke(hodyn, ['demo', '-o', str(tmp_path)])
    assert made.exit_code == 0, made.output
    arguments = [
        'retime',
        'panda',
        str(tmp_path / 'fast.csv'),
        '-o',
        str(tmp_path / 'out.csv'),
    ]
    arguments += ['--intervals', '8']

    def retime():
        done = runner.invoke(hodyn, arguments)
        assert done.exit_code == 0, done.output

    assert_within(walk_of(retime), 320, 44)


def test_way_of_a_message_to_the_efforts():
    rclpy = pytest.importorskip('rclpy')
    from hodyn_msgs.msg import JointEffort, JointMotion
    from support.ros_harness import next_domain

    from hodyn_ros.resources import share_file
    from hodyn_ros.ros.nodes.hodyn_node import HodynNode

    context = rclpy.context.Context()
    rclpy.init(context=context, domain_id=next_domain())
    description = share_file('urdf/panda.urdf').read_text()
    node = HodynNode(
        context=context,
        parameter_overrides=[
            rclpy.parameter.Parameter('robot_description', value=description),
            rclpy.parameter.Parameter('diagnostics_period', value=3600.0),
        ],
    )
    client = rclpy.create_node('client', context=context)
    answers = []
    client.create_subscription(JointEffort, 'hodyn_node/joint_effort', answers.append, 10)
    publisher = client.create_publisher(JointMotion, 'joint_motion', 10)
    names = [f'panda_joint{number}' for number in range(1, 8)]
    fields = ('position', 'velocity', 'acceleration', 'jerk', 'snap')
    message = JointMotion(joint_names=names, **{field: [0.1] * 7 for field in fields})
    executor = rclpy.executors.SingleThreadedExecutor(context=context)
    executor.add_node(node)
    listener = rclpy.executors.SingleThreadedExecutor(context=context)
    listener.add_node(client)
    try:
        # Until the robot is in use and all that is remembered of a stream is.
        while len(answers) < 3:
            publisher.publish(message)
            executor.spin_once(timeout_sec=0.05)
            listener.spin_once(timeout_sec=0.05)
        walks = []
        for _ in range(5):
            answers.clear()
            publisher.publish(message)
            with walking() as walk:
                while not answers:
                    executor.spin_once(timeout_sec=0.05)
                    listener.spin_once(timeout_sec=0.05)
            walks.append(walk)
    finally:
        client.destroy_node()
        node.destroy_node()
        context.shutdown()
    # A sign of life of the planning process may come between.
    assert_within(min(walks, key=lambda walk: len(walk.functions)), 18, 9)
