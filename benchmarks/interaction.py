"""Robots that are touched: stiffness, passivity, contact, leading by hand, switching of laws.

    python -m benchmarks.interaction [--size full] [--workers 3]
        [--include doc/benchmarks/interaction.inc]

A Panda with springs of 1000 and 500 N m/rad, with encoders and torque limits, at 1 kHz. Pinocchio
simulates it, see test/support/control_plant.py. Elastic structure preserving control (ESP;
Keppler, Lakatos, Ott and Albu-Schaeffer 2018) is beside the joint impedance.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio
from numpy.typing import NDArray
from scipy.linalg import eigh

from benchmarks.cases import ROOT
from benchmarks.report import grid
from hodyn_ros import ModelWarning, RobotModel
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import (
    CartesianImpedance,
    GravityCompensation,
    JointImpedance,
    StateObserver,
    tracking_controller,
    warm_up,
)
from hodyn_ros.dynamics.matrices import gravity_effort, mass_matrix
from hodyn_ros.model.friction import Coulomb

from support.control_cases import (  # isort: skip
    HOME,
    MOTOR_INERTIA,
    PANDA,
    PERIOD,
    STIFFNESS,
    TORQUE_LIMITS,
    Condition,
)
from support.interaction_cases import (  # isort: skip
    TIP,
    Touch,
    hand,
    nothing,
    ramped,
    random_pushes,
    tip,
    touch,
    wall,
)

Array = NDArray[np.float64]
Law = Any  # with a method `command(desired, q, qd, theta, thetad)`

START = np.array(HOME)
AT_START = np.vstack([START, np.zeros((4, 7))])
JOINTS = 0.2 * STIFFNESS
AXES = np.array([20.0, 30.0, 25.0, 400.0, 700.0, 500.0])  # of the tip, rotations first
WRENCH = np.array([3.0, 10.0, 5.0, 0.5, 0.3, 0.5])

CONDITIONS = {
    'exact': Condition(),
    'K -10 %': Condition(stiffness=-0.1),
    'K +10 %': Condition(stiffness=0.1),
    'mass +10 %': Condition(inertia=0.1),
    'payload 1 kg': Condition(payload=1.0),
    'motor Coulomb 1 N m': Condition(coulomb=1.0),
    'the same, damped springs': Condition(coulomb=1.0, damping=0.5),
    'delay 1 ms, unknown': Condition(delay=1),
}


class Size(NamedTuple):
    """What is measured."""

    conditions: tuple[str, ...]
    seeds: int
    """Random pushes a case."""
    settled: float
    """How long a force is held [s]."""
    speeds: tuple[float, ...]
    """Of the hand [m/s]."""
    hard: tuple[float, ...]
    """Stiffness of walls [N/m]."""


SIZES = {
    'tiny': Size(('exact',), 1, 0.2, (0.25,), (1e5,)),
    'quick': Size(
        ('exact', 'K -10 %', 'payload 1 kg', 'motor Coulomb 1 N m', 'delay 1 ms, unknown'),
        1,
        0.8,
        (0.1, 0.25),
        (1e5,),
    ),
    'full': Size(tuple(CONDITIONS), 10, 2.5, (0.1, 0.25), (1e3, 1e4, 1e5)),
}


class Laws:
    """Makes the laws for one robot."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ModelWarning)
            self.model = RobotModel.from_urdf(PANDA)
        warm_up(self.model)

    def actuators(self, friction: Coulomb | None = None) -> Actuators:
        """Springs and motors as the laws know them."""
        numbers = zip(self.model.joint_names, STIFFNESS.tolist(), MOTOR_INERTIA.tolist())
        return Actuators(
            self.model, {name: SeriesElastic(k, b, 0.0, friction) for name, k, b in numbers}
        )

    def make(self, kind: type, friction: Coulomb | None = None, **options: Any) -> Law:
        """Make a law with the torque limits of the robot."""
        return kind(
            self.actuators(friction), PERIOD, torque_limits=TORQUE_LIMITS, **options
        )

    def joint(self, **options: Any) -> Law:
        """Joint impedance."""
        return self.make(JointImpedance, **{'stiffness': JOINTS, **options})

    def cartesian(self, **options: Any) -> Law:
        """Impedance of the tip."""
        return self.make(CartesianImpedance, link=TIP, **{'stiffness': AXES, **options})

    def free(self, **options: Any) -> Law:
        """Gravity compensation."""
        return self.make(GravityCompensation, **{'damping': 0.5, **options})


