"""The recommended law with its observers as C99, beside the dynamics that `codegen` writes.

The equations are those of `kernels`, translated. What calls them stands here, and does what
`StateObserver.update` and `TrackingController.evaluate` do.
"""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import replace
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hodyn_ros.actuators.actuator import RigidDrive
from hodyn_ros.actuators.sea import SeriesElastic
from hodyn_ros.actuators.springs import LinearSpring
from hodyn_ros.codegen.c_source import Code, model_hash, program_function
from hodyn_ros.codegen.translation import HELPERS, translated
from hodyn_ros.control import kernels
from hodyn_ros.control.observer import SUBSTEPS
from hodyn_ros.dynamics.matrices import MOST_BODIES
from hodyn_ros.engine.matrix_program import term_program
from hodyn_ros.engine.program import MASS_MATRIX
from hodyn_ros.engine.robot_program import effort_program, friction_laws
from hodyn_ros.errors import ControlError
from hodyn_ros.model.friction import FrictionLaw

if TYPE_CHECKING:
    from hodyn_ros.control.tracking import TrackingController

_KERNELS = ('factorise', 'solve', 'observe', 'carry_forward', 'tracking_law', 'approach')
_COLUMNS = {'Matrix': 'n', 'MotorMatrix': 'm', 'Transition': '5'}

_DECLARATIONS = Template("""
/* Tracking law with observers; see TrackingController of hodyn_ros. The period of its calls, and
 * how much later than a measurement the wanted motion is [s]:
 */
#define ${UPPER}_SAMPLE_PERIOD $T
#define ${UPPER}_LEAD $lead

/* What a controller remembers. Estimates at the latest measurement in rows of $n: position,
 * velocity, torque that the model lacks, the same behind a low pass.
 */
typedef struct {
    double links[5 * $n], motors[4 * $n];
    double mass[$n * $n], factor[$n * $n], bias[2 * $n], torque[2 * $n];
    double applied[($delay + 1) * $n], distance[5 * $n];
    int is_running, has_arrived;
} ${name}_controller;

/* Forget everything: to be called first. The next measurement begins anew. */
void ${name}_controller_reset(${name}_controller *controller);

/* Motor torques [N m, N] within the limits; to be called once in every sample period.
 *
 * desired        motion, as above: position to snap, LEAD after the measurement
 * q, theta       positions of links, and of motors reflected to the links
 * qd, thetad     velocities, looked at in the first sample only; may be NULL
 * spring_torque  of torque sensors, in place of what the springs tell; may be NULL
 *
 * Returns 0; or 1 if an argument or a result is not finite, 2 if the mass matrix is singular,
 * 3 if a spring would be out of its range, 4 if the first measurement cannot be true: far from
 * the position limits, or torques of springs beyond those of motors or other than those of
 * sensors. Then torque and controller are as before.
 */
$evaluate;
""")

_EVALUATE = Template("""int ${name}_controller_evaluate(
    ${name}_controller *controller, const double desired[5 * $n], const double q[$n],
    const double *qd, const double theta[$n], const double *thetad,
    const double *spring_torque, double torque[$n])""")

