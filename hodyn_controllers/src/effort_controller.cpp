#include "hodyn_controllers/effort_controller.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <sstream>
#include <utility>

#include "pluginlib/class_list_macros.hpp"

namespace hodyn_controllers
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;
using diagnostic_msgs::msg::DiagnosticArray;
using diagnostic_msgs::msg::DiagnosticStatus;
using hodyn_msgs::msg::JointEffort;

namespace
{

constexpr auto kDiagnosticsPeriod = std::chrono::seconds(1);
constexpr double kLongLimited = 0.1;  ///< At a limit without a break: worth a warning [s].

EffortOptions options_of(const effort_controller::Params & given)
{
  EffortOptions options;
  options.joints = given.joints;
  for (const std::string & joint : given.joints) {
    const auto & limits = given.limits.joints_map.at(joint);
    options.limits.push_back({limits.effort, limits.effort_rate});
  }
  options.extrapolation =
    given.extrapolation == "hold" ? 0 : given.extrapolation == "linear" ? 1 : 2;
  options.max_age = given.max_age;
  options.max_ahead = given.max_ahead;
  options.max_period = given.max_period;
  options.ease_time = given.ease_time;
  options.fallback = given.fallback == "hold" ? Fallback::hold : Fallback::zero;
  return options;
}

}  // namespace

EffortController::Parts::Parts(const EffortOptions & options, const std::string & base_link)
: intake(options, base_link), follower(options), reader(options.joints.size()),
  samples(EffortSample(options.joints.size())), reports(EffortReport(options.joints.size())),
  before(options.joints.size(), 0.0), longest(options.max_period), fallback(options.fallback) {}

CallbackReturn EffortController::on_init()
{
  try {
    parameters_ = std::make_shared<effort_controller::ParamListener>(get_node());
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "%s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn EffortController::on_configure(const rclcpp_lifecycle::State &)
{
  const auto given = parameters_->get_params();
  const EffortOptions options = options_of(given);
  const std::string fault = fault_of(options);
  if (!fault.empty()) {
    RCLCPP_ERROR(get_node()->get_logger(), "%s", fault.c_str());
    return CallbackReturn::ERROR;
  }
  set_references(given.joints, {"effort", "effort_dot", "effort_ddot"});
  command_interface_ = given.command_interface;
  limits_ = options.limits;
  parts_ = std::make_shared<Parts>(options, given.base_link);
  // Callbacks may still run in another thread when this controller is cleaned up.
  const auto parts = parts_;
  // Of what waits only the newest message counts; publishers of either reliability are heard.
  subscription_ = get_node()->create_subscription<JointEffort>(
    given.topic, rclcpp::QoS(1).best_effort(),
    [this, parts](const JointEffort & message) {receive(*parts, message);});
  diagnostics_ = get_node()->create_publisher<DiagnosticArray>("/diagnostics", rclcpp::QoS(1));
  timer_ = get_node()->create_wall_timer(
    kDiagnosticsPeriod, [this, parts]() {
      tell_what_is_left(parts->is_active);
      if (parts->is_active) {
        diagnostics_->publish(diagnostics(*parts));
      }
    });
  return CallbackReturn::SUCCESS;
}

CallbackReturn EffortController::on_activate(const rclcpp_lifecycle::State &)
{
  if (command_interfaces_.size() != joints_.size()) {
    RCLCPP_ERROR(
      get_node()->get_logger(), "The hardware has %zu of %zu interfaces %s.",
      command_interfaces_.size(), joints_.size(), command_interface_.c_str());
    return CallbackReturn::ERROR;
  }
  Parts & parts = *parts_;
  // A controller before this one may have left efforts that the robot needs.
  const bool is_same = goes_on(parts.longest);
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    parts.before[j] =
      is_same ? parts.follower.efforts()[j] : value_of(command_interfaces_[j]);
  }
  if (is_same) {
    write(parts.before);
  }
  parts.follower.reset(parts.before.data());
  parts.reader.reset();
  parts.samples.take();  // What came before does not count.
  parts.is_refusing = false;
  parts.is_active = true;
  forget_references();
  return CallbackReturn::SUCCESS;
}

CallbackReturn EffortController::on_deactivate(const rclcpp_lifecycle::State &)
{
  parts_->is_active = false;
  leave(parts_->fallback);
  return CallbackReturn::SUCCESS;
}

CallbackReturn EffortController::on_cleanup(const rclcpp_lifecycle::State &)
{
  timer_.reset();
  subscription_.reset();
  parts_.reset();
  return CallbackReturn::SUCCESS;
}

InterfaceConfiguration EffortController::command_interface_configuration() const
{
  InterfaceConfiguration configuration;
  configuration.type = interface_configuration_type::INDIVIDUAL;
  for (const std::string & joint : joints_) {
    configuration.names.push_back(joint + "/" + command_interface_);
  }
  return configuration;
}

InterfaceConfiguration EffortController::state_interface_configuration() const
{
  return {interface_configuration_type::NONE, {}};
}

#if !HODYN_CONTROLLERS_HUMBLE

std::vector<hardware_interface::StateInterface::SharedPtr>
EffortController::on_export_state_interfaces_list()
{
  const std::string name = get_node()->get_name();
  const auto interface_of = [&](const std::string & kind) {
      return std::make_shared<hardware_interface::StateInterface>(name, kind);
    };
  std::vector<hardware_interface::StateInterface::SharedPtr> interfaces{
    interface_of("state"), interface_of("age")};
  for (const std::string & joint : joints_) {
    interfaces.push_back(interface_of(joint + "/limited"));
  }
  return interfaces;
}

#endif

void EffortController::take_messages()
{
  if (parts_->samples.take()) {
    parts_->follower.give(parts_->samples.front());
  }
}

return_type EffortController::update_and_write_commands(
  const rclcpp::Time & time, const rclcpp::Duration & period)
{
  Parts & parts = *parts_;
  note(time);
  if (is_in_chained_mode()) {
    refer(time.nanoseconds());
  }
  write(parts.follower.update(time.nanoseconds(), period.seconds(), parts.is_refusing));
  parts.reports.back() = parts.follower.report();
  parts.reports.publish();
  show_states();
  return return_type::OK;
}

void EffortController::count(Parts & parts, Refusal refusal)
{
  parts.is_refusing = refusal != Refusal::none;
  if (refusal == Refusal::none) {
    ++parts.accepted;
  } else {
    ++parts.refused;
    parts.refusal = refusal;
  }
}

void EffortController::receive(Parts & parts, const JointEffort & message)
{
  if (is_in_chained_mode()) {
    return;
  }
  const rclcpp::Time stamp(message.header.stamp);
  const Nanoseconds now = get_node()->now().nanoseconds();
  const Refusal refusal = parts.intake.read(
    {stamp.nanoseconds(), message.header.frame_id, message.joint_names,
      {&message.effort, &message.effort_dot, &message.effort_ddot}, message.valid_order},
    now, parts.samples.back());
  if (refusal == Refusal::none) {
    const Nanoseconds sample = parts.samples.back().stamp;
    parts.oldest = std::max(parts.oldest, now - sample);
    parts.widest = std::max(parts.widest, parts.stamp == 0 ? 0 : sample - parts.stamp);
    parts.stamp = sample;
    parts.samples.publish();
  }
  count(parts, refusal);
}

void EffortController::refer(Nanoseconds now)
{
  const bool is_finite = parts_->reader.read(read_references(), now);
  if (is_finite) {
    parts_->follower.give(parts_->reader.sample());
  }
  count(*parts_, is_finite ? Refusal::none : Refusal::not_finite);
}

void EffortController::write(const std::vector<double> & efforts)
{
  for (std::size_t j = 0; j < efforts.size(); ++j) {
    if (!put(command_interfaces_[j], efforts[j])) {
      ++parts_->unwritten;
    }
  }
}

void EffortController::show_states()
{
#if !HODYN_CONTROLLERS_HUMBLE
  const EffortReport & report = parts_->follower.report();
  put(*ordered_exported_state_interfaces_[0], static_cast<double>(report.state));
  put(*ordered_exported_state_interfaces_[1], report.age);
  for (std::size_t j = 0; j < report.limited.size(); ++j) {
    put(*ordered_exported_state_interfaces_[2 + j], static_cast<double>(report.limited[j]));
  }
#endif
}

std::string EffortController::limited_for_long(const EffortReport & report) const
{
  std::string said;
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    if (report.limited_for[j] > kLongLimited) {
      said += (said.empty() ? ", at limits: " : ", ") + joints_[j] +
        (report.limited[j] == Limited::effort ? " (effort)" : " (effort_rate)");
    }
  }
  return said;
}

