"""Program in C that compares generated functions with efforts of another formulation."""

from __future__ import annotations

from string import Template

import numpy as np

from hodyn_ros.codegen.c_source import FLAGS, Code, filled, functions_of
from hodyn_ros.dynamics.forward import regular_mass_matrix
from hodyn_ros.dynamics.inverse import inverse_dynamics
from hodyn_ros.dynamics.wrenches import Wrench
from hodyn_ros.typing import Array

SAMPLES = 9
"""Blocks and what is left."""

_CHECK = Template("""    {
$tables        for (i = 0; i < SAMPLES; ++i) {
$close            $function($given, found + $size * i);
        }
        wrong |= differs("$function", $orders, found, $result[0], scale[0]);
        memset(found, 255, sizeof found);
        ${function}_batch(SAMPLES, $all_given, found);
        wrong |= differs("${function}_batch", $orders, found, $result[0], scale[0]);
    }
""")

_CLOSE = Template("""            memcpy(closed[i], ${name}_start, sizeof closed[i]);
            wrong |= !${name}_close(motion[i], closed[i]);
""")


def self_test(code: Code) -> str:
    """Program in C that compares all functions with tables of efforts of NumPy."""
    model, links, precision = code.model, code.wrench_links, code.precision
    highest, n, closure = code.orders[-1], model.n_joints, model.closure
    # All inputs are exact in either precision.
    rng = np.random.default_rng(0)
    motion = rng.integers(-128, 129, (SAMPLES, highest + 3, n)) / 64.0
    motion[:, 0] *= 1.5
    if closure:  # near the start, where there is a way
        motion[:, 0] = closure.start[closure.independent] + motion[:, 0] / 64.0
    wrench = rng.integers(-640, 641, (SAMPLES, highest + 1, len(links), 6)) / 64.0
    wrenches = [Wrench(link, wrench[:, :, i]) for i, link in enumerate(links)]
    efforts = [
        inverse_dynamics(model, motion, acting, algorithm='nth_order')
        for acting in ((), wrenches)
    ]
    # Where all efforts vanish, their rounding errors need not.
    least = 1e-3 * np.abs(model.M_body).max(initial=0.0) or 1.0
    scale = np.maximum(np.abs(efforts).max(axis=(0, 1, 3)), least)
    scales = [scale, scale]
    if code.forward:
        # To where orders of very different size came from, and as much worse as M is conditioned.
        conditions = np.linalg.cond(regular_mass_matrix(model, motion))
        scales[True] = np.full_like(scale, np.abs(motion[:, 2:]).max() * conditions.max())
    checks = ''
    for function, _, sizes, order, loaded, forward in functions_of(code):
        tables = {
            'motion': motion[:, : 2 if forward else order + 3],
            'wrench': wrench[:, : order + 1],
            'effort': efforts[loaded][:, : order + 1],
            'acceleration': motion[:, 2 : order + 3],
            'scale': scales[forward][None],
        }
        *given, result = sizes
        arrays = [x for x in (*sizes, 'scale') if x in tables]
        checks += _CHECK.substitute(
            tables=''.join(_table(code, x, tables[x]) for x in arrays),
            close=_CLOSE.substitute(code.values) if closure else '',
            function=function,
            given=', '.join(f'{array}[i]' for array in given),
            all_given=', '.join(f'{array}[0]' for array in given),
            size=sizes[result],
            orders=order + 1,
            result=result,
        )
    values = {
        'flags': FLAGS,
        'samples': f'{SAMPLES}',
        'tolerance': precision.literal(precision.tolerance),
        'size': f'{(highest + 1) * n}',
        'closed': f', closed[SAMPLES][{code.tree.n_joints}]' if closure else '',
        'checks': checks,
    }
    return filled('dynamics_test.c', {**code.values, **values})


def _table(code: Code, name: str, values: Array) -> str:
    """Constants of the test, a row for each sample."""
    rows = values.reshape(len(values), -1)
    text = f'static const {code.precision.type} {name}[{len(rows)}][{rows.shape[1]}] = {{\n'
    for row in rows:
        texts = [code.precision.literal(float(value)) for value in row]
        lines = [
            f'        {", ".join(texts[i : i + 4])},\n' for i in range(0, len(texts), 4)
        ]
        text += f'    {{\n{"".join(lines)}    }},\n'
    return text + '};\n'
