"""The compiled kernels of a model: made on request, in the background, or in advance.

A `KernelRequest` says what is computed from a motion. What records programs and compiles them
is imported when it is needed.

A forked process has the locks of its parent as they were, but not the threads that would release
them. So there is one lock for all that compiles, the imports of Numba and LLVM included, and a
fork waits for it: the child finds nothing half done.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy import empty

from hodyn_ros.checks import MOST_DERIVATIVES
from hodyn_ros.engine.program import FORWARD, ProgramTooLong, RobotProgram
from hodyn_ros.engine.requests import (
    CLOSING,
    COMPILED_ROBOT,
    COMPILED_TREE,
    EFFORTS,
    KernelRequest,
)
from hodyn_ros.engine.run import Run
from hodyn_ros.errors import HodynError, ModelError
from hodyn_ros.model.mechanism import Mechanism
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.engine.kernels import Kernel

# For 12 joints order 5 takes a compiler 3 s, order 8 takes 9.
HIGHEST_ORDER = 5
# Longer straight-line code does not fit the processor's instruction cache: loops are faster.
LARGEST_ROBOT_PROGRAM = 4000
# What has no loops is compiled, in a few seconds, as long as its code is no longer than this.
LARGEST_PROGRAM = 20_000
# Robots with more bodies have longer ones for certain.
MOST_BODIES = 24
# Up to 16 the factors of the mass matrix take less time than articulated bodies, but the last ones
# little less, and seconds to compile.
MOST_BODIES_IN_FACTORS = 14

# Samples that slower code answers before it is worth compiling: a control loop gets there at once,
# a script that wants a few numbers does not start a compiler.
SAMPLES_BEFORE_COMPILING = 64
# With so many samples in one call it is quicker to wait for the compiler.
SAMPLES_WORTH_WAITING = 100_000
# Time of the processor that is worth a message [s].
LONG = 2.0

compiling: threading.RLock = threading.RLock()
"""Held by whoever compiles or loads machine code, or imports what does."""

_waiting: deque[Callable[[], object]] = deque()
_logger = logging.getLogger('hodyn_ros')
# Whether what is asked for is to be made now, not in the background.
_preparing: ContextVar[bool] = ContextVar('preparing', default=False)


def quick(model: Any, what: Any, first: Any, second: Any = None, out: Any = None) -> Any:
    """Results of a compiled call for one sample or few, such as those of a control loop.

    Parameters
    ----------
    model : RobotModel
    what : Hashable
        A name of `KernelRequest.quick_names`: a quantity; of efforts the links and choices of some
        wrenches in a row; a quantity of a link, the link and an expression.
    first, second : object
        The first arrays that the call takes.
    out : object
        Where the result is written.

    Returns
    -------
    ndarray, (ndarray, ndarray) or None
        None where there is no such call, or not for these arguments, whatever they are: their
        checks are left to the caller.
    """
    try:
        given = first.shape
        shape, before, call = model.quick_calls[what, given[-2]]
        lead = given[:-2]
        result = empty(lead + shape if lead else shape) if out is None else out
        if before is not None:
            second = empty(lead + before)
            return (second, result) if call(first, second, result) else None
        done = call(first, result) if second is None else call(first, second, result)
        return result if done else None
    except Exception:
        pass
    return None


@cache
def unavailable() -> str | None:
    """Reason why there is no compiler, for a message; None if there is one. Found out once."""
    if os.environ.get('NUMBA_DISABLE_JIT', '0') not in ('', '0'):
        return 'the environment variable NUMBA_DISABLE_JIT is set'
    try:
        with compiling:
            import llvmlite.binding  # noqa: F401
    except Exception as error:  # a broken installation raises all sorts
        return f'llvmlite cannot be imported ({error})'
    # Numba itself is imported where functions are compiled: it takes longer than all else.
    return None if find_spec('numba') else 'Numba cannot be imported (it is not installed)'


@contextmanager
def _timed(work: str, name: str) -> Iterator[None]:
    """Message if some work has taken long."""
    start = time.thread_time()
    yield
    took = time.thread_time() - start
    if took > LONG:
        _logger.warning('%s the dynamics of %s took %.0f s, once.', work, name, took)


Asked = TypeVar('Asked', bound=Hashable)
Code = TypeVar('Code')


class Compiler(Generic[Asked, Code]):
    """Machine code of what is asked for: made in the background, at once, or in advance.

    Parameters
    ----------
    name : str
        For messages.

    Attributes
    ----------
    kernels : dict
        By what was asked for; None where there can be none.
    pending : set
        What is being made, or could not be made.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.kernels: dict[Asked, Code | None] = {}
        self.pending: set[Asked] = set()
        self._samples: dict[Asked, int] = {}

    def make(self, request: Asked) -> Code | None:
        """Machine code of a request; None if there can be none."""
        raise NotImplementedError

    def kernel(self, request: Asked, samples: int = 1) -> Code | None:
        """Kernel if there is one for a request; otherwise it may be made in the background.

        The samples to be computed now count: from some on it is worth it.

        Parameters
        ----------
        request : hashable
        samples : int
            How many are to be computed now. With `SAMPLES_WORTH_WAITING` the kernel is made at
            once.

        Returns
        -------
        Kernel or None
            None as long as the samples are left to NumPy.
        """
        if request in self.kernels:
            return self.kernels[request]
        count = self._samples[request] = self._samples.get(request, 0) + samples
        now = _preparing.get()
        # A failed attempt stays pending: it would fail again.
        if (count < SAMPLES_BEFORE_COMPILING or request in self.pending) and not now:
            return None
        self.pending.add(request)
        if now or samples >= SAMPLES_WORTH_WAITING:
            self._try(request)
        else:
            _waiting.append(lambda: self._try(request))
            compiling_thread().submit(_do_next)
        return self.kernels.get(request)

    def prepare(self, request: Asked) -> Code | None:
        """Kernel, made now if there is none; None for what is left to NumPy.

        Without a compiler a `HodynError` is raised.
        """
        reason = unavailable()
        if reason:
            raise HodynError(f'There is no compiler for dynamics: {reason}.')
        with compiling:
            if request not in self.kernels:
                with _timed('Compiling', self._name):
                    self.kernels[request] = self.make(request)
            return self.kernels[request]

    def expect(self, request: Asked) -> bool:
        """Claim a request: it is not compiled in the background.

        True if the caller must compile it with `prepare`, False if it exists or is being compiled.
        """
        # Without the lock, which is held while something is compiled.
        if request in self.kernels or request in self.pending:
            return False
        self.pending.add(request)
        return True

    def _try(self, request: Asked) -> None:
        """Kernel of a request if one can be made; a failure is logged, and slower code works."""
        # Even finding out whether there is a compiler takes too long for the caller's thread.
        try:
            if not unavailable():
                self.prepare(request)
        except Exception:
            _logger.exception(
                'Compiling the dynamics of %s failed; slower code is used.',
                self._name,
            )


