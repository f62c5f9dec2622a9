"""Compare the robots of the package example-robot-data with Pinocchio.

Run as a script it prints doc/benchmarks/example_robots.inc.
"""

from __future__ import annotations

import warnings
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hodyn_ros import HodynError, RobotModel, inverse_dynamics

PACKAGE = 'example-robot-data'


class Outcome(NamedTuple):
    """Why a robot is refused, or how far its efforts are from Pinocchio's."""

    reason: str
    n_joints: int = 0
    n_bodies: int = 0
    # Of the efforts and their derivatives, relative.
    errors: tuple[float, float] = (0.0, 0.0)
    warnings: tuple[str, ...] = ()


def descriptions() -> dict[str, Path]:
    """All URDF files of the package by their path below its folder robots."""
    files = metadata.distribution(PACKAGE).files or []
    found = {}
    for file in files:
        folder, separator, name = str(file).partition('/robots/')
        if separator and name.endswith('.urdf'):
            found[name] = Path(str(file.locate()))
    return dict(sorted(found.items()))


def compare(path: Path, **options: bool) -> Outcome:
    """Efforts and their first derivatives at one state, with the base fixed.

    The options are those of `RobotModel.from_urdf`.
    """
    import pinocchio as pin

    try:
        model = RobotModel.from_urdf(path, **options)
    except HodynError as error:
        return Outcome(str(error))
    reference = pin.buildModelFromUrdf(str(path), mimic=False)
    data = reference.createData()
    motion = np.random.default_rng(0).uniform(-1.0, 1.0, (4, model.n_joints))
    q, rates = pin.neutral(reference), np.zeros((3, reference.nv))
    selection = np.zeros((reference.nv, model.n_joints))
    for b, name in enumerate(model.body_names):
        joint = reference.joints[reference.getJointId(name)]
        j, factor = model.coordinate[b], model.multiplier[b]
        angle = factor * motion[0, j] + model.offset[b]
        if joint.nq == 2:
            q[joint.idx_q : joint.idx_q + 2] = np.cos(angle), np.sin(angle)
        else:
            q[joint.idx_q] = angle
        rates[:, joint.idx_v] = factor * motion[1:, j]
        selection[joint.idx_v, j] = factor
    v, a, jerk = rates
    efforts = pin.rnea(reference, data, q, v, a)
    by_position, by_velocity, M = pin.computeRNEADerivatives(reference, data, q, v, a)
    M = np.triu(M) + np.triu(M, 1).T
    expected = np.array(
        [efforts @ selection, (by_position @ v + by_velocity @ a + M @ jerk) @ selection]
    )
    ours = inverse_dynamics(model, motion)
    scale = np.maximum(np.abs(expected).max(axis=1), np.finfo(float).tiny)
    errors = np.abs(ours - expected).max(axis=1) / scale
    return Outcome(
        '', model.n_joints, model.n_bodies, (errors[0], errors[1]), model.warnings
    )


def page() -> str:
    """Table of the documentation with one row a robot."""
    version = metadata.version(PACKAGE)
    lines = [
        f'.. {PACKAGE} {version}, by test/support/example_robots.py',
        '',
        '.. list-table::',
        '   :header-rows: 1',
        '',
        '   * - description',
        '     - joints',
        '     - moving bodies',
        '     - Q',
        '     - dQ/dt',
        '     - remarks',
    ]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for name, path in descriptions().items():
            outcome = compare(path)
            on_request = 'allow_impossible_inertia' in outcome.reason
            if on_request:
                outcome = compare(path, allow_impossible_inertia=True)
            lines.append(f'   * - ``{name}``')
            if outcome.reason:
                reason = outcome.reason.removeprefix(f'File {str(path)!r}: ')
                reason = reason.partition('; the joints are')[0]
                lines += ['     -'] * 4 + [f'     - refused: {reason}']
                continue
            errors = [f'{error:.0e}' for error in outcome.errors]
            count = len(outcome.warnings)
            remark = f' {count} warning{"s" if count > 1 else ""}' if count else ''
            remark += ', with ``allow_impossible_inertia`` only' if on_request else ''
            lines += [
                f'     - {outcome.n_joints}',
                f'     - {outcome.n_bodies}',
                *(f'     - {error}' for error in errors),
                f'     -{remark}',
            ]
    return '\n'.join(lines) + '\n'


if __name__ == '__main__':
    print(page(), end='')
