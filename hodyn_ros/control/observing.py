"""The state of links and motors is observed from measured positions, and carried over the delay.

One text for Python and C, see `step`. Source of the equations: `observer`.
"""

from __future__ import annotations

from math import floor, isfinite

from hodyn_ros.control.kernels import (
    Matrix,
    Vector,
    add_product,
    corrected,
    factorise,
    solve,
)
from hodyn_ros.control.layouts import MEASURED, NOT_FINITE, SINGULAR, Observer
from hodyn_ros.control.robot_code import (
    SPRINGS_AT,
    efforts_0,
    evaluate,
    mass_matrix,
)
from hodyn_ros.control.suspicion import MOST_GATED, doubt, gate, samples_passed

# Steps in a sample in which the state is carried forward over a known delay.
SUBSTEPS = 4
# Share of the torque of a motor by which the load of its spring has to change, while its measured
# position stands still, to be doubted: more than the friction of a motor that is pushed at rest;
# less where the robot has been stopped anyway.
CALM, WARY = 0.2, 0.1
MOST_FOUND = 10  # samples that have not come, as the motion tells, and are bridged
MOST_BRIDGED = 100  # samples; after a longer gap everything begins anew


def is_finite(n: int, values: Vector) -> int:
    """Whether no value (n,) is NaN or infinite."""
    for i in range(n):
        if not isfinite(values[i]):
            return 0
    return 1


def forget(o: Observer) -> None:
    """Have everything begin anew with the next measurement."""
    o.running = 0.0
    o.since[:] = 0.0
    o.links[:] = 0.0
    o.motor_since[:] = 0.0
    o.motors[:] = 0.0


def shift(o: Observer) -> None:
    """Have torques act for one sample more than those before."""
    for k in range(o.d):
        o.applied[k] = o.applied[k + 1]


def push(o: Observer) -> None:
    """Note torques that act from a delay on, and friction in them, which moves nothing."""
    shift(o)
    o.acting[:] = o.motor_torque
    o.applied[o.d] = o.motor_torque - o.friction


def mass_at(o: Observer, q: Vector, M: Matrix) -> None:
    """Mass matrix at positions q, with the motors of rigid joints."""
    mass_matrix(o, q, M)
    for i in range(o.n):
        M[i, i] += o.rigid_inertia[i]


def dynamics(o: Observer, M: Matrix, L: Matrix, bias: Vector) -> int:
    """Mass matrix, its factor, and efforts without accelerations in the state `still`."""
    mass_at(o, o.still[0], M)
    efforts_0(o, o.still, bias)
    return factorise(o.n, M, L)


# --- The sample ---------------------------------------------------------------------------------


def first(o: Observer, is_whole: int) -> None:
    """Begin with the measured state."""
    o.links[0] = o.q
    o.motors[0] = o.theta
    if is_whole:
        o.links[1] = o.qd
        o.motors[1] = o.thetad


def springs_at(o: Observer) -> None:
    """Torques of the springs by the measured deflections, and their slopes."""
    if o.is_bent:
        evaluate(o.calls[SPRINGS_AT], o.column, o.column)
        return
    o.stiffness[:] = o.line
    o.rate[:] = o.line
    o.deflected[:] = o.line * (o.theta - o.q)
    o.deflected_load[:] = o.deflected


def sense(o: Observer, is_whole: int) -> None:
    """Torques of sensors in place of what the springs tell.

    A sensor differs from the deflection by errors of both, which change little from sample to
    sample. What it says is replaced by the deflection and the difference before where it cannot be
    true, and in samples that have not come.
    """
    for k in range(o.n):
        differs = o.spring_torque[k] - o.deflected[k]
        reach = o.sensor_reach[k]
        if o.is_new:
            reach = abs(differs - o.sensor_offset[k])
        if is_whole and o.is_single[k]:
            if isfinite(differs) and abs(differs - o.sensor_offset[k]) <= reach:
                o.sensor_offset[k], o.sensor_since[k] = differs, 0.0
            else:
                o.sensor_since[k] += 1.0
                o.gated += 1.0
    for i in range(o.m):
        j: int = o.joint[i]
        if o.is_single[j]:
            o.torque[0, j] = o.deflected[j] + o.sensor_offset[j]
            o.load[0, i] = o.torque[0, j]


def load(o: Observer, is_whole: int) -> None:
    """Torques on the links and loads of the motors: of springs and dampers, or of sensors."""
    springs_at(o)
    o.torque[0] = o.deflected
    for i in range(o.m):
        j: int = o.joint[i]
        damper = o.damping[j] * o.turns[i] * (o.motors[1, i] - o.links[1, j])
        o.torque[0, j] += damper
        o.load[0, i] = o.deflected_load[i] + damper
    o.acted[:] = o.applied[0]
    if o.has_sensors:
        sense(o, is_whole)


