"""Tracking with elastic joints on a simulated Panda: what derivatives of the torques are worth.

MuJoCo simulates the Panda with a motor and a spring in every joint. Controllers that know more and
more of the torques' derivatives let it follow the same motion at three stiffnesses: a robot that
is known exactly, and robots of which the controllers know something wrong. One rule tunes all of
them: each gets the bandwidth with the smallest error in another motion of a robot with all of
these faults at once. Prints a table and writes it with pictures into build/demo_sea. The
stiffnesses are examples: no identified ones are public. With --over-ros everything that is exact
is run once more by two nodes over real topics in lock step, and must come out the same.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import textwrap
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from scipy.interpolate import BPoly  # noqa: E402

from hodyn_ros import HodynError, ModelWarning, RobotModel  # noqa: E402
from hodyn_ros.actuators.motors import Actuators  # noqa: E402
from hodyn_ros.actuators.sea import SeriesElastic  # noqa: E402
from hodyn_ros.control import (  # noqa: E402
    ControlWarning,
    make_controller,
    warm_up,
)
from hodyn_ros.errors import SimulationError  # noqa: E402
from hodyn_ros.model.friction import Coulomb  # noqa: E402
from hodyn_ros.resources import share_file  # noqa: E402
from hodyn_ros.simulation import ElasticPlant, Sensors, Tracking, simulate_tracking  # noqa: E402
from hodyn_ros.simulation.mjcf import link_joint  # noqa: E402

FOLDER = Path('build/demo_sea')
PERIOD = 1e-3  # s
LEAD = PERIOD / 2.0  # s, by which references are ahead: commands are held for a period
TIME_STEP = 2e-4  # s, of the simulation
STIFFNESSES = (2000.0, 5000.0, 20000.0)  # N m/rad
# Reflected inertias of the motors of the Franka Research 3, as its manufacturer gives them
# [kg m^2]; from the description of franka_description in RobotLocomotion/models.
MOTOR_INERTIAS = (
    0.605721456, 0.605721456, 0.462474144, 0.462474144, 0.205544064, 0.205544064, 0.205544064,
)  # fmt: skip
REST = 0.2  # s, after every motion
BANDWIDTHS = (20.0, 30.0, 40.0, 50.0, 60.0, 80.0, 110.0, 150.0)  # rad/s
# What the interface of the Franka robots permits. Beyond it at rest, a loop swings or is noisy.
LARGEST_RATE = 1000.0  # N m/s

# 20 bits behind the gear, 14 bits before a gear of 100; velocities are their differences.
FILTER_TIME = 2e-3  # s
ENCODERS = Sensors(
    resolution=2.0 * np.pi / 2**20, motor_resolution=2.0 * np.pi / 2**14 / 100.0,
    velocity_filter=FILTER_TIME,
)
WINDOW = 20  # samples of the torque rate that are drawn as one
PUSHED = 0.5  # s, when the push begins; it lasts

# Names in the table, of the laws, colours and markers.
CONTROLLERS = {
    'PD + gravity': ('pd_gravity', 'tab:gray', 'v'),
    'rigid computed torque': ('rigid_computed_torque', 'tab:brown', 's'),
    'feed-forward Q': ('feed_forward_0', 'tab:red', '<'),
    "feed-forward Q, Q'": ('feed_forward_1', 'tab:orange', '>'),
    "feed-forward Q, Q', Q''": ('feed_forward_2', 'tab:blue', 'o'),
    'exact linearisation': ('flatness', 'tab:green', 'D'),
}


class Condition(NamedTuple):
    """How the robot differs from what the controllers know."""

    label: str
    """In pictures."""
    softer: float = 0.0
    """By which share of the stiffness."""
    payload: float = 0.0
    """At the flange [kg]."""
    friction: float = 0.0
    """Coulomb friction of every motor [N m]."""
    delay: int = 0
    """Of the commands [periods]."""
    push: float = 0.0
    """Sideways at the last link [N]."""
    sensors: Sensors | None = None


CONDITIONS = {
    'exact': Condition('known exactly'),
    'encoders': Condition('encoders', sensors=ENCODERS),
    '5% softer': Condition('springs\n5 % softer', softer=0.05),
    'payload': Condition('1 kg of\npayload', payload=1.0),
    'friction': Condition('1 N m of\nmotor friction', friction=1.0),
    'delay': Condition('1 ms of\ndelay', delay=1),
    'push': Condition('20 N of\npush', push=20.0),
    'all': Condition('all but\nthe push', 0.05, 1.0, 1.0, 1, sensors=ENCODERS),
}
WORST = 'all'
# One millisecond more than in the table, so that a margin remains.
TUNING = CONDITIONS[WORST]._replace(delay=2)
EXPLANATION = (
    'Columns: the robot that the controllers know, measured without error; positions from '
    'encoders (20 bits at the links, 14 bits at the motors before a gear of 100) and velocities '
    f'from their differences, low pass {1e3 * FILTER_TIME:.0f} ms; springs 5 % softer than the '
    'controllers think; 1 kg of payload at the flange; 1 N m of Coulomb friction in every motor; '
    f'commands 1 ms late; a push of 20 N at the last link from {PUSHED} s on; all of these but '
    'the push at once. Controllers know of none of them.',
    'Bandwidth: every controller gets, at each stiffness, the one with the smallest RMS error in '
    'another motion of the robot with all faults but the push and commands 2 ms late, among those '
    'that are calm: no torque reaches its limit, and at rest none changes by more than '
    f'{LARGEST_RATE:.0f} N m/s. *: none of them is, that with the smallest error. !: not calm.',
)


class Run(NamedTuple):
    """One robot that follows one motion under one controller."""

    stiffness: float
    controller: str
    bandwidth: float
    condition: str | None
    tracking: Tracking | None
    """None if the loop is unstable."""
    is_calm: bool
    """Whether the torques keep their limits and rest at the end."""

    @property
    def rms(self) -> float:
        """RMS error [mrad]; infinite if the loop is unstable."""
        return np.inf if self.tracking is None else 1e3 * self.tracking.rms_error

    @property
    def peak(self) -> float:
        """Largest error [mrad]; infinite if the loop is unstable."""
        return np.inf if self.tracking is None else 1e3 * self.tracking.peak_error


class PoseToPose:
    """Rest-to-rest motion through poses, five times differentiable."""

    def __init__(self, poses: np.ndarray, times: np.ndarray) -> None:
        knots = np.zeros((len(times), 6, poses.shape[1]))
        knots[:, 0] = poses
        self._position = BPoly.from_derivatives(times, knots)
        self.duration = times[-1]

    def __call__(self, times: np.ndarray) -> np.ndarray:
        """Positions and their first four derivatives, shape (N, 5, n)."""
        t = np.clip(times, 0.0, self.duration)
        return np.stack([self._position(t, nu) for nu in range(5)], axis=1)


POSES = np.array(
    [
        [0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785],
        [0.7, 0.2, -0.4, -1.8, 0.5, 2.1, 1.3],
        [0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785],
    ]
)
TIMES = np.array([0.0, 1.3, 2.6])  # s
MOTION = PoseToPose(POSES, TIMES)
TUNING_MOTION = PoseToPose(
    np.array([[0.4, -0.3, 0.2, -1.9, -0.3, 1.8, 0.2], [-0.2, -0.8, -0.2, -2.3, 0.2, 1.4, 0.9]]),
    np.array([0.0, 1.0]),
)


@cache
def panda() -> RobotModel:
    """Give the robot, compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_urdf(share_file('urdf/panda.urdf'))
    warm_up(model)
    return model


