"""What the tracking law adds to the code that all laws have in common, see `c_code`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hodyn_ros.codegen.c_source import Code
from hodyn_ros.control.c_code import Law, Plausible, linear_springs, with_law

if TYPE_CHECKING:
    from hodyn_ros.control.tracking import TrackingController

_MEMORY = """double distance[5 * $n], pole;
    int has_departed, has_arrived;"""

_BEGINS = """/* Begin where the robot is, and approach the wanted motion from there. */
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

_DEMANDED = """\
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


def with_tracking(
    code: Code,
    controller: TrackingController,
    first: Plausible,
    *,
    arrived: float,
    fastest: float,
    approach_torque: float,
) -> Code:
    """Code with a tracking law beside the dynamics of a robot.

    Parameters
    ----------
    code : Code
        Of the dynamics, in double precision; its model is that of the controller.
    controller : TrackingController
        With rigid drives and linear springs.
    first : Plausible
        What the first measurement may be.
    arrived : float
        Distance from the wanted motion at which an approach is over, in the units of the motion
        and its derivatives.
    fastest : float
        Largest pole of an approach [rad/s].
    approach_torque : float
        Share of the torque limits that an approach may take.

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
    law = Law(
        name='TrackingController',
        desired='motion, as above: position to snap',
        memory=_MEMORY,
        begins=_BEGINS,
        demanded=_DEMANDED,
        kernels=('tracking_law', 'approach', 'approach_pole'),
        tables={
            'SOFTNESS': springs.softness,
            'RANGE': springs.reach,
            'APPROACH_SPEED': controller.approach_speed,
        },
        numbers={
            'bandwidth': controller.bandwidth,
            'arrived': arrived,
            'fastest': fastest,
            'approach_torque': approach_torque,
        },
    )
    return with_law(code, controller, law, first)
