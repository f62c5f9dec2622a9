// What the controllers share: life, interfaces of the distributions of ROS, counting, diagnostics.

#ifndef HODYN_CONTROLLERS__CONTROLLER_HPP_
#define HODYN_CONTROLLERS__CONTROLLER_HPP_

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "diagnostic_msgs/msg/diagnostic_array.hpp"
#include "hodyn_controllers/messages.hpp"
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

using DiagnosticStatus = diagnostic_msgs::msg::DiagnosticStatus;

inline void add(DiagnosticStatus & status, const std::string & key, const std::string & value)
{
  status.values.emplace_back();
  status.values.back().key = key;
  status.values.back().value = value;
}

/// An update: its time, the time since the one before [s], and what was read for it.
struct Tick
{
  Nanoseconds now;
  double period;
  const Values & measured;     ///< Kind by kind, all joints of one after the other.
  const Values * references;   ///< Likewise, in chained mode; otherwise nullptr.
};

/// What the log says when state or level change.
struct Remark
{
  int state = 0;
  std::uint8_t level = DiagnosticStatus::OK;
  bool is_warning = false;
};

/// What threads share of one configuration; the base of cores.
struct Shared
{
  std::atomic<bool> is_active{false};
  std::atomic<std::uint64_t> accepted{0}, refused{0};  ///< Messages, or references of updates.
  std::atomic<std::uint64_t> unwritten{0};  ///< Commands that an interface did not take.
  Remark remark;  ///< Of the thread of diagnostics.

  /// Whether it is good.
  bool count(bool is_good)
  {
    ++(is_good ? accepted : refused);
    return is_good;
  }
};

/// A chainable controller around a core, which is made at once at each configuration, so that
/// nothing is left from the one before.
///
/// Callbacks own the core, too: they may still run in another thread at a cleanup.
///
/// @tparam Core  Derived from Shared, with
///   - Message, Parameters (the listener) and Params (topic, command_interface, fallback, ...);
///   - subject() and commanded(), words of diagnostics, and qos(), of the topic;
///   - joints(params), and command(params), measured(params) and references(): kinds of command,
///     state and reference interfaces, each of which is there for all joints. A kind is what
///     stands behind the name of a joint, such as /effort;
///   - a constructor from params, joints and the update rate ([Hz]; zero: not known);
///   - longest(), time between two cycles [s];
///   - receive(message, node), in the thread of messages, which counts;
///   - report(status), in that of diagnostics (no other one than that of messages at the same
///     time), which fills level, message and values;
///   - begin(before, measured), at an activation, from the commands that are there;
///   - take(), what came in messages, update(tick), whether it is well, and commands(), of the
///     joints: in the real-time thread, without allocation, locks and exceptions.
///   What is wrong at a configuration or an activation is thrown.
template<typename Core>
class Controller : public controller_interface::ChainableControllerInterface
{
  using CallbackReturn = controller_interface::CallbackReturn;
  using Configuration = controller_interface::InterfaceConfiguration;
  using DiagnosticArray = diagnostic_msgs::msg::DiagnosticArray;
  using State = rclcpp_lifecycle::State;

public:
  CallbackReturn on_init() override
  {
    return attempt(
      [this]() {parameters_ = std::make_shared<typename Core::Parameters>(get_node());});
  }

  CallbackReturn on_configure(const State &) override
  {
    return attempt([this]() {configure();});
  }

  CallbackReturn on_activate(const State &) override
  {
    return attempt([this]() {activate();});
  }

