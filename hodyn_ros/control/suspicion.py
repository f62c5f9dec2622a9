"""Measured positions are believed or not: gates, missed samples, encoders that stand, delays.

One text for Python and C, see `step`. Source of the equations: `observer`, `watching`.
"""

from __future__ import annotations

from math import floor, isfinite, sqrt

from hodyn_ros.control.kernels import Matrix, MotorMatrix, Vector, corrected, solve
from hodyn_ros.control.layouts import Observer

SETTLED = 0.05  # s, until what the observer began with is forgotten
# Positions one after the other that cannot be true, after which they are taken for true, and the
# robot is stopped.
MOST_GATED = 5


def gate(
    n: int, T: float, reach: Vector, expected: Matrix, since: Vector, values: Vector
) -> int:
    """Replace measured positions that cannot be true, and say how many have been.

    Parameters
    ----------
    n : int
    T : float
        Time since the positions before [s].
    reach : ndarray, shape (n,)
        How far in a second they may get away from where they are expected.
    expected : ndarray, shape (K, n), K >= 2
        Positions and velocities before, in the first rows.
    since : ndarray, shape (n,)
        How often one after the other they were replaced by what is expected; is changed.
    values : ndarray, shape (n,)
        Measured; is changed.
    """
    count: int = 0
    for i in range(n):
        likely = expected[0, i] + T * expected[1, i]
        # Where no limit is known, any position is within reach, but an infinite one is none.
        if isfinite(values[i]) and abs(values[i] - likely) <= T * reach[i]:
            since[i] = 0.0
        else:
            values[i] = likely
            since[i] += 1.0
            count += 1
    return count


def is_believed(o: Observer) -> int:
    """Whether all encoders are believed."""
    for i in range(o.n):
        if o.since[i]:
            return 0
    for i in range(o.m):
        if o.motor_since[i] or o.doubted[i]:
            return 0
    return 1


def samples_passed(o: Observer) -> float:
    """Samples that have passed since the last positions, as the motion tells; 1 if it does not.

    It does if the positions of what moves have gone on by the same time at the estimated speeds,
    to a fifth, and if this is a whole number of samples: no torque can do that in a sample. None
    have passed if all positions are the same. Encoders that are not believed tell nothing.
    """
    if not is_believed(o):
        return 1.0
    n: int = o.n
    for i in range(n):
        o.ways[i], o.speeds[i] = o.q[i] - o.last_q[i], o.links[1, i]
    for i in range(o.m):
        o.ways[n + i] = o.theta[i] - o.last_theta[i]
        o.speeds[n + i] = o.motors[1, i]
    many, ways, squares, moved, any_way = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n + o.m):
        way, speed = o.ways[i], o.speeds[i]
        any_way += o.counts[i] * abs(way)
        if abs(way) > 0.0:
            o.least[i] = min(o.least[i], abs(way))
        if o.counts[i] * abs(speed) * o.T > 8.0 * o.least[i]:
            many += 1.0
            ways += way * speed * o.T
            squares += speed * speed * o.T * o.T
            moved += way * way
    # What is slow may stand still between two counts, and what is alone may be wrong.
    if squares < 1e-8 or many < 2.0:
        return 1.0
    if any_way == 0.0:
        return 0.0
    if ways > 1.5 * squares and ways < 1000.0 * squares:
        found = ways / squares
        samples = floor(found + 0.5)
        is_common: int = moved - found * found * squares < 0.04 * moved
        if is_common and abs(found - samples) < 0.1 * samples:
            return samples
    return 1.0


def stands(o: Observer, T: float, i: int, turned: float) -> float:
    """Whether the load of a motor that stands changes, and the link does not feel it."""
    change = o.deflected_load[i] - o.stood[1, i]
    load = o.deflected_load[i] + o.rate[i] * (o.stood[6, i] - o.theta[i])
    if o.inertia[i] > 0.0:
        o.stood[7, i] += T * (o.acted[i] - load) / o.inertia[i]
        o.stood[6, i] += T * o.stood[7, i]
    a = o.stood[5, i] + change
    e = corrected(o.m, i, T, 0.0, a, 3, o.motor_gains, o.stood)
    o.stood[5, i] += o.motor_gains[2, i] * e
    found = abs(o.stood[5, i])
    if abs(change) > turned and found > 0.25 * turned:
        if abs(o.missing[i] - o.stood[2, i]) > 0.75 * found:
            is_elastic: float = o.is_elastic[o.joint[i]]
            return is_elastic
    return 0.0


def presume_motor(o: Observer, i: int) -> None:
    """Take a motor that has stood for where it is told to be by what the link has felt since.

    That is a share of the change of its load, by which the links were estimated wrongly, too.
    """
    j: int = o.joint[i]
    if not o.has_sensors:
        share = (o.missing[i] - o.stood[2, i]) / o.stood[5, i]
        o.column[:] = 0.0
        o.column[j] = share
        solve(o.n, o.factor, o.column)
        way, speed = o.stood[3, i], o.stood[4, i]
        o.links[0] -= way * o.column
        o.links[1] -= speed * o.column
        o.links[2, j], o.links[3, j] = o.stood[2, i], o.stood[2, i]
    o.motors[0, i], o.motors[1, i] = o.stood[6, i], o.stood[7, i]
    o.motors[2, i], o.motors[3, i] = 0.0, 0.0


