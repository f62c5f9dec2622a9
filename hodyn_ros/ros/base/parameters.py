"""Parameters of a node: one table, a frozen dataclass; declaration, checks, settings come from it.

Its fields are an `entry` each, a `group` of another table, or a `family` with those of all joints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Generic, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import ParameterNotDeclaredException
from rclpy.node import Node
from rclpy.parameter import Parameter

from hodyn_ros.errors import JointNameError
from hodyn_ros.names import did_you_mean, listed

S = TypeVar('S')

Triple = tuple[float, float, float]

Names = tuple[str, ...]

Numbers = tuple[float, ...]
"""Its default has one number: one for all joints, or a list with one for each."""

Values = tuple[tuple[str, str, Any], ...]
"""Joint, key and value of the parameters of a family; the key is empty where there is none."""

_OF_RCLPY = ('use_sim_time', 'start_type_description_service')


_MOST = 2**31 - 1  # of numbers whose table has no range


@dataclass(frozen=True)
class Entry:
    """A parameter. Its kind is that of the default; whole numbers are numbers too.

    Attributes
    ----------
    name : str
        Full name; empty in a table where it is that of the field.
    default : bool, int, float, str, tuple or None
        None: anything may be given.
    description : str
        A sentence with the unit in brackets.
    low, high : float
        Range of a number, both ends included.
    choices : tuple of str
        What a text, or each of several names, may be; empty: anything.
    read_only : bool
        Whether it stays what it is at the start.
    """

    name: str
    default: bool | int | float | str | Triple | Names | Numbers | None
    description: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    read_only: bool = False

    @property
    def kind(self) -> str:
        """One of `KINDS`, or names, numbers1, numbers3 or choice."""
        default = self.default
        if isinstance(default, tuple):
            return 'names' if isinstance(default[0], str) else f'numbers{len(default)}'
        return 'choice' if self.choices else KINDS[type(default)]

    def expectation(self, value: Any) -> str:
        """Expected values in words instead of one that does not fit; empty if it fits."""
        choices = ', '.join(f"'{name}'" for name in self.choices)
        range_ = f'from {self.low:.12g} to {self.high:.12g}'
        expected = {
            'anything': '',
            'switch': 'true or false',
            'text': 'text',
            'choice': f'one of {choices}',
            'names': 'a list of ' + (', '.join(self.choices) or 'names'),
            'numbers1': f'a number {range_}, or a list of such',
            'numbers3': 'three finite numbers',
            'whole': f'a whole number {range_}',
            'number': f'a number {range_}',
        }
        return '' if self._fits(value) else expected[self.kind]

    def _fits(self, value: Any) -> bool:
        """Whether a value is one that the parameter may have."""
        is_list = hasattr(value, '__len__') and not isinstance(value, (str, bytes))
        several = list(value) if is_list else []
        numbers = [value] if is_number(value) else several
        tests: dict[str, Callable[[], bool]] = {
            'anything': lambda: True,
            'switch': lambda: isinstance(value, bool),
            'text': lambda: isinstance(value, str),
            'choice': lambda: value in self.choices,
            'names': lambda: self._are_names(several),
            'numbers1': lambda: all_finite(numbers) and self._are_within(numbers),
            'numbers3': lambda: all_finite(several) and len(several) == 3,
            'whole': lambda: type(value) is int and self._are_within([value]),
            'number': lambda: is_number(value) and self._are_within([value]),
        }
        return tests[self.kind]()

    def _are_names(self, values: list[Any]) -> bool:
        known = {*self.choices} or values
        return bool(values) and all(isinstance(x, str) and x in known for x in values)

    def _are_within(self, values: list[Any]) -> bool:
        return all(is_number(x) and self.low <= x <= self.high for x in values)

    def converted(self, value: Any) -> Any:
        """Value that fits, in the type of the default, such as a tuple for a list."""
        if isinstance(self.default, tuple):
            values = [value] if is_number(value) else value
            return tuple(values if self.kind == 'names' else map(float, values))
        if self.default is None and hasattr(value, '__len__'):
            return value if isinstance(value, str) else tuple(value)
        return float(value) if isinstance(self.default, float) else value

    def descriptor(self) -> ParameterDescriptor:
        """Descriptor for the declaration, with a range that is bounded and holds the default."""
        # Dynamic typing: whole numbers need no decimal point, and `expectation` says what rclpy
        # would say with numbers of types. It also checks ranges whatever the type.
        made = ParameterDescriptor(
            description=self.description,
            additional_constraints=self.expectation(None),
            read_only=self.read_only,
            dynamic_typing=True,
        )
        # Zero may stand for no value where it lies outside.
        has_range = self.high < math.inf and not self.expectation(self.default)
        if has_range and self.kind == 'whole':
            made.integer_range = [IntegerRange(from_value=self.low, to_value=self.high)]
        elif has_range and self.kind == 'number':
            bounds = FloatingPointRange(from_value=self.low, to_value=self.high)
            made.floating_point_range = [bounds]
        return made


@dataclass(frozen=True)
class Family:
    """Parameters ``<start>.<joint>``, ``<start>.<joint>.<key>`` or ``<start>.<key>``.

    They are there as far as they are given, and stay what they are at the start.

    Attributes
    ----------
    start : str
    members : mapping of str to Entry
        By keys, '' for none; a value that is the default is none.
    of_all : bool
        Whether ``<start>.<key>`` holds for all joints.
    key : str
        What a key is where the parameters are of no joint; empty: they are of joints.
    """

    start: str
    members: Mapping[str, Entry]
    of_all: bool = False
    key: str = ''

    @property
    def pattern(self) -> str:
        """Form of the names."""
        if self.key:
            return f'{self.start}.<{self.key}>'
        return f'{self.start}.<joint>' + '.<key>' * ('' not in self.members)

    def split(self, name: str) -> tuple[str, str] | None:
        """Joint and key of a parameter; the key is empty where there is none.

        None if the parameter is no member.
        """
        start, _, rest = name.partition('.')
        if start != self.start or not rest:
            return None
        if self.key:
            return '', rest
        joint, _, key = (rest, '', '') if '' in self.members else rest.rpartition('.')
        return joint, key

    def entry(self, name: str) -> Entry:
        """Entry of a member.

        Raises
        ------
        ValueError
            If there is none of the name.
        """
        joint, key = self.split(name) or ('', '')
        made = self.members.get(key)
        if made is None or not (joint or self.of_all or self.key):
            where = 'which is' if self.key else 'with'
            keys = '' if '' in self.members else f' {where} one of {listed(self.members)}'
            hint = did_you_mean(key, self.members)
            raise ValueError(
                f'Parameter {name} is unknown{hint}, expected {self.pattern}'
                f'{"," * bool(self.key)}{keys}.'
            )
        text = made.description.format(joint=joint)
        return replace(made, name=name, description=text, read_only=True)

    def values(self, values: Mapping[str, Any]) -> Values:
        """Joint, key and value of those parameters that belong to the family and say something.

        Parameters
        ----------
        values : mapping of str to object
            By the names of parameters.
        """
        found = []
        for name, value in sorted(values.items()):
            place = self.split(name)
            if place is not None and value != (made := self.entry(name)).default:
                found.append((*place, made.converted(value)))
        return tuple(found)


def entry(
    default: bool | int | float | str | Triple | Names | Numbers,
    description: str,
    low: float = -math.inf,
    high: float = math.inf,
    **options: Any,
) -> Any:
    """Field of a table that is a parameter, with the type of its default.

    Parameters
    ----------
    default : bool, int, float, str or tuple
        A tuple of names, of three numbers, or of one number: for all joints, or a list.
    description : str
        A sentence with the unit in brackets.
    low, high : float
        Range of a number, both ends included.
    **options
        `choices`, `read_only` and `name` (by default that of the field), see `Entry`.
    """
    made = Entry(options.pop('name', ''), default, description, low, high, **options)
    return field(default=default, metadata={'entry': made})


def same(kind: type[Any], name: str, **changes: Any) -> Any:
    """Field that is the same parameter or family as a field of another table, but for changes.

    Parameters
    ----------
    kind : type
        The other table.
    name : str
        Of the field in both.
    **changes
        Attributes of `Entry`.
    """
    (item,) = (item for item in fields(kind) if item.name == name)
    ((what, made),) = item.metadata.items()
    made = replace(made, **changes) if what == 'entry' else made
    return field(default=item.default, metadata={what: made})


def group(kind: type[Any]) -> Any:
    """Field of a table that holds another one, whose parameters are ``<field>.<name>``.

    The table may be of another package: fields of it that have a `meaning`, and perhaps a largest
    value `most`, are numbers that are not negative and stay as they are.
    """
    return field(default_factory=kind, metadata={'group': kind})


def family(start: str, members: Mapping[str, Entry], **options: Any) -> Any:
    """Field of a table, of type `Values`, with the parameters of a family that are given.

    Parameters
    ----------
    start : str
        Of their names.
    members : mapping of str to Entry
        By keys, '' for none.
    **options
        `of_all` and `key`, see `Family`.
    """
    return field(default=(), metadata={'family': Family(start, members, **options)})


def per_joint(start: str, description: str, low: float, high: float) -> Any:
    """Field of a table with a number ``<start>.<joint>`` of joints; zero: not given.

    Parameters
    ----------
    start : str
        Of their names.
    description : str
        With {joint} for the name of the joint.
    low, high : float
        Range of a number that is given.
    """
    return family(start, {'': Entry('', 0.0, description, low, high)})


def entries(kind: type[Any], start: str = '') -> tuple[Entry, ...]:
    """All parameters of a table but those of families.

    Parameters
    ----------
    kind : type
        The table.
    start : str
        What stands in front of the names.

    Returns
    -------
    tuple of Entry
        With their full names.
    """
    found: list[Entry] = []
    for item in fields(kind):
        what, made = _read(item)
        if what == 'entry':
            found.append(replace(made, name=made.name or start + item.name))
        elif what == 'group':
            found += entries(made, f'{start}{item.name}.')
    return tuple(found)


def _read(item: Field[Any]) -> tuple[str, Any]:
    """Kind of a field, and its entry, table or family."""
    known = dict(item.metadata)
    if meaning := known.get('meaning'):
        default: Any = item.default
        most = known.get('most', _MOST)
        return 'entry', Entry('', default, f'{meaning}.', 0, most, read_only=True)
    ((what, made),) = known.items()
    return what, made


def _family_of(kind: type[Any], name: str) -> Family | None:
    """Family to which a parameter belongs."""
    families = (item.metadata.get('family') for item in fields(kind))
    return next((kin for kin in families if kin and kin.split(name)), None)


def is_number(value: Any) -> bool:
    """Whether a value is a number as a parameter can be, which includes NaN and infinity."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**63
    return isinstance(value, float)


