// What all messages have: times, joints in any order, numbers that may not be finite.
//
// Knows nothing of ROS.

#ifndef HODYN_CONTROLLERS__MESSAGES_HPP_
#define HODYN_CONTROLLERS__MESSAGES_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hodyn_controllers
{

using Nanoseconds = std::int64_t;

inline double seconds(Nanoseconds duration) {return 1e-9 * static_cast<double>(duration);}

inline Nanoseconds nanoseconds(double duration)
{
  return static_cast<Nanoseconds>(std::llround(1e9 * duration));
}

/// Whether COUNT values from a pointer on are finite.
inline bool are_finite(const double * values, std::size_t count)
{
  return std::all_of(values, values + count, [](double value) {return std::isfinite(value);});
}

inline bool are_finite(const std::vector<double> & values)
{
  return are_finite(values.data(), values.size());
}

enum class Refusal : std::uint8_t
{
  none, other_joint, missing_joint, twice, other_base, wrong_size, not_finite, stale, future,
  overtaken
};

inline const char * text_of(Refusal refusal)
{
  static constexpr const char * texts[] = {
    "",
    "names a joint that is not of this robot",
    "lacks a joint that this controller drives",
    "names a joint twice",
    "names a base link that is not of this robot",
    "has not one value per joint, or a valid_order other than 0 to 2",
    "has values that are not finite",
    "is older than max_age",
    "is later than now by more than max_ahead",
    "is not later than the message before"};
  return texts[static_cast<std::size_t>(refusal)];
}

/// Where the joints of a controller stand in a message.
class JointOrder
{
public:
  explicit JointOrder(std::vector<std::string> joints)
  : joints_(std::move(joints)), place_(joints_.size(), 0) {}

  /// Finds all joints among those of a message, or says why not.
  Refusal read(const std::vector<std::string> & given)
  {
    place_.assign(joints_.size(), kNowhere);
    for (std::size_t i = 0; i < given.size(); ++i) {
      const auto found = std::find(joints_.begin(), joints_.end(), given[i]);
      if (found == joints_.end()) {
        return refuse(Refusal::other_joint, given[i]);
      }
      std::size_t & place = place_[static_cast<std::size_t>(found - joints_.begin())];
      if (place != kNowhere) {
        return refuse(Refusal::twice, given[i]);
      }
      place = i;
    }
    const auto missing = std::find(place_.begin(), place_.end(), kNowhere);
    return missing == place_.end() ? Refusal::none :
           refuse(
      Refusal::missing_joint, joints_[static_cast<std::size_t>(missing - place_.begin())]);
  }

  /// The joint for which the last message was refused.
  const std::string & refused() const {return refused_;}

  const std::vector<std::string> & joints() const {return joints_;}

  /// Of each joint in the last message.
  const std::vector<std::size_t> & places() const {return place_;}

private:
  Refusal refuse(Refusal refusal, const std::string & joint)
  {
    refused_ = joint;
    return refusal;
  }

  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  std::vector<std::string> joints_;
  std::vector<std::size_t> place_;
  std::string refused_;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__MESSAGES_HPP_
