"""Diagnostics: what is counted, which level it has, and for how long."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from hodyn_msgs.msg import JointEffort, JointMotion
from rclpy.node import Node
from support import robots
from support.ros_harness import Harness, dict_of

from hodyn_ros import RobotModel
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.diagnostics import Diagnostics, publisher_names
from hodyn_ros.streams.health import (
    REFUSALS,
    ProcessHealth,
)
from hodyn_ros.streams.robot import Robot

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


def test_level_rises_at_once_and_falls_after_a_quiet_time(station):
    station.diagnostics.received('joint_motion')
    assert station.after(1.0)['joint_motion'].level == OK
    station.diagnostics.received('joint_motion')
    station.diagnostics.refused('joint_motion', 'stamp too old', 'stale')
    assert station.after(1.0)['joint_motion'].level == WARN
    levels = [station.after(1.0)['joint_motion'].level for _ in range(4)]
    assert levels == [WARN, WARN, OK, OK]


# Silence


def stream(station, rate=100.0, count=50, timeout=0.5):
    station.diagnostics.input('joint_motion').timeout = timeout
    station.receive('joint_motion', count, 1.0 / rate)


def test_input_that_stops_is_stale_until_it_returns(station):
    stream(station)
    assert station.after(0.1)['joint_motion'].level == OK
    status = station.after(1.0)['joint_motion']
    assert status.level == STALE
    assert status.message == 'silent for 1.1 s, came at 100 Hz before'
    assert station.after(500.0)['joint_motion'].level == STALE
    stream(station)
    status = station.after(0.1)['joint_motion']
    assert status.level == WARN, 'that it was silent is worth a warning for a while'
    levels = []
    for _ in range(5):
        stream(station, count=100)
        levels.append(station.after(0.1)['joint_motion'].level)
    assert levels == [WARN, WARN, OK, OK, OK]


# Counts


def test_inputs_are_counted_by_what_became_of_them(station):
    station.receive('joint_states', 10, 0.1)
    for number, kind in enumerate(REFUSALS, start=1):
        for _ in range(number):
            station.diagnostics.refused('joint_states', 'reason', kind)
    station.diagnostics.dropped('joint_states', 5)
    station.diagnostics.input('joint_states').add('gaps', 2)
    status = station.after(1.0)['joint_states']
    values = dict_of(status)
    assert (values['received'], values['refused']) == ('10', '21')
    assert [values[f'refused as {kind}'] for kind in REFUSALS] == list('123456')
    assert values['dropped late samples'] == '5'
    assert values['gaps'] == '2'
    assert values['rate [Hz]'] == '5.0'
    assert values['age of the last input [s]'] == '1.000'
    assert values['last error'] == 'reason'


# Publishers


# Output


# Model, estimator, planning process, node


# Documentation


def test_every_status_and_value_is_documented(station):
    text = (ROOT / 'doc' / 'diagnostics.rst').read_text(encoding='utf-8')
    documented = {
        part: set(re.findall(r'^``([^`]+)`` ', rows, re.MULTILINE))
        for part, rows in re.findall(
            r'^``([\w<>]+)``\n-+\n(.*?)(?=^``[\w<>]+``\n-|\Z)',
            text,
            re.MULTILINE | re.DOTALL,
        )
    }
    # Of a part of its own, see test_online_estimation.py.
    assert {'samples', 'outliers'} == documented.pop('identification')
    station.robot = Robot(RobotModel.from_urdf(robots.TWO_LINK), None, robots.TWO_LINK)
    station.diagnostics.received('joint_motion')
    station.diagnostics.estimate = 2, 0.0, []
    station.diagnostics.process = ProcessHealth('running', 0, '', 42)
    station.diagnostics.motors.published(0.0, [])
    station.diagnostics.waiting = 0, 8
    statuses = station.after(1.0)
    statuses['<input>'] = statuses.pop('joint_motion')
    assert set(documented) == set(statuses)
    for part, status in statuses.items():
        assert set(dict_of(status)) <= documented[part], part
        # Some are there only if there is something to say.
        assert len(documented[part] - set(dict_of(status))) <= 5, part


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
