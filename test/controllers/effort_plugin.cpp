// Takes EffortController through its life as a controller manager does.

#include <cmath>
#include <cstdio>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "life.hpp"

namespace
{

using controller_interface::CallbackReturn;
using hodyn_msgs::msg::JointEffort;

/// A controller of the joints a and b, and the hardware below it.
struct Robot : Life
{
  Robot()
  {
    node.string_arrays["joints"] = {"a", "b"};
    for (const char * joint : {"a", "b"}) {
      node.doubles[std::string("limits.") + joint + ".effort"] = 10.0;
      node.doubles[std::string("limits.") + joint + ".effort_rate"] = 1000.0;
    }
    node.doubles["ease_time"] = 0.01;
    CHECK(controller->on_init() == CallbackReturn::SUCCESS);
  }

  CallbackReturn activate(double a, double b, std::size_t interfaces = 2)
  {
    values = {a, b};
    controller->command_interfaces_.clear();
    hardware.clear();
    const auto names = controller->command_interface_configuration().names;
    CHECK((names == std::vector<std::string>{"a/effort", "b/effort"}));
    for (std::size_t j = 0; j < interfaces; ++j) {
      hardware.emplace_back(j ? "b" : "a", "effort", &values[j]);
      controller->command_interfaces_.emplace_back(hardware.back());
    }
    return controller->on_activate(kState);
  }

  /// Lets time pass; the largest change of an effort in a tick.
  double tick(int count = 1)
  {
    double largest = 0.0;
    for (int i = 0; i < count; ++i) {
      const double a = values[0], b = values[1];
      node.time += kTick;
      const long before = allocations;
      const auto result = controller->update(rclcpp::Time(node.time), rclcpp::Duration(kTick));
      CHECK(allocations == before);
      CHECK(result == controller_interface::return_type::OK);
      largest = std::max({largest, std::abs(values[0] - a), std::abs(values[1] - b)});
    }
    return largest;
  }

  JointEffort message(double a, double b) const
  {
    JointEffort made;
    made.header.stamp = rclcpp::Time(node.time);
    made.joint_names = {"b", "a"};
    made.effort = {b, a};
    made.effort_dot = {20.0, 10.0};
    made.effort_ddot = {0.0, 200.0};
    made.valid_order = 2;
    return made;
  }

  void send(const JointEffort & message, const std::string & topic = "~/joint_effort")
  {
    Life::send(message, topic);
  }

  bool is_well() {return status().level == diagnostic_msgs::msg::DiagnosticStatus::OK;}

