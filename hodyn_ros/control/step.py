"""One sample of a law: what is measured is believed or not, observed, judged and answered.

`machine_code` compiles these functions and those of the modules in `_BEFORE`, and
`hodyn_ros.codegen` translates the same text to C99. Their arguments are records, see `layouts`: an
observer with its robot (o) and a law (c). Source of the equations: `observer`, `guards`,
`tracking` and `interaction`.
"""

from __future__ import annotations

import ctypes
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from math import isfinite, pi

from hodyn_ros.control import (
    demands,
    holding,
    kernels,
    layouts,
    observing,
    robot_code,
    suspicion,
    yielding,
)
from hodyn_ros.control.demands import begin, begin_again, follow, release
from hodyn_ros.control.holding import (
    OVERLOAD,
    hold_found,
    hold_here,
    moving_motor,
    stay,
    stop,
    unready,
)
from hodyn_ros.control.layouts import (
    ASKED,
    BEYOND_RANGE,
    BRIDGED,
    ENCODER_STANDS,
    EXTERNAL_TORQUE,
    FOLLOWS,
    GAP,
    HELD,
    IMPLAUSIBLE,
    LAW,
    MEASURED,
    MEASUREMENTS,
    NOT_FINITE,
    OBSERVER,
    REPEATED,
    SATURATION,
    SENSOR_LOST,
    SILENCE,
    SPRING_RANGE,
    TORQUE,
    WEIGHT,
    Law,
    Observer,
)
from hodyn_ros.control.observing import (
    MOST_FOUND,
    forget,
    is_finite,
    look_ahead,
    push,
    receive,
    springs_at,
    take,
)
from hodyn_ros.control.records import WHOLE
from hodyn_ros.control.suspicion import MOST_GATED, watch
from hodyn_ros.engine.engine import compiling, unavailable
from hodyn_ros.engine.plain_python import Fields

STEP, RECEIVE, STOP, BEGIN, UNREADY, RELEASE, PUSH = range(7)
"""What `do` does."""
# Difference of a torque sensor to the deflection, by the torque limit of the motors: in the first
# measurement, and from one to the next.
CONTRADICTION, SENSOR_STEP = 0.25, 0.1
_PYTHON = ('machine_code', 'source_of_steps', 'numbers_of_steps')
_BEFORE = kernels, robot_code, suspicion, observing, holding, yielding, demands


# --- The measurement ----------------------------------------------------------------------------


def is_plausible(o: Observer, c: Law) -> int:
    """Whether positions may be those of the robot, by limits and by torques of springs."""
    for i in range(o.n):
        if o.q[i] < c.lower[i] or o.q[i] > c.upper[i]:
            return 0
        if abs(o.deflected[i]) > OVERLOAD * c.joint_limit[i]:
            return 0
    return 1


def agrees(o: Observer, c: Law) -> int:
    """Whether torque sensors agree with the deflections of the springs."""
    for i in range(o.n):
        if abs(o.deflected[i] - o.torque[1, i]) > CONTRADICTION * c.joint_limit[i]:
            return 0
    return 1


def accept(o: Observer, c: Law) -> int:
    """Take a first measurement, if it may be one; zero, or what is wrong."""
    if o.is_new and o.samples:
        if not is_plausible(o, c):
            return IMPLAUSIBLE
        if o.has_sensors and not agrees(o, c):
            return IMPLAUSIBLE
        if c.reason != FOLLOWS:  # it is held where it is found
            hold_here(o, c, o.acting, 0.0)
    return MEASURED


def possible(speed: float, most: float) -> float:
    """A speed that is clipped; zero for one that is no number, or infinite without a bound."""
    if abs(speed) <= most and isfinite(speed):
        return speed
    if speed > 0.0 and isfinite(most):
        return most
    if speed < 0.0 and isfinite(most):
        return -most
    return 0.0


def bound_speeds(o: Observer, c: Law) -> None:
    """Clip measured speeds, which a first sample believes, to what guards allow; NaN: at rest."""
    for i in range(o.n):
        o.qd[i] = possible(o.qd[i], c.too_fast[i])
    for i in range(o.m):
        o.thetad[i] = possible(o.thetad[i], c.too_fast[o.joint[i]])


def measure(o: Observer, c: Law, elapsed: float) -> int:
    """Take a measurement, a time after the one before; zero, or why it is none."""
    if o.running and not (elapsed > 0.0 and isfinite(elapsed)):
        return REPEATED
    if not o.running:  # since no measurement
        elapsed = o.T
    if not o.running and (not is_finite(o.n, o.qd) or not is_finite(o.m, o.thetad)):
        return NOT_FINITE
    o.gap = 0.0
    if c.guarded and o.running and elapsed > c.max_gap:
        o.gap = elapsed
        forget(o)
    bound_speeds(o, c)
    failed: int = receive(o, elapsed)
    if failed:
        return failed
    return accept(o, c)


