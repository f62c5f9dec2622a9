"""How well parameters are found again: 100 robots whose parameters are known, and what it costs.

    python -m benchmarks.identification [--size full] [--include doc/benchmarks/identification.inc]

A Panda is recorded along motions of some twenty seconds each, with encoders that round and noise
of the torques. Its links are those of Gaz et al. 2019 with mass, extent and place of each body
changed at random, and by Pinocchio; motors, springs, friction and sensors are written down in
test/support/identification_cases.py, which shares no code with hodyn_ros.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio
from numpy.typing import NDArray

from benchmarks.cases import ROOT
from benchmarks.files import peak_memory
from benchmarks.report import folder_options, grid, write_tables
from hodyn_ros import ModelWarning, RobotModel, inverse_dynamics
from hodyn_ros.actuators import Actuators, SeriesElastic, motor_motion
from hodyn_ros.control import tracking_controller
from hodyn_ros.files import Samples
from hodyn_ros.identification import Identification, identify

from support import control_cases  # isort: skip
from support import identification_cases as cases  # isort: skip

Array = NDArray[np.float64]

NOISE = np.array([0.1] * 4 + [0.05] * 3)
"""Standard deviations of measured torques [N m]."""
MATTERS = 0.05
"""Share of the torque of a joint, RMS, from which on a parameter matters."""
WITHIN = 3.0
"""Standard deviations."""
RATE = 1000  # Hz
SMOOTHING = 0.01  # rad/s, of friction that a law makes up for; the default
SEEN = cases.Sensing(noise=NOISE)
WITH_SENSORS = cases.Sensing(noise=NOISE, sensor_noise=NOISE, sensor_offset=0.3)
MOTIONS = (cases.GAZ, cases.random_motion(3), cases.random_motion(4))
VALIDATION = cases.VALIDATION


class Kind(NamedTuple):
    """A kind of robots and how they are measured."""

    make: Callable[[int], Any]
    """From a seed to the robot."""
    sensing: cases.Sensing
    groups: tuple[str, ...]
    """Of parameters that are identified."""


RIGID = ('bodies', 'armature', 'viscous', 'coulomb', 'offset')
ELASTIC = (*RIGID, 'stiffness')
KINDS = {
    'rigid': Kind(cases.RigidRobot.random, SEEN, RIGID),
    'elastic': Kind(cases.ElasticRobot.random, SEEN, ELASTIC),
    'elastic, cubic springs, torque sensors': Kind(
        lambda seed: cases.ElasticRobot.random(seed, cubic=True),
        WITH_SENSORS,
        (*ELASTIC, 'cubic_stiffness'),
    ),
    'rigid, Stribeck, delay of 1.3 ms, 0.1 % of spikes': Kind(
        lambda seed: cases.RigidRobot.random(seed, stribeck=True),
        cases.Sensing(noise=NOISE, delay=1.3e-3, spikes=1e-3),
        (*RIGID, 'stribeck', 'delay'),
    ),
}


class Judged(NamedTuple):
    """A parameter that was found."""

    group: str
    error: float
    std: float
    value: float
    """The true one."""
    share: float
    """Of its contribution to the torque of a joint, along the recorded motions, at most."""


class Outcome(NamedTuple):
    """What was found of one robot."""

    parameters: list[Judged]
    residual: float
    """Torques along a motion that was not recorded, beside the measured ones, RMS [N m]."""
    of_truth: float
    """The same of the true parameters."""
    before: float
    """The same of the model that identification starts from."""
    seconds: float


class Size(NamedTuple):
    """What is measured."""

    runs: Mapping[str, int]
    """Robots of each kind."""
    motions: int
    """How many of `MOTIONS` are recorded."""
    minutes: tuple[float, float]
    """Length of the recording that is timed, and of that for the peer [min]."""
    excitation: int
    """How many of `MOTIONS` the robot that is tracked has done before; 0: no tracking."""


SIZES = {
    'tiny': Size({'rigid': 1, 'elastic': 1}, 1, (0.1, 0.05), 0),
    'quick': Size({**dict.fromkeys(KINDS, 10)}, 2, (1.0, 0.5), 1),
    'full': Size({**dict.fromkeys(KINDS, 100)}, 2, (10.0, 1.0), 2),
}


def panda() -> RobotModel:
    """Give the robot as Gaz et al. 2019 have it, from which identification starts."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return RobotModel.from_urdf(cases.PANDA)


