"""Draw the pictures of pages and README.md into doc/images: the Panda, a stop, an ankle."""

from __future__ import annotations

import contextlib
import io
import runpy
import warnings
from pathlib import Path

import numpy as np
import yaml
from matplotlib import pyplot, rc_context
from matplotlib.figure import Figure
from run_examples import examples

from hodyn_ros import ModelWarning, RobotModel, friction, inverse_dynamics
from hodyn_ros.actuators import actuators_from_config, motor_limits
from hodyn_ros.analysis import Recorded, StopAnalysis, find_stop_causes
from hodyn_ros.files import Samples, compute
from hodyn_ros.identification import Comparison, compare, excite
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.model.violations import motion_limits
from hodyn_ros.plotting import (
    plot_comparison,
    plot_efforts,
    plot_energy,
    plot_joint,
    plot_motors,
    plot_portraits,
    plot_stop,
)
from hodyn_ros.resources import share_file
from hodyn_ros.trajectory.references import panda_sinusoids

FOLDER = Path(__file__).parent / 'images'
DURATION = 8.0  # s
FASTER = 1.15  # than the motion that keeps all limits


def parameters(name: str) -> dict[str, dict[str, dict[str, float]]]:
    """Read the parameters that are meant for all nodes from a file in config."""
    config = yaml.safe_load(share_file(f'config/{name}').read_text())
    return config['/**']['ros__parameters']


def comparison(model: RobotModel) -> Comparison:
    """Compare a robot that has friction and carries 1 kg with a model that knows of neither."""
    times, motion = excite(model, duration=15.0).samples(250.0)
    law = friction.Viscous(0.3) + friction.Coulomb(0.5, 0.01)
    robot = model.with_friction(dict.fromkeys(model.joint_names, law)).with_payload(
        'panda_link8', 1.0, np.array([0.0, 0.02, 0.1]), np.zeros((3, 3))
    )
    noise = np.random.default_rng(0).normal(scale=0.1, size=motion[:, 0].shape)
    effort = inverse_dynamics(robot, motion)[:, 0] + noise
    known = (times < 6.0) | (times > 7.0)
    recording = Samples(
        model.joint_names,
        times[known],
        motion[known, :1],
        effort=effort[known],
        name='recording',
        is_measured=True,
    )
    return compare(model, recording)


def stop(model: RobotModel, limits: MotionLimits) -> StopAnalysis:
    """Find out why the robot of the example stopped."""
    example = runpy.run_path(str(FOLDER.parent.parent / 'examples' / 'stopped_robot.py'))
    _, *recordings = example['recordings']('missed_cycle')
    sent, measured = (
        Recorded(times, position, effort=effort) for times, position, effort in recordings
    )
    return find_stop_causes(model, limits, sent, measured)


def ankle() -> Figure:
    """Draw what the page on the parallel ankle computes, for its first motor."""
    page = FOLDER.parent / 'closed_loops.rst'
    found: dict[str, np.ndarray] = {}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        for code in examples(page.read_text(encoding='utf-8')):
            exec(code, found)  # noqa: S102
    figure, axes = pyplot.subplots(1, 2, figsize=(9.6, 3.4), layout='constrained')
    for k, (panel, what) in enumerate(zip(axes, ('torque [N m]', 'torque rate [N m/s]'))):
        exact, rule = found['torque'][:, k, 0], found['rule'][:, k, 0]
        panel.plot(found['times'], exact, label='whole mechanism')
        panel.plot(found['times'], rule, '--', label='serial ankle and Jacobian')
        panel.fill_between(
            found['times'], rule - exact, alpha=0.4, color='C3', label='difference'
        )
        panel.set(xlabel='time [s]', ylabel=f'{what} of motor_a', xmargin=0.0)
        panel.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc='outside upper center', ncols=3)
    return figure


def main() -> None:
    """Write the pictures."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = RobotModel.from_urdf(share_file('urdf/panda.urdf'))
    actuators = actuators_from_config(model, parameters('panda_sea.yaml')['actuators'])
    times = np.linspace(0.0, DURATION, 4001)
    motion = panda_sinusoids().motion(times) * FASTER ** np.arange(5)[:, None]
    results = compute(
        model,
        Samples(model.joint_names, times / FASTER, motion, name='Panda'),
        actuators=actuators,
    )
    limits = motion_limits(model, parameters('panda.yaml')['limits'])
    example = {'motor_velocity': 2.5, 'deflection': 0.08}
    of_motors = motor_limits(actuators, dict.fromkeys(model.joint_names, example))
    figures = {
        'joint': plot_joint(model, results, 'panda_joint2', limits),
        'portraits': plot_portraits(model, results, limits),
        'motors': plot_motors(model, results, of_motors, ['panda_joint2'], actuators),
        'energy': plot_energy(model, results),
        'stop': plot_stop(model, stop(model, limits)),
        'comparison': plot_comparison(comparison(model), ['panda_joint2', 'panda_joint7']),
    }
    FOLDER.mkdir(exist_ok=True)
    reference = panda_sinusoids().motion(times)
    kept = compute(model, Samples(model.joint_names, times, reference, name='Panda'))
    with rc_context({'font.size': 10}):
        figure = plot_efforts(model, kept, limits, [f'panda_joint{j}' for j in (2, 4, 6)])
        figure.savefig(FOLDER / 'panda_efforts.png', dpi=95, metadata={'Software': None})
    ankle().savefig(FOLDER / 'parallel_ankle.png', dpi=95, metadata={'Software': None})
    for name, figure in figures.items():
        path = FOLDER / f'plot_{name}.png'
        figure.savefig(path, dpi=80, metadata={'Software': None})
        print(path)


if __name__ == '__main__':
    main()
