"""Robots in motion with their torques on one time line: recordings of Rerun.

`view` makes one of whole motions, `Scene` also one of motions that are not over.

Rerun is imported only where it is used; it comes with the extra ``view``. It keeps poses and
colours as float32, scalars as float64.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.analysis.limits import limited
from hodyn_ros.kinematics.closed_loops import opened
from hodyn_ros.kinematics.motions import body_coordinates
from hodyn_ros.kinematics.poses import poses_in_base
from hodyn_ros.lie import Jet, se3
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.model.violations import Quantity
from hodyn_ros.model.visuals import Visual, read_visuals
from hodyn_ros.plotting.labels import labels_of
from hodyn_ros.plotting.panels import drawable
from hodyn_ros.resources import optional_import_module
from hodyn_ros.typing import Array, Indices

if TYPE_CHECKING:
    from hodyn_ros.actuators.limits import MotorLimits
    from hodyn_ros.dynamics.wrenches import Wrench
    from hodyn_ros.files import Samples

_FRAME_RATE = 60.0  # of poses and colours, at most [1/s]
_SHOWN_PAST = 20.0  # of plots of a motion that is not over [s]
_MAGNIFIED = 20.0  # deflections of springs, which could not be seen otherwise
_ARROW = 0.3  # length of the largest force, as part of the size of the robot

_PARTS, _LIMITS = 'parts of limits', 'limits'
_UNUSED, _USED, _EXCEEDED = (205, 209, 213), (0, 158, 115), (213, 40, 30)
_LIMIT = 0xD5281EFF  # the last of these
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
    (poses,) = poses_in_base(tree, Jet([body_coordinates(tree, motion)[:, 0]]))
    moves = [names.index(name) if name in names else -1 for name in tree.joint_names]
    return MovingBodies(
        tree, list(np.moveaxis(poses, 1, 0)), [moves[j] for j in tree.coordinate]
    )


def sticks(tree: RobotModel) -> dict[int, list[Array]]:
    """Ends of the sticks from the origin of each body to its links and to the bodies behind it.

    Parameters
    ----------
    tree : RobotModel
        Of `moving_bodies`.

    Returns
    -------
    dict of int to list of ndarray, shape (3,)
        By the body, `BASE` first, in its axes [m].
    """
    found = {}
    for body in (BASE, *range(tree.n_bodies)):
        ends = [frame.pose[:3, 3] for frame in tree.links.values() if frame.body == body]
        ends += [tree.B[i][:3, 3] for i in np.flatnonzero(tree.parent == body)]
        found[body] = [end for end in ends if end.any()]
    return found


def view(
    model: RobotModel,
    results: Samples | Mapping[str, Samples],
    limits: MotionLimits | None = None,
    *,
    motor_limits: MotorLimits | None = None,
    description: str | bytes | os.PathLike[str] | None = None,
) -> Any:
    """Robots in motion, side by side, with their torques and limits on one time line.

    Links have the colour of the largest part of a limit that their joint uses until the next
    picture, of velocity and its derivatives and of torque and its: grey to green, red beyond it.
    Arrows are wrenches that act on the robot. Where springs are, a pin at the joint turns by
    twenty times their deflection.

    Parameters
    ----------
    model : RobotModel
    results : Samples, or mapping of str to Samples
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

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.files import Samples, compute
    >>> from hodyn_ros.plotting import view
    >>> model = RobotModel.from_urdf('two_link')
    >>> samples = Samples(model.joint_names, [0.0, 0.5, 1.0], np.zeros((3, 5, 2)))
    >>> scene = view(model, compute(model, samples))
    >>> scene.save('motion.rrd')
    """
    scene = Scene(model, limits, motor_limits=motor_limits, description=description)
    if not isinstance(results, Mapping):
        results = {Path(results.name).stem: results}
    for name, of_motion in results.items():
        scene.record(name, drawable(model, of_motion))
    return scene.recording


class Scene:
    """Robots in motion that is recorded as a whole or in parts.

    Parameters
    ----------
    model : RobotModel
    limits, motor_limits, description
        As of `view`.
    is_live : bool
        Whether what comes is followed, and plots show the last of it.

    Attributes
    ----------
    model : RobotModel
    recording : rerun.RecordingStream

    Raises
    ------
    ModelError
        If the description cannot be read.
    ResourceError
        If Rerun is not installed.
    """

    def __init__(
        self,
        model: RobotModel,
        limits: MotionLimits | None = None,
        *,
        motor_limits: MotorLimits | None = None,
        description: str | bytes | os.PathLike[str] | None = None,
        is_live: bool = False,
    ) -> None:
        rr = view_library()
        self.model: RobotModel = model
        self.recording: Any = rr.RecordingStream('hodyn')
        self.recording.log('/', rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
        self._beside = partial(limited, model, limits=limits, motor_limits=motor_limits)
        self._visuals, self._is_live = _visuals(model, description), is_live
        self._motions: dict[str, _Motion] = {}
        self._limits = _Motion(self.recording, _LIMITS, 0, model)
        self._width = 0.0

    def record(self, name: str, results: Samples) -> None:
        """Record a motion, or the next part of it.

        Parameters
        ----------
        name : str
            Of the motion; each has a robot of its own.
        results : Samples
            In the order of the model, NaN where values are not known; times do not decrease.
        """
        is_new, times, number = name not in self._motions, results.times, len(self._motions)
        if is_new:
            self._motions[name] = _Motion(self.recording, name, number, self.model)
        motion = self._motions[name]
        quantities = self._beside(results)
        series = [quantity for quantity in quantities if quantity.name != 'position']
        series.sort(key=lambda quantity: quantity.kind == 'motion')  # behind the efforts
        rows = np.flatnonzero(~np.isnan(results.motion[:, 0]).any(axis=1))
        if rows.size:
            rows = rows[frames(times[rows])]
            bodies = moving_bodies(self.model, results.motion[rows, 0])
            if not motion.size:
                motion.place(bodies, self._visuals, self._width)
                is_new, self._width = True, self._width + 1.5 * motion.size
            motion.record_poses(results, rows, bodies)
        motion.record_series(times, series)
        self._limits.record_limits(times[[0, -1]], series)
        if is_new:
            width, middle = self._width, motion.middle
            blueprint = _blueprint([*self._motions], series, width, middle, self._is_live)
            self.recording.send_blueprint(blueprint)


def frames(times: Array, period: float = 0.0) -> Indices:
    """Samples at which a robot is shown, the last one too.

    Parameters
    ----------
    times : ndarray, shape (N,)
        [s]
    period : float
        Time between them, at least that of the fastest screens [s].

    Returns
    -------
    ndarray of int
    """
    period = max(period, 1.0 / _FRAME_RATE)
    instants = np.append(np.arange(times[0], times[-1], period), times[-1])
    return np.unique(np.searchsorted(times, instants).clip(0, len(times) - 1))


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


class _Motion:
    """What is recorded of one motion.

    Parameters
    ----------
    recording : rerun.RecordingStream
    name : str
    number : int
        Of the motion, from 0.
    model : RobotModel

    Attributes
    ----------
    size : float
        Of the robot [m]; 0 until it has its place.
    middle : ndarray, shape (3,)
        Of the robot, from its base [m].
    """

    def __init__(self, recording: Any, name: str, number: int, model: RobotModel) -> None:
        self.rr, self.recording, self.name = view_library(), recording, name
        self.number, self.model = number % len(_LINES), model
        self.size, self.middle = 0.0, np.zeros(3)
        self._lines: set[str] = set()  # that have their names
        self._shapes: list[
            tuple[list[str], Any, int]
        ] = []  # and the joints that colour them

    def _record(self, path: Sequence[str], *what: Any) -> None:
        """Record what does not change."""
        self.recording.log(_path(self.name, *path), *what, static=True)

    def _record_along(self, path: Sequence[str], columns: Any, times: Array) -> None:
        """Record what changes, at times."""
        index = [self.rr.TimeColumn('time', duration=times)]
        self.recording.send_columns(_path(self.name, *path), index, columns)

    def place(
        self, bodies: MovingBodies, visuals: Mapping[str, list[Visual]], place: float
    ) -> None:
        """Record the robot, with its base at a place on the y axis [m]; poses give its size."""
        tree, poses, joints = bodies
        origins = np.concatenate([pose[:, :3, 3] for pose in poses])
        self.size = float(np.abs(origins).max()) or 1.0
        self.middle = origins.mean(axis=0)
        self._record([], self.rr.Transform3D(translation=[0.0, place, 0.0]))
        above = [0.0, 0.0, 1.2 * self.size]
        name = self.rr.Points3D([above], labels=[self.name], show_labels=True, radii=0.0)
        self._record(['name'], name)
        for body, ends in sticks(tree).items():
            path, joint = ['base'], -1
            if body != BASE:
                path, joint = ['bodies', tree.body_names[body]], joints[body]
            links = [name for name, frame in tree.links.items() if frame.body == body]
            for link in links:
                self._record([*path, link], self._transform(tree.links[link].pose))
                for i, visual in enumerate(visuals.get(link, ())):
                    pose, entity = visual.pose, [*path, link, str(i)]
                    if visual.mesh is not None:
                        pose = pose @ np.diag([*visual.size, 1.0])
                    self._record(entity, self._transform(pose))
                    self._record_shape(entity, self._shape(visual), joint)
            if visuals.keys().isdisjoint(links):
                strips = [[np.zeros(3), end] for end in ends]
                shape = self.rr.LineStrips3D(strips, radii=0.02 * self.size)
                self._record_shape([*path, 'sticks'], shape, joint)

    def record_poses(self, results: Samples, rows: Indices, bodies: MovingBodies) -> None:
        """Record poses of all bodies at samples, wrenches and springs."""
        times = results.times[rows]
        for name, poses in zip(bodies.model.body_names, bodies.poses):
            self._record_along(['bodies', name], self._transforms(poses), times)
        self._record_wrenches(results, rows, bodies)
        self._record_springs(results, rows, bodies)

    def _transform(self, pose: Array) -> Any:
        """Pose (4, 4) that does not change."""
        return self.rr.Transform3D(translation=pose[:3, 3], mat3x3=pose[:3, :3])

    def _transforms(self, poses: Array) -> Any:
        """Poses (F, 4, 4)."""
        return self.rr.Transform3D.columns(
            translation=poses[:, :3, 3], mat3x3=poses[:, :3, :3]
        )

    def _shape(self, visual: Visual) -> Any:
        """Shape of a link."""
        rr, size = self.rr, visual.size
        if visual.mesh is not None:
            media = _MEDIA[visual.mesh.suffix.lower()]
            return rr.Asset3D(contents=visual.mesh.read_bytes(), media_type=media)
        if visual.kind == 'box':
            return rr.Boxes3D(half_sizes=[0.5 * size], fill_mode='solid')
        if visual.kind == 'sphere':
            return rr.Ellipsoids3D(radii=size, fill_mode='solid')
        round_ = {'radii': size[:1], 'lengths': size[1:], 'fill_mode': 'solid'}
        if visual.kind == 'cylinder':
            return rr.Cylinders3D(**round_)
        # Its origin is in the middle, and not at one end.
        return rr.Capsules3D(**round_, translations=[[0.0, 0.0, -0.5 * size[1]]])

    def _record_shape(self, path: list[str], shape: Any, joint: int) -> None:
        """Shapes with the colour of a joint, -1 for none."""
        self._record(path, shape)
        self._shapes.append((path, type(shape), joint))

    def _record_wrenches(
        self, results: Samples, rows: Indices, bodies: MovingBodies
    ) -> None:
        """Forces and moments that act on the robot, as arrows at their links."""
        for wrench in results.wrenches:
            body, frame = self.model.links[wrench.link]
            pose = frame if body == BASE else bodies.poses[body] @ frame
            vectors = wrench_arrows(wrench, pose, rows)
            largest = np.linalg.norm(vectors, axis=-1).max(axis=0)
            scale = _ARROW * self.size / np.where(largest > 0.0, largest, 1.0)
            path = ['wrenches', wrench.link]
            colours = self.rr.Arrows3D.from_fields(colors=[_FORCE, _MOMENT])
            self._record(path, colours)
            origins = np.repeat(np.broadcast_to(pose, (len(rows), 4, 4)), 2, axis=0)
            columns = self.rr.Arrows3D.columns(
                vectors=(vectors * scale[:, None]).reshape(-1, 3), origins=origins[:, :3, 3]
            )
            arrows = columns.partition([2] * len(rows))
            self._record_along(path, arrows, results.times[rows])

    def _record_springs(
        self, results: Samples, rows: Indices, bodies: MovingBodies
    ) -> None:
        """Pins that turn, or slide, by the magnified deflections of springs."""
        if results.motors is None:
            return
        tree = bodies.model
        deflections = np.nan_to_num(results.motors.deflection[rows, 0])
        for name, deflection in zip(results.joint_names, deflections.T):
            if not deflection.any():
                continue
            X = tree.X[tree.body_names.index(name)]
            across = np.eye(3)[np.abs(X[:3]).argmin()]
            pin = 0.2 * self.size * (across - X[:3] * (X[:3] @ across))
            for path, colour in ((['link'], _UNKNOWN), (['spring'], _MOTOR)):
                arrow = self.rr.Arrows3D(vectors=[pin], colors=[colour])
                self._record(['bodies', name, *path], arrow)
            turned = se3.exp(X * (_MAGNIFIED * deflection)[:, None])
            path = ['bodies', name, 'spring']
            self._record_along(path, self._transforms(turned), results.times[rows])

    def record_series(self, times: Array, series: Sequence[Quantity]) -> None:
        """Record quantities with units by joint or motor, as parts of limits, and as colours."""
        for item in series:
            for name, label, values in zip(item.owners, labels_of(item), item.values.T):
                line = [(f'{self.name}: {label.title} [{label.unit}]', _LINES[self.number])]
                path = [item.name, name]
                self._record_scalars(path, line, values[:, None], times)
            parts = np.copysign(item.shares(), item.values)
            has_limit = np.flatnonzero(~np.isnan(parts).all(axis=0))
            lines = [(item.owners[i], _LINES[i % len(_LINES)]) for i in has_limit]
            self._record_scalars([_PARTS, item.name], lines, parts[:, has_limit], times)

        rows = frames(times)
        names, n = self.model.joint_names, self.model.n_joints
        used = [item.shares()[:, :n] for item in series if item.owners[:n] == names]
        # Each colour is that of the largest part until the next one: no excess is missed.
        shares = np.fmax.reduceat(np.fmax.reduce(used), rows)
        known = ~np.isnan(shares).all(axis=1)
        # The last column is for what no joint alone moves: -1 is its index.
        shares = np.pad(shares[known], ((0, 0), (0, 1)), constant_values=np.nan)
        colours, instants = share_colours(shares), times[rows[known]]
        for path, kind, joint in self._shapes:
            what = 'albedo_factor' if kind is self.rr.Asset3D else 'colors'
            columns = kind.columns(**{what: colours[:, joint]})
            self._record_along(path, columns, instants)

    def record_limits(self, span: Array, series: Sequence[Quantity]) -> None:
        """Record lines at the limits, from an instant to another one."""
        bounds: dict[tuple[str, ...], tuple[float, float]] = {(_PARTS,): (-1.0, 1.0)}
        for item in series:
            for name, lower, upper in zip(item.owners, *item.widest):
                if np.isfinite(upper):
                    bounds[item.name, name] = (lower, upper)
        for path, both in bounds.items():
            lines = [('limit', _LIMIT)] * 2
            self._record_scalars(path, lines, np.array([both, both]), span)

    def _record_scalars(
        self,
        path: Sequence[str],
        lines: Sequence[tuple[str, int]],
        values: Array,
        times: Array,
    ) -> None:
        """Values (N, m) with m names and colours; unknown ones are left out."""
        known = np.flatnonzero(~np.isnan(values).any(axis=1))
        if lines and known.size:
            entity = _path(self.name, *path)
            if entity not in self._lines:
                self._lines.add(entity)
                names, colours = zip(*lines)
                # Three numbers in a list could as well be red, green and blue.
                packed = np.array(colours, np.uint32)
                self._record(path, self.rr.SeriesLines(names=names, colors=packed))
            columns = self.rr.Scalars.columns(scalars=values[known].ravel())
            lengths = [values.shape[1]] * len(known)
            self._record_along(path, columns.partition(lengths), times[known])


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
    hybrid = pose.copy()
    hybrid[..., :3, :3] = np.eye(3)
    frame = {'body': pose, 'spatial': np.eye(4), 'hybrid': hybrid}[wrench.expressed_in]
    # Source: Mueller 2021, eq. (37): with the power, the transposed adjoint.
    values = np.asarray(wrench.values)[rows, :1] @ se3.Ad(se3.inverse(frame) @ hybrid)
    arrows = np.concatenate([values[..., 3:], values[..., :3]], axis=1)
    return -arrows if wrench.acting == 'on_environment' else arrows


def _path(*parts: str) -> str:
    """Path of an entity."""
    return str(view_library().new_entity_path([part for part in parts if part]))


def _blueprint(
    motions: Sequence[str],
    series: Sequence[Quantity],
    width: float,
    middle: Array,
    is_live: bool = False,
) -> Any:
    """Robots beside plots: of all joints as parts of limits, and of each joint with units.

    Parameters
    ----------
    motions : sequence of str
    series : sequence of Quantity
        What is plotted.
    width : float
        Of all robots together, along y from the first one on [m].
    middle : ndarray, shape (3,)
        Of one of them, from its base [m].
    is_live : bool
        Whether what comes is followed, and plots show the last of it.
    """
    rrb = optional_import_module('rerun.blueprint', 'A view needs Rerun', 'view')
    past: dict[str, Any] = {}
    play = {'loop_mode': 'all', 'play_state': 'playing'}
    if is_live:
        edges = rrb.TimeRangeBoundary.cursor_relative
        ends = {'start': edges(seconds=-_SHOWN_PAST), 'end': edges(seconds=0.0)}
        past = {
            'time_ranges': rrb.VisibleTimeRanges([rrb.VisibleTimeRange('time', **ends)])
        }
        play = {'play_state': 'following'}
    parts = [
        rrb.TimeSeriesView(
            name=f'{motion}: {labels_of(item)[0].name} / limit',
            contents=[_path(motion, _PARTS, item.name), _path(_LIMITS, _PARTS)],
            **past,
            plot_legend=rrb.PlotLegend(visible=False),
        )
        for item in series
        if np.isfinite(item.upper).any()
        for motion in motions
    ]
    tabs = [rrb.Grid(*parts, grid_columns=len(motions), name='All joints')] if parts else []
    for name in dict.fromkeys(name for item in series for name in item.owners):
        views = [
            rrb.TimeSeriesView(
                name=f'{labels_of(item)[item.owners.index(name)].title}',
                contents=[_path(top, item.name, name) for top in (*motions, _LIMITS)],
                **past,
            )
            for item in series
            if name in item.owners
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
        rrb.TimePanel(state='collapsed', timeline='time', **play),
        collapse_panels=True,
    )
