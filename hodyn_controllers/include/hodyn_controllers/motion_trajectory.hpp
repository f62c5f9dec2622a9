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

#include "hodyn_controllers/effort_follower.hpp"
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
  : joints_(std::move(joints)), tolerance_(tolerance), place_(joints_.size(), 0),
    begins_(kMotions * joints_.size(), 0.0) {}

  /// Fills a trajectory, or says why not (then it is to be thrown away); empty: it is filled.
  ///
  /// That of many samples takes many cycles, so it begins by a call of its own.
  std::string read(const MotionMessage & message, MotionTrajectory & trajectory)
  {
    std::string fault = shape(message);
    if (!fault.empty()) {
      return fault;
    }
    const Samples samples{message.times, message.values, joints_.size()};
    const Digits digits(samples);
    const std::vector<std::size_t> kept = digits.kept();
    fault = digits.fault(kept, message.joints);
    if (!fault.empty()) {
      return fault;
    }
    trajectory.set(samples, kept, place_);
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
    double tolerance = tolerance_;
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      if (i > 0 && i % joints_.size() == 0) {
        tolerance *= 10.0;
      }
      if (!(std::abs(begins_[i] - wanted[i]) <= tolerance)) {
        static constexpr const char * kinds[] = {
          "position", "velocity", "acceleration", "jerk", "snap"};
        return std::string(kinds[i / joints_.size()]) + " of " +
               joints_[i % joints_.size()] + " is " + std::to_string(begins_[i]) +
               " where it would take over, and " + std::to_string(wanted[i]) + " is wanted there";
      }
    }
    return "";
  }

private:
  std::string shape(const MotionMessage & message)
  {
    const std::size_t n = joints_.size(), count = message.times.size();
    if (message.joints.size() != n) {
      return "it has " + std::to_string(message.joints.size()) + " joints, expected " +
             std::to_string(n);
    }
    for (std::size_t j = 0; j < n; ++j) {
      const auto found = std::find(message.joints.begin(), message.joints.end(), joints_[j]);
      if (found == message.joints.end()) {
        return "it lacks the joint " + joints_[j];
      }
      place_[j] = static_cast<std::size_t>(found - message.joints.begin());
    }
    if (count < 2) {
      return "it has less than two samples";
    }
    for (const auto * values : message.values) {
      if (values->size() != n * count) {
        return "position, velocity, acceleration, jerk and snap must have a value for each joint "
               "and sample";
      }
    }
    return numbers(message);
  }

  std::string numbers(const MotionMessage & message) const
  {
    const auto & times = message.times;
    const auto is_finite = [](double value) {return std::isfinite(value);};
    if (!std::all_of(times.begin(), times.end(), is_finite) || times.front() < 0.0 ||
      times.back() > kLongest ||
      std::adjacent_find(times.begin(), times.end(), std::greater_equal<double>()) != times.end())
    {
      return "its times do not increase from zero or later on, or are beyond a day";
    }
    for (const auto * values : message.values) {
      if (!std::all_of(values->begin(), values->end(), is_finite)) {
        return "it has values that are not finite";
      }
      const bool is_position = values == message.values[0];
      const auto last = values->end() - static_cast<std::ptrdiff_t>(joints_.size());
      if (!is_position && std::any_of(last, values->end(), [](double x) {return x != 0.0;})) {
        return "it does not end at rest: the last sample must have derivatives of zero";
      }
    }
    return "";
  }

  static constexpr double kLongest = 86400.0;  ///< [s]
  static constexpr double kNotice = 0.005;     ///< Until a motion is taken over for sure [s].
  std::vector<std::string> joints_;
  double tolerance_;
  std::vector<std::size_t> place_;
  std::vector<double> begins_;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__MOTION_TRAJECTORY_HPP_
