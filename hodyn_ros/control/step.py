"""One sample of a law: what is measured is believed or not, observed, judged and answered.

Numba compiles these functions, and `hodyn_ros.codegen` translates the same text to C99. Their
arguments are records, see `layouts`: robot and observer (r), what the observer remembers (o), a
law (t), what it remembers (c), arguments and results (w). Source of the equations: `observer`,
`guards`, `tracking` and `interaction`.
"""

from __future__ import annotations

import ctypes
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from math import floor, isfinite, pi, sqrt

from hodyn_ros.control import kernels, layouts, robot_code
from hodyn_ros.control.guards import AT_REST
from hodyn_ros.control.kernels import (
    Matrix,
    Vector,
    after_step,
    along_motion,
    approach,
    approach_pole,
    carry_forward,
    dampers,
    doubt,
    factorise,
    gate,
    hold,
    interaction_law,
    interaction_state,
    limit,
    observe,
    outside,
    passed,
    rest_step,
    rest_torque,
    torques_ahead,
    tracking_law,
    watch,
    where_it_moves,
)
from hodyn_ros.control.layouts import (
    ASKED,
    BEYOND_RANGE,
    ENCODER_STANDS,
    EXTERNAL_TORQUE,
    FOLLOWS,
    GAP,
    GIVEN,
    IMPLAUSIBLE,
    MEASURED,
    MEASUREMENTS,
    NOT_FINITE,
    RECORDS,
    REPEATED,
    RUNAWAY,
    SATURATION,
    SILENCE,
    SINGULAR,
    SPRING_RANGE,
    TORQUE,
    TRACKING,
    WEIGHT,
    Design,
    Memory,
    Observed,
    Robot,
    Work,
)
from hodyn_ros.control.records import WHOLE
from hodyn_ros.control.robot_code import (
    DEMAND,
    MOTORS,
    REST,
    SPRINGS_AT,
    efforts_0,
    efforts_2,
    evaluate,
    gravity,
    mass_matrix,
    motor_friction,
)
from hodyn_ros.engine.engine import compiling, unavailable

# Steps in a sample in which the state is carried forward over a known delay.
SUBSTEPS = 4
# Share of the torque of a motor by which the load of its spring has to change, while its measured
# position stands still, to be doubted: more than the friction of a motor that is pushed at rest;
# less where the robot has been stopped anyway.
CALM, WARY = 0.2, 0.1
MOST_FOUND = 10  # samples that have not come, as the motion tells, and are bridged
MOST_BRIDGED = 100  # samples; after a longer gap everything begins anew
# Positions one after the other that cannot be true, after which they are taken for true, and the
# robot is stopped.
MOST_GATED = 5
# What the first measurement may be: torque of a spring, and difference to that of a sensor, by the
# torque limit of the motors.
OVERLOAD, CONTRADICTION = 2.0, 0.25
RUN_UP = (
    0.25  # of v M v at a stop, by which links have been driven that are said to run away
)
# Largest damping of a motor that is held, by its inertia and the sample time, and by its inertia
# and the bandwidth; resonance from which on the springs are not damped, since a delay that nobody
# knows would turn it round [rad/s].
MOST_DAMPING, MOST_TURNED, FASTEST_DAMPED = 0.3, 3.0, 200.0
NEWTON = 2  # steps of Newton's method in a sample, towards the links' position of rest
SETTLED = 0.05  # s, until what the observer began with is forgotten

STEP, RECEIVE, STOP, BEGIN, UNREADY, RELEASE, PUSH = range(7)
"""What `do` does."""
_PYTHON = ('machine_code', 'source_of_steps', 'numbers_of_steps')


# --- Observer -----------------------------------------------------------------------------------


def all_finite_rows(rows: int, n: int, values: Matrix) -> int:
    """Whether no value (rows, n) is NaN or infinite."""
    for k in range(rows):
        for i in range(n):
            if not isfinite(values[k, i]):
                return 0
    return 1


def is_finite(n: int, values: Vector) -> int:
    """Whether no value (n,) is NaN or infinite."""
    for i in range(n):
        if not isfinite(values[i]):
            return 0
    return 1


def forget(r: Robot, o: Observed) -> None:
    """Have everything begin anew with the next measurement."""
    o.running[0] = 0.0
    for i in range(r.n):
        o.since[i] = 0.0
        for k in range(5):
            o.links[k, i] = 0.0
    for i in range(r.m):
        o.motor_since[i] = 0.0
        for k in range(4):
            o.motors[k, i] = 0.0


def shift(r: Robot, o: Observed) -> None:
    """Have torques act for one sample more than those before."""
    for i in range(r.m):
        for k in range(r.d):
            o.applied[k, i] = o.applied[k + 1, i]


