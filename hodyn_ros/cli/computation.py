"""Torques along the motion of one file: written to another, or their largest values shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from hodyn_ros.cli.motions import GivenMotion, load_problem, show_remarks, stream_results
from hodyn_ros.cli.outputs import check_is_other, remarks_on_output
from hodyn_ros.cli.progress import status
from hodyn_ros.cli.robot_summary import unit
from hodyn_ros.cli.robots import Choice
from hodyn_ros.cli.tables import echo_json, instant, number, table
from hodyn_ros.io import Results, ResultsWriter
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

EFFORTS = ('effort', 'effort_dot', 'effort_ddot', 'effort_d3', 'effort_d4')
TITLES = ('torque', 'torque rate', 'second derivative', 'third derivative', 'fourth derivative')

MOTOR_TORQUES = tuple(name.replace('effort', 'torque') for name in EFFORTS)


class Peaks:
    """Largest magnitudes of results that come part by part."""

    def __init__(self) -> None:
        self.samples = 0
        self.first = self.last = 0.0
        self.joint_names: tuple[str, ...] = ()
        self.motor_names: tuple[str, ...] = ()
        self.efforts: Array = np.zeros((0, 0))
        self.motor_torques: Array = np.zeros((0, 0))
        self.remarks: dict[str, None] = {}

    def add(self, results: Results) -> None:
        """Take the next part."""
        if not self.samples:
            self.first = float(results.times[0])
            self.joint_names, self.motor_names = results.joint_names, results.motor_names
            self.efforts = np.full(results.effort.shape[1:], np.nan)
            if results.motors is not None:
                self.motor_torques = np.full(results.motors.torque.shape[1:], np.nan)
        self.samples += len(results)
        self.last = float(results.times[-1])
        self.efforts = _larger(self.efforts, results.effort)
        if results.motors is not None:
            self.motor_torques = _larger(self.motor_torques, results.motors.torque)
        self.remarks.update(dict.fromkeys(results.remarks))


def _larger(peaks: Array, values: Array) -> Array:
    # What is known nowhere stays NaN.
    largest: Array = np.fmax.reduce(np.abs(values), axis=0, initial=np.nan)
    orders = min(len(peaks), len(largest))
    return np.fmax(peaks[:orders], largest[:orders])


def compute_file(
    choice: Choice, given: GivenMotion, output: Path | None, as_json: bool
) -> None:
    """Compute one file.

    Parameters
    ----------
    choice : Choice
    given : GivenMotion
    output : pathlib.Path, optional
        File to be written; None: only the largest values are shown.
    as_json : bool
        Whether they are shown for programs.
    """
    if output is not None:
        check_is_other(output, given.motion)
    problem = load_problem(choice, given)
    peaks = Peaks()
    with status() as show:
        parts = stream_results(problem, given)
        if output is None:
            for results in parts:
                peaks.add(results)
                show(f'{peaks.samples} samples computed')
        else:
            with ResultsWriter(output) as writer:
                for results in parts:
                    writer.write(results)
                    peaks.add(results)
                    show(f'{peaks.samples} samples computed')
            show_remarks(remarks_on_output(output))
    if as_json:
        echo_json(_data(problem.model, given, output, peaks))
        return
    show_remarks(tuple(peaks.remarks))
    click.echo(
        f'{given.motion}: {peaks.samples} samples from {instant(peaks.first)} s to '
        f'{instant(peaks.last)} s; largest values\n'
    )
    click.echo(_text(problem.model, peaks))
    if output is not None:
        click.echo(f'\nWritten: {output}')


def _data(
    model: RobotModel, given: GivenMotion, output: Path | None, peaks: Peaks
) -> dict[str, Any]:
    joints = [
        {
            'name': name,
            'units': {what: unit(what, kind) for what in EFFORTS[: len(peaks.efforts)]},
            **dict(zip(EFFORTS, peaks.efforts[:, j])),
        }
        for j, (name, kind) in enumerate(zip(model.joint_names, model.joint_types))
    ]
    motors = [
        {'name': name, **dict(zip(MOTOR_TORQUES, column))}
        for name, column in zip(peaks.motor_names, peaks.motor_torques.T)
    ]
    return {
        'robot': model.name,
        'motion': given.motion,
        'output': output,
        'samples': peaks.samples,
        'start': peaks.first,
        'end': peaks.last,
        'largest': joints,
        'largest_of_motors': motors,
        'remarks': list(peaks.remarks),
    }


def _text(model: RobotModel, peaks: Peaks) -> str:
    kinds = sorted(set(model.joint_types), key=lambda kind: kind == 'prismatic')
    head = ['joint']
    for title, quantity in zip(TITLES, EFFORTS[: len(peaks.efforts)]):
        units = dict.fromkeys(unit(quantity, kind) for kind in kinds)
        head.append(f'{title}\n[{", ".join(units)}]')
    rows = [
        (name, *(number(value) for value in peaks.efforts[:, j]))
        for j, name in enumerate(model.joint_names)
    ]
    text = table(head, rows)
    if peaks.motor_names:
        titles = [
            f'motor {title}\n[{unit(effort, "revolute")}]'
            for title, effort in zip(TITLES, EFFORTS[: len(peaks.motor_torques)])
        ]
        rows = [
            (name, *(number(value) for value in peaks.motor_torques[:, i]))
            for i, name in enumerate(peaks.motor_names)
        ]
        text += '\n\n' + table(('motor', *titles), rows)
    return text
