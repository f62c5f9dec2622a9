"""Kernels: machine code for one robot, its calls for one sample and for batches.

Modules for LLVM are written, and compiled for this processor. That takes some tenths of a second,
so machine code is kept on disk. An entry is named by the hash of what it was made from (the
programs, the files that write modules, the processor, the compiler), so it is never out of date,
and starts with the hash of its content, so a damaged one is not run. Those that have not been used
for longest are removed.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hodyn_ros.checks import Array
from hodyn_ros.engine import calls, functions
from hodyn_ros.engine.body_programs import constants
from hodyn_ros.engine.calls import Argument
from hodyn_ros.engine.frames import frames_of
from hodyn_ros.engine.llvm import ENTRY, EVALUATE, INTEGER, INTEGERS
from hodyn_ros.engine.program import RobotProgram
from hodyn_ros.resources import cache_directory, write_private

if TYPE_CHECKING:
    from hodyn_ros.model.robot import RobotModel

# Fewer samples are not worth a thread.
SAMPLES_PER_THREAD = 512

CACHE_SIZE = 32 * 2**20
"""Largest size of the cache on disk [bytes]: code of some hundred robots."""

_DIGEST_SIZE = 32
# Others may keep other files in the directory.
_ENTRY = re.compile(r'[0-9a-f]{64}\.o|hodyn_\w+\.tmp')

# Releases the interpreter lock while it runs. The arguments are those of `llvm.EVALUATE`.
_BLOCKS = ctypes.CFUNCTYPE(
    ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64, *[ctypes.c_void_p] * 3
)


class Kernel:
    """Machine code for one result of the motion of a robot, such as its efforts of some order.

    Parameters
    ----------
    codes : list of (LoadedCode, int)
        With doubles of workspace, for one sample and for as many as `vector_width`.
    integers, numbers : ndarray
        The robot, where it is not folded into the codes.
    name : str
        Of the form, 'compiled_robot' or 'compiled_tree'.
    wrench_size : int
        How many numbers a sample has in the wrenches.
    friction : bool
        Whether that of the joints, if there is any, is included.
    """

    def __init__(
        self,
        codes: list[tuple[LoadedCode, int]],
        integers: NDArray[np.int64],
        numbers: Array,
        name: str,
        wrench_size: int,
        friction: bool,
    ) -> None:
        self.name = name
        self.wrench_size = wrench_size
        self.friction = friction
        self._robot = integers, numbers
        self.codes = codes
        self._lanes = (1, vector_width())
        self._single_scratch = aligned(codes[0][1])
        pointers = (
            array.ctypes.data for array in (integers, numbers, self._single_scratch)
        )
        self._single_table = np.array([codes[0][0].address, *pointers], dtype=np.int64)
        # For samples side by side in calls, under the interpreter lock.
        self._scratch: Array | None = None

    def call(
        self, *arguments: tuple[Argument, tuple[int, ...]]
    ) -> Callable[..., bool] | None:
        """Function for one sample or few, of arrays, that says whether the results are there.

        See `calls.python_function`.

        Parameters
        ----------
        *arguments : (Argument, tuple of int)
            Arrays in the order in which they are given, and their shapes for one sample.

        Returns
        -------
        callable or None
            Works as long as the kernel lives. None where there are no such functions.
        """
        if not calls.available():
            return None
        if self._scratch is None:
            self._scratch = aligned(self.codes[1][1])
        pointers = (array.ctypes.data for array in (*self._robot, self._scratch))
        many = [self.codes[1][0].address, *pointers]
        kinds, shapes = zip(*arguments)
        table = calls.table_of(self._single_table.tolist(), many, [*shapes])
        return calls.python_function(kinds, table, self._lanes[1])

    def block(self, samples: int) -> tuple[int, NDArray[np.int64], Array]:
        """What `evaluate` of this module takes for blocks of samples side by side.

        Returns
        -------
        lanes : int
            Samples in a block: 1, or as many as the vector registers take.
        table, scratch : ndarray
            The address of the first is the first argument, for one thread at a time; it holds as
            long as both, and the kernel, live.
        """
        if samples == 1:
            return 1, self._single_table, self._single_scratch
        code, size = self.codes[1]
        scratch = aligned(size)
        pointers = (array.ctypes.data for array in (*self._robot, scratch))
        return self._lanes[1], np.array([code.address, *pointers], np.int64), scratch

    def evaluate(
        self,
        motion: Array,
        middle: Array | None,
        result: Array,
        num_threads: int = 1,
        together: bool = True,
    ) -> bool:
        """Compute a batch; says whether all numbers are finite.

        Motion, of shape (N, K, n), middle and result, which is written, are contiguous. The middle
        array holds wrenches, of `wrench_size` numbers a sample, or takes a second result.
        Together: whether samples are computed side by side in the vector registers, or one by one.
        """
        N = len(motion)
        threads = min(num_threads, N // SAMPLES_PER_THREAD)
        if threads > 1:
            lanes = self._lanes[1]
            step = -(-N // (threads * lanes)) * lanes
            futures = []
            for part in (slice(start, start + step) for start in range(0, N, step)):
                arrays = (
                    motion[part],
                    None if middle is None else middle[part],
                    result[part],
                )
                submit = _threads(num_threads).submit
                futures.append(submit(self.evaluate, *arrays, together=together))
            return all([future.result() for future in futures])
        robot = [array.ctypes.data for array in self._robot]
        status = start = 0
        for which in (1, 0) if together else (0,):
            lanes = self._lanes[which]
            blocks = (N - start) // lanes
            if blocks:
                code, size = self.codes[which]
                scratch = aligned(size)
                given = None if middle is None else middle[start:].ctypes.data
                data = motion[start:].ctypes.data, given, result[start:].ctypes.data
                status |= _BLOCKS(code.address)(*robot, scratch.ctypes.data, blocks, *data)
                start += blocks * lanes
        return status == 0


def robot_kernel(model: RobotModel, robot: RobotProgram) -> Kernel:
    """Kernel of a program of one robot, its constants folded into the code."""
    width = vector_width()
    code = functions.RobotCode.of(model, robot)
    text = repr(code)
    codes = [
        LoadedCode(
            (text, lanes, width), partial(functions.robot_module, code, lanes, width)
        )
        for lanes in (1, width)
    ]
    sizes = [functions.robot_scratch(code, lanes, width) for lanes in (1, width)]
    wrench_size = 0 if robot.middle.written else robot.middle.size
    none = np.zeros(0, dtype=np.int64), np.zeros(0)
    return Kernel(
        list(zip(codes, sizes)), *none, 'compiled_robot', wrench_size, robot.friction
    )


def tree_kernel(model: RobotModel, order: int, loaded: bool = False) -> Kernel:
    """Kernel of the efforts that loops over the bodies of any robot.

    If it is loaded, `Kernel.evaluate` takes a wrench on each body, (order + 1) rows of 6: on the
    environment, in the axes of the body's frame of the engine, see `frames.Frames.poses`.
    """
    wrench_size = 6 * (order + 1) * model.n_bodies if loaded else 0
    return _loops_kernel(model, 'efforts', order, loaded, wrench_size)


def articulated_kernel(model: RobotModel, order: int) -> Kernel:
    """Kernel of forward dynamics that loops over the bodies of any robot without mimic joints."""
    return _loops_kernel(model, 'articulated', order, False, (order + 1) * model.n_joints)


def _loops_kernel(
    model: RobotModel, what: str, order: int, loaded: bool, middle_size: int
) -> Kernel:
    """Kernel of `tree_kernel` or `articulated_kernel`, its model given as data."""
    frames = frames_of(model)
    rows, kinds = constants(model, frames)
    of_bodies = np.stack([kinds, model.parent + 1, model.coordinate], axis=1)
    integers = np.array(
        [model.n_joints, model.n_bodies, *of_bodies.ravel()], dtype=np.int64
    )
    loops = _loops(what, order, loaded)
    base = np.zeros(loops.layout.size)
    base[loops.layout.a : loops.layout.a + 3] = -frames.gravity
    numbers = np.concatenate([base, rows.ravel(), model.offset])
    width = vector_width()
    codes = [_tree_code(what, order, loaded, lanes, width) for lanes in (1, width)]
    sizes = [functions.tree_scratch(model, loops, lanes, width) for lanes in (1, width)]
    robot = integers, numbers, 'compiled_tree', middle_size, not model.friction
    return Kernel(list(zip(codes, sizes)), *robot)


@cache
def _loops(what: str, order: int, loaded: bool) -> functions.Loops:
    """Loops of 'efforts' or 'articulated', made once for all robots."""
    if what == 'articulated':
        return functions.articulated_loops(order)
    return functions.effort_loops(order, loaded)


@cache
def _tree_code(what: str, order: int, loaded: bool, lanes: int, width: int) -> LoadedCode:
    """Code of such loops, loaded once for all robots."""
    loops = _loops(what, order, loaded)
    write = partial(functions.tree_module, loops, lanes, width)
    return LoadedCode((repr(loops), lanes, width), write)


def aligned(count: int) -> Array:
    """Array of zeros at the start of a cache line."""
    line = 64
    room = np.zeros(count + line // 8)
    start = -room.ctypes.data % line // 8
    return room[start : start + count]


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    """Pool of so many threads for batches."""
    return ThreadPoolExecutor(count, thread_name_prefix='hodyn_engine')


if hasattr(os, 'register_at_fork'):  # a child has none of the threads
    os.register_at_fork(after_in_child=_threads.cache_clear)


# --- Calls from functions that Numba compiles ----------------------------------------------------


@intrinsic
def evaluate(
    _context: Any, _arguments: Any, _motion: Any, _middle: Any, _result: Any
) -> Any:
    """Call `llvm.EVALUATE` for one sample, with the table and the addresses of the arrays."""

    def generate(
        _: Any, builder: ir.IRBuilder, __: Any, values: list[ir.Value]
    ) -> ir.Value:
        pointer, *arrays = values
        table = builder.inttoptr(pointer, INTEGERS)
        entries = [
            builder.load(builder.gep(table, [ir.Constant(INTEGER, k)])) for k in range(4)
        ]
        function = builder.inttoptr(entries[0], EVALUATE.as_pointer())
        robot = [
            builder.inttoptr(value, kind) for value, kind in zip(entries[1:], EVALUATE.args)
        ]
        data = [builder.inttoptr(value, EVALUATE.args[4]) for value in arrays]
        return builder.call(function, [*robot, ir.Constant(INTEGER, 1), *data])

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate


# --- Machine code -------------------------------------------------------------------------------


def vector_width() -> int:
    """Doubles in one vector register of this processor."""
    features = llvm.get_host_cpu_features()
    return 8 if features.get('avx512f') else 4 if features.get('avx') else 2


class LoadedCode:
    """Machine code of a module, given back with the object.

    Parameters
    ----------
    made_from : tuple
        All that decides what the module is, beside the files of this folder; written as text it
        is the same in every process.
    write : callable
        Writes the module, with the function `ENTRY`, where no code is kept.

    Attributes
    ----------
    address : int
        Of this function.
    """

    def __init__(
        self, made_from: tuple[str, int, int], write: Callable[[], ir.Module]
    ) -> None:
        code = _machine_code(made_from, write)
        # It owns what is added to it.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(''), _target())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.address: int = self._engine.get_function_address(ENTRY)


def _machine_code(made_from: tuple[str, int, int], write: Callable[[], ir.Module]) -> bytes:
    """Object file of a module, compiled or taken from the cache."""
    path = _cache_file(made_from)
    code = _from_cache(path) if path else None
    if code is not None:
        return code
    target = _target()
    # Programs come optimized; what is left to do is the code generator's work.
    module = llvm.parse_assembly(str(write()))
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    module.verify()
    compiled: bytes = target.emit_object(module)
    if path:
        _into_cache(path, compiled)
    return compiled


def _target() -> llvm.TargetMachine:
    """Make a target machine; an execution engine owns, and in the end frees, the one it gets."""
    _initialize()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc='pic',
        codemodel='jitdefault',
    )


@cache
def _initialize() -> None:
    """LLVM made ready for this processor, with sine and cosine of the C library by name."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    library = ctypes.CDLL(None)
    for name, function in (('hodyn_sine', 'sin'), ('hodyn_cosine', 'cos')):
        pointer = ctypes.cast(getattr(library, function), ctypes.c_void_p)
        llvm.add_symbol(name, pointer.value)


