"""Control laws of elastic joints on a robot, sensors, drives and a bus that are not as they think.

Rows are what is wrong (benchmarks/disturbed_robot.py simulates it), columns the laws. A Panda with
springs in its joints follows one motion of 2.6 s; for the walls, its tip goes down.

One rule tunes the laws whose bandwidth is not given: the smallest RMS error of the case "all" on
another motion with a delay of 2 ms that no law is told, among the bandwidths with which no torque
reaches its limit or changes by more than 1000 N m/s in the last tenth of a second, at rest. If
there is none, the smallest error. It is applied once for each sample rate. Without the delay it
would choose bandwidths that leave no margin for any.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.comparison_laws import make_compared
from benchmarks.disturbed_robot import (
    AWAY,
    SEED,
    TIP,
    Case,
    Refused,
    Robot,
    Run,
    follow,
    panda,
    refusal,
)
from benchmarks.tables import Benchmark, Picture, Table, in_parallel
from hodyn_ros.actuators import Actuators, SeriesElastic
from hodyn_ros.control import Guards, tracking_controller
from hodyn_ros.errors import HodynError
from hodyn_ros.model.friction import Coulomb

from support.control_cases import (  # isort: skip
    FAST_MOTION,
    HOME,
    LINK_STEP,
    MOTOR_INERTIA,
    MOTOR_STEP,
    PERIOD,
    TORQUE_LIMITS,
    TUNING_MOTION,
    PointToPoint,
)

Array = NDArray[np.float64]

BANDWIDTHS = (10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 80.0, 110.0)  # rad/s
LARGEST_RATE = 1000.0  # N m/s, what the interface of the Franka robots permits
KNOWN_TO = 0.01  # of what is identified
SMOOTHING = 0.02  # rad/s, of the friction that is identified
TOUCH = 0.2  # m/s, speed of the tip at the wall
WAY = 0.15  # m, of the tip
GUARDS = Guards(max_external_torque=0.6 * TORQUE_LIMITS)

# --- Cases ------------------------------------------------------------------------------------


@cache
def going_down() -> tuple[PointToPoint, float]:
    """Motion on which the tip goes down, and its height [m] where it does so at `TOUCH`."""
    robot, start = Robot(), np.array(HOME)
    end = start + np.linalg.pinv(robot.tip(start)[1]) @ [0.0, 0.0, -WAY]
    once = PointToPoint((start, end), (0.0, 1.0))
    q, qd = once(np.array([0.5]))[0, :2]
    place, J = robot.tip(q)
    return PointToPoint((start, end), (0.0, -float(J[2] @ qd) / TOUCH)), float(place[2])


def wall(stiffness: float) -> Case:
    """Case of a wall [N/m] that the tip meets."""
    motion, height = going_down()
    return Case(wall=(height, stiffness), motion=motion, rest=1.0)


ALL = Case({'payload': 1.0, 'coulomb': 1.0}, stiffness=-0.05)
TUNING = replace(ALL, delay=2e-3, motion=TUNING_MOTION)
WALLS = {'wall, 1e4 N/m': 1e4, 'wall, 1e5 N/m': 1e5}
STRIBECK = {
    'coulomb': 1.0,
    'breakaway': 1.5,
    'stribeck_velocity': 0.05,
    'link_coulomb': 0.5,
}

CASES: dict[str, Case] = {
    'exact': Case(),
    **{f'K {k:+d} %': Case(stiffness=k / 100.0) for k in (-30, -20, -10, 10, 20, 30)},
    'mass +10 %': Case({'mass': 1.1}),
    'payload 1 kg': Case({'payload': 1.0}),
    'payload 3 kg': Case({'payload': 3.0}),
    'motor Coulomb 1 N m': Case({'coulomb': 1.0}),
    'Stribeck friction': Case(STRIBECK),
    'damper 3 N m s/rad': Case({'damping': 3.0}),
    'hysteresis 0.5 N m': Case(hysteresis=0.5),
    'backlash 0.1 mrad': Case({'backlash': 1e-4}),
    'rotors, gear of 100': Case({'gear_ratio': 100.0}),
    **{f'motor inertia x {b:g}': Case(known_inertia=b) for b in (0.1, 0.5, 2.0)},
    'current loop 300 Hz': Case(current_loop=300.0),
    **{f'delay {ms} ms, known': Case(delay=1e-3 * ms, knows_delay=True) for ms in (1, 2)},
    **{f'delay {ms} ms, unknown': Case(delay=1e-3 * ms) for ms in (1, 2, 3, 4)},
    'calls dropped 5 %': Case(dropped=0.05),
    'calls dropped 10 %': Case(dropped=0.1),
    'calls dropped 20 %': Case(dropped=0.2),
    'jitter 0.3 ms': Case(jitter=0.3),
    'glitch 1 rad, link': Case(glitch=('link', 3, 1.0)),
    'glitch 0.15 rad, motor': Case(glitch=('motor', 3, 0.15)),
    'glitch NaN, link': Case(glitch=('link', 3, np.nan)),
    'glitch NaN, motor': Case(glitch=('motor', 3, np.nan)),
    'brakes 0.5 s': Case(brakes=True, rest=1.5),
    'drives off 0.15 s': Case(drives_off=True, rest=1.5),
    **{name: wall(stiffness) for name, stiffness in WALLS.items()},
    'push 20 N': Case(push=20.0),
    'push 50 N': Case(push=50.0),
    'start 0.05 rad off': Case(offset=0.05),
    'fast': Case(motion=FAST_MOTION, rest=1.8),
    '250 Hz': Case(period=4e-3),
    '500 Hz': Case(period=2e-3),
    '4 kHz': Case(period=2.5e-4),
    'all': ALL,
    '250 Hz, all': replace(ALL, period=4e-3),
    '500 Hz, all': replace(ALL, period=2e-3),
    '4 kHz, all': replace(ALL, period=2.5e-4),
    'all, known to 1 %': replace(ALL, is_identified=True),
    'all, K = 5000': replace(ALL, spring=5000.0),
    'all, K = 20000': replace(ALL, spring=20000.0),
    'motors x 100': Case(motor_scale=100.0),
    'motors x 100, limits not given': Case(motor_scale=100.0, knows_limits=False),
    'motors x -1': Case(motor_scale=-1.0),
    'motors x -1, limits not given': Case(motor_scale=-1.0, knows_limits=False),
}
# --- Laws -------------------------------------------------------------------------------------


class Known(NamedTuple):
    """What a law knows of the robot."""

    actuators: Actuators
    period: float
    """[s]"""
    limits: Array | None
    """Shape (n,) [N m]."""
    delay: float
    """[s]"""


def known(case: Case) -> Known:
    """Say what a law knows of the robot of a case."""
    model, friction, stiffness = panda(), None, case.nominal_stiffness
    if case.is_identified:
        stiffness = (1.0 + case.stiffness) * (1.0 + KNOWN_TO) * stiffness
        model = model.with_payload(TIP, (1.0 - KNOWN_TO) * case.plant['payload'])
        friction = Coulomb((1.0 - KNOWN_TO) * case.plant['coulomb'], SMOOTHING)
    rows = zip(model.joint_names, stiffness.tolist(), MOTOR_INERTIA.tolist())
    springs = {
        name: SeriesElastic(k, case.known_inertia * b, friction=friction)
        for name, k, b in rows
    }
    limits = TORQUE_LIMITS if case.knows_limits else None
    delay = case.delay * case.knows_delay
    return Known(Actuators(model, springs), case.period, limits, delay)


def recommended(robot: Known, w: float | None) -> Any:
    """Make the tracking law, with its default bandwidth if none is given."""
    return tracking_controller(
        robot.actuators,
        robot.period,
        bandwidth=w,
        torque_limits=robot.limits,
        delay=robot.delay,
        guards=GUARDS,
        resolution=(LINK_STEP, MOTOR_STEP),
    )


def of_kind(kind: str, robot: Known, w: float) -> Any:
    """Make a law without memory by its name."""
    # Exact linearisation must not be told of a delay.
    lead = 0.5 * robot.period + (robot.delay if kind != 'flatness' else 0.0)
    return make_compared(kind, robot.actuators, w, torque_limits=robot.limits, lead=lead)


class Kind(NamedTuple):
    """How a law is made and called."""

    make: Callable[[Known, float], Any]
    is_tuned: bool = True
    """Whether the bandwidth is chosen by the rule; otherwise it is that of the law."""


LAWS = {
    'tracking': Kind(recommended, False),
    'FF + PD': Kind(partial(of_kind, 'feed_forward_2')),
    'linearisation': Kind(partial(of_kind, 'flatness')),
    'computed torque': Kind(partial(of_kind, 'rigid_computed_torque')),
    'PD + gravity': Kind(partial(of_kind, 'pd_gravity')),
}
# --- Runs -------------------------------------------------------------------------------------


class Job(NamedTuple):
    """One run."""

    law: str
    bandwidth: float
    case: Case


def run(job: Job) -> Run:
    """Do one run."""
    with warnings.catch_warnings(), np.errstate(over='ignore', invalid='ignore'):
        warnings.simplefilter('ignore')  # of robots that run away, and of gains
        try:
            law = LAWS[job.law].make(known(job.case), job.bandwidth)
            return follow(law, job.case)
        except (HodynError, Refused) as reason:
            return refusal(job.case.period, str(reason))


def chosen(tried: Mapping[float, Run]) -> float:
    """Choose the bandwidth [rad/s] of a law among those that have been tried, by the rule."""
    there = {w: run for w, run in tried.items() if not (run.refused or run.diverged)}
    calm = [
        w for w, run in there.items() if not run.saturated and run.rates[1] <= LARGEST_RATE
    ]
    return min(calm or there or tried, key=lambda w: tried[w].rms)


class Size(NamedTuple):
    """What is run."""

    cases: tuple[str, ...]
    bandwidths: tuple[float, ...]


QUICK = (
    'exact',
    'K -10 %',
    'payload 3 kg',
    'motor Coulomb 1 N m',
    'motor inertia x 0.1',
    'delay 4 ms, unknown',
    'calls dropped 5 %',
    'glitch 1 rad, link',
    'brakes 0.5 s',
    'drives off 0.15 s',
    'wall, 1e4 N/m',
    'push 50 N',
    'fast',
    'all',
    'motors x 100, limits not given',
)
SIZES = {
    'tiny': Size(('exact', 'wall, 1e4 N/m', 'motors x 100'), BANDWIDTHS[2:3]),
    'quick': Size(QUICK, (20.0, 40.0, 60.0)),
    'full': Size(tuple(CASES), BANDWIDTHS),
}

Bandwidths = Mapping[tuple[str, float], float]
"""By law and sample period [s], in rad/s."""
Found = Mapping[tuple[str, str], Run]
"""By law and name of the case."""


def tuned(size: Size) -> Bandwidths:
    """Bandwidths of the laws."""
    periods = sorted({CASES[name].period for name in size.cases} | {PERIOD})
    found, jobs = {}, []
    for period in periods:
        for law, kind in LAWS.items():
            if not kind.is_tuned:
                found[law, period] = recommended(known(Case(period=period)), None).bandwidth
            else:
                case = replace(TUNING, period=period)
                jobs += [Job(law, w, case) for w in size.bandwidths]
    tried: dict[tuple[str, float], dict[float, Run]] = {}
    for job, result in zip(jobs, in_parallel(run, jobs)):
        tried.setdefault((job.law, job.case.period), {})[job.bandwidth] = result
    return found | {key: chosen(runs) for key, runs in tried.items()}


def runs(size: Size, bandwidths: Bandwidths) -> Found:
    """Do all runs."""
    places = [(law, name) for name in size.cases for law in LAWS]
    jobs = [
        Job(law, bandwidths[law, CASES[name].period], CASES[name]) for law, name in places
    ]
    return dict(zip(places, in_parallel(run, jobs)))


# --- Tables -----------------------------------------------------------------------------------


def shown(value: float) -> str:
    """Write a number with two digits or all before its point, with an exponent from 1e6 on."""
    return f'{value:.0f}' if 100.0 <= value < 1e6 else f'{value:.2g}'


def errors(result: Run) -> str:
    """Write RMS and peak error, and that at the end [mrad]."""
    if result.diverged:
        return f'diverges at {result.times[-1]:.2f} s'
    return ' / '.join(map(shown, (result.rms, result.peak, result.at_end)))


def rates(result: Run) -> str:
    """Write torque rates in motion and at rest [N m/s]."""
    moving, at_rest = result.rates
    return f'{shown(moving)} / {"-" if result.diverged else shown(at_rest)}'


def violations(result: Run) -> str:
    """Write largest speed by its limit and share of samples at a torque limit, if too much."""
    parts = []
    if result.velocity > 1.005:
        parts.append(f'speed x {result.velocity:.2f}')
    if result.saturated:
        parts.append(f'torque {shown(100.0 * result.saturated)} %')
    return ', '.join(parts) or 'none'


def heard(result: Run) -> str:
    """Write when a law has refused or given a reason [s], and its last state."""
    when = 'silent' if result.said is None else f'{result.said[0]:.3f} s'
    return f'{when}, {result.state}' if result.state else when


def contact(result: Run) -> str:
    """Write peak force, mean and standard deviation of the last 0.3 s [N]."""
    last = result.force[-round(0.3 / result.period) :]
    peak = shown(float(result.force.max()))
    if result.diverged:
        return f'{peak}, diverges'
    return f'{peak} / {last.mean():.0f} / {last.std():.1f}'


LEGEND = (
    'Columns are laws with their bandwidths at 1 kHz [rad/s]: the recommended tracking law; the '
    'feed-forward of the torques and two derivatives with PD of the motors; exact linearisation; '
    'computed torque of a rigid robot; PD of the motors with weight. The tracking law has its '
    'default bandwidth. The others get, at each sample rate, that with the smallest RMS error of '
    '"all" with an unknown delay of 2 ms in another motion, of {bandwidths} rad/s, with which no '
    f'torque reaches its limit or, at rest, changes by more than {LARGEST_RATE:.0f} N m/s. "All" '
    'is K -5 %, a payload of 1 kg and 1 N m of Coulomb friction in the motors. All rows have '
    'encoders, none has stops of the joints; a robot diverges when a joint is more than '
    f'{AWAY:.2f} rad off. A law that refuses a measurement has its last torques held; "refused" '
    f'is one that gave none. Seed {SEED}.'
)


def tables(size: Size, bandwidths: Bandwidths, found: Found) -> list[Table]:
    """Write all results."""

    def table(
        title: str,
        write: Callable[[Run], str],
        names: Sequence[str],
        notes: Sequence[str] = (),
    ) -> Table:
        header = ['case', *(f'{law}, {bandwidths[law, PERIOD]:.0f}' for law in LAWS)]
        rows = []
        for name in names:
            results = [found[law, name] for law in LAWS]
            rows.append([name, *('refused' if r.refused else write(r) for r in results)])
        return Table(title, header, rows, notes)

    spoken = {name for (_, name), result in found.items() if result.said is not None}
    said = [
        f'- {name}: {found["tracking", name].said[1]}'
        for name in size.cases
        if found['tracking', name].said is not None
    ]
    listed = ', '.join(f'{w:.0f}' for w in size.bandwidths)
    periods = sorted({period for _, period in bandwidths})
    return [
        table(
            'RMS / peak error of the links, largest one in the last 50 ms [mrad]',
            errors,
            size.cases,
            [LEGEND.format(bandwidths=listed)],
        ),
        table(
            'Largest change of a motor torque in motion / at rest [N m/s]',
            rates,
            size.cases,
        ),
        table(
            'Limits that are exceeded: largest speed of a joint by its limit if 0.5 % above it, '
            'share of samples in which a torque is at its limit',
            violations,
            size.cases,
        ),
        table(
            'When the law first refused a measurement or gave a reason, in cases where one did',
            heard,
            [name for name in size.cases if name in spoken],
            ['What the tracking law said first:', *said],
        ),
        table(
            f'Contact at {TOUCH:g} m/s: peak force / mean / standard deviation in the last 0.3 s '
            '[N]',
            contact,
            [name for name in size.cases if name in WALLS],
        ),
        Table(
            'Bandwidths [rad/s]',
            ['', *LAWS],
            [
                [f'{1.0 / T:.0f} Hz', *(f'{bandwidths[law, T]:.0f}' for law in LAWS)]
                for T in periods
            ],
        ),
    ]


# --- Picture ----------------------------------------------------------------------------------

COLORS = ('#000000', '#e69f00', '#0072b2', '#009e73', '#cc79a7')
"""Colours of the laws, which those can tell apart who do not see all colours (Okabe and Ito)."""
TORQUE_JOINT = 1
TORQUE_LAWS = ('tracking', 'FF + PD')
PANELS = (
    ('all', 'Springs 5 % softer, 1 kg of payload, 1 N m of Coulomb friction'),
    ('push 50 N', 'Nothing but 50 N of push at the tip, from 0.5 s on'),
    ('all', f'As at the top: what {" and ".join(TORQUE_LAWS)} ask of a motor'),
)


def draw(bandwidths: Bandwidths, found: Found, figure: Any) -> None:
    """Draw errors under all faults and a push, and torques with their limits."""
    axes = figure.subplots(3, 1, sharex=True)
    torques, limit = axes[-1], TORQUE_LIMITS[TORQUE_JOINT]
    for axis, (row, title) in zip(axes, PANELS):
        for law, color in zip(LAWS, COLORS):
            result = found[law, row]
            style = {'color': color, 'lw': 2.8 if law == 'tracking' else 1.4}
            if axis is torques:
                if law in TORQUE_LAWS:
                    times = result.times[: len(result.torque)]
                    axis.plot(times, result.torque[:, TORQUE_JOINT], **style)
                continue
            rms = 1e3 * np.sqrt(np.mean(result.error**2, axis=1))
            label = f'{law}, {bandwidths[law, PERIOD]:.0f} rad/s'
            axis.semilogy(result.times, rms, label=label, **style)
            axis.set_ylabel('RMS error of links [mrad]', fontsize=11)
            axis.set_ylim(1e-2, 1e3)
        axis.set_title(title, fontsize=11, loc='left')
        axis.grid(alpha=0.3)
        axis.margins(x=0.01)
    for side in (-limit, limit):
        torques.axhline(side, color='black', ls=':', lw=1.2)
    torques.set_ylim(-1.15 * limit, 1.15 * limit)
    torques.set_ylabel(f'motor torque, joint {TORQUE_JOINT + 1} [N m]', fontsize=11)
    torques.set_xlabel('time [s]', fontsize=11)
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc='outside upper center', ncol=3, fontsize=10.5)


def measure(size: Size) -> list[Table | Picture]:
    """Tune and run."""
    bandwidths = tuned(size)
    moved = runs(size, bandwidths)
    found: list[Table | Picture] = [*tables(size, bandwidths, moved)]
    if {row for row, _ in PANELS} <= set(size.cases):
        # Pages show it 700 pixels wide, with which fonts of this size are as large as their text.
        found.append(Picture((7.0, 9.2), partial(draw, bandwidths, moved)))
    return found


BENCHMARKS = {
    'laws': Benchmark('Control laws of elastic joints under faults', SIZES, measure)
}
