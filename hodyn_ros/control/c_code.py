"""Control laws with their observers as C99, beside the dynamics that `codegen` writes.

The equations are those of `kernels`, translated. What calls them and is the same for all laws
stands here: it does what `StateObserver.update` and `ObserverController.evaluate` do, guards,
stop and hold included. What a law adds is a `LawCode`.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from dataclasses import asdict, replace
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators.drives import RigidDrive, SeriesElastic
from hodyn_ros.actuators.springs import LinearSpring
from hodyn_ros.codegen.c_source import Code, model_hash, program_function
from hodyn_ros.codegen.statements import names_in
from hodyn_ros.codegen.translation import HELPERS, translated
from hodyn_ros.control import kernels
from hodyn_ros.control.guards import (
    AT_REST,
    BOUNDS,
    CONTRADICTION,
    FASTEST_DAMPED,
    MOST_DAMPING,
    MOST_GATED,
    MOST_TURNED,
    OUTSIDE,
    OVERLOAD,
    RUN_UP,
    Guards,
    holding_bandwidth,
    ringing_bandwidth,
)
from hodyn_ros.control.observer import CALM, MOST_BRIDGED, MOST_FOUND, SUBSTEPS, WARY
from hodyn_ros.engine.efforts import effort_program
from hodyn_ros.engine.joint_friction import friction_laws
from hodyn_ros.engine.program import MASS_MATRIX, WEIGHT
from hodyn_ros.engine.terms import term_program
from hodyn_ros.errors import ControlError
from hodyn_ros.model.friction import FrictionLaw
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.control.observer_controller import ObserverController

# Of a robot with more the program of the mass matrix is too long to compile.
MOST_BODIES = 32

_KERNELS = (
    'factorise',
    'solve',
    'observe',
    'carry_forward',
    'gate',
    'outside',
    'passed',
    'doubt',
    'hold',
)
# Bounds by the reasons of a stop, in the order of the enumeration below.
_REASONS = ('', *BOUNDS, '', '', 'measurements', '', '')
_COLUMNS = {'Matrix': 'n', 'MotorMatrix': 'm'}

_DECLARATIONS = Template("""
/* Control law with observers and guards; see $law of hodyn_ros. The period of its
 * calls, and how much later than a measurement what is wanted is [s]:
 */
#define ${UPPER}_SAMPLE_PERIOD $T
#define ${UPPER}_LEAD $lead

/* Why a controller has stopped the robot; its motors come to rest, and are held or give way as
 * the reactions of the guards say.
 */
enum {
    ${UPPER}_FOLLOWS, ${UPPER}_POSITION, ${UPPER}_VELOCITY, ${UPPER}_TRACKING_ERROR,
    ${UPPER}_EXTERNAL_TORQUE, ${UPPER}_DRIVE_ERROR, ${UPPER}_MEASUREMENTS, ${UPPER}_SATURATION,
    ${UPPER}_GAP, ${UPPER}_SPRING_RANGE, ${UPPER}_ASKED, ${UPPER}_ENCODER_STANDS,
    ${UPPER}_RUNAWAY, ${UPPER}_SILENCE
};

/* ENCODER_STANDS: the encoder of a motor stands still while its joint moves; this motor carries
 * the weight alone. RUNAWAY: the links have run away behind a stop. SILENCE: $most_gated
 * measurements one after the other were the same, though the robot moved. Then all motors carry
 * the weight alone until a reset. With each of the three brakes must close.
 */

/* What a controller remembers. Estimates at the latest measurement in rows of $n: position,
 * velocity, torque that the model lacks, the same behind a low pass.
 */
typedef struct {
    double links[5 * $n], motors[4 * $n];
    double mass[$n * $n], factor[$n * $n], bias[2 * $n], torque[2 * $n];
    double applied[($delay + 1) * $n], acting[$n];
    double measured[2 * $n], command[$n], left[$n], gated_since[2 * $n];
    double stopping[7 * $n], stiffness[$n], damping[$n], spring_damping[$n];
    double stood[6 * $n], doubted[$n], least_change[2 * $n];
    double limited_for, stopped_for, driven;
    $memory
    long gated; /* positions so far that could not be true */
    int reason; /* why the robot has been stopped and is held; 0: it follows */
    int joint; /* of the reason; of motors 0 to ${last} as well; -1: of none */
    int is_running, has_command, begins, beyond, repeated, runaway, floats, moves;
} ${name}_controller;

