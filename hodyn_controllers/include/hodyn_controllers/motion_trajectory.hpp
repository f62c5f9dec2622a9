// Motions through samples of positions and four derivatives, and which of them may be followed.
//
// Knows nothing of ROS. `evaluate` and `hold` neither allocate, lock nor throw.

#ifndef HODYN_CONTROLLERS__MOTION_TRAJECTORY_HPP_
#define HODYN_CONTROLLERS__MOTION_TRAJECTORY_HPP_

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "hodyn_controllers/messages.hpp"
#include "hodyn_controllers/motion_samples.hpp"

namespace hodyn_controllers
{

/// Polynomials of degree 9 between samples: four times continuously differentiable.
///
/// Before the first sample and behind the last one its position holds.
class MotionTrajectory
{
public:
  explicit MotionTrajectory(Index n_joints)
  : n_(n_joints), times_(1), held_(n_joints) {}

  /// Rests at positions (n); of those that are not finite, where it rested before.
  void hold(const double * position)
  {
    times_.resize(1);
    for (Index j = 0; j < n_; ++j) {
      held_[j] = std::isfinite(position[j]) ? position[j] : held_[j];
    }
  }

  /// Goes through samples.
  ///
  /// @param samples  With increasing times.
  /// @param kept     Which of them it goes through: the first, the last, and some in between.
  /// @param place    Of each joint among the n values of a sample.
  void set(const Samples & samples, const Indices & kept, const Indices & place)
  {
    times_.clear();
    coefficients_.resize((kept.size() - 1) * n_ * kCoefficients);
    double * a = coefficients_.data();
    for (Index i = 0; i < kept.size(); ++i) {
      times_.push_back(samples.times[kept[i]]);
      for (Index j = 0; i + 1 < kept.size() && j < n_; ++j, a += kCoefficients) {
        samples.connect(kept[i], kept[i + 1], place[j], a);
      }
    }
    for (Index j = 0; j < n_; ++j) {
      held_[j] = samples(0, kept.back(), place[j]);
    }
  }

  /// Sets the time at which those of the samples are zero.
  void begin(Nanoseconds start) {start_ = start;}

  /// Positions and derivatives at a time: derivative k of joint j at k * n + j.
  void evaluate(Nanoseconds time, double * motion) const
  {
    std::fill(motion, motion + kMotions * n_, 0.0);
    std::copy(held_.begin(), held_.end(), motion);
    const double t = seconds(time - start_);
    if (times_.size() == 1 || t > times_.back()) {
      return;
    }
    const auto next = std::upper_bound(times_.begin() + 1, times_.end() - 1, t);
    const Index i = static_cast<Index>(next - times_.begin()) - 1;
    const double h = times_[i + 1] - times_[i], x = (t - times_[i]) / h;
    for (Index j = 0; j < n_; ++j) {
      const double * a = &coefficients_[(i * n_ + j) * kCoefficients];
      const Taylor found = taylor(a, std::max(x, 0.0));
      motion[j] = found[0];
      double scale = 1.0;
      for (Index k = 1; x >= 0.0 && k < kMotions; ++k) {
        scale *= static_cast<double>(k) / h;
        motion[k * n_ + j] = scale * found[k];
      }
    }
  }

private:
  Index n_;
  Nanoseconds start_ = 0;
  Values times_, coefficients_, held_;
};

/// Checks motions, and brings them into the order of the controller.
class MotionIntake
{
public:
  /// @param tolerance  Of positions at which a motion may begin [rad], [m]; ten times as much by
  ///                   each derivative.
  MotionIntake(Names joints, double tolerance)
  : order_(std::move(joints)), tolerance_(tolerance), begins_(kMotions * order_.joints().size()) {}

  /// Fills a trajectory, or says why not (then it is to be thrown away); empty: it is filled.
  ///
  /// That of many samples takes many cycles, so it begins by a call of its own.
  ///
  /// @tparam Message  hodyn_msgs::msg::JointMotionTrajectory.
  template<typename Message>
  std::string read(const Message & message, MotionTrajectory & trajectory)
  {
    const Refusal refusal = order_.read(message.joint_names);
    if (refusal != Refusal::none) {
      return "it " + text_of(refusal) + ": " + order_.refused();
    }
    const Samples samples(message);
    std::string fault = fault_of(samples);
    if (fault.empty()) {
      const Digits digits(samples);
      const Indices kept = digits.kept();
      fault = digits.fault(kept, message.joint_names);
      trajectory.set(samples, kept, order_.places());
    }
    return fault;
  }

  /// Lets a trajectory that was read begin, or says why not.
  ///
  /// @param now     Time of this call.
  /// @param at      A time at which it must agree with
  /// @param wanted  the motion that is wanted then (5 n).
  template<typename Message>
  std::string begin(
    const Message & message, Nanoseconds now, Nanoseconds at, const double * wanted,
    MotionTrajectory & trajectory)
  {
    const Nanoseconds stamp = stamp_of(message);
    const Nanoseconds start = stamp == 0 ? at + nanoseconds(kNotice) : stamp;
    if (start + nanoseconds(message.time_from_start.back()) <= now) {
      return "it is over";
    }
    trajectory.begin(start);
    trajectory.evaluate(at, begins_.data());
    const Names & joints = order_.joints();
    for (Index i = 0; i < begins_.size(); ++i) {
      static constexpr const char * kinds[] = {
        "position", "velocity", "acceleration", "jerk", "snap"};
      const Index k = i / joints.size();
      if (!(std::abs(begins_[i] - wanted[i]) <= tolerance_ * std::pow(10.0, k))) {
        return std::string(kinds[k]) + " of " + joints[i % joints.size()] + " is " +
               std::to_string(begins_[i]) + " where it would take over, and " +
               std::to_string(wanted[i]) + " is wanted there";
      }
    }
    return "";
  }

private:
  /// What is wrong with samples, by themselves.
  static std::string fault_of(const Samples & samples)
  {
    const Values & times = samples.times;
    if (times.size() < 2) {
      return "it has less than two samples";
    }
    if (!are_finite(times) || times.front() < 0.0 || times.back() > kLongest ||
      std::adjacent_find(times.begin(), times.end(), std::greater_equal<>()) != times.end())
    {
      return "its times do not increase from zero or later on, or are beyond a day";
    }
    for (const Values * values : samples.values) {
      if (values->size() != samples.n * times.size()) {
        return "position, velocity, acceleration, jerk and snap must have a value for each joint "
               "and sample";
      }
      if (!are_finite(*values)) {
        return "it " + text_of(Refusal::not_finite);
      }
      if (values != samples.values[0] &&
        std::any_of(values->end() - samples.n, values->end(), [](double x) {return x != 0.0;}))
      {
        return "it does not end at rest: the last sample must have derivatives of zero";
      }
    }
    return "";
  }

  static constexpr double kLongest = 86400.0;  ///< [s]
  static constexpr double kNotice = 0.005;     ///< Until a motion is taken over for sure [s].
  JointOrder order_;
  double tolerance_;
  Values begins_;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__MOTION_TRAJECTORY_HPP_
