"""Computations of elastic joints, one source for single samples and batches.

The functions are those that Numba compiles. Until machine code is there, and where there is no
compiler, the interpreter runs them as they stand. Inside, a function of time is given by its
Taylor coefficients x_k = x^(k) / k!, which spares the binomials of the product rule. A spring is
a block of numbers: kind, ends of its range, torques at these, and what its kind needs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.engine.engine import Compiler
from hodyn_ros.resources import compiled_function
from hodyn_ros.typing import Array

RIGID, GIVEN, LINE, POLYNOMIAL, TABLE, PAIR, LEVER = range(7)
"""Kinds of springs; the deflection of one that is given has been computed before."""

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

# At the smallest stiffness that an effort allows, u_1 and u_2 belong together; above it they part
# like the square root of the excess. Closer than this, rounding of the stiffness would leave fewer
# than six digits of the motors' velocities.
_EDGE = 1e-5


class ElasticKernel:
    """A function that is compiled when it has been called often enough.

    The first argument is the number of samples. Types of the others are letters: v and m for
    vectors and matrices that are read, w for matrices that are written, j and i for vectors and
    matrices of integers.
    """

    compiled: Callable[..., int] | None = None
    """Machine code; None if there is none yet."""

    def __init__(self, function: Callable[..., int], types: str) -> None:
        self._function, self._types = function, types

    def __call__(self, samples: int, *arguments: Any) -> int:
        """Compute; arrays are contiguous."""
        if self.compiled is None:
            _compiler.kernel(self, samples * _WEIGHT)
        return (self.compiled or self.interpreted)(samples, *arguments)

    def interpreted(self, samples: int, *arguments: Any) -> int:
        """Compute without machine code."""
        with np.errstate(all='ignore'):
            return self._function(samples, *arguments)

    def make(self) -> Callable[..., int]:
        """Machine code of the function, compiled or from the disk, which is used from now on."""
        import numba

        _register()
        number, integer = numba.types.float64, numba.types.int64
        known = {
            'j': (integer, 1),
            'i': (integer, 2),
            'v': (number, 1),
            'm': (number, 2),
        }
        read = {
            k: numba.types.Array(*kind, 'C', readonly=True) for k, kind in known.items()
        }
        read['w'] = numba.types.Array(number, 2, 'C')
        signature = integer(integer, *(read[letter] for letter in self._types))
        self.compiled = compiled_function(self._function, signature, error_model='numpy')
        return self.compiled

    def prepare(self) -> None:
        """Have machine code from the first call on; there is a compiler."""
        _compiler.prepare(self)


@cache
def _register() -> None:
    """Let Numba know the functions that kernels call."""
    from numba.extending import register_jitable

    for helper in (*_INLINED, *_HELPERS):
        inline = helper in _INLINED
        register_jitable(error_model='numpy', forceinline=inline)(helper)


class _Compiler(Compiler[ElasticKernel, Callable[..., int]]):
    """Of elastic kernels."""

    def make(self, request: ElasticKernel) -> Callable[..., int]:
        return request.make()


_compiler = _Compiler('elastic joints')


# --- Laws of springs ----------------------------------------------------------------------------


def _coefficients(x: Any, h: Any, y: Any) -> None:
    """Taylor coefficients y (K,) in a time that is measured in units of h, from derivatives x."""
    factor = 1.0
    for m in range(len(y)):
        y[m] = x[m] * factor
        factor *= h / (m + 1)


def _derivatives(x: Any, h: Any, y: Any) -> None:
    """Undo `_coefficients`; x and y may be the same."""
    factor = 1.0
    for m in range(len(y)):
        y[m] = x[m] * factor
        factor *= (m + 1) / h


def _taylor(c: Any, start: Any, count: Any, x: Any, g: Any) -> None:
    """Taylor coefficients g at x of a polynomial, by Horner's rule."""
    first, second, third = 0.0, 0.0, 0.0
    for j in range(len(g)):
        g[j] = 0.0
    for i in range(count - 1, -1, -1):
        for j in range(len(g) - 1, 3, -1):
            g[j] = g[j] * x + g[j - 1]
        if len(g) > 3:
            g[3] = g[3] * x + third
        # The first ones stay in registers.
        third = third * x + second
        second = second * x + first
        first = first * x + c[start + i]
    g[0] = first
    if len(g) > 1:
        g[1] = second
    if len(g) > 2:
        g[2] = third


