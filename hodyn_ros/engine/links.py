"""Programs of the motion of one link: its pose, its twist, its Jacobian and their derivatives.

Frames are those of `frames`, what moves is a jet, so that every formula below is one for a single
moment. Each expression of the twist has a recursion of its own, in which no large terms cancel:
body from the base to the link, spatial and hybrid from the link to the base.

Source: composition of rigid motions and of their velocities; joints as in Kumar and Mueller 2021,
section II.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hodyn_ros.engine.bodies import JointMotion, Load
from hodyn_ros.engine.frames import frames_of, position, rotation
from hodyn_ros.engine.program import Part, Recorder, RobotProgram
from hodyn_ros.engine.vectors import AXIS, ZERO, Matrix, Vector
from hodyn_ros.engine.walker import joint_motions, motion_inputs
from hodyn_ros.lie import se3
from hodyn_ros.lie.jets import derivatives
from hodyn_ros.model.mechanism import Mechanism


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
    recorder = Recorder()
    chain = _Chain.to(recorder, model, link, K)
    _, joints, axes, tip, base, origin = chain
    p = _record_pose(recorder, chain, expressed_in == 'hybrid')
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


def jacobian_program(
    model: Mechanism, link: str, expressed_in: str, K: int
) -> RobotProgram:
    """Program of the Jacobian of a link that moves.

    Its columns are the screws of the joints: with an axis z and an arm from the joint to the point
    whose velocity counts, (z, z x arm).

    Parameters
    ----------
    model : RobotModel
    link : str
    expressed_in : {'body', 'spatial', 'hybrid'}
        Of the twist.
    K : int
        Number of derivatives in the motion and of the Jacobian, the zeroth included.

    Returns
    -------
    RobotProgram
        Outputs: 'pose' as of `link_program`, and 'jacobian', derivative k of entry (i, j) at
        (6 k + i) n + j.
    """
    recorder, n = Recorder(), model.n_joints
    chain = _Chain.to(recorder, model, link, K)
    bodies, joints, axes, tip, base, origin = chain
    _record_pose(recorder, chain, False)
    # For every frame from the first to the last, the axes of the result seen in it.
    if expressed_in == 'body':
        frames = [axes]
        for joint in reversed(joints):
            frames.insert(0, Matrix(*map(joint.to_parent, frames[0])))
    else:
        frames = [base]
        for joint in joints:
            frames.append(Matrix(*map(joint.to_child, frames[-1])))
    ways = [
        before @ joint.joint.d + behind @ joint.slide
        for before, behind, joint in zip(frames, frames[1:], joints)
    ]
    if expressed_in == 'spatial':
        arms = [-origin - ways[0]]
        for way in ways[1:]:
            arms.append(arms[-1] - way)
    else:
        arms = [frames[-1] @ tip]
        for way in reversed(ways[1:]):
            arms.insert(0, arms[0] + way)
    columns = [(ZERO, ZERO)] * n
    for i, joint, frame, arm in zip(bodies, joints, frames[1:], arms):
        j, multiplier = int(model.coordinate[i]), float(model.multiplier[i])
        w, v = (frame @ half * multiplier for half in joint.screw)
        columns[j] = columns[j][0] + w, columns[j][1] + v + w.cross(arm)
    for j, (w, v) in enumerate(columns):
        for i, number in enumerate((*w, *v)):
            for k, value in enumerate(derivatives(number, K)):
                recorder.output('jacobian', (6 * k + i) * n + j, value)
    return RobotProgram(
        recorder.program(),
        n,
        K,
        Part('pose', 16, True),
        Part('jacobian', 6 * K * n, True),
    )


class _Chain(NamedTuple):
    """Bodies from the base to a link, and where the link and the first frame are."""

    bodies: Sequence[int]
    joints: Sequence[JointMotion]
    axes: Matrix  # of the link in the last frame, as `tip`
    tip: Vector
    base: Matrix  # rotation of the first frame in the base link, as its `origin`
    origin: Vector

    @classmethod
    def to(cls, recorder: Recorder, model: Mechanism, link: str, K: int) -> _Chain:
        """Chain to a link, with inputs for K derivatives of the joint positions."""
        frames, bodies = frames_of(model), model.bodies_to(link)
        joints = joint_motions(model, frames, motion_inputs(recorder, model, K), bodies)
        pose = se3.inverse(frames.poses[bodies[-1]]) @ model.link(link).pose
        base = rotation(frames.base), position(frames.base)
        return cls(bodies, joints, rotation(pose).T, position(pose), *base)


def _record_pose(recorder: Recorder, chain: _Chain, moves: bool) -> Vector:
    """Position of a link in the base link, with derivatives if it moves; its pose is an output."""
    # Only the hybrid twist needs derivatives of the position, none those of the axes.
    still = [joint.first(1) for joint in chain.joints]
    x, y, p = chain.axes.x, chain.axes.y, chain.tip
    for joint in reversed(still):
        x, y = joint.to_parent(x), joint.to_parent(y)
    for joint in reversed(chain.joints if moves else still):
        p = joint.to_parent(p + joint.slide) + joint.joint.d
    x, y, p = chain.base @ x, chain.base @ y, chain.base @ p + chain.origin
    rows = [*zip(x, y, x.cross(y), p.order(0)), (0.0, 0.0, 0.0, 1.0)]
    recorder.outputs('pose', [number for row in rows for number in row])
    return p
