"""A robot that has been stopped: its motors are held or give way, until it may move on.

One text for Python and C, see `step`. Source of the equations: `guards`.
"""

from __future__ import annotations

from math import exp, sqrt

from hodyn_ros.control.guards import AT_REST
from hodyn_ros.control.kernels import Vector
from hodyn_ros.control.layouts import (
    ENCODER_LOST,
    ENCODER_STANDS,
    RUNAWAY,
    SILENCE,
    Law,
    Observer,
)
from hodyn_ros.control.observing import is_lost, push
from hodyn_ros.control.robot_code import gravity
from hodyn_ros.control.suspicion import MOST_GATED

# Torque of a spring, by the torque limit of its motors, that no robot has for long.
OVERLOAD = 2.0
# Of v M v at a stop, by which links have been driven that are said to run away.
RUN_UP = 0.25
# Largest damping of a motor that is held, by its inertia and the sample time, and by its inertia
# and the bandwidth; resonance from which on the springs are not damped, since a delay that nobody
# knows would turn it round [rad/s].
MOST_DAMPING, MOST_TURNED, FASTEST_DAMPED = 0.3, 3.0, 200.0
# How much slower than the resonance of its joint a motor is held that is held by its link, and how
# much faster than that the low passes of the speed are.
SLOWER, SMOOTHER = 24.0, 8.0


# --- By which encoder ---------------------------------------------------------------------------


def is_unsure(o: Observer, c: Law, i: int) -> int:
    """Whether the position of a motor is not measured, or nothing that holds is trusted."""
    if is_lost(o, i) or c.runaway or c.strained[i] >= MOST_GATED:
        return 1
    return 0


def is_by_link(o: Observer, c: Law, i: int) -> int:
    """Whether the position of its link has to do for a motor behind a spring."""
    j: int = o.joint[i]
    if not is_unsure(o, c, i) or not o.is_elastic[j] or not o.turns[i]:
        return 0
    if o.since[j] >= MOST_GATED or c.runaway == SILENCE:
        return 0
    return 1


def take_hold(o: Observer, c: Law, i: int, touches: float) -> None:
    """Begin to hold a motor where it is, or its link is; see `hold` for the rows of `stopping`.

    Stiffness and damping put both poles of each motor with its link at the bandwidth, as far as
    the sample time permits; motors that float have no stiffness. By the position of the link the
    torque would drive the resonance: with the damping d the amplitude grows by d / (2 (B + M)),
    if the speed comes at once. Two low passes, at a third of the resonance, turn that round.
    """
    j: int = o.joint[i]
    h, link = c.holding, o.turns[i] * o.ahead_mass[j, j]
    moved, turned, speed, theta = link, link, o.links[1, j], o.q[j]
    c.spring_damping[i] = 0.0
    c.share[i] = c.speed_share
    if o.is_elastic[j]:
        moved, turned = o.inertia[i] + o.part[i] * link, o.inertia[i]
        fast = 1.0 / o.ahead_mass[j, j] + 1.0 / o.joint_inertia[j]
        fast = sqrt(o.stiffness[j] * fast)
        if c.by_link[i]:
            turned = moved
            h = min(h, fast / SLOWER)
            c.share[i] = 1.0 - exp(-SMOOTHER * h * o.T)
        else:
            speed, theta = o.motors[1, i], o.theta[i]
            c.spring_damping[i] = 2.0 * c.ringing * turned
            c.spring_damping[i] *= max(0.0, 1.0 - fast / FASTEST_DAMPED)
    most = min(MOST_TURNED * h, MOST_DAMPING / o.T) * turned
    c.hold_damping[i] = min(2.0 * h * moved, most)
    c.hold_stiffness[i] = min(h * h * moved, h * c.hold_damping[i])
    if c.gives_way:
        c.hold_stiffness[i] = 0.0
    # The low passes begin with what is known, a sample before.
    turning = speed - o.links[1, j]
    if c.by_link[i]:
        turning = speed
    c.stopping[0, i] = theta
    c.stopping[1, i] = (1.0 - touches) * max(-c.speed[j], min(c.speed[j], speed))
    c.stopping[2, i], c.stopping[3, i] = theta - o.T * speed, speed
    c.stopping[4, i] = theta - o.q[j] - o.T * turning
    c.stopping[5, i], c.stopping[6, i] = turning, 0.0