def _cache_file(made_from: tuple[str, int, int]) -> Path | None:
    """Entry of a module in the cache; None if there is no place for one."""
    directory = cache_directory()
    if directory is None or _WRITERS is None:
        return None
    features = llvm.get_host_cpu_features().flatten()
    compiler = (llvmlite.__version__, llvm.get_host_cpu_name(), features)
    name = hashlib.sha256(repr((made_from, _WRITERS, compiler)).encode()).hexdigest()
    return directory / f'{name}.o'


def _hash_of_writers() -> str | None:
    """Hash of the files that write modules; None if they cannot be read."""
    digest = hashlib.sha256()
    paths = sorted(Path(__file__).parent.glob('*.py'))
    try:
        for path in paths:
            digest.update(path.read_bytes())
    except OSError:
        return None
    return digest.hexdigest() if paths else None


# Found as they are imported: later they may have changed on disk.
_WRITERS = _hash_of_writers()


def _from_cache(path: Path) -> bytes | None:
    """Object file of an entry; None if there is none or it is damaged. It counts as used now."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):
        os.utime(path)  # the time of its last use
    digest, code = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
    return code if hashlib.sha256(code).digest() == digest else None


def _into_cache(path: Path, code: bytes) -> None:
    """Entry for an object file, behind the hash of its content; older ones make room."""
    with suppress(OSError):  # where it cannot be kept it is compiled again next time
        write_private(path, hashlib.sha256(code).digest() + code)
        _evict(path.parent)


def _evict(directory: Path) -> None:
    """Remove the entries that have not been used for longest; other processes may do so too."""
    found = []
    for path in directory.iterdir():
        if _ENTRY.fullmatch(path.name):
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
    size = 0
    for _, one, path in sorted(found, reverse=True):
        size += one
        if size > CACHE_SIZE:
            path.unlink(missing_ok=True)
