"""Picture of the times over the number of joints, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.sections import Table
from benchmarks.timing import NotInstalled


def draw(title: str, tables: Sequence[Table], files: Sequence[Path]) -> None:
    """Draw the times of a section whose cases differ in n.

    Parameters
    ----------
    title : str
    tables : sequence of Table
    files : sequence of Path
        What to write; the suffix says the format.

    Raises
    ------
    NotInstalled
        Without matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise NotInstalled('matplotlib is not installed') from None
    figure = Figure(figsize=(10.5, 5.5), layout='constrained')
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    names = list(dict.fromkeys(row.name for table in tables for row in table.rows))
    for index, name in enumerate(names):
        points = [
            (table.n, row.timing.median * 1e6)
            for table in tables
            for row in table.rows
            if row.name == name
        ]
        ours = name.startswith('hodyn_ros')
        order = next(
            row.order for table in tables for row in table.rows if row.name == name
        )
        axes.loglog(
            *zip(*points),
            marker='os^vD<>Pp*X'[index % 11],
            linestyle='-' if ours else '--',
            linewidth=1.8 if ours else 1.0,
            label=name + (' (Q alone)' if order == 0 else ''),
        )
    sizes = [table.n for table in tables]
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.set_xlabel('joints')
    axes.set_ylabel('time per sample [µs]')
    axes.set_title(f'{title}: Q and its first two derivatives')
    axes.grid(True, which='both', alpha=0.3)
    # Beside the lines, which fill the axes.
    figure.legend(fontsize='small', loc='outside right upper')
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, dpi=120)
