// Efforts at the ticks of a controller from samples of efforts and their derivatives.
//
// Knows nothing of ROS. `update` and `reset` neither allocate, lock nor throw.

#ifndef HODYN_CONTROLLERS__EFFORT_FOLLOWER_HPP_
#define HODYN_CONTROLLERS__EFFORT_FOLLOWER_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hodyn_controllers/messages.hpp"

namespace hodyn_controllers
{

constexpr int kOrders = 3;  ///< Effort and its first and second time derivatives.
/// Efforts of more than this many times their limit are an error of the sender, and not followed.
constexpr double kBeyond = 10.0;

/// Share of a difference that is left: falls from 1 to 0 with two derivatives zero at both ends.
inline double share_left(double since, double ease_time)
{
  if (since >= ease_time) {
    return 0.0;
  }
  const double x = since / ease_time;
  return 1.0 - x * x * x * (10.0 - 15.0 * x + 6.0 * x * x);
}

/// Efforts of all joints at one instant.
struct EffortSample
{
  explicit EffortSample(Index n_joints)
  : values(kOrders * n_joints, 0.0) {}

  Nanoseconds stamp = 0;
  int order = 0;  ///< Highest derivative that is known.
  /// Derivative k of joint j at k * n_joints + j [N m/s^k], [N/s^k]; zero where it is not known.
  Values values;
};

/// What there is instead of efforts when they are lost.
enum class Fallback { zero, hold };

struct EffortLimits
{
  double effort = 0.0;       ///< [N m], [N]
  double effort_rate = 0.0;  ///< [N m/s], [N/s]
};

/// With values that are valid: effort_controller_parameters.yaml says which are.
struct EffortOptions
{
  Names joints;
  std::vector<EffortLimits> limits;  ///< One per joint; finite and above zero.
  int extrapolation = 2;             ///< Highest derivative used: 0 holds efforts.
  double max_age = 0.05;             ///< Of a sample that is followed [s].
  double max_ahead = 0.02;           ///< By which a sample may be later than the tick [s].
  double max_period = 0.005;         ///< Of a tick, as far as the rate limit counts it [s].
  double ease_time = 0.5;            ///< Between efforts and the fallback, both ways [s].
  Fallback fallback = Fallback::zero;
};

enum class State : std::uint8_t { waiting, following, easing, fallback, refused };

inline const char * name_of(State state)
{
  static constexpr const char * names[] = {
    "waiting", "following", "easing", "fallback", "refused"};
  return names[static_cast<Index>(state)];
}

/// Which limit of a joint was reached at a tick.
enum class Limited : std::uint8_t { no, effort, effort_rate };

/// What happened at a tick, and so far.
struct EffortReport
{
  explicit EffortReport(Index n_joints)
  : limited(n_joints, Limited::no), limited_for(n_joints, 0.0), at_effort(n_joints, 0),
    at_effort_rate(n_joints, 0) {}

  State state = State::waiting;
  double age = -1.0;                          ///< Of the sample in use [s]; -1: there is none.
  std::uint64_t losses = 0;                   ///< How often efforts were lost.
  std::vector<Limited> limited;               ///< At this tick.
  Values limited_for;            ///< Without a break until this tick [s].
  double unchanged_for = 0.0;                 ///< For which values of samples have been the same [s].
  int beyond = -1;                            ///< Joint beyond kBeyond at this tick; -1: none.
  double wanted_beyond = 0.0;                 ///< Of that joint; may be no number.
  std::vector<std::uint64_t> at_effort;       ///< Ticks at which joints were at their limit.
  std::vector<std::uint64_t> at_effort_rate;
};

/// Follows samples while they are fresh, and eases to the fallback when they are not.
///
/// A change of what is followed never steps: the difference at that tick decays over the ease
/// time. Behind that, efforts and their change per tick are limited.
class EffortFollower
{
public:
  explicit EffortFollower(const EffortOptions & options)
  : options_(options), n_(options.joints.size()), sample_(n_), command_(n_, 0.0),
    target_(n_, 0.0), wanted_(n_, 0.0), difference_(n_, 0.0), report_(n_) {}

  /// Begins anew from efforts (n); those that are not finite count as zero.
  void reset(const double * command)
  {
    for (Index j = 0; j < n_; ++j) {
      const double limit = options_.limits[j].effort;
      command_[j] = std::isfinite(command[j]) ? std::clamp(command[j], -limit, limit) : 0.0;
    }
    has_sample_ = false;
    report_.age = -1.0;
    lose(State::waiting);
  }