_DEFINITIONS = Template("""
/* --- Tracking law --- */

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

void ${name}_controller_reset(${name}_controller *controller)
{
    memset(controller, 0, sizeof(*controller));
}

$evaluate
{
    ${name}_controller c = *controller, ahead;
    const size_t row = sizeof(double[N]);
    double effort[3 * N], motion[3 * N] = {0.0}, friction[N], feed_forward[N], demand[N];
    double work[10 * N];
    if (!all_finite(5 * N, desired) || !all_finite(N, q) || !all_finite(N, theta)
        || (spring_torque && !all_finite(N, spring_torque))) return 1;
    for (int i = 0; i < N; ++i) {
        const double spring = STIFFNESS[i] * (theta[i] - q[i]);
        if (!c.is_running) {
            c.links[i] = q[i];
            c.motors[i] = theta[i];
            c.links[N + i] = qd ? qd[i] : 0.0;
            c.motors[N + i] = thetad ? thetad[i] : 0.0;
        }
        c.torque[i] = spring + DAMPING[i] * (c.motors[N + i] - c.links[N + i]);
        if (spring_torque && IS_ELASTIC[i] > 0.0) c.torque[i] = spring_torque[i];
        if (c.is_running) continue;
        if (q[i] < LOWER[i] || q[i] > UPPER[i] || fabs(spring) > $overload * LIMIT[i]
            || (spring_torque && fabs(spring - c.torque[i]) > $contradiction * LIMIT[i])) return 4;
    }
    /* Second rows are of the sample before. */
    if (c.is_running) {
        observe(N, N, $T, $share, JOINT, IS_ELASTIC, INERTIA, GAINS, GAINS, c.mass, c.factor,
                c.bias, c.torque, c.torque, c.applied, q, theta, c.links, c.motors);
        memcpy(c.bias + N, c.bias, row);
    }
    if (dynamics(&c)) return 2;
    for (int i = 0; i < N && !c.is_running; ++i) {
        /* What the model lacks is taken for external, so that nothing jumps afterwards. */
        double missing = c.bias[i] - c.torque[i];
        for (int k = 0; k < N; ++k) missing += c.mass[i * N + k] * desired[2 * N + k];
        c.bias[N + i] = c.bias[i];
        c.links[2 * N + i] = c.links[3 * N + i] = IS_ELASTIC[i] * missing;
        for (int k = 0; k <= DELAY; ++k)
            c.applied[k * N + i] = c.torque[i] + (1.0 - IS_ELASTIC[i]) * missing;
    }
    memcpy(c.torque + N, c.torque, row);
    ahead = c;
    if (DELAY > 0) {
        for (int i = 0; i < N; ++i) ahead.links[i] += 0.5 * DELAY * $T * c.links[N + i];
        if (dynamics(&ahead)) return 2;
        memcpy(ahead.links, c.links, row);
        carry_forward(N, N, DELAY, $substeps, $T, JOINT, IS_ELASTIC, ONES, INERTIA,
                      ahead.factor, ahead.bias, c.torque, STIFFNESS, c.torque, q, theta,
                      c.applied + N, ahead.links, ahead.motors);
        mass_matrix(ahead.links, ahead.mass);
    }
    ${name}_inverse_dynamics_2(desired, effort);
    for (int i = 0; i < 2 * N; ++i)
        motion[N + i] = desired[N + i] + SOFTNESS[i % N] * effort[N + i];
    motor_friction(motion, friction);
    for (int i = 0; i < N; ++i) {
        if (fabs(SOFTNESS[i] * effort[i]) > RANGE[i]) return 3;
        feed_forward[i] = effort[i] + INERTIA[i] * motion[2 * N + i] + friction[i];
    }
    for (int i = 0; i < 2 * N && !c.is_running; ++i)
        c.distance[i] = desired[i] - 0.5 * $T * desired[N + i] - ahead.links[i];
    tracking_law(N, N, $T, $bandwidth, JOINT, IS_ELASTIC, ONES, ONES, INERTIA, DAMPING, LIMIT,
                 ahead.mass, STIFFNESS, c.torque, STIFFNESS, q, theta, ahead.links, ahead.motors,
                 desired, effort, c.distance, feed_forward, work, demand);
    if (!c.has_arrived && !(approach(N, TRANSITION, c.distance) > $arrived)) {
        memset(c.distance, 0, sizeof(c.distance));
        c.has_arrived = 1;
    }
    if (!all_finite(5 * N, c.links) || !all_finite(4 * N, c.motors) || !all_finite(N, demand))
        return 1;
    memmove(c.applied, c.applied + N, DELAY * row);
    for (int i = 0; i < N; ++i) {
        torque[i] = smaller(larger(demand[i], -LIMIT[i]), LIMIT[i]);
        c.applied[DELAY * N + i] = torque[i] - friction[i];
    }
    c.is_running = 1;
    *controller = c;
    return 0;
}
""")


