"""The other nodes as processes, and the launch files: who talks to whom, and what comes of it."""

from __future__ import annotations

import re
import runpy
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from hodyn_msgs.msg import (
    ElasticState,
    JointEffort,
    JointEffortTrajectory,
    JointMotion,
    MotorReference,
)
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from support import robots
from support.messages import (
    FIELDS,
    GRAVITY,
    NAMES,
    joint_motion,
    joint_trajectory,
    samples,
    stamp_of,
    time_of,
)
from support.nodes import LATCHED, Client, Process, dict_of
from support.oracles import PinOracle, taylor_rnea
from trajectory_msgs.msg import JointTrajectory

ROOT = Path(__file__).resolve().parents[2]
PANDA = (ROOT / 'urdf' / 'panda.urdf').read_text(encoding='utf-8')
PANDA_JOINTS = tuple(f'panda_joint{number}' for number in range(1, 8))
STIFFNESS, INERTIA = 2000.0, 0.3
SPRING = {'type': 'sea', 'stiffness': STIFFNESS, 'motor_inertia': INERTIA}
ELASTIC = {
    'robot_description': robots.TWO_LINK,
    'actuators': dict.fromkeys(NAMES, SPRING),
    'diagnostics_period': 0.05,
}


@pytest.fixture
def client():
    made = Client()
    made.keep(DiagnosticArray, '/diagnostics')
    yield made
    made.close()


@pytest.fixture
def run(client):
    """Start executables beside the client; they end in order."""
    made = []

    def start(name, parameters, *arguments):
        made.append(Process(name, client, parameters, *arguments))
        return made[-1]

    yield start
    for process in made:
        process.close()


def state(motion, motor, stamp, names=NAMES):
    message = ElasticState(joint_names=names, position=motion[0], velocity=motion[1])
    message.motor_names = message.joint_names
    message.motor_position, message.motor_velocity = motor[0], motor[1]
    message.header.stamp = time_of(stamp)
    return message


# The robot with elastic joints and its controller


def test_the_controller_takes_a_robot_and_answers_each_measurement_with_torques(
    client, run
):
    given = {'controller': 'feed_forward_2', 'bandwidth': 12.0, 'measurement_timeout': 0.0}
    more = {'max_tracking_error': 100.0, 'without_reference': 'stop'}
    given |= {'actuators': ELASTIC['actuators']}
    run('flatness_controller', {**given, **more})
    measured = client.offer(ElasticState, 'elastic_state')
    reference = client.offer(JointMotion, 'flatness_controller/reference')
    commands = client.keep(JointState, 'flatness_controller/motor_command')
    described = client.offer(String, 'robot_description', LATCHED)
    client.match()
    for xml, reason in (('<robot', 'not XML'), (robots.OTHER_JOINTS, 'unknown joints')):
        described.publish(String(data=xml))
        client.status(
            'flatness_controller',
            'robot_description',
            lambda s, reason=reason: reason in dict_of(s)['last error'],
        )
    described.publish(String(data=robots.TWO_LINK))
    client.status('flatness_controller', 'model', lambda s: s.message == 'model loaded')
    motion = np.array([[0.3, -0.4], [0.1, 0.2], [0.5, -0.6], [2.0, 1.0], [9.0, -7.0]])
    tau = taylor_rnea(robots.TWO_LINK, NAMES, GRAVITY, motion)
    motor = motion[:3] + tau / STIFFNESS
    stamp = 10**9

    def measure(off=0.0):
        nonlocal stamp
        stamp += 1_000_000
        measured.publish(state(motion, motor + off, stamp))

    measure()
    held = client.status(
        'flatness_controller',
        'motor_command',
        lambda s: 'There is no reference' in dict_of(s)['held back because'],
    )
    assert held.level == held.ERROR and not commands
    # A reference that stands still: its torque is known, and what the motor adds if it is off.
    still = np.zeros((5, 2))
    still[0] = motion[0]
    motion = still
    tau = taylor_rnea(robots.TWO_LINK, NAMES, GRAVITY, motion)
    motor = motion[:3] + tau / STIFFNESS
    reference.publish(joint_motion(still, stamp=stamp))

    def answer(off):
        first = stamp

        def find():
            measure(off)
            return [m for m in list(commands) if first < stamp_of(m)]

        return client.wait(find, 'command')[-1]

    command = answer(0.0)
    assert list(command.name) == list(NAMES)
    np.testing.assert_allclose(command.effort, tau[0], rtol=1e-6)
    assert answer(np.array([1e-3, 0.0])).effort[0] < tau[0, 0] - 1e-3  # it pulls back
    count, wrong = len(commands), state(motion, motor, stamp + 1, ('hip', 'knee'))
    measured.publish(wrong)
    refused = client.status(
        'flatness_controller',
        'elastic_state',
        lambda s: 'shoulder, elbow' in str(dict_of(s)),
    )
    assert dict_of(refused)['refused'] != '0' and len(commands) >= count