  std::vector<double> values;
  std::deque<hardware_interface::CommandInterface> hardware;
};

bool near(double a, double b) {return std::abs(a - b) < 1e-12;}

void follows_the_topic()
{
  Robot robot;
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  CHECK(robot.controller->state_interface_configuration().names.empty());
  robot.send(robot.message(9.0, 9.0));  // Before it is active: does not count.
  CHECK(robot.told().empty());
  CHECK(robot.activate(4.0, NAN) == CallbackReturn::SUCCESS);
  robot.tick();
  CHECK(near(robot.values[0], 4.0) || robot.values[0] < 4.0);
  CHECK(robot.told() == "waiting");
  CHECK(robot.tick(20) < 1.0);
  CHECK(robot.values[0] == 0.0);
  CHECK(robot.values[1] == 0.0);
  robot.send(robot.message(3.0, -2.0));
  CHECK(robot.tick(20) < 1.0);
  CHECK(robot.told() == "following");
  CHECK(robot.told("age [s]") == "0.020000");
  const double t = 0.02;
  CHECK(near(robot.values[0], 3.0 + 10.0 * t + 100.0 * t * t));
  CHECK(near(robot.values[1], -2.0 + 20.0 * t));
#if RCLCPP_VERSION_MAJOR >= 17
  const auto & states = robot.controller->ordered_exported_state_interfaces_;
  CHECK(states.size() == 4);
  CHECK(states[0]->get_name() == "controller/state");
  CHECK(states[3]->get_name() == "controller/b/limited");
  CHECK(states[0]->value() == 1.0);
  CHECK(near(states[1]->value(), 0.02));
  robot.hardware[0].is_busy = true;
  robot.tick();
  robot.hardware[0].is_busy = false;
  CHECK(robot.told("efforts not taken by the hardware") == "1");
#endif
  CHECK(robot.tick(100) < 1.0);
  CHECK(robot.told() == "fallback");
  CHECK(robot.values[0] == 0.0);
  auto wrong = robot.message(1.0, 1.0);
  wrong.joint_names[0] = "c";
  robot.send(wrong);
  robot.tick();
  CHECK(robot.told() ==
    "refused: the last message names a joint that is not of this robot");
  CHECK(robot.told("refused") == "1");
  CHECK(robot.told("accepted") == "2");
  CHECK(robot.told("losses") == "1");
  robot.send(robot.message(50.0, 0.0));
  CHECK(robot.tick(40) <= 1.0 + 1e-12);
  CHECK(robot.values[0] == 10.0);
  CHECK(robot.told("a: ticks at limits of effort, rate").back() != '0');
  CHECK(robot.controller->on_deactivate(kState) == CallbackReturn::SUCCESS);
  CHECK(robot.values[0] == 0.0);
  CHECK(robot.activate(0.0, 0.0) == CallbackReturn::SUCCESS);
  robot.tick();
  CHECK(robot.told() == "waiting");
  CHECK(robot.controller->on_cleanup(kState) == CallbackReturn::SUCCESS);
}

void tells_ages_and_periods()
{
  const std::pair<const char *, const char *> expected[] = {
    {"longest age at arrival [s]", "0.004000"}, {"longest period [s]", "0.007000"}};
  for (const auto & [key, value] : expected) {
    Robot robot;
    CHECK(robot.configure() == CallbackReturn::SUCCESS);
    CHECK(robot.activate(0.0, 0.0) == CallbackReturn::SUCCESS);
    robot.send(robot.message(1.0, 1.0));
    robot.tick(7);
    const auto late = robot.message(1.0, 1.0);
    robot.tick(4);
    robot.send(late);
    CHECK(robot.told(key) == value);
    CHECK(robot.told(key) == "0.000000");  // Those since it was told before.
  }
}

void follows_references()
{
  Robot robot;
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  CHECK(robot.references.size() == 6);
  CHECK(robot.reference_name(0) == "controller/a/effort");
  CHECK(robot.reference_name(5) == "controller/b/effort_ddot");
  CHECK(robot.controller->on_set_chained_mode(true));
  robot.controller->is_chained = true;
  CHECK(robot.activate(0.0, 0.0) == CallbackReturn::SUCCESS);
  robot.tick();
  CHECK(robot.told() == "waiting");
  for (std::size_t i = 0; i < 6; ++i) {
    robot.refer(i, i < 2 ? 2.0 : 0.0);
  }
  robot.send(robot.message(9.0, 9.0));  // The topic is not heard.
  CHECK(robot.tick(200) < 1.0);
  CHECK(robot.told() == "following");
  CHECK(robot.values[1] == 2.0);
  robot.refer(0, NAN);
  CHECK(robot.tick(200) < 1.0);
  CHECK(robot.told() == "refused: the last message has values that are not finite");
  CHECK(robot.values[1] == 0.0);
}

void changes_its_mode_without_a_step()
{
  Robot robot;
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  CHECK(robot.activate(0.0, 0.0) == CallbackReturn::SUCCESS);
  robot.send(robot.message(3.0, -2.0));
  robot.tick(20);
  const double a = robot.values[0], b = robot.values[1];
  CHECK(a > 3.0);
  // As the controller manager does it, in one cycle.
  CHECK(robot.controller->on_deactivate(kState) == CallbackReturn::SUCCESS);
  robot.controller->is_chained = true;
  CHECK(robot.activate(robot.values[0], robot.values[1]) == CallbackReturn::SUCCESS);
  CHECK(robot.values[0] == a && robot.values[1] == b);
  CHECK(robot.tick(20) < 1.0);
  // Later, with efforts that are zero, it begins from these.
  CHECK(robot.controller->on_deactivate(kState) == CallbackReturn::SUCCESS);
  robot.node.time += 20 * kTick;
  CHECK(robot.activate(robot.values[0], robot.values[1]) == CallbackReturn::SUCCESS);
  CHECK(robot.values[0] == 0.0);
}

/// The service thread changes the mode, and the cycles of the hardware go on meanwhile.
void changes_its_mode_while_the_hardware_writes()
{
  Robot robot;
  robot.node.strings["fallback"] = "hold";
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  CHECK(robot.activate(0.0, 0.0) == CallbackReturn::SUCCESS);
  auto constant = robot.message(3.0, -2.0);
  constant.valid_order = 0;
  robot.send(constant);
  robot.tick(40);
  for (int i = 0; i < 64; ++i) {
    CHECK(robot.values[0] == 3.0 && robot.values[1] == -2.0);
    CHECK(robot.controller->on_deactivate(kState) == CallbackReturn::SUCCESS);
    CHECK(robot.values[0] == 3.0 && robot.values[1] == -2.0);  // What is written meanwhile,
    robot.node.time += i % 9 * kTick;                          // in some of several cycles.
    robot.controller->is_chained = !robot.controller->is_chained;
    CHECK(robot.activate(robot.values[0], robot.values[1]) == CallbackReturn::SUCCESS);
    CHECK(robot.values[0] == 3.0 && robot.values[1] == -2.0);
    for (std::size_t j = 0; robot.controller->is_chained && j < 2; ++j) {
      robot.refer(j, j ? -2.0 : 3.0);
    }
    CHECK(robot.tick(20) == 0.0);
  }
  CHECK(robot.controller->on_deactivate(kState) == CallbackReturn::SUCCESS);
  robot.node.log.clear();
  robot.node.timer->callback();
  robot.node.timer->callback();
  CHECK(robot.node.log.size() == 1);
  CHECK(robot.node.log.at(0).find("left with the last efforts") != std::string::npos);
}

void does_not_follow_what_is_far_beyond_limits()
{
  for (const bool is_chained : {false, true}) {
    for (const bool is_derivative : {false, true}) {
      Robot robot;
      CHECK(robot.configure() == CallbackReturn::SUCCESS);
      robot.controller->is_chained = is_chained;
      CHECK(robot.activate(4.0, 0.0) == CallbackReturn::SUCCESS);
      robot.send(robot.message(3.0, 0.0));
      for (std::size_t k = 0; is_chained && k < 6; ++k) {
        robot.refer(k, k == 0 ? 3.0 : 0.0);
      }
      robot.tick(20);
      CHECK(robot.told() == "following");
      for (int i = 0; i < 30; ++i) {
        auto wrong = robot.message(is_derivative ? 1.0 : 1e6, 0.0);
        wrong.effort_ddot[1] = is_derivative ? 1e300 : 0.0;
        wrong.header.stamp = rclcpp::Time(robot.node.time - kTick);
        if (!is_chained) {
          robot.send(wrong);
        }
        for (std::size_t k = 0; is_chained && k < 6; ++k) {
          robot.refer(k, k == (is_derivative ? 4 : 0) ? (is_derivative ? 1e300 : 1e6) : 0.0);
        }
        CHECK(robot.tick() <= 1.0);
        // References count from their tick on: derivatives do nothing in the first one.
        CHECK(robot.told().find("following") != 0 || (is_chained && is_derivative && i == 0));
      }
      CHECK(robot.values[0] == 0.0);
      CHECK(!robot.is_well());
      CHECK(robot.told().find("refused: a shall have an effort of ") == 0);
      CHECK(robot.told().find("more than 10 times its limit of 10") != std::string::npos);
    }
  }
}

void warns_of_limits_that_last()
{
  Robot robot;
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  CHECK(robot.activate(0.0, 0.0) == CallbackReturn::SUCCESS);
  auto strong = robot.message(50.0, 1.0);
  strong.valid_order = 0;
  for (int i = 0; i < 15; ++i) {
    strong.header.stamp = rclcpp::Time(robot.node.time);
    robot.send(strong);
    robot.tick(10);
    CHECK(robot.is_well() == (i < 10));
  }
  CHECK(robot.told() == "following, at limits: a (effort)");
  CHECK(robot.node.log.back() == robot.told());
  CHECK(robot.told("the same efforts for [s]") == "0.150000");
}

void tells_for_how_long_references_have_not_changed()
{
  Robot robot;
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  robot.controller->is_chained = true;
  CHECK(robot.activate(0.0, 0.0) == CallbackReturn::SUCCESS);
  robot.refer(0, 3.0);
  robot.refer(1, 2.0);
  robot.tick(500);  // Whoever wrote them may be silent since: that cannot be known.
  CHECK(robot.told() == "following");
  CHECK(robot.told("the same efforts for [s]") == "0.500000");
  robot.refer(1, 2.5);
  robot.tick(20);
  CHECK(robot.told("the same efforts for [s]") == "0.020000");
}

void refuses_parameters_that_are_not_valid()
{
  const std::pair<const char *, double> wrong[] = {
    {"max_age", 0.0}, {"max_ahead", -1.0}, {"max_period", 0.2}, {"ease_time", 0.0},
    {"ease_time", NAN}, {"limits.b.effort", 0.0}, {"limits.b.effort_rate", -1.0},
    {"limits.b.effort", NAN}, {"limits.b.effort_rate", HUGE_VAL}};
  for (const auto & [name, value] : wrong) {
    Robot robot;
    robot.node.doubles[name] = value;
    CHECK(robot.controller->on_init() == CallbackReturn::ERROR);
    CHECK(robot.node.log.back().find(name) != std::string::npos);
  }
  Robot robot;
  robot.node.strings["extrapolation"] = "third";
  CHECK(robot.controller->on_init() == CallbackReturn::ERROR);
  robot.node.strings.clear();
  robot.node.string_arrays["joints"] = {"a", "b", "c"};  // There is no limit of c.
  CHECK(robot.controller->on_init() == CallbackReturn::ERROR);
  CHECK(robot.node.log.back().find("limits.c.effort") != std::string::npos);
  robot.node.string_arrays["joints"] = {"a", "b", "a"};
  CHECK(robot.controller->on_init() == CallbackReturn::ERROR);
}

void refuses_to_begin()
{
  Robot robot;
  robot.node.strings["extrapolation"] = "hold";
  robot.node.strings["fallback"] = "hold";
  robot.node.strings["topic"] = "/efforts";
  CHECK(robot.configure() == CallbackReturn::SUCCESS);
  CHECK(robot.activate(0.0, 0.0, 1) == CallbackReturn::ERROR);
  CHECK(robot.node.log.back() == 
    "The hardware has 1 of 2 command interfaces (effort) and 0 of 0 state interfaces.");
  CHECK(robot.activate(0.0, 0.0) == CallbackReturn::SUCCESS);
  robot.send(robot.message(3.0, -2.0), "/efforts");
  robot.tick(100);
  CHECK(robot.told() == "fallback");
  CHECK(robot.values[0] == 3.0);
}

}  // namespace

int main()
{
  follows_the_topic();
  tells_ages_and_periods();
  follows_references();
  changes_its_mode_without_a_step();
  changes_its_mode_while_the_hardware_writes();
  does_not_follow_what_is_far_beyond_limits();
  warns_of_limits_that_last();
  tells_for_how_long_references_have_not_changed();
  refuses_parameters_that_are_not_valid();
  refuses_to_begin();
  std::printf(failures ? "%d failures\n" : "correct\n", failures);
  return failures != 0;
}
