"""Computations of elastic joints, one source for single samples and batches.

The functions are those that Numba compiles. Until machine code is there, and where there is no
compiler, the interpreter runs them as they stand. A series holds the Taylor coefficients
x_m = x^(m) / m! of a function of time, which spares the binomials of the product rule. A drive is
a block of numbers: inertias of two motors, kind, and its law, see `springs` and `mechanisms`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.engine.engine import Compiler
from hodyn_ros.resources import compiled_function
from hodyn_ros.typing import Array

RIGID, SPRING, PAIR, LEVER = range(4)
"""Kinds of drives; from `PAIR` on they have two motors."""

OUT_OF_REACH, IRREGULAR, NOT_FINITE = 1, 2, 4
"""What may be wrong with a result; the sum of it is returned."""

# The interpreter is a thousand times slower, so each sample counts as many.
_WEIGHT = 16
_LARGEST = 1.7976931348623157e308
_EPSILON = 2.220446049250313e-16
# A value that reaches the end of a range by rounding alone is not outside of it.
ROUNDING = 1e-12
# Bisection alone would need about 60 steps for a double, 1100 if it had to find its exponent too.
_MOST_STEPS = 1200

# At the smallest stiffness that an effort allows, both springs of a pair belong together; above it
# they part like the square root of the excess. Closer than this, rounding of the stiffness would
# leave fewer than six digits of the motors' velocities.
_EDGE = 1e-5

# Series of a joint: what its motors hold, of one its effort; deflections, stiffness, and room.
_HELD, _DEFLECTED, _STIFFNESS, _ROOM, _SERIES = 0, 2, 4, 5, 11
_ROWS = tuple(range(_ROOM, _SERIES))


class _Compiler(Compiler[str, Callable[..., int]]):
    """Machine code of `_KERNELS`, by their names."""

    def make(self, request: str) -> Callable[..., int]:
        from numba import types
        from numba.extending import register_jitable

        for helper in _HELPERS:
            register_jitable(error_model='numpy', forceinline=True)(helper)
        function, arguments = _KERNELS[request]
        kinds = {'v': (types.float64, 1), 'm': (types.float64, 2), 'i': (types.int64, 2)}
        arrays = [
            types.Array(*kinds[letter.lower()], 'C', readonly=letter.islower())
            for letter in arguments
        ]
        signature = types.int64(types.int64, *arrays)
        return compiled_function(function, signature, error_model='numpy')


_compiler = _Compiler('elastic joints')


def prepare(variable: bool) -> None:
    """Have machine code from the first call on, perhaps for variable stiffness, too.

    There is a compiler. Mechanisms of variable stiffness take it seconds more.
    """
    for name in ('laws', 'springs', *['drives'] * variable):
        _compiler.prepare(name)


def _run(name: str, samples: int, *arguments: NDArray[Any]) -> int:
    """Compute, by machine code as soon as it has been asked for often enough."""
    code = _compiler.kernel(name, samples * _WEIGHT)
    if code is not None:
        return code(samples, *arguments)
    with np.errstate(all='ignore'):
        return _KERNELS[name][0](samples, *arguments)


# --- Series -------------------------------------------------------------------------------------
# They are rows of an array W, given by their numbers.


def _product(W: Any, a: Any, b: Any, c: Any) -> None:
    """Series c = a b; c may be a."""
    for m in range(W.shape[1] - 1, -1, -1):
        total = 0.0
        for j in range(m + 1):
            total += W[a, j] * W[b, m - j]
        W[c, m] = total


def _quotient(W: Any, a: Any, b: Any, c: Any) -> None:
    """Series c = a / b; c may be a."""
    for m in range(W.shape[1]):
        total = W[a, m]
        for j in range(m):
            total -= W[c, j] * W[b, m - j]
        W[c, m] = total / W[b, 0]


def _square_root(W: Any, a: Any, c: Any) -> None:
    """Series c with c^2 = a."""
    W[c, 0] = np.sqrt(W[a, 0])
    for m in range(1, W.shape[1]):
        total = W[a, m]
        for j in range(1, m):
            total -= W[c, j] * W[c, m - j]
        W[c, m] = total / (2.0 * W[c, 0])


def _angle(W: Any, n: Any, d: Any, square: Any, c: Any) -> None:
    """Series of artan n/d, square = d^2 + n^2, or artanh n/d, d^2 - n^2; its value is given."""
    for m in range(1, W.shape[1]):
        total = 0.0
        for j in range(1, m + 1):
            total += j * (W[n, j] * W[d, m - j] - W[n, m - j] * W[d, j])
        for j in range(1, m):
            total -= j * W[c, j] * W[square, m - j]
        W[c, m] = total / (m * W[square, 0])


def _polynomial(c: Any, start: Any, count: Any, W: Any, x: Any, y: Any) -> None:
    """Series y of a polynomial of a series x, by Horner's rule."""
    for m in range(W.shape[1]):
        W[y, m] = 0.0
    for i in range(count - 1, -1, -1):
        _product(W, y, x, y)
        W[y, 0] += c[start + i]