# --- Judgement --------------------------------------------------------------------------------


def is_repeated(o: Observer, c: Law) -> int:
    """Whether a measurement is that of before, though not for so long that it stops the robot."""
    c.repeated += 1.0
    if o.samples:
        c.repeated = 0.0
    elif c.repeated < MOST_GATED or not c.guarded:
        return 1
    else:
        c.repeated, c.runaway = 0.0, SILENCE
        stop(o, c, SILENCE, -1, 0.0, 0.0)
    return 0


def moves(o: Observer, c: Law) -> int:
    """Whether something is wanted but rest; by laws that want no motion, whether motors move."""
    if c.kind == WEIGHT or c.kind == TORQUE:
        return moving_motor(o)
    for k in range(1, 5):
        for i in range(o.n):
            if o.desired[k, i] != 0.0:
                return 1
    return 0


def after_gap(o: Observer, c: Law, moved: float) -> int:
    """Begin anew after a gap, with which a robot that was to move is stopped: the reason."""
    if c.guarded and o.passed > MOST_FOUND:
        o.gap = o.passed * o.T
    if o.gap > 0.0:
        begin(o, c, 0.0)
        if moved or c.moved:
            return GAP
    return FOLLOWS


def slipped(o: Observer) -> int:
    """First of the positions of links and motors that could not be true for long; -1: none."""
    n: int = o.n
    for i in range(n):
        if o.since[i] >= MOST_GATED:
            return i
    for i in range(o.m):
        if o.motor_since[i] >= MOST_GATED:
            return n + i
    return -1


def believe(o: Observer, c: Law) -> int:
    """Take positions that could not be true for those of a robot at rest, if they may be."""
    if not is_finite(o.n, o.new_q) or not is_finite(o.m, o.new_theta):
        return MEASURED
    o.q[:] = o.new_q
    o.theta[:] = o.new_theta
    springs_at(o)
    if not is_plausible(o, c):
        o.q[:] = o.whole_q
        o.theta[:] = o.whole_theta
        springs_at(o)
        return MEASURED
    forget(o)
    failed: int = take(o, o.T, 0)
    if not failed:
        failed = look_ahead(o)
    return failed


def regain(o: Observer, c: Law, culprit: int) -> None:
    """Hold a stopped robot where it is measured again, or let it give way as before.

    What had not come to rest may only have been faster than expected: the reason is as before.
    """
    if c.stopped_for > c.stop_duration + MOST_GATED * o.T:
        c.reason, c.culprit = MEASUREMENTS, culprit
        c.gives_way = max(c.gives_way, c.floats[MEASUREMENTS])
    hold_found(o, c, 0.0)


def check(o: Observer, c: Law) -> int:
    """Number of the first quantity, from one on, beyond its bounds or NaN; zero: none.

    Rows of `checked` are those of `guards.QUANTITIES`.
    """
    n: int = o.n
    o.checked[0] = o.links[0]
    o.checked[1] = o.links[1]
    o.checked[2] = 0.0
    o.checked[3] = o.links[3]
    o.checked[4] = 0.0
    if c.departed:
        for done in range(5):
            k: int = 4 - done
            late = c.lead / (k + 1.0)
            o.checked[2] = o.desired[k] - c.distance[k] - late * o.checked[2]
        o.checked[2] -= o.links[0]
    for i in range(o.m):
        o.checked[4, o.joint[i]] += o.turns[i] * o.motors[3, i]
    for row in range(5):
        for i in range(n):
            x = o.checked[row, i]
            if not (x >= c.lowest[row, i] and x <= c.highest[row, i]):
                return 1 + row * n + i
    return 0


def judge(o: Observer, c: Law, reason: int, culprit: int) -> None:
    """Stop a robot whose measurements are not true or missing, or that is out of bounds."""
    for done in range(o.m):
        last: int = o.m - 1 - done
        if o.doubted[last]:
            reason = ENCODER_STANDS
            culprit = last
    for k in range(o.n):
        if o.sensor_since[k] >= MOST_GATED and reason == FOLLOWS:
            reason, culprit = SENSOR_LOST, k
    found: int = check(o, c)
    c.beyond += 1.0
    if found == 0:
        c.beyond = 0.0
    if reason == FOLLOWS and c.limited_for > c.saturation_time:
        reason = SATURATION
        o.saturated_for = c.limited_for
    if reason == FOLLOWS and c.beyond >= c.violation_samples:
        reason = 1 + (found - 1) // o.n
        culprit = found - 1 - (reason - 1) * o.n
    if reason != FOLLOWS:
        touches = 0.0
        if reason == EXTERNAL_TORQUE:
            touches = 1.0
        stop(o, c, reason, culprit, c.floats[reason], touches)


