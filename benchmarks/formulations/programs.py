"""The formulations as programs, and these as machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.formulations import body_fixed, closed_form, hybrid, robots, spatial, traced
from hodyn_ros import RobotModel
from hodyn_ros.engine import functions
from hodyn_ros.engine.frames import frames
from hodyn_ros.engine.kernels import LoadedCode, aligned
from hodyn_ros.engine.program import (
    NO_ARRAY,
    Number,
    Part,
    Recorder,
    RobotProgram,
    StraightLineProgram,
)
from hodyn_ros.engine.robot_program import robot_program

Array = NDArray[np.float64]
Efforts = Callable[
    [Sequence[Number], Sequence[Number], Sequence[Sequence[Number]], int],
    list[list[Number]],
]

ENGINE = 'engine'
# Forming the matrices of all bodies takes a million operations for twice as many joints.
LARGEST_FOR_MATRICES = 7


class Formulation(NamedTuple):
    """A formulation.

    Attributes
    ----------
    name : str
    written : str
        How the equations are written, if not for scalars and by default.
    frames : str
        Frames of the bodies: the model's own or those of the engine.
    largest : int or None
        Number of joints up to which it takes part.
    program : callable
        Program for a model and an order.
    """

    name: str
    written: str
    frames: str
    largest: int | None
    program: Callable[[RobotModel, int], StraightLineProgram]

    @property
    def label(self) -> str:
        """Name in tables and the key of results."""
        return ', '.join(part for part in (self.name, self.written, self.frames) if part)


def formulations() -> list[Formulation]:
    """All formulations, the engine first."""
    entries = [
        Formulation(ENGINE, '', '', None, partial(_engine_program, True)),
        Formulation(ENGINE, 'masses as given', '', None, partial(_engine_program, False)),
    ]
    scalar = {
        'body-fixed': body_fixed.efforts,
        'hybrid': hybrid.efforts,
        'spatial': spatial.efforts,
        'closed form': closed_form.efforts,
    }
    for name, efforts in scalar.items():
        for frames_name, constants in (
            ("engine's frames", robots.in_engine_frames),
            ('own frames', robots.in_own_frames),
        ):
            program = partial(_scalar_program, efforts, constants)
            entries.append(Formulation(name, '', frames_name, None, program))
    modules = {
        'body-fixed': 'body_fixed',
        'any order': 'nth_order',
        'hybrid': 'hybrid',
        'spatial': 'spatial',
        'closed form': 'closed_form',
    }
    for name, module in modules.items():
        largest = LARGEST_FOR_MATRICES if module == 'closed_form' else None
        program = partial(_traced_program, module)
        entries.append(Formulation(name, '6x6 matrices', 'own frames', largest, program))
    return entries


def _engine_program(regroup: bool, model: RobotModel, order: int) -> StraightLineProgram:
    return robot_program(model, frames(model, regroup), order)


def _scalar_program(
    efforts: Callable[..., list[list[Number]]],
    constants: Callable[[RobotModel], robots.Robot],
    model: RobotModel,
    order: int,
) -> StraightLineProgram:
    return _recorded(partial(efforts, constants(model)), model, order)


def _traced_program(module: str, model: RobotModel, order: int) -> StraightLineProgram:
    return _recorded(partial(traced.efforts, module, model), model, order)


def _recorded(efforts: Efforts, model: RobotModel, order: int) -> StraightLineProgram:
    """Program with the inputs and outputs of `robot_program`."""
    robots.check(model)
    n = model.n_joints
    recorder = Recorder()
    motion = recorder.inputs('motion', n * (order + 3))
    q = [motion[i::n] for i in range(n)]
    rows = efforts(recorder.inputs('sine', n), recorder.inputs('cosine', n), q, order)
    recorder.outputs('effort', [value for row in rows for value in row])
    return recorder.program()


class Operations(NamedTuple):
    """What a program does for each sample, besides sines and cosines."""

    multiplications: int
    additions: int

    @property
    def total(self) -> int:
        """All operations."""
        return self.multiplications + self.additions


def operations(program: StraightLineProgram) -> Operations:
    """Count the operations of a program."""
    counts = program.counts()
    additions = counts.get('add', 0) + counts.get('subtract', 0)
    return Operations(counts.get('multiply', 0), additions)


def evaluate(program: StraightLineProgram, model: RobotModel, motion: Array) -> Array:
    """Efforts of samples by a program, one operation after the other.

    Parameters
    ----------
    program : StraightLineProgram
    model : RobotModel
    motion : ndarray, shape (N, K, n)

    Returns
    -------
    ndarray, shape (N, K-2, n)
    """
    N, K, n = motion.shape
    q = motion[:, 0] * model.multiplier + model.offset
    arrays = {'motion': motion.reshape(N, -1), 'sine': np.sin(q), 'cosine': np.cos(q)}
    values: list[Array] = []
    for kind, a, b in program.operations:
        if kind == 'input':
            values.append(arrays[a][:, b])
        elif kind == 'constant':
            values.append(np.full(N, a))
        elif kind == 'negate':
            values.append(-values[a])
        else:
            values.append(getattr(np, kind)(values[a], values[b]))
    efforts = np.zeros((N, (K - 2) * n))
    for _, index, step in program.outputs:
        efforts[:, index] = values[step]
    return efforts.reshape(N, K - 2, n)


# The arguments are those of `hodyn_ros.engine.llvm.EVALUATE`.
_EVALUATE = ctypes.CFUNCTYPE(
    ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64, *[ctypes.c_void_p] * 3
)


class Compiled:
    """Machine code of a program, bound to arrays so that a call costs next to nothing.

    Parameters
    ----------
    program : StraightLineProgram
    model : RobotModel
    lanes : int
        Samples that are computed at once.
    width : int
        Numbers in a vector register.
    motion : ndarray, shape (N, K, n), C-contiguous
        N is a multiple of the lanes.
    efforts : ndarray, shape (N, K-2, n), C-contiguous
        Is written.
    """

    def __init__(
        self,
        program: StraightLineProgram,
        model: RobotModel,
        lanes: int,
        width: int,
        motion: Array,
        efforts: Array,
    ) -> None:
        order = motion.shape[1] - 3
        robot = RobotProgram(
            program,
            range(model.n_bodies),
            order + 3,
            NO_ARRAY,
            Part('effort', model.n_joints * (order + 1), True),
        )
        module = functions.robot_module(model, robot, lanes, width)
        scratch = aligned(functions.robot_scratch(model, robot, lanes, width))
        self._alive = (scratch, motion, efforts)
        self._loaded = LoadedCode(module)
        self._evaluate = _EVALUATE(self._loaded.address)
        blocks = len(motion) // lanes
        pointers = (motion.ctypes.data, None, efforts.ctypes.data)
        self._arguments = (None, None, scratch.ctypes.data, blocks, *pointers)

    def __call__(self) -> None:
        """Compute all samples."""
        self._evaluate(*self._arguments)
