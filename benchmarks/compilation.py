"""Shared libraries from C and C++ source, kept in build/bench and built again if need be."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from benchmarks.cases import ROOT
from benchmarks.timing import NotInstalled

FLAGS = ('-O3', '-march=native', '-DNDEBUG', '-fPIC', '-shared')
CACHE = ROOT / 'build' / 'bench' / 'cache'


def library(
    name: str, source: str, language: str, flags: Sequence[str] = (), timeout: float = 300.0
) -> Path:
    """Compile source into a shared library, unless an earlier run has done it.

    Parameters
    ----------
    name : str
        Of the files.
    source : str
        Text.
    language : {'c', 'c++'}
    flags : sequence of str
        Beside `FLAGS`; those of the environment variable CFLAGS come last.
    timeout : float
        For the compiler [s].

    Returns
    -------
    Path
        Of the library.

    Raises
    ------
    NotInstalled
        If there is no compiler, or it fails or takes too long.
    """
    compiler = _compiler(language)
    flags = (*flags, *os.environ.get('CFLAGS', '').split())
    parts = (compiler, _target(compiler), *FLAGS, *flags, source)
    digest = hashlib.sha256('\0'.join(parts).encode()).hexdigest()[:16]
    target = CACHE / f'{name}-{digest}.so'
    if target.exists():
        return target
    CACHE.mkdir(parents=True, exist_ok=True)
    text = target.with_suffix('.cpp' if language == 'c++' else '.c')
    text.write_text(source)
    # Written under another name first: an interrupted compilation must not look like a library.
    partial = target.with_suffix(f'.{os.getpid()}')
    command = [compiler, *FLAGS, str(text), *flags, '-o', str(partial)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f'{compiler} takes longer than {timeout:.0f} s') from None
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if 'error' in line]
        raise NotInstalled(f'{compiler} fails: {(lines or ["no message"])[0]}') from None
    partial.rename(target)
    return target


def load(path: Path) -> ctypes.CDLL:
    """Load a library that `library` has built."""
    return ctypes.CDLL(str(path))


@cache
def _compiler(language: str) -> str:
    variable, default = {'c': ('CC', 'gcc'), 'c++': ('CXX', 'g++')}[language]
    compiler = shutil.which(os.environ.get(variable, default))
    if compiler is None:
        raise NotInstalled(f'no {language} compiler')
    return compiler


@cache
def _target(compiler: str) -> str:
    """Ask the compiler what it defines: its version, and what the processor can do."""
    command = [compiler, '-march=native', '-dM', '-E', '-x', 'c', os.devnull]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
