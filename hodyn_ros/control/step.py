"""One sample of a law: what is measured is believed or not, observed, judged and answered.

`machine_code` compiles these functions and those of `observing`, `holding`, `demands` and
`kernels`, and `hodyn_ros.codegen` translates the same text to C99. Their
arguments are records, see `layouts`: robot and observer (r), what the observer remembers (o), a
law (t), what it remembers (c), arguments and results (w). Source of the equations: `observer`,
`guards`, `tracking` and `interaction`.
"""

from __future__ import annotations

import ctypes
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from math import isfinite, pi

from hodyn_ros.control import demands, holding, kernels, layouts, observing, robot_code
from hodyn_ros.control.demands import (
    begin,
    begin_again,
    follow,
    release,
)
from hodyn_ros.control.holding import (
    hold_here,
    stay,
    stop,
    unready,
)
from hodyn_ros.control.kernels import (
    Matrix,
    outside,
)
from hodyn_ros.control.layouts import (
    ASKED,
    BEYOND_RANGE,
    ENCODER_STANDS,
    EXTERNAL_TORQUE,
    FOLLOWS,
    GAP,
    IMPLAUSIBLE,
    MEASURED,
    MEASUREMENTS,
    NOT_FINITE,
    RECORDS,
    REPEATED,
    SATURATION,
    SILENCE,
    SPRING_RANGE,
    Design,
    Memory,
    Observed,
    Robot,
    Work,
)
from hodyn_ros.control.observing import (
    CONTRADICTION,
    MOST_FOUND,
    MOST_GATED,
    OVERLOAD,
    forget,
    is_finite,
    look_ahead,
    push,
    receive,
    springs_at,
    take,
    watched,
)
from hodyn_ros.control.records import WHOLE
from hodyn_ros.engine.engine import compiling, unavailable

STEP, RECEIVE, STOP, BEGIN, UNREADY, RELEASE, PUSH = range(7)
"""What `do` does."""
_PYTHON = ('machine_code', 'source_of_steps', 'numbers_of_steps')
_BEFORE = observing, holding, demands


# --- Judgement --------------------------------------------------------------------------------


def is_plausible(r: Robot, o: Observed, t: Design) -> int:
    """Whether positions may be those of the robot, by limits and by torques of springs."""
    for i in range(r.n):
        if o.q[i] < t.lower[i] or o.q[i] > t.upper[i]:
            return 0
        if abs(o.deflected[i]) > OVERLOAD * t.joint_limit[i]:
            return 0
    return 1


def agrees(r: Robot, o: Observed, t: Design) -> int:
    """Whether torque sensors agree with the deflections of the springs."""
    for i in range(r.n):
        if abs(o.deflected[i] - o.torque[1, i]) > CONTRADICTION * t.joint_limit[i]:
            return 0
    return 1


def judge(
    r: Robot,
    o: Observed,
    t: Design,
    c: Memory,
    w: Work,
    reason: int,
    culprit: int,
) -> None:
    """Stop a robot whose measurements are not true or missing, or that is out of bounds."""
    n: int = r.n
    for i in range(n):
        w.checked[0, i], w.checked[1, i] = o.links[0, i], o.links[1, i]
        w.checked[2, i], w.checked[3, i], w.checked[4, i] = 0.0, o.links[3, i], 0.0
        if c.departed[0] > 0.0:
            wanted = 0.0
            for done in range(5):
                k: int = 4 - done
                late = t.lead / (k + 1.0) * wanted
                wanted = w.desired[k, i] - c.distance[k, i] - late
            w.checked[2, i] = wanted - o.links[0, i]
    for i in range(r.m):
        w.checked[4, r.joint[i]] += r.turns[i] * o.motors[3, i]
    for done in range(r.m):
        last: int = r.m - 1 - done
        if o.doubted[last] > 0.0:
            reason = ENCODER_STANDS
            culprit = last
    found: int = outside(5, n, t.lowest, t.highest, w.checked)
    c.beyond[0] += 1.0
    if found == 0:
        c.beyond[0] = 0.0
    if reason == FOLLOWS and c.limited_for[0] > t.saturation_time:
        reason = SATURATION
        w.limited_for[0] = c.limited_for[0]
    if reason == FOLLOWS and c.beyond[0] >= t.violation_samples:
        reason = 1 + (found - 1) // n
        culprit = found - 1 - (reason - 1) * n
    if reason != FOLLOWS:
        touches = 0.0
        if reason == EXTERNAL_TORQUE:
            touches = 1.0
        stop(r, o, t, c, w, reason, culprit, t.floats[reason], touches)


