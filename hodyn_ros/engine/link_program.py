"""Programs of the motion of one link: its pose, its twist and the derivatives of the twist.

Frames are those of `frames`, what moves is a jet, so that every formula below is one for a single
moment. Each expression of the twist has a recursion of its own, in which no large
terms cancel: body from the base to the link, spatial and hybrid from the link to the base.

Source: composition of rigid motions and of their velocities; joints as in Kumar and Mueller 2021,
section II.
"""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.engine.bodies import JointMotion
from hodyn_ros.engine.frames import frames_of, position, rotation
from hodyn_ros.engine.program import Part, Recorder, RobotProgram
from hodyn_ros.engine.vectors import AXIS, ZERO, Matrix, Vector
from hodyn_ros.engine.walker import joint_motions, motion_inputs
from hodyn_ros.lie import se3
from hodyn_ros.lie.jets import derivatives
from hodyn_ros.model.mechanism import BASE, Mechanism


def link_program(
    model: Mechanism, link: str, expressed_in: str, orders: int
) -> RobotProgram:
    """Program of the motion of a link that moves.

    Parameters
    ----------
    model : RobotModel
    link : str
    expressed_in : {'body', 'spatial', 'hybrid'}
        Of the twist.
    orders : int
        K, the number of derivatives in the motion, the zeroth included.

    Returns
    -------
    RobotProgram
        Outputs: 'pose', the matrix row by row, and 'twist', derivative k of coordinate j at 6 k +
        j. The bodies are those on the way from the base to the link.
    """
    recorder = Recorder()
    frames = frames_of(model)
    body, pose = model.link(link)
    way = [body]
    while model.parent[way[0]] != BASE:
        way.insert(0, int(model.parent[way[0]]))
    motions = joint_motions(model, frames, motion_inputs(recorder, model, orders), way)
    pose = se3.inverse(frames.poses[body]) @ pose
    axes, tip = rotation(pose).T, position(pose)
    base, base_position = rotation(frames.base), position(frames.base)

    x, y, p = _place_of_link(motions, axes, tip, expressed_in == 'hybrid')
    x, y, p = base @ x, base @ y, base @ p + base_position
    rows = [*zip(x, y, x.cross(y), p.order(0)), (0.0, 0.0, 0.0, 1.0)]
    recorder.outputs('pose', [number for row in rows for number in row])

    if orders > 1:
        if expressed_in == 'body':
            w, v = _twist_of_link(motions)
            v = v + w.cross(tip)
            w, v = axes @ w, axes @ v
        elif expressed_in == 'spatial':
            w, v = _twist_from_base(motions)
            w, v = base @ w, base @ v
            v = v + base_position.cross(w)
        else:
            w, _ = _twist_from_base(motions)
            w = base @ w
            v = p.rate()
        for j, number in enumerate([*w, *v]):
            for k, value in enumerate(derivatives(number, orders - 1)):
                recorder.output('twist', 6 * k + j, value)
    return RobotProgram(
        recorder.program(),
        model.n_joints,
        orders,
        Part('pose', 16, True),
        Part('twist', 6 * (orders - 1), True),
    )


def _place_of_link(
    motions: Sequence[JointMotion], axes: Matrix, tip: Vector, moves: bool
) -> tuple[Vector, Vector, Vector]:
    """First two axes of the link and its position in the first frame.

    From the axes and the position in the last frame; the position has derivatives if it moves.
    """
    # Only the hybrid twist needs derivatives of the position, none those of the axes.
    x, y, p = axes.x, axes.y, tip
    for motion in reversed(motions):
        still = motion.first(1)
        x, y = still.to_parent(x), still.to_parent(y)
        moving = motion if moves else still
        p = moving.to_parent(p + moving.slide) + motion.joint.d
    return x, y, p


def _twist_of_link(motions: Sequence[JointMotion]) -> tuple[Vector, Vector]:
    """Twist of the last frame in its own axes."""
    w, v = ZERO, ZERO
    for motion in motions:
        w, v = motion.twist_outward(w, v)
    return w, v


def _twist_from_base(motions: Sequence[JointMotion]) -> tuple[Vector, Vector]:
    """Twist of the last frame in the axes of the first, of the point at this one's origin."""
    w, v = ZERO, ZERO
    for motion in reversed(motions):
        v = v + motion.slide.cross(w)
        w, v = w + AXIS * motion.rate, v + motion.slide.rate()
        w, v = motion.to_parent(w), motion.to_parent(v)
        v = v + motion.joint.d.cross(w)
    return w, v
