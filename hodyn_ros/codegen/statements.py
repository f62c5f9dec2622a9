"""Programs as statements of C, and the spelling of numbers and names.

A step that is used once is written into the expression that uses it, as long as the line stays
short; every other step becomes a constant of the function. The operations stay as they are in the
program, up to the order of the operands of a sum or a product.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.engine.program import SINGULAR, StraightLineProgram
from hodyn_ros.errors import ModelError

# Longest expression of a statement: a line that can be read.
LONGEST_EXPRESSION = 75
LONGEST_NAME = 40

ATOM, PRODUCT, SUM = range(3)

_NAME = re.compile(r'[A-Za-z_]\w*')


class Precision(NamedTuple):
    """A floating-point type of C."""

    type: str
    dtype: Callable[[float], np.floating[Any]]
    """Rounds to this type."""
    suffix: str
    """Of literals and of functions of the C library."""
    tolerance: float
    """Error, relative to the largest effort, that the self-test accepts."""

    def literal(self, value: float) -> str:
        """Shortest text that stands for a number in C; negative ones come with their sign.

        Raises
        ------
        ModelError
            If the number is beyond the range of the type.
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
    """Text of an expression and how tightly it binds.

    Attributes
    ----------
    text : str
    level : int
        `ATOM`, `PRODUCT` or `SUM`.
    """

    text: str
    level: int

    def within(self, level: int) -> str:
        """Text as an operand that must not bind more loosely than a level."""
        return f'({self.text})' if self.level > level else self.text


def statements(
    program: StraightLineProgram,
    precision: Precision,
    element: Callable[[str, int], str],
) -> list[str]:
    """Definitions of constants, then assignments of the outputs.

    Parameters
    ----------
    program : StraightLineProgram
        Without functions of `stages.GATHERED`.
    precision : Precision
    element : callable
        Text in C of an element of an array, from array and index.
    """
    uses = Counter(output.step for output in program.outputs)
    for operation in program.operations:
        uses.update(operation.operands)
    lines: list[str] = []
    expressions: list[Expression] = []
    for step, operation in enumerate(program.operations):
        kind, a, b = operation
        if kind == 'input':
            expression = Expression(element(a, b), ATOM)
        elif kind == 'constant':
            literal = precision.literal(float(a))
            expression = Expression(literal, SUM if literal.startswith('-') else ATOM)
        else:
            operands = [expressions[x] for x in operation.operands]
            if kind == 'inverse':
                expression = _inverse(precision, *operands)
            else:
                expression = _operation(kind, operands[0], operands[-1])
            if uses[step] > 1 or len(expression.text) > LONGEST_EXPRESSION:
                name = f't{len(lines)}'
                lines.append(f'const {precision.type} {name} = {expression.text};')
                expression = Expression(name, ATOM)
        expressions.append(expression)
    for output in program.outputs:
        target = element(output.array, output.index)
        lines.append(f'{target} = {expressions[output.step].text};')
    return lines


def _inverse(precision: Precision, pivot: Expression, size: Expression) -> Expression:
    """Reciprocal of a pivot; NAN unless it is above rounding of numbers of the size."""
    # Rounding of zero has no inverse; single precision has more of it.
    rounding = float(np.spacing(precision.dtype(1.0)))
    least = precision.literal(max(SINGULAR, 1e3 * rounding))
    one = precision.literal(1.0)
    if size.text != precision.literal(0.0):  # else the pivot is positive
        # Chosen before the division, which compilers then do for several samples at once.
        one = f'({pivot.text} > {least} * {size.within(ATOM)} ? {one} : NAN)'
    return Expression(f'{one} / {pivot.within(ATOM)}', PRODUCT)


def _operation(kind: str, x: Expression, y: Expression) -> Expression:
    """Expression of a sum, difference, product or negation with as few brackets as it needs."""
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
    """Name that can begin names in C, of any text: letters, digits and single underscores.

    'robot' stands in for an empty one, and before a digit at the start. At most `LONGEST_NAME`
    characters of the text are kept.

    Examples
    --------
    >>> from hodyn_ros.codegen import identifier
    >>> identifier('UR5e (left)'), identifier('7-axis arm')
    ('UR5e_left', 'robot_7_axis_arm')
    """
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
    """String of C with the UTF-8 code of a text, in ASCII characters."""
    characters = []
    for byte in text.encode('utf-8', 'surrogateescape'):
        character = chr(byte)
        # Two question marks may begin a trigraph.
        if byte < 0x20 or byte > 0x7E or character in '"\\?':
            character = f'\\{byte:03o}'
        characters.append(character)
    return f'"{"".join(characters)}"'


def in_comment(text: str) -> str:
    """Text in ASCII that neither ends a comment nor begins a line in it."""
    plain = text.encode('unicode_escape').decode('ascii')
    return plain.replace('*/', '* /').replace('/*', '/ *').replace('??', '? ?')


def names_in(lines: Iterable[str]) -> set[str]:
    """Names that occur in statements."""
    return {name for line in lines for name in _NAME.findall(line)}
