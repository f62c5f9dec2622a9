// What the controllers use of ros2_control, rclcpp, pluginlib and messages, to run without them.
//
// RCLCPP_VERSION_MAJOR (given to the compiler) says of which distribution: 16 is Humble.

#ifndef STAND_INS__ROS2_CONTROL_HPP_
#define STAND_INS__ROS2_CONTROL_HPP_

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace builtin_interfaces::msg
{
struct Time { std::int32_t sec = 0; std::uint32_t nanosec = 0; };
}  // namespace builtin_interfaces::msg

namespace std_msgs::msg
{
struct Header { builtin_interfaces::msg::Time stamp; std::string frame_id; };
}  // namespace std_msgs::msg

namespace hodyn_msgs::msg
{
struct JointEffort
{
  std_msgs::msg::Header header;
  std::vector<std::string> joint_names;
  std::vector<double> effort, effort_dot, effort_ddot;
  std::uint8_t valid_order = 0;
};
struct JointMotionTrajectory
{
  std_msgs::msg::Header header;
  std::vector<std::string> joint_names;
  std::vector<double> time_from_start, position, velocity, acceleration, jerk, snap;
};
}  // namespace hodyn_msgs::msg

namespace diagnostic_msgs::msg
{
struct KeyValue { std::string key, value; };
struct DiagnosticStatus
{
  static constexpr std::uint8_t OK = 0, WARN = 1, ERROR = 2;
  std::uint8_t level = 0;
  std::string name, message, hardware_id;
  std::vector<KeyValue> values;
};
struct DiagnosticArray { std_msgs::msg::Header header; std::vector<DiagnosticStatus> status; };
}  // namespace diagnostic_msgs::msg

namespace std_srvs::srv
{
struct Trigger
{
  struct Request { using SharedPtr = std::shared_ptr<Request>; };
  struct Response { using SharedPtr = std::shared_ptr<Response>; bool success = false; };
};
}  // namespace std_srvs::srv

namespace rclcpp
{

class Duration
{
public:
  explicit Duration(std::int64_t nanoseconds)
  : nanoseconds_(nanoseconds) {}
  double seconds() const {return 1e-9 * static_cast<double>(nanoseconds_);}

private:
  std::int64_t nanoseconds_;
};

class Time
{
public:
  explicit Time(std::int64_t nanoseconds = 0)
  : nanoseconds_(nanoseconds) {}
  explicit Time(const builtin_interfaces::msg::Time & time)
  : nanoseconds_(time.sec * std::int64_t{1000000000} + time.nanosec) {}
  std::int64_t nanoseconds() const {return nanoseconds_;}
  operator builtin_interfaces::msg::Time() const
  {
    return {static_cast<std::int32_t>(nanoseconds_ / 1000000000),
      static_cast<std::uint32_t>(nanoseconds_ % 1000000000)};
  }

private:
  std::int64_t nanoseconds_;
};

class QoS
{
public:
  explicit QoS(std::size_t) {}
  QoS & best_effort() {return *this;}
};

struct Logger { std::vector<std::string> * lines; };

inline void log(const Logger & logger, const char * format, ...)
{
  char text[1000];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  logger.lines->push_back(text);
}

template<typename M>
struct Publisher
{
  using SharedPtr = std::shared_ptr<Publisher>;
  void publish(const M & message) {published.push_back(message);}
  std::vector<M> published;
};

template<typename M>
struct Subscription
{
  using SharedPtr = std::shared_ptr<Subscription>;
  std::function<void(const M &)> callback;
};

template<typename S>
struct Service
{
  using SharedPtr = std::shared_ptr<Service>;
  std::function<void(typename S::Request::SharedPtr, typename S::Response::SharedPtr)> callback;
};

struct TimerBase
{
  using SharedPtr = std::shared_ptr<TimerBase>;
  std::function<void()> callback;
};

}  // namespace rclcpp

#define RCLCPP_ERROR(...) rclcpp::log(__VA_ARGS__)
#define RCLCPP_WARN(...) rclcpp::log(__VA_ARGS__)
#define RCLCPP_INFO(...) rclcpp::log(__VA_ARGS__)

