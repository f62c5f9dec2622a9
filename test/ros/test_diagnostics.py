"""Diagnostics: what is counted, which level it has, and for how long."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from hodyn_msgs.msg import JointEffort, JointMotion
from hypothesis import given
from hypothesis import strategies as st
from rclpy.node import Node
from support import robots
from support.ros_harness import Harness, dict_of

from hodyn_ros import RobotModel
from hodyn_ros.errors import JointNameError, MotionError, SizeError, StaleError
from hodyn_ros.ros.base import qos
from hodyn_ros.ros.base.diagnostics import Diagnostics, publisher_names
from hodyn_ros.streams.health import (
    LOST,
    MISSED,
    REFUSALS,
    Cause,
    Health,
    ProcessHealth,
    refusal_kind,
)
from hodyn_ros.streams.process_watch import resident_memory
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


def test_message_says_what_happened_last_and_how_often(station):
    station.diagnostics.received('joint_motion')
    for number in range(3):
        station.diagnostics.refused('joint_motion', f'reason {number}')
    for _ in range(3):
        status = station.after(1.0)['joint_motion']
        assert (status.level, status.message) == (
            WARN,
            'input was refused: reason 2 (3 times)',
        )
    status = station.after(1.0)['joint_motion']
    assert (status.level, status.message) == (OK, 'input is taken')


LEVELS = st.sampled_from([OK, WARN, ERROR])
STEPS = st.lists(st.tuples(st.floats(0.01, 5.0), st.none() | LEVELS), max_size=40)


@given(STEPS)
def test_level_is_that_of_the_causes_and_falls_only_after_a_quiet_time(steps):
    health, time, worst, until = Health(), 0.0, OK, 0.0
    for step, level in steps:
        time += step
        causes = [] if level is None else [Cause(level, 'text')]
        reported, _ = health.level(causes, time, 'fine')
        # OK, WARN and ERROR are in the order of their numbers.
        held = worst if time < until else OK
        assert reported == max(held, level or OK)
        if level is not None and level >= held:
            worst, until = level, time + 3.0


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


def test_input_is_not_stale_before_its_timeout(station):
    stream(station, timeout=5.0)
    assert station.after(4.9)['joint_motion'].level == OK
    assert station.after(0.2)['joint_motion'].level == STALE


def test_slow_input_is_not_stale_between_two_messages(station):
    stream(station, rate=0.5, timeout=0.5)
    assert station.after(2.0)['joint_motion'].level == OK
    assert station.after(10.0)['joint_motion'].level == OK
    assert station.after(20.0)['joint_motion'].level == STALE


def test_pauses_that_are_usual_are_not_silence(station):
    station.diagnostics.input('joint_motion').timeout = 0.1
    for _ in range(10):
        station.receive('joint_motion', 4, 0.001)
        station.receive('joint_motion', 1, 1.0)
    assert station.after(2.5)['joint_motion'].level == OK


def test_single_messages_and_unwatched_inputs_are_never_stale(station):
    station.diagnostics.input('joint_motion').timeout = 0.5
    station.receive('joint_motion', 3, 0.01)
    station.receive('joint_trajectory', 50, 0.01)
    station.diagnostics.input('wrench_motion').timeout = 0.0
    station.receive('wrench_motion', 50, 0.01)
    statuses = station.after(60.0)
    for topic in ('joint_motion', 'joint_trajectory', 'wrench_motion'):
        assert statuses[topic].level == OK


def test_input_that_is_refused_is_not_silent(station):
    stream(station)
    station.after(0.01)
    for _ in range(100):
        station.time += 0.01
        station.diagnostics.refused('joint_motion', 'no')
    assert station.after(0.01)['joint_motion'].level == ERROR
    status = [station.after(4.0)['joint_motion'] for _ in range(3)][-1]
    assert status.level == STALE
    assert status.message.startswith('silent for 12.0 s')


def test_input_may_return_with_another_rate(station):
    stream(station)
    assert station.after(60.0)['joint_motion'].level == STALE
    for _ in range(5):
        station.diagnostics.received('joint_motion')
        assert station.after(2.0)['joint_motion'].level != STALE


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


@pytest.mark.parametrize(
    ('feed', 'message'),
    [
        (lambda d: d.dropped('joint_states', 5), 'samples came too late (5 times)'),
        (lambda d: d.input('joint_states').add('gaps'), 'there was a gap between samples'),
    ],
)
def test_lost_samples_are_worth_a_warning(station, feed, message):
    feed(station.diagnostics)
    status = station.after(1.0)['joint_states']
    assert (status.level, status.message) == (WARN, message)


def test_lateness_is_that_of_the_latest_interval(station):
    for number in range(1, 201):
        station.diagnostics.input('joint_motion').arrived(10**6 * number, 0, False)
    values = dict_of(station.after(1.0)['joint_motion'])
    late = values['lateness p50 [ms]'], values['lateness p99 [ms]']
    assert late == ('100.000', '198.000')
    station.diagnostics.input('joint_motion').arrived(250_000_000, 0, False)
    values = dict_of(station.after(1.0)['joint_motion'])
    assert (values['lateness p50 [ms]'], values['lateness p99 [ms]']) == (
        '250.000',
        '250.000',
    )
    values = dict_of(station.after(1.0)['joint_motion'])
    assert (values['lateness p50 [ms]'], values['lateness p99 [ms]']) == ('', '')


@pytest.mark.parametrize(
    ('arrived', 'left_out', 'level'), [(990, 10, OK), (989, 11, WARN), (1, 999, WARN)]
)
def test_samples_left_out_are_worth_a_warning_if_they_are_many(
    station, arrived, left_out, level
):
    for number in range(arrived):
        station.diagnostics.input('joint_motion').arrived(
            0, left_out * (number == 0), False
        )
    status = station.after(1.0)['joint_motion']
    assert status.level == level
    assert dict_of(status)['left out'] == str(left_out)
    assert ('left out' in status.message) == (level == WARN)
    # It was in the interval before.
    station.diagnostics.input('joint_motion').arrived(0, 0, False)
    assert dict_of(station.after(60.0)['joint_motion'])['left out'] == str(left_out)
    assert [station.after(60.0)['joint_motion'].level for _ in range(3)][-1] == OK


def test_samples_that_the_middleware_has_lost_are_worth_a_warning(station):
    station.diagnostics.input('wrench').add(LOST, 2)
    status = station.after(1.0)['wrench']
    assert (status.level, status.message) == (
        WARN,
        'samples were lost by the middleware (2 times)',
    )
    assert dict_of(status)['lost by the middleware'] == '2'


@pytest.mark.parametrize(
    ('error', 'kind'),
    [
        (JointNameError('x'), 'unknown joints'),
        (MotionError('x'), 'invalid'),
        (SizeError('x'), 'too large'),
        (StaleError('x'), 'stale'),
        (ValueError('x'), 'internal'),
        (MemoryError(), 'internal'),
    ],
)
def test_errors_have_kinds(error, kind):
    assert refusal_kind(error) == kind


# Publishers


def test_two_publishers_on_one_input_are_named(station):
    station.diagnostics.input('joint_motion').publishers = ['/planner', '/teleop']
    status = station.after(1.0)['joint_motion']
    assert status.level == WARN
    assert status.message == '2 publishers on joint_motion: /planner, /teleop'
    assert dict_of(status)['publishers'] == '/planner /teleop'
    station.diagnostics.input('joint_motion').publishers = ['/planner']
    assert [station.after(1.0)['joint_motion'].level for _ in range(3)] == [WARN, WARN, OK]


def test_refusals_are_worse_than_two_publishers(station):
    station.diagnostics.input('joint_motion').publishers = ['/planner', '/teleop']
    station.diagnostics.refused('joint_motion', 'no')
    status = station.after(1.0)['joint_motion']
    assert (status.level, status.message) == (ERROR, 'input was refused: no')


# Output


def test_output_is_counted_and_timed(station):
    for compute_time in (0.001, 0.003):
        station.diagnostics.output.published(compute_time, [])
    status = station.after(0.5)['joint_effort']
    values = dict_of(status)
    assert (status.level, status.message) == (OK, 'ok')
    assert (values['published'], values['rate [Hz]']) == ('2', '4.0')
    assert values['mean compute time [ms]'] == '2.000'
    assert values['longest compute time [ms]'] == '3.000'
    values = dict_of(station.after(0.5)['joint_effort'])
    assert (values['published'], values['rate [Hz]']) == ('2', '0.0')
    assert values['longest compute time [ms]'] == '0.000'


def test_output_has_the_age_of_its_stamps_and_their_period(station):
    assert 'longest age [ms]' not in dict_of(station.after(0.5)['joint_effort'])
    for stamp, sent in ((100, 103), (108, 110), (112, 113)):
        station.diagnostics.output.published(0.0, (), stamp * 10**6, sent * 10**6)
    values = dict_of(station.after(0.5)['joint_effort'])
    assert values['longest age [ms]'] == '3.000'
    assert values['longest period [ms]'] == '8.000'
    # What is sent ahead of its time has a negative age.
    station.diagnostics.output.published(0.0, (), 132 * 10**6, 122 * 10**6)
    values = dict_of(station.after(0.5)['joint_effort'])
    assert values['longest age [ms]'] == '-10.000'
    assert values['longest period [ms]'] == '20.000'


def test_limits_that_are_exceeded_are_counted_by_joint(station):
    station.diagnostics.output.published(0.001, ['jerk of elbow', 'effort of elbow'])
    station.diagnostics.output.published(0.001, ['jerk of elbow'])
    status = station.after(1.0)['joint_effort']
    assert (status.level, status.message) == (WARN, 'limits are exceeded (3 times)')
    assert dict_of(status)['samples beyond the limit of jerk of elbow'] == '2'
    station.diagnostics.output.exceeded({'jerk of elbow': 5})
    status = station.after(1.0)['joint_effort']
    assert status.message == 'limits are exceeded (5 times)'
    assert dict_of(status)['samples beyond the limit of jerk of elbow'] == '7'
    assert dict_of(status)['samples beyond the limit of effort of elbow'] == '1'


def test_output_that_is_held_back_is_an_error_that_stays_for_a_while(station):
    station.diagnostics.output.stopped('the wrench is old')
    station.diagnostics.output.stopped('the wrench is older')
    status = station.after(1.0)['joint_effort']
    assert status.level == ERROR
    assert status.message == 'the output is held back: the wrench is older (2 times)'
    assert dict_of(status)['held back because'] == 'the wrench is older'
    status = station.after(1.0)['joint_effort']
    assert status.level == ERROR
    assert dict_of(status)['held back because'] == ''
    assert dict_of(status)['held back'] == '2'


def test_missed_samples_of_the_stream_are_worth_a_warning(station):
    station.diagnostics.output.add(MISSED, 4)
    status = station.after(1.0)['joint_effort']
    assert status.level == WARN
    assert 'missed (4 times)' in status.message
    assert dict_of(status)['missed samples of the stream'] == '4'


# Model, estimator, planning process, node


def test_model_is_described(station):
    assert station.after(1.0)['model'].level == WARN  # it may be on its way
    assert station.after(5.0)['model'].level == ERROR
    model = RobotModel.from_urdf(robots.TWO_LINK)
    station.robot = Robot(model, None, robots.TWO_LINK)
    status = station.after(1.0)['model']
    # Whether there is a model is no event: the level need not be held.
    assert (status.level, status.message, status.hardware_id) == (OK, 'model loaded', 'arm')
    assert dict_of(status)['joints'] == 'shoulder elbow'


def test_estimator_says_how_far_it_is_to_be_trusted(station):
    assert 'estimator' not in station.after(1.0)
    station.diagnostics.estimate = 3, 0.02, [1e-4, 2.5e-5]
    status = station.after(1.0)['estimator']
    assert status.level == OK
    assert dict_of(status) == {
        'valid order': '3',
        'delay [ms]': '20.000',
        'noise, standard deviation': '0.0001 2.5e-05',
    }


def test_planning_process_is_followed(station):
    assert 'planning' not in station.after(1.0)
    station.diagnostics.process = ProcessHealth('running', 0, '', 42)
    assert station.after(1.0)['planning'].level == OK
    station.diagnostics.process = ProcessHealth('running', 2, 'signal 9', 42)
    status = station.after(1.0)['planning']
    assert status.level == WARN
    assert 'signal 9' in status.message
    assert '(2 times)' in status.message
    assert dict_of(status)['restarts'] == '2'
    assert dict_of(status)['last exit'] == 'signal 9'
    assert dict_of(status)['memory [MiB]'] == '32.0'
    assert [station.after(1.0)['planning'].level for _ in range(3)] == [WARN, WARN, OK]
    station.diagnostics.process = ProcessHealth('ended', 2, 'exit code 1', None)
    assert station.after(1.0)['planning'].level == ERROR


def test_planning_process_that_hangs_is_an_error_and_what_waits_is_counted(station):
    station.diagnostics.process = ProcessHealth('silent', 0, '', 42, silence=3.21)
    station.diagnostics.waiting_trajectories = 2, 1.5
    status = station.after(1.0)['planning']
    assert status.level == ERROR
    assert status.message == 'planning does not answer since 3.2 s'
    assert dict_of(status)['waiting trajectories'] == '2'
    assert dict_of(status)['longest wait of a trajectory [s]'] == '1.5'


def test_full_queue_is_worth_a_warning(station):
    station.diagnostics.waiting = 3, 8
    status = station.after(1.0)['planning']
    assert status.level == OK
    assert dict_of(status) == {'waiting requests': '3', 'most waiting requests': '8'}
    station.diagnostics.waiting = 8, 8
    status = station.after(1.0)['planning']
    assert (status.level, status.message) == (WARN, '8 requests wait, no more are taken')


def test_clock_memory_and_time_jumps_are_reported(station):
    station.diagnostics.use_sim_time = True
    status = station.after(1.0)['node']
    assert status.level == OK
    assert dict_of(status) == {
        'memory [MiB]': '64.0',
        'use_sim_time': 'true',
        'time jumps': '0',
    }
    station.diagnostics.time_jumped()
    status = station.after(1.0)['node']
    assert (status.level, dict_of(status)['time jumps']) == (WARN, '1')


def test_memory_is_that_of_the_process():
    before = float(resident_memory())
    block = bytearray(b'x' * (64 * 2**20))
    assert float(resident_memory()) - before > 32
    del block
    process = subprocess.Popen(
        [sys.executable, '-c', 'print(1, flush=True); input()'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    assert 1 < float(resident_memory(process.pid)) < float(resident_memory())
    process.communicate(b'\n')
    assert resident_memory(process.pid) == ''


def test_wrenches_that_act_are_told(station):
    station.diagnostics.wrenches = {'tool': 'wrench_motion, 0.010 s old'}
    values = dict_of(station.after(1.0)['joint_effort'])
    assert values['wrench on tool'].startswith('wrench_motion')
    station.diagnostics.wrenches = {}
    assert 'wrench on tool' not in dict_of(station.after(1.0)['joint_effort'])


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
    names = [f'/{harness.namespace}/client', f'/{harness.namespace}/teleop']
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


def test_node_reports_its_clock_and_memory(harness):
    values = dict_of(harness.status('node', lambda s: True))
    assert values['use_sim_time'] == 'false'
    assert re.fullmatch(r'[1-9]\d*\.\d', values['memory [MiB]'])
