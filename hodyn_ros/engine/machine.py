"""Machine code: LLVM modules compiled for this processor, loaded, and kept on disk.

Compiling takes a tenth of a second or two, so the cache on disk is a convenience. An entry is
named by the hash of what it was made from (the module's text, the processor, the compiler), so it
is never out of date, and starts with the hash of its content, so a damaged one is not run. Those
that have not been used for longest are removed.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from weakref import WeakValueDictionary

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from hodyn_ros.engine.background import compiling
from hodyn_ros.engine.blocks import ENTRY

CACHE_SIZE = 32 * 2**20
"""Largest size of the cache [bytes]: code of some hundred robots."""

_DIGEST_SIZE = 32
# Others may keep other files in the directory.
_ENTRY = re.compile(r'[0-9a-f]{64}\.o|hodyn_\w+\.tmp')

_loaded: WeakValueDictionary[bytes, LoadedCode] = WeakValueDictionary()


def vector_width() -> int:
    """Doubles in one vector register of this processor."""
    features = llvm.get_host_cpu_features()
    return 8 if features.get('avx512f') else 4 if features.get('avx') else 2


def machine_code(module: ir.Module) -> bytes:
    """Machine code of a module for this processor, compiled or taken from the cache.

    Parameters
    ----------
    module : ir.Module

    Returns
    -------
    bytes
        An object file.
    """
    with compiling:
        text = str(module)
        code = _from_cache(text)
        if code is None:
            code = _compile(text)
            _into_cache(text, code)
        return code


class LoadedCode:
    """Machine code in memory, which is given back when nobody holds the object any more.

    Attributes
    ----------
    address : int
        Of the function `ENTRY`.
    """

    def __init__(self, code: bytes) -> None:
        # It owns what is added to it.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(''), _target())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.address: int = self._engine.get_function_address(ENTRY)


def load(code: bytes) -> LoadedCode:
    """Load machine code, once for all who ask for the same.

    Parameters
    ----------
    code : bytes
        From `machine_code`, in this process or another one on this machine.

    Returns
    -------
    LoadedCode
    """
    with compiling:
        loaded = _loaded.get(code)
        if loaded is None:
            loaded = _loaded[code] = LoadedCode(code)
        return loaded


def cache_directory() -> Path | None:
    """Directory of the cache; None if there is no place for one.

    `NUMBA_CACHE_DIR` says where, as for Numba; otherwise it is in the user's cache directory. In
    one that others can write to, they could leave code that would be run here.
    """
    chosen = os.environ.get('NUMBA_CACHE_DIR')
    if chosen:
        return Path(chosen) / 'hodyn_ros'
    base = os.environ.get('XDG_CACHE_HOME')
    if base and os.path.isabs(base):
        return Path(base) / 'hodyn_ros'
    try:
        return Path.home() / '.cache' / 'hodyn_ros'
    except RuntimeError:  # no home directory
        return None


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
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    library = ctypes.CDLL(None)
    for name, function in (('hodyn_sine', 'sin'), ('hodyn_cosine', 'cos')):
        pointer = ctypes.cast(getattr(library, function), ctypes.c_void_p)
        llvm.add_symbol(name, pointer.value)


def _compile(text: str) -> bytes:
    target = _target()
    # Programs come optimized; what is left to do is the code generator's work.
    module = llvm.parse_assembly(text)
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    module.verify()
    code: bytes = target.emit_object(module)
    return code


def _cache_file(text: str) -> Path | None:
    directory = cache_directory()
    if directory is None:
        return None
    features = llvm.get_host_cpu_features().flatten()
    source = (text, llvmlite.__version__, llvm.get_host_cpu_name(), features)
    return directory / (hashlib.sha256('\0'.join(source).encode()).hexdigest() + '.o')


def _from_cache(text: str) -> bytes | None:
    path = _cache_file(text)
    try:
        content = path.read_bytes() if path else b''
    except OSError:
        return None
    if path:
        with suppress(OSError):  # the time of its last use, also where the system keeps none
            os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
    digest, code = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
    return code if code and hashlib.sha256(code).digest() == digest else None


def _into_cache(text: str, code: bytes) -> None:
    path = _cache_file(text)
    if path is None:
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Other processes see the whole file or none.
        descriptor, name = tempfile.mkstemp('.tmp', 'hodyn_', path.parent)
    except OSError:
        return  # read-only: compile again next time
    try:
        with os.fdopen(descriptor, 'wb') as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(name, path)
        _evict(path.parent)
    except OSError:
        with suppress(OSError):
            os.unlink(name)


def _evict(directory: Path) -> None:
    """Remove the entries that have not been used for longest; other processes may do so too."""
    found = []
    for path in directory.iterdir():
        if _ENTRY.fullmatch(path.name):
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_atime_ns, status.st_size, path))
    size = 0
    for _, one, path in sorted(found, reverse=True):
        size += one
        if size > CACHE_SIZE:
            path.unlink(missing_ok=True)
