"""What single control laws add to the code that all have in common, see `c_code`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.codegen.c_source import Code
from hodyn_ros.control.c_code import LawCode, linear_springs, with_law
from hodyn_ros.control.observer_controller import ObserverController
from hodyn_ros.typing import Array

WEIGHT, TORQUE, REST, MOTION = 'weight', 'torque', 'rest', 'motion'
"""What a law for interaction wants of the springs: the weight, torques of its caller, those at the
links' position of rest on motors that are held, or these about a motion."""

_MOTION = 'motion, as above: position to snap'

# The tracking law: what it remembers, how it begins, what it answers.

_APPROACHING = """double distance[5 * $n], pole;
    int has_departed, has_arrived;"""

_DEPARTS = """/* Begin where the robot is, and approach the wanted motion from there. */
static void begin(${name}_controller *c)
{
    memset(c->distance, 0, sizeof(c->distance));
    memset(c->left, 0, sizeof(c->left));
    c->has_departed = c->has_arrived = 0;
    c->begins = c->is_running;
}

/* Distance of a link from where it is to be. */
static double tracking_error(const ${name}_controller *c, const double *desired, int i)
{
    double wanted = 0.0;
    for (int k = 4; k >= 0; --k)
        wanted = desired[k * N + i] - c->distance[k * N + i] - $lead / (k + 1) * wanted;
    return c->has_departed ? wanted - c->links[i] : 0.0;
}
"""

_TRACKED = """\
/* Torques without limits, and the friction known in them; what controller_evaluate returns. */
static int demanded(
    ${name}_controller *c, const ${name}_controller *ahead, const double *wanted, double *demand,
    double *friction)
{
    double desired[5 * N], effort[3 * N], motion[3 * N] = {0.0}, feed_forward[N], work[8 * N];
    if (!c->has_departed) {
        for (int i = 0; i < N; ++i) {
            const double inertia = ahead->mass[i * N + i] + IS_ELASTIC[i] * INERTIA[i];
            demand[i] = $approach_torque * LIMIT[i] / inertia;
        }
        for (int i = 0; i < 2 * N; ++i)
            c->distance[i] = wanted[i] - 0.5 * $T * wanted[N + i] - ahead->links[i];
        c->pole = approach_pole(N, $fastest, APPROACH_SPEED, demand, c->distance);
        approach(N, 0.5 * $T, c->pole, c->distance);
        c->has_departed = 1;
    }
    for (int i = 0; i < 5 * N; ++i) desired[i] = wanted[i] - c->distance[i];
    ${name}_inverse_dynamics_2(desired, effort);
    for (int i = 0; i < 2 * N; ++i)
        motion[N + i] = desired[N + i] + SOFTNESS[i % N] * effort[N + i];
    motor_friction(motion, friction);
    for (int i = 0; i < N; ++i) {
        if (fabs(SOFTNESS[i] * effort[i]) > RANGE[i]) return 3;
        feed_forward[i] = effort[i] + INERTIA[i] * motion[2 * N + i] + friction[i];
    }
    tracking_law(N, N, $T, $bandwidth, JOINT, IS_ELASTIC, ONES, ONES, INERTIA, DAMPING, LIMIT,
                 ahead->mass, STIFFNESS, c->torque, STIFFNESS, c->measured, c->measured + N,
                 ahead->links, ahead->motors, desired, effort, feed_forward, work, demand);
    if (!c->has_arrived && !(approach(N, $T, c->pole, c->distance) > $arrived)) {
        memset(c->distance, 0, sizeof(c->distance));
        c->has_arrived = 1;
    }
    return 0;
}
"""

# Laws for interaction, likewise.

_MEMORY = """double slow[$n], rest[$n];
    int has_begun;"""

_BEGINS = """/* Begin where the robot is. */
static void begin(${name}_controller *c)
{
    c->has_begun = 0;
    c->begins = $holds || c->is_running;
    if (!c->begins) memset(c->left, 0, sizeof(c->left));
}

/* The robot may be anywhere. */
static double tracking_error(const ${name}_controller *c, const double *desired, int i)
{
    (void)c;
    (void)desired;
    (void)i;
    return 0.0;
}
"""

