// A chainable controller around a control law that hodyn_ros has generated in C for one robot.

#ifndef HODYN_CONTROLLERS__TRACKING_CONTROLLER_HPP_
#define HODYN_CONTROLLERS__TRACKING_CONTROLLER_HPP_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hodyn_controllers/interfaces.hpp"
#include "hodyn_controllers/motion_trajectory.hpp"
#include "hodyn_controllers/tracking_controller_parameters.hpp"
#include "hodyn_controllers/triple_buffer.hpp"
#include "hodyn_msgs/msg/joint_motion_trajectory.hpp"
#include "std_srvs/srv/trigger.hpp"

namespace hodyn_controllers
{

/// Follows trajectories or references (position to snap) by a generated law.
///
/// Holds the robot where it is until there is something to follow. A robot that the law has
/// stopped, or whose references are lost, rests until it is released.
///
/// @tparam Kernel  Static members n, period and lead [s], is_elastic, joint(j),
///                 reason_name(reason), the type State, and of that reset, stop, release, reason,
///                 evaluate: see the header that is generated.
template<typename Kernel>
class TrackingController : public ReferenceController
{
  using CallbackReturn = controller_interface::CallbackReturn;
  using Configuration = controller_interface::InterfaceConfiguration;
  using Trajectory = hodyn_msgs::msg::JointMotionTrajectory;
  using DiagnosticArray = diagnostic_msgs::msg::DiagnosticArray;
  using DiagnosticStatus = diagnostic_msgs::msg::DiagnosticStatus;
  using Trigger = std_srvs::srv::Trigger;

public:
  CallbackReturn on_init() override
  {
    try {
      parameters_ = std::make_shared<tracking_controller::ParamListener>(get_node());
    } catch (const std::exception & error) {
      RCLCPP_ERROR(get_node()->get_logger(), "%s", error.what());
      return CallbackReturn::ERROR;
    }
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_configure(const rclcpp_lifecycle::State &) override
  {
    given_ = parameters_->get_params();
    const double rate = get_update_rate();  // Zero where it is not known.
    if (rate > 0.0 && std::abs(rate * Kernel::period - 1.0) > 0.01) {
      RCLCPP_ERROR(
        get_node()->get_logger(), "The update rate is %g Hz, and the law was generated for %g Hz.",
        rate, 1.0 / Kernel::period);
      return CallbackReturn::ERROR;
    }
    std::vector<std::string> joints;
    for (std::size_t j = 0; j < n; ++j) {
      joints.push_back(given_.prefix + Kernel::joint(j));
    }
    set_references(joints, {"position", "velocity", "acceleration", "jerk", "snap"});
    parts_ = std::make_shared<Parts>(joints, given_.start_tolerance);
    // Callbacks may still run in another thread when this controller is cleaned up.
    const auto parts = parts_;
    subscription_ = get_node()->template create_subscription<Trajectory>(
      given_.topic, rclcpp::QoS(1),
      [this, parts](const Trajectory & message) {receive(*parts, message);});
    service_ = get_node()->template create_service<Trigger>(
      "~/release",
      [parts](Trigger::Request::SharedPtr, Trigger::Response::SharedPtr response) {
        parts->release = true;
        response->success = true;
      });
    diagnostics_ = get_node()->template create_publisher<DiagnosticArray>(
      "/diagnostics", rclcpp::QoS(1));
    timer_ = get_node()->create_wall_timer(
      std::chrono::seconds(1), [this, parts]() {
        tell_what_is_left(parts->is_active);
        if (parts->is_active) {
          diagnostics_->publish(diagnostics(*parts));
        }
      });
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_activate(const rclcpp_lifecycle::State &) override
  {
    if (command_interfaces_.size() != n || state_interfaces_.size() != state_names().size()) {
      RCLCPP_ERROR(
        get_node()->get_logger(), "The hardware has %zu of %zu command interfaces and %zu of %zu "
        "state interfaces.", command_interfaces_.size(), n, state_interfaces_.size(),
        state_names().size());
      return CallbackReturn::ERROR;
    }
    Parts & parts = *parts_;
    measure(parts);
    if (!std::all_of(parts.q.begin(), parts.q.end(), [](double q) {return std::isfinite(q);})) {
      RCLCPP_ERROR(get_node()->get_logger(), "Measured positions are not finite.");
      return CallbackReturn::ERROR;
    }
    Kernel::reset(parts.law);
    parts.trajectories.take();  // What came before does not count.
    rest(parts);
    parts.failures = 0;
    parts.release = false;
    begin(parts);
    parts.is_active = true;
    forget_references();
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override
  {
    parts_->is_active = false;
    leave(given_.fallback == "hold" ? Fallback::hold : Fallback::zero);
    return CallbackReturn::SUCCESS;
  }

  CallbackReturn on_cleanup(const rclcpp_lifecycle::State &) override
  {
    timer_.reset();
    service_.reset();
    subscription_.reset();
    parts_.reset();
    return CallbackReturn::SUCCESS;
  }

  Configuration command_interface_configuration() const override
  {
    return individual(names_of({given_.command_interface}));
  }

  Configuration state_interface_configuration() const override
  {
    return individual(state_names());
  }

  controller_interface::return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override
  {
    Parts & parts = *parts_;
    note(time);
    measure(parts);
    want(parts, time.nanoseconds());
    const int status = Kernel::evaluate(
      parts.law, parts.desired.data(), parts.q.data(), parts.theta.data(), period.seconds(),
      parts.asked.data());
    parts.failures = status == 0 || status == kNoTime ? 0 : parts.failures + 1;
    fade(parts, period.seconds(), status == 0);
    write(parts);
    report(parts, time.nanoseconds(), status);
    return parts.failures < given_.max_failures ?
           controller_interface::return_type::OK : controller_interface::return_type::ERROR;
  }

protected:
  void take_messages() override
  {
    Parts & parts = *parts_;
    if (parts.trajectories.take() && Kernel::reason(parts.law) == 0) {
      parts.follows = true;
    }
  }

private:
  static constexpr std::size_t n = Kernel::n;
  static constexpr double kLongest = 5.0 * Kernel::period;  ///< Time between two cycles [s].
  static constexpr int kNoTime = 5;  ///< Status of a call without time elapsed: as before.

  struct Report
  {
    Nanoseconds at = 0;  ///< Time of what is wanted; zero: there was no tick yet.
    std::vector<double> wanted = std::vector<double>(kMotions * n, 0.0);
    bool follows = false;
    int reason = 0;
    int status = 0;
    bool is_unloaded = false;  ///< Motors are measured where the links are: springs carry nothing.
  };

  /// All that a configuration needs; made at once, so that nothing is left from the one before.
  struct Parts
  {
    Parts(const std::vector<std::string> & joints, double tolerance)
    : intake(joints, tolerance), trajectories(MotionTrajectory(n)), resting(n), reports(Report()),
      desired(kMotions * n, 0.0), q(n, 0.0), theta(n, 0.0), asked(n, 0.0), torque(n, 0.0),
      before(n, 0.0), difference(n, 0.0) {}

    typename Kernel::State law{};
    MotionIntake intake;
    TripleBuffer<MotionTrajectory> trajectories;
    MotionTrajectory resting;
    TripleBuffer<Report> reports;  ///< Read by callbacks of one group, one after the other.
    std::vector<double> desired, q, theta;
    std::vector<double> asked, torque;        ///< By the law, and what is written.
    std::vector<double> before, difference;   ///< At activation, and from there to the law.
    bool has_law = false;                     ///< Whether the law has given a torque since then.
    double since = 0.0;                       ///< Time since then [s].
    bool follows = false;  ///< The trajectory that came last, or references.
    int failures = 0;
    std::uint8_t told = DiagnosticStatus::OK;  ///< Level; of callbacks of one group, too.
    std::atomic<bool> release{false}, is_active{false};
    std::atomic<std::uint64_t> unwritten{0}, refused{0}, accepted{0};
  };

  std::vector<std::string> names_of(const std::vector<std::string> & interfaces) const
  {
    std::vector<std::string> names;
    for (const std::string & interface : interfaces) {
      for (const std::string & joint : joints_) {
        names.push_back(joint + "/" + interface);
      }
    }
    return names;
  }

  std::vector<std::string> state_names() const
  {
    return given_.motor_position_interface == given_.position_interface ?
           names_of({given_.position_interface}) :
           names_of({given_.position_interface, given_.motor_position_interface});
  }

  static Configuration individual(const std::vector<std::string> & names)
  {
    return {controller_interface::interface_configuration_type::INDIVIDUAL, names};
  }

  void measure(Parts & parts)
  {
    for (std::size_t j = 0; j < n; ++j) {
      parts.q[j] = value_of(state_interfaces_[j]);
      parts.theta[j] =
        state_interfaces_.size() > n ? value_of(state_interfaces_[n + j]) : parts.q[j];
    }
  }

  void write(Parts & parts)
  {
    for (std::size_t j = 0; j < n; ++j) {
      if (!put(command_interfaces_[j], parts.torque[j])) {
        ++parts.unwritten;
      }
    }
  }

  /// Begins from the torques that are there: a controller before this one may have left them.
  void begin(Parts & parts)
  {
    const bool is_same = goes_on(kLongest);
    for (std::size_t j = 0; j < n; ++j) {
      const double there = is_same ? parts.torque[j] : value_of(command_interfaces_[j]);
      parts.before[j] = std::isfinite(there) ? there : 0.0;
    }
    parts.torque = parts.asked = parts.before;
    parts.has_law = false;
    if (is_same) {
      write(parts);
    }
  }

  /// Sets torques that go over from those at activation to those of the law.
  ///
  /// What the law adds to its first torques acts at once, so it holds the robot meanwhile.
  void fade(Parts & parts, double period, bool is_given)
  {
    parts.since += std::clamp(period, 0.0, kLongest);
    if (is_given && !parts.has_law) {
      parts.has_law = true;
      parts.since = 0.0;
      for (std::size_t j = 0; j < n; ++j) {
        parts.difference[j] = parts.before[j] - parts.asked[j];
      }
    }
    const double share = parts.has_law ? share_left(parts.since, given_.ease_time) : 0.0;
    for (std::size_t j = 0; j < n; ++j) {
      const auto [low, high] = std::minmax(parts.before[j], parts.asked[j]);
      parts.torque[j] = share > 0.0 ?
        std::clamp(parts.asked[j] + share * parts.difference[j], low, high) : parts.asked[j];
    }
  }

  /// Nothing is to be followed: the robot rests where it is.
  static void rest(Parts & parts)
  {
    parts.follows = false;
    parts.resting.hold(parts.q.data());
  }

  /// Sets what is wanted at a tick.
  void want(Parts & parts, Nanoseconds now)
  {
    const bool is_to_go_on = parts.release.exchange(false);
    if (Kernel::reason(parts.law) != 0) {
      rest(parts);  // It may be led elsewhere meanwhile.
      if (is_to_go_on) {
        Kernel::release(parts.law);  // As long as it moves it refuses.
      }
    }
    if (is_in_chained_mode()) {
      refer(parts);
    } else {
      (parts.follows ? parts.trajectories.front() : parts.resting).evaluate(
        now + nanoseconds(Kernel::lead), parts.desired.data());
    }
  }

  /// Takes references; the law stops the robot where there are none any more.
  void refer(Parts & parts)
  {
    const std::vector<double> & values = read_references();
    const bool is_finite =
      std::all_of(values.begin(), values.end(), [](double x) {return std::isfinite(x);});
    if (is_finite && Kernel::reason(parts.law) == 0) {
      parts.desired = values;
      parts.follows = true;
    } else {
      if (parts.follows) {
        Kernel::stop(parts.law);
        rest(parts);
      }
      parts.resting.evaluate(0, parts.desired.data());
    }
  }

  static void report(Parts & parts, Nanoseconds now, int status)
  {
    Report & report = parts.reports.back();
    report.at = now + nanoseconds(Kernel::lead);
    report.wanted = parts.desired;
    report.follows = parts.follows;
    report.reason = Kernel::reason(parts.law);
    report.status = status;
    report.is_unloaded = Kernel::is_elastic && parts.theta == parts.q;
    parts.reports.publish();
  }

  /// Why nothing can be followed, by the newest report; empty: it can.
  static std::string standing_fault(Parts & parts)
  {
    parts.reports.take();
    const Report & report = parts.reports.front();
    if (!parts.is_active || report.at == 0) {
      return "the controller is not active";
    }
    return report.reason == 0 ? "" :
           std::string("the robot has been stopped (") + Kernel::reason_name(report.reason) +
           "); call ~/release";
  }

  void receive(Parts & parts, const Trajectory & message)
  {
    if (is_in_chained_mode()) {
      return;
    }
    const MotionMessage motion{
      rclcpp::Time(message.header.stamp).nanoseconds(), message.joint_names,
      message.time_from_start,
      {&message.position, &message.velocity, &message.acceleration, &message.jerk, &message.snap}};
    std::string fault = standing_fault(parts);
    if (fault.empty()) {
      fault = parts.intake.read(motion, parts.trajectories.back());
    }
    if (fault.empty()) {
      fault = standing_fault(parts);  // Reading has taken time: from here on, it counts.
    }
    if (fault.empty()) {
      const Report & report = parts.reports.front();
      fault = parts.intake.begin(
        motion, get_node()->now().nanoseconds(), report.at, report.wanted.data(),
        parts.trajectories.back());
    }
    if (fault.empty()) {
      ++parts.accepted;
      parts.trajectories.publish();
    } else {
      ++parts.refused;
      RCLCPP_ERROR(get_node()->get_logger(), "A trajectory is refused: %s.", fault.c_str());
    }
  }

  DiagnosticArray diagnostics(Parts & parts)
  {
    parts.reports.take();
    const Report & report = parts.reports.front();
    DiagnosticStatus status;
    status.name = std::string(get_node()->get_name()) + ": law";
    status.hardware_id = get_node()->get_name();
    const bool is_well = report.reason == 0 && report.status == 0;
    status.level = is_well ? DiagnosticStatus::OK : DiagnosticStatus::ERROR;
    status.message = report.reason != 0 ?
      std::string("stopped: ") + Kernel::reason_name(report.reason) :
      report.status != 0 ? "no torque" : report.follows ? "following" : "holding";
    if (is_well && report.is_unloaded) {
      status.level = DiagnosticStatus::WARN;
      status.message += ", but motors are measured exactly where the links are: the springs carry "
        "nothing, not even the weight; look at motor_position_interface and at the hardware";
    }
    if (status.level != parts.told && status.level == DiagnosticStatus::WARN) {
      RCLCPP_WARN(get_node()->get_logger(), "%s.", status.message.c_str());
    }
    parts.told = status.level;
    status.values = {
      key_value("status of the law", std::to_string(report.status)),
      key_value("accepted", std::to_string(parts.accepted)),
      key_value("refused", std::to_string(parts.refused)),
      key_value("torques not taken by the hardware", std::to_string(parts.unwritten))};
    DiagnosticArray array;
    array.header.stamp = get_node()->now();
    array.status.push_back(std::move(status));
    return array;
  }

  std::shared_ptr<tracking_controller::ParamListener> parameters_;
  tracking_controller::Params given_;
  std::shared_ptr<Parts> parts_;
  typename rclcpp::Subscription<Trajectory>::SharedPtr subscription_;
  typename rclcpp::Service<Trigger>::SharedPtr service_;
  typename rclcpp::Publisher<DiagnosticArray>::SharedPtr diagnostics_;
  rclcpp::TimerBase::SharedPtr timer_;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__TRACKING_CONTROLLER_HPP_
