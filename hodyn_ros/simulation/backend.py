"""MuJoCo itself, imported when something is simulated, and what its callbacks need.

MuJoCo keeps its callbacks for the whole process, not for one simulation. They are set for the
duration of a step only, and steps with callbacks exclude each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from hodyn_ros.errors import SimulationError
from hodyn_ros.resources import optional_import_module

Callback = Callable[[Any, Any], None]

# A function that gives the torque may simulate something else on its way.
_STEPPING = threading.RLock()


def mujoco() -> ModuleType:
    """Return the module of MuJoCo.

    Raises
    ------
    SimulationError
        If it is not installed.
    """
    need = 'The simulation needs MuJoCo'
    return optional_import_module('mujoco', need, 'simulation', SimulationError)


@contextmanager
def callbacks(**functions: Callback | None) -> Iterator[None]:
    """Set callbacks of MuJoCo while a block runs, in which it writes no warnings to files.

    Parameters
    ----------
    **functions : callable or None
        By the name of the callback, such as ``passive``; called with the model and the data. What
        one raises is raised behind the block: it must not unwind through the C code.
    """
    library = mujoco()
    raised: list[Exception] = []

    def guarded(function: Callback) -> Callback:
        def call(model: Any, data: Any) -> None:
            try:
                function(model, data)
            except Exception as error:
                raised.append(error)

        return call

    with _STEPPING:
        before = {name: getattr(library, f'get_mjcb_{name}')() for name in functions}
        warning = library.get_mju_user_warning()
        try:
            # What it warns of is also in the data. Left alone, it writes MUJOCO_LOG.TXT.
            library.set_mju_user_warning(lambda text: None)
            for name, function in functions.items():
                setter = getattr(library, f'set_mjcb_{name}')
                setter(None if function is None else guarded(function))
            yield
        finally:
            library.set_mju_user_warning(warning)
            for name, function in before.items():
                getattr(library, f'set_mjcb_{name}')(function)
    if raised:
        raise raised[0]