def observe_links(o: Observer, T: float) -> None:
    """Advance the observer of the links by a time T and correct it by the measured q."""
    n: int = o.n
    o.links[4] = o.links[2] - 1.5 * o.bias[0] + 0.5 * o.bias[1]
    o.links[4] += 0.5 * o.is_elastic * (o.torque[0] + o.torque[1])
    for i in range(o.m):
        if not o.is_elastic[o.joint[i]]:
            o.links[4, o.joint[i]] += o.acted[i]
    solve(n, o.factor, o.links[4])
    for i in range(n):
        e = corrected(n, i, T, o.q[i], o.links[4, i], 0, o.gains, o.links)
        # From here on the row of the accelerations holds what corrects the torque.
        o.links[4, i] = o.gains[2, i] * e
    add_product(n, o.mass, o.links[4], o.links[2])
    o.links[3] += o.slow * (o.links[2] - o.links[3])


def is_lost(o: Observer, i: int) -> int:
    """Whether the position of a motor has not been measured for long."""
    if o.doubted[i] or o.motor_since[i] >= MOST_GATED:
        return 1
    return 0


def observe_motors(o: Observer, T: float) -> None:
    """Advance the observers of the motors by a time T and correct them by the measured theta."""
    for i in range(o.m):
        j: int = o.joint[i]
        if o.is_elastic[j] and is_lost(o, i):  # so that nothing rings up
            a = (o.acted[i] - o.load[0, i] + o.motors[2, i]) / o.inertia[i]
            o.motors[0, i] = o.theta[i]
            o.motors[1, i] += T * a
        elif o.is_elastic[j]:
            a = o.acted[i] - 0.5 * (o.load[0, i] + o.load[1, i]) + o.motors[2, i]
            a /= o.inertia[i]
            e = corrected(o.m, i, T, o.theta[i], a, 0, o.motor_gains, o.motors)
            o.motors[2, i] += o.inertia[i] * o.motor_gains[2, i] * e
            o.motors[3, i] += o.slow * (o.motors[2, i] - o.motors[3, i])
        else:
            o.motors[0, i], o.motors[1, i] = o.links[0, j], o.links[1, j]
            o.motors[2, i], o.motors[3, i] = 0.0, 0.0


def presume(o: Observer, is_whole: int) -> None:
    """Take what is missing in a first sample for external, so that nothing jumps afterwards."""
    o.column[:] = o.bias[0] - o.torque[0]
    if is_whole:
        add_product(o.n, o.mass, o.acceleration, o.column)
    o.links[2] = o.is_elastic * o.column
    o.column[:] = (1.0 - o.is_elastic) * o.column
    o.links[3] = o.links[2]
    o.bias[1] = o.bias[0]
    for i in range(o.m):
        o.acting[i] = o.load[0, i] + o.part[i] * o.column[o.joint[i]]
    for k in range(o.d + 1):
        o.applied[k] = o.acting


def suspect(o: Observer, T: float) -> None:
    """Doubt encoders that stand still, sooner if some of them do already."""
    share = CALM
    if o.wary:
        share = WARY
    for i in range(o.m):
        if o.doubted[i]:
            share = WARY
        o.missing[i] = o.turns[i] * o.links[2, o.joint[i]]
        if o.has_sensors:
            o.missing[i] = o.load[0, i] - o.deflected_load[i]
    if o.is_new:
        o.stood[:] = 0.0
        o.stood[0] = o.theta
        o.stood[1] = o.deflected_load
        o.stood[2] = o.missing
        o.stood[6] = o.theta
        o.stood[7] = o.motors[1]
    doubt(o, T, share)


def take(o: Observer, T: float, is_whole: int) -> int:
    """Take the positions q and theta, a time T after those before; zero, or what is wrong.

    Only a whole measurement has velocities, torque sensors and a wanted acceleration.
    """
    o.is_new = 1.0 - o.running
    if o.is_new:
        first(o, is_whole)
    load(o, is_whole)
    if o.running:
        observe_links(o, T)
        observe_motors(o, T)
    o.bias[1] = o.bias[0]
    o.still[0] = o.links[0]
    o.still[1] = o.links[1]
    o.still[2] = 0.0
    if dynamics(o, o.mass, o.factor, o.bias[0]):
        return SINGULAR
    if o.is_new:
        presume(o, is_whole)
    o.torque[1] = o.torque[0]
    o.load[1] = o.load[0]
    suspect(o, T)
    o.running = 1.0
    return MEASURED


# --- The delay ----------------------------------------------------------------------------------


