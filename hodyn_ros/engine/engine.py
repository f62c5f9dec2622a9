"""The compiled kernels of a model: made on request, in the background, or in advance."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hodyn_ros.engine.background import compiling, submit
from hodyn_ros.engine.effort_programs import effort_program
from hodyn_ros.engine.frames import frames_of
from hodyn_ros.engine.program import ProgramTooLong
from hodyn_ros.engine.robot_program import Attachment, RobotProgram, robot_program
from hodyn_ros.engine.straight_line import StraightLine
from hodyn_ros.errors import HodynError
from hodyn_ros.model.preparation import on_warm_up, preparing
from hodyn_ros.model.robot import RobotModel

if TYPE_CHECKING:
    from hodyn_ros.engine.kernels import Kernel

# Kernels of higher orders take seconds to compile.
HIGHEST_ORDER = 4

COMPILED_ROBOT, COMPILED_TREE, STRAIGHT_LINE = 'compiled_robot', 'compiled_tree', 'straight_line'
"""Forms of a kernel: machine code with the robot's constants folded in, machine code that loops
over the bodies of any robot, and Python code that works on numbers or NumPy arrays."""

# Longer straight-line code does not fit the processor's instruction cache: loops are faster.
LARGEST_ROBOT_PROGRAM = 4000
# What has no loops is compiled, in a few seconds, as long as its code is no longer than this.
LARGEST_PROGRAM = 20_000
# Robots with more bodies have longer ones for certain.
MOST_BODIES = 24
# Python takes a tenth of a second to read such code for so many bodies.
MOST_BODIES_IN_PYTHON = 64

# Samples that slower code answers before it is worth compiling: a control loop gets there at once,
# a script that wants a few numbers does not start a compiler.
SAMPLES_BEFORE_COMPILING = 64
# With so many samples in one call it is quicker to wait for the compiler.
SAMPLES_WORTH_WAITING = 100_000


class Result(Protocol):
    """What a kernel computes besides efforts; a key of dictionaries."""

    def program(self, model: RobotModel) -> RobotProgram:
        """Program of a robot; may raise `ProgramTooLong`."""

    def __hash__(self) -> int: ...


Key = tuple[int, tuple[Attachment, ...], str | None] | Result

_logger = logging.getLogger('hodyn_ros')


@lru_cache(maxsize=1)
def unavailable() -> str | None:
    """Say why there is no compiler; None if there is one."""
    if os.environ.get('NUMBA_DISABLE_JIT', '0') not in ('', '0'):
        return 'the environment variable NUMBA_DISABLE_JIT is set'
    try:
        with compiling:
            import numba  # noqa: F401
    except Exception as error:  # a broken installation raises all sorts
        return f'Numba cannot be imported ({error})'
    return None


class Engine:
    """The kernels of one model.

    Parameters
    ----------
    model : RobotModel
    """

    def __init__(self, model: RobotModel) -> None:
        self._model = model
        self._kernels: dict[Key, Kernel | StraightLine] = {}
        self._samples: dict[Key, int] = {}
        self._pending: set[Key] = set()
        self._forms: dict[int, str | None] = {}

    def kernel(
        self, order: int, wrenches: tuple[Attachment, ...] = (), samples: int = 1
    ) -> Kernel | StraightLine | None:
        """Kernel for some samples if there is one; otherwise it may be made in the background.

        Parameters
        ----------
        order : int
        wrenches : tuple of Attachment
        samples : int
            How many are to be computed now.

        Returns
        -------
        Kernel, StraightLine or None
        """
        key = (order, wrenches, None)
        ready = self._kernels.get(key)
        if ready is not None or order > HIGHEST_ORDER:
            return ready
        return self._soon(key, samples, lambda: self._prepare_suitable(order, wrenches))

    def kernel_of(self, result: Result, samples: int = 1) -> Kernel | StraightLine | None:
        """Kernel of another result for some samples; see `kernel`."""
        ready = self._kernels.get(result)
        return ready or self._soon(result, samples, lambda: self._prepare_result(result))

    def _soon(
        self, key: Key, samples: int, prepare: Callable[[], object]
    ) -> Kernel | StraightLine | None:
        """Have a kernel prepared if it is worth it; None as long as it is not there."""
        count = self._samples[key] = self._samples.get(key, 0) + samples
        now = preparing.get()
        # A failed attempt stays pending: it would fail again.
        if (count < SAMPLES_BEFORE_COMPILING or key in self._pending) and not now:
            return None
        self._pending.add(key)
        if now or samples >= SAMPLES_WORTH_WAITING:
            self._try(prepare)
        else:
            submit(lambda: self._try(prepare))
        return self._kernels.get(key)

    def prepare(
        self, order: int, wrenches: tuple[Attachment, ...] = (), form: str | None = None
    ) -> Kernel | StraightLine:
        """Kernel, made now if there is none.

        Parameters
        ----------
        order : int
        wrenches : tuple of Attachment
        form : str, optional
            One of the forms; by default the one that suits the robot and the machine.

        Returns
        -------
        Kernel or StraightLine

        Raises
        ------
        HodynError
            If the form needs a compiler and there is none.
        """
        key = (order, wrenches, form)
        with compiling:
            if key not in self._kernels:
                kernel = self.make(order, wrenches, form)
                if form is None:
                    self.adopt(order, wrenches, kernel)
                else:
                    self._kernels[key] = kernel
            return self._kernels[key]

    def expect(self, order: int, wrenches: tuple[Attachment, ...] = ()) -> bool:
        """Make no such kernel in the background, since the caller will `prepare` or `adopt` it.

        Returns
        -------
        bool
            Whether the caller has to: nobody has made or announced it before.
        """
        key = (order, wrenches, None)
        # Without the lock, which is held while something is compiled.
        if key in self._kernels or key in self._pending:
            return False
        self._pending.add(key)
        return True

    def adopt(
        self, order: int, wrenches: tuple[Attachment, ...], kernel: Kernel | StraightLine
    ) -> None:
        """Use a kernel that `make` has made for this model, perhaps in another process."""
        with compiling:
            self._kernels[order, wrenches, None] = kernel
            if not wrenches and kernel.friction:
                self._offer_single(order, kernel)

    def form(self, order: int) -> str | None:
        """Form that suits the robot and the machine for an order; None: leave it to NumPy."""
        if order not in self._forms:
            self._forms[order] = self._suitable_form(order)
        return self._forms[order]

    def _suitable_form(self, order: int) -> str | None:
        if unavailable():
            return STRAIGHT_LINE if self._model.n_bodies <= MOST_BODIES_IN_PYTHON else None
        if self._model.n_bodies > MOST_BODIES:
            return COMPILED_TREE
        program = robot_program(self._model, frames_of(self._model), order)
        return COMPILED_ROBOT if program.flops <= LARGEST_ROBOT_PROGRAM else COMPILED_TREE

    def make(
        self, order: int, wrenches: tuple[Attachment, ...] = (), form: str | None = None
    ) -> Kernel | StraightLine:
        """Make a kernel and leave it to the caller; see `prepare`, which keeps it."""
        form = form or self.form(order) or COMPILED_ROBOT
        if form == STRAIGHT_LINE:
            return StraightLine(self._model, effort_program(self._model, order, wrenches))
        reason = unavailable()
        if reason:
            raise HodynError(f'There is no compiler for dynamics: {reason}.')
        from hodyn_ros.engine import kernels

        if form == COMPILED_ROBOT:
            return kernels.robot_kernel(self._model, order, wrenches)
        return kernels.tree_kernel(self._model, order, bool(wrenches))

    def _offer_single(self, order: int, kernel: Kernel | StraightLine) -> None:
        """Leave what a call with a single sample needs where it is found in least time."""
        if isinstance(kernel, StraightLine):
            return
        from hodyn_ros.engine.numba_call import single

        n = self._model.n_joints
        table = int(kernel.single_table.ctypes.data)
        self._model.derived[order + 3, n] = ((order + 1, n), single, table)

    def _prepare_suitable(self, order: int, wrenches: tuple[Attachment, ...]) -> None:
        if self.form(order) is not None:
            self.prepare(order, wrenches)

    def _prepare_result(self, result: Result) -> None:
        """Make the kernel of a result, unless its program is too long."""
        with compiling:
            if result in self._kernels:
                return
            try:
                program = result.program(self._model)
            except ProgramTooLong:
                return
            if program.program.flops > LARGEST_PROGRAM:
                return
            if unavailable():
                self._kernels[result] = StraightLine(self._model, program)
                return
            from hodyn_ros.engine import kernels
            from hodyn_ros.engine.numba_call import single_call

            single_call(3), single_call(2, 2)  # of matrices, of pose and twist
            self._kernels[result] = kernels.program_kernel(self._model, program)

    def _try(self, prepare: Callable[[], object]) -> None:
        # Even finding out whether there is a compiler takes too long for the caller's thread.
        try:
            prepare()
        except Exception:
            _logger.exception(
                'Compiling the dynamics of %s failed; slower code is used.', self._model.name
            )


def refuses(motion: Any, *results: Any) -> bool:
    """Whether calls in `numba_call` raise an error since they do not take what they are given.

    Asking costs as much as such a call: it is made first, and this is for what it raises.
    """
    return not all(
        type(array) is np.ndarray
        and array.dtype == np.float64
        and array.dtype.isnative
        and array.flags.c_contiguous
        and array.flags.aligned
        and (array is motion or array.flags.writeable)
        for array in (motion, *results)
    )


def engine_of(model: RobotModel) -> Engine:
    """Return the engine of a model, one for its lifetime."""
    engine: Engine | None = model.derived.get('engine')
    return engine or model.derived.setdefault('engine', Engine(model))


@on_warm_up
def _warm_up(model: RobotModel, order: int) -> None:
    engine = engine_of(model)
    for k in range(min(order, HIGHEST_ORDER) + 1):
        if engine.form(k) is not None:
            engine.prepare(k)

