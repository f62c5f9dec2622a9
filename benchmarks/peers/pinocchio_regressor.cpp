// SPDX-License-Identifier: Apache-2.0
// Loop over samples around Pinocchio's regressor of inverse dynamics.
// Compiled behind pinocchio_loop.cpp.

#include <pinocchio/algorithm/regressor.hpp>

extern "C" {

// motion: (samples, K, n), regressor: (samples, n, 10 n).
void regressor_loop(
    void* given, long samples, long K, const double* motion, double* regressor) {
  Robot& robot = *static_cast<Robot*>(given);
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const long n = robot.model.nv;
  for (long i = 0; i < samples; ++i, motion += K * n, regressor += 10 * n * n) {
    Eigen::Map<Rows>(regressor, n, 10 * n) = pin::computeJointTorqueRegressor(
        robot.model, robot.data, Row(motion, n), Row(motion + n, n), Row(motion + 2 * n, n));
  }
}

}  // extern "C"
