// The controller of a generated package beside its law, called directly with what it should be told.
//
// Reads positions of the two joints and of their motors (4 numbers); both rest, then move together.

#include <cmath>
#include <cstdio>
#include <deque>
#include <iostream>
#include <vector>

#include "allocations.hpp"
#include "hodyn_controllers/motion_trajectory.hpp"
#include "robot_dynamics.h"
#include "ros2_control.hpp"

namespace
{

constexpr std::int64_t kTick = 1000000;
constexpr std::size_t n = ROBOT_N_JOINTS;

}  // namespace

int main()
{
  double places[2 * n], torques[n] = {}, expected[n] = {};
  for (double & place : places) {
    std::cin >> place;
  }
  const auto controller = make_controller();
  auto & node = *controller->node;
  node.time = 1700000000000000000;
  node.doubles["ease_time"] = 0.0;
  const rclcpp_lifecycle::State state;
  const auto is_well = controller_interface::CallbackReturn::SUCCESS;
  if (controller->on_init() != is_well || controller->on_configure(state) != is_well) {
    return 1;
  }
  std::deque<hardware_interface::CommandInterface> commands;
  std::deque<hardware_interface::StateInterface> states;
  for (std::size_t j = 0; j < n; ++j) {
    commands.emplace_back(robot_joint_names[j], "effort", &torques[j]);
    controller->command_interfaces_.emplace_back(commands.back());
  }
  const auto names = controller->state_interface_configuration().names;
  for (std::size_t i = 0; i < 2 * n; ++i) {
    states.emplace_back(names[i], "", &places[i]);
    controller->state_interfaces_.emplace_back(states.back());
  }
  if (controller->on_activate(state) != is_well) {
    return 2;
  }
  hodyn_controllers::MotionTrajectory wanted(n);
  wanted.hold(places);
  robot_controller law;
  robot_controller_reset(&law);
  std::vector<double> desired(5 * n);
  double largest = 0.0, error = 0.0;
  for (int i = 0; i < 1000; ++i) {
    node.time += kTick;
    const std::int64_t at = node.time + hodyn_controllers::nanoseconds(ROBOT_LEAD);
    wanted.evaluate(at, desired.data());
    // The robot follows by itself.
    for (std::size_t j = 0; i >= 100 && j < n; ++j) {
      places[n + j] += desired[j] - places[j];
      places[j] = desired[j];
    }
    const long before = allocations;
    if (controller->update(rclcpp::Time(node.time), rclcpp::Duration(kTick)) !=
      controller_interface::return_type::OK || allocations != before)
    {
      return 3;
    }
    if (robot_controller_evaluate(
        &law, desired.data(), places, nullptr, places + n, nullptr, nullptr, 1e-3, expected))
    {
      return 4;
    }
    for (std::size_t j = 0; j < n; ++j) {
      error = std::fmax(error, std::fabs(torques[j] - expected[j]));
      largest = std::fmax(largest, std::fabs(torques[j]));
    }
    if (i == 100) {
      hodyn_msgs::msg::JointMotionTrajectory message;
      const std::vector<double> zero(2 * n, 0.0);
      message.header.stamp = rclcpp::Time(at + 20 * kTick);
      message.time_from_start = {0.0, 0.8};
      message.joint_names.assign({robot_joint_names[0], robot_joint_names[1]});
      message.position = {places[0], places[1], places[0] + 0.02, places[1] - 0.03};
      message.velocity = message.acceleration = message.jerk = message.snap = zero;
      wanted.begin(rclcpp::Time(message.header.stamp).nanoseconds());
      wanted.set(hodyn_controllers::Samples(message), {0, 1}, {0, 1});
      std::static_pointer_cast<rclcpp::Subscription<hodyn_msgs::msg::JointMotionTrajectory>>(
        node.subscriptions.at("~/joint_motion_trajectory"))->callback(message);
      if (!node.log.empty()) {
        return 5;
      }
    }
  }
  std::printf("%.17g %.17g %d\n", largest, error, law.reason);
  return 0;
}
