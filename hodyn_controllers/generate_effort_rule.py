"""Write effort_rule.h, in C99, from hodyn_ros/control/effort_rule.py."""

import inspect
import re
from pathlib import Path

from hodyn_ros.codegen.translation import Environment, translated
from hodyn_ros.control import effort_rule

PATH = Path(__file__).with_name('include') / 'hodyn_controllers' / 'effort_rule.h'
ROWS = {'limits': 1, 'rate_limits': 1, 'command': 1, 'target': 1, 'wanted': 1}
ROWS |= {'difference': 1, 'limited': 1, 'values': 3}
ROOTS = 'effort_rule_limits', 'effort_rule_take', 'effort_rule_update'
HEAD = """\
/* Efforts of each cycle from samples of efforts and their derivatives, within limits: the rule of
 * EffortController for loops of one's own (libfranka, ur_rtde, drives in MIT mode). C99, C++11.
 *
 * Written by generate_effort_rule.py from hodyn_ros/control/effort_rule.py: do not edit.
 * Nothing allocates, locks or waits. Times are seconds of one clock; count them from the start of
 * the program: since 1970 a double has only 0.2 us left.
 *
 *   EffortRule rule;
 *   double memory[EFFORT_RULE_MEMORY(7)];
 *   effort_rule_begin(&rule, 7, memory, limits, rate_limits);   0 if all are finite and > 0
 *   rule.holds = 1;                                             other settings than below
 *   effort_rule_reset(&rule, torque);                           efforts that act now
 *   each cycle:
 *     effort_rule_take(&rule, now, stamp, 2, values);           newest Q, Qd, Qdd (n each)
 *     effort_rule_update(&rule, now, period);                   efforts in rule.command (n)
 */
#ifndef HODYN_CONTROLLERS__EFFORT_RULE_H_
#define HODYN_CONTROLLERS__EFFORT_RULE_H_

#include <math.h>

"""
STRUCT = """
/* Numbers that a rule for n joints keeps. */
#define EFFORT_RULE_MEMORY(n) ({rows} * (n))

typedef struct EffortRule {{
    int n;
    int extrapolation;     /* highest derivative used: 0 to 2 */
    int holds;             /* the fallback holds the last efforts instead of zero */
    double max_age;        /* of a sample that is followed [s] */
    double max_ahead;      /* by which a stamp may be later than now [s] */
    double max_period;     /* of a cycle, as far as the limit of the rate counts it [s] */
    double ease_time;      /* between efforts and the fallback, both ways [s] */
    int state;             /* EFFORT_WAITING ... */
    int order;             /* highest derivative of the sample */
    int has_sample;
    int ordered;           /* samples with earlier stamps are refused */
    int refusing;          /* what came since the sample was refused */
    int losses;            /* how often efforts were lost */
    int beyond;            /* joint far beyond its limit in this cycle; -1: none */
    double wanted_beyond;  /* effort of that joint; may be no number */
    double stamp;          /* of the sample [s] */
    double age;            /* of the sample [s]; -1: there is none */
    double clock;          /* when a sample was offered [s] */
    double since;          /* time since the targets are of another kind [s] */
    double unchanged;      /* for which values of samples have been the same [s] */
{arrays}
}} EffortRule;

"""
BEGIN = """
/* Begin with memory for n joints, the defaults of EffortController and limits (n) of efforts and
 * rates; how many joints have limits that are not finite and > 0: their efforts stay zero. */
static inline int effort_rule_begin(
    EffortRule *r, int n, double *memory, const double *efforts, const double *rates)
{{
    int i;
    r->n = n;
    for (i = 0; i < EFFORT_RULE_MEMORY(n); ++i) {{
        memory[i] = 0.0;
    }}
{places}
{settings}
    return effort_rule_limits(r, efforts, rates);
}}

#endif
"""


def header():
    """Text of the header."""
    source = inspect.getsource(effort_rule)
    fields = {
        x: ('3n',) if ROWS.get(x) == 3 else ('n',) if x in ROWS else () for x in _state()
    }
    around = Environment({}, {'EffortRule': {'{}->': fields}})
    functions = translated(source, ROOTS, around).replace('static ', 'static inline ')
    constants = {k: v for k, v in vars(effort_rule).items() if k.startswith('EFFORT_')}
    numbers = [
        f'enum {{ {name} = {value} }};'
        if isinstance(value, int)
        else f'#define {name} {value!r}'
        for name, value in constants.items()
    ]
    places, start = [], 0
    for name, rows in ROWS.items():
        places.append(f'    r->{name} = memory + {start} * n;')
        start += rows
    arrays = '\n'.join(
        f'    double *{name};{" /* derivative k of joint j at k n + j */" * (rows == 3)}'
        for name, rows in ROWS.items()
    )
    settings = [f'    r->{k} = {v};' for k, v in _state().items() if k not in ('n', *ROWS)]
    parts = [
        HEAD,
        '\n'.join(numbers),
        '\n',
        STRUCT.format(rows=start, arrays=arrays),
        re.sub(r'\n{3,}', '\n\n', functions),
        BEGIN.format(places='\n'.join(places), settings='\n'.join(settings)),
    ]
    return ''.join(parts)


def _state():
    """Fields of a rule as they are at first."""
    return vars(effort_rule.EffortRule(0))


if __name__ == '__main__':
    PATH.write_text(header(), encoding='utf-8')
