"""Functions of Python that are plain loops over numbers, as C99 that is C++11 as well.

Translated are numbers, arrays with one or two indices, records of both, `record.array[:] = ...`
and `record.array[row] = ...` element by element as in NumPy, loops over `range`, conditions and
calls; anything else is refused with a `NotImplementedError`. A variable lives in
the block in which it gets its first value, and is a whole number if it is annotated so. Unlike in
Python, `/` needs a number that is not whole, and `//` two that are and have no sign.
"""

from __future__ import annotations

import ast
import math
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hodyn_ros.engine.plain_python import Shapes, shape_of

_NAMES = {
    'abs': 'fabs',
    'max': 'larger',
    'min': 'smaller',
    'None': 'void',
    'float': 'double',
}
_SPELLED_ALIKE = (
    ast.Assign,
    ast.AugAssign,
    ast.Expr,
    ast.Return,
    ast.Name,
    ast.Subscript,
    ast.Constant,
    ast.Call,
    ast.Compare,
    ast.Eq,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.UnaryOp,
    ast.USub,
    ast.Not,
    ast.BoolOp,
    ast.Attribute,
    ast.NotEq,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.expr_context,
)

HELPERS = f"""
static const double pi = {math.pi!r};
static double smaller(double a, double b) {{ return b < a ? b : a; }}
static double larger(double a, double b) {{ return b > a ? b : a; }}
"""


class Environment(NamedTuple):
    """What functions find around them.

    Attributes
    ----------
    columns : mapping of str to str
        Numbers of columns, expressions of C, by the annotations of arrays with two indices.
    records : mapping of str to mapping of str to mapping of str to tuple of str
        By the annotations of pointers to structs, and by what stands before a member in C, with
        {} for the pointer: shapes of the members by their names; an empty one is a number.
    constant : collection of str
        Annotations of structs that are only read.
    sizes : mapping of str to str
        Sizes in C, by their names in such shapes.
    known : mapping of str to bool
        Conditions, as they are written, that hold or do not.
    elsewhere : mapping of str to str
        Functions that write their last argument and lack the first that they have in Python, by
        their names there.
    """

    columns: Mapping[str, str]
    records: Mapping[str, Mapping[str, Shapes]] = {}
    constant: Collection[str] = ()
    sizes: Mapping[str, str] = {}
    known: Mapping[str, bool] = {}
    elsewhere: Mapping[str, str] = {}


def translated(source: str, roots: Sequence[str], around: Environment) -> str:
    """Static functions in C from those of a module in Python, and those that they call.

    Parameters
    ----------
    source : str
        Text of the module. Parameters are annotated int, float, Vector, Index (whole numbers), or
        by the name of a struct or of an array with two indices, row by row, for which there is a
        number of columns.
    roots : sequence of str
        Functions to translate; those that others call come first in the module.
    around : Environment

    Returns
    -------
    str
        Needs `HELPERS` and math.h before it.

    Raises
    ------
    NotImplementedError
        If a function holds what is not translated.
    """
    tree = _Known(around.known).visit(ast.parse(source))
    module = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    needed, waiting = set[str](), [*roots]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            calls = (x for x in ast.walk(module[name]) if isinstance(x, ast.Call))
            called = {ast.unparse(call.func) for call in calls}
            waiting += (called & module.keys()) - around.elsewhere.keys()
    written: dict[str, list[bool]] = {}
    names = [name for name in module if name in needed]
    return '\n'.join(_Function(module[name], around, written).text for name in names)


