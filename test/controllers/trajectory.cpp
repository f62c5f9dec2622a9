// Reads samples of a motion and times, and writes the motion at these times, or why it is refused.
//
//   N_JOINTS N_SAMPLES, times [s], positions, velocities, ... (N_SAMPLES * N_JOINTS each), and times [ns]

#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "hodyn_controllers/motion_trajectory.hpp"
#include "stand_ins/ros2_control.hpp"

int main()
{
  std::size_t n = 0, count = 0;
  std::cin >> n >> count;
  std::vector<double> times(count);
  std::vector<double> values[hodyn_controllers::kMotions];
  for (double & time : times) {
    std::cin >> time;
  }
  for (auto & of_order : values) {
    of_order.resize(n * count);
    for (double & value : of_order) {
      std::cin >> value;
    }
  }
  std::vector<std::string> joints, reversed;
  for (std::size_t j = 0; j < n; ++j) {
    joints.push_back(std::to_string(j));
    reversed.insert(reversed.begin(), joints.back());
  }
  hodyn_controllers::MotionTrajectory trajectory(n);
  hodyn_controllers::MotionIntake intake(reversed, HUGE_VAL);
  const std::vector<double> wanted(hodyn_controllers::kMotions * n);
  hodyn_msgs::msg::JointMotionTrajectory message;
  message.header.stamp.nanosec = 1;
  message.joint_names = joints;
  message.time_from_start = times;
  message.position = values[0];
  message.velocity = values[1];
  message.acceleration = values[2];
  message.jerk = values[3];
  message.snap = values[4];
  std::string fault = intake.read(message, trajectory);
  fault = fault.empty() ? intake.begin(message, 1, 1, wanted, false, trajectory) : fault;
  if (!fault.empty()) {
    std::printf("%s\n", fault.c_str());
    return 2;
  }
  std::vector<double> motion(hodyn_controllers::kMotions * n);
  hodyn_controllers::Nanoseconds time = 0;
  while (std::cin >> time) {
    const long before = allocations;
    trajectory.evaluate(time + 1, motion.data());
    if (allocations != before) {
      return 1;
    }
    for (const double value : motion) {
      std::printf("%.17g ", value);
    }
    std::printf("\n");
  }
  return 0;
}