  /// Leaves the command interfaces to the hardware: with zero, or with what they hold.
  ///
  /// A change of the chained mode deactivates and activates a controller, and from Jazzy on the
  /// cycles go on between both unless the request says activate_asap. Whether this is such a change
  /// cannot be known here, and interfaces are not this controller's any more afterwards.
  CallbackReturn on_deactivate(const State &) override
  {
    core_->is_active = false;
    is_left_ = given_.fallback == "hold";
    for (auto & interface : command_interfaces_) {
      if (!is_left_) {
        put(interface, 0.0);
      }
    }
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_cleanup(const State &) override
  {
    entities_.clear();
    core_.reset();
    return CallbackReturn::SUCCESS;
  }

  Configuration command_interface_configuration() const override
  {
    return individual({Core::command(given_)});
  }

  Configuration state_interface_configuration() const override
  {
    return individual(Core::measured(given_));
  }

  controller_interface::return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override
  {
    updated_ = time.nanoseconds();
    measure();
    const bool is_well = core_->update(
      {updated_, period.seconds(), measured_, is_in_chained_mode() ? &read_references() : nullptr});
    write();
    return is_well ? controller_interface::return_type::OK :
           controller_interface::return_type::ERROR;
  }

protected:
  /// Names of interfaces: kind by kind, all joints of one after the other.
  Names names_of(const Names & kinds) const
  {
    Names names;
    for (const std::string & kind : kinds) {
      for (const std::string & joint : joints_) {
        names.push_back(joint + kind);
      }
    }
    return names;
  }

  std::shared_ptr<Core> core_;
  std::vector<std::shared_ptr<void>> entities_;  ///< Of the node, for one configuration.

private:
  template<typename Action>
  CallbackReturn attempt(Action action)
  {
    try {
      action();
    } catch (const std::exception & error) {
      RCLCPP_ERROR(get_node()->get_logger(), "%s", error.what());
      return CallbackReturn::ERROR;
    }
    return CallbackReturn::SUCCESS;
  }

  void configure()
  {
    given_ = parameters_->get_params();
    joints_ = Core::joints(given_);
    core_ = std::make_shared<Core>(given_, joints_, get_update_rate());
    before_.assign(joints_.size(), 0.0);
    measured_.assign(joints_.size() * Core::measured(given_).size(), kUnknown);
    references_.assign(joints_.size() * Core::references().size(), kUnknown);
#if HODYN_CONTROLLERS_HUMBLE
    reference_interfaces_ = references_;
#endif
    const auto core = core_;
    const auto publisher = get_node()->template create_publisher<DiagnosticArray>(
      "/diagnostics", rclcpp::QoS(1));
    publisher->on_activate();  // Controllers do not activate those of their nodes.
    entities_ = {
      get_node()->template create_subscription<typename Core::Message>(
        given_.topic, Core::qos(), [this, core](const typename Core::Message & message) {
          if (!is_in_chained_mode()) {
            core->receive(message, *get_node());
          }
        }),
      get_node()->create_wall_timer(
        std::chrono::seconds(1), [this, core, publisher]() {
          // Here, since an update and a deactivation must not wait for a log.
          if (is_left_.exchange(false) && !core->is_active) {
            RCLCPP_WARN(
              get_node()->get_logger(), "It is not active any more, and the hardware was left with "
              "the last efforts (fallback: hold). Until another controller takes over, stop the "
              "hardware.");
          }
          if (core->is_active) {
            publisher->publish(diagnostics(*core));
          }
        })};
  }

  void activate()
  {
    if (command_interfaces_.size() != before_.size() ||
      state_interfaces_.size() != measured_.size())
    {
      throw std::runtime_error(
        "The hardware has " + share(command_interfaces_, before_) + " command interfaces (" +
        given_.command_interface + ") and " + share(state_interfaces_, measured_) +
        " state interfaces.");
    }
    measure();
    // A controller before this one may have left commands that the robot needs. An activation
    // shortly after an update is a change of the chained mode, and goes on.
    const double since = seconds(get_node()->now().nanoseconds() - updated_);
    const bool is_same = since >= 0.0 && since <= core_->longest();
    for (Index j = 0; j < before_.size(); ++j) {
      const double there = is_same ? core_->commands()[j] : value_of(command_interfaces_[j]);
      before_[j] = std::isfinite(there) ? there : 0.0;
    }
    core_->begin(before_, measured_);
    if (is_same) {
      write();
    }
#if HODYN_CONTROLLERS_HUMBLE
    reference_interfaces_.assign(references_.size(), kUnknown);
#else
    for (auto & interface : ordered_exported_reference_interfaces_) {
      put(*interface, kUnknown);
    }
#endif
    core_->is_active = true;
  }

  template<typename There, typename Wanted>
  static std::string share(const There & there, const Wanted & wanted)
  {
    return std::to_string(there.size()) + " of " + std::to_string(wanted.size());
  }

  void measure()
  {
    for (Index i = 0; i < measured_.size(); ++i) {
      measured_[i] = value_of(state_interfaces_[i]);
    }
  }

  void write()
  {
    const Values & commands = core_->commands();
    for (Index j = 0; j < commands.size(); ++j) {
      if (!put(command_interfaces_[j], commands[j])) {
        ++core_->unwritten;
      }
    }
  }

  const Values & read_references()
  {
#if HODYN_CONTROLLERS_HUMBLE
    references_ = reference_interfaces_;
#else
    for (Index i = 0; i < references_.size(); ++i) {
      references_[i] = value_of(*ordered_exported_reference_interfaces_[i]);
    }
#endif
    return references_;
  }

  DiagnosticArray diagnostics(Core & core)
  {
    const std::string name = get_node()->get_name();
    DiagnosticArray array;
    array.header.stamp = get_node()->now();
    array.status.emplace_back();
    DiagnosticStatus & status = array.status.back();
    status.name = name + ": " + Core::subject();
    status.hardware_id = name;
    const Remark remark = core.report(status);
    if (remark.state != core.remark.state || remark.level != core.remark.level) {
      if (remark.is_warning) {
        RCLCPP_WARN(get_node()->get_logger(), "%s", status.message.c_str());
      } else {
        RCLCPP_INFO(get_node()->get_logger(), "%s", status.message.c_str());
      }
      core.remark = remark;
    }
    add(status, "accepted", std::to_string(core.accepted));
    add(status, "refused", std::to_string(core.refused));
    add(
      status, std::string(Core::commanded()) + " not taken by the hardware",
      std::to_string(core.unwritten));
    return array;
  }

  Configuration individual(const Names & kinds) const
  {
    return {controller_interface::interface_configuration_type::INDIVIDUAL, names_of(kinds)};
  }

  bool on_set_chained_mode(bool) override {return true;}

#if HODYN_CONTROLLERS_HUMBLE
  std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() override
  {
    std::vector<hardware_interface::CommandInterface> interfaces;
    double * value = reference_interfaces_.data();
    for (const std::string & name : names_of(Core::references())) {
      interfaces.emplace_back(get_node()->get_name(), name, value++);
    }
    return interfaces;
  }

  controller_interface::return_type update_reference_from_subscribers() override
#else
  std::vector<hardware_interface::CommandInterface::SharedPtr>
  on_export_reference_interfaces_list() override
  {
    std::vector<hardware_interface::CommandInterface::SharedPtr> interfaces;
    for (const std::string & name : names_of(Core::references())) {
      interfaces.push_back(
        std::make_shared<hardware_interface::CommandInterface>(get_node()->get_name(), name));
    }
    return interfaces;
  }

  controller_interface::return_type update_reference_from_subscribers(
    const rclcpp::Time &, const rclcpp::Duration &) override
#endif
  {
    core_->take();
    return controller_interface::return_type::OK;
  }

  std::shared_ptr<typename Core::Parameters> parameters_;
  typename Core::Params given_;
  Names joints_;
  Values before_, measured_, references_;
  Nanoseconds updated_ = 0;            ///< Time of the last update.
  std::atomic<bool> is_left_{false};   ///< With the last commands, which was not said yet.
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__CONTROLLER_HPP_