def push(r: Robot, o: Observed, torque: Vector, friction: Vector) -> None:
    """Note torques that act from a delay on, and friction in them, which moves nothing."""
    shift(r, o)
    for i in range(r.m):
        o.acting[i] = torque[i]
        o.applied[r.d, i] = torque[i] - friction[i]


def mass_at(r: Robot, q: Vector, M: Matrix) -> None:
    """Mass matrix at positions q, with the motors of rigid joints."""
    mass_matrix(r, q, M)
    for i in range(r.n):
        M[i, i] += r.rigid_inertia[i]


def springs_at(r: Robot, o: Observed, w: Work) -> None:
    """Torques of the springs by the measured deflections, and their slopes."""
    if r.is_bent:
        evaluate(r.calls[SPRINGS_AT], w.column, w.column)
        return
    for i in range(r.n):
        o.stiffness[i], o.rate[i] = r.stiffness[i], r.stiffness[i]
        o.deflected[i] = r.stiffness[i] * (o.theta[i] - o.q[i])
        o.deflected_load[i] = o.deflected[i]


def take(r: Robot, o: Observed, w: Work, T: float, is_whole: int) -> int:
    """Take the positions q and theta, a time T after those before; zero, or what is wrong.

    Only a whole measurement has velocities, torque sensors and a wanted acceleration.
    """
    n: int = r.n
    m: int = r.m
    o.is_new[0] = 1.0 - o.running[0]
    if o.is_new[0] > 0.0:
        for i in range(n):
            o.links[0, i] = o.q[i]
            if is_whole > 0:
                o.links[1, i] = w.qd[i]
        for i in range(m):
            o.motors[0, i] = o.theta[i]
            if is_whole > 0:
                o.motors[1, i] = w.thetad[i]
    springs_at(r, o, w)
    for i in range(n):
        o.torque[0, i] = o.deflected[i]
    for i in range(m):
        j: int = r.joint[i]
        damper = r.damping[j] * r.turns[i] * (o.motors[1, i] - o.links[1, j])
        o.torque[0, j] += damper
        o.load[0, i] = o.deflected_load[i] + damper
        o.acted[i] = o.applied[0, i]
    if is_whole > 0 and w.has_sensors[0] > 0.0:
        for i in range(n):
            if r.is_single[i] > 0.0:
                o.torque[0, i] = w.sensed[i]
        for i in range(m):
            if r.is_single[r.joint[i]] > 0.0:
                o.load[0, i] = w.sensed[r.joint[i]]
    if o.is_new[0] == 0.0:
        observe(
            n,
            m,
            T,
            r.slow,
            r.joint,
            r.is_elastic,
            r.inertia,
            r.gains,
            r.motor_gains,
            o.mass,
            o.factor,
            o.bias,
            o.torque,
            o.load,
            o.acted,
            o.q,
            o.theta,
            o.links,
            o.motors,
        )
    for i in range(n):
        o.bias[1, i] = o.bias[0, i]
        w.still[0, i], w.still[1, i], w.still[2, i] = o.links[0, i], o.links[1, i], 0.0
    mass_at(r, o.links[0], o.mass)
    efforts_0(r, w.still, o.bias[0])
    if factorise(n, o.mass, o.factor) > 0:
        return SINGULAR
    if o.is_new[0] > 0.0:
        for i in range(n):
            missing = o.bias[0, i] - o.torque[0, i]
            if is_whole > 0:
                for k in range(n):
                    missing += o.mass[i, k] * w.acceleration[k]
            # It is taken for external, so that nothing jumps afterwards.
            o.links[2, i], o.links[3, i] = (
                r.is_elastic[i] * missing,
                r.is_elastic[i] * missing,
            )
            o.bias[1, i] = o.bias[0, i]
            w.column[i] = (1.0 - r.is_elastic[i]) * missing
        for i in range(m):
            o.acting[i] = o.load[0, i] + r.part[i] * w.column[r.joint[i]]
            for k in range(r.d + 1):
                o.applied[k, i] = o.acting[i]
    for i in range(n):
        o.torque[1, i] = o.torque[0, i]
    is_wary = o.wary[0]
    for i in range(m):
        o.load[1, i] = o.load[0, i]
        is_wary += o.doubted[i]
        w.missing[i] = r.turns[i] * o.links[2, r.joint[i]]
        if is_whole > 0 and w.has_sensors[0] > 0.0:
            w.missing[i] = o.load[0, i] - o.deflected_load[i]
        if o.is_new[0] > 0.0:
            o.stood[0, i], o.stood[1, i] = o.theta[i], o.deflected_load[i]
            o.stood[2, i], o.stood[3, i] = w.missing[i], 0.0
            o.stood[4, i], o.stood[5, i] = 0.0, 0.0
    share = CALM
    if is_wary > 0.0:
        share = WARY
    doubt(
        m,
        T,
        share,
        r.joint,
        r.is_elastic,
        r.motor_gains,
        r.strongest,
        o.rate,
        o.theta,
        o.deflected_load,
        w.missing,
        o.stood,
        o.doubted,
    )
    o.running[0] = 1.0
    return MEASURED


