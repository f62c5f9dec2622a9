"""Times of the inverse dynamics of one robot, as data and as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.cli.pinocchio import Pinocchio
from hodyn_ros.cli.tables import number, table
from hodyn_ros.cli.timing import times_of
from hodyn_ros.dynamics.inverse import chosen_algorithm, inverse_dynamics
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

ORDERS = ('Q', "Q, Q'", "Q, Q', Q''")

# Samples at which the efforts are compared.
_COMPARED = 100


def measure(
    model: RobotModel,
    batch: int,
    threads: int,
    seconds: float,
    progress: Callable[[float], None] = lambda part: None,
) -> dict[str, Any]:
    """Time one call and batches, of each order, and Pinocchio.

    Parameters
    ----------
    model : RobotModel
    batch : int
        Samples of a batch.
    threads : int
        Threads that share a batch.
    seconds : float
        How long all of it takes, about.
    progress : callable
        See `times_of`.

    Returns
    -------
    dict
        Times of one sample [s] by order of the derivatives.
    """
    model.warm_up()
    motion = _motion(model, max(batch, _COMPARED))
    functions: dict[str, Callable[[], object]] = {}
    for order in range(len(ORDERS)):
        one = np.ascontiguousarray(motion[0, : order + 3])
        many = np.ascontiguousarray(motion[:batch, : order + 3])
        functions[f'one {order}'] = _call(model, one, 1)
        functions[f'batch {order}'] = _call(model, many, threads)
    reference, absence = _pinocchio(model, motion[:_COMPARED])
    if reference is not None:
        functions['pinocchio'] = reference.one_call()
    times = times_of(functions, seconds, progress)
    data: dict[str, Any] = {
        'robot': model.name,
        'joints': model.n_joints,
        'bodies': model.n_bodies,
        'algorithm': chosen_algorithm(model, motion[0, :5]),
        'batch': batch,
        'threads': threads,
        'one_call': [times[f'one {order}'] for order in range(len(ORDERS))],
        'in_batch': [times[f'batch {order}'] / batch for order in range(len(ORDERS))],
        'pinocchio': None,
        'pinocchio_missing': absence,
    }
    if reference is not None:
        time = times['pinocchio']
        data['pinocchio'] = {
            'version': reference.version,
            'rnea': time,
            'ratio_of_one_call': [value / time for value in data['one_call']],
            'ratio_in_batch': [value / time for value in data['in_batch']],
            'difference': _difference(model, motion[:_COMPARED], reference),
        }
    return data


def as_text(data: dict[str, Any]) -> str:
    """Write what was measured for people; see `measure`."""
    threads = f', {data["threads"]} threads' if data['threads'] > 1 else ''
    peer = data['pinocchio']
    rows = [
        ('one sample a call', *(_microseconds(value) for value in data['one_call'])),
        (
            f'{data["batch"]} samples a call{threads}',
            *(_microseconds(value) for value in data['in_batch']),
        ),
    ]
    if peer is not None:
        rows += [
            ('Pinocchio rnea, one sample a call', _microseconds(peer['rnea']), '', ''),
            ('ratio, one sample a call', *(number(r, 2) for r in peer['ratio_of_one_call'])),
            ('ratio, many samples a call', *(number(r, 2) for r in peer['ratio_in_batch'])),
        ]
    lines = [
        f'{data["robot"]}: {data["joints"]} joints, {data["bodies"]} moving bodies; '
        f'time of one sample [us] by {data["algorithm"]}, called from Python',
        '',
        table(('', *ORDERS), rows),
        '',
    ]
    if peer is None:
        lines.append(data['pinocchio_missing'])
    else:
        lines.append(
            f'Torques agree with Pinocchio {peer["version"]} to {peer["difference"]:.0e} of the '
            'largest.\nRatios: time of hodyn_ros to that of rnea, which computes Q alone, one '
            'sample a call from Python.'
        )
    return '\n'.join(lines)


def _motion(model: RobotModel, samples: int) -> Array:
    motion = np.random.default_rng(0).uniform(-1.0, 1.0, (samples, 5, model.n_joints))
    return np.ascontiguousarray(motion)


def _call(model: RobotModel, motion: Array, threads: int) -> Callable[[], object]:
    out = np.empty((*motion.shape[:-2], motion.shape[-2] - 2, motion.shape[-1]))
    return lambda: inverse_dynamics(model, motion, out=out, num_threads=threads)


def _pinocchio(model: RobotModel, motion: Array) -> tuple[Pinocchio | None, str]:
    """Pinocchio, or why it takes no part."""
    if model.friction or np.any(model.armature):
        return None, 'Pinocchio takes no part: its rnea knows no friction.'
    try:
        return Pinocchio(model, motion), ''
    except ImportError:
        return None, 'Pinocchio is not installed; for a comparison: pip install pin'
    except Exception as error:
        return None, f'Pinocchio takes no part: it refuses the robot ({error}).'


def _difference(model: RobotModel, motion: Array, reference: Pinocchio) -> float:
    """Largest difference of the torques relative to the largest torque."""
    ours, theirs = inverse_dynamics(model, motion[:, :3])[:, 0], reference.effort()
    scale = max(float(np.abs(theirs).max(initial=0.0)), np.finfo(float).tiny)
    return float(np.abs(ours - theirs).max(initial=0.0)) / scale


def _microseconds(seconds: float) -> str:
    return number(1e6 * seconds, 3)
