"""Wrenches on links with time derivatives: given, or measured by a sensor.

The derivatives of the coordinates of a wrench depend on the axes and the point in which it is
expressed. They follow from the pose of the body with its derivatives, as does the weight of a tool
in link axes, R^T g.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.checks import check_choice, finite_array
from hodyn_ros.engine.program import Attachment
from hodyn_ros.errors import ModelError, WrenchError
from hodyn_ros.kinematics.arguments import Loads
from hodyn_ros.kinematics.motions import stacked
from hodyn_ros.kinematics.poses import (
    cross,
    matvec,
    part,
    poses_along,
    poses_in_base,
    rotations_and_origins,
    transpose,
)
from hodyn_ros.lie import Jet, jets, se3, so3
from hodyn_ros.model.mechanism import BASE
from hodyn_ros.model.robot import RobotModel
from hodyn_ros.names import ACTINGS, EXPRESSIONS
from hodyn_ros.typing import Array


@dataclass(frozen=True, eq=False)
class Wrench:
    """A wrench on a link along a motion, with the time derivatives of its coordinates.

    Attributes
    ----------
    link : str
        The link on which it acts.
    values : array-like, shape (..., K-2, 6)
        (moment, force) in [N m] and [N]; `values[..., m, :]` is the m-th derivative of the
        coordinates, for a motion of shape (..., K, n). Leading axes broadcast with those of the
        motion.
    expressed_in : {'body', 'spatial', 'hybrid'}
        body: link axes, moment about the link origin; spatial: base link axes, about the base link
        origin; hybrid: base link axes, about the link origin.
    acting : {'on_environment', 'on_robot'}
        Whether it is the wrench that the robot exerts on its environment (Q = ... + J^T W) or the
        one that the environment exerts on the robot.

    Raises
    ------
    WrenchError
        If a value is not finite, the last axis is not 6 or a choice is unknown.

    Examples
    --------
    10 N that push down on the tool, in the axes of the base link:

    >>> import numpy as np
    >>> from hodyn_ros import RobotModel, Wrench, inverse_dynamics
    >>> model = RobotModel.from_urdf('two_link')
    >>> values = [[0.0, 0.0, 0.0, 0.0, 0.0, -10.0]]
    >>> push = Wrench('tool', values, expressed_in='hybrid', acting='on_robot')
    >>> inverse_dynamics(model, np.zeros((3, 2)), push).round(2)
    array([[56.14, 14.81]])
    """

    link: str
    values: ArrayLike
    expressed_in: str = 'body'
    acting: str = 'on_environment'

    def __post_init__(self) -> None:
        owner = f'Wrench on {self.link!r}:'
        check_choice(f'{owner} expressed_in', self.expressed_in, EXPRESSIONS, WrenchError)
        check_choice(f'{owner} acting', self.acting, ACTINGS, WrenchError)
        values = finite_array(f'{owner} the array of values', self.values, WrenchError)
        values = np.ascontiguousarray(values)  # as compiled code reads them
        if values.ndim < 2 or values.shape[-1] != 6:
            raise WrenchError(
                f'{owner} the values have shape {values.shape}, expected (..., K-2, 6): moment '
                'and force and their derivatives.'
            )
        values.setflags(write=False)
        object.__setattr__(self, 'values', values)


def checked_wrenches(
    model: RobotModel, wrenches: Wrench | Sequence[Wrench] | None, orders: int
) -> tuple[Wrench, ...]:
    """Wrenches as a tuple.

    Parameters
    ----------
    model : RobotModel
    wrenches : Wrench, sequence of Wrench, or None
    orders : int
        Rows that their values must have.

    Raises
    ------
    WrenchError
        If something is no wrench, is on an unknown link or has another number of orders.
    """
    if wrenches is None:
        return ()
    try:
        listed = (wrenches,) if isinstance(wrenches, Wrench) else tuple(wrenches)
    except TypeError:
        raise WrenchError(
            f'wrench is {wrenches!r}, expected hodyn_ros.Wrench or a sequence of them.'
        ) from None
    for wrench in listed:
        if not isinstance(wrench, Wrench):
            raise WrenchError(
                f'wrench holds a {type(wrench).__name__}, expected hodyn_ros.Wrench or a sequence '
                'of them. Positions, velocities and accelerations are one argument, the motion: '
                f'{stacked()}.'
            )
        try:
            model.link(wrench.link)
        except ModelError as error:
            raise WrenchError(f'Wrench on an unknown link. {error}') from error
        given = np.shape(wrench.values)[-2]
        if given != orders:
            raise WrenchError(
                f'Wrench on {wrench.link!r}: the values have shape {np.shape(wrench.values)} with '
                f'{given} orders, expected (..., {orders}, 6): as many orders as the efforts, '
                'K-2 for a motion with K.'
            )
    return listed


def loads_of(
    model: RobotModel,
    wrenches: Wrench | Sequence[Wrench] | None,
    orders: int | None = None,
) -> Callable[[int], Loads]:
    """Wrenches as `Arguments` takes them, checked to have so many orders, by default K - 2."""

    def checked(K: int) -> Loads:
        listed = checked_wrenches(model, wrenches, K - 2 if orders is None else orders)
        return [
            (Attachment(x.link, x.expressed_in, x.acting), np.asarray(x.values))
            for x in listed
        ]

    return checked


def wrenches_of(loads: Loads, orders: int) -> list[Wrench] | None:
    """Wrenches with so many orders; None if there are none."""
    return [
        Wrench(link.link, values[..., :orders, :], link.expressed_in, link.acting)
        for link, values in loads
    ] or None


def wrenches_on_bodies(
    model: RobotModel, coordinates: Array, wrenches: Loads
) -> dict[int, Array]:
    """Sum of the wrenches that each body exerts on the environment, in its own frame.

    From joint motions (N, K, n_bodies) and wrenches with their values (N, K-2, 6) at hand; those
    on the base need no joint effort and are left out.
    """
    sums: dict[int, Array] = {}
    poses = Jet([])
    if any(wrench.expressed_in != 'body' for wrench, _ in wrenches):
        poses = poses_in_base(model, Jet.along(coordinates[:, :-2], 1))
    for wrench, values in wrenches:
        body, frame = model.link(wrench.link)
        if body == BASE:
            continue
        if wrench.expressed_in == 'body':
            W = wrench_from_frame(values, frame)
        else:
            R, r = rotations_and_origins(part(poses, np.s_[:, body]))
            moment, force = (Jet.along(values[..., half], 1) for half in np.s_[:3, 3:])
            if wrench.expressed_in == 'spatial':
                moment = moment - cross(r, force)
            moment, force = (matvec(transpose(R), vector) for vector in (moment, force))
            if wrench.expressed_in == 'hybrid':
                moment = moment + cross(frame[:3, 3], force)
            W = np.concatenate([moment.array(1), force.array(1)], axis=-1)
        sign = 1.0 if wrench.acting == 'on_environment' else -1.0
        sums[body] = sums[body] + sign * W if body in sums else sign * W
    return sums


# --- Force-torque sensors --------------------------------------------------------------------


def wrench_from_frame(values: Array, frame: Array) -> Array:
    """Bring a wrench from a frame into the one in which the pose of that frame is given.

    Source: Mueller 2021, eq. (37), Ad^-T. The pose is constant: derivatives are transformed alike.

    Parameters
    ----------
    values : ndarray, shape (..., 6)
        (moment, force) in the axes and about the origin of the frame [N m], [N], or derivatives.
    frame : ndarray, shape (4, 4)
        Pose of the frame.

    Examples
    --------
    10 N along z, measured by a sensor 0.2 m away along x:

    >>> import numpy as np
    >>> from hodyn_ros.dynamics import wrench_from_frame
    >>> frame = np.eye(4)
    >>> frame[0, 3] = 0.2
    >>> wrench_from_frame(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 10.0]), frame)
    array([ 0., -2.,  0.,  0.,  0., 10.])
    """
    transformed: Array = values @ se3.Ad(se3.inverse(frame))
    return transformed


def tool_weight(
    pose: Array,
    twist: Array,
    gravity: ArrayLike,
    mass: float,
    center_of_mass: ArrayLike,
    expressed_in: str = 'body',
) -> Array:
    """Weight of a tool on a link, and its time derivatives as the link moves.

    Parameters
    ----------
    pose : ndarray, shape (..., 4, 4)
        Pose of the link in the base link.
    twist : ndarray, shape (..., K, 6)
        Twist of the link in body expression and its time derivatives; K may be 0. Pose and twist
        are those of `forward_kinematics(model, motion[..., :K + 1, :], link)`.
    gravity : array-like, shape (3,)
        Gravitational acceleration in base link axes [m/s^2].
    mass : float
        [kg]
    center_of_mass : array-like, shape (3,)
        Centre of mass of the tool in the link frame [m].
    expressed_in : {'body', 'spatial'}
        body: link axes, about the link origin; spatial: base link axes, about its origin.

    Returns
    -------
    ndarray, shape (..., K + 1, 6)
        Entry m is the m-th time derivative of the coordinates (moment, force) of the wrench that
        gravity exerts on the tool [N m/s^m], [N/s^m].

    Examples
    --------
    >>> from hodyn_ros import RobotModel, forward_kinematics
    >>> from hodyn_ros.dynamics import tool_weight
    >>> model = RobotModel.from_urdf('two_link')
    >>> pose, twist = forward_kinematics(model, [[0.0, 0.0], [1.0, 0.0]], 'tool')
    >>> tool_weight(pose, twist, model.gravity, 2.0, [0.1, 0.0, 0.0]).round(2) + 0.0
    array([[  0.  ,   1.96,   0.  ,   0.  ,   0.  , -19.62],
           [  0.  ,   0.  ,   0.  , -19.62,   0.  ,   0.  ]])
    """
    g, c = (np.asarray(vector, dtype=np.float64) for vector in (gravity, center_of_mass))
    if expressed_in == 'body':
        # d/dt (R^T g) = (R^T g) x omega
        omega, forces = Jet.along(twist[..., :3], -2), [mass * (g @ pose[..., :3, :3])]
        for k in range(len(omega)):
            forces.append(jets.leibniz(forces, omega, k, so3.cross))
        force = Jet(forces)
        moment = cross(c, force)
    else:
        # The force is constant; its lever is the centre of mass, which moves with the link.
        R, r = rotations_and_origins(poses_along(pose, twist, 'body'))
        moment = cross(r + R @ c, mass * g)
        force = jets.constant(np.broadcast_to(mass * g, moment[0].shape), len(moment))
    return np.concatenate([moment.array(-2), force.array(-2)], axis=-1)
