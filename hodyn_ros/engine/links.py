"""Programs of the motion of one link: its pose, its twist and the derivatives of the twist.

Frames are those of `frames`, what moves is a jet, so that every formula below is one for a single
moment. Each expression of the twist has a recursion of its own, in which no large terms cancel:
body from the base to the link, spatial and hybrid from the link to the base.

Source: composition of rigid motions and of their velocities; joints as in Kumar and Mueller 2021,
section II.
"""

from __future__ import annotations

from hodyn_ros.engine.bodies import Load
from hodyn_ros.engine.frames import frames_of, position, rotation
from hodyn_ros.engine.program import Part, Recorder, RobotProgram
from hodyn_ros.engine.vectors import AXIS, ZERO
from hodyn_ros.engine.walker import joint_motions, motion_inputs
from hodyn_ros.lie import se3
from hodyn_ros.lie.jets import derivatives
from hodyn_ros.model.mechanism import BASE, Mechanism


def link_program(model: Mechanism, link: str, expressed_in: str, K: int) -> RobotProgram:
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
    recorder, frames = Recorder(), frames_of(model)
    body, pose = model.link(link)
    bodies = [body]
    while model.parent[bodies[0]] != BASE:
        bodies.insert(0, int(model.parent[bodies[0]]))
    joints = joint_motions(model, frames, motion_inputs(recorder, model, K), bodies)
    pose = se3.inverse(frames.poses[body]) @ pose
    axes, tip = rotation(pose).T, position(pose)
    base, origin = rotation(frames.base), position(frames.base)
    # Only the hybrid twist needs derivatives of the position, none those of the axes.
    still = [joint.first(1) for joint in joints]
    x, y, p = axes.x, axes.y, tip
    for joint in reversed(still):
        x, y = joint.to_parent(x), joint.to_parent(y)
    for joint in reversed(joints if expressed_in == 'hybrid' else still):
        p = joint.to_parent(p + joint.slide) + joint.joint.d
    x, y, p = base @ x, base @ y, base @ p + origin
    rows = [*zip(x, y, x.cross(y), p.order(0)), (0.0, 0.0, 0.0, 1.0)]
    recorder.outputs('pose', [number for row in rows for number in row])
    if K > 1:
        w, v = ZERO, ZERO
        if expressed_in == 'body':
            for joint in joints:
                w, v = joint.twist_outward(w, v)
            w, v = axes @ w, axes @ (v + w.cross(tip))
        else:
            # A twist changes its frame as a load with the moment v and the force w does.
            for joint in reversed(joints):
                own = Load(v + joint.slide.rate(), w + AXIS * joint.rate)
                v, w = joint.inward(own)
            w, v = base @ w, base @ v
            v = p.rate() if expressed_in == 'hybrid' else v + origin.cross(w)
        orders = zip(*(derivatives(number, K - 1) for number in (*w, *v)))
        recorder.outputs('twist', [number for order in orders for number in order])
    return RobotProgram(
        recorder.program(),
        model.n_joints,
        K,
        Part('pose', 16, True),
        Part('twist', 6 * (K - 1), True),
    )
