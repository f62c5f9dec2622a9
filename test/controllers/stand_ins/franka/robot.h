// What a loop of torques uses of libfranka 0.15, with a robot that only looks at them.

#ifndef STAND_INS__FRANKA__ROBOT_H_
#define STAND_INS__FRANKA__ROBOT_H_

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>

namespace franka
{
constexpr double kMaxCutoffFrequency = 1000.0;
constexpr double kDefaultCutoffFrequency = 100.0;

struct Exception : std::runtime_error { using std::runtime_error::runtime_error; };
struct ControlException : Exception { using Exception::Exception; };

class Duration
{
public:
  Duration() noexcept = default;
  explicit Duration(std::uint64_t milliseconds) noexcept : milliseconds_(milliseconds) {}
  double toSec() const noexcept { return 1e-3 * static_cast<double>(milliseconds_); }
  std::uint64_t toMSec() const noexcept { return milliseconds_; }

private:
  std::uint64_t milliseconds_ = 0;
};

struct RobotState
{
  std::array<double, 7> q{}, dq{}, tau_J_d{};
};

struct Finishable { bool motion_finished = false; };

struct Torques : Finishable
{
  Torques(const std::array<double, 7> & torques) noexcept : tau_J(torques) {}
  std::array<double, 7> tau_J{};
};

enum class RealtimeConfig { kEnforce, kIgnore };

// The state before each 99th cycle is lost on its way. Writes a line with the torques of each cycle.
class Robot
{
public:
  explicit Robot(
    const std::string &, RealtimeConfig = RealtimeConfig::kEnforce, std::size_t = 50) {}

  void control(
    std::function<Torques(const RobotState &, Duration)> callback, bool limit_rate = false,
    double cutoff_frequency = kDefaultCutoffFrequency)
  {
    RobotState state;
    for (std::uint64_t cycle = 0;; ++cycle) {
      const Duration period(cycle == 0 ? 0 : cycle % 99 == 0 ? 2 : 1);
      const Torques answer = callback(state, period);
      const double share = cutoff_frequency < kMaxCutoffFrequency ? filtered(cutoff_frequency) : 1.0;
      for (std::size_t j = 0; j < 7; ++j) {
        const double before = state.tau_J_d[j];
        double torque = before + share * (answer.tau_J[j] - before);
        if (limit_rate && std::fabs(torque - before) > kStep) {
          torque = before + std::copysign(kStep, torque - before);
        }
        if (!std::isfinite(torque)) {
          throw std::invalid_argument("libfranka: Torques are not finite.");
        }
        if (std::fabs(torque - before) > 1.0) {  // N m, whatever was lost before
          throw ControlException("libfranka: controller_torque_discontinuity");
        }
        state.tau_J_d[j] = torque;
      }
      for (const double torque : state.tau_J_d) {std::printf("%.17g ", torque);}
      std::putchar('\n');
      if (answer.motion_finished) {return;}
    }
  }

private:
  static constexpr double kStep = 0.999999;  // N m

  static double filtered(double cutoff_frequency)
  {
    const double cycle = 1e-3 * 2.0 * 3.14159265358979323846 * cutoff_frequency;
    return cycle / (cycle + 1.0);
  }
};
}  // namespace franka

#endif  // STAND_INS__FRANKA__ROBOT_H_
