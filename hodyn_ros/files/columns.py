"""The columns of tables: their names, and the way between them and arrays; see doc/files.rst."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from hodyn_ros.checks import Array, first_true
from hodyn_ros.errors import FileError
from hodyn_ros.files.formats import Format, Wanted
from hodyn_ros.files.quantities import (
    COMPONENTS,
    MOTION,
    QUANTITIES,
    TIME,
    WRENCH,
)
from hodyn_ros.files.samples import LACKING, SOURCES, Samples, leading_unknown
from hodyn_ros.model.provenance import Provenance
from hodyn_ros.names import listed, unit_of

_KNOWN = {name for quantity in QUANTITIES.values() for name in quantity.names}
_MOST_DEFLECTIONS = 3  # orders that are written
_ALL = 1 << 40  # rows
_TITLE = re.compile(r'(.*\S) \[([^\]]*)\](?: (.*))?')
# As loggers call the time, without signs around it; what may stand for it; a quantity of a joint
# as PlotJuggler has it, and as others do, before or behind the joint.
_TIMES = ('t', 'time', 'times', 'timestamp')
_LIKE_TIME = re.compile(r't|.*(time|stamp|secs?$|duration).*', re.IGNORECASE)
_PATH = re.compile(r'(?:.*/)?([^/]+)/(\w+)')
_WORDS = {
    word: MOTION[k]
    for k, words in enumerate(('q pos', 'dq qd vel', 'ddq qdd acc'))
    for word in words.split()
}
_WORDS |= {name: name for name in MOTION[:3]}
_WORD = '|'.join(sorted(_WORDS, key=len, reverse=True))
_BEHIND = re.compile(rf'(?:.*/)?(.+?)[._/ ]({_WORD})', re.IGNORECASE)
_BEFORE = re.compile(rf'(?:.*/)?({_WORD})[._/ ](.+)', re.IGNORECASE)
# Other units in a title, the one that they stand for, and its factor; of times by themselves.
_UNITS: tuple[tuple[str, str, float], ...] = (
    ('deg', 'rad', np.pi / 180.0),
    ('°', 'rad', np.pi / 180.0),
    ('mm', 'm', 1e-3),
)
_UNITS += ('cm', 'm', 1e-2), ('Nm', 'N m', 1.0)
_TIME_UNITS = (('ms', 's', 1e-3), ('us', 's', 1e-6), ('µs', 's', 1e-6), ('ns', 's', 1e-9))


class Metadata(NamedTuple):
    """What a table says beside its columns.

    Attributes
    ----------
    start : int
        Instant at which the times are zero, in nanoseconds since 1970; 0 if not known.
    source : str
        Where the motion comes from, a key of `SOURCES`.
    base_link : str
        Base link of the robot; empty if it is not said.
    wrenches : mapping of str to (str, str)
        `expressed_in` and `acting` of the wrench on each link, see `Wrench`.
    motor_joints : mapping of str to str
        Joint that each motor moves.
    unsaid : (str, str)
        `expressed_in` and `acting` of the wrenches on other links.
    units : mapping of str to str
        Unit of each column by its title; empty where it is not known.
    provenance : Provenance
        The robot that results were computed with.
    """

    start: int = 0
    source: str = 'unknown'
    base_link: str = ''
    wrenches: Mapping[str, tuple[str, str]] = {}
    motor_joints: Mapping[str, str] = {}
    unsaid: tuple[str, str] = ('body', 'on_environment')
    units: Mapping[str, str] = {}
    provenance: Provenance = Provenance()


def parse_metadata(
    lines: Mapping[str, str],
    name: str,
    expressed_in: str | None = None,
    acting: str | None = None,
) -> Metadata:
    """Metadata from keys and values; unknown keys are ignored, choices given here go first.

    Parameters
    ----------
    lines : mapping of str to str
        'start', 'source', 'base_link', 'units' (JSON), 'wrench LINK', 'motor NAME' and the
        lines of `Provenance`; all may be left out.
    name : str
        Of the table, for messages.
    expressed_in, acting : str, optional
        Of all wrenches, instead of what the lines say.

    Returns
    -------
    Metadata
        An unknown source is 'unknown'.

    Raises
    ------
    FileError
        If the start is no whole number of nanoseconds below 2**63, or a wrench is not
        described by two words.
    """
    start = lines.get('start', '0')
    if not (start.isdecimal() and int(start) < 2**63):
        raise FileError(
            f"{name}: 'start' is {start!r}, expected whole nanoseconds since 1970."
        )
    wrenches, motors = {}, {}
    for key, value in lines.items():
        what, _, who = key.partition(' ')
        if what == 'wrench':
            words = value.split()
            if len(words) != 2:
                raise FileError(
                    f'{name}: {key!r} is {value!r}, expected two words such as '
                    "'body on_environment': expressed_in and acting."
                )
            wrenches[who] = expressed_in or words[0], acting or words[1]
        elif what == 'motor':
            motors[who] = value
    source = lines.get('source', 'unknown')
    return Metadata(
        int(start),
        source if source in SOURCES else 'unknown',
        lines.get('base_link', ''),
        wrenches,
        motors,
        (expressed_in or 'body', acting or 'on_environment'),
        json.loads(lines.get('units', '{}')),
        Provenance.from_lines(lines),
    )


class ColumnBlock(NamedTuple):
    """Consecutive columns with all orders of a quantity.

    Attributes
    ----------
    first : int
        Place of its first column among those that are read.
    orders : int
        Number of orders, from the value itself on; 0: the table does not have it.
    width : int
        Columns of each order: joints, motors, or the six components of a wrench.
    """

    first: int
    orders: int
    width: int

    def of(self, values: Array) -> Array:
        """Values (N, orders, width) out of those of all columns.

        Parameters
        ----------
        values : ndarray, shape (N, columns)
            Rows of all columns that are read.

        Returns
        -------
        ndarray, shape (N, orders, width)
        """
        part = values[:, self.first : self.first + self.orders * self.width]
        return part.reshape(len(values), self.orders, self.width)


@dataclass(frozen=True)
class TableColumns:
    """Which columns of a table hold what; blocks count among `columns`.

    Attributes
    ----------
    name : str
        Of the table, for messages.
    columns : tuple of int
        Those that are read, as they are numbered in the table.
    titles : tuple of str
        Of these columns.
    joint_names, motor_names : tuple of str
        The n joints, those with positions, and the m motors.
    blocks : mapping of str to ColumnBlock
        By the names of `QUANTITIES`, of width n or m.
    wrenches : mapping of str to ColumnBlock
        By the link, of width 6.
    stiffness : mapping of str to ColumnBlock
        By the joint, of width 1.
    remarks : tuple of str
        On titles that are read as those of other columns.
    """

    name: str
    columns: tuple[int, ...]
    titles: tuple[str, ...]
    joint_names: tuple[str, ...]
    motor_names: tuple[str, ...]
    blocks: Mapping[str, ColumnBlock]
    wrenches: Mapping[str, ColumnBlock]
    stiffness: Mapping[str, ColumnBlock]
    remarks: tuple[str, ...] = ()

    def begin(self, values: Array) -> int:
        """Count the rows before the first one that has all positions.

        Parameters
        ----------
        values : ndarray, shape (N, columns)
            See `samples`.

        Returns
        -------
        int
            From 0 to N.
        """
        return leading_unknown(self.blocks['motion'].of(values)[:, 0])

    def samples(self, values: Array, metadata: Metadata) -> Samples:
        """Make samples of rows (N, columns).

        Parameters
        ----------
        values : ndarray, shape (N, columns)
            Rows of the columns named by `columns`, in SI units; NaN where a cell is empty.
        metadata : Metadata
            How wrenches are expressed, which joints the motors move, and when the times are
            zero.

        Returns
        -------
        Samples
            With all that there are columns for.

        Raises
        ------
        MotionError
            If a time or position is not finite.
        """
        from hodyn_ros.dynamics.wrenches import Wrench

        arrays: dict[str, Any] = {
            what: block.of(values) for what, block in self.blocks.items() if block.orders
        }
        units = tuple(
            metadata.units.get(f'{name}.position', '') for name in self.joint_names
        )
        return Samples(
            joint_names=self.joint_names,
            times=values[:, 0],
            **arrays,
            motor_names=self.motor_names,
            motor_joints=tuple(
                metadata.motor_joints.get(name, name) for name in self.motor_names
            ),
            wrenches=tuple(
                Wrench(
                    link, block.of(values), *metadata.wrenches.get(link, metadata.unsaid)
                )
                for link, block in self.wrenches.items()
            ),
            stiffness={
                name: block.of(values)[:, :, 0] for name, block in self.stiffness.items()
            },
            name=self.name,
            start=metadata.start,
            source=metadata.source,
            base_link=metadata.base_link,
            joint_units=units if all(units) else (),
            provenance=metadata.provenance,
        )


def find_columns(titles: Sequence[str], name: str) -> TableColumns:
    """Find out what the columns of a table of some name are.

    Refuses a table without time or positions, with a column twice, or with a quantity that is not
    there for all joints.

    Parameters
    ----------
    titles : sequence of str
        Such as 'time', 'joint1.position', 'joint1.effort' and 'tool.wrench.force.x',
        without units, in any order. Others are left out.
    name : str
        Of the table, for messages.

    Returns
    -------
    TableColumns

    Raises
    ------
    FileError
        If the time or all positions are missing, a column is there twice, a quantity is
        there for some joints only, or an order without those below it.
    """
    given = [title.strip() for title in titles]
    titles = _known_titles(given)
    owners = _owners_in(titles, name, given)
    names = {'joint_names': owners['position'], 'motor_names': owners['motor_position']}
    found = _Found(name, owners, [TIME])
    blocks = {
        what: found.block(names[quantity.owners], quantity.names)
        for what, quantity in QUANTITIES.items()
        if quantity.owners in names
    }
    joints, motors = map(tuple, names.values())
    if stray := [who for what in MOTION for who in owners[what] if who not in joints]:
        raise FileError(
            f'{name}: {listed(dict.fromkeys(stray))} have derivatives, but no position; expected '
            f"columns such as '{stray[0]}.position'."
        )
    stiffness = {
        who: found.block([who], QUANTITIES['stiffness'].names)
        for who in owners['stiffness']
    }
    links = dict.fromkeys(who for what in WRENCH for who in owners[what])
    wrenches = {link: found.wrench(link) for link in links}
    columns = tuple(titles.index(title) for title in found.columns)
    parts = blocks, wrenches, stiffness, _remarks(given, titles, found.columns)
    return TableColumns(name, columns, tuple(found.columns), joints, motors, *parts)


def _remarks(
    given: Sequence[str], titles: Sequence[str], used: Sequence[str]
) -> tuple[str, ...]:
    """Remark on titles that are read as others."""
    other = [f'{a} for {b}' for a, b in zip(given, titles) if a != b and b in used]
    return (f'Columns are read as {listed(other)}.',) if other else ()


def _known_titles(titles: Sequence[str]) -> list[str]:
    """Titles with those of loggers in the words of this package; the others as they are."""
    found = [_known_title(title) for title in titles]
    if not any(title.endswith(f'.{MOTION[0]}') for title in found):
        found = [_loose_title(title) for title in titles]
    times = [i for i, title in enumerate(titles) if title.strip('%_ ').lower() in _TIMES]
    if TIME not in titles and len(times) == 1:
        found[times[0]] = TIME
    return found if len(set(found)) == len(found) else list(titles)


def _known_title(title: str) -> str:
    """Title with a joint and its quantity divided by a slash as one with a dot."""
    match = _PATH.fullmatch(title)
    return f'{match[1]}.{match[2]}' if match and match[2] in _KNOWN else title


def _loose_title(title: str) -> str:
    """Title with a joint beside a word for position, velocity or acceleration."""
    if match := _BEHIND.fullmatch(title):
        return f'{match[1]}.{_WORDS[match[2].lower()]}'
    match = _BEFORE.fullmatch(title)
    return f'{match[2]}.{_WORDS[match[1].lower()]}' if match else title


def _owners_in(
    titles: Sequence[str], name: str, given: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    """Joints, motors or links that have a quantity, by the quantity; empty where none has.

    Refuses the titles of a table, which has some name, without time or positions, or with a
    column twice.
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
            + _suggestion(TIME, titles)
            + " Lines before the titles of a CSV rename them: '# column THEIRS: time', '# column "
            "THEIRS: JOINT.position'."
        )
    if not owners['position']:
        others = [title for title in titles if title and title != TIME] or ['joint1']
        words = [title for title in others if title.isidentifier()]
        raise FileError(
            f"{name}: there are no positions; expected columns such as '{(words or ['joint1'])[0]}"
            f".position', with the names of the joints; the columns are {listed(given)}. Rename "
            'them (commas, semicolons, tabulators or spaces divide a CSV), or say in a line '
            f"before them for each what it is: '# column {others[0]}: JOINT.position', with a "
            'joint of the robot for JOINT.'
        )
    if repeated := sorted({title for title in used if titles.count(title) > 1}):
        raise FileError(f'{name}: columns {listed(repeated)} stand there more than once.')
    return owners


