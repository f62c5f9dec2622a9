"""How well parameters are found again: 100 robots whose parameters are known.

A Panda is recorded along motions of some twenty seconds each, with encoders that round and noise
of the torques. Its links are those of Gaz et al. 2019 with mass, extent and place of each body
changed at random, and by Pinocchio; motors, springs, friction and sensors are written down in
test/support/identification_cases.py, which shares no code with hodyn_ros.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.disturbed_robot import panda
from benchmarks.tables import Benchmark, Table, in_parallel
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.actuators import Actuators, SeriesElastic, motor_motion
from hodyn_ros.files import Samples
from hodyn_ros.identification import Identification, identify

from support import identification_cases as cases  # isort: skip

Array = NDArray[np.float64]

NOISE = np.array([0.1] * 4 + [0.05] * 3)
"""Standard deviations of measured torques [N m]."""
MATTERS = 0.05
"""Share of the torque of a joint, RMS, from which on a parameter matters."""
WITHIN = 3.0
"""Standard deviations."""
RATE = 1000  # Hz
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


SIZES = {
    'tiny': Size({'rigid': 1, 'elastic': 1}, 1),
    'quick': Size({**dict.fromkeys(KINDS, 10)}, 2),
    'full': Size({**dict.fromkeys(KINDS, 100)}, 2),
}


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


def judge(job: tuple[str, int, int]) -> Outcome:
    """Record a robot (kind, seed) along so many motions, identify it, compare with the truth."""
    kind, seed, count = job
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


def judge_all(size: Size) -> dict[str, list[Outcome]]:
    """Outcomes of all robots by their kind."""
    jobs = [(kind, seed) for kind, runs in size.runs.items() for seed in range(runs)]
    outcomes = in_parallel(judge, [(*job, size.motions) for job in jobs])
    found: dict[str, list[Outcome]] = {kind: [] for kind in size.runs}
    for (kind, _), outcome in zip(jobs, outcomes):
        found[kind].append(outcome)
    return found


def table_of_parameters(size: Size, found: Mapping[str, Sequence[Outcome]]) -> Table:
    """How often each group is as exact as it says, and how exact that is."""
    rows = []
    for kind, outcomes in found.items():
        judged = [item for outcome in outcomes for item in outcome.parameters]
        for group in ('all', *dict.fromkeys(item.group for item in judged)):
            own = [item for item in judged if group in ('all', item.group)]
            ratio = np.array([item.error / item.std for item in own])
            relative = [
                (item.std / abs(item.value), abs(item.error / item.value))
                for item in own
                if item.share > MATTERS
            ]
            cells = ['', '', '', '']
            if relative:
                std, error = np.transpose(relative)
                shown = np.median(std), std.max(), np.median(error)
                cells = [str(len(relative)), *(f'{100.0 * value:.2g} %' for value in shown)]
            within = 100.0 * np.mean(np.abs(ratio) <= WITHIN)
            name = kind if group == 'all' else ''
            counts = [str(len(own)), f'{within:.1f} %', f'{np.sqrt(np.mean(ratio**2)):.2f}']
            rows.append([name, group, *counts, *cells])
    header = ['', 'group', 'estimates', f'within {WITHIN:.0f} std', 'error/std']
    header += ['that matter', 'median std', 'largest std', 'median error']
    note = (
        f'Identified from {size.motions} motions of 20 s: share of the estimates that are within '
        '3 of their standard deviations (std) of the truth, RMS of the errors over these, and for '
        'parameters whose part of the torque of some joint is more than 5 %, RMS, how large std '
        'and errors are beside them. Base parameters are combinations of masses, first moments '
        'and inertias. Torques have noise of 0.1 N m at joints 1 to 4 and 0.05 N m at the others '
        'in each sample, 1 kHz, encoders 20 bits at joints and 14 bits at motors before gears of '
        '100; the model that identification starts from is that of Gaz et al.'
    )
    return Table('Parameters of robots that are all different', header, rows, [note])


def table_of_residuals(found: Mapping[str, Sequence[Outcome]]) -> Table:
    """Torques along another motion."""
    rows = []
    for kind, outcomes in found.items():
        after = [outcome.residual for outcome in outcomes]
        values = (
            np.median([outcome.before for outcome in outcomes]),
            np.median(after),
            max(after),
            np.median([outcome.of_truth for outcome in outcomes]),
        )
        seconds = np.median([outcome.seconds for outcome in outcomes])
        rows.append([kind, *(f'{value:.4f}' for value in values), f'{seconds:.1f}'])
    note = (
        'What measured torques of another motion of 20 s miss of those of a model, in the median '
        'over the robots: of the one that identification starts from, of the identified one, '
        'whose friction is not smoothed, and the noise, which is what the true parameters leave. '
        'With the time of an identification.'
    )
    header = ['RMS [N m]', 'given', 'identified', 'at most', 'true', 's']
    return Table('Torques along a motion that was not recorded', header, rows, [note])


def measure(size: Size) -> list[Table]:
    """Measure everything."""
    found = judge_all(size)
    return [table_of_parameters(size, found), table_of_residuals(found)]


BENCHMARKS = {
    'identification': Benchmark('How well parameters are found again', SIZES, measure)
}
