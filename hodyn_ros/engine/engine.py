"""The compiled kernels of a model: made on request, in the background, or in advance.

A request says what a kernel computes from a motion. What records programs and compiles them is
imported when the first kernel is made.

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
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import empty

from hodyn_ros.checks import MOST_DERIVATIVES, Array
from hodyn_ros.engine.program import (
    FLOATING,
    FORWARD,
    MASS_MATRIX,
    MOVING,
    PARTIALS,
    REGRESSOR,
    WEIGHT,
    Attachment,
    ProgramTooLong,
    RobotProgram,
)
from hodyn_ros.engine.run import Run
from hodyn_ros.errors import HodynError, ModelError
from hodyn_ros.model.mechanism import Mechanism

if TYPE_CHECKING:
    from hodyn_ros.engine.kernels import Kernel

EFFORTS = 'efforts'
"""Name of joint efforts without wrenches among the calls of `quick`."""

COMPILED_ROBOT, COMPILED_TREE = 'compiled_robot', 'compiled_tree'
"""Forms of a kernel of efforts: machine code with the robot's constants folded in, and machine
code that loops over the bodies of any robot."""

# Kernels of higher orders take seconds to compile.
HIGHEST_ORDER = 4
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
# Time that is worth a message [s].
LONG = 2.0

compiling = threading.RLock()
"""Held by whoever compiles or loads machine code, or imports what does."""

_waiting: deque[Callable[[], object]] = deque()
_logger = logging.getLogger('hodyn_ros')
# Whether what is asked for is to be made now, not in the background.
_preparing: ContextVar[bool] = ContextVar('preparing', default=False)


class Efforts(NamedTuple):
    """Request for joint efforts.

    Attributes
    ----------
    order : int
        Highest derivative of the efforts; the motion has order + 3 rows.
    wrenches : tuple of Attachment
        Which wrenches there are; their values are data.
    form : str or None
        `COMPILED_ROBOT` or `COMPILED_TREE`; None: the one that suits the robot.
    single : bool
        Whether motion, wrenches and efforts are of float32, and computed in it.
    """

    order: int
    wrenches: tuple[Attachment, ...] = ()
    form: str | None = None
    single: bool = False

    def make(self, model: Mechanism) -> Kernel | None:
        """Kernel; None for orders that are left to NumPy."""
        if self.order > HIGHEST_ORDER:
            return None
        from hodyn_ros.engine import efforts, kernels
        from hodyn_ros.engine.llvm_lanes import DOUBLE, SINGLE

        kind = SINGLE if self.single else DOUBLE
        if (
            self.form == COMPILED_ROBOT
            or self.form is None
            and model.n_bodies <= MOST_BODIES
        ):
            whole = efforts.effort_program(model, self.order, self.wrenches)
            alone = whole.program
            if self.form is None and (self.wrenches or model.friction):
                alone = efforts.effort_program(model, self.order, friction=False).program
            if self.form == COMPILED_ROBOT or alone.flops <= LARGEST_ROBOT_PROGRAM:
                return kernels.robot_kernel(whole, kind)
        return kernels.tree_kernel(model, self.order, bool(self.wrenches), kind)

    def offer(self, model: Mechanism, kernel: Kernel) -> None:
        """Kept call for few samples, by the wrenches if there are some."""
        as_given = kernel.name == COMPILED_ROBOT or not self.wrenches
        if self.form is None and kernel.friction and as_given and not self.single:
            n, many = model.n_joints, len(self.wrenches)
            given: list[tuple[str, tuple[int, ...]]] = [
                ('motion', (self.order + 3, n)),
                ('result', (self.order + 1, n)),
            ]
            if many:
                rows = self.order + 1, 6
                given.insert(1, ('middle', (many, *rows) if many > 1 else rows))
            _keep(model, kernel, tuple(chain(*self.wrenches)) or EFFORTS, given)


class LinkResult(NamedTuple):
    """Request for the pose of a link that moves, into the middle array, and its twist.

    Attributes
    ----------
    link : str
    expressed_in : {'body', 'spatial', 'hybrid'}
        Of the twist.
    K : int
        Number of derivatives in the motion, the zeroth included; the twist has one fewer.
    """

    link: str
    expressed_in: str
    K: int

    def program(self, model: Mechanism) -> RobotProgram:
        """Program of the pose and the twist."""
        from hodyn_ros.engine.links import link_program

        return link_program(model, self.link, self.expressed_in, self.K)

    def make(self, model: Mechanism) -> Kernel | None:
        """Kernel; None for a program that is too long to compile."""
        return _program_kernel(model, self)

    def offer(self, model: Mechanism, kernel: Kernel) -> None:
        """Kept call for few samples; that of the tip also without a name."""
        given = [
            ('motion', (self.K, model.n_joints)),
            ('middle', (4, 4)),
            ('result', (self.K - 1, 6)),
        ]
        for name in (self.link, None) if self.link == model.tip_link else (self.link,):
            _keep(model, kernel, (name, self.expressed_in), given, writes_middle=True)


class Term(NamedTuple):
    """Request for a term of the equations of motion and its derivatives.

    Attributes
    ----------
    name : str
        `MASS_MATRIX`, `CORIOLIS_MATRIX`, `CORIOLIS_MATRIX_OF_20`, `WEIGHT`, `REGRESSOR` or
        `PARTIALS` of `program`.
    K : int
        Number of derivatives in the motion, the zeroth included.
    wrenches : tuple of Attachment
        Of partial derivatives.
    """

    name: str
    K: int
    wrenches: tuple[Attachment, ...] = ()

    def program(self, model: Mechanism) -> RobotProgram:
        """Program of the term.

        Raises
        ------
        ModelError
            For partial derivatives of friction laws that are not of this package.
        ProgramTooLong
            If a mass or Coriolis matrix takes more steps than `program.LONGEST`.
        """
        if self.name == REGRESSOR:
            from hodyn_ros.engine.partials import regressor_program

            return regressor_program(model, self.K)
        if self.name == PARTIALS:
            from hodyn_ros.engine.partials import partials_program

            return partials_program(model, self.K, self.wrenches)
        from hodyn_ros.engine.terms import term_program

        return term_program(model, self.name, self.K)

    def shape(self, model: Mechanism) -> tuple[int, ...]:
        """Shape of the term of one sample.

        Derivatives come first: K of the mass matrix and the weight, K - 2 of the regressor and the
        partial derivatives, K - 1 of the others.
        """
        K, n = self.K, model.n_joints
        return {
            MASS_MATRIX: (K, n, n),
            WEIGHT: (K, n),
            REGRESSOR: (K - 2, n, 10 * model.n_bodies),
            PARTIALS: (K - 2, n, K, n),
        }.get(self.name, (K - 1, n, n))

    def make(self, model: Mechanism) -> Kernel | None:
        """Kernel; None for a program that is too long to compile."""
        return _program_kernel(model, self)

    def offer(self, model: Mechanism, kernel: Kernel) -> None:
        """Kept call for few samples, without wrenches."""
        if not self.wrenches:
            given = [('motion', (self.K, model.n_joints)), ('result', self.shape(model))]
            _keep(model, kernel, self.name, given)


class BodyDynamics(NamedTuple):
    """Request for what efforts cause, or for what a base that moves needs.

    Attributes
    ----------
    kind : str
        `FORWARD`, `FLOATING` or `MOVING`.
    orders : int
        Number of derivatives of the efforts, the zeroth included.
    wrenches : tuple of Attachment
    prescribed : tuple of int
        Joints whose motion is given, not their efforts.
    form : str or None
        Of forward dynamics: `COMPILED_ROBOT`, `COMPILED_TREE`, None: the one that suits it.
    """

    kind: str
    orders: int
    wrenches: tuple[Attachment, ...] = ()
    prescribed: tuple[int, ...] = ()
    form: str | None = None

    def program(self, model: Mechanism) -> RobotProgram:
        """Program of it."""
        from hodyn_ros.engine import efforts, forward

        if self.kind == MOVING:
            return efforts.moving_base_program(model, self.orders - 1, self.wrenches)
        floating = self.kind == FLOATING
        return forward.forward_program(
            model, self.orders, self.wrenches, floating, self.prescribed
        )

    def loops(self, model: Mechanism) -> bool:
        """Whether articulated bodies, in loops over the bodies of any robot, can compute it.

        They know no wrenches, prescribed joints, friction or mimic joints, and no derivatives
        above `HIGHEST_ORDER`.
        """
        return (
            self.kind == FORWARD
            and not (self.wrenches or self.prescribed or model.friction)
            and self.orders <= HIGHEST_ORDER + 1
            and model.n_bodies == model.n_joints
        )

    def make(self, model: Mechanism) -> Kernel | None:
        """Kernel; None for a program that is too long to compile, where loops cannot help."""
        from hodyn_ros.engine import kernels

        loops = self.form == COMPILED_TREE or self.form is None and self.loops(model)
        many = self.form == COMPILED_TREE or model.n_bodies > MOST_BODIES_IN_FACTORS
        kernel = None if loops and many else _program_kernel(model, self)
        if kernel is None and loops:
            kernel = kernels.articulated_kernel(model, self.orders - 1)
        return kernel

    def offer(self, model: Mechanism, kernel: Kernel) -> None:
        """Kept call for few samples, of plain forward dynamics."""
        if self.kind == FORWARD and not (self.wrenches or self.prescribed or self.form):
            n, efforts = model.n_joints, (self.orders, model.n_joints)
            given = [('middle', efforts), ('motion', (2, n)), ('result', efforts)]
            _keep(model, kernel, FORWARD, given)


class ClosedLoops(NamedTuple):
    """Request, of a model with closed loops, for what closes them, a motion, or efforts.

    Attributes
    ----------
    order : int or None
        Highest derivative of the efforts; None: a step that closes the loops.
    wrenches : tuple of Attachment
    K : int
        Instead of efforts, the motion of the dependent joints with so many derivatives.
    """

    order: int | None = None
    wrenches: tuple[Attachment, ...] = ()
    K: int = 0

    def program(self, model: Mechanism) -> RobotProgram:
        """Program of it, which works on the motion of the tree."""
        from hodyn_ros.engine import loop_program

        if self.K:
            return loop_program.completing_program(model, self.K)
        if self.order is None:
            return loop_program.closing_program(model)
        return loop_program.closed_effort_program(model, self.order, self.wrenches)

    def make(self, model: Mechanism) -> Kernel | None:
        """Kernel; None for a program that is too long to compile, or for sliders."""
        return _program_kernel(model, self)

    def offer(self, model: Mechanism, kernel: Kernel) -> None:
        """Nothing: positions have to be closed before."""


ProgramRequest = LinkResult | Term | BodyDynamics | ClosedLoops
Request = Efforts | ProgramRequest


def _keep(
    model: Mechanism,
    kernel: Kernel,
    what: Any,
    given: Sequence[tuple[str, tuple[int, ...]]],
    writes_middle: bool = False,
) -> None:
    """Keep a call for few samples where `quick` finds it.

    Given are the arrays of `llvm_lanes.EVALUATE` that it takes, with their shapes for one sample.
    """
    from hodyn_ros.engine.calls import ArrayArgument

    if given[0][1][0] > MOST_DERIVATIVES:
        return  # those who check the motion ask whether so many are meant
    written = ('result', 'middle') if writes_middle else ('result',)
    arguments = [(ArrayArgument(x, len(shape), x in written), shape) for x, shape in given]
    call = kernel.call(*arguments)
    if call is not None:
        first = given[1][1] if writes_middle else None
        model.quick_calls[what, given[0][1][0]] = given[-1][1], first, call


def quick(model: Any, what: Any, first: Any, second: Any = None, out: Any = None) -> Any:
    """Results of a compiled call for one sample or few, such as those of a control loop.

    Parameters
    ----------
    model : RobotModel
    what : Hashable
        `EFFORTS`; the links and choices of some wrenches in a row; the name of a `Term`; a link
        and an expression; `FORWARD`.
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