def run(
    law: Law,
    condition: Condition,
    wrench: Any,
    duration: float,
    goal: Array = AT_START,
    substeps: int = 2,
) -> Touch:
    """Touch the robot under a law that holds a goal (5, 7)."""
    waiting: list[Array] = []
    plant = condition.plant()

    def command(t: float, measured: Array) -> Array:
        waiting.append(law.command(goal, *measured))
        return waiting.pop(0) if len(waiting) > condition.delay else waiting[0]

    return touch(plant, command, wrench, duration, substeps=substeps)


def stiffness_errors(laws: Laws, size: Size) -> list[list[str]]:
    """Worst deviation of torques or of wrenches in the tip's axes from stiffness times way."""
    rows = [['robot', 'joints', 'tip, turning', 'tip, moving']]
    for name in size.conditions:
        condition, found = CONDITIONS[name], []
        for law in (laws.joint(), laws.cartesian()):

            def late(t: float, pose: Any, velocity: Array) -> Array:
                return ramped(WRENCH)(max(t - size.settled, 0.0), pose, velocity)

            record = run(law, condition, late, 2.0 * size.settled + 0.3)
            plant = condition.plant()
            before = record.states[round(size.settled / PERIOD) - 1, 0]
            after = record.states[-1, 0]
            old, _ = tip(plant, before)
            new, J = tip(plant, after)
            if len(found) == 0:
                given = J.T @ WRENCH
                missed = (
                    np.abs(JOINTS * (after - before) - given).max() / np.abs(given).max()
                )
                found.append(missed)
                continue
            R = old.rotation.T
            moved = np.concatenate(
                [pinocchio.log3(R @ new.rotation), R @ (new.translation - old.translation)]
            )
            given = np.concatenate([R @ WRENCH[3:], R @ WRENCH[:3]])
            missed = np.abs(AXES * moved - given)
            found += [
                part.max() / np.abs(whole).max()
                for part, whole in zip(np.split(missed, 2), np.split(given, 2))
            ]
        rows.append([name, *(f'{100.0 * value:.1f} %' for value in found)])
    return rows


def energies(laws: Laws, size: Size) -> list[list[str]]:
    """Of random pushes: put in at most, and the least that was in at any time."""
    made: dict[str, Callable[[], Law]] = {
        'joint impedance': laws.joint,
        'tip impedance': laws.cartesian,
        'gravity compensation': laws.free,
    }
    rows = [['robot', *(f'{name} [J]' for name in made)]]
    for name in size.conditions:
        row = [name]
        for make in made.values():
            records = [
                run(make(), CONDITIONS[name], random_pushes(seed, 0.8), 1.2)
                for seed in range(size.seeds)
            ]
            least = min(record.energy.min() for record in records)
            row.append(f'{max(r.energy.max() for r in records):.2f} / {least:.4f}')
        rows.append(row)
    return rows


def contacts(laws: Laws, size: Size) -> list[list[str]]:
    """Pressing on a wall whose surface is 1 cm before the goal's way of 5 cm ends."""
    rows = [
        ['law', 'wall [N/m]', 'robot', 'peak [N]', 'at rest [N]', 'ripple [N]', 'bounces']
    ]
    pose, J = tip(Condition().plant(), START)
    goal = AT_START.copy()
    goal[0] += np.linalg.pinv(J) @ [0.0, 0.0, -0.05, 0.0, 0.0, 0.0]
    made: dict[str, Callable[[], Law]] = {
        'joint impedance': laws.joint,
        'tip impedance': laws.cartesian,
        'ESP': lambda: Preserving(laws, JOINTS),
    }
    robots = [
        name for name in CONDITIONS if name not in ('K +10 %', 'mass +10 %', 'payload 1 kg')
    ]
    for name, make in made.items():
        for hard in size.hard:
            for robot in robots if len(size.conditions) > 1 else size.conditions:
                surface = wall(pose.translation[2] - 0.01, hard)
                record = run(make(), CONDITIONS[robot], surface, 1.5, goal, substeps=4)
                force = record.wrench[:, 2]
                bounces = int(np.sum((force[1:] > 0.0) & (force[:-1] == 0.0))) - 1
                rows.append(
                    [
                        name,
                        f'{hard:.0e}',
                        robot,
                        f'{force.max():.0f}',
                        f'{force[-1]:.1f}',
                        f'{np.ptp(force[-300:]):.2f}',
                        str(bounces),
                    ]
                )
    return rows