def make_actuators(model: RobotModel, stiffness: float, friction: float = 0.0) -> Actuators:
    """Give every joint a spring and a motor."""
    law = Coulomb(friction) if friction else None
    return Actuators(
        model,
        {
            name: SeriesElastic(stiffness, inertia, friction=law)
            for name, inertia in zip(model.joint_names, MOTOR_INERTIAS)
        },
    )


def make_plant(model: RobotModel, stiffness: float, condition: Condition) -> ElasticPlant:
    """Make the robot as it is, which the controllers do not know."""
    if condition.payload:
        model = model.with_payload('panda_link8', condition.payload)
    softened = (1.0 - condition.softer) * stiffness
    return ElasticPlant(model, make_actuators(model, softened, condition.friction), TIME_STEP)


def run(
    stiffness: float, name: str, bandwidth: float, lead: float, condition: str | None = None
) -> Run:
    """Let one controller follow the motion, or that for tuning if no condition is given."""
    model, given, motion = panda(), TUNING, TUNING_MOTION
    if condition is not None:
        given, motion = CONDITIONS[condition], MOTION
    actuators = make_actuators(model, stiffness)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ControlWarning)  # the table shows it
        controller = make_controller(
            CONTROLLERS[name][0], model, actuators, bandwidth, model.limits.effort, lead
        )

    def push(plant: ElasticPlant, time: float) -> None:
        if given.push and time >= PUSHED:
            plant.push('panda_joint7', (0.0, given.push, 0.0))

    try:
        tracking = simulate_tracking(
            make_plant(model, stiffness, given), controller, motion, motion.duration + REST,
            PERIOD, given.sensors, given.delay, disturbance=push,
        )  # fmt: skip
    except HodynError:
        return Run(stiffness, name, bandwidth, condition, None, False)
    resting = tracking.torque[-round(0.5 * REST / PERIOD) :]
    is_calm = np.all(np.abs(tracking.torque) < model.limits.effort) and np.all(
        np.abs(np.diff(resting, axis=0)) <= LARGEST_RATE * PERIOD
    )
    return Run(stiffness, name, bandwidth, condition, tracking, bool(is_calm))


