
/* Control law with observers and guards; see @law@ of hodyn_ros. The period of its
 * calls, and how much later than a measurement what is wanted is [s]:
 */
#define @NAME@_SAMPLE_PERIOD @T@
#define @NAME@_LEAD @lead@

/* Why a controller has stopped the robot; its motors come to rest, and are held or give way as
 * the reactions of the guards say.
 */
enum {
    @NAME@_FOLLOWS, @NAME@_POSITION, @NAME@_VELOCITY, @NAME@_TRACKING_ERROR,
    @NAME@_EXTERNAL_TORQUE, @NAME@_DRIVE_ERROR, @NAME@_MEASUREMENTS, @NAME@_SATURATION,
    @NAME@_GAP, @NAME@_SPRING_RANGE, @NAME@_ASKED, @NAME@_ENCODER_STANDS,
    @NAME@_RUNAWAY, @NAME@_SILENCE, @NAME@_ENCODER_LOST, @NAME@_SENSOR_LOST
};

/* ENCODER_STANDS: the encoder of a motor stands still while its joint moves. ENCODER_LOST:
 * @most_gated@ positions of it could not be true. Such a motor is held by the position of its
 * link. RUNAWAY: the links have run away behind a stop; then all motors are. SILENCE:
 * @most_gated@ measurements one after the other were the same, though the robot moved; then all
 * motors carry the weight alone until a reset. With each of the four brakes must close.
 * SENSOR_LOST: @most_gated@ torques of a sensor could not be true.
 */

/* What a controller remembers. Estimates at the latest measurement in rows of @n@: position,
 * velocity, torque that the model lacks, the same behind a low pass.
 */
typedef struct {
@observed@
} @name@_observed;
typedef struct {
@memory@
} @name@_memory;
typedef struct {
    @name@_observed observed;
    @name@_memory memory;
    long gated; /* positions so far that could not be true */
    int reason; /* why the robot has been stopped and is held; 0: it follows */
    int joint; /* of the reason; of motors 0 to @last@ as well; -1: of none */
} @name@_controller;

/* Forget everything: to be called first. The next measurement begins anew. */
void @name@_controller_reset(@name@_controller *controller);

/* Bring the motors to rest from now on and hold them, as beyond a bound; without a measurement,
 * and again behind a gap, where the next one finds them.
 */
void @name@_controller_stop(@name@_controller *controller);

/* Let a robot that has been stopped do what is wanted again. Returns 1, and does nothing, if its
 * motors still move, its positions cannot be true or are beyond a bound, or it has run away.
 */
int @name@_controller_release(@name@_controller *controller);

/* Estimated state of links and motors, torques on the links that the model lacks, and those that
 * the motors lose beside their friction [rad, m, s, N m, N]; any pointer may be NULL.
 */
void @name@_controller_observed(
    const @name@_controller *controller, double position[@n@], double velocity[@n@],
    double motor_position[@n@], double motor_velocity[@n@], double external_torque[@n@],
    double motor_friction[@n@]);

/* Motor torques [N m, N] within the limits; to be called once in every sample period.
 *
 * desired        @desired@,
 *                LEAD after the measurement
 * q, theta       positions of links, and of motors reflected to the links; one that cannot be
 *                true, or is not finite, is taken for what is expected
 * qd, thetad     velocities, looked at in the first sample only; may be NULL
 * spring_torque  of torque sensors, in place of what the springs tell; may be NULL; one that
 *                cannot be true is replaced by what the spring tells
 * elapsed        time since the call before [s]: that of stamps, or SAMPLE_PERIOD, in place of
 *                which the motion may tell of up to @most_found@ that have passed
 *
 * Returns 0; or 1 if an argument or a result is not finite, 2 if the mass matrix is singular,
 * 3 if a spring would be out of its range and there are no guards, 4 if the first measurement
 * cannot be true: far from the position limits, or torques of springs beyond those of motors or
 * other than those of sensors. Then torque and controller are as before. 5 if no time has
 * elapsed, or the measurement is that of before though the robot moves: the torque stays. Beyond a
 * bound the motors are brought to rest and held, and `reason` says why.
 *
 * With -ffp-contract=off the law, not the dynamics, has the bits of the one in Python.
 */
int @name@_controller_evaluate(
    @name@_controller *controller, const double desired[@rows@ * @n@], const double q[@n@],
    const double *qd, const double theta[@n@], const double *thetad,
    const double *spring_torque, double elapsed, double torque[@n@]);
