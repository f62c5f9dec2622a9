"""Numbers that change with time, as scalars for the formulas of the engine.

A number is carried as the first coefficients of its power series in time: coefficient k is the
k-th derivative over k!, so that products are plain convolutions. Formulas for one moment give all
derivatives when they are run with these numbers, at a cost that grows with the square of the order
only where two moving numbers are multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import TYPE_CHECKING, NamedTuple

from hodyn_ros.engine import formulation
from hodyn_ros.engine.formulation import JointFrame, Turn
from hodyn_ros.engine.program import Recorder
from hodyn_ros.engine.vectors import AXIS, Number, Vector, plus_cross, plus_scaled, scaled

if TYPE_CHECKING:
    from hodyn_ros.model.robot import RobotModel


class Taylor:
    """First coefficients of the power series of a number.

    A product or a sum of two has as many as the shorter one. Other numbers are constants.
    """

    __slots__ = ('coefficients',)

    def __init__(self, coefficients: Sequence[Number]) -> None:
        self.coefficients = list(coefficients)

    def __neg__(self) -> Taylor:
        return Taylor([-x for x in self.coefficients])

    def __add__(self, other: Number) -> Taylor:
        if isinstance(other, Taylor):
            return Taylor([x + y for x, y in zip(self.coefficients, other.coefficients)])
        first, *rest = self.coefficients
        return Taylor([first + other, *rest])

    __radd__ = __add__

    def __sub__(self, other: Number) -> Taylor:
        return self.__add__(-other)

    def __rsub__(self, other: Number) -> Taylor:
        return (-self).__add__(other)

    def __mul__(self, other: Number) -> Taylor:
        if not isinstance(other, Taylor):
            return Taylor([other * x for x in self.coefficients])
        count = min(len(self.coefficients), len(other.coefficients))
        return Taylor(
            [convolution(self.coefficients, other.coefficients, k) for k in range(count)]
        )

    __rmul__ = __mul__

    def rate(self) -> Taylor:
        """Differentiate; the result has one coefficient fewer."""
        return Taylor([float(k) * x for k, x in enumerate(self.coefficients)][1:])


def from_derivatives(derivatives: Sequence[Number]) -> Taylor:
    """Number from its value and time derivatives; coefficient k is derivative k over k!."""
    return Taylor([1.0 / factorial(k) * x for k, x in enumerate(derivatives)])


def derivatives(value: Number, count: int) -> list[Number]:
    """Value and time derivatives of a number that may be a constant.

    Parameters
    ----------
    value : Taylor or number
    count : int
        How many are returned, the value included; what the number does not have is zero.
    """
    found = value.coefficients[:count] if isinstance(value, Taylor) else [value]
    found = [float(factorial(k)) * x for k, x in enumerate(found)]
    return found + [0.0] * (count - len(found))


def sine_cosine(sine: Number, cosine: Number, q: Taylor) -> tuple[Taylor, Taylor]:
    """Sine and cosine of an angle, from those at the moment itself.

    s' = c q' and c' = -s q', coefficient by coefficient.
    """
    s, c = [sine], [cosine]
    rate = q.rate().coefficients
    for k in range(len(rate)):
        ds, dc = convolution(c, rate, k), convolution(s, rate, k)
        s.append(1.0 / (k + 1) * ds)
        c.append(-1.0 / (k + 1) * dc)
    return Taylor(s), Taylor(c)


def convolution(a: Sequence[Number], b: Sequence[Number], k: int) -> Number:
    """Coefficient k of the product of two power series."""
    total = a[0] * b[k]
    for j in range(1, k + 1):
        total = total + a[j] * b[k - j]
    return total


# --- Joints -------------------------------------------------------------------------------------


class JointMotion(NamedTuple):
    """Motion of the joint of a body.

    Attributes
    ----------
    joint : JointFrame
    q : Taylor
        Position.
    turn : Turn
        Sine and cosine of the angle with the offset, without rates.
    """

    joint: JointFrame
    q: Taylor
    turn: Turn

    def first(self, count: int) -> JointMotion:
        """Drop all but the first coefficients."""
        sine, cosine, q = (
            Taylor(x.coefficients[:count])
            for x in (self.turn.sine, self.turn.cosine, self.q)
        )
        return JointMotion(self.joint, q, Turn(sine, cosine, []))


def joint_motion(
    recorder: Recorder,
    model: RobotModel,
    joint: JointFrame,
    i: int,
    place: int,
    orders: int,
) -> JointMotion:
    """Motion of the joint of body i, which has a place in the inputs 'sine' and 'cosine'.

    Orders is the number of derivatives, the zeroth included.
    """
    n, j = model.n_joints, int(model.coordinate[i])
    multiplier = float(model.multiplier[i])
    values = [multiplier * recorder.input('motion', k * n + j) for k in range(orders)]
    values[0] = values[0] + float(model.offset[i])
    q = from_derivatives(values)
    sine, cosine = sine_cosine(
        recorder.input('sine', place), recorder.input('cosine', place), q
    )
    return JointMotion(joint, q, formulation.turn_of(joint, sine, cosine, [q]))


def twist_of_child(motion: JointMotion, w: Vector, v: Vector) -> tuple[Vector, Vector]:
    """Twist of a body's frame in its own axes, from that of its parent's.

    Parameters
    ----------
    motion : JointMotion
    w, v : Vector
        Angular velocity and velocity of the origin of the parent's frame, in its axes.
    """
    joint, rate = motion.joint, motion.q.rate()
    w, v = screw_of_child(motion, w, v)
    w = plus_scaled(w, joint.turn * rate, AXIS)
    return w, plus_scaled(v, joint.slide * rate, AXIS)


def screw_of_child(motion: JointMotion, w: Vector, v: Vector) -> tuple[Vector, Vector]:
    """Components of a twist for a body's frame, from those for its parent's.

    The twist is the same: only axes and the point whose velocity counts change.
    """
    joint = motion.joint
    v = plus_cross(v, w, joint.d)
    w = formulation.to_child(joint, motion.turn, w)
    v = formulation.to_child(joint, motion.turn, v)
    slide = joint.slide * motion.q
    return w, plus_cross(v, w, scaled(slide, AXIS))
