"""Tables and JSON for the terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import click
import numpy as np

DIGITS = 4


def number(value: float, digits: int = DIGITS) -> str:
    """Write a number with some significant digits; infinite ones, which limit nothing, as -."""
    if not math.isfinite(value):
        return 'nan' if math.isnan(value) else '-'
    text = f'{value:.{digits}g}'
    if 'e' in text and 1e-4 <= abs(value) < 1e7:
        text = f'{float(text):.0f}' if abs(value) >= 1.0 else f'{float(text):.7f}'.rstrip('0')
    return text


def instant(time: float) -> str:
    """Write a time [s]; one that counts from long ago keeps its milliseconds."""
    return number(time) if abs(time) < 1e5 else f'{time:.3f}'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], indent: str = '  ') -> str:
    """Align columns: text to the left, numbers to the right.

    Parameters
    ----------
    head : sequence of str
        Titles, each of one or more lines.
    rows : sequence of sequence of str
        At least one, with as many cells as the head each.
    indent : str
        Begins every line.

    Returns
    -------
    str
    """
    titles = [title.split('\n') for title in head]
    height = max(map(len, titles))
    aligned = []
    for title, column in zip(titles, zip(*rows)):
        cells = [*title, *[''] * (height - len(title)), *column]
        width = max(map(len, cells))
        is_text = any(cell[:1].isalpha() and cell != 'nan' for cell in column)
        aligned.append([cell.ljust(width) if is_text else cell.rjust(width) for cell in cells])
    return '\n'.join((indent + '  '.join(cells)).rstrip() for cells in zip(*aligned))


def plain(value: Any) -> Any:
    """Turn arrays, named tuples and numbers of NumPy into what JSON knows.

    JSON has no infinite numbers: they become null, as do those that are not known.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, '_asdict'):
        return plain(value._asdict())
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    return str(value)


def echo_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))
