"""Robots in motion with their torques on one time line: recordings of Rerun.

Rerun is imported only where it is used; it comes with the extra ``view``. It keeps poses and
colours as float32, scalars as float64.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.checks import Array
from hodyn_ros.kinematics.closed_loops import opened
from hodyn_ros.kinematics.joints import body_coordinates, body_poses
from hodyn_ros.lie import se3
from hodyn_ros.model.limits import MotionLimits, motion_limits
from hodyn_ros.model.robot import BASE, RobotModel
from hodyn_ros.model.visuals import Visual, read_visuals
from hodyn_ros.plotting.series import (
    Series,
    checked_results,
    effort_series,
    motion_series,
    motor_series,
)
from hodyn_ros.resources import optional_import_module

if TYPE_CHECKING:
    from hodyn_ros.actuators.limits import MotorLimits
    from hodyn_ros.dynamics.wrenches import Wrench
    from hodyn_ros.files import Results

_FRAME_RATE = 60.0  # of poses and colours, at most [1/s]
_MAGNIFIED = 20.0  # deflections of springs, which could not be seen otherwise
_ARROW = 0.3  # length of the largest force, as part of the size of the robot

_PARTS = 'parts of limits'
_UNUSED, _USED, _EXCEEDED = (205, 209, 213), (0, 158, 115), (213, 40, 30)
_UNKNOWN = (150, 153, 158)
_LINES = (
    0x56B4E9FF,
    0xF0E442FF,
    0x009E73FF,
    0xCC79A7FF,
    0x0072B2FF,
    0xE69F00FF,
    0xAAAAAAFF,
)
"""Of joints, and of motions where one joint alone is drawn; red is left to limits."""
_MOTOR, _FORCE, _MOMENT = (230, 159, 0), (0, 114, 178), (204, 121, 167)
_MEDIA = {
    '.dae': 'model/vnd.collada+xml',
    '.glb': 'model/gltf-binary',
    '.gltf': 'model/gltf+json',
    '.obj': 'model/obj',
    '.stl': 'model/stl',
}


def view_library() -> ModuleType:
    """Rerun; a `ResourceError` says what to install.

    Returns
    -------
    module

    Raises
    ------
    ResourceError
        If it is not installed.
    """
    return optional_import_module('rerun', 'A view needs Rerun', 'view')


class MovingBodies(NamedTuple):
    """Bodies of a robot along a motion.

    Attributes
    ----------
    model : RobotModel
        Their tree, of n_bodies; of a model with closed loops the one without them.
    poses : list of ndarray, shape (N, 4, 4)
        Of each body in the base frame.
    joints : list of int
        Independent joint that moves each of them, -1 where none alone does.
    """

    model: RobotModel
    poses: list[Array]
    joints: list[int]


def moving_bodies(model: RobotModel, positions: Array) -> MovingBodies:
    """Poses of all bodies, and which joint moves which.

    Parameters
    ----------
    model : RobotModel
    positions : ndarray, shape (N, n)
        Of the independent joints [rad] or [m].

    Returns
    -------
    MovingBodies
    """
    names = model.joint_names
    tree, motion = opened(model, positions[:, None])
    poses = body_poses(tree, body_coordinates(tree, motion)[:, 0])
    moves = [names.index(name) if name in names else -1 for name in tree.joint_names]
    return MovingBodies(tree, poses, [moves[j] for j in tree.coordinate])


def view(
    model: RobotModel,
    results: Results | Mapping[str, Results],
    limits: MotionLimits | None = None,
    *,
    motor_limits: MotorLimits | None = None,
    description: str | bytes | os.PathLike[str] | None = None,
) -> Any:
    """Robots in motion, side by side, with their torques and limits on one time line.

    Links have the colour of the largest part of a limit that their joint uses at that moment, of
    velocity and its derivatives and of torque and its: grey to green, red beyond it. Arrows are
    wrenches that act on the robot. Where springs are, a pin at the joint turns by twenty times
    their deflection.

    Parameters
    ----------
    model : RobotModel
    results : Results, or mapping of str to Results
        One motion, or several by the names that they get; joints in any order.
    limits : MotionLimits, optional
        By default those of the model.
    motor_limits : MotorLimits, optional
    description : str, bytes or path, optional
        URDF with the shapes of the links; by default the file that the model was read from.
        Bodies without shapes are sticks between joints.

    Returns
    -------
    rerun.RecordingStream
        ``.save('motion.rrd')`` writes it, ``.spawn()`` opens the viewer, ``.notebook_show()``
        shows it in a notebook.

    Raises
    ------
    JointNameError
        If the joints of the results are not those of the model.
    MotionError
        If the results cannot be drawn.
    ModelError
        If the description cannot be read.
    ResourceError
        If Rerun is not installed.
    """
    rr = view_library()
    motions = (
        results if isinstance(results, Mapping) else {Path(results.name).stem: results}
    )
    limits = motion_limits(model) if limits is None else limits
    visuals = _visuals(model, description)
    recording = rr.RecordingStream('hodyn')
    recording.log('/', rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
    shown: list[Series] = []
    ends: list[float] = []
    place, middle = 0.0, np.zeros(3)
    for number, (name, given) in enumerate(motions.items()):
        checked = checked_results(given, model)
        shown = _shown(checked, model, limits, motor_limits)
        motion = _Motion(recording, name, number, model, checked)
        motion.record(visuals, shown, place)
        place, middle = place + 1.5 * motion.size, motion.middle
        ends += checked.times[[0, -1]].tolist()
    _record_limits(recording, shown, [min(ends), max(ends)])
    recording.send_blueprint(_blueprint([*motions], shown, place, middle))
    return recording


def share_colours(shares: Array) -> NDArray[np.uint8]:
    """Colours of parts of limits: grey to green, red beyond the limit.

    Parameters
    ----------
    shares : ndarray, shape (...)
        1 on the limit; NaN where it is not known.

    Returns
    -------
    ndarray of uint8, shape (..., 3)
        Red, green and blue.
    """
    blend = np.clip(shares, 0.0, 1.0)[..., None]
    colours = (1.0 - blend) * _UNUSED + blend * _USED
    # On the limit, but for rounding, it is kept.
    colours = np.where((shares > 1.0 + 1e-6)[..., None], _EXCEEDED, colours)
    return np.where(np.isnan(shares)[..., None], _UNKNOWN, colours).astype(np.uint8)


def _visuals(
    model: RobotModel, description: str | bytes | os.PathLike[str] | None
) -> dict[str, list[Visual]]:
    """Shapes that can be shown, by the link."""
    file = Path(model.provenance.file)
    if description is None and not file.is_file():
        return {}
    found: dict[str, list[Visual]] = {}
    for visual in read_visuals(file if description is None else description, file.parent):
        if visual.mesh is None or visual.mesh.suffix.lower() in _MEDIA:
            found.setdefault(visual.link, []).append(visual)
    return found


def _shown(
    results: Results,
    model: RobotModel,
    limits: MotionLimits,
    motor_limits: MotorLimits | None,
) -> list[Series]:
    """Efforts, motors and motion, as far as they may have limits, without positions."""
    series = (
        *effort_series(results, model, limits),
        *motor_series(results, model, motor_limits)[1:],
        *motion_series(results, model, limits)[1:],
    )
    return [item for item in series if item.quantity]


def _shares(
    series: Sequence[Series], names: tuple[str, ...], rows: NDArray[np.intp]
) -> Array:
    """Largest part of a limit that each joint uses, (F, n); NaN where none is known."""
    shares = np.full((len(rows), len(names)), np.nan)
    for item in series:
        if item.names == names:
            shares = np.fmax(shares, np.abs(_parts(item)[rows]))
    return shares


def _parts(series: Series) -> Array:
    """Values as parts of their upper limits, (N, m); NaN without one."""
    has_limit = np.isfinite(series.upper) & (series.upper > 0.0)
    return np.asarray(series.values / np.where(has_limit, series.upper, np.nan))


class _Motion:
    """What is recorded of one motion.

    Parameters
    ----------
    recording : rerun.RecordingStream
    name : str
    number : int
        Of the motion, from 0.
    model : RobotModel
    results : Results
        As `checked_results` gives them.
    """

    def __init__(
        self, recording: Any, name: str, number: int, model: RobotModel, results: Results
    ) -> None:
        self.rr, self.recording, self.name = view_library(), recording, name
        self.number = number % len(_LINES)
        self.model, self.results, times = model, results, results.times
        instants = np.append(np.arange(times[0], times[-1], 1.0 / _FRAME_RATE), times[-1])
        self.rows = np.unique(np.searchsorted(times, instants).clip(0, len(times) - 1))
        """Samples whose poses and colours are recorded, F of them."""
        self.bodies = moving_bodies(model, results.motion[self.rows, 0])
        origins = np.concatenate([pose[:, :3, 3] for pose in self.bodies.poses])
        self.size = float(np.abs(origins).max()) or 1.0
        self.middle = origins.mean(axis=0)

    def _record(self, path: Sequence[str], *what: Any) -> None:
        """Record what does not change."""
        self.recording.log(_path(self.name, *path), *what, static=True)

    def _record_along(
        self, path: Sequence[str], columns: Any, rows: Any | None = None
    ) -> None:
        """Record what changes, at samples; by default those of the poses."""
        times = self.results.times[self.rows if rows is None else rows]
        index = [self.rr.TimeColumn('time', duration=times)]
        self.recording.send_columns(_path(self.name, *path), index, columns)

    def record(
        self, visuals: Mapping[str, list[Visual]], series: Sequence[Series], place: float
    ) -> None:
        """Everything, with the base of the robot at a place on the y axis [m]."""
        self._record([], self.rr.Transform3D(translation=[0.0, place, 0.0]))
        above = [0.0, 0.0, 1.2 * self.size]
        name = self.rr.Points3D([above], labels=[self.name], show_labels=True, radii=0.0)
        self._record(['name'], name)
        self._record_robot(visuals, _shares(series, self.model.joint_names, self.rows))
        self._record_wrenches()
        self._record_springs()
        self._record_series(series)

    def _record_robot(self, visuals: Mapping[str, list[Visual]], shares: Array) -> None:
        """Poses and shapes of all bodies, with the colours of the parts (F, n)."""
        tree, poses, joints = self.bodies
        # The last column is for what no joint alone moves: -1 is its index.
        colours = share_colours(np.pad(shares, ((0, 0), (0, 1)), constant_values=np.nan))
        for body in (BASE, *range(tree.n_bodies)):
            links = {name: pose for name, (of, pose) in tree.links.items() if of == body}
            path = ['base'] if body == BASE else ['bodies', tree.body_names[body]]
            joint = -1 if body == BASE else joints[body]
            colour = colours[:, joint]
            if body != BASE:
                self._record_along(path, self._transforms(poses[body]))
            for link, pose in links.items():
                self._record([*path, link], self._transform(pose))
                for i, visual in enumerate(visuals.get(link, ())):
                    self._record_visual([*path, link, str(i)], visual, colour)
            if visuals.keys().isdisjoint(links):
                ends = [end[:3, 3] for end in links.values()]
                ends += [tree.B[i][:3, 3] for i in np.flatnonzero(tree.parent == body)]
                strips = [[np.zeros(3), end] for end in ends if end.any()]
                sticks = self.rr.LineStrips3D(strips, radii=0.02 * self.size)
                self._record_shape([*path, 'sticks'], sticks, colour)

    def _transform(self, pose: Array) -> Any:
        """Pose (4, 4) that does not change."""
        return self.rr.Transform3D(translation=pose[:3, 3], mat3x3=pose[:3, :3])

    def _transforms(self, poses: Array) -> Any:
        """Poses (F, 4, 4)."""
        return self.rr.Transform3D.columns(
            translation=poses[:, :3, 3], mat3x3=poses[:, :3, :3]
        )

    def _record_visual(
        self, path: Sequence[str], visual: Visual, colour: NDArray[np.uint8]
    ) -> None:
        """Shape of a link."""
        rr, size = self.rr, visual.size
        stretch = np.diag([*(size if visual.mesh else np.ones(3)), 1.0])
        self._record(path, self._transform(visual.pose @ stretch))
        if visual.mesh is not None:
            media = _MEDIA[visual.mesh.suffix.lower()]
            shape = rr.Asset3D(contents=visual.mesh.read_bytes(), media_type=media)
        elif visual.kind == 'box':
            shape = rr.Boxes3D(half_sizes=[0.5 * size], fill_mode='solid')
        elif visual.kind == 'sphere':
            shape = rr.Ellipsoids3D(radii=size, fill_mode='solid')
        elif visual.kind == 'cylinder':
            shape = rr.Cylinders3D(radii=size[:1], lengths=size[1:], fill_mode='solid')
        else:
            middle = [[0.0, 0.0, -0.5 * size[1]]]  # else it is at one end
            ends = {'radii': size[:1], 'lengths': size[1:], 'translations': middle}
            shape = rr.Capsules3D(**ends, fill_mode='solid')
        self._record_shape(path, shape, colour)

    def _record_shape(
        self, path: Sequence[str], shape: Any, colour: NDArray[np.uint8]
    ) -> None:
        """Shapes with a colour at each of the samples (F, 3)."""
        self._record(path, shape)
        what = 'albedo_factor' if isinstance(shape, self.rr.Asset3D) else 'colors'
        self._record_along(path, type(shape).columns(**{what: colour}))

    def _record_wrenches(self) -> None:
        """Forces and moments that act on the robot, as arrows at their links."""
        for wrench in self.results.wrenches:
            body, frame = self.model.links[wrench.link]
            pose = frame if body == BASE else self.bodies.poses[body] @ frame
            vectors = wrench_arrows(wrench, pose, self.rows)
            largest = np.linalg.norm(vectors, axis=-1).max(axis=0)
            scale = _ARROW * self.size / np.where(largest > 0.0, largest, 1.0)
            path = ['wrenches', wrench.link]
            colours = self.rr.Arrows3D.from_fields(colors=[_FORCE, _MOMENT])
            self._record(path, colours)
            origins = np.repeat(np.broadcast_to(pose, (len(self.rows), 4, 4)), 2, axis=0)
            columns = self.rr.Arrows3D.columns(
                vectors=(vectors * scale[:, None]).reshape(-1, 3), origins=origins[:, :3, 3]
            )
            self._record_along(path, columns.partition([2] * len(self.rows)))

    def _record_springs(self) -> None:
        """Pins that turn, or slide, by the magnified deflections of springs."""
        if self.results.motors is None:
            return
        tree = self.bodies.model
        deflections = np.nan_to_num(self.results.motors.deflection[self.rows, 0])
        for name, deflection in zip(self.model.joint_names, deflections.T):
            if not deflection.any():
                continue
            X = tree.X[tree.body_names.index(name)]
            across = np.eye(3)[np.abs(X[:3]).argmin()]
            pin = 0.2 * self.size * (across - X[:3] * (X[:3] @ across))
            for path, colour in ((['link'], _UNKNOWN), (['spring'], _MOTOR)):
                arrow = self.rr.Arrows3D(vectors=[pin], colors=[colour])
                self._record(['bodies', name, *path], arrow)
            turned = se3.exp(X * (_MAGNIFIED * deflection)[:, None])
            self._record_along(['bodies', name, 'spring'], self._transforms(turned))

    def _record_series(self, series: Sequence[Series]) -> None:
        """Quantities with their units by joint or motor, and all as parts of their limits."""
        for item in series:
            for name, label, values in zip(item.names, item.labels, item.values.T):
                title = f'{self.name}: {label.title} [{label.unit}]'
                path = [item.quantity, name]
                self._record_scalars(path, {title: _LINES[self.number]}, values[:, None])
            parts = _parts(item)
            limited = np.flatnonzero(~np.isnan(parts).all(axis=0))
            lines = {item.names[i]: _LINES[i % len(_LINES)] for i in limited}
            self._record_scalars([_PARTS, item.quantity], lines, parts[:, limited])

    def _record_scalars(
        self, path: Sequence[str], lines: Mapping[str, int], values: Array
    ) -> None:
        """Values (N, m) with m names and colours; unknown ones are left out."""
        known = np.flatnonzero(~np.isnan(values).any(axis=1))
        if lines and known.size:
            names, colours = [*lines], [*lines.values()]
            self._record(path, self.rr.SeriesLines(names=names, colors=colours))
            columns = self.rr.Scalars.columns(scalars=values[known].ravel())
            lengths = [values.shape[1]] * len(known)
            self._record_along(path, columns.partition(lengths), known)


def wrench_arrows(wrench: Wrench, pose: Array, rows: Any) -> Array:
    """Force and moment about the link origin that act on the robot, in axes of the base.

    Parameters
    ----------
    wrench : Wrench
        With values of shape (N, S, 6).
    pose : ndarray, shape (4, 4) or (F, 4, 4)
        Of its link in the base frame.
    rows : index
        Samples that are wanted, F of them.

    Returns
    -------
    ndarray, shape (F, 2, 3)
        Force [N], moment [N m].
    """
    values = np.asarray(wrench.values)[rows, 0]
    moment, force = values[:, :3], values[:, 3:]
    if wrench.expressed_in == 'body':
        moment, force = (
            (pose[..., :3, :3] @ each[..., None])[..., 0] for each in (moment, force)
        )
    elif wrench.expressed_in == 'spatial':
        moment = moment - np.cross(pose[..., :3, 3], force)
    arrows = np.stack([force, moment], axis=1)
    return -arrows if wrench.acting == 'on_environment' else arrows


def _path(*parts: str) -> str:
    """Path of an entity."""
    return str(view_library().new_entity_path([part for part in parts if part]))


def _record_limits(recording: Any, series: Sequence[Series], span: list[float]) -> None:
    """Lines at the limits, from the first to the last instant."""
    rr = view_library()
    bounds = {_path('limits', _PARTS): (-1.0, 1.0)}
    for item in series:
        for name, lower, upper in zip(item.names, item.lower, item.upper):
            if np.isfinite(upper):
                bounds[_path('limits', item.quantity, name)] = (lower, upper)
    for path, both in bounds.items():
        lines = rr.SeriesLines(names=['limit'] * 2, colors=[_EXCEEDED] * 2)
        recording.log(path, lines, static=True)
        columns = rr.Scalars.columns(scalars=[*both, *both]).partition([2, 2])
        recording.send_columns(path, [rr.TimeColumn('time', duration=span)], columns)


def _blueprint(
    motions: Sequence[str], series: Sequence[Series], width: float, middle: Array
) -> Any:
    """Robots beside plots: of all joints as parts of limits, and of each joint with units.

    Parameters
    ----------
    motions : sequence of str
    series : sequence of Series
        What is plotted.
    width : float
        Of all robots together, along y from the first one on [m].
    middle : ndarray, shape (3,)
        Of one of them, from its base [m].
    """
    rrb = optional_import_module('rerun.blueprint', 'A view needs Rerun', 'view')
    parts = [
        rrb.TimeSeriesView(
            name=f'{motion}: {item.labels[0].name} / limit',
            contents=[_path(motion, _PARTS, item.quantity), _path('limits', _PARTS)],
            plot_legend=rrb.PlotLegend(visible=False),
        )
        for item in series
        if np.isfinite(item.upper).any()
        for motion in motions
    ]
    tabs = [rrb.Grid(*parts, grid_columns=len(motions), name='All joints')] if parts else []
    for name in dict.fromkeys(name for item in series for name in item.names):
        views = [
            rrb.TimeSeriesView(
                name=f'{item.labels[item.names.index(name)].title}',
                contents=[_path(top, item.quantity, name) for top in (*motions, 'limits')],
            )
            for item in series
            if name in item.names
        ]
        tabs.append(rrb.Grid(*views, grid_columns=2, name=name))
    step = width / len(motions)
    target = middle + [0.0, 0.5 * (width - step), 0.0]
    eye = rrb.EyeControls3D(
        position=target + [step + 0.5 * width, 0.0, 0.3 * step], look_target=target
    )
    return rrb.Blueprint(
        rrb.Horizontal(
            rrb.Spatial3DView(name='Robots', eye_controls=eye),
            rrb.Tabs(*tabs, active_tab=0),
        ),
        rrb.TimePanel(
            state='collapsed', timeline='time', loop_mode='all', play_state='playing'
        ),
        collapse_panels=True,
    )
