// A chainable controller around a control law that hodyn_ros has generated in C for one robot.

#ifndef HODYN_CONTROLLERS__TRACKING_CONTROLLER_HPP_
#define HODYN_CONTROLLERS__TRACKING_CONTROLLER_HPP_

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "hodyn_controllers/controller.hpp"
#include "hodyn_controllers/effort_follower.hpp"
#include "hodyn_controllers/motion_trajectory.hpp"
#include "hodyn_controllers/tracking_controller_parameters.hpp"
#include "hodyn_controllers/triple_buffer.hpp"
#include "hodyn_msgs/msg/joint_motion_trajectory.hpp"
#include "std_srvs/srv/trigger.hpp"

namespace hodyn_controllers
{

/// A law that follows trajectories or references (position to snap); see Controller.
template<typename Kernel>
class TrackingCore : public Shared
{
  static constexpr Index n = Kernel::n;
  static constexpr double kLongest = 5.0 * Kernel::period;  ///< Time between two cycles [s].
  static constexpr double kLatest = 0.1;   ///< An update in its cycle; otherwise time jumped [s].
  static constexpr int kNoTime = 5;  ///< Status of a call without time elapsed: as before.

public:
  using Message = hodyn_msgs::msg::JointMotionTrajectory;
  using Parameters = tracking_controller::ParamListener;
  using Params = tracking_controller::Params;
  static const char * subject() {return "law";}
  static const char * commanded() {return "torques";}
  static rclcpp::QoS qos() {return rclcpp::QoS(1);}
  static double longest() {return kLongest;}

  static Names joints(const Params & given)
  {
    Names names;
    for (Index j = 0; j < n; ++j) {
      names.push_back(given.prefix + Kernel::joint(j));
    }
    return names;
  }

  static std::string command(const Params & given)
  {
    return given.motor_suffix + "/" + given.command_interface;
  }

  /// Links, then motors, unless these are measured by the same interface.
  static Names measured(const Params & given)
  {
    const std::string link = "/" + given.position_interface;
    const std::string motor = given.motor_suffix + "/" + given.motor_position_interface;
    return motor == link ? Names{link} : Names{link, motor};
  }

  static Names references()
  {
    return {"/position", "/velocity", "/acceleration", "/jerk", "/snap"};
  }

  TrackingCore(const Params & given, const Names & joints, unsigned int rate)
  : ease_time_(given.ease_time), max_failures_(given.max_failures),
    intake_(joints, given.start_tolerance)
  {
    if (rate > 0 && std::abs(rate * Kernel::period - 1.0) > 0.01) {
      std::ostringstream said;
      said << "The update rate is " << rate << " Hz, and the law was generated for "
           << 1.0 / Kernel::period << " Hz.";
      throw std::runtime_error(said.str());
    }
  }

  const Values & commands() const {return torque_;}

  void begin(const Values & before, const Values & measured)
  {
    if (!are_finite(measured.data(), n)) {
      throw std::runtime_error("Measured positions are not finite.");
    }
    Kernel::reset(law_);
    trajectories_.take();  // What came before does not count.
    rest(measured.data());
    Report & report = reports_.back();
    report.at = 0;
    report.follows = false;
    report.reason = report.status = 0;
    reports_.publish();
    torque_ = asked_ = before_ = before;
    has_law_ = false;
    failures_ = 0;
    release_ = false;
  }

  /// Lets a robot that was stopped go on, if it rests at the next update.
  void release() {release_ = true;}

  void take()
  {
    if (trajectories_.take() && Kernel::reason(law_) == 0) {
      follows_ = true;
    }
  }

  bool update(const Tick & tick)
  {
    const double * q = tick.measured.data();
    const double * theta = tick.measured.size() > n ? q + n : q;
    const Nanoseconds at = measured_at(tick) + nanoseconds(Kernel::lead);
    want(tick, at);
    const int status =
      Kernel::evaluate(law_, desired_.data(), q, theta, tick.period, asked_.data());
    failures_ = status == 0 || status == kNoTime ? 0 : failures_ + 1;
    fade(tick.period, status == 0);
    Report & report = reports_.back();
    report.at = at;
    report.wanted = desired_;
    report.follows = follows_;
    report.reason = Kernel::reason(law_);
    report.status = status;
    report.is_unloaded = Kernel::is_elastic && std::equal(q, q + n, theta);
    reports_.publish();
    return failures_ < max_failures_;
  }

  void receive(const Message & message, rclcpp_lifecycle::LifecycleNode & node)
  {
    std::string fault = standing_fault();
    if (fault.empty()) {
      fault = intake_.read(message, trajectories_.back());
    }
    if (fault.empty()) {
      fault = standing_fault();  // Reading has taken time: from here on, it counts.
    }
    if (fault.empty()) {
      const Report & report = reports_.front();
      fault = intake_.begin(
        message, node.now().nanoseconds(), report.at, report.wanted, report.follows,
        trajectories_.back());
    }
    if (count(fault.empty())) {
      trajectories_.publish();
    } else {
      RCLCPP_ERROR(node.get_logger(), "A trajectory is refused: %s.", fault.c_str());
    }
  }

