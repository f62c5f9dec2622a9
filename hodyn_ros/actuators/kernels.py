"""Computations of elastic joints, one source for single samples and batches.

The functions are those that Numba compiles. Until machine code is there, and where there is no
compiler, the interpreter runs them as they stand. Inside, a function of time is given by its
Taylor coefficients x_k = x^(k) / k!, which spares the binomials of the product rule. A spring is
a block of numbers: kind, ends of its range, torques at these, and what its kind needs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from hodyn_ros.engine.engine import Engine

RIGID, GIVEN, POLYNOMIAL, TABLE, CUSTOM = range(5)
"""Kinds of springs; the deflection of one that is given has been computed before."""
PAIR, LEVER = range(2)
"""Kinds of variable stiffness."""

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

# Dampers: how often a step may be halved, and how often its solution repeated.
_SHORTEST = 2.0**-14
_MOST_ITERATIONS = 60
# Repetitions end when changes of h^j x^(j) are small against its own size, or such that they may
# be rounding of x, and have stopped to fall, or are about to be so much smaller still.
_SMALL = 1e-7
_FALLING = 0.5
_VANISHING = 1e-9
# Steps with a larger error are halved: relative to the deflection, and absolute [rad]. With the
# torque alone (E = 1) the method is of second order, of which no more can be expected.
_TOLERANCE_ALONE = 1e-3
_TOLERANCE = 1e-6
_ALWAYS_GOOD = 1e-10
# Steps over more time constants than this follow x^(E) instead of x.
_STIFF = 0.5
# How far the slope of the linear part may be from that of the law; that of a line is the same but
# for the rounding of times, of which steps are differences.
_SLOPE = 1e-3
_SAME = 4e-12


class Kernel:
    """A function that is compiled when it has been called often enough.

    The first argument is the number of samples. Types of the others are letters: v and m for
    vectors and matrices that are read, w for matrices that are written, i for matrices of
    integers, t for an array of matrices.
    """

    compiled: Callable[..., int] | None = None
    """Machine code; None if there is none yet."""

    def __init__(self, function: Callable[..., int], types: str) -> None:
        self._function, self._types = function, types

    def __call__(self, samples: int, *arguments: Any) -> int:
        """Compute; arrays are contiguous."""
        if self.compiled is None:
            _engine.kernel(self, samples * _WEIGHT)  # type: ignore[arg-type]
        return (self.compiled or self.interpreted)(samples, *arguments)

    def interpreted(self, samples: int, *arguments: Any) -> int:
        """Compute without machine code; arrays may hold springs of the user's own."""
        with np.errstate(all='ignore'):
            return self._function(samples, *arguments)

    def make(self, _: Any) -> Callable[..., int]:
        """Compile, or take what is kept on disk; for `Engine`, as `offer`."""
        import numba

        _register()
        number, integer = numba.types.float64, numba.types.int64
        known = {'i': (integer, 2), 'v': (number, 1), 'm': (number, 2), 't': (number, 3)}
        read = {k: numba.types.Array(*kind, 'C', readonly=True) for k, kind in known.items()}
        read['w'] = numba.types.Array(number, 2, 'C')
        signature = integer(integer, *(read[letter] for letter in self._types))
        options: dict[str, Any] = {'error_model': 'numpy'}
        try:
            compiled: Any = numba.njit(signature, cache=True, **options)(self._function)
        except RuntimeError:  # there is no place for a cache
            compiled = numba.njit(signature, **options)(self._function)
        return compiled  # type: ignore[no-any-return]

    def offer(self, _: Any, compiled: Callable[..., int]) -> None:
        """Use machine code from now on."""
        self.compiled = compiled


@cache
def _register() -> None:
    """Let Numba know the functions that kernels call."""
    from numba.extending import overload, register_jitable

    for helper in (*_INLINED, *_HELPERS):
        inline = helper in _INLINED
        register_jitable(error_model='numpy', forceinline=inline)(helper)
    overload(_own_law)(lambda spring, x, g: lambda spring, x, g: None)


_engine = Engine(SimpleNamespace(name='elastic joints'))  # type: ignore[arg-type]


# --- Laws of springs ----------------------------------------------------------------------------