def tuned(tried: list[Run]) -> Run:
    """Choose among runs of one controller that differ in the bandwidth."""
    return min([run for run in tried if run.is_calm] or tried, key=lambda run: run.rms)


def run_all(
    stiffnesses: tuple[float, ...], bandwidths: tuple[float, ...], lead: float = LEAD
) -> tuple[list[Run], list[Run]]:
    """Tune all controllers, then let them follow the motion; return both kinds of runs."""
    pairs = [(stiffness, name) for stiffness in stiffnesses for name in CONTROLLERS]
    jobs = [(*pair, bandwidth, lead) for pair in pairs for bandwidth in bandwidths]
    # Not forked: this process may have threads.
    context = multiprocessing.get_context('spawn')
    processes = min(4, os.cpu_count() or 1)
    with ProcessPoolExecutor(processes, context) as pool:
        tried = list(pool.map(run, *zip(*jobs)))
        count = len(bandwidths)
        chosen = [tuned(tried[i : i + count]) for i in range(0, len(tried), count)]
        jobs = [(*best[:3], lead, condition) for best in chosen for condition in CONDITIONS]
        return chosen, list(pool.map(run, *zip(*jobs)))


def table(chosen: list[Run], runs: list[Run], quantity: str) -> str:
    """Write a property of the runs as text."""
    lines = []
    for best in chosen:
        if not lines or best.stiffness != lines[-1][0]:
            line = f'{best.stiffness:5.0f} N m/rad {"":13}{"[rad/s]":>8}'
            lines += [(0.0, ''), (0.0, line + ''.join(f'{name:>11}' for name in CONDITIONS))]
        line = f'{best.controller:25}{best.bandwidth:8.0f}{" " if best.is_calm else "*"}'
        for run in runs:
            if run[:3] == best[:3]:
                value = getattr(run, quantity)
                shown = f'{value:.4f}' if value < 10.0 else f'{value:.1f}'
                line += f'{shown if value < 1e4 else "unstable":>10}{" " if run.is_calm else "!"}'
        lines.append((best.stiffness, line.rstrip()))
    return '\n'.join(line for _, line in lines)


def factors(runs: list[Run]) -> str:
    """Say by which factor the derivatives lower the error."""
    found = {(run.stiffness, run.condition, run.controller): run.rms for run in runs}
    names = [name for name in CONTROLLERS if name.startswith('feed-forward')]
    lines = []
    for fewer in names[:-1]:
        lines.append(f'RMS error of {fewer} over that of {names[-1]}:')
        for stiffness in dict.fromkeys(run.stiffness for run in runs):
            line = f'{stiffness:5.0f} N m/rad {"":22}'
            for condition in CONDITIONS:
                ratio = (
                    found[stiffness, condition, fewer] / found[stiffness, condition, names[-1]]
                )
                line += f'{ratio:10.2f} ' if ratio < 10.0 else f'{ratio:10.0f} '
            lines.append(line.rstrip())
    return '\n'.join(lines)


