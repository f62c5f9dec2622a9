"""Programs of one robot, all constants folded in: its joint efforts, with wrenches and friction.

Smooth friction laws are steps of tanh: with x linear in the velocity,

    Coulomb: level tanh(x),   Sigmoid: phi1 / 2 (tanh(x) - tanh(x at rest)),

since 1 / (1 + exp(-2 x)) = (1 + tanh(x)) / 2. So is the decay of Stribeck friction, with y the
square of the velocity over twice that of the law: exp(-2 y) = tanh'(y) / (1 + tanh(y))^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from math import tanh
from typing import NamedTuple

from hodyn_ros.checks import Array
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
from hodyn_ros.engine.frames import Frames, frames, frames_of, rotation, vector
from hodyn_ros.engine.frames import position as frame_position
from hodyn_ros.engine.program import (
    Attachment,
    Part,
    Recorder,
    RobotProgram,
    StraightLineProgram,
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
from hodyn_ros.lie.jets import Jet, derivatives, leibniz, turned
from hodyn_ros.model.friction import (
    LAWS,
    Coulomb,
    FrictionLaw,
    Offset,
    Sigmoid,
    Stribeck,
    Sum,
    Viscous,
)
from hodyn_ros.model.mechanism import BASE, Mechanism
from hodyn_ros.names import listed


def effort_program(
    model: Mechanism,
    order: int,
    wrenches: Sequence[Attachment] = (),
    friction: bool = True,
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

    Returns
    -------
    RobotProgram
        Input 'wrench': of the w-th wrench, at 6 (w (order + 1) + k), the k-th derivative of moment
        and force. Output 'effort': derivative k of independent joint j at k n + j.
    """
    recorder = Recorder()
    motion = motion_inputs(recorder, model, order + 3)
    given = recorder.inputs('wrench', 6 * (order + 1) * len(wrenches))
    bodies = RigidBodies(recorder, model, frames_of(model), motion)
    efforts, _ = bodies.efforts(bodies.loads(wrenches, given))
    recorded: RecordedFriction | None = None
    if friction:
        with suppress(ModelError):
            recorded = RecordedFriction(recorder, model)
            recorded.add_to(efforts, motion)
    recorder.outputs('effort', [value for row in efforts for value in row])
    return RobotProgram(
        recorder.program(),
        range(model.n_bodies),
        order + 3,
        Part('wrench', len(given), False),
        Part('effort', model.n_joints * (order + 1), True),
        recorded.arguments() if recorded else StraightLineProgram((), ()),
        friction=recorded is not None,
    )


