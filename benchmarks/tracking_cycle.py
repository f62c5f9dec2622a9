"""Cycle times of a generated tracking controller in the loop, beside its law in Python.

A Panda with springs in its joints goes there and back in 2.6 s, again and again. What `hodyn
generate --ros2-control` writes controls it: compiled with the options of its package, with the
stand-ins for ROS that the tests have. A cycle is one `update`, in which the controller reads the
positions, computes what is wanted, evaluates the law and writes the torques; it is timed inside
the library. The law in Python gets the same measurements, and what is wanted from scipy. The
robot, simulated in between, follows the controller; encoders have 20 bits, and torques act a
cycle later, of which the law knows. test/support/control_plant.py simulates it.
"""

from __future__ import annotations

import ctypes
import re
import resource
import tempfile
import time
from array import array
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BPoly

from benchmarks import cases, compilation  # noqa: F401 - the tests are on the path
from benchmarks.tables import Benchmark, Table
from hodyn_ros import RobotModel, generate_code
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import tracking_controller, warm_up

from support import compilers, plugins  # isort: skip
from support.control_plant import Plant  # isort: skip
from support.control_cases import (  # isort: skip
    HOME,
    JOINTS,
    LINK_STEP,
    MOTOR_INERTIA,
    PANDA,
    STIFFNESS,
    THERE,
    TORQUE_LIMITS,
)

Array = NDArray[np.float64]

LINKS, MOTORS = 0, 2  # rows of a state
STEP = 5e-4  # s, of the integration at most
DROPS = 0.01
"""Probability that a cycle finds no measurement: all positions are NaN."""

LEG, REST, BEGIN = 1.3, 0.2, 0.02  # s
BEFORE = 0.01  # s, by which a motion is sent before it begins
SEED = 5
TOLERANCE = 1e-9  # of torques, relative to the limit of the motor
KNOTS = np.array([0.0, LEG, 2.0 * LEG])  # s
POSES = LINK_STEP * np.round(np.array((HOME, THERE, HOME)) / LINK_STEP)  # rad
PATH = BPoly.from_derivatives(
    KNOTS, np.stack([POSES, *[np.zeros((3, len(HOME)))] * 4], axis=1)
)
FLAGS = ('-O2', '-DNDEBUG', '-fPIC', '-shared')
SIZES = {'tiny': 0.01, 'quick': 0.2, 'full': 10.0}
"""Minutes of the robot's time, of all cases together."""

