"""A report on a motion as one HTML page: the robot, its limits, and pictures that can be zoomed.

The page holds all that it needs, the library that draws the pictures included, and asks no server
for anything. Names come from files of others: they are escaped in the page, and handed to the
pictures not at all.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from string import Template

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.assignment import Actuators
from hodyn_ros.actuators.limits import MotorLimits
from hodyn_ros.analysis.limits import MotionLimits, Violation, motion_limits
from hodyn_ros.errors import MotionError
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.plotting import panels as make
from hodyn_ros.plotting.checks import all_checks, all_violations, checked_violations
from hodyn_ros.plotting.decimation import extreme_samples
from hodyn_ros.plotting.markup import Markup, element, joined
from hodyn_ros.plotting.panels import Panel
from hodyn_ros.plotting.quantities import number
from hodyn_ros.plotting.sections import (
    checks_section,
    header,
    remarks_section,
    robot_in_motion,
    robot_section,
)
from hodyn_ros.plotting.skeleton import frames
from hodyn_ros.plotting.source import Results, Source, checked_source
from hodyn_ros.resources import optional_import_module

Array = NDArray[np.float64]

# Stretches that a curve is divided into: two samples of each make a screen, and all curves
# together at most so many that the page stays of a size that can be sent by mail.
_MOST_STRETCHES = 600
_FEWEST_STRETCHES = 40
_ALL_STRETCHES = 60_000


def html_report(
    results: Results,
    model: RobotModel,
    limits: MotionLimits | None = None,
    *,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
    violations: Sequence[Violation] | None = None,
    remarks: Sequence[str] = (),
    title: str | None = None,
    robot_file: str | None = None,
) -> str:
    """Write a report on a motion with its efforts as a self-contained HTML page.

    Parameters
    ----------
    results : Results
        Such as `hodyn_ros.io.Results`.
    model : RobotModel
        Joints in any order.
    limits : MotionLimits, optional
        By default those of the model.
    actuators : Actuators, optional
        Needed to check limits of the motors.
    motor_limits : MotorLimits, optional
    violations : sequence of Violation, optional
        By default they are found by `find_violations` and `find_motor_violations`.
    remarks : sequence of str, optional
        What the reader should know, beside the remarks of the results.
    title : str, optional
        By default the names of the robot and the motion.
    robot_file : str, optional
        Where the model comes from.

    Returns
    -------
    str
        To be written in UTF-8.

    Raises
    ------
    JointNameError
        If the joints of the results are not those of the model.
    MotionError
        If the results hold less than accelerations and efforts, or cannot be drawn.
    ActuatorError
        If limits of motors are given without actuators, or the motors differ.
    ResourceError
        If Plotly is not installed.
    """
    source = checked_source(results, model)
    if source.motion.shape[1] < 3 or source.effort.shape[1] < 1:
        raise MotionError(
            'A report needs positions, velocities, accelerations and efforts, but the results '
            f'hold {source.motion.shape[1]} orders of the motion and {source.effort.shape[1]} of '
            'the effort.'
        )
    bounds = motion_limits(model) if limits is None else limits
    if violations is None:
        found = all_violations(source, bounds, actuators, motor_limits)
    else:
        found = checked_violations(source, violations)
    checks = all_checks(source, bounds, motor_limits)
    pictures = _Pictures(source)
    sections = [
        *checks_section(source, checks, found),
        *remarks_section((*source.remarks, *remarks)),
        *robot_section(source, bounds),
    ]
    beside = [
        *_joints(source, bounds, found, pictures),
        *_portraits(source, bounds, found, pictures),
        *_motors(source, motor_limits, found, pictures),
        *_energy(source, pictures),
    ]
    content = [
        *sections,
        element('div', robot_in_motion(source, bounds), element('div', *beside), class_='beside'),
    ]
    heading = title or f'{model.name}: {source.name}'
    return _template('report.html').substitute(
        title=element('x', heading)[3:-4],
        style=_asset('report.css'),
        header=header(source, heading, checks, found, robot_file),
        content=joined(content, '\n'),
        footer=_footer(pictures),
        pictures=pictures.json(frames(source, bounds)),
        plotly=_harmless(_plotly()),
        script=_asset('report.js'),
    )


class _Pictures:
    """Collects the pictures of a page, and writes their figures and their data."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._panels: list[Panel] = []

    def grid(self, panels: Sequence[Panel], with_subject: bool, kind: str = '') -> Markup:
        """Pictures side by side, as many as the window has room for."""
        figures = [self._figure(panel, with_subject) for panel in panels]
        return element('div', *figures, class_=f'pictures {kind}'.strip())

    def _figure(self, panel: Panel, with_subject: bool) -> Markup:
        number_ = len(self._panels)
        self._panels.append(panel)
        title = f'{panel.subject}: {panel.title}' if with_subject else panel.title
        of = f' of {panel.subject}' if panel.subject else ''
        spoken = f'{panel.title}{of}: {panel.note}'
        if panel.marks:
            spoken += '; exceeds its limit'
        plot = element(
            'div', class_='plot', data_picture=number_, role='img', aria_label=spoken
        )
        notes = panel.note.split('; ') if panel.is_portrait else [panel.note]
        caption = element(
            'figcaption',
            element('strong', title),
            element('span', joined(notes, Markup('<br>')), class_='quiet'),
        )
        return element(
            'figure', caption, plot, class_='portrait' if panel.is_portrait else None
        )

    @property
    def n_stretches(self) -> int:
        """Stretches that every curve is divided into."""
        n_curves = sum(len(panel.curves) * (2 if panel.is_portrait else 1)
                       for panel in self._panels)  # fmt: skip
        fitting = _ALL_STRETCHES // max(n_curves, 1)
        return min(_MOST_STRETCHES, max(_FEWEST_STRETCHES, fitting))

    @property
    def n_shown(self) -> int:
        """Most samples that a curve over time is drawn with."""
        return min(len(self._source.times), 2 * self.n_stretches + 2)

    @property
    def n_samples(self) -> int:
        """Samples of the motion."""
        return len(self._source.times)

    def json(self, robot: Mapping[str, Array | list[list[int]]]) -> str:
        """Write the data of all pictures; no text in it can end the element that it stands in."""
        n = self.n_stretches
        data = {
            'panels': [_panel_data(panel, n) for panel in self._panels],
            'robot': {
                name: _packed(value.ravel()) if isinstance(value, np.ndarray) else value
                for name, value in robot.items()
            },
        }
        return json.dumps(data, separators=(',', ':'), allow_nan=False).replace('<', r'\u003c')