/* Forget everything: to be called first. The next measurement begins anew. */
void ${name}_controller_reset(${name}_controller *controller);

/* Bring the motors to rest from now on and hold them, as beyond a bound; without a measurement,
 * and again behind a gap, where the next one finds them.
 */
void ${name}_controller_stop(${name}_controller *controller);

/* Let a robot that has been stopped do what is wanted again. Returns 1, and does nothing, if its
 * motors still move, its positions cannot be true or are beyond a bound, or it has run away.
 */
int ${name}_controller_release(${name}_controller *controller);

/* Estimated state of links and motors, torques on the links that the model lacks, and those that
 * the motors lose beside their friction [rad, m, s, N m, N]; any pointer may be NULL.
 */
void ${name}_controller_observed(
    const ${name}_controller *controller, double position[$n], double velocity[$n],
    double motor_position[$n], double motor_velocity[$n], double external_torque[$n],
    double motor_friction[$n]);

/* Motor torques [N m, N] within the limits; to be called once in every sample period.
 *
 * desired        $desired,
 *                LEAD after the measurement
 * q, theta       positions of links, and of motors reflected to the links; one that cannot be
 *                true, or is NaN, is taken for what is expected
 * qd, thetad     velocities, looked at in the first sample only; may be NULL
 * spring_torque  of torque sensors, in place of what the springs tell; may be NULL
 * elapsed        time since the call before [s]: that of stamps, or SAMPLE_PERIOD, in place of
 *                which the motion may tell of up to $most_found that have passed
 *
 * Returns 0; or 1 if an argument or a result is not finite, 2 if the mass matrix is singular,
 * 3 if a spring would be out of its range and there are no guards, 4 if the first measurement
 * cannot be true: far from the position limits, or torques of springs beyond those of motors or
 * other than those of sensors. Then torque and controller are as before. 5 if no time has
 * elapsed, or the measurement is that of before though the robot moves: the torque stays. Beyond a
 * bound the motors are brought to rest and held, and `reason` says why.
 */
$evaluate;
""")

_EVALUATE = Template("""int ${name}_controller_evaluate(
    ${name}_controller *controller, const double desired[$rows * $n], const double q[$n],
    const double *qd, const double theta[$n], const double *thetad,
    const double *spring_torque, double elapsed, double torque[$n])""")

_DEFINITIONS = Template("""
/* --- Control law --- */

enum { N = $n, DELAY = $delay };

$constants
$functions
static int all_finite(int count, const double *values)
{
    while (count > 0 && isfinite(values[count - 1])) --count;
    return count == 0;
}

static int dynamics(${name}_controller *c)
{
    double motion[3 * N] = {0.0};
    memcpy(motion, c->links, 2 * N * sizeof(double));
    mass_matrix(motion, c->mass);
    ${name}_inverse_dynamics_0(motion, c->bias);
    return factorise(N, c->mass, c->factor);
}

$begins
/* Forget what has been observed. */
static void forget(${name}_controller *c)
{
    memset(c->links, 0, sizeof(c->links));
    memset(c->motors, 0, sizeof(c->motors));
    memset(c->gated_since, 0, sizeof(c->gated_since));
    c->is_running = 0;
}

