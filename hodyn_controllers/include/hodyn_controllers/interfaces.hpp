// What differs between distributions of ROS, and diagnostics.

#ifndef HODYN_CONTROLLERS__INTERFACES_HPP_
#define HODYN_CONTROLLERS__INTERFACES_HPP_

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "diagnostic_msgs/msg/diagnostic_array.hpp"
#include "hodyn_controllers/effort_follower.hpp"
#include "rclcpp/rclcpp.hpp"
#include "rclcpp/version.h"

// Humble has other functions to export interfaces, and no state interfaces of controllers.
#define HODYN_CONTROLLERS_HUMBLE (RCLCPP_VERSION_MAJOR < 17)

namespace hodyn_controllers
{

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

template<typename Interface>
double value_of(const Interface & interface)
{
#if HODYN_CONTROLLERS_HUMBLE
  return interface.get_value();
#else
  return interface.get_optional().value_or(kUnknown);
#endif
}

/// Whether the interface took a value; another thread may hold it at this moment.
template<typename Interface>
bool put(Interface & interface, double value)
{
#if HODYN_CONTROLLERS_HUMBLE
  interface.set_value(value);
  return true;
#else
  return interface.set_value(value);
#endif
}

inline diagnostic_msgs::msg::KeyValue key_value(const std::string & key, const std::string & value)
{
  diagnostic_msgs::msg::KeyValue pair;
  pair.key = key;
  pair.value = value;
  return pair;
}

/// A chainable controller whose reference interfaces are KINDS of each of its joints.
///
/// `references` has the values of this tick, kind by kind, all joints of one after the other.
class ReferenceController : public controller_interface::ChainableControllerInterface
{
protected:
  /// Says what is exported; before interfaces are.
  void set_references(std::vector<std::string> joints, std::vector<std::string> kinds)
  {
    joints_ = std::move(joints);
    kinds_ = std::move(kinds);
    references_.assign(joints_.size() * kinds_.size(), kUnknown);
#if HODYN_CONTROLLERS_HUMBLE
    reference_interfaces_ = references_;
#endif
  }

  /// Forgets the references.
  void forget_references()
  {
#if HODYN_CONTROLLERS_HUMBLE
    reference_interfaces_.assign(references_.size(), kUnknown);
#else
    for (auto & interface : ordered_exported_reference_interfaces_) {
      put(*interface, kUnknown);
    }
#endif
  }

  const std::vector<double> & read_references()
  {
#if HODYN_CONTROLLERS_HUMBLE
    references_ = reference_interfaces_;
#else
    for (std::size_t i = 0; i < references_.size(); ++i) {
      references_[i] = value_of(*ordered_exported_reference_interfaces_[i]);
    }
#endif
    return references_;
  }

  /// Notes the time of an update.
  void note(const rclcpp::Time & time) {updated_ = time.nanoseconds();}

  /// Whether an activation goes on with the last update: between two cycles the controller manager
  /// deactivates and activates a controller to change its chained mode.
  ///
  /// @param longest  Time between two cycles [s].
  bool goes_on(double longest) const
  {
    const double since = 1e-9 * static_cast<double>(get_node()->now().nanoseconds() - updated_);
    return since >= 0.0 && since <= longest;
  }

  /// Leaves the command interfaces to the hardware: with zero, or with what they hold.
  ///
  /// A change of the chained mode deactivates and activates a controller, and from Jazzy on the
  /// cycles go on between both unless the request says activate_asap. Whether this is such a change
  /// cannot be known here, and interfaces are not this controller's any more afterwards.
  void leave(Fallback fallback)
  {
    is_left_ = fallback == Fallback::hold;
    for (auto & interface : command_interfaces_) {
      if (!is_left_) {
        put(interface, 0.0);
      }
    }
  }

  /// Says once what was left; for a timer, since a cycle must not wait for a log.
  void tell_what_is_left(bool is_active)
  {
    if (is_left_.exchange(false) && !is_active) {
      RCLCPP_WARN(
        get_node()->get_logger(), "It is not active any more, and the hardware was left with the "
        "last efforts (fallback: hold). Until another controller takes over, stop the hardware.");
    }
  }

  /// Takes what came over topics.
  virtual void take_messages() = 0;

  bool on_set_chained_mode(bool) override {return true;}

#if HODYN_CONTROLLERS_HUMBLE
  std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() override
  {
    std::vector<hardware_interface::CommandInterface> interfaces;
    double * value = reference_interfaces_.data();
    for (const std::string & kind : kinds_) {
      for (const std::string & joint : joints_) {
        interfaces.emplace_back(get_node()->get_name(), joint + "/" + kind, value++);
      }
    }
    return interfaces;
  }

  controller_interface::return_type update_reference_from_subscribers() override
#else
  std::vector<hardware_interface::CommandInterface::SharedPtr>
  on_export_reference_interfaces_list() override
  {
    std::vector<hardware_interface::CommandInterface::SharedPtr> interfaces;
    for (const std::string & kind : kinds_) {
      for (const std::string & joint : joints_) {
        interfaces.push_back(
          std::make_shared<hardware_interface::CommandInterface>(
            get_node()->get_name(), joint + "/" + kind));
      }
    }
    return interfaces;
  }

  controller_interface::return_type update_reference_from_subscribers(
    const rclcpp::Time &, const rclcpp::Duration &) override
#endif
  {
    take_messages();
    return controller_interface::return_type::OK;
  }

  std::vector<std::string> joints_;

private:
  std::vector<std::string> kinds_;
  std::vector<double> references_;
  std::int64_t updated_ = 0;
  std::atomic<bool> is_left_{false};
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__INTERFACES_HPP_
