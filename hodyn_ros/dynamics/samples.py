"""From what users hand over to what computes: checks, leading axes, blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.dynamics.wrenches import Wrench, checked_wrenches, wrenches_on_bodies
from hodyn_ros.errors import HodynError, MotionError, WrenchError
from hodyn_ros.kinematics.joints import body_coordinates, motion_array, refuse_not_finite
from hodyn_ros.model.robot import RobotModel

Array = NDArray[np.float64]

# Samples that are computed together: large enough to hide the cost of Python, small enough for the
# intermediate arrays to stay in the cache.
BLOCK = 256

Compute = Callable[[Array, Sequence[tuple[Wrench, Array]], Array], bool]
"""Computes samples of shape (N, K, n) with wrenches, whose values have the shape (N, K-2, 6), into
an array of shape (N, ...); says whether motion and result are finite."""


class Samples:
    """The samples of a motion with wrenches.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Of any type of real numbers.
    wrench : Wrench or sequence of Wrench, optional
        Leading axes broadcast with those of the motion.

    Attributes
    ----------
    batch : tuple of int
        The leading axes.
    N : int
        Number of samples.
    K : int
    wrenches : tuple of Wrench

    Raises
    ------
    MotionError
        If the motion has a wrong shape or type.
    WrenchError
        If a wrench does not fit the model or the motion.
    """

    def __init__(
        self, model: RobotModel, motion: ArrayLike, wrench: Wrench | Sequence[Wrench] | None
    ) -> None:
        self._model = model
        array = motion_array(model, motion)
        self.K = array.shape[-2]
        self.wrenches = checked_wrenches(model, wrench, self.K - 2)
        self.batch: tuple[int, ...] = array.shape[:-2]
        for item in self.wrenches:
            shape = np.shape(item.values)[:-2]
            try:
                self.batch = np.broadcast_shapes(self.batch, shape)
            except ValueError:
                raise WrenchError(
                    f'Wrench on {item.link!r}: the leading axes {shape} of its values do not '
                    f'broadcast with the leading axes {array.shape[:-2]} of the motion.'
                ) from None
        self.N = prod(self.batch)
        self._motion = self._along_one_axis(array)
        self._values = [self._along_one_axis(np.asarray(item.values)) for item in self.wrenches]

    def _along_one_axis(self, values: NDArray[Any]) -> NDArray[Any]:
        if self.N == 1:
            return values.reshape(1, *values.shape[-2:])
        if values.ndim == 2:
            return np.broadcast_to(values, (self.N, *values.shape))
        whole = np.broadcast_to(values, (*self.batch, *values.shape[-2:]))
        return whole.reshape(-1, *values.shape[-2:])

    def compute(
        self,
        compute: Compute,
        result: tuple[int, ...],
        out: Array | None = None,
        block: int = BLOCK,
    ) -> Array:
        """Compute something of every sample, block by block.

        Parameters
        ----------
        compute : callable
        result : tuple of int
            Shape of the result for one sample.
        out : ndarray, shape (..., *result), optional
            Where to write the results.
        block : int
            Samples in a block.

        Returns
        -------
        ndarray, shape (..., *result)

        Raises
        ------
        HodynError
            If `out` cannot take the results.
        MotionError
            If the motion is not finite or a result overflows.
        """
        shape = (*self.batch, *result)
        results = np.empty(shape) if out is None else self._checked_out(out, shape)
        flat = results.reshape(self.N, *result)
        # Overflow shows in the result, which is checked; it needs no warning on the way.
        with np.errstate(over='ignore', invalid='ignore'):
            for start in range(0, self.N, block):
                part = slice(start, start + block)
                motion = np.ascontiguousarray(self._motion[part], dtype=np.float64)
                wrenches = [(item, v[part]) for item, v in zip(self.wrenches, self._values)]
                if not compute(motion, wrenches, flat[part]):
                    refuse_not_finite(self._model, motion, self.batch, start)
                    raise MotionError(
                        'The result overflows: the motion or a wrench holds values that are too '
                        f'large (largest in the motion {np.abs(motion).max():.3g}).'
                    )
        return results

    def _checked_out(self, out: Array, shape: tuple[int, ...]) -> Array:
        if not isinstance(out, np.ndarray):
            raise HodynError(f'out is of type {type(out).__name__}, expected a NumPy array.')
        if out.shape != shape or out.dtype != np.float64:
            raise HodynError(
                f'out has shape {out.shape} and elements of type {out.dtype}, expected {shape} '
                'and float64.'
            )
        if not (out.flags.c_contiguous and out.flags.writeable and out.dtype.isnative):
            raise HodynError('out must be writeable and contiguous in C order.')
        for array in (self._motion, *self._values):
            if np.may_share_memory(out, array):
                raise HodynError('out shares memory with the motion or a wrench.')
        return out


def on_bodies(
    model: RobotModel, compute: Callable[[Array, Mapping[int, Array]], Array]
) -> Compute:
    """Make a computation of samples from one that takes bodies.

    Parameters
    ----------
    model : RobotModel
    compute : callable
        Takes the joint motions of the bodies, shape (N, K, n_bodies), and the wrenches on bodies,
        see `wrenches_on_bodies`; returns an array of shape (N, ...).

    Returns
    -------
    callable
    """

    def compute_samples(
        motion: Array, wrenches: Sequence[tuple[Wrench, Array]], results: Array
    ) -> bool:
        if not np.all(np.isfinite(motion)):
            return False
        coordinates = body_coordinates(model, motion)
        applied = wrenches_on_bodies(model, coordinates, wrenches)
        results[...] = compute(coordinates, applied)
        return bool(np.all(np.isfinite(results)))

    return compute_samples