def draw_errors(runs: list[Run], path: Path) -> None:
    """Draw the largest error of the joints over time, for each stiffness and some conditions."""
    stiffnesses = list(dict.fromkeys(run.stiffness for run in runs))
    shown = ('exact', '5% softer', 'payload', WORST)
    figure, axes = plt.subplots(
        len(stiffnesses), len(shown), figsize=(16, 3.3 * len(stiffnesses) + 0.8), sharex=True,
        sharey=True, squeeze=False,
    )  # fmt: skip
    for run in runs:
        if run.condition in shown and run.tracking is not None:
            axis = axes[stiffnesses.index(run.stiffness), shown.index(run.condition)]
            error = 1e3 * np.abs(run.tracking.error).max(axis=1)
            axis.semilogy(
                run.tracking.times[1:], error[1:], lw=1.0, color=CONTROLLERS[run.controller][1],
                label=run.controller,
            )  # fmt: skip
    for stiffness, row in zip(stiffnesses, axes):
        row[0].set_ylabel(f'{stiffness:.0f} N m/rad\nlargest error [mrad]')
        for axis in row:
            axis.grid(alpha=0.3)
            axis.set_ylim(1e-5, 1e3)
    for axis, title in zip(axes[0], shown):
        axis.set_title(CONDITIONS[title].label.replace('\n', ' '))
    for axis in axes[-1]:
        axis.set_xlabel('time [s]')
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc='lower center', ncol=6)
    figure.suptitle('Panda with elastic joints at 1 kHz: tracking error of the links')
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    save(figure, path)


def draw_summary(chosen: list[Run], runs: list[Run], path: Path) -> None:
    """Draw RMS errors of all conditions; hollow where the loop is not calm."""
    stiffnesses = list(dict.fromkeys(run.stiffness for run in runs))
    height = 2.4 * len(stiffnesses) + 1.8
    figure, axes = plt.subplots(
        len(stiffnesses), 1, figsize=(11, height), sharex=True, sharey=True, squeeze=False
    )
    lowest, highest = 1e-4, 1e3
    for axis, stiffness in zip(axes[:, 0], stiffnesses):
        for place in range(0, len(CONDITIONS), 2):
            axis.axvspan(place - 0.5, place + 0.5, color='0.95', zorder=0)
        for offset, (name, (_, colour, marker)) in zip(
            np.linspace(-0.35, 0.35, len(CONTROLLERS)), CONTROLLERS.items()
        ):
            for run in runs:
                if (run.stiffness, run.controller) == (stiffness, name):
                    place = list(CONDITIONS).index(run.condition) + offset
                    top = np.clip(run.rms, lowest, highest)
                    axis.vlines(place, lowest, top, color=colour, lw=1.0, alpha=0.5)
                    axis.semilogy(
                        place, top, marker, color=colour, ms=6.5, clip_on=False,
                        mfc=colour if run.is_calm else 'white',
                    )  # fmt: skip
        axis.set_xlim(-0.5, len(CONDITIONS) - 0.5)
        axis.set_ylim(lowest, highest)
        axis.set_xticks(range(len(CONDITIONS)), [c.label for c in CONDITIONS.values()])
        axis.set_ylabel(f'{stiffness:.0f} N m/rad\nRMS error [mrad]')
        axis.grid(alpha=0.4, axis='y')
    keys = [
        plt.Line2D([], [], color=colour, marker=marker, ls='', ms=6.5, label=name)
        for name, (_, colour, marker) in CONTROLLERS.items()
    ]
    figure.legend(handles=keys, loc='lower center', ncol=3)
    figure.suptitle(
        'Panda with elastic joints at 1 kHz: RMS errors of controllers that one rule has tuned.\n'
        'Hollow: torques reach their limits or do not come to rest'
    )
    figure.tight_layout(rect=(0, 0.65 / height, 1, 1))
    save(figure, path)


