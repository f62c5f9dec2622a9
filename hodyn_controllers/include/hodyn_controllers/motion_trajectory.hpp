// Motions through samples of positions and four derivatives, and which of them may be followed.
//
// Knows nothing of ROS. `evaluate` and `hold` neither allocate, lock nor throw.

#ifndef HODYN_CONTROLLERS__MOTION_TRAJECTORY_HPP_
#define HODYN_CONTROLLERS__MOTION_TRAJECTORY_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

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
  explicit MotionTrajectory(std::size_t n_joints)
  : n_(n_joints), held_(n_joints, 0.0) {}

  /// Rests at positions (n); of those that are not finite, where it rested before.
  void hold(const double * position)
  {
    count_ = 1;
    for (std::size_t j = 0; j < n_; ++j) {
      held_[j] = std::isfinite(position[j]) ? position[j] : held_[j];
    }
  }

  /// Goes through samples.
  ///
  /// @param samples  With increasing times.
  /// @param kept     Which of them it goes through: the first, the last, and some in between.
  /// @param place    Of each joint among the n values of a sample.
  void set(
    const Samples & samples, const std::vector<std::size_t> & kept,
    const std::vector<std::size_t> & place)
  {
    count_ = kept.size();
    times_.resize(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      times_[i] = samples.times[kept[i]];
    }
    coefficients_.resize((count_ - 1) * n_ * kCoefficients);
    for (std::size_t j = 0; j < n_; ++j) {
      held_[j] = samples(0, kept.back(), place[j]);
      for (std::size_t i = 0; i + 1 < count_; ++i) {
        samples.connect(
          kept[i], kept[i + 1], place[j], &coefficients_[(i * n_ + j) * kCoefficients]);
      }
    }
  }

  /// Sets the time at which those of the samples are zero.
  void begin(Nanoseconds start) {start_ = start;}

  /// Positions and derivatives at a time: derivative k of joint j at k * n + j.
  void evaluate(Nanoseconds time, double * motion) const
  {
    std::fill(motion, motion + kMotions * n_, 0.0);
    if (count_ == 1) {
      std::copy(held_.begin(), held_.end(), motion);
      return;
    }
    const double t = seconds(time - start_);
    const auto next = std::upper_bound(times_.begin() + 1, times_.begin() + count_ - 1, t);
    const std::size_t i = static_cast<std::size_t>(next - times_.begin()) - 1;
    const double h = times_[i + 1] - times_[i];
    const double x = (t - times_[i]) / h;
    const bool is_within = x >= 0.0 && x <= 1.0;
    for (std::size_t j = 0; j < n_; ++j) {
      const double * a = &coefficients_[(i * n_ + j) * kCoefficients];
      std::array<double, kMotions> found;
      taylor(a, std::clamp(x, 0.0, 1.0), found);
      motion[j] = found[0];
      double scale = 1.0;
      for (std::size_t k = 1; is_within && k < kMotions; ++k) {
        scale *= static_cast<double>(k) / h;
        motion[k * n_ + j] = scale * found[k];
      }
    }
  }

private:
  std::size_t n_;
  Nanoseconds start_ = 0;
  std::size_t count_ = 1;             ///< Of the samples.
  std::vector<double> times_, coefficients_, held_;
};

/// What a message says, without a copy.
struct MotionMessage
{
  Nanoseconds stamp;  ///< Zero: as soon as possible.
  const std::vector<std::string> & joints;
  const std::vector<double> & times;
  std::array<const std::vector<double> *, kMotions> values;
};

/// Checks motions, and brings them into the order of the controller.
class MotionIntake
{
public:
  /// @param tolerance  Of positions at which a motion may begin [rad], [m]; ten times as much by
  ///                   each derivative.
  MotionIntake(std::vector<std::string> joints, double tolerance)
  : order_(std::move(joints)), tolerance_(tolerance),
    begins_(kMotions * order_.joints().size(), 0.0) {}

  /// Fills a trajectory, or says why not (then it is to be thrown away); empty: it is filled.
  ///
  /// That of many samples takes many cycles, so it begins by a call of its own.
  std::string read(const MotionMessage & message, MotionTrajectory & trajectory)
  {
    std::string fault = fault_of(message);
    if (!fault.empty()) {
      return fault;
    }
    const Samples samples{message.times, message.values, message.joints.size()};
    const Digits digits(samples);
    const std::vector<std::size_t> kept = digits.kept();
    fault = digits.fault(kept, message.joints);
    if (!fault.empty()) {
      return fault;
    }
    trajectory.set(samples, kept, order_.places());
    return "";
  }

  /// Lets a trajectory that was read begin, or says why not.
  ///
  /// @param now     Time of this call.
  /// @param at      A time at which it must agree with
  /// @param wanted  the motion that is wanted then (5 n).
  std::string begin(
    const MotionMessage & message, Nanoseconds now, Nanoseconds at, const double * wanted,
    MotionTrajectory & trajectory)
  {
    const Nanoseconds start = message.stamp == 0 ? at + nanoseconds(kNotice) : message.stamp;
    if (start + nanoseconds(message.times.back()) <= now) {
      return "it is over";
    }
    trajectory.begin(start);
    trajectory.evaluate(at, begins_.data());
    const std::vector<std::string> & joints = order_.joints();
    double tolerance = tolerance_;
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      if (i > 0 && i % joints.size() == 0) {
        tolerance *= 10.0;
      }
      if (!(std::abs(begins_[i] - wanted[i]) <= tolerance)) {
        static constexpr const char * kinds[] = {
          "position", "velocity", "acceleration", "jerk", "snap"};
        return std::string(kinds[i / joints.size()]) + " of " + joints[i % joints.size()] + " is " + std::to_string(begins_[i]) +
               " where it would take over, and " + std::to_string(wanted[i]) + " is wanted there";
      }
    }
    return "";
  }

private:
  std::string fault_of(const MotionMessage & message)
  {
    const auto & times = message.times;
    const std::size_t n = message.joints.size();
    const Refusal refusal = order_.read(message.joints);
    if (refusal != Refusal::none) {
      return std::string("it ") + text_of(refusal) + ": " + order_.refused();
    }
    if (times.size() < 2) {
      return "it has less than two samples";
    }
    if (!are_finite(times) || times.front() < 0.0 || times.back() > kLongest ||
      std::adjacent_find(times.begin(), times.end(), std::greater_equal<double>()) != times.end())
    {
      return "its times do not increase from zero or later on, or are beyond a day";
    }
    for (const auto * values : message.values) {
      if (values->size() != n * times.size()) {
        return "position, velocity, acceleration, jerk and snap must have a value for each joint "
               "and sample";
      }
      if (!are_finite(*values)) {
        return std::string("it ") + text_of(Refusal::not_finite);
      }
      if (values != message.values[0] &&
        std::any_of(values->end() - n, values->end(), [](double x) {return x != 0.0;}))
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
  std::vector<double> begins_;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__MOTION_TRAJECTORY_HPP_
