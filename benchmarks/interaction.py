"""Robots that are touched: stiffness, passivity, contact, leading by hand.

A Panda with springs of 1000 and 500 N m/rad, with encoders and torque limits, at 1 kHz. Pinocchio
simulates it, see test/support/control_plant.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pinocchio
from numpy.typing import NDArray

from benchmarks.disturbed_robot import panda
from benchmarks.tables import Benchmark, Table, in_parallel
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import (
    CartesianImpedance,
    GravityCompensation,
    JointImpedance,
)
from hodyn_ros.model.friction import Coulomb

from support.control_cases import (  # isort: skip
    HOME,
    MOTOR_INERTIA,
    PERIOD,
    STIFFNESS,
    TORQUE_LIMITS,
    Condition,
)
from support.interaction_cases import (  # isort: skip
    TIP,
    Touch,
    hand,
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


def actuators(friction: Coulomb | None = None) -> Actuators:
    """Springs and motors as the laws know them."""
    model = panda()
    numbers = zip(model.joint_names, STIFFNESS.tolist(), MOTOR_INERTIA.tolist())
    springs = {name: SeriesElastic(k, b, 0.0, friction) for name, k, b in numbers}
    return Actuators(model, springs)


def make(kind: type, friction: Coulomb | None = None, **options: Any) -> Law:
    """Make a law with the torque limits of the robot."""
    return kind(actuators(friction), PERIOD, torque_limits=TORQUE_LIMITS, **options)


def joint(stiffness: Array = JOINTS) -> Law:
    """Joint impedance."""
    return make(JointImpedance, stiffness=stiffness)


def cartesian() -> Law:
    """Impedance of the tip."""
    return make(CartesianImpedance, link=TIP, stiffness=AXES)


def free(**options: Any) -> Law:
    """Gravity compensation."""
    return make(GravityCompensation, damping=0.5, **options)


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


def stiffness_errors(size: Size) -> list[list[str]]:
    """Worst deviation of torques or of wrenches in the tip's axes from stiffness times way."""
    rows = [['robot', 'joints', 'tip, turning', 'tip, moving']]
    for name in size.conditions:
        condition, found = CONDITIONS[name], []
        for law in (joint(), cartesian()):

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


def energies(size: Size) -> list[list[str]]:
    """Of random pushes: put in at most, and the least that was in at any time."""
    made: dict[str, Callable[[], Law]] = {
        'joint impedance': joint,
        'tip impedance': cartesian,
        'gravity compensation': free,
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


def contacts(size: Size) -> list[list[str]]:
    """Pressing on a wall whose surface is 1 cm before the goal's way of 5 cm ends."""
    rows = [
        ['law', 'wall [N/m]', 'robot', 'peak [N]', 'at rest [N]', 'ripple [N]', 'bounces']
    ]
    pose, J = tip(Condition().plant(), START)
    goal = AT_START.copy()
    goal[0] += np.linalg.pinv(J) @ [0.0, 0.0, -0.05, 0.0, 0.0, 0.0]
    made: dict[str, Callable[[], Law]] = {
        'joint impedance': joint,
        'tip impedance': cartesian,
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


def hands(size: Size) -> list[list[str]]:
    """Force of a hand that leads the tip, at constant speed and at most while it starts."""
    rubbing = Condition(coulomb=1.0)
    cases: dict[str, tuple[Condition, Law]] = {
        'no friction': (Condition(), free()),
        'no friction, motors as they are': (Condition(), free(motor_share=1.0)),
        'friction observed': (rubbing, free()),
        'friction known': (
            rubbing,
            free(friction=Coulomb(1.0, 0.01), observes_friction=False),
        ),
        'friction not compensated': (rubbing, free(observes_friction=False)),
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


TABLES: dict[str, Callable[[Size], list[list[str]]]] = {
    'Deviation from the demanded stiffness': stiffness_errors,
    'Leading by hand': hands,
    'Energy that random pushes have put in, most and least': energies,
    'Contact': contacts,
}


def table(job: tuple[str, Size]) -> Table:
    """Measure one of them."""
    title, size = job
    header, *rows = TABLES[title](size)
    return Table(title, header, rows)


def measure(size: Size) -> list[Table]:
    """Measure everything."""
    return in_parallel(table, [(title, size) for title in TABLES])


BENCHMARKS = {'interaction': Benchmark('Robots that are touched', SIZES, measure)}