def test_a_simulated_robot_follows_a_trajectory_under_its_controller(client, run):
    pytest.importorskip('mujoco')
    remapped = ('-r', '~/motor_command:=motor_command', '-r', '/clock:=clock')
    topic = f'/{client.namespace}/elastic_state'
    reliable = {f'qos_overrides.{topic}.subscription.reliability': 'reliable'}
    law = {'controller': 'tracking', 'without_reference': 'hold', 'use_sim_time': True}
    run('flatness_controller', {**ELASTIC, **law, **reliable}, *remapped)
    client.status('flatness_controller', 'model', lambda s: s.message == 'model loaded')
    clock, states = client.keep(Clock, 'clock'), client.keep(JointState, 'joint_states')
    start = {'start_time': 5.0, 'command_timeout': 5.0, 'initial_position.elbow': -0.5}
    run('simulated_robot', {**ELASTIC, **start}, *remapped)
    paths = client.offer(JointTrajectory, 'joint_trajectory')
    client.match()
    client.wait(lambda: len(states) > 20, 'samples')
    np.testing.assert_allclose(states[0].position, [0.0, -0.5], atol=1e-12)
    # From the start time on; the first may have gone by before all had found each other.
    assert 5 * 10**9 <= stamp_of(states[0]) < 10 * 10**9
    goal, sent = np.array([0.4, 0.1]), -np.inf

    def arrived():
        # A law that cannot keep its period on a busy machine stops, until it is sent on.
        nonlocal sent
        if time.monotonic() > sent + 20.0:
            sent = time.monotonic()
            paths.publish(joint_trajectory(((0.2, -0.3), goal), (0.5, 1.0)))
        return np.abs(states[-1].position - goal).max() < 1e-3

    client.wait(arrived, 'the end')
    kept = list(states)  # more may come
    # Until the first command, and no longer, the first sample is sent again and again.
    begin = [stamp_of(m) for m in kept].count(stamp_of(kept[0])) - 1
    kept = kept[begin:]
    stamps = np.array([stamp_of(m) for m in kept])
    assert np.all(np.diff(stamps) == 1_000_000) and len(clock) > 100
    moved = np.array([m.position for m in kept])
    velocity = np.array([m.velocity for m in kept])
    assert np.abs(np.gradient(moved, 1e-3, axis=0) - velocity)[10:-10].max() < 0.02


# Launch files, with stand-ins for launch_ros, which is in no registry


class Kept:
    """Keeps what it is given; the value of an argument is that of a dictionary."""

    def __init__(self, *arguments, **options):
        self.arguments, self.options = arguments, options

    def perform(self, context):
        return context[self.arguments[0]]


CLASSES = {
    'launch': ('LaunchDescription',),
    'launch.actions': (
        *(
            'DeclareLaunchArgument',
            'IncludeLaunchDescription',
            'OpaqueFunction',
            'Shutdown',
        ),
    ),
    'launch.launch_description_sources': ('PythonLaunchDescriptionSource',),
    'launch.substitutions': ('Command', 'LaunchConfiguration'),
    'launch_ros': (),
    'launch_ros.actions': ('Node',),
    'launch_ros.parameter_descriptions': ('ParameterValue',),
}


@pytest.fixture
def launched(monkeypatch):
    """Options of the nodes that a launch file starts with some arguments, by executable."""
    for name, classes in CLASSES.items():
        module = ModuleType(name)
        vars(module).update({item: type(item, (Kept,), {}) for item in classes})
        monkeypatch.setitem(sys.modules, name, module)

    def entities_of(path, values):
        names = runpy.run_path(str(path))
        for item in names['generate_launch_description']().arguments[0]:
            kind = type(item).__name__
            if kind == 'DeclareLaunchArgument':
                assert item.options['description'].endswith('.')
                values.setdefault(item.arguments[0], item.options['default_value'])
            elif kind == 'IncludeLaunchDescription':
                yield from entities_of(item.arguments[0].arguments[0], values)
            else:
                yield from item.options['function'](values) or ()

    def launch(file, **given):
        nodes = list(entities_of(ROOT / 'launch' / file, given))
        return {node.options['executable']: node.options for node in nodes}

    return launch


