"""Launch files where launch_ros is installed, which is in no registry; see also the contract."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hodyn_msgs.msg import JointEffort
from support.nodes import TIMEOUT, Client

try:
    import launch_ros  # noqa: F401
    from ament_index_python.packages import get_package_prefix, get_package_share_directory

    SHARE = Path(get_package_share_directory('hodyn_ros'))
    LIB = Path(get_package_prefix('hodyn_ros')) / 'lib' / 'hodyn_ros'
except (ImportError, LookupError):
    SHARE = LIB = None
for_real = pytest.mark.skipif(
    LIB is None or not LIB.is_dir(),
    reason='needs launch_ros and hodyn_ros installed as a ROS package (colcon build)',
)

DOMAIN = 101

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
        client = Client(DOMAIN, 'listener')
        messages = client.keep(JointEffort, topic)
        try:
            client.wait(lambda: messages or process.poll() is not None, 'efforts')
        finally:
            client.close()
            process.send_signal(signal.SIGINT)
            process.wait(TIMEOUT)
            reader.join(TIMEOUT)
        output = ''.join(lines)
        assert messages, output
        return messages[0], output

    return run


@for_real
def test_arguments_reach_the_node(first_effort):
    message, output = first_effort(
        'panda.launch.py',
        '/arm/hodyn_node/joint_effort',
        'namespace:=arm',
        'demo:=true',
        'description_file:=',
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


@for_real
@pytest.mark.parametrize(
    'file', ['hodyn.launch.py', 'panda.launch.py', 'panda_sea.launch.py']
)
def test_parameter_file_that_does_not_exist_ends_the_launch_with_a_sentence(file):
    done = subprocess.run(
        [
            sys.executable,
            '-c',
            RUN,
            str(SHARE / 'launch' / file),
            'params_file:=/no/such.yaml',
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, 'ROS_DOMAIN_ID': str(DOMAIN)},
    )
    assert done.returncode != 0
    assert "params_file is '/no/such.yaml', which is no file" in done.stderr + done.stdout
    assert 'process started' not in done.stderr + done.stdout