def all_finite(values: list[Any]) -> bool:
    """Whether there are values, all of them finite numbers."""
    return bool(values) and all(is_number(x) and math.isfinite(x) for x in values)


KINDS: dict[type, str] = {
    bool: 'switch',
    int: 'whole',
    float: 'number',
    str: 'text',
    type(None): 'anything',
}
"""Kinds of parameters by the type of their default."""


def shown(value: Any) -> str:
    """Value as a message shows it: as it would be written, and never long."""
    if value is None:
        return 'not set'
    text = repr(value if isinstance(value, (str, int, float)) else list(value))
    return text if len(text) <= 80 else f'{text[:77]}...'


def _known(kind: type[Any], names: Iterable[str]) -> tuple[dict[str, Entry], list[str]]:
    """Entries of a table and of members of its families; problems with names of members."""
    known, problems = {item.name: item for item in entries(kind)}, []
    for name in names:
        if name not in known and (kin := _family_of(kind, name)):
            try:
                known[name] = kin.entry(name)
            except ValueError as error:
                problems.append(str(error))
    return known, problems


def make_settings(kind: type[S], values: Mapping[str, Any]) -> S:
    """Settings from values of parameters; those that are left out have their defaults.

    Parameters
    ----------
    kind : type
        Table of the parameters; its method `contradictions`, if there is one, says what is wrong
        with values together.
    values : mapping of str to object
        By names; those that the table does not have are left alone.

    Returns
    -------
    object
        An instance of `kind`.

    Raises
    ------
    ValueError
        If values cannot be used, alone or together; it names all of them.
    """
    known, problems = _known(kind, values)
    for name in values:
        if name in known and (expected := known[name].expectation(values[name])):
            given = shown(values[name])
            hint = did_you_mean(values[name], known[name].choices)
            problems.append(f'Parameter {name} is {given}{hint}, expected {expected}.')
    if not problems:
        settings = _filled(kind, values, '')
        problems = getattr(settings, 'contradictions', list)()
    if problems:
        raise ValueError(' '.join(problems))
    return settings


