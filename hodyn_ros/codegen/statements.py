"""Programs as statements of C, and the spelling of numbers and names.

A step that is used once is written into the expression that uses it, as long as the line stays
short; every other step becomes a constant of the function. The operations stay as they are in the
program, up to the order of the operands of a sum or a product.

Long functions are divided into parts, since the time of a compiler grows with the square of their
length. A value that a later part needs is kept in an array, on the stack of the function that
calls the parts one after another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.engine.program import SINGULAR, StraightLineProgram
from hodyn_ros.errors import ModelError

# Longest expression of a statement: a line that can be read.
LONGEST_EXPRESSION = 75
LONGEST_NAME = 40

# Up to about 10 joints a function stays in one part; longer ones are as fast in several.
LONGEST_FUNCTION = 2000
LENGTH_OF_PARTS = 1000

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


class Statements:
    """Writer of programs as statements.

    Attributes
    ----------
    precision : Precision
    definitions : list of (str, str)
        Names of constants and expressions for them, each after those that it uses.
    """

    def __init__(self, precision: Precision) -> None:
        self.precision = precision
        self.definitions: list[tuple[str, str]] = []
        self._count = 0

    def run(
        self, program: StraightLineProgram, name_of_input: Callable[[str, int], str]
    ) -> dict[tuple[str, int], Expression]:
        """Expressions of the outputs of a program; its other steps are added to the definitions.

        Parameters
        ----------
        program : StraightLineProgram
        name_of_input : callable
            Text in C of an input, from array and index.

        Returns
        -------
        dict of (str, int) to Expression
            By array and index.
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
                if kind == 'inverse':
                    expression = self._inverse(x, y)
                elif kind == 'sign':
                    expression = self._sign(x)
                else:
                    expression = _operation(kind, x, y)
                if uses[step] > 1 or len(expression.text) > LONGEST_EXPRESSION:
                    name = f't{self._count}'
                    self._count += 1
                    self.definitions.append((name, expression.text))
                    expression = Expression(name, ATOM)
            expressions.append(expression)
        return {(o.array, o.index): expressions[o.step] for o in program.outputs}

    def _inverse(self, pivot: Expression, size: Expression) -> Expression:
        """Reciprocal of a pivot; NAN unless it is above rounding of numbers of the size."""
        # Rounding of zero has no inverse; single precision has more of it.
        rounding = float(np.spacing(self.precision.dtype(1.0)))
        least = self.precision.literal(max(SINGULAR, 1e3 * rounding))
        one = self.precision.literal(1.0)
        if size.text != self.precision.literal(0.0):  # else the pivot is positive
            # Chosen before the division, which compilers then do for several samples at once.
            one = f'({pivot.text} > {least} * {size.within(ATOM)} ? {one} : NAN)'
        return Expression(f'{one} / {pivot.within(ATOM)}', PRODUCT)

    def _sign(self, x: Expression) -> Expression:
        """Sign of a number: -1, 0 or 1."""
        zero, x_text = self.precision.literal(0.0), x.within(PRODUCT)
        text = f'({self.precision.type})(({x_text} > {zero}) - ({x_text} < {zero}))'
        return Expression(text, PRODUCT)


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


def in_parts(
    definitions: Sequence[tuple[str, str]], assignments: Sequence[str], real: str
) -> tuple[list[list[str]], int]:
    """Divide a function that has more statements than the longest may have.

    Parameters
    ----------
    definitions : sequence of (str, str)
        Names of constants, and expressions for them that use earlier ones.
    assignments : sequence of str
        Statements at the end.
    real : str
        Type of the constants in C.

    Returns
    -------
    parts : list of list of str
        Statements of each.
    n_kept : int
        Size of the array 'kept' of values that later parts need.
    """
    steps = [*definitions, *(('', assignment) for assignment in assignments)]
    length = LENGTH_OF_PARTS if len(steps) > LONGEST_FUNCTION else max(len(steps), 1)
    part_of = {name: i // length for i, (name, _) in enumerate(steps) if name}
    places: dict[str, int] = {}
    for i, (_, text) in enumerate(steps):
        for name in _NAME.findall(text):
            if part_of.get(name, i) < i // length:
                places.setdefault(name, len(places))
    starts = range(0, len(steps), length)
    return [_part(steps[i : i + length], real, places) for i in starts], len(places)


def _part(
    steps: Iterable[tuple[str, str]], real: str, places: Mapping[str, int]
) -> list[str]:
    """Statements of one part: names with expressions, or without a name assignments.

    Names that have places in 'kept' are written there, and read where another part uses them.
    """
    lines = []
    at_hand: set[str] = set()
    for name, text in steps:
        for used in dict.fromkeys(_NAME.findall(text)):
            if used in places and used not in at_hand:
                lines.append(f'const {real} {used} = kept[{places[used]}*L];')
                at_hand.add(used)
        lines.append(f'const {real} {name} = {text};' if name else text)
        at_hand.add(name)
        if name in places:
            lines.append(f'kept[{places[name]}*L] = {name};')
    return lines


def names_in(lines: Iterable[str]) -> set[str]:
    """Names that occur in statements."""
    return {name for line in lines for name in _NAME.findall(line)}
