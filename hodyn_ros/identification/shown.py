"""Which parameters a motion is to show: their names, and the columns of the regressor for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hodyn_ros.actuators.springs import LinearSpring, Spring
from hodyn_ros.checks import Array
from hodyn_ros.dynamics.regressor import (
    base_parameters,
    joint_regressor,
    parameter_names,
    regressor,
)
from hodyn_ros.errors import RequestError
from hodyn_ros.kinematics.joints import link_or_tip
from hodyn_ros.lie import se3
from hodyn_ros.model.assembly import BASE
from hodyn_ros.model.friction import Coulomb, Offset, Viscous
from hodyn_ros.model.inertia import PARAMETERS, parametric_inertia
from hodyn_ros.model.robot import RobotModel

if TYPE_CHECKING:
    from hodyn_ros.actuators.assignment import Actuators

TARGETS = ('bodies', 'payload', 'friction', 'springs')
"""What a motion may be made to show, see `excite`."""

ColumnsOf = Callable[[Array, Array], Array]
"""From motions (S, 4, n) with their efforts (S, 2, n) to columns (S, n, p)."""

_FRICTION = (Viscous(1.0), Coulomb(1.0), Offset(1.0))
_OF_SPRINGS = ('stiffness', 'cubic', 'damping')


def springs_of(actuators: Actuators | None, joints: Sequence[int]) -> list[tuple[int, Spring]]:
    """Springs of these joints that are series elastic."""
    driven = actuators.driven if actuators else ()
    found = [(item.joint, getattr(item.actuator, 'spring', None)) for item in driven]
    return [(j, spring) for j, spring in found if spring is not None and j in joints]


def shown_parameters(
    model: RobotModel, target: str, link: str | None, moved: Sequence[int],
    actuators: Actuators | None,
) -> tuple[tuple[str, ...], ColumnsOf]:  # fmt: skip
    """Names of the p parameters of a target, and what the efforts are by them."""
    if target == 'payload':
        name = link_or_tip(model, link)
        body, frame = model.link(name)
        if body == BASE:
            raise RequestError(f'The link {name!r} does not move: nothing shows what it carries.')
        carried = parametric_inertia(np.eye(10))
        T = np.array([se3.transform_inertia(M, frame)[PARAMETERS] for M in carried]).T
        own = 10 * body + np.arange(10)
        names = tuple(f'{name} {each.split()[-1]}' for each in parameter_names(model, ())[:10])
        return names, lambda q, _: regressor(model, q[:, :3])[:, 0][..., own] @ T
    if target == 'springs':
        if not (springs := springs_of(actuators, moved)):
            raise RequestError(
                "The target 'springs' needs actuators of which at least one that moves a joint is "
                'series elastic.'
            )
        shown = [
            (j, law, each)
            for j, law in springs
            for each in _OF_SPRINGS
            if each != 'cubic' or not isinstance(law, LinearSpring)
        ]

        def deflected(motion: Array, effort: Array) -> Array:
            rows = np.zeros((*motion.shape[::2], len(shown)))
            series = {j: law.deflection_series(effort[:, :, j]) for j, law in springs}
            for column, (j, _, each) in enumerate(shown):
                delta = series[j][:, int(each == 'damping')]
                rows[:, j, column] = delta**3 if each == 'cubic' else delta
            return rows

        return tuple(f'{model.joint_names[j]} {each}' for j, _, each in shown), deflected
    if target == 'friction':
        bodies = [model.body_names.index(model.joint_names[j]) for j in moved]
        own = 3 * np.repeat(bodies, 3) + np.tile(np.arange(3), len(moved))
        known = parameter_names(model, _FRICTION)[10 * model.n_bodies :]
        names = tuple(known[place] for place in own)
        return names, lambda q, _: joint_regressor(model, q[:, :3], _FRICTION)[:, 0][..., own]
    terms = (*_FRICTION, 'armature')
    base, known = base_parameters(model, terms), parameter_names(model, terms)
    alone = ~np.any(np.abs(base.Z) > 1e-9, axis=1)
    names = tuple(
        known[place] + ('' if one else ' + ...') for place, one in zip(base.independent, alone)
    )

    def all_together(motion: Array, effort: Array) -> Array:
        Y = regressor(model, motion[:, :3]), joint_regressor(model, motion[:, :3], terms)
        return np.concatenate(Y, axis=-1)[:, 0][..., base.independent]

    return names, all_together
