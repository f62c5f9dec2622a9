"""Torques of a program that misses cycles, held or carried on by their derivatives.

    python -m benchmarks.effort_controller [--size full] [-o doc/benchmarks/effort_controller.inc]
        [--picture doc/images/effort_controller.png]

A Panda with springs in its joints goes there and back in 2.6 s, several times. Its drives, at
1 kHz, add a PD of the motor positions, the same for all, to a feed-forward torque: what rotors and
links need, by the motion. The drives have it themselves (exact), or a program sends it with its
first two time derivatives. Each message arrives `DELAY` after its time, and the program is away at
times: in each millisecond a pause begins with the probability `MISSES`. Directly means that the
drives take each message as the torque to be given from its arrival on. Otherwise
hodyn_controllers/EffortController stands between, compiled here without ROS.
benchmarks/elastic_plant.py simulates the robot.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BPoly

from benchmarks import compilation
from benchmarks.cases import ROOT
from benchmarks.elastic_plant import LINKS, MOTOR_SPEEDS, MOTORS, ElasticPlant
from benchmarks.report import grid, options
from hodyn_ros import RobotModel, inverse_dynamics

Array = NDArray[np.float64]

# The tests, which are no package, are on the path since `benchmarks.report` imports `cases`.
from support.control_cases import (  # noqa: E402
    HOME,
    MOTOR_INERTIA,
    PANDA,
    PERIOD,
    STIFFNESS,
    THERE,
    TORQUE_LIMITS,
)

DELAY = 0.5e-3  # s
MISSES = 1e-3
PAUSE = (5e-3, 20e-3)  # s, uniformly distributed
SEED = 7
BANDWIDTH = 20.0  # rad/s, of the PD by the inertia of the motors
RATE_LIMIT = 1000.0  # N m/s
EASE = 0.05  # s
RATES = (1000, 250, 100, 50)  # Hz
ORDERS = {'hold': 0, 'linear': 1, 'second': 2}
SHOWN = ('directly, 1000 Hz', 'controller, 100 Hz')
AROUND, WINDOW = 60, 50  # ticks of the picture
LEG = 1.3  # s, there and back
SIZES = {'tiny': 0.1, 'quick': 1.0, 'full': 4.0}
"""How often the robot goes there and back."""

SOURCE = """
#include <memory>
#include <string>
#include "hodyn_controllers/effort_follower.hpp"
using namespace hodyn_controllers;
extern "C" {
EffortFollower * follower(
  int n, const double * efforts, double rate, int extrapolation, double ease)
{
  EffortOptions options;
  for (int j = 0; j < n; ++j) {
    options.joints.push_back(std::to_string(j));
    options.limits.push_back({efforts[j], rate});
  }
  options.extrapolation = extrapolation;
  options.ease_time = ease;
  return fault_of(options).empty() ? new EffortFollower(options) : nullptr;
}
void drop(EffortFollower * one) {delete one;}
void reset(EffortFollower * one, const double * efforts) {one->reset(efforts);}
void give(EffortFollower * one, std::int64_t stamp, int size, const double * values)
{
  EffortSample sample(size / kOrders);
  sample.stamp = stamp;
  sample.order = 2;
  sample.values.assign(values, values + size);
  one->give(sample);
}
void update(EffortFollower * one, std::int64_t now, double period, int size, double * efforts)
{
  const auto & found = one->update(now, period, false);
  std::copy(found.begin(), found.begin() + size, efforts);
}
}
"""


def _pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Follower:
    """The core of EffortController.

    Parameters
    ----------
    order : {0, 1, 2}
        Highest derivative that is used.
    effort : ndarray, shape (n,)
        From which it begins [N m].

    Raises
    ------
    NotInstalled
        Without a compiler.
    """

    def __init__(self, order: int, effort: Array) -> None:
        include = ROOT / 'hodyn_controllers' / 'include'
        headers = sorted((include / 'hodyn_controllers').glob('*.hpp'))
        digest = hashlib.sha256(b''.join(file.read_bytes() for file in headers)).hexdigest()
        path = compilation.library(
            'effort_follower',
            f'// {digest}\n{SOURCE}',
            'c++',
            ('-std=c++17', f'-I{include}'),
        )
        self._library = library = compilation.load(path)
        library.follower.restype = ctypes.c_void_p
        self._effort = effort.copy()
        made = library.follower(
            len(effort),
            _pointer(TORQUE_LIMITS),
            ctypes.c_double(RATE_LIMIT),
            order,
            ctypes.c_double(EASE),
        )
        self._one = ctypes.c_void_p(made)
        library.reset(self._one, _pointer(self._effort))

    def give(self, stamp: float, values: Array) -> None:
        """Take torques (3, n) of a time [s] with two derivatives."""
        values = np.ascontiguousarray(values)
        self._library.give(
            self._one, ctypes.c_int64(round(1e9 * stamp)), values.size, _pointer(values)
        )

    def update(self, now: float) -> Array:
        """Torques (n,) at a tick [N m]."""
        self._library.update(
            self._one,
            ctypes.c_int64(round(1e9 * now)),
            ctypes.c_double(PERIOD),
            len(self._effort),
            _pointer(self._effort),
        )
        return self._effort.copy()

    def close(self) -> None:
        """Free what the library holds."""
        self._library.drop(self._one)


class Wanted(NamedTuple):
    """What motors should do at N times: exact."""

    position: Array
    """Of the links, shape (N, n) [rad]."""
    motors: Array
    """Positions and velocities of the motors, shape (N, 2, n) [rad, rad/s]."""
    torque: Array
    """Of the motors, with two derivatives, shape (N, 3, n) [N m/s^k]."""


def wanted(model: RobotModel, times: Array) -> Wanted:
    """Compute motors and torques along the motion.

    With theta = q + Q / K, a motor gives tau = B theta'' + Q.
    """
    knots = np.zeros((3, 6, len(HOME)))
    knots[:, 0] = HOME, THERE, HOME
    path = BPoly.from_derivatives([0.0, LEG, 2.0 * LEG], knots)
    motion = np.stack([path(times % (2.0 * LEG), nu) for nu in range(7)], axis=1)
    effort = inverse_dynamics(model, motion)
    theta = motion[:, :5] + effort / STIFFNESS
    torque = effort[:, :3] + MOTOR_INERTIA * theta[:, 2:5]
    return Wanted(motion[:, 0], theta[:, :2], torque)


def sent(rate: float, count: int) -> NDArray[np.intp]:
    """Ticks (N,) at which a program of a rate [Hz] sends, with its pauses."""
    rng = np.random.default_rng(SEED)
    away = np.zeros(count, dtype=bool)
    for i in np.flatnonzero(rng.random(count) < MISSES):
        away[i : i + round(rng.uniform(*PAUSE) / PERIOD)] = True
    due = np.zeros(count, dtype=bool)
    due[:: round(1.0 / (rate * PERIOD))] = True
    ticks: NDArray[np.intp] = np.flatnonzero(due & ~away)
    return ticks


def commanded(order: int | None, rate: float | None, exact: Array) -> Array:
    """Torques (N, n) at each tick.

    Parameters
    ----------
    order : {0, 1, 2}, optional
        Of the extrapolation; None: without the controller.
    rate : float, optional
        Of the messages [Hz]; None: exact torques.
    exact : ndarray, shape (N, 3, n)
    """
    if rate is None:
        return exact[:, 0]
    count = len(exact)
    messages = sent(rate, count)
    # The tick at which a message is there.
    arrivals = np.floor(messages + DELAY / PERIOD).astype(int) + 1
    newest = np.searchsorted(arrivals, np.arange(count), side='right') - 1
    if order is None:
        return np.where(newest[:, None] < 0, exact[:1, 0], exact[messages[newest], 0])
    follower, found = Follower(order, exact[0, 0]), []
    for i in range(count):
        if newest[i] >= 0 and arrivals[newest[i]] == i:
            stamp = messages[newest[i]]
            follower.give(1.0 + PERIOD * stamp, exact[stamp])
        found.append(follower.update(1.0 + PERIOD * i))
    follower.close()
    return np.array(found)


class Run(NamedTuple):
    """What a robot did, at N ticks."""

    name: str
    how: str
    torque: Array
    """Feed-forward beside the exact one, shape (N, n) [N m]."""
    error: Array
    """Links beside the motion, shape (N, n) [rad]."""
    step: float
    """Largest change of a commanded torque from tick to tick [N m]."""

    @property
    def cells(self) -> list[str]:
        """Row of the table."""
        rms = [np.sqrt(np.mean(x**2)) for x in (self.torque, self.error)]
        peak = [np.abs(x).max() for x in (self.torque, self.error)]
        return [
            self.name,
            self.how,
            f'{rms[0]:.2g}',
            f'{peak[0]:.2g}',
            f'{self.step:.2g}',
            f'{1e3 * rms[1]:.3f}',
            f'{1e3 * peak[1]:.3f}',
        ]


def follow(name: str, how: str, wish: Wanted, torques: Array) -> Run:
    """Let the robot follow the motion with feed-forward torques (N, n)."""
    plant = ElasticPlant(PANDA, STIFFNESS, MOTOR_INERTIA, TORQUE_LIMITS, 'panda_link8')
    state, places = plant.at_rest(wish.position[0]), []
    stiffness, damping = BANDWIDTH**2 * MOTOR_INERTIA, 2.0 * BANDWIDTH * MOTOR_INERTIA
    for torque, motors in zip(torques, wish.motors):
        places.append(state[LINKS].copy())
        pd = stiffness * (motors[0] - state[MOTORS])
        pd += damping * (motors[1] - state[MOTOR_SPEEDS])
        state = plant.advance(state, torque + pd, PERIOD)
    return Run(
        name,
        how,
        torques - wish.torque[:, 0],
        np.array(places) - wish.position,
        float(np.abs(np.diff(torques, axis=0)).max()),
    )


def measure(times: float) -> list[Run]:
    """Run all, going there and back so many times."""
    model = RobotModel.from_urdf(PANDA)
    wish = wanted(model, PERIOD * np.arange(round(times * 2.0 * LEG / PERIOD)))
    rows: list[tuple[str, str, int | None, float | None]] = [
        ('exact', '', None, None),
        ('directly, 1000 Hz', 'hold', None, 1000),
    ]
    rows += [
        (f'controller, {rate} Hz', how, order, rate)
        for rate in RATES
        for how, order in ORDERS.items()
    ]
    return [
        follow(name, how, wish, commanded(order, rate, wish.torque))
        for name, how, order, rate in rows
    ]


def text_of(runs: Sequence[Run]) -> str:
    """Table of all runs."""
    head = ['torques', 'between', 'RMS [N m]', 'peak', 'step', 'RMS [mrad]', 'peak']
    return grid([head, *(run.cells for run in runs)])


def draw(runs: Sequence[Run], file: Path) -> None:
    """Draw torque errors: around the worst pause, and the largest of all joints over time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [run for run in runs if run.name in SHOWN]
    worst, joint = np.unravel_index(np.abs(shown[0].torque).argmax(), shown[0].torque.shape)
    near = slice(max(int(worst) - AROUND, 0), int(worst) + AROUND // 2)
    time_of = PERIOD * np.arange(len(shown[0].torque))
    figure = Figure(figsize=(9.0, 6.5), layout='constrained')
    FigureCanvasAgg(figure)
    close, far = figure.subplots(2, 1)
    for run in shown:
        label = f'{run.name}, {run.how}'
        close.plot(
            time_of[near], run.torque[near, joint], drawstyle='steps-post', label=label
        )
        # The largest of every window: errors between two messages are teeth.
        count = len(run.torque) // WINDOW
        error = np.abs(run.torque[: count * WINDOW]).reshape(count, -1).max(axis=1)
        middles = PERIOD * WINDOW * (np.arange(count) + 0.5)
        far.semilogy(middles, np.maximum(error, 1e-7), label=label)
    close.set_title(f'joint {joint + 1} around the worst pause', fontsize='medium')
    close.legend(loc='upper left', fontsize='small')
    far.set_title('largest of all joints', fontsize='medium')
    far.set_xlabel('time [s]')
    for panel in (close, far):
        panel.set_ylabel('torque error [N m]')
        panel.grid(alpha=0.3)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write it and draw the picture."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    picture = ROOT / 'build' / 'bench' / 'effort_controller.png'
    if '--picture' in given:
        at = given.index('--picture')
        picture = Path(given[at + 1])
        del given[at : at + 2]
    description = 'Torques of a program that misses cycles, held or carried on.'
    chosen = options(given, 'effort_controller', description, SIZES, 'motions')
    start = time.monotonic()
    runs = measure(SIZES[chosen.size])
    text = text_of(runs)
    print(text)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(text, encoding='utf-8')
    draw(runs, picture)
    seconds = time.monotonic() - start
    print(f'{seconds:.0f} s. Written: {chosen.output}, {picture}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
