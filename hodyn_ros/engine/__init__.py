"""Compiled computations along motions: joint efforts, terms of the equations of motion, links.

Formulas over abstract scalars (`bodies`, `walker`, `terms`) are recorded as programs of
operations, which `run` computes one by one and LLVM makes machine code of.
"""

from hodyn_ros.engine.engine import Engine, compute, engine_of, unavailable
from hodyn_ros.engine.program import Attachment
from hodyn_ros.engine.requests import KernelRequest

__all__ = ['Attachment', 'Engine', 'KernelRequest', 'compute', 'engine_of', 'unavailable']
