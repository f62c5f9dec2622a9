"""Measured states of robots with closed loops, and how far these are from singular positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.checks import finite_array
from hodyn_ros.errors import JointNameError, MotionError
from hodyn_ros.kinematics.closed_loops import ClosedMotion
from hodyn_ros.kinematics.closing import closure_of, constraints_of
from hodyn_ros.kinematics.jacobian import jacobian
from hodyn_ros.kinematics.motions import checked_motion
from hodyn_ros.model.loops import LARGEST_STEP, SINGULAR
from hodyn_ros.model.mechanism import Mechanism
from hodyn_ros.names import listed
from hodyn_ros.typing import Array

NEAR = 0.03
"""Ratio of singular values below which a position is near a singular one.

Dependent joints move as much faster than the independent ones as the ratio is smaller, and their
accelerations grow with its third power: those of a five-bar here some ten times and some five
thousand times.
"""

# Gauss-Newton steps; where measurements contradict each other, they shrink in proportion.
_STEPS, _SMALLEST_STEP, _HALVINGS = 200, 1e-11, 12


class CompletedJointState(NamedTuple):
    """State of all joints of a robot with closed loops, from that of the measured ones.

    Attributes
    ----------
    motion : ndarray, shape (..., K, N)
        Of all joints of the tree [rad/s^k] or [m/s^k].
    deviations : ndarray, shape (..., K, M)
        What was measured minus what the loops say, of each measured joint; positions of continuous
        joints to the nearest turn.

    Examples
    --------
    A knee measured 0.002 rad beside the position that the motors give it:

    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.kinematics import complete_joint_state
    >>> model = RobotModel.from_urdf('five_bar')
    >>> measured = 'motor_front', 'motor_back', 'knee_front'
    >>> state = complete_joint_state(model, measured, [[0.0, 0.0, 0.002]])
    >>> state.deviations.round(4) + 0.0, state.motion.shape
    (array([[0.   , 0.   , 0.002]]), (1, 4))
    """

    motion: Array
    deviations: Array


def complete_joint_state(
    model: Mechanism,
    names: Sequence[str],
    motion: ArrayLike,
    weights: ArrayLike | None = None,
    near: ArrayLike | None = None,
) -> CompletedJointState:
    """State of all joints of a robot with closed loops, from that of some measured joints.

    Measured independent joints are taken as they are if all of them are there. Otherwise, or with
    weights, the independent joints are those with the smallest weighted sum of squared deviations
    of all measured joints, for the positions and for each derivative.

    Parameters
    ----------
    model : RobotModel
        With closed loops; its tree has N joints.
    names : sequence of str
        M joints of the tree.
    motion : array-like, shape (..., K, M)
        Their positions, and velocities and so on if these are measured, too [rad/s^k] or [m/s^k].
    weights : array-like, shape (M,), optional
        Of the squared deviations, such as inverse variances; by default 1.
    near : array-like, shape (n,) or (..., n), optional
        Positions of the independent joints where the search begins; by default the start of the
        loops. Of several solutions the one that it leads to is found.

    Returns
    -------
    CompletedJointState

    Raises
    ------
    JointNameError
        If names are unknown or repeated.
    MotionError
        If the values cannot be used, the measured joints do not determine the others, or the loops
        do not close there; the message names the sample and the joint.

    Examples
    --------
    From the encoders of one leg to all joints:

    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.kinematics import complete_joint_state
    >>> model = RobotModel.from_urdf('five_bar')
    >>> state = complete_joint_state(model, ['motor_front', 'knee_front'], [[0.2, -0.1]])
    >>> dict(zip(model.closure.tree.joint_names, state.motion[0].round(3).tolist()))
    {'motor_front': 0.2, 'knee_front': -0.1, 'motor_back': 0.005, 'knee_back': 0.1}
    """
    closure = closure_of(model)
    known = closure.tree.joint_names
    unknown = [name for name in names if name not in known]
    if unknown or len({*names}) < len(names):
        raise JointNameError(
            f'The measured joints are {listed(names)}, expected some of {listed(known)}, each '
            'once.'
        )
    measured = finite_array('The measured motion', motion, MotionError)
    M, n = len(names), model.n_joints
    if measured.ndim < 2 or measured.shape[-1] != M or measured.shape[-2] < 1:
        raise MotionError(
            f'The measured motion has shape {measured.shape}, expected (..., K, {M}): positions, '
            f'and derivatives, of {listed(names)}.'
        )
    flat = measured.reshape(-1, *measured.shape[-2:])
    fit = _Fit(model, [known.index(name) for name in names], flat)
    if weights is None and {*model.joint_names} <= {*names}:
        found = flat[..., [names.index(name) for name in model.joint_names]]
    else:
        weight = _spread('The weights', 1.0 if weights is None else weights, (M,))
        if np.any(weight <= 0.0):
            raise MotionError(f'The weights are {weight}, expected positive numbers.')
        begin = closure.start[closure.independent] if near is None else near
        begin = _spread('The positions near', begin, (*measured.shape[:-2], n))
        found = fit.independent(np.sqrt(weight)[:, None], begin.reshape(-1, n))
    whole = ClosedMotion(model, found).motion
    off = fit.deviations(whole).reshape(measured.shape)
    return CompletedJointState(whole.reshape(*measured.shape[:-1], -1), off)


def _spread(what: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Values of a shape, or of one that NumPy brings to it."""
    array = finite_array(what, values, MotionError)
    try:
        return np.broadcast_to(array, shape)
    except ValueError as error:
        raise MotionError(f'{what} have shape {array.shape}, expected {shape}.') from error


