"""Jets: quantities that change with time, each carried as its value and time derivatives.

A formula for one moment gives all derivatives when it is run with jets. There are two rules. For
products it is Leibniz's,

    (f g)^(k) = sum over j of binomial(k, j) f^(j) g^(k-j),

for anything that is linear in both factors. For components in a frame that moves it is the rule of
the turn: with a map T(t) into the moving frame, dT/dt = O T,

    d/dt (T y) = T dy/dt + O T y,

which takes one product with each derivative of O, where Leibniz's rule takes a sum with all
derivatives of T. Source: doc/conventions.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import comb
from operator import matmul, mul
from typing import Any, overload

import numpy as np

from hodyn_ros.typing import Array

Number = Any
"""What adds, subtracts and multiplies: a number, an array, a scalar that a recorder follows."""


class Jet:
    """Value of a quantity and its time derivatives: jet[k] is the k-th.

    The entries are numbers, arrays with any leading axes or recorded scalars. Sums, differences,
    products and quotients of two jets have as many entries as the shorter one; whatever is no jet
    is a constant. `*` multiplies entry by entry, `@` multiplies matrices; `product` does any other
    product.

    Parameters
    ----------
    derivatives : iterable
        The value first. Of an array, the entries along its first axis.

    Examples
    --------
    Of x = t^2 at t = 3, the square and its derivatives:

    >>> x = Jet([9.0, 6.0, 2.0])
    >>> x * x
    Jet([81.0, 108.0, 108.0])
    >>> x * x / x
    Jet([9.0, 6.0, 2.0])
    """

    __slots__ = ('_derivatives',)
    __array_ufunc__ = None  # leave products with arrays to this class

    def __init__(self, derivatives: Iterable[Number]) -> None:
        self._derivatives = list(derivatives)

    @classmethod
    def along(cls, array: Array, axis: int) -> Jet:
        """Jet whose k-th derivative is entry k of an array along an axis."""
        return cls(np.moveaxis(array, axis, 0))

    def array(self, axis: int) -> Array:
        """Array with the derivatives along a new axis; entries broadcast."""
        return np.stack(np.broadcast_arrays(*self._derivatives), axis=axis)

    def __len__(self) -> int:
        return len(self._derivatives)

    def __iter__(self) -> Iterator[Number]:
        return iter(self._derivatives)

    @overload
    def __getitem__(self, index: int) -> Number: ...
    @overload
    def __getitem__(self, index: slice) -> Jet: ...
    def __getitem__(self, index: int | slice) -> Number:
        found = self._derivatives[index]
        return Jet(found) if isinstance(index, slice) else found

    def __repr__(self) -> str:
        return f'Jet({self._derivatives})'

    def rate(self) -> Jet:
        """Differentiate by time; the result has one entry fewer."""
        return self[1:]

    def map(self, function: Callable[[Number], Number]) -> Jet:
        """Apply a linear function, such as `se3.ad`, to each derivative."""
        return Jet(map(function, self))

    def __neg__(self) -> Jet:
        return Jet([-x for x in self])

    def __add__(self, other: Number) -> Jet:
        if isinstance(other, Jet):
            return Jet([x + y for x, y in zip(self, other)])
        return Jet([*(x + other for x in self[:1]), *self[1:]])

    __radd__ = __add__

    def __sub__(self, other: Number) -> Jet:
        return self.__add__(-other)

    def __rsub__(self, other: Number) -> Jet:
        return (-self).__add__(other)

    def __mul__(self, other: Number) -> Jet:
        return product(self, other, mul)

    def __rmul__(self, other: Number) -> Jet:
        return Jet([other * x for x in self])

    def __matmul__(self, other: Number) -> Jet:
        return product(self, other, matmul)

    def __rmatmul__(self, other: Number) -> Jet:
        return Jet([other @ x for x in self])

    def __truediv__(self, other: Number) -> Jet:
        if not isinstance(other, Jet):
            return Jet([x / other for x in self])
        return quotient(self, other, lambda x: x / other[0], mul)

    def __rtruediv__(self, other: Number) -> Jet:
        return constant(other, len(self)) / self


def constant(value: Number, count: int) -> Jet:
    """Jet of a constant, with so many entries."""
    return Jet([value, *[0.0 * value] * (count - 1)][:count])


def derivative(value: Number, k: int) -> Number:
    """Derivative k of a jet or of a constant; one that it does not have is 0.0."""
    if isinstance(value, Jet):
        return value[k] if k < len(value) else 0.0
    return 0.0 if k else value


def derivatives(value: Number, count: int) -> list[Number]:
    """First entries of a jet or of a constant, see `derivative`."""
    return [derivative(value, k) for k in range(count)]


def product(a: Number, b: Number, of: Callable[[Number, Number], Number]) -> Jet:
    """Product of a jet with a jet or a constant, in this order.

    Parameters
    ----------
    a, b : Jet or constant
        At least one is a jet.
    of : callable
        Product of two entries, linear in both, such as `so3.cross`.
    """
    if not isinstance(a, Jet):
        return Jet([of(a, y) for y in b])
    if not isinstance(b, Jet):
        return Jet([of(x, b) for x in a])
    return Jet([leibniz(a, b, k, of) for k in range(min(len(a), len(b)))])


def leibniz(
    a: Jet | Sequence[Number],
    b: Jet | Sequence[Number],
    k: int,
    of: Callable[[Number, Number], Number] = mul,
) -> Number:
    """Derivative k of a product, by Leibniz's rule.

    Parameters
    ----------
    a, b : Jet or sequence
        Factors and their derivatives, up to k at least.
    k : int
    of : callable
        Product of two entries, linear in both.
    """
    total: Number = None
    square = a is b and of is mul
    for j in range(k // 2 + 1):
        weight, alone = comb(k, j), 2 * j == k
        if alone or square:
            # Multiples of an entry serve many products, so that a recorder has them once.
            weight = weight if alone else 2 * weight
            term = of(a[j] if weight == 1 else float(weight) * a[j], b[k - j])
        else:
            term = of(a[j], b[k - j]) + of(a[k - j], b[j])
            term = term if weight == 1 else float(weight) * term
        total = term if total is None else total + term
    return total


@lru_cache(maxsize=64)
def binomials(count: int) -> Array:
    """Binomial coefficients, read-only: [k, j] = k! / (j! (k - j)!), zero for j > k."""
    table = np.array([[float(comb(k, j)) for j in range(count)] for k in range(count)])
    table.setflags(write=False)
    return table.reshape(count, count)


def quotient(
    b: Jet,
    a: Jet,
    solve: Callable[[Number], Number],
    of: Callable[[Number, Number], Number] = matmul,
) -> Jet:
    """Jet x with a x = b.

    Parameters
    ----------
    b, a : Jet
    solve : callable
        Finds y of a[0] y = r from r, such as `functools.partial(np.linalg.solve, a[0])`.
    of : callable
        Product of a and x.
    """
    x: list[Number] = []
    for k in range(min(len(a), len(b))):
        x.append(solve(remainder(b[k], a, x, k, of)))
    return Jet(x)


def remainder(
    b: Number,
    a: Jet,
    x: Sequence[Number],
    k: int,
    of: Callable[[Number, Number], Number] = matmul,
) -> Number:
    """What a[0] times derivative k of x is, where a x has the derivative b of this order.

    That is Leibniz's rule with the one term left out that has the unknown derivative.

    Parameters
    ----------
    b : Number
        Derivative k alone.
    a : Jet
        k + 1 entries at least.
    x : sequence
        Derivatives below k.
    k : int
    of : callable
        Product of a and x.
    """
    for j in range(1, k + 1):
        b = b - float(comb(k, j)) * of(a[j], x[k - j])
    return b


def compose(derivatives: Jet | Sequence[Number], x: Jet) -> Jet:
    """Jet of f(x(t)), from f and its derivatives by x, as many as x has.

    With g_j = f^(j)(x(t)), d/dt g_j = g_(j+1) dx/dt. This is Faa di Bruno's formula without its
    partitions.
    """
    if not len(x):
        return x
    rate, g = x.rate(), Jet([])
    for value in reversed(derivatives[: len(x)]):
        g = Jet([value, *g * rate])
    return g


# --- Functions ----------------------------------------------------------------------------------


def _tanh_slope(x: Array) -> Array:
    """Derivative of tanh, as precise far out as near zero."""
    decay = np.exp(-2.0 * np.abs(x))
    return 4.0 * decay / (1.0 + decay) ** 2


FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    'sine': np.sin,
    'cosine': np.cos,
    'tanh': np.tanh,
    'tanh_slope': _tanh_slope,
    'exp': np.exp,
    'sign': np.sign,
}
"""Functions of numbers and arrays, by the names under which recorded scalars record them."""


def evaluate(name: str, x: Number) -> Number:
    """One of the `FUNCTIONS` of a number, an array or a recorded scalar, without derivatives."""
    record = getattr(x, 'function', None)
    return record(name) if record else FUNCTIONS[name](x)


def sine_cosine(angle: Jet) -> tuple[Jet, Jet]:
    """Jets of the sine and the cosine of an angle [rad].

    From s' = c q' and c' = -s q'.
    """
    sine, cosine = evaluate('sine', angle[0]), evaluate('cosine', angle[0])
    return _waves(angle.rate(), sine, cosine, lambda x: -x)


def sinh_cosh(x: Jet) -> tuple[Jet, Jet]:
    """Jets of the hyperbolic sine and cosine, from s' = c x' and c' = s x'."""
    return _waves(x.rate(), np.sinh(x[0]), np.cosh(x[0]), lambda x: x)


def _waves(
    rate: Jet, sine: Number, cosine: Number, sign: Callable[[Number], Number]
) -> tuple[Jet, Jet]:
    """Jets of s and c with s' = c x' and c' = +-s x'."""
    s, c = [sine], [cosine]
    for k in range(len(rate)):
        rises, falls = leibniz(c, rate, k), leibniz(s, rate, k)
        s.append(rises)
        c.append(sign(falls))
    return Jet(s), Jet(c)


def tanh(x: Jet) -> Jet:
    """Jet of the hyperbolic tangent.

    From y' = s x', where s = 1 - y^2 has the derivatives of -y^2.
    """
    y, slope = [evaluate('tanh', x[0])], [evaluate('tanh_slope', x[0])]
    rate = _effective(x.rate(), slope[0])
    for k in range(len(rate)):
        if k:
            slope.append(-leibniz(y, y, k))
        y.append(leibniz(slope, rate, k))
    return Jet(y)


def exp(x: Jet) -> Jet:
    """Jet of the exponential function, from y' = y x'."""
    y = [evaluate('exp', x[0])]
    rate = _effective(x.rate(), y[0])
    for k in range(len(rate)):
        y.append(leibniz(y, rate, k))
    return Jet(y)


def _effective(rate: Jet, slope: Number) -> Jet:
    """Rate of an argument; zero where the slope underflows, since the rate may overflow there."""
    if hasattr(slope, 'function'):
        return rate
    return rate.map(lambda x: np.where(slope == 0.0, 0.0, x))


# --- Frames that move ---------------------------------------------------------------------------

Components = tuple[Number, ...]


def turned(
    mapped: Components,
    rate: Callable[[int, Components], Components],
    count: int | None = None,
) -> Components:
    """Components in a frame that moves, by the rule of the turn.

    With u_j = T y^(j), d/dt u_j = u_(j+1) + O u_j. Collecting all terms with the same derivative
    of O leaves one product with each:

        u_j^(k) = u_(j+k) + sum_i O^(i) sum_m binomial(k-1-m, i) u_(j+m)^(k-1-m-i).

    Parameters
    ----------
    mapped : tuple of jets and constants
        Components y of any number, to which T at the moment was applied as if it were constant:
        derivative j is u_j.
    rate : callable
        O^(i) u from i and u; asked for i below the number of derivatives.
    count : int, optional
        Number of entries at most, the value included; by default as many as all jets have.

    Returns
    -------
    tuple of Jet
        T y; the components as they are if they are constant and there is no derivative.
    """
    known = [len(x) for x in mapped if isinstance(x, Jet)]
    if not known and count in (None, 1):
        return mapped
    count = min(known if count is None else [count, *known])
    u = [*zip(*(derivatives(x, count) for x in mapped))]
    # found[j][k] is u_j^(k).
    found = [[x] for x in u]
    for k in range(1, count):
        for j in range(count - k):
            value = u[j + k]
            for i in range(k):
                terms = [
                    (comb(k - 1 - m, i), found[j + m][k - 1 - m - i]) for m in range(k - i)
                ]
                both = zip(value, rate(i, _weighted(terms)))
                value = tuple(x + y for x, y in both)
            found[j].append(value)
    return tuple(Jet(x) for x in zip(*found[0]))


def _weighted(terms: Sequence[tuple[int, Components]]) -> Components:
    """Sum of vectors with weights."""
    total: Components = ()
    for weight, u in terms:
        part = u if weight == 1 else tuple(float(weight) * x for x in u)
        total = tuple(x + y for x, y in zip(total, part)) if total else part
    return total