def carry(o: Observer, c: Law) -> None:
    """Torques of motors that carry the weight, where they are, and which are in doubt."""
    gravity(o, o.q, o.weight)
    for i in range(o.m):
        j: int = o.joint[i]
        o.motor_weight[i] = o.part[i] * o.weight[j]
        by_link: int = is_by_link(o, c, i)
        if by_link != c.by_link[i]:
            c.by_link[i] = by_link
            take_hold(o, c, i, 1.0)
        o.positions[i] = o.theta[i]
        if by_link or not o.is_elastic[j]:
            o.positions[i] = o.q[j]
        o.unsure[i] = is_unsure(o, c, i) - by_link


def keep_apart(o: Observer) -> None:
    """Add what the springs of one joint pull against each other with."""
    o.column[:] = 0.0
    for i in range(o.m):
        o.missing[i] = o.load[1, i]
        if o.doubted[i]:
            o.missing[i] = o.stood[1, i]
        o.column[o.joint[i]] += o.missing[i]
    for i in range(o.m):
        o.motor_weight[i] += o.missing[i]
        if o.turns[i]:
            o.motor_weight[i] -= o.part[i] * o.column[o.joint[i]]


def loops(o: Observer, c: Law, i: int, pace: float, way: float) -> float:
    """Torque of the loops that hold a motor, beside the weight and what is left of before."""
    theta = o.positions[i]
    deflection = theta - o.q[o.joint[i]]
    speed = (theta - c.stopping[2, i]) / o.T
    turning = (deflection - c.stopping[4, i]) / o.T
    c.stopping[3, i] += c.share[i] * (speed - c.stopping[3, i])
    if c.by_link[i]:
        c.stopping[5, i] += c.share[i] * (c.stopping[3, i] - c.stopping[5, i])
        speed = c.stopping[5, i]
    else:
        c.stopping[5, i] += c.spring_share * (turning - c.stopping[5, i])
        speed = c.stopping[3, i]
    c.stopping[2, i], c.stopping[4, i] = theta, deflection
    e = c.stopping[0, i] + way * c.stopping[1, i] - theta
    rate = pace * c.stopping[1, i] - speed
    torque: float = c.hold_stiffness[i] * e + c.hold_damping[i] * rate
    torque -= c.spring_damping[i] * c.stopping[5, i]
    return torque


def hold(o: Observer, c: Law) -> None:
    """Torques of motors that come to rest in a duration, and are held there.

    The speed falls by a polynomial of degree 5. Motors in doubt are held by the positions of their
    links, or carry the weight alone. `driven` is the work by which the others drive the links,
    beside the weight and the torque before.

    Rows of `stopping` (7, m): position and velocity at which motors were told to stop; latest
    position and speed by a low pass; the same of the deflection of the spring, or by a motor's
    link the speed by a second low pass; what is left of the torque before.
    """
    carry(o, c)
    if o.is_variable:
        keep_apart(o)
    x = min(1.0, c.stopped_for / c.stop_duration)
    pace = 1.0 - x * x * x * (10.0 - x * (15.0 - 6.0 * x))
    way = c.stop_duration * (x - x * x * x * x * (2.5 - x * (3.0 - x)))
    power = 0.0
    for i in range(o.m):
        torque, held = o.motor_weight[i], loops(o, c, i, pace, way)
        if not o.unsure[i]:
            power += held * o.links[1, o.joint[i]]
            torque += held + c.stopping[6, i]
        else:
            c.stopping[0, i], c.stopping[1, i] = o.positions[i], 0.0
        o.motor_torque[i] = max(-c.limit[i], min(c.limit[i], torque))
    c.driven += power


def hold_here(o: Observer, c: Law, before: Vector, touches: float) -> None:
    """Bring the motors to rest from where they are measured, and from torques before.

    Where the robot has touched something, motors are to rest where they are.
    """
    o.wary = 1.0
    c.beyond, c.limited_for, c.stopped_for = 0.0, 0.0, 0.0
    for i in range(o.m):
        c.by_link[i] = is_by_link(o, c, i)
        take_hold(o, c, i, touches)
    hold(o, c)
    c.driven = 0.0
    for i in range(o.m):
        if not o.doubted[i]:  # whose torque before was none to go on with
            c.stopping[6, i] = before[i] - o.motor_torque[i]
    for i in range(o.n):
        for k in range(o.n):
            c.driven -= RUN_UP * o.links[1, i] * o.ahead_mass[i, k] * o.links[1, k]


