"""The way to closed positions of a robot with loops, from other ones.

Positions are found by Newton's method along a straight way of the independent joints from the
start, on which the determinant of the rows by the dependent joints keeps its sign and steps agree
with their tangents, so that the branch of the mechanism stays. What a step takes is told by a
program, see `loop_program.closing_program`, or by NumPy. Several samples go side by side in lanes.
Steps and ways [rad, m] are measured in units of the joints: of sliding ones a length of the
mechanism.

These functions are run as they are, compiled by `compiled_python` and, `predict` and `advance`,
written in C.
"""

from __future__ import annotations

from typing import Any

from hodyn_ros.model.loops import LARGEST_STEP, TOLERANCE
from hodyn_ros.typing import Array

Vector = Array
Index = Any

# Farthest position from the start [rad, m] to which there is a way in a reasonable time.
FARTHEST = 1e4
# How short steps [rad, m] may become, and how often each is corrected, before the way is given up.
SHORT, CORRECTIONS = 1e-6, 12
# How far a step may be off from the mean of the tangents at its ends, as a part of its length: a
# step that leads over a gap or to another branch is further off. Shorter ones than SHORT count as
# that long.
LARGEST_LEAP = 0.1
# Part of the way to where the determinant would vanish, as it changed in the last step, that the
# next step may go: one over the place where branches cross could end on either.
AHEAD = 0.8
# How far samples may be apart for one to start from the other, and how far joints may move from
# the last sample that the loops were followed to from their start, less where the determinant
# gets smaller: the straight way to another one then passes singular positions on the same side.
NEAR, FAMILIAR = 0.1, 0.5
# Determinant beside the largest one on the way there below which digits may be lost, and positions
# are looked at.
SMALL = 0.02
# Numbers of the state of `advance`. Behind it a lane has the sample that it is at, the one where
# its part ends, and whether it started from the sample before.
STATES, SAMPLE, END, WARM, LANE = 12, 12, 13, 14, 15


def lane_size(n: int, m: int, joints: int) -> int:
    """Numbers of a lane of `close_all`."""
    return LANE + n + m + 2 * joints


def room_size(n: int, m: int, joints: int, lanes: int) -> int:
    """Numbers of the workspace of `close_all`."""
    return lanes * (2 * joints + 2 * m + 1 + lane_size(n, m, joints))


def predict(
    n: int,
    m: int,
    u: Index,
    d: Index,
    origin: Vector,
    wanted: Vector,
    good: Vector,
    tangent: Vector,
    state: Vector,
    q: Vector,
) -> None:
    """Positions q a step ahead of the good ones, see `advance`."""
    rest = 1.0 - state[0] - state[1]
    if rest < 1e-12:
        rest = 0.0
    for i in range(n):
        q[u[i]] = wanted[i] - rest * (wanted[i] - origin[u[i]])
    for i in range(m):
        q[d[i]] = good[d[i]] + state[1] * tangent[i]


def advance(
    n: int,
    m: int,
    u: Index,
    d: Index,
    per_unit: Vector,
    origin: Vector,
    wanted: Vector,
    change: Vector,
    good: Vector,
    tangent: Vector,
    state: Vector,
    q: Vector,
) -> float:
    """A step on the way from closed positions to wanted ones of the n independent joints.

    In q are those of all joints, in `change` what `loop_program.closing_program` says of them. The
    state is how far the way was gone, the step ahead, the last correction, their number, the
    largest step, the determinant, the largest change of a joint along the whole way at the speed
    of any step, the smallest and largest determinant, how much faster joints were (see `begin`),
    that change of a dependent joint at the last speed, and the number of steps gone. Returns 1
    where the way ends, -1 where there is none, otherwise 0.
    """
    size = 0.0
    unknown = 0.0
    for i in range(m):
        size = max(size, abs(change[i]) * per_unit[d[i]])
        unknown += 0.0 * change[i] + 0.0 * change[m + i]
    if size + unknown <= state[2]:  # not if one of them is not finite
        state[2] = size
        state[3] += 1.0
        steepest = 0.0
        for i in range(n):
            steepest = max(steepest, abs(wanted[i] - origin[u[i]]) * per_unit[u[i]])
        if steepest >= FARTHEST:
            return -1.0
        off = 0.0
        fastest = 0.0
        for i in range(m):
            q[d[i]] -= change[i]
            mean = 0.5 * (tangent[i] + change[m + i])
            if state[4] > 1.0:  # from a sample nearby, whose tangent is not known
                mean = change[m + i]
            off = max(off, abs(q[d[i]] - good[d[i]] - state[1] * mean) * per_unit[d[i]])
            fastest = max(fastest, abs(change[m + i]) * per_unit[d[i]])
        steepest = max(steepest, fastest)
        off -= LARGEST_LEAP * max(state[1] * max(fastest, state[10]), SHORT)
        if state[5] * change[2 * m] < 0.0:  # there is a singular position between
            off = 1.0
        if max(size / TOLERANCE, 1.0 + off) < 1.0:
            state[0] += state[1]
            state[11] += 1.0
            before = state[5]
            state[5] = change[2 * m]
            state[6] = max(state[6], steepest)
            state[7] = min(state[7], abs(change[2 * m]))
            state[8] = max(state[8], abs(change[2 * m]))
            if state[0] > 1.0 - 1e-12:
                return 1.0
            for i in range(n):
                good[u[i]] = q[u[i]]
            for i in range(m):
                good[d[i]] = q[d[i]]
                tangent[i] = change[m + i]
            state[4] = LARGEST_STEP / max(steepest, LARGEST_STEP)
            state[10] = fastest
            longest = state[4]
            if state[1] > 0.0:
                longest = min(longest, 2.0 * state[1])
                if abs(change[2 * m]) < abs(before):
                    left = abs(change[2 * m]) / (abs(before) - abs(change[2 * m]))
                    ahead = AHEAD * left * state[1]
                    longest = min(longest, ahead)
                    if max(ahead * fastest / SHORT, ahead / (1.0 - state[0])) < 1.0:
                        return -1.0
            state[1] = min(longest, 1.0 - state[0])
            state[2] = LARGEST_STEP
            state[3] = 0.0
            predict(n, m, u, d, origin, wanted, good, tangent, state, q)
            return 0.0
        if size >= TOLERANCE:
            if state[3] < CORRECTIONS:
                return 0.0
    state[1] *= 0.5
    if state[1] * state[10] <= SHORT:
        return -1.0
    state[2] = LARGEST_STEP
    state[3] = 0.0
    predict(n, m, u, d, origin, wanted, good, tangent, state, q)
    return 0.0


