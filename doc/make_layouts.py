r"""Layouts for PlotJuggler and Foxglove that show the efforts and their derivatives.

They fit the bags that ``hodyn compute`` writes; that of Foxglove also fits a running node, whose
topics have the same names, and shows limits, the robot and the diagnostics then. Those in config/
are for the Panda::

    python doc/make_layouts.py urdf/panda.urdf --tip-link panda_link8 --config panda \
      --folder config
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np

from hodyn_ros.cli.problem import Given, load_problem
from hodyn_ros.files.messages import (
    EFFORT_MIRROR,
    EFFORT_TOPIC,
    MOTION_TOPIC,
    MOTOR_MIRROR,
    MOTOR_TOPIC,
)
from hodyn_ros.model.limits import MotionLimits

# Distinguishable with deficient colour vision as well. Source: Okabe and Ito, "Color Universal
# Design", 2008; the darker ones first.
_COLORS = (
    '#0072b2',
    '#d55e00',
    '#009e73',
    '#cc79a7',
    '#e69f00',
    '#56b4e9',
    '#000000',
    '#999999',
)

_PLOTJUGGLER = (
    (
        'Efforts',
        (
            ('effort [N m, N]', EFFORT_MIRROR.format(0), 'effort'),
            ('effort_dot [N m/s, N/s]', EFFORT_MIRROR.format(1), 'effort'),
            ('effort_ddot [N m/s^2, N/s^2]', EFFORT_MIRROR.format(2), 'effort'),
        ),
    ),
    (
        'Motion',
        (
            ('position [rad, m]', EFFORT_MIRROR.format(0), 'position'),
            ('velocity [rad/s, m/s]', EFFORT_MIRROR.format(0), 'velocity'),
        ),
    ),
    (
        'Motors',
        (
            ('motor position [rad, m]', MOTOR_MIRROR, 'position'),
            ('motor velocity [rad/s, m/s]', MOTOR_MIRROR, 'velocity'),
            ('motor torque [N m, N]', MOTOR_MIRROR, 'effort'),
        ),
    ),
)
"""Tabs with plots: title, topic of type sensor_msgs/JointState and field."""

_FOXGLOVE = (
    (
        'Efforts',
        (
            ('effort [N m, N]', EFFORT_TOPIC, 'effort'),
            ('effort_dot [N m/s, N/s]', EFFORT_TOPIC, 'effort_dot'),
            ('effort_ddot [N m/s^2, N/s^2]', EFFORT_TOPIC, 'effort_ddot'),
        ),
    ),
    (
        'Motion',
        (
            ('position [rad, m]', MOTION_TOPIC, 'position'),
            ('velocity [rad/s, m/s]', MOTION_TOPIC, 'velocity'),
            ('acceleration [rad/s^2, m/s^2]', MOTION_TOPIC, 'acceleration'),
        ),
    ),
    (
        'Motors',
        (
            ('motor position [rad, m]', MOTOR_TOPIC, 'position'),
            ('motor torque [N m, N]', MOTOR_TOPIC, 'torque'),
            ('deflection [rad, m]', MOTOR_TOPIC, 'deflection'),
        ),
    ),
)
"""Tabs with plots: title, topic and field with a value for each joint or motor."""

_LIMIT = '#d5281e'

_NODE: dict[str, Any] = {
    '3D!Robot': {
        'layers': {
            'robot': {
                'layerId': 'foxglove.Urdf',
                'instanceId': 'robot',
                'label': 'robot',
                'visible': True,
                'sourceType': 'topic',
                'topic': '/robot_description',
                'framePrefix': '',
            },
            'grid': {'layerId': 'foxglove.Grid', 'instanceId': 'grid', 'visible': True},
        },
        'topics': {},
    },
    'DiagnosticSummary!Diagnostics': {
        'minLevel': 0,
        'pinnedIds': [],
        'hardwareIdFilter': '',
        'topicToRender': '/diagnostics',
        'sortByLevel': True,
    },
}
"""Panels for what bags of ``hodyn compute`` do not have: each is a tab."""


def plotjuggler_layout(joint_names: Sequence[str], motor_names: Sequence[str] = ()) -> str:
    """Layout for PlotJuggler: efforts, motion and motors, a curve for each joint.

    Parameters
    ----------
    joint_names, motor_names : sequence of str
        In the order of the model; without motor names, each joint has one motor of its name.

    Returns
    -------
    str
        XML; load it with File, Load Layout after the bag, or with ``plotjuggler -l``.
    """
    root = Xml.Element('root')
    main_window = {'name': 'Main Window', 'parent': 'main_window'}
    window = Xml.SubElement(root, 'tabbed_widget', main_window)
    for tab_name, plots in _PLOTJUGGLER:
        tab = Xml.SubElement(window, 'Tab', tab_name=tab_name, containers='1')
        sizes = ';'.join(f'{1.0 / len(plots):.6f}' for _ in plots)
        splitter = Xml.SubElement(
            Xml.SubElement(tab, 'Container'),
            'DockSplitter',
            orientation='-',
            count=str(len(plots)),
            sizes=sizes,
        )
        for title, topic, field in plots:
            names = (motor_names or joint_names) if topic == MOTOR_MIRROR else joint_names
            area = Xml.SubElement(splitter, 'DockArea', name=title)
            plot = Xml.SubElement(
                area,
                'plot',
                mode='TimeSeries',
                style='Lines',
                flip_x='false',
                flip_y='false',
            )
            Xml.SubElement(plot, 'limitY')
            for i, name in enumerate(names):
                color = _COLORS[i % len(_COLORS)]
                Xml.SubElement(plot, 'curve', name=f'{topic}/{name}/{field}', color=color)
    Xml.SubElement(window, 'currentTabIndex', index='0')
    Xml.SubElement(root, 'use_relative_time_offset', enabled='1')
    Xml.indent(root, ' ')
    text = Xml.tostring(root, encoding='unicode')
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{text}\n"


def foxglove_layout(
    joint_names: Sequence[str],
    motor_names: Sequence[str] = (),
    limits: MotionLimits | None = None,
) -> str:
    """Layout for Foxglove: efforts, motion and motors, the robot, and diagnostics of the node.

    Parameters
    ----------
    joint_names, motor_names : sequence of str
        See `plotjuggler_layout`.
    limits : MotionLimits, optional
        Of the joints, drawn as lines.

    Returns
    -------
    str
        JSON; import it with Layouts, Import from file.
    """
    panels: dict[str, Any] = {}
    tabs = []
    for tab_name, plots in _FOXGLOVE:
        panel_names: list[str] = []
        for title, topic, field in plots:
            names = (motor_names or joint_names) if topic == MOTOR_TOPIC else joint_names
            panel = f'Plot!{tab_name.lower()}{len(panel_names)}'
            panel_names.append(panel)
            panels[panel] = {
                'foxglovePanelTitle': title,
                'paths': [
                    {
                        'value': f'{topic}.{field}[{i}]',
                        'label': name,
                        'color': _COLORS[i % len(_COLORS)],
                        'enabled': True,
                        'timestampMethod': 'headerStamp',
                    }
                    for i, name in enumerate(names)
                ]
                + _limit_lines(joint_names, getattr(limits, field, ())),
                'showXAxisLabels': True,
                'showYAxisLabels': True,
                'showLegend': True,
                'legendDisplay': 'floating',
                'showPlotValuesInLegend': False,
                'isSynced': True,
                'xAxisVal': 'timestamp',
                'sidebarDimension': 240,
            }
        tabs.append({'title': tab_name, 'layout': _column(panel_names)})
    panels |= _NODE
    tabs += [{'title': name.partition('!')[2], 'layout': name} for name in _NODE]
    panels['Tab!hodyn'] = {'activeTabIdx': 0, 'tabs': tabs}
    layout = {
        'configById': panels,
        'globalVariables': {},
        'userNodes': {},
        'playbackConfig': {'speed': 1},
        'layout': 'Tab!hodyn',
    }
    return json.dumps(layout, indent=1) + '\n'


def _limit_lines(joint_names: Sequence[str], limits: Sequence[float]) -> list[Any]:
    """Lines at both signs of every finite limit, once for all joints that have it."""
    joints: dict[float, list[str]] = {}
    for name, limit in zip(joint_names, limits):
        if np.isfinite(limit):
            joints.setdefault(float(limit), []).append(name)
    return [
        {
            'value': repr(sign * limit),
            'label': f'limit of {", ".join(names)}',
            'color': _LIMIT,
            'enabled': True,
            'timestampMethod': 'receiveTime',
        }
        for limit, names in joints.items()
        for sign in (1.0, -1.0)
    ]


def _column(panels: Sequence[str]) -> Any:
    """Panels of equal height, one below the other."""
    if len(panels) == 1:
        return panels[0]
    return {
        'direction': 'column',
        'first': panels[0],
        'second': _column(panels[1:]),
        'splitPercentage': round(100.0 / len(panels), 3),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Write both layouts for a robot."""
    parser = argparse.ArgumentParser(description='Layouts for PlotJuggler and Foxglove.')
    parser.add_argument('robot', help='URDF file')
    parser.add_argument(
        '--tip-link', help='last link of the chain; default: the whole tree'
    )
    parser.add_argument(
        '--motor',
        action='append',
        default=[],
        help='name of a motor, repeated; default: each joint has one motor of its name',
    )
    parser.add_argument('--config', action='append', default=[], help='as of hodyn check')
    parser.add_argument('--folder', type=Path, default=Path('.'))
    given = parser.parse_args(arguments)
    problem = load_problem(Given(given.robot, tuple(given.config), given.tip_link))
    joints, limits = problem.model.joint_names, problem.limits
    for name, text in (
        ('plotjuggler_hodyn.xml', plotjuggler_layout(joints, given.motor)),
        ('foxglove_hodyn.json', foxglove_layout(joints, given.motor, limits)),
    ):
        (given.folder / name).write_text(text, encoding='utf-8')


if __name__ == '__main__':
    main()
