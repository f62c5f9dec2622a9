"""Draw the films of the pages into doc/images: the Panda retimed, and with elastic joints.

Retimed: one motion is as fast as the limits of velocity, acceleration and torque allow, as
planners make it that know no others; the other keeps the limits of jerk and torque rate, too.
Links have the colours of `hodyn_ros.plotting.view`; a red one stays so for `GLOW`, or it could
not be seen.

Elastic: the case "all" of benchmarks/laws.py under two laws. Deviations from the
motion, which stands behind the robot in grey, are magnified.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from PIL import Image
from scipy.ndimage import maximum_filter1d

from hodyn_ros import ModelWarning, RobotModel, inverse_dynamics
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.violations import motion_limits
from hodyn_ros.model.visuals import Visual, read_visuals
from hodyn_ros.plotting.scene import moving_bodies, share_colours
from hodyn_ros.resources import share_file
from hodyn_ros.retiming import NewTiming, retime
from hodyn_ros.trajectory import panda_swing

FOLDER = Path(__file__).parent / 'images'
JOINT = 0  # whose torque rate is drawn
SPEED = 0.45  # of the film
RATE = 20  # frames per second
HOLD = 16  # frames at the end
GLOW = 0.15  # s
RATES = 2000  # samples per second of the curves
SIZE, DPI = (9.0, 5.0), 100
TURN, TILT = np.radians(-52.0), np.radians(16.0)  # of the camera
LIGHT = np.array([-0.35, 0.55, 0.75])  # in axes of the camera: right, away, up
SIDES = 16  # of a circle


LAWS = (
    ('PD + gravity', 20.0, 'PD control of the motors, and the weight'),
    ('tracking', 50.0, 'tracking_controller, of the same robot'),
)
MAGNIFIED = 10.0
WORSE = 10.0  # mrad, red from here on


class Theme(NamedTuple):
    """Colours of everything but the robot."""

    back: str
    text: str
    faint: str
    kept: str
    exceeded: str


THEME = Theme('#ffffff', '#1f2328', '#c9d1d9', '#009e73', '#d5281e')


class Curve(NamedTuple):
    """A motion as it is drawn, at N instants."""

    title: str
    times: np.ndarray
    positions: np.ndarray
    values: np.ndarray
    """What is drawn over time, (N,)."""
    shares: np.ndarray
    """Largest part of a limit that each joint uses, (N, n)."""
    wanted: np.ndarray | None = None
    """Positions where it should be, (N, n)."""


class Kind(NamedTuple):
    """What is drawn below the robots."""

    label: str
    limit: float
    """Of its magnitude; infinite if there is none."""
    lowest: float
    """Of the picture, as a part of the highest."""
    caption: Callable[[Curve, int], tuple[str, bool]]
    """Of the samples up to one: text, and whether it is red."""


def curve(model: RobotModel, limits: MotionLimits, title: str, found: NewTiming) -> Curve:
    """Sample a motion."""
    spline = found.motion
    duration = spline.times[-1] - spline.times[0]
    times = np.linspace(0.0, duration, int(RATES * duration) + 1)
    motion = spline(times + spline.times[0])
    effort = inverse_dynamics(model, motion)
    parts = [
        np.abs(values) / limit
        for values, limit in (
            (motion[:, 1], limits.velocity),
            (motion[:, 2], limits.acceleration),
            (motion[:, 3], limits.jerk),
            (effort[:, 0], limits.effort),
            (effort[:, 1], limits.effort_dot),
        )
    ]
    size = int(RATES * GLOW)  # of a window that ends now
    shares = maximum_filter1d(np.max(parts, axis=0), size, axis=0, origin=(size - 1) // 2)
    return Curve(title, times, motion[:, 0], effort[:, 1, JOINT], shares)


def curves(model: RobotModel) -> tuple[MotionLimits, list[Curve]]:
    """Limits, and both motions."""
    config = yaml.safe_load(share_file('config/panda.yaml').read_text())
    limits = motion_limits(model, config['/**']['ros__parameters']['limits'])
    path = panda_swing()
    unlimited = np.full(model.n_joints, np.inf)
    fewer = limits._replace(effort_dot=unlimited, jerk=unlimited)
    fast = retime(model, path, fewer, rise_time=0.0)
    kept = retime(model, path, limits)
    return limits, [
        curve(model, limits, 'limits of velocity, acceleration and torque', fast),
        curve(model, limits, 'and of torque rate: hodyn retime', kept),
    ]


def retiming(model: RobotModel) -> tuple[Kind, list[Curve]]:
    """Motions without and with the limit of the torque rate."""
    limits, found = curves(model)
    limit = float(limits.effort_dot[JOINT])

    def caption(item: Curve, now: int) -> tuple[str, bool]:
        peak = np.abs(item.values[: now + 1]).max() / limit
        text = f'{item.times[now]:.2f} s, torque rate at {100.0 * peak:.0f} % of its limit'
        return text, bool(peak > 1.0)

    return Kind('torque rate of\njoint 1 [N m/s]', limit, -1.0, caption), found


def elastic(_: RobotModel) -> tuple[Kind, list[Curve]]:
    """Two laws of elastic joints on a robot that is not as they think."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.laws import ALL, TORQUE_LIMITS, Job, run

    found = []
    for law, bandwidth, title in LAWS:
        record = run(Job(law, bandwidth, ALL))
        wanted = ALL.motion(record.times)[:, 0]
        parts = np.abs(record.torque) / TORQUE_LIMITS
        found.append(
            Curve(
                title,
                record.times,
                wanted + MAGNIFIED * record.error,
                1e3 * np.abs(record.error).max(axis=1),
                np.concatenate([parts, parts[-1:]]),
                wanted,
            )
        )

    def caption(item: Curve, now: int) -> tuple[str, bool]:
        peak = item.values[: now + 1].max()
        return f'{item.times[now]:.2f} s, up to {peak:.1f} mrad away', bool(peak > WORSE)

    return Kind('largest error\nof a joint [mrad]', np.inf, -0.03, caption), found


