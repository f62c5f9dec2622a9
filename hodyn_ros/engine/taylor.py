"""Numbers that change with time, as scalars for the formulas of the engine.

A number is carried as the first coefficients of its power series in time: coefficient k is the
k-th derivative over k!, so that products are plain convolutions. Formulas for one moment give all
derivatives when they are run with these numbers, at a cost that grows with the square of the order
only where two moving numbers are multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

Number = Any


class Taylor:
    """First coefficients of the power series of a number.

    A product or a sum of two has as many as the shorter one. Other numbers are constants.

    Parameters
    ----------
    coefficients : sequence of Number
        Any numbers but these: floats or the scalars of a `program.Recorder`.
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
    """Make a number from its value and derivatives."""
    return Taylor([1.0 / factorial(k) * x for k, x in enumerate(derivatives)])


def derivatives(value: Number, count: int) -> list[Number]:
    """Value and derivatives of a number that may be a constant."""
    found = value.coefficients[:count] if isinstance(value, Taylor) else [value]
    found = [float(factorial(k)) * x for k, x in enumerate(found)]
    return found + [0.0] * (count - len(found))


def sine_cosine(sine: Number, cosine: Number, q: Taylor) -> tuple[Taylor, Taylor]:
    """Sine and cosine of an angle.

    s' = c q' and c' = -s q', coefficient by coefficient.

    Parameters
    ----------
    sine, cosine : Number
        At the moment itself.
    q : Taylor

    Returns
    -------
    sine, cosine : Taylor
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
