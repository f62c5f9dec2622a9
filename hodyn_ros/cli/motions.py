"""What the command line says about a motion, and the torques that belong to it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.limits import find_motor_violations
from hodyn_ros.actuators.robot import MotorMotion
from hodyn_ros.analysis.limits import Violation, find_violations
from hodyn_ros.cli.robots import Choice, load_model
from hodyn_ros.cli.settings import Drives, RobotLimits, read_actuators, read_limits
from hodyn_ros.errors import MotionError
from hodyn_ros.io import Results, Samples, compute, compute_stream, iterate_motion, read_motion
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GivenMotion:
    """MOTION and its options."""

    motion: Path
    topic: str | None = None
    index: int | None = None
    derivatives: str = 'auto'
    rate: float | None = None
    interpolation: str = 'spline'
    order: int = 2
    expressed_in: str | None = None
    acting: str | None = None
    actuators: Path | None = None

    @property
    def reading(self) -> dict[str, Any]:
        """Options of `read_motion` and `iterate_motion`."""
        return {
            'topic': self.topic,
            'index': self.index,
            'expressed_in': self.expressed_in,
            'acting': self.acting,
        }

    @property
    def computing(self) -> dict[str, Any]:
        """Options of `compute` and `compute_stream`."""
        return {
            'orders': self.order,
            'derivatives': self.derivatives,
            'rate': self.rate,
            'interpolation': self.interpolation,
        }


class Problem(NamedTuple):
    """A robot and everything that is known about it."""

    model: RobotModel
    limits: RobotLimits
    drives: Drives | None


def load_problem(choice: Choice, given: GivenMotion, limits: str | None = None) -> Problem:
    """Find the robot with its limits and actuators, and say what is remarkable.

    Parameters
    ----------
    choice : Choice
    given : GivenMotion
    limits : str, optional
        File with limits, see `read_limits`.

    Returns
    -------
    Problem
    """
    model, source = load_model(choice)
    known = read_limits(model, limits, source.limits)
    show_remarks(known.remarks)
    return Problem(model, known, read_actuators(model, given.actuators))


def read_samples(given: GivenMotion) -> Samples:
    """Read all samples of a motion."""
    return read_motion(given.motion, **given.reading)


def compute_results(problem: Problem, given: GivenMotion) -> Results:
    """Torques along the whole motion, and what the motors do.

    Parameters
    ----------
    problem : Problem
    given : GivenMotion

    Returns
    -------
    Results

    Raises
    ------
    HodynError
        If the motion cannot be read or does not fit.
    """
    problem.model.warm_up(given.order)
    actuators = problem.drives.actuators if problem.drives else None
    return compute(problem.model, read_samples(given), actuators=actuators, **given.computing)


def stream_results(problem: Problem, given: GivenMotion) -> Iterator[Results]:
    """Yield the same part by part, in bounded memory where the motion allows it."""
    problem.model.warm_up(given.order)
    actuators = problem.drives.actuators if problem.drives else None
    parts = iterate_motion(given.motion, **given.reading)
    yield from compute_stream(problem.model, parts, actuators=actuators, **given.computing)


def known_part(results: Results) -> Results:
    """Keep the samples of which everything is known.

    Where derivatives are estimated, the first samples lack some of them.

    Parameters
    ----------
    results : Results

    Returns
    -------
    Results

    Raises
    ------
    MotionError
        If there are none.
    """
    arrays = [results.motion, results.effort, *(results.motors or ())]
    known = np.ones(len(results), dtype=bool)
    for array in arrays:
        known &= np.isfinite(array).all(axis=(1, 2))
    if known.all():
        return results
    if not known.any():
        raise MotionError(
            f'{results.name}: at no sample all derivatives are known; ask for fewer: --order 1 or '
            '--order 0.'
        )
    motors = results.motors
    return replace(
        results,
        times=results.times[known],
        motion=results.motion[known],
        effort=results.effort[known],
        motors=None if motors is None else MotorMotion(*(array[known] for array in motors)),
        wrenches=tuple(
            replace(wrench, values=np.asarray(wrench.values)[known])
            for wrench in results.wrenches
        ),
        remarks=(
            *results.remarks,
            f'{np.count_nonzero(~known)} of {len(known)} samples are left out, because not all of '
            'their derivatives are known.',
        ),
    )


def violations_of(problem: Problem, results: Results) -> tuple[Violation, ...]:
    """Find the worst sample of all that exceeds its limit: of joints, then of motors."""
    found = find_violations(problem.model, problem.limits.values, results.motion, results.effort)
    if problem.drives is not None and results.motors is not None:
        drives = problem.drives
        found += find_motor_violations(drives.actuators, drives.limits, results.motors)
    return found


def show_remarks(remarks: tuple[str, ...]) -> None:
    """Say what one should know, where it does not mix with results."""
    for remark in dict.fromkeys(remarks):
        click.echo(f'note: {remark}', file=sys.stderr)