/* Take positions, a time T after those before; what controller_evaluate returns. */
static int take(
    ${name}_controller *c, const double *acceleration, const double *qd, const double *thetad,
    const double *spring_torque, double T)
{
    const size_t row = sizeof(double[N]);
    const double *q = c->measured, *theta = c->measured + N;
    const int is_new = !c->is_running;
    double load[N], missing[N], turns = c->reason ? $wary : $calm;
    for (int i = 0; i < N; ++i) {
        const double spring = STIFFNESS[i] * (theta[i] - q[i]);
        if (!c->is_running) {
            c->links[i] = q[i];
            c->motors[i] = theta[i];
            c->links[N + i] = qd ? qd[i] : 0.0;
            c->motors[N + i] = thetad ? thetad[i] : 0.0;
        }
        c->torque[i] = spring + DAMPING[i] * (c->motors[N + i] - c->links[N + i]);
        if (spring_torque && IS_ELASTIC[i] > 0.0) c->torque[i] = spring_torque[i];
        if (c->is_running) continue;
        if (q[i] < LOWER[i] || q[i] > UPPER[i] || fabs(spring) > $overload * LIMIT[i]
            || (spring_torque && fabs(spring - c->torque[i]) > $contradiction * LIMIT[i]))
            return 4;
    }
    /* Second rows are of the sample before. */
    if (c->is_running) {
        observe(N, N, T, $share, JOINT, IS_ELASTIC, INERTIA, GAINS, GAINS, c->mass, c->factor,
                c->bias, c->torque, c->torque, c->applied, q, theta, c->links, c->motors);
        memcpy(c->bias + N, c->bias, row);
    }
    if (dynamics(c)) return 2;
    for (int i = 0; i < N && !c->is_running; ++i) {
        /* What the model lacks is taken for external, so that nothing jumps afterwards. */
        double missing = c->bias[i] - c->torque[i];
        for (int k = 0; k < N && acceleration; ++k)
            missing += c->mass[i * N + k] * acceleration[k];
        c->bias[N + i] = c->bias[i];
        c->links[2 * N + i] = c->links[3 * N + i] = IS_ELASTIC[i] * missing;
        for (int k = 0; k <= DELAY; ++k)
            c->applied[k * N + i] = c->torque[i] + (1.0 - IS_ELASTIC[i]) * missing;
        c->acting[i] = c->applied[i];
    }
    memcpy(c->torque + N, c->torque, row);
    c->is_running = 1;
    for (int i = 0; i < N; ++i) {
        load[i] = STIFFNESS[i] * (theta[i] - q[i]);
        missing[i] = spring_torque ? c->torque[i] - load[i] : c->links[2 * N + i];
        if (c->doubted[i] > 0.0) turns = $wary;
        if (!is_new) continue;
        c->stood[i] = theta[i];
        c->stood[N + i] = load[i];
        c->stood[2 * N + i] = missing[i];
        for (int k = 3; k < 6; ++k) c->stood[k * N + i] = 0.0;
    }
    doubt(N, T, turns, JOINT, IS_ELASTIC, GAINS, STRONGEST, STIFFNESS, theta, load, missing,
          c->stood, c->doubted);
    return 0;
}

/* State a delay later. */
static int look_ahead(const ${name}_controller *c, ${name}_controller *ahead)
{
    *ahead = *c;
    if (DELAY == 0) return 0;
    for (int i = 0; i < N; ++i) ahead->links[i] += 0.5 * DELAY * $T * c->links[N + i];
    if (dynamics(ahead)) return 2;
    memcpy(ahead->links, c->links, sizeof(double[N]));
    carry_forward(N, N, DELAY, $substeps, $T, JOINT, IS_ELASTIC, ONES, INERTIA,
                  ahead->factor, ahead->bias, c->torque, STIFFNESS, c->torque, c->measured,
                  c->measured + N, c->applied + N, ahead->links, ahead->motors);
    mass_matrix(ahead->links, ahead->mass);
    return 0;
}

/* Samples since the last positions, as the motion tells. */
static int samples_passed(${name}_controller *c, const double *last)
{
    double speed[2 * N];
    for (int i = 0; i < 2 * N; ++i)
        if (c->gated_since[i] > 0.0 || c->doubted[i % N] > 0.0) return 1;
    memcpy(speed, c->links + N, sizeof(double[N]));
    memcpy(speed + N, c->motors + N, sizeof(double[N]));
    return (int)passed(2 * N, $T, COUNTS, c->measured, last, speed, c->least_change);
}

static void hold_motors(${name}_controller *c, double time, double *torque)
{
    double weight[N], theta[N], doubted[N];
    gravity(c->measured, weight);
    for (int i = 0; i < N; ++i) {
        theta[i] = IS_ELASTIC[i] > 0.0 ? c->measured[N + i] : c->measured[i];
        doubted[i] = c->doubted[i] + (c->gated_since[N + i] >= $most_gated);
        if (c->runaway) doubted[i] = 1.0;
    }
    c->driven += hold(N, $T, $speed_share, $spring_share, time, $stop_duration, JOINT,
                      c->stiffness, c->damping, c->spring_damping, LIMIT, weight, c->measured,
                      theta, c->links + N, doubted, c->stopping, torque);
}

/* Why the robot is stopped, if more is known by now than why it has been. */
static void tell(${name}_controller *c)
{
    if (c->runaway) {
        c->reason = c->runaway;
        c->joint = -1;
    }
    for (int i = N - 1; i >= 0; --i) {
        if (c->doubted[i] == 0.0) continue;
        c->reason = ${UPPER}_ENCODER_STANDS;
        c->joint = i;
    }
}