  /// Takes a sample (of as many joints).
  void give(const EffortSample & sample)
  {
    if (!has_sample_ || sample.values != sample_.values) {
      report_.unchanged_for = 0.0;
    }
    sample_.stamp = sample.stamp;
    sample_.order = sample.order;
    std::copy(sample.values.begin(), sample.values.end(), sample_.values.begin());
    has_sample_ = true;
  }

  /// Efforts (n) at a tick.
  ///
  /// @param now       Time of the tick.
  /// @param period    Since the tick before [s].
  /// @param refusing  Whether what came since the last sample was refused.
  const Values & update(Nanoseconds now, double period, bool refusing)
  {
    period = period > 0.0 ? std::min(period, options_.max_period) : 0.0;
    since_change_ += period;
    report_.unchanged_for += period;
    report_.beyond = -1;
    const double age = has_sample_ ? seconds(now - sample_.stamp) : -1.0;
    const bool is_fresh =
      has_sample_ && age <= options_.max_age && age >= -options_.max_ahead;
    report_.age = age;
    const bool was_following = report_.state == State::following;
    if (is_fresh && extrapolate(age)) {
      target_ = wanted_;
      if (!was_following) {
        change(State::following);
      }
    } else {
      if (was_following) {
        ++report_.losses;
        lose(State::easing);
      }
      rest(refusing || report_.beyond >= 0);
    }
    limit(period);
    return command_;
  }

  const Values & efforts() const {return command_;}

  const EffortReport & report() const {return report_;}

private:
  /// Efforts that are wanted: the Taylor polynomial of the sample at its age [s].
  ///
  /// @return  Whether they may be followed; otherwise the report says which may not.
  bool extrapolate(double age)
  {
    const int order = std::min(sample_.order, options_.extrapolation);
    const double first = order > 0 ? age : 0.0;
    const double second = order > 1 ? 0.5 * age * age : 0.0;
    const double * values = sample_.values.data();
    for (Index j = 0; j < n_; ++j) {
      wanted_[j] = values[j] + first * values[n_ + j] + second * values[2 * n_ + j];
      // Finite derivatives may be so large that the sum is not.
      if (!(std::abs(wanted_[j]) <= kBeyond * options_.limits[j].effort)) {
        report_.beyond = static_cast<int>(j);
        report_.wanted_beyond = wanted_[j];
        return false;
      }
    }
    return true;
  }

  /// Goes over to other targets, from where the efforts are.
  void change(State state)
  {
    report_.state = state;
    since_change_ = 0.0;
    for (Index j = 0; j < n_; ++j) {
      difference_[j] = command_[j] - target_[j];
    }
  }

  void lose(State state)
  {
    for (Index j = 0; j < n_; ++j) {
      target_[j] = options_.fallback == Fallback::hold ? command_[j] : 0.0;
    }
    change(state);
  }

  /// State without a sample to follow, by how far the fallback is.
  void rest(bool refusing)
  {
    const bool is_there = since_change_ >= options_.ease_time;
    if (report_.state != State::waiting && is_there) {
      report_.state = refusing ? State::refused : State::fallback;
    }
  }

  void limit(double period)
  {
    const double share = share_left(since_change_, options_.ease_time);
    for (Index j = 0; j < n_; ++j) {
      const EffortLimits & limits = options_.limits[j];
      const double wanted = target_[j] + share * difference_[j];
      const double within = std::clamp(wanted, -limits.effort, limits.effort);
      const double step = limits.effort_rate * period;
      const double reached = std::clamp(within, command_[j] - step, command_[j] + step);
      command_[j] = reached;
      Limited & limited = report_.limited[j];
      limited = reached != within ? Limited::effort_rate :
        within != wanted ? Limited::effort : Limited::no;
      double & limited_for = report_.limited_for[j];
      limited_for = limited == Limited::no ? 0.0 : limited_for + period;
      report_.at_effort[j] += limited == Limited::effort;
      report_.at_effort_rate[j] += limited == Limited::effort_rate;
    }
  }

  EffortOptions options_;
  Index n_;
  EffortSample sample_;
  bool has_sample_ = false;
  double since_change_ = 0.0;  ///< Time since the targets are of another kind [s].
  Values command_, target_, wanted_, difference_;
  EffortReport report_;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__EFFORT_FOLLOWER_HPP_
