// What all messages have: times, joints in any order, numbers that may not be finite.
//
// Knows nothing of ROS: messages are read as templates, by the names of their fields.

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

using Index = std::size_t;
using Indices = std::vector<Index>;
using Values = std::vector<double>;
using Names = std::vector<std::string>;
using Nanoseconds = std::int64_t;

constexpr Nanoseconds kSecond = 1000000000;

inline double seconds(Nanoseconds duration) {return 1e-9 * static_cast<double>(duration);}

inline Nanoseconds nanoseconds(double duration) {return std::llround(1e9 * duration);}

/// Time of the stamp of a message; zero: there is none.
template<typename Message>
Nanoseconds stamp_of(const Message & message)
{
  return message.header.stamp.sec * kSecond + message.header.stamp.nanosec;
}

/// Whether COUNT values from a pointer on are finite.
inline bool are_finite(const double * values, Index count)
{
  return std::all_of(values, values + count, [](double value) {return std::isfinite(value);});
}

inline bool are_finite(const Values & values) {return are_finite(values.data(), values.size());}

enum class Refusal : std::uint8_t
{
  none, other_joint, missing_joint, twice, other_base, wrong_size, not_finite, stale, future,
  overtaken
};

inline std::string text_of(Refusal refusal)
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
  return texts[static_cast<Index>(refusal)];
}

/// Where the joints of a controller stand in a message.
class JointOrder
{
public:
  explicit JointOrder(Names joints)
  : joints_(std::move(joints)), places_(joints_.size()) {}

  /// Finds all joints among those of a message, or says why not.
  Refusal read(const Names & given)
  {
    for (const std::string & joint : given) {
      refused_ = joint;
      if (index(joints_, joint) == joints_.size()) {
        return Refusal::other_joint;
      }
      if (&given[index(given, joint)] != &joint) {
        return Refusal::twice;
      }
    }
    for (Index j = 0; j < joints_.size(); ++j) {
      refused_ = joints_[j];
      places_[j] = index(given, joints_[j]);
      if (places_[j] == given.size()) {
        return Refusal::missing_joint;
      }
    }
    return Refusal::none;
  }

  /// The joint for which a message was just refused.
  const std::string & refused() const {return refused_;}

  const Names & joints() const {return joints_;}

  /// Of each joint in the last message.
  const Indices & places() const {return places_;}

private:
  /// Of the first one of a name, or how many there are.
  static Index index(const Names & names, const std::string & name)
  {
    return static_cast<Index>(std::find(names.begin(), names.end(), name) - names.begin());
  }

  Names joints_;
  Indices places_;
  std::string refused_;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__MESSAGES_HPP_
