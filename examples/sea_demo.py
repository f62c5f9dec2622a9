"""Tracking with elastic joints on a simulated Panda: what derivatives of the torques are worth.

MuJoCo simulates the Panda with a motor and a spring in every joint. Controllers that know more and
more of the torques' derivatives let it follow the same motion at three stiffnesses: without noise,
with noise, and with springs that are softer than the controllers think. Prints a table and writes
it with pictures into build/demo_sea. The stiffnesses are examples: no identified ones are public.
With --over-ros everything without noise is run once more by two nodes over real topics in lock
step, and must come out the same.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from scipy.interpolate import BPoly  # noqa: E402

from hodyn_ros import HodynError, ModelWarning, RobotModel  # noqa: E402
from hodyn_ros.actuators.robot import Actuators  # noqa: E402
from hodyn_ros.actuators.sea import SeriesElastic  # noqa: E402
from hodyn_ros.control import (  # noqa: E402
    Controller,
    FeedForwardController,
    FlatnessController,
    PDGravity,
    RigidComputedTorque,
    motor_gains,
    warm_up,
)
from hodyn_ros.resources import share_file  # noqa: E402
from hodyn_ros.simulation import ElasticPlant, Sensors, Tracking, simulate_tracking  # noqa: E402
from hodyn_ros.simulation.pictures import render  # noqa: E402

FOLDER = Path('build/demo_sea')
PERIOD = 1e-3  # s
STIFFNESSES = (2000.0, 5000.0, 20000.0)  # N m/rad
# Reflected inertias of the motors of the Franka Research 3, as its manufacturer gives them
# [kg m^2]; from the description of franka_description in RobotLocomotion/models.
MOTOR_INERTIAS = (
    0.605721456, 0.605721456, 0.462474144, 0.462474144, 0.205544064, 0.205544064, 0.205544064,
)  # fmt: skip
POSES = np.array(
    [
        [0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785],
        [0.7, 0.2, -0.4, -1.8, 0.5, 2.1, 1.3],
        [0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785],
    ]
)
TIMES = np.array([0.0, 1.3, 2.6])  # s
REST = 0.2  # s, after the motion
MOTOR_BANDWIDTH, FLATNESS_BANDWIDTH = 20.0, 150.0  # rad/s
NOISE = Sensors(2e-6, 2e-4, 2e-6, 2e-4, seed=1)  # rad and rad/s
SOFTER = 0.95

# Names in the table, of the parameter of the controller node, and colours.
CONTROLLERS = {
    'PD + gravity': ('pd_gravity', 'tab:gray'),
    'rigid computed torque': ('rigid_computed_torque', 'tab:brown'),
    'feed-forward Q': ('feed_forward_0', 'tab:red'),
    "feed-forward Q, Q'": ('feed_forward_1', 'tab:orange'),
    "feed-forward Q, Q', Q''": ('feed_forward_2', 'tab:blue'),
    'exact linearisation': ('flatness', 'tab:green'),
}
CONDITIONS = ('exact', 'noise', 'softer')


class Run(NamedTuple):
    """One line of the table."""

    stiffness: float
    controller: str
    condition: str
    tracking: Tracking | None
    """None if the loop is unstable."""


class PoseToPose:
    """Rest-to-rest motion through poses, five times differentiable."""

    def __init__(self, poses: np.ndarray, times: np.ndarray) -> None:
        knots = np.zeros((len(times), 6, poses.shape[1]))
        knots[:, 0] = poses
        self._position = BPoly.from_derivatives(times, knots)
        self._last = times[-1]

    def __call__(self, times: np.ndarray) -> np.ndarray:
        """Positions and their first four derivatives, shape (N, 5, n)."""
        t = np.clip(times, 0.0, self._last)
        return np.stack([self._position(t, nu) for nu in range(5)], axis=1)


def make_actuators(model: RobotModel, stiffness: float) -> Actuators:
    """Give every joint a spring and a motor."""
    return Actuators(
        model,
        {
            name: SeriesElastic(stiffness, inertia)
            for name, inertia in zip(model.joint_names, MOTOR_INERTIAS)
        },
    )


def bandwidth_of(name: str) -> float:
    """Bandwidth of a controller [rad/s]."""
    return FLATNESS_BANDWIDTH if name == 'exact linearisation' else MOTOR_BANDWIDTH


def make_controller(name: str, model: RobotModel, actuators: Actuators) -> Controller:
    """Make a controller of the table as the controller node makes it."""
    kind, bandwidth = CONTROLLERS[name][0], bandwidth_of(name)
    options = {'torque_limits': model.limits.effort, 'lead': PERIOD / 2.0}
    if kind == 'flatness':
        return FlatnessController(model, actuators, bandwidth, **options)
    if kind == 'rigid_computed_torque':
        return RigidComputedTorque(model, actuators, bandwidth, **options)
    middle = 0.5 * (model.limits.lower + model.limits.upper)
    gains = motor_gains(model, actuators, bandwidth, middle)
    if kind == 'pd_gravity':
        return PDGravity(model, actuators, gains, **options)
    return FeedForwardController(model, actuators, gains, int(kind[-1]), **options)


def run_all(
    model: RobotModel,
    motion: Callable[[np.ndarray], np.ndarray],
    stiffnesses: tuple[float, ...],
    noise: Sensors,
) -> list[Run]:
    """Let all controllers follow the motion under all conditions."""
    runs = []
    duration = TIMES[-1] + REST
    for stiffness in stiffnesses:
        actuators = make_actuators(model, stiffness)
        for name in CONTROLLERS:
            controller = make_controller(name, model, actuators)
            for condition in CONDITIONS:
                factor = SOFTER if condition == 'softer' else 1.0
                plant = ElasticPlant(model, make_actuators(model, factor * stiffness))
                sensors = noise if condition == 'noise' else None
                try:
                    tracking = simulate_tracking(
                        plant, controller, motion, duration, PERIOD, sensors
                    )
                except HodynError:
                    tracking = None
                runs.append(Run(stiffness, name, condition, tracking))
    return runs


def table(runs: list[Run]) -> str:
    """Write the results as text."""
    lines = [
        f'{"stiffness":>10} {"controller":25}' + ''.join(f'{name:^46}' for name in CONDITIONS),
        f'{"[N m/rad]":>10} {"":25}'
        + f'{"RMS [mrad]":>12}{"peak [mrad]":>12}{"[N m]":>9}{"[N m/s]":>11}  ' * 3,
    ]
    for stiffness in dict.fromkeys(run.stiffness for run in runs):
        for name in CONTROLLERS:
            line = f'{stiffness:10.0f} {name:25}'
            for run in runs:
                if (run.stiffness, run.controller) == (stiffness, name):
                    line += cells(run.tracking)
            lines.append(line.rstrip())
        lines.append('')
    return '\n'.join(lines)


def cells(tracking: Tracking | None) -> str:
    """Errors, and peaks of torque and torque rate."""
    if tracking is None:
        return f'{"unstable":>12}{"":34}'
    return (
        f'{tracking.rms_error * 1e3:12.5f}{tracking.peak_error * 1e3:12.5f}'
        f'{tracking.peak_torque:9.1f}{tracking.peak_torque_rate:11.0f}  '
    )


def factors(runs: list[Run]) -> str:
    """Say by which factor the derivatives lower the error."""
    found = {
        (run.stiffness, run.condition, run.controller): run.tracking.rms_error
        for run in runs
        if run.tracking is not None
    }
    lines = ["RMS error with Q alone over that with Q, Q' and Q'':"]
    for stiffness in dict.fromkeys(run.stiffness for run in runs):
        ratios = [
            found[stiffness, condition, 'feed-forward Q']
            / found[stiffness, condition, "feed-forward Q, Q', Q''"]
            for condition in CONDITIONS
        ]
        shown = ', '.join(f'{c} {ratio:.0f}' for c, ratio in zip(CONDITIONS, ratios))
        lines.append(f'{stiffness:10.0f} N m/rad: {shown}')
    return '\n'.join(lines)


def draw_errors(runs: list[Run], path: Path) -> None:
    """Draw the largest error of the joints over time, for each stiffness and condition."""
    stiffnesses = list(dict.fromkeys(run.stiffness for run in runs))
    titles = ('without noise', 'with noise', f'springs {100 * (1 - SOFTER):.0f} % softer')
    figure, axes = plt.subplots(
        len(stiffnesses), 3, figsize=(14, 3.3 * len(stiffnesses) + 0.8), sharex=True, sharey=True,
        squeeze=False,
    )
    for run in runs:
        axis = axes[stiffnesses.index(run.stiffness), CONDITIONS.index(run.condition)]
        if run.tracking is not None:
            error = 1e3 * np.abs(run.tracking.error).max(axis=1)
            axis.semilogy(
                run.tracking.times[1:], error[1:], lw=1.0, color=CONTROLLERS[run.controller][1],
                label=run.controller,
            )
    for stiffness, row in zip(stiffnesses, axes):
        row[0].set_ylabel(f'{stiffness:.0f} N m/rad\nlargest error [mrad]')
        for axis in row:
            axis.grid(alpha=0.3)
            axis.set_ylim(1e-5, 1e3)
    for axis, title in zip(axes[0], titles):
        axis.set_title(title)
    for axis in axes[-1]:
        axis.set_xlabel('time [s]')
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc='lower center', ncol=6)
    figure.suptitle('Panda with elastic joints at 1 kHz: tracking error of the links')
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    save(figure, path)


def draw_summary(runs: list[Run], path: Path) -> None:
    """Draw RMS errors as bars."""
    stiffnesses = list(dict.fromkeys(run.stiffness for run in runs))
    figure, axes = plt.subplots(1, len(stiffnesses), figsize=(14, 4.6), sharey=True)
    for axis, stiffness in zip(np.atleast_1d(axes), stiffnesses):
        for run in runs:
            if run.stiffness != stiffness or run.tracking is None:
                continue
            place = list(CONTROLLERS).index(run.controller)
            condition = CONDITIONS.index(run.condition)
            axis.bar(
                place + 0.27 * (condition - 1), 1e3 * run.tracking.rms_error, 0.25, bottom=1e-5,
                color=CONTROLLERS[run.controller][1], alpha=(1.0, 0.55, 0.25)[condition],
                hatch=('', '///', '...')[condition], edgecolor='white',
            )
        axis.set_yscale('log')
        axis.set_xticks(range(len(CONTROLLERS)), list(CONTROLLERS), rotation=35, ha='right')
        axis.set_title(f'{stiffness:.0f} N m/rad')
        axis.grid(alpha=0.3, axis='y')
    np.atleast_1d(axes)[0].set_ylabel('RMS error [mrad]')
    figure.suptitle(
        'Full: without noise; hatched: with noise; '
        f'dotted: springs {100 * (1 - SOFTER):.0f} % softer'
    )
    figure.tight_layout()
    save(figure, path)


def draw_torques(runs: list[Run], joint: int, path: Path) -> None:
    """Draw the torque of one motor and its rate of change, without and with noise."""
    stiffnesses = sorted({run.stiffness for run in runs})
    stiffness = stiffnesses[len(stiffnesses) // 2]
    figure, axes = plt.subplots(2, 2, figsize=(13, 7), sharex=True)
    for run in runs:
        if run.stiffness != stiffness or run.condition == 'softer' or run.tracking is None:
            continue
        column = CONDITIONS.index(run.condition)
        torque, times = run.tracking.torque[:, joint], run.tracking.times
        style = {'color': CONTROLLERS[run.controller][1], 'lw': 0.8, 'label': run.controller}
        # What is loudest lies behind.
        style['zorder'] = 3.0 - 1e-6 * run.tracking.peak_torque_rate
        axes[0, column].plot(times[:-1], torque, **style)
        axes[1, column].plot(times[1:-1], np.diff(torque) / PERIOD, **style)
    for axis, title in zip(axes[0], ('without noise', 'with noise')):
        axis.set_title(title)
    axes[0, 0].set_ylabel('motor torque [N m]')
    axes[1, 0].set_ylabel('torque rate [N m/s]')
    axes[1, 1].set_yscale('symlog', linthresh=200.0)
    for axis in axes[1]:
        axis.set_xlabel('time [s]')
    for axis in axes.flat:
        axis.grid(alpha=0.3)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc='lower center', ncol=6)
    figure.suptitle(f'Motor of joint {joint + 1}, {stiffness:.0f} N m/rad')
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    save(figure, path)


def save(figure: plt.Figure, path: Path) -> None:
    """Write a picture."""
    figure.savefig(path, dpi=90)
    plt.close(figure)
    print(f'Picture: {path}')


def draw_robot(model: RobotModel, q: np.ndarray, folder: Path, count: int) -> None:
    """Render the motion as numbered pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    plant = ElasticPlant(model, {}, visible=True)
    chosen = q[np.linspace(0, len(q) - 1, count).round().astype(int)]
    for number, picture in enumerate(render(plant, chosen)):
        plt.imsave(folder / f'frame_{number:04}.png', picture)
    print(f'{count} pictures of the robot: {folder}')


