"""Friction of the joints of a mechanism, as programs record it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hodyn_ros.errors import ModelError
from hodyn_ros.lie import jets
from hodyn_ros.lie.jets import Jet
from hodyn_ros.model.friction import LAWS, summands
from hodyn_ros.model.mechanism import Mechanism
from hodyn_ros.names import listed

Rows = Sequence[list[Any]]
"""For each derivative what all independent joints have."""


def friction_laws(model: Mechanism) -> list[tuple[int, Any]]:
    """Summands of the friction laws with the indices of their bodies.

    Raises
    ------
    ModelError
        If a law is not of this package; the message names the joint.
    """
    terms = []
    for i, joint in enumerate(model.body_names):
        for law in summands(model.friction[joint]) if joint in model.friction else ():
            # A law that is derived from one of these may compute something else.
            if type(law) not in LAWS:
                raise ModelError(
                    f'The friction law {law!r} of joint {joint!r} cannot be generated, nor its '
                    'partial derivatives; the laws that can are '
                    f'{listed(kind.__name__ for kind in LAWS)} and their sums. Remove it with '
                    f'model.with_friction({{{joint!r}: None}}) and add it in your own code.'
                )
            terms.append((i, law))
    return terms


def add_friction(model: Mechanism, efforts: Rows, velocity: Rows) -> None:
    """Add the friction of the joints to efforts, for as many derivatives as they have.

    Parameters
    ----------
    model : Mechanism
    efforts, velocity : sequence of list of Number
        Of the independent joints, for each derivative.

    Raises
    ------
    ModelError
        As `friction_laws`.
    """
    for i, law in friction_laws(model):
        j, multiplier = int(model.coordinate[i]), float(model.multiplier[i])
        rates = multiplier * Jet(row[j] for row in velocity[: len(efforts)])
        effort = law.formula(rates, *law.parameters)
        for row, value in zip(efforts, jets.derivatives(effort, len(efforts))):
            row[j] = row[j] + multiplier * value


def friction_slopes(model: Mechanism, velocity: Rows) -> list[tuple[int, Jet]]:
    """Partial derivatives of the friction of each law by the velocity of the body's joint.

    Parameters
    ----------
    model : Mechanism
    velocity : sequence of list of Number
        Of the independent joints, for each derivative.

    Returns
    -------
    list of (int, Jet)
        Indices of the bodies, and jets as long as those of the velocity.

    Raises
    ------
    ModelError
        As `friction_laws`.
    """
    slopes = []
    for i, law in friction_laws(model):
        j, multiplier = int(model.coordinate[i]), float(model.multiplier[i])
        rates = multiplier * Jet(row[j] for row in velocity)
        # As a function of the velocity, which rises by one for each unit of itself.
        rising = Jet([rates[0], 1.0, *[0.0] * (len(rates) - 1)])
        effort = jets.derivatives(law.formula(rising, *law.parameters), len(rising))
        slopes.append((i, jets.compose(effort[1:], rates)))
    return slopes
