"""The floor of the machine: what the multiplications and additions of a robot's efforts take.

The C code of the robot is compiled, and the multiplications, additions and fused multiplications
with additions that are left in its machine code are counted. The contestant does as many of each
and nothing else: on full vector registers, with numbers that do not wait for each other. Loads,
stores, sines and dependencies come on top of it.
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from benchmarks import compilation
from benchmarks.timing import Contestant, NotInstalled

# Instructions of x86-64 and of AArch64 on numbers of double precision.
INSTRUCTIONS = {
    'fused': re.compile(r'v?fn?m(?:add|sub)(?:\d+sd)?'),
    'product': re.compile(r'(?:v?mulsd|fn?mul)'),
    'sum': re.compile(r'(?:v?(?:add|sub)sd|f(?:add|sub))'),
}
CHAINS = 8
"""Values of each kind that change in turns: results are there before they are used again."""

STATEMENTS = {
    'fused': 'f{0} = f{0} * one + zero;',
    'product': 'p{0} = p{0} * one;',
    'sum': 's{0} = s{0} + zero;',
}
SOURCE = """
#include <stddef.h>
#if defined(__AVX512F__)
enum {{ LANES = 8 }};
#elif defined(__AVX__)
enum {{ LANES = 4 }};
#else
enum {{ LANES = 2 }};
#endif
typedef double lanes __attribute__((vector_size(8 * LANES)));
volatile double given_one = 1.0, given_zero = 0.0;
volatile double sink;

void floor_of(size_t samples)
{{
  const lanes one = given_one - (lanes){{0}}, zero = given_zero - (lanes){{0}};
  lanes {values};
  size_t block;
  for (block = 0; block < samples; block += LANES) {{
    {statements}
  }}
  sink = ({total})[0];
}}
"""


class Counts(NamedTuple):
    """Operations that one sample takes."""

    fused: int
    """Multiplications with an addition in one instruction."""
    product: int
    sum: int

    @property
    def note(self) -> str:
        """Words for a table."""
        alone = self.product + self.sum
        return f'{self.fused + alone} instructions, {self.fused} of them fused'


def counts(source: str, function: str) -> Counts:
    """Operations in the machine code of a C function, calls left out.

    Parameters
    ----------
    source : str
        C code.
    function : str
        Name of the function.

    Raises
    ------
    NotInstalled
        If no operation is found: the processor has other instructions.
    """
    lines = compilation.assembly(source, ('-fno-tree-vectorize', '-ffp-contract=fast'))
    found: Counter[str] = Counter()
    inside = False
    for line in lines:
        if line.startswith(f'{function}:'):
            inside = True
        elif inside and re.match(rf'\s*\.size\s+{function}\b', line):
            break
        words = line.split()
        if inside and words:
            found.update(k for k, kind in INSTRUCTIONS.items() if kind.fullmatch(words[0]))
    if not found:
        raise NotInstalled('the floor of the machine is for x86-64 and AArch64')
    return Counts(*(found[kind] for kind in Counts._fields))


def contestant(source: str, function: str, order: int, samples: int) -> Contestant:
    """Contestant that does the operations of a C function without what they are for."""
    number = counts(source, function)
    names = [f'{kind[0]}{k}' for kind in Counts._fields for k in range(CHAINS)]
    text = SOURCE.format(
        # Different ones, so that the compiler does not do the same once for all.
        values=', '.join(f'{name} = one * {k}.0' for k, name in enumerate(names, 1)),
        statements='\n    '.join(_mixed(number)),
        total=' + '.join(names),
    )
    path = compilation.library('floor', text, 'c', ('-ffp-contract=fast',))
    run = partial(compilation.load(path).floor_of, ctypes.c_size_t(samples))
    return Contestant('floor of the machine', order, samples, run, None, note=number.note)


def _mixed(number: Counts) -> Iterator[str]:
    """Statements of all kinds, spread evenly: no port of the processor waits for its kind."""
    places = sorted(
        ((k + 0.5) / count, kind, k % CHAINS)
        for kind, count in number._asdict().items()
        for k in range(count)
    )
    return (STATEMENTS[kind].format(chain) for _, kind, chain in places)
