"""The columns of tables: their titles, and the way between them and samples; see doc/files.rst."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.errors import FileError
from hodyn_ros.files.quantities import MOTION, QUANTITIES, TIME, WORDS, FileQuantity, Word
from hodyn_ros.files.samples import LACKING, SOURCES, Samples, leading_unknown
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.names import listed

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
    _refuse_unusable(columns, owners, table.titles, name)
    places = {column.title: place for place, column in enumerate(columns)}
    blocks = list(_blocks_in(places, owners, name))
    used = [
        places[TIME],
        *(places[title] for _, _, orders in blocks for title in orders.flat),
    ]
    values = {
        columns[place].title: found
        if columns[place].factor == 1.0
        else columns[place].factor * found
        for place, found in zip(used, table.columns(used))
    }
    rows, left_out = _rows_of(values, blocks[0][2][0], name)
    fields: dict[str, Any] = {'times': values[TIME][rows], 'wrenches': {}, 'stiffness': {}}
    for what, group, orders in blocks:
        array = np.empty((len(fields['times']), *orders.shape))
        for (k, j), title in np.ndenumerate(orders):
            array[:, k, j] = values.pop(title)[rows]  # which is forgotten then
        if QUANTITIES[what].owners:
            fields[what] = array
        else:
            fields[what][group[0]] = array
    lines = _lines_of(table, columns)
    joint_units = tuple(
        columns[places[f'{who}.{MOTION[0]}']].unit for who in owners['motion']
    )
    motors = tuple(owners['motor_position'])
    fields['wrenches'] = tuple(
        _wrench(link, array, lines, name, expressed_in, acting)
        for link, array in fields['wrenches'].items()
    )
    fields['stiffness'] = {
        who: array[:, :, 0] for who, array in fields['stiffness'].items()
    }
    return Samples(
        joint_names=tuple(owners['motion']),
        **fields,
        motor_names=motors,
        motor_joints=tuple(lines.get(f'motor {motor}', motor) for motor in motors),
        name=name,
        start=_start_in(lines, name),
        source=lines['source'] if lines.get('source') in SOURCES else 'unknown',
        base_link=lines.get('base_link', ''),
        joint_units=joint_units if all(joint_units) else (),
        provenance=Provenance.from_lines(lines),
        remarks=(
            *_remarks_on(table.titles, [columns[place].title for place in used]),
            *left_out,
        ),
    )


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
    """WrittenTable of some samples.

    Parameters
    ----------
    samples : Samples
        Of N samples.

    Returns
    -------
    WrittenTable
    """
    units = dict(zip(samples.joint_names, samples.joint_units))
    joints = dict(zip(samples.motor_names, samples.motor_joints))
    how = {
        wrench.link: f'{wrench.expressed_in} {wrench.acting}' for wrench in samples.wrenches
    }
    columns, titles, known = {TIME: samples.times}, [f'{TIME} [s]'], {TIME: 's'}
    for quantity, owners, values in _blocks_of(samples):
        of_motors, is_wrench = (
            quantity.owners == 'motor_names',
            len(quantity.components) > 1,
        )
        for k, name in enumerate(quantity.names[: values.shape[1]]):
            for j, (owner, component) in enumerate(product(owners, quantity.components)):
                title, joint = f'{owner}.{name}{component}', owner
                columns[title], more = np.ascontiguousarray(values[:, k, j]), ''
                if is_wrench:
                    more = f' {how[owner]}'
                elif of_motors and (joint := joints[owner]) != owner:
                    more = f' motor of {joint}'
                unit = ''
                if is_wrench or joint in units:
                    unit = quantity.unit_of(k, component, units.get(joint) == 'm')
                known[title] = unit
                titles.append(f'{title} [{unit}]{more}' if unit or more else title)
    lines = {name: str(getattr(samples, name)) for name in ('start', 'source', 'base_link')}
    lines = {
        key: value for key, value in lines.items() if value not in ('', '0', 'unknown')
    }
    said = {f'wrench {link}': text for link, text in how.items()}
    said |= {f'motor {motor}': joint for motor, joint in joints.items()}
    said['units'] = json.dumps(known, ensure_ascii=False)
    return WrittenTable(columns, titles, lines | samples.provenance.lines(), said)


def _blocks_of(samples: Samples) -> Iterator[tuple[FileQuantity, Sequence[str], Array]]:
    """Quantities that there are, whose they are, and values (N, orders, owners or components)."""
    single: dict[str, list[tuple[str, Array]]] = {
        'wrenches': [
            (wrench.link, np.asarray(wrench.values)) for wrench in samples.wrenches
        ],
        'stiffness': [
            (who, series[:, :, None]) for who, series in samples.stiffness.items()
        ],
    }
    arrays = samples.arrays()
    for what, quantity in QUANTITIES.items():
        if what in arrays:
            yield quantity, getattr(samples, quantity.owners), arrays[what]
        for owner, values in single.get(what, ()):
            yield quantity, [owner], values


def _blocks_in(
    titles: Container[str], owners: Mapping[str, Sequence[str]], name: str
) -> Iterator[tuple[str, Sequence[str], Any]]:
    """Quantities that there are, whose they are, and titles (orders, owners or components)."""
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
    units: dict[str, str] = json.loads(table.lines.get('units', '{}'))
    found = []
    for title, unit, more in _translated(table):
        owner, word = _split(title)
        known = ['s'] if title == TIME else []
        if word:
            known = [word.unit(is_linear) for is_linear in (False, True)]
        if not known or unit is None:
            found.append(_Column(title, owner, word, units.get(title, '')))
            continue
        unit, factor = _converted(unit, title == TIME, known)
        if unit not in ('', *known):
            raise FileError(
                f'{name}: column {title!r} is in [{unit}], expected '
                f'[{"] or [".join(dict.fromkeys(known))}]; convert its values.'
            )
        found.append(_Column(title, owner, word, unit, factor, more))
    return found


def _translated(table: TableFile) -> list[tuple[str, str | None, str]]:
    """Titles in our words, their units (None: without) and what stands behind these."""
    names = {
        key[7:]: ours for key, ours in table.lines.items() if key.startswith('column ')
    }
    given = [names.get(text.strip(), text).strip() for text in table.titles]
    matches = [_TITLE.fullmatch(text) for text in given]
    bare = [match[1] if match else text for match, text in zip(matches, given)]
    titles = [_known_title(title) for title in bare]
    if not any(title.endswith(f'.{MOTION[0]}') for title in titles):
        titles = [_loose_title(title) for title in bare]
    times = [i for i, title in enumerate(bare) if title.strip('%_ ').lower() in _TIMES]
    if TIME not in bare and len(times) == 1:
        titles[times[0]] = TIME
    if len(set(titles)) < len(titles):
        titles = bare
    said = [(match[2], match[3] or '') if match else (None, '') for match in matches]
    return [(title, *item) for title, item in zip(titles, said)]


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


def _remarks_on(given: Sequence[str], titles: Sequence[str]) -> tuple[str, ...]:
    """Remark on titles that are read as others."""
    pairs = ((text.strip().partition(' [')[0], title) for text, title in zip(given, titles))
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


def _refuse_unusable(
    columns: Sequence[_Column],
    owners: Mapping[str, Sequence[str]],
    given: Sequence[str],
    name: str,
) -> None:
    """Refuse titles without time or positions, and a column that stands there twice."""
    titles = [column.title for column in columns]
    if TIME not in titles:
        raise FileError(
            f"{name}: there is no column 'time' [s]; the columns are {listed(titles)}."
            + _suggestion(titles)
            + " Lines before the titles of a CSV rename them: '# column THEIRS: time', '# column "
            "THEIRS: JOINT.position'."
        )
    if not owners['motion']:
        others = [title for title in titles if title and title != TIME] or ['joint1']
        words = [title for title in others if title.isidentifier()] or ['joint1']
        joint = others[0] if others[0].isidentifier() else 'JOINT'
        raise FileError(
            f"{name}: there are no positions; expected columns such as '{words[0]}.position', "
            f'with the names of the joints; the columns are {listed(given)}. Rename them (commas, '
            'semicolons, tabulators or spaces divide a CSV), or say in a line before them for '
            f"each what it is: '# column {others[0]}: {joint}.position', with the name of a joint "
            'of the robot.'
        )
    used = {column.title for column in columns if column.word} | {TIME}
    if repeated := sorted(title for title in used if titles.count(title) > 1):
        raise FileError(f'{name}: columns {listed(repeated)} stand there more than once.')
    moving = (c.owner for c in columns if c.word and c.word.field == 'motion')
    if stray := [who for who in dict.fromkeys(moving) if who not in owners['motion']]:
        raise FileError(
            f'{name}: {listed(stray)} have derivatives, but no position; expected columns such as '
            f"'{stray[0]}.position'."
        )


def _suggestion(titles: Sequence[str]) -> str:
    """End of the message about times that are missing: what may be meant instead, or nothing."""
    if titles and all(re.fullmatch(r'[-+.\deE]*\d[-+.\deE]*', title) for title in titles):
        return ' These are numbers: the line with the names of the columns is missing.'
    close = get_close_matches(TIME, titles, n=1)
    close += [title for title in titles if _LIKE_TIME.fullmatch(title)][:1]
    return f' Did you mean {close[0]!r} to be {TIME!r}?' if close else ''


def _rows_of(
    values: Mapping[str, Array], positions: Sequence[str], name: str
) -> tuple[Any, tuple[str, ...]]:
    """Index of the rows that are used, and remarks on the others."""
    times = values[TIME]
    early = leading_unknown(np.column_stack([values[title] for title in positions]))
    if early == len(times) > 0:
        raise FileError(f'{name}: none of {early} samples has the positions of all joints.')
    remarks: tuple[str, ...] = (LACKING.format(early),) if early else ()
    again = 1 + np.flatnonzero(times[1:] == times[:-1])
    for column in values.values():
        now, before = column[again], column[again - 1]
        again = again[(now == before) | (np.isnan(now) & np.isnan(before))]
    again = again[again > early]
    if again.size:
        remarks += (
            'Samples that are there twice, time and all, are used once; the first is at '
            f'{times[again[0]]:.6g} s.',
        )
    if not remarks:
        return slice(None), ()
    is_used = np.arange(len(times)) >= early
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