def _filled(kind: type[S], values: Mapping[str, Any], start: str) -> S:
    made: dict[str, Any] = {}
    for item in fields(kind):  # type: ignore[arg-type]
        what, meaning = _read(item)
        if what == 'group':
            made[item.name] = _filled(meaning, values, f'{start}{item.name}.')
        elif what == 'family':
            made[item.name] = meaning.values(values)
        elif (name := meaning.name or start + item.name) in values:
            made[item.name] = meaning.converted(values[name])
    return kind(**made)


def joint_values(start: str, values: Values, joint_names: Sequence[str]) -> dict[str, Any]:
    """Values of a family ``<start>.<joint>`` by the joints of a robot.

    Parameters
    ----------
    start : str
    values : tuple of (str, str, object)
        As of `Family.values`.
    joint_names : sequence of str

    Returns
    -------
    dict of str to object
        Only of joints that have one.

    Raises
    ------
    JointNameError
        If one is for no joint of the robot.
    """
    unknown = [
        f'{start}.{joint}{did_you_mean(joint, joint_names)}'
        for joint, _, _ in values
        if joint not in joint_names
    ]
    if unknown:
        raise JointNameError(
            f'Parameter {listed(unknown)} is for no joint of the robot; its joints are '
            f'{listed(joint_names)}.'
        )
    return {joint: value for joint, _, value in values}


