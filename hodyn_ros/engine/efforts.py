"""Programs of the joint efforts of one robot, constants folded in, and of any robot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from hodyn_ros.engine.bodies import (
    NO_LOAD,
    Angle,
    BodyMotion,
    JointMotion,
    Load,
    Pose,
    base_motion,
    body_motion,
    load_of,
)
from hodyn_ros.engine.frames import Frames, frames, frames_of, position, rotation, vector
from hodyn_ros.engine.joint_friction import add_friction
from hodyn_ros.engine.program import (
    Attachment,
    Part,
    Recorder,
    RobotProgram,
)
from hodyn_ros.engine.vectors import (
    Matrix,
    Number,
    Vector,
)
from hodyn_ros.engine.walker import (
    BodyOfTree,
    Loops,
    Rows,
    inward,
    joint_motions,
    loops_of,
    motion_inputs,
    outward,
    vector_of_jets,
)
from hodyn_ros.errors import ModelError
from hodyn_ros.lie import se3
from hodyn_ros.lie.jets import Jet, derivatives, turned
from hodyn_ros.model.mechanism import BASE, Mechanism


def effort_program(
    model: Mechanism,
    order: int,
    wrenches: Sequence[Attachment] = (),
    friction: bool = True,
    moving: bool = False,
) -> RobotProgram:
    """Program of a robot's efforts.

    Parameters
    ----------
    model : Mechanism
    order : int
        Highest derivative of the efforts.
    wrenches : sequence of Attachment
    friction : bool
        Whether that of the joints is included, if all laws are of this package.
    moving : bool
        Whether the base moves.

    Returns
    -------
    RobotProgram
        Input 'wrench': if the base moves its twist and order + 1 derivatives, 6 numbers each, and
        -g, all in link axes; then of the w-th wrench, at 6 (w (order + 1) + k), the k-th
        derivative of moment and force. Output 'effort': derivative k of independent joint j at
        k n + j; if the base moves at k (n + 6) + 6 + j, behind the wrench on the base.
    """
    recorder, base = Recorder(), None
    motion = motion_inputs(recorder, model, order + 3)
    size = 6 * (order + 2) + 3 if moving else 0
    given: Sequence[Number] = recorder.inputs(
        'wrench', size + 6 * (order + 1) * len(wrenches)
    )
    if moving:
        w, v = load_of(given[: size - 3])
        apparent = apparent_acceleration(w, v, Vector(*given[size - 3 : size]))
        base = body_motion(w, v.rate() + apparent)
    own = frames(model, from_link=True) if moving else frames_of(model)
    bodies = RigidBodies(model, own, motion, base)
    efforts, load = bodies.efforts(bodies.loads(wrenches, given[size:]))
    if friction:
        friction = recorded_friction(model, efforts, motion)
    if moving:
        efforts = [[*of_base, *row] for *of_base, row in zip(*load.n, *load.f, efforts)]
    values = [value for row in efforts for value in row]
    recorder.outputs('effort', values)
    return RobotProgram(
        recorder.program(),
        model.n_joints,
        order + 3,
        Part('wrench', len(given), False),
        Part('effort', len(values), True),
        friction or not model.friction,
    )


def recorded_friction(model: Mechanism, efforts: Rows, motion: Rows) -> bool:
    """Whether the friction of the joints is added to efforts; not if a law is a user's own."""
    try:
        add_friction(model, efforts, motion[1:])
    except ModelError:
        return False
    return True


def apparent_acceleration(w: Vector, v: Vector, up: Vector) -> Vector:
    """Acceleration that a base with the twist (w, v) feels at v' = 0: w x v - g, in its axes.

    Parameters
    ----------
    w, v : Vector
        With derivatives.
    up : Vector
        -g now; it turns by up' = up x w.
    """
    turning = turned(up, lambda k, up: Vector(*up).cross(w.order(k)), len(w.x))
    return Vector(*turning) + w.cross(v)


