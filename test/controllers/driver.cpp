// Runs the core on lines of text, and says what comes of each.
//
//   joint NAME EFFORT RATE | option NAME VALUE | base NAME   before anything else; valid
//   reset EFFORTS                                            (n)
//   m NOW STAMP ORDER BASE N NAMES SIZE VALUES SIZE VALUES SIZE VALUES   a message; BASE - : empty
//   r NOW VALUES                                             references (3 n)
//   t NOW PERIOD                                             a tick; prints state, age, limits and efforts

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "hodyn_controllers/effort_follower.hpp"
#include "hodyn_controllers/effort_intake.hpp"
#include "hodyn_controllers/triple_buffer.hpp"
#include "stand_ins/ros2_control.hpp"

namespace
{

using hodyn_controllers::EffortFollower;
using hodyn_controllers::EffortIntake;
using hodyn_controllers::EffortOptions;
using hodyn_controllers::EffortSample;
using hodyn_controllers::Nanoseconds;
using hodyn_controllers::ReferenceReader;
using hodyn_controllers::Refusal;

/// Reads a number, also one that is not finite.
double number(std::istream & line)
{
  std::string word;
  line >> word;
  return std::strtod(word.c_str(), nullptr);
}

std::vector<double> numbers(std::istream & line, std::size_t count)
{
  std::vector<double> found(count);
  for (double & value : found) {
    value = number(line);
  }
  return found;
}

void set(EffortOptions & options, const std::string & name, double value)
{
  if (name == "extrapolation") {
    options.extrapolation = static_cast<int>(value);
  } else if (name == "fallback") {
    options.fallback = static_cast<hodyn_controllers::Fallback>(static_cast<int>(value));
  } else if (name == "max_age") {
    options.max_age = value;
  } else if (name == "max_ahead") {
    options.max_ahead = value;
  } else if (name == "max_period") {
    options.max_period = value;
  } else if (name == "ease_time") {
    options.ease_time = value;
  } else {
    std::cerr << name << '\n';
    std::exit(2);
  }
}

struct Controller
{
  Controller(const EffortOptions & options, const std::string & base)
  : n(options.joints.size()), follower(options), intake(options, base), reader(n),
    samples(EffortSample(n)) {}

  void message(std::istream & line)
  {
    Nanoseconds now = 0, stamp = 0;
    int order = 0;
    hodyn_msgs::msg::JointEffort message;
    std::string & base = message.header.frame_id;
    std::size_t count = 0;
    line >> now >> stamp >> order >> base >> count;
    constexpr Nanoseconds kSecond = hodyn_controllers::kSecond;
    message.header.stamp.sec = static_cast<std::int32_t>(stamp / kSecond - (stamp < 0));
    message.header.stamp.nanosec =
      static_cast<std::uint32_t>(stamp - message.header.stamp.sec * kSecond);
    message.joint_names.resize(count);
    for (std::string & name : message.joint_names) {
      line >> name;
    }
    for (auto * of_order : {&message.effort, &message.effort_dot, &message.effort_ddot}) {
      line >> count;
      *of_order = numbers(line, count);
    }
    base = base == "-" ? "" : base;
    message.valid_order = static_cast<std::uint8_t>(order);
    const Refusal refusal = intake.read(message, now, samples.back());
    is_refusing = refusal != Refusal::none;
    if (!is_refusing) {
      samples.publish();
    }
    std::printf("m %d\n", static_cast<int>(refusal));
  }

  void references(std::istream & line)
  {
    Nanoseconds now = 0;
    line >> now;
    const std::vector<double> values = numbers(line, 3 * n);
    is_refusing = !reader.read(values, now);
    if (!is_refusing) {
      follower.give(reader.sample());
    }
  }

  void tick(std::istream & line)
  {
    Nanoseconds now = 0;
    line >> now;
    const double period = number(line);
    const long before = allocations;
    if (samples.take()) {
      follower.give(samples.front());
    }
    const std::vector<double> & efforts = follower.update(now, period, is_refusing);
    in_ticks += allocations - before;
    const auto & report = follower.report();
    std::printf("t %s %.17g", hodyn_controllers::name_of(report.state), report.age);
    for (const auto limited : report.limited) {
      std::printf(" %d", static_cast<int>(limited));
    }
    for (const double effort : efforts) {
      std::printf(" %.17g", effort);
    }
    std::printf("\n");
  }

  std::size_t n;
  EffortFollower follower;
  EffortIntake intake;
  ReferenceReader reader;
  hodyn_controllers::TripleBuffer<EffortSample> samples;
  bool is_refusing = false;
  long in_ticks = 0;
};

}  // namespace

int main()
{
  EffortOptions options;
  std::string base, text, kind;
  std::unique_ptr<Controller> controller;
  while (std::getline(std::cin, text)) {
    std::istringstream line(text);
    line >> kind;
    if (kind == "joint") {
      std::string name;
      line >> name;
      options.joints.push_back(name);
      const double effort = number(line);
      options.limits.push_back({effort, number(line)});
    } else if (kind == "option") {
      std::string name;
      line >> name;
      set(options, name, number(line));
    } else if (kind == "base") {
      line >> base;
    } else if (kind == "reset") {
      if (!controller) {
        controller = std::make_unique<Controller>(options, base);
      }
      controller->follower.reset(numbers(line, options.joints.size()).data());
    } else if (kind == "m") {
      controller->message(line);
    } else if (kind == "r") {
      controller->references(line);
    } else if (kind == "t") {
      controller->tick(line);
    }
  }
  std::printf("allocations %ld\n", controller ? controller->in_ticks : 0L);
  return 0;
}
