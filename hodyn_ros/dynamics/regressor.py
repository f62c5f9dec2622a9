"""Regressors: Q^(m) = Y^(m) pi, with constant parameters pi, in every order m of derivatives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import checked_number
from hodyn_ros.dynamics.matrices import along
from hodyn_ros.engine.program import REGRESSOR
from hodyn_ros.errors import IdentificationError, ModelError
from hodyn_ros.kinematics.arguments import Arguments, Batch, is_finite
from hodyn_ros.kinematics.closed_loops import ClosedMotion, within_reach
from hodyn_ros.kinematics.motions import body_coordinates, selection_of
from hodyn_ros.lie import se3
from hodyn_ros.model.friction import FrictionLaw
from hodyn_ros.model.inertia import PARAMETERS, parametric_inertia
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.typing import Array

Terms = Sequence[FrictionLaw | str]

BODY_PARAMETERS = ('mass', 'hx', 'hy', 'hz', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')


class BaseParameters(NamedTuple):
    """Combinations of c parameters pi that determine the efforts, see `base_parameters`.

    Examples
    --------
    >>> from hodyn_ros import RobotModel, base_parameters
    >>> found = base_parameters(RobotModel.from_urdf('two_link'))
    >>> found.rank, found.mapping.shape, found.independent.shape
    (6, (6, 20), (6,))
    """

    rank: int
    """Number b of them."""
    independent: NDArray[np.intp]
    """Columns of the regressor that are kept, shape (b,)."""
    dependent: NDArray[np.intp]
    """The others, which are combinations of these, or zero, shape (c - b,)."""
    Z: Array
    """Base parameters = pi[independent] + Z @ pi[dependent], shape (b, c - b)."""
    mapping: Array
    """Base parameters = mapping @ pi, shape (b, c)."""
    pivots: Array
    """Sizes of the pivots relative to the first; the gap is behind `pivots[rank - 1]`."""


def regressor(model: RobotModel, motion: ArrayLike) -> Array:
    """Matrix of joint efforts by inertial parameters, and its time derivatives.

    `regressor(model, motion) @ model.inertial_parameters` is what `inverse_dynamics` returns
    without friction, armature and wrenches.

    Parameters
    ----------
    model : RobotModel
        Its inertial parameters do not matter.
    motion : array-like, shape (..., K, n)
        Time derivatives of the joint positions in model order [rad/s^k] or [m/s^k], K >= 3.

    Returns
    -------
    ndarray, shape (..., K-2, n, 10 * n_bodies)
        `[..., m, j, 10 * i + l]` is the part of parameter l of body i in the m-th time derivative
        of the effort of joint j, by the parameter. Mimic joints add to those that they follow.

    Raises
    ------
    MotionError
        If the motion has a wrong shape, holds NaN or infinite values, or the result overflows.

    Notes
    -----
    Source: Atkeson, An and Hollerbach 1986, "Estimation of inertial parameters of manipulator
    loads and links", by Leibniz's rule; see `engine.partials`.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, inverse_dynamics, regressor
    >>> model = RobotModel.from_urdf('two_link')
    >>> motion = [[0.3, 1.0], [0.5, 0.2], [0.1, 0.4]]
    >>> Y = regressor(model, motion)
    >>> Y.shape, (Y @ model.inertial_parameters).round(3)
    ((1, 2, 20), array([[36.006,  3.059]]))
    >>> inverse_dynamics(model, motion).round(3)
    array([[36.006,  3.059]])
    """
    return along(model, motion, REGRESSOR)


def payload_in_body(model: RobotModel, link: str) -> tuple[slice, Array]:
    """Columns of `regressor` for the body of a link, and (10, 10) its parameters by the link's.

    An `IdentificationError` is raised for a link that never moves.
    """
    body, frame = model.link(link)
    if body == BASE:
        raise IdentificationError(
            f'The link {link!r} never moves: nothing shows what it carries.'
        )
    units = parametric_inertia(np.eye(10))
    to_body = np.stack([se3.transform_inertia(M, frame)[PARAMETERS] for M in units], axis=1)
    return slice(10 * body, 10 * body + 10), to_body


def joint_regressor(model: RobotModel, motion: ArrayLike, terms: Terms) -> Array:
    """Matrix of joint efforts by parameters of friction, armature and springs, with derivatives.

    Parameters
    ----------
    model, motion
        See `regressor`; the model's friction and armature do not matter.
    terms : sequence of FrictionLaw, 'armature' or 'stiffness'
        What each joint has, those that mimic others included: a multiple of a law such as
        `Viscous(1.0)` or `Offset(1.0)`; an inertia times the acceleration; the stiffness of a
        spring parallel to the joint times the position.

    Returns
    -------
    ndarray, shape (..., K-2, n, n_bodies * len(terms))
        Column `len(terms) * i + l` is for term l of the joint that moves body i. Beside the
        columns of `regressor`: Q^(m) = [Y, Y_joint]^(m) (pi, pi_joint).

    Raises
    ------
    ModelError, MotionError
        If a term is unknown, or as `regressor` does.

    Examples
    --------
    >>> from hodyn_ros import RobotModel, friction, joint_regressor
    >>> motion = [[0.0, 0.0], [0.5, -0.2], [3.0, 4.0]]
    >>> terms = [friction.Viscous(1.0), friction.Coulomb(1.0), 'armature']
    >>> joint_regressor(RobotModel.from_urdf('two_link'), motion, terms)[0]
    array([[ 0.5,  1. ,  3. ,  0. ,  0. ,  0. ],
           [ 0. ,  0. ,  0. , -0.2, -1. ,  4. ]])
    """
    terms = _checked_terms(terms)
    samples = Arguments(model, motion)
    shape = samples.K - 2, model.n_joints, model.n_bodies * len(terms)
    return samples.compute(partial(_joint_regressor, model, terms), shape)


def _joint_regressor(model: RobotModel, terms: Terms, part: Batch, result: Array) -> bool:
    """Regressor of the joints, (N, K-2, n, n_bodies * terms); says whether all is finite."""
    if not is_finite(part.motion):
        return False
    closed = ClosedMotion(model, part.motion) if model.closure else None
    motion = closed.motion if closed else part.motion
    series = np.swapaxes(body_coordinates(model.tree, motion), -1, -2)
    columns = np.empty((*series[..., 2:].shape, len(terms)))
    for index, term in enumerate(terms):
        if isinstance(term, FrictionLaw):
            columns[..., index] = term.effort(series[..., 1:-1])
        else:
            columns[..., index] = series[
                ..., slice(2, None) if term == 'armature' else slice(-2)
            ]
    efforts = np.einsum('ij,nikl->knjil', selection_of(model.tree), columns)
    orders = efforts.reshape(*efforts.shape[:3], result.shape[-1])
    result[...] = np.stack(closed.projected(orders) if closed else [*orders], axis=1)
    return is_finite(result)


def parameter_names(model: RobotModel, terms: Terms = ()) -> tuple[str, ...]:
    """Names of the columns of `regressor`, and behind them of those of `joint_regressor`.

    A joint and a quantity: 'joint2 mass', hx to hz for the first moments and ixx to izz of the
    body that it moves; then those of its terms, 'joint2 viscous', coulomb, offset, armature and so
    on. A `ModelError` is raised if a term is unknown.

    Examples
    --------
    >>> from hodyn_ros import RobotModel, friction
    >>> from hodyn_ros.dynamics import parameter_names
    >>> model = RobotModel.from_urdf('two_link')
    >>> parameter_names(model, [friction.Viscous(1.0)])[:4], parameter_names(model)[-1]
    (('shoulder mass', 'shoulder hx', 'shoulder hy', 'shoulder hz'), 'elbow izz')
    """
    kinds = [
        term if isinstance(term, str) else type(term).__name__.lower()
        for term in _checked_terms(terms)
    ]
    return tuple(
        f'{joint} {each}'
        for of in (BODY_PARAMETERS, kinds)
        for joint in model.body_names
        for each in of
    )


def base_parameters(
    model: RobotModel, terms: Terms = (), *, tolerance: float = 1e-9, seed: int = 0
) -> BaseParameters:
    """Combinations of parameters that determine the efforts, and their derivatives of any order.

    Q^(m) = Y^(m)[:, independent] @ (mapping @ pi): derivatives tell no more parameters apart.

    Parameters
    ----------
    model : RobotModel
    terms : sequence of FrictionLaw, 'armature' or 'stiffness'
        Those of `joint_regressor`, whose columns come behind those of `regressor`.
    tolerance : float
        Pivots below it, relative to the first, are zero. Closed loops that hardly move may have
        smaller ones: see the gap in `pivots`.
    seed : int
        Of the random states: positions within the limits (-pi to pi where there are none) and the
        reach of closed loops, velocities and accelerations with the standard deviation 1.

    Raises
    ------
    ModelError
        If the tolerance is not between zero and 0.1, or a term is unknown.

    Notes
    -----
    Source: Gautier 1991, "Numerical calculation of the base inertial parameters of robots", by QR
    with column pivoting: Y P = Q [R_1, R_2], Z = R_1^-1 R_2.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, base_parameters, inverse_dynamics, regressor
    >>> model = RobotModel.from_urdf('two_link')
    >>> base = base_parameters(model)
    >>> motion = [[0.3, 1.0], [0.5, 0.2], [0.1, 0.4]]
    >>> columns = regressor(model, motion)[0][:, base.independent]
    >>> effort = columns @ base.mapping @ model.inertial_parameters
    >>> base.rank, bool(np.allclose(effort, inverse_dynamics(model, motion)))
    (6, True)
    """
    from scipy.linalg import qr, solve_triangular

    checked_number('The tolerance', tolerance, ModelError, above=0.0, most=0.1)
    checked_number('The seed', seed, ModelError, least=0, whole=True)
    terms = _checked_terms(terms)
    rng, n = np.random.default_rng(seed), model.n_joints
    count = 5 * (10 + len(terms)) * -(-model.n_bodies // n)
    states = rng.normal(size=(count, 3, n))
    limits = np.array([model.limits.lower, model.limits.upper])
    low, high = np.where(np.isfinite(limits).all(axis=0), limits, [[-np.pi], [np.pi]])
    states[:, 0] = within_reach(model, rng.uniform(low, high, (count, n)))
    parts = regressor(model, states), joint_regressor(model, states, terms)
    Y = np.concatenate(parts, axis=-1).reshape(count * n, -1)
    R, order = qr(Y, mode='r', pivoting=True)
    pivots = np.abs(np.diag(R)) / np.abs(R[0, 0])
    b = int(np.count_nonzero(pivots > tolerance))
    independent, dependent = np.sort(order[:b]), np.sort(order[b:])
    mapping = solve_triangular(R[:b, :b], R[:b])[np.argsort(order[:b])][
        :, np.argsort(order)
    ]
    mapping[:, independent] = np.eye(b)
    return BaseParameters(b, independent, dependent, mapping[:, dependent], mapping, pivots)


def _checked_terms(terms: Terms) -> tuple[FrictionLaw | str, ...]:
    """Terms as a tuple; a `ModelError` for what is neither a law nor one of the two names."""
    if isinstance(terms, str) or not isinstance(terms, Iterable):
        raise ModelError(f'terms is {terms!r}, expected a sequence.')
    listed = tuple(terms)
    for term in listed:
        if not isinstance(term, FrictionLaw) and term not in ('armature', 'stiffness'):
            raise ModelError(
                f"A term is {term!r}, expected a law, 'armature' or 'stiffness'."
            )
    return listed
