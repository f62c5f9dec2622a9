"""Equations of the observer and the laws, as loops over joints and motors.

`step.machine_code` compiles them, and `hodyn_ros.codegen` translates the same text to C99: they
use numbers, arrays, loops and conditions only. `n` joints and `m` motors; arrays with two indices
have a row a quantity and a column a joint or a motor. Rows of `links`: position, velocity, torque
that the model lacks, the same behind its low pass, acceleration. Rows of `motors`: position,
velocity, torque that the model lacks, the same behind its low pass. Source of the equations:
`observer`, `tracking` and `interaction`.

Kernels that do not say otherwise mean by

T : float
    Sample time [s].
joint : ndarray of int, shape (m,)
    Joint that each motor moves.
is_elastic : ndarray, shape (n,)
    1 where there is a spring, else 0.
turns : ndarray, shape (m,)
    1 where a motor turns with its joint, 0 where it only sets the stiffness.
inertia : ndarray, shape (m,)
    Of the motors, in coordinates of their joints [kg m^2] or [kg].
M, L : ndarray, shape (n, n)
    Mass matrix, with the motors of rigid joints, and its factor, M = L L^T.
bias : ndarray, shape (n,)
    Efforts without accelerations [N m] or [N].
torque, load : ndarray, shape (n,) and (m,)
    Of the springs on the links and on the motors [N m] or [N].
rate : ndarray, shape (m,)
    Torque by the deflection at each motor [N m/rad] or [N/m].
q, theta : ndarray, shape (n,) and (m,)
    Measured positions of links and motors [rad] or [m].
links, motors : ndarray, shape (5, n) and (4, m)
    Estimated state, in the rows above.
"""

from __future__ import annotations

from math import exp, floor, pi, sqrt
from typing import Any

from numpy import float64
from numpy.typing import NDArray

Vector = NDArray[float64]
Matrix = NDArray[float64]
"""Two indices, the columns one a joint."""
MotorMatrix = NDArray[float64]
"""Two indices, the columns one a motor."""
Index = NDArray[Any]


def limit(n: int, most: Vector, demand: Vector, torque: Vector) -> int:
    """Torques within what motors can give, and how many of those demanded are beyond it.

    Parameters
    ----------
    n : int
    most : ndarray, shape (n,)
        Largest torque in both directions.
    demand : ndarray, shape (n,)
    torque : ndarray, shape (n,)
        Is written.
    """
    count: int = 0
    for i in range(n):
        torque[i] = max(-most[i], min(most[i], demand[i]))
        if torque[i] < demand[i]:
            count += 1
        if torque[i] > demand[i]:
            count += 1
    return count


