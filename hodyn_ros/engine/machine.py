"""Machine code: LLVM modules compiled for this machine, loaded, and kept on disk."""

from __future__ import annotations

import ctypes
import ctypes.util
import threading

import llvmlite.binding as llvm

ENTRY = 'evaluate'

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
_lock = threading.Lock()
_engines = []


def host():
    """Name and features of this machine's processor."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def width():
    """Numbers in one vector register."""
    features = llvm.get_host_cpu_features()
    return 8 if features.get('avx512f') else 4 if features.get('avx') else 2


def target_machine():
    cpu, features = host()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=3, reloc='pic', codemodel='small', jit=True)


def compile_module(text, passes=True):
    tm = target_machine()
    module = llvm.parse_assembly(text)
    module.triple = tm.triple
    module.data_layout = str(tm.target_data)
    module.verify()
    if passes:
        pto = llvm.create_pipeline_tuning_options(speed_level=2)
        pto.loop_vectorization = False
        pto.slp_vectorization = False
        pb = llvm.create_pass_builder(tm, pto)
        pb.getModulePassManager().run(module, pb)
    return tm.emit_object(module)


def load(code):
    import math
    libm = ctypes.CDLL(ctypes.util.find_library('m') or None)
    for n, f in (('hodyn_sine', libm.sin), ('hodyn_cosine', libm.cos)):
        llvm.add_symbol(n, ctypes.cast(f, ctypes.c_void_p).value)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(''), target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return engine.get_function_address(ENTRY)
