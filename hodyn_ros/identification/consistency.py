"""The parameters nearest to given ones that bodies can have and that fit what was estimated.

Of all parameters with positive definite pseudo-inertias, those of the largest likelihood, with a
normal prior about the given ones as wide as these are large: it decides where recordings say
nothing. Source: Wensing, Kim and Slotine 2018, "Linear matrix inequalities for physically
consistent inertial parameter identification"; Sousa and Cortesao 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from hodyn_ros.errors import IdentificationError
from hodyn_ros.resources import optional_import_module
from hodyn_ros.typing import Array

_LEAST_EIGENVALUE = 1e-5  # of pseudo-inertias, relative to the given body
_RADIUS = 0.1  # m, of gyration where nothing is given
_BEST_KNOWN = 1e5  # information in units of the prior
_SOLVED = ('Solved', 'AlmostSolved', 'InsufficientProgress')


def pseudo_inertia(parameters: Array) -> Array:
    """4x4 matrices [[J, h], [h', m]], J = tr(I)/2 - I, of parameters (..., 10) in model order."""
    m, hx, hy, hz, xx, xy, xz, yy, yz, zz = np.moveaxis(np.asarray(parameters), -1, 0)
    half = 0.5 * (xx + yy + zz)
    rows = [[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy], [-xz, -yz, half - zz, hz]]
    return np.stack([np.stack(row, axis=-1) for row in (*rows, [hx, hy, hz, m])], axis=-2)


def body_scale(given: Array, others: Array) -> tuple[float, float]:
    """Mass [kg] and radius [m] by which a body (10,) is measured, beside others (N, 10)."""
    total = max(float(others[:, 0].sum()), 1.0)
    mass = max(float(given[0]), 1e-2 * total)
    radius = np.sqrt(max(float(given[[4, 7, 9]].sum()), 0.0) / (2.0 * mass))
    return mass, max(float(radius), 0.1 * _RADIUS) if given[0] > 0.0 else _RADIUS


def consistent(
    information: Array,
    target: Array,
    given: Array,
    prior: Array,
    bodies: Sequence[int],
    scales: Sequence[tuple[float, float]],
    fixed: Array,
    least: Array,
) -> tuple[Array, float]:
    """Physical parameters of the largest likelihood.

    Parameters
    ----------
    information : ndarray, shape (b, P)
        Square root of the information on the parameters: |information @ beta - target| is the
        distance in standard deviations.
    target : ndarray, shape (b,)
    given, prior : ndarray, shape (P,)
        Centre and standard deviations of the prior.
    bodies : sequence of int
        First of the ten columns of each body.
    scales : sequence of (float, float)
        Mass [kg] and radius [m] by which each of them is measured.
    fixed : ndarray, shape (bodies, 10)
        Part of each of them that links have which stay as they are.
    least : ndarray, shape (P,)
        Lower bounds of the other parameters, -inf where there is none.

    Returns
    -------
    ndarray, shape (P,)
    float
        Distance from the target, in its standard deviations.

    Raises
    ------
    IdentificationError
        If the solver is not installed, or finds no such parameters.
    """
    clarabel = solver_library()
    # In units of the prior about its centre; what is known better than the solver computes is not
    # told to it.
    U, s, Vt = np.linalg.svd(information * prior, full_matrices=False)
    known = np.minimum(s, _BEST_KNOWN)
    miss = np.divide(
        U.T @ (target - information @ given), s, where=s > 0.0, out=np.zeros_like(s)
    )
    hessian = (Vt.T * known**2) @ Vt + np.eye(len(given))
    slope = -Vt.T @ (known**2 * miss)
    rows: list[Array] = []
    constants: list[Array] = []
    bounded = np.flatnonzero(np.isfinite(least))
    rows.append(-np.eye(len(given))[bounded] * prior[bounded, None])
    constants.append(given[bounded] - least[bounded])
    cones: list[Any] = [clarabel.NonnegativeConeT(len(bounded))] if len(bounded) else []
    units = _triangle(pseudo_inertia(np.eye(10)))
    for first, rest, (mass, radius) in zip(bodies, fixed, scales):
        own = slice(first, first + 10)
        T = np.array([1.0 / radius, 1.0 / radius, 1.0 / radius, 1.0]) / np.sqrt(mass)
        weights = _triangle(np.outer(T, T), root=False)
        block = np.zeros((10, len(given)))
        block[:, own] = -(units * weights).T * prior[own]
        rows.append(block)
        inside = _triangle(pseudo_inertia(given[own] - rest)) * weights
        constants.append(inside - _LEAST_EIGENVALUE * _triangle(np.eye(4)))
        cones.append(clarabel.PSDTriangleConeT(4))
    x = _solved(hessian, slope, np.concatenate(rows), np.concatenate(constants), cones)
    beta: Array = given + prior * x
    return beta, float(np.linalg.norm(known * (Vt @ x - miss)))


def _solved(
    hessian: Array, slope: Array, rows: Array, constants: Array, cones: Sequence[Any]
) -> Array:
    """Minimum of x H x / 2 + slope x with constants - rows x in a product of cones.

    Parameters
    ----------
    hessian : ndarray, shape (P, P)
    slope : ndarray, shape (P,)
    rows : ndarray, shape (R, P)
    constants : ndarray, shape (R,)
    cones : sequence
        Of Clarabel, with R rows together.

    Returns
    -------
    ndarray, shape (P,)

    Raises
    ------
    IdentificationError
        If the solver finds none.
    """
    clarabel = solver_library()
    from scipy import sparse

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-10
    found = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(hessian)),
        slope,
        sparse.csc_matrix(rows),
        constants,
        cones,
        settings,
    ).solve()
    if str(found.status).rpartition('.')[2] not in _SOLVED:
        raise IdentificationError(
            f'No parameters were found that bodies can have (Clarabel: {found.status}); is the '
            'given model of this robot, and are its own inertias possible?'
        )
    return np.array(found.x)


def solver_library() -> ModuleType:
    """Clarabel; an `IdentificationError` says what to install.

    Whoever needs it for the last of many steps asks before the first one.

    Returns
    -------
    module

    Raises
    ------
    IdentificationError
        If it is not installed.
    """
    need = 'Parameters that bodies can have are found by Clarabel'
    return optional_import_module('clarabel', need, 'identify', IdentificationError)


@cache
def _places() -> tuple[Any, Array]:
    """Upper triangle of a 4x4 matrix, column by column, and the weights of the solver."""
    j, i = np.array([(j, i) for j in range(4) for i in range(j + 1)]).T
    return (i, j), np.where(i == j, 1.0, np.sqrt(2.0))


def _triangle(matrices: Array, root: bool = True) -> Array:
    """Upper triangles of matrices as the solver has them, column by column.

    Parameters
    ----------
    matrices : ndarray, shape (..., 4, 4)
        Symmetric.
    root : bool
        Whether entries beside the diagonal are multiplied by the root of two.

    Returns
    -------
    ndarray, shape (..., 10)
    """
    (i, j), weights = _places()
    entries: Array = matrices[..., i, j]
    return entries * weights if root else entries
