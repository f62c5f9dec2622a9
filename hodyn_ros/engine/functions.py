"""Functions in LLVM's intermediate representation that evaluate one robot, or any robot."""

from __future__ import annotations

from llvmlite import ir

from hodyn_ros.engine.array_functions import Steps, Trigonometry
from hodyn_ros.engine.blocks import Block, evaluate_function
from hodyn_ros.engine.body_programs import (
    BRANCH,
    GENERAL,
    N_CONSTANTS,
    SIMPLE,
    StateLayout,
    body_programs,
)
from hodyn_ros.engine.llvm import DOUBLE, INTEGER, Elements, Writer, loop
from hodyn_ros.engine.robot_program import RobotProgram
from hodyn_ros.model.robot import RobotModel


def _whole(value: int) -> ir.Constant:
    return ir.Constant(INTEGER, value)


def padded(count: int, width: int) -> int:
    """Count rounded up to whole chunks of a width."""
    return -(-count // width) * width


def robot_module(model: RobotModel, robot: RobotProgram, lanes: int, width: int) -> ir.Module:
    """Write a module with the function 'evaluate' for a program of one robot.

    Parameters
    ----------
    model : RobotModel
    robot : RobotProgram
    lanes : int
        Samples in a block.
    width : int
        Numbers that the machine computes at once.

    Returns
    -------
    ir.Module
    """
    module = ir.Module('robot')
    trigonometry = Trigonometry(module, width)
    count, n_steps, n_velocities = len(robot.bodies), robot.n_steps, robot.n_velocities
    steps = Steps(module, width) if n_steps else None
    room, step_room = padded(count * lanes, width), padded(n_steps * lanes, width)

    def body(block: Block) -> None:
        writer, builder = block.writer, block.writer.builder
        position, sine, cosine = (writer.at(block.scratch, k * room) for k in range(3))
        for place, i in enumerate(robot.bodies):
            value = writer.load(Elements(block.motion, True), int(model.coordinate[i]))
            multiplier, offset = float(model.multiplier[i]), float(model.offset[i])
            # Rounded as `kinematics.joints.body_coordinates` rounds it.
            if multiplier != 1.0:
                value = builder.fmul(value, writer.number(multiplier))
            if offset != 0.0:
                value = builder.fadd(value, writer.number(offset))
            writer.store_lanes(value, writer.at(position, place * lanes))
        for i in range(count * lanes, room):
            builder.store(ir.Constant(DOUBLE, 0.0), writer.at(position, i), align=8)
        trigonometry.write(builder, _whole(count * lanes), position, sine, cosine)
        step, shape, slope, direction = (
            writer.at(block.scratch, 3 * room + k * step_room) for k in range(4)
        )
        arrays = {
            'motion': Elements(block.motion, True),
            'sine': Elements(sine, True),
            'cosine': Elements(cosine, True),
            'step': Elements(step, True),
            'shape': Elements(shape, True),
            'slope': Elements(slope, True),
            'velocity': Elements(direction, True),
            'direction': Elements(direction, True),
            robot.middle.array: Elements(block.middle, True),
            robot.result.array: Elements(block.result, True),
        }
        writer.run(robot.arguments, arrays)
        if steps is not None:
            for i in range(n_steps * lanes, step_room):
                builder.store(ir.Constant(DOUBLE, 0.0), writer.at(step, i), align=8)
            steps.write(builder, _whole(n_steps * lanes), step, shape, slope)
        zero, one = writer.number(0.0), writer.number(1.0)
        for i in range(n_velocities):
            value = writer.load(arrays['velocity'], i)
            forward = builder.select(builder.fcmp_ordered('>', value, zero), one, zero)
            back = builder.select(builder.fcmp_ordered('<', value, zero), one, zero)
            difference = builder.fsub(forward, back)
            writer.store_lanes(difference, writer.at(direction, i * lanes))
        writer.run(robot.program, arrays)

    sizes = (model.n_joints * robot.orders, robot.middle.size, robot.result.size)
    evaluate_function(
        module,
        lanes,
        width,
        lambda builder, integers: (_whole(sizes[0]), _whole(sizes[1]), _whole(sizes[2])),
        body,
        writes_middle=robot.middle.written,
    )
    return module


def tree_module(order: int, loaded: bool, lanes: int, width: int) -> ir.Module:
    """Write a module with the function 'evaluate' of any robot, its model given as data.

    The integers are (n_joints, n_bodies, then for each body kind, parent + 1, coordinate), the
    constants the state of the base and `body_programs.constants` with the offsets behind them.

    Parameters
    ----------
    order : int
    loaded : bool
        Whether every body carries a wrench.
    lanes, width : int
        See `robot_module`.

    Returns
    -------
    ir.Module
    """
    module = ir.Module('tree')
    trigonometry = Trigonometry(module, width)
    layout = StateLayout(order)
    kinds = [(kind, body_programs(order, kind, loaded)) for kind in (SIMPLE, BRANCH, GENERAL)]

    def entry(writer: Writer, integers: ir.Value, index: int | ir.Value) -> ir.Value:
        return writer.builder.load(writer.at(integers, index), align=8)

    def sizes(builder: ir.IRBuilder, integers: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        writer = Writer(builder, 1)
        n, n_bodies = entry(writer, integers, 0), entry(writer, integers, 1)
        return (
            builder.mul(n, _whole(order + 3)),
            builder.mul(n_bodies, _whole(6 * (order + 1) if loaded else 0)),
            builder.mul(n, _whole(order + 1)),
        )

    def body(block: Block) -> None:
        writer, builder, integers = block.writer, block.writer.builder, block.integers
        n, n_bodies = entry(writer, integers, 0), entry(writer, integers, 1)
        per_block = _whole(writer.lanes)

        def part(pointer: ir.Value, i: ir.Value, size: int | ir.Value) -> ir.Value:
            """Pointer to the i-th part of an array of parts for each lane."""
            size = _whole(size) if isinstance(size, int) else size
            return writer.at(pointer, builder.mul(builder.mul(i, size), per_block))

        chunk = _whole(width)
        room = builder.mul(n_bodies, per_block)
        room = builder.mul(builder.sdiv(builder.add(room, _whole(width - 1)), chunk), chunk)
        position = block.scratch
        sine = writer.at(position, room)
        cosine = writer.at(sine, room)
        states = writer.at(cosine, room)
        bodies = writer.at(block.constants, layout.size)
        offsets = writer.at(bodies, builder.mul(n_bodies, _whole(N_CONSTANTS)))

        def about(i: ir.Value) -> list[ir.Value]:
            """Kind, parent + 1 and coordinate of a body."""
            first = builder.add(_whole(2), builder.mul(i, _whole(3)))
            return [entry(writer, integers, builder.add(first, _whole(k))) for k in range(3)]

        with loop(builder, n_bodies) as i:
            coordinate = about(i)[2]
            value = writer.load_lanes(part(block.motion, coordinate, 1))
            constants = writer.at(bodies, builder.mul(i, _whole(N_CONSTANTS)))
            multiplier = writer.load(Elements(constants, False), N_CONSTANTS - 2)
            offset = writer.load(Elements(writer.at(offsets, i), False), 0)
            # Rounded as `kinematics.joints.body_coordinates` rounds it.
            value = builder.fadd(builder.fmul(value, multiplier), offset)
            writer.store_lanes(value, part(position, i, 1))
        trigonometry.write(builder, builder.mul(n_bodies, per_block), position, sine, cosine)
        for k in range(layout.size):
            value = writer.load(Elements(block.constants, False), k)
            writer.store_lanes(value, writer.at(states, k * writer.lanes))
        with loop(builder, builder.mul(n, _whole(order + 1))) as i:
            writer.store_lanes(writer.number(0.0), part(block.result, i, 1))

        for backward in (False, True):
            with loop(builder, n_bodies, backward=backward) as i:
                kind, parent, coordinate = about(i)
                arrays = {
                    'constants': Elements(
                        writer.at(bodies, builder.mul(i, _whole(N_CONSTANTS))), False
                    ),
                    'position': Elements(part(position, i, 1), True),
                    'sine': Elements(part(sine, i, 1), True),
                    'cosine': Elements(part(cosine, i, 1), True),
                    'own': Elements(part(states, builder.add(i, _whole(1)), layout.size), True),
                    'parent': Elements(part(states, parent, layout.size), True),
                    'wrench': Elements(part(block.middle, i, 6 * (order + 1)), True),
                }
                strided = {
                    name: (part(pointer, coordinate, 1), builder.mul(n, per_block))
                    for name, pointer in (('motion', block.motion), ('effort', block.result))
                }
                end = builder.append_basic_block('next')
                unknown = builder.append_basic_block('unknown')
                choice = builder.switch(kind, unknown)
                for number, programs in kinds:
                    case = builder.append_basic_block('case')
                    choice.add_case(_whole(number), case)
                    builder.position_at_end(case)
                    program = programs.backward if backward else programs.forward
                    writer.run(program, arrays, strided)
                    builder.branch(end)
                builder.position_at_end(unknown)
                builder.unreachable()
                builder.position_at_end(end)

    evaluate_function(module, lanes, width, sizes, body)
    return module


def robot_scratch(model: RobotModel, robot: RobotProgram, lanes: int, width: int) -> int:
    """Doubles of workspace that a function of `robot_module` needs."""
    transposed = model.n_joints * robot.orders + robot.middle.size + robot.result.size
    turns = 3 * padded(len(robot.bodies) * lanes, width)
    friction = 3 * padded(robot.n_steps * lanes, width) + robot.n_velocities * lanes
    return lanes * transposed + turns + friction


def tree_scratch(model: RobotModel, order: int, lanes: int, width: int) -> int:
    """Doubles of workspace that a function of `tree_module` needs."""
    n_bodies = model.n_bodies
    transposed = model.n_joints * (2 * order + 4) + 6 * (order + 1) * n_bodies
    states = (n_bodies + 1) * StateLayout(order).size
    return lanes * (transposed + states) + 3 * padded(n_bodies * lanes, width)
