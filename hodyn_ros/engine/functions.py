"""Functions in LLVM's intermediate representation that evaluate one robot, or any robot.

Sines, cosines and steps of tanh are computed for arrays of numbers, as many at once as the machine
can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial, log
from typing import TYPE_CHECKING, NamedTuple

from llvmlite import ir

from hodyn_ros.engine.body_programs import (
    BRANCH,
    GENERAL,
    N_CONSTANTS,
    SIMPLE,
    ArticulatedLayout,
    StateLayout,
    body_programs,
    sweeps,
)
from hodyn_ros.engine.llvm import (
    DOUBLE,
    DOUBLES,
    INTEGER,
    Block,
    Elements,
    LaneWriter,
    evaluate_function,
    loop,
)
from hodyn_ros.engine.program import RobotProgram, StraightLineProgram

if TYPE_CHECKING:
    from hodyn_ros.model.robot import RobotModel

# Up to here the three-part reduction of the argument is exact.
LARGEST_REDUCED = 2.0**20


def _half_pi() -> tuple[float, float, float]:
    """Three numbers whose sum is pi/2; k times the first two is exact for k of few bits."""
    high, low = 1.5707963267948966, 6.123233995736766e-17
    scale = 2.0**32
    first = int(high * scale) / scale
    return first, high - first, low


HALF_PI = _half_pi()
LOG_2 = (0.6931471803691238, 1.9082149292705877e-10)
"""log 2 in two parts, the first with so few bits that k times it is exact."""


class ArrayFunction:
    """Function of each number of an array, with two results, `width` numbers at once.

    Parameters
    ----------
    module : ir.Module
        Which the function is added to.
    width : int
        Numbers in a chunk.
    name : str
    results : callable
        From a writer and the numbers of a chunk, both results.
    correct : callable
        Writes what follows a chunk, from its numbers and the places of argument and results.
    """

    def __init__(
        self,
        module: ir.Module,
        width: int,
        name: str,
        results: Callable[[LaneWriter, ir.Value], tuple[ir.Value, ir.Value]],
        correct: Callable[[LaneWriter, ir.Value, Sequence[ir.Value]], None] = lambda *_: (
            None
        ),
    ) -> None:
        self.width = width
        kind = ir.FunctionType(ir.VoidType(), [INTEGER, DOUBLES, DOUBLES, DOUBLES])
        self.function = ir.Function(module, kind, name)
        self.function.linkage = 'internal'
        builder = ir.IRBuilder(self.function.append_basic_block())
        writer = LaneWriter(builder, width)
        chunks, x, first, second = self.function.args
        with loop(builder, chunks) as chunk:
            start = builder.mul(chunk, ir.Constant(INTEGER, width))
            places = [writer.at(pointer, start) for pointer in (x, first, second)]
            value = writer.load_lanes(places[0])
            for result, place in zip(results(writer, value), places[1:]):
                writer.store_lanes(result, place)
            correct(writer, value, places)
        builder.ret_void()

    def write(self, builder: ir.IRBuilder, count: ir.Value, *pointers: ir.Value) -> None:
        """Call for a count of numbers, written where the builder stands.

        Parameters
        ----------
        builder : ir.IRBuilder
        count : ir.Value
            Integer of 64 bits.
        *pointers : ir.Value
            Argument and both results; the arrays have room for a whole last chunk.
        """
        more = builder.add(count, ir.Constant(INTEGER, self.width - 1))
        chunks = builder.sdiv(more, ir.Constant(INTEGER, self.width))
        builder.call(self.function, [chunks, *pointers])


def _correct_large(writer: LaneWriter, value: ir.Value, places: Sequence[ir.Value]) -> None:
    """Leave sines and cosines of numbers that are large or not finite to the C library."""
    builder = writer.builder
    limit = 1.57 * LARGEST_REDUCED
    above = builder.fcmp_unordered('>', value, writer.number(limit))
    below = builder.fcmp_unordered('<', value, writer.number(-limit))
    large = builder.or_(above, below)
    if writer.lanes > 1:
        bits = ir.IntType(writer.lanes)
        large = builder.icmp_unsigned(
            '!=', builder.bitcast(large, bits), ir.Constant(bits, 0)
        )
    with builder.if_then(large, likely=False):
        with loop(builder, ir.Constant(INTEGER, writer.lanes)) as lane:
            number = builder.load(writer.at(places[0], lane), align=8)
            for name, place in zip(('hodyn_sine', 'hodyn_cosine'), places[1:]):
                function = builder.module.globals.get(name) or ir.Function(
                    builder.module, ir.FunctionType(DOUBLE, [DOUBLE]), name
                )
                result = builder.call(function, [number])
                builder.store(result, writer.at(place, lane), align=8)


def _step(writer: LaneWriter, value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Hyperbolic tangent and its derivative."""
    builder = writer.builder
    positive = builder.fcmp_ordered('>=', value, writer.number(0.0))
    magnitude = builder.select(positive, value, writer.negative(value))
    # With e = exp(-2 |x|): tanh |x| = (1 - e) / (1 + e), slope = 4 e / (1 + e)^2.
    e, less = _exponential(writer, writer.multiply(writer.number(-2.0), magnitude))
    more = builder.fadd(writer.number(1.0), e)
    quotient = builder.fdiv(less, more)
    shape = builder.select(positive, writer.negative(quotient), quotient)
    slope = builder.fdiv(builder.fmul(writer.number(4.0), e), builder.fmul(more, more))
    return shape, slope