def samples(recording: Mapping[str, Any], name: str = 'recording') -> Samples:
    """Give a recording in the form in which files are read."""
    given = {
        key: recording.get(key) for key in ('effort', 'motor_position', 'motor_torque')
    }
    return Samples(
        recording['names'],
        recording['time'],
        recording['position'][:, None],
        name=name,
        is_measured=True,
        **given,
    )


def known_drives(model: RobotModel) -> Actuators:
    """Say what is known of drives: 10 % off on the average, see `ElasticRobot.random`."""
    rows = zip(cases.JOINTS, cases.STIFFNESS.tolist(), cases.MOTOR_INERTIA.tolist())
    return Actuators(model, {name: SeriesElastic(k, b) for name, k, b in rows})


# --- Many robots ------------------------------------------------------------------------------


def true_values(
    robot: Any, sensing: cases.Sensing, found: Identification
) -> dict[str, float]:
    """Give the true values of base parameters by their names, by Pinocchio's regressor."""
    truth, elastic = robot.truth, isinstance(robot, cases.ElasticRobot)
    by_joint = {
        **{name: truth[name] for name in ('viscous', 'coulomb', 'stribeck', 'offset')},
        'armature': truth['motor_inertia' if elastic else 'armature'],
        'stribeck_velocity': truth['velocity'],
        'deflection_offset': np.zeros(7),
        'sensor_offset': np.broadcast_to(sensing.sensor_offset, 7),
    }
    if elastic:
        by_joint |= {name: truth[name] for name in ('stiffness', 'damping')}
        by_joint['cubic_stiffness'] = truth['cubic']
    values = {
        f'{joint} {name}': float(value)
        for name, row in by_joint.items()
        for joint, value in zip(cases.JOINTS, row)
    }
    values['delay'] = sensing.delay
    # Inertial parameters act together, those of rotors of rigid joints with them.
    with_armature = not elastic and any(
        item.group == 'armature' for item in found.parameters
    )
    kinds = ('armature',) if with_armature else ()
    names = [f'{body} {name}' for body in cases.JOINTS for name in cases.BODY_PARAMETERS]
    names += [f'{joint} {kind}' for kind in kinds for joint in cases.JOINTS]
    own = [names.index(item.name) for item in found.parameters if item.name in names]
    every = np.concatenate([truth['inertial'], *(truth[kind] for kind in kinds)])
    base = cases.base_values(every, kinds, own)
    return values | {names[i]: float(value) for i, value in zip(own, base)}


def contributions(robot: Any, motions: Sequence[Any]) -> dict[str, Array]:
    """Give what torques change by with each parameter, over the torques; RMS, by its name."""
    parts: dict[str, list[Array]] = {}
    torques = []
    for motion in motions:
        t = np.arange(0.0, motion.duration, 0.02)
        links = motors = motion(t)
        by_joint = {}
        if isinstance(robot, cases.ElasticRobot):
            motors = robot.behaviour(motion, motion.duration)[1](t)
            d = motors - links[:, :3]
            torques.append(robot.torques(motion, t)[0])
            by_joint = {
                'stiffness': d[:, 0],
                'cubic_stiffness': d[:, 0] ** 3,
                'damping': d[:, 1],
            }
        else:
            torques.append(robot.torques(links))
        by_joint |= {
            'viscous': motors[:, 1],
            'coulomb': np.sign(motors[:, 1]),
            'armature': motors[:, 2],
            'stribeck': np.sign(motors[:, 1]) * np.exp(-((motors[:, 1] / 0.05) ** 2)),
            'offset': np.ones_like(motors[:, 0]),
        }
        Y = cases.regressor(robot.model, links).reshape(len(t), 7, 7, 10)
        for b, body in enumerate(cases.JOINTS):
            for k, name in enumerate(cases.BODY_PARAMETERS):
                parts.setdefault(f'{body} {name}', []).append(Y[:, :, b, k])
        for name, values in by_joint.items():
            for j, joint in enumerate(cases.JOINTS):
                parts.setdefault(f'{joint} {name}', []).append(
                    values[:, [j]] * np.eye(7)[j]
                )
    whole = rms(np.concatenate(torques))
    return {name: rms(np.concatenate(values)) / whole for name, values in parts.items()}


def rms(values: Array) -> Array:
    """Over samples, the first axis."""
    return np.asarray(np.sqrt(np.mean(values**2, axis=0)))


def predicted(model: RobotModel, actuators: Actuators | None, motion: Array) -> Array:
    """Torques of joints or motors along a motion (N, 5, 7), shape (N, 7)."""
    if actuators is None:
        return inverse_dynamics(model, motion[:, :3])[:, 0]
    return motor_motion(actuators, motion).torque[:, 0]


