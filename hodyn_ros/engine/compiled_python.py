"""Functions of Python that are plain loops over numbers, as LLVM: compiled in some ten ms.

They compute with numbers (float), whole numbers (int) and arrays with one index: of numbers
(Vector) or of whole ones (Index), whose slice `array[start:]` is the array that begins there.
Variables have the type of their first value. Calls are those of functions of the same modules, of
`abs`, `max`, `min`, `int`, `sqrt`, `floor`, `exp`, `isfinite`, and of an Index as a function: a
`Program`, its address and its first two arguments of `llvm_lanes.EVALUATE`, for one block.

Arrays with two indices have rows of the length n (Matrix) or m (MotorMatrix), variables of the
function. Records are blocks of numbers and such arrays, by their names, for sizes n, m and d that
all functions with records share; `record.array[:] = ...` and `record.array[row] = ...` write whole
arrays and rows, element by element as NumPy does, from such of the same shape. `and` and `or` look
at both sides. `codegen.translation` writes C of the same.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import product, takewhile
from math import prod
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from hodyn_ros.engine.llvm_lanes import DOUBLE, DOUBLES, ENTRY, EVALUATE, INTEGER, INTEGERS
from hodyn_ros.engine.plain_python import Fields, shape_of

_TYPES = {'int': INTEGER, 'float': DOUBLE, 'Vector': DOUBLES, 'Index': INTEGERS}
_TYPES |= {'Matrix': DOUBLES, 'MotorMatrix': DOUBLES, 'None': ir.VoidType()}
_COLUMNS = {'Matrix': 'n', 'MotorMatrix': 'm'}
_SIZES = 'nmd'  # of records
_LIBRARY = 'hodyn_exp'
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: '<',
    ast.LtE: '<=',
    ast.Gt: '>',
    ast.GtE: '>=',
    ast.Eq: '==',
    ast.NotEq: '!=',
}
_OPERATIONS: dict[type[ast.operator], str] = {
    ast.Add: 'add',
    ast.Sub: 'sub',
    ast.Mult: 'mul',
    ast.Div: 'div',
    ast.FloorDiv: 'div',
}


def compiled_module(
    source: str,
    names: Sequence[str],
    constants: Mapping[str, float],
    records: Mapping[str, Fields] | None = None,
) -> llvm.ModuleRef:
    """Optimized module of some functions, the last of which becomes `llvm_lanes.ENTRY`.

    Parameters
    ----------
    source : str
        Text of a module in Python; parameters are annotated as said above.
    names : sequence of str
        Functions to compile; those that others call come first.
    constants : mapping of str to float
        Numbers by the names that the functions have for them.
    records : mapping of str to Fields, optional
        By the annotations of parameters. Functions with records take n, m and d behind all else.

    Raises
    ------
    NotImplementedError
        If a function holds what is not compiled.
    """
    module, types = ir.Module('plain'), _TYPES | dict.fromkeys(records or {}, DOUBLES)
    nodes: dict[str, Any] = {
        node.name: node for node in ast.parse(source).body if hasattr(node, 'name')
    }
    known: dict[str, ir.Function] = {}
    for name in names:
        kinds = [ast.unparse(x.annotation) for x in nodes[name].args.args]
        sizes = [INTEGER] * 3 if {*kinds} & {*(records or {})} else []
        given = [*(types[x] for x in kinds), *sizes]
        kind = ir.FunctionType(types[ast.unparse(nodes[name].returns)], given)
        function = ir.Function(module, kind, ENTRY if name == names[-1] else name)
        function.linkage = 'external' if name == names[-1] else 'internal'
        known[name] = function
        _Writer(function, nodes[name], known, constants, records or {})
    llvm.initialize_native_target()
    target = llvm.Target.from_default_triple().create_target_machine(opt=2)
    found = llvm.parse_assembly(str(module))
    builder = llvm.create_pass_builder(
        target, llvm.create_pipeline_tuning_options(speed_level=2)
    )
    builder.getModulePassManager().run(found, builder)
    return found


class _Writer:
    """Writer of one function."""

    def __init__(
        self,
        function: ir.Function,
        node: Any,
        known: Mapping[str, ir.Function],
        constants: Mapping[str, float],
        records: Mapping[str, Fields],
    ) -> None:
        self._builder = ir.IRBuilder(function.append_basic_block())
        self._function, self._known, self._constants = function, known, constants
        self._variables: dict[str, ir.Value] = {}
        # Element of arrays that is computed, and how many indices they have.
        self._at: ir.Value | None = None
        self._rank = 0
        self._kinds = {x.arg: ast.unparse(x.annotation) for x in node.args.args}
        self._records = {
            x: records[kind] for x, kind in self._kinds.items() if kind in records
        }
        self._shapes = {
            f'{record}.{name}': shape
            for record, fields in self._records.items()
            for name, shape in fields.shapes.items()
        }
        for name, value in zip(
            [*self._kinds, *(f'size {x}' for x in _SIZES)], function.args
        ):
            self._store(name, value)
        self._block(node.body)
        if not self._builder.block.is_terminated:
            nothing = function.function_type.return_type == ir.VoidType()
            self._builder.ret_void() if nothing else self._builder.unreachable()

    def _store(self, name: str, value: ir.Value) -> None:
        if name not in self._variables:
            with self._builder.goto_entry_block():
                self._variables[name] = self._builder.alloca(value.type)
        variable = self._variables[name]
        self._builder.store(self._as(value, variable.type.pointee), variable)

    def _as(self, value: ir.Value, kind: ir.Type) -> ir.Value:
        """Value as a number, if it is a whole one and a number is needed."""
        if value.type == kind:
            return value
        if (value.type, kind) != (INTEGER, DOUBLE):
            raise NotImplementedError(f'A value of {value.type} in place of one of {kind}.')
        return self._builder.sitofp(value, DOUBLE)

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for node in statements:
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        builder = self._builder
        match node:
            case ast.Expr(ast.Constant()):  # documentation
                pass
            case ast.Expr(ast.Call() as call):
                self._value(call)
            case ast.Return(None):
                builder.ret_void()
            case ast.Return(ast.expr() as value):
                kind = self._function.function_type.return_type
                builder.ret(self._as(self._value(value), kind))
            case ast.If(test, body, others):
                with builder.if_else(self._truth(test)) as (then, otherwise):
                    with then:
                        self._block(body)
                    with otherwise:
                        self._block(others)
                if self._left_by_return(body) and self._left_by_return(others):
                    builder.unreachable()
            case ast.For(ast.Name(i), ast.Call(ast.Name('range'), [*first, end]), body, []):
                start = self._value(*first) if first else ir.Constant(INTEGER, 0)
                self._count(i, start, self._value(end), lambda: self._block(body))
            case ast.While(test, body, []):
                self._while(lambda: self._truth(test), lambda: self._block(body))
            case _:
                self._assignment(node)

    def _assignment(self, node: ast.stmt) -> None:
        match node:
            case ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                self._store(name, self._value(value))
            case ast.Assign([ast.Name(name)], value):
                self._store(name, self._value(value))
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)):
                for target, value in zip(targets, values):
                    self._assignment(ast.Assign([target], value, lineno=0))
            case ast.Assign([ast.Subscript() as target], value) if shape_of(
                self._shapes, target
            ):
                self._fill(target, value)
            case ast.Assign([ast.Subscript() | ast.Attribute() as target], value):
                place = self._place(target)
                stored = self._as(self._value(value), place.type.pointee)
                self._builder.store(stored, place)
            case ast.AugAssign(target, operation, value):
                before = ast.parse(ast.unparse(target), mode='eval').body
                whole = ast.BinOp(before, operation, value)
                self._assignment(ast.Assign([target], whole, lineno=0))
            case _:
                raise NotImplementedError(f'{ast.unparse(node)!r} is not compiled.')

    def _fill(self, target: ast.Subscript, value: ast.expr) -> None:
        """Write an array, element by element."""
        builder, place = self._builder, self._value(target)

        def write() -> None:
            at = self._at = self._load('at ')
            number = self._as(self._value(value), DOUBLE)
            self._at = None
            builder.store(number, builder.gep(place, [at]))

        shape = shape_of(self._shapes, target)
        self._rank, size = len(shape), self._size([shape])
        self._count('at ', ir.Constant(INTEGER, 0), size, write)

    def _left_by_return(self, statements: Sequence[ast.stmt]) -> bool:
        return bool(statements) and isinstance(statements[-1], ast.Return)

    def _count(
        self, name: str, start: ir.Value, end: ir.Value, body: Callable[[], None]
    ) -> None:
        """Do something for whole numbers from the start to before the end."""

        def once() -> None:
            body()
            self._store(name, self._builder.add(self._load(name), ir.Constant(INTEGER, 1)))

        self._store(name, start)
        self._while(lambda: self._compared('<', self._load(name), end), once)

    def _while(self, test: Callable[[], ir.Value], body: Callable[[], None]) -> None:
        builder = self._builder
        head, inside, behind = (builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        builder.cbranch(test(), inside, behind)
        builder.position_at_end(inside)
        body()
        builder.branch(head)
        builder.position_at_end(behind)

    def _load(self, name: str) -> ir.Value:
        return self._builder.load(self._variables[name])

    def _place(self, node: ast.Subscript | ast.Attribute) -> ir.Value:
        """Address of an element or number, of where a slice begins, or of a row."""
        if isinstance(node, ast.Attribute):
            return self._field(node)
        index = node.slice
        if isinstance(index, ast.Slice):
            index = index.lower or ast.Constant(0)
        indices = index.elts if isinstance(index, ast.Tuple) else [index]
        row, *column = map(self._value, indices)
        columns = self._columns(node.value)
        if columns is not None:
            row = self._builder.mul(row, columns)
        for offset in column:
            row = self._builder.add(row, offset)
        return self._builder.gep(self._value(node.value), [row])

    def _columns(self, node: ast.expr) -> ir.Value | None:
        """Length of the rows of an array; None if it has one index."""
        if isinstance(node, ast.Name) and self._kinds.get(node.id) in _COLUMNS:
            columns = _COLUMNS[self._kinds[node.id]]
            return self._load(columns if columns in self._variables else f'size {columns}')
        shape = shape_of(self._shapes, node)
        return self._size([shape[1:]]) if len(shape) > 1 else None

    def _size(self, shapes: Iterable[tuple[str, ...]]) -> ir.Value:
        """Number of elements of arrays together: a polynomial of n, m and d."""
        terms = Counter[str]()
        for shape in shapes:
            for factors in product(*(x.split('+') for x in shape)):
                numbers = [int(x) for x in factors if x not in _SIZES]
                terms[''.join(sorted(x for x in factors if x in _SIZES))] += prod(numbers)
        total = ir.Constant(INTEGER, 0)
        for sizes, count in terms.items():
            part = ir.Constant(INTEGER, count)
            for x in sizes:
                part = self._builder.mul(part, self._load(f'size {x}'))
            total = self._builder.add(total, part)
        return total

    def _field(self, node: ast.Attribute) -> ir.Value:
        """Address of an array or number of a record."""
        record = ast.unparse(node.value)
        shapes, whole = self._records[record]
        before = takewhile(lambda name: name != node.attr, shapes)
        offset = self._size(shapes[name] for name in before)
        place = self._builder.gep(self._load(record), [offset])
        return self._builder.bitcast(place, INTEGERS) if node.attr in whole else place

    def _truth(self, node: ast.expr) -> ir.Value:
        """Whether a condition holds, or a number is not zero."""
        value = self._value(node)
        if value.type in (DOUBLE, INTEGER):
            return self._compared('!=', value, ir.Constant(value.type, 0))
        return value

    def _value(self, node: ast.expr) -> ir.Value:
        if self._at is not None and (shape := shape_of(self._shapes, node)):
            if len(shape) != self._rank:
                raise NotImplementedError(f'{ast.unparse(node)!r} has another shape.')
            at, self._at = self._at, None
            place = self._builder.gep(self._value(node), [at])
            self._at = at
            return self._builder.load(place)
        return self._whole(node)

    def _whole(self, node: ast.expr) -> ir.Value:
        """Number, or address of an array."""
        match node:
            case ast.Constant(int() | float() as number):
                return ir.Constant(INTEGER if isinstance(number, int) else DOUBLE, number)
            case ast.Name(name) if name in self._variables:
                return self._load(name)
            case ast.Name(name) if name in self._constants:
                return self._value(ast.Constant(self._constants[name]))
            case ast.Attribute(ast.Name(), size) if size in _SIZES:
                return self._load(f'size {size}')
            case ast.Attribute(ast.Name(record)) if record in self._records:
                place = self._field(node)
                return place if shape_of(self._shapes, node) else self._builder.load(place)
            case ast.Subscript(array, index):
                is_row = self._columns(array) is not None
                is_row = is_row and not isinstance(index, ast.Tuple)
                place = self._place(node)
                is_array = is_row or isinstance(index, ast.Slice)
                return place if is_array else self._builder.load(place)
            case ast.Call(ast.Name(name), arguments):
                return self._called(name, [self._value(item) for item in arguments])
        return self._operation(node)

    def _operation(self, node: ast.expr) -> ir.Value:
        """Value of operators on others."""
        builder = self._builder
        match node:
            case ast.UnaryOp(ast.USub(), operand):
                value = self._value(operand)
                return builder.fneg(value) if value.type == DOUBLE else builder.neg(value)
            case ast.UnaryOp(ast.Not(), operand):
                return builder.not_(self._truth(operand))
            case ast.BinOp(left, operation, right):
                return self._combined(operation, self._value(left), self._value(right))
            case ast.Compare(left, [sign], [right]):
                a, b = self._value(left), self._value(right)
                return self._compared(_COMPARED[type(sign)], a, b)
            case ast.BoolOp(operation, values):
                both = builder.and_ if isinstance(operation, ast.And) else builder.or_
                return reduce(both, map(self._truth, values))
        raise NotImplementedError(f'{ast.unparse(node)!r} is not compiled.')

    def _combined(self, operation: ast.operator, a: ir.Value, b: ir.Value) -> ir.Value:
        name = _OPERATIONS[type(operation)]
        whole = a.type == b.type == INTEGER
        if isinstance(operation, ast.Div if whole else ast.FloorDiv):
            raise NotImplementedError('Of / one side is a number, of // none.')
        if whole:
            return getattr(self._builder, 's' * (name == 'div') + name)(a, b)
        a, b = self._as(a, DOUBLE), self._as(b, DOUBLE)
        return getattr(self._builder, 'f' + name)(a, b)

    def _compared(self, sign: str, a: ir.Value, b: ir.Value) -> ir.Value:
        if a.type == b.type == INTEGER:
            return self._builder.icmp_signed(sign, a, b)
        a, b = self._as(a, DOUBLE), self._as(b, DOUBLE)
        compare = (
            self._builder.fcmp_unordered if sign == '!=' else self._builder.fcmp_ordered
        )
        return compare(sign, a, b)

    def _called(self, name: str, values: list[ir.Value]) -> ir.Value:
        builder = self._builder
        if name in self._known:
            kinds = self._known[name].function_type.args
            given = [self._as(x, kind) for x, kind in zip(values, kinds)]
            if len(kinds) > len(given):  # those of records
                given += [self._load(f'size {x}') for x in _SIZES]
            return builder.call(self._known[name], given)
        if name in self._variables:
            return self._program(self._load(name), values)
        if name == 'evaluate':
            row, *arrays = values
            place = builder.gep(row, [ir.Constant(INTEGER, 3)])
            scratch = builder.inttoptr(builder.load(place), DOUBLES)
            nothing = ir.Constant(DOUBLES, None)
            return self._program(row, [scratch, arrays[0], nothing, arrays[1]])
        if name == 'int':
            return builder.fptosi(values[0], INTEGER)
        if name in ('abs', 'sqrt', 'floor'):
            kind = {'abs': 'llvm.fabs'}.get(name, f'llvm.{name}')
            function = builder.module.declare_intrinsic(kind, [DOUBLE])
            return builder.call(function, [self._as(values[0], DOUBLE)])
        if name == 'exp':
            known = builder.module.globals.get(_LIBRARY)
            kind = ir.FunctionType(DOUBLE, [DOUBLE])
            return builder.call(
                known or ir.Function(builder.module, kind, _LIBRARY), values
            )
        if name == 'isfinite':
            size = builder.call(
                builder.module.declare_intrinsic('llvm.fabs', [DOUBLE]), values
            )
            return builder.fcmp_ordered('<', size, ir.Constant(DOUBLE, float('inf')))
        if name in ('max', 'min'):
            a, b = values
            other = self._compared('>' if name == 'max' else '<', b, a)
            return builder.select(other, b, a)
        raise NotImplementedError(f'{name!r} is no function that is compiled.')

    def _program(self, table: ir.Value, arrays: list[ir.Value]) -> ir.Value:
        """Status of a program, from its table, workspace and three arrays."""
        builder = self._builder
        entries = [
            builder.load(builder.gep(table, [ir.Constant(INTEGER, k)])) for k in range(3)
        ]
        function = builder.inttoptr(entries[0], EVALUATE.as_pointer())
        robot = [builder.inttoptr(x, kind) for x, kind in zip(entries[1:], EVALUATE.args)]
        scratch, *data = arrays
        return builder.call(function, [*robot, scratch, ir.Constant(INTEGER, 1), *data])
