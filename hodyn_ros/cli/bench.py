"""`hodyn bench`: how long the inverse dynamics of a robot takes on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import click

from hodyn_ros.cli.options import json_option, robot_options

ORDERS = ('Q', "Q, Q'", "Q, Q', Q''")

_BURST = 0.001  # s
_LEAST_ROUNDS = 5


@click.command()
@robot_options
@click.option(
    '--batch', type=click.IntRange(1, 10_000_000), default=2000, show_default=True,
    help='Samples in one call, beside calls with one sample.',
)
@click.option(
    '--threads', type=click.IntRange(1), default=1, show_default=True,
    help='Threads that share a batch.',
)
@click.option(
    '--seconds', type=click.FloatRange(0.0, min_open=True), default=3.0, show_default=True,
    help='How long to measure, about.',
)
@json_option
def command(choice: Any, batch: int, threads: int, seconds: float, as_json: bool) -> None:
    """Time the joint torques of ROBOT and their derivatives on this machine.

    Called from Python with one sample, and with many at once. All take turns in short bursts, and
    the median counts. `make bench` in a checkout of hodyn_ros compares with other libraries.

    For example
      hodyn bench panda
      hodyn bench talos_reduced --seconds 10
      hodyn bench robot.urdf --batch 100000 --threads 4 --json
    """
    import numpy as np

    from hodyn_ros.cli.progress import progress
    from hodyn_ros.cli.robots import load_model
    from hodyn_ros.cli.tables import echo_json, number, table
    from hodyn_ros.dynamics.inverse import chosen_algorithm, inverse_dynamics

    model, _ = load_model(choice)
    model.warm_up()
    motion = np.random.default_rng(0).uniform(-1.0, 1.0, (batch, 5, model.n_joints))

    def call(samples: Any, orders: int, num_threads: int) -> Callable[[], object]:
        given = np.ascontiguousarray(samples[..., : orders + 2, :])
        out = np.empty((*given.shape[:-2], orders, model.n_joints))
        return lambda: inverse_dynamics(model, given, out=out, num_threads=num_threads)

    functions = [call(motion[0], 1 + order, 1) for order in range(len(ORDERS))]
    functions += [call(motion, 1 + order, threads) for order in range(len(ORDERS))]
    with progress('Timing') as update:
        times = times_of(functions, seconds, update)
    one, many = times[: len(ORDERS)], [value / batch for value in times[len(ORDERS) :]]
    algorithm = chosen_algorithm(model, motion[0])
    if as_json:
        echo_json({
            'robot': model.name, 'joints': model.n_joints, 'bodies': model.n_bodies,
            'algorithm': algorithm, 'batch': batch, 'threads': threads,
            'one_call': one, 'in_batch': many,
        })  # fmt: skip
        return
    shared = f', {threads} threads' if threads > 1 else ''
    rows = [
        (title, *(number(1e6 * value, 3) for value in values))
        for title, values in (('one', one), (f'{batch}{shared}', many))
    ]
    click.echo(
        f'{model.name}: {model.n_joints} joints, {model.n_bodies} moving bodies; time of one '
        f'sample [us] by {algorithm}, called from Python\n'
    )
    click.echo(table(('samples a call', *ORDERS), rows))


def times_of(
    functions: list[Callable[[], object]],
    seconds: float,
    progress: Callable[[float], None] = lambda part: None,
) -> list[float]:
    """Median time of one call of each function [s]; they take turns in short bursts.

    Parameters
    ----------
    functions : list of callable
    seconds : float
        How long all of it takes, about.
    progress : callable
        Gets the part that is done, from 0 to 1.

    Returns
    -------
    list of float
    """
    counts = [
        max(1, int(_BURST / max(min(_burst(function, 1) for _ in range(5)), 1e-9)))
        for function in functions
    ]
    bursts: list[list[float]] = [[] for _ in functions]
    start, rounds = time.perf_counter(), 0
    while rounds < _LEAST_ROUNDS or time.perf_counter() - start < seconds:
        for function, count, found in zip(functions, counts, bursts):
            found.append(_burst(function, count))
        rounds += 1
        progress(min(rounds / _LEAST_ROUNDS, (time.perf_counter() - start) / seconds, 1.0))
    progress(1.0)
    return [median(found) for found in bursts]


def _burst(function: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - start) / count