def _panel_data(panel: Panel, n_stretches: int) -> dict[str, object]:
    curves = []
    for curve in panel.curves:
        columns = np.stack([curve.x, curve.y], axis=-1) if panel.is_portrait else curve.y
        shown = extreme_samples(columns, n_stretches, None if panel.is_portrait else curve.x)
        curves.append(
            {'name': curve.name, 'x': _packed(curve.x[shown]), 'y': _packed(curve.y[shown])}
        )
    return {
        'portrait': panel.is_portrait,
        'xTitle': panel.x_label,
        'yTitle': panel.y_label,
        'xUnit': _unit(panel.x_label),
        'yUnit': _unit(panel.y_label),
        'xRange': panel.x_range,
        'yRange': panel.y_range,
        'xLimits': [_finite_or_none(limit) for limit in panel.x_limits],
        'yLimits': [_finite_or_none(limit) for limit in panel.y_limits],
        'marks': panel.marks,
        'curves': curves,
    }


def _packed(values: Array) -> dict[str, object]:
    """Seven digits of what lies beyond the first value, in half the size of text; NaN stays."""
    known = values[~np.isnan(values)]
    first = float(known[0]) if known.size else 0.0
    offsets = (values - first).astype('<f4')
    return {'first': first, 'offsets': base64.b64encode(offsets.tobytes()).decode('ascii')}