def _own_law(spring: Any, x: Any, g: Any) -> None:
    """Law of a spring of the user's own; only the interpreter can call it."""
    g[:] = spring.derivatives(np.array(x), len(g) - 1)
    factorial = 1.0
    for j in range(2, len(g)):
        factorial *= j
        g[j] /= factorial


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
    """Which interval of increasing numbers a value belongs to."""
    low, high = 0, count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if c[start + middle] <= x:
            low = middle
        else:
            high = middle
    return low


def law(c: Any, o: Any, x: Any, g: Any) -> None:
    """Taylor coefficients g of the torque of the spring at place o, at a deflection."""
    if c[o] == CUSTOM:
        _own_law(c[o + 5], x, g)
    elif c[o] == TABLE:
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


def compose(g: Any, X: Any, F: Any, P: Any) -> None:
    """Coefficients F of f(x(t)), from those of f at x(t) and of x."""
    F[0] = g[0]
    for m in range(1, len(F)):
        P[1, m] = X[m]
        _powers(P, m)
        total = 0.0
        for j in range(1, m + 1):
            if g[j] != 0.0:  # infinite powers are of no account then
                total += g[j] * P[j, m]
        F[m] = total


def _deflect(c: Any, o: Any, Q: Any, row: Any, joint: Any, g: Any, P: Any) -> Any:
    """Deflection P[1] and its derivatives of a spring that is no line; whether it can have Q."""
    R = P.shape[1]
    torque = min(max(Q[row, joint], c[o + 3]), c[o + 4])
    fits = abs(Q[row, joint] - torque) <= ROUNDING * abs(torque)
    P[1, 0] = min(max(_inverse(c, o, torque), c[o + 1]), c[o + 2])
    if R > 1:
        law(c, o, P[1, 0], g)
    factorial = 1.0
    for m in range(1, R):
        factorial *= m
        rest = Q[row + m, joint] / factorial
        _powers(P, m)
        for j in range(2, m + 1):
            if g[j] != 0.0:
                rest -= g[j] * P[j, m]
        P[1, m] = rest / g[1]
    factorial = 1.0
    for m in range(2, R):
        factorial *= m
        P[1, m] *= factorial
    return fits


def _is_finite(values: Any) -> Any:
    good = True
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            good &= abs(values[i, j]) <= _LARGEST
    return good


def _drive(
    N: Any, places: Any, c: Any, q: Any, Q: Any, theta: Any, tau: Any, delta: Any
) -> int:
    """Motors (N R, m), (N T, m) and deflections (N R, n) of joints with one motor each.

    Places are joint, motor and block of each: the inertia, and the spring. Motions (N K, n) and
    efforts (N E, n) have as many orders at least.
    """
    K, E, R, T = q.shape[0] // N, Q.shape[0] // N, theta.shape[0] // N, tau.shape[0] // N
    fits = q.shape[1] == delta.shape[1] and Q.shape[1] == delta.shape[1]
    if not fits or K < R or E < T or q.shape[0] != N * K or Q.shape[0] != N * E:
        return OUT_OF_REACH
    g, P = np.zeros(max(R, 2)), np.zeros((R + 1, R))
    # Who gives many samples has looked at them.
    finite = N > 1 or (_is_finite(q) and _is_finite(Q))
    for s in range(N):
        for i in range(len(places)):
            j, motor, o = places[i, 0], places[i, 1], places[i, 2]
            kind = c[o + 1]
            compliance = 0.0  # of a linear spring
            if kind == POLYNOMIAL and c[o + 6] == 2:
                compliance = 1.0 / c[o + 9]
                excess = max(Q[s * E, j] - c[o + 5], c[o + 4] - Q[s * E, j])
                fits &= excess <= ROUNDING * abs(Q[s * E, j])
            elif kind != RIGID and kind != GIVEN:
                fits &= _deflect(c, o + 1, Q, s * E, j, g, P)
            for r in range(R):
                x = 0.0
                if compliance > 0.0:
                    x = compliance * Q[s * E + r, j]
                    if r == 0:
                        x = min(max(x, c[o + 2]), c[o + 3])
                elif kind == GIVEN:
                    x = delta[s * R + r, j]
                elif kind != RIGID:
                    x = P[1, r]
                delta[s * R + r, j] = x
                place = q[s * K + r, j] + x
                theta[s * R + r, motor] = place
                finite &= abs(place) <= _LARGEST
                if r > 1:
                    torque = c[o] * place + Q[s * E + r - 2, j]
                    tau[s * T + r - 2, motor] = torque
                    finite &= abs(torque) <= _LARGEST
    return (0 if fits else OUT_OF_REACH) + (0 if finite else NOT_FINITE)