def _piece(c: Any, start: Any, count: Any, x: Any) -> Any:
    """Index of the interval of increasing numbers that a value belongs to; outer ones go on."""
    low, high = 0, count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if c[start + middle] <= x:
            low = middle
        else:
            high = middle
    return low


def law(c: Any, o: Any, x: Any, g: Any) -> None:
    """Taylor coefficients of the torque of a spring at a deflection.

    Parameters
    ----------
    c : ndarray
        Numbers of springs.
    o : int
        Where the block of the spring begins.
    x : float
        Deflection [rad] or [m].
    g : ndarray, shape (K,)
        Written: g[j] is the j-th derivative over j!.
    """
    if c[o] == TABLE:
        count = int(c[o + 5])
        piece = _piece(c, o + 6, count, x)
        _taylor(c, o + 6 + 2 * count + 6 * piece, 6, x - c[o + 6 + piece], g)
    else:
        _taylor(c, o + 7, int(c[o + 5]), x, g)


def _root(c: Any, start: Any, count: Any, value: Any, low: Any, high: Any, x: Any) -> Any:
    """Where an increasing polynomial has a value: Halley's method, kept inside of a bracket.

    A step that would leave it, or does not halve the one before, is replaced by a bisection.
    """
    last = high - low
    was_good = False
    for _ in range(_MOST_STEPS):
        f, slope, bend = c[start + count - 1], 0.0, 0.0
        for i in range(count - 2, -1, -1):
            bend = bend * x + slope
            slope = slope * x + f
            f = f * x + c[start + i]
        excess = f - value
        if excess <= 0.0:
            low = x
        if excess >= 0.0:
            high = x
        there = x - excess * slope / (slope * slope - excess * bend)
        good = low <= there <= high and 2.0 * abs(there - x) <= abs(last)
        if not good:
            there = low + 0.5 * (high - low)
        change = there - x
        rounding = _EPSILON * abs(x)
        x = there
        if abs(change) <= 4.0 * rounding:
            break
        # Steps fall faster and faster: the next one is less than change^2 / last.
        if was_good and good and change * change <= rounding * abs(last):
            break
        was_good, last = good, change
    return x


def _inverse(c: Any, o: Any, torque: Any) -> Any:
    """Deflection for a torque that the spring can have."""
    count = int(c[o + 5])
    if c[o] == TABLE:
        x = o + 6
        y = x + count
        piece = _piece(c, y, count, torque)
        length = c[x + piece + 1] - c[x + piece]
        part = (torque - c[y + piece]) / (c[y + piece + 1] - c[y + piece])
        start = y + count + 6 * piece
        return c[x + piece] + _root(c, start, 6, torque, 0.0, length, part * length)
    guess = torque / c[o + 8]
    # The slope is nowhere smaller than the smallest one, which bounds the deflection.
    reach = min(abs(torque) / c[o + 6] * (1.0 + 1e-9), c[o + 2])
    low, high = 0.0, 0.0
    if torque < 0.0:
        low = -reach
    if torque > 0.0:
        high = reach
    return _root(c, o + 7, count, torque, low, high, min(max(guess, low), high))


def _powers(P: Any, m: Any) -> None:
    """Coefficients m of the powers 2 to m of a function without its constant term, P[1]."""
    for j in range(2, m + 1):
        total = 0.0
        for i in range(1, m - j + 2):
            total += P[1, i] * P[j - 1, m - i]
        P[j, m] = total


def _bend(c: Any, o: Any, Q: Any, joint: Any, g: Any, P: Any, delta: Any) -> int:
    """Deflection of a spring that is no line, with its derivatives; see `drive`."""
    R = P.shape[1]
    torque = min(max(Q[0, joint], c[o + 3]), c[o + 4])
    fits = abs(Q[0, joint] - torque) <= ROUNDING * abs(torque)
    P[1, 0] = min(max(_inverse(c, o, torque), c[o + 1]), c[o + 2])
    if R > 1:
        law(c, o, P[1, 0], g)
    _coefficients(Q[:R, joint], 1.0, P[0])
    for m in range(1, R):
        rest = P[0, m]
        _powers(P, m)
        for j in range(2, m + 1):
            if g[j] != 0.0:
                rest -= g[j] * P[j, m]
        P[1, m] = rest / g[1]
    _derivatives(P[1], 1.0, delta[:, joint])
    return 0 if fits else OUT_OF_REACH


def _is_finite(values: Any) -> Any:
    """Whether a matrix holds finite numbers only."""
    good = True
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            good &= abs(values[i, j]) <= _LARGEST
    return good


