"""Checks of arguments: finite values, ranges of numbers, choices.

They raise the error of whoever asks, with a message of what was given and what was expected.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.names import did_you_mean
from hodyn_ros.typing import Array

T = TypeVar('T', bound=np.generic)

# Closeness from which on a choice is another one, mistyped: opn is open, RK5 is not RK4.
_MISTYPED = 0.7

MOST_DERIVATIVES = 10
"""Rows of a motion without leading axes; more are taken for samples in their place."""


def first_true(where: NDArray[np.bool_]) -> tuple[int, ...] | None:
    """Index of the first element that is true; None if none is.

    Parameters
    ----------
    where : ndarray of bool
        Any shape; the elements are looked at in C order.

    Returns
    -------
    tuple of int or None
        One index for each axis.
    """
    if not where.any():
        return None
    return tuple(int(index) for index in np.unravel_index(int(where.argmax()), where.shape))


def first_not_finite(values: NDArray[Any]) -> tuple[int, ...] | None:
    """Index of the first value that is NaN or infinite, None if all are finite.

    Parameters
    ----------
    values : ndarray of float or int
        Any shape; the values are looked at in C order.
    """
    finite = np.isfinite(values)
    return None if finite.all() else first_true(~finite)


def finite_array(what: str, values: ArrayLike, error: type[ValueError]) -> Array:
    """Copy of values as an array of finite numbers.

    Parameters
    ----------
    what : str
        What the values are, such as 'The motion'; it begins the message.
    values : array-like of real numbers
        Texts, booleans and complex numbers are refused.
    error : type of ValueError
        Raised for what is no array of numbers, for masked values, and for NaN and infinity; the
        message has the index of the first such value.

    Returns
    -------
    ndarray of float64
        Always a new array, of the shape of the values.
    """
    try:
        if np.asarray(values).dtype.kind in 'SUbc':
            raise TypeError(f'elements of type {np.asarray(values).dtype}')
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        raise error(f'{what} is not an array of numbers: {reason}') from reason
    # Importing numpy.ma takes 10 ms.
    if hasattr(values, 'mask') and np.ma.is_masked(values):
        raise error(f'{what} is a masked array with masked values; fill them first.')
    where = first_not_finite(array)
    if where is not None:
        at = f' at index {where}' if where else ''
        raise error(f'{what} holds {array[where]}{at}; all values must be finite.')
    return array


def checked_number(
    what: str,
    value: object,
    error: type[ValueError],
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    infinite: bool = False,
    whole: bool = False,
    unit: str = '',
) -> float:
    """Float of a number that lies in a range.

    Parameters
    ----------
    what : str
        What the number is; it begins the message.
    value : object
        Refused are booleans, texts, NaN, and what float() does not take.
    error : type of ValueError
        Raised for what is refused; the message has the value, the range and the unit.
    above, least, most : float, optional
        The number must be larger than the first, at least the second and at most the third.
    infinite : bool
        Whether infinity is accepted.
    whole : bool
        Whether only integers are accepted, by type: 3.0 is refused.
    unit : str
        Unit for the message, without brackets.
    """
    try:
        number = np.nan if isinstance(value, (bool, str, bytes)) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if (
        np.isnan(number)
        or (np.isinf(number) and not infinite)
        or (whole and not isinstance(value, (int, np.integer)))
        or (above is not None and number <= above)
        or (least is not None and number < least)
        or (most is not None and number > most)
    ):
        expected = _expected(above, least, most, infinite, whole, unit)
        raise error(f'{what} is {value!r}, expected {expected}.')
    return number


def _expected(
    above: float | None,
    least: float | None,
    most: float | None,
    infinite: bool,
    whole: bool,
    unit: str,
) -> str:
    """Range of `checked_number` in words, such as a finite number from 0 on [s]."""
    kind = 'a whole number' if whole else 'a number' if infinite else 'a finite number'
    bounds = [
        f' {word} {bound:g}'
        for word, bound in (('above', above), ('from', least), ('to', most))
        if bound is not None
    ]
    if least is not None and most is None:
        bounds.append(' on')
    return f'{kind}{"".join(bounds)}{f" [{unit}]" if unit else ""}'


def set_checked(owner: object, error: type[ValueError], *names: str, **bounds: Any) -> None:
    """Make floats of attributes, and refuse them outside of their bounds; see `checked_number`.

    The owner may be a frozen dataclass.

    Parameters
    ----------
    owner : object
        Its class begins the message.
    error : type of ValueError
        Raised for an attribute that is refused.
    *names : str
        Attributes to check.
    **bounds
        Keyword arguments of `checked_number`, the same for all of them.
    """
    for name in names:
        what = f'{type(owner).__name__}: {name}'
        number = checked_number(what, getattr(owner, name), error, **bounds)
        object.__setattr__(owner, name, number)


def check_choice(
    what: str, value: object, choices: Iterable[str], error: type[ValueError]
) -> None:
    """Refusal of what is not one of the choices.

    Parameters
    ----------
    what : str
        What is chosen; it begins the message.
    value : object
        What was given.
    choices : iterable of str
        All of them are in the message, and the closest one as a hint.
    error : type of ValueError
        Raised if the value is none of the choices.
    """
    known = list(choices)
    if value not in known:
        hint = did_you_mean(value, known, _MISTYPED)
        raise error(f'{what} is {value!r}{hint}, expected one of {", ".join(known)}.')


def frozen(array: NDArray[T]) -> NDArray[T]:
    """The same array, read-only from now on."""
    array.setflags(write=False)
    return array


def exact_poses(what: str, C: Array, error: type[ValueError]) -> Array:
    """Poses (..., 4, 4) whose rotations are freed of what a file or a table has rounded.

    Refused are last rows other than (0, 0, 0, 1) and rotations that are further than 1e-6 from a
    right-handed orthonormal matrix.

    Parameters
    ----------
    what : str
        What the poses are; it begins the message.
    C : ndarray, shape (..., 4, 4)
        Translations in any unit; they are not changed.
    error : type of ValueError
        Raised for what is refused; the message has the index of the first such pose.

    Returns
    -------
    ndarray, shape (..., 4, 4)
        A copy. Rotations that are orthonormal within 1e-14 are kept to the bit, others replaced by
        the closest ones (polar decomposition).
    """
    R = C[..., :3, :3]
    off = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2), initial=0.0)
    determinant = np.linalg.det(R)
    bad_row = np.abs(C[..., 3, :] - [0.0, 0.0, 0.0, 1.0]).max(axis=-1, initial=0.0) > 1e-9
    bad = bad_row | (off > 1e-6) | (determinant < 0.0)
    if np.any(bad):
        where = first_true(bad) or ()
        at = f' at index {where if len(where) > 1 else where[0]}' if where else ''
        if bad_row[where]:
            row = C[where][3].tolist()
            raise error(f'{what}{at} has the last row {row}, expected 0, 0, 0, 1.')
        raise error(
            f'{what}{at} does not hold a rotation, whose columns are orthonormal and right-handed:'
            f' transpose(R) R differs from the identity by {off[where]:.3g}, expected at most '
            f'1e-6, and det(R) = {determinant[where]:.6g}, expected 1.'
        )
    U, _, Vt = np.linalg.svd(R)
    exact = C.copy()
    exact[..., :3, :3] = np.where((off > 1e-14)[..., None, None], U @ Vt, R)
    exact[..., 3, :] = 0.0, 0.0, 0.0, 1.0
    return exact
