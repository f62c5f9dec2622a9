"""What a running node publishes arrives in the view of it, with a recording that is read back."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hodyn_msgs.msg import JointEffort
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from support import robots
from support.messages import rows, time_of
from support.rerun_files import pose_of, read_recording
from support.ros_harness import TIMEOUT, Harness, own_domain

from hodyn_ros import RobotModel
from hodyn_ros.model import motion_limits
from hodyn_ros.plotting.scene import Scene, moving_bodies
from hodyn_ros.ros.nodes.live_view import LiveView

pytest.importorskip('rerun', reason='Rerun (PyPI: rerun-sdk) is not installed')
pytestmark = pytest.mark.filterwarnings('ignore:Python 3.10:DeprecationWarning')

MODEL = RobotModel.from_urdf(robots.TWO_LINK)
PERIOD = 10_000_000  # of measurements [ns]
EFFORTS = 'hodyn_node/joint_effort'


class Viewed:
    """A node of a robot, and a view of it that is recorded into a file."""

    def __init__(self, path, urdf, model, **parameters):
        self.path, self.model = path, model
        self.harness = Harness({'input_timeout': 0.0, **parameters})
        self.harness.advertise(JointState, 'joint_states')
        self.harness.describe_and_wait(urdf)
        limits = motion_limits(model, {model.joint_names[1]: {'effort_dot': 30.0}})
        scene = Scene(model, limits, is_live=True)
        scene.recording.save(path)
        self.recording = scene.recording
        self.efforts, self.position = 0, []  # number, and the latest, that are recorded
        record = scene.record

        def counted(name, results):
            record(name, results)
            self.efforts += int(np.isfinite(results.effort[:, 0, 0]).sum())
            known = results.motion[np.isfinite(results.motion[:, 0, 0]), 0]
            self.position = [*self.position, *known.tolist()][-1:]

        scene.record = counted
        names = {'context': self.harness.context, 'namespace': self.harness.namespace}
        view = LiveView(scene, 0.05, **names)
        self.harness.spin(view, SingleThreadedExecutor)
        publishers = [*self.harness.node.publishers, *self.harness.client.publishers]
        nodes = self.harness.node, self.harness.client, view
        topics = [item.topic_name for node in nodes for item in node.subscriptions]
        for subscription in view.subscriptions:
            self.harness.wait(subscription.get_publisher_count, 'a publisher')
            for publisher in publishers:
                if publisher.topic_name == (topic := subscription.topic_name):
                    ready = publisher.get_subscription_count
                    count = topics.count(topic)
                    self.harness.wait(
                        lambda ready=ready, count=count: ready() == count, f'match {topic}'
                    )

    def measure(self, positions, stamp):
        message = JointState(name=list(self.model.joint_names), position=list(positions))
        message.header.stamp = time_of(stamp)
        self.harness.publishers['joint_states'].publish(message)

    def entities(self, position):
        """End all nodes once efforts and the latest position are recorded, and read the file."""
        sent = self.harness.messages[EFFORTS]
        self.harness.wait(
            lambda: (
                self.efforts >= len(sent)
                and self.position
                and np.allclose(self.position, position)
            ),
            'the recording',
        )
        self.harness.close()
        self.recording.disconnect()
        return read_recording(self.path)


@pytest.fixture
def viewed(tmp_path):
    made = []

    def make(urdf=robots.TWO_LINK, model=MODEL, **parameters):
        made.append(Viewed(tmp_path / 'live.rrd', urdf, model, **parameters))
        return made[-1]

    yield make


def efforts_of(entities, name, model, orders=3):
    """Efforts with their derivatives (N, 3, n) that were recorded."""
    quantities = ('effort', 'effort_dot', 'effort_ddot')[:orders]
    return np.array(
        [
            [
                np.ravel(entities[f'/{name}/{quantity}/{joint}']['Scalars:scalars'])
                for joint in model.joint_names
            ]
            for quantity in quantities
        ]
    ).transpose(2, 0, 1)


def positions_of(entities, name, model):
    """Poses (N, 4, 4) of the last body, and their times."""
    entity = entities[f'/{name}/bodies/{model.joint_names[-1]}']
    return pose_of(entity), entity['time']


def last_body(model, positions):
    return moving_bodies(model, np.atleast_2d(positions)).poses[-1]


def test_measured_states_move_the_robot_and_have_estimated_efforts(viewed):
    seen = viewed()
    measured, states = seen.harness.messages[EFFORTS], []
    stamp = seen.harness.client.get_clock().now().nanoseconds
    while len(measured) < 20:
        stamp += PERIOD
        angle = np.sin(1e-9 * PERIOD * len(states))
        states.append([0.5 * angle, -0.3 * angle])
        seen.measure(states[-1], stamp)
        time.sleep(1e-9 * PERIOD)
        assert len(states) < 10_000
    assert {item.source for item in measured} == {JointEffort.SOURCE_JOINT_STATES}
    entities = seen.entities(states[-1])
    answers = {tuple(rows(message)[0]) for message in measured}
    poses, times = positions_of(entities, 'measured', MODEL)
    np.testing.assert_allclose(poses[-1], last_body(MODEL, states[-1])[0], atol=3e-7)
    assert len(times) > 10 and (np.diff(times) > 0.0).all()
    recorded = efforts_of(entities, 'measured', MODEL, 1)
    assert answers == {tuple(row[0]) for row in recorded}
    assert '/measured/acceleration/elbow' in entities
    assert '/planned' not in entities


def hodyn(folder, *arguments, domain=0):
    """Start the command in a folder, without a display."""
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(domain)}
    for name in ('DISPLAY', 'WAYLAND_DISPLAY'):
        environment.pop(name, None)
    command = [sys.executable, '-m', 'hodyn_ros.cli.main', 'view', *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_the_command_records_until_it_is_interrupted(tmp_path):
    of_ros = '--ros-args', '-r', '__ns:=/left', '-r', 'joint_states:=/states'
    with own_domain() as context:
        domain = context.get_domain_id()
        process = hodyn(tmp_path, 'two_link', '--live', '--', *of_ros, domain=domain)
        peer = Node('peer', context=context)
        topics = '/states', '/left/hodyn_node/joint_effort'
        while process.poll() is None and not all(map(peer.count_subscribers, topics)):
            time.sleep(0.05)
        peer.destroy_node()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, err
    recording, written = out.decode().splitlines()
    (path,) = tmp_path.iterdir()
    assert recording == f'Recording until Ctrl-C: {path.name}'
    assert written.startswith(f'Written: {path.name};')