def factorise(n: int, M: Matrix, L: Matrix) -> int:
    """Lower factor L of M = L L^T; the number of the first column that has none, or zero.

    Parameters
    ----------
    n : int
    M : ndarray, shape (n, n)
        Symmetric, of which the lower triangle is looked at.
    L : ndarray, shape (n, n)
        Its lower triangle is written.
    """
    for i in range(n):
        for j in range(i + 1):
            s = M[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if j < i:
                L[i, j] = s / L[j, j]
            elif s > 0.0:
                L[i, i] = sqrt(s)
            else:
                return i + 1
    return 0


def solve(n: int, L: Matrix, x: Vector) -> None:
    """Replace x by the solution of L L^T y = x.

    Parameters
    ----------
    n : int
    L : ndarray, shape (n, n)
        Of `factorise`.
    x : ndarray, shape (n,)
        Is changed.
    """
    for i in range(n):
        s = x[i]
        for k in range(i):
            s -= L[i, k] * x[k]
        x[i] = s / L[i, i]
    for done in range(n):
        j: int = n - 1 - done
        s = x[j]
        for k in range(j + 1, n):
            s -= L[k, j] * x[k]
        x[j] = s / L[j, j]


def observe(
    n: int,
    m: int,
    T: float,
    share: float,
    joint: Index,
    is_elastic: Vector,
    inertia: Vector,
    link_gains: Matrix,
    motor_gains: MotorMatrix,
    M: Matrix,
    L: Matrix,
    bias: Matrix,
    torque: Matrix,
    load: MotorMatrix,
    applied: Vector,
    q: Vector,
    theta: Vector,
    links: Matrix,
    motors: MotorMatrix,
) -> None:
    """Advance the observers by a sample T and correct them by the measured q and theta.

    `torque` and `load` have a row for either end of the sample, `bias` one for its beginning and
    one for a sample before. M and L are those of the beginning. `links` and `motors` are changed.

    Parameters
    ----------
    share : float
        Of a difference that the low pass takes in a sample.
    link_gains, motor_gains : ndarray, shape (3, n) and (3, m)
        Of positions, velocities and accelerations.
    applied : ndarray, shape (m,)
        Motor torques during the sample, without friction [N m] or [N].
    """
    for i in range(n):
        links[4, i] = links[2, i] - 1.5 * bias[0, i] + 0.5 * bias[1, i]
        if is_elastic[i] > 0.0:
            links[4, i] += 0.5 * (torque[0, i] + torque[1, i])
    for i in range(m):
        if is_elastic[joint[i]] == 0.0:
            links[4, joint[i]] += applied[i]
    solve(n, L, links[4])
    for i in range(n):
        links[0, i] += T * links[1, i] + 0.5 * T * T * links[4, i]
        links[1, i] += T * links[4, i]
        # From here on the row of the accelerations holds what corrects the torque.
        e = q[i] - links[0, i]
        links[0, i] += link_gains[0, i] * e
        links[1, i] += link_gains[1, i] * e
        links[4, i] = link_gains[2, i] * e
    for i in range(n):
        for k in range(n):
            links[2, i] += M[i, k] * links[4, k]
        links[3, i] += share * (links[2, i] - links[3, i])
    for i in range(m):
        if is_elastic[joint[i]] > 0.0:
            a = (applied[i] - 0.5 * (load[0, i] + load[1, i]) + motors[2, i]) / inertia[i]
            motors[0, i] += T * motors[1, i] + 0.5 * T * T * a
            motors[1, i] += T * a
            e = theta[i] - motors[0, i]
            motors[0, i] += motor_gains[0, i] * e
            motors[1, i] += motor_gains[1, i] * e
            motors[2, i] += inertia[i] * motor_gains[2, i] * e
            motors[3, i] += share * (motors[2, i] - motors[3, i])
        else:
            motors[0, i] = links[0, joint[i]]
            motors[1, i] = links[1, joint[i]]
            motors[2, i], motors[3, i] = 0.0, 0.0


def carry_forward(
    n: int,
    m: int,
    samples: int,
    substeps: int,
    T: float,
    joint: Index,
    is_elastic: Vector,
    turns: Vector,
    inertia: Vector,
    L: Matrix,
    bias: Vector,
    torque: Vector,
    rate: Vector,
    load: Vector,
    q: Vector,
    theta: Vector,
    applied: MotorMatrix,
    links: Matrix,
    motors: MotorMatrix,
) -> None:
    """Carry the state forward by some samples, under the torques `applied` in each of them.

    From the measured positions on, springs are lines. Leapfrog; the mass matrix and the bias
    torque are those of the middle. `links` and `motors` are changed.

    Parameters
    ----------
    samples, substeps : int
        How many, and steps in each of them.
    applied : ndarray, shape (1 + samples, m)
        Motor torques from the sample before on, without friction [N m] or [N].
    """
    h = T / substeps
    for step in range(samples * substeps):
        for i in range(n):
            links[0, i] += 0.5 * h * links[1, i]
            links[4, i] = is_elastic[i] * torque[i] - bias[i] + links[2, i]
        for i in range(m):
            motors[0, i] += 0.5 * h * motors[1, i]
            j: int = joint[i]
            acts = applied[1 + step // substeps, i]
            if is_elastic[j] > 0.0:
                change = rate[i] * (
                    motors[0, i] - theta[i] - turns[i] * (links[0, j] - q[j])
                )
                links[4, j] += change
                motors[1, i] += h * (acts - load[i] - change + motors[2, i]) / inertia[i]
            else:
                links[4, j] += acts
        solve(n, L, links[4])
        for i in range(n):
            links[1, i] += h * links[4, i]
            links[0, i] += 0.5 * h * links[1, i]
        for i in range(m):
            motors[0, i] += 0.5 * h * motors[1, i]


def tracking_law(
    n: int,
    m: int,
    T: float,
    w: float,
    joint: Index,
    is_elastic: Vector,
    turns: Vector,
    share: Vector,
    inertia: Vector,
    damping: Vector,
    limit: Vector,
    M: Matrix,
    stiffness: Vector,
    torque: Vector,
    rate: Vector,
    q: Vector,
    theta: Vector,
    links: Matrix,
    motors: MotorMatrix,
    desired: Matrix,
    effort: Matrix,
    feed_forward: Vector,
    work: Matrix,
    demand: Vector,
) -> None:
    """Torques of the motors for a state, and wanted motion and efforts half a sample later.

    `inertia` and `limit` are those of the motors of each joint (n,); w is the bandwidth [rad/s].
    `desired` (5, n) holds position to snap, `effort` (3, n) its efforts, `feed_forward` (m,) the
    motor torques. `work` has eight rows, `demand` (m,) is written.
    """
    for i in range(n):
        h = -0.5 * T
        position = desired[3, i] + 0.25 * h * desired[4, i]
        position = desired[1, i] + 0.5 * h * (desired[2, i] + h / 3.0 * position)
        work[0, i] = desired[0, i] + h * position - links[0, i]
        velocity = desired[2, i] + 0.5 * h * (desired[3, i] + h / 3.0 * desired[4, i])
        work[1, i] = desired[1, i] + h * velocity - links[1, i]
        wanted = effort[0, i] + h * (effort[1, i] + 0.5 * h * effort[2, i])
        work[2, i] = wanted - links[3, i] - torque[i]
        work[3, i] = effort[1, i] + h * effort[2, i]
        c, D = 0.0, 0.0
        if is_elastic[i] > 0.0:
            c = inertia[i] / stiffness[i]
            W = sqrt(stiffness[i] * (1.0 / M[i, i] + 1.0 / inertia[i]))
            D = min(1.4 * W, 3.0 * w) * max(0.0, 1.0 - 2.0 / pi * W * T)
            # The spring turns with what a damper leaves.
            work[3, i] -= damping[i] / stiffness[i] * effort[2, i]
        work[4, i], work[5, i] = c, D
        own = M[i, i] + is_elastic[i] * inertia[i]
        gains = (2.0 * w * own + w * w * c * D * M[i, i]) / (w * w * own)
        largest = 0.3 * limit[i] / own * gains * gains
        work[0, i] = max(-largest, min(largest, work[0, i]))
        work[6, i] = w * (w * work[0, i] + 2.0 * work[1, i])
    for i in range(m):
        j: int = joint[i]
        work[2, j] -= rate[i] * (motors[0, i] - theta[i] - turns[i] * (links[0, j] - q[j]))
        work[3, j] -= rate[i] * (motors[1, i] - turns[i] * links[1, j])
    for i in range(n):
        c, D = work[4, i], work[5, i]
        B = is_elastic[i] * inertia[i]
        u = c * (w * w + 2.0 * w * D) * work[2, i] + c * (D + 2.0 * w) * work[3, i]
        u += B * work[6, i]
        for k in range(n):
            u += M[i, k] * (work[6, k] + w * w * c * D * work[1, k])
        work[7, i] = u - links[3, i]
    for i in range(m):
        demand[i] = feed_forward[i] + share[i] * work[7, joint[i]] - motors[3, i]


def approach(n: int, T: float, p: float, distance: Matrix) -> float:
    """Advance a distance and its derivatives by a sample; return the largest of them.

    It goes to zero as (d/dt + p)^5 d = 0, so that d e^(p t) is a polynomial of degree 4.

    Parameters
    ----------
    n : int
    T : float
        [s]
    p : float
        [1/s]
    distance : ndarray, shape (5, n)
        Is changed.
    """
    decay, largest = exp(-p * T), 0.0
    for i in range(n):
        d0, d1, d2 = distance[0, i], distance[1, i], distance[2, i]
        y1 = d1 + p * d0
        y2 = d2 + p * (2.0 * d1 + p * d0)
        y3 = distance[3, i] + p * (3.0 * d2 + p * (3.0 * d1 + p * d0))
        y4 = 4.0 * distance[3, i] + p * (6.0 * d2 + p * (4.0 * d1 + p * d0))
        y4 = distance[4, i] + p * y4
        z0 = d0 + T * (y1 + 0.5 * T * (y2 + T / 3.0 * (y3 + 0.25 * T * y4)))
        z1 = y1 + T * (y2 + 0.5 * T * (y3 + T / 3.0 * y4))
        z2 = y2 + T * (y3 + 0.5 * T * y4)
        z3 = y3 + T * y4
        distance[0, i] = decay * z0
        distance[1, i] = decay * (z1 - p * z0)
        distance[2, i] = decay * (z2 - p * (2.0 * z1 - p * z0))
        distance[3, i] = decay * (z3 - p * (3.0 * z2 - p * (3.0 * z1 - p * z0)))
        distance[4, i] = y4 - p * (4.0 * z3 - p * (6.0 * z2 - p * (4.0 * z1 - p * z0)))
        distance[4, i] *= decay
        for k in range(5):
            largest = max(largest, abs(distance[k, i]))
    return largest


def approach_pole(
    n: int, fastest: float, speed: Vector, acceleration: Vector, distance: Matrix
) -> float:
    """Pole p of `approach` at which no joint goes faster or accelerates more than it may.

    From rest the speed is p d x^4 e^-x / 24 with x = p t: at most 0.1954 p d; the acceleration is
    at most 0.0902 p^2 d.

    Parameters
    ----------
    n : int
    fastest : float
        Largest pole [1/s].
    speed, acceleration : ndarray, shape (n,)
        Largest ones of each joint.
    distance : ndarray, shape (5, n)
        At the beginning; its first row is looked at.
    """
    p = fastest
    for i in range(n):
        d = abs(distance[0, i])
        if 0.1954 * p * d > speed[i]:
            p = speed[i] / (0.1954 * d)
        if 0.0902 * p * p * d > acceleration[i]:
            p = sqrt(acceleration[i] / (0.0902 * d))
    return p


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
        if abs(values[i] - likely) <= T * reach[i]:
            since[i] = 0.0
        else:
            values[i] = likely
            since[i] += 1.0
            count += 1
    return count


def watch(
    m: int,
    T: float,
    forget: float,
    slow: float,
    joint: Index,
    is_single: Vector,
    inertia: Vector,
    gains: MotorMatrix,
    applied: Vector,
    load: Vector,
    motors: MotorMatrix,
    before: MotorMatrix,
    shadow: MotorMatrix,
    explains: MotorMatrix,
    sums: MotorMatrix,
    found: MotorMatrix,
) -> None:
    """Gather what explains the torques that motors lack, for least squares.

    Samples before have weights `forget`^k. Rows of `explains`, each as the observer finds it
    (`shadow`): change of the torque from sample to sample, speed, its sign, acceleration, load,
    which way the load goes, one. Rows of `sums`: A and b of the normal equations A c = b, the
    weights, the squares of what is explained, and those of what `found` leaves of it, as it is and
    behind a low pass `slow`. Rows of `found`: c, what is left behind the low pass. Rows of
    `before`: torque, speed, time since the motor was slower than 0.02 rad/s or m/s (where it turns
    back, no law of friction holds, and nothing is gathered), the load behind the low pass, and the
    mean square of what that leaves.
    """
    for i in range(m):
        if is_single[joint[i]] > 0.0:
            speed, rising = motors[1, i], load[i] - before[3, i]
            before[3, i] += slow * rising
            before[4, i] += 0.1 * slow * (rising * rising - before[4, i])
            explains[0, i] = before[0, i] - applied[i]
            explains[1, i] = speed
            explains[2, i] = speed / sqrt(speed * speed + 4e-4)
            explains[3, i] = inertia[i] * (speed - before[1, i]) / T
            explains[4, i] = load[i]
            explains[5, i] = rising / sqrt(rising * rising + 0.1 * before[4, i] + 1e-12)
            explains[6, i] = 1.0
            before[0, i], before[1, i] = applied[i], speed
            for k in range(6):
                a = shadow[3 * k + 2, i] - explains[k, i] / inertia[i]
                shadow[3 * k, i] += T * shadow[3 * k + 1, i] + 0.5 * T * T * a
                shadow[3 * k + 1, i] += T * a
                e = -shadow[3 * k, i]
                for row in range(3):
                    shadow[3 * k + row, i] += gains[row, i] * e
                explains[k, i] = inertia[i] * shadow[3 * k + 2, i]
            before[2, i] += T
            if abs(speed) < 0.02:
                before[2, i] = 0.0
            if before[2, i] > 0.01:
                left = motors[2, i]
                for k in range(7):
                    left -= found[k, i] * explains[k, i]
                    for j in range(7):
                        product = explains[k, i] * explains[j, i]
                        sums[7 * k + j, i] = forget * sums[7 * k + j, i] + product
                    sums[49 + k, i] = (
                        forget * sums[49 + k, i] + explains[k, i] * motors[2, i]
                    )
                found[7, i] += slow * (left - found[7, i])
                sums[56, i] = forget * sums[56, i] + 1.0
                sums[57, i] = forget * sums[57, i] + motors[2, i] * motors[2, i]
                sums[58, i] += left * left
                sums[59, i] += found[7, i] * found[7, i]


def outside(rows: int, n: int, lowest: Matrix, highest: Matrix, values: Matrix) -> int:
    """Number of the first value (rows, n), from one on, beyond its bounds or NaN; zero: none."""
    for k in range(rows):
        for i in range(n):
            is_within: int = 0
            if values[k, i] >= lowest[k, i]:
                if values[k, i] <= highest[k, i]:
                    is_within = 1
            if is_within == 0:
                return 1 + k * n + i
    return 0


def passed(
    n: int,
    T: float,
    counts: Vector,
    values: Vector,
    last: Vector,
    speed: Vector,
    least: Vector,
) -> float:
    """Samples that have passed since the last positions, as the motion tells; 1 if it does not.

    It does if the positions of what moves have gone on by the same time at the estimated speeds,
    to a fifth, and if this is a whole number of samples: no torque can do that in a sample. None
    have passed if all positions are the same.

    Parameters
    ----------
    n : int
    T : float
        Sample time [s].
    counts : ndarray, shape (n,)
        1 for positions that are looked at, else 0.
    values, last, speed : ndarray, shape (n,)
        Measured positions, those before, and estimated speeds.
    least : ndarray, shape (n,)
        Least change of each position so far; is changed.
    """
    many, ways, squares, moved, any_way = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        way = values[i] - last[i]
        any_way += counts[i] * abs(way)
        if abs(way) > 0.0:
            least[i] = min(least[i], abs(way))
        if counts[i] * abs(speed[i]) * T > 8.0 * least[i]:
            many += 1.0
            ways += way * speed[i] * T
            squares += speed[i] * speed[i] * T * T
            moved += way * way
    # What is slow may stand still between two counts, and what is alone may be wrong.
    if squares < 1e-8:
        return 1.0
    if many < 2.0:
        return 1.0
    if any_way == 0.0:
        return 0.0
    if ways > 1.5 * squares:
        if ways < 1000.0 * squares:
            found = ways / squares
            samples = floor(found + 0.5)
            if moved - found * found * squares < 0.04 * moved:
                if abs(found - samples) < 0.1 * samples:
                    return samples
    return 1.0


def doubt(
    m: int,
    T: float,
    share: float,
    joint: Index,
    is_elastic: Vector,
    gains: MotorMatrix,
    most: Vector,
    rate: Vector,
    theta: Vector,
    load: Vector,
    missing: Vector,
    before: MotorMatrix,
    doubted: Vector,
) -> None:
    """Motors whose measured position stands still while their springs turn.

    A motor that is held, as by a brake or its friction, lets its spring push the link. If its
    measurement alone stands still, the link does not feel what the deflection tells: the torque
    that the model lacks is as large, as far as the observer has found it by then, or larger.

    Parameters
    ----------
    m : int
    joint, is_elastic
    T : float
        Time since the sample before [s].
    share : float
        Of the torque of a motor by which the load of its spring has to change.
    gains : ndarray, shape (3, m)
        Of the observers.
    most : ndarray, shape (m,)
        Largest torques of the motors [N m] or [N]; infinite where there is none.
    rate, theta
    load, missing : ndarray, shape (m,)
        Torques of the springs by their deflections, and what the links feel beside them.
    before : ndarray, shape (6, m)
        Positions from which on the motors stand, with both torques; how the observer would find
        the opposite of what the load has changed by since. Is changed.
    doubted : ndarray, shape (m,)
        1 for each motor in doubt, until it moves; is changed.
    """
    for i in range(m):
        turned = share * min(most[i], 0.2 * rate[i])
        if rate[i] * abs(theta[i] - before[0, i]) > 0.02 * turned:
            before[0, i], before[1, i], before[2, i] = theta[i], load[i], missing[i]
            before[3, i], before[4, i], before[5, i] = 0.0, 0.0, 0.0
            doubted[i] = 0.0
        change = load[i] - before[1, i]
        a = before[5, i] + change
        before[3, i] += T * before[4, i] + 0.5 * T * T * a
        before[4, i] += T * a
        e = -before[3, i]
        for k in range(3):
            before[3 + k, i] += gains[k, i] * e
        found = abs(before[5, i])
        if abs(change) > turned:
            if found > 0.25 * turned:
                if abs(missing[i] - before[2, i]) > 0.75 * found:
                    doubted[i] = is_elastic[joint[i]]


def hold(
    m: int,
    T: float,
    share: float,
    spring_share: float,
    time: float,
    duration: float,
    joint: Index,
    stiffness: Vector,
    damping: Vector,
    spring_damping: Vector,
    limit: Vector,
    weight: Vector,
    q: Vector,
    theta: Vector,
    speed: Vector,
    doubted: Vector,
    rest: MotorMatrix,
    torque: Vector,
) -> float:
    """Torques of motors that come to rest in a duration, and are held there.

    The speed falls by a polynomial of degree 5. Motors in doubt carry the weight alone. Returned
    is the power by which the others drive the links, beside the weight and the torque before.

    Parameters
    ----------
    m : int
    T : float
        Sample time [s].
    share, spring_share : float
        Of a difference that the low passes of speed and deflection take in a sample.
    time, duration : float
        Since the stop began, and in which the motors come to rest [s].
    joint : ndarray of int, shape (m,)
        That each motor moves.
    stiffness, damping, spring_damping : ndarray, shape (m,)
        Of `Holding`.
    limit, weight : ndarray, shape (m,)
        Largest torque, and that which carries the weight.
    q, theta : ndarray, shape (n,) and (m,)
        Measured positions.
    speed : ndarray, shape (n,)
        Of the links.
    doubted : ndarray, shape (m,)
        Not zero for motors whose position is not to be trusted.
    rest : ndarray, shape (7, m)
        Position and velocity at which motors were told to stop; latest position and speed by a low
        pass; the same of the deflection of the spring; what is left of the torque before. All rows
        but the last are changed.
    torque : ndarray, shape (m,)
        Is written.
    """
    x = min(1.0, time / duration)
    pace = 1.0 - x * x * x * (10.0 - x * (15.0 - 6.0 * x))
    way = duration * (x - x * x * x * x * (2.5 - x * (3.0 - x)))
    power = 0.0
    for i in range(m):
        rest[3, i] += share * ((theta[i] - rest[2, i]) / T - rest[3, i])
        rest[2, i] = theta[i]
        deflection = theta[i] - q[joint[i]]
        rest[5, i] += spring_share * ((deflection - rest[4, i]) / T - rest[5, i])
        rest[4, i] = deflection
        e = rest[0, i] + way * rest[1, i] - theta[i]
        rate = pace * rest[1, i] - rest[3, i]
        torque[i] = weight[i]
        if doubted[i] == 0.0:
            loops = stiffness[i] * e + damping[i] * rate - spring_damping[i] * rest[5, i]
            power += loops * speed[joint[i]]
            torque[i] += loops + rest[6, i]
        else:
            rest[0, i], rest[1, i] = theta[i], 0.0
        torque[i] = max(-limit[i], min(limit[i], torque[i]))
    return power


def interaction_state(
    n: int,
    T: float,
    is_elastic: Vector,
    torque: Vector,
    rate: Vector,
    links_now: Matrix,
    motors_now: Matrix,
    links: Matrix,
    motors: Matrix,
    slow: Vector,
    state: Matrix,
) -> None:
    """State of springs and motors when the answer of a law for interaction acts.

    The rate of the torque is that of what is measured alone, since an estimated velocity of the
    links lags behind when they are pushed, and a damper of it would then drive them.

    Parameters
    ----------
    n : int
    T : float
        Sample time [s].
    is_elastic : ndarray, shape (n,)
        1 where there is a spring, else 0.
    torque, rate : ndarray, shape (n,)
        Of the springs at the measurement, and by the deflection.
    links_now, motors_now, links, motors : ndarray, shape (K, n), K >= 2
        Estimates at the measurement, and a delay later.
    slow : ndarray, shape (n,)
        `torque` behind a low pass; is changed.
    state : ndarray, shape (5, n)
        Is written: torque and its rate, position and velocity of the motors, of rigid joints those
        of the links, and the velocity once more.
    """
    for i in range(n):
        slow[i] += 0.4 * (torque[i] - slow[i])
        state[1, i] = (torque[i] - slow[i]) / (1.5 * T)
        # Torques act half a sample later than the state for which they are found, and a delay.
        meanwhile = motors[0, i] - motors_now[0, i] - links[0, i] + links_now[0, i]
        state[0, i] = torque[i] + rate[i] * meanwhile + 0.5 * T * state[1, i]
        if is_elastic[i] > 0.0:
            state[2, i], state[3, i] = motors[0, i], motors[1, i]
        else:
            state[2, i], state[3, i] = links[0, i], links[1, i]
        state[2, i] += 0.5 * T * state[3, i]
        state[4, i] = state[3, i]


def along_motion(
    n: int,
    T: float,
    inertia: Vector,
    ringing: Vector,
    motion: Matrix,
    effort: Matrix,
    state: Matrix,
    forward: Vector,
) -> None:
    """Torques that move the motors and turn their springs, with a wanted motion of the motors.

    Parameters
    ----------
    n : int
    T : float
        Sample time [s].
    inertia, ringing : ndarray, shape (n,)
        Of the motors as they feel, and D_s / K [s].
    motion, effort : ndarray, shape (K, n)
        Wanted motion of the motors up to the acceleration, and efforts up to their rate.
    state : ndarray, shape (5, n)
        The last row becomes the velocity by which the motors differ from the motion.
    forward : ndarray, shape (n,)
        Is written.
    """
    for i in range(n):
        forward[i] = inertia[i] * motion[2, i] + ringing[i] * effort[1, i]
        state[4, i] -= motion[1, i] - 0.5 * T * motion[2, i]


def rest_torque(
    n: int,
    stiffness: Matrix,
    goal: Vector,
    q: Vector,
    motion: Vector,
    weight: Vector,
    torque: Vector,
) -> None:
    """Torques wanted of the springs for links that rest at q, with those of a wanted motion."""
    for i in range(n):
        torque[i] = motion[i] + weight[i]
        for k in range(n):
            torque[i] += stiffness[i, k] * (goal[k] - q[k])


def rest_step(
    n: int,
    compliance: Vector,
    felt: Matrix,
    position: Vector,
    deflection: Vector,
    q: Vector,
    missing: Vector,
    step: Vector,
) -> None:
    """Newton's step towards the links' position q of rest on motors that are held.

    Parameters
    ----------
    n : int
    compliance : ndarray, shape (n,)
        Of the springs.
    felt : ndarray, shape (n, n)
        Stiffness at the motors.
    position : ndarray, shape (n,)
        Of the motors.
    deflection : ndarray, shape (n,)
        Of springs that carry what is wanted at q.
    q, missing, step : ndarray, shape (n,)
        q is changed, the others are written: what is missing in q, and the step.
    """
    for i in range(n):
        missing[i] = position[i] - q[i] - deflection[i]
    for i in range(n):
        pull = 0.0
        for k in range(n):
            pull += felt[i, k] * missing[k]
        step[i] = missing[i] + compliance[i] * pull
        q[i] += step[i]


def after_step(
    n: int, stiffness: Matrix, step: Vector, torque: Vector, forward: Vector, wanted: Vector
) -> None:
    """Torques wanted of the springs, and some more, once the links' position of rest is found."""
    for i in range(n):
        wanted[i] = forward[i] + torque[i]
        for k in range(n):
            wanted[i] -= stiffness[i, k] * step[k]


def eigenvectors(n: int, A: Matrix, U: Matrix) -> None:
    """Columns U of eigenvectors of a symmetric matrix, whose diagonal becomes the eigenvalues.

    Cyclic Jacobi rotations, Golub and Van Loan, "Matrix Computations", section 8.5.
    """
    for i in range(n):
        for k in range(n):
            U[i, k] = 0.0
        U[i, i] = 1.0
    for _ in range(30):
        size, off = 0.0, 0.0
        for i in range(n):
            size += A[i, i] * A[i, i]
            for k in range(i):
                off += A[i, k] * A[i, k]
        if off <= 1e-31 * size:
            return
        for j in range(1, n):
            for i in range(j):
                if abs(A[i, j]) > 0.0:
                    turn = (A[j, j] - A[i, i]) / (2.0 * A[i, j])
                    t = 1.0 / (abs(turn) + sqrt(1.0 + turn * turn))
                    if turn < 0.0:
                        t = -t
                    c = 1.0 / sqrt(1.0 + t * t)
                    s = t * c
                    for k in range(n):
                        x, y = A[k, i], A[k, j]
                        A[k, i] = c * x - s * y
                        A[k, j] = s * x + c * y
                        u, v = U[k, i], U[k, j]
                        U[k, i] = c * u - s * v
                        U[k, j] = s * u + c * v
                    for k in range(n):
                        x, y = A[i, k], A[j, k]
                        A[i, k] = c * x - s * y
                        A[j, k] = s * x + c * y
                    A[i, j], A[j, i] = 0.0, 0.0


def by_inertia(n: int, L: Matrix, felt: Matrix, A: Matrix) -> None:
    """Stiffness L^-1 K_m L^-T in coordinates in which the inertia L L^T is one."""
    for i in range(n):
        for j in range(n):
            A[i, j] = 0.5 * (felt[i, j] + felt[j, i])
            for k in range(i):
                A[i, j] -= L[i, k] * A[k, j]
            A[i, j] /= L[i, i]
    for j in range(n):
        for i in range(n):
            for k in range(j):
                A[i, j] -= A[i, k] * L[j, k]
            A[i, j] /= L[j, j]
    for i in range(n):
        for j in range(i):
            A[i, j] = 0.5 * (A[i, j] + A[j, i])
            A[j, i] = A[i, j]


def dampers(
    n: int,
    ratio: float,
    is_elastic: Vector,
    inertia: Vector,
    M: Matrix,
    felt: Matrix,
    damping: Matrix,
    velocity: Vector,
    L: Matrix,
    A: Matrix,
    U: Matrix,
    work: Matrix,
    torque: Vector,
) -> None:
    """Take the torques of dampers with some velocities from `torque`.

    Beside those of `damping` they are 2 ratio L (L^-1 K_m L^-T)^(1/2) L^T, with the stiffness K_m
    that motors feel and the factor L L^T of the inertia of motors and links.

    Parameters
    ----------
    n : int
    ratio : float
        Damping ratio.
    is_elastic, inertia : ndarray, shape (n,)
        1 where there is a spring, else 0; inertia of the motors as they feel.
    M, felt, damping : ndarray, shape (n, n)
        Mass matrix, K_m, damping of the motors against the ground.
    velocity : ndarray, shape (n,)
    L, A, U : ndarray, shape (n, n)
        Are overwritten.
    work : ndarray, shape (2, n)
        Is overwritten.
    torque : ndarray, shape (n,)
        Is changed.
    """
    for i in range(n):
        for k in range(n):
            torque[i] -= damping[i, k] * velocity[k]
            A[i, k] = M[i, k]
        A[i, i] += is_elastic[i] * inertia[i]
    if ratio > 0.0:
        factorise(n, A, L)
        by_inertia(n, L, felt, A)
        eigenvectors(n, A, U)
        largest = 0.0
        for i in range(n):
            largest = max(largest, A[i, i])
            work[0, i] = 0.0
            for k in range(i, n):
                work[0, i] += L[k, i] * velocity[k]
        for j in range(n):
            work[1, j] = 0.0
            # Of a stiffness that is zero, rounding leaves something, whose root is no rounding.
            if A[j, j] > 1e-14 * largest:
                for i in range(n):
                    work[1, j] += U[i, j] * work[0, i]
                work[1, j] *= 2.0 * ratio * sqrt(A[j, j])
        for i in range(n):
            work[0, i] = 0.0
            for j in range(n):
                work[0, i] += U[i, j] * work[1, j]
        for i in range(n):
            for k in range(i + 1):
                torque[i] -= L[i, k] * work[0, k]


def torques_ahead(
    n: int,
    inertia: Vector,
    compliance: Vector,
    ringing: Vector,
    desired: Matrix,
    wanted: Vector,
) -> None:
    """Torques at motors that turn their springs so that the links get those wanted."""
    for i in range(n):
        wanted[i] = desired[0, i] + ringing[i] * desired[1, i]
        wanted[i] += inertia[i] * compliance[i] * desired[2, i]


def where_it_moves(n: int, state: Matrix, friction: Vector) -> None:
    """Take less of a known friction of motors that crawl, slower than 0.01 rad/s or m/s."""
    for i in range(n):
        friction[i] *= min(1.0, abs(state[3, i]) / 0.01)


def interaction_law(
    n: int,
    gain: Vector,
    ringing: Vector,
    state: Matrix,
    wanted: Vector,
    friction: Vector,
    demand: Vector,
) -> None:
    """Torques of motors that feel by `gain` lighter than they are and get the torques wanted."""
    for i in range(n):
        u = wanted[i] - ringing[i] * state[1, i]
        demand[i] = state[0, i] + gain[i] * (u - state[0, i]) + friction[i]
