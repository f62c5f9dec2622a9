"""Torques that laws want: they follow a motion, or give way to forces.

One text for Python and C, see `step`. Source of the equations: `tracking`; for laws that give way,
see `yielding`.
"""

from __future__ import annotations

from math import exp, pi, sqrt

from hodyn_ros.control.holding import hold_here, unready
from hodyn_ros.control.kernels import add_product, limit
from hodyn_ros.control.layouts import (
    FOLLOWS,
    GIVEN,
    MEASURED,
    NOT_FINITE,
    TRACKING,
    Law,
    Observer,
)
from hodyn_ros.control.observing import is_finite, push
from hodyn_ros.control.robot_code import DEMAND, efforts_2, evaluate, motors_of
from hodyn_ros.control.yielding import yielding_demand


def begin(o: Observer, c: Law, is_known: float) -> None:
    """Begin where the robot is; what acts by now is known, unless the observer begins, too."""
    c.departed, c.arrived, c.begun = 0.0, 0.0, 0.0
    if c.kind == GIVEN:  # which does not approach: the whole error counts at once
        c.departed = 1.0
    c.begins = max(c.holds, is_known)
    c.left[:] = 0.0
    c.distance[:] = 0.0
    if is_known:
        c.command[:] = o.acting


def begin_again(o: Observer, c: Law) -> None:
    """Begin behind another law of the same observer, of which nothing before it tells."""
    c.repeated, c.beyond, c.limited_for, c.moved = 0.0, 0.0, 0.0, 0.0
    begin(o, c, o.running)
    if c.reason != FOLLOWS and o.running:
        hold_here(o, c, o.acting, 0.0)


def release(o: Observer, c: Law) -> int:
    """Let a robot that has been stopped go on; 0, or why it may not, see `unready`."""
    found: int = unready(o, c)
    if c.reason != FOLLOWS and found != 0:
        return found
    c.reason, c.culprit, c.beyond, o.wary = FOLLOWS, -1.0, 0.0, 0.0
    o.doubted[:] = 0.0
    begin(o, c, o.running)
    return 0


# --- Tracking -----------------------------------------------------------------------------------


def shear(c: Law, p: float) -> None:
    """Derivatives of the distance times e^(p t), at t = 0."""
    for first in range(1, 5):
        for done in range(5 - first):
            k: int = 4 - done
            c.distance[k] += p * c.distance[k - 1]


def approach(o: Observer, c: Law, T: float) -> None:
    """Advance the distance from what is wanted and its derivatives by a time T.

    It goes to zero as (d/dt + p)^5 d = 0, so that d e^(p t) is a polynomial of degree 4.
    """
    shear(c, c.pole)
    for k in range(4):
        o.column[:] = 0.0
        for done in range(4 - k):
            j: int = 4 - done
            o.column[:] = T / (j - k) * (c.distance[j] + o.column)
        c.distance[k] += o.column
    c.distance[:] *= exp(-c.pole * T)
    shear(c, -c.pole)


def depart(o: Observer, c: Law) -> None:
    """Begin an approach from the distance of the links from what is wanted.

    Its pole is one at which no joint goes faster or accelerates more than it may. From rest the
    speed is p d x^4 e^-x / 24 with x = p t: at most 0.1954 p d; the acceleration is at most
    0.0902 p^2 d.
    """
    c.pole = c.fastest
    for k in range(2):
        # Torques act half a sample later than the state for which they are found.
        c.distance[k] = o.desired[k] - 0.5 * o.T * o.desired[k + 1] - o.ahead_links[k]
    for i in range(o.n):
        inertia = o.ahead_mass[i, i] + o.is_elastic[i] * o.joint_inertia[i]
        acceleration = c.approach_torque * c.joint_limit[i] / inertia
        d = abs(c.distance[0, i])
        if 0.1954 * c.pole * d > c.approach_speed[i]:
            c.pole = c.approach_speed[i] / (0.1954 * d)
        if 0.0902 * c.pole * c.pole * d > acceleration:
            c.pole = sqrt(acceleration / (0.0902 * d))
    approach(o, c, 0.5 * o.T)
    c.departed = 1.0


def arrive(o: Observer, c: Law) -> None:
    """Go on with an approach, up to where nothing is left of it."""
    approach(o, c, o.T)
    largest = 0.0
    for k in range(5):
        for i in range(o.n):
            largest = max(largest, abs(c.distance[k, i]))
    if not largest > c.arrived_at:
        c.arrived = 1.0
        c.distance[:] = 0.0


def errors(o: Observer) -> None:
    """Errors half a sample later, in the first rows of `rows`.

    Of position and velocity, and of the spring torque and its rate, which a damper shares.
    """
    h = -0.5 * o.T
    o.rows[0] = o.wanted[2] + h / 3.0 * (o.wanted[3] + 0.25 * h * o.wanted[4])
    o.rows[0] = o.wanted[0] + h * (o.wanted[1] + 0.5 * h * o.rows[0]) - o.ahead_links[0]
    o.rows[1] = o.wanted[2] + 0.5 * h * (o.wanted[3] + h / 3.0 * o.wanted[4])
    o.rows[1] = o.wanted[1] + h * o.rows[1] - o.ahead_links[1]
    o.rows[2] = o.effort[0] + h * (o.effort[1] + 0.5 * h * o.effort[2])
    o.rows[2] = o.rows[2] - o.ahead_links[3] - o.torque[1]
    o.rows[3] = o.effort[1] + h * o.effort[2]
    for j in range(o.n):
        if o.is_elastic[j]:
            o.rows[3, j] -= o.damping[j] / o.stiffness[j] * o.effort[2, j]
    for i in range(o.m):
        k: int = o.joint[i]
        moved = o.turns[i] * (o.ahead_links[0, k] - o.q[k])
        moving = o.ahead_motors[1, i] - o.turns[i] * o.ahead_links[1, k]
        o.rows[2, k] -= o.rate[i] * (o.ahead_motors[0, i] - o.theta[i] - moved)
        o.rows[3, k] -= o.rate[i] * moving