def decide(o: Observer, c: Law, reason: int) -> int:
    """Stop a robot that must not go on, or find again one that has been stopped.

    Zero, or what is wrong with a measurement.
    """
    culprit: int = -1
    if c.guarded or c.reason != FOLLOWS:
        culprit = slipped(o)
    if culprit >= 0:
        reason = MEASUREMENTS
        o.slipped = culprit
        failed: int = believe(o, c)
        if failed:
            return failed
        if culprit >= o.n:
            culprit -= o.n
    if c.reason != FOLLOWS:
        if culprit >= 0 and o.is_new:  # it is held where it is found, or gives way
            regain(o, c, culprit)
    elif c.guarded:
        judge(o, c, reason, culprit)
    return MEASURED


# --- The sample ---------------------------------------------------------------------------------


def answer(o: Observer, c: Law) -> int:
    """Torques for what is known of the robot; zero, or why there are none."""
    if c.reason == FOLLOWS:
        failed: int = follow(o, c)
        if failed == BEYOND_RANGE and c.guarded:
            stop(o, c, SPRING_RANGE, -1, 0.0, 0.0)
        elif failed:
            return failed
    if c.reason != FOLLOWS:
        stay(o, c)
    c.answered = 1.0
    c.command[:] = o.motor_torque
    return MEASURED


def step(o: Observer, c: Law, elapsed: float) -> int:
    """Torques for a measurement, a time after the one before; zero, or why there are none."""
    moved = c.moved
    failed: int = measure(o, c, elapsed)
    if failed:
        return failed
    c.moved = moves(o, c)
    if is_repeated(o, c):
        return REPEATED
    failed = decide(o, c, after_gap(o, c, moved))
    if failed:
        return failed
    return answer(o, c)


# --- In machine code ----------------------------------------------------------------------------


def do(
    o: Observer,
    c: Law,
    what: int,
    elapsed: float,
    floats: float,
    touches: float,
) -> int:
    """Something of a sample, with its arguments as far as it has them; zero, or what is wrong."""
    status: int = MEASURED
    if what == STEP:
        status = step(o, c, elapsed)
    if what == RECEIVE:
        status = receive(o, elapsed)
    if what <= RECEIVE and status == MEASURED:
        watch(o, elapsed)
        if o.passed > 1.0:
            status = BRIDGED
        if what == STEP and c.reason != FOLLOWS:
            status = HELD
    if what == UNREADY:
        status = unready(o, c)
    if what == RELEASE:
        status = release(o, c)
    if what == STOP:
        stop(o, c, ASKED, -1, floats, touches)
    if what == BEGIN:
        begin_again(o, c)
    if what == PUSH:
        push(o)
    return status


@cache
def machine_code() -> Callable[..., int] | None:
    """Compiled `do`, of the addresses of records and with their sizes behind; None without it."""
    if unavailable():
        return None
    from hodyn_ros.engine.code_cache import LoadedCode
    from hodyn_ros.engine.compiled_python import compiled_module

    source, constants = source_of_steps(), numbers_of_steps()
    names = re.findall(r'^def (\w+)', source, re.MULTILINE)
    names = [name for name in names if name not in ('evaluate', *_PYTHON)]
    records = {x.name: Fields(x.shapes, WHOLE) for x in (OBSERVER, LAW)}
    write = partial(compiled_module, source, names, constants, records)
    with compiling:
        code = LoadedCode((f'{source} {constants} {records}', 0, 0), write)
    kinds = [ctypes.c_void_p] * 2 + [ctypes.c_int64] + [ctypes.c_double] * 3
    function = ctypes.PYFUNCTYPE(ctypes.c_int64, *kinds, *[ctypes.c_int64] * 3)(
        code.address
    )
    function.code = code  # type: ignore[attr-defined] # which has to live
    return function


def source_of_steps() -> str:
    """Text of all functions of a step; those that others call come first."""
    modules = *_BEFORE, sys.modules[__name__]
    return '\n'.join(inspect.getsource(module) for module in modules)


def numbers_of_steps() -> dict[str, float]:
    """Constants by the names that these functions have for them."""
    modules = layouts, *_BEFORE, sys.modules[__name__]
    known = {'pi': pi}
    for module in modules:
        known |= {
            name: value
            for name, value in vars(module).items()
            if name.isupper() and isinstance(value, (int, float))
        }
    return known
