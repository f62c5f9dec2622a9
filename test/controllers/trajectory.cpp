// Reads samples of a motion and times, and writes the motion at these times.
//
//   N_JOINTS N_SAMPLES, times [s], positions, velocities, ... (N_SAMPLES * N_JOINTS each), and times [ns]

#include <cstdio>
#include <iostream>
#include <vector>

#include "allocations.hpp"
#include "hodyn_controllers/motion_trajectory.hpp"

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
  std::vector<std::size_t> place;
  for (std::size_t j = n; j-- > 0; ) {
    place.push_back(j);
  }
  hodyn_controllers::MotionTrajectory trajectory(n);
  trajectory.set(0, times, {&values[0], &values[1], &values[2], &values[3], &values[4]}, place);
  std::vector<double> motion(hodyn_controllers::kMotions * n);
  hodyn_controllers::Nanoseconds time = 0;
  while (std::cin >> time) {
    const long before = allocations;
    trajectory.evaluate(time, motion.data());
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
