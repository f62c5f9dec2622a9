"""Arguments of public functions, with any leading axes, as computations take them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.engine.program import Attachment
from hodyn_ros.errors import HodynError, MotionError, WrenchError
from hodyn_ros.kinematics.motions import motion_array, overflow, refuse_not_finite
from hodyn_ros.model.mechanism import BASE, Mechanism
from hodyn_ros.typing import Array

ALL = slice(None)
Loads = Sequence[tuple[Attachment, NDArray[Any]]]
"""Wrenches with their values, of shape (..., orders, 6)."""


def is_finite(values: Array) -> bool:
    """Whether no number is NaN or infinite."""
    return bool(np.isfinite(values).all())


class Batch(NamedTuple):
    """N samples; all arrays but those of the loads are contiguous and of one type of floats."""

    motion: Array
    """Shape (N, K, n)."""
    others: list[Array]
    """Shapes (N, rows, columns)."""
    loads: Loads
    """Wrenches with their values, of shape (N, orders, 6)."""

    def part(self, which: slice) -> Batch:
        """Some of the samples."""
        loads = [(link, values[which]) for link, values in self.loads]
        return Batch(self.motion[which], [x[which] for x in self.others], loads)

    def blocks(self, size: int) -> Iterator[tuple[slice, Batch]]:
        """Parts of at most so many samples, with where they are."""
        for start in range(0, len(self.motion), size):
            which = slice(start, start + size)
            yield which, self.part(which)

    def packed(self) -> Array | None:
        """Rows of numbers as programs read them: other arrays, then wrenches; None without any."""
        arrays = [*self.others, *(values for _, values in self.loads)]
        rows = [x.reshape(len(self.motion), prod(x.shape[1:])) for x in arrays]
        if not rows:
            return None
        together = np.concatenate(rows, axis=1) if len(rows) > 1 else rows[0]
        return np.ascontiguousarray(together, dtype=self.motion.dtype)


class Arguments:
    """Motion of a robot, other arrays and wrenches, of which all have the same leading axes.

    Parameters
    ----------
    model : RobotModel
    motion : array-like, shape (..., K, n)
        Of all types of real numbers; values are not looked at.
    lowest_K : int
    others : sequence of ndarray, shape (..., rows, columns)
    loads : callable, optional
        Of K: wrenches with their values, of shape (..., orders, 6).
    base_moves : bool
        Whether wrenches on the base are kept; to efforts of joints they are nothing.

    Attributes
    ----------
    K : int
    batch : tuple of int
        The leading axes that all broadcast to.
    N : int
        Number of samples.
    links : tuple of Attachment
        Of the wrenches.

    Raises
    ------
    MotionError
        As `motion_array`, or if leading axes do not broadcast.
    WrenchError
        If those of a wrench do not.
    """

    def __init__(
        self,
        model: Mechanism,
        motion: ArrayLike,
        lowest_K: int = 3,
        others: Sequence[Array] = (),
        loads: Callable[[int], Loads] | None = None,
        base_moves: bool = False,
    ) -> None:
        array = motion_array(model, motion, lowest_K)
        self._model, self.K = model, array.shape[-2]
        given = loads(self.K) if loads else ()
        self.batch: tuple[int, ...] = _broadcast(array, others, given)
        self.N = prod(self.batch)
        if not base_moves:
            given = [load for load in given if model.link(load[0].link).body != BASE]
        self.links: tuple[Attachment, ...] = tuple(link for link, _ in given)
        one_axis = self._along_one_axis
        wrenches = [(link, one_axis(values)) for link, values in given]
        # Of the types that they have.
        self._given = Batch(one_axis(array), [one_axis(x) for x in others], wrenches)

    def _along_one_axis(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values with their leading axes broadcast and merged."""
        if values.ndim == 2:
            return np.broadcast_to(values, (self.N, *values.shape))
        whole = np.broadcast_to(values, (*self.batch, *values.shape[-2:]))
        return whole.reshape(self.N, *values.shape[-2:])

    def part(self, which: slice, dtype: type[np.floating[Any]] = np.float64) -> Batch:
        """Some of the samples."""
        motion, others, loads = self._given.part(which)
        motion, *others = (np.ascontiguousarray(x, dtype=dtype) for x in (motion, *others))
        return Batch(motion, others, loads)

    @cached_property
    def whole(self) -> Batch:
        """All samples."""
        return self.part(ALL)

    def compute(
        self,
        compute: Callable[[Batch, Array], bool],
        result: tuple[int, ...],
        out: Array | None = None,
        block: int | None = None,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> Array:
        """Result of every sample.

        Parameters
        ----------
        compute : callable
            Computes a part into an array of shape (N, ...); says whether all is finite.
        result : tuple of int
            Shape of the result for one sample.
        out : ndarray of float64, shape (..., *result), optional
            Where it is written.
        block : int, optional
            How many samples are computed together; by default all.
        dtype : type
            Of the parts and the result.

        Raises
        ------
        MotionError
            Where something is not finite.
        HodynError
            If out cannot be used.
        """
        shape = (*self.batch, *result)
        if out is not None:
            _check_out(out, shape, np.dtype(dtype))
            motion, others, loads = self._given
            read = motion, *others, *(values for _, values in loads)
            if any(np.may_share_memory(out, values) for values in read):
                raise HodynError(
                    'out shares memory with what is read: the motion, efforts or a wrench.'
                )
        results = np.empty(shape, dtype) if out is None else out
        flat = results.reshape(self.N, *result)
        for start in range(0, self.N, block or max(self.N, 1)):
            which = slice(start, start + block if block else None)
            # Overflow shows in the result, which is checked; it needs no warning on the way.
            with np.errstate(over='ignore', invalid='ignore'):
                part = self.part(which, dtype) if block else self.whole
                finite = compute(part, flat[which])
            if not finite:
                self.refuse(which)
        return results

    def refuse_not_finite(self, which: slice = ALL) -> None:
        """Refuse motions that hold NaN or infinite values, among some of the samples."""
        motion = self.part(which).motion
        refuse_not_finite(self._model, motion, self.batch, which.start or 0)

    def refuse(self, which: slice = ALL) -> NoReturn:
        """Refuse motions whose result is not finite, see `refuse_not_finite`."""
        self.refuse_not_finite(which)
        raise overflow(self.part(which).motion)

    def shaped(self, result: Array) -> Array:
        """Result (N, ...) with the leading axes that were given."""
        return result.reshape(*self.batch, *result.shape[1:])


def _broadcast(motion: Array, others: Sequence[Array], loads: Loads) -> tuple[int, ...]:
    """Leading axes that all broadcast to."""
    arrays = motion, *others
    try:
        batch: tuple[int, ...] = np.broadcast_shapes(*(x.shape[:-2] for x in arrays))
    except ValueError:
        raise MotionError(
            f'The leading axes of what is given do not broadcast: {[x.shape for x in arrays]} are '
            'the shapes of the motion and of what belongs to it.'
        ) from None
    for link, values in loads:
        try:
            batch = np.broadcast_shapes(batch, values.shape[:-2])
        except ValueError:
            raise WrenchError(
                f'Wrench on {link.link!r}: the leading axes {values.shape[:-2]} of its values do '
                f'not broadcast with the leading axes {batch} of the motion.'
            ) from None
    return batch


def _check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refusal of what is no writeable array of a type and shape, contiguous in C order."""
    if not isinstance(out, np.ndarray):
        raise HodynError(f'out is of type {type(out).__name__}, expected a NumPy array.')
    if out.shape != shape or out.dtype != dtype:
        raise HodynError(
            f'out has shape {out.shape} and elements of type {out.dtype}, expected {shape} '
            f'and {dtype}.'
        )
    if not (out.flags.c_contiguous and out.flags.writeable and out.dtype.isnative):
        raise HodynError('out must be writeable and contiguous in C order.')
