// What the headers without ROS promise, for `colcon test`.
//
// The tests of the controllers themselves are in test/controllers of the repository.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "hodyn_controllers/effort_follower.hpp"
#include "hodyn_controllers/effort_intake.hpp"
#include "hodyn_controllers/motion_trajectory.hpp"
#include "hodyn_controllers/triple_buffer.hpp"

namespace
{

using namespace hodyn_controllers;  // NOLINT

constexpr Nanoseconds kTick = 1000000;
constexpr Nanoseconds kStart = 1700000000 * Nanoseconds{1000000000};
int failures = 0;

#define CHECK(condition) \
  if (!(condition)) {++failures; std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);}

/// Fields of the messages.
struct Header
{
  struct { std::int32_t sec; std::uint32_t nanosec; } stamp;
  std::string frame_id;
};

struct Effort
{
  Header header;
  Names joint_names;
  Values effort, effort_dot, effort_ddot;
  std::uint8_t valid_order;
};

struct Motion
{
  Header header;
  Names joint_names;
  Values time_from_start, position, velocity, acceleration, jerk, snap;
};

/// That of a time; zero: none.
Header header_of(Nanoseconds time)
{
  return {{static_cast<std::int32_t>(time / kSecond), static_cast<std::uint32_t>(time % kSecond)},
    "base"};
}

EffortOptions options_of_two()
{
  EffortOptions options;
  options.joints = {"a", "b"};
  options.limits = {{10.0, 1000.0}, {20.0, 500.0}};
  options.ease_time = 0.01;
  return options;
}

EffortSample sample_of(double a, double a_dot, double a_ddot, double b)
{
  EffortSample sample(2);
  sample.stamp = kStart;
  sample.order = 2;
  sample.values = {a, b, a_dot, 0.0, a_ddot, 0.0};
  return sample;
}

/// Runs ticks 1 to count after the start; the largest step, relative to that of the rate limits.
double run(EffortFollower & follower, int count, Nanoseconds from = 0)
{
  double largest = 0.0;
  for (int i = 1; i <= count; ++i) {
    const Values before = follower.efforts();
    const auto & after = follower.update(kStart + from + i * kTick, 1e-3, false);
    largest = std::max(
      {largest, std::abs(after[0] - before[0]) / 1.0, std::abs(after[1] - before[1]) / 0.5});
  }
  return largest;
}

void efforts_go_on_by_their_derivatives()
{
  EffortFollower follower(options_of_two());
  follower.reset(std::array<double, 2>{0.0, 0.0}.data());
  follower.give(sample_of(3.0, 10.0, -400.0, -2.0));
  CHECK(run(follower, 20) <= 1.0);
  CHECK(follower.report().state == State::following);
  CHECK(std::abs(follower.efforts()[0] - (3.0 + 0.02 * 10.0 - 0.0002 * 400.0)) < 1e-12);
  CHECK(follower.efforts()[1] == -2.0);
}

void efforts_that_are_lost_are_eased_to_the_fallback()
{
  for (const Fallback fallback : {Fallback::zero, Fallback::hold}) {
    EffortOptions options = options_of_two();
    options.fallback = fallback;
    EffortFollower follower(options);
    follower.reset(std::array<double, 2>{0.0, 0.0}.data());
    follower.give(sample_of(3.0, 0.0, 0.0, -2.0));
    CHECK(run(follower, 100) <= 1.0);
    CHECK(follower.report().state == State::fallback);
    CHECK(follower.efforts()[0] == (fallback == Fallback::hold ? 3.0 : 0.0));
  }
}

void efforts_far_beyond_a_limit_are_not_followed()
{
  for (const EffortSample & wrong : {
      sample_of(1e6, 0.0, 0.0, 1.0), sample_of(3.0, 0.0, 1e300, 1.0),
      sample_of(3.0, 1e308, 1e308, 1.0)})
  {
    EffortFollower follower(options_of_two());
    follower.reset(std::array<double, 2>{0.0, 0.0}.data());
    follower.give(sample_of(3.0, 0.0, 0.0, -2.0));
    run(follower, 20);
    follower.give(wrong);
    CHECK(run(follower, 20, 20 * kTick) <= 1.0);
    CHECK(follower.report().state == State::refused);
    CHECK(follower.report().beyond == 0);
    CHECK(follower.efforts()[0] == 0.0 && follower.efforts()[1] == 0.0);
  }
}