_WANTED = """/* Torques wanted at the motors, without the dampers of the springs, or 3. */
static int wanted_torques(
    ${name}_controller *c, const ${name}_controller *ahead, const double *desired, double *state,
    double *wanted)
{
    double L[N * N], A[N * N], U[N * N], work[2 * N];
"""

_DAMPED = """\
    dampers(N, $ratio, IS_ELASTIC, FELT_INERTIA, ahead->mass, FELT, DAMPERS, state + 4 * N,
            L, A, U, work, wanted);
    return 0;
}
"""

_TEXTS = {
    WEIGHT: """    (void)c;
    (void)desired;
    gravity(ahead->links, wanted);
""",
    TORQUE: """    (void)c;
    torques_ahead(N, FELT_INERTIA, SOFTNESS, RINGING, desired, wanted);
""",
    REST: """    double weight[N], motion[N] = {0.0}, forward[N] = {0.0};
    double torque[N], deflection[N], missing[N], step[N];
$along    for (int k = 0; k < $steps; ++k) {
        gravity(c->rest, weight);
        rest_torque(N, SPRINGS, desired, c->rest, motion, weight, torque);
        for (int i = 0; i < N; ++i) {
            deflection[i] = SOFTNESS[i] * torque[i];
            if (fabs(deflection[i]) > RANGE[i]) return 3;
        }
        rest_step(N, SOFTNESS, FELT, state + 2 * N, deflection, c->rest, missing, step);
    }
    after_step(N, SPRINGS, step, torque, forward, wanted);
""",
}

_ALONG = """    double effort[3 * N], motors[3 * N];
    ${name}_inverse_dynamics_2(desired, effort);
    gravity(desired, weight);
    for (int i = 0; i < 3 * N; ++i) motors[i] = desired[i] + SOFTNESS[i % N] * effort[i];
    for (int i = 0; i < N; ++i) {
        if (fabs(SOFTNESS[i] * effort[i]) > RANGE[i]) return 3;
        motion[i] = effort[i] - weight[i];
    }
    along_motion(N, $T, FELT_INERTIA, RINGING, motors, effort, state, forward);
"""

_DEMANDED = """
/* Torques without limits, and the friction known in them; what controller_evaluate returns. */
static int demanded(
    ${name}_controller *c, const ${name}_controller *ahead, const double *desired, double *demand,
    double *friction)
{
    double state[5 * N], wanted[N]$more;
    if (!c->has_begun) {
        memcpy(c->slow, c->torque, sizeof(c->slow));
        memcpy(c->rest, ahead->links, sizeof(c->rest));
        c->has_begun = 1;
    }
    interaction_state(N, $T, IS_ELASTIC, c->torque, STIFFNESS, c->links, c->motors, ahead->links,
                      ahead->motors, c->slow, state);
    if (wanted_torques(c, ahead, desired, state, wanted)) return 3;
"""

_OBSERVED = """    for (int i = 0; i < N; ++i) {
        observed[i] = -ahead->motors[3 * N + i];
        friction[i] = 0.0;
    }
    interaction_law(N, GAIN, RINGING, state, wanted, observed, demand);
    return 0;
}
"""

_KNOWN = """    memcpy(motion + N, state + 3 * N, sizeof(double[N]));
    motor_friction(motion, friction);
    where_it_moves(N, state, friction);
    interaction_law(N, GAIN, RINGING, state, wanted, friction, demand);
    return 0;
}
"""

_KERNELS = {
    WEIGHT: (),
    TORQUE: ('torques_ahead',),
    REST: ('rest_torque', 'rest_step', 'after_step'),
    MOTION: ('along_motion', 'rest_torque', 'rest_step', 'after_step'),
}


