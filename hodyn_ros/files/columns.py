"""The columns of tables: their titles, and the way between them and samples; see doc/files.rst."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from hodyn_ros.checks import Array
from hodyn_ros.errors import FileError
from hodyn_ros.files.quantities import COMPONENTS, MOTION, QUANTITIES, TIME, WRENCH
from hodyn_ros.files.samples import LACKING, SOURCES, Samples, leading_unknown
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.names import listed, unit_of

_KNOWN = {name for quantity in QUANTITIES.values() for name in quantity.names}
_TITLE = re.compile(r'(.*\S) \[([^\]]*)\](?: (.*))?')
# As loggers call the time, without signs around it; what may stand for it; a quantity of a joint
# as PlotJuggler has it, and as others do, before or behind the joint.
_TIMES = ('t', 'time', 'times', 'timestamp')
_LIKE_TIME = re.compile(r't|.*(time|stamp|secs?$|duration).*', re.IGNORECASE)
_PATH = re.compile(r'(?:.*/)?([^/]+)/(\w+)')
_WORDS = {
    word: MOTION[k]
    for k, words in enumerate(
        ('position q pos', 'velocity dq qd vel', 'acceleration ddq qdd acc')
    )
    for word in words.split()
}
_WORD = '|'.join(sorted(_WORDS, key=len, reverse=True))
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
    from hodyn_ros.dynamics.wrenches import Wrench

    titles, factors, lines, units = _in_our_words(table, name)
    owners = _owners_in(titles, table.titles, name)
    joints = owners['position']
    motors = owners['motor_position'] or owners['motor_torque']
    names = {'joint_names': joints, 'motor_names': motors}
    groups = {
        what: _orders(titles, names[quantity.owners], quantity.names, name)
        for what, quantity in QUANTITIES.items()
        if quantity.owners in names
    }
    if stray := [who for what in MOTION for who in owners[what] if who not in joints]:
        raise FileError(
            f'{name}: {listed(dict.fromkeys(stray))} have derivatives, but no position; expected '
            f"columns such as '{stray[0]}.position'."
        )
    links = dict.fromkeys(who for what in WRENCH for who in owners[what])
    loads = {link: _orders(titles, [link], WRENCH, name, width=6) for link in links}
    soft = {
        who: _orders(titles, [who], QUANTITIES['stiffness'].names, name)
        for who in owners['stiffness']
    }
    blocks = *groups.values(), *loads.values(), *soft.values()
    used = [TIME, *(title for orders in blocks for order in orders for title in order)]
    places = [titles.index(title) for title in used]
    values = {
        title: column * factors[place] if factors[place] != 1.0 else column
        for title, place, column in zip(used, places, table.columns(places))
    }
    rows, left_out = _rows_of(values, groups['motion'][0], name)
    times = values[TIME][rows]

    def block(orders: Sequence[Sequence[str]]) -> Array:
        """Values (N, orders, width) of columns, which are then forgotten."""
        found = np.empty((len(times), len(orders), len(orders[0])))
        for k, order in enumerate(orders):
            for j, title in enumerate(order):
                found[:, k, j] = values.pop(title)[rows]
        return found

    arrays: dict[str, Any] = {what: block(item) for what, item in groups.items() if item}
    joint_units = tuple(units.get(f'{joint}.position', '') for joint in joints)
    said = _said_of_wrenches(lines, name)
    return Samples(
        joint_names=tuple(joints),
        times=times,
        **arrays,
        motor_names=tuple(motors),
        motor_joints=tuple(lines.get(f'motor {motor}', motor) for motor in motors),
        wrenches=tuple(
            Wrench(link, block(orders), expressed_in or how[0], acting or how[1])
            for link, orders in loads.items()
            for how in [said.get(link, ('body', 'on_environment'))]
        ),
        stiffness={who: block(orders)[:, :, 0] for who, orders in soft.items()},
        name=name,
        start=_start_in(lines, name),
        source=lines['source'] if lines.get('source') in SOURCES else 'unknown',
        base_link=lines.get('base_link', ''),
        joint_units=joint_units if all(joint_units) else (),
        provenance=Provenance.from_lines(lines),
        remarks=(*_remarks_on(table.titles, titles, used), *left_out),
    )


def table_of(samples: Samples) -> tuple[dict[str, Array], dict[str, str]]:
    """Columns of the table of some samples, and what belongs beside them.

    Parameters
    ----------
    samples : Samples
        Of N samples.

    Returns
    -------
    columns : dict of str to ndarray, shape (N,)
        By the titles without units, in SI units: 'time', then the orders of each quantity for all
        joints.
    lines : dict of str to str
        As `TableFile` has them, with all units. What is not known is left out.
    """
    columns = {TIME: samples.times}

    def add(values: Array, owners: Sequence[str], names: Sequence[str]) -> None:
        titles = [f'{who}.{what}' for what in names[: values.shape[1]] for who in owners]
        flat = values[:, : len(names)].reshape(len(values), -1)
        columns.update(zip(titles, np.ascontiguousarray(flat.T)))

    arrays = samples.arrays()
    for what, quantity in QUANTITIES.items():
        if what in arrays:
            add(arrays[what], getattr(samples, quantity.owners), quantity.names)
        elif what == 'wrenches':
            for wrench in samples.wrenches:
                values = np.asarray(wrench.values)
                add(values.reshape(len(values), -1, 1), [wrench.link], quantity.names)
        elif what == 'stiffness':
            for joint, series in samples.stiffness.items():
                add(series[:, :, None], [joint], quantity.names)
    lines = {name: str(getattr(samples, name)) for name in ('start', 'source', 'base_link')}
    lines |= {f'wrench {w.link}': f'{w.expressed_in} {w.acting}' for w in samples.wrenches}
    lines |= {f'motor {m}': j for m, j in zip(samples.motor_names, samples.motor_joints)}
    lines |= samples.provenance.lines()
    joints = dict(zip(samples.joint_names, samples.joint_units))
    motors = {m: joints.get(j) for m, j in zip(samples.motor_names, samples.motor_joints)}
    units = {}
    for title in columns:
        who, what = _split(title)
        owner = (motors if what.startswith('motor_') else joints).get(who)
        units[title] = _unit(what, owner)  # empty where it is not known
    lines['units'] = json.dumps(units, ensure_ascii=False)
    return columns, {
        key: value for key, value in lines.items() if value not in ('', '0', 'unknown')
    }


def titles_as_text(lines: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Titles that say all that the numbers of a table mean, and what else belongs to it.

    Parameters
    ----------
    lines : mapping of str to str
        As `table_of` makes them.

    Returns
    -------
    titles : list of str
        With units, how wrenches are expressed and which joints the motors move, such as
        'joint1.effort [N m]'; a title without a unit stays as it is.
    lines : dict of str to str
        The others.
    """
    rest, found = dict(lines), []
    for title, unit in json.loads(rest.pop('units')).items():
        (who, what), more = _split(title), ''
        if what in WRENCH:
            more = f' {lines[f"wrench {who}"]}'
        elif what in ('motor_position', 'motor_torque') and lines[f'motor {who}'] != who:
            more = f' motor of {lines[f"motor {who}"]}'
        found.append(f'{title} [{unit}]{more}' if unit or more else title)
    kept = {k: v for k, v in rest.items() if k.partition(' ')[0] not in ('wrench', 'motor')}
    return found, kept