/* Bring motors to rest from where they are measured; torque before, mass matrix a delay later. */
static void hold_here(${name}_controller *c, const double *mass, const double *before, int touches)
{
    double torque[N];
    c->beyond = 0;
    c->limited_for = c->stopped_for = 0.0;
    memset(c->stopping, 0, sizeof(c->stopping));
    for (int i = 0; i < N; ++i) {
        const int is_elastic = IS_ELASTIC[i] > 0.0;
        const double link = mass[i * N + i], moved = is_elastic ? INERTIA[i] + link : link;
        const double speed = is_elastic ? c->motors[N + i] : c->links[N + i];
        const double turned = is_elastic ? INERTIA[i] : link;
        c->damping[i] = smaller(2.0 * $holding * moved,
                                smaller($most_turned * $holding, $most_damping / $T) * turned);
        c->stiffness[i] = smaller($holding * $holding * moved, $holding * c->damping[i]);
        if (c->floats) c->stiffness[i] = 0.0;
        c->spring_damping[i] = 0.0;
        if (is_elastic) {
            const double fast = sqrt(STIFFNESS[i] * (1.0 / link + 1.0 / turned));
            c->spring_damping[i] = larger(0.0, 1.0 - fast / $fastest_damped);
            c->spring_damping[i] *= 2.0 * $ringing * turned;
        }
        /* The low passes begin with what is known, a sample before. */
        const double theta = c->measured[is_elastic * N + i], turning = speed - c->links[N + i];
        c->stopping[i] = theta;
        if (!touches)
            c->stopping[N + i] = larger(-SPEED[i], smaller(speed, SPEED[i]));
        c->stopping[2 * N + i] = theta - $T * speed;
        c->stopping[3 * N + i] = speed;
        c->stopping[4 * N + i] = theta - c->measured[i] - $T * turning;
        c->stopping[5 * N + i] = turning;
    }
    hold_motors(c, 0.0, torque);
    for (int i = 0; i < N; ++i) c->stopping[6 * N + i] = before[i] - torque[i];
    c->driven = 0.0;
    for (int i = 0; i < N * N; ++i)
        c->driven -= $run_up * c->links[N + i / N] * mass[i] * c->links[N + i % N];
}

static void stop(${name}_controller *c, const double *mass, int reason, int joint)
{
    c->reason = reason;
    c->joint = joint;
    c->floats = FLOATS[reason];
    if (mass)
        hold_here(c, mass, c->has_command ? c->command : c->acting,
                  reason == ${UPPER}_EXTERNAL_TORQUE);
}

/* Stop the robot if it is beyond a bound. */
static void judge(${name}_controller *c, const double *mass, const double *desired, int reason,
                  int joint)
{
    double values[5 * N];
    for (int i = 0; i < N; ++i) {
        values[i] = c->links[i];
        values[N + i] = c->links[N + i];
        values[2 * N + i] = tracking_error(c, desired, i);
        values[3 * N + i] = c->links[3 * N + i];
        values[4 * N + i] = c->motors[3 * N + i];
    }
    for (int i = N - 1; i >= 0; --i) {
        if (c->doubted[i] == 0.0) continue;
        reason = ${UPPER}_ENCODER_STANDS;
        joint = i;
    }
    const int found = outside(5, N, LOWEST, HIGHEST, values);
    c->beyond = found ? c->beyond + 1 : 0;
    if (!reason && c->limited_for > $saturation_time) {
        reason = ${UPPER}_SATURATION;
        joint = -1;
    }
    if (!reason && c->beyond >= $violation_samples) {
        reason = 1 + (found - 1) / N;
        joint = (found - 1) % N;
    }
    if (reason) stop(c, mass, reason, joint);
}

void ${name}_controller_reset(${name}_controller *controller)
{
    memset(controller, 0, sizeof(*controller));
    controller->joint = -1;
    for (int i = 0; i < 2 * N; ++i) controller->least_change[i] = INFINITY;
    begin(controller);
}

void ${name}_controller_stop(${name}_controller *controller)
{
    ${name}_controller ahead;
    if (!controller->is_running)
        stop(controller, NULL, ${UPPER}_ASKED, -1);
    else if (!look_ahead(controller, &ahead))
        stop(controller, ahead.mass, ${UPPER}_ASKED, -1);
}

