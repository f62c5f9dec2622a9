"""Programs of the motion of one link: its pose, its twist and the derivatives of the twist.

Only the joints between the base and the link have a part in it. Frames are those of `frames`,
moving numbers those of `taylor`, so that every formula below is one for a single moment. Each
expression of the twist has a recursion of its own, in which no large terms cancel:

    body: from the base to the link, twist of each frame in its own axes,
    spatial: from the link to the base, twist of the link relative to each frame, of the point that
    passes the origin of this frame, in its axes, and
    hybrid: from the link to the base, angular velocity and position relative to each frame, in its
    axes. The velocity is the derivative of the position.

Source: composition of rigid motions and of their velocities; joints as in Kumar and Mueller 2021,
section II.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.engine import formulation
from hodyn_ros.engine.formulation import AXIS, ZERO, Joint, Turn, Vector
from hodyn_ros.engine.frames import Frames, position, vector, without_rounding
from hodyn_ros.engine.program import Number, Program, Recorder
from hodyn_ros.engine.taylor import Taylor, derivatives, from_derivatives, sine_cosine
from hodyn_ros.lie import se3
from hodyn_ros.model.robot import BASE, RobotModel

Array = NDArray[np.float64]

# Steps of a program, half of which an output may need, that take a few seconds to compile.
LONGEST = 40_000


class JointMotion(NamedTuple):
    """Motion of the joint of a body: position, and turn about the axis."""

    joint: Joint
    q: Taylor
    turn: Turn

    def first(self, count: int) -> JointMotion:
        """Drop all but the first coefficients."""
        sine, cosine, q = (
            Taylor(x.coefficients[:count]) for x in (self.turn.sine, self.turn.cosine, self.q)
        )
        return JointMotion(self.joint, q, Turn(sine, cosine, []))


def joint_motion(
    recorder: Recorder, model: RobotModel, joint: Joint, i: int, place: int, orders: int
) -> JointMotion:
    """Motion of the joint of a body, from the inputs 'motion', 'sine' and 'cosine'.

    Parameters
    ----------
    recorder : Recorder
    model : RobotModel
    joint : Joint
    i : int
        Index of the body.
    place : int
        Of the body in 'sine' and 'cosine'.
    orders : int
        Number of derivatives, the zeroth included.

    Returns
    -------
    JointMotion
    """
    n, j = model.n_joints, int(model.coordinate[i])
    multiplier = float(model.multiplier[i])
    values = [multiplier * recorder.input('motion', k * n + j) for k in range(orders)]
    values[0] = values[0] + float(model.offset[i])
    q = from_derivatives(values)
    sine, cosine = sine_cosine(recorder.input('sine', place), recorder.input('cosine', place), q)
    return JointMotion(joint, q, formulation.turn_of(joint, sine, cosine, [q]))


def bodies_to(model: RobotModel, body: int) -> list[int]:
    """List the bodies on the way from the base to a body, which is the last of them."""
    bodies = []
    while body != BASE:
        bodies.append(body)
        body = int(model.parent[body])
    return bodies[::-1]


def link_program(
    model: RobotModel, frames: Frames, link: str, expressed_in: str, orders: int
) -> Program:
    """Program of the motion of a link that moves.

    Parameters
    ----------
    model : RobotModel
    frames : Frames
    link : str
    expressed_in : {'body', 'spatial', 'hybrid'}
        See `kinematics.forward_kinematics`.
    orders : int
        K, the number of derivatives in the motion, the zeroth included.

    Returns
    -------
    Program
        Inputs: 'motion', derivative k of independent joint j at k n + j; 'sine' and 'cosine' of
        the positions of the joints of the bodies on the way to the link. Outputs: 'pose', the
        matrix, and 'twist', derivative k of coordinate j at 6 k + j.
    """
    recorder = Recorder(LONGEST)
    body, pose = model.link(link)
    way = bodies_to(model, body)
    motions = [
        joint_motion(recorder, model, frames.joints[i], i, place, orders)
        for place, i in enumerate(way)
    ]
    pose = se3.inverse(frames.poses[body]) @ pose
    columns, tip = _columns(pose), position(pose)
    base, base_position = _columns(frames.base), position(frames.base)

    # Only the hybrid twist needs derivatives of the position, none those of the axes.
    x, y, p = columns[0], columns[1], tip
    for motion in reversed(motions):
        still = motion.first(1)
        x, y = _to_parent(still, x), _to_parent(still, y)
        moving = motion if expressed_in == 'hybrid' else still
        p = _to_parent(moving, formulation.plus_scaled(p, moving.joint.slide * moving.q, AXIS))
        p = formulation.plus(p, motion.joint.d)
    x, y = _combined(base, x), _combined(base, y)
    p = formulation.plus(_combined(base, p), base_position)
    axes = [*(_now(axis) for axis in (x, y)), _now(p)]
    axes.insert(2, formulation.plus_cross(ZERO, axes[0], axes[1]))
    rows = [*zip(*axes), (0.0, 0.0, 0.0, 1.0)]
    recorder.outputs('pose', [number for row in rows for number in row])

    if orders > 1:
        if expressed_in == 'body':
            w, v = _twist_of_link(motions)
            v = formulation.plus_cross(v, w, tip)
            w, v = (_components(columns, vector) for vector in (w, v))
        elif expressed_in == 'spatial':
            w, v = _twist_from_base(motions)
            w, v = _combined(base, w), _combined(base, v)
            v = formulation.plus_cross(v, base_position, w)
        else:
            w, _ = _twist_from_base(motions)
            w = _combined(base, w)
            v = tuple(_rate(number) for number in p)  # type: ignore[assignment]
        for j, number in enumerate([*w, *v]):
            for k, value in enumerate(derivatives(number, orders - 1)):
                recorder.output('twist', 6 * k + j, value)
    return recorder.program()


def twist_of_child(motion: JointMotion, w: Vector, v: Vector) -> tuple[Vector, Vector]:
    """Twist of a body's frame in its own axes, from that of its parent's.

    Parameters
    ----------
    motion : JointMotion
    w, v : Vector

    Returns
    -------
    w, v : Vector
    """
    joint, rate = motion.joint, motion.q.rate()
    v = formulation.plus_cross(v, w, joint.d)
    w = formulation.to_child(joint, motion.turn, w)
    v = formulation.to_child(joint, motion.turn, v)
    # The axis is the same before and after the turn.
    slide = joint.slide * motion.q
    v = formulation.plus_cross(v, w, formulation.scaled(slide, AXIS))
    w = formulation.plus_scaled(w, joint.turn * rate, AXIS)
    return w, formulation.plus_scaled(v, joint.slide * rate, AXIS)


def _twist_of_link(motions: Sequence[JointMotion]) -> tuple[Vector, Vector]:
    """Twist of the last frame in its own axes."""
    w, v = ZERO, ZERO
    for motion in motions:
        w, v = twist_of_child(motion, w, v)
    return w, v


def _twist_from_base(motions: Sequence[JointMotion]) -> tuple[Vector, Vector]:
    """Twist of the last frame in the axes of the first, of the point at this one's origin."""
    w, v = ZERO, ZERO
    for motion in reversed(motions):
        joint, rate = motion.joint, motion.q.rate()
        slide = joint.slide * motion.q
        v = formulation.plus_cross(v, formulation.scaled(slide, AXIS), w)
        w = formulation.plus_scaled(w, joint.turn * rate, AXIS)
        v = formulation.plus_scaled(v, joint.slide * rate, AXIS)
        w, v = _to_parent(motion, w), _to_parent(motion, v)
        v = formulation.plus_cross(v, joint.d, w)
    return w, v


def _to_parent(motion: JointMotion, vector: Vector) -> Vector:
    return formulation.to_parent(motion.joint, motion.turn, vector)


def _combined(columns: Sequence[Vector], vector: Vector) -> Vector:
    """Vector with given components along given axes."""
    result = ZERO
    for axis, component in zip(columns, vector):
        result = formulation.plus_scaled(result, component, axis)
    return result


def _components(columns: Sequence[Vector], vector: Vector) -> Vector:
    """Components of a vector along given axes."""
    x, y, z = (formulation.dot(axis, vector) for axis in columns)
    return (x, y, z)


def _now(vector: Vector) -> Vector:
    x, y, z = (derivatives(number, 1)[0] for number in vector)
    return (x, y, z)


def _rate(number: Number) -> Number:
    return number.rate() if isinstance(number, Taylor) else 0.0


def _columns(pose: Array) -> list[Vector]:
    return [vector(without_rounding(axis, 1.0)) for axis in pose[:3, :3].T]