SOURCE = """
#include <chrono>
#include <deque>
#include <sys/resource.h>
#include "robot_dynamics.h"
#include "ros2_control.hpp"
namespace
{
constexpr std::size_t n = ROBOT_N_JOINTS;
using controller_interface::CallbackReturn;
struct Loop
{
  std::unique_ptr<controller_interface::ChainableControllerInterface> controller;
  double places[2 * n], torques[n] = {};
  bool interrupted = false;
  std::deque<hardware_interface::CommandInterface> commands;
  std::deque<hardware_interface::StateInterface> states;
};
long switches()
{
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}
}
extern "C" {
double lead() {return ROBOT_LEAD;}
Loop * begin(std::int64_t now, const double * places)
{
  auto loop = std::make_unique<Loop>();
  loop->controller = make_controller();
  auto & controller = *loop->controller;
  controller.node->time = now;
  controller.node->doubles["ease_time"] = 0.0;
  std::copy(places, places + 2 * n, loop->places);
  const rclcpp_lifecycle::State state;
  if (controller.on_init() != CallbackReturn::SUCCESS ||
    controller.on_configure(state) != CallbackReturn::SUCCESS) {return nullptr;}
  const auto names = controller.state_interface_configuration().names;
  for (std::size_t i = 0; i < 2 * n; ++i) {
    loop->states.emplace_back(names[i], "", &loop->places[i]);
    controller.state_interfaces_.emplace_back(loop->states.back());
  }
  for (std::size_t j = 0; j < n; ++j) {
    loop->commands.emplace_back(robot_joint_names[j], "effort", &loop->torques[j]);
    controller.command_interfaces_.emplace_back(loop->commands.back());
  }
  return controller.on_activate(state) == CallbackReturn::SUCCESS ? loop.release() : nullptr;
}
bool restart(Loop * loop, std::int64_t now, const double * places)
{
  auto & controller = *loop->controller;
  controller.node->time = now;
  std::copy(places, places + 2 * n, loop->places);
  const rclcpp_lifecycle::State state;
  return controller.on_deactivate(state) == CallbackReturn::SUCCESS &&
         controller.on_activate(state) == CallbackReturn::SUCCESS;
}
void end(Loop * loop) {delete loop;}
bool interrupted(const Loop * loop) {return loop->interrupted;}
bool send(Loop * loop, std::int64_t stamp, int count, const double * times, const double * poses)
{
  using Trajectory = hodyn_msgs::msg::JointMotionTrajectory;
  Trajectory message;
  message.header.stamp = rclcpp::Time(stamp);
  message.joint_names.assign(robot_joint_names, robot_joint_names + n);
  message.time_from_start.assign(times, times + count);
  message.position.assign(poses, poses + count * n);
  for (auto * zero : {&message.velocity, &message.acceleration, &message.jerk, &message.snap}) {
    zero->assign(count * n, 0.0);
  }
  auto & node = *loop->controller->node;
  std::static_pointer_cast<rclcpp::Subscription<Trajectory>>(
    node.subscriptions.at("~/joint_motion_trajectory"))->callback(message);
  return node.log.empty();
}
double cycle(
  Loop * loop, std::int64_t now, std::int64_t period, const double * places, double * torques)
{
  using Clock = std::chrono::steady_clock;
  std::copy(places, places + 2 * n, loop->places);
  loop->controller->node->time = now;
  const long before = switches();
  const auto start = Clock::now();
  const auto result = loop->controller->update(rclcpp::Time(now), rclcpp::Duration(period));
  const auto end = Clock::now();
  loop->interrupted = switches() != before;
  std::copy(loop->torques, loop->torques + n, torques);
  return result == controller_interface::return_type::OK ?
         std::chrono::duration<double>(end - start).count() : -1.0;
}
}
"""


def _switches() -> int:
    """How often this thread has given its processor away."""
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_nvcsw + usage.ru_nivcsw


class Case(NamedTuple):
    """How often a controller is called, and whether measurements are missing."""

    rate: int
    """[Hz]"""
    drops: float = 0.0


CASES = (Case(1000), Case(1000, DROPS), Case(2000), Case(4000))


def law_of(rate: int) -> Any:
    """The law of a rate [Hz], to whose drives a torque takes a cycle."""
    model = RobotModel.from_urdf(PANDA)
    warm_up(model)
    springs = {
        name: SeriesElastic(*values)
        for name, *values in zip(JOINTS, STIFFNESS.tolist(), MOTOR_INERTIA.tolist())
    }
    return tracking_controller(
        Actuators(model, springs), 1.0 / rate, torque_limits=TORQUE_LIMITS, delay=1.0 / rate
    )


def build(law: Any, folder: Path) -> ctypes.CDLL:
    """Compile the package of a law, with what calls it."""
    generate_code(law.model, folder, name='robot', controller=law, ros2_control=True)
    kernel, driver = folder / 'kernel', folder / 'driver.cpp'
    options = re.search(
        r'target_compile_options\(\S+ PRIVATE (.*)\)',
        (kernel / 'CMakeLists.txt').read_text(),
    )
    assert options is not None
    law_in_c, library = folder / 'law.o', folder / 'controller.so'
    source = kernel / 'robot_dynamics.c'
    flags = ('-std=c99', *options[1].split(), '-fPIC', '-c')
    compilers.run(compilers.C_COMPILERS[0], *flags, source, '-o', law_in_c)
    driver.write_text(SOURCE)
    parts = folder / 'src' / 'plugin.cpp', driver, law_in_c
    plugins.compile_plugin(library, plugins.KILTED, *parts, include=(kernel,), flags=FLAGS)
    loaded = compilation.load(library)
    pointer, time_ns, truth, number = (
        ctypes.c_void_p,
        ctypes.c_int64,
        ctypes.c_bool,
        ctypes.c_double,
    )
    for name, result, *arguments in (
        ('lead', number),
        ('begin', pointer, time_ns, pointer),
        ('restart', truth, pointer, time_ns, pointer),
        ('end', None, pointer),
        ('interrupted', truth, pointer),
        ('send', truth, pointer, time_ns, ctypes.c_int, pointer, pointer),
        ('cycle', number, pointer, time_ns, time_ns, pointer, pointer),
    ):
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