@dataclass
class _Found:
    """Owners of the quantities of a table, and the columns that have been taken."""

    name: str
    """Of the table."""
    owners: Mapping[str, Sequence[str]]
    """Joints, motors or links that have a quantity."""
    columns: list[str]
    """Those that are read, block after block."""

    def block(self, names: Sequence[str], quantities: Sequence[str]) -> ColumnBlock:
        """Take the orders of a quantity of all the names, maybe none.

        Parameters
        ----------
        names : sequence of str
            Joints, motors, or the one link or joint that is looked for.
        quantities : sequence of str
            Names of the orders, from the value itself on.

        Returns
        -------
        ColumnBlock
            With the orders that are there; its columns are appended to `columns`, order by
            order.

        Raises
        ------
        FileError
            If an order is there for some of the names only, or without the one below it.
        """
        first, orders = len(self.columns), 0
        for order, quantity in enumerate(quantities):
            have = [who for who in self.owners[quantity] if who in names]
            if not have:
                continue
            if missing := [who for who in names if who not in have]:
                raise FileError(
                    f"{self.name}: '{quantity}' is there for {listed(have)}, but not for "
                    f'{listed(missing)}; expected it for all or for none.'
                )
            if order != orders:
                raise FileError(
                    f"{self.name}: '{quantity}' is there without '{quantities[orders]}' for "
                    f'{listed(have)}; derivatives need the orders below them, and wrenches all '
                    'six components.'
                )
            orders += 1
            self.columns.extend(f'{who}.{quantity}' for who in names)
        return ColumnBlock(first, orders, len(names))

    def wrench(self, link: str) -> ColumnBlock:
        """Take the orders of a wrench, with six components each.

        Parameters
        ----------
        link : str
            Link that the wrench acts on.

        Returns
        -------
        ColumnBlock
            Of width 6; the components of an order are torque and force as in `WRENCH`.

        Raises
        ------
        FileError
            If an order has fewer than six components.
        """
        found = self.block([link], WRENCH)
        if found.orders % 6:
            raise FileError(
                f'{self.name}: there is no {link}.{WRENCH[found.orders]}; expected force.x to '
                'force.z and torque.x to torque.z.'
            )
        return ColumnBlock(found.first, found.orders // 6, 6)


def columns_of(results: Samples) -> tuple[list[str], list[Array]]:
    """Titles and columns, each of shape (N,), of the table of some results.

    Parameters
    ----------
    results : Samples
        Of N samples.

    Returns
    -------
    titles : list of str
        'time', then the orders of each quantity for all joints, without units.
    columns : list of ndarray, shape (N,)
        In SI units.
    """
    titles, columns = [TIME], [results.times]

    def add(values: Array, names: Sequence[str], quantities: Sequence[str]) -> None:
        orders = min(values.shape[1], len(quantities))
        titles.extend(f'{name}.{what}' for what in quantities[:orders] for name in names)
        columns.extend(np.ascontiguousarray(values[:, :orders].reshape(len(values), -1).T))

    arrays = results.arrays()
    for what, quantity in QUANTITIES.items():
        if what == 'wrenches':
            for wrench in results.wrenches:
                values = np.asarray(wrench.values)
                add(values.reshape(len(values), -1, 1), [wrench.link], quantity.names)
        elif what in arrays:
            most = _MOST_DEFLECTIONS if what == 'deflection' else None
            add(arrays[what], getattr(results, quantity.owners), quantity.names[:most])
    return titles, columns


def metadata_of(results: Samples) -> dict[str, str]:
    """Find what belongs beside the columns of some results; see `parse_metadata`.

    Parameters
    ----------
    results : Samples

    Returns
    -------
    dict of str to str
        With the unit of each column as JSON under 'units'. What is not known is left out.
    """
    lines = {name: str(getattr(results, name)) for name in ('start', 'source', 'base_link')}
    lines |= {f'wrench {w.link}': f'{w.expressed_in} {w.acting}' for w in results.wrenches}
    lines |= {
        f'motor {m}': joint for m, joint in zip(results.motor_names, results.motor_joints)
    }
    lines |= results.provenance.lines()
    joints = dict(zip(results.joint_names, results.joint_units))
    motors = {m: joints.get(j) for m, j in zip(results.motor_names, results.motor_joints)}
    units = {}
    for title in columns_of(results)[0]:
        entity, quantity = _split(title)
        owner = (motors if quantity.startswith('motor_') else joints).get(entity)
        units[title] = _unit(quantity, owner)  # empty where it is not known
    lines['units'] = json.dumps(units, ensure_ascii=False)
    return {key: value for key, value in lines.items() if value not in ('', '0')}


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


def text_titles(titles: Sequence[str], lines: Mapping[str, str]) -> list[str]:
    """Titles of a table in text, which say all that its numbers mean.

    Units, how wrenches are expressed, and which joints the motors move.

    Parameters
    ----------
    titles : sequence of str
        As `columns_of` makes them.
    lines : mapping of str to str
        As `metadata_of` makes them.

    Returns
    -------
    list of str
        Such as 'joint1.effort [N m]'; a title without a unit stays as it is.
    """
    units, found = json.loads(lines['units']), []
    for title in titles:
        entity, quantity = _split(title)
        unit, more = units[title], ''
        if quantity in WRENCH:
            more = f' {lines[f"wrench {entity}"]}'
        elif quantity == 'motor_position' and lines[f'motor {entity}'] != entity:
            more = f' motor of {lines[f"motor {entity}"]}'
        found.append(f'{title} [{unit}]{more}' if unit or more else title)
    return found


def read_titles(
    texts: Sequence[str], name: str
) -> tuple[list[str], dict[str, str], list[float]]:
    """Columns, lines of metadata and factors out of the titles that `text_titles` makes.

    Degrees, milliseconds and the like are converted, a unit of another kind is refused. Other
    titles stay as they are.

    Parameters
    ----------
    texts : sequence of str
        First line of a table in text.
    name : str
        Of the table, for messages.

    Returns
    -------
    titles : list of str
        Without units.
    lines : dict of str to str
        Units of the columns as JSON, wrenches and motors, for `parse_metadata`.
    factors : list of float
        From the values of each column to SI units.

    Raises
    ------
    FileError
        If a column is in a unit of something else.
    """
    titles, units, lines = [], dict[str, str](), dict[str, str]()
    factors = [1.0] * len(texts)
    for place, text in enumerate(map(str.strip, texts)):
        match = _TITLE.fullmatch(text)
        title = _known_titles([match[1]])[0] if match else text
        entity, quantity = _split(title) if match else ('', '')
        known = [unit for position in ('rad', 'm') if (unit := _unit(quantity, position))]
        if match is None or not known:
            titles.append(text)
            units[text] = ''
            continue
        _, unit, more = match.groups()
        unit, factors[place] = _converted(unit, quantity, known)
        if unit not in known and unit:
            raise FileError(
                f'{name}: column {title!r} is in [{unit}], expected '
                f'[{"] or [".join(dict.fromkeys(known))}]; convert its values.'
            )
        titles.append(title)
        units[title] = unit
        if more and quantity in WRENCH:
            lines[f'wrench {entity}'] = more
        elif more:
            lines[f'motor {entity}'] = more.removeprefix('motor of ')
    return titles, {'units': json.dumps(units, ensure_ascii=False), **lines}, factors


def _converted(unit: str, quantity: str, known: Sequence[str]) -> tuple[str, float]:
    """Unit of SI in place of another one, and the factor to it; as it is if there is none."""
    for other, ours, factor in _TIME_UNITS if quantity == TIME else _UNITS:
        if unit not in known and unit.replace(other, ours) in known:
            return unit.replace(other, ours), factor
    return unit, 1.0


def refuse_not_increasing(samples: Samples) -> None:
    """Refuse times that do not increase strictly.

    Parameters
    ----------
    samples : Samples
        Of one motion.

    Raises
    ------
    FileError
        If a time is not larger than the one before it; the message names the sample.
    """
    times = samples.times
    if (place := first_true(times[1:] <= times[:-1])) is not None:
        row = place[0] + 1
        raise FileError(
            f'{samples.name}: times must increase, but sample {row} at {float(times[row])!r} s '
            f'comes after {float(times[row - 1])!r} s; sort the samples and leave out repeated '
            'ones.'
        )


def _suggestion(wanted: str, titles: Sequence[str]) -> str:
    """End of the message about a column that is missing: what may be meant instead, or nothing."""
    if titles and all(re.fullmatch(r'[-+.\deE]*\d[-+.\deE]*', title) for title in titles):
        return ' These are numbers: the line with the names of the columns is missing.'
    close = get_close_matches(wanted, titles, n=1)
    if wanted == TIME:
        close += [title for title in titles if _LIKE_TIME.fullmatch(title)][:1]
    return f' Did you mean {close[0]!r} to be {wanted!r}?' if close else ''


class Table(Protocol):
    """A table whose head is read at once, and its rows when asked for.

    Attributes
    ----------
    titles : list of str
        Of all columns, without units.
    lines : dict of str to str
        Metadata, see `parse_metadata`.
    """

    titles: list[str]
    lines: dict[str, str]
    """Metadata."""

    def blocks(self, columns: Sequence[int], chunk: int) -> Iterator[Array]:
        """Values of some columns, shape (up to chunk, columns).

        Parameters
        ----------
        columns : sequence of int
            Places among `titles`.
        chunk : int
            Largest number of rows of a block.

        Yields
        ------
        ndarray, shape (up to chunk, columns)
            NaN where a cell is empty.

        Raises
        ------
        FileError
            If a cell is no number, or the file is damaged.
        """


class _Rows:
    """Rows of a table that are samples: from the first one with all positions on, each once.

    Parameters
    ----------
    columns : TableColumns

    Attributes
    ----------
    remarks : tuple of str
        What is to be said of the rows that were taken last.
    skipped : int
        Rows that were left out at the beginning of the same.
    last : ndarray of shape (columns,), or None
        The row that was taken last.
    """

    def __init__(self, columns: TableColumns) -> None:
        self._columns = columns
        self._has_repeats = False
        self.remarks, self.skipped = columns.remarks, 0
        self.last: Array | None = None

    def kept(self, values: Array, first: int) -> Array:
        """Those of a block that are used.

        Parameters
        ----------
        values : ndarray, shape (N, columns)
            The next rows.
        first : int
            Number of rows before them.

        Returns
        -------
        ndarray, shape (up to N, columns)
        """
        self.skipped = 0
        if self.last is None:
            self.skipped = self._columns.begin(values)
            values = values[self.skipped :]
            if not len(values):
                return values
            self.remarks = self._columns.remarks
            if first + self.skipped:
                self.remarks += (LACKING.format(first + self.skipped),)
        else:
            self.remarks = ()
        before = values[:1] * np.nan if self.last is None else self.last[None]
        pairs = np.concatenate([before, values])
        later, earlier = pairs[1:], pairs[:-1]
        same = (later == earlier) | (np.isnan(later) & np.isnan(earlier))
        same &= np.isfinite(earlier[:, :1])
        is_repeat = same.all(axis=1)
        self.last = values[-1]
        if not is_repeat.any():
            return values
        if not self._has_repeats:
            self._has_repeats = True
            self.remarks += (
                'Samples that are there twice, time and all, are used once; the first is at '
                f'{values[is_repeat.argmax(), 0]:.6g} s.',
            )
        return np.asarray(values[~is_repeat])


@dataclass(frozen=True)
class TableFormat(Format):
    """Tables with a column for each quantity of each joint; see doc/files.rst."""

    suffixes: tuple[str, ...]
    table: Callable[[Path, Sequence[str] | None], Table]
    """Opens a file, with joint names for those that have none."""
    begin: Callable[[Path, Samples], None]
    """Writes a file."""

    def motions(self, path: Path, wanted: Wanted) -> Iterator[Samples]:
        """Read the motion of a table.

        Parameters
        ----------
        path : pathlib.Path
            The table.
        wanted : Wanted
            Joint names for tables without them, and how all wrenches are expressed.

        Yields
        ------
        Samples
            One, if there is any row.

        Raises
        ------
        FileError
            If the columns or the metadata make no motion, or a row cannot be read.
        """
        table = self.table(path, wanted.joint_names)
        columns = find_columns(table.titles, str(path))
        metadata = parse_metadata(
            table.lines, str(path), wanted.expressed_in, wanted.acting
        )
        blocks = list(table.blocks(columns.columns, _ALL))
        if not blocks:
            return
        values = np.concatenate(blocks)
        rows = _Rows(columns)
        kept = rows.kept(values, 0)
        if not len(kept):
            raise FileError(
                f'{path}: none of {len(values)} samples has the positions of all joints.'
            )
        samples = columns.samples(kept, metadata)
        yield replace(samples, remarks=(*rows.remarks, *samples.remarks))

    def write(self, path: Path, results: Samples, storage: str) -> None:
        """Write a table.

        Parameters
        ----------
        path : pathlib.Path
            File that is written.
        results : Samples
        storage : str
            Of bags; not used.
        """
        self.begin(path, results)


def side_file(path: Path) -> Path:
    """File beside a table in text that says when it begins and where it comes from.

    Parameters
    ----------
    path : pathlib.Path
        Of the table.

    Returns
    -------
    pathlib.Path
        The same name with .json behind it.
    """
    return path.with_name(f'{path.name}.json')