class Engine(Compiler[KernelRequest, 'Kernel']):
    """Programs and kernels of one model, kept by their requests.

    Parameters
    ----------
    model : Mechanism

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.engine import KernelRequest, engine_of
    >>> engine = engine_of(RobotModel.from_urdf('two_link'))
    >>> engine.program(KernelRequest('mass matrix', K=1)).result
    Part(array='term', size=4, written=True)
    """

    def __init__(self, model: Mechanism) -> None:
        super().__init__(model.name)
        self._model = model
        self._programs: dict[KernelRequest, RobotProgram] = {}
        self._runs: dict[KernelRequest, Run | None] = {}

    def program(self, request: KernelRequest) -> RobotProgram:
        """Program of a request, recorded once.

        Raises
        ------
        ModelError
            For friction laws that are not of this package, where they are part of it.
        ProgramTooLong
            For more steps than `program.LONGEST`, where formulations compute the same.
        """
        from hodyn_ros.engine.quantities import PROGRAMS  # all that records

        program = self._programs.get(request)
        if program is None:
            program = PROGRAMS[request.quantity](self._model, request)
            self._programs[request] = program
        return program

    def run(self, request: KernelRequest) -> Run | None:
        """Program of a request, run by NumPy as long as there is no kernel.

        None for one that is too long to record, or has a friction law of one's own.
        """
        with suppress(KeyError):  # another thread may just remove it
            return self._runs[request]
        run = None
        with _timed('Recording', self._name), suppress(ModelError, ProgramTooLong):
            run = Run(self.program(request))
        self._runs[request] = run
        return run

    def prepare_general(self, request: KernelRequest) -> None:
        """Have efforts computed by the code for any robot, which takes no time to make.

        For models that come and go, such as those with what a gripper holds.
        """
        kernel = self.prepare(request._replace(form=COMPILED_TREE))
        with compiling:
            if request not in self.kernels:
                self.kernels[request] = kernel
                self._offer(request, kernel)

    def make(self, request: KernelRequest) -> Kernel | None:
        """Kernel of a request, and its call for few samples where `quick` finds it."""
        kernel = self._kernel(request)
        self._offer(request, kernel)
        if kernel is not None:
            for made in (self._programs, self._runs):
                made.pop(request, None)  # they take some megabytes
        return kernel

    def _offer(self, request: KernelRequest, kernel: Kernel | None) -> None:
        """Keep the call of a kernel for few samples."""
        if kernel is None or request.K > MOST_DERIVATIVES:
            return  # those who check the motion ask whether so many are meant
        from hodyn_ros.engine.calls import ArrayArgument

        model, arrays = self._model, request.arrays(self._model)
        if model.closure is not None and request.quantity == EFFORTS:
            from hodyn_ros.engine.loop_kernels import efforts_kernel

            positions = self.prepare(KernelRequest(CLOSING, 1))
            if positions is None:
                return
            whole = efforts_kernel(model, request.K, positions, kernel)
            kernel.parts, kernel = [whole], whole
        # The motion of a link and its Jacobian have two results, of which the pose is the first.
        written = ('middle', 'result') if request.link else ('result',)
        for name in request.quick_names(model, kernel):
            arguments = [
                (ArrayArgument(array, len(shape), array in written), shape)
                for array, shape in arrays
            ]
            call = kernel.call(*arguments)
            if call is not None:
                pose = arrays[1][1] if 'middle' in written else None
                model.quick_calls[name, arrays[0][1][0]] = arrays[-1][1], pose, call

    def _kernel(self, request: KernelRequest) -> Kernel | None:
        """Kernel of a request: of its program, or loops over bodies; None if there is neither."""
        from hodyn_ros.engine import kernels
        from hodyn_ros.engine.llvm_lanes import DOUBLE, SINGLE

        model, orders = self._model, request.K - 2
        kind = SINGLE if request.single else DOUBLE
        of_tree = request.quantity == EFFORTS and model.closure is None
        if of_tree and orders > HIGHEST_ORDER + 1:
            return None
        by_bodies = of_tree or has_articulated_bodies(model, request)
        most = MOST_BODIES if of_tree else MOST_BODIES_IN_FACTORS
        if request.form is None and by_bodies and model.n_bodies > most:
            request = request._replace(form=COMPILED_TREE)
        if request.form != COMPILED_TREE and self._suits(request):
            return self._of_program(request, kind)
        if of_tree:
            return kernels.tree_kernel(model, orders - 1, bool(request.wrenches), kind)
        if by_bodies and request.form != COMPILED_ROBOT:
            return kernels.articulated_kernel(model, orders - 1)
        return None

    def _of_program(self, request: KernelRequest, kind: Any) -> Kernel:
        """Kernel of the program of a request, for numbers of a kind."""
        from hodyn_ros.engine import kernels

        kernel = kernels.robot_kernel(self.program(request), kind)
        if request.quantity != CLOSING:
            return kernel
        from hodyn_ros.engine.loop_kernels import positions_kernel

        return positions_kernel(self._model, kernel)

    def _suits(self, request: KernelRequest) -> bool:
        """Whether a program can be recorded, and is short enough to be compiled."""
        try:
            program = self.program(request)
        # A friction law of one's own, overconstrained loops.
        except (ModelError, ProgramTooLong):
            return False
        if request.quantity != EFFORTS or self._model.closure is not None:
            # To write results takes a compiler as long as to compute them.
            length = program.program.flops + len(program.program.outputs)
            return length <= LARGEST_PROGRAM and (
                request.quantity != EFFORTS or program.friction
            )
        if request.form is None and (request.wrenches or self._model.friction):
            # Which NumPy would have to add to what loops over bodies give.
            from hodyn_ros.engine.efforts import effort_program

            program = effort_program(self._model, request.K - 3, friction=False)
        return request.form is not None or program.program.flops <= LARGEST_ROBOT_PROGRAM