def carry_forward(o: Observer) -> None:
    """Carry the state forward by the delay, under the torques `applied` in each of its samples.

    From the measured positions on, springs are lines. Leapfrog; the mass matrix and the bias
    torque are those of the middle.
    """
    h = o.T / SUBSTEPS
    for step in range(o.d * SUBSTEPS):
        o.ahead_links[0] += 0.5 * h * o.ahead_links[1]
        o.ahead_links[4] = o.is_elastic * o.torque[1] - o.ahead_bias + o.ahead_links[2]
        o.ahead_motors[0] += 0.5 * h * o.ahead_motors[1]
        for i in range(o.m):
            j: int = o.joint[i]
            acts = o.applied[1 + step // SUBSTEPS, i]
            if o.is_elastic[j]:
                moved = o.turns[i] * (o.ahead_links[0, j] - o.q[j])
                change = o.rate[i] * (o.ahead_motors[0, i] - o.theta[i] - moved)
                o.ahead_links[4, j] += change
                acts = acts - o.load[1, i] - change + o.ahead_motors[2, i]
                o.ahead_motors[1, i] += h * acts / o.inertia[i]
            else:
                o.ahead_links[4, j] += acts
        solve(o.n, o.L, o.ahead_links[4])
        o.ahead_links[1] += h * o.ahead_links[4]
        o.ahead_links[0] += 0.5 * h * o.ahead_links[1]
        o.ahead_motors[0] += 0.5 * h * o.ahead_motors[1]


def look_ahead(o: Observer) -> int:
    """State a delay later; zero, or what is wrong."""
    o.ahead_links[:] = o.links
    o.ahead_motors[:] = o.motors
    o.ahead_mass[:] = o.mass
    if o.d == 0:
        return MEASURED
    late = 0.5 * o.d * o.T
    # `still` is as `take` has left it: without accelerations.
    o.still[0] = o.links[0] + late * o.links[1]
    if dynamics(o, o.A, o.L, o.ahead_bias):
        return SINGULAR
    carry_forward(o)
    mass_at(o, o.ahead_links[0], o.ahead_mass)
    return MEASURED


# --- The measurement ----------------------------------------------------------------------------


def follow_motors(o: Observer) -> None:
    """Let links whose encoders are lost go with their motors, by the latest deflection.

    A light link on its spring is too fast to be carried on by its torques. Without motor, it
    stays.
    """
    for i in range(o.m):
        j: int = o.joint[i]
        if o.is_elastic[j] and o.turns[i]:
            if o.since[j] < MOST_GATED:
                o.bend[j] = o.motors[0, i] - o.links[0, j]
            elif is_lost(o, i):
                o.q[j] = o.links[0, j]
            else:
                o.q[j] = o.theta[i] - o.bend[j]


def gate_all(o: Observer, elapsed: float) -> None:
    """Gate positions of links and motors."""
    count: int = gate(o.n, elapsed, o.reach, o.links, o.since, o.q)
    for i in range(o.m):
        # What is given of rigid joints is not looked at, and not what stands still.
        if not o.is_elastic[o.joint[i]] or o.doubted[i]:
            o.theta[i] = o.motors[0, i] + elapsed * o.motors[1, i]
    count += gate(o.m, elapsed, o.motor_reach, o.motors, o.motor_since, o.theta)
    follow_motors(o)
    o.gated += count
    o.gating = count


def take_all(o: Observer, T: float) -> int:
    """Take a measurement, and before it those that lie on a line to it; zero, or what is wrong."""
    o.whole_q[:] = o.q
    o.whole_theta[:] = o.theta
    for k in range(1, int(o.samples)):
        share = k / o.samples
        o.q[:] = o.last_q + share * (o.whole_q - o.last_q)
        o.theta[:] = o.last_theta + share * (o.whole_theta - o.last_theta)
        if take(o, T, 0):
            return SINGULAR
        shift(o)
    o.q[:] = o.whole_q
    o.theta[:] = o.whole_theta
    if take(o, T, 1):
        return SINGULAR
    return look_ahead(o)


def is_measured(o: Observer) -> int:
    """Whether all that a first sample needs is finite."""
    for k in range(o.n):
        if o.has_sensors and o.is_single[k] and not isfinite(o.spring_torque[k]):
            return 0
    if not is_finite(o.n, o.q):
        return 0
    return is_finite(o.m, o.theta)


def receive(o: Observer, elapsed: float) -> int:
    """Take a measurement, a time after the one before; zero, or what is wrong.

    Measurements that have not come lie on a line to this one; the torque has been held.
    """
    if elapsed > (MOST_BRIDGED + 0.5) * o.T:
        forget(o)
    o.last_q[:] = o.q
    o.last_theta[:] = o.theta
    o.q[:] = o.new_q
    o.theta[:] = o.new_theta
    o.passed, o.samples, o.gating = 1.0, 1.0, 0.0
    if not o.has_sensors:
        o.sensor_since[:] = 0.0
    if o.running and elapsed == o.T:
        o.passed = samples_passed(o)
        if o.passed == 0.0:
            o.samples = 0.0
            return MEASURED
        if o.passed > MOST_FOUND:
            forget(o)
        elif o.passed > 1.0:
            elapsed = o.passed * o.T
    if o.running:
        gate_all(o, elapsed)
        o.samples = max(1.0, floor(elapsed / o.T + 0.5))
    elif not is_measured(o):
        return NOT_FINITE
    return take_all(o, elapsed / o.samples)