def begin(
    s: int,
    first: int,
    n: int,
    m: int,
    joints: int,
    u: Index,
    d: Index,
    start: Vector,
    per_unit: Vector,
    stride: int,
    wanted: Vector,
    closed: Vector,
    reached: Vector,
    lane: Vector,
    motion: Vector,
) -> None:
    """Sample s starts from the one before, if that is near, or where the loops start.

    What its lane has is set: the state of `advance`, how much faster than the independent joints
    others were since the last sample that came from the start, where that was, where its way
    begins, good positions, and tangent; and the motion that is read next.
    """
    was = lane[LANE:]
    origin = was[n:]
    good = origin[joints:]
    tangent = good[joints:]
    here = wanted[s * stride :]
    last = wanted[(s - 1) * stride :]
    warm = 0.0
    if s > first:
        if reached[s - 1] >= 1.0:
            way = 0.0
            for i in range(n):
                way = max(way, abs(last[i] - origin[u[i]]) * per_unit[u[i]])
            if lane[4] <= 1.0:  # that one came from the start
                lane[9] = 1.0
                for i in range(n):
                    was[i] = last[i]
            if way > 0.0:
                lane[9] = max(lane[9], lane[6] / way)
            near = 0.0
            moved = 0.0
            for i in range(n):
                near = max(near, abs(here[i] - last[i]) * per_unit[u[i]])
                moved = max(moved, abs(here[i] - was[i]) * per_unit[u[i]])
            if near <= NEAR:
                if moved * lane[9] * lane[8] <= FAMILIAR * lane[7]:
                    warm = 1.0
    lane[WARM] = warm
    lane[0] = 0.0
    lane[1] = warm
    lane[2] = LARGEST_STEP
    lane[3] = 0.0
    lane[4] = 1.0 + warm
    lane[6] = 0.0
    lane[10] = 0.0
    before = start
    if warm > 0.0:
        lane[2] = NEAR
        before = closed[(s - 1) * joints :]
    else:
        lane[7] = 1e300
        lane[8] = 0.0
    for j in range(joints):
        origin[j] = before[j]
        good[j] = before[j]
        motion[j] = before[j]
        motion[joints + j] = 0.0
    for i in range(m):
        tangent[i] = 0.0
    for i in range(n):
        motion[joints + u[i]] = here[i] - origin[u[i]]
    if warm > 0.0:
        if s > first + 1:
            if reached[s - 2] >= 1.0:
                for i in range(m):
                    step = before[d[i]] - closed[(s - 2) * joints + d[i]]
                    most = NEAR / per_unit[d[i]]
                    motion[d[i]] += max(-most, min(most, step))
        for i in range(n):
            motion[u[i]] = here[i]