def _in_our_words(
    table: TableFile, name: str
) -> tuple[list[str], list[float], dict[str, str], dict[str, str]]:
    """Titles without units, factors to SI units, metadata, and the unit of each column."""
    lines = dict(table.lines)
    units: dict[str, str] = json.loads(lines.pop('units', '{}'))
    names = {key[7:]: ours for key, ours in lines.items() if key.startswith('column ')}
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
    factors = [1.0] * len(titles)
    for place, (title, match) in enumerate(zip(titles, matches)):
        who, what = _split(title)
        known = [unit for position in ('rad', 'm') if (unit := _unit(what, position))]
        if match is None or not known:
            continue
        _, unit, more = match.groups()
        units[title], factors[place] = _converted(unit, what, known)
        if units[title] not in ('', *known):
            raise FileError(
                f'{name}: column {title!r} is in [{unit}], expected '
                f'[{"] or [".join(dict.fromkeys(known))}]; convert its values.'
            )
        if more and what in WRENCH:
            lines[f'wrench {who}'] = more
        elif more:
            lines[f'motor {who}'] = more.removeprefix('motor of ')
    return titles, factors, lines, units


def _known_title(title: str) -> str:
    """Title with a joint and its quantity divided by a slash as one with a dot."""
    match = _PATH.fullmatch(title)
    return f'{match[1]}.{match[2]}' if match and match[2] in _KNOWN else title


def _remarks_on(
    given: Sequence[str], titles: Sequence[str], used: Sequence[str]
) -> tuple[str, ...]:
    """Remark on titles that are read as others."""
    pairs = [(text.strip().partition(' [')[0], title) for text, title in zip(given, titles)]
    other = [
        f'{text} for {title}' for text, title in pairs if text != title and title in used
    ]
    return (f'Columns are read as {listed(other)}.',) if other else ()


