"""From what users hand over to what a formulation computes: checks, leading axes, blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.dynamics.wrenches import Wrench, checked_wrenches, wrenches_on_bodies
from hodyn_ros.errors import WrenchError
from hodyn_ros.kinematics.joints import body_coordinates, checked_result
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

# Samples that are computed together: large enough to hide the cost of Python, small enough for the
# intermediate arrays to stay in the cache.
BLOCK = 256


def over_samples(
    model: RobotModel,
    motion: Array,
    wrench: Wrench | Sequence[Wrench] | None,
    compute: Callable[[Array, Mapping[int, Array]], Array],
    result: tuple[int, ...],
) -> Array:
    """Compute something of every sample of a motion with wrenches, block by block.

    Parameters
    ----------
    model : RobotModel
    motion : ndarray, shape (..., K, n)
        Checked, see `checked_motion`.
    wrench : Wrench or sequence of Wrench, optional
        Leading axes broadcast with those of the motion.
    compute : callable
        Takes the joint motions of the bodies, shape (N, K, n_bodies), and the wrenches on bodies,
        see `wrenches_on_bodies`; returns an array of shape (N, *result).
    result : tuple of int
        Shape of the result for one sample.

    Returns
    -------
    ndarray, shape (..., *result)

    Raises
    ------
    WrenchError
        If a wrench does not fit the model or the motion.
    MotionError
        If a result overflows.
    """
    K = motion.shape[-2]
    wrenches = checked_wrenches(model, wrench, K - 2)
    batch = motion.shape[:-2]
    for item in wrenches:
        shape = np.shape(item.values)[:-2]
        try:
            batch = np.broadcast_shapes(batch, shape)
        except ValueError:
            raise WrenchError(
                f'Wrench on {item.link!r}: the leading axes {shape} of its values do not '
                f'broadcast with the leading axes {motion.shape[:-2]} of the motion.'
            ) from None
    samples = np.broadcast_to(motion, (*batch, *motion.shape[-2:])).reshape(-1, *motion.shape[-2:])
    values = [
        np.broadcast_to(item.values, (*batch, K - 2, 6)).reshape(-1, K - 2, 6) for item in wrenches
    ]
    results = np.empty((len(samples), *result))
    # Overflow shows in the result, which is checked; it needs no warning on the way.
    with np.errstate(over='ignore', invalid='ignore'):
        for start in range(0, len(samples), BLOCK):
            block = slice(start, start + BLOCK)
            coordinates = body_coordinates(model, samples[block])
            applied = wrenches_on_bodies(
                model, coordinates, [(item, v[block]) for item, v in zip(wrenches, values)]
            )
            results[block] = compute(coordinates, applied)
    return checked_result(results, motion).reshape(*batch, *result)
