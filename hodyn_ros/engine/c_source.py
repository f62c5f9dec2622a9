"""The inverse dynamics of one robot as C99, with a test of itself.

The text is C++11 as well. For C++ there is one more header, whose functions take and return
std::array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hodyn_ros.engine.c_parts import SEPARATE, in_parts, names_in
from hodyn_ros.engine.c_statements import string_literal
from hodyn_ros.engine.code import (
    FLAGS,
    RESULTS,
    Code,
    cmake,
    comment,
    description,
    function_body,
    slope_function,
)

Array = NDArray[np.float64]


def c_files(code: Code) -> dict[str, str]:
    """Files of C99: their text by name.

    Parameters
    ----------
    code : Code

    Returns
    -------
    dict of str
    """
    return _texts(
        {
            f'{code.unit}.h': _header(code),
            f'{code.unit}.c': _source(code),
            f'{code.unit}_test.c': _test(code, 'cc -std=c99', 'c'),
            'CMakeLists.txt': cmake(code, 'C', 'c', 99),
        }
    )


def cpp_files(code: Code) -> dict[str, str]:
    """Files of C++11: their text by name; see `c_files`."""
    return _texts(
        {
            f'{code.unit}.hpp': _cpp_header(code),
            f'{code.unit}.cpp': _source(code),
            f'{code.unit}.h': _header(code),
            f'{code.unit}_test.cpp': _test(code, 'c++ -std=c++11', 'cpp'),
            'CMakeLists.txt': cmake(code, 'CXX', 'cpp', 11),
        }
    )


def _texts(files: dict[str, list[str]]) -> dict[str, str]:
    return {name: '\n'.join(lines) + '\n' for name, lines in files.items()}


def _variants(code: Code) -> Iterator[tuple[int, bool, str]]:
    """Order, whether with wrenches, and name of each function."""
    for loaded in (False, True) if code.wrench_links else (False,):
        for order in code.orders:
            end = '_with_wrenches' if loaded else ''
            yield order, loaded, f'{code.name}_inverse_dynamics_{order}{end}'


def _declaration(code: Code, order: int, loaded: bool, function: str) -> list[str]:
    real, n, links = code.precision.type, code.model.n_joints, len(code.wrench_links)
    arguments = [f'const {real} motion[{(order + 3) * n}]']
    if loaded:
        arguments.append(f'const {real} wrench[{(order + 1) * links * 6}]')
    arguments.append(f'{real} effort[{(order + 1) * n}]')
    return [f'void {function}(', f'    {", ".join(arguments)})']


def _strings(code: Code, names: Sequence[str], name: str) -> str:
    """Declare an array of strings: of characters, since pointers are not read-only."""
    longest = max(len(text.encode('utf-8', 'surrogateescape')) for text in names)
    return f'const char {code.name}_{name}[{len(names)}][{longest + 1}]'


def _header(code: Code) -> list[str]:
    n, links, upper = code.model.n_joints, len(code.wrench_links), code.name.upper()
    layout = [
        f'motion[k * {n} + j]: k-th time derivative of the position of joint j, k = 0 to r + 2',
        '    for the function of order r [rad/s^k, m/s^k].',
        f'effort[k * {n} + j]: k-th time derivative of the effort of joint j, k = 0 to r',
        '    [N m/s^k, N/s^k].',
    ]
    if links:
        layout += [
            f'wrench[(k * {links} + l) * 6 + i]: k-th time derivative of coordinate i of the',
            '    wrench on link l, k = 0 to r.',
        ]
    layout.append('The arrays must not overlap.')
    lines = [
        *description(code, layout),
        f'#ifndef {upper}_DYNAMICS_H',
        f'#define {upper}_DYNAMICS_H',
        '',
        f'#define {upper}_N_JOINTS {n}',
        *([f'#define {upper}_N_WRENCHES {links}'] if links else []),
        '',
        '#ifdef __cplusplus',
        'extern "C" {',
        '#endif',
        '',
        f'extern {_strings(code, code.model.joint_names, "joint_names")};',
        '/* In the axes of the base link [m/s^2]. */',
        f'extern const {code.precision.type} {code.name}_gravity[3];',
    ]
    if links:
        lines.append(f'extern {_strings(code, code.wrench_links, "wrench_links")};')
    for order, loaded, function in _variants(code):
        lines += ['', f'/* {RESULTS[order]}{", with wrenches" if loaded else ""}. */']
        first, second = _declaration(code, order, loaded, function)
        lines += [first, f'{second};']
    return [*lines, '', '#ifdef __cplusplus', '}', '#endif', '', '#endif']


def _cpp_header(code: Code) -> list[str]:
    """Functions of std::array that call those of C."""
    unit, links = code.unit, code.wrench_links
    layout = [
        'motion[k][j]: k-th time derivative of the position of joint j [rad/s^k, m/s^k].',
        'Result [k][j]: k-th time derivative of the effort of joint j [N m/s^k, N/s^k]; as many',
        '    as the motion determines: with K derivatives of the position, itself counted, K - 2.',
    ]
    arrays = [
        f'constexpr std::size_t n_joints = {code.model.n_joints};',
        *_cpp_strings(code.model.joint_names, 'joint_names', 'n_joints'),
        '// A number for each joint and its time derivatives: K of them, itself counted.',
        'template <std::size_t K>',
        'using Joints = std::array<std::array<Real, n_joints>, K>;',
        'static_assert(sizeof(Joints<2>) == 2 * n_joints * sizeof(Real), "contiguous");',
    ]
    if links:
        layout.append(
            'wrench[k][l][i]: k-th time derivative of coordinate i of the wrench on link l.'
        )
        arrays += [
            '',
            f'constexpr std::size_t n_wrenches = {len(links)};',
            *_cpp_strings(links, 'wrench_links', 'n_wrenches'),
            '// (moment, force) on each of the links and their time derivatives.',
            'template <std::size_t K>',
            'using Wrenches = std::array<std::array<std::array<Real, 6>, n_wrenches>, K>;',
        ]
    gravity = ', '.join(code.precision.literal(g) for g in code.model.gravity)
    functions = []
    for order, loaded, function in _variants(code):
        arguments, given = f'const Joints<{order + 3}> & motion', 'motion[0].data()'
        if loaded:
            arguments += f', const Wrenches<{order + 1}> & wrench'
            given += ', wrench[0][0].data()'
        functions += [
            '',
            f'// {RESULTS[order]}{", with wrenches" if loaded else ""}.',
            f'inline Joints<{order + 1}> inverse_dynamics(',
            f'  {arguments}) noexcept',
            '{',
            f'  Joints<{order + 1}> effort;',
            f'  {function}({given}, effort[0].data());',
            '  return effort;',
            '}',
        ]
    return [
        *description(code, layout),
        f'#ifndef {code.name.upper()}_DYNAMICS_HPP',
        f'#define {code.name.upper()}_DYNAMICS_HPP',
        '',
        f'#include "{unit}.h"',
        '',
        '#include <array>',
        '#include <cstddef>',
        '',
        f'namespace {unit} {{',
        '',
        f'using Real = {code.precision.type};',
        '// In the axes of the base link [m/s^2].',
        f'constexpr std::array<Real, 3> gravity{{{{{gravity}}}}};',
        '',
        *arrays,
        *functions,
        '',
        f'}}  // namespace {unit}',
        '',
        '#endif',
    ]


def _cpp_strings(names: Sequence[str], name: str, count: str) -> list[str]:
    texts = [f'  {string_literal(text)},' for text in names]
    return [f'constexpr std::array<const char *, {count}> {name}{{{{', *texts, '}};']


def _function(code: Code, order: int, loaded: bool, function: str) -> list[str]:
    real = code.precision.type
    body = function_body(code, order, loaded)
    assignments = [f'effort[{i}] = {value};' for i, value in enumerate(body.efforts)]
    parts, n_kept = in_parts(body.definitions, assignments, real)
    arguments = ['motion', *(['wrench'] if loaded else []), 'effort']
    declaration = _declaration(code, order, loaded, function)
    if len(parts) == 1:
        return ['', *declaration, *_braced(parts[0], arguments)]
    lines = []
    for number, part in enumerate(parts):
        first, second = _declaration(code, order, loaded, f'{function}_part_{number}')
        lines += ['', f'SEPARATE static {first}', f'{second[:-1]}, {real} kept[{n_kept}])']
        lines += _braced(part, [*arguments, 'kept'])
    calls = [
        f'{function}_part_{number}({", ".join(arguments)}, kept);' for number in range(len(parts))
    ]
    return [*lines, '', *declaration, *_braced([f'{real} kept[{n_kept}];', *calls], arguments)]


def _braced(lines: Sequence[str], arguments: Sequence[str]) -> list[str]:
    used = names_in(lines)
    unused = [f'    (void){argument};' for argument in arguments if argument not in used]
    return ['{', *[f'    {line}' for line in lines], *unused, '}']


def _source(code: Code) -> list[str]:
    lines = [line for variant in _variants(code) for line in _function(code, *variant)]
    used = names_in(lines)
    separate = ['', *SEPARATE] if 'SEPARATE' in used else []
    slope = ['', *slope_function(code)] if 'slope' in used else []
    gravity = ', '.join(code.precision.literal(g) for g in code.model.gravity)
    constants = [
        f'{_strings(code, code.model.joint_names, "joint_names")} = {{',
        *[f'    {string_literal(name)},' for name in code.model.joint_names],
        '};',
        f'const {code.precision.type} {code.name}_gravity[3] = {{{gravity}}};',
    ]
    if code.wrench_links:
        constants += [
            f'{_strings(code, code.wrench_links, "wrench_links")} = {{',
            *[f'    {string_literal(link)},' for link in code.wrench_links],
            '};',
        ]
    return [
        *comment([f'{code.mark} {code.version}. Do not edit.']),
        f'#include "{code.unit}.h"',
        '',
        '#include <math.h>',
        '',
        *constants,
        *separate,
        *slope,
        *lines,
    ]


def _table(code: Code, name: str, values: Array) -> list[str]:
    """Constants of the test, a row for each sample."""
    rows = values.reshape(len(values), -1)
    lines = [f'static const {code.precision.type} {name}[{len(rows)}][{rows.shape[1]}] = {{']
    for row in rows:
        lines.append('    {')
        texts = [code.precision.literal(float(value)) for value in row]
        lines += [f'        {", ".join(texts[i : i + 4])},' for i in range(0, len(texts), 4)]
        lines.append('    },')
    return [*lines, '};']


def _test(code: Code, compiler: str, extension: str) -> list[str]:
    reference, precision, n = code.reference, code.precision, code.model.n_joints
    real, literal, f = precision.type, precision.literal, precision.suffix
    samples = len(reference.motion)
    highest = code.orders[-1]
    tables = [
        *_table(code, 'motions', reference.motion),
        *_table(code, 'efforts', reference.effort),
    ]
    if code.wrench_links:
        tables += _table(code, 'wrenches', reference.wrench)
        tables += _table(code, 'loaded_efforts', reference.loaded_effort)
    scale = ', '.join(literal(float(value)) for value in reference.scale)
    calls = []
    for order, loaded, function in _variants(code):
        arguments = 'motions[i], wrenches[i], effort' if loaded else 'motions[i], effort'
        expected = 'loaded_efforts[i]' if loaded else 'efforts[i]'
        calls += [
            f'        {function}({arguments});',
            f'        wrong |= differs("{function}", i, {order + 1}, effort, {expected});',
        ]
    return [
        *comment(
            [
                f'{code.mark} {code.version}. Do not edit.',
                '',
                'Compares the functions with efforts that hodyn_ros computed by another',
                'formulation ("nth_order"). Returns 0 if they agree, or says what differs.',
                '',
                f'{compiler} {FLAGS} -o {code.unit}_test \\',
                f'    {code.unit}_test.{extension} {code.unit}.{extension} -lm \\',
                f'    && ./{code.unit}_test',
            ]
        ),
        f'#include "{code.unit}.h"',
        '',
        '#include <math.h>',
        '#include <stdio.h>',
        '',
        f'#define TOLERANCE {literal(precision.tolerance)}',
        '',
        '/* Efforts of each order to which errors are relative. */',
        f'static const {real} scale[{highest + 1}] = {{{scale}}};',
        *tables,
        '',
        f'static {real} largest = {literal(0.0)};',
        '',
        'static int differs(',
        f'    const char *function, int sample, int orders, const {real} *effort,',
        f'    const {real} *expected)',
        '{',
        '    int k, j, wrong = 0;',
        '    for (k = 0; k < orders; ++k) {',
        f'        for (j = 0; j < {n}; ++j) {{',
        f'            const int i = k * {n} + j;',
        f'            const {real} error = fabs{f}(effort[i] - expected[i]) / scale[k];',
        '            largest = error > largest ? error : largest;',
        '            if (!(error <= TOLERANCE)) {',
        '                printf("%s, motion %d: derivative %d of the effort of joint %s "',
        '                       "is %.9g, expected %.9g\\n", function, sample, k,',
        f'                       {code.name}_joint_names[j], (double)effort[i],',
        '                       (double)expected[i]);',
        '                wrong = 1;',
        '            }',
        '        }',
        '    }',
        '    return wrong;',
        '}',
        '',
        'int main(void)',
        '{',
        f'    {real} effort[{(highest + 1) * n}];',
        '    int i, wrong = 0;',
        f'    for (i = 0; i < {samples}; ++i) {{',
        *calls,
        '    }',
        f'    printf("{code.unit}: %s, largest error %.1e of the largest effort of its order\\n",',
        '           wrong ? "wrong" : "correct", (double)largest);',
        '    return wrong;',
        '}',
    ]


