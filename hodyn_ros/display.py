"""How results show themselves: a line in a console, tables for people, records for programs.

A `Table` is said once, as records and columns that choose from them: it is text in a terminal,
HTML in a notebook, and in JSON all that its records hold. An `Answer` is tables and sentences.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from html import escape
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from hodyn_ros.names import number

Kind = TypeVar('Kind')

_MOST_NUMBERS = 8  # of an array or a list that is written out
_LONGEST = 120  # characters of another value
_WIDE = 100_000  # columns of what is no terminal


class Column(NamedTuple):
    """A column of a `Table`: which entry of the records it shows, and how."""

    key: str | Callable[[Any], Any]
    """Of the entry; or a function that makes it of a record."""
    title: str | None = None
    """Head of the column, in one line or some; by default the key in words."""
    unit: str = ''
    """Such as 'N m/s'; where joints turn and slide 'rad, m'."""
    form: Callable[[Any], str] | None = None
    """Writes an entry; by default texts are as they are, numbers have their first digits."""
    digits: int = 4
    """Of numbers without a form."""
    infinite: str = 'infinite'
    """Word for an infinite number; 'none' of limits."""

    @property
    def head(self) -> str:
        """Title, with the unit below it.

        Returns
        -------
        str
        """
        title = str(self.key).replace('_', ' ') if self.title is None else self.title
        return f'{title}\n[{self.unit}]' if self.unit else title

    def value(self, record: Any) -> Any:
        """Entry of a record; None where it has none.

        Parameters
        ----------
        record : mapping, or object with attributes

        Returns
        -------
        object
        """
        if callable(self.key):
            return self.key(record)
        if isinstance(record, Mapping):
            return record.get(self.key)
        return getattr(record, self.key, None)

    def cell(self, record: Any) -> str:
        """Text of the entry: empty where there is none, in words what is unknown or infinite.

        Parameters
        ----------
        record : mapping, or object with attributes

        Returns
        -------
        str
        """
        value = self.value(record)
        if value is None:
            return ''
        if isinstance(value, float) and not math.isfinite(value):
            return number(value).replace('infinite', self.infinite)
        if self.form is not None:
            return self.form(value)
        return value if isinstance(value, str) else number(value, self.digits)


@dataclass(frozen=True)
class Table:
    """Records, and the columns that people see of them.

    Parameters
    ----------
    title : str
        Of what the table is; empty if the columns say it.
    columns : sequence of Column
    records : sequence of mappings, or of objects with attributes
        Each has an entry for each column that concerns it; JSON has all that they hold.

    Examples
    --------
    >>> from hodyn_ros.display import Column, Table
    >>> columns = [Column('joint'), Column('jerk', unit='rad/s^3', infinite='none')]
    >>> records = [{'joint': 'elbow', 'jerk': 7500.0}, {'joint': 'tool', 'jerk': float('inf')}]
    >>> print(Table('', columns, records))
                  jerk
      joint  [rad/s^3]
      elbow       7500
      tool        none
    """

    title: str
    columns: Sequence[Column]
    records: Sequence[Any]

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.records)

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """Texts of the cells, row by row.

        Returns
        -------
        list of tuple of str
        """
        return [
            tuple(column.cell(record) for column in self.columns) for record in self.records
        ]

    def __str__(self) -> str:
        """Columns for a terminal, texts to the left and numbers to the right.

        A terminal wraps sentences; what programs read is as wide as it needs to be.
        """
        from rich.console import Console
        from rich.measure import Measurement
        from rich.padding import Padding
        from rich.table import Table as Grid

        grid, cells = Grid(box=None, padding=(0, 1), collapse_padding=False), self.cells
        for place, column in enumerate(self.columns):
            texts = [row[place] for row in cells]
            is_text = any(
                isinstance(column.value(record), str) and text[:1].isalpha()
                for record, text in zip(self.records, texts)
            )
            words = [*column.head.split('\n'), *texts]
            if is_text and any(' ' in text for text in texts):  # sentences
                words = [word for text in words for word in text.split()]
            justify: Literal['left', 'right'] = 'left' if is_text else 'right'
            grid.add_column(column.head, justify=justify, min_width=max(map(len, words)))
        for row in cells:
            grid.add_row(*row)
        indented = Padding(grid, (0, 0, 0, 1))
        is_terminal = sys.stdout.isatty()
        console = Console(
            force_terminal=is_terminal, markup=False, emoji=False, highlight=False
        )
        wide = console.options.update(max_width=_WIDE)
        least = Measurement.get(console, wide, indented).minimum
        if not is_terminal or least > console.width:  # nothing is cut off
            console.size = _WIDE, 25
        with console.capture() as captured:
            console.print(indented)
        title = [self.title, ''] if self.title else []
        return '\n'.join([*title, *map(str.rstrip, captured.get().splitlines())])

    def _repr_html_(self) -> str:
        head = ''.join(f'<th>{escape(column.head)}</th>' for column in self.columns)
        rows = (''.join(f'<td>{escape(cell)}</td>' for cell in row) for row in self.cells)
        return (
            f'<table><caption>{escape(self.title)}</caption><thead><tr>{head}</tr></thead>'
            f'<tbody>{"".join(f"<tr>{row}</tr>" for row in rows)}</tbody></table>'
        )


@dataclass(frozen=True)
class Answer:
    """What a command or a result says: to people in tables and sentences, to programs in records.

    Parameters
    ----------
    parts : sequence of Table or str
        For people, in their order; empty ones are left out.
    data : mapping
        For programs, with all digits; a `Table` stands for its records.
    """

    parts: Sequence[Table | str]
    data: Mapping[str, Any]

    def __str__(self) -> str:
        """Text for a terminal: the parts, with empty lines between them."""
        return '\n\n'.join(str(part) for part in self.parts if part)

    def _repr_html_(self) -> str:
        return ''.join(
            part._repr_html_() if isinstance(part, Table) else f'<p>{escape(part)}</p>'
            for part in self.parts
            if part
        )

    @property
    def json(self) -> str:
        """The data as JSON; infinite numbers are null, as are those that are not known.

        Returns
        -------
        str
        """
        return json.dumps(plain(self.data), indent=2, ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """Turn arrays, tables, named tuples and numbers of NumPy into what JSON knows.

    JSON has no infinite numbers: they become null, as do those that are not known.

    Parameters
    ----------
    value : object

    Returns
    -------
    object
        Dictionaries, lists, strings, numbers, bools and None; what is none of these as its
        text.
    """
    if isinstance(value, Table):
        value = value.records
    if hasattr(value, '_asdict'):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else str(value)


def shown(kind: type[Kind]) -> type[Kind]:
    """Class decorator that lets results show their fields, but long arrays by their shapes alone.

    Parameters
    ----------
    kind : type
        A dataclass or a named tuple. Its ``__repr__`` and ``_repr_html_`` are replaced.

    Returns
    -------
    type
        The same class.
    """
    kind.__repr__ = _brief  # type: ignore[method-assign]
    kind._repr_html_ = _brief_table  # type: ignore[attr-defined]
    return kind


def _brief(result: Any) -> str:
    parts = (f'{name}={value}' for name, value in _entries(result))
    return f'{type(result).__name__}({", ".join(parts)})'


def _brief_table(result: Any) -> str:
    records = [{'field': name, 'value': value} for name, value in _entries(result)]
    columns = Column('field'), Column('value')
    return Table(type(result).__name__, columns, records)._repr_html_()


def _entries(result: Any) -> Iterator[tuple[str, str]]:
    """Names of the fields of a dataclass or a named tuple, with their values as texts."""
    names = getattr(result, '_fields', None) or [field.name for field in fields(result)]
    for name in names:
        yield name, _text(getattr(result, name))


def _text(value: Any) -> str:
    """Value in one line: its shape or type instead where it would be long."""
    if isinstance(value, np.ndarray) and value.size > _MOST_NUMBERS:
        return f'array of shape {value.shape}'
    if type(value) in (tuple, list, dict) and len(value) > _MOST_NUMBERS:
        return f'{type(value).__name__} of {len(value)}'
    text = ' '.join(repr(value).split())
    return text if len(text) <= _LONGEST else f'{type(value).__name__} ...'