  Remark report(DiagnosticStatus & status)
  {
    reports_.take();
    const Report & report = reports_.front();
    if (report.reason != 0 || report.status != 0) {
      status.level = DiagnosticStatus::ERROR;
      status.message = report.reason != 0 ?
        std::string("stopped: ") + Kernel::reason_name(report.reason) : "no torque";
    } else {
      status.level = report.is_unloaded ? DiagnosticStatus::WARN : DiagnosticStatus::OK;
      status.message = report.follows ? "following" : "holding";
    }
    if (status.level == DiagnosticStatus::WARN) {
      status.message += ", but motors are measured exactly where the links are: the springs carry "
        "nothing, not even the weight; look at motor_position_interface and at the hardware";
    }
    add(status, "status of the law", std::to_string(report.status));
    return {0, status.level, status.level != DiagnosticStatus::OK};
  }

private:
  struct Report
  {
    Nanoseconds at = 0;  ///< Time of what is wanted; zero: there was no tick yet.
    Values wanted = Values(kMotions * n, 0.0);
    bool follows = false;
    int reason = 0;
    int status = 0;
    bool is_unloaded = false;  ///< Motors are measured where the links are: springs carry nothing.
  };

  /// Time of the measurements: periods are those of cycles, in which an update may come late.
  ///
  /// A motion that jumped ahead of what is measured by that would be a kick. The clock of the
  /// periods may be another one, so theirs gives way slowly, and to a jump of the time.
  Nanoseconds measured_at(const Tick & tick)
  {
    const double late = seconds(tick.now - measured_at_) - tick.period;
    measured_at_ = late > 0.01 * tick.period && late < kLatest ?
      measured_at_ + nanoseconds(1.01 * tick.period) : tick.now;
    return measured_at_;
  }

  /// Nothing is to be followed: the robot rests where it is.
  void rest(const double * q)
  {
    follows_ = false;
    resting_.hold(q);
  }

  /// Sets what is wanted at a time.
  void want(const Tick & tick, Nanoseconds at)
  {
    const bool is_to_go_on = release_.exchange(false);
    if (Kernel::reason(law_) != 0) {
      rest(tick.measured.data());  // It may be led elsewhere meanwhile.
      if (is_to_go_on) {
        Kernel::release(law_);  // As long as it moves it refuses.
      }
    }
    if (!tick.references) {
      (follows_ ? trajectories_.front() : resting_).evaluate(at, desired_.data());
    } else if (are_finite(*tick.references) && Kernel::reason(law_) == 0) {
      desired_ = *tick.references;
      follows_ = true;
    } else {
      if (follows_) {  // The law stops a robot whose references are lost.
        Kernel::stop(law_);
        rest(tick.measured.data());
      }
      resting_.evaluate(at, desired_.data());
    }
  }

  /// Sets torques that go over from those at activation to those of the law.
  ///
  /// What the law adds to its first torques acts at once, so it holds the robot meanwhile.
  void fade(double period, bool is_given)
  {
    since_ += std::clamp(period, 0.0, kLongest);
    if (is_given && !has_law_) {
      has_law_ = true;
      since_ = 0.0;
      for (Index j = 0; j < n; ++j) {
        difference_[j] = before_[j] - asked_[j];
      }
    }
    const double share = has_law_ ? effort_rule_share(since_, ease_time_) : 0.0;
    for (Index j = 0; j < n; ++j) {
      const auto [low, high] = std::minmax(before_[j], asked_[j]);
      torque_[j] = share > 0.0 ?
        std::clamp(asked_[j] + share * difference_[j], low, high) : asked_[j];
    }
  }

  /// Why nothing can be followed, by the newest report; empty: it can.
  std::string standing_fault()
  {
    reports_.take();
    const Report & report = reports_.front();
    if (!is_active || report.at == 0) {
      return "the controller is not active";
    }
    return report.reason == 0 ? "" :
           std::string("the robot has been stopped (") + Kernel::reason_name(report.reason) +
           "); call ~/release";
  }

  const double ease_time_;
  const std::int64_t max_failures_;
  typename Kernel::State law_{};
  MotionIntake intake_;
  TripleBuffer<MotionTrajectory> trajectories_{MotionTrajectory(n)};
  MotionTrajectory resting_{n};
  TripleBuffer<Report> reports_{Report()};  ///< Read by callbacks of one group.
  Values desired_ = Values(kMotions * n, 0.0);
  Values asked_ = Values(n, 0.0), torque_ = asked_;  ///< And written.
  Values before_ = asked_, difference_ = asked_;  ///< At activation, and to the law.
  Nanoseconds measured_at_ = 0;
  bool has_law_ = false;   ///< Whether the law has given a torque since then.
  double since_ = 0.0;     ///< Time since then [s].
  bool follows_ = false;   ///< The trajectory that came last, or references.
  std::int64_t failures_ = 0;
  std::atomic<bool> release_{false};
};

/// Follows trajectories or references (position to snap) by a generated law.
///
/// Holds the robot where it is until there is something to follow. A robot that the law has
/// stopped, or whose references are lost, rests until it is released.
///
/// @tparam Kernel  Static members n, period and lead [s], is_elastic, joint(j),
///                 reason_name(reason), the type State, and of that reset, stop, release, reason,
///                 evaluate: see the header that is generated.
template<typename Kernel>
class TrackingController : public Controller<TrackingCore<Kernel>>
{
  using Trigger = std_srvs::srv::Trigger;

public:
  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State & state) override
  {
    const auto result = Controller<TrackingCore<Kernel>>::on_configure(state);
    if (result == controller_interface::CallbackReturn::SUCCESS) {
      this->entities_.push_back(
        this->get_node()->template create_service<Trigger>(
          "~/release",
          [core = this->core_](Trigger::Request::SharedPtr, Trigger::Response::SharedPtr response) {
            core->release();
            response->success = true;
          }));
    }
    return result;
  }
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__TRACKING_CONTROLLER_HPP_