class Loop:
    """A robot, the controller in C that moves it, and its law in Python.

    Parameters
    ----------
    case : Case
    law : TrackingController
        Of its rate.
    library : ctypes.CDLL
        See `build`.

    Attributes
    ----------
    times : dict of str to array of float
        Of the cycles so far, in Python and in C [s].
    longest : dict of str to float
        The longest of those in which the thread ran all the time [s].
    difference : float
        Largest one of a torque, relative to the limit of the motor.
    error : float
        Sum of the squares of all errors of the links [rad^2].
    """

    START = 1_700_000_000 * 10**9  # ns

    def __init__(self, case: Case, law: Any, library: ctypes.CDLL) -> None:
        self.case, self.law, self._library = case, law, library
        self.period = 10**9 // case.rate
        self.plant = Plant(PANDA, JOINTS, STIFFNESS, MOTOR_INERTIA, limits=TORQUE_LIMITS)
        self._substeps = int(np.ceil(1e-9 * self.period / STEP))
        self.state = self.plant.at_rest(POSES[0])
        self._wanted, self._exact = (
            self._motion(1e-9 * self.period, lead) for lead in (library.lead(), 0.0)
        )
        self._random = np.random.default_rng(SEED)
        self.times = {'Python': array('d'), 'C': array('d')}
        self.longest = {'Python': 0.0, 'C': 0.0}
        self.difference = self.error = 0.0
        self._acting = self._torque = self.plant.torque
        self._now = self.START
        places = self._measured()
        self._one = library.begin(self._now, places.ctypes.data)

    @staticmethod
    def _motion(period: float, lead: float) -> Array:
        """Motion so much later than each cycle of a turn there and back, shape (N, 5, n)."""
        count = round((BEGIN + 2.0 * LEG + REST) / period)
        times = period * np.arange(count) + lead - BEGIN
        found = np.stack(
            [PATH(np.clip(times, 0.0, 2.0 * LEG), nu) for nu in range(5)], axis=1
        )
        found[(times <= 0.0) | (times >= 2.0 * LEG), 1:] = 0.0
        return found

    def _measured(self) -> Array:
        """Positions of links and motors, by the encoders (2 n,)."""
        places: Array = LINK_STEP * np.round(self.state[[LINKS, MOTORS]] / LINK_STEP)
        return places.ravel()

    def run(self, seconds: float) -> None:
        """Go on for a time of the robot, a turn there and back at most.

        Raises
        ------
        RuntimeError
            If the controller refuses a motion, has no torque or stops the robot.
        """
        count = min(round(1e9 * seconds / self.period), len(self._wanted))
        send = round(1e9 * (BEGIN - BEFORE) / self.period)
        wanted = self._wanted[:count].copy()
        # Until there is a motion, the controller holds the robot where it begins.
        wanted[:send, 0] = self._restart()
        for i in range(count):
            if i == send:
                stamp = self._now + round(1e9 * BEFORE)
                arrays = KNOTS.ctypes.data, POSES.ctypes.data
                if not self._library.send(self._one, stamp, len(KNOTS), *arrays):
                    raise RuntimeError('The controller refuses the motion.')
            self._cycle(wanted[i], i > 0 and self._random.random() < self.case.drops)
            # The torque of the cycle before still acts.
            self.error += np.sum((self.state[LINKS] - self._exact[i, 0]) ** 2)
            self.state = self.plant.hold(
                self.state, self._acting, 1e-9 * self.period, self._substeps
            )
            self._acting = self._torque
            self._now += self.period

    def _restart(self) -> Array:
        """Begin anew; positions (n,) of the links.

        The law in Python does not move the robot: its integral action would add up roundings.
        """
        places = self._measured()
        if not self._library.restart(self._one, self._now, places.ctypes.data):
            raise RuntimeError('The controller does not begin.')
        self.law.reset()
        return places[: len(JOINTS)]

    def _cycle(self, wanted: Array, is_missing: bool) -> None:
        places = np.full(2 * len(JOINTS), np.nan) if is_missing else self._measured()
        torque, n = np.empty(len(JOINTS)), len(JOINTS)
        arrays = places.ctypes.data, torque.ctypes.data
        took = self._library.cycle(self._one, self._now, self.period, *arrays)
        self._note('C', took, self._library.interrupted(self._one))
        switches, start = _switches(), time.perf_counter()
        command = self.law.evaluate(
            wanted, places[:n], None, places[n:], None, elapsed=1e-9 * self.period
        )
        duration = time.perf_counter() - start
        self._note('Python', duration, _switches() != switches)
        if took < 0.0 or command.reason:
            raise RuntimeError(f'{self.case}: {command.reason or "there is no torque."}')
        difference = np.abs(torque - command.torque) / TORQUE_LIMITS
        self.difference = max(self.difference, float(difference.max()))
        self._torque = torque

    def _note(self, language: str, duration: float, is_interrupted: bool) -> None:
        self.times[language].append(duration)
        if not is_interrupted:
            self.longest[language] = max(self.longest[language], duration)

    def rows(self) -> list[list[str]]:
        """Rows of the table, one of each language."""
        count = len(self.times['C'])
        error = np.sqrt(self.error / (count * len(JOINTS)))
        cells = [f'{self.case.rate} Hz', f'{100.0 * self.case.drops:g} %', f'{count}']
        found = []
        for name, digits in (('Python', 0), ('C', 1)):
            of_cycle = [*np.quantile(self.times[name], (0.5, 0.999)), self.longest[name]]
            of_cycle.append(max(self.times[name]))
            found.append(
                [*cells, name, *(f'{1e6 * value:.{digits}f}' for value in of_cycle)]
            )
        found[1] += [f'{self.difference:.0e}', f'{1e3 * error:.3f}']
        return [[*found[0], '', ''], found[1]]

    def close(self) -> None:
        """Free what the library holds."""
        self._library.end(self._one)


def measure(minutes: float) -> list[Table]:
    """Table of all cases, which take turns, for minutes of the robot's time altogether.

    Raises
    ------
    RuntimeError
        Also if Python has other torques.
    """
    left = 60.0 * minutes / len(CASES)
    with tempfile.TemporaryDirectory() as folder:
        libraries = {
            rate: build(law_of(rate), Path(folder) / str(rate))
            for rate in dict.fromkeys(case.rate for case in CASES)
        }
        loops = [Loop(case, law_of(case.rate), libraries[case.rate]) for case in CASES]
        while left > 0.0:
            for loop in loops:
                loop.run(left)
            left -= BEGIN + 2.0 * LEG + REST
    for loop in loops:
        loop.close()
        if loop.difference > TOLERANCE:
            raise RuntimeError(f'{loop.case}: torques in C are not those in Python.')
    header = ['rate', 'missing', 'cycles', 'law in', 'median [µs]', '99.9 %', 'longest']
    header += ['worst', 'difference', 'links [mrad]']
    return [Table('Cycle times', header, [row for loop in loops for row in loop.rows()])]


BENCHMARKS = {
    'tracking_cycle': Benchmark(
        'Cycle times of a generated tracking controller, beside its law in Python',
        SIZES,
        measure,
    )
}