def _laws(N: Any, c: Any, x: Any, torque: Any) -> int:
    """Torques and derivatives (N, order + 1) of one spring at deflections (N,)."""
    g = np.zeros(torque.shape[1])
    for s in range(N):
        law(c, 0, x[s], g)
        factorial = 1.0
        for j in range(torque.shape[1]):
            factorial *= max(j, 1)
            torque[s, j] = g[j] * factorial
    return 0


# --- Variable stiffness -------------------------------------------------------------------------


def _pair(c: Any, o: Any, Q: Any, S: Any, D: Any, t: Any, C: Any) -> int:
    """Deflections D and torques t (2, R) of two hyperbolic springs, see `vsa.antagonistic`.

    For a_1 = a_2 by the law of cosines of the hyperbolic plane. In general, with s = sinh u_1,
    which gives u_2 by the effort, the stiffness a_1 k_1 sqrt(1 + s^2) +
    a_2 sqrt(k_2^2 + (Q - k_1 s)^2) is convex, and is at least (a_1 + a_2) k_1 s - a_2 Q: from
    where that has the stiffness Newton's method falls to the root and does not pass it.
    """
    k1, k2, a1, a2 = c[o], c[o + 1], c[o + 2], c[o + 3]
    status = 0
    if a1 == a2:
        stiff, total = S[0] / a1, k1 + k2
        square = (stiff - Q[0]) * (stiff + Q[0])
        if not (square >= total * total and stiff > 0.0):
            status, square = OUT_OF_REACH, total * total
        half = np.arcsinh(np.sqrt((square - total * total) / (4.0 * k1 * k2)))
        mean = np.arcsinh(Q[0] / np.sqrt(square))
        if k1 != k2:
            mean -= np.arctanh((k1 - k2) / total * np.tanh(half))
        D[0, 0], D[1, 0] = mean + half, mean - half
        s, other = np.sinh(D[0, 0]), np.sinh(D[1, 0])
        cosh1, cosh2 = np.sqrt(1.0 + s * s), np.sqrt(1.0 + other * other)
        ahead = 2.0 * half - _EDGE
    else:
        s = (S[0] + a2 * Q[0]) / ((a1 + a2) * k1)
        for _ in range(_MOST_STEPS):
            other = (Q[0] - k1 * s) / k2
            cosh1, cosh2 = np.sqrt(1.0 + s * s), np.sqrt(1.0 + other * other)
            excess = a1 * k1 * cosh1 + a2 * k2 * cosh2 - S[0]
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
        D[0, 0], D[1, 0] = np.arcsinh(s), np.arcsinh(other)
        # By how much both u differ from their values where the stiffness is smallest.
        ahead = a1 * s / cosh1 - a2 * other / cosh2
        ahead -= _EDGE * (a1 / (cosh1 * cosh1) + a2 / (cosh2 * cosh2))
    if not ahead > 0.0:
        status |= IRREGULAR
    t[0, 0], t[1, 0], C[0, 0], C[1, 0] = s, other, cosh1, cosh2
    J11, J12, J21, J22 = k1 * cosh1, k2 * cosh2, a1 * k1 * s, a2 * k2 * other  # by both u
    determinant = J11 * J22 - J12 * J21
    for m in range(1, D.shape[1]):
        effort, stiffness = Q[m], S[m]
        D[0, m], D[1, m] = 0.0, 0.0
        for i in range(2):
            # All but the terms with the coefficient m of u: m t_m = sum of j u_j C_(m-j).
            sine, cosine = 0.0, 0.0
            for j in range(1, m):
                sine += j * D[i, j] * C[i, m - j]
                cosine += j * D[i, j] * t[i, m - j]
            t[i, m], C[i, m] = sine / m, cosine / m
            effort -= c[o + i] * t[i, m]
            stiffness -= c[o + 2 + i] * c[o + i] * C[i, m]
        for _ in range(2):  # the second time for what rounding has left
            first = (J22 * effort - J12 * stiffness) / determinant
            second = (J11 * stiffness - J21 * effort) / determinant
            D[0, m] += first
            D[1, m] += second
            effort -= J11 * first + J12 * second
            stiffness -= J21 * first + J22 * second
        for i in range(2):
            t[i, m] += C[i, 0] * D[i, m]
            C[i, m] += t[i, 0] * D[i, m]
    for i in range(2):
        D[i, 0] -= c[o + 4 + i]
        for m in range(D.shape[1]):
            D[i, m] /= c[o + 2 + i]
            t[i, m] *= c[o + i]
        if not abs(D[i, 0]) <= c[o + 6 + i]:
            status |= OUT_OF_REACH
    return status