int ${name}_controller_release(${name}_controller *controller)
{
    if (controller->runaway || (controller->reason && !controller->is_running)) return 1;
    for (int i = 0; i < 2 * N && controller->reason; ++i) {
        const double q = controller->links[i % N];
        if (!(fabs(controller->motors[N + i % N]) <= $at_rest)
            || controller->gated_since[i] >= $most_gated
            || !(q >= LOWEST[i % N] && q <= HIGHEST[i % N])) return 1;
    }
    controller->reason = ${UPPER}_FOLLOWS;
    controller->joint = -1;
    memset(controller->doubted, 0, sizeof(controller->doubted));
    begin(controller);
    return 0;
}

void ${name}_controller_observed(
    const ${name}_controller *controller, double position[$n], double velocity[$n],
    double motor_position[$n], double motor_velocity[$n], double external_torque[$n],
    double motor_friction[$n])
{
    for (int i = 0; i < N; ++i) {
        if (position) position[i] = controller->links[i];
        if (velocity) velocity[i] = controller->links[N + i];
        if (motor_position) motor_position[i] = controller->motors[i];
        if (motor_velocity) motor_velocity[i] = controller->motors[N + i];
        if (external_torque) external_torque[i] = controller->links[3 * N + i];
        if (motor_friction) motor_friction[i] = -controller->motors[3 * N + i];
    }
}

$demanded
/* Torques that do what is wanted; what controller_evaluate returns. */
static int follow(
    ${name}_controller *c, const ${name}_controller *ahead, const double *desired, double *torque)
{
    double demand[N], friction[N];
    int is_limited = 0;
    const int failed = demanded(c, ahead, desired, demand, friction);
    if (failed) return failed;
    for (int i = 0; i < N; ++i) {
        if (c->begins) c->left[i] = c->acting[i] - demand[i];
        demand[i] += c->left[i];
        c->left[i] *= $fading;
        torque[i] = smaller(larger(demand[i], -LIMIT[i]), LIMIT[i]);
        if (torque[i] != demand[i]) is_limited = 1;
    }
    c->begins = 0;
    if (!all_finite(5 * N, c->links) || !all_finite(4 * N, c->motors) || !all_finite(N, demand))
        return 1;
    c->limited_for = larger(0.0, c->limited_for + (is_limited ? $T : -0.5 * $T));
    memmove(c->applied, c->applied + N, DELAY * sizeof(double[N]));
    for (int i = 0; i < N; ++i) c->applied[DELAY * N + i] = torque[i] - friction[i];
    return 0;
}