class RigidBodies:
    """Rigid bodies of a robot in motion, on a base that may move.

    Parameters
    ----------
    model : Mechanism
    frames : Frames
    motion : Rows
        Positions of the independent joints and r + 2 derivatives, for efforts with r.
    base : BodyMotion, optional
        Of the frame that serves as base if it moves, gravity included; by default it is at rest.

    Attributes
    ----------
    joints : list of JointMotion
    order : int
        Highest derivative r.
    """

    def __init__(
        self,
        model: Mechanism,
        frames: Frames,
        motion: Rows,
        base: BodyMotion | None = None,
    ) -> None:
        self._model, self._moves = model, base is not None
        self.frames: Frames = frames
        self.joints: list[JointMotion] = joint_motions(model, frames, motion)
        self.order: int = len(motion) - 3
        self._rest = base_motion(-vector(frames.gravity), self.order)
        self._base = base or self._rest

    @cached_property
    def relative(self) -> dict[int, BodyMotion]:
        """Motions as seen from the base."""
        return outward(
            self._model, self._rest, lambda i, parent: self.joints[i].outward(parent)
        )

    @cached_property
    def poses(self) -> dict[int, Pose]:
        """Poses of the bodies and of the base."""
        joints = [joint.first(self.order + 1) for joint in self.joints]
        R, p = self.frames.base[:3, :3], self.frames.base[:3, 3]
        base = Pose(Matrix(*map(vector, R)), vector(R.T @ p))
        return outward(
            self._model,
            base,
            lambda i, parent: joints[i].pose_outward(parent),
        )

    def loads(
        self, wrenches: Sequence[Attachment] = (), given: Sequence[Number] = ()
    ) -> dict[int, Load]:
        """Loads that move the bodies, and the base if it moves, with those of wrenches.

        Parameters
        ----------
        wrenches : sequence of Attachment
        given : sequence of Number
            As `effort_program` has them, for as many orders as there are numbers.
        """
        loads: dict[int, Load] = {BASE: NO_LOAD}
        if self._moves:
            loads[BASE] = self.frames.base_body.load(self._base)

        def step(i: int, parent: BodyMotion) -> BodyMotion:
            motion = self.joints[i].outward(parent)
            # Here, since a program that is divided keeps fewer numbers of loads than of motions.
            loads[i] = self.frames.bodies[i].load(motion)
            return motion

        outward(self._model, self._base, step)
        size = len(given) // max(1, len(wrenches))
        for number, wrench in enumerate(wrenches):
            values = given[number * size :][: 6 * (self.order + 1)]
            i, load, arm = self.applied(wrench, values)
            loads[i] = loads[i] + load.moved(arm)
        return loads

    def applied(
        self, wrench: Attachment, values: Sequence[Number]
    ) -> tuple[int, Load, Vector]:
        """Body of the link of a wrench, its load in the axes of the body's frame, and the arm.

        The arm leads from the origin of this frame to the point that the load is about. The values
        are those of the wrench, six for each derivative, as given.
        """
        sign = 1.0 if wrench.acting == 'on_environment' else -1.0
        load = load_of([sign * value for value in values])
        i, pose = self._model.link(wrench.link)
        frames = self.frames
        pose = se3.inverse(frames.base if i == BASE else frames.poses[i]) @ pose
        if wrench.expressed_in == 'body':
            R = rotation(pose)
            return i, Load(R @ load.n, R @ load.f), position(pose)
        axes, p = self.poses[i]
        w = self.relative[i].w

        def from_base(v: Vector) -> Vector:
            # Components v in axes that turn: D v = the derivatives turned - w x v.
            still = axes.T @ v
            return Vector(*turned(still, lambda k, v: Vector(*v).cross(w.order(k))))

        arm = position(pose) if wrench.expressed_in == 'hybrid' else -p
        return i, Load(from_base(load.n), from_base(load.f)), arm

    def efforts(self, loads: dict[int, Load]) -> tuple[Rows, Load]:
        """Efforts of the independent joints, and the load on the base if it moves.

        Parameters
        ----------
        loads : dict of int to Load
            On all bodies and the base, by their indices; those behind each are added.
        """
        model, joints = self._model, self.joints
        inward(model, loads, lambda i, load: joints[i].inward(load), self._moves)
        efforts: Rows = [[0.0] * model.n_joints for _ in range(self.order + 1)]
        for i, joint in enumerate(joints):
            effort = joint.effort(loads[i]) + float(model.armature[i]) * joint.q[2:]
            j = int(model.coordinate[i])
            own = derivatives(float(model.multiplier[i]) * effort, self.order + 1)
            for row, value in zip(efforts, own):
                row[j] = row[j] + value
        return efforts, loads[BASE]


# --- Any tree ------------------------------------------------------------------------------------


class _State(NamedTuple):
    """State of a body: its motion, the load on it, and sine and cosine of its turn."""

    w: Vector
    a: Vector
    B: Matrix
    load: Load
    turn: Angle


def effort_loops(order: int, loaded: bool) -> Loops:
    """Loops for the efforts up to an order.

    Parameters
    ----------
    order : int
        Highest derivative of the efforts.
    loaded : bool
        Whether every body carries a wrench, given in the middle array.
    """
    count = order + 1

    def rates(tree: BodyOfTree) -> Number:
        return Jet(tree.recorder.inputs('motion', order + 3)).rate() * tree.multiplier

    def forward(tree: BodyOfTree) -> tuple[_State, _State]:
        joint = JointMotion.at(tree.joint, tree.position(rates(tree)))
        motion = joint.outward(BodyMotion(*tree.parent[:3]))
        load = tree.body.load(motion)
        if loaded:
            load = load + load_of(tree.recorder.inputs('wrench', 6 * count))
        return _State(*motion, load, (joint.sine, joint.cosine)), tree.parent

    def backward(tree: BodyOfTree) -> tuple[_State, _State]:
        own, parent, recorder = tree.own, tree.parent, tree.recorder
        joint = JointMotion(tree.joint, tree.position(rates(tree)), *own.turn)
        effort = joint.effort(own.load) + tree.armature * joint.q[2:]
        for k, value in enumerate(tree.multiplier * effort):
            recorder.output('effort', k, recorder.input('effort', k) + value)
        return own, parent._replace(load=parent.load + joint.inward(own.load))

    v = vector_of_jets(count)
    state = _State(vector_of_jets(count + 1), v, Matrix(v, v, v), Load(v, v), (0.0, 0.0))
    sizes = (order + 3, 6 * count if loaded else 0, count)
    steps = [(False, forward), (True, backward)]
    return loops_of(steps, state, sizes, ('motion', 'wrench', 'effort'))