def judge(kind: str, seed: int, count: int) -> Outcome:
    """Record a robot along `count` motions, identify it and compare with the truth."""
    make, sensing, groups = KINDS[kind]
    robot, start = make(seed), panda()
    drives = known_drives(start) if isinstance(robot, cases.ElasticRobot) else None
    recordings = [
        samples(robot.record(motion, sensing, 1000 * seed + i), f'recording {i}')
        for i, motion in enumerate(MOTIONS[:count])
    ]
    began = time.monotonic()
    found = identify(start, recordings, groups, actuators=drives, smoothing=0.0)
    seconds = time.monotonic() - began
    truth, parts = true_values(robot, sensing, found), contributions(robot, MOTIONS[:count])
    t = np.arange(0.0, VALIDATION.duration, 1.0 / RATE)
    motion = VALIDATION(t)
    exact = robot.torques(motion) if drives is None else robot.torques(VALIDATION, t)[0]
    judged = []
    for item in found.parameters:
        value = truth[item.name]
        share = abs(value) * float(parts.get(item.name, np.zeros(1)).max())
        group = (
            item.name.rpartition(' ')[2] if item.group != 'bodies' else 'base parameters'
        )
        judged.append(Judged(group, item.value - value, item.std, value, share))
    errors = (
        exact - predicted(*robots, motion)
        for robots in ((found.model, found.actuators), (start, drives))
    )
    measured = sensing.noise * np.random.default_rng(seed).normal(size=exact.shape)
    after, before = (float(rms((error + measured).ravel())) for error in errors)
    return Outcome(judged, after, float(rms(measured.ravel())), before, seconds)


def judge_all(size: Size, say: Callable[[str], object]) -> dict[str, list[Outcome]]:
    """Outcomes of all robots, by as many processes as there are processors."""
    jobs = [(kind, seed) for kind, runs in size.runs.items() for seed in range(runs)]
    found: dict[str, list[Outcome]] = {kind: [] for kind in size.runs}
    workers = min(os.cpu_count() or 1, len(jobs))
    # Not forked: this process may have threads.
    with ProcessPoolExecutor(workers, get_context('spawn')) as pool:
        results = pool.map(judge, *zip(*jobs), [size.motions] * len(jobs))
        for (kind, seed), outcome in zip(jobs, results):
            found[kind].append(outcome)
            if seed % 10 == 9:
                say(f'{kind}: {seed + 1} robots')
    return found


def table_of_parameters(found: Mapping[str, Sequence[Outcome]]) -> str:
    """How often each group is as exact as it says, and how exact that is."""
    heads = [
        '',
        'group',
        'estimates',
        f'within {WITHIN:.0f} std',
        'error/std',
        'that matter',
    ]
    lines = [[*heads, 'median std', 'largest std', 'median error']]
    for kind, outcomes in found.items():
        judged = [item for outcome in outcomes for item in outcome.parameters]
        groups = dict.fromkeys(item.group for item in judged)
        for group in ('all', *groups):
            own = [item for item in judged if group in ('all', item.group)]
            ratio = np.array([item.error / item.std for item in own])
            relative = np.array(
                [[item.std, item.error] for item in own if item.share > MATTERS]
            ).reshape(-1, 2) / np.array(
                [abs(item.value) for item in own if item.share > MATTERS]
            ).reshape(-1, 1)
            cells = ['', '', '', '']
            if len(relative):
                std, error = np.abs(relative).T
                shown = np.median(std), std.max(), np.median(error)
                cells = [str(len(relative)), *(f'{100.0 * value:.2g} %' for value in shown)]
            within = 100.0 * np.mean(np.abs(ratio) <= WITHIN)
            lines.append(
                [
                    kind if group == 'all' else '',
                    group,
                    str(len(own)),
                    f'{within:.1f} %',
                    f'{np.sqrt(np.mean(ratio**2)):.2f}',
                    *cells,
                ]
            )
    return grid(lines)


def table_of_residuals(found: Mapping[str, Sequence[Outcome]]) -> str:
    """Torques along another motion."""
    lines = [['RMS [N m]', 'given', 'identified', 'at most', 'true', 's']]
    for kind, outcomes in found.items():
        after = [outcome.residual for outcome in outcomes]
        values = (
            np.median([outcome.before for outcome in outcomes]),
            np.median(after),
            max(after),
            np.median([outcome.of_truth for outcome in outcomes]),
        )
        seconds = np.median([outcome.seconds for outcome in outcomes])
        lines.append([kind, *(f'{value:.4f}' for value in values), f'{seconds:.1f}'])
    return grid(lines)


# --- The published motion ---------------------------------------------------------------------