def _split(title: str) -> tuple[str, str]:
    """Joint, motor or link, and quantity, of a column."""
    entity, *words = title.rsplit('.', 3 if title.endswith(COMPONENTS) else 1)
    return (entity, '.'.join(words)) if words else ('', title)


def _unit(quantity: str, position: str | None) -> str:
    """Unit of a quantity of a joint whose position has a unit; empty if it is not known."""
    if quantity == TIME:
        return 's'
    if quantity in WRENCH:
        order, component = divmod(WRENCH.index(quantity), len(COMPONENTS))
        return unit_of('N m', component >= 3, order)
    for names, unit, _ in QUANTITIES.values():
        if quantity in names and position:
            return unit_of(unit, position == 'm', names.index(quantity))
    return ''


def _converted(unit: str, quantity: str, known: Sequence[str]) -> tuple[str, float]:
    """Unit of SI in place of another one, and the factor to it; as it is if there is none."""
    for other, ours, factor in _TIME_UNITS if quantity == TIME else _UNITS:
        if unit not in known and unit.replace(other, ours) in known:
            return unit.replace(other, ours), factor
    return unit, 1.0


def _loose_title(title: str) -> str:
    """Title with a joint beside a word for position, velocity or acceleration."""
    if match := _BEHIND.fullmatch(title):
        return f'{match[1]}.{_WORDS[match[2].lower()]}'
    match = _BEFORE.fullmatch(title)
    return f'{match[2]}.{_WORDS[match[1].lower()]}' if match else title


def _owners_in(
    titles: Sequence[str], given: Sequence[str], name: str
) -> Mapping[str, Sequence[str]]:
    """Joints, motors or links that have a quantity, by the quantity; empty where none has.

    Refuses titles without time or positions, or with a column twice.
    """
    owners, used = defaultdict[str, list[str]](list), [TIME]
    for title in titles:
        entity, quantity = _split(title)
        if entity and quantity in _KNOWN:
            owners[quantity].append(entity)
            used.append(title)
    if TIME not in titles:
        raise FileError(
            f"{name}: there is no column 'time' [s]; the columns are {listed(titles)}."
            + _suggestion(titles)
            + " Lines before the titles of a CSV rename them: '# column THEIRS: time', '# column "
            "THEIRS: JOINT.position'."
        )
    if not owners['position']:
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
    if repeated := sorted({title for title in used if titles.count(title) > 1}):
        raise FileError(f'{name}: columns {listed(repeated)} stand there more than once.')
    return owners


def _suggestion(titles: Sequence[str]) -> str:
    """End of the message about times that are missing: what may be meant instead, or nothing."""
    if titles and all(re.fullmatch(r'[-+.\deE]*\d[-+.\deE]*', title) for title in titles):
        return ' These are numbers: the line with the names of the columns is missing.'
    close = get_close_matches(TIME, titles, n=1)
    close += [title for title in titles if _LIKE_TIME.fullmatch(title)][:1]
    return f' Did you mean {close[0]!r} to be {TIME!r}?' if close else ''


def _orders(
    titles: Sequence[str],
    owners: Sequence[str],
    quantities: Sequence[str],
    name: str,
    width: int = 1,
) -> list[list[str]]:
    """Titles of the orders of a quantity that are there, each of all owners; maybe none.

    Refuses an order without the one below it, or of some owners or components only.
    """
    found: list[list[str]] = []
    for first in range(0, len(quantities), width):
        names = quantities[first : first + width]
        wanted = [f'{owner}.{what}' for owner in owners for what in names]
        missing = [title for title in wanted if title not in titles]
        if len(missing) == len(wanted):
            continue
        if missing:
            have = next(title for title in wanted if title not in missing)
            raise FileError(
                f'{name}: there is {have}, but not {listed(missing)}; expected it for all joints '
                'or for none, and wrenches with force.x to force.z and torque.x to torque.z.'
            )
        if first != width * len(found):
            raise FileError(
                f'{name}: there is {wanted[0]} without {owners[0]}.'
                f'{quantities[width * len(found)]}; derivatives need the orders below them.'
            )
        found.append(wanted)
    return found


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


def _said_of_wrenches(lines: Mapping[str, str], name: str) -> dict[str, list[str]]:
    """How wrenches are expressed and on what they act, by the link, where it is said."""
    found = {}
    for key, value in lines.items():
        what, _, link = key.partition(' ')
        if what != 'wrench':
            continue
        found[link] = value.split()
        if len(found[link]) != 2:
            raise FileError(
                f"{name}: {key!r} is {value!r}, expected two words such as 'body "
                "on_environment': expressed_in and acting."
            )
    return found