def _lever(c: Any, o: Any, Q: Any, S: Any, D: Any, t: Any, C: Any) -> int:
    """Deflections D and torques t (2, R) of a lever with a movable pivot, see `vsa.lever`.

    sigma / 2 + i Q = g e^(2 i d) with g = G r^2, r = x / (L - x): its logarithm holds both.
    """
    G, L, pitch = c[o], c[o + 1], c[o + 2]
    R = D.shape[1]
    # Logarithm of g and angle 2 d: m w_m z_0 = m z_m - sum of j w_j z_(m-j).
    size = np.hypot(0.5 * S[0], Q[0])
    D[0, 0] = np.arctan2(Q[0], 0.5 * S[0])
    cosine, sine = 0.5 * S[0] / size, Q[0] / size
    for m in range(1, R):
        real, imaginary = 0.5 * S[m], Q[m]
        for j in range(1, m):
            part = j / m
            real -= part * (C[0, j] * 0.5 * S[m - j] - D[0, j] * Q[m - j])
            imaginary -= part * (C[0, j] * Q[m - j] + D[0, j] * 0.5 * S[m - j])
        C[0, m] = (real * cosine + imaginary * sine) / size
        D[0, m] = (imaginary * cosine - real * sine) / size
    # r, and 1 / (1 + r), which gives x.
    r, y = t[0], t[1]
    r[0] = np.sqrt(size / G)
    y[0] = 1.0 / (1.0 + r[0])
    D[1, 0] = L * r[0] * y[0] / pitch
    for m in range(1, R):
        r[m], y[m] = 0.0, 0.0
        for j in range(1, m + 1):
            r[m] += 0.5 * j / m * C[0, j] * r[m - j]
            y[m] -= r[j] * y[m - j] * y[0]
        D[1, m] = -L * y[m] / pitch
    status = 0
    if not (abs(D[0, 0]) <= 2.0 * c[o + 3] and D[1, 0] * pitch <= c[o + 4] and S[0] > 0.0):
        status = OUT_OF_REACH
    if not size * r[0] > 0.0:
        status |= IRREGULAR
    # The force is dg/dy sin(d)^2, where dg/dy = 2 G / L pitch r (1 + r)^2.
    turn, cos, sin = C[1], C[2], C[3]
    cos[0], sin[0] = np.cos(D[0, 0]), np.sin(D[0, 0])
    for m in range(1, R):
        cos[m], sin[m] = 0.0, 0.0
        for j in range(1, m + 1):
            cos[m] -= j / m * D[0, j] * sin[m - j]
            sin[m] += j / m * D[0, j] * cos[m - j]
    for m in range(R):
        turn[m] = -0.5 * cos[m]
        D[0, m] *= 0.5
    turn[0] = np.sin(D[0, 0]) ** 2
    _multiply(r, turn, y)
    for m in range(R):
        y[m] *= 2.0 * G * pitch / L
    r[0] += 1.0
    _multiply(r, y, sin)
    _multiply(r, sin, y)
    for m in range(R):
        r[m] = Q[m]
    return status


def _multiply(f: Any, g: Any, h: Any) -> None:
    """Coefficients h of the product f g."""
    for m in range(len(h)):
        h[m] = 0.0
        for j in range(m + 1):
            h[m] += f[j] * g[m - j]


