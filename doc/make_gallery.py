"""Draw the pictures of pages, notebooks and examples into doc/images, for doc/index.rst.

    python doc/make_gallery.py [NAME...]

Each page and notebook is run as it stands; what is drawn are the values that it ends with.
Examples draw themselves.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot, rc_context
from matplotlib.figure import Figure
from PIL import Image
from run_examples import ROOT, cells, examples

FOLDER = ROOT / 'doc' / 'images'
EXAMPLES = ('panda_higher_order',)
STYLE = {'axes.grid': True, 'axes.xmargin': 0.0, 'figure.dpi': 110, 'grid.alpha': 0.3}

Values = Mapping[str, Any]


def panels(count: int) -> tuple[Figure, np.ndarray]:
    """Figure with panels side by side, over time."""
    figure, axes = pyplot.subplots(
        1, count, figsize=(8.2, 3.4), layout='constrained', squeeze=False
    )
    for panel in axes[0]:
        panel.set_xlabel('time [s]')
    return figure, axes[0]


def name_lines(figure: Figure, panel: Any) -> None:
    """Say above the panels what their lines are."""
    figure.legend(*panel.get_legend_handles_labels(), loc='outside upper center', ncols=4)


def draw_limits(panel: Any, *limits: float) -> None:
    """Dashed lines, of which the first has a name."""
    for label, limit in zip(('limit', ''), limits):
        panel.axhline(limit, color='C3', linestyle='--', label=label)


def planner(found: Values) -> Figure:
    """Torque rate of joint 2 along the candidates."""
    figure, (panel,) = panels(1)
    for seconds, plan in found['plans'].items():
        rate = np.reshape(plan.effort_dot, (len(plan.time_from_start), -1))[:, 1]
        panel.plot(plan.time_from_start, rate, label=f'{seconds} s')
    panel.set_ylabel('torque rate of panda_joint2 [N m/s]')
    draw_limits(panel, 60.0, -60.0)
    name_lines(figure, panel)
    return figure


def controller(found: Values) -> Figure:
    """Errors of torques that are continued for 10 ms."""
    figure, (panel,) = panels(1)
    Q, Qd, Q2d, h = (found[name] for name in ('Q', 'Qd', 'Q2d', 'h'))
    for what, continued in (
        ('held', Q),
        ('with the rate', Q + h * Qd),
        ('with both derivatives', Q + h * Qd + h**2 / 2 * Q2d),
    ):
        error = np.abs(continued[:-1] - Q[1:]).max(axis=1)
        panel.semilogy(h * np.arange(len(error)), error, label=what)
    panel.set_ylabel('largest error before\nthe next message [N m]')
    name_lines(figure, panel)
    return figure


def elastic_joint(found: Values) -> Figure:
    """Joint and motor, and what the spring changes of the torque."""
    figure, (left, right) = panels(2)
    times, motion = found['times'], found['motion'][..., 0]
    left.plot(times, motion[:, 0], '--', label='rigid')
    left.plot(times, found['theta'], label='elastic')
    right.plot(times, found['Q'] + found['B'] * motion[:, 2], '--')
    right.plot(times, found['tau'])
    left.set_ylabel('position of the motor [rad]')
    right.set_ylabel('torque of the motor [N m]')
    name_lines(figure, left)
    return figure


def recorded_motion(found: Values) -> Figure:
    """Torque of joint 2 and its derivatives, two standard deviations wide."""
    figure, axes = panels(3)
    results, exact = found['results'], found['exact']
    for order, (panel, unit) in enumerate(zip(axes, ('N m', 'N m/s', 'N m/s$^2$'))):
        values, std = results.effort[:, order, 1], results.effort_std[:, order, 1]
        panel.fill_between(
            results.times,
            values - 2.0 * std,
            values + 2.0 * std,
            color='C0',
            alpha=0.35,
            label='estimate, two standard deviations',
        )
        panel.plot(results.times, exact[:, order, 1], 'k', lw=0.8, label='exact')
        title = ('torque', 'torque rate', 'second derivative')[order]
        panel.set_title(f'{title} [{unit}]', fontsize='medium')
    name_lines(figure, axes[0])
    return figure


def torque_rates(found: Values) -> Figure:
    """Torque rate of joint 2 as planned and retimed."""
    figure, (left, right) = panels(2)
    for name in ('planned', 'kept'):
        results = found[name]
        for order, panel in enumerate((left, right)):
            panel.plot(results.times, results.effort[:, order, 1], label=results.name)
    draw_limits(right, -found['limits'].effort_dot[1], found['limits'].effort_dot[1])
    left.set_ylabel('torque of panda_joint2 [N m]')
    right.set_ylabel('torque rate of panda_joint2 [N m/s]')
    name_lines(figure, right)
    return figure


def last_figure(found: Values) -> Figure:
    """The figure that the notebook draws."""
    return found['figure']


PAGES: dict[str, Callable[[Values], Figure]] = {
    draw.__name__: draw
    for draw in (
        planner,
        controller,
        elastic_joint,
        recorded_motion,
    )
}
GUIDES = {  # whose examples are drawn
    'planner': 'node.rst',
    'controller': 'node.rst',
    'elastic_joint': 'drives.rst',
    'recorded_motion': 'files.rst',
}
NOTEBOOKS: dict[str, Callable[[Values], Figure]] = {
    'torque_rates': torque_rates,
    'identification': last_figure,
}


@contextlib.contextmanager
def quiet(folder: Path) -> Iterator[None]:
    """Run in a folder, without output."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter('ignore')
            yield
    finally:
        os.chdir(before)


def drawn(name: str) -> Figure:
    """Run a page or a notebook and draw what comes of it."""
    found: dict[str, Any] = {'__name__': '__main__'}
    if name in PAGES:
        page = ROOT / 'doc' / GUIDES[name]
        code, draw = examples(page.read_text(encoding='utf-8')), PAGES[name]
    else:
        notebook = ROOT / 'examples' / 'notebooks' / f'{name}.ipynb'
        code, draw = cells(notebook), NOTEBOOKS[name]
    with tempfile.TemporaryDirectory() as folder, quiet(Path(folder)):
        for part in code:
            exec(part, found)  # noqa: S102
    with rc_context(STYLE):
        return draw(found)


def picture_of(name: str) -> Path:
    """Where a picture is."""
    kind = 'notebook_' if name in NOTEBOOKS else 'example_' if name in EXAMPLES else ''
    return FOLDER / f'{kind}{name}.png'


def shrink(path: Path) -> None:
    """Keep the 64 colours that a drawing has most of."""
    with Image.open(path) as picture:
        picture.convert('RGB').quantize(64, dither=Image.Dither.NONE).save(
            path, optimize=True
        )


def main() -> None:
    """Write the pictures that are named."""
    every = (*PAGES, *NOTEBOOKS, *EXAMPLES)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        'names', metavar='NAME', nargs='*', help=f'by default all: {", ".join(every)}'
    )
    names = parser.parse_args().names or every
    matplotlib.use('Agg')
    sys.path.insert(0, str(ROOT / 'examples'))
    for name in names:
        path = picture_of(name)
        if name in EXAMPLES:
            with quiet(ROOT):
                import_module(name).main(['--picture', str(path)])
        else:
            drawn(name).savefig(path, dpi=110)
        shrink(path)
        pyplot.close('all')
        print(path)


if __name__ == '__main__':
    main()