def doubt(o: Observer, T: float, share: float) -> None:
    """Doubt motors whose measured position stands still while their springs turn.

    A motor that is held, as by a brake or its friction, lets its spring push the link. If its
    measurement alone stands still, the link does not feel what the deflection tells: the torque
    that the model lacks is as large, as far as the observer has found it by then, or larger.

    Rows of `stood`: positions from which on the motors stand, with both torques; how the observer
    would find the opposite of what the load has changed by since; position and velocity that the
    motor would have by its torques. `doubted` is 1 until a motor moves, which is meanwhile
    expected by its torques alone, see `observing.gate_all`.

    Parameters
    ----------
    o : Observer
    T : float
        Time since the sample before [s].
    share : float
        Of the torque of a motor by which the load of its spring has to change.
    """
    for i in range(o.m):
        turned = share * min(o.strongest[i], 0.2 * o.rate[i])
        theta = o.theta[i]
        if o.doubted[i]:
            theta = o.new_theta[i]
        if o.rate[i] * abs(theta - o.stood[0, i]) > 0.02 * turned:
            o.stood[0, i], o.stood[1, i] = theta, o.deflected_load[i]
            o.stood[2, i], o.stood[3, i] = o.missing[i], 0.0
            o.stood[4, i], o.stood[5, i], o.doubted[i] = 0.0, 0.0, 0.0
            o.stood[6, i], o.stood[7, i] = theta, o.motors[1, i]
        is_measured: int = o.motor_since[i] < MOST_GATED
        if is_measured and o.turns[i] and not o.doubted[i]:
            o.doubted[i] = stands(o, T, i, turned)
            if o.doubted[i]:
                presume_motor(o, i)


def explain(o: Observer, T: float, i: int) -> None:
    """Find what explains the torque that motor i lacks, as the observer would.

    Rows of `explains`: change of the torque from sample to sample, speed, its sign, acceleration,
    load, which way the load goes, one. Rows of `trail`: torque, speed, time since the motor was
    slower than 0.02 rad/s or m/s, the load behind a low pass, and the mean square of what that
    leaves. `shadow` is the observer.
    """
    slow, inertia, speed = o.slowly, o.inertia[i], o.motors[1, i]
    rising = o.load[1, i] - o.trail[3, i]
    o.trail[3, i] += slow * rising
    o.trail[4, i] += 0.1 * slow * (rising * rising - o.trail[4, i])
    o.explains[0, i] = o.trail[0, i] - o.acted[i]
    o.explains[1, i] = speed
    o.explains[2, i] = speed / sqrt(speed * speed + 4e-4)
    o.explains[3, i] = inertia * (speed - o.trail[1, i]) / T
    o.explains[4, i] = o.load[1, i]
    o.explains[5, i] = rising / sqrt(rising * rising + 0.1 * o.trail[4, i] + 1e-12)
    o.explains[6, i] = 1.0
    o.trail[0, i], o.trail[1, i] = o.acted[i], speed
    for k in range(6):
        a = o.shadow[3 * k + 2, i] - o.explains[k, i] / inertia
        e = corrected(o.m, i, T, 0.0, a, 3 * k, o.motor_gains, o.shadow)
        o.shadow[3 * k + 2, i] += o.motor_gains[2, i] * e
        o.explains[k, i] = inertia * o.shadow[3 * k + 2, i]
    o.trail[2, i] += T
    if abs(speed) < 0.02:
        o.trail[2, i] = 0.0


def gather(o: Observer, i: int, sums: MotorMatrix) -> None:
    """Add what explains the torque that motor i lacks to the sums of least squares.

    Samples before have weights `remembered`^k. Rows of `sums`: A and b of the normal equations
    A c = b, the weights, the squares of what is explained, and those of what `found` leaves of it,
    as it is and behind a low pass. Rows of `found`: c, what is left behind the low pass.
    """
    lacks, memory = o.motors[2, i], o.remembered
    left = lacks
    for k in range(7):
        left -= o.found[k, i] * o.explains[k, i]
        for j in range(7):
            product = o.explains[k, i] * o.explains[j, i]
            sums[7 * k + j, i] = memory * sums[7 * k + j, i] + product
        sums[49 + k, i] = memory * sums[49 + k, i] + o.explains[k, i] * lacks
    o.found[7, i] += o.slowly * (left - o.found[7, i])
    sums[56, i] = memory * sums[56, i] + 1.0
    sums[57, i] = memory * sums[57, i] + lacks * lacks
    sums[58, i] += left * left
    sums[59, i] += o.found[7, i] * o.found[7, i]


def watch(o: Observer, T: float) -> None:
    """Gather what explains the torques that motors lack, behind the first 0.05 s.

    Samples that did not come, or lie on a line, tell nothing of the loop: it begins anew. Where a
    motor turns back, no law of friction holds, and nothing is gathered.
    """
    o.settling += 1.0
    if o.is_new or o.samples != 1.0:
        o.settling = 0.0
    if o.settling <= 1.0:
        o.shadow[:] = 0.0
        o.trail[:] = 0.0
        o.trail[0] = o.acted
        o.trail[1] = o.motors[1]
        o.trail[3] = o.load[1]
    if o.settling > 0.0:
        sums = o.unsettled
        if o.settling * o.T > SETTLED:
            o.seen += 1.0
            sums = o.sums
        for i in range(o.m):
            if o.is_single[o.joint[i]]:
                explain(o, T, i)
                if o.trail[2, i] > 0.01:
                    gather(o, i, sums)