void messages_are_taken_by_the_names_of_joints()
{
  EffortIntake intake(options_of_two(), "base");
  EffortSample sample(2);
  Names joints = {"b", "a"};
  const auto read = [&](Nanoseconds stamp) {
      const Effort message{header_of(stamp), joints, {1.0, 2.0}, {}, {}, 0};
      return intake.read(message, kStart, sample);
    };
  CHECK(read(kStart) == Refusal::none);
  CHECK(sample.values[0] == 2.0 && sample.values[1] == 1.0);
  CHECK(read(kStart) == Refusal::overtaken);
  CHECK(read(kStart - 100 * kTick) == Refusal::stale);
  joints[0] = "c";
  CHECK(read(kStart + kTick) == Refusal::other_joint);
}

void a_motion_goes_through_its_samples()
{
  MotionIntake intake({"a"}, 1e-3);
  MotionTrajectory trajectory(1);
  const Values times = {0.0, 0.5, 1.0}, zero(3, 0.0);
  // x^5 (126 - 420 x + 540 x^2 - 315 x^3 + 70 x^4): rests four times differentiable at both ends.
  const Values position = {0.0, 0.5, 1.0}, velocity = {0.0, 630.0 / 256.0, 0.0};
  const Values jerk = {0.0, -315.0 / 4.0, 0.0};
  const Values at_rest(kMotions, 0.0);
  Names joints = {"a"};
  const auto read = [&]() {
      const Motion message{
        header_of(kStart + 10 * kTick), joints, times, position, velocity, zero, jerk, zero};
      const std::string fault = intake.read(message, trajectory);
      return fault.empty() ?
             intake.begin(message, kStart, kStart, at_rest, false, trajectory) : fault;
    };
  const std::string fault = read();
  CHECK(fault.empty());
  std::array<double, kMotions> motion{};
  for (const double x : {0.25, 0.5, 0.8}) {
    trajectory.evaluate(kStart + 10 * kTick + nanoseconds(x), motion.data());
    const double expected =
      std::pow(x, 5) * (126.0 + x * (-420.0 + x * (540.0 + x * (-315.0 + x * 70.0))));
    CHECK(std::abs(motion[0] - expected) < 1e-9);
  }
  joints[0] = "b";
  CHECK(read().find("names a joint that is not of this robot: b") != std::string::npos);
}

void a_motion_without_a_stamp_begins_after_it_was_read()
{
  MotionIntake intake({"a"}, 1e-3);
  MotionTrajectory trajectory(1);
  const Values times = {0.0, 1.0}, zero(2, 0.0), position = {0.0, 1.0};
  const Values at_rest(kMotions, 0.0);
  const Motion message{header_of(0), {"a"}, times, position, zero, zero, zero, zero};
  CHECK(intake.read(message, trajectory).empty());
  const Nanoseconds read = kStart + 2000 * kTick;  // Later than the end of the motion.
  CHECK(intake.begin(message, read, read, at_rest, false, trajectory).empty());
  std::array<double, kMotions> motion{};
  double before = 0.0;
  for (int i = 0; i <= 1010; ++i) {
    trajectory.evaluate(read + i * kTick, motion.data());
    CHECK(motion[0] - before < 0.003);  // 630 / 256 rad/s, the largest velocity, for 1 ms.
    before = motion[0];
  }
  CHECK(std::abs(before - 1.0) < 1e-9);
}

/// Step from 0 to 1 as above, and its first four derivatives.
std::array<double, kMotions> step_at(double x)
{
  std::array<double, 10> a = {0.0, 0.0, 0.0, 0.0, 0.0, 126.0, -420.0, 540.0, -315.0, 70.0};
  std::array<double, kMotions> found{};
  for (double & value : found) {
    for (std::size_t i = a.size(); i-- > 0; ) {
      value = value * x + a[i];
    }
    for (std::size_t i = 1; i < a.size(); ++i) {
      a[i - 1] = static_cast<double>(i) * a[i];
    }
    a.back() = 0.0;
  }
  return found;
}

