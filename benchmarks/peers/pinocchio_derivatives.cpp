// SPDX-License-Identifier: Apache-2.0
// Loop over samples around Pinocchio's partial derivatives of inverse dynamics.
// Compiled behind pinocchio_loop.cpp.

#include <pinocchio/algorithm/rnea-derivatives.hpp>

extern "C" {

// motion: (samples, K, n), derivatives by positions, velocities and accelerations:
// (samples, 3, n, n), each the transposed matrix, of the last one the lower triangle.
void derivatives_loop(
    void* given, long samples, long K, const double* motion, double* derivatives) {
  Robot& robot = *static_cast<Robot*>(given);
  const long n = robot.model.nv;
  for (long i = 0; i < samples; ++i, motion += K * n, derivatives += 3 * n * n) {
    Eigen::Map<Eigen::MatrixXd> by_q(derivatives, n, n), by_v(derivatives + n * n, n, n),
        by_a(derivatives + 2 * n * n, n, n);
    // It writes where a joint acts on another one, and nothing elsewhere.
    by_q.setZero();
    by_v.setZero();
    by_a.setZero();
    pin::computeRNEADerivatives(
        robot.model, robot.data, Row(motion, n), Row(motion + n, n), Row(motion + 2 * n, n),
        by_q, by_v, by_a);
  }
}

}  // extern "C"
