"""Records of an observer and a law, and the numbers by which a step of it is told; see `step`.

n joints, m motors, a delay of d samples; rows of arrays with two indices are quantities:

links (5, n)
    Position, velocity, torque that the model lacks, the same behind its low pass, acceleration.
motors (4, m)
    Position, velocity, torque that the model lacks, the same behind its low pass.
motion, desired, wanted, effort, distance
    Derivatives.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from hodyn_ros.control.records import Layout, shapes_of

Observer: TypeAlias = Any
Law: TypeAlias = Any

OBSERVER = Layout(
    'Observer',
    {
        'Robot': shapes_of("""
            calls: 6 4, joint: m, T:, slow:, remembered:, slowly:, is_variable:, is_bent:,
            has_friction:, is_elastic: n, is_single: n, joint_inertia: n, rigid_inertia: n,
            damping: n, line: n, softness: n, range: n, gains: 3 n, reach: n, turns: m, part: m,
            inertia: m, motor_gains: 3 m, motor_reach: m, strongest: m, sensor_reach: n,
            counts: n+m"""),
        'Observed': shapes_of("""
            running:, is_new:, passed:, samples:, gated:, gating:, wary:, q: n, theta: m,
            links: 5 n, motors: 4 m, mass: n n, factor: n n, bias: 2 n, torque: 2 n, load: 2 m,
            deflected: n, deflected_load: m, stiffness: n, rate: m, acting: m, acted: m,
            since: n, motor_since: m, sensor_since: n, sensor_offset: n, bend: n, stood: 8 m,
            doubted: m, least: n+m, ahead_links: 5 n, ahead_motors: 4 m, ahead_mass: n n,
            settling:, seen:, trail: 5 m, shadow: 18 m, explains: 7 m, sums: 60 m,
            unsettled: 60 m, found: 8 m, applied: d+1 m"""),
        'Work': shapes_of("""
            desired: 5 n, new_q: n, new_theta: m, qd: n, thetad: m, spring_torque: n, has_sensors:,
            acceleration: n, last_q: n, last_theta: m, whole_q: n, whole_theta: m, ways: n+m,
            speeds: n+m, still: 3 n, ahead_bias: n, L: n n, A: n n, U: n n, rows: 8 n,
            column: n, missing: m, wanted: 5 n, effort: 3 n, motion: 3 m, feed_forward: m,
            friction: m, demand: m, motor_torque: m, weight: n, motor_weight: m, positions: m,
            unsure: m, checked: 5 n, slipped:, gap:, saturated_for:, state: 5 n, compliance: n,
            damper: n, along: n, forward: n, at_rest: n, deflection: n, lacking: n, step: n"""),
    },
)
"""Robot and observer, what the observer remembers, and arguments and room of a step.

`slow`: share that a low pass of the bandwidth takes in a sample; `remembered`, `slowly`: memory in
a sample, and low pass, of `suspicion.watch`. `is_bent`: some spring is no line; `line`: stiffness
of those that are. `part`: of a motor in the inertia of its joint. `range`: largest deflection.
`reach`: see `suspicion.gate`. `strongest`: largest torques. `counts`: 1 where a position is
measured.

`sensor_reach`: largest change, from sample to sample, of what a torque sensor differs by from the
deflection.

Second rows of `bias`, `torque` and `load` are of the sample before. `passed`: samples since the
measurement before as the motion tells. `since`: how often one after the other positions, or
torques of sensors, could not be true. `sensor_offset`: what sensors differ by from deflections.
`bend`: latest deflections of which both ends were measured. `deflected`: torques of springs by
their deflections. `ahead_*`: a delay later. From `settling` on, but for `applied`, they are those
of `suspicion.watch`."""

LAW = Layout(
    'Law',
    {
        'Design': shapes_of("""
            calls: 3 4, kind:, guarded:, yields:, holds:, follows:, is_asked:, observes_friction:,
            bandwidth:, fading:, lead:, fastest:, approach_torque:, arrived_at:, ratio:, max_gap:,
            violation_samples:, saturation_time:, stop_duration:, holding:, ringing:,
            speed_share:, spring_share:, hold_fading:, limit: m, joint_limit: n, lower: n,
            upper: n, lowest: 5 n, highest: 5 n, speed: n, too_fast: n, floats: 16,
            approach_speed: n, springs: n n, felt: n n, dampers: n n, felt_inertia: n,
            damped_inertia: n, gain: n, calm: n"""),
        'Memory': shapes_of("""
            reason:, culprit:, begins:, beyond:, repeated:, runaway:, gives_way:, answered:,
            command: m, moved:, limited_for:, stopped_for:, driven:, left: m, stopping: 7 m,
            hold_stiffness: m, hold_damping: m, spring_damping: m, by_link: m, share: m,
            strained: m, pole:, departed:, arrived:, distance: 5 n, begun:, slow: n, rest: n"""),
    },
)
"""A law, and what it remembers.

`holds`: what hangs on the springs is part of it. `follows`: its springs are about a wanted motion.
`is_asked`: what it wants of springs at rest is computed by Python. `floats`: by the reasons of a
stop, whether motors then give way. `springs`, `felt`: stiffness and K_m. `calm`: share of the
damping of springs, by their resonance. `culprit`: joint, or motor, of the reason of a stop; -1:
none. `by_link`: motors that are held by the positions of their links; `share`: of a new speed in
the low pass of each. `strained`: samples in which springs would carry too much."""

(
    MEASURED,
    NOT_FINITE,
    SINGULAR,
    BEYOND_RANGE,
    IMPLAUSIBLE,
    REPEATED,
    HELD,
    BRIDGED,
) = range(8)
"""What a step returns: 0, or why there is no new torque; of these, `step.do` tells that the robot
has been stopped, or that samples had passed of which nobody told."""

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
    ENCODER_LOST,
    SENSOR_LOST,
) = range(16)
"""Reasons of a stop."""

TRACKING, WEIGHT, TORQUE, SPRINGS, GIVEN = range(5)
"""Kinds of laws: for interaction, what they want of the springs; one is given by Python."""
