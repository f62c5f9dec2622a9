"""Figures of a motion and its efforts, made by Matplotlib, for papers, notebooks and files.

Every function returns a `matplotlib.figure.Figure` that belongs to no window: a notebook shows it,
and its method ``savefig`` saves it. Around what is estimated is a band of two standard deviations
to either side.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from hodyn_ros.analysis.limits import limited
from hodyn_ros.errors import JointNameError, MotionError
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import listed
from hodyn_ros.plotting.panels import (
    Panel,
    comparison_panels,
    difference_spectrum,
    drawable,
    energy_panels,
    motor_panels,
    panels_over_time,
    portrait_panels,
)
from hodyn_ros.plotting.stops import stop_panels
from hodyn_ros.resources import optional_import_module

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hodyn_ros.actuators.assignment import Actuators
    from hodyn_ros.actuators.limits import MotorLimits
    from hodyn_ros.analysis.stop_analysis import StopAnalysis, StopCause
    from hodyn_ros.files import Samples
    from hodyn_ros.identification import Comparison

# Colours that people with any colour vision tell apart. Source: Okabe and Ito, 2008.
CURVE_COLOURS = ('#0072B2', '#E69F00', '#009E73', '#CC79A7')
LIMIT_COLOUR = '#D55E00'
_DASHES = ('-', '--', '-.', ':')

_SOURCES = ('commanded', 'measured', 'computed')
_MOST_DOTS = 150  # samples that can be told from each other


def plot_joint(
    model: RobotModel, results: Samples, joint: str, limits: MotionLimits | None = None
) -> Figure:
    """Draw all orders of the motion and effort of one joint.

    The worst sample of each quantity that exceeds a limit is marked.

    Parameters
    ----------
    model : RobotModel
    results : hodyn_ros.files.Samples
        Joints in any order.
    joint : str
    limits : MotionLimits, optional
        Drawn as lines; by default those of the model.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    JointNameError
        If a joint of the model is missing in the results, or the joint is unknown.
    MotionError
        If the results cannot be drawn.
    ResourceError
        If Matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.files import Samples, compute
    >>> from hodyn_ros.plotting import plot_joint
    >>> model = RobotModel.from_urdf('two_link')
    >>> samples = Samples(model.joint_names, [0.0, 0.5, 1.0], np.zeros((3, 5, 2)))
    >>> figure = plot_joint(model, compute(model, samples), 'elbow')
    >>> len(figure.axes)
    8
    """
    rows = _rows(results, model, ('motion', 'effort'), limits, (joint,))
    return _figure(_wrapped(rows[0], 4), results.name)


def plot_motion(
    model: RobotModel,
    results: Samples,
    limits: MotionLimits | None = None,
    joints: Sequence[str] | None = None,
) -> Figure:
    """Draw the positions of joints and their derivatives, a row for each joint.

    Parameters
    ----------
    model : RobotModel
    results : hodyn_ros.files.Samples
    limits : MotionLimits, optional
        As of `plot_joint`, whose errors are raised, too.
    joints : sequence of str, optional
        By default all.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.files import Samples, compute
    >>> from hodyn_ros.plotting import plot_motion
    >>> model = RobotModel.from_urdf('two_link')
    >>> samples = Samples(model.joint_names, [0.0, 0.5, 1.0], np.zeros((3, 5, 2)))
    >>> figure = plot_motion(model, samples, joints=['elbow'])
    >>> len(figure.axes)
    5
    """
    return _figure(
        _rows(results, model, ('motion',), limits, joints), f'{results.name}: motion'
    )


def plot_efforts(
    model: RobotModel,
    results: Samples,
    limits: MotionLimits | None = None,
    joints: Sequence[str] | None = None,
) -> Figure:
    """Draw the torques of joints and their derivatives, a row for each joint.

    Parameters and errors are those of `plot_motion`; a `MotionError` too without efforts.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.files import Samples, compute
    >>> from hodyn_ros.plotting import plot_efforts
    >>> model = RobotModel.from_urdf('two_link')
    >>> samples = Samples(model.joint_names, [0.0, 0.5, 1.0], np.zeros((3, 5, 2)))
    >>> figure = plot_efforts(model, compute(model, samples))
    >>> figure.savefig('efforts.png')
    >>> len(figure.axes)
    6
    """
    rows = _rows(results, model, ('effort',), limits, joints)
    if not any(rows):
        raise MotionError(
            'The results hold no efforts, expected at least one order of them.'
        )
    return _figure(rows, f'{results.name}: joint efforts')


def plot_portraits(
    model: RobotModel,
    results: Samples,
    limits: MotionLimits | None = None,
    joints: Sequence[str] | None = None,
) -> Figure:
    """Draw the torque of each joint over its rate, with the box of both limits.

    Parameters and errors are those of `plot_motion`; a `MotionError` too without rates of the
    efforts.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each joint with a known rate.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.files import Samples, compute
    >>> from hodyn_ros.plotting import plot_portraits
    >>> model = RobotModel.from_urdf('two_link')
    >>> samples = Samples(model.joint_names, [0.0, 0.5, 1.0], np.zeros((3, 5, 2)))
    >>> figure = plot_portraits(model, compute(model, samples))
    >>> len(figure.axes)
    2
    """
    quantities = limited(model, drawable(model, results), limits)
    panels = [
        panel
        for name in _chosen(model, joints)
        for panel in portrait_panels(quantities, name)
    ]
    if not panels:
        raise MotionError(
            'The results hold no rates of the efforts, which a portrait needs; compute them from '
            'a motion with at least four orders (position to jerk).'
        )
    title = f'{results.name}: torque over its rate'
    return _figure(_wrapped(panels, 4), title, (3.4, 2.8))


def plot_motors(
    model: RobotModel,
    results: Samples,
    motor_limits: MotorLimits | None = None,
    joints: Sequence[str] | None = None,
    actuators: Actuators | None = None,
) -> Figure:
    """Draw the deflection of each joint, and velocity, torque and torque rate of its motors.

    The errors are those of `plot_joint`; a `MotionError` too without motors.

    Parameters
    ----------
    model : RobotModel
    results : hodyn_ros.files.Samples
        With motors.
    motor_limits : MotorLimits, optional
        By default there are none.
    joints : sequence of str, optional
        Those whose motors are drawn; by default all.
    actuators : Actuators, optional
        With them the deflection of a joint with two springs is that of the most deflected one,
        which has the limit, else the mean.

    Returns
    -------
    matplotlib.figure.Figure
        A row for each joint with motors.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.actuators import Actuators, SeriesElastic
    >>> from hodyn_ros.files import Samples, compute
    >>> from hodyn_ros.plotting import plot_motors
    >>> model = RobotModel.from_urdf('two_link')
    >>> drives = Actuators(model, {'elbow': SeriesElastic(1000.0, 0.1)})
    >>> samples = Samples(model.joint_names, [0.0, 0.5, 1.0], np.zeros((3, 5, 2)))
    >>> figure = plot_motors(model, compute(model, samples, actuators=drives), joints=['elbow'])
    >>> len(figure.axes)
    4
    """
    results = drawable(model, results)
    if results.motors is None:
        raise MotionError(
            'The results hold no motors; compute them with actuators to draw the motor side.'
        )
    quantities = limited(
        model, results, actuators=actuators, motor_limits=motor_limits, every_order=True
    )
    by_joint = motor_panels(results, quantities)
    rows = [row for name in _chosen(model, joints) if (row := by_joint[name])]
    if not rows:
        raise MotionError('No motor of these joints is known.')
    return _figure(rows, f'{results.name}: motors')


def plot_energy(model: RobotModel, results: Samples) -> Figure:
    """Draw kinetic and potential energy, and the power of the joints beside the rate of both.

    Parameters and errors are those of `plot_joint`; a `MotionError` too without accelerations.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels: energies and powers.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.files import Samples, compute
    >>> from hodyn_ros.plotting import plot_energy
    >>> model = RobotModel.from_urdf('two_link')
    >>> samples = Samples(model.joint_names, [0.0, 0.5, 1.0], np.zeros((3, 5, 2)))
    >>> figure = plot_energy(model, compute(model, samples))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['energy [J]', 'power [W]']
    """
    results = drawable(model, results)
    panels = energy_panels(model, results)
    if not panels:
        raise MotionError(
            'The energies need positions, velocities, accelerations and efforts, but the results '
            f'hold {results.motion.shape[1]} orders of the motion and {results.effort.shape[1]} '
            'of the effort.'
        )
    return _figure([panels], f'{results.name}: energy', (5.2, 3.2))


def plot_comparison(comparison: Comparison, joints: Sequence[str] | None = None) -> Figure:
    """Draw measured and computed efforts, their difference and its spectrum.

    Parameters
    ----------
    comparison : hodyn_ros.identification.Comparison
    joints : sequence of str, optional
        A row for each; by default all whose efforts were measured.

    Returns
    -------
    matplotlib.figure.Figure
        Three panels a row; the last one has logarithmic axes.

    Raises
    ------
    JointNameError
        If a joint is unknown.
    MotionError
        If no efforts of the joints were measured.
    ResourceError
        If Matplotlib is not installed.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.identification import compare, simulated_recording
    >>> from hodyn_ros.plotting import plot_comparison
    >>> from hodyn_ros.trajectory import fit_spline
    >>> model = RobotModel.from_urdf('two_link')
    >>> swing = fit_spline(range(5), [[0, 0], [1, -1], [-1, 1], [1, 0], [0, 0]])
    >>> recording = simulated_recording(model.with_payload('tool', 0.5), swing)
    >>> comparison = compare(model, recording)
    >>> figure = plot_comparison(comparison, joints=['elbow'])
    >>> len(figure.axes)
    3
    """
    names = _chosen(comparison, joints)
    rows = []
    for j in map(comparison.joint_names.index, names):
        if panels := comparison_panels(comparison, j):
            rows.append([*panels, difference_spectrum(comparison, j)])
    if not rows:
        raise MotionError(f'Efforts of {listed(names)} were not measured.')
    figure = _figure(rows, f'{comparison.name}\n{comparison.summary}')
    for axes in figure.axes[2::3]:
        axes.set(xscale='log', yscale='log')
        axes.autoscale(axis='y')
        axes.set_xticks(comparison.edges[1:-1], [f'{f:g}' for f in comparison.edges[1:-1]])
        axes.tick_params(which='minor', labelbottom=False, labelleft=False)
    return figure


def plot_stop(
    model: RobotModel, analysis: StopAnalysis, cause: StopCause | None = None
) -> Figure:
    """Draw what was commanded and measured around the place where a robot stopped.

    Dots are single samples; what exceeds a limit is shaded, its worst samples have crosses.

    Parameters
    ----------
    model : RobotModel
    analysis : hodyn_ros.analysis.StopAnalysis
    cause : hodyn_ros.analysis.StopCause, optional
        By default the most probable one.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MotionError
        If there is no cause.
    ResourceError
        If Matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.analysis import Recorded, find_stop_causes
    >>> from hodyn_ros.plotting import plot_stop
    >>> model, times = RobotModel.from_urdf('two_link'), 0.001 * np.arange(2000)
    >>> fast = Recorded(times, np.sin(8.0 * times)[:, None] * [1.0, 0.1])
    >>> figure = plot_stop(model, find_stop_causes(model, model.limits, fast))
    >>> len(figure.axes)
    4
    """
    if cause is None:
        if not analysis.causes:
            raise MotionError('There is no place to draw: no cause was found.')
        cause = analysis.causes[0]
    panels = stop_panels(model, analysis, cause)
    figure = _figure(_wrapped(panels, 2), cause.kind)
    half = 0.5 * analysis.period
    for axes, panel in zip(figure.axes, panels):
        axes.axvspan(
            cause.time - half, cause.end + half, color=LIMIT_COLOUR, alpha=0.12, lw=0
        )
        axes.yaxis.set_major_formatter('{x:g}')
        for line, curve in zip(axes.lines, panel.curves):
            place = _SOURCES.index(curve.name)
            line.set(color=CURVE_COLOURS[place], linestyle=_DASHES[place])
            if place == 0 and len(curve.x) <= _MOST_DOTS:
                line.set(marker='o', markersize=2.5)
        if len(panel.curves) > 1:
            axes.legend(fontsize='x-small')
    return figure


def _rows(
    results: Samples,
    model: RobotModel,
    kinds: Sequence[str],
    limits: MotionLimits | None,
    joints: Sequence[str] | None,
) -> list[list[Panel]]:
    """Quantities of some kinds over time, a row for each joint."""
    results = drawable(model, results)
    quantities = limited(model, results, limits, every_order=True)
    of_kinds = [quantity for quantity in quantities if quantity.kind in kinds]
    return [
        panels_over_time(results.times, of_kinds, name) for name in _chosen(model, joints)
    ]


def _chosen(model: RobotModel | Comparison, joints: Sequence[str] | None) -> Sequence[str]:
    """Names of the joints to draw; refuses unknown ones, and none at all."""
    names = model.joint_names if joints is None else joints
    if isinstance(names, str):
        names = (names,)
    if not names:
        raise MotionError('There are no joints to draw.')
    for name in names:
        if name not in model.joint_names:
            raise JointNameError(
                f'Joint {name!r} is unknown; the joints are {listed(model.joint_names)}.'
            )
    return names


def _wrapped(panels: Sequence[Panel], columns: int) -> list[Sequence[Panel]]:
    """Rows of so many panels."""
    return [panels[i : i + columns] for i in range(0, len(panels), columns)]


def _figure(
    rows: Sequence[Sequence[Panel]], title: str, size: tuple[float, float] = (3.4, 2.3)
) -> Figure:
    """Draw rows of panels.

    Parameters
    ----------
    rows : sequence of sequences of Panel
    title : str
        Of the whole figure; the joint is added if there is one only, else panels name it.
    size : (float, float)
        Width and height of a panel [inch].

    Returns
    -------
    matplotlib.figure.Figure
    """
    subjects = {panel.subject for row in rows for panel in row}
    is_of_one = len(subjects) == 1
    title = ': '.join(filter(None, (title, *(subjects if is_of_one else ()))))
    n_columns = max(len(row) for row in rows)
    figure: Figure = figure_library().ShownFigure(
        figsize=(size[0] * n_columns, size[1] * len(rows) + 0.5), layout='constrained'
    )
    figure.suptitle(_plain(title), fontsize='large')
    axes = figure.subplots(len(rows), n_columns, squeeze=False)
    for row, places in zip(rows, axes):
        for panel, place in zip(row, places):
            subject = '' if is_of_one else panel.subject
            _draw(place, panel, ': '.join(filter(None, (subject, panel.title))))
        for place in places[len(row) :]:
            place.set_axis_off()
    return figure


def figure_library() -> ModuleType:
    """Module of the class of figures; a `ResourceError` says what to install.

    Whoever draws at the end of long work asks before it.

    Returns
    -------
    module
        With the class `ShownFigure`.

    Raises
    ------
    ResourceError
        If Matplotlib is not installed.
    """
    optional_import_module('matplotlib.figure', 'Figures need Matplotlib', 'plot')
    return importlib.import_module('hodyn_ros.plotting.shown')


def _draw(axes: Any, panel: Panel, title: str) -> None:
    """Draw a panel into axes: curves, band, limits, marks, title, notes and ranges."""
    for curve, colour, dashes in zip(panel.curves, CURVE_COLOURS, _DASHES):
        marker = 'o' if len(curve.x) == 1 else None
        style = {'color': colour, 'lw': 1.1, 'marker': marker, 'label': curve.name}
        axes.plot(curve.x, curve.y, dashes, **style)
    if panel.band is not None:
        times = panel.curves[0].x
        axes.fill_between(times, *panel.band, color=CURVE_COLOURS[0], alpha=0.25, lw=0.0)
    for limits, line in ((panel.y_limits, axes.axhline), (panel.x_limits, axes.axvline)):
        for limit in filter(np.isfinite, limits):
            line(limit, color=LIMIT_COLOUR, lw=1.0, ls=(0, (5, 3)))
    for place in panel.marks:
        axes.plot(*place, 'x', color=LIMIT_COLOUR, ms=8, mew=2)
    if panel.is_portrait:
        (start,) = panel.curves
        axes.plot(start.x[0], start.y[0], 'o', color=CURVE_COLOURS[0], ms=4)
    axes.set_xlim(panel.x_range)
    axes.set_ylim(panel.y_range)
    axes.set_title(_plain(title), fontsize='small', pad=6 + 10 * len(panel.notes))
    notes = axes.annotate(
        _plain('\n'.join(panel.notes)),
        (0.5, 1.02),
        xycoords='axes fraction',
        ha='center',
        va='bottom',
        fontsize='x-small',
        color='0.35',
    )
    # The title above it holds its place; a long one shall not narrow the axes.
    notes.set_in_layout(False)
    axes.set_xlabel(panel.x_label, fontsize='small')
    axes.set_ylabel(panel.y_label, fontsize='small')
    axes.tick_params(labelsize='small')
    axes.grid(True, alpha=0.3, lw=0.6)
    if len(panel.curves) > 1:
        axes.legend(fontsize='x-small')


def _plain(text: str) -> str:
    """Text that Matplotlib can draw and does not read as mathematics."""
    return text.encode(errors='replace').decode().replace('$', r'\$')