class _Fit:
    """Least squares of measured motions (samples, K, M) of some joints of the tree."""

    def __init__(self, model: Mechanism, joints: list[int], measured: Array) -> None:
        types = closure_of(model).tree.joint_types
        self.model, self.joints, self.measured = model, joints, measured
        self.turn = np.array([2.0 * np.pi * (types[j] == 'continuous') for j in joints])

    def deviations(self, whole: Array) -> Array:
        """Of the measured from the whole motion (samples, orders, N)."""
        off = self.measured[:, : whole.shape[1]] - whole[..., self.joints]
        turns = np.round(off[:, 0] / (2.0 * np.pi))
        off[:, 0] -= turns * self.turn
        return off

    def independent(self, root: Array, u: Array) -> Array:
        """Motion (samples, K, n) of the independent joints; near positions u (samples, n)."""
        closed = ClosedMotion(self.model, u[:, None])
        for _ in range(_STEPS):
            inverse = np.linalg.pinv(root * self._slopes(closed)) * root[:, 0]
            step = (inverse @ self.deviations(closed.motion)[:, 0, :, None])[..., 0]
            size = np.abs(step).max(axis=-1)
            step *= (LARGEST_STEP / np.maximum(size, LARGEST_STEP))[:, None]
            closed, u = self._moved(u, step)
            if size.max(initial=0.0) < _SMALLEST_STEP:
                break
        else:
            raise MotionError(
                f'No positions of the independent joints fit what is measured at sample '
                f'{size.argmax()}: after {_STEPS} steps they still change by {size.max():.3g} '
                '(rad or m). Give positions near which they are.'
            )
        self._refuse_undetermined(closed)
        found = np.zeros((*self.measured.shape[:2], u.shape[-1]))
        found[:, 0] = u
        for k in range(1, found.shape[1]):
            rest = self.deviations(ClosedMotion(self.model, found[:, : k + 1]).motion)
            found[:, k] = (inverse @ rest[:, k, :, None])[..., 0]
        return found

    def _slopes(self, closed: ClosedMotion) -> Array:
        """Of the measured by the independent joints (samples, M, n)."""
        return closed.G(1)[0][:, self.joints]

    def _moved(self, u: Array, step: Array) -> tuple[ClosedMotion, Array]:
        """Go a step, or as much of it as the loops can be closed for."""
        for _ in range(_HALVINGS):
            try:
                return ClosedMotion(self.model, (u + step)[:, None]), u + step
            except MotionError:
                step = 0.5 * step
        return ClosedMotion(self.model, (u + step)[:, None]), u + step

    def _refuse_undetermined(self, closed: ClosedMotion) -> None:
        slopes, names = self._slopes(closed), self.model.joint_names
        values, directions = np.linalg.svd(slopes)[1:]
        lacking = values[:, -1] < SINGULAR * values[:, 0]
        if len(self.joints) >= len(names) and not lacking.any():
            return
        sample = int(lacking.argmax())
        tree = closure_of(self.model).tree.joint_names
        raise MotionError(
            f'The measured joints {listed(tree[j] for j in self.joints)} do not determine '
            f'{names[np.abs(directions[sample, -1]).argmax()]!r} at sample {sample}. Measure '
            f'other joints, or all independent ones: {listed(names)}.'
        )


