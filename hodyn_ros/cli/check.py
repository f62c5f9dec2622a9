"""`hodyn check`: does a motion keep the limits of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from hodyn_ros.cli.options import json_option, limits_option, motion_options, robot_options
from hodyn_ros.cli.tables import echo_json, instant, number, table
from hodyn_ros.names import listed

if TYPE_CHECKING:
    from hodyn_ros.analysis.limits import Violation
    from hodyn_ros.cli.motions import Problem
    from hodyn_ros.io import Results
    from hodyn_ros.plotting.checks import Check

_LIKE = {
    'motor_velocity': 'velocity',
    'motor_torque': 'effort',
    'motor_torque_rate': 'effort_dot',
    'deflection': 'position',
}


@click.command()
@robot_options
@motion_options
@limits_option
@json_option
def command(choice: Any, given: Any, limits: str | None, as_json: bool) -> int:
    """Compare MOTION with the limits of ROBOT: where is which exceeded, and by how much.

    Position, velocity, acceleration, jerk, torque and torque rate of the joints, and with
    --actuators velocity, torque and torque rate of the motors and deflections. Limits come from
    the robot description and from --limits. All are compared at the samples; --rate makes them
    denser where the motion is a spline. MOTION is a file as for `hodyn compute`.

    A motion whose velocity or acceleration jumps at waypoints, as with --interpolation jtc, has
    no bound for what follows from it, and counts as one that exceeds a limit.

    The exit code is 0 if all limits are kept, 1 if one is exceeded, 2 if something is wrong.

    For example
      hodyn check panda motion.csv
      hodyn check robot.urdf waypoints.yaml --limits limits.yaml --json
      hodyn check panda motion.csv && echo "may be executed"
    """
    from hodyn_ros.cli.main import OK, VIOLATION
    from hodyn_ros.cli.motions import (
        compute_results,
        load_problem,
        show_remarks,
        violations_of,
    )

    problem = load_problem(choice, given, limits)
    results = compute_results(problem, given)
    violations = violations_of(problem, results)
    if as_json:
        echo_json(_data(problem, results, violations))
    else:
        show_remarks(results.remarks)
        click.echo(_text(problem, results, violations))
    return VIOLATION if violations or _has_jumps(results) else OK


def _data(
    problem: Problem, results: Results, violations: Sequence[Violation]
) -> dict[str, Any]:
    """Everything for programs."""
    checks = _checks(problem, results)
    return {
        'robot': problem.model.name,
        'motion': results.name,
        'samples': len(results),
        'start': results.times[0],
        'end': results.times[-1],
        'largest_step': _largest_step(results),
        'limits_from': problem.limits.origin,
        'is_kept': not violations and not _has_jumps(results),
        'has_jumps': _has_jumps(results),
        'violations': [
            {
                **violation._asdict(),
                'time': results.times[violation.sample],
                'unit': _unit(problem, results, violation.quantity, violation.joint_name),
            }
            for violation in violations
        ],
        'used': [
            {
                'quantity': check.quantity,
                'is_checked': check.is_checked,
                'samples_checked': dict(zip(check.subjects, check.n_known)),
                'shares': dict(zip(check.subjects, check.shares)),
            }
            for check in checks
        ],
        'remarks': list(results.remarks),
    }


def _text(problem: Problem, results: Results, violations: Sequence[Violation]) -> str:
    """Everything for people."""
    from hodyn_ros.cli.robot_summary import NAMES

    lines = [
        f'{results.name}: {len(results)} samples from {instant(results.times[0])} s to '
        f'{instant(results.times[-1])} s, at most {number(_largest_step(results))} s apart',
        f'limits: {problem.limits.origin}',
        '',
    ]
    if violations:
        rows = [
            (
                NAMES.get(violation.quantity, violation.quantity),
                violation.joint_name,
                instant(results.times[violation.sample]),
                number(violation.value),
                number(violation.limit),
                _excess(violation),
                f'[{_unit(problem, results, violation.quantity, violation.joint_name)}]',
            )
            for violation in violations
        ]
        head = ('exceeded', 'joint', 'worst at\n[s]', 'value', 'limit', 'by', 'unit')
        lines += [table(head, rows), '']
    checks = _checks(problem, results)
    uses = [
        (
            NAMES.get(check.quantity, check.quantity),
            '' if check.worst is None else f'{100.0 * check.shares[check.worst]:.1f} %',
            _verdict(check),
        )
        for check in checks
    ]
    lines += [table(('quantity', 'used of its limit', ''), uses), '']
    count = len(violations)
    if violations:
        what = 'limit is' if count == 1 else 'limits are'
        lines.append(f'{count} {what} exceeded.')
    if _has_jumps(results):
        lines.append(
            'The torques jump at waypoints, so there is no bound for torque rate and jerk: the '
            'motion keeps no limits of them.'
        )
    elif not violations:
        lines.append('All limits that could be checked are kept.')
    return '\n'.join(lines)


def _has_jumps(results: Results) -> bool:
    """Whether the efforts jump along the motion, so that their rate has no bound."""
    return results.continuous_order < 0


def _largest_step(results: Results) -> float:
    """Compute the longest time between samples, within which nothing is compared [s]."""
    return float(np.diff(results.times).max(initial=0.0))


def _checks(problem: Problem, results: Results) -> tuple[Check, ...]:
    from hodyn_ros.plotting.checks import all_checks
    from hodyn_ros.plotting.source import checked_source

    source = checked_source(results, problem.model)
    motors = problem.drives.limits if problem.drives is not None else None
    return all_checks(source, problem.limits.values, motors)


def _verdict(check: Check) -> str:
    """Say who uses most of the limit, or why it is not checked."""
    if check.n_limited == 0:
        return 'not checked: no limit is known'
    if not check.is_checked:
        return 'not checked: the motion, or --order, does not determine it'
    words = [f'by {check.subjects[check.worst]}' if check.worst is not None else '']
    without = [name for name, has in zip(check.subjects, check.is_limited) if not has]
    if without:
        words.append(f'no limit for {listed(without)}')
    known = int(np.min(check.n_known[check.is_limited]))
    if known < check.n_samples:
        words.append(f'known at {known} of {check.n_samples} samples only')
    return '; '.join(word for word in words if word)


def _excess(violation: Violation) -> str:
    excess = abs(violation.value - violation.limit)
    if violation.quantity == 'position' or violation.limit == 0.0:
        return number(excess, 3)  # relative to where the zero of a joint happens to be: nothing
    return f'{100.0 * excess / abs(violation.limit):.1f} %'


def _unit(problem: Problem, results: Results, quantity: str, name: str) -> str:
    """Name the unit of a quantity of a joint, or of a motor, which moves as its joint."""
    from hodyn_ros.cli.robot_summary import unit

    joint = dict(zip(results.motor_names, results.motor_joints)).get(name, name)
    model = problem.model
    kind = model.joint_types[model.joint_names.index(joint)]
    return unit(_LIKE.get(quantity, quantity), kind)