/// A motion from rest to rest, 0 to 1 in a second, of which the rest is sent again while it moves.
void a_motion_takes_over_at_its_first_sample()
{
  const Motion whole{
    header_of(kStart), {"a"}, {0.0, 1.0}, {0.0, 1.0}, {0.0, 0.0}, {0.0, 0.0}, {0.0, 0.0}, {0.0, 0.0}};
  const std::array<double, kMotions> joint = step_at(0.5);
  Motion rest{
    header_of(kStart + 500 * kTick), {"a"}, {0.0, 0.8}, {joint[0], 1.2}, {joint[1], 0.0},
    {joint[2], 0.0}, {joint[3], 0.0}, {joint[4], 0.0}};
  for (const int sent : {100, 450, 499, 520}) {
    MotionIntake intake({"a"}, 1e-3);
    MotionTrajectory trajectory(1), next(1);
    const Values at_rest(kMotions, 0.0);
    CHECK(intake.read(whole, trajectory).empty());
    CHECK(intake.begin(whole, kStart, kStart, at_rest, false, trajectory).empty());
    const Nanoseconds now = kStart + sent * kTick;
    std::array<double, kMotions> motion{}, before{};
    trajectory.evaluate(now, motion.data());
    const Values wanted(motion.begin(), motion.end());
    Motion other = rest;
    other.velocity[0] += 0.1;
    CHECK(intake.read(other, next).empty());
    const std::string fault = intake.begin(other, now, now, wanted, true, next);
    CHECK(fault.find("where it would take over") != std::string::npos);
    CHECK(intake.read(rest, next).empty());
    const bool is_late = sent > 500;  // Then it has left the motion that is followed.
    CHECK(intake.begin(rest, now, now, wanted, true, next).empty() != is_late);
    for (int i = sent; !is_late && i <= 500; ++i) {
      next.evaluate(kStart + i * kTick, motion.data());
      trajectory.evaluate(kStart + i * kTick, before.data());
      for (std::size_t k = 0; k < kMotions; ++k) {
        CHECK(std::abs(motion[k] - before[k]) < 1e-6);
      }
    }
    next.evaluate(kStart + 1400 * kTick, motion.data());
    CHECK(is_late || (std::abs(motion[0] - 1.2) < 1e-9 && motion[1] == 0.0));
  }
}

void angles_with_six_decimals_do_not_make_the_snap_beyond_a_turn_either()
{
  constexpr double kTurn = 6.283185307179586, kReach = 9.0;  // [rad]
  for (const double from : {-0.5 * kTurn, 0.0}) {  // Encoders show a turn from here on.
    Values times;
    std::array<Values, kMotions> rows;
    for (int i = 0; i <= 1000; ++i) {
      times.push_back(1e-3 * i);
      const std::array<double, kMotions> step = step_at(times.back());
      const double angle = kReach * step[0];
      const double turns = kTurn * std::floor((angle - from) / kTurn);
      rows[0].push_back(std::round(1e6 * (angle - turns)) / 1e6 + turns);
      for (std::size_t k = 1; k < kMotions; ++k) {
        rows[k].push_back(kReach * step[k]);
      }
    }
    MotionIntake intake({"a"}, 1e-3);
    MotionTrajectory trajectory(1);
    const Values at_rest(kMotions, 0.0);
    const Motion message{
      header_of(kStart), {"a"}, times, rows[0], rows[1], rows[2], rows[3], rows[4]};
    CHECK(intake.read(message, trajectory).empty());
    CHECK(intake.begin(message, kStart, kStart, at_rest, false, trajectory).empty());
    double miss = 0.0, snap = 0.0, most = 0.0;
    std::array<double, kMotions> motion{};
    for (double x = 0.0005; x < 1.0; x += 0.00037) {
      trajectory.evaluate(kStart + nanoseconds(x), motion.data());
      const std::array<double, kMotions> exact = step_at(x);
      miss = std::max(miss, std::abs(motion[0] - kReach * exact[0]));
      snap = std::max(snap, std::abs(motion[4]));
      most = std::max(most, kReach * std::abs(exact[4]));
    }
    CHECK(miss < 3e-6);
    CHECK(snap < 1.3 * most);
  }
}

void readers_see_the_newest_value_and_no_half_of_it()
{
  constexpr int kLast = 20000;
  TripleBuffer<std::vector<int>> buffer(std::vector<int>(64, 0));
  std::thread writer([&buffer]() {
      for (int i = 1; i <= kLast; ++i) {
        buffer.back().assign(64, i);
        buffer.publish();
      }
    });
  int last = 0;
  while (last < kLast) {
    if (buffer.take()) {
      const std::vector<int> & value = buffer.front();
      CHECK(value.front() > last);
      CHECK(std::count(value.begin(), value.end(), value.front()) == 64);
      last = value.front();
    }
  }
  writer.join();
}

}  // namespace

int main()
{
  efforts_go_on_by_their_derivatives();
  efforts_that_are_lost_are_eased_to_the_fallback();
  efforts_far_beyond_a_limit_are_not_followed();
  messages_are_taken_by_the_names_of_joints();
  a_motion_goes_through_its_samples();
  a_motion_without_a_stamp_begins_after_it_was_read();
  a_motion_takes_over_at_its_first_sample();
  angles_with_six_decimals_do_not_make_the_snap_beyond_a_turn_either();
  readers_see_the_newest_value_and_no_half_of_it();
  std::printf(failures ? "%d failures\n" : "correct\n", failures);
  return failures != 0;
}
