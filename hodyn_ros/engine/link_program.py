"""Programs of the motion of one link: its pose, its twist, its Jacobian and their derivatives.

Frames are those of `frames`, what moves is a jet, so that every formula below is one for a single
moment. Each expression of the twist has a recursion of its own, in which no large
terms cancel: body from the base to the link, spatial and hybrid from the link to the base.

Source: composition of rigid motions and of their velocities; joints as in Kumar and Mueller 2021,
section II.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hodyn_ros.engine.bodies import JointMotion
from hodyn_ros.engine.frames import frames_of, position, rotation
from hodyn_ros.engine.program import Part, Recorder, RobotProgram
from hodyn_ros.engine.vectors import AXIS, ZERO, Matrix, Vector
from hodyn_ros.engine.walker import joint_motions, motion_inputs
from hodyn_ros.lie import se3
from hodyn_ros.lie.jets import derivatives
from hodyn_ros.model.mechanism import Mechanism


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
    chain = _Chain.to(recorder, model, link, orders)
    _, motions, axes, tip, base, base_position = chain
    p = _record_pose(recorder, chain, expressed_in == 'hybrid')
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


def jacobian_program(
    model: Mechanism, link: str, expressed_in: str, orders: int
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
    orders : int
        K, the number of derivatives in the motion and of the Jacobian, the zeroth included.

    Returns
    -------
    RobotProgram
        Outputs: 'pose' as of `link_program`, and 'jacobian', derivative k of entry (i, j) at
        (6 k + i) n + j.
    """
    recorder, n = Recorder(), model.n_joints
    chain = _Chain.to(recorder, model, link, orders)
    bodies, motions, axes, tip, base, base_position = chain
    _record_pose(recorder, chain, False)
    # For every frame from the first to the last, the axes of the result seen in it.
    if expressed_in == 'body':
        frames = [axes]
        for motion in reversed(motions):
            frames.insert(0, Matrix(*map(motion.to_parent, frames[0])))
    else:
        frames = [base]
        for motion in motions:
            frames.append(Matrix(*map(motion.to_child, frames[-1])))
    ways = [
        before @ motion.joint.d + behind @ motion.slide
        for before, behind, motion in zip(frames, frames[1:], motions)
    ]
    if expressed_in == 'spatial':
        arms = [-base_position]
        for way in ways:
            arms.append(arms[-1] - way)
        del arms[0]
    else:
        arms = [frames[-1] @ tip]
        for way in reversed(ways[1:]):
            arms.insert(0, arms[0] + way)
    columns = {j: (ZERO, ZERO) for j in range(n)}
    for i, motion, frame, arm in zip(bodies, motions, frames[1:], arms):
        j, multiplier = int(model.coordinate[i]), float(model.multiplier[i])
        w, v = (frame @ half * multiplier for half in motion.screw)
        columns[j] = columns[j][0] + w, columns[j][1] + v + w.cross(arm)
    for j, (w, v) in columns.items():
        for i, number in enumerate([*w, *v]):
            for k, value in enumerate(derivatives(number, orders)):
                recorder.output('jacobian', (6 * k + i) * n + j, value)
    return RobotProgram(
        recorder.program(),
        n,
        orders,
        Part('pose', 16, True),
        Part('jacobian', 6 * orders * n, True),
    )


class _Chain(NamedTuple):
    """Bodies from the base to a link, and where the link and the first frame are."""

    bodies: Sequence[int]
    motions: Sequence[JointMotion]
    axes: Matrix  # of the link in the last frame, as `tip`
    tip: Vector
    base: Matrix  # rotation of the first frame in the base link, as `base_position`
    base_position: Vector

    @classmethod
    def to(cls, recorder: Recorder, model: Mechanism, link: str, orders: int) -> _Chain:
        """Chain to a link, with inputs for so many derivatives of the joint positions."""
        frames, bodies = frames_of(model), model.bodies_to(link)
        inputs = motion_inputs(recorder, model, orders)
        motions = joint_motions(model, frames, inputs, bodies)
        pose = se3.inverse(frames.poses[bodies[-1]]) @ model.link(link).pose
        base = rotation(frames.base), position(frames.base)
        return cls(bodies, motions, rotation(pose).T, position(pose), *base)


def _record_pose(recorder: Recorder, chain: _Chain, moves: bool) -> Vector:
    """Position of a link in the base link, with derivatives if it moves; its pose is an output."""
    base = chain.base
    x, y, p = _place_of_link(chain.motions, chain.axes, chain.tip, moves)
    x, y, p = base @ x, base @ y, base @ p + chain.base_position
    rows = [*zip(x, y, x.cross(y), p.order(0)), (0.0, 0.0, 0.0, 1.0)]
    recorder.outputs('pose', [number for row in rows for number in row])
    return p


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
