"""Command line of the benchmarks: python -m benchmarks."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import picture, report
from benchmarks.cases import ROOT
from benchmarks.sections import SECTIONS, SIZES, measure
from benchmarks.timing import NotInstalled


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them with pictures into a folder."""
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks',
        description='Times and errors of inverse dynamics with derivatives, ours and others.',
    )
    parser.add_argument(
        'sections',
        nargs='*',
        metavar='SECTION',
        help=f'what to measure: {", ".join(SECTIONS)}; all by default',
    )
    parser.add_argument(
        '--size',
        choices=SIZES,
        default='quick',
        help='quick: some minutes; full: more repetitions; tiny: to see that all works',
    )
    parser.add_argument(
        '-o',
        '--output',
        type=Path,
        default=ROOT / 'build' / 'bench',
        help='folder to write to',
    )
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.sections) - set(SECTIONS))
    if unknown:
        parser.error(f'no section {", ".join(unknown)}; there are {", ".join(SECTIONS)}')

    start = time.monotonic()
    tables = {}
    files = []
    for name in options.sections or SECTIONS:
        section = SECTIONS[name]
        tables[name] = measure(
            section, SIZES[options.size], lambda text: print(text, flush=True)
        )
        print('\n' + report.section_text(section, tables[name]), flush=True)
        if section.scaling:
            pictures = [options.output / f'{name}.{suffix}' for suffix in ('png', 'svg')]
            try:
                picture.draw(section.title, tables[name], pictures)
                files += pictures
            except NotInstalled as reason:
                print(f'No picture: {reason}.')
    files += report.write(options.output, SECTIONS, tables)
    print(f'{time.monotonic() - start:.0f} s. Written:', *files, sep='\n  ')
    return 0


if __name__ == '__main__':
    sys.exit(main())