def hands(laws: Laws, size: Size) -> list[list[str]]:
    """Force of a hand that leads the tip, at constant speed and at most while it starts."""
    rubbing = Condition(coulomb=1.0)
    cases: dict[str, tuple[Condition, Law]] = {
        'no friction': (Condition(), laws.free()),
        'no friction, motors as they are': (Condition(), laws.free(motor_share=1.0)),
        'friction observed': (rubbing, laws.free()),
        'friction known': (
            rubbing,
            laws.free(friction=Coulomb(1.0, 0.01), observes_friction=False),
        ),
        'friction not compensated': (rubbing, laws.free(observes_friction=False)),
    }
    heads = ('x', 'y', 'z', 'most')
    rows = [['m/s', 'motors, 1 N m', *(f'{head} [N]' for head in heads)]]
    start = tip(Condition().plant(), START)[0].translation
    for speed in size.speeds:
        for name, (condition, law) in cases.items():
            forces, most = [], 0.0
            for direction in np.eye(3):
                law.reset()
                record = run(law, condition, hand(start, speed * direction), 0.8)
                forces.append(record.wrench[500:, :3].mean(axis=0) @ direction)
                most = max(most, float(np.linalg.norm(record.wrench[:, :3], axis=1).max()))
            rows.append([f'{speed:g}', name, *(f'{f:.2f}' for f in forces), f'{most:.1f}'])
    return rows


def switches(laws: Laws, size: Size) -> list[list[str]]:
    """Laws one after the other, pushed with 5 N, 0.1 rad off, with an unknown payload."""
    first = tracking_controller(laws.actuators(), PERIOD, torque_limits=TORQUE_LIMITS)
    shared = {'observer': first.observer}
    order = {
        'tracking': first,
        'joint impedance': laws.joint(**shared),
        'tip impedance': laws.cartesian(**shared),
        'gravity compensation': laws.free(damping=2.0, **shared),
        'tracking again': first,
    }
    names, used = list(order), list(order.values())
    goal, before = AT_START.copy(), {}
    goal[0] += 0.1

    def command(t: float, measured: Array) -> Array:
        place, k = divmod(round(t / PERIOD), 300)
        law = used[place]
        if k == 0:
            law.begin()
        torque: Array = law.command(goal if place else AT_START, *measured)
        if k == 0 and place:
            before[place] = np.abs(law._left / law.fading).max()
        return torque

    record = touch(
        Condition(payload=1.0).plant(),
        command,
        ramped([5.0, 0, 0, 0, 0, 0]),
        0.3 * len(used),
    )
    steps = np.abs(np.diff(record.torque, axis=0)).max(axis=1)
    rows = [
        [
            'to',
            'the laws differ by [N m]',
            'step [N m]',
            'largest step of 50 ms after [N m]',
        ]
    ]
    for place in range(1, len(used)):
        at = 300 * place - 1
        step, after = steps[at], steps[at + 1 : at + 51].max()
        rows.append([names[place], f'{before[place]:.1f}', f'{step:.3f}', f'{after:.2f}'])
    return rows


