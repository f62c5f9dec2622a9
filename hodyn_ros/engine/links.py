"""Programs of the motion of one link: its pose, its twist and the derivatives of the twist.

Frames are those of `frames`, what moves is a jet, so that every formula below is one for a single
moment. Each expression of the twist has a recursion of its own, in which no large terms cancel:
body from the base to the link, spatial and hybrid from the link to the base.

Source: composition of rigid motions and of their velocities; joints as in Kumar and Mueller 2021,
section II.
"""

from __future__ import annotations

from collections.abc import Sequence

from hodyn_ros.engine.bodies import NO_LOAD, JointMotion, Load, of_order, rate
from hodyn_ros.engine.efforts import load_in_link_axes
from hodyn_ros.engine.frames import frames_of, position, rotation
from hodyn_ros.engine.program import LONGEST, Part, Recorder, RobotProgram
from hodyn_ros.engine.vectors import AXIS, ZERO, Vector, cross, plus, product, scaled, transposed
from hodyn_ros.engine.walker import joint_motions, motion_inputs
from hodyn_ros.lie import se3
from hodyn_ros.lie.jets import derivatives
from hodyn_ros.model.mechanism import BASE, Mechanism



def link_program(
    model: Mechanism, link: str, expressed_in: str, K: int
) -> RobotProgram:
    """Program of the motion of a link that moves.

    Parameters
    ----------
    model : RobotModel
    link : str
    expressed_in : {'body', 'spatial', 'hybrid'}
        Of the twist.
    K : int
        Number of derivatives in the motion, the zeroth included.

    Returns
    -------
    RobotProgram
        Outputs: 'pose', the matrix row by row, and 'twist', derivative k of coordinate j at 6 k +
        j. The bodies are those on the way from the base to the link.
    """
    recorder, frames = Recorder(LONGEST), frames_of(model)
    body, pose = model.link(link)
    bodies = [body]
    while model.parent[bodies[0]] != BASE:
        bodies.insert(0, int(model.parent[bodies[0]]))
    motion = motion_inputs(recorder, model, K)
    joints = joint_motions(recorder, model, frames, motion, bodies)
    tip = se3.inverse(frames.poses[body]) @ pose
    # Only the hybrid twist needs derivatives of the position, none those of the axes.
    still = [joint.first(1) for joint in joints]
    p = position(tip)
    for joint in reversed(joints if expressed_in == 'hybrid' else still):
        p = plus(joint.to_parent(plus(p, joint.slide)), joint.joint.d)
    base = rotation(frames.base)
    p = plus(product(base, p), position(frames.base))
    x, y, _ = transposed(rotation(tip))
    for joint in reversed(still):
        x, y = joint.to_parent(x), joint.to_parent(y)
    x, y = product(base, x), product(base, y)
    rows = [*zip(x, y, cross(x, y), of_order(p, 0)), (0.0, 0.0, 0.0, 1.0)]
    recorder.outputs('pose', [number for row in rows for number in row])
    if K > 1:
        if expressed_in == 'body':
            twist = load_in_link_axes(_twist_of_last(joints), se3.inverse(tip))
        else:
            twist = load_in_link_axes(_twist_from_first(joints), frames.base)
        v = rate(p) if expressed_in == 'hybrid' else twist.n
        orders = zip(*(derivatives(number, K - 1) for number in (*twist.f, *v)))
        recorder.outputs('twist', [number for order in orders for number in order])
    return RobotProgram(
        recorder.program(),
        bodies,
        K,
        Part('pose', 16, True),
        Part('twist', 6 * (K - 1), True),
    )


# A twist (w, v) changes its frame as a load with the moment v and the force w does.


def _twist_of_last(joints: Sequence[JointMotion]) -> Load:
    """Twist of the last body in its own axes."""
    w, v = ZERO, ZERO
    for joint in joints:
        w, v = joint.twist_outward(w, v)
    return Load(v, w)


def _twist_from_first(joints: Sequence[JointMotion]) -> Load:
    """Twist of the last body in the axes of the first one's parent, of the point at its origin."""
    twist = NO_LOAD
    for joint in reversed(joints):
        own = Load(rate(joint.slide), scaled(1.0, (0.0, 0.0, joint.rate)))
        twist = joint.inward(twist + own)
    return twist