def close_all(
    closing: Index,
    scratch: Vector,
    lanes: int,
    n: int,
    m: int,
    joints: int,
    u: Index,
    d: Index,
    start: Vector,
    per_unit: Vector,
    samples: int,
    stride: int,
    wanted: Vector,
    reached: Vector,
    closed: Vector,
    room: Vector,
) -> None:
    """Positions of all joints of many samples, side by side.

    Each lane goes through a part of the samples in their order. Samples near the one before start
    from there, otherwise, and where that fails, from where the loops start. Reached is 1, or 2
    where the determinant is small; otherwise, less than 1, how far the way was gone. The wanted
    positions of sample s stand at s times the stride.
    """
    change = room[lanes * 2 * joints :]
    every = change[lanes * (2 * m + 1) :]
    size = LANE + n + m + 2 * joints
    left = 0
    for k in range(lanes):
        lane = every[k * size :]
        motion = room[k * 2 * joints :]
        s = k * samples // lanes
        lane[SAMPLE] = s
        lane[END] = (k + 1) * samples // lanes
        lane[5] = 0.0
        lane[11] = 0.0
        if lane[SAMPLE] < lane[END]:
            left += 1
            begin(
                s,
                s,
                n,
                m,
                joints,
                u,
                d,
                start,
                per_unit,
                stride,
                wanted,
                closed,
                reached,
                lane,
                motion,
            )
        else:
            for j in range(joints):
                motion[j] = start[j]
                motion[joints + j] = 0.0
    while left > 0:
        closing(scratch, room, every, change)
        for k in range(lanes):
            lane = every[k * size :]
            motion = room[k * 2 * joints :]
            s = int(lane[SAMPLE])
            if s < int(lane[END]):
                origin = lane[LANE + n :]
                good = origin[joints:]
                outcome = advance(
                    n,
                    m,
                    u,
                    d,
                    per_unit,
                    origin,
                    wanted[s * stride :],
                    change[k * (2 * m + 1) :],
                    good,
                    good[joints:],
                    lane,
                    motion,
                )
                first = k * samples // lanes
                again = 0
                if outcome < 0.0:
                    if lane[WARM] > 0.0:
                        first = s
                        again = 1
                if outcome != 0.0:
                    if again == 0:
                        reached[s] = min(lane[0], 0.999999)
                        if outcome > 0.0:
                            reached[s] = 1.0
                            if abs(lane[5]) < SMALL * lane[8]:
                                reached[s] = 2.0
                        for j in range(joints):
                            closed[s * joints + j] = motion[j]
                        s += 1
                        lane[SAMPLE] = s
                    if s < int(lane[END]):
                        begin(
                            s,
                            first,
                            n,
                            m,
                            joints,
                            u,
                            d,
                            start,
                            per_unit,
                            stride,
                            wanted,
                            closed,
                            reached,
                            lane,
                            motion,
                        )
                    else:
                        left -= 1


def close_samples(
    robot: Index,
    numbers: Vector,
    scratch: Vector,
    samples: int,
    wanted: Vector,
    reached: Vector,
    closed: Vector,
) -> int:
    """As `llvm_lanes.EVALUATE`: closed positions of samples, with how far each was reached.

    The robot: numbers of independent, dependent and all joints and of lanes, doubles of workspace
    of the closing programs, which of the wanted numbers a sample begins with, tables of these
    programs for one sample and for the lanes, and the independent and the dependent joints. The
    numbers: start and one over units of all joints.
    """
    n = robot[0]
    m = robot[1]
    joints = robot[2]
    lanes = robot[3]
    closing = robot[9:]
    if samples == 1:
        lanes = 1
        closing = robot[6:]
    close_all(
        closing,
        scratch,
        lanes,
        n,
        m,
        joints,
        robot[12:],
        robot[12 + n :],
        numbers,
        numbers[joints:],
        samples,
        robot[5],
        wanted,
        reached,
        closed,
        scratch[robot[4] :],
    )
    return 0


def closed_efforts(
    robot: Index,
    numbers: Vector,
    scratch: Vector,
    samples: int,
    given: Vector,
    loads: Vector,
    efforts: Vector,
) -> int:
    """As `llvm_lanes.EVALUATE`: efforts of samples by compiled programs; 0 where they are there.

    The robot: numbers of orders of the motion, of a sample's loads and efforts, doubles of
    workspace of what follows, the table of the program of efforts, and what `close_samples` has.
    """
    K = robot[0]
    closing = robot[7:]
    dynamics = robot[4:]
    n = closing[0]
    joints = closing[2]
    own = scratch[robot[3] :]
    whole = own[8:]
    for s in range(samples):
        motion = given[s * K * n :]
        close_samples(closing, numbers, scratch, 1, motion, own, whole)
        if own[0] != 1.0:
            return 1
        for k in range(K - 1):
            row = whole[(k + 1) * joints :]
            for j in range(joints):
                row[j] = 0.0
            for i in range(n):
                row[closing[12 + i]] = motion[(k + 1) * n + i]
        status = dynamics(scratch, whole, loads[s * robot[1] :], efforts[s * robot[2] :])
        if status != 0:
            return 1
    return 0
