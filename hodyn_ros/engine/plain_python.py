"""Records of functions in plain Python, as `compiled_python` and `codegen.translation` see it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import NamedTuple

Shapes = Mapping[str, tuple[str, ...]]
"""Shapes of arrays by their names: sizes n, m, d+1, n+m or numbers; none for a single number."""


class Fields(NamedTuple):
    """Arrays of a record, one behind the other.

    Attributes
    ----------
    shapes : dict of str to tuple of str
        See `Shapes`.
    whole : tuple of str
        Names of arrays of whole numbers.
    """

    shapes: Shapes
    whole: tuple[str, ...]


def shape_of(shapes: Shapes, node: ast.AST) -> tuple[str, ...]:
    """Shape of an array of a record, or of a row of one; empty for anything else.

    Parameters
    ----------
    shapes : mapping of str to tuple of str
        Those of the arrays, by how they are written.
    node : ast.AST
    """
    match node:
        case ast.Subscript(array, ast.Slice(None, None, None)):
            return shape_of(shapes, array)
        case ast.Subscript(array, index) if not isinstance(index, (ast.Tuple, ast.Slice)):
            return shape_of(shapes, array)[1:]
    return shapes.get(ast.unparse(node), ())
