"""Torques of laws that give way to forces: what they want of the springs, and how motors feel.

One text for Python and C, see `step`. Source of the equations: `interaction`.
"""

from __future__ import annotations

from math import sqrt

from hodyn_ros.control.kernels import add_product, dampers
from hodyn_ros.control.layouts import (
    BEYOND_RANGE,
    MEASURED,
    TORQUE,
    WEIGHT,
    Law,
    Observer,
)
from hodyn_ros.control.robot_code import (
    REST,
    efforts_2,
    evaluate,
    gravity,
    motor_friction,
    motors_of,
)

NEWTON = 2  # steps of Newton's method in a sample, towards the links' position of rest


def start(o: Observer, c: Law) -> None:
    """Compliance and dampers of the springs; a law that begins does so where the robot is."""
    if not c.begun:
        c.slow[:] = o.torque[1]
        c.rest[:] = o.ahead_links[0]
        c.begun = 1.0
    for i in range(o.n):
        o.compliance[i] = 0.0
        if o.is_elastic[i]:
            o.compliance[i] = 1.0 / o.stiffness[i]
        o.damper[i] = c.calm[i] * sqrt(c.damped_inertia[i] * o.compliance[i])


def state(o: Observer, c: Law) -> None:
    """State of springs and motors when the answer acts, half a sample and a delay later.

    Rows of `state`: torque and its rate, position and velocity of the motors, of rigid joints
    those of the links, and the velocity once more. The rate of the torque is that of what is
    measured alone, since an estimated velocity of the links lags behind when they are pushed, and
    a damper of it would then drive them.
    """
    half = 0.5 * o.T
    c.slow[:] += 0.4 * (o.torque[1] - c.slow)
    o.state[0] = o.ahead_motors[0] - o.motors[0] - o.ahead_links[0] + o.links[0]
    o.state[1] = (o.torque[1] - c.slow) / (1.5 * o.T)
    o.state[0] = o.torque[1] + o.rate * o.state[0] + half * o.state[1]
    for i in range(o.n):
        o.state[2, i], o.state[3, i] = o.ahead_links[0, i], o.ahead_links[1, i]
        if o.is_elastic[i]:
            o.state[2, i], o.state[3, i] = o.ahead_motors[0, i], o.ahead_motors[1, i]
    o.state[2] += half * o.state[3]
    o.state[4] = o.state[3]


# --- What is wanted of the springs --------------------------------------------------------------


def wanted_torque(o: Observer, c: Law) -> int:
    """The links are to get torques with two derivatives, which turn the springs."""
    o.at_rest[:] = o.desired[0] + o.damper * o.desired[1]
    o.at_rest[:] += c.felt_inertia * o.compliance * o.desired[2]
    return MEASURED


def along_motion(o: Observer, c: Law) -> int:
    """Torques that move the motors and turn their springs, with a wanted motion of the links.

    The last row of `state` becomes the velocity by which the motors differ from it.
    """
    efforts_2(o, o.wanted, o.effort)
    failed: int = motors_of(o, c)
    if failed:
        return failed
    gravity(o, o.wanted[0], o.weight)
    o.along[:] = o.effort[0] - o.weight
    o.forward[:] = c.felt_inertia * o.motion[2] + o.damper * o.effort[1]
    o.state[4] -= o.motion[1] - 0.5 * o.T * o.motion[2]
    return MEASURED


def rest_torque(o: Observer, c: Law) -> int:
    """Torques wanted of the springs for links that rest, and their deflections."""
    gravity(o, c.rest, o.weight)
    if c.is_asked:
        return evaluate(c.calls[REST], c.rest, o.at_rest)
    o.at_rest[:] = o.along + o.weight
    o.column[:] = o.wanted[0] - c.rest
    add_product(o.n, c.springs, o.column, o.at_rest)
    o.deflection[:] = o.softness * o.at_rest
    for i in range(o.n):
        if abs(o.deflection[i]) > o.range[i]:
            return BEYOND_RANGE
    return MEASURED


def rest_step(o: Observer, c: Law) -> None:
    """Newton's step towards the links' position of rest on motors that are held."""
    o.lacking[:] = o.state[2] - c.rest - o.deflection
    o.column[:] = 0.0
    add_product(o.n, c.felt, o.lacking, o.column)
    o.step[:] = o.lacking + o.compliance * o.column
    c.rest[:] += o.step


def wanted_springs(o: Observer, c: Law) -> int:
    """The springs are to have torques of a stiffness, at the links' position of rest."""
    o.along[:] = 0.0
    o.forward[:] = 0.0
    o.wanted[:] = o.desired
    if c.follows:
        refused: int = along_motion(o, c)
        if refused:
            return refused
    for _ in range(NEWTON):
        failed: int = rest_torque(o, c)
        if failed:
            return failed
        rest_step(o, c)
    o.at_rest[:] += o.forward
    o.column[:] = -o.step
    add_product(o.n, c.springs, o.column, o.at_rest)
    return MEASURED


def wanted(o: Observer, c: Law) -> int:
    """What a law wants of the springs; zero, or what is wrong."""
    if c.kind == WEIGHT:
        gravity(o, o.ahead_links[0], o.at_rest)
        return MEASURED
    if c.kind == TORQUE:
        return wanted_torque(o, c)
    return wanted_springs(o, c)


# --- The law ------------------------------------------------------------------------------------


def lost(o: Observer, c: Law) -> None:
    """Friction of the motors, as it is observed or known, in `column`."""
    o.friction[:] = 0.0
    if not c.observes_friction:
        o.motion[1] = o.state[3]
        if o.has_friction:
            motor_friction(o, o.motion, o.friction)
        for i in range(o.n):  # less of it for motors that crawl
            o.friction[i] *= min(1.0, abs(o.state[3, i]) / 0.01)
        o.column[:] = o.friction
    else:
        o.column[:] = -o.ahead_motors[3]


def yielding_demand(o: Observer, c: Law) -> int:
    """Torques without limits, and the friction known in them; zero, or what is wrong.

    Motors feel by `gain` lighter than they are.
    """
    start(o, c)
    state(o, c)
    failed: int = wanted(o, c)
    if failed:
        return failed
    dampers(
        o.n,
        c.ratio,
        o.is_elastic,
        c.felt_inertia,
        o.ahead_mass,
        c.felt,
        c.dampers,
        o.state[4],
        o.L,
        o.A,
        o.U,
        o.rows,
        o.at_rest,
    )
    lost(o, c)
    o.at_rest[:] -= o.damper * o.state[1]
    o.demand[:] = o.state[0] + c.gain * (o.at_rest - o.state[0]) + o.column
    return MEASURED