def table_of_gaz() -> str:
    """Torques of the published parameters along the published motion."""
    model, robot = (
        panda(),
        cases.RigidRobot(armature=np.zeros(7), friction=cases.NO_FRICTION),
    )
    t = np.arange(0.0, cases.GAZ.duration, 1.0 / RATE)
    motion = cases.GAZ(t)
    exact = Samples(cases.JOINTS, t, motion[:, :3], effort=robot.torques(motion))
    others = model.with_inertial_parameters(cases.inertial_parameters(cases.panda(1)))
    heads = [
        'recorded',
        'parameters',
        'largest error',
        'of the largest',
        'error/std, at most',
    ]
    lines = [[*heads, 'torques of the model, at most [N m]']]
    another = VALIDATION(np.arange(0.0, VALIDATION.duration, 0.01))
    published = robot.torques(another)
    for name, recording in (
        ('exactly', exact),
        ('encoders, noise of torques', samples(robot.record(sensing=SEEN))),
    ):
        found = identify(others, recording, ('bodies',))
        truth = true_values(robot, SEEN, found)
        error = np.array([item.value - truth[item.name] for item in found.parameters])
        ratio = np.abs(error / [item.std for item in found.parameters]).max()
        largest, scale = (
            np.abs(error).max(),
            max(abs(truth[item.name]) for item in found.parameters),
        )
        beside = np.abs(predicted(found.model, None, another) - published).max()
        lines.append(
            [
                name,
                str(len(error)),
                f'{largest:.1e}',
                f'{largest / scale:.1e}',
                f'{ratio:.1f}' if name != 'exactly' else '',
                f'{beside:.1e}',
            ]
        )
    return grid(lines)


# --- Time and memory --------------------------------------------------------------------------


def by_pinocchio(recording: Samples) -> None:
    """Least squares by Pinocchio's regressor, row by row, and NumPy."""
    from scipy.signal import savgol_filter

    q = recording.motion[:, 0]
    qd, q2d = (savgol_filter(q, 51, 4, k, 1.0 / RATE, axis=0) for k in (1, 2))
    model = cases.panda()
    data, count = model.createData(), len(q)
    X = np.zeros((count, 7, 70 + 21))
    for i in range(count):
        X[i, :, :70] = pinocchio.computeJointTorqueRegressor(
            model, data, q[i], qd[i], q2d[i]
        )
    for k, column in enumerate((qd, np.sign(qd), q2d)):
        X[:, range(7), range(70 + 7 * k, 77 + 7 * k)] = column
    np.linalg.lstsq(X.reshape(-1, X.shape[2]), np.ravel(recording.effort), rcond=1e-8)


def run_child(which: str, file: str) -> dict[str, float]:
    """Identify from a recording in this process; its time and memory."""
    arrays = np.load(file)
    recording = samples({**arrays, 'names': cases.JOINTS})
    before, model = peak_memory(), panda()
    seconds = []
    for _ in range(1 if which == 'peer' else 2):  # the first time it compiles
        began = time.perf_counter()
        if which == 'peer':
            by_pinocchio(recording)
        else:
            identify(model, recording, RIGID)
        seconds.append(time.perf_counter() - began)
    return {
        'first': seconds[0],
        'seconds': seconds[-1],
        'before': before,
        'peak': peak_memory(),
    }


