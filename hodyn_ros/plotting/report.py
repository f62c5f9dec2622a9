"""A report on a motion as one HTML page: the robot, its limits, and pictures that can be zoomed.

The page holds all that it needs, the library that draws the pictures included, and asks no server
for anything. Names come from files of others: the template (assets/report.html) escapes them, and
they are handed to the pictures not at all.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from importlib.resources import files
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from hodyn_ros.analysis.limits import (
    limited,
    no_limit,
    unlimited,
    worst_moment,
)
from hodyn_ros.errors import ActuatorError, MotionError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import Quantity, Violation, motion_limits
from hodyn_ros.names import percent
from hodyn_ros.plotting.labels import (
    Label,
    label,
    labels_of,
    number,
)
from hodyn_ros.plotting.panels import (
    Panel,
    comparison_panels,
    drawable,
    energy_panels,
    motor_panels,
    panels_over_time,
    portrait_panels,
)
from hodyn_ros.plotting.scene import frames, moving_bodies, sticks
from hodyn_ros.resources import optional_import_module, package_version
from hodyn_ros.typing import Array, Indices

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

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.files import Samples, compute
    >>> from hodyn_ros.plotting import html_report
    >>> model = RobotModel.from_urdf('two_link')
    >>> samples = Samples(model.joint_names, [0.0, 0.5, 1.0], np.zeros((3, 5, 2)))
    >>> page = html_report(model, compute(model, samples), title='At rest')
    >>> '<title>At rest</title>' in page
    True
    """
    report_libraries()
    results = drawable(model, results)
    if results.motion.shape[1] < 3 or results.effort.shape[1] < 1:
        raise MotionError(
            'A report needs positions, velocities, accelerations and efforts, but the results '
            f'hold {results.motion.shape[1]} orders of the motion and {results.effort.shape[1]} '
            'of the effort.'
        )
    if motor_limits is not None and actuators is None:
        raise ActuatorError(
            'Limits of motors are given without the actuators; give actuators= too.'
        )
    limits = motion_limits(model) if limits is None else limits
    quantities = limited(
        model,
        results,
        limits,
        actuators=actuators,
        motor_limits=motor_limits,
        every_order=True,
    )
    moment, worst = _worst_moment(results, quantities)
    sections = _sections(results, model, quantities, comparison)
    panels = [panel for parts in sections.values() for _, row in parts for panel in row]
    n_stretches = _stretches(panels)
    return _page(
        title=title or f'{model.name}: {results.name}',
        results=results,
        model=model,
        robot_file=robot_file or str(replace(model.provenance, version='')),
        checks=[quantity for quantity in quantities if quantity.name],
        exceeded=[*_exceeded(quantities)],
        no_limit=no_limit(unlimited(quantities, actuators)),
        limits=limits,
        worst=worst,
        moment=moment,
        remarks=(*results.remarks, *remarks),
        comparison=comparison,
        identification=identification,
        sections=sections,
        joint_of=_joints_of(results),
        n_stretches=n_stretches,
        data={
            'panels': [_data(panel, n_stretches) for panel in panels],
            'robot': _robot(results, model, limits),
            'worst': moment,
        },
        start=datetime.fromtimestamp(results.start / 1e9, timezone.utc),
        masses=model.M_body[:, 5, 5],
    )


def _page(**content: Any) -> str:
    """Page of the template with the content."""
    jinja2, plotly = report_libraries()
    page = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page.policies['json.dumps_kwargs'] = {'separators': (',', ':'), 'allow_nan': False}
    page.filters['name_of'] = _name_of
    text: str = page.from_string(_asset('report.html')).render(
        **content,
        # A script cannot end the element that it stands in.
        plotly=re.sub(
            r'<(?=/script|!--)', r'\\x3c', plotly.get_plotlyjs(), flags=re.IGNORECASE
        ),
        version=package_version(),
        now=datetime.now(timezone.utc),
        number=number,
        percent=percent,
        isfinite=np.isfinite,
        nan=np.nan,
        style=_asset('report.css'),
        script=_asset('report.js'),
    )
    return text


def _exceeded(quantities: Sequence[Quantity]) -> Iterator[tuple[Violation, Label]]:
    """What exceeds limits, with its labels."""
    for quantity in quantities:
        labels = dict(zip(quantity.owners, labels_of(quantity)))
        for item in quantity.violations():
            yield item, labels[item.joint_name]


def _joints_of(results: Samples) -> dict[str, int]:
    """Indices of joints by their names, and by those of the motors that move them."""
    places = {name: j for j, name in enumerate(results.joint_names)}
    of_motors = {
        motor: places[joint]
        for motor, joint in zip(results.motor_names, results.motor_joints)
    }
    return of_motors | places


def _stretches(panels: Sequence[Panel]) -> int:
    """Stretches that every curve is divided into."""
    n_curves = sum(
        len(p.curves) * (1 + p.is_portrait + 2 * (p.std is not None)) for p in panels
    )
    most = _ALL_STRETCHES // max(n_curves, 1)
    return min(_MOST_STRETCHES, max(_FEWEST_STRETCHES, most))


