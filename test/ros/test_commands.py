"""The commands of the nodes: an interrupt while they are imported ends them in order."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rclpy.node import Node
from support.ros_harness import TIMEOUT

from hodyn_ros import commands
from hodyn_ros.ros.base import life as base

ROOT = Path(__file__).resolve().parents[2]
NODES = ('flatness_controller', 'hodyn_node', 'reference_publisher', 'simulated_robot')
# A library that takes for ever to import, so that the signal comes meanwhile.
ENDLESS = 'import time\nprint("importing", flush=True)\nwhile True:\n    time.sleep(0.01)'


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


@pytest.mark.parametrize('name', NODES)
def test_command_runs_its_node(name, monkeypatch):
    ran = []
    monkeypatch.setattr(signal, 'signal', lambda *_: None)  # those of this process
    monkeypatch.setattr(base, 'main', lambda node: ran.append(node) or 7)
    assert getattr(commands, name)() == 7
    (node,) = ran
    assert issubclass(node, Node)