def table_of_costs(size: Size) -> str:
    """Time and memory of a long recording, beside those of a loop in Python."""
    lines = [['', 'minutes at 1 kHz', 's', 's, first time', 'MB before', 'MB at most']]
    robot = cases.RigidRobot.random(1)
    for which, minutes in zip(('hodyn_ros', 'peer'), size.minutes):
        motion = cases.random_motion(5, 60.0 * minutes)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / 'recording.npz'
            recording = robot.record(motion, SEEN)
            del recording['names']
            np.savez(file, **recording)
            command = [sys.executable, '-m', 'benchmarks.identification', '--child', which]
            done = subprocess.run(
                [*command, str(file)],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        found = json.loads(done.stdout)
        name = 'Pinocchio in a loop, lstsq' if which == 'peer' else which
        cells = (f'{found[key]:.1f}' for key in ('seconds', 'first'))
        memory = (f'{found[key]:.0f}' for key in ('before', 'peak'))
        lines.append([name, f'{minutes:g}', *cells, *memory])
    return grid(lines)


# --- Tracking ---------------------------------------------------------------------------------


def tracked(model: RobotModel, actuators: Actuators) -> control_cases.Run:
    """Follow the motion of benchmarks.elastic_joints under its condition "all"."""
    law = tracking_controller(
        actuators, control_cases.PERIOD, torque_limits=control_cases.TORQUE_LIMITS
    )
    return control_cases.follow(law, control_cases.CONDITIONS['all'])


def table_of_tracking(size: Size) -> str:
    """Errors of the tracking law before and after identification."""
    condition, model = control_cases.CONDITIONS['all'], panda()
    drives = known_drives(model)
    robot = cases.same_coulomb(
        cases.ElasticRobot(
            cases.panda(payload=(condition.payload, (0.0, 0.0, 0.0))),
            stiffness=(1.0 + condition.stiffness) * cases.STIFFNESS,
            friction=cases.NO_FRICTION,
        ),
        condition.coulomb,
    )
    recordings = [
        samples(robot.sees(robot.follow(motion), SEEN))
        for motion in MOTIONS[: size.excitation]
    ]
    found, sharp = (
        identify(model, recordings, ELASTIC, actuators=drives, smoothing=width)
        for width in (SMOOTHING, 0.0)
    )
    assert found.actuators is not None and sharp.actuators is not None
    lines = [
        ['what the law knows', 'RMS [mrad]', 'peak [mrad]', 'largest torque rate [N m/s]']
    ]
    for name, known in (
        ('nominal', (model, drives)),
        ('identified', (found.model, found.actuators)),
        ('identified, sharp friction', (sharp.model, sharp.actuators)),
    ):
        run = tracked(*known)
        lines.append([name, f'{run.rms:.3f}', f'{run.peak:.2f}', f'{run.rate:.0f}'])
    return grid(lines)


TEXTS = {
    'parameters': (
        'Parameters of robots that are all different, identified from {motions} motions of 20 s: '
        'share of the estimates that are within 3 of their standard deviations (std) of the '
        'truth, RMS of the errors over these, and for parameters whose part of the torque of some '
        'joint is more than 5 %, RMS, how large std and errors are beside them. Base parameters '
        'are combinations of masses, first moments and inertias. Torques have noise of 0.1 N m at '
        'joints 1 to 4 and 0.05 N m at the others in each sample, 1 kHz, encoders 20 bits at '
        'joints and 14 bits at motors before gears of 100; the model that identification starts '
        'from is that of Gaz et al.:'
    ),
    'residuals': (
        'What measured torques of another motion of 20 s miss of those of a model, in the median '
        'over the robots: of the one that identification starts from, of the identified one, '
        'whose friction is not smoothed, and the noise, which is what the true parameters leave. '
        'With the time of an identification:'
    ),
    'gaz': (
        'Torques of the published parameters along the published motion (Gaz et al. 2019), with '
        'positions, velocities and accelerations given exactly and with encoders and noise. '
        'Identification starts from another robot:'
    ),
    'costs': (
        'Time and memory of one identification in a process of its own, bodies, armature and '
        'friction. Pinocchio has its regressor row by row, with derivatives by a Savitzky-Golay '
        'filter, and keeps all rows; its recording is shorter, since time and memory grow with '
        'it:'
    ),
    'tracking': (
        'A robot with elastic joints follows the motion of :doc:`control` under the '
        'condition "all" (springs 5 % softer, 1 kg of payload, 1 N m of Coulomb friction in each '
        'motor, encoders), simulated with links of Pinocchio. It was identified from {excitation} '
        'recorded motion(s) under PD control, with noise of the torques as above. Friction is '
        'smoothed over 0.01 rad/s, the default, or not at all:'
    ),
}


def tables(size: Size, say: Callable[[str], object]) -> str:
    """Measure everything."""
    found = judge_all(size, say)
    parts = {
        'parameters': table_of_parameters(found),
        'residuals': table_of_residuals(found),
        'gaz': table_of_gaz(),
        'costs': table_of_costs(size),
    }
    if size.excitation:
        parts['tracking'] = table_of_tracking(size)
    written = [
        f'{textwrap.fill(TEXTS[name].format(**size._asdict()), 99)}\n\n{table}'
        for name, table in parts.items()
    ]
    return '\n'.join(written)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.identification',
        description='How well parameters of a robot are found again, and what it costs.',
    )
    parser.add_argument('--size', choices=SIZES, default='quick', help='number of robots')
    folder_options(parser)
    parser.add_argument('--child', nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(run_child(*options.child)))
        return 0
    start = time.monotonic()
    text = tables(
        SIZES[options.size], lambda text: print(text, file=sys.stderr, flush=True)
    )
    files = write_tables(text, 'identification', options)
    print(f'{time.monotonic() - start:.0f} s. Written: {", ".join(map(str, files))}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
