"""How nodes begin and end: signals while they are imported, and the profile of the middleware."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.ros_harness import TIMEOUT, next_domain

from hodyn_ros.ros.base import life as base

CHOICES = (
    'RMW_FASTRTPS_USE_QOS_FROM_XML',
    'RMW_FASTRTPS_PUBLICATION_MODE',
    'FASTDDS_DEFAULT_PROFILES_FILE',
    'FASTRTPS_DEFAULT_PROFILES_FILE',
)
BIG = 3_000_000
WAITING = 40
# In every round another one of the messages that wait is large.
PROGRAM = f"""
import os, rclpy, sys, time
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import String
from hodyn_ros.ros.base.life import bound_memory

def memory():
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')

rclpy.init()
used = bound_memory() if sys.argv[1] == 'ours' else None
node, lengths = Node('sizes'), []
node.create_subscription(String, 'text', lambda m: lengths.append(len(m.data)), 1000)
publisher = node.create_publisher(String, 'text', QoSProfile(depth=1))
while not publisher.get_subscription_count():
    time.sleep(0.01)
begin = memory()
for big in range({WAITING}):
    for number in range({WAITING}):
        publisher.publish(String(data='x' * ({BIG} if number == big else 100)))
    deadline = time.monotonic() + 240.0
    while len(lengths) < {WAITING} * (big + 1) and time.monotonic() < deadline:
        rclpy.spin_once(node, timeout_sec=0.1)
print(used, lengths.count({BIG}), lengths.count(100), memory() - begin)
"""


@pytest.fixture
def unconfigured(monkeypatch, tmp_path):
    """An environment in which nobody has said anything about profiles."""
    for name in CHOICES:
        # Set before it is deleted, so that what a test leaves behind is taken back.
        monkeypatch.setenv(name, '')
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def used_by(profile):
    """What the program prints: profile used, large and small messages, growth of memory."""
    environment = {
        **{k: v for k, v in os.environ.items() if k not in CHOICES},
        'PYTHONPATH': os.pathsep.join(sys.path),
        'ROS_DOMAIN_ID': str(next_domain()),
    }
    output = subprocess.run(
        [sys.executable, '-c', PROGRAM, profile],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
        check=True,
    ).stdout
    used, *numbers = output.split()
    return used, *map(int, numbers)


def test_large_messages_among_small_ones_do_not_leave_the_process_larger(unconfigured):
    used, big, small, growth = used_by('ours')
    assert (used, big, small) == ('True', WAITING, WAITING * (WAITING - 1))
    *_, usual_growth = used_by('usual')
    assert growth < usual_growth / 2


def test_profile_is_named_to_the_library_that_is_loaded(unconfigured):
    assert base.bound_memory()
    assert os.environ[base.USE_PROFILES] == '1'
    files = [os.environ.get(name) for name in base.PROFILES_FILE.values()]
    assert sorted(map(bool, files)) == [False, True]
    libraries = Path('/proc/self/maps').read_text()
    profile = 'fastdds.xml' if 'libfastdds.so' in libraries else 'fastrtps.xml'
    assert os.path.basename(max(files, key=bool)) == profile


@pytest.mark.parametrize('name', CHOICES)
def test_what_the_user_has_said_is_left_alone(unconfigured, name):
    unconfigured.setenv(name, 'mine')
    assert not base.bound_memory()
    assert {k: os.environ[k] for k in CHOICES if k in os.environ} == {name: 'mine'}


# Commands


ROOT = Path(__file__).resolve().parents[2]
NODES = ('flatness_controller', 'hodyn_node', 'reference_publisher', 'simulated_robot')
# A library that takes for ever to import, so that the signal comes meanwhile.
# The planning process of a node, which imports it too, has a pipe for its output.
ENDLESS = """
import sys, time
if not any('serve()' in word for word in sys.orig_argv):
    print('importing', flush=True)
while True:
    time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ('library', 'number'), [('numpy', signal.SIGINT), ('rclpy', signal.SIGTERM)]
)
@pytest.mark.parametrize('node', NODES)
def test_signal_during_imports_ends_a_node_in_order(node, library, number, tmp_path):
    (tmp_path / f'{library}.py').write_text(ENDLESS)
    program = f'import sys; from hodyn_ros.commands import {node}; sys.exit({node}())'
    paths = [str(tmp_path), str(ROOT), *sys.path]
    with subprocess.Popen(
        [sys.executable, '-c', program],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout.readline() == 'importing\n', running.stderr.read()
        running.send_signal(number)
        _, errors = running.communicate(timeout=TIMEOUT)
    assert running.returncode == 0
    assert errors == ''


# Callbacks


BEGIN = """
import sys, threading
from rclpy.node import Node
from hodyn_ros.ros.base.life import main
"""


def ended(code, number=signal.SIGTERM, waits_for=''):
    """What a program has logged, which is sent a signal once it has logged something."""
    with subprocess.Popen(
        [sys.executable, '-c', BEGIN + code],
        env={
            **os.environ,
            'PYTHONPATH': os.pathsep.join([str(ROOT), *sys.path]),
            'ROS_DOMAIN_ID': str(next_domain()),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        lines = []
        for line in running.stdout:
            lines.append(line)
            if waits_for in line:
                break
        running.send_signal(number)
        lines += running.communicate(timeout=TIMEOUT)[0].splitlines(keepends=True)
        assert running.returncode == 0, ''.join(lines)
    return ''.join(lines)


def test_the_traceback_of_the_same_failure_is_logged_once():
    text = ended(
        """
class Failing(Node):
    def __init__(self):
        super().__init__('failing')
        self.create_timer(0.01, self.fail)

    def fail(self):
        raise ValueError('Seconds value must not be negative')

sys.exit(main(Failing))
""",
        waits_for='It is the same again.',
    )
    assert text.count('Traceback') == 1
    assert 'ValueError: Seconds value must not be negative' in text.splitlines()[-1]


def test_a_node_in_the_middle_of_long_work_ends_all_the_same():
    text = ended(
        """
from hodyn_ros.ros.nodes.hodyn_node import HodynNode

class Busy(HodynNode):
    def __init__(self):
        super().__init__()
        begun = threading.Event()
        self.worker.put(lambda: (begun.set(), threading.Event().wait()))
        begun.wait()
        self.get_logger().info('at work')

sys.exit(main(Busy))
""",
        signal.SIGINT,
        waits_for='at work',
    )
    assert 'ends in the middle of what it was making ready' in text