@pytest.fixture
def begin(run):
    """Start nodes as launch_ros would."""

    def start(options):
        words, values = [], {}
        for item in options['parameters']:
            if isinstance(item, str):
                words += ['--params-file', item]
            else:
                values |= {
                    key: value.arguments[0] if isinstance(value, Kept) else value
                    for key, value in item.items()
                }
        for old, new in options.get('remappings', ()):
            words += ['-r', f'{old}:={new}']
        return run(options['executable'], values, *words)

    return start


def test_the_panda_is_launched_with_a_demonstration_that_has_its_efforts(
    client, launched, begin
):
    nodes = launched('panda.launch.py', demo='true', joint_trajectory='elsewhere')
    assert set(nodes) == {'hodyn_node', 'reference_publisher'}
    stream = client.keep(JointEffort, 'hodyn_node/joint_effort')
    wholes = client.keep(JointEffortTrajectory, 'hodyn_node/effort_trajectory', LATCHED)
    sent = client.keep(JointTrajectory, 'elsewhere')
    for options in nodes.values():
        begin(options)
    client.wait(lambda: sent and wholes and len(stream) > 20, 'efforts')
    whole, oracle = wholes[0], PinOracle(PANDA, PANDA_JOINTS, GRAVITY)
    assert tuple(whole.joint_names) == tuple(stream[0].joint_names) == PANDA_JOINTS
    for motion, effort in list(zip(samples(whole, FIELDS), samples(whole)))[::100]:
        q, v, a = oracle.full(motion)[:3]
        tau = oracle.pin.rnea(oracle.model, oracle.data, oracle.configuration(q), v, a)
        np.testing.assert_allclose(effort[0], tau, rtol=1e-7, atol=1e-7)
    points = sent[0].points
    t = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points]
    rows = np.array([(p.positions, p.velocities, p.accelerations) for p in points])
    moved, rate, bend = rows.swapaxes(0, 1)
    step = np.diff(t)[:, None]
    rise = 0.5 * step * (rate[1:] + rate[:-1]) - step**2 / 12.0 * np.diff(bend, axis=0)
    assert np.ptp(moved, axis=0).min() > 0.05
    np.testing.assert_allclose(np.diff(moved, axis=0), rise, atol=5e-4)
    times = np.array(whole.time_from_start)
    for point in sent[0].points[::20]:
        at = np.abs(
            times - point.time_from_start.sec - 1e-9 * point.time_from_start.nanosec
        )
        np.testing.assert_allclose(
            samples(whole, FIELDS)[at.argmin(), 0], point.positions, atol=1e-6
        )


def test_the_panda_with_elastic_joints_has_references_of_its_motors(
    client, launched, begin
):
    nodes = launched('panda_sea.launch.py', simulation='false', demo='false')
    assert set(nodes) == {'hodyn_node', 'flatness_controller'}
    motors = client.keep(MotorReference, 'hodyn_node/motor_reference')
    motions = client.offer(JointMotion, 'joint_motion')
    begin(nodes['hodyn_node'])
    motion = 0.3 * np.random.default_rng(1).normal(size=(5, 7))
    motion[0] += [0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8]

    def answered():
        motions.publish(joint_motion(motion, PANDA_JOINTS))
        return list(motors)

    message = client.wait(answered, 'references')[-1]
    text = (ROOT / 'config' / 'panda_sea.yaml').read_text()
    stiffness = np.array([float(k) for k in re.findall(r'[^_]stiffness: ([\d.e+]+)', text)])
    tau = taylor_rnea(PANDA, PANDA_JOINTS, GRAVITY, motion)
    assert len(stiffness) == 7
    for order, field in enumerate(('position', 'velocity', 'acceleration')):
        expected = motion[order] + tau[order] / stiffness
        np.testing.assert_allclose(getattr(message, field), expected, rtol=1e-9)
    everything = launched('panda_sea.launch.py', namespace='arm')
    assert {'simulated_robot', 'reference_publisher'} < set(everything)
    clocks = {dict(options['remappings'])['/clock'] for options in everything.values()}
    assert clocks == {'/arm/clock'}


