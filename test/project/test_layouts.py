"""Layouts for plotting tools show what a bag holds, and all of it that they are for."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
from support.scripts import load

from hodyn_ros import RobotModel
from hodyn_ros.actuators import Actuators, LinearSpring, SeriesElastic
from hodyn_ros.files import Samples, compute, write_results
from hodyn_ros.model import MotionLimits
from hodyn_ros.resources import share_file

layouts = load(Path(__file__).resolve().parents[2] / 'doc' / 'make_layouts.py')
foxglove_layout, plotjuggler_layout = layouts.foxglove_layout, layouts.plotjuggler_layout


@pytest.fixture(scope='module')
def panda():
    return RobotModel.from_urdf(share_file('urdf/panda.urdf'), tip_link='panda_link8')


@pytest.fixture(scope='module')
def messages(panda, tmp_path_factory):
    """The first message of every topic of a bag with motors, as others read it."""
    any_reader = pytest.importorskip('rosbags.highlevel').AnyReader
    drives = {name: SeriesElastic(LinearSpring(1000.0), 0.1) for name in panda.joint_names}
    times = np.arange(3.0)
    samples = Samples(panda.joint_names, times, np.full((3, 5, panda.n_joints), 0.1))
    path = tmp_path_factory.mktemp('layouts') / 'x.mcap'
    write_results(path, compute(panda, samples, actuators=Actuators(panda, drives)))
    found = {}
    with any_reader([path]) as reader:
        for connection, _, data in reader.messages():
            found.setdefault(connection.topic, reader.deserialize(data, connection.msgtype))
    return found


def test_installed_layouts_are_those_of_the_panda(tmp_path):
    robot = str(share_file('urdf/panda.urdf'))
    chain = ['--tip-link', 'panda_link8', '--limits', 'panda']
    layouts.main([robot, *chain, '--folder', str(tmp_path)])
    for name in ('plotjuggler_hodyn.xml', 'foxglove_hodyn.json'):
        assert (tmp_path / name).read_text() == share_file(f'config/{name}').read_text()


def test_every_curve_of_plotjuggler_is_in_the_bag(panda, messages):
    root = Xml.fromstring(plotjuggler_layout(panda.joint_names).partition('\n')[2])
    curves = [curve.get('name') for curve in root.iter('curve')]
    assert len(set(curves)) == len(curves) == 8 * panda.n_joints
    for curve in curves:
        # As PlotJuggler names the series of a JointState: topic, joint, field.
        topic, joint, field = curve.rsplit('/', 2)
        message = messages[topic]
        values = getattr(message, field)
        assert np.isfinite(values[message.name.index(joint)])


def test_every_series_of_foxglove_is_in_the_bag(panda, messages):
    layout = json.loads(foxglove_layout(panda.joint_names))
    tabs = layout['configById'][layout['layout']]['tabs']
    shown = json.dumps([tab['layout'] for tab in tabs])
    panels = [name for name in layout['configById'] if name.startswith('Plot!')]
    assert len(panels) == 9
    for panel in panels:
        assert f'"{panel}"' in shown
        for path in layout['configById'][panel]['paths']:
            topic, field, index = re.fullmatch(
                r'(.+)\.(\w+)\[(\d+)\]', path['value']
            ).groups()
            message = messages[topic]
            assert np.isfinite(getattr(message, field)[int(index)])
            names = getattr(message, 'motor_names', None) or message.joint_names
            assert names[int(index)] == path['label']


def test_limits_of_foxglove_are_lines_at_both_signs_of_each():
    limits = MotionLimits(*(np.array([2.0, 2.0, np.inf]) for _ in MotionLimits._fields))
    layout = json.loads(foxglove_layout(['a', 'b', 'c'], limits=limits))
    for panel in layout['configById'].values():
        title = panel.get('foxglovePanelTitle', '')
        lines = {
            path['value']: path['label']
            for path in panel.get('paths', ())
            if 'limit' in path['label']
        }
        is_limited = title.startswith(('effort', 'velocity', 'acceleration'))
        expected = dict.fromkeys(('2.0', '-2.0'), 'limit of a, b') if is_limited else {}
        assert lines == expected, title
    tabs = layout['configById'][layout['layout']]['tabs']
    assert [tab['title'] for tab in tabs][-2:] == ['Robot', 'Diagnostics']
    assert all(tab['layout'] in layout['configById'] for tab in tabs[-2:])


def test_layouts_of_robots_with_more_motors_than_joints_show_them_all():
    motors = ['a_motor1', 'a_motor2']
    text = plotjuggler_layout(['a'], motors)
    assert text.count('motor_reference/state/a_motor2/position') == 1
    assert foxglove_layout(['a'], motors).count('motor_reference.torque[1]') == 1
