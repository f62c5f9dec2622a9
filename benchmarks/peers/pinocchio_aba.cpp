// SPDX-License-Identifier: Apache-2.0
// Loop over samples around Pinocchio's forward dynamics.
// Compiled behind pinocchio_loop.cpp.

#include <pinocchio/algorithm/aba.hpp>

extern "C" {

// state: (samples, 2, n), efforts: (samples, K, n), accelerations: (samples, n). world: whether
// bodies are expressed in the axes of the world, not in their own.
void aba_loop(
    void* given, long samples, long K, long world, const double* state, const double* efforts,
    double* accelerations) {
  Robot& robot = *static_cast<Robot*>(given);
  const auto axes = world ? pin::Convention::WORLD : pin::Convention::LOCAL;
  const long n = robot.model.nv;
  for (long i = 0; i < samples; ++i, state += 2 * n, efforts += K * n, accelerations += n) {
    Eigen::Map<Eigen::VectorXd>(accelerations, n) = pin::aba(
        robot.model, robot.data, Row(state, n), Row(state + n, n), Row(efforts, n), axes);
  }
}

}  // extern "C"