def with_tracking(
    code: Code, controller: ObserverController, speed: Array, numbers: Mapping[str, float]
) -> Code:
    """Code with a tracking law beside the dynamics of a robot.

    Parameters
    ----------
    code : Code
        Of the dynamics, in double precision; its model is that of the controller.
    controller : TrackingController
        With rigid drives and linear springs.
    speed : ndarray, shape (n,)
        Its `approach_speed`.
    numbers : mapping of str to float
        `arrived`, `fastest` (approach) and `approach_torque`.

    Returns
    -------
    Code
        With declarations and definitions of the controller.

    Raises
    ------
    ControlError
        As of `with_law`.
    """
    springs = linear_springs(controller)
    law = LawCode(
        name='TrackingController',
        desired=_MOTION,
        memory=_APPROACHING,
        begins=_DEPARTS,
        demanded=_TRACKED,
        kernels=('tracking_law', 'approach', 'approach_pole'),
        tables={
            'SOFTNESS': springs.softness,
            'RANGE': springs.reach,
            'APPROACH_SPEED': speed,
        },
        numbers={'bandwidth': controller.bandwidth, **numbers},
    )
    return with_law(code, controller, law)


class InteractionGains(NamedTuple):
    """Constants of a law for interaction, as its attributes."""

    feeds_torque_back: bool
    damping_ratio: float
    holds: bool
    observes_friction: bool
    stiffness: Array
    felt: Array
    felt_inertia: Array
    damping: Array
    gain: Array
    ringing: Array


def with_interaction(
    code: Code,
    controller: ObserverController,
    gains: InteractionGains,
    wants: str,
    steps: int,
) -> Code:
    """Code with a law for interaction beside the dynamics of a robot.

    Parameters
    ----------
    code : Code
        Of the dynamics, in double precision; its model is that of the controller.
    controller : InteractionController
        With rigid drives and linear springs.
    gains : InteractionGains
        Of the controller.
    wants : str
        `WEIGHT`, `TORQUE` or `MOTION`: what the law wants of the springs. The weight is that
        at the position of rest if their torque is fed back.
    steps : int
        Steps of Newton's method in a sample, towards the links' position of rest.

    Returns
    -------
    Code
        With declarations and definitions of the controller.

    Raises
    ------
    ControlError
        As of `with_law`.
    """
    if wants == WEIGHT and gains.feeds_torque_back:
        wants = REST
    text = _TEXTS[REST if wants == MOTION else wants]
    text = text.replace('$along', _ALONG if wants == MOTION else '')
    observes = gains.observes_friction
    kernels = (
        'interaction_state',
        *_KERNELS[wants],
        'eigenvectors',
        'by_inertia',
        'dampers',
    )
    kernels += ('interaction_law',) if observes else ('where_it_moves', 'interaction_law')
    desired = _MOTION
    if wants in (WEIGHT, REST):
        desired = 'motion, as above; not looked at'
    elif wants == TORQUE:
        desired = 'torques of the springs and two time derivatives [N m/s^k, N/s^k]'
    law = LawCode(
        name=type(controller).__name__,
        desired=desired,
        memory=_MEMORY,
        begins=_BEGINS,
        demanded=_WANTED + text + _DAMPED + _DEMANDED + (_OBSERVED if observes else _KNOWN),
        kernels=kernels,
        tables=_tables(controller, gains, wants),
        numbers={
            'ratio': gains.damping_ratio,
            'steps': steps,
            'holds': int(gains.holds),
            'more': ', observed[N]' if observes else ', motion[3 * N] = {0.0}',
        },
        knows_friction=not observes,
    )
    return with_law(code, controller, law)


def _tables(
    controller: ObserverController, gains: InteractionGains, wants: str
) -> dict[str, ArrayLike]:
    """Constants of a law by their names, matrices row by row."""
    springs = linear_springs(controller)
    tables = {
        'FELT': gains.felt,
        'FELT_INERTIA': gains.felt_inertia,
        'DAMPERS': gains.damping,
        'GAIN': gains.gain,
        'RINGING': gains.ringing,
    }
    if wants != WEIGHT:
        tables['SOFTNESS'] = springs.softness
    if wants in (REST, MOTION):
        tables |= {'SPRINGS': gains.stiffness, 'RANGE': springs.reach}
    return {name: np.ravel(values) for name, values in tables.items()}
