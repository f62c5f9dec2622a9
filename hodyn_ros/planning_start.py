"""Start of the planning process of a node, which may come before the node itself.

What both of them import takes a second or more: begun at the same time it is waited for once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

# Who shares the processor with the process goes first, from its imports on. An interrupt from the
# keyboard is not for it. Where a node is killed, Linux kills it too (PR_SET_PDEATHSIG), even if it
# hangs or compiles; elsewhere it ends with its input.
_START = (
    'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); '
    'hasattr(os, "nice") and os.nice(5); sys.path[:] = sys.argv[1:]; '
    'sys.platform == "linux" and __import__("ctypes").CDLL(None).prctl(1, signal.SIGKILL); '
    'from hodyn_ros.ros.planner.process import serve; serve()'
)
_early: list[subprocess.Popen[bytes]] = []


def start_early() -> None:
    """Start the process that the next call of `started` returns."""
    try:
        _early.append(_start(os.environ))
    except OSError:  # it is told when the node needs it
        pass


def started(environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Process that plans, with pipes; one that has been started early, if there is one.

    Parameters
    ----------
    environment : mapping of str to str
        Variables of a process that has not.

    Returns
    -------
    subprocess.Popen

    Raises
    ------
    OSError
        If none can be started.
    """
    return _early.pop() if _early else _start(environment)


def _start(environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable or 'python3', '-c', _START, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env=environment,
    )
