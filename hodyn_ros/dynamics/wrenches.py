"""Wrenches on links, given in one of three expressions, brought into body frames with derivatives.

The derivatives of the coordinates of a wrench depend on the axes and the point in which it is
expressed: with the true twist V of the body (without the base acceleration that stands for
gravity), d/dt (Ad_C^T W) = Ad_C^T dW/dt + ad_V^T Ad_C^T W, and so on for higher orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hodyn_ros.errors import ModelError, WrenchError
from hodyn_ros.kinematics.body import body_poses, body_twists
from hodyn_ros.kinematics.joints import JointTransforms
from hodyn_ros.lie import leibniz, se3
from hodyn_ros.lie.so3 import cross
from hodyn_ros.model.robot import BASE, RobotModel

Array = NDArray[np.float64]

EXPRESSIONS = ('body', 'spatial', 'hybrid')
ACTINGS = ('on_environment', 'on_robot')


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
    """

    link: str
    values: ArrayLike
    expressed_in: str = 'body'
    acting: str = 'on_environment'

    def __post_init__(self) -> None:
        for what, value, choices in (
            ('expressed_in', self.expressed_in, EXPRESSIONS),
            ('acting', self.acting, ACTINGS),
        ):
            if value not in choices:
                raise WrenchError(
                    f'Wrench on {self.link!r}: {what} is {value!r}, expected one of '
                    f'{", ".join(choices)}.'
                )
        try:
            if isinstance(self.values, np.ma.MaskedArray):
                raise TypeError('a masked array, fill it first')
            values = np.array(self.values)
            if values.dtype.kind not in 'fiu':
                raise TypeError(f'elements of type {values.dtype}')
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise WrenchError(
                f'Wrench on {self.link!r}: the values are not an array of numbers: {error}'
            ) from error
        if values.ndim < 2 or values.shape[-1] != 6:
            raise WrenchError(
                f'Wrench on {self.link!r}: the values have shape {values.shape}, expected '
                '(..., K-2, 6): moment and force and their derivatives.'
            )
        if not np.all(np.isfinite(values)):
            raise WrenchError(f'Wrench on {self.link!r}: the values hold NaN or infinite numbers.')
        values.setflags(write=False)
        object.__setattr__(self, 'values', values)


def checked_wrenches(
    model: RobotModel, wrenches: Wrench | Sequence[Wrench] | None, orders: int
) -> tuple[Wrench, ...]:
    """Wrenches as a tuple, each on a link of the model and with as many orders as needed.

    Raises
    ------
    WrenchError
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
                'of them.'
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


def wrenches_on_bodies(
    model: RobotModel, coordinates: Array, wrenches: Sequence[tuple[Wrench, Array]]
) -> dict[int, Array]:
    """Sum of the wrenches that each body exerts on the environment, in its own frame.

    Parameters
    ----------
    model : RobotModel
    coordinates : ndarray, shape (N, K, n_bodies)
        Joint motions of the bodies.
    wrenches : sequence of (Wrench, ndarray of shape (N, K-2, 6))
        Each with its values for the samples at hand.

    Returns
    -------
    dict of int to ndarray, shape (N, K-2, 6)
        For the bodies that carry a wrench; those on the base need no joint effort.
    """
    sums: dict[int, Array] = {}
    if not wrenches:
        return sums
    poses: list[Array] = []
    twists: list[Array] = []
    if any(wrench.expressed_in != 'body' for wrench, _ in wrenches):
        orders = coordinates.shape[1] - 2
        kinematic = coordinates[:, : max(orders, 2)]
        poses = body_poses(model, kinematic[:, 0])
        twists = body_twists(model, kinematic, JointTransforms(model, kinematic[:, :-1]))
    for wrench, values in wrenches:
        body, frame = model.link(wrench.link)
        if body == BASE:
            continue
        r_frame = frame[:3, 3]
        if wrench.expressed_in == 'body':
            W = values @ se3.Ad(se3.inverse(frame))
        elif wrench.expressed_in == 'spatial':
            in_body = values @ se3.Ad(poses[body])
            W = leibniz.into_moving_frame(in_body, twists[body], se3.coadjoint)
        else:
            R = poses[body][:, :3, :3]
            omega = twists[body][..., :3]
            axes = [values[..., :3] @ R, values[..., 3:] @ R]
            moment, force = (
                leibniz.into_moving_frame(part, omega, lambda w, y: cross(y, w)) for part in axes
            )
            W = np.concatenate([moment + cross(r_frame, force), force], axis=-1)
        sign = 1.0 if wrench.acting == 'on_environment' else -1.0
        sums[body] = sums[body] + sign * W if body in sums else sign * W
    return sums