def moving_base_program(
    model: Mechanism, order: int, wrenches: Sequence[Attachment] = ()
) -> RobotProgram:
    """Program of the efforts, without friction, and of the wrench on a base that moves.

    Inputs: 'motion'; 'base', the twist of the base and order + 1 derivatives, 6 numbers each, and
    -g, all in link axes, then wrenches as `effort_program` has them. Output: 'effort', derivative
    k at k (n + 6): the wrench on the base and the efforts.
    """
    recorder = Recorder()
    motion = motion_inputs(recorder, model, order + 3)
    size = 6 * (order + 2)
    given: Sequence[Number] = recorder.inputs(
        'base', size + 3 + 6 * (order + 1) * len(wrenches)
    )
    w, v = load_of(given[:size])
    up = Vector(*given[size : size + 3])
    a = v.rate() + apparent_acceleration(w, v, up)
    bodies = RigidBodies(
        recorder, model, frames(model, from_link=True), motion, body_motion(w, a)
    )
    efforts, load = bodies.efforts(bodies.loads(wrenches, given[size + 3 :]))
    results: list[Number] = []
    for *of_base, row in zip(*load.n, *load.f, efforts):
        results += [*of_base, *row]
    recorder.outputs('effort', results)
    return RobotProgram(
        recorder.program(),
        range(model.n_bodies),
        order + 3,
        Part('base', len(given), False),
        Part('effort', len(results), True),
        friction=not model.friction,
    )


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
    recorder : Recorder
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
    motions : dict of int to BodyMotion
        Those of the bodies by their indices, and of the base by `BASE`.
    """

    def __init__(
        self,
        recorder: Recorder,
        model: Mechanism,
        frames: Frames,
        motion: Rows,
        base: BodyMotion | None = None,
    ) -> None:
        self._model, self.frames, self._moves = model, frames, base is not None
        self.joints, self.order = (
            joint_motions(recorder, model, frames, motion),
            len(motion) - 3,
        )
        up = -vector(frames.gravity)
        self._rest = base_motion(up, self.order)
        self.motions = self._outward(base or self._rest)

    def _outward(self, base: BodyMotion) -> dict[int, BodyMotion]:
        return outward(self._model, base, lambda i, parent: self.joints[i].outward(parent))

    @cached_property
    def relative(self) -> dict[int, BodyMotion]:
        """Motions as seen from the base."""
        return self._outward(self._rest) if self._moves else self.motions

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
        loads = {i: body.load(self.motions[i]) for i, body in enumerate(self.frames.bodies)}
        base = self.frames.base_body.load(self.motions[BASE]) if self._moves else NO_LOAD
        loads[BASE] = base
        size = len(given) // max(1, len(wrenches))
        for number, wrench in enumerate(wrenches):
            i, load = self._applied(wrench, given[number * size :][: 6 * (self.order + 1)])
            loads[i] = loads[i] + load
        return loads

    def _applied(self, wrench: Attachment, values: Sequence[Number]) -> tuple[int, Load]:
        """Body of the link of a wrench, and its load about the origin of the body's frame.

        The values are those of the wrench, six for each derivative, as given.
        """
        sign = 1.0 if wrench.acting == 'on_environment' else -1.0
        load = load_of([sign * value for value in values])
        i, pose = self._model.link(wrench.link)
        frames = self.frames
        pose = se3.inverse(frames.base if i == BASE else frames.poses[i]) @ pose
        if wrench.expressed_in == 'body':
            return i, load_in_link_axes(load, pose)
        axes, p = self.poses[i]
        w = self.relative[i].w

        def from_base(v: Vector) -> Vector:
            # Components v in axes that turn: D v = the derivatives turned - w x v.
            still = axes.T @ v
            return Vector(*turned(still, lambda k, v: Vector(*v).cross(w.order(k))))

        # From the link's origin or the base's; the arm leads there from the body's.
        arm = frame_position(pose) if wrench.expressed_in == 'hybrid' else -p
        return i, Load(from_base(load.n), from_base(load.f)).moved(arm)

    def efforts(self, loads: dict[int, Load], armature: bool = True) -> tuple[Rows, Load]:
        """Efforts of the independent joints, and the load on the base if it moves.

        Parameters
        ----------
        loads : dict of int to Load
            On all bodies and the base, by their indices; those behind each are added.
        armature : bool
            Whether the armatures of the joints move, too.
        """
        model, joints = self._model, self.joints
        inward(model, loads, lambda i, load: joints[i].inward(load), self._moves)
        efforts: Rows = [[0.0] * model.n_joints for _ in range(self.order + 1)]
        for i, joint in enumerate(joints):
            effort = joint.effort(loads[i])
            if armature:
                effort = effort + float(model.armature[i]) * joint.q[2:]
            j = int(model.coordinate[i])
            for row, value in zip(efforts, float(model.multiplier[i]) * effort):
                row[j] = row[j] + value
        return efforts, loads[BASE]


def load_in_link_axes(load: Load, pose: Array) -> Load:
    """Load about the origin and in the axes of a body's frame, from a wrench on a link of it.

    Parameters
    ----------
    load : Load
        About the origin and in the axes of the link.
    pose : ndarray, shape (4, 4)
        Of the link in the body's frame.
    """
    R = rotation(pose)
    return Load(R @ load.n, R @ load.f).moved(frame_position(pose))


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
        sine, cosine = tree.recorder.input('sine', 0), tree.recorder.input('cosine', 0)
        joint = JointMotion.at(tree.joint, tree.position(rates(tree)), sine, cosine)
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


# --- Friction -----------------------------------------------------------------------------------


def friction_laws(model: Mechanism) -> list[tuple[int, FrictionLaw]]:
    """Summands of the friction laws with the indices of their bodies.

    Raises
    ------
    ModelError
        If a law is not of this package; the message names the joint.
    """

    def terms(joint: str, law: FrictionLaw) -> list[FrictionLaw]:
        if type(law) is Sum:
            return [term for part in law.laws for term in terms(joint, part)]
        # A law that is derived from one of these may compute something else.
        if type(law) not in LAWS:
            raise ModelError(
                f'The friction law {law!r} of joint {joint!r} cannot be generated, nor its '
                'partial derivatives; the laws that can are '
                f'{listed(kind.__name__ for kind in LAWS)} and their sums. Remove it with '
                f'model.with_friction({{{joint!r}: None}}) and add it in your own code.'
            )
        return [law]

    return [
        (i, term)
        for i, joint in enumerate(model.body_names)
        if joint in model.friction
        for term in terms(joint, model.friction[joint])
    ]


class RecordedFriction:
    """Records the friction of the joints; collects the arguments of the functions that it needs.

    A `ModelError` is raised for laws that are not of this package.
    """

    def __init__(self, recorder: Recorder, model: Mechanism) -> None:
        self.recorder, self.model = recorder, model
        self._laws = friction_laws(model)
        # Arguments of tanh, and of the sign, by the place of the law.
        self._steps: dict[int, Number] = {}
        self._velocities: dict[int, Number] = {}

    def add_to(self, efforts: Rows, motion: Rows) -> None:
        """Add friction to efforts, for as many orders as they have."""
        for i, effort, _ in self.of_laws(motion[1 : len(efforts) + 1]):
            j, multiplier = int(self.model.coordinate[i]), float(self.model.multiplier[i])
            for row, value in zip(efforts, derivatives(effort, len(efforts))):
                row[j] = row[j] + multiplier * value

    def of_laws(self, velocity: Rows) -> list[tuple[int, Number, Number]]:
        """Effort of each law and its derivative by the velocity, jets or constants.

        With the body; the velocities are those of the independent joints, for each derivative.
        """
        found = []
        for which, (i, law) in enumerate(self._laws):
            j, multiplier = int(self.model.coordinate[i]), float(self.model.multiplier[i])
            if multiplier:
                moving = multiplier * Jet(row[j] for row in velocity)
                found.append((i, *self._of_law(which, law, moving)))
        return found

    def arguments(self) -> StraightLineProgram:
        """Program of the arguments."""
        recorder = self.recorder.apart()
        recorder.outputs('step', self._steps.values())
        recorder.outputs('velocity', self._velocities.values())
        return recorder.program()

    def _of_law(self, which: int, law: FrictionLaw, v: Jet) -> tuple[Number, Number]:
        """Effort, and its derivative by the velocity."""
        if isinstance(law, Viscous):
            return law.coefficient * v, law.coefficient
        if isinstance(law, Offset):
            return law.value, 0.0
        if isinstance(law, Sigmoid):
            height, scale = 0.5 * law.phi1, 0.5 * law.phi2
            shape, slope = self._step(which, scale * (v + law.phi3))
            return height * (shape - tanh(scale * law.phi3)), height * scale * slope
        assert isinstance(law, (Coulomb, Stribeck))
        shape, slope = self._direction(which, law.smoothing, v)
        if isinstance(law, Stribeck):
            x = 1.0 / law.velocity * v
            decay = self._decay(which, x)
            falling = -2.0 / law.velocity * (x * decay)
            shape, slope = decay * shape, decay * slope + falling * shape
        return law.level * shape, law.level * slope

    def _direction(self, which: int, smoothing: float, v: Jet) -> tuple[Number, Number]:
        """Give tanh(v / smoothing), or the sign of v, and its derivative by v."""
        if smoothing > 0.0:
            shape, slope = self._step(which, 1.0 / smoothing * v)
            return shape, 1.0 / smoothing * slope
        self._velocities[which] = v[0]
        index = list(self._velocities).index(which)
        return self.recorder.input('direction', index), 0.0

    def _step(self, which: int, x: Jet) -> tuple[Jet, Jet]:
        """Give tanh(x) and its derivative by x."""
        self._steps[which] = x[0]
        return step(self.recorder, list(self._steps).index(which), x.rate())

    def _decay(self, which: int, x: Jet) -> Jet:
        """Give exp(-x^2)."""
        place = -1 - which  # beside the other step of this law
        self._steps[place] = 0.5 * x[0] * x[0]
        index = list(self._steps).index(place)
        inverse = self.recorder.inverse(1.0 + self.recorder.input('shape', index), 0.0)
        decay = [self.recorder.input('slope', index) * inverse * inverse]
        rates = -(x * x).rate()
        for k in range(len(rates)):
            decay.append(leibniz(decay, rates, k))
        return Jet(decay)


def step(recorder: Recorder, index: int, rate: Jet) -> tuple[Jet, Jet]:
    """Give tanh(x), and its derivative by x.

    Parameters
    ----------
    recorder : Recorder
    index : int
        Place of tanh(x) and its derivative in the inputs 'shape' and 'slope'.
    rate : Jet
        Of x.
    """
    shape: list[Number] = [recorder.input('shape', index)]
    slope: list[Number] = [recorder.input('slope', index)]
    # tanh' = slope x' with slope = 1 - tanh^2.
    for k in range(len(rate)):
        shape.append(leibniz(slope, rate, k))
        slope.append(-leibniz(shape, shape, k + 1))
    return Jet(shape), Jet(slope)