def _asset(name: str) -> str:
    """Text of a file of the page: template, style or script."""
    return (files('hodyn_ros.plotting') / 'assets' / name).read_text(encoding='utf-8')


def _sections(
    results: Samples,
    model: RobotModel,
    quantities: Sequence[Quantity],
    comparison: Comparison | None,
) -> dict[str, list[tuple[str, list[Panel]]]]:
    """Pictures of each section, by joints where they belong to one, in the order of the page."""
    times, names = results.times, model.joint_names
    of_joints = [each for each in quantities if each.kind in ('motion', 'effort')]
    portraits = [panel for name in names for panel in portrait_panels(quantities, name)]
    compared = () if comparison is None else comparison.joint_names
    return {
        'compared': [
            (name, comparison_panels(comparison, j))  # type: ignore[arg-type]
            for j, name in enumerate(compared)
        ],
        'joints': [(name, panels_over_time(times, of_joints, name)) for name in names],
        'portraits': [('', portraits)],
        'motors': [*motor_panels(results, quantities).items()],
        'energy': [('', energy_panels(model, results))],
    }


def _data(panel: Panel, n_stretches: int) -> dict[str, object]:
    """Everything that the script draws; no names are in it."""
    edges = panel.band or ()
    curves, band = [], []
    for name, x, y in panel.curves:
        columns = [y, *edges] + [x] * panel.is_portrait
        rows = extreme_samples(np.stack(columns, axis=1), n_stretches)
        curves.append({'name': name, 'x': _packed(x[rows]), 'y': _packed(y[rows])})
        band += [_packed(edge[rows]) for edge in edges]
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
        'band': band,
        'curves': curves,
    }


def extreme_samples(values: Array, n_stretches: int) -> Indices:
    """Rows of a curve to show: the first, the last, and the extremes of every stretch of it.

    A screen shows some hundreds of columns of pixels, of whose samples the lowest and the highest
    are what can be seen: the picture of these is that of all, and no peak is lost.

    Parameters
    ----------
    values : ndarray, shape (N, c)
        Coordinates of its points; NaN is a gap, of which one is kept in every stretch.
    n_stretches : int
        Of an equal number of samples.

    Returns
    -------
    ndarray of int
        Increasing; all if they are not more than 2 c n_stretches + 2.
    """
    N, c = values.shape
    if N <= 2 * c * n_stretches + 2:
        return np.arange(N)
    size = -(-N // n_stretches)
    rows = np.arange(n_stretches * size).clip(max=N - 1).reshape(n_stretches, size)
    is_gap = np.isnan(values)[rows]
    low, high = (np.where(is_gap, far, values[rows]) for far in (np.inf, -np.inf))
    gaps = is_gap.any(axis=2)
    places = np.concatenate([low.argmin(axis=1), high.argmax(axis=1)], axis=1)
    shown = np.take_along_axis(rows, places, axis=1).ravel()
    first_gaps = rows[np.arange(n_stretches), gaps.argmax(axis=1)][gaps.any(axis=1)]
    return np.unique(np.concatenate([[0, N - 1], shown, first_gaps]))


def _unit(label: str) -> str:
    """Unit in the brackets of a label of an axis."""
    return label[label.rfind('[') + 1 : label.rfind(']')]


def _packed(values: Array) -> dict[str, object]:
    """Seven digits of what lies beyond the first value, in half the size of text; NaN stays."""
    known = values[~np.isnan(values)]
    first = float(known[0]) if known.size else 0.0
    offsets = (values - first).astype('<f4')
    return {'first': first, 'offsets': base64.b64encode(offsets.tobytes()).decode('ascii')}


def _worst_moment(results: Samples, quantities: Sequence[Quantity]) -> tuple[float, str]:
    """Time [s] at which most of a limit is used, and a text on what uses it.

    Without any limit it is the beginning, and the text is empty.
    """
    if (found := worst_moment(quantities)) is None:
        return float(results.times[0]), ''
    quantity, j, sample = found
    used = f'{percent(float(quantity.peaks[j]))} of its limit'
    text = f'{labels_of(quantity)[j].name} of {quantity.owners[j]}, {used}'
    return float(results.times[sample]), text


def _name_of(quantity: Quantity) -> str:
    """Name of a quantity; of torques and forces together it is torque."""
    return label(quantity.kind, quantity.order, all(quantity.is_linear)).name


def _robot(results: Samples, model: RobotModel, limits: MotionLimits) -> dict[str, Any]:
    """Skeleton of the robot at F instants that are evenly spaced in time.

    ``times`` (F,), ``points`` (F, P, 3) in the base frame [m], ``lines``: two of the points and
    the joint that moves what is between them (-1: none does), and ``shares`` (F, n): part of the
    limit that the effort of each joint uses, NaN where that is not known.
    """
    times = results.times
    rows = frames(times, (times[-1] - times[0]) / _MOST_FRAMES)
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
