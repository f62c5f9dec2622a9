"""The columns of tables: their titles, and the way between them and samples; see doc/files.rst."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hodyn_ros.errors import FileError
from hodyn_ros.files.quantities import MOTION, QUANTITIES, TIME, WORDS, FileQuantity, Word
from hodyn_ros.files.samples import SOURCES, Samples, first_known
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.names import did_you_mean, listed
from hodyn_ros.typing import Array

if TYPE_CHECKING:
    from hodyn_ros.dynamics.wrenches import Wrench

_TITLE = re.compile(r'(.*\S) \[([^\]]*)\](?: (.*))?')
# As loggers call the time, without signs around it; what may stand for it; a quantity of a joint
# as PlotJuggler has it, and as others do, before or behind the joint.
_TIMES = ('t', 'time', 'times', 'timestamp')
_LIKE_TIME = re.compile(r't|.*(time|stamp|secs?$|duration).*', re.IGNORECASE)
_PATH = re.compile(r'(?:.*/)?([^/]+)/(\w+)')
_LOGGERS = {
    word: MOTION[k]
    for k, words in enumerate(
        ('position q pos', 'velocity dq qd vel', 'acceleration ddq qdd acc')
    )
    for word in words.split()
}
_WORD = '|'.join(sorted(_LOGGERS, key=len, reverse=True))
_BEHIND = re.compile(rf'(?:.*/)?(.+?)[._/ ]({_WORD})', re.IGNORECASE)
_BEFORE = re.compile(rf'(?:.*/)?({_WORD})[._/ ](.+)', re.IGNORECASE)
# Other units in a title, the one that they stand for, and its factor; of times by themselves.
_UNITS: tuple[tuple[str, str, float], ...] = (
    ('deg', 'rad', np.pi / 180.0),
    ('°', 'rad', np.pi / 180.0),
    ('mm', 'm', 1e-3),
    ('cm', 'm', 1e-2),
    ('Nm', 'N m', 1.0),
)
_TIME_UNITS = (('ms', 's', 1e-3), ('us', 's', 1e-6), ('µs', 's', 1e-6), ('ns', 's', 1e-9))


class TableFile(NamedTuple):
    """A table in a file, whose columns are read when it is known which of them are used."""

    titles: Sequence[str]
    """Of all columns, with or without units."""
    lines: Mapping[str, str]
    """'start' [ns since 1970], 'source', 'base_link', 'units' (JSON, by the title), 'wrench LINK',
    'motor NAME', 'column THEIRS' and the lines of `Provenance`; all may be left out."""
    columns: Callable[[Sequence[int]], Sequence[Array]]
    """Values (N,) of the columns at some places; NaN where a cell is empty."""


Block = tuple[str, Sequence[str], Any]
"""A quantity, whose it is, and titles (orders, owners or components)."""


class _Column(NamedTuple):
    """What the title of a column says."""

    title: str
    """In our words: 'time', 'OWNER.WORD', or as it is if it has another meaning."""
    owner: str = ''
    word: Word | None = None
    """None: time, or another meaning."""
    unit: str = ''
    """Of SI; empty if it is not known."""
    factor: float = 1.0
    """To this unit."""
    more: str = ''
    """What stands behind the unit."""


def samples_of(
    table: TableFile, name: str, expressed_in: str | None = None, acting: str | None = None
) -> Samples:
    """Samples that a table holds, from the first one with all positions on, each once.

    Parameters
    ----------
    table : TableFile
        Its columns stand in any order; those of another meaning are passed over.
    name : str
        Of the table, for messages.
    expressed_in, acting : str, optional
        Of all wrenches, in place of what the table says.

    Returns
    -------
    Samples
        `remarks` says which titles are read as others, and which rows are left out.

    Raises
    ------
    FileError
        If times or positions are missing, a column is there twice or in a unit of something else,
        a quantity is there for some joints only or without the orders below it, metadata have no
        meaning, or a cell is no number.
    """
    columns = _in_our_words(table, name)
    owners = _owners_in(columns)
    _refuse_without_motion(columns, owners['motion'], table.titles, name)
    _refuse_misfits(columns, owners['motion'], name)
    places = {column.title: place for place, column in enumerate(columns)}
    blocks = list(_blocks_in(places, owners, name))
    used = [
        places[TIME],
        *(places[title] for _, _, orders in blocks for title in orders.flat),
    ]
    values = {
        columns[place].title: _scaled(found, columns[place].factor)
        for place, found in zip(used, table.columns(used))
    }
    rows, left_out = _rows_of(values, blocks[0][2][0], name)
    lines = _lines_of(table, columns)
    units = [columns[places[f'{joint}.{MOTION[0]}']].unit for joint in owners['motion']]
    motors = tuple(owners['motor_position'])
    times = values[TIME][rows]
    arrays = _arrays_of(values, rows, blocks)
    wrenches = arrays.pop('wrenches', {}).items()
    stiffness = arrays.pop('stiffness', {}).items()
    return Samples(
        joint_names=tuple(owners['motion']),
        times=times,
        **arrays,
        motor_names=motors,
        motor_joints=tuple(lines.get(f'motor {motor}', motor) for motor in motors),
        wrenches=tuple(
            _wrench(link, array, lines, name, expressed_in, acting)
            for link, array in wrenches
        ),
        stiffness={joint: array[:, :, 0] for joint, array in stiffness},
        name=name,
        start=_start_in(lines, name),
        source=lines['source'] if lines.get('source') in SOURCES else 'unknown',
        base_link=lines.get('base_link', ''),
        joint_units=tuple(units) if all(units) else (),
        provenance=Provenance.from_lines(lines),
        remarks=(*_remarks_on(table.titles, columns, sorted(used)), *left_out),
    )


def _scaled(values: Array, factor: float) -> Array:
    """Values times a factor, which mostly is one."""
    return values if factor == 1.0 else values * factor


def _arrays_of(
    values: dict[str, Array], rows: Any, blocks: Sequence[Block]
) -> dict[str, Any]:
    """Arrays (N, orders, owners or components) of quantities, some by their owner.

    Columns that are used are taken out of the values, which saves memory.
    """
    found: dict[str, Any] = {}
    for what, owners, orders in blocks:
        first = values[orders.flat[0]][rows]
        array = np.empty((len(first), *orders.shape))
        for (k, j), title in np.ndenumerate(orders):
            array[:, k, j] = values.pop(title)[rows]
        if QUANTITIES[what].owners:
            found[what] = array
        else:
            found.setdefault(what, {})[owners[0]] = array
    return found


class WrittenTable(NamedTuple):
    """Columns of a table that is written, and what belongs to it."""

    columns: dict[str, Array]
    """Values (N,) by the titles without units, in SI units: 'time', then the orders of each
    quantity for all joints."""
    titles: list[str]
    """Of the columns with all that their numbers mean: units, how wrenches are expressed and which
    joints the motors move, such as 'joint1.effort [N m]'."""
    lines: dict[str, str]
    """As `TableFile` has them, but for those that `titles` say. What is not known is left out."""
    said: dict[str, str]
    """The lines that `titles` say."""


def table_of(samples: Samples) -> WrittenTable:
    """Table of some samples.

    Parameters
    ----------
    samples : Samples
        Of N samples.

    Returns
    -------
    WrittenTable
    """
    columns, titles, known = {TIME: samples.times}, [f'{TIME} [s]'], {TIME: 's'}
    for quantity, owners, values in _blocks_of(samples):
        orders = enumerate(quantity.names[: values.shape[1]])
        flat = iter(np.ascontiguousarray(values.reshape(len(values), -1).T))
        for (k, name), owner, component in product(orders, owners, quantity.components):
            title, unit = f'{owner.name}.{name}{component}', ''
            if owner.is_linear is not None:
                unit = quantity.unit_of(k, component, owner.is_linear)
            columns[title], known[title] = next(flat), unit
            more = '' if k and quantity.owners else owner.more  # of motors once
            titles.append(f'{title} [{unit}]{more}' if unit or more else title)
    lines = {name: str(getattr(samples, name)) for name in ('start', 'source', 'base_link')}
    lines = {
        key: value for key, value in lines.items() if value not in ('', '0', 'unknown')
    }
    said = {f'wrench {w.link}': f'{w.expressed_in} {w.acting}' for w in samples.wrenches}
    said |= {f'motor {m}': j for m, j in zip(samples.motor_names, samples.motor_joints)}
    said['units'] = json.dumps(known, ensure_ascii=False)
    return WrittenTable(columns, titles, lines | samples.provenance.lines(), said)


class _Owner(NamedTuple):
    """A joint, motor or link that has a quantity."""

    name: str
    is_linear: bool | None
    """Of its joint; None: not known."""
    more: str = ''
    """What titles say behind the unit."""


def _blocks_of(samples: Samples) -> Iterator[tuple[FileQuantity, Sequence[_Owner], Array]]:
    """Quantities that there are, whose they are, and values (N, orders, owners or components)."""
    is_linear = {
        joint: unit == 'm' for joint, unit in zip(samples.joint_names, samples.joint_units)
    }
    joints = {joint: _Owner(joint, is_linear.get(joint)) for joint in samples.joint_names}
    motors = [
        _Owner(motor, is_linear.get(joint), f' motor of {joint}' * (motor != joint))
        for motor, joint in zip(samples.motor_names, samples.motor_joints)
    ]
    shared = {'joint_names': list(joints.values()), 'motor_names': motors}
    single = {
        'wrenches': [
            (_Owner(w.link, False, f' {w.expressed_in} {w.acting}'), np.asarray(w.values))
            for w in samples.wrenches
        ],
        'stiffness': [
            (joints.get(joint, _Owner(joint, None)), series[:, :, None])
            for joint, series in samples.stiffness.items()
        ],
    }
    arrays = samples.arrays()
    for what, quantity in QUANTITIES.items():
        if what in arrays:
            yield quantity, shared[quantity.owners], arrays[what]
        for owner, values in single.get(what, ()):
            yield quantity, [owner], values


def _blocks_in(
    titles: Container[str], owners: Mapping[str, Sequence[str]], name: str
) -> Iterator[Block]:
    """Quantities that there are; refuses one of some owners only, or without lower orders."""
    for what, quantity in QUANTITIES.items():
        groups = [owners[what]] if quantity.owners else [[who] for who in owners[what]]
        for group in groups:
            if len(orders := _orders(titles, group, quantity, name)):
                yield what, group, orders


def _orders(
    titles: Container[str], owners: Sequence[str], quantity: FileQuantity, name: str
) -> Any:
    """Titles of the orders of a quantity that are there, each of all owners; maybe none.

    Refuses an order without the one below it, or of some owners or components only.
    """
    found: list[list[str]] = []
    for word in quantity.names:
        wanted = [f'{who}.{word}{part}' for who in owners for part in quantity.components]
        missing = [title for title in wanted if title not in titles]
        if len(missing) == len(wanted):
            continue
        if missing:
            have = next(title for title in wanted if title not in missing)
            raise FileError(
                f'{name}: there is {have}, but not {listed(missing)}; expected it for all joints '
                'or for none, and wrenches with force.x to force.z and torque.x to torque.z.'
            )
        lower = f'{owners[0]}.{quantity.names[len(found)]}{quantity.components[0]}'
        if lower != wanted[0]:
            raise FileError(
                f'{name}: there is {wanted[0]} without {lower}; derivatives need the orders below '
                'them.'
            )
        found.append(wanted)
    return np.array(found, dtype=object)


def _in_our_words(table: TableFile, name: str) -> list[_Column]:
    """What the titles of all columns say; refuses units of something else."""
    units = _units_in(table.lines)
    names = {
        key[7:]: ours for key, ours in table.lines.items() if key.startswith('column ')
    }
    given = [names.get(text.strip(), text).strip() for text in table.titles]
    matches = [_TITLE.fullmatch(text) for text in given]
    titles = _translated(
        [match[1] if match else text for match, text in zip(matches, given)]
    )
    found = []
    for title, match in zip(titles, matches):
        owner, word = _split(title)
        known = ['s'] if title == TIME else []
        if word:
            known = [word.unit(is_linear) for is_linear in (False, True)]
        if match is None or not known:
            found.append(_Column(title, owner, word, units.get(title, '')))
            continue
        unit, factor = _converted(match[2], title == TIME, known)
        if unit not in ('', *known):
            raise FileError(
                f'{name}: column {title!r} is in [{unit}], expected '
                f'[{"] or [".join(dict.fromkeys(known))}]; convert its values.'
            )
        found.append(_Column(title, owner, word, unit, factor, match[3] or ''))
    return found


def _units_in(lines: Mapping[str, str]) -> dict[str, str]:
    """Units of columns that were written beside them; others may have said something else."""
    try:
        units = json.loads(lines.get('units', '{}'))
    except ValueError:
        return {}
    return units if isinstance(units, dict) else {}


def _translated(given: list[str]) -> list[str]:
    """Titles without units in our words; as they are if two would become one."""
    titles = [_known_title(title) for title in given]
    if not any(title.endswith(f'.{MOTION[0]}') for title in titles):
        titles = [_loose_title(title) for title in given]
    times = [i for i, title in enumerate(given) if title.strip('%_ ').lower() in _TIMES]
    if TIME not in given and len(times) == 1:
        titles[times[0]] = TIME
    return titles if len(set(titles)) == len(set(given)) else given


def _lines_of(table: TableFile, columns: Sequence[_Column]) -> dict[str, str]:
    """Metadata of a table, with those that stand in its titles."""
    lines = dict(table.lines)
    for column in columns:
        if column.more and column.word:
            what = 'wrench' if column.word.field == 'wrenches' else 'motor'
            lines[f'{what} {column.owner}'] = column.more.removeprefix('motor of ')
    return lines


def _known_title(title: str) -> str:
    """Title with a joint and its quantity divided by a slash as one with a dot."""
    match = _PATH.fullmatch(title)
    return f'{match[1]}.{match[2]}' if match and match[2] in WORDS else title


def _loose_title(title: str) -> str:
    """Title with a joint beside a word for position, velocity or acceleration."""
    if match := _BEHIND.fullmatch(title):
        return f'{match[1]}.{_LOGGERS[match[2].lower()]}'
    match = _BEFORE.fullmatch(title)
    return f'{match[2]}.{_LOGGERS[match[1].lower()]}' if match else title


def _remarks_on(
    given: Sequence[str], columns: Sequence[_Column], used: Sequence[int]
) -> tuple[str, ...]:
    """Remark on titles that are read as others."""
    pairs = [
        (given[place].strip().partition(' [')[0], columns[place].title) for place in used
    ]
    other = [f'{text} for {title}' for text, title in pairs if text != title]
    return (f'Columns are read as {listed(other)}.',) if other else ()


def _split(title: str) -> tuple[str, Word | None]:
    """Joint, motor or link of a column, and what its name says behind it."""
    for count in (1, 3):  # words of a wrench have points between them
        owner, *words = title.rsplit('.', count)
        if owner and (word := WORDS.get('.'.join(words))):
            return owner, word
    return '', None


def _converted(unit: str, is_time: bool, known: Sequence[str]) -> tuple[str, float]:
    """Unit of SI in place of another one, and the factor to it; as it is if there is none."""
    for other, ours, factor in _TIME_UNITS if is_time else _UNITS:
        if unit not in known and unit.replace(other, ours) in known:
            return unit.replace(other, ours), factor
    return unit, 1.0


def _owners_in(columns: Sequence[_Column]) -> dict[str, list[str]]:
    """Whose each quantity is, in the order of the columns.

    All joints are those with positions, all motors those with positions, or else with torques.
    """
    found: dict[str, list[str]] = {what: [] for what in QUANTITIES}
    for column in columns:
        if column.word and not column.word.order:
            owners = found[column.word.field]
            owners += [column.owner] * (column.owner not in owners)
    shared = {
        'joint_names': found['motion'],
        'motor_names': found['motor_position'] or found['motor_torque'],
    }
    return {what: shared.get(QUANTITIES[what].owners, who) for what, who in found.items()}


def _refuse_without_motion(
    columns: Sequence[_Column], joints: Sequence[str], given: Sequence[str], name: str
) -> None:
    """Refuse titles of which none is that of the times, or of a position."""
    titles = [column.title for column in columns]
    if TIME not in titles:
        raise FileError(
            f"{name}: there is no column 'time' [s]; the columns are "
            f'{listed(_with_hint(titles))}.{_numbers_only(titles)}'
            " Lines before the titles of a CSV rename them: '# column THEIRS: time', '# column "
            "THEIRS: JOINT.position'."
        )
    if not joints:
        first = next((title for title in titles if title not in ('', TIME)), 'joint1')
        named = first if first.isidentifier() else 'JOINT'
        joint = next(
            (title for title in titles if title.isidentifier() and title != TIME), 'joint1'
        )
        raise FileError(
            f"{name}: there are no positions; expected columns such as '{joint}.position', with "
            f'the names of the joints; the columns are {listed(given)}. Rename them (commas, '
            'semicolons, tabulators or spaces divide a CSV), or say in a line before them for '
            f"each what it is: '# column {first}: {named}.position', with the name of a joint "
            'of the robot.'
        )


def _refuse_misfits(columns: Sequence[_Column], joints: Sequence[str], name: str) -> None:
    """Refuse columns that are there twice, and derivatives of joints without positions."""
    counts = Counter(
        column.title for column in columns if column.word or column.title == TIME
    )
    if repeated := sorted(title for title, count in counts.items() if count > 1):
        raise FileError(f'{name}: columns {listed(repeated)} stand there more than once.')
    moving = (c.owner for c in columns if c.word and c.word.field == 'motion')
    if stray := [who for who in dict.fromkeys(moving) if who not in joints]:
        raise FileError(
            f'{name}: {listed(stray)} have derivatives, but no position; expected columns such as '
            f"'{stray[0]}.position'."
        )


def _with_hint(titles: Sequence[str]) -> list[str]:
    """Titles; the one that may stand for the times asks whether it does."""
    close = [title for title in titles if did_you_mean(title, (TIME,))]
    close += [title for title in titles if _LIKE_TIME.fullmatch(title)]
    return [
        title + did_you_mean(title, (TIME,), 0.0) if title in close[:1] else title
        for title in titles
    ]


def _numbers_only(titles: Sequence[str]) -> str:
    """Sentence on titles that are numbers; empty for others."""
    if titles and all(re.fullmatch(r'[-+.\deE]*\d[-+.\deE]*', title) for title in titles):
        return ' These are numbers: the line with the names of the columns is missing.'
    return ''


def _rows_of(
    values: Mapping[str, Array], positions: Sequence[str], name: str
) -> tuple[Any, tuple[str, ...]]:
    """Index of the rows that are used, and remarks on the others."""
    times = values[TIME]
    first, remarks = first_known(
        np.column_stack([values[title] for title in positions]), name
    )
    again = 1 + np.flatnonzero(times[1:] == times[:-1])
    for column in values.values():
        now, before = column[again], column[again - 1]
        again = again[(now == before) | (np.isnan(now) & np.isnan(before))]
    again = again[again > first]
    if again.size:
        remarks += (
            'Samples that are there twice, time and all, are used once; the first is at '
            f'{times[again[0]]:.6g} s.',
        )
    if not remarks:
        return slice(None), ()
    is_used = np.arange(len(times)) >= first
    is_used[again] = False
    return is_used, remarks


def _start_in(lines: Mapping[str, str], name: str) -> int:
    """Instant at which the times are zero [ns since 1970]; 0 if it is not said."""
    start = lines.get('start', '0')
    if not (start.isdecimal() and int(start) < 2**63):
        raise FileError(
            f"{name}: 'start' is {start!r}, expected whole nanoseconds since 1970."
        )
    return int(start)


def _wrench(
    link: str,
    values: Array,
    lines: Mapping[str, str],
    name: str,
    expressed_in: str | None,
    acting: str | None,
) -> Wrench:
    """Wrench on a link, expressed and acting as it is asked for, else as the table says."""
    from hodyn_ros.dynamics.wrenches import Wrench

    key = f'wrench {link}'
    said = lines.get(key, 'body on_environment').split()
    if len(said) != 2:
        raise FileError(
            f'{name}: {key!r} is {lines[key]!r}, expected two words such as '
            "'body on_environment': expressed_in and acting."
        )
    return Wrench(link, values, expressed_in or said[0], acting or said[1])