def look_ahead(r: Robot, o: Observed, w: Work) -> int:
    """State a delay later; zero, or what is wrong."""
    n: int = r.n
    m: int = r.m
    late = 0.5 * r.d * r.T
    for i in range(n):
        for k in range(5):
            o.ahead_links[k, i] = o.links[k, i]
        for k in range(n):
            o.ahead_mass[i, k] = o.mass[i, k]
        w.still[0, i] = o.links[0, i] + late * o.links[1, i]
        w.still[1, i], w.still[2, i] = o.links[1, i], 0.0
    for i in range(m):
        for k in range(4):
            o.ahead_motors[k, i] = o.motors[k, i]
    if r.d == 0:
        return MEASURED
    mass_at(r, w.still[0], w.A)
    efforts_0(r, w.still, w.bias)
    if factorise(n, w.A, w.L) > 0:
        return SINGULAR
    carry_forward(
        n,
        m,
        r.d,
        SUBSTEPS,
        r.T,
        r.joint,
        r.is_elastic,
        r.turns,
        r.inertia,
        w.L,
        w.bias,
        o.torque[1],
        o.rate,
        o.load[1],
        o.q,
        o.theta,
        o.applied,
        o.ahead_links,
        o.ahead_motors,
    )
    mass_at(r, o.ahead_links[0], o.ahead_mass)
    return MEASURED


def samples_passed(r: Robot, o: Observed, w: Work) -> float:
    """Samples since the last positions, as the motion tells.

    Encoders that are not believed tell nothing.
    """
    n: int = r.n
    for i in range(n):
        if o.since[i] > 0.0:
            return 1.0
        w.values[i], w.before[i], w.speeds[i] = o.q[i], w.last_q[i], o.links[1, i]
    for i in range(r.m):
        if o.motor_since[i] > 0.0 or o.doubted[i] > 0.0:
            return 1.0
        w.values[n + i], w.before[n + i] = o.theta[i], w.last_theta[i]
        w.speeds[n + i] = o.motors[1, i]
    return passed(n + r.m, r.T, r.counts, w.values, w.before, w.speeds, o.least)


def receive(r: Robot, o: Observed, w: Work, elapsed: float) -> int:
    """Take a measurement, a time after the one before; zero, or what is wrong.

    Measurements that have not come lie on a line to this one; the torque has been held.
    """
    n: int = r.n
    m: int = r.m
    if elapsed > (MOST_BRIDGED + 0.5) * r.T:
        forget(r, o)
    for i in range(n):
        w.last_q[i] = o.q[i]
        o.q[i] = w.new_q[i]
    for i in range(m):
        w.last_theta[i] = o.theta[i]
        o.theta[i] = w.new_theta[i]
    o.passed[0], o.samples[0], o.gating[0] = 1.0, 1.0, 0.0
    if o.running[0] > 0.0 and elapsed == r.T:
        o.passed[0] = samples_passed(r, o, w)
        if o.passed[0] == 0.0:
            o.samples[0] = 0.0
            return MEASURED
        if o.passed[0] > MOST_FOUND:
            forget(r, o)
        elif o.passed[0] > 1.0:
            elapsed = o.passed[0] * r.T
    if o.running[0] > 0.0:
        count: int = gate(n, elapsed, r.reach, o.links, o.since, o.q)
        for i in range(m):
            if r.is_elastic[r.joint[i]] == 0.0:  # which is not looked at
                o.theta[i] = o.motors[0, i] + elapsed * o.motors[1, i]
        count += gate(m, elapsed, r.motor_reach, o.motors, o.motor_since, o.theta)
        o.gated[0] += count
        o.gating[0] = count
        o.samples[0] = max(1.0, floor(elapsed / r.T + 0.5))
    elif is_finite(n, o.q) == 0 or is_finite(m, o.theta) == 0:
        return NOT_FINITE
    T = elapsed / o.samples[0]
    for i in range(n):
        w.whole_q[i] = o.q[i]
    for i in range(m):
        w.whole_theta[i] = o.theta[i]
    for k in range(1, int(o.samples[0])):
        share = k / o.samples[0]
        for i in range(n):
            o.q[i] = w.last_q[i] + share * (w.whole_q[i] - w.last_q[i])
        for i in range(m):
            o.theta[i] = w.last_theta[i] + share * (w.whole_theta[i] - w.last_theta[i])
        if take(r, o, w, T, 0) > 0:
            return SINGULAR
        shift(r, o)
    for i in range(n):
        o.q[i] = w.whole_q[i]
    for i in range(m):
        o.theta[i] = w.whole_theta[i]
    if take(r, o, w, T, 1) > 0:
        return SINGULAR
    return look_ahead(r, o, w)