def _vary(
    N: Any, places: Any, c: Any, q: Any, Q: Any, S: Any, theta: Any, tau: Any, delta: Any
) -> int:
    """Motors and deflections of joints of variable stiffness, as `_drive` of the others.

    Places are joint, first motor and block of each: both inertias, the kind, and the springs. The
    stiffness (N v, orders) has a row for each sample and each of the v joints.
    """
    v = len(places)
    K, E, R, T = q.shape[0] // N, Q.shape[0] // N, theta.shape[0] // N, tau.shape[0] // N
    if q.shape[1] != delta.shape[1] or Q.shape[1] != delta.shape[1] or S.shape[0] != N * v:
        return OUT_OF_REACH
    if K < R or E < R or S.shape[1] < R or q.shape[0] != N * K or Q.shape[0] != N * E:
        return OUT_OF_REACH
    effort, stiffness = np.zeros(R), np.zeros(R)
    D, t, C = np.zeros((2, R)), np.zeros((2, R)), np.zeros((4, R))
    status = 0
    finite = N > 1 or (_is_finite(q) and _is_finite(Q) and _is_finite(S))
    for s in range(N):
        for i in range(v):
            j, motor, o = places[i, 0], places[i, 1], places[i, 2]
            factorial = 1.0
            for m in range(R):
                factorial *= max(m, 1)
                effort[m] = Q[s * E + m, j] / factorial
                stiffness[m] = S[s * v + i, m] / factorial
            is_pair = c[o + 2] == PAIR
            if is_pair:
                found = _pair(c, o + 3, effort, stiffness, D, t, C)
            else:
                found = _lever(c, o + 3, effort, stiffness, D, t, C)
            status |= found if R > 1 else found & ~IRREGULAR
            factorial = 1.0
            for r in range(R):
                factorial *= max(r, 1)
                D[0, r] *= factorial
                D[1, r] *= factorial
                mean = 0.5 * (D[0, r] + D[1, r]) if is_pair else D[0, r]
                delta[s * R + r, j] = mean
                at = q[s * K + r, j]
                theta[s * R + r, motor] = at + D[0, r]
                theta[s * R + r, motor + 1] = at + D[1, r] if is_pair else D[1, r]
            factorial = 1.0
            for r in range(R):
                finite &= abs(theta[s * R + r, motor]) <= _LARGEST
                finite &= abs(theta[s * R + r, motor + 1]) <= _LARGEST
                if r < T:
                    factorial *= max(r, 1)
                    for k in range(2):
                        torque = t[k, r] * factorial
                        torque += c[o + k] * theta[s * R + r + 2, motor + k]
                        tau[s * T + r, motor + k] = torque
                        finite &= abs(torque) <= _LARGEST
    return status | (0 if finite else NOT_FINITE)


# --- Dampers ------------------------------------------------------------------------------------


def _moments(z: Any, v: Any) -> None:
    """Integrals over r from 0 to 1 of e^(-z r) (-r)^j, with nothing that cancels."""
    top = len(v) - 1
    decay = np.exp(-z)
    if z > 2.0 * top + 20.0:
        v[0] = (1.0 - decay) / z
        for j in range(1, top + 1):
            v[j] = (j * v[j - 1] - decay) / z
    else:
        total, term, power = 0.0, decay / (top + 1.0), top + 1.0
        while term > 1e-18 * total:
            total += term
            power += 1.0
            term *= z / power
        v[top] = total
        for i in range(top, 0, -1):
            v[i - 1] = (z * v[i] + decay) / i
    for i in range(1, top + 1, 2):
        v[i] = -v[i]


def _weights(z: Any, tables: Any, v: Any, half: Any, w: Any) -> None:
    """Weights w (2, E) of the coefficients that drive, before and after a step over z."""
    E = w.shape[1]
    _moments(z, v)
    _moments(0.5 * z, half)
    for k in range(E):
        w[0, k] = 0.0
        w[1, k] = 0.0 if z > _STIFF else v[k]
    binomial = 1.0
    for j in range(E):
        # Of x^(E) the drive is the E-th derivative.
        weight = v[E + j]
        if z > _STIFF:
            weight = binomial * v[j]
            binomial *= (E + j + 1.0) / (j + 1.0)
        for k in range(E):
            w[0, k] += weight * tables[0, j, k]
            w[1, k] += weight * tables[1, j, k]


def extended(c: Any, o: Any, x: Any, g: Any) -> None:
    """Law as of `law`, continued by straight lines outside of the range.

    Iterations may leave the range, where a law need not increase; solutions that do are refused.
    """
    inside = min(max(x, c[o + 1]), c[o + 2])
    law(c, o, inside, g)
    if x != inside:
        g[0] += g[1] * (x - inside)
        for j in range(2, len(g)):
            g[j] = 0.0


