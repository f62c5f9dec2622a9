"""A robot that has been stopped: its motors are held or give way, until it may move on.

One text for Python and C, see `step`. Source of the equations: `guards`.
"""

from __future__ import annotations

from math import sqrt

from hodyn_ros.control.guards import AT_REST
from hodyn_ros.control.kernels import (
    Vector,
    hold,
)
from hodyn_ros.control.layouts import (
    ENCODER_STANDS,
    RUNAWAY,
    Design,
    Memory,
    Observed,
    Robot,
    Work,
)
from hodyn_ros.control.observing import (
    FASTEST_DAMPED,
    MOST_DAMPING,
    MOST_GATED,
    MOST_TURNED,
    RUN_UP,
    push,
)
from hodyn_ros.control.robot_code import (
    gravity,
)


def hold_motors(r: Robot, o: Observed, t: Design, c: Memory, w: Work, time: float) -> None:
    """Torques of motors that come to rest, or are held there, a time after the stop began."""
    gravity(r, o.q, w.weight)
    for i in range(r.m):
        j: int = r.joint[i]
        w.motor_weight[i] = r.part[i] * w.weight[j]
        w.positions[i] = o.theta[i]
        if r.is_elastic[j] == 0.0:
            w.positions[i] = o.q[j]
        w.unsure[i] = o.doubted[i] + c.runaway[0]
        if o.motor_since[i] >= MOST_GATED:
            w.unsure[i] = 1.0
    if r.is_variable:  # and what the springs pull against each other with
        for i in range(r.n):
            w.column[i] = 0.0
        for i in range(r.m):
            w.missing[i] = o.load[1, i]
            if o.doubted[i] > 0.0:
                w.missing[i] = o.stood[1, i]
            w.column[r.joint[i]] += w.missing[i]
        for i in range(r.m):
            w.motor_weight[i] += w.missing[i]
            if r.turns[i] > 0.0:
                w.motor_weight[i] -= r.part[i] * w.column[r.joint[i]]
    c.driven[0] += hold(
        r.m,
        r.T,
        t.speed_share,
        t.spring_share,
        time,
        t.stop_duration,
        r.joint,
        c.hold_stiffness,
        c.hold_damping,
        c.spring_damping,
        t.limit,
        w.motor_weight,
        o.q,
        w.positions,
        o.links[1],
        w.unsure,
        c.stopping,
        w.torque,
    )


def hold_here(
    r: Robot,
    o: Observed,
    t: Design,
    c: Memory,
    w: Work,
    before: Vector,
    touches: float,
) -> None:
    """Bring the motors to rest from where they are measured, and from torques before.

    Stiffness and damping put both poles of each motor with its link at the bandwidth, as far as
    the sample time permits; motors that float have no stiffness. Where the robot has touched
    something, motors are to rest where they are.
    """
    o.wary[0] = 1.0
    c.beyond[0], c.limited_for[0], c.stopped_for[0] = 0.0, 0.0, 0.0
    h = t.holding
    for i in range(r.m):
        j: int = r.joint[i]
        link = r.turns[i] * o.ahead_mass[j, j]
        moved, turned, speed, theta = link, link, o.links[1, j], o.q[j]
        c.spring_damping[i] = 0.0
        if r.is_elastic[j] > 0.0:
            moved, turned = r.inertia[i] + r.part[i] * link, r.inertia[i]
            speed, theta = o.motors[1, i], o.theta[i]
            fast = 1.0 / o.ahead_mass[j, j] + 1.0 / r.joint_inertia[j]
            fast = sqrt(o.stiffness[j] * fast)
            c.spring_damping[i] = 2.0 * t.ringing * turned
            c.spring_damping[i] *= max(0.0, 1.0 - fast / FASTEST_DAMPED)
        most = min(MOST_TURNED * h, MOST_DAMPING / r.T) * turned
        c.hold_damping[i] = min(2.0 * h * moved, most)
        c.hold_stiffness[i] = min(h * h * moved, h * c.hold_damping[i])
        if c.floats[0] > 0.0:
            c.hold_stiffness[i] = 0.0
        # The low passes begin with what is known, a sample before.
        turning = speed - o.links[1, j]
        c.stopping[0, i] = theta
        c.stopping[1, i] = (1.0 - touches) * max(-t.speed[j], min(t.speed[j], speed))
        c.stopping[2, i], c.stopping[3, i] = theta - r.T * speed, speed
        c.stopping[4, i] = theta - o.q[j] - r.T * turning
        c.stopping[5, i], c.stopping[6, i] = turning, 0.0
    hold_motors(r, o, t, c, w, 0.0)
    c.driven[0] = 0.0
    for i in range(r.m):
        c.stopping[6, i] = before[i] - w.torque[i]
    for i in range(r.n):
        for k in range(r.n):
            c.driven[0] -= RUN_UP * o.links[1, i] * o.ahead_mass[i, k] * o.links[1, k]