namespace rclcpp_lifecycle
{

struct State {};

/// Publishes nothing until somebody activates it: the node of a controller does not.
template<typename M>
struct LifecyclePublisher : rclcpp::Publisher<M>
{
  void on_activate() {is_activated = true;}
  void publish(const M & message)
  {
    if (is_activated) {
      rclcpp::Publisher<M>::publish(message);
    }
  }
  bool is_activated = false;
};

/// Keeps what was made, so that tests can send messages and let timers fire.
class LifecycleNode
{
public:
  const char * get_name() const {return "controller";}
  rclcpp::Logger get_logger() const {return {&log};}
  rclcpp::Time now() const {return rclcpp::Time(time);}

  template<typename M, typename F>
  std::shared_ptr<rclcpp::Subscription<M>> create_subscription(
    const std::string & topic, const rclcpp::QoS &, F callback)
  {
    auto made = std::make_shared<rclcpp::Subscription<M>>();
    made->callback = callback;
    subscriptions[topic] = made;
    return made;
  }

  template<typename M>
  std::shared_ptr<LifecyclePublisher<M>> create_publisher(
    const std::string & topic, const rclcpp::QoS &)
  {
    auto made = std::make_shared<LifecyclePublisher<M>>();
    publishers[topic] = std::shared_ptr<rclcpp::Publisher<M>>(made);
    return made;
  }

  template<typename S, typename F>
  std::shared_ptr<rclcpp::Service<S>> create_service(const std::string & name, F callback)
  {
    auto made = std::make_shared<rclcpp::Service<S>>();
    made->callback = callback;
    services[name] = made;
    return made;
  }

  template<typename Period, typename F>
  rclcpp::TimerBase::SharedPtr create_wall_timer(Period, F callback)
  {
    timer = std::make_shared<rclcpp::TimerBase>();
    timer->callback = callback;
    return timer;
  }

  std::int64_t time = 0;
  mutable std::vector<std::string> log;
  std::map<std::string, std::shared_ptr<void>> subscriptions, publishers, services;
  std::map<std::string, std::string> strings;  ///< Parameters that are not the default.
  std::map<std::string, double> doubles;
  std::map<std::string, std::int64_t> ints;
  std::map<std::string, std::vector<std::string>> string_arrays;
  rclcpp::TimerBase::SharedPtr timer;
};

}  // namespace rclcpp_lifecycle

namespace hardware_interface
{

class Handle
{
public:
  Handle(
    const std::string & prefix, const std::string & interface, double * value = nullptr)
  : name_(prefix + "/" + interface), value_(value ? value : &own_) {}
  Handle(const Handle &) = delete;
  const std::string & get_name() const {return name_;}
  double value() const {return *value_;}
#if RCLCPP_VERSION_MAJOR < 17
  Handle(Handle &&) = default;  // Of those that point to a value.
  double get_value() const {return *value_;}
  void set_value(double value) {*value_ = value;}
#else
  [[nodiscard]] std::optional<double> get_optional() const
  {
    return is_busy ? std::nullopt : std::optional<double>(*value_);
  }
  [[nodiscard]] bool set_value(double value)
  {
    *value_ = is_busy ? *value_ : value;
    return !is_busy;
  }
  bool is_busy = false;
#endif

private:
  std::string name_;
  double own_ = std::numeric_limits<double>::quiet_NaN();
  double * value_;
};

class CommandInterface : public Handle
{
public:
  using SharedPtr = std::shared_ptr<CommandInterface>;
  using Handle::Handle;
};

class StateInterface : public Handle
{
public:
  using SharedPtr = std::shared_ptr<StateInterface>;
  using ConstSharedPtr = std::shared_ptr<const StateInterface>;
  using Handle::Handle;
};

/// Handles that the hardware keeps.
class LoanedCommandInterface
{
public:
  explicit LoanedCommandInterface(CommandInterface & interface)
  : interface_(&interface) {}
  const std::string & get_name() const {return interface_->get_name();}
#if RCLCPP_VERSION_MAJOR < 17
  double get_value() const {return interface_->get_value();}
  void set_value(double value) {interface_->set_value(value);}
#else
  [[nodiscard]] std::optional<double> get_optional() const {return interface_->get_optional();}
  [[nodiscard]] bool set_value(double value) {return interface_->set_value(value);}
#endif

private:
  CommandInterface * interface_;
};

class LoanedStateInterface
{
public:
  explicit LoanedStateInterface(StateInterface & interface)
  : interface_(&interface) {}
  const std::string & get_name() const {return interface_->get_name();}
#if RCLCPP_VERSION_MAJOR < 17
  double get_value() const {return interface_->get_value();}
#else
  [[nodiscard]] std::optional<double> get_optional() const {return interface_->get_optional();}
#endif

private:
  StateInterface * interface_;
};

}  // namespace hardware_interface