# --- What holds a robot -------------------------------------------------------------------------


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


# --- Judgement ----------------------------------------------------------------------------------


def is_plausible(r: Robot, o: Observed, t: Design) -> int:
    """Whether positions may be those of the robot, by limits and by torques of springs."""
    for i in range(r.n):
        if o.q[i] < t.lower[i] or o.q[i] > t.upper[i]:
            return 0
        if abs(o.deflected[i]) > OVERLOAD * t.joint_limit[i]:
            return 0
    return 1


def agrees(r: Robot, o: Observed, t: Design) -> int:
    """Whether torque sensors agree with the deflections of the springs."""
    for i in range(r.n):
        if abs(o.deflected[i] - o.torque[1, i]) > CONTRADICTION * t.joint_limit[i]:
            return 0
    return 1


def judge(
    r: Robot,
    o: Observed,
    t: Design,
    c: Memory,
    w: Work,
    reason: int,
    culprit: int,
) -> None:
    """Stop a robot whose measurements are not true or missing, or that is out of bounds."""
    n: int = r.n
    for i in range(n):
        w.checked[0, i], w.checked[1, i] = o.links[0, i], o.links[1, i]
        w.checked[2, i], w.checked[3, i], w.checked[4, i] = 0.0, o.links[3, i], 0.0
        if c.departed[0] > 0.0:
            wanted = 0.0
            for done in range(5):
                k: int = 4 - done
                late = t.lead / (k + 1.0) * wanted
                wanted = w.desired[k, i] - c.distance[k, i] - late
            w.checked[2, i] = wanted - o.links[0, i]
    for i in range(r.m):
        w.checked[4, r.joint[i]] += r.turns[i] * o.motors[3, i]
    for done in range(r.m):
        last: int = r.m - 1 - done
        if o.doubted[last] > 0.0:
            reason = ENCODER_STANDS
            culprit = last
    found: int = outside(5, n, t.lowest, t.highest, w.checked)
    c.beyond[0] += 1.0
    if found == 0:
        c.beyond[0] = 0.0
    if reason == FOLLOWS and c.limited_for[0] > t.saturation_time:
        reason = SATURATION
        w.limited_for[0] = c.limited_for[0]
    if reason == FOLLOWS and c.beyond[0] >= t.violation_samples:
        reason = 1 + (found - 1) // n
        culprit = found - 1 - (reason - 1) * n
    if reason != FOLLOWS:
        touches = 0.0
        if reason == EXTERNAL_TORQUE:
            touches = 1.0
        stop(r, o, t, c, w, reason, culprit, t.floats[reason], touches)


# --- What is wanted -----------------------------------------------------------------------------


def begin(r: Robot, o: Observed, t: Design, c: Memory, is_known: float) -> None:
    """Begin where the robot is; what acts by now is known, unless the observer begins, too."""
    c.departed[0], c.arrived[0], c.begun[0] = 0.0, 0.0, 0.0
    if t.kind == GIVEN:  # which does not approach: the whole error counts at once
        c.departed[0] = 1.0
    c.begins[0] = max(t.holds, is_known)
    for i in range(r.m):
        c.left[i] = 0.0
        if is_known > 0.0:
            c.command[i] = o.acting[i]
    for i in range(r.n):
        for k in range(5):
            c.distance[k, i] = 0.0


def begin_again(r: Robot, o: Observed, t: Design, c: Memory, w: Work) -> None:
    """Begin behind another law of the same observer, of which nothing before it tells."""
    c.repeated[0], c.beyond[0], c.limited_for[0], c.moved[0] = 0.0, 0.0, 0.0, 0.0
    begin(r, o, t, c, o.running[0])
    if c.reason[0] != FOLLOWS and o.running[0] > 0.0:
        hold_here(r, o, t, c, w, o.acting, 0.0)


def release(r: Robot, o: Observed, t: Design, c: Memory) -> int:
    """Let a robot that has been stopped go on; 0, or why it may not, see `unready`."""
    found: int = unready(r, o, t, c)
    if c.reason[0] != FOLLOWS and found != 0:
        return found
    c.reason[0], c.culprit[0], c.beyond[0], o.wary[0] = FOLLOWS, -1.0, 0.0, 0.0
    for i in range(r.m):
        o.doubted[i] = 0.0
    begin(r, o, t, c, o.running[0])
    return 0