# --- The sample ---------------------------------------------------------------------------------


def possible(speed: float, most: float) -> float:
    """A speed that is clipped; zero for one that is no number, or infinite without a bound."""
    if abs(speed) <= most and isfinite(speed):
        return speed
    if speed > 0.0 and isfinite(most):
        return most
    if speed < 0.0 and isfinite(most):
        return -most
    return 0.0


def bound_speeds(r: Robot, t: Design, w: Work) -> None:
    """Clip measured speeds, which a first sample believes, to what guards allow; NaN: at rest."""
    for i in range(r.n):
        w.qd[i] = possible(w.qd[i], t.too_fast[i])
    for i in range(r.m):
        w.thetad[i] = possible(w.thetad[i], t.too_fast[r.joint[i]])


def slipped(r: Robot, o: Observed) -> int:
    """First of the positions of links and motors that could not be true for long; -1: none."""
    n: int = r.n
    for i in range(n):
        if o.since[i] >= MOST_GATED:
            return i
    for i in range(r.m):
        if o.motor_since[i] >= MOST_GATED:
            return n + i
    return -1


def believe(r: Robot, o: Observed, t: Design, w: Work) -> int:
    """Take positions that could not be true for those of a robot at rest, if they may be."""
    if is_finite(r.n, w.new_q) == 0 or is_finite(r.m, w.new_theta) == 0:
        return MEASURED
    for i in range(r.n):
        o.q[i] = w.new_q[i]
    for i in range(r.m):
        o.theta[i] = w.new_theta[i]
    springs_at(r, o, w)
    if is_plausible(r, o, t) == 0:
        for i in range(r.n):
            o.q[i] = w.whole_q[i]
        for i in range(r.m):
            o.theta[i] = w.whole_theta[i]
        springs_at(r, o, w)
        return MEASURED
    forget(r, o)
    failed: int = take(r, o, w, r.T, 0)
    if failed > 0:
        return failed
    return look_ahead(r, o, w)


def regain(r: Robot, o: Observed, t: Design, c: Memory, w: Work, culprit: int) -> None:
    """Hold a stopped robot where it is measured again, or let it give way as before.

    What had not come to rest may only have been faster than expected: the reason is as before.
    """
    if c.stopped_for[0] > t.stop_duration + MOST_GATED * r.T:
        c.reason[0], c.culprit[0] = MEASUREMENTS, culprit
        c.floats[0] = max(c.floats[0], t.floats[MEASUREMENTS])
    if c.answered[0] > 0.0:
        hold_here(r, o, t, c, w, c.command, 0.0)
    else:
        hold_here(r, o, t, c, w, o.acting, 0.0)


def moves(n: int, desired: Matrix) -> int:
    """Whether something is wanted but rest."""
    for k in range(1, 5):
        for i in range(n):
            if desired[k, i] != 0.0:
                return 1
    return 0


def answer(r: Robot, o: Observed, t: Design, c: Memory, w: Work) -> int:
    """Torques for what is known of the robot; zero, or why there are none."""
    if c.reason[0] == FOLLOWS:
        failed: int = follow(r, o, t, c, w)
        if failed == BEYOND_RANGE and t.guarded > 0.0:
            stop(r, o, t, c, w, SPRING_RANGE, -1, 0.0, 0.0)
        elif failed > 0:
            return failed
    if c.reason[0] != FOLLOWS:
        stay(r, o, t, c, w)
    c.answered[0] = 1.0
    for i in range(r.m):
        c.command[i] = w.torque[i]
    return MEASURED