def hold_found(o: Observer, c: Law, touches: float) -> None:
    """Bring the motors to rest from the torque that was answered before, or acts."""
    if c.answered:
        hold_here(o, c, c.command, touches)
    else:
        hold_here(o, c, o.acting, touches)


def stop(
    o: Observer, c: Law, reason: int, culprit: int, floats: float, touches: float
) -> None:
    """Bring the motors to rest, from the next measurement on if there has been none."""
    c.reason, c.culprit, c.gives_way = reason, culprit, floats
    if o.running:
        hold_found(o, c, touches)


def see_faults(o: Observer, c: Law) -> None:
    """Why the robot is stopped, if more is known by now than why it has been."""
    if c.runaway:
        c.reason, c.culprit = c.runaway, -1.0
    for done in range(o.m):
        i: int = o.m - 1 - done
        j: int = o.joint[i]
        missed = max(o.motor_since[i], c.strained[i])
        if not o.is_elastic[j]:
            missed = o.since[j]
        if missed >= MOST_GATED:
            c.reason, c.culprit = ENCODER_LOST, i
    for done in range(o.m):
        last: int = o.m - 1 - done
        if o.doubted[last]:
            c.reason, c.culprit = ENCODER_STANDS, last


def strain(o: Observer, c: Law) -> None:
    """Count the samples in which a spring would carry what it cannot, until a reset."""
    for i in range(o.m):
        j: int = o.joint[i]
        if o.turns[i] and abs(o.deflected[j]) > OVERLOAD * c.joint_limit[j]:
            c.strained[i] += 1.0
        elif c.strained[i] < MOST_GATED:
            c.strained[i] = 0.0


def stay(o: Observer, c: Law) -> None:
    """Torques of a robot that has been stopped.

    Links that get faster than they may by what holds them are left to brakes, for good.
    """
    strain(o, c)
    see_faults(o, c)
    c.stopped_for += o.T
    hold(o, c)
    c.stopping[6] *= c.hold_fading
    is_fast: int = 0
    for i in range(o.n):
        if abs(o.links[1, i]) > c.too_fast[i]:
            is_fast = 1
    c.beyond += 1.0
    if not is_fast or c.stopped_for <= c.stop_duration:
        c.beyond = 0.0
    if c.beyond >= c.violation_samples and c.driven > 0.0 and not c.runaway:
        c.runaway = RUNAWAY
        see_faults(o, c)
        hold(o, c)
    o.friction[:] = 0.0
    o.demand[:] = o.motor_torque
    push(o)


def moving_motor(o: Observer) -> int:
    """Number, from one on, of the motor that moves most; zero if all of them rest."""
    found: int = 0
    largest = AT_REST
    for i in range(o.m):
        speed = abs(o.motors[1, i])
        if not o.is_elastic[o.joint[i]]:
            speed = abs(o.links[1, o.joint[i]])
        if not speed <= largest:
            largest = speed
            found = i + 1
    return found


def unready(o: Observer, c: Law) -> int:
    """Why a robot that has been stopped may not go on; 0 if it may.

    1 + i: motor i moves; -1: it has run away; -2: its positions cannot be true; -3: they are not
    measured; -4 - j: joint j is beyond a bound of its position, or -4 - n - j: its torque sensor
    cannot be true.
    """
    if c.runaway:
        return -1
    if not o.running:
        return -3
    for i in range(o.m):
        missed = max(o.motor_since[i], o.since[o.joint[i]])
        if max(missed, c.strained[i]) >= MOST_GATED:
            return -2
    culprit: int = moving_motor(o)
    for j in range(o.n):
        q = o.links[0, j]
        if culprit == 0 and not (q >= c.lowest[0, j] and q <= c.highest[0, j]):
            return -4 - j
        if culprit == 0 and o.sensor_since[j] >= MOST_GATED:
            culprit = -4 - o.n - j
    return culprit
