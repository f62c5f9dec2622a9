
/* --- Control law --- */

enum { N = @n@, DELAY = @delay@ };
typedef @name@_observed Observed;
typedef @name@_memory Law;
typedef struct {
@robot@
} Robot;
typedef struct {
@design@
} Design;
typedef struct {
@work@
} Work;
typedef struct {
    Observed *memory;
    Work *work;
} Observer;
static const Robot ROBOT = {
@of_robot@
};
static const Design DESIGN = {
@of_design@
};
@constants@
@functions@
/* What is public of a controller. */
static void tell(@name@_controller *c)
{
    c->gated = (long)c->observed.gated;
    c->reason = (int)c->memory.reason;
    c->joint = (int)c->memory.culprit;
}

static void copy(double *to, const double *from, int count)
{
    if (from) memcpy(to, from, (size_t)count * sizeof(double));
}

void @name@_controller_reset(@name@_controller *controller)
{
    const Observer observer = {&controller->observed, NULL};
    memset(controller, 0, sizeof(*controller));
    for (int i = 0; i < 2 * N; ++i) controller->observed.least[i] = INFINITY;
    controller->memory.culprit = -1.0;
    begin(&observer, &controller->memory, 0.0);
    tell(controller);
}

void @name@_controller_stop(@name@_controller *controller)
{
    Work w;
    const Observer observer = {&controller->observed, &w};
    memset(&w, 0, sizeof(w));
    stop(&observer, &controller->memory, @NAME@_ASKED, -1, 0.0, 0.0);
    tell(controller);
}

int @name@_controller_release(@name@_controller *controller)
{
    const Observer observer = {&controller->observed, NULL};
    const int why = release(&observer, &controller->memory);
    tell(controller);
    return why != 0;
}

void @name@_controller_observed(
    const @name@_controller *controller, double position[@n@], double velocity[@n@],
    double motor_position[@n@], double motor_velocity[@n@], double external_torque[@n@],
    double motor_friction[@n@])
{
    const Observed *o = &controller->observed;
    if (position) copy(position, o->links, N);
    if (velocity) copy(velocity, o->links + N, N);
    if (motor_position) copy(motor_position, o->motors, N);
    if (motor_velocity) copy(motor_velocity, o->motors + N, N);
    if (external_torque) copy(external_torque, o->links + 3 * N, N);
    for (int i = 0; i < N && motor_friction; ++i) motor_friction[i] = -o->motors[3 * N + i];
}

int @name@_controller_evaluate(
    @name@_controller *controller, const double desired[@rows@ * @n@], const double q[@n@],
    const double *qd, const double theta[@n@], const double *thetad,
    const double *spring_torque, double elapsed, double torque[@n@])
{
    @name@_controller c = *controller;
    Work w;
    const Observer observer = {&c.observed, &w};
    int status;
    if (!is_finite(@rows@ * N, desired)) return 1;
    memset(&w, 0, sizeof(w));
    copy(w.desired, desired, @rows@ * N);
    if (@rows@ > 3) copy(w.acceleration, desired + 2 * N, N);
    copy(w.new_q, q, N);
    copy(w.new_theta, theta, N);
    copy(w.qd, qd, N);
    copy(w.thetad, thetad, N);
    copy(w.spring_torque, spring_torque, N);
    w.has_sensors = spring_torque != NULL;
    status = step(&observer, &c.memory, elapsed);
    if (status != 0 && status != 5) return status;
    copy(torque, c.observed.acting, N);
    tell(&c);
    *controller = c;
    return status;
}