def motors_of(r: Robot, t: Design, w: Work) -> int:
    """Motion, torque and friction of motors for a wanted motion; zero, or what is wrong."""
    if r.is_bent:
        return evaluate(t.calls[MOTORS], w.wanted, w.motion)
    for i in range(r.n):
        for k in range(3):
            w.motion[k, i] = w.wanted[k, i] + r.softness[i] * w.effort[k, i]
        w.friction[i] = 0.0
    if r.has_friction:
        motor_friction(r, w.motion, w.friction)
    for i in range(r.n):
        if abs(r.softness[i] * w.effort[0, i]) > r.range[i]:
            return BEYOND_RANGE
        w.feed_forward[i] = w.effort[0, i] + r.inertia[i] * w.motion[2, i] + w.friction[i]
    return MEASURED


def spread(r: Robot, o: Observed, t: Design, w: Work) -> None:
    """Add torques that hold the motors of one joint as far apart as the stiffness asks for."""
    for i in range(r.n):
        w.rows[0, i], w.rows[1, i] = 0.0, 0.0
    for i in range(r.m):
        for k in range(2):
            error = w.motion[k, i] - o.ahead_motors[k, i]
            w.rows[k, r.joint[i]] += r.part[i] * error
    for i in range(r.m):
        j: int = r.joint[i]
        if r.is_single[j] == 0.0 and r.is_elastic[j] > 0.0:
            e = w.motion[0, i] - o.ahead_motors[0, i] - r.turns[i] * w.rows[0, j]
            rate = w.motion[1, i] - o.ahead_motors[1, i] - r.turns[i] * w.rows[1, j]
            w.demand[i] += r.inertia[i] * t.bandwidth * (t.bandwidth * e + 2.0 * rate)


def tracking_demand(r: Robot, o: Observed, t: Design, c: Memory, w: Work) -> int:
    """Torques without limits of the tracking law, and the friction known in them."""
    n: int = r.n
    m: int = r.m
    if c.departed[0] == 0.0:
        for i in range(n):
            inertia = o.ahead_mass[i, i] + r.is_elastic[i] * r.joint_inertia[i]
            w.column[i] = t.approach_torque * t.joint_limit[i] / inertia
            for k in range(2):
                # Torques act half a sample later than the state for which they are found.
                wanted = w.desired[k, i] - 0.5 * r.T * w.desired[k + 1, i]
                c.distance[k, i] = wanted - o.ahead_links[k, i]
        c.pole[0] = approach_pole(n, t.fastest, t.approach_speed, w.column, c.distance)
        approach(n, 0.5 * r.T, c.pole[0], c.distance)
        c.departed[0] = 1.0
    for k in range(5):
        for i in range(n):
            w.wanted[k, i] = w.desired[k, i] - c.distance[k, i]
    efforts_2(r, w.wanted, w.effort)
    failed: int = motors_of(r, t, w)
    if failed > 0:
        return failed
    tracking_law(
        n,
        m,
        r.T,
        t.bandwidth,
        r.joint,
        r.is_elastic,
        r.turns,
        r.part,
        r.joint_inertia,
        r.damping,
        t.joint_limit,
        o.ahead_mass,
        o.stiffness,
        o.torque[1],
        o.rate,
        o.q,
        o.theta,
        o.ahead_links,
        o.ahead_motors,
        w.wanted,
        w.effort,
        w.feed_forward,
        w.rows,
        w.demand,
    )
    if c.arrived[0] == 0.0:
        if not approach(n, r.T, c.pole[0], c.distance) > t.arrived:
            c.arrived[0] = 1.0
            for k in range(5):
                for i in range(n):
                    c.distance[k, i] = 0.0
    if r.is_variable:
        spread(r, o, t, w)
    return MEASURED


def wanted_weight(r: Robot, o: Observed, t: Design, c: Memory, w: Work) -> int:
    """The springs are to carry the weight."""
    gravity(r, o.ahead_links[0], w.at_rest)
    return MEASURED


def wanted_torque(r: Robot, o: Observed, t: Design, c: Memory, w: Work) -> int:
    """The springs are to have torques that are wanted with two derivatives."""
    torques_ahead(r.n, t.felt_inertia, w.compliance, w.damper, w.desired, w.at_rest)
    return MEASURED


def wanted_springs(r: Robot, o: Observed, t: Design, c: Memory, w: Work) -> int:
    """The springs are to have torques of a stiffness, at the links' position of rest."""
    n: int = r.n
    for i in range(n):
        w.along[i], w.forward[i] = 0.0, 0.0
        for k in range(5):
            w.wanted[k, i] = w.desired[k, i]
    if t.follows:
        efforts_2(r, w.wanted, w.effort)
        failed: int = motors_of(r, t, w)
        if failed > 0:
            return failed
        gravity(r, w.wanted[0], w.weight)
        for i in range(n):
            w.along[i] = w.effort[0, i] - w.weight[i]
        along_motion(
            n, r.T, t.felt_inertia, w.damper, w.motion, w.effort, w.state, w.forward
        )
    for _ in range(NEWTON):
        gravity(r, c.rest, w.weight)
        if t.is_asked:
            refused: int = evaluate(t.calls[REST], c.rest, w.at_rest)
            if refused > 0:
                return refused
        else:
            rest_torque(n, t.springs, w.wanted[0], c.rest, w.along, w.weight, w.at_rest)
            for i in range(n):
                w.deflection[i] = r.softness[i] * w.at_rest[i]
                if abs(w.deflection[i]) > r.range[i]:
                    return BEYOND_RANGE
        rest_step(
            n, w.compliance, t.felt, w.state[2], w.deflection, c.rest, w.lacking, w.step
        )
    after_step(n, t.springs, w.step, w.at_rest, w.forward, w.at_rest)
    return MEASURED


