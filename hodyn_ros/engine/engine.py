"""The compiled kernels of a model: made on request, in the background, or in advance."""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from hodyn_ros.engine.frames import frames_of
from hodyn_ros.engine.robot_program import Attachment, robot_program
from hodyn_ros.errors import HodynError
from hodyn_ros.model.preparation import on_warm_up
from hodyn_ros.model.robot import RobotModel

if TYPE_CHECKING:
    from hodyn_ros.engine.kernels import Kernel

HIGHEST_ORDER = 2

# Longer straight-line code does not fit the processor's instruction cache: loops are faster.
LARGEST_ROBOT_PROGRAM = 4000
# Robots with more bodies have longer ones for certain.
MOST_BODIES = 24

# Samples that slower code answers before it is worth compiling: a control loop gets there at once,
# a script that wants a few numbers does not start a compiler.
SAMPLES_BEFORE_COMPILING = 64
# With so many samples in one call it is quicker to wait for the compiler.
SAMPLES_WORTH_WAITING = 100_000

Key = tuple[int, tuple[Attachment, ...], bool | None]

_logger = logging.getLogger('hodyn_ros')


@lru_cache(maxsize=1)
def unavailable() -> str | None:
    """Say why there is no compiler; None if there is one."""
    if os.environ.get('NUMBA_DISABLE_JIT', '0') not in ('', '0'):
        return 'the environment variable NUMBA_DISABLE_JIT is set'
    try:
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
        self._kernels: dict[Key, Kernel] = {}
        self._samples: dict[Key, int] = {}
        self._pending: set[Key] = set()
        self._lock = threading.RLock()

    def kernel(
        self, order: int, wrenches: tuple[Attachment, ...] = (), samples: int = 1
    ) -> Kernel | None:
        """Kernel for some samples if there is one; otherwise it may be made in the background.

        Parameters
        ----------
        order : int
        wrenches : tuple of Attachment
        samples : int
            How many are to be computed now.

        Returns
        -------
        Kernel or None
        """
        key = (order, wrenches, None)
        ready = self._kernels.get(key)
        if ready is not None or order > HIGHEST_ORDER:
            return ready
        count = self._samples[key] = self._samples.get(key, 0) + samples
        # A failed attempt stays pending: it would fail again.
        if count < SAMPLES_BEFORE_COMPILING or key in self._pending or unavailable():
            return None
        self._pending.add(key)
        if samples >= SAMPLES_WORTH_WAITING:
            self._try(order, wrenches)
        else:
            _background().submit(self._try, order, wrenches)
        return self._kernels.get(key)

    def prepare(
        self, order: int, wrenches: tuple[Attachment, ...] = (), folded: bool | None = None
    ) -> Kernel:
        """Kernel, made now if there is none.

        Parameters
        ----------
        order : int
        wrenches : tuple of Attachment
        folded : bool, optional
            Whether the robot's constants are to be folded in; by default if it is small enough.

        Returns
        -------
        Kernel

        Raises
        ------
        HodynError
            If there is no compiler.
        """
        reason = unavailable()
        if reason:
            raise HodynError(f'There is no compiler for dynamics: {reason}.')
        from hodyn_ros.engine import kernels

        key = (order, wrenches, folded)
        with self._lock:
            if key not in self._kernels:
                if self._folds_constants if folded is None else folded:
                    kernel = kernels.robot_kernel(self._model, order, wrenches)
                else:
                    kernel = kernels.tree_kernel(self._model, order, bool(wrenches))
                self._kernels[key] = kernel
                if not wrenches and folded is None and not self._model.friction:
                    self._offer_single(order, kernel)
            return self._kernels[key]

    @cached_property
    def _folds_constants(self) -> bool:
        if self._model.n_bodies > MOST_BODIES:
            return False
        program = robot_program(self._model, frames_of(self._model), HIGHEST_ORDER)
        return program.flops <= LARGEST_ROBOT_PROGRAM

    def _offer_single(self, order: int, kernel: Kernel) -> None:
        """Leave what a call with a single sample needs where it is found in least time."""
        from hodyn_ros.engine.numba_call import single

        n = self._model.n_joints
        table = int(kernel.single_table.ctypes.data)
        self._model.derived[order + 3, n] = ((order + 1, n), single, table)

    def _try(self, order: int, wrenches: tuple[Attachment, ...]) -> None:
        try:
            self.prepare(order, wrenches)
        except Exception:
            _logger.exception(
                'Compiling the dynamics of %s failed; slower code is used.', self._model.name
            )


def engine_of(model: RobotModel) -> Engine:
    """Return the engine of a model, one for its lifetime."""
    engine: Engine | None = model.derived.get('engine')
    return engine or model.derived.setdefault('engine', Engine(model))


@on_warm_up
def _warm_up(model: RobotModel, order: int) -> None:
    if not unavailable():
        for k in range(min(order, HIGHEST_ORDER) + 1):
            engine_of(model).prepare(k)


@lru_cache(maxsize=1)
def _background() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix='hodyn_compiler')

