"""Modules in LLVM's intermediate representation that evaluate a program of one robot."""

from __future__ import annotations

from llvmlite import ir

from hodyn_ros.engine.llvm_functions import ArrayFunctions
from hodyn_ros.engine.llvm_lanes import (
    DOUBLE,
    INTEGER,
    Block,
    Elements,
    evaluate_function,
    padded,
)
from hodyn_ros.engine.program import RobotProgram
from hodyn_ros.engine.stages import GATHERED, in_stages, sizes_between


class RobotCode:
    """Writer of modules for a program.

    Parameters
    ----------
    robot : RobotProgram
    """

    def __init__(self, robot: RobotProgram) -> None:
        self._robot, self._stages = robot, in_stages(robot.program)
        middle, result = robot.middle.size, robot.result.size
        self._sizes = robot.n_joints * robot.orders, middle, result

    def _rooms(self, lanes: int, width: int) -> dict[str, int]:
        """Doubles of workspace for arrays between the stages."""
        sizes = sizes_between([self._stages])
        # The last chunk of functions of a stage may begin with the last element.
        return {
            array: padded(size * lanes + width - 1, width) for array, size in sizes.items()
        }

    def scratch(self, lanes: int, width: int) -> int:
        """Doubles of workspace that the function of a module needs, zero at first."""
        return lanes * sum(self._sizes) + sum(self._rooms(lanes, width).values())

    def module(self, lanes: int, width: int, kind: ir.Type = DOUBLE) -> ir.Module:
        """Write a module with the function 'evaluate'.

        Parameters
        ----------
        lanes : int
            Samples in a block.
        width : int
            Numbers that `ArrayFunctions` compute at once.
        kind : ir.Type
            Of numbers that are computed; functions of them are computed in double precision.
        """
        module, robot = ir.Module('robot'), self._robot
        functions = ArrayFunctions(module, width)

        def body(block: Block) -> None:
            writer, free = block.writer, block.scratch
            pointers = {
                'motion': block.motion,
                robot.middle.array: block.middle,
                robot.result.array: block.result,
            }
            for name, room in self._rooms(lanes, width).items():
                pointers[name], free = free, writer.at(free, room)
            arrays = {name: Elements(pointer, lanes) for name, pointer in pointers.items()}
            for stage in self._stages:
                writer.run(stage, arrays)
                for array, names in GATHERED.items():
                    indices = [item.index for item in stage.outputs if item.array == array]
                    if indices:
                        first = indices[0] * lanes
                        ends = [writer.at(pointers[x], first) for x in (array, *names)]
                        count = ir.Constant(INTEGER, len(indices) * lanes)
                        functions.write(writer.builder, array, count, ends)

        first, second, third = (ir.Constant(INTEGER, size) for size in self._sizes)
        written = robot.middle.written
        evaluate_function(
            module, lanes, width, lambda *_: (first, second, third), body, written, kind
        )
        return module
