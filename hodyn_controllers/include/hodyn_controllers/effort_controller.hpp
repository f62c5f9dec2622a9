// A chainable controller that follows efforts with their time derivatives.

#ifndef HODYN_CONTROLLERS__EFFORT_CONTROLLER_HPP_
#define HODYN_CONTROLLERS__EFFORT_CONTROLLER_HPP_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hodyn_controllers/effort_controller_parameters.hpp"
#include "hodyn_controllers/effort_follower.hpp"
#include "hodyn_controllers/effort_intake.hpp"
#include "hodyn_controllers/interfaces.hpp"
#include "hodyn_controllers/triple_buffer.hpp"
#include "hodyn_msgs/msg/joint_effort.hpp"

namespace hodyn_controllers
{

/// Commands efforts at the rate of the controller manager from messages that come less often.
///
/// In chained mode the reference interfaces `<joint>/effort`, `effort_dot` and `effort_ddot`
/// take the place of the topic.
class EffortController : public ReferenceController
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
  void take_messages() override;
#if !HODYN_CONTROLLERS_HUMBLE
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
    std::vector<double> before;      ///< Efforts found at activation.
    double longest;                  ///< Period [s].
    Fallback fallback;
    std::atomic<std::uint64_t> accepted{0};   ///< Messages, or ticks in chained mode.
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> unwritten{0};  ///< Efforts that an interface did not take.
    std::atomic<bool> is_refusing{false};     ///< Whether the last one was refused.
    std::atomic<Refusal> refusal{Refusal::none};  ///< The last one.
    std::atomic<bool> is_active{false};
    // Of callbacks of one group, one after the other.
    State told = State::waiting;
    std::uint8_t told_level = 0;
    Nanoseconds stamp = 0;                    ///< Of the last message; zero: there was none.
    Nanoseconds oldest = 0, widest = 0;       ///< Ages at arrival and periods, since told.
  };

  void receive(Parts & parts, const hodyn_msgs::msg::JointEffort & message);
  static void count(Parts & parts, Refusal refusal);
  void refer(Nanoseconds now);
  void write(const std::vector<double> & efforts);
  void show_states();
  std::string limited_for_long(const EffortReport & report) const;
  std::string beyond_limit(const EffortReport & report) const;
  diagnostic_msgs::msg::DiagnosticArray diagnostics(Parts & parts);

  std::shared_ptr<effort_controller::ParamListener> parameters_;
  std::shared_ptr<Parts> parts_;
  std::string command_interface_;
  std::vector<EffortLimits> limits_;
  rclcpp::Subscription<hodyn_msgs::msg::JointEffort>::SharedPtr subscription_;
  rclcpp::Publisher<diagnostic_msgs::msg::DiagnosticArray>::SharedPtr diagnostics_;
  rclcpp::TimerBase::SharedPtr timer_;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__EFFORT_CONTROLLER_HPP_
