"""Positions are believed or not, and the state of links and motors is observed from them.

One text for Python and C, see `step`. Source of the equations: `observer`.
"""

from __future__ import annotations

from math import floor, isfinite

from hodyn_ros.control.kernels import (
    Matrix,
    Vector,
    carry_forward,
    doubt,
    factorise,
    gate,
    observe,
    passed,
    watch,
)
from hodyn_ros.control.layouts import (
    MEASURED,
    NOT_FINITE,
    SINGULAR,
    Observed,
    Robot,
    Work,
)
from hodyn_ros.control.robot_code import (
    SPRINGS_AT,
    efforts_0,
    evaluate,
    mass_matrix,
)

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
