"""A report on a motion as one HTML page: the robot, its limits, and pictures that can be zoomed.

The page holds all that it needs, the library that draws the pictures included, and asks no server
for anything. Names come from files of others: the template (assets/report.html) escapes them, and
they are handed to the pictures not at all.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from importlib.resources import files
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from hodyn_ros.analysis.limits import (
    limited,
    no_limit,
    unlimited,
    violations_of,
    worst_moment,
)
from hodyn_ros.checks import Array
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import Quantity, Violation, motion_limits
from hodyn_ros.plotting.checked import checked_results
from hodyn_ros.plotting.labels import (
    Label,
    label,
    label_of,
    labels_of,
    number,
    percent,
)
from hodyn_ros.plotting.panels import (
    Panel,
    comparison_panels,
    energy_balance,
    energy_panels,
    motor_panels,
    panels_over_time,
    portrait_panels,
)
from hodyn_ros.plotting.scene import moving_bodies, sticks
from hodyn_ros.resources import optional_import_module, package_version

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.actuators.limits import MotorLimits
    from hodyn_ros.files import Samples
    from hodyn_ros.identification import Comparison, Identification

# Stretches that a curve is divided into: two samples of each make a screen, and all curves
# together at most so many that the page stays of a size that can be sent by mail.
_MOST_STRETCHES = 600
_FEWEST_STRETCHES = 40
_ALL_STRETCHES = 60_000
_MOST_FRAMES = 200  # of the robot in motion


def report_libraries() -> tuple[ModuleType, ModuleType]:
    """Jinja2 and `plotly.offline`; a `ResourceError` says what to install.

    Whoever writes a report at the end of long work asks before it.

    Returns
    -------
    jinja2 : module
    plotly : module
        `plotly.offline`.

    Raises
    ------
    ResourceError
        If one of them is not installed.
    """
    return (
        optional_import_module('jinja2', 'A report needs Jinja2', 'report'),
        optional_import_module('plotly.offline', 'A report needs Plotly', 'report'),
    )


def html_report(
    model: RobotModel,
    results: Samples,
    limits: MotionLimits | None = None,
    *,
    actuators: Actuators | None = None,
    motor_limits: MotorLimits | None = None,
    violations: Sequence[Violation] | None = None,
    remarks: Sequence[str] = (),
    title: str | None = None,
    robot_file: str | None = None,
    comparison: Comparison | None = None,
    identification: Identification | None = None,
) -> str:
    """Write a report on a motion with its efforts as a self-contained HTML page.

    Parameters
    ----------
    model : RobotModel
    results : hodyn_ros.files.Samples
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
        Where the model comes from; by default what its `provenance` says.
    comparison : hodyn_ros.identification.Comparison, optional
        Of measured and computed efforts, with `comparison.results` as the results.
    identification : hodyn_ros.identification.Identification, optional
        Its parameters and residuals.

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
        If Plotly or Jinja2 is not installed.
    """
    report_libraries()
    results = checked_results(results, model)
    _refuse(results, violations or ())
    limits = motion_limits(model) if limits is None else limits
    if violations is None and motor_limits is not None and actuators is None:
        raise ActuatorError(
            'Limits of motors are given without the actuators; give actuators= too, or the '
            'violations that are already found.'
        )
    quantities = limited(
        model,
        results,
        limits,
        actuators=actuators,
        motor_limits=motor_limits,
        every_order=True,
    )
    if violations is None:
        violations = violations_of(quantities)
    content = {
        'title': title or f'{model.name}: {results.name}',
        'results': results,
        'model': model,
        'robot_file': robot_file or str(replace(model.provenance, version='')),
        'checks': [quantity for quantity in quantities if quantity.name],
        'violations': violations,
        'unlimited': unlimited(quantities, actuators),
        'limits': limits,
        'falling': [
            name
            for name, slowing in zip(model.joint_names, limits.deceleration_limit)
            if np.isfinite(slowing)
        ],
        'worst': _worst_moment(results, quantities),
        'remarks': (*results.remarks, *remarks),
        'comparison': comparison,
        'identification': identification,
    }
    return _page(content, *_pictures(results, model, quantities, violations, comparison))


def _page(
    content: dict[str, Any], sections: dict[str, Any], panels: Sequence[Panel]
) -> str:
    """Page with the content and with the pictures of each section; see `_pictures`."""
    jinja2, plotly = report_libraries()
    page = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page.policies['json.dumps_kwargs'] = {'separators': (',', ':'), 'allow_nan': False}
    results, model, n_stretches = content['results'], content['model'], _stretches(panels)
    text: str = page.from_string(_asset('report.html')).render(
        **content,
        **sections,
        no_limit=no_limit(content['unlimited']),
        n_stretches=n_stretches,
        data={
            'panels': [_data(panel, n_stretches) for panel in panels],
            'robot': _frames(results, model, content['limits']),
            'worst': content['worst']['time'],
        },
        # A script cannot end the element that it stands in.
        plotly=re.sub(
            r'<(?=/script|!--)', r'\\x3c', plotly.get_plotlyjs(), flags=re.IGNORECASE
        ),
        version=package_version(),
        now=datetime.now(timezone.utc),
        start=datetime.fromtimestamp(results.start / 1e9, timezone.utc),
        masses=model.M_body[:, 5, 5],
        number=number,
        percent=percent,
        isfinite=np.isfinite,
        joint_of=partial(_joint_of, results),
        label_of=partial(_label_of, content['checks']),
        title_of=_title_of,
        titles_of=lambda checks: [_title_of(check) for check in checks],
        nan=np.nan,
        style=_asset('report.css'),
        script=_asset('report.js'),
    )
    return text


def _refuse(results: Samples, violations: Sequence[Violation]) -> None:
    """Refuse results that hold too little, and violations of other ones."""
    if results.motion.shape[1] < 3 or results.effort.shape[1] < 1:
        raise MotionError(
            'A report needs positions, velocities, accelerations and efforts, but the results '
            f'hold {results.motion.shape[1]} orders of the motion and {results.effort.shape[1]} '
            'of the effort.'
        )
    for item in violations:
        if not 0 <= item.sample < len(results):
            raise MotionError(
                f'The violation of {item.quantity} by {item.joint_name!r} is at sample '
                f'{item.sample}, but the results have {len(results)} samples; give the violations '
                'of the same motion.'
            )


def _stretches(panels: Sequence[Panel]) -> int:
    """Stretches that every curve is divided into."""
    n_curves = sum(len(panel.curves) * (1 + panel.is_portrait) for panel in panels)
    most = _ALL_STRETCHES // max(n_curves, 1)
    return min(_MOST_STRETCHES, max(_FEWEST_STRETCHES, most))


def _asset(name: str) -> str:
    """Text of a file of the page: template, style or script."""
    return (files('hodyn_ros.plotting') / 'assets' / name).read_text(encoding='utf-8')


def _pictures(
    results: Samples,
    model: RobotModel,
    quantities: Sequence[Quantity],
    violations: Sequence[Violation],
    comparison: Comparison | None,
) -> tuple[dict[str, Any], list[Panel]]:
    """Pictures of each section with their numbers, by the names of the template, and all.

    Returns
    -------
    sections : dict of str to object
        What the template goes through; each picture has its place among all.
    panels : list of Panel
        All of them, in the order of their numbers.
    """
    panels: list[Panel] = []

    def numbered(more: Sequence[Panel]) -> list[tuple[int, Panel]]:
        panels.extend(more)
        return list(enumerate(more, start=len(panels) - len(more)))

    times, names = results.times, model.joint_names
    of_joints = [each for each in quantities if each.kind in ('motion', 'effort')]
    motors = motor_panels(results, quantities, violations)
    balance = energy_balance(results, model)
    sections = {
        'compared': []
        if comparison is None
        else [
            (name, numbered(comparison_panels(comparison, j)))
            for j, name in enumerate(comparison.joint_names)
        ],
        'joints': [
            (name, numbered(panels_over_time(times, of_joints, name, violations)))
            for name in names
        ],
        'portraits': numbered(
            [
                panel
                for name in names
                for panel in portrait_panels(quantities, name, violations)
            ]
        ),
        'motors': [(name, numbered(row)) for name, row in motors.items() if row],
        'energy': numbered(energy_panels(times, balance) if balance else []),
        'largest': balance
        and {
            name: float(np.nanmax(np.abs(getattr(balance, name))))
            for name in ('power', 'other')
        },
    }
    return sections, panels


def _data(panel: Panel, n_stretches: int) -> dict[str, object]:
    """Everything that the script draws; no names are in it."""
    band = panel.band(n_stretches)
    return {
        'portrait': panel.is_portrait,
        'xTitle': panel.x_label,
        'yTitle': panel.y_label,
        'xUnit': _unit(panel.x_label),
        'yUnit': _unit(panel.y_label),
        'xRange': panel.x_range,
        'yRange': panel.y_range,
        'xLimits': [limit if np.isfinite(limit) else None for limit in panel.x_limits],
        'yLimits': [limit if np.isfinite(limit) else None for limit in panel.y_limits],
        'marks': panel.marks,
        'band': band and [{'x': _packed(edge.x), 'y': _packed(edge.y)} for edge in band],
        'curves': [
            {'name': name, 'x': _packed(x), 'y': _packed(y)}
            for name, x, y in panel.thinned(n_stretches)
        ],
    }


def _unit(label: str) -> str:
    """Unit in the brackets of a label of an axis."""
    return label[label.rfind('[') + 1 : label.rfind(']')]


def _packed(values: Array) -> dict[str, object]:
    """Seven digits of what lies beyond the first value, in half the size of text; NaN stays."""
    known = values[~np.isnan(values)]
    first = float(known[0]) if known.size else 0.0
    offsets = (values - first).astype('<f4')
    return {'first': first, 'offsets': base64.b64encode(offsets.tobytes()).decode('ascii')}


def _worst_moment(results: Samples, quantities: Sequence[Quantity]) -> dict[str, Any]:
    """Time [s] at which most of a limit is used, and a text on what uses it.

    Without any limit it is the beginning, and the text is empty.
    """
    if (found := worst_moment(quantities)) is None:
        return {'time': float(results.times[0]), 'text': ''}
    quantity, j, sample = found
    used = f'{percent(float(quantity.peaks[j]))} of its limit'
    text = f'{labels_of(quantity)[j].name} of {quantity.owners[j]}, {used}'
    return {'time': float(results.times[sample]), 'text': text}


def _joint_of(results: Samples, name: str) -> int | None:
    """Index of the joint of this name, or of the one that the motor of this name moves."""
    owners = dict(zip(results.motor_names, results.motor_joints))
    name = name if name in results.joint_names else owners.get(name, name)
    return results.joint_names.index(name) if name in results.joint_names else None


def _title_of(quantity: Quantity) -> str:
    """Name of a quantity; of torques and forces together it is torque."""
    return label(quantity.kind, quantity.order, all(quantity.is_linear)).name


def _label_of(quantities: Sequence[Quantity], what: str, name: str) -> Label:
    """Label of a quantity of a joint or motor."""
    for quantity in quantities:
        if quantity.name == what and name in quantity.owners:
            return labels_of(quantity)[quantity.owners.index(name)]
    return label_of(what, False)


def _frames(results: Samples, model: RobotModel, limits: MotionLimits) -> dict[str, Any]:
    """Skeleton of the robot at F instants that are evenly spaced in time.

    ``times`` (F,), ``points`` (F, P, 3) in the base frame [m], ``lines``: two of the points and
    the joint that moves what is between them (-1: none does), and ``shares`` (F, n): part of the
    limit that the effort of each joint uses, NaN where that is not known.
    """
    times = results.times
    instants = np.linspace(times[0], times[-1], min(_MOST_FRAMES, len(times)))
    rows = np.unique(np.searchsorted(times, instants).clip(0, len(times) - 1))
    with np.errstate(invalid='ignore', divide='ignore'):
        shares = np.abs(results.effort[rows, 0]) / limits.effort
    shares[:, ~np.isfinite(limits.effort)] = np.nan
    tree, poses, joints = moving_bodies(model, results.motion[rows, 0])
    points: list[Array] = []
    lines = []
    for body, ends in sticks(tree).items():
        start, joint, pose = len(points), -1, np.eye(4)
        if body != BASE:
            joint, pose = joints[body], poses[body]
        for end in (np.zeros(3), *ends):
            place = pose[..., :3, :3] @ end + pose[..., :3, 3]
            points.append(np.broadcast_to(place, (len(rows), 3)))
        lines += [[start, start + 1 + i, joint] for i in range(len(ends))]
    packed = {'times': times[rows], 'points': np.stack(points, axis=1), 'shares': shares}
    return {
        'lines': lines,
        **{name: _packed(array.ravel()) for name, array in packed.items()},
    }