def _joints(
    source: Source, limits: MotionLimits, violations: Sequence[Violation], pictures: _Pictures
) -> Iterator[Markup]:
    yield element('h2', 'Joints', id='joints')
    yield element(
        'p',
        'Dashed lines are limits; a cross marks where one is exceeded most. A limit far beyond '
        'the curve is outside of the picture.',
    )
    yield element(
        'p',
        'Drag to zoom: all pictures follow in time. A double click shows all again.',
        class_='screen quiet',
    )
    for joint, name in enumerate(source.model.joint_names):
        yield element('h3', name, id=f'joint-{joint + 1}')
        yield pictures.grid(make.joint_panels(source, joint, limits, violations), False)


def _portraits(
    source: Source, limits: MotionLimits, violations: Sequence[Violation], pictures: _Pictures
) -> Iterator[Markup]:
    found = [
        panel
        for joint in range(source.model.n_joints)
        if (panel := make.portrait_panel(source, joint, limits, violations))
    ]
    if found:
        yield element('h2', 'Torque over its rate', id='portraits')
        yield element(
            'p',
            'A drive that is limited in both must stay inside of the box. The dot is the '
            'beginning.',
        )
        yield pictures.grid(found, True)


def _motors(
    source: Source,
    limits: MotorLimits | None,
    violations: Sequence[Violation],
    pictures: _Pictures,
) -> Iterator[Markup]:
    rows = make.motor_panels(source, limits, violations)
    if any(rows.values()):
        yield element('h2', 'Motors', id='motors')
        yield element(
            'p',
            'Quantities of the motors as the joints see them, behind the gears. The deflection '
            'is how far a motor runs ahead of its joint.',
        )
        for name, row in rows.items():
            if not row:
                continue
            yield element('h3', name)
            several = len({panel.subject for panel in row}) > 1
            yield pictures.grid(row, several)


def _energy(source: Source, pictures: _Pictures) -> Iterator[Markup]:
    balance = make.energy_balance(source)
    if balance is None:
        return
    yield element('h2', 'Energy', id='energy')
    power = float(np.nanmax(np.abs(balance.power)))
    other = float(np.nanmax(np.abs(balance.other)))
    text = (
        'The power of all joints becomes kinetic and potential energy; the difference is what '
        'friction takes and what the robot gives to whatever it touches. Here it is at most '
        f'{number(other, 2)} W, beside a power of at most {number(power)} W.'
    )
    yield element('p', text)
    yield pictures.grid(make.energy_panels(source, balance), False, 'wide')


def _footer(pictures: _Pictures) -> Markup:
    parts = []
    if pictures.n_samples > pictures.n_shown:
        parts.append(
            f'Curves are drawn with at most {pictures.n_shown} of the {pictures.n_samples} '
            'samples: the first, the last, and the lowest and highest of every one of '
            f'{pictures.n_stretches} stretches, so that no peak is lost. Checks, tables and '
            'captions use all samples.'
        )
    parts.append('Written by hodyn_ros. Pictures by plotly.js (MIT licence), which is included.')
    return joined(element('p', part) for part in parts)


def _unit(label: str) -> str:
    return label[label.rfind('[') + 1 : label.rfind(']')]


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _harmless(script: str) -> str:
    """Script that cannot end the element that it stands in."""
    return re.sub(r'<(?=/script|!--)', r'\\x3c', script, flags=re.IGNORECASE)


def _plotly() -> str:
    plotly = optional_import_module('plotly.offline', 'A report needs Plotly', 'report')
    text: str = plotly.get_plotlyjs()
    return text


def _template(name: str) -> Template:
    return Template(_asset(name))


def _asset(name: str) -> str:
    return (files('hodyn_ros.plotting') / 'assets' / name).read_text(encoding='utf-8')
