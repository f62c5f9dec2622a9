"""The launch files, run for real where launch_ros is installed (it is not on PyPI)."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import rclpy
from hodyn_msgs.msg import JointEffort
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

pytest.importorskip('launch_ros', reason='launch_ros is part of a ROS installation only')
ament_index = pytest.importorskip('ament_index_python.packages')
try:
    SHARE = Path(ament_index.get_package_share_directory('hodyn_ros'))
    LIB = Path(ament_index.get_package_prefix('hodyn_ros')) / 'lib' / 'hodyn_ros'
except LookupError:
    SHARE = LIB = None
pytestmark = pytest.mark.skipif(
    LIB is None or not LIB.is_dir(),
    reason='hodyn_ros is not installed as a ROS package (colcon build)',
)

TIMEOUT = 30.0  # s
DOMAIN = 101
NODE_ENDED = 'process has finished cleanly'

RUN = """
import sys
from launch import LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource

arguments = [tuple(argument.split(':=', 1)) for argument in sys.argv[2:]]
service = LaunchService()
service.include_launch_description(
    IncludeLaunchDescription(
        AnyLaunchDescriptionSource(sys.argv[1]), launch_arguments=arguments
    )
)
sys.exit(service.run())
"""


@pytest.fixture
def first_effort():
    """Launch a file and return the first message on a topic, the exit code and the output."""

    def run(file, topic, *arguments):
        process = subprocess.Popen(
            [sys.executable, '-c', RUN, str(SHARE / 'launch' / file), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, 'ROS_DOMAIN_ID': str(DOMAIN)},
        )
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(process.stdout))
        reader.start()
        context, messages = Context(), []
        rclpy.init(context=context, domain_id=DOMAIN)
        node = Node('listener', context=context)
        node.create_subscription(JointEffort, topic, messages.append, 10)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        deadline = time.monotonic() + TIMEOUT
        try:
            while not messages and time.monotonic() < deadline and process.poll() is None:
                executor.spin_once(timeout_sec=0.1)
        finally:
            node.destroy_node()
            rclpy.shutdown(context=context)
            process.send_signal(signal.SIGINT)
            process.wait(TIMEOUT)
            reader.join(TIMEOUT)
        output = ''.join(lines)
        assert messages, output
        return messages[0], output

    return run


def test_panda_launch_file_with_demo_sends_efforts_and_ends_cleanly(first_effort):
    message, output = first_effort('panda.launch.py', '/hodyn_node/joint_effort', 'demo:=true')
    assert list(message.joint_names) == [f'panda_joint{number}' for number in range(1, 8)]
    assert message.valid_order == 2
    assert output.count(NODE_ENDED) == 2
    assert 'Traceback' not in output


def test_arguments_reach_the_node(first_effort):
    message, output = first_effort(
        'hodyn.launch.py',
        '/arm/hodyn_node/joint_effort',
        'namespace:=arm',
        'demo:=true',
        f'description_command:=cat {SHARE / "urdf" / "panda_with_hand.urdf"}',
        'base_link:=panda_link0',
        'tip_link:=panda_hand',
        f'params_file:={SHARE / "config" / "panda.yaml"}',
        'joint_trajectory:=/controller/joint_trajectory',
        'use_sim_time:=false',
    )
    assert message.header.frame_id == 'panda_link0'
    assert 'finger' not in ' '.join(message.joint_names)
    assert '/controller/joint_trajectory' in output
