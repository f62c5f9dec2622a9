"""Programs as statements that C and C++ have in common, and the spelling of numbers and names.

A step that is used once is written into the expression that uses it, as long as the line stays
short; every other step becomes a constant of the function. The operations stay as they are in the
program, up to the order of the operands of a sum or a product.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.engine.program import Program
from hodyn_ros.errors import ModelError

# Longest expression of a statement: a line that can be read.
LONGEST_EXPRESSION = 75
LONGEST_NAME = 40

ATOM, PRODUCT, SUM = range(3)


class Precision(NamedTuple):
    """A floating-point type of C.

    Attributes
    ----------
    type : str
    dtype : callable
        Rounds to this type.
    suffix : str
        Of literals and of functions of the C library.
    tolerance : float
        Error, relative to the largest effort, that the self-test accepts.
    """

    type: str
    dtype: Callable[[float], np.floating[Any]]
    suffix: str
    tolerance: float

    def literal(self, value: float) -> str:
        """Shortest text that stands for a number; negative ones come with their sign.

        Raises
        ------
        ModelError
            If the type cannot hold the number.
        """
        with np.errstate(over='ignore'):
            number = self.dtype(value)
        if not np.isfinite(number):
            raise ModelError(
                f'A constant of the model is {value!r}, which is beyond the range of {self.type}.'
            )
        return f'{number!s}{self.suffix}'


PRECISIONS = {
    'double': Precision('double', np.float64, '', 1e-12),
    'float': Precision('float', np.float32, 'f', 1e-4),
}


class Expression(NamedTuple):
    """Text of an expression and how tightly it binds."""

    text: str
    level: int

    def within(self, level: int) -> str:
        """Text as an operand that must not bind more loosely than a level."""
        return f'({self.text})' if self.level > level else self.text


class Statements:
    """Writes programs as statements.

    Parameters
    ----------
    precision : Precision
    """

    def __init__(self, precision: Precision) -> None:
        self.precision = precision
        self.definitions: list[tuple[str, str]] = []
        self._count = 0

    def define(self, name: str, value: str) -> None:
        """Define a constant."""
        self.definitions.append((name, value))

    def run(
        self, program: Program, name_of_input: Callable[[str, int], str]
    ) -> dict[tuple[str, int], Expression]:
        """Write the steps of a program.

        Parameters
        ----------
        program : Program
        name_of_input : callable
            Takes the name of an array and an index.

        Returns
        -------
        dict
            Expressions of the outputs by array and index.
        """
        uses = [0] * len(program.operations)
        for kind, a, b in program.operations:
            if kind not in ('input', 'constant'):
                for operand in (a, b):
                    if operand is not None:
                        uses[operand] += 1
        for output in program.outputs:
            uses[output.step] += 1
        expressions: list[Expression] = []
        for step, (kind, a, b) in enumerate(program.operations):
            if kind == 'input':
                expression = Expression(name_of_input(str(a), b), ATOM)
            elif kind == 'constant':
                literal = self.precision.literal(float(a))
                expression = Expression(literal, SUM if literal.startswith('-') else ATOM)
            else:
                x = expressions[a]
                y = x if b is None else expressions[b]
                expression = _operation(kind, x, y)
                if uses[step] > 1 or len(expression.text) > LONGEST_EXPRESSION:
                    name = f't{self._count}'
                    self._count += 1
                    self.define(name, expression.text)
                    expression = Expression(name, ATOM)
            expressions.append(expression)
        return {(o.array, o.index): expressions[o.step] for o in program.outputs}


def _operation(kind: str, x: Expression, y: Expression) -> Expression:
    # What is already a sum or a product comes first, where it needs no brackets.
    if kind in ('add', 'multiply') and y.level > x.level:
        x, y = y, x
    if kind == 'multiply':
        return Expression(f'{x.within(PRODUCT)} * {y.within(ATOM)}', PRODUCT)
    if kind == 'negate':
        return Expression(f'-{x.within(PRODUCT)}', SUM)
    sign = '+' if kind == 'add' else '-'
    return Expression(f'{x.text} {sign} {y.within(PRODUCT)}', SUM)


def identifier(text: str) -> str:
    """Turn a name into one that can begin a name in C: letters, digits and single underscores."""
    name = re.sub(r'[^A-Za-z0-9]+', '_', text).strip('_')[:LONGEST_NAME].rstrip('_')
    if not name:
        return 'robot'
    return f'robot_{name}' if name[0].isdigit() else name


def is_identifier(name: object) -> bool:
    """Whether a name may begin the names in generated code."""
    return (
        isinstance(name, str)
        and re.fullmatch(r'[A-Za-z]+(_?[A-Za-z0-9]+)*', name) is not None
        and len(name) <= LONGEST_NAME
    )


def string_literal(text: str) -> str:
    """Write a string of C with the UTF-8 code of a text."""
    characters = []
    for byte in text.encode('utf-8', 'surrogateescape'):
        character = chr(byte)
        # Two question marks may begin a trigraph.
        if byte < 0x20 or byte > 0x7E or character in '"\\?':
            character = f'\\{byte:03o}'
        characters.append(character)
    return f'"{"".join(characters)}"'


def in_comment(text: str) -> str:
    """Text that neither ends a comment nor begins a line in it."""
    plain = text.encode('unicode_escape').decode('ascii')
    return plain.replace('*/', '* /').replace('/*', '/ *').replace('??', '? ?')