def draw_torques(runs: list[Run], joint: int, path: Path) -> None:
    """Draw the torque of one motor and its rate of change, at best and at worst."""
    stiffnesses = sorted({run.stiffness for run in runs})
    stiffness = stiffnesses[len(stiffnesses) // 2]
    shown = ('exact', WORST)
    figure, axes = plt.subplots(2, 2, figsize=(13, 7), sharex=True)
    for run in runs:
        if run.stiffness != stiffness or run.condition not in shown or run.tracking is None:
            continue
        column = shown.index(run.condition)
        torque, times = run.tracking.torque[:, joint], run.tracking.times
        style = {'color': CONTROLLERS[run.controller][1], 'lw': 0.8, 'label': run.controller}
        # What is loudest lies behind.
        style['zorder'] = 3.0 - 1e-6 * run.tracking.peak_torque_rate
        axes[0, column].plot(times[:-1], torque, **style)
        whole = len(torque) // WINDOW * WINDOW
        rates = np.abs(np.diff(torque, prepend=torque[0]))[:whole] / PERIOD
        largest = rates.reshape(-1, WINDOW).max(axis=1)
        axes[1, column].semilogy(times[:whole:WINDOW], largest, **style)
    for axis, title in zip(axes[0], shown):
        axis.set_title(CONDITIONS[title].label.replace('\n', ' '))
    axes[0, 0].set_ylabel('motor torque [N m]')
    axes[1, 0].set_ylabel(f'largest torque rate in {1e3 * WINDOW * PERIOD:.0f} ms [N m/s]')
    for axis in axes[1]:
        axis.set_xlabel('time [s]')
        axis.set_ylim(1e-1, 1e5)
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


def render(
    plant: ElasticPlant, q: np.ndarray, width: int = 640, height: int = 480
) -> Iterator[np.ndarray]:
    """Give a picture (height, width, 3) of a visible plant at each of its positions (N, n)."""
    import mujoco

    model = plant.mujoco_model
    try:
        renderer = mujoco.Renderer(model, height, width)
    except Exception as error:  # of many classes, by the library that is missing
        raise SimulationError(
            f'OpenGL without a window is not available ({error}); set MUJOCO_GL to egl or osmesa.'
        ) from error
    camera, data = mujoco.MjvCamera(), mujoco.MjData(model)
    camera.lookat[:] = (0.2, 0.0, 0.4)
    camera.distance, camera.azimuth, camera.elevation = 2.2, 125.0, -15.0
    links = [model.joint(link_joint(name)).qposadr[0] for name in plant.joint_names]
    try:
        for position in q:
            data.qpos[links] = position
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_camlight(model, data)
            renderer.update_scene(data, camera)
            yield renderer.render()
    finally:
        renderer.close()


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
        '--bandwidth', type=positive, nargs='+', default=BANDWIDTHS, metavar='W',
        help='among which every controller is tuned [rad/s]; with one number all have the same',
    )
    parser.add_argument(
        '--lead', type=positive, default=LEAD, metavar='T',
        help='by which references are ahead of measurements [s]',
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
    best, runs = run_all(tuple(chosen.stiffness), tuple(chosen.bandwidth), chosen.lead)
    text = (
        '\n'.join(textwrap.fill(paragraph, 99) for paragraph in EXPLANATION) + '\n\n'
        f'RMS error of the links, over samples and joints [mrad]:\n{table(best, runs, "rms")}\n\n'
        f'Largest error of a link [mrad]:\n{table(best, runs, "peak")}\n\n{factors(runs)}\n'
    )
    print(text)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    (chosen.folder / 'table.txt').write_text(text, encoding='utf-8')
    draw_errors(runs, chosen.folder / 'errors.png')
    draw_summary(best, runs, chosen.folder / 'summary.png')
    draw_torques(runs, 1, chosen.folder / 'torques.png')
    model = panda()
    exact = [run for run in runs if run.condition == 'exact' and run.tracking is not None]
    if chosen.images > 0:
        draw_robot(model, exact[0].tracking.q, chosen.folder / 'robot', chosen.images)
    if not chosen.over_ros:
        return 0
    os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randrange(1, 100))
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    from sea_demo_over_ros import compare  # rclpy is needed here only

    urdf = share_file('urdf/panda.urdf').read_text(encoding='utf-8')
    return compare(urdf, model, MOTION, exact, PERIOD)


if __name__ == '__main__':
    sys.exit(main())
