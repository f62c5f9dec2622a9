// Motions through samples of positions and four derivatives, and which of them may be followed.
//
// Knows nothing of ROS. `evaluate` and `hold` neither allocate, lock nor throw.

#ifndef HODYN_CONTROLLERS__MOTION_TRAJECTORY_HPP_
#define HODYN_CONTROLLERS__MOTION_TRAJECTORY_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
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
  : n_(n_joints), held_(n_joints) {}

  /// Rests at positions (n); of those that are not finite, where it rested before.
  void hold(const double * position)
  {
    times_.clear();
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
    const Index pieces = kept.size() - 1;
    times_.resize(pieces);
    durations_.resize(pieces);
    coefficients_.resize(pieces * n_ * kCoefficients);
    double * a = coefficients_.data();
    for (Index i = 0; i < pieces; ++i) {
      times_[i] = samples.times[kept[i]];
      durations_[i] = samples.times[kept[i + 1]] - times_[i];
      for (Index j = 0; j < n_; ++j, a += kCoefficients) {
        samples.connect(kept[i], kept[i + 1], place[j], a);
      }
    }
    for (Index j = 0; j < n_; ++j) {
      held_[j] = samples(0, kept.back(), place[j]);
    }
  }

  /// Sets the time at which those of the samples are zero.
  void begin(Nanoseconds start) {start_ = start;}

  /// Time of the first sample.
  Nanoseconds first() const {return start_ + nanoseconds(times_.front());}

  /// Follows another motion until the first sample.
  ///
  /// @param from  What was before is left out.
  void follow(const MotionTrajectory & other, Nanoseconds from)
  {
    const Index begin = other.piece(seconds(from - other.start_));
    Index end = begin;
    Values times;
    const double shift = seconds(other.start_ - start_);
    while (end < other.times_.size() && other.times_[end] + shift < times_.front()) {
      times.push_back(other.times_[end++] + shift);
    }
    times_.insert(times_.begin(), times.begin(), times.end());
    const auto insert = [=](Values & to, const Values & those, Index size) {
        to.insert(to.begin(), those.begin() + begin * size, those.begin() + end * size);
      };
    insert(durations_, other.durations_, 1);
    insert(coefficients_, other.coefficients_, n_ * kCoefficients);
  }

  /// Positions and derivatives at a time: derivative k of joint j at k * n + j.
  void evaluate(Nanoseconds time, double * motion) const
  {
    std::fill(motion, motion + kMotions * n_, 0.0);
    std::copy(held_.begin(), held_.end(), motion);
    if (times_.empty()) {
      return;
    }
    const double t = seconds(time - start_);
    const Index i = piece(t);
    const double h = durations_[i], x = (t - times_[i]) / h;
    for (Index j = 0; j < n_; ++j) {
      const Taylor found = taylor(
        &coefficients_[(i * n_ + j) * kCoefficients], std::clamp(x, 0.0, 1.0));
      motion[j] = found[0];
      double scale = 1.0;
      for (Index k = 1; x >= 0.0 && x <= 1.0 && k < kMotions; ++k) {
        scale *= static_cast<double>(k) / h;
        motion[k * n_ + j] = scale * found[k];
      }
    }
  }

private:
  /// That of a time [s] or before it; the first one if there is none.
  Index piece(double t) const
  {
    const auto next = std::upper_bound(times_.begin(), times_.end(), t);
    return static_cast<Index>(std::max<std::ptrdiff_t>(next - times_.begin(), 1)) - 1;
  }

  Index n_;
  Nanoseconds start_ = 0;
  Values times_, durations_, coefficients_;  ///< Of the pieces; none: it rests.
  Values held_;
};

/// Checks motions, and brings them into the order of the controller.
class MotionIntake
{
public:
  /// @param tolerance  Of positions at which a motion may begin [rad], [m]; ten times as much by
  ///                   each derivative.
  MotionIntake(Names joints, double tolerance)
  : order_(std::move(joints)), tolerance_(tolerance), followed_(order_.joints().size()) {}

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
  /// It takes over at its first sample; until then the one before is followed.
  ///
  /// @param now      Time of this call.
  /// @param at       A time at which
  /// @param wanted   is wanted (5 n), which is of the trajectory that began last
  /// @param follows  or, if not, rests.
  template<typename Message>
  std::string begin(
    const Message & message, Nanoseconds now, Nanoseconds at, const Values & wanted, bool follows,
    MotionTrajectory & trajectory)
  {
    const Nanoseconds stamp = stamp_of(message);
    const Nanoseconds start = stamp == 0 ? at + nanoseconds(kNotice) : stamp;
    if (start + nanoseconds(message.time_from_start.back()) <= now) {
      return "it is over";
    }
    trajectory.begin(start);
    if (!follows) {
      followed_.hold(wanted.data());
    }
    const Nanoseconds joint = std::max(at, trajectory.first());
    const Names & joints = order_.joints();
    Values found(wanted.size()), expected(wanted.size());
    trajectory.evaluate(joint, found.data());
    followed_.evaluate(joint, expected.data());
    for (Index i = 0; i < found.size(); ++i) {
      static constexpr const char * kinds[] = {
        "position", "velocity", "acceleration", "jerk", "snap"};
      const Index k = i / joints.size();
      if (!(std::abs(found[i] - expected[i]) <= tolerance_ * std::pow(10.0, k))) {
        return std::string(kinds[k]) + " of " + joints[i % joints.size()] + " is " +
               std::to_string(found[i]) + " where it would take over, and " +
               std::to_string(expected[i]) + " is wanted there";
      }
    }
    trajectory.follow(followed_, at);
    followed_ = trajectory;
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
  MotionTrajectory followed_;  ///< The one that began last, or rests.
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__MOTION_TRAJECTORY_HPP_