def wanted(r: Robot, o: Observed, t: Design, c: Memory, w: Work) -> int:
    """What a law for interaction wants of the springs; zero, or what is wrong."""
    if t.kind == WEIGHT:
        return wanted_weight(r, o, t, c, w)
    if t.kind == TORQUE:
        return wanted_torque(r, o, t, c, w)
    return wanted_springs(r, o, t, c, w)


def interaction_demand(r: Robot, o: Observed, t: Design, c: Memory, w: Work) -> int:
    """Torques without limits of a law for interaction, and the friction known in them."""
    n: int = r.n
    for i in range(n):
        if c.begun[0] == 0.0:
            c.slow[i], c.rest[i] = o.torque[1, i], o.ahead_links[0, i]
        w.compliance[i] = 0.0
        if r.is_elastic[i] > 0.0:
            w.compliance[i] = 1.0 / o.stiffness[i]
        w.damper[i] = t.calm[i] * sqrt(t.damped_inertia[i] * w.compliance[i])
    c.begun[0] = 1.0
    interaction_state(
        n,
        r.T,
        r.is_elastic,
        o.torque[1],
        o.rate,
        o.links,
        o.motors,
        o.ahead_links,
        o.ahead_motors,
        c.slow,
        w.state,
    )
    failed: int = wanted(r, o, t, c, w)
    if failed > 0:
        return failed
    dampers(
        n,
        t.ratio,
        r.is_elastic,
        t.felt_inertia,
        o.ahead_mass,
        t.felt,
        t.dampers,
        w.state[4],
        w.L,
        w.A,
        w.U,
        w.rows,
        w.at_rest,
    )
    for i in range(n):
        w.friction[i], w.column[i] = 0.0, -o.ahead_motors[3, i]
        w.motion[1, i] = w.state[3, i]
    if t.observes_friction == 0.0:
        if r.has_friction:
            motor_friction(r, w.motion, w.friction)
        where_it_moves(n, w.state, w.friction)
        for i in range(n):
            w.column[i] = w.friction[i]
    interaction_law(n, t.gain, w.damper, w.state, w.at_rest, w.column, w.demand)
    return MEASURED


def demand(r: Robot, o: Observed, t: Design, c: Memory, w: Work) -> int:
    """Torques without limits, and the friction known in them; zero, or what is wrong."""
    if t.kind == TRACKING:
        return tracking_demand(r, o, t, c, w)
    if t.kind == GIVEN:
        return evaluate(t.calls[DEMAND], w.desired, w.demand)
    return interaction_demand(r, o, t, c, w)


def follow(r: Robot, o: Observed, t: Design, c: Memory, w: Work) -> int:
    """Torques that do what is wanted; zero, or what is wrong."""
    failed: int = demand(r, o, t, c, w)
    if failed > 0:
        return failed
    for i in range(r.m):
        if c.begins[0] > 0.0:
            c.left[i] = o.acting[i] - w.demand[i]
        w.demand[i] += c.left[i]
        c.left[i] *= t.fading
    c.begins[0] = 0.0
    if is_finite(r.m, w.demand) == 0 or all_finite_rows(5, r.n, o.links) == 0:
        return NOT_FINITE
    if all_finite_rows(4, r.m, o.motors) == 0:
        return NOT_FINITE
    # What is limited again and again is limited for long, too.
    passed_by = -0.5 * r.T
    if limit(r.m, t.limit, w.demand, w.torque) > 0:
        passed_by = r.T
    c.limited_for[0] = max(0.0, c.limited_for[0] + passed_by)
    push(r, o, w.torque, w.friction)
    return MEASURED


# --- The sample ---------------------------------------------------------------------------------


def possible(speed: float, most: float) -> float:
    """A speed that is clipped; zero for one that is no number, or infinite without a bound."""
    if abs(speed) <= most and isfinite(speed):
        return speed
    if speed > 0.0 and isfinite(most):
        return most
    if speed < 0.0 and isfinite(most):
        return -most
    return 0.0


