"""Tables and pictures of the benchmarks: how they look, and the files they are written to."""

from __future__ import annotations

import json
import os
import platform
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.timing import NotInstalled

WIDTH = 99


@dataclass(frozen=True)
class Table:
    """Result of a benchmark.

    Attributes
    ----------
    title : str
    header : sequence of str
    rows : sequence of sequence of str
        Cells; the first one of a row is its name.
    notes : sequence of str
        Paragraphs under the table.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def text(self) -> str:
        """Table as reStructuredText."""
        title = self.title[0].upper() + self.title[1:]
        parts = [f'.. rubric:: {title}\n', grid([self.header, *self.rows])]
        for note in self.notes:
            indent = '  ' if note.startswith('- ') else ''
            parts.append(textwrap.fill(note, WIDTH, subsequent_indent=indent) + '\n')
        return '\n'.join(parts)


@dataclass(frozen=True)
class Picture:
    """Picture of results.

    Attributes
    ----------
    size : tuple of float
        Width and height [inch].
    draw : callable
        Draws into a figure of Matplotlib.
    """

    size: tuple[float, float]
    draw: Callable[[Any], None]

    def save(self, file: Path) -> None:
        """Write the picture; raises NotInstalled without Matplotlib."""
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError:
            raise NotInstalled('matplotlib is not installed') from None
        figure = Figure(figsize=self.size, layout='constrained')
        FigureCanvasAgg(figure)
        self.draw(figure)
        figure.savefig(file, dpi=120)


@dataclass(frozen=True)
class Benchmark:
    """Benchmark as the command line knows it.

    Attributes
    ----------
    title : str
    sizes : mapping
        How much is measured, by 'tiny' (to see that all works), 'quick' and 'full'.
    measure : callable
        From a size to tables and pictures.
    """

    title: str
    sizes: Mapping[str, Any]
    measure: Callable[[Any], Iterable[Table | Picture]]


def say(text: str) -> None:
    """Tell who waits what is being measured."""
    print(text, file=sys.stderr, flush=True)


def grid(lines: Sequence[Sequence[str]]) -> str:
    """Simple table of reStructuredText, the first line as header."""
    # The first column of a simple table must not be empty, or its row continues the one before.
    cells = [
        [cell or ('\\' if i == 0 else '') for i, cell in enumerate(line)] for line in lines
    ]
    widths = [max(map(len, column)) for column in zip(*cells)]
    rule = '  '.join('=' * max(width, 1) for width in widths)
    rows = [
        '  '.join(cell.ljust(w) for cell, w in zip(line, widths)).rstrip() for line in cells
    ]
    return '\n'.join([rule, rows[0], rule, *rows[1:], rule, ''])


def microseconds(seconds: float) -> str:
    """Time with three digits behind the point if it is short."""
    value = seconds * 1e6
    return f'{value:.3f}' if value < 10.0 else f'{value:.1f}'


def in_parallel(function: Callable[..., Any], jobs: Sequence[Any]) -> list[Any]:
    """Results of a function for all jobs, by as many processes as there are processors."""
    found = []
    # Not forked: this process may have threads.
    with ProcessPoolExecutor(os.cpu_count(), get_context('spawn')) as pool:
        for result in pool.map(function, jobs):
            found.append(result)
            if len(found) % 20 == 0 or len(found) == len(jobs):
                say(f'{len(found)} of {len(jobs)} runs')
    return found


def machine() -> dict[str, str | int]:
    """Facts about the machine that a reader of times should know."""
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
        model = next(
            line.partition(':')[2].strip() for line in lines if 'model name' in line
        )
    except (OSError, StopIteration):
        model = platform.processor()
    return {
        'processor': model,
        'processors': os.cpu_count() or 0,
        'system': platform.system(),
        'python': platform.python_version(),
    }


def write(folder: Path, name: str, results: Iterable[Table | Picture]) -> list[Path]:
    """Print tables; write them as text and JSON, and the pictures.

    Returns
    -------
    list of Path
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results = list(results)
    tables = [result for result in results if isinstance(result, Table)]
    text = '\n'.join(table.text() for table in tables)
    print(text, flush=True)
    files = [folder / f'{name}.inc', folder / f'{name}.json']
    files[0].write_text(text, encoding='utf-8')
    values = {'machine': machine(), 'tables': [asdict(table) for table in tables]}
    files[1].write_text(json.dumps(values, indent=1) + '\n', encoding='utf-8')
    for picture in (result for result in results if isinstance(result, Picture)):
        try:
            picture.save(folder / f'{name}.png')
            files.append(folder / f'{name}.png')
        except NotInstalled as reason:
            say(f'No picture: {reason}.')
    return files