class Parameters(Generic[S]):
    """Declares all parameters of a table and keeps a snapshot of their values.

    Before ROS 2 Iron, rclpy does not say when all callbacks have agreed, but the first one to be
    added is asked last: hence the node must have none yet.

    Parameters
    ----------
    node : Node
        Made with ``automatically_declare_parameters_from_overrides=True``, which says what is
        given at the start, and without callbacks on parameters.
    kind : type
        The table.
    on_change : callable
        Called with the settings before and after.
    check : callable
        May raise ValueError against settings that would hold.
    on_set : callable
        Called with all parameters that have been set together, before `on_change`.

    Attributes
    ----------
    settings : object
        Those that hold now.
    given : dict of str to object
        Values that were given at the start, known or not.

    Raises
    ------
    ValueError
        If values given at the start cannot be used; it names all of them.
    """

    def __init__(
        self,
        node: Node,
        kind: type[S],
        on_change: Callable[[S, S], None] = lambda before, after: None,
        check: Callable[[S], None] = lambda settings: None,
        on_set: Callable[[Sequence[Parameter]], None] = lambda parameters: None,
    ) -> None:
        self._node, self._kind = node, kind
        self._on_change, self._check_further, self._on_set = on_change, check, on_set
        self.given: dict[str, Any] = {
            name: item.value
            for name, item in node.get_parameters_by_prefix('').items()
            if name not in _OF_RCLPY
        }
        for name in self.given:  # whoever needs it declares it with its meaning
            node.undeclare_parameter(name)
        self.settings: S = make_settings(kind, self.given)
        known, _ = _known(kind, self.given)
        self._names = {*known}
        self._values = {name: x for name, x in self.given.items() if name in known}
        for name, item in known.items():
            value = self.given.get(name, item.default)
            value = list(value) if isinstance(value, tuple) else value
            node.declare_parameter(name, value, item.descriptor())
        self._has_post_set = hasattr(node, 'add_post_set_parameters_callback')
        node.add_on_set_parameters_callback(self._check)
        if self._has_post_set:
            node.add_post_set_parameters_callback(self._exchange)
            node.add_pre_set_parameters_callback(self._refuse_unknown)

    def unknown(self) -> list[str]:
        """Names that were given at the start but that a complete node has not declared: typos."""
        return self._hints(sorted(self.given))

    def _hints(self, names: Iterable[str]) -> list[str]:
        """Those of the names that are not declared, each with a hint."""
        known = self._node.list_parameters([], 0).names
        found = []
        for name in names:
            hint = did_you_mean(name, known, 0.8)
            if kin := _family_of(self._kind, name):
                hint = f' ({kin.pattern} is read at the start alone)'
            if name not in known:
                found.append(name + hint)
        return found

    def _refuse_unknown(self, parameters: list[Parameter]) -> list[Parameter]:
        unknown = self._hints(parameter.name for parameter in parameters)
        if unknown:
            raise ParameterNotDeclaredException(', '.join(unknown))
        return parameters

    def _changed(self, parameters: Iterable[Parameter]) -> dict[str, Any]:
        """Values that hold if some parameters are set."""
        changes = {x.name: x.value for x in parameters if x.name in self._names}
        return {**self._values, **changes}

    def _check(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        try:
            values = self._changed(parameters)
            if values != self._values:
                self._check_further(self._made(values))
        except ValueError as error:
            return SetParametersResult(successful=False, reason=str(error))
        if not self._has_post_set:
            self._exchange(parameters)
        return SetParametersResult(successful=True)

    def _exchange(self, parameters: Sequence[Parameter]) -> None:
        self._on_set(parameters)
        values = self._changed(parameters)
        if values != self._values:
            self._values = values
            self._use(self._made(values))

    def override(self, start: str, values: Mapping[str, Any]) -> None:
        """Have other values than those of the parameters of a family from now on.

        Parameters
        ----------
        start : str
            Of the names of those whose values are dropped.
        values : mapping of str to object
            In their place, by names.

        Raises
        ------
        ValueError
            If they cannot be used.
        """
        kept = {name: x for name, x in self._values.items() if not name.startswith(start)}
        settings = self._made({**kept, **values})
        self._check_further(settings)
        self._values = {**kept, **values}
        self._use(settings)

    def _made(self, values: Mapping[str, Any]) -> S:
        return make_settings(self._kind, values)

    def _use(self, settings: S) -> None:
        before, self.settings = self.settings, settings
        if before != settings:
            self._on_change(before, settings)