$evaluate
{
    ${name}_controller c = *controller, ahead, before;
    const size_t row = sizeof(double[N]);
    double wanted[N], last[2 * N], now[2 * N];
    int reason = 0, joint = -1, failed = 0, samples = 1, slipped = -1, found = 1, moves = c.moves;
    int begins_anew;
    if (!all_finite($rows * N, desired)) return 1;
    if (spring_torque && !all_finite(N, spring_torque)) return 1;
    if (c.has_command && !(elapsed > 0.0)) {
        memcpy(torque, c.command, row);
        return 5;
    }
    c.moves = 0;
    for (int i = N; i < $rows * N && !c.moves; ++i) c.moves = desired[i] != 0.0;
    moves = moves || c.moves;
    if ($guarded && c.is_running && elapsed > $max_gap) {
        forget(&c);
        begin(&c);
        if (moves) reason = ${UPPER}_GAP;
    }
    if (c.is_running && elapsed > ($most_bridged + 0.5) * $T) forget(&c);
    memcpy(last, c.measured, sizeof(last));
    memcpy(c.measured, q, row);
    memcpy(c.measured + N, theta, row);
    if (c.is_running && elapsed == $T) found = samples_passed(&c, last);
    c.repeated = found ? 0 : c.repeated + 1;
    if (!found && (c.repeated < $most_gated || !$guarded)) {
        *controller = c;
        memcpy(torque, c.command, row);
        return 5;
    }
    if (found > $most_found) {
        forget(&c);
        if ($guarded) begin(&c);
        if ($guarded && moves) reason = ${UPPER}_GAP;
    } else if (found > 1) {
        elapsed = found * $T;
    }
    if (c.is_running && found) {
        c.gated += gate(N, elapsed, REACH, c.links, c.gated_since, c.measured);
        for (int i = 0; i < N; ++i)
            if (IS_ELASTIC[i] == 0.0) c.measured[N + i] = c.motors[i] + elapsed * c.motors[N + i];
        c.gated += gate(N, elapsed, REACH + N, c.motors, c.gated_since + N, c.measured + N);
        samples = (int)larger(1.0, rint(elapsed / $T));
    } else if (!all_finite(2 * N, c.measured)) {
        return 1;
    }
    if (!found) samples = 0;
    begins_anew = !c.is_running;
    memcpy(now, c.measured, sizeof(now));
    for (int k = 1; k < samples && !failed; ++k) {
        for (int i = 0; i < 2 * N; ++i)
            c.measured[i] = last[i] + (double)k / samples * (now[i] - last[i]);
        failed = take(&c, NULL, NULL, NULL, NULL, elapsed / samples);
        memcpy(c.acting, c.applied + DELAY * N, row);
        memmove(c.applied, c.applied + N, DELAY * row);
        memcpy(c.applied + DELAY * N, c.acting, row);
    }
    memcpy(c.measured, now, sizeof(now));
    if (!failed && found)
        failed = take(&c, $acceleration, qd, thetad, spring_torque, elapsed / samples);
    for (int i = 2 * N - 1; i >= 0 && $guarded && found && !c.reason; --i)
        if (c.gated_since[i] >= $most_gated) slipped = i;
    if (!failed && slipped >= 0) {
        reason = ${UPPER}_MEASUREMENTS;
        joint = slipped % N;
        if (all_finite(N, q) && all_finite(N, theta)) {
            ahead = c;
            forget(&ahead);
            memcpy(ahead.measured, q, row);
            memcpy(ahead.measured + N, theta, row);
            if (!take(&ahead, NULL, NULL, NULL, NULL, $T)) c = ahead;
        }
    }
    if (!failed) failed = look_ahead(&c, &ahead);
    if (failed) return failed;
    if (begins_anew && c.reason) hold_here(&c, ahead.mass, c.acting, 0);
    if (!found) {
        c.repeated = 0;
        c.runaway = ${UPPER}_SILENCE;
        stop(&c, ahead.mass, ${UPPER}_SILENCE, -1);
    }
    if ($guarded && !c.reason) judge(&c, ahead.mass, desired, reason, joint);
    if (!c.reason) {
        memcpy(wanted, torque, row);
        before = c;
        failed = follow(&c, &ahead, desired, torque);
        if (failed) memcpy(torque, wanted, row);
        if (failed != 3 || !$guarded) {
            if (failed) return failed;
        } else {
            c = before;
            stop(&c, ahead.mass, ${UPPER}_SPRING_RANGE, -1);
        }
    }
    if (c.reason) {
        int is_fast = 0;
        tell(&c);
        c.stopped_for += $T;
        hold_motors(&c, c.stopped_for, torque);
        for (int i = 0; i < N; ++i) {
            c.stopping[6 * N + i] *= $hold_fading;
            if (fabs(c.links[N + i]) > TOO_FAST[i]) is_fast = c.stopped_for > $stop_duration;
        }
        c.beyond = is_fast ? c.beyond + 1 : 0;
        if (c.beyond >= $violation_samples && c.driven > 0.0 && !c.runaway) {
            c.runaway = ${UPPER}_RUNAWAY;
            tell(&c);
            hold_motors(&c, c.stopped_for, torque);
        }
        memmove(c.applied, c.applied + N, DELAY * row);
        memcpy(c.applied + DELAY * N, torque, row);
    }
    memcpy(c.command, torque, row);
    memcpy(c.acting, torque, row);
    c.has_command = 1;
    *controller = c;
    return 0;
}
""")


class LawCode(NamedTuple):
    """What a control law adds to the code that all have in common.

    Attributes
    ----------
    name : str
        Of its class.
    desired : str
        What its caller says is wanted, for the header.
    memory : str
        Declarations of what it remembers.
    begins : str
        Definitions of `begin`, and of `tracking_error` of a joint.
    demanded : str
        Definition of `demanded`: torques without limits, and the friction known in them.
    kernels : tuple of str
        Those of `kernels` that it needs, those that others call first.
    tables : dict of str to ArrayLike
        Constants by their names.
    numbers : dict of str to float or str
        What stands for names in its texts.
    knows_friction : bool
        Whether it uses `motor_friction`.
    """

    name: str
    desired: str
    memory: str
    begins: str
    demanded: str
    kernels: tuple[str, ...]
    tables: dict[str, ArrayLike]
    numbers: dict[str, float | str]
    knows_friction: bool = True


class _Springs(NamedTuple):
    """Linear springs of the joints, and the motors of those without.

    Attributes
    ----------
    stiffness : ndarray, shape (n,)
        [N m/rad] or [N/m]; zero for rigid joints.
    softness : ndarray, shape (n,)
        Its inverse; zero for rigid joints.
    reach : ndarray, shape (n,)
        Largest deflection [rad] or [m]; infinite for rigid joints.
    rigid : dict of str to float
        Inertia of the motors of rigid joints that have one, by joint [kg m^2] or [kg].
    friction : dict of str to FrictionLaw
        Of the motors that have one, by joint.
    """

    stiffness: Array
    softness: Array
    reach: Array
    rigid: dict[str, float]
    friction: dict[str, FrictionLaw]


def linear_springs(controller: ObserverController) -> _Springs:
    """Springs of a controller whose actuators all have code.

    Parameters
    ----------
    controller : ObserverController

    Returns
    -------
    _Springs
        In the order of the n joints.

    Raises
    ------
    ControlError
        If an actuator is neither a rigid drive nor series elastic with a linear spring.
    """
    n = controller.model.n_joints
    found = _Springs(np.zeros(n), np.zeros(n), np.full(n, np.inf), {}, {})
    for j, item in enumerate(controller.actuators.driven):
        actuator: Any = item.actuator
        if type(actuator) is RigidDrive:
            if actuator.motor_inertia:
                found.rigid[item.name] = actuator.motor_inertia
        elif type(actuator) is SeriesElastic and type(actuator.spring) is LinearSpring:
            spring = actuator.spring
            found.stiffness[j], found.reach[j] = spring.stiffness, spring.max_deflection
            found.softness[j] = 1.0 / spring.stiffness
        else:
            raise ControlError(
                f'No code is generated for {actuator!r} of joint {item.name!r}, but for '
                'RigidDrive and SeriesElastic with a linear spring. Call the controller in '
                'Python, or make one with the stiffness that the spring has about its load.'
            )
        if actuator.friction is not None:
            found.friction[item.name] = actuator.friction
    return found


def with_law(code: Code, controller: ObserverController, law: LawCode) -> Code:
    """Code with a controller beside the dynamics of orders 0 and 2; see `generate_code`.

    Parameters
    ----------
    code : Code
        Of the dynamics.
    controller : ObserverController
        Its observer is tuned for its springs.
    law : LawCode
        What this law adds.

    Returns
    -------
    Code
        With orders 0 and 2 among its orders, and the declarations and definitions of the
        controller.

    Raises
    ------
    ControlError
        If the models differ, the robot has more bodies than a controller in C may have, the
        precision is not double, or an actuator has no code.
    """
    _check_code(code, controller)
    springs = linear_springs(controller)
    controller.observer.tune(springs.stiffness)
    values = {
        **_numbers(controller),
        'constants': _constants(controller, law, springs),
        'functions': _functions(code, controller, law, springs),
        'name': code.name,
        'UPPER': code.name.upper(),
        'law': law.name,
        'desired': law.desired,
        **law.numbers,
    }
    values['memory'] = law.memory.replace('$n', str(controller.model.n_joints))
    for part in ('begins', 'demanded'):
        values[part] = Template(getattr(law, part)).substitute(values)
    values['evaluate'] = _EVALUATE.substitute(values)
    return code._replace(
        orders=tuple(sorted({*code.orders, 0, 2})),
        declarations=_DECLARATIONS.substitute(values),
        definitions=_DEFINITIONS.substitute(values),
    )


def _check_code(code: Code, controller: ObserverController) -> None:
    """Refuse code beside which a controller cannot stand."""
    model = controller.model
    if model_hash(code.model) != model_hash(model):
        raise ControlError(
            'The controller has another model than the code; expected one that was made with '
            'Actuators of the same model.'
        )
    if model.n_bodies > MOST_BODIES:
        raise ControlError(
            f'The robot has {model.n_bodies} moving bodies, a controller in C at most '
            f'{MOST_BODIES}.'
        )
    if code.precision.type != 'double':
        raise ControlError("The precision is 'float', expected 'double' for a controller.")


def _constants(controller: ObserverController, law: LawCode, springs: _Springs) -> str:
    """Definitions of the tables of a tuned controller and its law."""
    model, observer, bounds = controller.model, controller.observer, controller.bounds
    t, n, guards = observer.transmission, model.n_joints, controller.guards or Guards()
    tables = {
        'IS_ELASTIC': t.is_elastic,
        'INERTIA': t.inertia,
        'STIFFNESS': springs.stiffness,
        'DAMPING': t.damping,
        'ONES': np.ones(n),
        'LIMIT': controller.torque_limits,
        'LOWER': model.limits.lower - OUTSIDE,
        'UPPER': model.limits.upper + OUTSIDE,
        'GAINS': observer.link_gains,
        'SPEED': controller.fastest,
        'TOO_FAST': controller.too_fast,
        'REACH': observer.reach,
        'STRONGEST': observer.most_torque,
        'COUNTS': observer.counts,
        'LOWEST': np.full(5 * n, -np.inf) if bounds is None else bounds.lowest,
        'HIGHEST': np.full(5 * n, np.inf) if bounds is None else bounds.highest,
        **law.tables,
    }
    constants = _table('int', 'JOINT', range(n))
    constants += _table('int', 'FLOATS', [int(guards.floats(bound)) for bound in _REASONS])
    return constants + ''.join(_table('double', *item) for item in tables.items())


def _numbers(controller: ObserverController) -> dict[str, Any]:
    """What stands for the names of numbers in the texts that all laws have in common."""
    observer, guards = controller.observer, controller.guards or Guards()
    n, rows = controller.model.n_joints, controller.orders
    T, holding = controller.sample_period, controller.holding
    return {
        **{name: value for name, value in asdict(guards).items() if name != 'reactions'},
        'overload': OVERLOAD,
        'contradiction': CONTRADICTION,
        'most_gated': MOST_GATED,
        'guarded': int(controller.bounds is not None),
        'last': n - 1,
        'at_rest': AT_REST,
        'speed_share': holding.speed_share,
        'spring_share': holding.spring_share,
        'hold_fading': holding.fading,
        'most_damping': MOST_DAMPING,
        'most_turned': MOST_TURNED,
        'fastest_damped': FASTEST_DAMPED,
        'ringing': ringing_bandwidth(T),
        'holding': holding_bandwidth(T),
        'most_found': MOST_FOUND,
        'run_up': RUN_UP,
        'calm': CALM,
        'wary': WARY,
        'most_bridged': MOST_BRIDGED,
        'fading': controller.fading,
        'rows': rows,
        'n': n,
        'delay': observer.delay_samples,
        'T': T,
        'substeps': SUBSTEPS,
        'lead': controller.lead,
        'share': observer.share,
        'acceleration': 'desired + 2 * N' if rows > 3 else 'NULL',
    }


def _functions(
    code: Code, controller: ObserverController, law: LawCode, springs: _Springs
) -> str:
    """C functions that the controller needs besides its own.

    Parameters
    ----------
    code : Code
    controller : ObserverController
    law : LawCode
    springs : _Springs

    Returns
    -------
    str
        Mass matrix with the motors of rigid joints, weight, friction of the motors if the law
        knows it, and the kernels with the helpers that they use.
    """
    model, n = controller.model, controller.model.n_joints
    mass = term_program(model.with_armature(springs.rigid), MASS_MATRIX, 1)
    weight = term_program(model, WEIGHT, 1)
    # What moves bodies without mass is friction.
    M, armature = 0.0 * model.M_body, 0.0 * model.armature
    bare = replace(model, M_body=M, armature=armature, friction=springs.friction)
    friction_laws(bare)  # refuses those that cannot be generated
    functions = [
        program_function(code, 'mass_matrix', {'motion': n, 'mass': n * n}, mass, True),
        program_function(code, 'gravity', {'motion': n, 'effort': n}, weight, True),
    ]
    if law.knows_friction:
        losses = effort_program(bare, 0)
        sizes = {'motion': 3 * n, 'effort': n}
        functions.append(program_function(code, 'motor_friction', sizes, losses, True))
    equations = translated(inspect.getsource(kernels), (*_KERNELS, *law.kernels), _COLUMNS)
    is_used = names_in([equations]).__contains__
    helpers = [line for line in HELPERS.splitlines() if any(map(is_used, _names_of(line)))]
    return '\n'.join([*functions, '\n'.join(helpers), '', equations])


def _names_of(line: str) -> list[str]:
    """Name of a constant or function that a line defines, if any."""
    return re.findall(r'^static (?:const )?double (\w+)', line)


def _table(kind: str, name: str, values: ArrayLike) -> str:
    """Definition of a constant C array, wrapped at 90 columns."""
    texts = [str(value).replace('inf', 'INFINITY') for value in np.ravel(values).tolist()]
    text = f'static const {kind} {name}[{len(texts)}] = {{{", ".join(texts)}}};'
    return textwrap.fill(text, 90, subsequent_indent='    ', break_on_hyphens=False) + '\n'
