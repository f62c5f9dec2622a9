"""Streams of action chunks: what becomes of them here and in joint_trajectory_controller.

    python -m benchmarks.chunks [--size full] [-o doc/benchmarks/chunks.inc]

Chunks like those of a learned policy for the Panda: positions at 50 Hz along a smooth motion, with
noise in every position and an offset in every chunk, by which successive ones contradict each
other. They come late by a latency, replanned at 5, 20 and 60 Hz with jitter. Here each is spliced
into the motion in progress at the next knot that planning can reach. joint_trajectory_controller
replaces its trajectory on arrival: points that have passed are dropped, and the motion goes from
what is commanded at that moment to the next point, linearly through positions or, with
`positions_upsampling`, by cubics with the velocities of the spline of class C2 through the whole
chunk, at rest at its ends. All motions are sampled every millisecond, as a robot receives them;
velocities, accelerations and torque rates are differences of these samples, with torques from
inverse dynamics.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline, CubicSpline

from benchmarks.report import grid, options
from benchmarks.retiming import EFFORT_DOT, panda
from hodyn_ros import RobotModel, inverse_dynamics
from hodyn_ros.model.limits import MotionLimits
from hodyn_ros.retiming import splice
from hodyn_ros.trajectory import PiecewiseMotion, Waypoints

Array = NDArray[np.float64]

HOME = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8])
PERIOD, CYCLE = 0.02, 0.001
"""Of the positions in a chunk and of the robot [s]."""
NOISE, OFFSET = 1e-3, 5e-3
"""Standard deviations of errors of positions and of chunks [rad]."""
LATENCY, LEAD, STEP = 0.03, 0.02, 0.01
"""From the observation to the arrival of a chunk, from there on for planning, and between knots
[s]."""
STREAMS = {5.0: 50, 20.0: 16, 60.0: 16}
"""Positions in a chunk by the rate of chunks [Hz]."""
SIZES = {'tiny': 1.0, 'quick': 10.0, 'full': 60.0}
"""Duration of the streams [s]."""
JITTER = 0.3
"""Largest part by which a chunk comes earlier or later than the rate says."""

Follower = Callable[[float, Array, Array], Callable[[Array], Array]]
"""From the arrival of a chunk, its times and positions to positions (N, n) at times (N,)."""


def task(t: Array) -> Array:
    """Smooth motion (N, 7) out of rest that chunks are made of."""
    t = np.maximum(t, 0.0)[:, None]
    swing = np.sin(2.0 * t + np.arange(7)) - np.sin(np.arange(7))
    return HOME + 0.4 * (1.0 - np.exp(-(t**2))) * swing


def chunks(rate: float, duration: float, seed: int = 0) -> list[tuple[float, Array, Array]]:
    """Arrivals, times and positions of chunks."""
    random, found, now = np.random.default_rng(seed), [], 0.0
    while now < duration:
        times = now + PERIOD * np.arange(STREAMS[rate])
        errors = NOISE * random.normal(size=(len(times), 7)) + OFFSET * random.normal(
            size=7
        )
        found.append((now + LATENCY, times, task(times) + errors))
        now += random.uniform(1.0 - JITTER, 1.0 + JITTER) / rate
    return found


class Controller:
    """joint_trajectory_controller with chunks of positions, replaced on arrival."""

    def __init__(self, upsampling: bool) -> None:
        self._upsampling = upsampling
        self._now: Callable[[Array], Array] = lambda t: np.tile(HOME, (len(t), 1))

    def follow(
        self, arrival: float, times: Array, positions: Array
    ) -> tuple[float, Callable]:
        """Replace the motion; when, and by what."""
        # Position and velocity that are commanded at this moment.
        around = self._now(np.array([arrival - 1e-6, arrival]))
        state, speed = around[1], (around[1] - around[0]) / 1e-6
        ahead = times > arrival
        knots = np.append(arrival, times[ahead])
        rows = np.concatenate((state[None], positions[ahead]))
        motion: Callable[[Array], Array]
        if self._upsampling:
            velocities = CubicSpline(times, positions, bc_type='clamped')(times, 1)
            rates = np.concatenate((speed[None], velocities[ahead]))
            motion = CubicHermiteSpline(knots, rows, rates)
        else:
            motion = lambda t: np.stack([np.interp(t, knots, row) for row in rows.T], 1)  # noqa: E731
        self._now = lambda t: motion(np.clip(t, knots[0], knots[-1]))
        return arrival, self._now


class Splicer:
    """`splice`, at the first knot that planning can reach."""

    def __init__(self, model: RobotModel, limits: MotionLimits) -> None:
        self._model, self._limits = model, limits
        self.current: PiecewiseMotion | Array = HOME
        self._begin = 0.0
        self.seconds: list[float] = []
        """Of a processor, for each chunk."""

    def follow(
        self, arrival: float, times: Array, positions: Array
    ) -> tuple[float, Callable]:
        """Replace the motion; when, and by what."""
        join = STEP * np.ceil((arrival + LEAD) / STEP - 1e-6)
        chunk = Waypoints(self._model.joint_names, times - self._begin, positions)
        start = time.process_time()
        motion = splice(
            self._model, self._limits, chunk, self.current, join - self._begin, step=STEP
        )
        self.seconds.append(time.process_time() - start)
        self.current, self._begin = motion, join
        return join, lambda t: motion(np.clip(t - join, 0.0, motion.end_time), 0)[:, 0]


class Played(NamedTuple):
    """A stream as a robot receives it; the largest values of all joints."""

    rate: float
    """Torque rate, and the same at splices only [N m/s]."""
    velocity_jump: float
    """Change of the velocity in a cycle at a splice [rad/s]."""
    acceleration_jump: float
    """Of the acceleration [rad/s^2]."""
    lag: float
    """Delay behind the smooth motion that explains the stream best [s]."""
    error: float
    """Root of the mean square of what it does not explain [rad]."""


def played(model: RobotModel, follower: Controller | Splicer, given: list) -> Played:
    """Play a stream of chunks."""
    pieces = [follower.follow(*chunk) for chunk in given]
    ends = [begin for begin, _ in pieces[1:]] + [given[-1][1][-1]]
    t = CYCLE * np.arange(round(pieces[0][0] / CYCLE), round(ends[-1] / CYCLE))
    q = np.zeros((len(t), 7))
    for (begin, motion), end in zip(pieces, ends):
        chosen = (t >= begin - 1e-9) & (t < end - 1e-9)
        q[chosen] = motion(t[chosen])
    velocity = np.diff(q, axis=0)[1:] / CYCLE
    acceleration = np.diff(q, 2, axis=0) / CYCLE**2
    torque = inverse_dynamics(model, np.stack((q[2:], velocity, acceleration), axis=1))[
        :, 0
    ]
    rate = np.abs(np.diff(torque, axis=0)).max() / CYCLE
    splices = np.searchsorted(t, [begin for begin, _ in pieces[1:]])
    # Of the differences that contain the splice.
    near = (splices[:, None] + np.arange(-2, 2)).clip(0, len(velocity) - 2)
    velocity_jump = np.abs(np.diff(velocity, axis=0))[near].max()
    acceleration_jump = np.abs(np.diff(acceleration, axis=0))[near].max()
    moving, delays = t > 1.0 if t[-1] > 2.0 else t > 0.0, np.arange(-0.02, 0.1, CYCLE)
    errors = [np.square(q[moving] - task(t[moving] - delay)).mean() for delay in delays]
    best = int(np.argmin(errors))
    return Played(
        float(rate),
        float(velocity_jump),
        float(acceleration_jump),
        float(delays[best]),
        float(np.sqrt(errors[best])),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write it."""
    description = 'Streams of action chunks beside joint_trajectory_controller.'
    meaning = 'duration of the streams'
    chosen = options(arguments, 'chunks', description, SIZES, meaning)
    _, model, limits = panda()
    model.warm_up()
    header = (
        'chunks',
        '',
        'torque rate',
        'velocity jump',
        'acceleration jump',
        'lag',
        'rms error',
        'time for a chunk',
    )
    lines = [[*header]]
    for rate, size in STREAMS.items():
        given = chunks(rate, SIZES[chosen.size])
        splicer = Splicer(model, limits)
        followers = {
            'here': splicer,
            'controller, linear': Controller(upsampling=False),
            'controller, positions_upsampling': Controller(upsampling=True),
        }
        for name, follower in followers.items():
            found = played(model, follower, given)
            seconds = 1e3 * np.array(splicer.seconds)
            lines.append(
                [
                    f'{rate:g} Hz of {size}',
                    name,
                    f'{found.rate:.0f} N m/s',
                    f'{found.velocity_jump:.3f} rad/s',
                    f'{found.acceleration_jump:.2f} rad/s^2',
                    f'{1e3 * found.lag:.0f} ms',
                    f'{1e3 * found.error:.1f} mrad',
                    f'{np.median(seconds):.1f} ms (95 %: {np.percentile(seconds, 95):.1f} ms)'
                    if follower is splicer
                    else '',
                ]
            )
    text = grid(lines)
    text += (
        f'\nStreams of {SIZES[chosen.size]:g} s, noise of {1e3 * NOISE:g} mrad in positions and '
        f'{1e3 * OFFSET:g} mrad in chunks, which arrive {1e3 * LATENCY:g} ms after they have been '
        f'observed; here they are joined {1e3 * LEAD:g} ms later, at the next knot. All values '
        'are the largest of differences over 1 ms, jumps are those at splices; the torque rate of '
        f'the robot is limited to {EFFORT_DOT:.0f} N m/s. The lag is the delay behind the smooth '
        'motion that explains a stream best, the error what it does not explain, most of all the '
        'offsets of the chunks themselves. Times are those of a processor.\n'
    )
    print(text)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(text, encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
