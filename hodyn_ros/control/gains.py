"""Gains of controllers: linear error dynamics from the poles that they are to have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import ControlError
from hodyn_ros.names import joint_order

Array = NDArray[np.float64]

Poles = Union[float, Sequence[complex]]  # noqa: UP007
"""Of one joint: its poles [rad/s], or the bandwidth w [rad/s] that puts all of them at -w."""

# Of an imaginary part that rounding leaves, relative to the coefficient.
_ROUNDING = 1e-9


def gains_from_poles(poles: ArrayLike) -> Array:
    """Gains that give a chain of integrators the wanted poles.

    With e the error and e^(N) = -(k_0 e + k_1 e' + ... + k_{N-1} e^(N-1)) the error dynamics have
    these poles.

    Parameters
    ----------
    poles : array-like of complex, shape (N,)
        In the left half plane, complex ones in conjugate pairs [rad/s].

    Returns
    -------
    ndarray, shape (N,)
        k_0 ... k_{N-1}; k_i in [1/s^(N-i)].

    Raises
    ------
    ControlError
        If a pole is not stable or lacks its conjugate, or gains are infinite or zero.
    """
    try:
        given = np.atleast_1d(np.asarray(poles, dtype=np.complex128))
    except (TypeError, ValueError):
        raise ControlError(f'The poles are {poles!r}, expected numbers [rad/s].') from None
    if given.ndim != 1 or not np.isfinite(given).all() or np.any(given.real >= 0.0):
        raise ControlError(
            f'The poles are {_shown(given)}, expected finite numbers with negative real parts.'
        )
    with np.errstate(over='ignore', under='ignore', invalid='ignore'):
        coefficients = np.asarray(np.poly(given), dtype=np.complex128)[:0:-1]
    if np.any(abs(coefficients.imag) > _ROUNDING * abs(coefficients)):
        raise ControlError(
            f'The poles are {_shown(given)}, expected complex ones in conjugate pairs.'
        )
    if not np.all((coefficients.real > 0.0) & np.isfinite(coefficients)):
        raise ControlError(
            f'The poles are {_shown(given)}, too far from or too close to zero: the gains would '
            'be infinite or zero.'
        )
    return np.ascontiguousarray(coefficients.real)


def joint_gains(
    joint_names: Sequence[str],
    orders: Sequence[int],
    poles: Poles | ArrayLike | Mapping[str, Poles],
) -> Array:
    """Gains of several joints.

    Parameters
    ----------
    joint_names : sequence of str
    orders : sequence of int
        Number of integrators, and so of poles, of each joint.
    poles : float, array-like or mapping
        A bandwidth for all joints, shape (n,) for one each [rad/s], or for each joint by name its
        bandwidth or its poles.

    Returns
    -------
    ndarray, shape (N, n)
        `[i, j]` multiplies the i-th derivative of the error of joint j; N is the largest order,
        and zero stands where an order is smaller.

    Raises
    ------
    ControlError
        If there are not as many poles as a joint needs or they are not usable.
    JointNameError
        If joints of a mapping are unknown or missing.
    """
    n = len(joint_names)
    gains = np.zeros((max(orders, default=0), n))
    for j, (name, order, given) in enumerate(
        zip(joint_names, orders, _of_joints(joint_names, poles))
    ):
        own = np.asarray(given)
        if own.ndim == 0:
            own = np.full(order, -_bandwidth(name, given))
        if own.shape != (order,):
            raise ControlError(
                f'Joint {name!r} has {own.size} poles, expected {order} of them, or a bandwidth.'
            )
        try:
            gains[:order, j] = gains_from_poles(own)
        except ControlError as error:
            raise ControlError(f'Joint {name!r}: {error}') from None
    return gains


def _of_joints(
    joint_names: Sequence[str], poles: Poles | ArrayLike | Mapping[str, Poles]
) -> list[Poles]:
    if isinstance(poles, Mapping):
        order = joint_order(tuple(poles), joint_names)
        values = list(poles.values())
        return [values[index] for index in order]
    try:
        array = np.asarray(poles, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty((0, 0))  # of no use
    n = len(joint_names)
    if isinstance(poles, bool) or array.shape not in ((), (n,)):
        raise ControlError(
            f'The poles are {poles!r}, expected a bandwidth [rad/s], {n} of them, or a mapping of '
            'joint names to bandwidths or poles.'
        )
    return [float(value) for value in np.broadcast_to(array, (n,))]


def _bandwidth(name: str, given: Poles) -> float:
    is_number = isinstance(given, (int, float, np.integer, np.floating))
    value = float(given) if is_number and not isinstance(given, bool) else np.nan  # type: ignore[arg-type]
    if not (np.isfinite(value) and value > 0.0):
        raise ControlError(
            f'The bandwidth of joint {name!r} is {given!r}, expected a positive number [rad/s].'
        )
    return value


def _shown(poles: NDArray[np.complex128]) -> str:
    return ', '.join(f'{pole:.6g}' for pole in poles.ravel()[:8])
