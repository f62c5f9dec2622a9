/* SPDX-License-Identifier: 0BSD
 *
 * @made@
 *
 * Inverse dynamics of the robot @robot@: the efforts of its joints and
 * their exact time derivatives.
 *
 * Model: sha256 @hash@
 * Base link @base@, gravity (@gravity@) m/s^2 in its axes.
 *
 * Joints, in the order of all arrays, with the units of position and effort:
@joints@
 *
 * motion[k * @n@ + j]: k-th time derivative of the position of joint j, k = 0 to r + 2
 *     for the function of order r [rad/s^k, m/s^k].
 * effort[k * @n@ + j]: k-th time derivative of the effort of joint j, k = 0 to r
 *     [N m/s^k, N/s^k].
?wrenches  * wrench[(k * @wrenches@ + l) * 6 + i]: k-th time derivative of coordinate i of the
?wrenches  *     wrench on link l, k = 0 to r.
?forward  * acceleration[k * @n@ + j]: k-th time derivative of the acceleration of joint j,
?forward  *     as efforts cause it at a motion of positions and velocities; NaN where the mass
?forward  *     matrix is singular.
?all  * closed[j]: position of joint j of all; see @name@_close.
 * Batch functions: the arrays of n samples, one after another.
 * The arrays must not overlap.
 *
 * A positive effort acts in the positive direction of its joint: it is what the actuator
 * supplies to move the robot against inertia and gravity.
?included  * It includes @included@.
?wrenches  * A wrench is what the robot exerts on its environment: effort = ... + J^T wrench.
?wrenches  * It is (moment, force) [N m, N] about the origin of its link in the axes of the link;
?wrenches  * its derivatives are those of these coordinates. Change its sign if it acts on the
?wrenches  * robot.
?wrenches  * Links with wrenches: @links@
 *
 * Each function of one sample is arithmetic without loops; a batch function has loops over
 * samples. They call nothing but the C library, keep no state and allocate nothing.
 *
 * Compile with @flags@
 * or with the -march of the machine that it runs on: without it long functions take two to
 * three times as long. -ffast-math is of no use.
 *
 * Source: the recursive equations of Mueller, "An O(n)-Algorithm for the Higher-Order
 * Kinematics and Inverse Dynamics of Serial Manipulators using Spatial Representation of
 * Twists", IEEE RA-L 6(2), 2021, and Kumar and Mueller, "Nth Order Analytical Time
 * Derivatives of Inverse Dynamics in Recursive and Closed Forms", IEEE ICRA, 2021; here
 * with accelerations in place of velocities, in frames along the joint axes, and with base
 * inertial parameters (Gautier and Khalil 1990).
 */
#ifndef @NAME@_DYNAMICS_H
#define @NAME@_DYNAMICS_H

#define @NAME@_N_JOINTS @n@
?wrenches #define @NAME@_N_WRENCHES @wrenches@

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

@names@
/* In the axes of the base link [m/s^2]. */
extern const @real@ @name@_gravity[3];

@functions@
@closing@@declarations@
#ifdef __cplusplus
}
#endif

#endif