std::string EffortController::beyond_limit(const EffortReport & report) const
{
  std::ostringstream said;
  said << joints_[report.beyond] << " shall have an effort of " << report.wanted_beyond
       << ", more than " << kBeyond << " times its limit of " << limits_[report.beyond].effort
       << "; look at units and derivatives of the sender";
  return said.str();
}

DiagnosticArray EffortController::diagnostics(Parts & parts)
{
  parts.reports.take();
  const EffortReport & report = parts.reports.front();
  DiagnosticStatus status;
  status.name = std::string(get_node()->get_name()) + ": efforts";
  status.hardware_id = get_node()->get_name();
  const std::string limited = limited_for_long(report);
  status.level = report.state == State::following && limited.empty() ?
    DiagnosticStatus::OK : DiagnosticStatus::WARN;
  status.message = name_of(report.state);
  if (report.beyond >= 0) {
    status.message += ": " + beyond_limit(report);
  } else if (report.state == State::refused) {
    status.message += std::string(": the last message ") + text_of(parts.refusal);
  } else if (report.state == State::following) {
    status.message += limited;
  }
  status.values = {
    key_value("age [s]", std::to_string(report.age)),
    key_value("longest age at arrival [s]", std::to_string(seconds(parts.oldest))),
    key_value("longest period [s]", std::to_string(seconds(parts.widest))),
    key_value("accepted", std::to_string(parts.accepted)),
    key_value("refused", std::to_string(parts.refused)),
    key_value("last refusal", text_of(parts.refusal)),
    key_value("losses", std::to_string(report.losses)),
    key_value("the same efforts for [s]", std::to_string(report.unchanged_for)),
    key_value("efforts not taken by the hardware", std::to_string(parts.unwritten))};
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    status.values.push_back(
      key_value(
        joints_[j] + ": ticks at limits of effort, rate",
        std::to_string(report.at_effort[j]) + ", " + std::to_string(report.at_effort_rate[j])));
  }
  parts.oldest = parts.widest = 0;
  if (report.state != parts.told || status.level != parts.told_level) {
    if (report.beyond >= 0 || !limited.empty()) {
      RCLCPP_WARN(get_node()->get_logger(), "%s", status.message.c_str());
    } else {
      RCLCPP_INFO(get_node()->get_logger(), "%s", status.message.c_str());
    }
    parts.told = report.state;
    parts.told_level = status.level;
  }
  DiagnosticArray array;
  array.header.stamp = get_node()->now();
  array.status.push_back(std::move(status));
  return array;
}

}  // namespace hodyn_controllers

PLUGINLIB_EXPORT_CLASS(
  hodyn_controllers::EffortController, controller_interface::ChainableControllerInterface)
