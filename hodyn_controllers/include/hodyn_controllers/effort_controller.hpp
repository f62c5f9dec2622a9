// A chainable controller that follows efforts with their time derivatives.

#ifndef HODYN_CONTROLLERS__EFFORT_CONTROLLER_HPP_
#define HODYN_CONTROLLERS__EFFORT_CONTROLLER_HPP_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "diagnostic_msgs/msg/diagnostic_array.hpp"
#include "hodyn_controllers/effort_controller_parameters.hpp"
#include "hodyn_controllers/effort_follower.hpp"
#include "hodyn_controllers/effort_intake.hpp"
#include "hodyn_controllers/triple_buffer.hpp"
#include "hodyn_msgs/msg/joint_effort.hpp"
#include "rclcpp/rclcpp.hpp"
#include "rclcpp/version.h"

// Humble has other functions to export interfaces, and no state interfaces of controllers.
#define HODYN_CONTROLLERS_HUMBLE (RCLCPP_VERSION_MAJOR < 17)

namespace hodyn_controllers
{

/// Commands efforts at the rate of the controller manager from messages that come less often.
///
/// In chained mode the reference interfaces `<joint>/effort`, `effort_dot` and `effort_ddot`
/// take the place of the topic.
class EffortController : public controller_interface::ChainableControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override;
  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State & previous)
  override;
  controller_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State & previous)
  override;
  controller_interface::CallbackReturn on_deactivate(const rclcpp_lifecycle::State & previous)
  override;
  controller_interface::CallbackReturn on_cleanup(const rclcpp_lifecycle::State & previous)
  override;

  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;

  controller_interface::return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

protected:
  bool on_set_chained_mode(bool chained_mode) override;
#if HODYN_CONTROLLERS_HUMBLE
  controller_interface::return_type update_reference_from_subscribers() override;
  std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() override;
#else
  controller_interface::return_type update_reference_from_subscribers(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  std::vector<hardware_interface::CommandInterface::SharedPtr>
  on_export_reference_interfaces_list() override;
  std::vector<hardware_interface::StateInterface::SharedPtr>
  on_export_state_interfaces_list() override;
#endif

private:
  /// All that a configuration needs; made at once, so that nothing is left from the one before.
  struct Parts
  {
    Parts(const EffortOptions & options, const std::string & base_link);

    EffortIntake intake;
    EffortFollower follower;
    ReferenceReader reader;
    TripleBuffer<EffortSample> samples;
    TripleBuffer<EffortReport> reports;
    std::vector<double> references;  ///< Those of this tick (3 n).
    std::atomic<std::uint64_t> accepted{0};   ///< Messages, or ticks in chained mode.
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> unwritten{0};  ///< Efforts that an interface did not take.
    std::atomic<bool> is_refusing{false};     ///< Whether the last one was refused.
    std::atomic<Refusal> refusal{Refusal::none};  ///< The last one.
    std::atomic<bool> is_active{false};
    State told = State::waiting;
  };

  void receive(const hodyn_msgs::msg::JointEffort & message);
  void count(Refusal refusal);
  void read_references(Nanoseconds now);
  void write(const std::vector<double> & efforts);
  void show_states();
  void tell();

  std::shared_ptr<effort_controller::ParamListener> parameters_;
  std::unique_ptr<Parts> parts_;
  std::vector<std::string> joints_;
  std::string command_interface_;
  rclcpp::Subscription<hodyn_msgs::msg::JointEffort>::SharedPtr subscription_;
  rclcpp::Publisher<diagnostic_msgs::msg::DiagnosticArray>::SharedPtr diagnostics_;
  rclcpp::TimerBase::SharedPtr timer_;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__EFFORT_CONTROLLER_HPP_