def has_articulated_bodies(model: Mechanism, request: KernelRequest) -> bool:
    """Whether articulated bodies, in loops over the bodies of any robot, can compute a request.

    They know no wrenches, prescribed joints, friction or mimic joints, and no derivatives above
    `HIGHEST_ORDER`.
    """
    return (
        request.quantity == FORWARD
        and not (request.wrenches or request.prescribed or model.friction)
        and request.K - 3 <= HIGHEST_ORDER
        and model.n_bodies == model.n_joints
    )


def engine_of(model: Mechanism, request: KernelRequest | None = None) -> Engine:
    """Engine of a model, for its lifetime.

    Parameters
    ----------
    model : Mechanism
    request : KernelRequest, optional
        Of a model with closed loops only efforts have programs; all else is of its tree.

    Examples
    --------
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.engine import engine_of
    >>> model = RobotModel.from_urdf('two_link')
    >>> engine_of(model) is engine_of(model)
    True
    """
    closes = request is not None and request.quantity == EFFORTS and not request.form
    return (model if closes else model.tree).kept(Engine)


def prepare_kernel(model: Mechanism, request: KernelRequest) -> Kernel | None:
    """Kernel of a model, made now; of the tree of closed loops if they have none."""
    kernel = engine_of(model, request).prepare(request)
    return engine_of(model).prepare(request) if kernel is None else kernel


