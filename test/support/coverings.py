"""Parameters of tests that hold for all combinations of robots, formulations, orders and so on."""

import itertools

import pytest


def covering(*axes):
    """All combinations of values, of which a short run has each value of each axis, mixed.

    The other combinations are for long runs.
    """
    axes = [list(axis) for axis in axes]
    longest = max(map(len, axes))
    short = {tuple(i % len(axis) for axis in axes) for i in range(longest)}
    numbers = itertools.product(*(range(len(axis)) for axis in axes))
    return [
        pytest.param(
            *(axis[i] for axis, i in zip(axes, chosen)),
            marks=() if chosen in short else pytest.mark.slow,
        )
        for chosen in numbers
    ]