class Preserving:
    """ESP regulation: dampers on the links, springs and motor inertia as they are.

    In the coordinate eta = theta - K^-1 n, n = g(q) - D q', of the motors the robot is the same
    one with dampers D between its links and the ground; tau = n + B K^-1 n'' - K_m (eta - q_d)
    - D_m eta' holds it. Acceleration and jerk of the links are those of the observer.
    """

    def __init__(self, laws: Laws, stiffness: Array, ratio: float = 0.7) -> None:
        self.observer = StateObserver(laws.actuators(), PERIOD, 50.0)
        self.model = laws.model
        values, V = eigh(np.diag(stiffness), mass_matrix(self.model, START[None])[0])
        modes = mass_matrix(self.model, START[None])[0] @ V
        self._damping = 2.0 * ratio * (modes * np.sqrt(values)) @ modes.T
        self._stiffness = 1.0 / (1.0 / stiffness - 1.0 / STIFFNESS)
        self._motors = np.sqrt(MOTOR_INERTIA * (STIFFNESS + self._stiffness))

    def command(self, desired: Array, *measured: Array) -> Array:
        """Torques of the motors."""
        self.observer.update(*measured)
        x = self.observer.state()
        motion = np.array([x.position, x.velocity, x.acceleration])
        n = gravity_effort(self.model, motion)
        n -= np.array([x.velocity, x.acceleration, x.jerk]) @ self._damping
        eta = x.motor_position - n[0] / STIFFNESS - desired[0]
        turning = x.motor_velocity - n[1] / STIFFNESS
        torque = n[0] + MOTOR_INERTIA / STIFFNESS * n[2]
        torque -= self._stiffness * eta + self._motors * turning
        limited: Array = np.clip(torque + x.motor_friction, -TORQUE_LIMITS, TORQUE_LIMITS)
        self.observer.apply(limited, 0.0)
        return limited


def preserving(laws: Laws, size: Size) -> list[list[str]]:
    """A push of 20 N for 0.3 s: how far the tip goes, and how long it swings after it."""
    rows = [
        ['K_d / K', 'law', 'robot', 'way [mm]', 'swings [s]', 'energy [J]', 'noise [N m/s]']
    ]

    def push(t: float, pose: Any, velocity: Array) -> Array:
        return np.array([0.0, 20.0 * (0.0 < t < 0.3), 0.0, 0.0, 0.0, 0.0])

    for share in (0.2, 0.5):
        made: dict[str, Callable[[], Law]] = {
            'impedance': lambda share=share: laws.joint(stiffness=share * STIFFNESS),
            'ESP': lambda share=share: Preserving(laws, share * STIFFNESS),
        }
        for name, make in made.items():
            for robot in size.conditions:
                line = [f'{share:g}', name, robot]
                try:
                    record = run(make(), CONDITIONS[robot], push, 2.0)
                    still = run(make(), CONDITIONS[robot], nothing, 0.5)
                except (AssertionError, ValueError) as reason:
                    rows.append([*line, 'diverges', '', '', ''])
                    print(f'{line}: {reason}', file=sys.stderr)
                    continue
                way = np.linalg.norm(record.position - record.position[-1], axis=1)
                swings = np.flatnonzero(way[300:] > 0.05 * way.max())
                noise = np.abs(np.diff(still.torque[-200:], axis=0)).max() / PERIOD
                rows.append(
                    [
                        *line,
                        f'{1e3 * way.max():.0f}',
                        f'{PERIOD * (swings[-1] + 1):.2f}',
                        f'{record.energy.max():.2f} / {record.energy.min():.4f}',
                        f'{noise:.0f}',
                    ]
                )
    return rows


TABLES: dict[str, Callable[[Laws, Size], list[list[str]]]] = {
    'Elastic structure preserving control': preserving,
    'Deviation from the demanded stiffness': stiffness_errors,
    'Leading by hand': hands,
    'Energy that random pushes have put in, most and least': energies,
    'Contact': contacts,
    'Switching': switches,
}


def table(title: str, size: Size) -> str:
    """Measure one of them."""
    return f'**{title}**\n\n{grid(TABLES[title](Laws(), size))}'


def measure(size: Size, workers: int = 1) -> str:
    """Measure everything; tables with their titles."""
    sizes = [size] * len(TABLES)
    if workers == 1:
        return '\n'.join(map(table, TABLES, sizes))
    with ProcessPoolExecutor(workers, get_context('spawn')) as pool:
        return '\n'.join(pool.map(table, TABLES, sizes))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.interaction', description='Robots that are touched.'
    )
    parser.add_argument('--size', choices=SIZES, default='quick')
    parser.add_argument(
        '--include',
        type=Path,
        default=ROOT / 'build' / 'bench' / 'interaction.inc',
        help='file to write to, for the documentation',
    )
    parser.add_argument('--workers', type=int, default=1, help='processes')
    options = parser.parse_args(arguments)
    start = time.monotonic()
    text = measure(SIZES[options.size], options.workers)
    print('\n' + text)
    options.include.parent.mkdir(parents=True, exist_ok=True)
    options.include.write_text(text, encoding='utf-8')
    print(f'{time.monotonic() - start:.0f} s. Written: {options.include}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