def close_loops(o: Observer, c: Law) -> None:
    """c, D and V of the joints, in the next rows; errors of positions are bounded."""
    w = c.bandwidth
    for i in range(o.n):
        M, B, K = o.ahead_mass[i, i], o.joint_inertia[i], o.stiffness[i]
        ratio, D = 0.0, 0.0
        if o.is_elastic[i]:
            ratio = B / K
            W = sqrt(K * (1.0 / M + 1.0 / B))
            D = min(1.4 * W, 3.0 * w) * max(0.0, 1.0 - 2.0 / pi * W * o.T)
        own = M + o.is_elastic[i] * B
        gains = (2.0 * w * own + w * w * ratio * D * M) / (w * w * own)
        largest = 0.3 * c.joint_limit[i] / own * gains * gains
        e = max(-largest, min(largest, o.rows[0, i]))
        o.rows[4, i], o.rows[5, i] = ratio, D
        o.rows[6, i] = w * (w * e + 2.0 * o.rows[1, i])


def tracking_law(o: Observer, c: Law) -> None:
    """Torques of the motors for a state, and wanted motion and efforts; see `tracking`."""
    w = c.bandwidth
    errors(o)
    close_loops(o, c)
    o.rows[7] = o.rows[4] * (w * w + 2.0 * w * o.rows[5]) * o.rows[2]
    o.rows[7] += o.rows[4] * (o.rows[5] + 2.0 * w) * o.rows[3]
    o.rows[7] += o.is_elastic * o.joint_inertia * o.rows[6] - o.ahead_links[3]
    o.column[:] = 0.0
    add_product(o.n, o.ahead_mass, o.rows[1], o.column)
    o.rows[7] += w * w * o.rows[4] * o.rows[5] * o.column
    add_product(o.n, o.ahead_mass, o.rows[6], o.rows[7])
    for i in range(o.m):
        o.demand[i] = o.feed_forward[i] + o.part[i] * o.rows[7, o.joint[i]]
    o.demand[:] -= o.ahead_motors[3]


def spread(o: Observer, c: Law) -> None:
    """Add torques that hold the motors of one joint as far apart as the stiffness asks for."""
    o.rows[0] = 0.0
    o.rows[1] = 0.0
    for i in range(o.m):
        for k in range(2):
            error = o.motion[k, i] - o.ahead_motors[k, i]
            o.rows[k, o.joint[i]] += o.part[i] * error
    for i in range(o.m):
        j: int = o.joint[i]
        if not o.is_single[j] and o.is_elastic[j]:
            e = o.motion[0, i] - o.ahead_motors[0, i] - o.turns[i] * o.rows[0, j]
            rate = o.motion[1, i] - o.ahead_motors[1, i] - o.turns[i] * o.rows[1, j]
            o.demand[i] += o.inertia[i] * c.bandwidth * (c.bandwidth * e + 2.0 * rate)


def tracking_demand(o: Observer, c: Law) -> int:
    """Torques without limits of the tracking law, and the friction known in them."""
    if not c.departed:
        depart(o, c)
    o.wanted[:] = o.desired - c.distance
    efforts_2(o, o.wanted, o.effort)
    failed: int = motors_of(o, c)
    if failed:
        return failed
    tracking_law(o, c)
    if not c.arrived:
        arrive(o, c)
    if o.is_variable:
        spread(o, c)
    return MEASURED


# --- All laws -----------------------------------------------------------------------------------


def demand(o: Observer, c: Law) -> int:
    """Torques without limits, and the friction known in them; zero, or what is wrong."""
    if c.kind == TRACKING:
        return tracking_demand(o, c)
    if c.kind == GIVEN:
        return evaluate(c.calls[DEMAND], o.desired, o.demand)
    return yielding_demand(o, c)


def is_sane(o: Observer) -> int:
    """Whether what is wanted and estimated is finite."""
    for k in range(5):
        if not is_finite(o.n, o.links[k]):
            return 0
    for k in range(4):
        if not is_finite(o.m, o.motors[k]):
            return 0
    return is_finite(o.m, o.demand)


def follow(o: Observer, c: Law) -> int:
    """Torques that do what is wanted; zero, or what is wrong."""
    failed: int = demand(o, c)
    if failed:
        return failed
    if c.begins:
        c.left[:] = o.acting - o.demand
    o.demand[:] += c.left
    c.left[:] *= c.fading
    c.begins = 0.0
    if not is_sane(o):
        return NOT_FINITE
    # What is limited again and again is limited for long, too.
    passed_by = -0.5 * o.T
    if limit(o.m, c.limit, o.demand, o.motor_torque):
        passed_by = o.T
    c.limited_for = max(0.0, c.limited_for + passed_by)
    push(o)
    return MEASURED
