"""Compiled computations along motions: joint efforts, terms of the equations of motion, links.

Formulas over abstract scalars (`bodies`, `efforts`, `links`) are recorded as
programs of additions, subtractions and multiplications, which LLVM makes machine code of.
"""

from hodyn_ros.engine.engine import (
    Efforts,
    Engine,
    LinkResult,
    Term,
    compute,
    engine_of,
    unavailable,
)
from hodyn_ros.engine.program import Attachment

__all__ = [
    'Attachment',
    'Efforts',
    'Engine',
    'LinkResult',
    'Term',
    'compute',
    'engine_of',
    'unavailable',
]
