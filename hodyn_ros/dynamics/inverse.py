"""Inverse dynamics: the public entry, which checks its input and chooses a formulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy import empty, ndarray
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.dynamics import (
    body_fixed,
    closed_form,
    hybrid,
    lagrange,
    newton_euler,
    nth_order,
    spatial,
)
from hodyn_ros.dynamics.additions import add_friction_and_armature
from hodyn_ros.dynamics.compiled import COMPILED_BLOCK, compiled_efforts
from hodyn_ros.dynamics.samples import BLOCK, Compute, Samples, on_bodies
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.engine.engine import (
    COMPILED_ROBOT,
    COMPILED_TREE,
    HIGHEST_ORDER,
    STRAIGHT_LINE,
    engine_of,
    refuses,
)
from hodyn_ros.engine.robot_program import Attachment
from hodyn_ros.errors import HodynError
from hodyn_ros.kinematics.joints import independent_efforts
from hodyn_ros.model.robot import BASE, RobotModel

Array = NDArray[np.float64]

BodyEfforts = Callable[[RobotModel, Array, Mapping[int, Array]], Array]


class Formulation(NamedTuple):
    """A way to compute the efforts of all bodies' joints; see `nth_order.body_efforts`."""

    body_efforts: BodyEfforts
    highest_order: int | None
    """Highest derivative of the efforts; None: any."""


FORMULATIONS = {
    'body_fixed': Formulation(body_fixed.body_efforts, 2),
    'closed_form': Formulation(closed_form.body_efforts, None),
    'lagrange': Formulation(lagrange.body_efforts, None),
    'nth_order': Formulation(nth_order.body_efforts, None),
    'spatial': Formulation(spatial.body_efforts, 2),
    'spatial_base_acceleration': Formulation(spatial.body_efforts_with_base_acceleration, 2),
    'hybrid': Formulation(hybrid.body_efforts, 2),
    'newton_euler': Formulation(newton_euler.body_efforts, 0),
}


ENGINE = {
    'engine': None,
    'compiled_robot': COMPILED_ROBOT,
    'compiled_tree': COMPILED_TREE,
    'straight_line': STRAIGHT_LINE,
}
"""Names of the engine's kernels: the one that suits the robot and the machine, and each form."""


def inverse_dynamics(
    model: RobotModel,
    motion: ArrayLike,
    wrench: Wrench | Sequence[Wrench] | None = None,
    algorithm: str = 'auto',
    *,
    out: Array | None = None,
    num_threads: int = 1,
) -> Array:
    """Joint efforts of a motion and their exact time derivatives.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        `motion[..., k, :]` is the k-th time derivative of the joint positions in model order
        [rad/s^k] or [m/s^k], K >= 3. All types of real numbers are computed in float64, in
        blocks, so that arrays in files (numpy.memmap) may be larger than the memory.
    wrench : Wrench or sequence of Wrench, optional
        Wrenches on links, with derivatives; leading axes broadcast with those of the motion.
    algorithm : str
        'auto', the name of a formulation, a key of `FORMULATIONS`, or of `ENGINE`. They
        agree to rounding and differ in cost and in the highest order that they compute. 'auto'
        runs compiled code for K <= 7 as soon as there is some, see `RobotModel.warm_up`, and NumPy
        otherwise; `chosen_algorithm` says which. The names of `ENGINE` wait for the compiler.
    out : ndarray of float64, shape (..., K-2, n), optional
        Where to write the result, contiguous in C order.
    num_threads : int
        Threads that share a large batch among them; compiled code only.

    Returns
    -------
    ndarray, shape (..., K-2, n)
        `[..., m, :]` is the m-th time derivative of the joint torques [N m/s^m] or forces [N/s^m]:
        K = 3 gives Q, K = 5 gives Q and its first two derivatives.

    Raises
    ------
    MotionError
        If the motion has a wrong shape or holds NaN or infinite values, or a result overflows.
    WrenchError
        If a wrench does not fit the model or the motion.
    HodynError
        If the algorithm is unknown, cannot compute the order or needs a compiler that is missing,
        or if `out` or `num_threads` cannot be used.

    Notes
    -----
    Positive efforts act in the positive direction of their joints. Whatever the algorithm, they
    include the friction and armature of the model, if it has any. Source: Mueller 2021,
    "An O(n)-Algorithm for the Higher-Order Kinematics and Inverse Dynamics of Serial Manipulators
    using Spatial Representation of Twists", and the papers named in the formulations.
    """
    if wrench is None and algorithm == 'auto' and type(motion) is ndarray:
        # One sample in a control loop: the compiled call checks the rest of its arguments. (It
        # may take other classes for plain arrays, those with masked values too.)
        try:
            shape, single, table = model.derived[motion.shape]
            effort = empty(shape) if out is None else out
        except (AttributeError, KeyError, TypeError):  # it is not ready, or these are no arrays
            pass
        else:
            try:
                if single(table, motion, effort) == 0:
                    return effort
            except Exception:
                if not refuses(motion, effort) and effort.ndim == 2:
                    raise
    samples = Samples(model, motion, wrench)
    if not isinstance(num_threads, (int, np.integer)) or num_threads < 1:
        raise HodynError(f'num_threads is {num_threads!r}, expected a positive integer.')
    _, compute, block = _choose(model, algorithm, samples, int(num_threads))
    return samples.compute(compute, (samples.K - 2, model.n_joints), out, block)


