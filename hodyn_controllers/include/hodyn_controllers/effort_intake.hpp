// What comes in over a topic: put into the order of the controller, or refused with a reason.
//
// Knows nothing of ROS. For the thread that receives messages, not for that of the ticks.

#ifndef HODYN_CONTROLLERS__EFFORT_INTAKE_HPP_
#define HODYN_CONTROLLERS__EFFORT_INTAKE_HPP_

#include <algorithm>
#include <string>

#include "hodyn_controllers/effort_follower.hpp"
#include "hodyn_controllers/messages.hpp"

namespace hodyn_controllers
{

/// @tparam Message  hodyn_msgs::msg::JointEffort.
class EffortIntake
{
public:
  /// @param base_link  That messages must name; empty: any.
  EffortIntake(const EffortOptions & options, const std::string & base_link)
  : base_link_(base_link), order_(options.joints)
  {
    rule_.n = static_cast<int>(options.joints.size());
    rule_.max_age = options.max_age;
    rule_.max_ahead = options.max_ahead;
  }

  /// Fills a sample (of as many joints), or says why not: then the sample is to be thrown away.
  ///
  /// A message without a stamp is of the time of its arrival.
  template<typename Message>
  Refusal read(const Message & message, Nanoseconds now, EffortSample & sample)
  {
    if (now < now_) {
      rule_.ordered = 0;  // The clock was set back, so stamps of before mean nothing.
    }
    now_ = now;
    const Nanoseconds stamp = stamp_of(message);
    sample.stamp = stamp == 0 ? now : stamp;
    const Refusal refusal = values(message, sample);
    if (refusal != Refusal::none) {
      return refusal;
    }
    // Times of the rule count from now, so that nanoseconds are not rounded. A stamp that comes
    // again is overtaken too.
    rule_.stamp = seconds(last_ + 1 - now);
    const int found = effort_rule_look(
      &rule_, 0.0, seconds(sample.stamp - now), sample.order, sample.values.data());
    if (found == EFFORT_TAKEN) {
      rule_.ordered = 1;
      last_ = sample.stamp;
    }
    static constexpr Refusal refusals[] = {
      Refusal::none, Refusal::wrong_size, Refusal::not_finite, Refusal::stale, Refusal::future,
      Refusal::overtaken};
    return refusals[found];
  }

private:
  template<typename Message>
  Refusal values(const Message & message, EffortSample & sample)
  {
    if (!base_link_.empty() && message.header.frame_id != base_link_) {
      return Refusal::other_base;
    }
    const Values * const given[] = {&message.effort, &message.effort_dot, &message.effort_ddot};
    sample.order = message.valid_order;
    std::fill(sample.values.begin(), sample.values.end(), 0.0);
    const Refusal refusal = order_.read(message.joint_names);
    if (refusal != Refusal::none) {
      return refusal;
    }
    double * value = sample.values.data();
    for (int k = 0; k <= sample.order && k < kOrders; ++k) {
      if (given[k]->size() != message.joint_names.size()) {
        return Refusal::wrong_size;
      }
      for (const Index place : order_.places()) {
        *value++ = (*given[k])[place];
      }
    }
    return Refusal::none;
  }

  std::string base_link_;
  JointOrder order_;
  EffortRule rule_{};  ///< Of which only what looks at samples is in use.
  Nanoseconds now_ = 0;
  Nanoseconds last_ = 0;  ///< Stamp of the sample before.
};

/// Samples from the values that another controller wrote at this tick, without time stamps.
///
/// Values are of the tick at which they changed: a controller in front may have a lower rate.
/// Those whose derivatives are zero stay valid as they are.
class ReferenceReader
{
public:
  explicit ReferenceReader(Index n_joints)
  : sample_(n_joints) {}

  void reset() {is_new_ = true;}

  /// Reads derivatives 0 to 2 of all joints (3 n); NaN: a derivative is not known.
  ///
  /// @return  Whether efforts are finite; otherwise the sample is as it was.
  bool read(const Values & values, Nanoseconds now)
  {
    const Index n = values.size() / kOrders;
    const auto known = [&](int k) {return are_finite(&values[k * n], n);};
    if (!known(0)) {
      return false;
    }
    const int order = !known(1) ? 0 : !known(2) ? 1 : 2;
    bool is_constant = true, is_same = !is_new_ && order == sample_.order;
    for (Index i = 0; i < (order + 1) * n; ++i) {
      is_constant = is_constant && (i < n || values[i] == 0.0);
      is_same = is_same && values[i] == sample_.values[i];
      sample_.values[i] = values[i];
    }
    sample_.order = order;
    if (!is_same || is_constant) {
      sample_.stamp = now;
    }
    is_new_ = false;
    return true;
  }

  const EffortSample & sample() const {return sample_;}

private:
  EffortSample sample_;
  bool is_new_ = true;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__EFFORT_INTAKE_HPP_
