// Takes TrackingController through its life, with a law that only notes what it is asked for.

#include <cmath>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "hodyn_controllers/tracking_controller.hpp"
#include "life.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace
{

using controller_interface::CallbackReturn;
using controller_interface::return_type;
using hodyn_msgs::msg::JointMotionTrajectory;

/// What the law was asked for last, and what it shall answer.
struct Law
{
  int reason = 0, status = 0;
  bool moves = false;
  double desired[10] = {}, theta[2] = {};
};

Law * law = nullptr;

struct Kernel
{
  struct State { Law law; };
  static constexpr std::size_t n = 2;
  static constexpr double period = 0.001, lead = 0.002;
  static constexpr bool is_elastic = true;
  static const char * joint(std::size_t j) {return j ? "b" : "a";}
  static const char * reason_name(int reason) {return reason == 9 ? "asked" : "position";}
  static void reset(State & state) {state.law = Law(); law = &state.law;}
  static void stop(State & state) {state.law.reason = 9;}
  static bool release(State & state)
  {
    state.law.reason = state.law.moves ? state.law.reason : 0;
    return state.law.reason == 0;
  }
  static int reason(const State & state) {return state.law.reason;}
  static int evaluate(
    State & state, const double * desired, const double *, const double * theta, double,
    double * torque)
  {
    std::copy(desired, desired + 10, state.law.desired);
    std::copy(theta, theta + 2, state.law.theta);
    if (state.law.status == 0) {
      torque[0] = 1.0;
      torque[1] = -2.0;
    }
    return state.law.status;
  }
};

struct Robot : Life
{
  Robot()
  {
    CHECK(controller->on_init() == CallbackReturn::SUCCESS);
  }

  CallbackReturn activate(std::size_t states = 4)
  {
    controller->command_interfaces_.clear();
    controller->state_interfaces_.clear();
    commands.clear();
    measured.clear();
    for (const std::string & name : controller->command_interface_configuration().names) {
      const std::size_t i = commands.size();
      commands.emplace_back(name.substr(0, 1), name.substr(2), &torques[i]);
      controller->command_interfaces_.emplace_back(commands.back());
    }
    for (const std::string & name : controller->state_interface_configuration().names) {
      const std::size_t i = measured.size();
      if (i < states) {
        measured.emplace_back(name.substr(0, 1), name.substr(2), &positions[i]);
        controller->state_interfaces_.emplace_back(measured.back());
      }
    }
    return controller->on_activate(kState);
  }

  return_type tick(int count = 1)
  {
    return_type result = return_type::OK;
    for (int i = 0; i < count && result == return_type::OK; ++i) {
      node.time += kTick;
      const long before = allocations;
      result = controller->update(rclcpp::Time(node.time), rclcpp::Duration(kTick));
      CHECK(allocations == before);
    }
    return result;
  }

  /// From rest to rest in 0.1 s, joints in the other order.
  JointMotionTrajectory motion(double a, double b) const
  {
    JointMotionTrajectory made;
    made.joint_names = {"b", "a"};
    made.time_from_start = {0.0, 0.1};
    made.position = {positions[1], positions[0], b, a};
    made.velocity = made.acceleration = made.jerk = made.snap = {0.0, 0.0, 0.0, 0.0};
    return made;
  }

  void send(const JointMotionTrajectory & message)
  {
    Life::send(message, "~/joint_motion_trajectory");
  }

  /// Whether a trajectory is refused with words.
  bool refuses(const JointMotionTrajectory & message, const std::string & words)
  {
    node.log.clear();
    send(message);
    return node.log.size() == 1 && node.log[0].find(words) != std::string::npos;
  }

  void release()
  {
    auto response = std::make_shared<std_srvs::srv::Trigger::Response>();
    std::static_pointer_cast<rclcpp::Service<std_srvs::srv::Trigger>>(
      node.services.at("~/release"))->callback(nullptr, response);
    CHECK(response->success);
  }

  double torques[2] = {NAN, NAN}, positions[4] = {0.5, -0.5, 0.6, -0.6};
  std::deque<hardware_interface::CommandInterface> commands;
  std::deque<hardware_interface::StateInterface> measured;
};

void begins_only_where_it_can()
{
  Robot robot;
  robot.controller->update_rate = 500;
  CHECK(robot.configure() == CallbackReturn::ERROR);
  CHECK(robot.node.log.back() ==
    "The update rate is 500 Hz, and the law was generated for 1000 Hz.");
  robot.controller->update_rate = 1000;
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  CHECK(robot.activate(3) == CallbackReturn::ERROR);
  robot.positions[1] = NAN;
  CHECK(robot.activate() == CallbackReturn::ERROR);
  CHECK(robot.node.log.back() == "Measured positions are not finite.");
  robot.positions[1] = -0.5;
  CHECK(robot.refuses(robot.motion(1.0, 1.0), "not active"));
  CHECK(robot.activate() == CallbackReturn::SUCCESS);
  CHECK(robot.told() == "holding");
  CHECK(robot.tick() == return_type::OK);
  CHECK(law->desired[0] == 0.5 && law->desired[1] == -0.5 && law->desired[2] == 0.0);
  CHECK(law->theta[0] == 0.6 && law->theta[1] == -0.6);
  CHECK(robot.tick(200) == return_type::OK);
  CHECK(robot.torques[0] == 1.0 && robot.torques[1] == -2.0);
  CHECK(robot.controller->on_deactivate(kState) == CallbackReturn::SUCCESS);
  CHECK(robot.torques[0] == 0.0 && robot.torques[1] == 0.0);
  CHECK(robot.controller->on_cleanup(kState) == CallbackReturn::SUCCESS);
}

void follows_trajectories()
{
  Robot robot;
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  CHECK(robot.activate() == CallbackReturn::SUCCESS);
  robot.tick(10);
  auto wrong = robot.motion(0.7, -0.5);
  wrong.joint_names[0] = "c";
  CHECK(robot.refuses(wrong, "names a joint that is not of this robot: c"));
  wrong.joint_names = {"a", "a"};
  CHECK(robot.refuses(wrong, "names a joint twice: a"));
  wrong.joint_names = {"a"};
  CHECK(robot.refuses(wrong, "lacks a joint that this controller drives: b"));
  wrong = robot.motion(0.7, -0.5);
  wrong.velocity[3] = 0.1;
  CHECK(robot.refuses(wrong, "end at rest"));
  wrong = robot.motion(0.7, -0.5);
  wrong.snap[0] = NAN;
  CHECK(robot.refuses(wrong, "not finite"));
  wrong = robot.motion(0.7, -0.5);
  wrong.jerk.clear();
  CHECK(robot.refuses(wrong, "must have a value"));
  wrong = robot.motion(0.7, -0.5);
  wrong.time_from_start[1] = 0.0;
  CHECK(robot.refuses(wrong, "increase"));
  wrong = robot.motion(0.7, -0.5);
  wrong.position[1] = 0.52;
  CHECK(robot.refuses(wrong, "position of a is 0.52"));
  wrong = robot.motion(0.7, -0.5);
  wrong.header.stamp = rclcpp::Time(robot.node.time - 200 * kTick);
  CHECK(robot.refuses(wrong, "over"));
  robot.send(robot.motion(0.7, -0.5));
  robot.tick(55);
  CHECK(robot.told() == "following");
  // It began 5 ms later than what was wanted then; now half of the way is wanted.
  CHECK(std::abs(law->desired[0] - 0.6) < 1e-9 && law->desired[1] == -0.5);
  CHECK(law->desired[2] > 4.0 && std::abs(law->desired[4]) < 1e-6);
  wrong = robot.motion(0.7, -0.5);  // Would begin at rest, and 5 ms later the robot is elsewhere.
  wrong.position[1] = 0.6;
  CHECK(robot.refuses(wrong, "position of a is 0.6"));
  robot.tick(100);
  CHECK(std::abs(law->desired[0] - 0.7) < 1e-12 && law->desired[2] == 0.0);
}

/// Another goal, sent ahead while it moves: the motion goes on until the first sample of the next.
void replaces_a_motion_that_is_in_progress()
{
  Robot robot;
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  CHECK(robot.activate() == CallbackReturn::SUCCESS);
  robot.tick(10);
  auto first = robot.motion(0.7, -0.5);
  const std::int64_t start = robot.node.time + 10 * kTick, joint = start + 60 * kTick;
  first.header.stamp = rclcpp::Time(start);
  robot.send(first);
  hodyn_controllers::MotionTrajectory motion(2);
  motion.set(hodyn_controllers::Samples(first), {0, 1}, {1, 0});
  motion.begin(start);
  double there[10], before[10];
  motion.evaluate(joint, there);
  robot.tick(30);
  auto next = robot.motion(0.8, -0.5);
  next.header.stamp = rclcpp::Time(joint);
  const auto set = [&there](std::vector<double> & values, std::size_t k) {
      values[1] = there[2 * k];
      values[0] = there[2 * k + 1];
    };
  set(next.position, 0);
  set(next.velocity, 1);
  set(next.acceleration, 2);
  set(next.jerk, 3);
  set(next.snap, 4);
  robot.send(next);
  CHECK(robot.node.log.empty());
  for (int i = 0; i < 200; ++i) {
    robot.tick();
    const std::int64_t at = robot.node.time + 2 * kTick;  // The lead of the law.
    motion.evaluate(std::min(at, joint), before);
    for (std::size_t k = 0; at <= joint && k < 10; ++k) {
      CHECK(std::abs(law->desired[k] - before[k]) < 1e-6 * (1.0 + std::abs(before[k])));
    }
    CHECK(law->desired[0] < 0.8 + 1e-9 && law->desired[1] == -0.5);
  }
  CHECK(std::abs(law->desired[0] - 0.8) < 1e-9 && law->desired[2] == 0.0);
}

/// An update that comes late in its cycle gets the positions of its beginning, and its period.
void a_late_update_does_not_jump_ahead_of_what_is_measured()
{
  Robot robot;
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  CHECK(robot.activate() == CallbackReturn::SUCCESS);
  robot.tick(10);
  robot.send(robot.motion(0.7, -0.5));
  robot.tick(45);
  const auto update = [&robot](std::int64_t late, std::int64_t period) {
      const double before = law->desired[0];
      robot.controller->update(rclcpp::Time(robot.node.time + late), rclcpp::Duration(period));
      return law->desired[0] - before;
    };
  robot.node.time += kTick;
  const double step = update(0, kTick);
  CHECK(step > 0.004);  // In a cycle.
  robot.node.time += kTick;
  CHECK(update(7 * kTick, kTick) < 1.1 * step);  // It accelerates.
  robot.node.time += 8 * kTick;
  const double next = update(0, 8 * kTick);
  CHECK(next > 7.5 * step && next < 10.0 * step);
  robot.node.time += kTick + std::int64_t{3600000000000};  // The clock is set.
  update(0, kTick);
  CHECK(std::abs(law->desired[0] - 0.7) < 1e-9);
}

/// A trajectory agrees with the motion of this activation, not with that of the one before.
void forgets_the_motion_of_the_activation_before()
{
  Robot robot;
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  CHECK(robot.activate() == CallbackReturn::SUCCESS);
  robot.tick(10);
  robot.send(robot.motion(0.7, -0.5));
  robot.tick(50);
  CHECK(robot.controller->on_deactivate(kState) == CallbackReturn::SUCCESS);
  CHECK(robot.activate() == CallbackReturn::SUCCESS);
  CHECK(robot.refuses(robot.motion(0.7, -0.5), "not active"));  // There was no tick yet.
  robot.tick();
  robot.send(robot.motion(0.7, -0.5));
  robot.tick(20);
  CHECK(robot.told() == "following");
}

void stops_and_goes_on()
{
  Robot robot;
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  CHECK(robot.activate() == CallbackReturn::SUCCESS);
  robot.tick(10);
  robot.send(robot.motion(0.7, -0.5));
  robot.tick(50);
  law->reason = 1;
  robot.positions[0] = 0.65;
  robot.tick(2);
  CHECK(robot.told() == "stopped: position");
  CHECK(robot.node.log.size() == 1 && robot.node.log[0] == "stopped: position");
  CHECK(law->desired[0] == 0.65 && law->desired[2] == 0.0);
  CHECK(robot.refuses(robot.motion(0.7, -0.5), "stopped (position)"));
  law->moves = true;
  robot.release();
  robot.tick();
  CHECK(law->reason == 1);
  law->moves = false;
  robot.tick();
  CHECK(law->reason == 1);  // Asked once, it tries once.
  robot.release();
  robot.tick();
  CHECK(law->reason == 0 && robot.told() == "holding");
  robot.tick(100);
  law->status = 2;
  CHECK(robot.tick(9) == return_type::OK);
  CHECK(robot.torques[0] == 1.0 && robot.told() == "no torque");
  CHECK(robot.tick() == return_type::ERROR);
  law->status = 5;
  CHECK(robot.tick(20) == return_type::OK);
}

void follows_references()
{
  Robot robot;
  robot.node.strings["motor_position_interface"] = "position";
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  robot.controller->is_chained = true;
  CHECK(robot.activate(2) == CallbackReturn::SUCCESS);
  CHECK(robot.references.size() == 10);
  robot.tick(5);
  CHECK(law->reason == 0 && law->desired[0] == 0.5 && law->theta[0] == 0.5);
  for (std::size_t i = 0; i < 10; ++i) {
    robot.refer(i, static_cast<double>(i));
  }
  robot.tick();
  CHECK(law->desired[9] == 9.0 && robot.told().find("following, but motors are") == 0);
  robot.refer(4, NAN);
  robot.tick();
  CHECK(law->reason == 9 && robot.told() == "stopped: asked");
  robot.refer(4, 4.0);
  robot.tick(2);
  CHECK(law->reason == 9 && law->desired[0] == 0.5);
  robot.release();
  robot.tick();
  CHECK(law->reason == 0 && law->desired[4] == 4.0);
}

void finds_motors_that_are_joints_of_their_own()
{
  Robot robot;
  robot.node.strings["motor_suffix"] = "_motor";
  robot.node.strings["motor_position_interface"] = "position";
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  using Names = std::vector<std::string>;
  CHECK((robot.controller->command_interface_configuration().names ==
    Names{"a_motor/effort", "b_motor/effort"}));
  CHECK((robot.controller->state_interface_configuration().names ==
    Names{"a/position", "b/position", "a_motor/position", "b_motor/position"}));
  CHECK(robot.reference_name(0) == "controller/a/position");
}

/// Torques are those that are there at first, and go over to those of the law.
void begins_without_a_step()
{
  Robot robot;
  robot.node.doubles["ease_time"] = 0.05;
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  robot.torques[0] = 3.0;  // Of the controller before; b has none.
  CHECK(robot.activate() == CallbackReturn::SUCCESS);
  law->status = 2;
  robot.tick(3);
  CHECK(robot.torques[0] == 3.0 && robot.torques[1] == 0.0);
  law->status = 0;
  double largest = 0.0;
  for (int i = 0; i < 60; ++i) {
    const double a = robot.torques[0], b = robot.torques[1];
    robot.tick();
    largest = std::max({largest, std::abs(robot.torques[0] - a), std::abs(robot.torques[1] - b)});
    CHECK(robot.torques[0] >= 1.0 && robot.torques[0] <= 3.0);
  }
  // A polynomial of degree 5 over 50 ticks, and 2 N m: at most 1.875 times their share.
  CHECK(largest > 0.05 && largest < 0.08);
  CHECK(robot.torques[0] == 1.0 && robot.torques[1] == -2.0);
}

/// The service thread changes the mode, and the cycles of the hardware go on meanwhile.
void changes_its_mode_while_the_hardware_writes()
{
  Robot robot;
  robot.node.strings["fallback"] = "hold";
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  CHECK(robot.activate() == CallbackReturn::SUCCESS);
  robot.tick(200);
  for (int i = 0; i < 64; ++i) {
    CHECK(robot.controller->on_deactivate(kState) == CallbackReturn::SUCCESS);
    CHECK(robot.torques[0] == 1.0 && robot.torques[1] == -2.0);
    robot.node.time += i % 9 * kTick;
    robot.controller->is_chained = !robot.controller->is_chained;
    CHECK(robot.activate() == CallbackReturn::SUCCESS);
    CHECK(robot.torques[0] == 1.0 && robot.torques[1] == -2.0);
    robot.tick(3);
    CHECK(robot.torques[0] == 1.0 && robot.torques[1] == -2.0);
  }
}

void says_that_springs_carry_nothing()
{
  for (const bool is_blind : {false, true}) {
    Robot robot;
    robot.positions[2] = is_blind ? robot.positions[0] : 0.6;
    robot.positions[3] = is_blind ? robot.positions[1] : -0.6;
    CHECK(robot.configure() == CallbackReturn::SUCCESS);
    CHECK(robot.activate() == CallbackReturn::SUCCESS);
    robot.tick();
    CHECK((robot.told().find("holding, but motors are measured exactly where the links are") == 0)
      == is_blind);
    robot.told();
    CHECK(robot.node.log.size() == std::size_t{is_blind});  // Once.
  }
}

}  // namespace

class Mocked : public hodyn_controllers::TrackingController<Kernel> {};

PLUGINLIB_EXPORT_CLASS(Mocked, controller_interface::ChainableControllerInterface)

int main()
{
  begins_only_where_it_can();
  follows_trajectories();
  replaces_a_motion_that_is_in_progress();
  a_late_update_does_not_jump_ahead_of_what_is_measured();
  forgets_the_motion_of_the_activation_before();
  stops_and_goes_on();
  follows_references();
  finds_motors_that_are_joints_of_their_own();
  begins_without_a_step();
  changes_its_mode_while_the_hardware_writes();
  says_that_springs_carry_nothing();
  std::printf(failures ? "%d failures\n" : "correct\n", failures);
  return failures != 0;
}