def _polynomial(before: Any, after: Any, tables: Any, e: Any) -> None:
    """Coefficients e (2 E,) at the end of a step, from the E lowest at both of its ends."""
    E = len(e) // 2
    for j in range(E):
        e[j] = after[j]
        e[E + j] = 0.0
        for k in range(E):
            e[E + j] += tables[0, j, k] * before[k] + tables[1, j, k] * after[k]


def _forward(rate: Any, k: Any, z: Any, a: Any, w: Any) -> None:
    """After a step a[1], driven by the law linearised about the guess a[3], with the slope k."""
    E = a.shape[1] - 1
    value = 0.0
    for m in range(E):
        before = (m + 1) * a[0, m + 1] / rate + k * a[0, m]
        a[5, m], a[6, m] = before, a[2, m] - a[4, m] + k * a[3, m]
        value += w[0, m] * before + w[1, m] * a[6, m]
    value *= rate
    if z > _STIFF:
        a[1, E] = np.exp(-z) * a[0, E] + value
        for m in range(E - 1, -1, -1):
            rest = a[2, m] - a[4, m] - (m + 1) * a[1, m + 1] / rate
            a[1, m] = a[3, m] + rest / k
    else:
        a[1, 0] = np.exp(-z) * a[0, 0] + value
        for m in range(E):
            rest = a[2, m] - a[4, m] + k * (a[3, m] - a[1, m])
            a[1, m + 1] = rate * rest / (m + 1)


def _solve(
    c: Any, o: Any, rate: Any, z: Any, tables: Any, a: Any, w: Any, v: Any, half: Any, g: Any,
    P: Any, e: Any,
) -> Any:
    """Step of length one, from a[0] to a[1] with the torque a[2]; z if solved, or minus it.

    Rate is the length of the step over the damping. Rows of a hold coefficients (E + 1): before,
    after, torque after, guess, law, drive before and after, torque before.
    """
    E = a.shape[1] - 1
    if c[o] == POLYNOMIAL and c[o + 5] == 2:
        k = c[o + 8]
        if not abs(k * rate - z) <= _SAME * z:
            z = k * rate
            _weights(z, tables, v, half, w)
        a[3, :] = 0.0
        a[4, :] = 0.0
        _forward(rate, k, z, a, w)
        return z if 0.0 < z <= _LARGEST else np.nan
    extended(c, o, a[0, 0], g)
    compose(g, a[0], a[4, :E], P)
    for m in range(E):
        a[7, m] = a[4, m] + (m + 1) * a[0, m + 1] / rate
    if g[1] * rate > _STIFF:
        a[3, :] = a[0]
    else:
        _taylor(a[0], 0, E + 1, 1.0, a[3])
    last = np.inf
    for _ in range(_MOST_ITERATIONS):
        extended(c, o, a[3, 0], g)
        compose(g, a[3], a[4, :E], P)
        if not abs(g[1] * rate - z) <= _SLOPE * z:
            z = g[1] * rate
            if not 0.0 < z <= _LARGEST:
                break
            _weights(z, tables, v, half, w)
        k = z / rate
        _forward(rate, k, z, a, w)
        # The torque is rounded too, which may be that of a large deflection from a distant zero.
        rounding = ROUNDING * max(abs(a[1, 0]), abs(a[0, 0]), abs(a[2, 0]) / k) + 1e-300
        change = 0.0
        for m in range(E + 1):
            allowed = max(_SMALL * max(abs(a[1, m]), abs(a[0, m])), rounding)
            ratio = abs(a[1, m] - a[3, m]) / allowed
            if not ratio <= change:
                change = ratio
        is_last = change >= _FALLING * last or change * change <= _VANISHING * last
        if change <= 1.0 and is_last and last < np.inf:
            return z if _is_good(c, o, rate, z, tables, a, half, v, g, e) else -z
        a[3, :] = a[1]
        last = change
    return np.nan