def stop(
    r: Robot,
    o: Observed,
    t: Design,
    c: Memory,
    w: Work,
    reason: int,
    culprit: int,
    floats: float,
    touches: float,
) -> None:
    """Bring the motors to rest, from the next measurement on if there has been none."""
    c.reason[0], c.culprit[0], c.floats[0] = reason, culprit, floats
    if o.running[0] > 0.0 and c.answered[0] > 0.0:
        hold_here(r, o, t, c, w, c.command, touches)
    elif o.running[0] > 0.0:
        hold_here(r, o, t, c, w, o.acting, touches)


def see_faults(r: Robot, o: Observed, c: Memory) -> None:
    """Why the robot is stopped, if more is known by now than why it has been."""
    if c.runaway[0] > 0.0:
        c.reason[0], c.culprit[0] = c.runaway[0], -1.0
    for done in range(r.m):
        i: int = r.m - 1 - done
        if o.doubted[i] > 0.0:
            c.reason[0], c.culprit[0] = ENCODER_STANDS, i


def stay(r: Robot, o: Observed, t: Design, c: Memory, w: Work) -> None:
    """Torques of a robot that has been stopped.

    Links that get faster than they may by what holds them are left to brakes, for good.
    """
    see_faults(r, o, c)
    c.stopped_for[0] += r.T
    hold_motors(r, o, t, c, w, c.stopped_for[0])
    is_fast = 0.0
    for i in range(r.m):
        c.stopping[6, i] *= t.hold_fading
        w.friction[i] = 0.0
    for i in range(r.n):
        if abs(o.links[1, i]) > t.too_fast[i]:
            is_fast = 1.0
    c.beyond[0] += 1.0
    if is_fast == 0.0 or c.stopped_for[0] <= t.stop_duration:
        c.beyond[0] = 0.0
    if c.beyond[0] >= t.violation_samples and c.driven[0] > 0.0 and c.runaway[0] == 0.0:
        c.runaway[0] = RUNAWAY
        see_faults(r, o, c)
        hold_motors(r, o, t, c, w, c.stopped_for[0])
    for i in range(r.m):
        w.demand[i] = w.torque[i]
    push(r, o, w.torque, w.friction)


def unready(r: Robot, o: Observed, t: Design, c: Memory) -> int:
    """Why a robot that has been stopped may not go on; 0 if it may.

    1 + i: motor i moves; -1: it has run away; -2: its positions cannot be true; -3: they are not
    measured; -4 - j: joint j is beyond a bound of its position.
    """
    if c.runaway[0] > 0.0:
        return -1
    if o.running[0] == 0.0:
        return -3
    culprit: int = 0
    largest = AT_REST
    for i in range(r.m):
        speed = abs(o.motors[1, i])
        if r.is_elastic[r.joint[i]] == 0.0:
            speed = abs(o.links[1, r.joint[i]])
        if not speed <= largest:
            largest = speed
            culprit = i + 1
    for i in range(r.m):
        if o.motor_since[i] >= MOST_GATED or o.since[r.joint[i]] >= MOST_GATED:
            return -2
    for j in range(r.n):
        q = o.links[0, j]
        if culprit == 0 and not (q >= t.lowest[0, j] and q <= t.highest[0, j]):
            return -4 - j
    return culprit