def bound_speeds(r: Robot, t: Design, w: Work) -> None:
    """Clip measured speeds, which a first sample believes, to what guards allow; NaN: at rest."""
    for i in range(r.n):
        w.qd[i] = possible(w.qd[i], t.too_fast[i])
    for i in range(r.m):
        w.thetad[i] = possible(w.thetad[i], t.too_fast[r.joint[i]])


def slipped(r: Robot, o: Observed) -> int:
    """First of the positions of links and motors that could not be true for long; -1: none."""
    n: int = r.n
    for i in range(n):
        if o.since[i] >= MOST_GATED:
            return i
    for i in range(r.m):
        if o.motor_since[i] >= MOST_GATED:
            return n + i
    return -1


def believe(r: Robot, o: Observed, t: Design, w: Work) -> int:
    """Take positions that could not be true for those of a robot at rest, if they may be."""
    if is_finite(r.n, w.new_q) == 0 or is_finite(r.m, w.new_theta) == 0:
        return MEASURED
    for i in range(r.n):
        o.q[i] = w.new_q[i]
    for i in range(r.m):
        o.theta[i] = w.new_theta[i]
    springs_at(r, o, w)
    if is_plausible(r, o, t) == 0:
        for i in range(r.n):
            o.q[i] = w.whole_q[i]
        for i in range(r.m):
            o.theta[i] = w.whole_theta[i]
        springs_at(r, o, w)
        return MEASURED
    forget(r, o)
    failed: int = take(r, o, w, r.T, 0)
    if failed > 0:
        return failed
    return look_ahead(r, o, w)


def regain(r: Robot, o: Observed, t: Design, c: Memory, w: Work, culprit: int) -> None:
    """Hold a stopped robot where it is measured again, or let it give way as before.

    What had not come to rest may only have been faster than expected: the reason is as before.
    """
    if c.stopped_for[0] > t.stop_duration + MOST_GATED * r.T:
        c.reason[0], c.culprit[0] = MEASUREMENTS, culprit
        c.floats[0] = max(c.floats[0], t.floats[MEASUREMENTS])
    if c.answered[0] > 0.0:
        hold_here(r, o, t, c, w, c.command, 0.0)
    else:
        hold_here(r, o, t, c, w, o.acting, 0.0)


def moves(n: int, desired: Matrix) -> int:
    """Whether something is wanted but rest."""
    for k in range(1, 5):
        for i in range(n):
            if desired[k, i] != 0.0:
                return 1
    return 0


def answer(r: Robot, o: Observed, t: Design, c: Memory, w: Work) -> int:
    """Torques for what is known of the robot; zero, or why there are none."""
    if c.reason[0] == FOLLOWS:
        failed: int = follow(r, o, t, c, w)
        if failed == BEYOND_RANGE and t.guarded > 0.0:
            stop(r, o, t, c, w, SPRING_RANGE, -1, 0.0, 0.0)
        elif failed > 0:
            return failed
    if c.reason[0] != FOLLOWS:
        stay(r, o, t, c, w)
    c.answered[0] = 1.0
    for i in range(r.m):
        c.command[i] = w.torque[i]
    return MEASURED


def step(r: Robot, o: Observed, t: Design, c: Memory, w: Work, elapsed: float) -> int:
    """Torques for a measurement, a time after the one before; zero, or why there are none."""
    n: int = r.n
    reason: int = FOLLOWS
    if o.running[0] > 0.0 and not elapsed > 0.0:
        return REPEATED
    if o.running[0] == 0.0 and (is_finite(n, w.qd) == 0 or is_finite(r.m, w.thetad) == 0):
        return NOT_FINITE
    moved = c.moved[0]
    c.moved[0], w.gap[0] = moves(n, w.desired), 0.0
    if t.guarded > 0.0 and o.running[0] > 0.0 and elapsed > t.max_gap:
        w.gap[0] = elapsed
        forget(r, o)
    bound_speeds(r, t, w)
    failed: int = receive(r, o, w, elapsed)
    if failed > 0:
        return failed
    if o.is_new[0] > 0.0 and o.samples[0] > 0.0:
        if is_plausible(r, o, t) == 0:
            return IMPLAUSIBLE
        if w.has_sensors[0] > 0.0 and agrees(r, o, t) == 0:
            return IMPLAUSIBLE
        if c.reason[0] != FOLLOWS:  # it is held where it is found
            hold_here(r, o, t, c, w, o.acting, 0.0)
    c.repeated[0] += 1.0
    if o.samples[0] > 0.0:
        c.repeated[0] = 0.0
    elif c.repeated[0] < MOST_GATED or t.guarded == 0.0:
        return REPEATED
    else:
        c.repeated[0], c.runaway[0] = 0.0, SILENCE
        stop(r, o, t, c, w, SILENCE, -1, 0.0, 0.0)
    if t.guarded > 0.0 and o.passed[0] > MOST_FOUND:
        w.gap[0] = o.passed[0] * r.T
    if w.gap[0] > 0.0:
        begin(r, o, t, c, 0.0)
        if moved > 0.0 or c.moved[0] > 0.0:
            reason = GAP
    culprit: int = -1
    if t.guarded > 0.0 or c.reason[0] != FOLLOWS:
        culprit = slipped(r, o)
    if culprit >= 0:
        reason = MEASUREMENTS
        w.slipped[0] = culprit
        failed = believe(r, o, t, w)
        if failed > 0:
            return failed
        if culprit >= n:
            culprit -= n
    if c.reason[0] != FOLLOWS:
        if culprit >= 0 and o.is_new[0] > 0.0:  # it is held where it is found, or gives way
            regain(r, o, t, c, w, culprit)
    elif t.guarded > 0.0:
        judge(r, o, t, c, w, reason, culprit)
    return answer(r, o, t, c, w)


