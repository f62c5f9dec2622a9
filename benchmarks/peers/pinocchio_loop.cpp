// SPDX-License-Identifier: Apache-2.0
// Loops over samples around algorithms of Pinocchio, for ctypes.
// Only headers are used, so that all code is compiled for the processor of this machine.

#include <cmath>
#include <string>

#include <pinocchio/multibody.hpp>
#include <pinocchio/multibody/joint.hpp>
#include <pinocchio/algorithm/rnea.hpp>

namespace pin = pinocchio;

namespace {

using Row = Eigen::Map<const Eigen::VectorXd>;

struct Robot {
  pin::Model model;
  pin::Data data;
  // Scratch of the finite differences.
  Eigen::VectorXd q, v, a, before, after;

  explicit Robot(const pin::Model& given)
      : model(given), data(model), q(model.nq), v(model.nv), a(model.nv), before(model.nv),
        after(model.nv) {}
};

template <typename Joint>
pin::JointIndex add(pin::Model& model, long parent, const Joint& joint, const pin::SE3& pose) {
  const auto name = "joint" + std::to_string(model.njoints);
  return model.addJoint(static_cast<pin::JointIndex>(parent), joint, pose, name);
}

pin::JointIndex add_joint(
    pin::Model& model, long parent, bool slides, const Eigen::Vector3d& axis,
    const pin::SE3& pose) {
  // The joints along a coordinate axis are faster than those along any axis.
  if (slides) {
    if (axis == Eigen::Vector3d::UnitX()) return add(model, parent, pin::JointModelPX(), pose);
    if (axis == Eigen::Vector3d::UnitY()) return add(model, parent, pin::JointModelPY(), pose);
    if (axis == Eigen::Vector3d::UnitZ()) return add(model, parent, pin::JointModelPZ(), pose);
    return add(model, parent, pin::JointModelPrismaticUnaligned(axis), pose);
  }
  if (axis == Eigen::Vector3d::UnitX()) return add(model, parent, pin::JointModelRX(), pose);
  if (axis == Eigen::Vector3d::UnitY()) return add(model, parent, pin::JointModelRY(), pose);
  if (axis == Eigen::Vector3d::UnitZ()) return add(model, parent, pin::JointModelRZ(), pose);
  return add(model, parent, pin::JointModelRevoluteUnaligned(axis), pose);
}

// Efforts on the way along the motion, which is continued as a polynomial.
void efforts_at(
    Robot& robot, const double* motion, long n, double t, Eigen::VectorXd& efforts) {
  const Row q(motion, n), qd(motion + n, n), q2d(motion + 2 * n, n), q3d(motion + 3 * n, n),
      q4d(motion + 4 * n, n);
  robot.q = q + t * (qd + t / 2 * (q2d + t / 3 * (q3d + t / 4 * q4d)));
  robot.v = qd + t * (q2d + t / 2 * (q3d + t / 3 * q4d));
  robot.a = q2d + t * (q3d + t / 2 * q4d);
  efforts = pin::rnea(robot.model, robot.data, robot.q, robot.v, robot.a);
}

}  // namespace

extern "C" {

// parent: 0 for the base, else 1 + index of the body. placement: rotation by rows, translation.
// inertia: mass, centre of mass, inertia about it by rows.
void* robot_new(
    long n, const long* parent, const long* slides, const double* axis, const double* placement,
    const double* inertia, const double* gravity) {
  using Matrix = Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>;
  using Vector = Eigen::Map<const Eigen::Vector3d>;
  pin::Model model;
  model.gravity.linear() = Vector(gravity);
  for (long i = 0; i < n; ++i) {
    const pin::SE3 pose(Matrix(placement + 12 * i), Vector(placement + 12 * i + 9));
    const auto joint = add_joint(model, parent[i], slides[i] != 0, Vector(axis + 3 * i), pose);
    const pin::Inertia body(
        inertia[13 * i], Vector(inertia + 13 * i + 1),
        pin::Symmetric3(Eigen::Matrix3d(Matrix(inertia + 13 * i + 4))));
    model.appendBodyToJoint(joint, body, pin::SE3::Identity());
  }
  return new Robot(model);
}

void robot_delete(void* robot) { delete static_cast<Robot*>(robot); }

// motion: (samples, K, n), efforts: (samples, n).
void rnea_loop(void* given, long samples, long K, const double* motion, double* efforts) {
  Robot& robot = *static_cast<Robot*>(given);
  const long n = robot.model.nv;
  for (long i = 0; i < samples; ++i, motion += K * n, efforts += n) {
    Eigen::Map<Eigen::VectorXd>(efforts, n) = pin::rnea(
        robot.model, robot.data, Row(motion, n), Row(motion + n, n), Row(motion + 2 * n, n));
  }
}

// motion: (samples, 5, n), efforts: (samples, 3, n), derivatives by central differences.
void difference_loop(
    void* given, long samples, double step, const double* motion, double* efforts) {
  Robot& robot = *static_cast<Robot*>(given);
  const long n = robot.model.nv;
  for (long i = 0; i < samples; ++i, motion += 5 * n, efforts += 3 * n) {
    Eigen::Map<Eigen::VectorXd> Q(efforts, n), Qd(efforts + n, n), Q2d(efforts + 2 * n, n);
    efforts_at(robot, motion, n, -step, robot.before);
    efforts_at(robot, motion, n, step, robot.after);
    Q = pin::rnea(
        robot.model, robot.data, Row(motion, n), Row(motion + n, n), Row(motion + 2 * n, n));
    Qd = (robot.after - robot.before) / (2 * step);
    Q2d = (robot.after - 2 * Q + robot.before) / (step * step);
  }
}

}  // extern "C"
