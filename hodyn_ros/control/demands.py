"""Torques that laws want: they follow a motion, or give way to forces.

One text for Python and C, see `step`. Source of the equations: `tracking`, `interaction`.
"""

from __future__ import annotations

from math import sqrt

from hodyn_ros.control.holding import (
    hold_here,
    unready,
)
from hodyn_ros.control.kernels import (
    after_step,
    along_motion,
    approach,
    approach_pole,
    dampers,
    interaction_law,
    interaction_state,
    limit,
    rest_step,
    rest_torque,
    torques_ahead,
    tracking_law,
    where_it_moves,
)
from hodyn_ros.control.layouts import (
    BEYOND_RANGE,
    FOLLOWS,
    GIVEN,
    MEASURED,
    NOT_FINITE,
    TORQUE,
    TRACKING,
    WEIGHT,
    Design,
    Memory,
    Observed,
    Robot,
    Work,
)
from hodyn_ros.control.observing import (
    NEWTON,
    all_finite_rows,
    is_finite,
    push,
)
from hodyn_ros.control.robot_code import (
    DEMAND,
    MOTORS,
    REST,
    efforts_2,
    evaluate,
    gravity,
    motor_friction,
)


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
