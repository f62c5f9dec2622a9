"""The inverse dynamics of one robot as C++11, in a namespace of its own, with a test of itself."""

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
    Functions,
    cmake,
    comment,
    description,
    function_body,
    slope_function,
)

Array = NDArray[np.float64]


def cpp_files(code: Code) -> dict[str, str]:
    """Files of C++11: their text by name.

    Parameters
    ----------
    code : Code

    Returns
    -------
    dict of str
    """
    unit = code.unit
    files = {
        f'{unit}.hpp': _header(code),
        f'{unit}.cpp': _source(code),
        f'{unit}_test.cpp': _test(code),
        'CMakeLists.txt': cmake(code, 'CXX', 'cpp', 11),
    }
    return {name: '\n'.join(lines) + '\n' for name, lines in files.items()}


def _variants(code: Code) -> Iterator[tuple[int, bool]]:
    """Order, and whether with wrenches, of each function."""
    for loaded in (False, True) if code.wrench_links else (False,):
        for order in code.orders:
            yield order, loaded


def _declaration(order: int, loaded: bool) -> list[str]:
    arguments = f'const Joints<{order + 3}> & motion'
    if loaded:
        arguments += f', const Wrenches<{order + 1}> & wrench'
    return [f'Joints<{order + 1}> inverse_dynamics(', f'  {arguments}) noexcept']


def _strings(names: Sequence[str], name: str, count: str) -> list[str]:
    return [
        f'constexpr std::array<const char *, {count}> {name}{{{{',
        *[f'  {string_literal(text)},' for text in names],
        '}};',
    ]


def _header(code: Code) -> list[str]:
    guard = f'{code.name.upper()}_DYNAMICS_HPP'
    layout = [
        'motion[k][j]: k-th time derivative of the position of joint j [rad/s^k, m/s^k].',
        'Result [k][j]: k-th time derivative of the effort of joint j [N m/s^k, N/s^k]; as many',
        '    as the motion determines: with K derivatives of the position, itself counted, K - 2.',
    ]
    if code.wrench_links:
        layout.append(
            'wrench[k][l][i]: k-th time derivative of coordinate i of the wrench on link l.'
        )
    gravity = ', '.join(code.precision.literal(g) for g in code.model.gravity)
    lines = [
        *description(code, layout),
        f'#ifndef {guard}',
        f'#define {guard}',
        '',
        '#include <array>',
        '#include <cstddef>',
        '',
        f'namespace {code.unit} {{',
        '',
        f'using Real = {code.precision.type};',
        '',
        f'constexpr std::size_t n_joints = {code.model.n_joints};',
        *_strings(code.model.joint_names, 'joint_names', 'n_joints'),
        '// In the axes of the base link [m/s^2].',
        f'constexpr std::array<Real, 3> gravity{{{{{gravity}}}}};',
        '',
        '// A number for each joint and its time derivatives: K of them, itself counted.',
        'template <std::size_t K>',
        'using Joints = std::array<std::array<Real, n_joints>, K>;',
    ]
    if code.wrench_links:
        lines += [
            '',
            f'constexpr std::size_t n_wrenches = {len(code.wrench_links)};',
            *_strings(code.wrench_links, 'wrench_links', 'n_wrenches'),
            '',
            '// (moment, force) on each of the links and their time derivatives.',
            'template <std::size_t K>',
            'using Wrenches = std::array<std::array<std::array<Real, 6>, n_wrenches>, K>;',
        ]
    for order, loaded in _variants(code):
        first, second = _declaration(order, loaded)
        lines += ['', f'// {RESULTS[order]}{", with wrenches" if loaded else ""}.']
        lines += [first, f'{second};']
    return [*lines, '', f'}}  // namespace {code.unit}', '', '#endif']


FUNCTIONS = Functions('std::', '', 'static_cast<Real>({})')


def _function(code: Code, order: int, loaded: bool) -> list[str]:
    n = code.model.n_joints
    body = function_body(
        code,
        order,
        loaded,
        FUNCTIONS,
        {'motion': 'motion[{k}][{j}]', 'wrench': 'wrench[{k}][{l}][{i}]'},
    )
    assignments = [
        f'effort[{i // n}][{i % n}] = {value};' for i, value in enumerate(body.efforts)
    ]
    parts, n_kept = in_parts(body.definitions, assignments, 'Real')
    arguments = ['motion', *(['wrench'] if loaded else [])]
    first, second = _declaration(order, loaded)
    result = f'Joints<{order + 1}> effort;'
    if len(parts) == 1:
        return ['', first, second, *_braced([result, *parts[0], 'return effort;'], arguments)]
    lines: list[str] = []
    end = f', Joints<{order + 1}> & effort, std::array<Real, {n_kept}> & kept) noexcept'
    title = f'part_of_order_{order}{"_with_wrenches" if loaded else ""}'
    for number, part in enumerate(parts):
        lines += ['', f'SEPARATE static void {title}_{number}(']
        lines += [second.replace(') noexcept', end)]
        lines += _braced(part, [*arguments, 'effort', 'kept'])
    calls = [
        f'{title}_{number}({", ".join(arguments)}, effort, kept);' for number in range(len(parts))
    ]
    kept = f'std::array<Real, {n_kept}> kept;'
    lines += ['', first, second]
    return [*lines, *_braced([result, kept, *calls, 'return effort;'], arguments)]


