// What comes in over a topic: put into the order of the controller, or refused with a reason.
//
// Knows nothing of ROS. For the thread that receives messages, not for that of the ticks.

#ifndef HODYN_CONTROLLERS__EFFORT_INTAKE_HPP_
#define HODYN_CONTROLLERS__EFFORT_INTAKE_HPP_

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "hodyn_controllers/effort_follower.hpp"
#include "hodyn_controllers/messages.hpp"

namespace hodyn_controllers
{

/// What a message says, without a copy.
struct EffortMessage
{
  Nanoseconds stamp;  ///< Zero: the time of arrival.
  const std::string & base_link;
  const std::vector<std::string> & joints;
  std::array<const std::vector<double> *, kOrders> values;  ///< By derivative.
  int order;                                                ///< Highest derivative that is valid.
};

class EffortIntake
{
public:
  /// @param base_link  That messages must name; empty: any.
  EffortIntake(const EffortOptions & options, const std::string & base_link)
  : options_(options), base_link_(base_link), order_(options.joints) {}

  /// Fills a sample (of as many joints), or says why not: then the sample is to be thrown away.
  Refusal read(const EffortMessage & message, Nanoseconds now, EffortSample & sample)
  {
    if (now < now_) {
      last_ = 0;  // The clock was set back, so stamps of before mean nothing.
    }
    now_ = now;
    sample.stamp = message.stamp == 0 ? now : message.stamp;
    for (const Refusal refusal : {shape(message), time(sample.stamp, now)}) {
      if (refusal != Refusal::none) {
        return refusal;
      }
    }
    const std::vector<std::size_t> & places = order_.places();
    sample.order = message.order;
    std::fill(sample.values.begin(), sample.values.end(), 0.0);
    for (int k = 0; k <= message.order; ++k) {
      for (std::size_t j = 0; j < places.size(); ++j) {
        sample.values[k * places.size() + j] = (*message.values[k])[places[j]];
      }
    }
    if (!are_finite(sample.values)) {
      return Refusal::not_finite;
    }
    last_ = sample.stamp;
    return Refusal::none;
  }

private:
  Refusal shape(const EffortMessage & message)
  {
    if (!base_link_.empty() && message.base_link != base_link_) {
      return Refusal::other_base;
    }
    if (message.order < 0 || message.order >= kOrders) {
      return Refusal::wrong_size;
    }
    for (int k = 0; k <= message.order; ++k) {
      if (message.values[k]->size() != message.joints.size()) {
        return Refusal::wrong_size;
      }
    }
    return order_.read(message.joints);
  }

  Refusal time(Nanoseconds stamp, Nanoseconds now) const
  {
    if (stamp < now - nanoseconds(options_.max_age)) {
      return Refusal::stale;
    }
    if (stamp > now + nanoseconds(options_.max_ahead)) {
      return Refusal::future;
    }
    return stamp <= last_ ? Refusal::overtaken : Refusal::none;
  }

  EffortOptions options_;
  std::string base_link_;
  JointOrder order_;
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
  explicit ReferenceReader(std::size_t n_joints)
  : sample_(n_joints) {}

  void reset() {is_new_ = true;}

  /// Reads derivatives 0 to 2 of all joints (3 n); NaN: a derivative is not known.
  ///
  /// @return  Whether efforts are finite; otherwise the sample is as it was.
  bool read(const std::vector<double> & values, Nanoseconds now)
  {
    const std::size_t n = values.size() / kOrders;
    const auto known = [&](int k) {return are_finite(&values[k * n], n);};
    if (!known(0)) {
      return false;
    }
    const int order = !known(1) ? 0 : !known(2) ? 1 : 2;
    bool is_constant = true, is_same = !is_new_ && order == sample_.order;
    for (std::size_t i = 0; i < (order + 1) * n; ++i) {
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
