// A chainable controller that follows efforts with their time derivatives.

#include <algorithm>
#include <atomic>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "hodyn_controllers/controller.hpp"
#include "hodyn_controllers/effort_controller_parameters.hpp"
#include "hodyn_controllers/effort_follower.hpp"
#include "hodyn_controllers/effort_intake.hpp"
#include "hodyn_controllers/triple_buffer.hpp"
#include "hodyn_msgs/msg/joint_effort.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace hodyn_controllers
{

namespace
{

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

/// Efforts of messages or references; see Controller.
class EffortCore : public Shared
{
public:
  using Message = hodyn_msgs::msg::JointEffort;
  using Parameters = effort_controller::ParamListener;
  using Params = effort_controller::Params;
  static const char * subject() {return "efforts";}
  static const char * commanded() {return "efforts";}
  /// Of what waits only the newest message counts; publishers of either reliability are heard.
  static rclcpp::QoS qos() {return rclcpp::QoS(1).best_effort();}
  static Names joints(const Params & given) {return given.joints;}
  static std::string command(const Params & given) {return "/" + given.command_interface;}
  static Names measured(const Params &) {return {};}
  static Names references() {return {"/effort", "/effort_dot", "/effort_ddot"};}

  EffortCore(const Params & given, const Names & joints, unsigned int)
  : options_(options_of(given)), intake_(options_, given.base_link), follower_(options_),
    reader_(joints.size()), samples_(EffortSample(joints.size())),
    reports_(EffortReport(joints.size())) {}

  double longest() const {return options_.max_period;}

  const Values & commands() const {return follower_.efforts();}

  /// What happened at the last update.
  const EffortReport & last() const {return follower_.report();}

  void begin(const Values & before, const Values &)
  {
    follower_.reset(before.data());
    reader_.reset();
    samples_.take();  // What came before does not count.
    is_refusing_ = false;
  }

  void take()
  {
    if (samples_.take()) {
      follower_.give(samples_.front());
    }
  }

  bool update(const Tick & tick)
  {
    if (tick.references) {
      const bool is_finite = reader_.read(*tick.references, tick.now);
      if (is_finite) {
        follower_.give(reader_.sample());
      }
      note(is_finite ? Refusal::none : Refusal::not_finite);
    }
    follower_.update(tick.now, tick.period, is_refusing_);
    reports_.back() = last();
    reports_.publish();
    return true;
  }

  void receive(const Message & message, rclcpp_lifecycle::LifecycleNode & node)
  {
    const Nanoseconds now = node.now().nanoseconds();
    EffortSample & sample = samples_.back();
    const Refusal refusal = intake_.read(message, now, sample);
    if (refusal == Refusal::none) {
      oldest_ = std::max(oldest_, now - sample.stamp);
      widest_ = std::max(widest_, stamp_ == 0 ? 0 : sample.stamp - stamp_);
      stamp_ = sample.stamp;
      samples_.publish();
    }
    note(refusal);
  }

  Remark report(DiagnosticStatus & status)
  {
    reports_.take();
    const EffortReport & report = reports_.front();
    const std::string limited = limited_for_long(report);
    const bool is_well = report.state == State::following && limited.empty();
    status.level = is_well ? DiagnosticStatus::OK : DiagnosticStatus::WARN;
    status.message = name_of(report.state);
    if (report.beyond >= 0) {
      status.message += ": " + beyond_limit(report);
    } else if (report.state == State::refused) {
      status.message += ": the last message " + text_of(refusal_);
    } else if (report.state == State::following) {
      status.message += limited;
    }
    add(status, "age [s]", std::to_string(report.age));
    add(status, "longest age at arrival [s]", std::to_string(seconds(oldest_)));
    add(status, "longest period [s]", std::to_string(seconds(widest_)));
    add(status, "last refusal", text_of(refusal_));
    add(status, "losses", std::to_string(report.losses));
    add(status, "the same efforts for [s]", std::to_string(report.unchanged_for));
    for (Index j = 0; j < options_.joints.size(); ++j) {
      add(
        status, options_.joints[j] + ": ticks at limits of effort, rate",
        std::to_string(report.at_effort[j]) + ", " + std::to_string(report.at_effort_rate[j]));
    }
    oldest_ = widest_ = 0;
    return {
      static_cast<int>(report.state), status.level, report.beyond >= 0 || !limited.empty()};
  }

private:
  void note(Refusal refusal)
  {
    is_refusing_ = !count(refusal == Refusal::none);
    if (is_refusing_) {
      refusal_ = refusal;
    }
  }

  std::string limited_for_long(const EffortReport & report) const
  {
    std::string said;
    for (Index j = 0; j < options_.joints.size(); ++j) {
      if (report.limited_for[j] > kLongLimited) {
        said += (said.empty() ? ", at limits: " : ", ") + options_.joints[j] +
          (report.limited[j] == Limited::effort ? " (effort)" : " (effort_rate)");
      }
    }
    return said;
  }

  std::string beyond_limit(const EffortReport & report) const
  {
    std::ostringstream said;
    said << options_.joints[report.beyond] << " shall have an effort of " << report.wanted_beyond
         << ", more than " << EFFORT_BEYOND << " times its limit of "
         << options_.limits[report.beyond].effort
         << "; look at units and derivatives of the sender";
    return said.str();
  }

  const EffortOptions options_;
  EffortIntake intake_;
  EffortFollower follower_;
  ReferenceReader reader_;
  TripleBuffer<EffortSample> samples_;
  TripleBuffer<EffortReport> reports_;
  std::atomic<bool> is_refusing_{false};         ///< Whether the last message was refused,
  std::atomic<Refusal> refusal_{Refusal::none};  ///< and why the last of those that were.
  // Of callbacks of one group, one after the other.
  Nanoseconds stamp_ = 0;                        ///< Of the last message; zero: there was none.
  Nanoseconds oldest_ = 0, widest_ = 0;          ///< Ages at arrival and periods, since told.
};

/// Commands efforts at the rate of the controller manager from messages that come less often.
///
/// In chained mode the reference interfaces `<joint>/effort`, `effort_dot` and `effort_ddot`
/// take the place of the topic. From Jazzy on it exports its state, the age of the sample and
/// which limit each joint is at.
class EffortController : public Controller<EffortCore>
{
#if !HODYN_CONTROLLERS_HUMBLE

public:
  controller_interface::return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override
  {
    const auto result = Controller::update_and_write_commands(time, period);
    const EffortReport & report = core_->last();
    put(*ordered_exported_state_interfaces_[0], static_cast<double>(report.state));
    put(*ordered_exported_state_interfaces_[1], report.age);
    for (Index j = 0; j < report.limited.size(); ++j) {
      put(*ordered_exported_state_interfaces_[2 + j], static_cast<double>(report.limited[j]));
    }
    return result;
  }

protected:
  std::vector<hardware_interface::StateInterface::SharedPtr>
  on_export_state_interfaces_list() override
  {
    std::vector<hardware_interface::StateInterface::SharedPtr> interfaces;
    Names names = names_of({"/limited"});
    names.insert(names.begin(), {"state", "age"});
    for (const std::string & name : names) {
      interfaces.push_back(
        std::make_shared<hardware_interface::StateInterface>(get_node()->get_name(), name));
    }
    return interfaces;
  }
#endif
};

}  // namespace hodyn_controllers

PLUGINLIB_EXPORT_CLASS(
  hodyn_controllers::EffortController, controller_interface::ChainableControllerInterface)
