"""Diagnostics: counts, levels and silence of inputs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from hodyn_msgs.msg import JointEffort, JointMotion
from rclpy.context import Context
from rclpy.node import Node
from std_msgs.msg import String
from support import robots
from support.ros_harness import Harness, dict_of

from hodyn_ros import RobotModel
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.diagnostics import Diagnostics, publisher_names
from hodyn_ros.streams.health import StreamHealth
from hodyn_ros.streams.process_watch import ProcessWatch
from hodyn_ros.streams.robot_in_use import Robot

ROOT = Path(__file__).resolve().parents[2]

OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
ERROR, STALE = DiagnosticStatus.ERROR, DiagnosticStatus.STALE

MEMORY = {None: '64.0', 42: '32.0'}


class Station:
    """Diagnostics with a time that a test sets."""

    def __init__(self, **options):
        self.time = 100.0
        self.diagnostics = Diagnostics(
            '/arm/hodyn_node', clock=lambda: self.time, memory=MEMORY.get, **options
        )
        self.robot = None

    def after(self, seconds):
        """Report after some time; return the statuses by the name of their part."""
        self.time += seconds
        statuses = self.diagnostics.report(self.robot, '', False, {})
        start = 'arm/hodyn_node: '
        assert all(status.name.startswith(start) for status in statuses)
        return {status.name.removeprefix(start): status for status in statuses}

    def receive(self, topic, count, interval):
        for _ in range(count):
            self.time += interval
            self.diagnostics.received(topic)


@pytest.fixture
def station():
    return Station()


# Levels


def test_level_is_that_of_the_time_since_the_report_before(station):
    station.diagnostics.received('joint_motion')
    assert station.after(1.0)['joint_motion'].level == OK
    station.diagnostics.received('joint_motion')
    station.diagnostics.refused('joint_motion', 'stamp too old')
    assert station.after(1.0)['joint_motion'].level == WARN
    status = station.after(1.0)['joint_motion']
    assert (status.level, dict_of(status)['last error']) == (OK, 'stamp too old')
    station.diagnostics.refused('joint_motion', 'stamp too old')
    assert station.after(1.0)['joint_motion'].level == ERROR, 'nothing else came'


# Silence


def stream(station, rate=100.0, count=50, timeout=0.5):
    station.diagnostics.input('joint_motion').timeout = timeout
    station.receive('joint_motion', count, 1.0 / rate)


def test_input_that_stops_is_stale_until_it_returns(station):
    stream(station)
    assert station.after(0.1)['joint_motion'].level == OK
    status = station.after(1.0)['joint_motion']
    assert status.level == STALE
    assert status.message == 'silent for 1.1 s'
    assert station.after(500.0)['joint_motion'].level == STALE
    stream(station)
    assert station.after(0.1)['joint_motion'].level == OK
    station.receive('joint_motion', 8, 0.6)
    assert station.after(100.0)['joint_motion'].level == OK, 'single messages are no stream'


# Counts


def test_inputs_are_counted_by_what_became_of_them(station):
    station.receive('joint_states', 10, 0.1)
    for _ in range(21):
        station.diagnostics.refused('joint_states', 'reason')
    station.diagnostics.dropped('joint_states', 5)
    station.diagnostics.input('joint_states').add('gaps', 2)
    status = station.after(1.0)['joint_states']
    values = dict_of(status)
    assert (values['received'], values['refused']) == ('10', '21')
    assert values['dropped late samples'] == '5'
    assert values['gaps'] == '2'
    assert values['rate [Hz]'] == '5.0'
    assert values['age of the last input [s]'] == '1.000'
    assert values['last error'] == 'reason'


# Documentation


def test_every_status_and_value_is_documented(station):
    text = (ROOT / 'doc' / 'node_reference.rst').read_text(encoding='utf-8')
    documented = {
        part: set(
            re.findall(r'``([^`]+)``', ' '.join(re.findall(r'^- (.+?):', rows, re.M)))
        )
        for part, rows in re.findall(
            r'^``([\w<>]+)``\n~+\n(.*?)(?=^``[\w<>]+``\n~|^Messages)',
            text,
            re.MULTILINE | re.DOTALL,
        )
    }
    # Of a part of its own, see test_online_estimation.py.
    assert {'samples', 'outliers'} == documented.pop('identification')
    station.robot = Robot(RobotModel.from_urdf(robots.TWO_LINK), None, robots.TWO_LINK)
    station.diagnostics.received('joint_motion')
    station.diagnostics.estimate = 2, 0.0, []
    station.diagnostics.process = ProcessWatch()
    station.diagnostics.process.begin(0.0, 1.0, 42)
    station.diagnostics.stream = lambda: StreamHealth('idle', '', 0.0, 0, 0.0)
    station.diagnostics.motors.published()
    station.diagnostics.waiting = 0, 8
    statuses = station.after(1.0)
    statuses['<input>'] = statuses.pop('joint_motion')
    assert set(documented) == set(statuses)
    for part, status in statuses.items():
        assert set(dict_of(status)) <= documented[part], part
        # Some are there only if there is something to say.
        assert len(documented[part] - set(dict_of(status))) <= 7, part


# The real node


@pytest.fixture
def harness():
    made = Harness({'robot_description': robots.TWO_LINK})
    yield made
    made.close()


def test_node_names_two_publishers_of_an_input(harness):
    def seen():
        return [name for name in publisher_names(harness.node, 'joint_motion')]

    second = Node('teleop', context=harness.context, namespace=harness.namespace)
    qos.create_publisher(second, JointMotion, 'joint_motion', qos.OUTPUT)
    names = [harness.client.get_fully_qualified_name(), f'/{harness.namespace}/teleop']
    harness.wait(lambda: seen() == names, 'publishers')
    status = harness.status('joint_motion', lambda s: s.message.startswith('2 publishers'))
    assert status.level == WARN
    assert status.message == f'2 publishers on joint_motion: {", ".join(names)}'
    second.destroy_node()


def test_node_warns_of_another_one_of_its_name(harness, capfd):
    name = f'/{harness.namespace}/hodyn_node'
    harness.status('node', lambda s: s.message == 'ok')
    assert name not in capfd.readouterr().err
    second = Node('hodyn_node', context=harness.context, namespace=harness.namespace)
    qos.create_publisher(second, JointEffort, '~/joint_effort', qos.OUTPUT)
    status = harness.status('node', lambda s: '1 more of this name' in s.message)
    assert status.level == WARN
    log = capfd.readouterr().err
    assert log.count(f'another node {name}: each input is answered by both') == 1
    second.destroy_node()
    harness.forget()
    harness.status('node', lambda s: 'of this name' not in s.message)


def test_publishers_that_do_not_fit_are_named_with_the_reason(harness):
    context = Context()  # a process has one type for each topic
    rclpy.init(context=context, domain_id=harness.context.get_domain_id())
    other = Node('other', context=context, namespace=harness.namespace)
    start = f'/{harness.namespace}/other publishes /{harness.namespace}/'
    try:
        other.create_publisher(JointMotion, 'joint_motion', qos.SENSOR_INPUT)
        # The client of the harness publishes the same topic and is heard.
        status = harness.status('joint_motion', lambda s: 'unheard' in s.message)
        assert (status.level, status.message) == (
            WARN,
            f'{start}joint_motion unheard: Best effort publisher and reliable subscription',
        )
        other.create_publisher(String, 'wrench', 10)
        status = harness.status('wrench', lambda s: 'unheard' in s.message)
        assert status.message == (
            f'{start}wrench unheard: it sends std_msgs/msg/String, expected '
            'geometry_msgs/msg/WrenchStamped'
        )
    finally:
        other.destroy_node()
        rclpy.shutdown(context=context)