def positive(text: str) -> float:
    """Read a positive number."""
    value = float(text)
    if not 0.0 < value < np.inf:
        raise argparse.ArgumentTypeError(f'{text} is not a positive number')
    return value


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument(
        '--stiffness', type=positive, nargs='+', default=STIFFNESSES, metavar='K',
        help='of all joints [N m/rad]',
    )
    parser.add_argument(
        '--noise', type=positive, default=1.0, help='factor on the standard deviations of noise'
    )
    parser.add_argument('--folder', type=Path, default=FOLDER, help='where results are written')
    parser.add_argument(
        '--images', type=int, default=0, metavar='N', help='render N pictures of the robot'
    )
    parser.add_argument(
        '--over-ros', action='store_true', help='run it once more over real topics, and compare'
    )
    return parser.parse_args()


def main() -> int:
    """Run the demonstration; return 0 if everything is as it should be."""
    chosen = arguments()
    if chosen.images > 0 and 'DISPLAY' not in os.environ:
        os.environ.setdefault('MUJOCO_GL', 'egl')  # looked at when MuJoCo is imported
    urdf = share_file('urdf/panda.urdf').read_text(encoding='utf-8')
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_urdf(urdf)
    motion = PoseToPose(POSES, TIMES)
    warm_up(model)
    scale = chosen.noise
    noise = Sensors(
        NOISE.position_noise * scale, NOISE.velocity_noise * scale,
        NOISE.motor_position_noise * scale, NOISE.motor_velocity_noise * scale, seed=NOISE.seed,
    )
    print(
        f'Noise: {noise.position_noise:.1e} rad and {noise.velocity_noise:.1e} rad/s on links and '
        f'motors. Softer: the springs have {SOFTER:.0%} of the stiffness that the controllers '
        'know.\nErrors of the links, largest motor torque and largest torque rate:\n'
    )
    runs = run_all(model, motion, tuple(chosen.stiffness), noise)
    text = f'{table(runs)}\n{factors(runs)}\n'
    print(text)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    (chosen.folder / 'table.txt').write_text(text, encoding='utf-8')
    draw_errors(runs, chosen.folder / 'errors.png')
    draw_summary(runs, chosen.folder / 'summary.png')
    draw_torques(runs, 1, chosen.folder / 'torques.png')
    if chosen.images > 0:
        best = next(r.tracking for r in runs if r.tracking is not None)
        draw_robot(model, best.q, chosen.folder / 'robot', chosen.images)
    if not chosen.over_ros:
        return 0
    os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randrange(1, 100))
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    from sea_demo_over_ros import compare  # rclpy is needed here only

    exact = [run for run in runs if run.condition == 'exact' and run.tracking is not None]
    return compare(urdf, model, motion, exact, PERIOD)


if __name__ == '__main__':
    sys.exit(main())