def chosen_algorithm(
    model: RobotModel,
    motion: ArrayLike,
    wrench: Wrench | Sequence[Wrench] | None = None,
    algorithm: str = 'auto',
) -> str:
    """Name of the algorithm that `inverse_dynamics` would use for these arguments at this moment.

    Parameters
    ----------
    model, motion, wrench, algorithm
        See `inverse_dynamics`.

    Returns
    -------
    str
        A key of `FORMULATIONS`, or a form of `ENGINE`.

    Raises
    ------
    MotionError, WrenchError, HodynError
        See `inverse_dynamics`.
    """
    return _choose(model, algorithm, Samples(model, motion, wrench), 1, ask=True).name


class _Choice(NamedTuple):
    name: str
    compute: Compute
    block: int


def _choose(
    model: RobotModel, algorithm: str, samples: Samples, num_threads: int, ask: bool = False
) -> _Choice:
    """Algorithm for some samples; if only asked for, nothing is compiled for `auto`."""
    order = samples.K - 3
    if algorithm == 'auto' or algorithm in ENGINE:
        links = tuple(
            Attachment(item.link, item.expressed_in)
            for item in samples.wrenches
            if model.link(item.link).body != BASE
        )
        engine = engine_of(model)
        if algorithm == 'auto':
            kernel = engine.kernel(order, links, 0 if ask else samples.N)
        else:
            _check_order(algorithm, HIGHEST_ORDER, order)
            kernel = engine.prepare(order, links, ENGINE[algorithm])
        if kernel is None:
            algorithm = 'nth_order'
        else:
            compute = compiled_efforts(model, kernel, num_threads)
            return _Choice(kernel.name, compute, COMPILED_BLOCK)
    if algorithm not in FORMULATIONS:
        raise HodynError(
            f'The algorithm {algorithm!r} is unknown; choose one of auto, '
            f'{", ".join((*FORMULATIONS, *ENGINE))}.'
        )
    formulation = FORMULATIONS[algorithm]
    if formulation.highest_order is not None:
        _check_order(algorithm, formulation.highest_order, order)

    def efforts(coordinates: Array, applied: Mapping[int, Array]) -> Array:
        joint_efforts = formulation.body_efforts(model, coordinates, applied)
        add_friction_and_armature(model, coordinates, joint_efforts)
        return independent_efforts(model, joint_efforts)

    return _Choice(algorithm, on_bodies(model, efforts), BLOCK)


def _check_order(algorithm: str, highest: int, order: int) -> None:
    if order > highest:
        raise HodynError(
            f'The algorithm {algorithm} computes orders up to {highest}, the motion has '
            f'K = {order + 3} for order {order}; use auto.'
        )