def compute(
    model: Mechanism,
    request: KernelRequest,
    motion: Array,
    middle: Array | None,
    result: Array,
) -> bool | None:
    """Compute a batch by machine code, or by its program until there is some.

    Parameters
    ----------
    model : RobotModel
    request : KernelRequest
    motion : ndarray, shape (N, K, n)
    middle : ndarray, shape (N, ...), or None
    result : ndarray, shape (N, ...)
        Written; all are contiguous.

    Returns
    -------
    bool or None
        Whether all numbers are finite. None where there is no program: of closed loops, whose
        tree is computed by those who close them, of friction laws that are not of this package,
        and for robots that are too large, see `program.LONGEST`.

    Examples
    --------
    >>> import numpy as np
    >>> from hodyn_ros import RobotModel
    >>> from hodyn_ros.engine import KernelRequest, compute
    >>> model, result = RobotModel.from_urdf('two_link'), np.empty((1, 1, 2, 2))
    >>> compute(model, KernelRequest('mass matrix', K=1), np.zeros((1, 1, 2)), None, result)
    True
    >>> result[0, 0].round(3)
    array([[4.35, 1.2 ],
           [1.2 , 0.5 ]])
    """
    if model.closure is not None:
        return None
    engine = engine_of(model)
    answers: Kernel | Run | None = None
    if model.n_bodies:
        answers = engine.kernel(request, len(motion))
    answers = answers or engine.run(request)
    # Overflow shows in the answer; it needs no warning on the way.
    with np.errstate(over='ignore', invalid='ignore'):
        return answers.evaluate(motion, middle, result) if answers else None


def warm_up(model: Mechanism, order: int, calls: Sequence[Callable[[], object]]) -> None:
    """Kernels of efforts up to an order, and of some calls, made in advance.

    Parameters
    ----------
    model : RobotModel
    order : int
        Highest derivative of the efforts, at most `HIGHEST_ORDER` of which are compiled.
    calls : sequence of callable
        Calls whose kernels are made as they ask for them, not in the background.
    """
    if not unavailable():
        for k in range(min(order, HIGHEST_ORDER) + 1):
            prepare_kernel(model, KernelRequest(EFFORTS, k + 3))
    token = _preparing.set(True)
    try:
        for call in calls:
            call()
    finally:
        _preparing.reset(token)


# --- In the background, and after a fork --------------------------------------------------------


@cache
def compiling_thread() -> ThreadPoolExecutor:
    """Pool of the one thread that compiles in the background."""
    return ThreadPoolExecutor(1, thread_name_prefix='hodyn_compiler')


def _do_next() -> None:
    """The request that has waited for longest, made under the lock."""
    with compiling:
        if _waiting:
            _waiting.popleft()()


def _after_fork_in_child() -> None:
    """Thread of a forked child: what waits is queued again, then the lock is released."""
    compiling_thread.cache_clear()
    for _ in range(len(_waiting)):
        compiling_thread().submit(_do_next)
    compiling.release()


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(
        before=compiling.acquire,
        after_in_parent=compiling.release,
        after_in_child=_after_fork_in_child,
    )