def _braced(lines: Sequence[str], arguments: Sequence[str]) -> list[str]:
    used = names_in(lines)
    unused = [f'  static_cast<void>({name});' for name in arguments if name not in used]
    return ['{', *unused, *[f'  {line}' for line in lines], '}']


def _source(code: Code) -> list[str]:
    lines = [line for variant in _variants(code) for line in _function(code, *variant)]
    used = names_in(lines)
    separate = ['', *SEPARATE] if 'SEPARATE' in used else []
    slope = ['', *slope_function(code, FUNCTIONS)] if 'slope' in used else []
    return [
        *comment([f'{code.mark} {code.version}. Do not edit.']),
        f'#include "{code.unit}.hpp"',
        '',
        '#include <cmath>',
        *separate,
        '',
        f'namespace {code.unit} {{',
        *slope,
        *lines,
        '',
        f'}}  // namespace {code.unit}',
    ]


def _nested(code: Code, values: Array, indent: str) -> list[str]:
    """Write the initializer of nested arrays, its last axis on one line."""
    if values.ndim == 1:
        texts = [code.precision.literal(float(value)) for value in values]
        return [f'{indent}{{{{{", ".join(texts)}}}}},']
    inner = [line for row in values for line in _nested(code, row, indent + '  ')]
    return [f'{indent}{{{{', *inner, f'{indent}}}}},']


def _table(code: Code, name: str, kind: str, values: Array) -> list[str]:
    lines = [line for sample in values for line in _nested(code, sample, '  ')]
    return [f'const {kind}<{values.shape[1]}> {name}[] = {{', *lines, '};']


def _test(code: Code) -> list[str]:
    reference, literal = code.reference, code.precision.literal
    tables = [
        *_table(code, 'motions', 'Joints', reference.motion),
        *_table(code, 'efforts', 'Joints', reference.effort),
    ]
    if code.wrench_links:
        tables += _table(code, 'wrenches', 'Wrenches', reference.wrench)
        tables += _table(code, 'loaded_efforts', 'Joints', reference.loaded_effort)
    calls = []
    for order, loaded in _variants(code):
        arguments, expected, title = f'first<{order + 3}>(motions[i])', 'efforts[i]', ''
        if loaded:
            arguments += f', first<{order + 1}>(wrenches[i])'
            expected, title = 'loaded_efforts[i]', ', with wrenches'
        calls += [
            '    wrong |= differs(',
            f'      "order {order}{title}", i, inverse_dynamics({arguments}), {expected});',
        ]
    scale = ', '.join(literal(float(value)) for value in reference.scale)
    return [
        *comment(
            [
                f'{code.mark} {code.version}. Do not edit.',
                '',
                'Compares the functions with efforts that hodyn_ros computed by another',
                'formulation ("nth_order"). Returns 0 if they agree, or says what differs.',
                '',
                f'c++ -std=c++11 {FLAGS} -o {code.unit}_test \\',
                f'    {code.unit}_test.cpp {code.unit}.cpp && ./{code.unit}_test',
            ]
        ),
        f'#include "{code.unit}.hpp"',
        '',
        '#include <cmath>',
        '#include <cstdio>',
        '',
        f'using namespace {code.unit};',
        '',
        'namespace {',
        '',
        f'constexpr Real tolerance = {literal(code.precision.tolerance)};',
        '',
        '// Efforts of each order to which errors are relative.',
        f'const Real scale[] = {{{scale}}};',
        *tables,
        '',
        f'Real largest = {literal(0.0)};',
        '',
        'template <std::size_t K, typename T, std::size_t L>',
        'std::array<T, K> first(const std::array<T, L> & all)',
        '{',
        '  std::array<T, K> some;',
        '  for (std::size_t k = 0; k < K; ++k) {',
        '    some[k] = all[k];',
        '  }',
        '  return some;',
        '}',
        '',
        'template <std::size_t K, std::size_t L>',
        'bool differs(',
        '  const char * function, int sample, const Joints<K> & effort,',
        '  const Joints<L> & expected)',
        '{',
        '  bool wrong = false;',
        '  for (std::size_t k = 0; k < K; ++k) {',
        '    for (std::size_t j = 0; j < n_joints; ++j) {',
        '      const Real error = std::fabs(effort[k][j] - expected[k][j]) / scale[k];',
        '      largest = error > largest ? error : largest;',
        '      if (!(error <= tolerance)) {',
        '        std::printf(',
        '          "%s, motion %d: derivative %d of the effort of joint %s is %.9g, "',
        '          "expected %.9g\\n", function, sample, static_cast<int>(k), joint_names[j],',
        '          static_cast<double>(effort[k][j]), static_cast<double>(expected[k][j]));',
        '        wrong = true;',
        '      }',
        '    }',
        '  }',
        '  return wrong;',
        '}',
        '',
        '}  // namespace',
        '',
        'int main()',
        '{',
        '  bool wrong = false;',
        f'  for (int i = 0; i < {len(reference.motion)}; ++i) {{',
        *calls,
        '  }',
        '  std::printf(',
        f'    "{code.unit}: %s, largest error %.1e of the largest effort of its order\\n",',
        '    wrong ? "wrong" : "correct", static_cast<double>(largest));',
        '  return wrong ? 1 : 0;',
        '}',
    ]