def _fit(series: Any, delta: Any, N: Any, orders: Any) -> Any:
    """Whether N series have as many columns as the deflections, and so many orders at least."""
    n = series.shape[0] // N
    return series.shape[1] == delta.shape[1] and series.shape[0] == N * n and n >= orders


@cache
def drive(of_any_kind: bool) -> ElasticKernel:
    """Kernel that finds motors and deflections of joints along samples.

    Parameters
    ----------
    of_any_kind : bool
        For springs and mechanisms of all kinds, whose code takes seconds to compile; otherwise for
        rigid joints, springs that are lines, and deflections that are given.
    """

    def motors(
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
            Joint, first motor and block of each.
        c : ndarray
            Blocks: the inertias of two motors, and the spring.
        q, Q : ndarray, shape (N K, n) and (N E, n)
            Motions and efforts, with as many orders as are needed at least.
        S : ndarray, shape (N v, R)
            Stiffness, a row for each sample and each of the v joints with two motors.
        theta, tau, delta : ndarray, shape (N R, m), (N T, m) and (N R, n)
            Positions and torques of motors, and deflections of joints; written.
        """
        K, E, R, T = (
            q.shape[0] // N,
            Q.shape[0] // N,
            theta.shape[0] // N,
            tau.shape[0] // N,
        )
        if not (_fit(q, delta, N, R) and _fit(Q, delta, N, T)) or S.shape[1] < R:
            return OUT_OF_REACH
        g, P = np.zeros(max(R, 2)), np.zeros((R + 1, R))
        W, J = np.zeros((R, 12)), np.zeros((2, 12))
        # Who gives many samples has looked at them.
        finite = N > 1 or (_is_finite(q) and _is_finite(Q) and _is_finite(S))
        status, row = 0 if finite else NOT_FINITE, 0
        for s in range(N):
            q_s, Q_s = q[s * K : (s + 1) * K], Q[s * E : (s + 1) * E]
            theta_s, tau_s = theta[s * R : (s + 1) * R], tau[s * T : (s + 1) * T]
            delta_s = delta[s * R : (s + 1) * R]
            for i in range(len(places)):
                j, motor, o = places[i, 0], places[i, 1], places[i, 2]
                if of_any_kind and c[o + 2] >= PAIR:
                    status |= _vary(c, o + 2, Q_s, 0, j, S, row, W, J)
                    status |= _two_motors(c, o, j, motor, q_s, W, theta_s, tau_s, delta_s)
                    row += 1
                    continue
                if of_any_kind and c[o + 2] > LINE:
                    status |= _bend(c, o + 2, Q_s, j, g, P, delta_s)
                status |= _one_motor(c, o, j, motor, q_s, Q_s, theta_s, tau_s, delta_s)
        return status

    return ElasticKernel(motors, 'ivmmmwww')


def bends(springs: ArrayLike) -> bool:
    """Whether the block of a spring or mechanism needs the kernel for all kinds, see `drive`."""
    return bool(np.asarray(springs)[0] > LINE)


def _two_motors(
    c: Any, o: Any, j: Any, motor: Any, q: Any, W: Any, theta: Any, tau: Any, delta: Any
) -> int:
    """Motors and deflection of a joint of variable stiffness at one sample; see `drive`."""
    finite, is_pair = True, c[o + 2] == PAIR
    factorial = 1.0
    for r in range(len(theta)):
        factorial *= max(r, 1)
        at, x, y = q[r, j], W[r, 0] * factorial, W[r, 1] * factorial
        second = y + at if is_pair else y
        delta[r, j] = 0.5 * (x + y) if is_pair else x
        theta[r, motor], theta[r, motor + 1] = at + x, second
        finite &= abs(at + x) <= _LARGEST and abs(second) <= _LARGEST
    factorial = 1.0
    for r in range(len(theta) - 2):
        factorial *= max(r, 1)
        for k in range(2):
            torque = c[o + k] * theta[r + 2, motor + k]
            torque += W[r, 4 + k] * factorial
            tau[r, motor + k] = torque
            finite &= abs(torque) <= _LARGEST
    return 0 if finite else NOT_FINITE


def _one_motor(
    c: Any, o: Any, j: Any, motor: Any, q: Any, Q: Any, theta: Any, tau: Any, delta: Any
) -> int:
    """Motor and deflection of a rigid or series elastic joint at one sample; see `drive`.

    The deflection of a spring that is no line is given.
    """
    kind, compliance = c[o + 2], 0.0  # of a linear spring
    fits = finite = True
    if kind == LINE:
        compliance = 1.0 / c[o + 10]
        excess = max(Q[0, j] - c[o + 6], c[o + 5] - Q[0, j])
        fits = excess <= ROUNDING * abs(Q[0, j])
    for r in range(len(theta)):
        x = 0.0
        if kind == LINE:
            x = compliance * Q[r, j]
            if r == 0:
                x = min(max(x, c[o + 3]), c[o + 4])
        elif kind != RIGID:
            x = delta[r, j]
        delta[r, j] = x
        place = q[r, j] + x
        theta[r, motor] = place
        finite &= abs(place) <= _LARGEST
        if r > 1:
            torque = c[o] * place + Q[r - 2, j]
            tau[r - 2, motor] = torque
            finite &= abs(torque) <= _LARGEST
    return (0 if fits else OUT_OF_REACH) | (0 if finite else NOT_FINITE)


def _laws(N: Any, c: Any, x: Any, torque: Any) -> int:
    """Torques and derivatives (N, order + 1) of one spring at deflections (N,)."""
    g = np.zeros(torque.shape[1])
    for s in range(N):
        law(c, 0, x[s], g)
        _derivatives(g, 1.0, torque[s])
    return 0


# --- Variable stiffness -------------------------------------------------------------------------


def _start(c: Any, o: Any, W: Any) -> None:
    """Values of the functions that springs consist of, at the deflections W[0, 0], W[0, 1]."""
    if c[o] == PAIR:
        for i in range(2):
            u = c[o + 3 + i] * W[0, i] + c[o + 5 + i]
            W[0, 6 + i], W[0, 8 + i] = np.sinh(u), np.cosh(u)
    else:
        x, turn = c[o + 3] * W[0, 1], W[0, 0]
        W[0, 6], W[0, 7], W[0, 8] = (
            x / (c[o + 2] - x),
            np.sin(2.0 * turn),
            np.cos(2.0 * turn),
        )
        W[0, 9] = 2.0 * np.sin(turn) ** 2  # the difference would lose digits


def _springs(c: Any, o: Any, m: Any, W: Any) -> None:
    """Coefficient m of what springs do, by the laws in `vsa.mechanisms`.

    Columns of W (R, 12) are both deflections, effort, stiffness, the torques that both motors
    hold, and the functions that they consist of: of a pair the sines and cosines; of a lever
    r = x / (L - x), sin 2 d, cos 2 d, 1 - cos 2 d, r^2, r (1 + r)^2.
    """
    if c[o] == PAIR:
        W[m, 2], W[m, 3] = 0.0, 0.0
        for i in range(2):
            k, a = c[o + 1 + i], c[o + 3 + i]
            if m > 0:
                sine, cosine = 0.0, 0.0
                for j in range(1, m + 1):
                    sine += j * W[j, i] * W[m - j, 8 + i]
                    cosine += j * W[j, i] * W[m - j, 6 + i]
                W[m, 6 + i], W[m, 8 + i] = a / m * sine, a / m * cosine
            W[m, 4 + i] = k * W[m, 6 + i]
            W[m, 2] += W[m, 4 + i]
            W[m, 3] += a * k * W[m, 8 + i]
        return
    gain, scale = c[o + 1], c[o + 3] / c[o + 2]
    if m > 0:
        ratio, sine, cosine = W[m, 1], 0.0, 0.0
        for j in range(1, m + 1):
            ratio += W[j, 1] * W[m - j, 6]
            sine += j * W[j, 0] * W[m - j, 8]
            cosine -= j * W[j, 0] * W[m - j, 7]
        W[m, 6] = ratio * (1.0 + W[0, 6]) * scale
        W[m, 7], W[m, 8], W[m, 9] = 2.0 / m * sine, 2.0 / m * cosine, -2.0 / m * cosine
    W[m, 10] = _product(W, 6, 6, m)
    W[m, 11] = W[m, 6] + 2.0 * W[m, 10] + _product(W, 6, 10, m)
    W[m, 2] = gain * _product(W, 10, 7, m)
    W[m, 3] = 2.0 * gain * _product(W, 10, 8, m)
    W[m, 4] = W[m, 2]
    W[m, 5] = gain * scale * _product(W, 11, 9, m)


def _product(W: Any, f: Any, g: Any, m: Any) -> Any:
    """Coefficient m of the product of two columns."""
    total = 0.0
    for j in range(m + 1):
        total += W[j, f] * W[m - j, g]
    return total


def _invert_pair(c: Any, o: Any, Q: Any, S: Any, W: Any) -> int:
    """Start W[0] of two hyperbolic springs for an effort and a stiffness.

    For a_1 = a_2 by the law of cosines of the hyperbolic plane. In general, with s = sinh u_1,
    which gives u_2 by the effort, the stiffness a_1 k_1 sqrt(1 + s^2) +
    a_2 sqrt(k_2^2 + (Q - k_1 s)^2) is convex, and is at least (a_1 + a_2) k_1 s - a_2 Q: from
    where that has the stiffness Newton's method falls to the root and does not pass it.
    """
    k1, k2, a1, a2 = c[o + 1], c[o + 2], c[o + 3], c[o + 4]
    status = 0
    if a1 == a2:
        stiff, total = S / a1, k1 + k2
        square = (stiff - Q) * (stiff + Q)
        if not (square >= total * total and stiff > 0.0):
            status, square = OUT_OF_REACH, total * total
        half = np.arcsinh(np.sqrt((square - total * total) / (4.0 * k1 * k2)))
        mean = np.arcsinh(Q / np.sqrt(square))
        if k1 != k2:
            mean -= np.arctanh((k1 - k2) / total * np.tanh(half))
        W[0, 0], W[0, 1] = mean + half, mean - half
        s, other = np.sinh(W[0, 0]), np.sinh(W[0, 1])
        cosh1, cosh2 = np.sqrt(1.0 + s * s), np.sqrt(1.0 + other * other)
        ahead = 2.0 * half - _EDGE
    else:
        s = (S + a2 * Q) / ((a1 + a2) * k1)
        for _ in range(_MOST_STEPS):
            other = (Q - k1 * s) / k2
            cosh1, cosh2 = np.sqrt(1.0 + s * s), np.sqrt(1.0 + other * other)
            excess = a1 * k1 * cosh1 + a2 * k2 * cosh2 - S
            slope = k1 * (a1 * s / cosh1 - a2 * other / cosh2)
            if excess <= 0.0:
                break
            if not slope > 0.0:
                status = OUT_OF_REACH
                break
            step = excess / slope
            if step <= _EPSILON * abs(s):
                break
            s -= step
        W[0, 0], W[0, 1] = np.arcsinh(s), np.arcsinh(other)
        # By how much both u differ from their values where the stiffness is smallest.
        ahead = a1 * s / cosh1 - a2 * other / cosh2
        ahead -= _EDGE * (a1 / (cosh1 * cosh1) + a2 / (cosh2 * cosh2))
    W[0, 6], W[0, 7], W[0, 8], W[0, 9] = s, other, cosh1, cosh2
    for i in range(2):
        W[0, i] = (W[0, i] - c[o + 5 + i]) / c[o + 3 + i]
        if not abs(W[0, i]) <= c[o + 7 + i]:
            status = OUT_OF_REACH
    return status if ahead > 0.0 else status | IRREGULAR


def _invert_lever(c: Any, o: Any, Q: Any, S: Any, W: Any) -> int:
    """Start W[0] of a lever: sigma / 2 + i Q = G r^2 e^(2 i d), r = x / (L - x)."""
    size = np.hypot(0.5 * S, Q)
    ratio = np.sqrt(size / c[o + 1])
    sine, cosine = Q / size, 0.5 * S / size
    x = c[o + 2] * ratio / (1.0 + ratio)
    W[0, 0], W[0, 1] = 0.5 * np.arctan2(Q, 0.5 * S), x / c[o + 3]
    W[0, 6], W[0, 7], W[0, 8], W[0, 9] = ratio, sine, cosine, sine * sine / (1.0 + cosine)
    status = 0
    if not (abs(W[0, 0]) <= c[o + 4] and x <= c[o + 5] and S > 0.0):
        status = OUT_OF_REACH
    return status if size * ratio > 0.0 else status | IRREGULAR


def _vary(
    c: Any, o: Any, Q: Any, row: Any, joint: Any, S: Any, place: Any, W: Any, J: Any
) -> int:
    """Coefficients W of what gives effort Q and stiffness S; see `_springs`."""
    if c[o] == PAIR:
        status = _invert_pair(c, o, Q[row, joint], S[place, 0], W)
    else:
        status = _invert_lever(c, o, Q[row, joint], S[place, 0], W)
    if len(W) == 1:
        return status & ~IRREGULAR
    _springs(c, o, 0, W)
    # All columns depend on the deflections in the same way in every order.
    for i in range(2):
        W[1, 0], W[1, 1] = 1.0 - i, 1.0 * i
        _springs(c, o, 1, W)
        for k in range(12):
            J[i, k] = W[1, k]
    determinant = J[0, 2] * J[1, 3] - J[1, 2] * J[0, 3]
    I11, I12 = J[1, 3] / determinant, -J[1, 2] / determinant
    I21, I22 = -J[0, 3] / determinant, J[0, 2] / determinant
    factorial = 1.0
    for m in range(1, len(W)):
        factorial *= m
        if m == 1:
            for k in range(12):
                W[1, k] = 0.0
        else:
            W[m, 0], W[m, 1] = 0.0, 0.0
            _springs(c, o, m, W)
        effort = Q[row + m, joint] / factorial - W[m, 2]
        stiffness = S[place, m] / factorial - W[m, 3]
        for _ in range(2):  # the second time for what rounding has left
            first, second = I11 * effort + I12 * stiffness, I21 * effort + I22 * stiffness
            W[m, 0] += first
            W[m, 1] += second
            effort -= J[0, 2] * first + J[1, 2] * second
            stiffness -= J[0, 3] * first + J[1, 3] * second
        for k in range(2, 12):
            W[m, k] += W[m, 0] * J[0, k] + W[m, 1] * J[1, k]
    return status


def _elastic(N: Any, c: Any, deflection: Any, result: Any) -> int:
    """Effort, stiffness and torques of motors (4 N, K) of a mechanism, at deflections (2 N, K)."""
    W = np.zeros((deflection.shape[1], 12))
    for s in range(N):
        factorial = 1.0
        for m in range(len(W)):
            factorial *= max(m, 1)
            for i in range(2):
                W[m, i] = deflection[2 * s + i, m] / factorial
            if m == 0:
                _start(c, 0, W)
            _springs(c, 0, m, W)
            for i in range(4):
                result[4 * s + i, m] = W[m, 2 + i] * factorial
    return 0


def _reaches(x: Any, low: Any, high: Any) -> Any:
    """Whether a deflection is within its range, but for rounding."""
    return low - ROUNDING * abs(low) <= x <= high + ROUNDING * abs(high)


# To inline the others too would take longer to compile and be no faster.
_INLINED = (
    _coefficients,
    _derivatives,
    _taylor,
    law,
    _root,
    _inverse,
    _powers,
    _bend,
    _one_motor,
    _two_motors,
    _product,
    _springs,
    _invert_pair,
    _invert_lever,
    _reaches,
)
_HELPERS = (_piece, _is_finite, _fit, _start, _vary)

elastic = ElasticKernel(_elastic, 'vmw')
laws = ElasticKernel(_laws, 'vvw')


def deflections(
    springs: ArrayLike, effort: ArrayLike, stiffness: ArrayLike | None = None
) -> tuple[Array, int]:
    """Deflections of the block of one spring or mechanism, and what is wrong.

    Parameters
    ----------
    springs : array-like
        The block of numbers, see the module.
    effort : array-like, shape (..., K)
        Series of the torque [N m] or [N].
    stiffness : array-like, shape (..., K), optional
        Series of the stiffness of a mechanism [N m/rad] or [N/m].

    Returns
    -------
    deflection : ndarray, shape (..., 2, K)
        Series of both springs; of a single one the first has it.
    status : int
        Sum of `OUT_OF_REACH`, `IRREGULAR` and `NOT_FINITE`; zero if all is well.
    """
    Q = np.ascontiguousarray(effort, dtype=np.float64)
    S = np.empty((0, Q.shape[-1])) if stiffness is None else np.ascontiguousarray(stiffness)
    *batch, K = Q.shape
    N, place = prod(batch), np.zeros((1, 3), dtype=np.int64)
    theta, tau = np.empty((N * K, 2)), np.empty((N * max(K - 2, 0), 2))
    block, still, delta = np.concatenate(([0.0, 0.0], springs)), *np.zeros((2, N * K, 1))
    status = 0
    if N:
        rows = Q.reshape(-1, 1), S.reshape(-1, K)
        status = drive(bends(springs))(N, place, block, still, *rows, theta, tau, delta)
    return np.swapaxes(theta.reshape(*batch, K, 2), -1, -2), status
