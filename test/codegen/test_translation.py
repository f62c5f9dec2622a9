"""Loops of Python and their translation to C compute the same numbers."""

import ctypes
from math import pi, sqrt

import numpy as np
import pytest
from support.compilers import C_COMPILERS, CPP_COMPILERS, WARNINGS, run

from hodyn_ros.codegen.translation import HELPERS, Environment, translated

SOURCE = '''
def halve(n: int, x: Vector) -> None:
    """Halve."""
    for i in range(n):
        x[i] *= 0.5

def norm(n: int, x: Vector) -> float:
    s = 0.0
    for i in range(n):
        s += x[i] * x[i]
    return sqrt(s)

def mixed(n: int, m: int, a: float, place: Index, M: Matrix, x: Vector, out: Wide) -> int:
    """Something of everything."""
    b, c = 0.0, -a / (2.0 - (a - 1.0))
    for i in range(n):
        j: int = place[i]
        b = max(b, abs(M[i, j]) * pi - (c - x[j]))
        for k in range(i + 1, n):
            M[k, i] = min(M[i, k], b) - a * (M[k, i] + 1.0) / 3.0
            out[1, (k + i) // 2] += M[k, i]
        if b > 2.0 and not b > 1e9 or b < -1e9:
            out[0, i] = b
            b = -1.0
        elif b == 0.0:
            return i
        else:
            out[0, i] = norm(n, M[i])
    halve(n, M[n - 1])
    return n + m * int(3.7 - 1.0)
'''
AROUND = Environment({'Matrix': 'n', 'Wide': 'm'})


def arrays():
    rng = np.random.default_rng(3)
    place = np.array([2, 0, 3, 1], dtype=np.intc)
    return (
        place,
        2.0 * rng.standard_normal((4, 4)),
        rng.standard_normal(4),
        np.zeros((2, 6)),
    )


def test_translation_computes_what_python_computes(tmp_path):
    names = {kind: None for kind in ('Vector', 'Index', 'Matrix', 'Wide')}
    scope = {**names, 'pi': pi, 'sqrt': sqrt}
    exec(SOURCE, scope)
    text = translated(SOURCE, ('mixed',), AROUND)
    source = tmp_path / 'code.c'
    source.write_text(f'#include <math.h>\n{HELPERS}{text.replace("static int", "int")}')
    run(
        CPP_COMPILERS[0],
        '-x',
        'c++',
        '-std=c++11',
        *WARNINGS,
        '-c',
        '-o',
        '/dev/null',
        source,
    )
    options = ('-std=c99', *WARNINGS, '-ffp-contract=off', '-shared', '-fPIC')
    run(C_COMPILERS[0], *options, '-o', tmp_path / 'code.so', source, '-lm')
    in_c = ctypes.CDLL(str(tmp_path / 'code.so')).mixed
    expected, found = arrays(), arrays()
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in found]
    returned = in_c(4, 6, ctypes.c_double(0.7), *pointers)
    assert returned == scope['mixed'](4, 6, 0.7, *expected)
    for ours, theirs in zip(found, expected):
        np.testing.assert_array_equal(ours, theirs)
    assert np.count_nonzero(found[3]) > 4
    assert not np.array_equal(found[1], arrays()[1])


RECORDS = """
def unused(s: State) -> None:
    s.size[0] = -1.0

def doubled(r: Robot, s: State, k: int) -> None:
    for i in range(r.n):
        s.rows[k, i] = r.factor * s.rows[k - 1, i]
    s.copy[:] = s.rows
    s.rows[0] = s.rows[k]
    s.size[:] = r.factor

def grown(r: Robot, s: State) -> float:
    if r.is_odd:
        unused(s)
    doubled(r, s, 1)
    return total(r, s.rows[1])
"""


def test_records_are_structs_and_what_is_known_is_left_out(tmp_path):
    rows = {'rows': ('2', 'n'), 'copy': ('2', 'n')}
    shapes = {
        'Robot': {'ROBOT.': {'factor': ()}},
        'State': {'{}->': {'size': ('1',)}, '{}->more.': rows},
    }
    known, elsewhere = {'r.is_odd': False}, {'total': 'sum_of_three'}
    around = Environment({}, shapes, ('Robot',), {'n': '3'}, known, elsewhere)
    text = translated(RECORDS, ('grown',), around)
    assert 'unused' not in text and 'const Robot *r' in text
    (tmp_path / 'code.c').write_text(f"""
        typedef struct {{ double factor; }} Robot;
        typedef struct {{ double size[1]; struct {{ double rows[6], copy[6]; }} more; }} State;
        static const Robot ROBOT = {{2.0}};
        static double sum_of_three(const double *x) {{ return x[0] + x[1] + x[2]; }}
        {text}
        int main(void) {{
            State state = {{{{0.0}}, {{{{1.0, 2.0, 3.0}}, {{0.0}}}}}};
            const double total = grown(&ROBOT, &state), *row = state.more.rows;
            const double *copy = state.more.copy;
            return total == 12.0 && row[0] == 2.0 && row[2] == 6.0 && row[5] == 6.0
                && copy[0] == 1.0 && copy[2] == 3.0 && copy[5] == 6.0 && state.size[0] == 2.0
                ? 0 : 1;
        }}
    """)
    run(C_COMPILERS[0], *WARNINGS, '-o', tmp_path / 'code', tmp_path / 'code.c')
    run(tmp_path / 'code')


def test_arrays_that_are_only_read_are_constant():
    text = translated(SOURCE, ('mixed',), AROUND)
    head = ' '.join(text[text.index('static int mixed') :].partition(')')[0].split())
    assert head.endswith('const int *place, double *M, const double *x, double *out')


@pytest.mark.parametrize(
    'statement',
    [
        'while a > 0.0: a -= 1.0',
        'a = a ** 2',
        'a = a % 3.0',
        'a = 1.0 if a > 0.0 else 2.0',
        'a = 0.0 < a < 1.0',
        'a, x[0] = x[0], a',
        'for i in range(n, 0, -1): x[i] = a',
        'for value in x: a += value',
        'x[:] = a',
        'a = [a]',
        'a = f(b=a)',
        'assert a',
    ],
)
def test_what_c_does_not_have_or_means_otherwise_is_refused(statement):
    source = f'def f(n: int, a: float, x: Vector) -> None:\n    {statement}\n'
    with pytest.raises(NotImplementedError, match='translated|one step'):
        translated(source, ('f',), AROUND)