class _Known(ast.NodeTransformer):
    """Functions without what is not done where some conditions hold or do not."""

    def __init__(self, known: Mapping[str, bool]) -> None:
        self._known = known

    def visit_If(self, node: ast.If) -> Any:
        """Statements of one side, if it is known which."""
        self.generic_visit(node)
        holds = self._known.get(ast.unparse(node.test))
        return node if holds is None else node.body if holds else node.orelse

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Function up to where it certainly returns."""
        self.generic_visit(node)
        for i, inner in enumerate(node.body):
            if isinstance(inner, ast.Return):
                del node.body[i + 1 :]
                break
        return node


class _Function(ast.NodeTransformer):
    """Text of one function; what has been visited is spelled in Python as in C.

    Of each function it is noted which of its arguments it writes.
    """

    def __init__(
        self, node: Any, around: Environment, noted: dict[str, list[bool]]
    ) -> None:
        kinds = {item.arg: ast.unparse(item.annotation) for item in node.args.args}
        self._around, self._noted, self._written = around, noted, set[str]()
        self._is_element = False
        self._members, self._shapes = dict[str, str](), dict[str, tuple[str, ...]]()
        sizes = around.sizes if around.records.keys() & {*kinds.values()} else {}
        self._columns = {
            name: sizes.get(around.columns[kind], around.columns[kind])
            for name, kind in kinds.items()
            if kind in around.columns
        }
        for name, kind in kinds.items():
            if kind in around.records:
                self._note_record(name, around.records[kind])
        body = '\n'.join(self._block(node.body, set(kinds)))
        unused = [f'    (void){x};\n' for x in kinds if not re.search(rf'\b{x}\b', body)]
        noted[node.name] = [name in self._written for name in kinds]
        head = ',\n'.join(self._parameter(name, kind) for name, kind in kinds.items())
        result = ast.unparse(node.returns)
        self.text = (
            f'static {_NAMES.get(result, result)} {node.name}(\n{textwrap.indent(head, "    ")})'
            f'\n{{\n{"".join(unused)}{body}\n}}\n'
        )

    def _note_record(self, record: str, parts: Mapping[str, Shapes]) -> None:
        """Note sizes and members of a struct."""
        sizes = self._around.sizes
        self._members |= {f'{record}.{x}': size for x, size in sizes.items()}
        for access, shapes in parts.items():
            for field, shape in shapes.items():
                name = f'{record}.{field}'
                self._members[name] = access.format(record) + field
                self._shapes[name] = shape
                if len(shape) > 1:
                    self._columns[name] = sizes.get(shape[-1], shape[-1])

    def _parameter(self, name: str, kind: str) -> str:
        """Declaration of a parameter."""
        if kind in self._around.records:
            return f'{"const " * (kind in self._around.constant)}{kind} *{name}'
        number = 'int' if kind in ('int', 'Index') else 'double'
        if kind in ('int', 'float'):
            return f'{number} {name}'
        return f'{"const " * (name not in self._written)}{number} *{name}'

    def _block(self, statements: Sequence[ast.stmt], outside: set[str]) -> Iterator[str]:
        """Lines of a block; the names outside are declared."""
        declared = set(outside)
        for node in statements:
            for line in self._statement(node, declared):
                yield f'    {line}'

    def _statement(self, node: ast.stmt, declared: set[str]) -> Iterator[str]:
        """Lines of a statement in C; variables that get their first value join those declared."""
        match node:
            case ast.Expr(ast.Constant()):  # documentation
                pass
            case ast.If(test, body, others):
                yield f'if ({self._spelled(test)}) {{'
                yield from self._block(body, declared)
                if others:
                    yield '} else {'
                    yield from self._block(others, declared)
                yield '}'
            case ast.For(
                ast.Name(i), ast.Call(ast.Name('range'), [*start, end]), body, []
            ) if len(start) < 2:
                first = self._spelled(*start) if start else '0'
                yield f'for (int {i} = {first}; {i} < {self._spelled(end)}; ++{i}) {{'
                yield from self._block(body, {*declared, i})
                yield '}'
            case _:
                yield from self._assignment(node, declared)

    def _assignment(self, node: ast.stmt, declared: set[str]) -> Iterator[str]:
        """Lines of what writes something, or calls a function."""
        match node:
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)):
                changed = {ast.unparse(target).partition('[')[0] for target in targets}
                if changed & {
                    ast.unparse(part) for value in values for part in ast.walk(value)
                }:
                    raise NotImplementedError(
                        f'{ast.unparse(node)!r} is not done in one step.'
                    )
                for target, value in zip(targets, values):
                    yield from self._assignment(
                        ast.Assign([target], value, lineno=0), declared
                    )
            case ast.Assign([ast.Subscript() as target]) | ast.AugAssign(
                ast.Subscript() as target
            ) if shape := shape_of(self._shapes, target):
                size = ' * '.join(self._around.sizes.get(x, x) for x in shape)
                self._is_element = True
                yield f'for (int at = 0; at < {size}; ++at) {{'
                yield f'    {self._spelled(node)};'
                yield '}'
                self._is_element = False
            case ast.AnnAssign(ast.Name(name), kind, ast.expr() as value):
                declared.add(name)
                yield f'{self._spelled(kind)} {name} = {self._spelled(value)};'
            case ast.Assign([ast.Name(name)]) if name not in declared:
                declared.add(name)
                yield f'double {self._spelled(node)};'
            case _:
                yield f'{self._spelled(node)};'

    def _spelled(self, node: ast.AST) -> str:
        """Text of an expression or of a plain statement in C."""
        return ast.unparse(self.visit(node)).replace('//', '/')

    def visit(self, node: ast.AST) -> Any:
        """Refuse what may mean something else in C; elements of arrays where they are meant."""
        if self._is_element and shape_of(self._shapes, node):
            self._is_element = False
            text = self._spelled(node)
            self._is_element = True
            return ast.Name(f'({text})[at]' if ' ' in text else f'{text}[at]')
        if not isinstance(node, _SPELLED_ALIKE) or len(getattr(node, 'ops', ())) > 1:
            raise NotImplementedError(f'{ast.unparse(node)!r} is not translated to C.')
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Names of types and functions."""
        return ast.Name(_NAMES.get(node.id, node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Array or number of a struct, or a size."""
        return ast.Name(self._members[ast.unparse(node)])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Conditions together; the second one may not be looked at."""
        sign = ' && ' if isinstance(node.op, ast.And) else ' || '
        return ast.Name(sign.join(f'({self._spelled(value)})' for value in node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """A negative number, or a condition that does not hold."""
        if isinstance(node.op, ast.Not):
            return ast.Name(f'!({self._spelled(node.operand)})')
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Arrays that the function writes are written here."""
        name = ast.unparse(node.func)
        if name == 'int':
            return ast.Name(f'(int)({self._spelled(*node.args)})')
        if name in self._around.elsewhere:
            function = ast.Name(self._around.elsewhere[name])
            node = ast.Call(function, node.args[1:], [])
            self._written.add(ast.unparse(node.args[-1]))
        for argument, is_written in zip(
            node.args, self._noted.get(ast.unparse(node.func), ())
        ):
            if is_written:
                self._written.add(ast.unparse(argument).partition('[')[0])
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Element of an array, or row of one with two indices."""
        array = ast.unparse(node.value)
        value: ast.expr = self.visit(node.value)
        if isinstance(node.slice, ast.Slice) and array in self._shapes:
            return value
        if isinstance(node.ctx, ast.Store):
            self._written.add(array)
        if array not in self._columns:
            return self.generic_visit(node)
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        row, *column = map(self.visit, indices)
        start = ast.BinOp(row, ast.Mult(), ast.Name(self._columns[array]))
        if not column:
            return ast.BinOp(value, ast.Add(), start)
        return ast.Subscript(value, ast.BinOp(start, ast.Add(), *column))
