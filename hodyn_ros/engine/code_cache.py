"""Machine code of modules, compiled for this processor, and the cache that keeps it on disk.

To compile a module takes some tenths of a second. An entry is named by the hash of what it was
made from (the programs, the files that write modules, the processor, the compiler), so it is never
out of date, and starts with the hash of its content, so a damaged one is not run. Those that have
not been used for longest are removed.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from hodyn_ros.engine.llvm_lanes import ENTRY
from hodyn_ros.resources import cache_directory, write_private

CACHE_SIZE = 32 * 2**20
"""Largest size of the cache on disk [bytes]: code of some hundred robots."""

_DIGEST_SIZE = 32
# Functions of the C library by their names in modules.
_LIBRARY = {'hodyn_sine': 'sin', 'hodyn_cosine': 'cos', 'hodyn_exp': 'exp'}
# Others may keep other files in the directory.
_ENTRY = re.compile(r'[0-9a-f]{64}\.o|hodyn_\w+\.tmp')


def vector_width() -> int:
    """Doubles in one vector register of this processor."""
    features = llvm.get_host_cpu_features()
    return 8 if features.get('avx512f') else 4 if features.get('avx') else 2


class LoadedCode:
    """Machine code of a module, given back with the object.

    Parameters
    ----------
    made_from : tuple
        All that decides what the module is, beside the files of this folder; written as text it
        is the same in every process.
    write : callable
        Writes the module, with the function `ENTRY`, where no code is kept.

    Attributes
    ----------
    address : int
        Of this function.
    """

    def __init__(
        self, made_from: tuple[str, int, int], write: Callable[[], ir.Module]
    ) -> None:
        code = _machine_code(made_from, write)
        # It owns what is added to it.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(''), _target())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.address: int = self._engine.get_function_address(ENTRY)


def _machine_code(made_from: tuple[str, int, int], write: Callable[[], ir.Module]) -> bytes:
    """Object file of a module, compiled or taken from the cache."""
    path = _cache_file(made_from)
    code = _from_cache(path) if path else None
    if code is not None:
        return code
    target = _target()
    # Programs come optimized; what is left to do is the code generator's work.
    module = llvm.parse_assembly(str(write()))
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    module.verify()
    compiled: bytes = target.emit_object(module)
    if path:
        _into_cache(path, compiled)
    return compiled


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
    """LLVM made ready for this processor, with functions of the C library by name."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    library = ctypes.CDLL(None)
    for name, function in _LIBRARY.items():
        pointer = ctypes.cast(getattr(library, function), ctypes.c_void_p)
        llvm.add_symbol(name, pointer.value)


def _cache_file(made_from: tuple[str, int, int]) -> Path | None:
    """Entry of a module in the cache; None if there is no place for one."""
    directory = cache_directory()
    if directory is None or _WRITERS is None:
        return None
    features = llvm.get_host_cpu_features().flatten()
    compiler = (llvmlite.__version__, llvm.get_host_cpu_name(), features)
    name = hashlib.sha256(repr((made_from, _WRITERS, compiler)).encode()).hexdigest()
    return directory / f'{name}.o'


def _hash_of_writers() -> str | None:
    """Hash of the files that write modules; None if they cannot be read."""
    digest = hashlib.sha256()
    paths = sorted(Path(__file__).parent.glob('*.py'))
    try:
        for path in paths:
            digest.update(path.read_bytes())
    except OSError:
        return None
    return digest.hexdigest() if paths else None


# Found as they are imported: later they may have changed on disk.
_WRITERS = _hash_of_writers()


def _from_cache(path: Path) -> bytes | None:
    """Object file of an entry; None if there is none or it is damaged. It counts as used now."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):
        os.utime(path)  # the time of its last use
    digest, code = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
    return code if hashlib.sha256(code).digest() == digest else None


def _into_cache(path: Path, code: bytes) -> None:
    """Entry for an object file, behind the hash of its content; older ones make room."""
    with suppress(OSError):  # where it cannot be kept it is compiled again next time
        write_private(path, hashlib.sha256(code).digest() + code)
        _evict(path.parent)


def _evict(directory: Path) -> None:
    """Remove the entries that have not been used for longest; other processes may do so too."""
    found = []
    for path in directory.iterdir():
        if _ENTRY.fullmatch(path.name):
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
    size = 0
    for _, one, path in sorted(found, reverse=True):
        size += one
        if size > CACHE_SIZE:
            path.unlink(missing_ok=True)