def _is_good(
    c: Any, o: Any, rate: Any, z: Any, tables: Any, a: Any, half: Any, v: Any, g: Any, e: Any
) -> Any:
    """Whether what drives the linear part of a step is the polynomial in the middle too."""
    E = a.shape[1] - 1
    _polynomial(a[7, :E], a[2, :E], tables, e[0])
    _taylor(e[0], 0, 2 * E, -0.5, e[1])
    torque = e[1, 0]
    _polynomial(a[5, :E], a[6, :E], tables, e[0])
    _taylor(e[0], 0, 2 * E, -0.5, e[1])
    middle, power = 0.0, 0.5 * rate
    for j in range(2 * E):
        middle += half[j] * power * e[1, j]
        power *= 0.5
    middle += np.exp(-0.5 * z) * a[0, 0]
    extended(c, o, middle, g)
    error = abs(torque - g[0] + z / rate * middle - e[1, 0]) * rate * v[0]
    tolerance = _TOLERANCE_ALONE if E == 1 else _TOLERANCE
    return error <= tolerance * max(abs(a[0, 0]), abs(a[1, 0])) + _ALWAYS_GOOD


def _follow(
    N: Any, times: Any, places: Any, c: Any, Q: Any, tables: Any, series: Any
) -> int:
    """Deflections ((N + 1) d, E + 1) of d springs with dampers over N steps; the first are given.

    Times of steps are (N,), torques after them (N E, n); places are joint and block of each: the
    damping, and the spring. Zero if all is well, otherwise one more than the first row that could
    not be found or lies outside of the range.
    """
    d, E = len(places), series.shape[1] - 1
    a, w, P = np.zeros((8, E + 1)), np.zeros((2, E)), np.zeros((E + 1, E + 1))
    v, half, g, e = np.zeros(2 * E), np.zeros(2 * E), np.zeros(max(E, 2)), np.zeros((2, 2 * E))
    whole, end = np.zeros(2 * E), np.zeros(E)
    bad = 0
    for i in range(d):
        j, o = places[i, 0], places[i, 1] + 1
        z = -1.0
        for s in range(N):
            h, row = times[s], (s + 1) * d + i
            factor = 1.0
            for m in range(E + 1):
                a[0, m] = series[row - d, m] * factor
                if m < E:
                    end[m] = Q[s * E + m, j] * factor
                factor *= h / (m + 1)
            at, size = 0.0, 1.0
            while at < 1.0:
                if at + size == 1.0:
                    a[2, :E] = end
                else:
                    _taylor(whole, 0, 2 * E, at + size - 1.0, a[2, :E])
                factor = 1.0
                for m in range(E if size < 1.0 else 0):
                    a[2, m] *= factor
                    factor *= size
                rate = h * size / c[o - 1]
                solved = _solve(c, o, rate, z, tables, a, w, v, half, g, P, e)
                z = abs(solved) if solved == solved else -1.0
                if solved > 0.0 or (solved < 0.0 and size <= _SHORTEST):
                    at += size
                    a[0, :] = a[1]
                    ratio = 1.0
                    while size < 1.0 and at < 1.0 and at % (2.0 * size) == 0.0:
                        size, ratio = 2.0 * size, 2.0 * ratio
                elif size > _SHORTEST:
                    if size == 1.0:
                        _polynomial(a[7, :E], end, tables, whole)
                    size, ratio = 0.5 * size, 0.5
                else:
                    a[0, :] = np.nan
                    break
                factor = 1.0
                for m in range(E + 1):
                    a[0, m] *= factor
                    factor *= ratio
            factor = 1.0
            for m in range(E + 1):
                series[row, m] = a[0, m] * factor
                factor *= (m + 1) / (h * size)
            x, low, high = series[row, 0], c[o + 1], c[o + 2]
            fits = low - ROUNDING * abs(low) <= x <= high + ROUNDING * abs(high)
            for m in range(E + 1):
                fits &= abs(series[row, m]) <= _LARGEST
            if not fits and (bad == 0 or row < bad - 1):
                bad = row + 1
    return bad


# To inline the others too would take longer to compile and be no faster.
_INLINED = (
    _taylor, law, _root, _inverse, _powers, _deflect, compose, extended, _forward, _solve,
    _is_good,
)  # fmt: skip
_HELPERS = (_piece, _is_finite, _pair, _multiply, _lever, _moments, _weights, _polynomial)

drive = Kernel(_drive, 'ivmmwww')
vary = Kernel(_vary, 'ivmmmwww')
laws = Kernel(_laws, 'vvw')
follow = Kernel(_follow, 'vivmtw')