def with_controller(
    code: Code, controller: TrackingController, *, outside: float, **numbers: float
) -> Code:
    """Code with a controller beside the dynamics of orders 0 and 2; see `generate_code`.

    The first position may be outside of the limits by as much; other numbers are for the text.
    """
    model, observer = controller.model, controller.observer
    t, n = observer.transmission, model.n_joints
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
    stiffness, softness, reach = np.zeros(n), np.zeros(n), np.full(n, np.inf)
    friction: dict[str, FrictionLaw] = {}
    rigid: dict[str, float] = {}
    for j, item in enumerate(controller.actuators.driven):
        actuator: Any = item.actuator
        if type(actuator) is RigidDrive:
            rigid |= {item.name: actuator.motor_inertia} if actuator.motor_inertia else {}
        elif type(actuator) is SeriesElastic and type(actuator.spring) is LinearSpring:
            stiffness[j], reach[j] = actuator.spring.stiffness, actuator.spring.max_deflection
            softness[j] = 1.0 / stiffness[j]
        else:
            raise ControlError(
                f'No code is generated for {actuator!r} of joint {item.name!r}, but for '
                'RigidDrive and SeriesElastic with a linear spring. Call the controller in '
                'Python, or make one with the stiffness that the spring has about its load.'
            )
        if actuator.friction is not None:
            friction[item.name] = actuator.friction
    observer.tune(stiffness)
    mass = term_program(model.with_armature(rigid), MASS_MATRIX, 1)
    # What moves bodies without mass is friction.
    M, armature = 0.0 * model.M_body, 0.0 * model.armature
    bare = replace(model, M_body=M, armature=armature, friction=friction)
    friction_laws(bare)  # refuses those that cannot be generated
    losses = effort_program(bare, 0)
    functions = [
        program_function(code, 'mass_matrix', {'motion': n, 'mass': n * n}, mass, True),
        program_function(code, 'motor_friction', {'motion': 3 * n, 'effort': n}, losses, True),
        HELPERS,
        translated(inspect.getsource(kernels), _KERNELS, _COLUMNS),
    ]
    limits = model.limits
    tables = {
        'IS_ELASTIC': t.is_elastic, 'INERTIA': t.inertia, 'STIFFNESS': stiffness,
        'SOFTNESS': softness, 'RANGE': reach, 'DAMPING': t.damping, 'ONES': np.ones(n),
        'LIMIT': controller.torque_limits, 'LOWER': limits.lower - outside,
        'UPPER': limits.upper + outside, 'GAINS': observer.link_gains,
        'TRANSITION': controller.transition,
    }  # fmt: skip
    constants = _table('int', 'JOINT', range(n))
    constants += ''.join(_table('double', *item) for item in tables.items())
    values = {
        **numbers, 'name': code.name, 'UPPER': code.name.upper(), 'n': n,
        'delay': observer.delay_samples, 'T': controller.sample_period, 'lead': controller.lead,
        'bandwidth': controller.bandwidth, 'share': observer.share, 'substeps': SUBSTEPS,
        'constants': constants, 'functions': '\n'.join(functions),
    }  # fmt: skip
    values['evaluate'] = _EVALUATE.substitute(values)
    return code._replace(
        orders=tuple(sorted({*code.orders, 0, 2})),
        declarations=_DECLARATIONS.substitute(values),
        definitions=_DEFINITIONS.substitute(values),
    )


def _table(kind: str, name: str, values: ArrayLike) -> str:
    texts = [str(value).replace('inf', 'INFINITY') for value in np.ravel(values).tolist()]
    text = f'static const {kind} {name}[{len(texts)}] = {{{", ".join(texts)}}};'
    return textwrap.fill(text, 90, subsequent_indent='    ', break_on_hyphens=False) + '\n'