class LoopSingularity(NamedTuple):
    """How far positions of a robot with closed loops are from singular ones.

    Attributes
    ----------
    ratio : ndarray, shape (...)
        Smallest over largest singular value of the loops by the dependent joints, lengths divided
        by one of the mechanism: zero where the independent joints do not determine them (second
        kind, type 2).
    distance : ndarray, shape (...)
        Of the independent joints from there, estimated [rad, m]; infinite where the singular
        value does not change, as of couplings.
    joint : ndarray of str, shape (...)
        Dependent joint that is determined least.
    output_ratio : ndarray, shape (...), optional
        Smallest over largest singular value of the Jacobian of the link: zero where independent
        joints can move without it (first kind, type 1). None without a link.
    output_joint : ndarray of str, shape (...), optional
        Independent joint that moves the link least.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.kinematics import loop_singularity
    >>> found = loop_singularity(RobotModel.from_urdf('five_bar'), [[0.0, 0.0]])
    >>> print(f'{found.joint}: ratio {found.ratio:.3f}, {found.distance:.2f} rad away')
    knee_front: ratio 0.577, inf rad away
    """

    ratio: Array
    distance: Array
    joint: NDArray[np.str_]
    output_ratio: Array | None = None
    output_joint: NDArray[np.str_] | None = None


def loop_singularity(
    model: Mechanism,
    motion: ArrayLike,
    link: str | None = None,
    components: Sequence[int] = range(6),
) -> LoopSingularity:
    """Distances of positions from singularities of closed loops of both kinds.

    Parameters
    ----------
    model : RobotModel
        With closed loops.
    motion : array-like, shape (..., K, n)
        Of the independent joints [rad/s^k] or [m/s^k]; only the positions count.
    link : str, optional
        Output of the mechanism.
    components : sequence of int
        Those of its twist (omega, v) in hybrid expression that are its output, such as (3, 4) of a
        point in a plane.

    Returns
    -------
    LoopSingularity

    Raises
    ------
    MotionError, ModelError
        As `complete_motion` and `jacobian`.

    Notes
    -----
    Where dependent joints turn round, the smallest singular value s goes to zero as the square
    root of the distance, which therefore is s / (2 norm(grad s)) near there; where branches cross,
    it is twice that. Kinds: Gosselin and Angeles 1990, "Singularity Analysis of Closed-Loop
    Kinematic Chains".

    Examples
    --------
    The ratio falls on the way to a singular position:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.kinematics import loop_singularity
    >>> model = RobotModel.from_urdf('five_bar')
    >>> positions = np.array([[[0.0, 0.0]], [[0.3, -0.3]], [[0.5, -0.5]]])
    >>> loop_singularity(model, positions).ratio.round(3)
    array([0.577, 0.544, 0.488])
    """
    closure = closure_of(model)
    array = checked_motion(model, motion, 1)[..., :1, :]
    shape, n = array.shape[:-2], model.n_joints
    q, d = array.reshape(-1, 1, n), closure.dependent
    constraints = model.kept(constraints_of)
    L_d = constraints.relative(ClosedMotion(model, q).L[:, 0])[..., d]
    left, values, right = np.linalg.svd(L_d, full_matrices=False)
    # Along each independent joint alone.
    along = np.concatenate(
        [q.repeat(n, axis=0), np.tile(np.eye(n)[:, None], (len(q), 1, 1))], 1
    )
    slopes = constraints.relative(ClosedMotion(model, along).L[:, 1])[..., d]
    slopes = slopes.reshape(-1, n, *slopes.shape[1:])
    gradient = np.einsum('sr,snrc,sc->sn', left[..., -1], slopes, right[:, -1])
    steepness = np.linalg.norm(gradient, axis=-1)
    with np.errstate(divide='ignore'):
        distance = 0.5 * values[:, -1] / steepness
    names = np.array(closure.tree.joint_names)
    found = LoopSingularity(
        (values[:, -1] / values[:, 0]).reshape(shape),
        distance.reshape(shape),
        names[d[np.abs(right[:, -1]).argmax(axis=-1)]].reshape(shape),
    )
    if link is None:
        return found
    J = jacobian(model, q, link, 'hybrid')[:, 0, list(components)]
    values, right = np.linalg.svd(J)[1:]
    least = np.abs(right[:, -1]).argmax(axis=-1)
    return found._replace(
        output_ratio=(values[:, -1] / np.maximum(values[:, 0], 1e-300)).reshape(shape),
        output_joint=names[closure.independent[least]].reshape(shape),
    )