def _sine_cosine(writer: LaneWriter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Sine and cosine of |x| <= pi/2 LARGEST_REDUCED to about one unit in the last place.

    x = k pi/2 + r with |r| <= pi/4; Taylor polynomials of r, whose remainder is below 1e-17.
    """
    builder = writer.builder
    shifted, r = _reduced(writer, x, 0.6366197723675814, HALF_PI)
    square = builder.fmul(r, r)
    sine = _polynomial(
        writer, square, [(-1.0) ** j / factorial(2 * j + 1) for j in range(1, 9)]
    )
    sine = writer.add(r, writer.multiply(writer.multiply(r, square), sine))
    cosine = _polynomial(
        writer, square, [(-1.0) ** j / factorial(2 * j) for j in range(1, 10)]
    )
    cosine = writer.add(writer.number(1.0), writer.multiply(square, cosine))
    whole = writer.whole
    quadrant = builder.bitcast(shifted, whole(0).type)
    odd = builder.icmp_unsigned('!=', builder.and_(quadrant, whole(1)), whole(0))
    sine, cosine = builder.select(odd, cosine, sine), builder.select(odd, sine, cosine)
    signed = []
    for value, turned in ((sine, quadrant), (cosine, builder.add(quadrant, whole(1)))):
        sign = builder.shl(builder.and_(turned, whole(2)), whole(62))
        bits = builder.xor(builder.bitcast(value, sign.type), sign)
        signed.append(builder.bitcast(bits, writer.type))
    return signed[0], signed[1]


def _reduced(
    writer: LaneWriter, x: ir.Value, scale: float, parts: Sequence[float]
) -> tuple[ir.Value, ir.Value]:
    """Number k = round(scale x), in the low bits of the first result, and x - k sum(parts)."""
    builder = writer.builder
    # Adding and subtracting 1.5 2^52 rounds to an integer and leaves it in the low bits.
    magic = writer.number(1.5 * 2.0**52)
    shifted = builder.fadd(builder.fmul(x, writer.number(scale)), magic)
    k = builder.fsub(shifted, magic)
    for part in parts:
        x = builder.fsub(x, builder.fmul(k, writer.number(part)))
    return shifted, x


def _trigonometry(module: ir.Module, width: int) -> ArrayFunction:
    """Function 'trigonometry' of a module: sines and cosines of an array."""
    return ArrayFunction(module, width, 'trigonometry', _sine_cosine, _correct_large)


def _polynomial(writer: LaneWriter, x: ir.Value, coefficients: list[float]) -> ir.Value:
    """Polynomial in x by Horner's rule; the coefficient of the lowest power comes first."""
    value = writer.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = writer.add(writer.multiply(value, x), writer.number(coefficient))
    return value


def _exponential(writer: LaneWriter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Exponential of x <= 0, and the same less one, below -700 of -700.

    Both to about one unit in the last place.

    x = k log 2 + r with |r| <= log(2)/2; a Taylor polynomial of r, whose remainder is below 1e-17.
    """
    builder = writer.builder
    lowest = writer.number(-700.0)
    x = builder.select(builder.fcmp_ordered('>', x, lowest), x, lowest)
    shifted, r = _reduced(writer, x, 1.0 / log(2.0), LOG_2)
    less = writer.multiply(
        r, _polynomial(writer, r, [1.0 / factorial(j) for j in range(1, 15)])
    )
    # k, in the low bits of what was shifted, is the exponent of a power of two.
    place = writer.whole(52)
    integers = place.type
    exponent = builder.shl(builder.bitcast(shifted, integers), place)
    one = writer.number(1.0)
    power = builder.bitcast(
        builder.add(builder.bitcast(one, integers), exponent), writer.type
    )
    product = builder.fmul(power, less)
    return builder.fadd(product, power), builder.fadd(product, builder.fsub(power, one))


# --- Modules -------------------------------------------------------------------------------------


def _whole(value: int) -> ir.Constant:
    return ir.Constant(INTEGER, value)


def padded(count: int, width: int) -> int:
    """Count rounded up to whole chunks of a width."""
    return -(-count // width) * width


class RobotCode(NamedTuple):
    """All that the module of one robot is written from.

    Attributes
    ----------
    robot : RobotProgram
    n_joints : int
    joints : tuple of (int, float, float)
        Of the program's bodies: coordinate, multiplier and offset of their joints.
    """

    robot: RobotProgram
    n_joints: int
    joints: tuple[tuple[int, float, float], ...]

    @classmethod
    def of(cls, model: RobotModel, robot: RobotProgram) -> RobotCode:
        """What a program of a model needs."""
        bodies = [int(i) for i in robot.bodies]
        of_joints = (model.coordinate, model.multiplier, model.offset)
        joints = zip(*(values[bodies].tolist() for values in of_joints))
        return cls(robot._replace(bodies=bodies), model.n_joints, tuple(joints))


def robot_module(
    code: RobotCode, lanes: int, width: int, kind: ir.Type = DOUBLE
) -> ir.Module:
    """Module with the function 'evaluate' for a program of one robot.

    Parameters
    ----------
    code : RobotCode
    lanes : int
        Samples in a block.
    width : int
        Numbers that `ArrayFunction` computes at once.
    kind : ir.Type
        Of numbers that are computed; functions of them are computed in double precision.

    Returns
    -------
    ir.Module
        Needs a workspace of `robot_scratch` doubles.
    """
    module, robot = ir.Module('robot'), code.robot
    trigonometry = _trigonometry(module, width)
    count, n_steps, n_velocities = len(robot.bodies), robot.n_steps, robot.n_velocities
    steps = ArrayFunction(module, width, 'steps', _step) if n_steps else None
    room, step_room = padded(count * lanes, width), padded(n_steps * lanes, width)

    def body(block: Block) -> None:
        writer, builder = block.writer, block.writer.builder
        position, sine, cosine = (writer.at(block.scratch, k * room) for k in range(3))
        _write_positions(code, block, position, room)
        trigonometry.write(builder, _whole(count * lanes), position, sine, cosine)
        step, shape, slope, direction = (
            writer.at(block.scratch, 3 * room + k * step_room) for k in range(4)
        )
        pointers = {
            'motion': block.motion,
            'sine': sine,
            'cosine': cosine,
            'step': step,
            'shape': shape,
            'slope': slope,
            'velocity': direction,
            'direction': direction,
            robot.middle.array: block.middle,
            robot.result.array: block.result,
        }
        arrays = {name: Elements(pointer, True) for name, pointer in pointers.items()}
        writer.run(robot.arguments, arrays)
        if steps is not None:
            for i in range(n_steps * lanes, step_room):
                builder.store(ir.Constant(DOUBLE, 0.0), writer.at(step, i), align=8)
            steps.write(builder, _whole(n_steps * lanes), step, shape, slope)
        for i in range(n_velocities):
            sign = _sign(writer, writer.load(arrays['velocity'], i))
            writer.store_lanes(sign, writer.at(direction, i * lanes))
        writer.run(robot.program, arrays)

    sizes = (code.n_joints * robot.orders, robot.middle.size, robot.result.size)
    constants = (_whole(sizes[0]), _whole(sizes[1]), _whole(sizes[2]))
    written = robot.middle.written
    evaluate_function(module, lanes, width, lambda *_: constants, body, written, kind)
    return module


def _write_positions(code: RobotCode, block: Block, position: ir.Value, room: int) -> None:
    """Joint positions of the bodies of a program, and zeros in the rest of the room."""
    builder, lanes = block.writer.builder, block.writer.lanes
    writer = LaneWriter(builder, lanes)
    for place, (coordinate, multiplier, offset) in enumerate(code.joints):
        value = writer.load(Elements(block.motion, True), coordinate)
        # Rounded as `kinematics.motions.body_coordinates` rounds it.
        if multiplier != 1.0:
            value = builder.fmul(value, writer.number(multiplier))
        if offset != 0.0:
            value = builder.fadd(value, writer.number(offset))
        writer.store_lanes(value, writer.at(position, place * lanes))
    for i in range(len(code.joints) * lanes, room):
        builder.store(ir.Constant(DOUBLE, 0.0), writer.at(position, i), align=8)


def _sign(writer: LaneWriter, value: ir.Value) -> ir.Value:
    """Sign of a value, -1, 0 or 1."""
    builder, zero, one = writer.builder, writer.number(0.0), writer.number(1.0)
    forward = builder.select(builder.fcmp_ordered('>', value, zero), one, zero)
    back = builder.select(builder.fcmp_ordered('<', value, zero), one, zero)
    return builder.fsub(forward, back)


class Loops(NamedTuple):
    """Programs of a body, by its kind, for loops over the bodies of any robot, and their arrays.

    Sizes are the numbers that a sample has in the motion, the middle array and the result, for
    each joint or, of wrenches, for each body; names those of what each coordinate has in them.
    """

    sweeps: list[tuple[bool, dict[int, StraightLineProgram]]]
    """Whether towards the base, and the programs."""
    layout: StateLayout
    sizes: tuple[int, int, int]
    names: tuple[str, str, str]

    def __repr__(self) -> str:
        """All that a module is written from."""
        kind, order = type(self.layout).__name__, self.layout.order
        return repr((self.sweeps, kind, order, self.sizes, self.names))


KINDS = (SIMPLE, BRANCH, GENERAL)


def effort_loops(order: int, loaded: bool) -> Loops:
    """Loops for the efforts up to an order.

    Parameters
    ----------
    order : int
        Highest derivative of the efforts.
    loaded : bool
        Whether every body carries a wrench, given in the middle array.
    """
    programs = {kind: body_programs(order, kind, loaded) for kind in KINDS}
    loops = [
        (False, {kind: item.forward for kind, item in programs.items()}),
        (True, {kind: item.backward for kind, item in programs.items()}),
    ]
    sizes = (order + 3, 6 * (order + 1) if loaded else 0, order + 1)
    return Loops(loops, StateLayout(order), sizes, ('motion', 'wrench', 'effort'))


def articulated_loops(order: int) -> Loops:
    """Loops for the accelerations that efforts cause, and their derivatives."""
    found = {kind: sweeps(order, kind) for kind in KINDS}
    loops = [
        (backward, {kind: found[kind][number][1] for kind in KINDS})
        for number, (backward, _) in enumerate(found[GENERAL])
    ]
    layout = ArticulatedLayout(order)
    return Loops(loops, layout, (2, order + 1, order + 1), ('motion', 'effort', 'found'))


def tree_module(loops: Loops, lanes: int, width: int, kind: ir.Type = DOUBLE) -> ir.Module:
    """Write a module with the function 'evaluate' of any robot, its model given as data.

    The integers are (n_joints, n_bodies, then for each body kind, parent + 1, coordinate), the
    constants the state of the base and `body_programs.constants` with the offsets behind them.

    Parameters
    ----------
    loops : Loops
    lanes : int
        Samples in a block.
    width : int
        Numbers that `ArrayFunction` computes at once.
    kind : ir.Type
        Of numbers that are computed; functions of them are computed in double precision.

    Returns
    -------
    ir.Module
        Needs a workspace of `tree_scratch` doubles.
    """
    module = ir.Module('tree')
    trigonometry = _trigonometry(module, width)

    def sizes(
        builder: ir.IRBuilder, integers: ir.Value
    ) -> tuple[ir.Value, ir.Value, ir.Value]:
        writer = LaneWriter(builder, 1)
        n, n_bodies = _entry(writer, integers, 0), _entry(writer, integers, 1)
        counts = (n, n_bodies if loops.names[1] == 'wrench' else n, n)
        first, second, third = (
            builder.mul(*x) for x in zip(counts, map(_whole, loops.sizes))
        )
        return first, second, third

    def body(block: Block) -> None:
        tree = _TreeBlock(block, loops, width)
        tree.write_positions()
        tree.write_trigonometry(trigonometry)
        tree.write_start()
        for backward, programs in loops.sweeps:
            tree.write_sweep(backward, programs)

    evaluate_function(module, lanes, width, sizes, body, kind=kind)
    return module


def _entry(writer: LaneWriter, integers: ir.Value, index: int | ir.Value) -> ir.Value:
    """One of the integers that are the model of any robot."""
    return writer.builder.load(writer.at(integers, index), align=8)


class _TreeBlock:
    """Code of a block of samples of any robot, whose arrays have parts for joints or bodies."""

    def __init__(self, block: Block, loops: Loops, width: int) -> None:
        self._block, self._loops, self._layout = block, loops, loops.layout
        self._writer, self._builder = block.writer, block.writer.builder
        writer, builder, integers = self._writer, self._builder, block.integers
        self._n, self._n_bodies = _entry(writer, integers, 0), _entry(writer, integers, 1)
        self._per_block = _whole(writer.lanes)
        chunk = _whole(width)
        room = builder.mul(self._n_bodies, self._per_block)
        room = builder.mul(builder.sdiv(builder.add(room, _whole(width - 1)), chunk), chunk)
        self._position = block.scratch
        self._sine = writer.at(self._position, room)
        self._cosine = writer.at(self._sine, room)
        states = writer.at(self._cosine, room)
        self._states = builder.bitcast(states, writer.kind.as_pointer())
        self._bodies = writer.at(block.constants, self._layout.size)
        self._offsets = writer.at(
            self._bodies, builder.mul(self._n_bodies, _whole(N_CONSTANTS))
        )

    def _part(self, pointer: ir.Value, i: ir.Value, size: int | ir.Value) -> ir.Value:
        """Pointer to the i-th part of an array of parts for each lane."""
        size = _whole(size) if isinstance(size, int) else size
        builder = self._builder
        return self._writer.at(pointer, builder.mul(builder.mul(i, size), self._per_block))

    def _about(self, i: ir.Value) -> list[ir.Value]:
        """Kind, parent + 1 and coordinate of a body."""
        builder = self._builder
        first = builder.add(_whole(2), builder.mul(i, _whole(3)))
        return [
            _entry(self._writer, self._block.integers, builder.add(first, _whole(k)))
            for k in range(3)
        ]

    def write_positions(self) -> None:
        """Joint positions of all bodies."""
        builder, part = self._builder, self._part
        writer = LaneWriter(builder, self._writer.lanes)
        with loop(builder, self._n_bodies) as i:
            coordinate = self._about(i)[2]
            value = writer.load_lanes(part(self._block.motion, coordinate, 1))
            constants = writer.at(self._bodies, builder.mul(i, _whole(N_CONSTANTS)))
            multiplier = writer.load(Elements(constants, False), N_CONSTANTS - 2)
            offset = writer.load(Elements(writer.at(self._offsets, i), False), 0)
            # Rounded as `kinematics.motions.body_coordinates` rounds it.
            value = builder.fadd(builder.fmul(value, multiplier), offset)
            writer.store_lanes(value, part(self._position, i, 1))

    def write_trigonometry(self, trigonometry: ArrayFunction) -> None:
        """Sines and cosines of the positions."""
        count = self._builder.mul(self._n_bodies, self._per_block)
        trigonometry.write(self._builder, count, self._position, self._sine, self._cosine)

    def write_start(self) -> None:
        """State of the base, and zeros in the result."""
        writer, builder, block = self._writer, self._builder, self._block
        for k in range(self._layout.size):
            value = writer.load(Elements(block.constants, False), k)
            writer.store_lanes(value, writer.at(self._states, k * writer.lanes))
        with loop(builder, builder.mul(self._n, _whole(self._loops.sizes[2]))) as i:
            writer.store_lanes(writer.number(0.0), self._part(block.result, i, 1))

    def write_sweep(self, backward: bool, programs: dict[int, StraightLineProgram]) -> None:
        """Loop over the bodies, towards the base if backward, with a program for each kind."""
        builder = self._builder
        with loop(builder, self._n_bodies, backward=backward) as i:
            kind, parent, coordinate = self._about(i)
            arrays = self._arrays(i, parent)
            strided = self._strided(i, coordinate, arrays)
            end = builder.append_basic_block('next')
            unknown = builder.append_basic_block('unknown')
            choice = builder.switch(kind, unknown)
            for number, program in programs.items():
                case = builder.append_basic_block('case')
                choice.add_case(_whole(number), case)
                builder.position_at_end(case)
                self._writer.run(program, arrays, strided)
                builder.branch(end)
            builder.position_at_end(unknown)
            builder.unreachable()
            builder.position_at_end(end)

    def _arrays(self, i: ir.Value, parent: ir.Value) -> dict[str, Elements]:
        """Arrays of body i: its constants, joint and state, and the state of its parent."""
        builder, size, part = self._builder, self._layout.size, self._part
        constants = self._writer.at(self._bodies, builder.mul(i, _whole(N_CONSTANTS)))
        return {
            'constants': Elements(constants, False),
            'position': Elements(part(self._position, i, 1), True),
            'sine': Elements(part(self._sine, i, 1), True),
            'cosine': Elements(part(self._cosine, i, 1), True),
            'own': Elements(part(self._states, builder.add(i, _whole(1)), size), True),
            'parent': Elements(part(self._states, parent, size), True),
        }

    def _strided(
        self, i: ir.Value, coordinate: ir.Value, arrays: dict[str, Elements]
    ) -> dict[str, tuple[ir.Value, ir.Value]]:
        """Arrays of the coordinate of body i, with strides; a wrench is one of its own arrays."""
        block, part = self._block, self._part
        pointers = dict(zip(self._loops.names, (block.motion, block.middle, block.result)))
        if 'wrench' in pointers:
            wrench = part(pointers.pop('wrench'), i, self._loops.sizes[1])
            arrays['wrench'] = Elements(wrench, True)
        return {
            name: (
                part(pointer, coordinate, 1),
                self._builder.mul(self._n, self._per_block),
            )
            for name, pointer in pointers.items()
        }


def robot_scratch(code: RobotCode, lanes: int, width: int) -> int:
    """Doubles of workspace that a function of `robot_module` needs."""
    robot = code.robot
    transposed = code.n_joints * robot.orders + robot.middle.size + robot.result.size
    turns = 3 * padded(len(robot.bodies) * lanes, width)
    friction = 3 * padded(robot.n_steps * lanes, width) + robot.n_velocities * lanes
    return lanes * transposed + turns + friction


def tree_scratch(model: RobotModel, loops: Loops, lanes: int, width: int) -> int:
    """Doubles of workspace that a function of `tree_module` needs."""
    n_bodies = model.n_bodies
    transposed = max(n_bodies, model.n_joints) * sum(loops.sizes)
    states = (n_bodies + 1) * loops.layout.size
    return lanes * (transposed + states) + 3 * padded(n_bodies * lanes, width)
