// SPDX-License-Identifier: 0BSD
// @mark@

#include <cstddef>

#include "@unit@.h"
#include "hodyn_controllers/tracking_controller.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace @package@
{

/// The law in C, as hodyn_controllers calls it.
struct Kernel
{
  using State = @name@_controller;
  static constexpr std::size_t n = @NAME@_N_JOINTS;
  static constexpr double period = @NAME@_SAMPLE_PERIOD;
  static constexpr double lead = @NAME@_LEAD;
  static constexpr bool is_elastic = @is_elastic@;

  static const char * joint(std::size_t j) {return @name@_joint_names[j];}

  /// Names of the reasons why a controller has stopped the robot, as the header lists them.
  static const char * reason_name(int reason)
  {
    static constexpr const char * names[] = {
      "follows", "position", "velocity", "tracking_error", "external_torque", "drive_error",
      "measurements", "saturation", "gap", "spring_range", "asked", "encoder_stands", "runaway",
      "silence"};
    return names[reason];
  }

  static void reset(State & state) {@name@_controller_reset(&state);}
  static void stop(State & state) {@name@_controller_stop(&state);}
  static bool release(State & state) {return @name@_controller_release(&state) == 0;}
  static int reason(const State & state) {return state.reason;}

  static int evaluate(
    State & state, const double * desired, const double * q, const double * theta,
    double elapsed, double * torque)
  {
    return @name@_controller_evaluate(
      &state, desired, q, nullptr, theta, nullptr, nullptr, elapsed, torque);
  }
};

class TrackingController : public hodyn_controllers::TrackingController<Kernel> {};

}  // namespace @package@

PLUGINLIB_EXPORT_CLASS(
  @package@::TrackingController, controller_interface::ChainableControllerInterface)