@pytest.mark.parametrize('robot', ['iiwa14', 'fr3', 'ur5e', 'ur10e'])
def test_robots_are_launched_with_their_description_and_limits(launched, robot):
    options = launched(f'{robot}.launch.py')['hodyn_node']
    file, values = options['parameters'][0], options['parameters'][-1]
    assert Path(file).name == f'{robot}.yaml'
    assert f'<robot name="{robot}"' in values['robot_description'].arguments[0]
    assert options['on_exit'] is None
    topics = {'joint_trajectory', 'joint_motion', 'joint_states', 'wrench', 'base_motion'}
    topics.add('speed_scaling')
    assert topics < {old for old, _ in options['remappings']}
    required = launched(f'{robot}.launch.py', required='true')['hodyn_node']
    assert type(required['on_exit']).__name__ == 'Shutdown'


@pytest.mark.parametrize('arm', ['ur5e', 'ur10e', 'ur3'])
@pytest.mark.every_case
def test_arms_of_universal_robots_are_launched_behind_a_proxy(launched, arm):
    nodes = launched('ur.launch.py', ur_type=arm, namespace='left', use_sim_time='true')
    assert set(nodes) == {'hodyn_node', 'trajectory_proxy'}
    assert {options['namespace'] for options in nodes.values()} == {'left'}
    *files, values = nodes['hodyn_node']['parameters']
    assert values.pop('use_sim_time') is True
    # Positions alone, at the speed of the teach pendant.
    assert (values.pop('speed_scaling'), values.pop('command.effort_tolerance')) == (
        True,
        0.0,
    )
    topic = '/speed_scaling_state_broadcaster/speed_scaling'
    assert ('speed_scaling', topic) in nodes['hodyn_node']['remappings']
    if arm == 'ur3':  # the topic has the description
        assert (files, values) == ([], {})
    else:
        assert [Path(file).name for file in files] == [f'{arm}.yaml']
        assert f'<robot name="{arm}"' in values['robot_description'].arguments[0]
    assert nodes['trajectory_proxy']['parameters'] == [
        {
            'use_sim_time': True,
            'controller': 'scaled_joint_trajectory_controller',
            'efforts': False,
        }
    ]
    given = {'ur_type': arm, 'controller': 'other', 'params_file': str(ROOT / 'setup.py')}
    nodes = launched('ur.launch.py', **given)
    assert nodes['trajectory_proxy']['parameters'][0]['controller'] == 'other'
    assert nodes['hodyn_node']['parameters'][0] == given['params_file']
    given = {'speed_scaling': '', 'controller_trajectory': '/other/joint_trajectory'}
    options = launched('ur.launch.py', ur_type=arm, **given)['hodyn_node']
    assert options['parameters'][-1]['speed_scaling'] is False
    topic = given['controller_trajectory']
    assert options['remappings'] == [('~/controller_trajectory', topic)]
    with pytest.raises(RuntimeError, match='which is no file'):
        launched('ur.launch.py', params_file='/no/such')


def test_the_view_is_launched_as_a_command_with_arguments_of_ros_last(launched):
    given = {'config': 'iiwa14', 'serve': 'yes', 'joint_states': '/states'}
    options = launched('view.launch.py', **given)['hodyn']
    expected = ['view', 'panda', '--live', '--config', 'iiwa14', '--serve', '--']
    assert options['arguments'] == expected
    assert ('joint_states', '/states') in options['remappings']


def test_wrong_arguments_end_a_launch_with_a_sentence(launched):
    for file, given, reason in (
        (
            'hodyn.launch.py',
            {'params_file': '/no/such'},
            "params_file is '/no/such', which",
        ),
        ('panda_sea.launch.py', {'limits_file': '/no/such'}, 'which is no file'),
        ('trajectory_proxy.launch.py', {'params_file': '/no/such'}, 'which is no file'),
        ('hodyn.launch.py', {'use_sim_time': 'banana'}, 'expected true, 1, yes'),
        ('panda.launch.py', {'demo': 'maybe'}, "demo is 'maybe', expected"),
        (
            'hodyn.launch.py',
            {'description_file': 'a', 'description_command': 'b'},
            'description_file and description_command are both given',
        ),
    ):
        with pytest.raises(RuntimeError, match=re.escape(reason)):
            launched(file, **given)
