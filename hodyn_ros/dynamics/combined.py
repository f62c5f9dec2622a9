"""Combined inverse kinematics and inverse dynamics: joint efforts from the motion of a link.

Source: Mueller 2021, section IV: the inverse kinematics of Algorithm 2 supplies the joint motion
to the inverse dynamics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import MotionError
from hodyn_ros.kinematics.forward import LinkMotion
from hodyn_ros.kinematics.inverse import (
    InverseKinematicsOptions,
    InverseKinematicsSolution,
    inverse_kinematics,
)
from hodyn_ros.kinematics.redundancy import TASK_ROWS, JointTask, LeastNorm
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]


class LinkMotionEfforts(NamedTuple):
    """Joint efforts of a link motion, and the joint motion that they belong to."""

    effort: Array
    """Efforts and derivatives, shape (..., K-2, n), as `inverse_dynamics` returns them."""
    motion: Array
    """Joint motion, shape (..., K, n)."""
    kinematics: InverseKinematicsSolution
    """The whole result of `inverse_kinematics`, with the same motion."""


def inverse_dynamics_from_link_motion(
    model: RobotModel,
    link_motion: LinkMotion | tuple[ArrayLike, ArrayLike],
    link: str | None = None,
    expressed_in: str = 'body',
    *,
    guess: ArrayLike | None = None,
    task: Sequence[str] = TASK_ROWS,
    redundancy: LeastNorm | JointTask | Sequence[LeastNorm | JointTask] = (),
    times: ArrayLike | None = None,
    options: InverseKinematicsOptions | None = None,
    wrench: Wrench | Sequence[Wrench] | None = None,
    algorithm: str = 'auto',
) -> LinkMotionEfforts:
    """Joint efforts and their exact time derivatives from the motion of a link.

    Parameters
    ----------
    model : RobotModel
    link_motion : LinkMotion or (pose, twist)
        Pose, shape (..., 4, 4), and twist with derivatives, shape (..., K-1, 6), K >= 3: the
        acceleration of the link gives efforts, its jounce (K = 5) their second derivatives.
    link, expressed_in, guess, task, redundancy, times, options
        As in `inverse_kinematics`.
    wrench, algorithm
        As in `inverse_dynamics`.

    Returns
    -------
    LinkMotionEfforts

    Raises
    ------
    HodynError
        As `inverse_kinematics` and `inverse_dynamics`.
    """
    if isinstance(link_motion, (tuple, list)) and len(link_motion) == 2:
        shape = np.shape(link_motion[1])
        if len(shape) > 1 and shape[-2] < 2:
            raise MotionError(
                f'The twist has shape {shape}, expected (..., K-1, 6) with K >= 3: efforts need '
                'the twist and its first derivative.'
            )
    kinematics = inverse_kinematics(
        model,
        link_motion,
        link,
        expressed_in,
        guess=guess,
        task=task,
        redundancy=redundancy,
        times=times,
        options=options,
    )
    effort = inverse_dynamics(model, kinematics.motion, wrench, algorithm)
    return LinkMotionEfforts(effort, kinematics.motion, kinematics)
