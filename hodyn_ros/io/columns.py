"""The columns of tables: their names, and the way between them and arrays.

`time`, then `<joint>.position`, `<joint>.velocity` and so on; see doc/files.rst. A table may hold
further columns, which are not read, and the known ones in any order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.actuators.robot import MotorMotion
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.errors import FileError, HodynError
from hodyn_ros.io.samples import EFFORTS, QUANTITIES, SOURCES, Results, Samples
from hodyn_ros.names import listed

Array = NDArray[np.float64]

TIME = 'time'

_MOST_ORDERS = 12


def _named(first: Sequence[str], more: str) -> tuple[str, ...]:
    return (*first, *(f'{more}_d{k}' for k in range(len(first), _MOST_ORDERS)))


MOTION = _named(QUANTITIES, 'position')
EFFORT = _named(EFFORTS, 'effort')
MOTOR_MOTION = _named([f'motor_{name}' for name in QUANTITIES], 'motor_position')
MOTOR_TORQUE = _named(['motor_torque', 'motor_torque_dot', 'motor_torque_ddot'], 'motor_torque')
DEFLECTION = _named(['deflection', 'deflection_dot', 'deflection_ddot'], 'deflection')
STIFFNESS = _named(['stiffness', 'stiffness_dot', 'stiffness_ddot'], 'stiffness')
WRENCH = _named(['wrench', 'wrench_dot', 'wrench_ddot'], 'wrench')

# In the order of `Wrench.values`: moment before force.
COMPONENTS = tuple(f'{part}.{axis}' for part in ('torque', 'force') for axis in 'xyz')

_SERIES = (MOTION, EFFORT, MOTOR_MOTION, MOTOR_TORQUE, DEFLECTION, STIFFNESS)
_KNOWN = {name for names in _SERIES for name in names}
_WRENCH_COLUMN = re.compile(
    rf'(?P<link>.+)\.(?P<order>{"|".join(WRENCH)})\.(?P<component>(?:torque|force)\.[xyz])'
)

Block = NDArray[np.intp]
"""Places of columns, shape (orders, entities)."""


class Metadata(NamedTuple):
    """What a table says beside its columns."""

    start: int = 0
    source: str = 'unknown'
    base_link: str = ''
    wrenches: tuple[tuple[str, str, str], ...] = ()
    """Link, expressed_in and acting."""
    motor_joints: tuple[tuple[str, str], ...] = ()
    """Motor and the joint that it moves."""

    def lines(self) -> dict[str, str]:
        """Keys and values as they are written."""
        result = {'start': str(self.start), 'source': self.source, 'base_link': self.base_link}
        for link, expressed_in, acting in self.wrenches:
            result[f'wrench {link}'] = f'{expressed_in} {acting}'
        for motor, joint in self.motor_joints:
            result[f'motor {motor}'] = joint
        return {key: value for key, value in result.items() if value not in ('', '0')}


def parse_metadata(lines: Mapping[str, str], name: str) -> Metadata:
    """Metadata from keys and values; unknown keys are ignored.

    Raises
    ------
    FileError
        If a value cannot be used.
    """
    wrenches, motors = [], []
    try:
        start = int(lines.get('start', '0'))
    except ValueError:
        start = -1
    if not 0 <= start < 2**63:
        raise FileError(
            f"{name}: 'start' is {lines['start']!r}, expected whole nanoseconds since 1970."
        )
    for key, value in lines.items():
        what, _, who = key.partition(' ')
        if what == 'wrench':
            words = value.split()
            if len(words) != 2:
                raise FileError(
                    f'{name}: {key!r} is {value!r}, expected two words such as '
                    "'body on_environment': expressed_in and acting."
                )
            wrenches.append((who, words[0], words[1]))
        elif what == 'motor':
            motors.append((who, value))
    source = lines.get('source', 'unknown')
    return Metadata(
        start,
        source if source in SOURCES else 'unknown',
        lines.get('base_link', ''),
        tuple(wrenches),
        tuple(motors),
    )


@dataclass(frozen=True)
class Layout:
    """Which columns of a table hold what; places count among `columns`."""

    name: str
    """Of the table, for messages."""
    columns: tuple[int, ...]
    """Those that are read, as they are numbered in the table."""
    titles: tuple[str, ...]
    """Their names."""
    joint_names: tuple[str, ...]
    motion: Block
    wrenches: tuple[tuple[str, Block], ...]
    """Shape (S, 6)."""
    stiffness: tuple[tuple[str, Block], ...]
    """Shape (S, 1)."""
    effort: Block | None = None
    motor_names: tuple[str, ...] = ()
    motors: tuple[Block, Block] | None = None
    """Position and torque."""
    deflection: Block | None = None

    def samples(self, values: Array, metadata: Metadata, first: int = 0) -> Samples:
        """Make samples of a block of rows.

        Parameters
        ----------
        values : ndarray, shape (N, columns)
        metadata : Metadata
        first : int
            Number of rows before these.

        Returns
        -------
        Samples

        Raises
        ------
        FileError
            If a value is missing where there has to be one.
        """
        self._refuse_gaps(values, first)
        try:
            return Samples(
                joint_names=self.joint_names,
                times=values[:, 0],
                motion=values[:, self.motion],
                wrenches=self._wrenches(values, metadata),
                stiffness={name: values[:, block[:, 0]] for name, block in self.stiffness},
                name=self.name,
                start=metadata.start,
                first=first,
            )
        except HodynError as error:
            raise FileError(str(error)) from error

    def results(self, values: Array, metadata: Metadata) -> Results:
        """Make results of a block of rows of shape (N, columns); see `samples`."""
        self._refuse_gaps(values, 0)
        if self.effort is None:
            raise FileError(
                f'{self.name}: there are no efforts; expected columns such as '
                f"'{self.joint_names[0]}.effort'. Compute them first."
            )
        motors = None
        if self.motors is not None:
            position, torque = (values[:, block] for block in self.motors)
            shape = (len(values), position.shape[1], len(self.joint_names))
            none = np.full(shape, np.nan)
            deflection = none if self.deflection is None else values[:, self.deflection]
            motors = MotorMotion(position, torque, deflection)
        joints = dict(metadata.motor_joints)
        return Results(
            joint_names=self.joint_names,
            times=values[:, 0],
            motion=values[:, self.motion],
            effort=values[:, self.effort],
            motors=motors,
            motor_names=self.motor_names,
            motor_joints=tuple(joints.get(name, name) for name in self.motor_names),
            name=self.name,
            start=metadata.start,
            source=metadata.source,
            base_link=metadata.base_link,
            wrenches=self._wrenches(values, metadata),
        )

    def _refuse_gaps(self, values: Array, first: int) -> None:
        """Refuse rows without numbers where there have to be some."""
        blocks = [*(block for _, block in self.wrenches), *(block for _, block in self.stiffness)]
        needed = [0, *self.motion[0].tolist(), *(i for block in blocks for i in block.flat)]
        bad = np.zeros(values.shape, dtype=np.bool_)
        bad[:, needed] = ~np.isfinite(values[:, needed])
        bad |= np.isinf(values)
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            raise FileError(
                f'{self.name}: column {self.titles[column]!r} is {float(values[row, column])} at '
                f'sample {first + row} (the first is 0); expected a finite number.'
            )

    def _wrenches(self, values: Array, metadata: Metadata) -> tuple[Wrench, ...]:
        choices = {
            link: (expressed_in, acting) for link, expressed_in, acting in metadata.wrenches
        }
        default = ('body', 'on_environment')
        try:
            return tuple(
                Wrench(link, values[:, block], *choices.get(link, default))
                for link, block in self.wrenches
            )
        except HodynError as error:
            raise FileError(f'{self.name}: {error}') from error


def layout_of(titles: Sequence[str], name: str) -> Layout:
    """Find out what the columns of a table are.

    Parameters
    ----------
    titles : sequence of str
        Of all columns.
    name : str
        Of the table, for messages.

    Returns
    -------
    Layout

    Raises
    ------
    FileError
        If there is no time or no position, a column stands there twice, or a quantity is not
        there for all joints.
    """
    titles = [title.strip() for title in titles]
    place = {title: index for index, title in enumerate(titles)}
    if TIME not in place:
        raise FileError(
            f"{name}: there is no column 'time' [s]; the columns are {listed(titles)}."
            + _suggestion(TIME, titles)
        )
    entities: dict[str, list[str]] = {}
    links: dict[str, set[str]] = {}
    for title in titles:
        match = _WRENCH_COLUMN.fullmatch(title)
        if match:
            links.setdefault(match['link'], set()).add(f'{match["order"]}.{match["component"]}')
            continue
        entity, dot, quantity = title.rpartition('.')
        if dot and entity and quantity in _KNOWN:
            entities.setdefault(quantity, []).append(entity)
    used = [TIME, *(f'{who}.{what}' for what, names in entities.items() for who in names)]
    used += [f'{link}.{component}' for link, found in links.items() for component in found]
    repeated = sorted({title for title in used if titles.count(title) > 1})
    if repeated:
        raise FileError(f'{name}: columns {listed(repeated)} stand there more than once.')

    joints = tuple(entities.get('position', ()))
    if not joints:
        raise FileError(
            f"{name}: there are no positions; expected columns such as 'joint1.position', the "
            f'columns are {listed(titles)}.' + _suggestion('joint1.position', titles)
        )
    motors = tuple(entities.get('motor_position', ()))
    columns: list[str] = [TIME]

    def block(names: Sequence[str], quantities: Sequence[str]) -> Block | None:
        """Places of the orders of a quantity of all the names; None if there is none."""
        rows: list[list[int]] = []
        for order, quantity in enumerate(quantities):
            have = [who for who in entities.get(quantity, ()) if who in names]
            if not have:
                continue
            missing = [who for who in names if who not in have]
            if missing:
                raise FileError(
                    f"{name}: '{quantity}' is there for {listed(have)}, but not for "
                    f'{listed(missing)}; expected it for all or for none.'
                )
            if order != len(rows):
                raise FileError(
                    f"{name}: '{quantity}' is there without '{quantities[len(rows)]}', of which "
                    'it is a derivative.'
                )
            rows.append(list(range(len(columns), len(columns) + len(names))))
            columns.extend(f'{who}.{quantity}' for who in names)
        return np.array(rows, dtype=np.intp) if rows else None

    motion = block(joints, MOTION)
    assert motion is not None
    stray = [who for what in MOTION for who in entities.get(what, ()) if who not in joints]
    if stray:
        raise FileError(
            f'{name}: {listed(dict.fromkeys(stray))} have derivatives, but no position; expected '
            f"columns such as '{stray[0]}.position'."
        )
    effort = block(joints, EFFORT)
    position, torque = block(motors, MOTOR_MOTION), block(motors, MOTOR_TORQUE)
    deflection = block(joints, DEFLECTION)
    stiffness = []
    for who in entities.get('stiffness', ()):
        series = block([who], STIFFNESS)
        if series is not None:
            stiffness.append((who, series))
    wrenches = []
    for link, found in links.items():
        places = []
        for order in WRENCH:
            parts = [f'{order}.{component}' for component in COMPONENTS]
            present = [part for part in parts if part in found]
            if not present:
                break
            if len(present) < len(parts):
                missing = [f'{link}.{part}' for part in parts if part not in found]
                raise FileError(
                    f'{name}: the {order} of {link} has no {listed(missing)}; expected force.x '
                    'to force.z and torque.x to torque.z.'
                )
            places.append(list(range(len(columns), len(columns) + len(parts))))
            columns.extend(f'{link}.{part}' for part in parts)
        if 6 * len(places) != len(found):
            raise FileError(
                f'{name}: the wrench on {link} has a derivative without the order below; expected '
                f"'{link}.wrench.force.x' and so on first."
            )
        wrenches.append((link, np.array(places, dtype=np.intp)))
    empty = np.zeros((0, len(motors)), dtype=np.intp)
    return Layout(
        name=name,
        columns=tuple(place[title] for title in columns),
        titles=tuple(columns),
        joint_names=joints,
        motion=motion,
        wrenches=tuple(wrenches),
        stiffness=tuple(stiffness),
        effort=effort,
        motor_names=motors,
        motors=None if position is None else (position, empty if torque is None else torque),
        deflection=deflection,
    )


def columns_of(results: Results) -> tuple[list[str], Array]:
    """Titles and values, shape (N, columns), of the table of some results."""
    titles = [TIME]
    parts = [results.times[:, None]]

    def add(values: Array, names: Sequence[str], quantities: Sequence[str], most: int) -> None:
        orders = min(values.shape[1], most)
        for quantity in quantities[:orders]:
            titles.extend(f'{name}.{quantity}' for name in names)
        parts.append(values[:, :orders].reshape(len(values), -1))

    add(results.motion, results.joint_names, MOTION, _MOST_ORDERS)
    add(results.effort, results.joint_names, EFFORT, _MOST_ORDERS)
    for wrench in results.wrenches:
        values = np.asarray(wrench.values)
        for order in WRENCH[: values.shape[1]]:
            titles.extend(f'{wrench.link}.{order}.{component}' for component in COMPONENTS)
        parts.append(values.reshape(len(values), -1))
    if results.motors is not None:
        position, torque, deflection = results.motors
        add(position, results.motor_names, MOTOR_MOTION, _MOST_ORDERS)
        add(torque, results.motor_names, MOTOR_TORQUE, _MOST_ORDERS)
        add(deflection, results.joint_names, DEFLECTION, 3)
    return titles, np.concatenate(parts, axis=1)


def metadata_of(results: Results) -> Metadata:
    """Find what belongs beside the columns of some results."""
    return Metadata(
        results.start,
        results.source,
        results.base_link,
        tuple((w.link, w.expressed_in, w.acting) for w in results.wrenches),
        tuple(zip(results.motor_names, results.motor_joints)),
    )


def with_wrench_choices(
    metadata: Metadata, layout: Layout, expressed_in: str | None, acting: str | None
) -> Metadata:
    """Metadata in which all wrenches are as asked for, where that is given."""
    if expressed_in is None and acting is None:
        return metadata
    known = {link: (a, b) for link, a, b in metadata.wrenches}
    wrenches = []
    for link, _ in layout.wrenches:
        expression, direction = known.get(link, ('body', 'on_environment'))
        wrenches.append((link, expressed_in or expression, acting or direction))
    return metadata._replace(wrenches=tuple(wrenches))


def refuse_not_increasing(samples: Samples, before: float | None) -> None:
    """Refuse times that do not increase strictly.

    Parameters
    ----------
    samples : Samples
    before : float or None
        Time of the sample before the first one.

    Raises
    ------
    FileError
    """
    times = samples.times if before is None else np.concatenate([[before], samples.times])
    increases = times[1:] > times[:-1]
    if increases.all():
        return
    row = int(np.argmin(increases))
    number = samples.first + row + (before is None)
    raise FileError(
        f'{samples.name}: times must increase, but sample {number} at {float(times[row + 1])!r} s '
        f'comes after {float(times[row])!r} s; sort the samples and leave out repeated ones.'
    )


def _suggestion(wanted: str, titles: Sequence[str]) -> str:
    if titles and all(re.fullmatch(r'[-+.\deE]*\d[-+.\deE]*', title) for title in titles):
        return ' These are numbers: the line with the names of the columns is missing.'
    close = get_close_matches(wanted, titles, n=1)
    return f' Did you mean {close[0]!r} to be {wanted!r}?' if close else ''
