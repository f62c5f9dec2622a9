"""How results show themselves: in one line in a console, as a small table in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from html import escape
from typing import Any, TypeVar

import numpy as np

Kind = TypeVar('Kind')

_MOST_NUMBERS = 8  # of an array or a list that is written out
_LONGEST = 120  # characters of another value


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
    return table(type(result).__name__, ('field', 'value'), list(_entries(result)))


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Table in HTML; all texts are escaped.

    Parameters
    ----------
    caption : str
    head : sequence of str
        Titles of the columns.
    rows : sequence of sequences of str
        Cells, as many in each row as there are titles.

    Returns
    -------
    str
    """
    lines = (''.join(f'<td>{escape(cell)}</td>' for cell in row) for row in rows)
    return (
        f'<table><caption>{escape(caption)}</caption>'
        f'<thead><tr>{"".join(f"<th>{escape(title)}</th>" for title in head)}</tr></thead>'
        f'<tbody>{"".join(f"<tr>{line}</tr>" for line in lines)}</tbody></table>'
    )


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
