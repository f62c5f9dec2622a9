"""Kernels made in another process, so that threads of this one do not wait for the interpreter.

Python runs one thread at a time. Writing a robot's program takes some tens of milliseconds of it,
and one that answers a stream would feel them; taking up finished machine code needs hardly any.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from hodyn_ros.engine.engine import engine_of
from hodyn_ros.engine.robot_program import Attachment
from hodyn_ros.errors import HodynError
from hodyn_ros.model.robot import RobotModel

if TYPE_CHECKING:
    from hodyn_ros.engine.kernels import Kernel
    from hodyn_ros.engine.straight_line import StraightLine

    Made = Union[Kernel, StraightLine]  # noqa: UP007

Wanted = tuple[int, tuple[Attachment, ...]]
"""Order and wrenches of a kernel."""

# A process that needs so long will never end.
TIMEOUT = 120.0  # s
# Who shares the processor with it goes first.
NICENESS = 19

_START = (
    'import sys; sys.path[:] = sys.argv[1:]; '
    'from hodyn_ros.engine.other_process import serve; serve()'
)


class Compiler:
    """Starts processes that make kernels."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def prepare(self, model: RobotModel, wanted: Sequence[Wanted]) -> None:
        """Have kernels made in a new process and let the engine of the model adopt them.

        There are none of orders that are left to NumPy, see `Engine.form`.

        Parameters
        ----------
        model : RobotModel
        wanted : sequence of Wanted

        Raises
        ------
        HodynError
            If the process cannot be started, fails or is ended by `close`.
        """
        try:
            task = pickle.dumps((model, tuple(wanted)))
        except Exception as error:  # a friction law of the user's, for example
            raise HodynError(f'The model cannot be sent to another process: {error}') from error
        answer = self._answer(task)
        for kernel, (order, wrenches) in zip(pickle.loads(answer), wanted):
            if kernel is not None:
                engine_of(model).adopt(order, wrenches, kernel)

    def close(self) -> None:
        """End the process under way and start no more."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()

    def _answer(self, task: bytes) -> bytes:
        if not sys.executable:
            raise HodynError('There is no Python interpreter to start.')
        with self._lock:
            if self._closed:
                raise HodynError('No more processes are started.')
            try:
                process = self._process = subprocess.Popen(
                    [sys.executable, '-c', _START, *sys.path],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,  # an interrupt from the keyboard is not for it
                )
            except OSError as error:
                raise HodynError(f'No other process can be started: {error}') from error
        try:
            answer, said = process.communicate(task, TIMEOUT)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.communicate()
            raise HodynError(f'Another process did not answer for {TIMEOUT:.0f} s.') from error
        if process.returncode:
            raise HodynError(
                f'Another process ended with exit code {process.returncode}: '
                f'{said.decode(errors="replace").strip()}'
            )
        return answer


def serve() -> None:
    """Make what is asked for on the standard input; the process that `Compiler` starts."""
    if hasattr(os, 'nice'):
        os.nice(NICENESS)
    answer = os.dup(1)
    os.dup2(2, 1)  # whatever prints does not get into the answer
    model, wanted = pickle.load(sys.stdin.buffer)
    engine = engine_of(model)
    kernels = [
        engine.make(order, wrenches) if engine.form(order) is not None else None
        for order, wrenches in wanted
    ]
    with os.fdopen(answer, 'wb') as file:
        pickle.dump(kernels, file)
