"""Records of a robot under a law, and the numbers by which a step of it is told; see `step`.

n joints, m motors, a delay of d samples. Rows of `links` (5, n) and `motors` (4, m) are those of
`kernels`; rows of `motion`, `desired`, `wanted` and `effort` are derivatives.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from hodyn_ros.control.records import layout

Robot: TypeAlias = Any
Observed: TypeAlias = Any
Design: TypeAlias = Any
Memory: TypeAlias = Any
Work: TypeAlias = Any

ROBOT = layout(
    'Robot',
    """calls: 6 4, joint: m, T:, slow:, remembered:, slowly:, is_variable:, is_bent:,
    has_friction:, is_elastic: n, is_single: n, joint_inertia: n, rigid_inertia: n, damping: n,
    stiffness: n,
    softness: n, range: n, gains: 3 n, reach: n, turns: m, part: m, inertia: m, motor_gains: 3 m,
    motor_reach: m, strongest: m, counts: n+m""",
)
"""Robot and observer. `slow`: share that a low pass of the bandwidth takes in a sample;
`remembered`, `slowly`: memory in a sample, and low pass, of `kernels.watch`.
`is_bent`: some spring is no line. `part`: of a motor in the inertia of its joint. `range`: largest
deflection. `reach`: see `kernels.gate`. `strongest`: largest torques. `counts`: 1 where a position
is measured."""

OBSERVED = layout(
    'Observed',
    """running: 1, is_new: 1, passed: 1, samples: 1, gated: 1, gating: 1, wary: 1,
    q: n, theta: m, links: 5 n, motors: 4 m, mass: n n, factor: n n, bias: 2 n, torque: 2 n,
    load: 2 m, deflected: n, deflected_load: m, stiffness: n, rate: m, acting: m,
    acted: m, since: n, motor_since: m, stood: 6 m, doubted: m, least: n+m,
    ahead_links: 5 n, ahead_motors: 4 m, ahead_mass: n n,
    settling: 1, seen: 1, before: 5 m, shadow: 18 m, explains: 7 m, sums: 60 m, unsettled: 60 m,
    found: 8 m, applied: d+1 m""",
)
"""What the observer remembers. Second rows of `bias`, `torque` and `load` are of the sample
before. `passed`: samples since the measurement before as the motion tells. `since`: how often one
after the other positions could not be true. `deflected`: torques of springs by their deflections.
`ahead_*`: a delay later. The last two lines, but for `applied`, are those
of `kernels.watch`."""

DESIGN = layout(
    'Design',
    """calls: 3 4, kind:, guarded:, yields:, holds:, follows:, is_asked:, observes_friction:,
    bandwidth:, fading:, lead:, fastest:, approach_torque:, arrived:, ratio:,
    max_gap:, violation_samples:, saturation_time:, stop_duration:, holding:, ringing:,
    speed_share:, spring_share:, hold_fading:,
    limit: m, joint_limit: n, lower: n, upper: n, lowest: 5 n, highest: 5 n, speed: n, too_fast: n,
    floats: 14, approach_speed: n, springs: n n, felt: n n, dampers: n n, felt_inertia: n,
    damped_inertia: n, gain: n, calm: n""",
)
"""A law. `holds`: what hangs on the springs is part of it. `follows`: its springs are about a
wanted motion. `is_asked`: what it wants of springs at rest is computed by Python. `floats`: by the
reasons of a stop, whether motors then give way. `springs`, `felt`: stiffness and K_m. `calm`:
share of the damping of springs, by their resonance."""

MEMORY = layout(
    'Memory',
    """reason: 1, culprit: 1, begins: 1, beyond: 1, repeated: 1, runaway: 1, floats: 1,
    answered: 1,
    command: m, moved: 1, limited_for: 1, stopped_for: 1, driven: 1, left: m, stopping: 7 m,
    hold_stiffness: m, hold_damping: m, spring_damping: m,
    pole: 1, departed: 1, arrived: 1, distance: 5 n, begun: 1, slow: n, rest: n""",
)
"""What a law remembers. `culprit`: joint, or motor, of the reason of a stop; -1: none."""

WORK = layout(
    'Work',
    """desired: 5 n, new_q: n, new_theta: m, qd: n, thetad: m, sensed: n, has_sensors: 1,
    acceleration: n, last_q: n, last_theta: m, whole_q: n, whole_theta: m, values: n+m,
    before: n+m, speeds: n+m, still: 3 n, bias: n, L: n n, A: n n, U: n n, rows: 8 n, column: n,
    missing: m,
    wanted: 5 n, effort: 3 n, motion: 3 m, feed_forward: m, friction: m, demand: m, torque: m,
    weight: n, motor_weight: m, positions: m, unsure: m, checked: 5 n, slipped: 1, gap: 1,
    limited_for: 1, state: 5 n, compliance: n, damper: n, along: n, forward: n, at_rest: n,
    deflection: n, lacking: n, step: n""",
)
"""Arguments of a step, and room for what it computes."""

RECORDS = ROBOT, OBSERVED, DESIGN, MEMORY, WORK

MEASURED, NOT_FINITE, SINGULAR, BEYOND_RANGE, IMPLAUSIBLE, REPEATED = range(6)
"""What a step returns: 0, or why there is no new torque."""

(
    FOLLOWS,
    POSITION,
    VELOCITY,
    TRACKING_ERROR,
    EXTERNAL_TORQUE,
    DRIVE_ERROR,
    MEASUREMENTS,
    SATURATION,
    GAP,
    SPRING_RANGE,
    ASKED,
    ENCODER_STANDS,
    RUNAWAY,
    SILENCE,
) = range(14)
"""Reasons of a stop."""

TRACKING, WEIGHT, TORQUE, SPRINGS, GIVEN = range(5)
"""Kinds of laws: for interaction, what they want of the springs; one is given by Python."""