def step(r: Robot, o: Observed, t: Design, c: Memory, w: Work, elapsed: float) -> int:
    """Torques for a measurement, a time after the one before; zero, or why there are none."""
    n: int = r.n
    reason: int = FOLLOWS
    if o.running[0] > 0.0 and not elapsed > 0.0:
        return REPEATED
    if o.running[0] == 0.0 and (is_finite(n, w.qd) == 0 or is_finite(r.m, w.thetad) == 0):
        return NOT_FINITE
    moved = c.moved[0]
    c.moved[0], w.gap[0] = moves(n, w.desired), 0.0
    if t.guarded > 0.0 and o.running[0] > 0.0 and elapsed > t.max_gap:
        w.gap[0] = elapsed
        forget(r, o)
    bound_speeds(r, t, w)
    failed: int = receive(r, o, w, elapsed)
    if failed > 0:
        return failed
    if o.is_new[0] > 0.0 and o.samples[0] > 0.0:
        if is_plausible(r, o, t) == 0:
            return IMPLAUSIBLE
        if w.has_sensors[0] > 0.0 and agrees(r, o, t) == 0:
            return IMPLAUSIBLE
        if c.reason[0] != FOLLOWS:  # it is held where it is found
            hold_here(r, o, t, c, w, o.acting, 0.0)
    c.repeated[0] += 1.0
    if o.samples[0] > 0.0:
        c.repeated[0] = 0.0
    elif c.repeated[0] < MOST_GATED or t.guarded == 0.0:
        return REPEATED
    else:
        c.repeated[0], c.runaway[0] = 0.0, SILENCE
        stop(r, o, t, c, w, SILENCE, -1, 0.0, 0.0)
    if t.guarded > 0.0 and o.passed[0] > MOST_FOUND:
        w.gap[0] = o.passed[0] * r.T
    if w.gap[0] > 0.0:
        begin(r, o, t, c, 0.0)
        if moved > 0.0 or c.moved[0] > 0.0:
            reason = GAP
    culprit: int = -1
    if t.guarded > 0.0 or c.reason[0] != FOLLOWS:
        culprit = slipped(r, o)
    if culprit >= 0:
        reason = MEASUREMENTS
        w.slipped[0] = culprit
        failed = believe(r, o, t, w)
        if failed > 0:
            return failed
        if culprit >= n:
            culprit -= n
    if c.reason[0] != FOLLOWS:
        if culprit >= 0 and o.is_new[0] > 0.0:  # it is held where it is found, or gives way
            regain(r, o, t, c, w, culprit)
    elif t.guarded > 0.0:
        judge(r, o, t, c, w, reason, culprit)
    return answer(r, o, t, c, w)


# --- In machine code ----------------------------------------------------------------------------


def do(
    r: Robot,
    o: Observed,
    t: Design,
    c: Memory,
    w: Work,
    what: int,
    elapsed: float,
    floats: float,
    touches: float,
) -> int:
    """Something of a sample, with its arguments as far as it has them; zero, or what is wrong."""
    status: int = MEASURED
    if what == STEP:
        status = step(r, o, t, c, w, elapsed)
    if what == RECEIVE:
        status = receive(r, o, w, elapsed)
    if what <= RECEIVE and status == MEASURED:
        watched(r, o, elapsed)
    if what == UNREADY:
        status = unready(r, o, t, c)
    if what == RELEASE:
        status = release(r, o, t, c)
    if what == STOP:
        stop(r, o, t, c, w, ASKED, -1, floats, touches)
    if what == BEGIN:
        begin_again(r, o, t, c, w)
    if what == PUSH:
        push(r, o, w.torque, w.friction)
    return status


@cache
def machine_code() -> Callable[..., int] | None:
    """Compiled `do`, of the addresses of records and with their sizes behind; None without it."""
    if unavailable():
        return None
    from hodyn_ros.engine.code_cache import LoadedCode
    from hodyn_ros.engine.compiled_python import Fields, compiled_module

    source, constants = source_of_steps(), numbers_of_steps()
    names = re.findall(r'^def (\w+)', source, re.MULTILINE)
    names = [name for name in names if name not in ('evaluate', *_PYTHON)]
    records = {x.name: Fields(x.shapes, WHOLE) for x in RECORDS}
    write = partial(compiled_module, source, names, constants, records)
    with compiling:
        code = LoadedCode((f'{source} {constants} {records}', 0, 0), write)
    kinds = [ctypes.c_void_p] * 5 + [ctypes.c_int64] + [ctypes.c_double] * 3
    function = ctypes.PYFUNCTYPE(ctypes.c_int64, *kinds, *[ctypes.c_int64] * 3)(
        code.address
    )
    function.code = code  # type: ignore[attr-defined] # which has to live
    return function


def source_of_steps() -> str:
    """Text of all functions of a step; those that others call come first."""
    modules = kernels, robot_code, *_BEFORE, sys.modules[__name__]
    return '\n'.join(inspect.getsource(module) for module in modules)


def numbers_of_steps() -> dict[str, float]:
    """Constants by the names that these functions have for them."""
    modules = layouts, robot_code, *_BEFORE, sys.modules[__name__]
    known = {'pi': pi}
    for module in modules:
        known |= {
            name: value
            for name, value in vars(module).items()
            if name.isupper() and isinstance(value, (int, float))
        }
    return known