# --- In machine code ----------------------------------------------------------------------------


def watched(r: Robot, o: Observed, elapsed: float) -> None:
    """Gather what explains the torques that motors lack, behind the first 0.05 s.

    Samples that did not come, or lie on a line, tell nothing of the loop: it begins anew.
    """
    o.settling[0] += 1.0
    if o.is_new[0] > 0.0 or o.samples[0] != 1.0:
        o.settling[0] = 0.0
    if o.settling[0] <= 1.0:
        for i in range(r.m):
            for k in range(18):
                o.shadow[k, i] = 0.0
            o.before[0, i], o.before[1, i] = o.acted[i], o.motors[1, i]
            o.before[2, i], o.before[3, i], o.before[4, i] = 0.0, o.load[1, i], 0.0
    if o.settling[0] > 0.0:
        sums = o.unsettled
        if o.settling[0] * r.T > SETTLED:
            o.seen[0] += 1.0
            sums = o.sums
        watch(
            r.m,
            elapsed,
            r.remembered,
            r.slowly,
            r.joint,
            r.is_single,
            r.inertia,
            r.motor_gains,
            o.acted,
            o.load[1],
            o.motors,
            o.before,
            o.shadow,
            o.explains,
            sums,
            o.found,
        )


def do(
    r: Robot,
    o: Observed,
    t: Design,
    c: Memory,
    w: Work,
    what: int,
    elapsed: float,
    floats: float,
    touches: float,
) -> int:
    """Something of a sample, with its arguments as far as it has them; zero, or what is wrong."""
    status: int = MEASURED
    if what == STEP:
        status = step(r, o, t, c, w, elapsed)
    if what == RECEIVE:
        status = receive(r, o, w, elapsed)
    if what <= RECEIVE and status == MEASURED:
        watched(r, o, elapsed)
    if what == UNREADY:
        status = unready(r, o, t, c)
    if what == RELEASE:
        status = release(r, o, t, c)
    if what == STOP:
        stop(r, o, t, c, w, ASKED, -1, floats, touches)
    if what == BEGIN:
        begin_again(r, o, t, c, w)
    if what == PUSH:
        push(r, o, w.torque, w.friction)
    return status


@cache
def machine_code() -> Callable[..., int] | None:
    """Compiled `do`, of the addresses of records and with their sizes behind; None without it."""
    if unavailable():
        return None
    from hodyn_ros.engine.code_cache import LoadedCode
    from hodyn_ros.engine.compiled_python import Fields, compiled_module

    source, constants = source_of_steps(), numbers_of_steps()
    names = re.findall(r'^def (\w+)', source, re.MULTILINE)
    names = [name for name in names if name not in ('evaluate', *_PYTHON)]
    records = {x.name: Fields(x.shapes, WHOLE) for x in RECORDS}
    write = partial(compiled_module, source, names, constants, records)
    with compiling:
        code = LoadedCode((f'{source} {constants} {records}', 0, 0), write)
    kinds = [ctypes.c_void_p] * 5 + [ctypes.c_int64] + [ctypes.c_double] * 3
    function = ctypes.PYFUNCTYPE(ctypes.c_int64, *kinds, *[ctypes.c_int64] * 3)(
        code.address
    )
    function.code = code  # type: ignore[attr-defined] # which has to live
    return function


def source_of_steps() -> str:
    """Text of all functions of a step; those that others call come first."""
    modules = kernels, robot_code, sys.modules[__name__]
    return '\n'.join(inspect.getsource(module) for module in modules)


def numbers_of_steps() -> dict[str, float]:
    """Constants by the names that these functions have for them."""
    modules = layouts, robot_code, sys.modules[__name__]
    known = {'pi': pi}
    for module in modules:
        known |= {
            name: value
            for name, value in vars(module).items()
            if name.isupper() and isinstance(value, (int, float))
        }
    return known