def faces_of(visual: Visual) -> list[np.ndarray]:
    """Flat faces (k, 3) of a shape in the frame of its link."""
    around = np.linspace(0.0, 2.0 * np.pi, SIDES + 1)
    circle = np.stack([np.cos(around), np.sin(around), np.zeros(SIDES + 1)], axis=1)
    if visual.kind == 'box':
        corners = 0.5 * visual.size * (2.0 * np.indices((2, 2, 2)).reshape(3, 8).T - 1.0)
        sides = (
            (0, 1, 3, 2),
            (4, 6, 7, 5),
            (0, 4, 5, 1),
            (2, 3, 7, 6),
            (0, 2, 6, 4),
            (1, 5, 7, 3),
        )
        faces = [corners[list(side)] for side in sides]
    else:
        radius = visual.size[0]
        if visual.kind == 'sphere':
            heights = radius * np.sin(
                np.linspace(-0.5 * np.pi, 0.5 * np.pi, SIDES // 2 + 1)
            )
            radii = np.sqrt(np.maximum(radius**2 - heights**2, 0.0))
        else:
            heights, radii = (
                0.5 * visual.size[1] * np.array([-1.0, 1.0]),
                np.full(2, radius),
            )
        rings = [r * circle + [0.0, 0.0, z] for r, z in zip(radii, heights)]
        faces = [
            np.array([low[i], low[i + 1], high[i + 1], high[i]])
            for low, high in zip(rings, rings[1:])
            for i in range(SIDES)
        ]
        faces += [rings[0][::-1], rings[-1]]
    R, p = visual.pose[:3, :3], visual.pose[:3, 3]
    return [face @ R.T + p for face in faces]


def camera() -> np.ndarray:
    """Axes of the camera as rows: right, away from it, up."""
    c, s = np.cos(TURN), np.sin(TURN)
    right, ahead = np.array([-s, c, 0.0]), np.array([-c, -s, 0.0])
    away = np.cos(TILT) * ahead - [0.0, 0.0, np.sin(TILT)]
    return np.stack([right, away, np.cross(right, away)])


class Robot:
    """Faces of all shapes, each fixed to a body."""

    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self.faces, self.owners = [], []
        for visual in read_visuals(model.provenance.file):
            body, frame = model.links[visual.link]
            for face in faces_of(visual):
                self.faces.append(face @ frame[:3, :3].T + frame[:3, 3])
                self.owners.append(body)

    def drawn(self, position: np.ndarray, shares: np.ndarray) -> tuple[list, np.ndarray]:
        """Polygons seen by the camera, the nearest last, and their colours."""
        bodies = moving_bodies(self.model, position[None])
        poses = [*(pose[0] for pose in bodies.poses), np.eye(4)]  # -1: the base
        colours = share_colours(np.append(shares[bodies.joints], np.nan)) / 255.0
        axes, light = camera(), LIGHT / np.linalg.norm(LIGHT)
        polygons, shades, depths = [], [], []
        for face, owner in zip(self.faces, self.owners):
            pose = poses[owner]
            seen = (face @ pose[:3, :3].T + pose[:3, 3]) @ axes.T
            normal = np.sum(np.cross(seen, np.roll(seen, -1, axis=0)), axis=0)
            normal /= np.linalg.norm(normal) or 1.0
            if normal[1] > 0.0:
                continue  # its back
            lit = 0.62 + 0.45 * max(0.0, float(normal @ (light * [1.0, -1.0, 1.0])))
            polygons.append(seen[:, [0, 2]])
            shades.append(np.clip(lit * colours[owner], 0.0, 1.0))
            depths.append(seen[:, 1].mean())
        order = np.argsort(depths)[::-1]
        return [polygons[i] for i in order], np.array(shades)[order]


class Film:
    """One figure whose parts change from frame to frame."""

    def __init__(self, model: RobotModel, kind: Kind, found: list[Curve]) -> None:
        self.robot, self.kind, self.found = Robot(model), kind, found
        self.figure = Figure(SIZE, dpi=DPI, facecolor=THEME.back)
        self.canvas = FigureCanvasAgg(self.figure)
        grid = self.figure.add_gridspec(
            2,
            2,
            height_ratios=(2.9, 1.0),
            left=0.1,
            right=0.985,
            bottom=0.1,
            top=0.885,
            wspace=0.1,
            hspace=0.1,
        )
        self.end = max(item.times[-1] for item in found)
        self.parts = [self._column(grid, i, item) for i, item in enumerate(found)]

    def _column(self, grid, number: int, item: Curve) -> tuple:
        """Robot above its torque rate."""
        scene = self.figure.add_subplot(grid[0, number])
        scene.set(xlim=(-0.45, 0.75), ylim=(-0.06, 0.88), aspect='equal')
        scene.axis('off')
        scene.text(
            0.5,
            1.15,
            item.title,
            transform=scene.transAxes,
            ha='center',
            va='top',
            color=THEME.text,
            fontsize=10.5,
        )
        ghost = PolyCollection([], facecolors=THEME.faint, edgecolors=THEME.faint)
        scene.add_collection(ghost)
        bodies = PolyCollection([], linewidths=0.4, antialiaseds=True)
        scene.add_collection(bodies)
        clock = scene.text(
            0.5,
            1.07,
            '',
            transform=scene.transAxes,
            ha='center',
            va='top',
            color=THEME.text,
            fontsize=10.5,
        )
        plot = self.figure.add_subplot(grid[1, number], facecolor=THEME.back)
        top = 1.08 * max(np.abs(other.values).max() for other in self.found)
        plot.set(xlim=(-0.04, self.end + 0.04), ylim=(self.kind.lowest * top, top))
        limit = self.kind.limit
        if np.isfinite(limit):
            plot.axhspan(-limit, limit, color=THEME.kept, alpha=0.1, linewidth=0.0)
            for sign in (-1.0, 1.0):
                plot.axhline(sign * limit, color=THEME.text, linewidth=0.8, linestyle=':')
        for spine in plot.spines.values():
            spine.set_color(THEME.faint)
        plot.tick_params(colors=THEME.text, labelsize=8.5)
        plot.set_xlabel('time [s]', color=THEME.text, fontsize=8.5, labelpad=0)
        if number == 0:
            plot.set_ylabel(self.kind.label, color=THEME.text, fontsize=8.5)
        else:
            plot.tick_params(labelleft=False)
        if number and np.isfinite(limit):
            place = {'ha': 'right', 'va': 'bottom'}
            plot.text(self.end, limit, 'limit ', **place, color=THEME.text, fontsize=8.5)
        lines = LineCollection([], linewidths=1.6, capstyle='round')
        plot.add_collection(lines)
        return ghost, bodies, clock, lines

    def frame(self, time: float) -> Image.Image:
        """Picture at a time of the motions [s]."""
        for item, (ghost, bodies, clock, lines) in zip(self.found, self.parts):
            now = min(int(np.searchsorted(item.times, time)), len(item.times) - 1)
            polygons, colours = self.robot.drawn(item.positions[now], item.shares[now])
            bodies.set(verts=polygons, facecolors=colours, edgecolors=colours)
            if item.wanted is not None:
                ghost.set_verts(self.robot.drawn(item.wanted[now], item.shares[now])[0])
            points = np.stack([item.times, item.values], axis=1)[: now + 1]
            segments = np.stack([points[:-1], points[1:]], axis=1)
            is_beyond = np.abs(item.values[: now + 1]) > self.kind.limit
            text, is_bad = self.kind.caption(item, now)
            if not np.isfinite(self.kind.limit):
                is_beyond[:] = is_bad
            bad, good = THEME.exceeded, THEME.kept
            colors = np.where(is_beyond[1:] | is_beyond[:-1], bad, good)
            lines.set(segments=segments, colors=colors)
            clock.set(text=text, color=bad if is_bad else good)
        self.canvas.draw()
        return Image.fromarray(np.asarray(self.canvas.buffer_rgba())[..., :3].copy())


def main() -> None:
    """Write the films."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--frames', type=Path, help='folder for some frames as PNG')
    parser.add_argument('--film', action='append', choices=('retiming', 'elastic'))
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_urdf('panda')
    made = {film.__name__: film for film in (retiming, elastic)}
    found = {name: made[name](model) for name in options.film or made}
    for name in found:
        film = Film(model, *found[name])
        count = int(np.ceil(film.end / SPEED * RATE))
        instants = np.arange(count + 1) * SPEED / RATE
        frames = [film.frame(time) for time in instants]
        path = FOLDER / f'{name}.webp'
        lengths = [1000 // RATE] * count + [1000 // RATE * HOLD]
        frames[0].save(
            path,
            save_all=True,
            append_images=frames[1:],
            duration=lengths,
            loop=0,
            quality=55,
            method=4,
        )
        print(path, path.stat().st_size)
        if options.frames:
            options.frames.mkdir(parents=True, exist_ok=True)
            for i in (0, count // 6, count // 2, count):
                frames[i].save(options.frames / f'{path.stem}_{i:03d}.png')


if __name__ == '__main__':
    main()
