// What comes in over a topic: put into the order of the controller, or refused with a reason.
//
// Knows nothing of ROS. For the thread that receives messages, not for that of the ticks.

#ifndef HODYN_CONTROLLERS__EFFORT_INTAKE_HPP_
#define HODYN_CONTROLLERS__EFFORT_INTAKE_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hodyn_controllers/effort_follower.hpp"

namespace hodyn_controllers
{

enum class Refusal : std::uint8_t
{
  none, other_robot, missing_joint, twice, wrong_size, not_finite, stale, future, overtaken
};

inline const char * text_of(Refusal refusal)
{
  static constexpr const char * texts[] = {
    "",
    "names a joint or a base link that is not of this robot",
    "lacks a joint that this controller drives",
    "names a joint twice",
    "has not one value per joint, or a valid_order other than 0 to 2",
    "has values that are not finite",
    "is older than max_age",
    "is later than now by more than max_ahead",
    "is not later than the message before"};
  return texts[static_cast<std::size_t>(refusal)];
}

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
  : options_(options), base_link_(base_link), place_(options.joints.size(), 0) {}

  /// Fills a sample (of as many joints), or says why not: then the sample is to be thrown away.
  Refusal read(const EffortMessage & message, Nanoseconds now, EffortSample & sample)
  {
    if (now < now_) {
      last_ = 0;  // The clock was set back, so stamps of before mean nothing.
    }
    now_ = now;
    const Nanoseconds stamp = message.stamp == 0 ? now : message.stamp;
    for (const Refusal refusal : {shape(message), time(stamp, now)}) {
      if (refusal != Refusal::none) {
        return refusal;
      }
    }
    const std::size_t n = place_.size();
    sample.stamp = stamp;
    sample.order = message.order;
    std::fill(sample.values.begin(), sample.values.end(), 0.0);
    for (int k = 0; k <= message.order; ++k) {
      for (std::size_t j = 0; j < n; ++j) {
        const double value = (*message.values[k])[place_[j]];
        if (!std::isfinite(value)) {
          return Refusal::not_finite;
        }
        sample.values[k * n + j] = value;
      }
    }
    last_ = stamp;
    return Refusal::none;
  }

private:
  /// Finds the joints in the message.
  Refusal shape(const EffortMessage & message)
  {
    const auto & given = message.joints;
    const auto & wanted = options_.joints;
    if (!base_link_.empty() && message.base_link != base_link_) {
      return Refusal::other_robot;
    }
    if (message.order < 0 || message.order >= kOrders) {
      return Refusal::wrong_size;
    }
    for (int k = 0; k <= message.order; ++k) {
      if (message.values[k]->size() != given.size()) {
        return Refusal::wrong_size;
      }
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      const auto found = std::find(wanted.begin(), wanted.end(), given[i]);
      if (found == wanted.end()) {
        return Refusal::other_robot;
      }
      if (std::find(given.begin(), given.begin() + i, given[i]) != given.begin() + i) {
        return Refusal::twice;
      }
      place_[found - wanted.begin()] = i;
    }
    return given.size() == wanted.size() ? Refusal::none : Refusal::missing_joint;
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
  std::vector<std::size_t> place_;  ///< Of each joint in the message.
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
    const auto known = [&](int k) {
        return std::all_of(
          values.begin() + k * n, values.begin() + (k + 1) * n,
          [](double value) {return std::isfinite(value);});
      };
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
