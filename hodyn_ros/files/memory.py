"""What fits into memory: a motion that does not is refused before it fails."""

from __future__ import annotations

import resource
from pathlib import Path

from hodyn_ros.errors import FileError

_GIGA = 1e9
_LIMIT, _USED = (Path('/sys/fs/cgroup') / name for name in ('memory.max', 'memory.current'))


def refuse_beyond_memory(name: str, size: float) -> None:
    """Refuse what needs more memory than there is.

    Parameters
    ----------
    name : str
        Of the motion, for messages.
    size : float
        What it needs [bytes].

    Raises
    ------
    FileError
        With both figures.
    """
    if size > (free := available_memory()):
        raise FileError(
            f'{name}: about {size / _GIGA:.2g} GB of memory are needed, but {free / _GIGA:.2g} GB '
            'are available; divide it into shorter files, or leave columns or rows out.'
        )


def available_memory() -> float:
    """Memory that this process can still get [bytes]; infinite where it is not known.

    Returns
    -------
    float
        The least of what the machine has, and what limits of the container and of the process
        (`ulimit -v`) leave.
    """
    found = [float('inf')]
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    try:
        lines = dict(
            line.split(':') for line in Path('/proc/meminfo').read_text().splitlines()
        )
        found.append(1024.0 * float(lines['MemAvailable'].split()[0]))
        if limit != resource.RLIM_INFINITY:
            pages = int(Path('/proc/self/statm').read_text().split()[0])
            found.append(float(limit) - pages * resource.getpagesize())
        found.append(float(_LIMIT.read_text()) - float(_USED.read_text()))
    except (OSError, KeyError, ValueError):  # not Linux, or no limit ('max')
        pass
    return min(found)