namespace controller_interface
{

enum class CallbackReturn : std::uint8_t { SUCCESS, FAILURE, ERROR };
enum class return_type : std::uint8_t { OK, ERROR };
enum class interface_configuration_type : std::uint8_t { ALL, INDIVIDUAL, NONE };

struct InterfaceConfiguration
{
  interface_configuration_type type = interface_configuration_type::NONE;
  std::vector<std::string> names = {};
};

class ChainableControllerInterface
{
public:
  virtual ~ChainableControllerInterface() = default;
  virtual CallbackReturn on_init() = 0;
  virtual CallbackReturn on_configure(const rclcpp_lifecycle::State & previous) = 0;
  virtual CallbackReturn on_activate(const rclcpp_lifecycle::State & previous) = 0;
  virtual CallbackReturn on_deactivate(const rclcpp_lifecycle::State & previous) = 0;
  virtual CallbackReturn on_cleanup(const rclcpp_lifecycle::State & previous) = 0;
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;
  virtual return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) = 0;
#if RCLCPP_VERSION_MAJOR < 17
  virtual std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() = 0;
  virtual return_type update_reference_from_subscribers() = 0;
  return_type update(const rclcpp::Time & time, const rclcpp::Duration & period)
  {
    const return_type result = is_chained ? return_type::OK : update_reference_from_subscribers();
    return result == return_type::OK ? update_and_write_commands(time, period) : result;
  }
  std::vector<double> reference_interfaces_;
#else
  virtual std::vector<hardware_interface::CommandInterface::SharedPtr>
  on_export_reference_interfaces_list() = 0;
  virtual std::vector<hardware_interface::StateInterface::SharedPtr>
  on_export_state_interfaces_list() {return {};}
  virtual return_type update_reference_from_subscribers(
    const rclcpp::Time & time, const rclcpp::Duration & period) = 0;
  return_type update(const rclcpp::Time & time, const rclcpp::Duration & period)
  {
    const return_type result =
      is_chained ? return_type::OK : update_reference_from_subscribers(time, period);
    return result == return_type::OK ? update_and_write_commands(time, period) : result;
  }
  std::vector<hardware_interface::CommandInterface::SharedPtr>
  ordered_exported_reference_interfaces_;
  std::vector<hardware_interface::StateInterface::SharedPtr> ordered_exported_state_interfaces_;
#endif
  virtual bool on_set_chained_mode(bool chained_mode) = 0;
  bool is_in_chained_mode() const {return is_chained;}
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> get_node() const {return node;}

  unsigned int get_update_rate() const {return update_rate;}

  bool is_chained = false;
  unsigned int update_rate = 0;
  std::vector<hardware_interface::LoanedCommandInterface> command_interfaces_;
  std::vector<hardware_interface::LoanedStateInterface> state_interfaces_;
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node =
    std::make_shared<rclcpp_lifecycle::LifecycleNode>();
};

}  // namespace controller_interface

#define PLUGINLIB_EXPORT_CLASS(Class, Base) \
  std::unique_ptr<Base> make_controller() {return std::make_unique<Class>();}

std::unique_ptr<controller_interface::ChainableControllerInterface> make_controller();

#endif  // STAND_INS__ROS2_CONTROL_HPP_
