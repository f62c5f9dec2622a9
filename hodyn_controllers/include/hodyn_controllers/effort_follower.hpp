// Efforts at the ticks of a controller from samples of efforts and their derivatives.
//
// Knows nothing of ROS. `update` and `reset` neither allocate, lock nor throw.

#ifndef HODYN_CONTROLLERS__EFFORT_FOLLOWER_HPP_
#define HODYN_CONTROLLERS__EFFORT_FOLLOWER_HPP_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hodyn_controllers/effort_rule.h"
#include "hodyn_controllers/messages.hpp"

namespace hodyn_controllers
{

constexpr int kOrders = 3;  ///< Effort and its first and second time derivatives.

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
  int beyond = -1;                            ///< Joint far beyond its limit at this tick; -1: none.
  double wanted_beyond = 0.0;                 ///< Of that joint; may be no number.
  std::vector<std::uint64_t> at_effort;       ///< Ticks at which joints were at their limit.
  std::vector<std::uint64_t> at_effort_rate;
};

/// Follows samples while they are fresh, and eases to the fallback when they are not.
///
/// A change of what is followed never steps: the difference at that tick decays over the ease
/// time. Behind that, efforts and their change per tick are limited. effort_rule.h is what it does;
/// here are stamps in nanoseconds and counts for diagnostics.
class EffortFollower
{
public:
  explicit EffortFollower(const EffortOptions & options)
  : n_(options.joints.size()), memory_(EFFORT_RULE_MEMORY(n_)), command_(n_, 0.0), report_(n_)
  {
    Values efforts, rates;
    for (const EffortLimits & limits : options.limits) {
      efforts.push_back(limits.effort);
      rates.push_back(limits.effort_rate);
    }
    effort_rule_begin(&rule_, static_cast<int>(n_), memory_.data(), efforts.data(), rates.data());
    rule_.extrapolation = options.extrapolation;
    rule_.holds = options.fallback == Fallback::hold;
    rule_.max_age = options.max_age;
    rule_.max_ahead = options.max_ahead;
    rule_.max_period = options.max_period;
    rule_.ease_time = options.ease_time;
  }

  EffortFollower(const EffortFollower &) = delete;  // The rule points into the memory.
  EffortFollower & operator=(const EffortFollower &) = delete;

  /// Begins anew from efforts (n); those that are not finite count as zero.
  void reset(const double * command)
  {
    effort_rule_reset(&rule_, command);
    tell();
  }

  /// Takes a sample (of as many joints).
  void give(const EffortSample & sample)
  {
    // Times of the rule count from the stamp, so that nanoseconds are not rounded.
    stamp_ = sample.stamp;
    effort_rule_keep(&rule_, 0.0, sample.order, sample.values.data());
    report_.unchanged_for = rule_.unchanged;
  }

  /// Efforts (n) at a tick.
  ///
  /// @param now       Time of the tick.
  /// @param period    Since the tick before [s].
  /// @param refusing  Whether what came since the last sample was refused.
  const Values & update(Nanoseconds now, double period, bool refusing)
  {
    rule_.refusing = refusing;
    effort_rule_update(&rule_, seconds(now - stamp_), period);
    tell();
    const double counted = effort_rule_period(&rule_, period);
    for (Index j = 0; j < n_; ++j) {
      const auto limited = static_cast<Limited>(static_cast<int>(rule_.limited[j]));
      report_.limited[j] = limited;
      double & limited_for = report_.limited_for[j];
      limited_for = limited == Limited::no ? 0.0 : limited_for + counted;
      report_.at_effort[j] += limited == Limited::effort;
      report_.at_effort_rate[j] += limited == Limited::effort_rate;
    }
    return command_;
  }

  const Values & efforts() const {return command_;}

  const EffortReport & report() const {return report_;}

private:
  /// Efforts and report as the rule has them.
  void tell()
  {
    std::copy_n(rule_.command, n_, command_.begin());
    report_.state = static_cast<State>(rule_.state);
    report_.age = rule_.age;
    report_.losses = static_cast<std::uint64_t>(rule_.losses);
    report_.unchanged_for = rule_.unchanged;
    report_.beyond = rule_.beyond;
    report_.wanted_beyond = rule_.wanted_beyond;
  }

  Index n_;
  Nanoseconds stamp_ = 0;  ///< Of the sample.
  Values memory_, command_;
  EffortRule rule_{};
  EffortReport report_;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__EFFORT_FOLLOWER_HPP_