def _program_kernel(model: Mechanism, request: ProgramRequest) -> Kernel | None:
    """Kernel; None for what cannot be recorded or is too long to compile."""
    from hodyn_ros.engine import kernels

    try:
        program = model.kept(Engine).program(request)
    except (ModelError, ProgramTooLong):  # a friction law of one's own, a loop that slides
        return None
    # To write results takes a compiler as long as to compute them.
    if program.program.flops + len(program.program.outputs) > LARGEST_PROGRAM:
        return None
    return kernels.robot_kernel(program)


@cache
def unavailable() -> str | None:
    """Reason why there is no compiler, for a message; None if there is one. Found out once."""
    if os.environ.get('NUMBA_DISABLE_JIT', '0') not in ('', '0'):
        return 'the environment variable NUMBA_DISABLE_JIT is set'
    try:
        with compiling:
            import numba  # noqa: F401
    except Exception as error:  # a broken installation raises all sorts
        return f'Numba cannot be imported ({error})'
    return None


class Engine:
    """The kernels of one model, kept by their requests.

    Parameters
    ----------
    model : RobotModel

    Attributes
    ----------
    kernels : dict of Request to Kernel
    pending : set of Request
        What is being made, or could not be made.
    """

    def __init__(self, model: Mechanism) -> None:
        self._model = model
        self.kernels: dict[Request, Kernel] = {}
        self._samples: dict[Request, int] = {}
        self.pending: set[Request] = set()
        self._programs: dict[Request, RobotProgram] = {}
        self._runs: dict[Request, Run | None] = {}

    def program(self, request: ProgramRequest) -> RobotProgram:
        """Program of a request, recorded once."""
        if request not in self._programs:
            self._programs[request] = request.program(self._model)
        return self._programs[request]

    def run(self, request: ProgramRequest) -> Run | None:
        """Program of a request, run by NumPy as long as there is no kernel.

        None for one that is too long to record, or has a friction law of one's own.
        """
        if request not in self._runs:
            run, start = None, time.perf_counter()
            with suppress(ModelError, ProgramTooLong):
                run = Run(self.program(request))
            took = time.perf_counter() - start
            if took > LONG:
                _logger.warning(
                    'Recording a program of %s took %.0f s, once.', self._model.name, took
                )
            self._runs[request] = run
        return self._runs[request]

    def kernel(self, request: Request, samples: int = 1) -> Kernel | None:
        """Kernel if there is one for a request; otherwise it may be made in the background.

        The samples to be computed now count: from some on it is worth it.

        Parameters
        ----------
        request : Request
        samples : int
            How many are to be computed now. With `SAMPLES_WORTH_WAITING` the kernel is made at
            once.

        Returns
        -------
        Kernel or None
            None as long as the samples are left to NumPy.
        """
        ready = self.kernels.get(request)
        if ready is not None:
            return ready
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

    def prepare(self, request: Request) -> Kernel | None:
        """Kernel, made now if there is none; None for what is left to NumPy.

        Without a compiler a `HodynError` is raised.
        """
        reason = unavailable()
        if reason:
            raise HodynError(f'There is no compiler for dynamics: {reason}.')
        with compiling:
            if request not in self.kernels:
                kernel = request.make(self._model)
                if kernel is None:
                    return None
                self.kernels[request] = kernel
                request.offer(self._model, kernel)
            return self.kernels[request]

    def prepare_general(self, order: int) -> None:
        """Have efforts computed by the code for any robot, which takes no time to make.

        For models that come and go, such as those with what a gripper holds.
        """
        kernel = self.prepare(Efforts(order, form=COMPILED_TREE))
        request = Efforts(order)
        with compiling:
            if kernel is not None and request not in self.kernels:
                self.kernels[request] = kernel
                request.offer(self._model, kernel)

    def expect(self, request: Request) -> bool:
        """Make no such kernel in the background, since the caller will `prepare` it.

        Says whether the caller has to: nobody has made or announced it before.
        """
        # Without the lock, which is held while something is compiled.
        if request in self.kernels or request in self.pending:
            return False
        self.pending.add(request)
        return True

    def _try(self, request: Request) -> None:
        """Kernel of a request if one can be made; a failure is logged, and NumPy does the work."""
        # Even finding out whether there is a compiler takes too long for the caller's thread.
        try:
            if not unavailable():
                self.prepare(request)
        except Exception:
            _logger.exception(
                'Compiling the dynamics of %s failed; slower code is used.',
                self._model.name,
            )


def engine_of(model: Mechanism) -> Engine:
    """Return the engine of a model, or of its tree if it has closed loops, for its lifetime."""
    return model.tree.kept(Engine)


def compute(
    model: Mechanism,
    request: ProgramRequest,
    motion: Array,
    middle: Array | None,
    result: Array,
) -> bool | None:
    """Compute a batch by machine code, or by its program until there is some.

    Parameters
    ----------
    model : RobotModel
    request : ProgramRequest
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
            engine_of(model).prepare(Efforts(k))
            if model.closure is not None:
                model.kept(Engine).prepare(ClosedLoops(k))
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
