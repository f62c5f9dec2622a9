"""What the command line says about a motion, and the torques that belong to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from hodyn_ros.analysis.limits import Violation
from hodyn_ros.cli.robots import Choice, load_model
from hodyn_ros.cli.settings import Drives, RobotLimits, read_actuators, read_limits
from hodyn_ros.errors import RequestError
from hodyn_ros.io import Results, Samples, compute, compute_stream, iterate_motion, read_motion
from hodyn_ros.io.derivatives import How
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.plotting.checks import all_violations
from hodyn_ros.plotting.source import checked_source


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
    robot_file: str


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
    drives = read_actuators(model, given.actuators)
    return Problem(model, known, drives, f'{source.path} ({source.origin})')


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
    samples = read_samples(given)
    _tell_unused_rate(given, samples)
    return compute(problem.model, samples, actuators=actuators, **given.computing)


def stream_results(problem: Problem, given: GivenMotion) -> Iterator[Results]:
    """Yield the same part by part, in bounded memory where the motion allows it.

    Raises
    ------
    HodynError
        See `compute_results`; also if one motion is followed by another one.
    """
    problem.model.warm_up(given.order)
    actuators = problem.drives.actuators if problem.drives else None
    parts = iterate_motion(given.motion, **given.reading)
    first = next(parts, None)
    if first is not None:
        _tell_unused_rate(given, first)
        parts = chain((first,), parts)
    last = -np.inf
    for results in compute_stream(
        problem.model, parts, actuators=actuators, **given.computing
    ):
        if len(results) and results.times[0] <= last:
            raise RequestError(
                f'{results.name} holds several motions, one after the other; choose one with '
                '--index 0, --index 1, and so on.'
            )
        yield results
        last = results.times[-1] if len(results) else last


def _tell_unused_rate(given: GivenMotion, samples: Samples) -> None:
    """Say that only splines are evaluated at a rate, if one is asked for and there is none."""
    how = How(given.derivatives, given.order + 3, given.interpolation, given.rate)
    if given.rate is not None and (choice := how.choose(samples)) != 'spline':
        show_remarks(
            (
                f'--rate is not used: the derivatives of {given.motion} are '
                f'{"given" if choice == "given" else "estimated"}, and only a spline has values '
                'between its samples (--derivatives spline).',
            )
        )


def violations_of(problem: Problem, results: Results) -> tuple[Violation, ...]:
    """Find the worst sample of all that exceeds its limit: of joints, then of motors.

    What is not known at a sample, such as a derivative that could not be estimated there, exceeds
    nothing there.

    Parameters
    ----------
    problem : Problem
    results : Results

    Returns
    -------
    tuple of Violation
    """
    source, drives = checked_source(results, problem.model), problem.drives
    actuators, motor_limits = (drives.actuators, drives.limits) if drives else (None, None)
    return all_violations(source, problem.limits.values, actuators, motor_limits)


def show_remarks(remarks: tuple[str, ...]) -> None:
    """Say what one should know, where it does not mix with results."""
    for remark in dict.fromkeys(remarks):
        click.echo(f'note: {remark}', err=True)