def _factorials(count: Any) -> Any:
    """Factorials of whole numbers from zero on."""
    values = np.ones(count)
    for m in range(1, count):
        values[m] = m * values[m - 1]
    return values


# --- Springs ------------------------------------------------------------------------------------


def _piece(c: Any, start: Any, count: Any, x: Any) -> Any:
    """Index of the interval of increasing numbers that a value belongs to; outer ones go on."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if c[start + middle] <= x:
            low = middle
        else:
            high = middle
    return low


def _root(c: Any, start: Any, count: Any, value: Any, low: Any, high: Any) -> Any:
    """Where an increasing polynomial has a value: Newton's method, kept inside of a bracket.

    A step that would leave it, or does not halve the one before, is replaced by a bisection.
    """
    x = min(max((value - c[start]) / c[start + 1], low), high)
    last, was_good = high - low, False
    for _ in range(_MOST_STEPS):
        f, slope = 0.0, 0.0
        for i in range(count - 1, -1, -1):
            slope = slope * x + f
            f = f * x + c[start + i]
        if f <= value:
            low = x
        if f >= value:
            high = x
        there = x - (f - value) / slope
        good = low <= there <= high and 2.0 * abs(there - x) <= abs(last)
        if not good:
            there = low + 0.5 * (high - low)
        change, rounding = there - x, _EPSILON * abs(x)
        x = there
        # Steps fall faster and faster: the next one is less than change^2 / last.
        done = was_good and good and change * change <= rounding * abs(last)
        if done or abs(change) <= 4.0 * rounding:
            break
        was_good, last = good, change
    return x


def _bend(c: Any, o: Any, W: Any) -> int:
    """Deflection of a spring, see `springs.Spring.block`, and perhaps a damper, by the effort.

    With T = D / k the spring bears F = Q - T F' of the effort Q. Coefficient m of the law along a
    deflection without its own coefficient m lacks slope times this.
    """
    count, width, least = int(c[o + 1]), int(c[o + 2]), c[o + 3]
    knots = o + 4
    ends = knots + count + 1
    origins = ends + count + 1
    x, F, f, R = _DEFLECTED, _ROOM, _ROOM + 1, W.shape[1]
    for m in range(R - 1, -1, -1):
        W[F, m] = W[_HELD, m]
        if m < R - 1 and c[o] > 0.0:
            W[F, m] -= c[o] * (m + 1) * W[F, m + 1]
    torque = min(max(W[F, 0], c[ends]), c[ends + count])
    fits = abs(W[F, 0] - torque) <= ROUNDING * abs(torque)
    piece = _piece(c, ends, count, torque)
    law, origin = origins + count + width * piece, c[origins + piece]
    low, high = c[knots + piece] - origin, c[knots + piece + 1] - origin
    if high > _LARGEST:  # where the slope is nowhere smaller than the smallest one
        high = abs(torque) / least * (1.0 + 1e-9)
        low = -high
    root = _root(c, law, width, torque, low, high)
    slope = 0.0
    for i in range(width - 1, 0, -1):
        slope = slope * root + i * c[law + i]
    for m in range(R):
        W[x, m] = 0.0
    W[x, 0] = root
    for m in range(1, R):
        lacking = W[F, m]
        if width > 2:
            _polynomial(c, law, width, W, x, f)
            lacking -= W[f, m]
        W[x, m] = lacking / slope
    W[x, 0] = min(max(origin + root, c[knots]), c[knots + count])
    return 0 if fits else OUT_OF_REACH


def _laws(N: Any, c: Any, x: Any, torque: Any) -> int:
    """Torques (N, K) of one spring along deflections (N, K), both with derivatives."""
    count, width = int(c[1]), int(c[2])
    W, factorial = np.zeros((2, x.shape[1])), _factorials(x.shape[1])
    for s in range(N):
        piece = _piece(c, 4, count, x[s, 0])
        for m in range(len(factorial)):
            W[0, m] = x[s, m] / factorial[m]
        W[0, 0] -= c[6 + 2 * count + piece]
        _polynomial(c, 6 + 3 * count + width * piece, width, W, 0, 1)
        for m in range(len(factorial)):
            torque[s, m] = W[1, m] * factorial[m]
    return 0


# --- Variable stiffness -------------------------------------------------------------------------


def _pair(c: Any, o: Any, W: Any) -> int:
    """Deflections of a pair of springs by effort Q and stiffness, see `mechanisms.Pair`.

    With s = sigma / a, y = s^2 - Q^2 and x = y - 4 k^2 both u are artanh Q / s +- artanh of the
    root of x / y, and the motors hold (Q +- s sqrt(x / y)) / 2.
    """
    k, a, shift, most = c[o], c[o + 1], c[o + 2], c[o + 3]
    Q, held, mean, half, S = _HELD, _HELD + 1, _DEFLECTED, _DEFLECTED + 1, _STIFFNESS
    y, root_y, x, root_x, more, less = _ROWS[:6]
    R, total = W.shape[1], 4.0 * k * k
    for m in range(R):
        W[S, m] /= a
        W[more, m], W[less, m] = W[S, m] + W[Q, m], W[S, m] - W[Q, m]
    _product(W, more, less, y)
    status = 0
    if not (W[y, 0] >= total and W[S, 0] > 0.0):
        status, W[y, 0] = OUT_OF_REACH, total
    for m in range(R):
        W[x, m], W[less, m] = W[y, m], 0.0
    W[x, 0] -= total
    W[less, 0] = total
    _square_root(W, y, root_y)
    _square_root(W, x, root_x)
    W[mean, 0] = np.arcsinh(W[Q, 0] / W[root_y, 0])
    W[half, 0] = np.arcsinh(W[root_x, 0] / (2.0 * k))
    _angle(W, Q, S, y, mean)
    _angle(W, root_x, root_y, less, half)
    if R > 1 and not 2.0 * W[half, 0] > _EDGE:
        status |= IRREGULAR
    _quotient(W, root_x, root_y, more)
    _product(W, more, S, more)
    for m in range(R):
        W[mean, m], W[half, m] = (
            (W[mean, m] + W[half, m]) / a,
            (W[mean, m] - W[half, m]) / a,
        )
        W[Q, m], W[held, m] = 0.5 * (W[Q, m] + W[more, m]), 0.5 * (W[Q, m] - W[more, m])
    W[mean, 0] -= shift / a
    W[half, 0] += shift / a
    if not (abs(W[mean, 0]) <= most and abs(W[half, 0]) <= most):
        status |= OUT_OF_REACH
    return status


def _lever(c: Any, o: Any, W: Any) -> int:
    """Deflection and pivot of a lever by effort Q and stiffness, see `mechanisms.AwasII`.

    With p = sigma / 2, h^2 = p^2 + Q^2 and h = G r^2, r = x / (L - x), the deflection is half of
    artan Q / p, and the pivot holds (1 + r)^2 Q^2 / (r (h + p) L).
    """
    gain, length, pitch, most, travel = c[o], c[o + 1], c[o + 2], c[o + 3], c[o + 4]
    Q, held, turn, pivot, S = _HELD, _HELD + 1, _DEFLECTED, _DEFLECTED + 1, _STIFFNESS
    squares, h, r, rest, room = _ROWS[:5]
    R, is_stiff = W.shape[1], W[S, 0] > 0.0
    for m in range(R):
        W[S, m] *= 0.5
    _product(W, S, S, squares)
    _product(W, Q, Q, room)
    for m in range(R):
        W[squares, m] += W[room, m]
    _square_root(W, squares, h)
    W[turn, 0] = np.arctan2(W[Q, 0], W[S, 0])
    _angle(W, Q, S, squares, turn)
    for m in range(R):
        W[turn, m] *= 0.5
        W[rest, m] = W[h, m] / gain
    _square_root(W, rest, r)
    for m in range(R):
        W[rest, m], W[S, m], W[squares, m] = W[r, m], W[S, m] + W[h, m], W[r, m]
    W[rest, 0] += 1.0
    _quotient(W, r, rest, pivot)
    _product(W, room, rest, held)
    _product(W, held, rest, held)
    _product(W, squares, S, squares)
    _quotient(W, held, squares, held)
    for m in range(R):
        W[pivot, m] *= length / pitch
        W[held, m] *= pitch / length
    fits = is_stiff and abs(W[turn, 0]) <= most and W[pivot, 0] * pitch <= travel
    status = 0 if fits else OUT_OF_REACH
    return status if R == 1 or W[h, 0] * W[r, 0] > 0.0 else status | IRREGULAR


# --- All joints ---------------------------------------------------------------------------------


def _is_finite(values: Any) -> Any:
    """Whether a matrix holds finite numbers only."""
    good = True
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            good &= abs(values[i, j]) <= _LARGEST
    return good


def _fill(W: Any, y: Any, x: Any, row: Any, column: Any, factorial: Any) -> None:
    """Series y of the derivatives below each other in a column, as far as they go."""
    for m in range(len(factorial)):
        W[y, m] = x[row + m, column] / factorial[m]


def _write(
    N: Any,
    s: Any,
    c: Any,
    o: Any,
    k: Any,
    j: Any,
    motor: Any,
    W: Any,
    factorial: Any,
    q: Any,
    theta: Any,
    tau: Any,
    delta: Any,
) -> None:
    """Position and torque of motor k of a joint in sample s, and its part of the deflection."""
    K, R, T = s * (len(q) // N), s * (len(theta) // N), s * (len(tau) // N)
    turns = k == 0 or c[o + 2] != LEVER
    for r in range(len(factorial)):
        x = W[_DEFLECTED + k, r] * factorial[r] if c[o + 2] != RIGID else 0.0
        theta[R + r, motor] = x + q[K + r, j] if turns else x
        if turns:  # the mean of both
            delta[R + r, j] = x if k == 0 else 0.5 * (delta[R + r, j] + x)
    for r in range(len(tau) // N):
        held = W[_HELD + k, r] * factorial[r]
        tau[T + r, motor] = c[o + k] * theta[R + r + 2, motor] + held


def _driver(variable: bool) -> Callable[..., int]:
    """Function that computes the drives of a robot, perhaps of variable stiffness among them."""

    def drive(
        N: Any,
        places: Any,
        c: Any,
        q: Any,
        Q: Any,
        S: Any,
        theta: Any,
        tau: Any,
        delta: Any,
    ) -> int:
        """Motors and deflections of joints along N samples; what is wrong, or zero.

        Parameters
        ----------
        N : int
            Samples, one behind the other along the first axes.
        places : ndarray of int, shape (j, 3)
            Joint, first motor and block of each drive.
        c : ndarray
            Blocks.
        q, Q : ndarray, shape (N K, n) and (N E, n)
            Motions and efforts, K >= R, E >= R - 2.
        S : ndarray, shape (N R, v)
            Stiffness of the v joints with two motors.
        theta, tau, delta : ndarray, shape (N R, m), (N T, m) and (N R, n)
            Positions and torques of motors, and deflections of joints; written.
        """
        E, R = len(Q) // N, len(theta) // N
        W, factorial = np.zeros((_SERIES, R)), _factorials(R)
        finite, status = _is_finite(q) and _is_finite(Q) and _is_finite(S), 0
        for s in range(N):
            count = 0
            for i in range(len(places)):
                j, first, o = places[i, 0], places[i, 1], places[i, 2]
                kind, motors = c[o + 2], 1
                _fill(W, _HELD, Q, s * E, j, factorial[: min(E, R)])
                if variable and kind >= PAIR:
                    _fill(W, _STIFFNESS, S, s * R, count, factorial)
                    inverse = _pair(c, o + 3, W) if kind == PAIR else _lever(c, o + 3, W)
                    status |= inverse
                    count, motors = count + 1, 2
                elif kind == SPRING:
                    status |= _bend(c, o + 3, W)
                for k in range(motors):
                    _write(N, s, c, o, k, j, first + k, W, factorial, q, theta, tau, delta)
        finite = finite and _is_finite(theta) and _is_finite(tau)
        return status if finite else status | NOT_FINITE

    return drive


_HELPERS = (
    _product,
    _quotient,
    _square_root,
    _angle,
    _polynomial,
    _piece,
    _root,
    _bend,
    _pair,
    _lever,
    _is_finite,
    _factorials,
    _fill,
    _write,
)

# Of the arguments: i: matrix of integers, v: vector, m: matrix; capitals: written.
_KERNELS: dict[str, tuple[Callable[..., int], str]] = {
    'laws': (_laws, 'vmM'),
    'springs': (_driver(False), 'ivmmmMMM'),
    'drives': (_driver(True), 'ivmmmMMM'),
}
laws: Callable[..., int] = partial(_run, 'laws')
springs: Callable[..., int] = partial(_run, 'springs')
drives: Callable[..., int] = partial(_run, 'drives')


def deflections(law: Array, effort: Array) -> tuple[Array, int]:
    """Deflections (N, K) of a spring along efforts (N, K), and what is wrong."""
    N, K = effort.shape
    block = np.concatenate(([0.0, 0.0, SPRING], law))
    motor, tau = np.zeros((2, N * K, 1)), np.empty((N * max(K - 2, 0), 1))
    given = np.zeros((1, 3), dtype=np.int64), block, np.zeros((N * K, 1))
    efforts = effort.reshape(-1, 1), np.empty((0, 0))
    status = springs(N, *given, *efforts, motor[0], tau, motor[1]) if N else 0
    return motor[1].reshape(N, K), status
