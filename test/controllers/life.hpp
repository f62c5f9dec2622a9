// A controller with the node of the stand-ins, as tests of both plugins take it through its life.

#ifndef LIFE_HPP_
#define LIFE_HPP_

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "ros2_control.hpp"

constexpr std::int64_t kTick = 1000000;
const rclcpp_lifecycle::State kState;
inline int failures = 0;

#define CHECK(condition) \
  if (!(condition)) {++failures; std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);}

struct Life
{
  Life()
  : controller(make_controller()), node(*controller->node)
  {
    node.time = 1700000000000000000;
  }

  /// Configures it; then it has reference interfaces and, from Jazzy on, state interfaces.
  controller_interface::CallbackReturn configure()
  {
    const auto result = controller->on_configure(kState);
    if (result == controller_interface::CallbackReturn::SUCCESS) {
#if RCLCPP_VERSION_MAJOR < 17
      references = controller->on_export_reference_interfaces();
#else
      references = controller->on_export_reference_interfaces_list();
      controller->ordered_exported_reference_interfaces_ = references;
      controller->ordered_exported_state_interfaces_ =
        controller->on_export_state_interfaces_list();
#endif
    }
    return result;
  }

  template<typename Message>
  void send(const Message & message, const std::string & topic)
  {
    std::static_pointer_cast<rclcpp::Subscription<Message>>(
      node.subscriptions.at(topic))->callback(message);
  }

  void refer(std::size_t i, double value)
  {
#if RCLCPP_VERSION_MAJOR < 17
    references[i].set_value(value);
#else
    CHECK(references[i]->set_value(value));
#endif
  }

  std::string reference_name(std::size_t i)
  {
#if RCLCPP_VERSION_MAJOR < 17
    return references[i].get_name();
#else
    return references[i]->get_name();
#endif
  }

  /// The newest diagnostics.
  diagnostic_msgs::msg::DiagnosticStatus status()
  {
    node.timer->callback();
    const auto publisher =
      std::static_pointer_cast<rclcpp::Publisher<diagnostic_msgs::msg::DiagnosticArray>>(
      node.publishers.at("/diagnostics"));
    return publisher->published.empty() ? diagnostic_msgs::msg::DiagnosticStatus() :
           publisher->published.back().status.at(0);
  }

  /// Their message, or a value of them.
  std::string told(const std::string & key = "")
  {
    const auto status = this->status();
    for (const auto & value : status.values) {
      if (value.key == key) {
        return value.value;
      }
    }
    return status.message;
  }

  std::unique_ptr<controller_interface::ChainableControllerInterface> controller;
  rclcpp_lifecycle::LifecycleNode & node;
#if RCLCPP_VERSION_MAJOR < 17
  std::vector<hardware_interface::CommandInterface> references;
#else
  std::vector<hardware_interface::CommandInterface::SharedPtr> references;
#endif
};

#endif  // LIFE_HPP_
