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

enum { EFFORT_WAITING = 0 };
enum { EFFORT_FOLLOWING = 1 };
enum { EFFORT_EASING = 2 };
enum { EFFORT_FALLBACK = 3 };
enum { EFFORT_REFUSED = 4 };
enum { EFFORT_WITHIN = 0 };
enum { EFFORT_LIMITED = 1 };
enum { EFFORT_RATE_LIMITED = 2 };
enum { EFFORT_TAKEN = 0 };
enum { EFFORT_WRONG_ORDER = 1 };
enum { EFFORT_NOT_FINITE = 2 };
enum { EFFORT_STALE = 3 };
enum { EFFORT_FUTURE = 4 };
enum { EFFORT_OVERTAKEN = 5 };
#define EFFORT_BEYOND 10.0

/* Numbers that a rule for n joints keeps. */
#define EFFORT_RULE_MEMORY(n) (10 * (n))

typedef struct EffortRule {
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
    double *limits;
    double *rate_limits;
    double *command;
    double *target;
    double *wanted;
    double *difference;
    double *limited;
    double *values; /* derivative k of joint j at k n + j */
} EffortRule;

static inline double effort_rule_within(
    double value,
    double low,
    double high)
{
    if (value < low) {
        return low;
    }
    if (value > high) {
        return high;
    }
    return value;
}

static inline double effort_rule_share(
    double since,
    double ease_time)
{
    if (!(since < ease_time)) {
        return 0.0;
    }
    double x = since / ease_time;
    return 1.0 - x * x * x * (10.0 - 15.0 * x + 6.0 * x * x);
}

static inline double effort_rule_period(
    EffortRule *r,
    double period)
{
    if (!(period > 0.0)) {
        return 0.0;
    }
    if (period <= r->max_period) {
        return period;
    }
    if (r->max_period > 0.0) {
        return r->max_period;
    }
    return 0.0;
}

static inline void effort_rule_change(
    EffortRule *r,
    int state)
{
    r->state = state;
    r->since = 0.0;
    for (int j = 0; j < r->n; ++j) {
        r->difference[j] = r->command[j] - r->target[j];
    }
}

static inline void effort_rule_lose(
    EffortRule *r,
    int state)
{
    for (int j = 0; j < r->n; ++j) {
        r->target[j] = 0.0;
        if (r->holds > 0) {
            r->target[j] = r->command[j];
        }
    }
    effort_rule_change(r, state);
}

static inline void effort_rule_reset(
    EffortRule *r,
    const double *command)
{
    for (int j = 0; j < r->n; ++j) {
        r->command[j] = 0.0;
        if (isfinite(command[j])) {
            r->command[j] = effort_rule_within(command[j], -r->limits[j], r->limits[j]);
        }
    }
    r->has_sample = 0;
    r->ordered = 0;
    r->age = -1.0;
    effort_rule_lose(r, EFFORT_WAITING);
}

static inline int effort_rule_limits(
    EffortRule *r,
    const double *efforts,
    const double *rates)
{
    int wrong = 0;
    for (int j = 0; j < r->n; ++j) {
        r->limits[j] = efforts[j];
        r->rate_limits[j] = rates[j];
        r->command[j] = 0.0;
        r->limited[j] = EFFORT_WITHIN;
        int is_right = 1;
        if ((!(isfinite(efforts[j]))) || (!(isfinite(rates[j])))) {
            is_right = 0;
        }
        if ((!(efforts[j] > 0.0)) || (!(rates[j] > 0.0))) {
            is_right = 0;
        }
        if (is_right == 0) {
            wrong += 1;
            r->limits[j] = 0.0;
            r->rate_limits[j] = 0.0;
        }
    }
    effort_rule_reset(r, r->command);
    return wrong;
}

static inline void effort_rule_keep(
    EffortRule *r,
    double stamp,
    int order,
    const double *values)
{
    int is_same = r->has_sample;
    for (int i = 0; i < 3 * r->n; ++i) {
        double value = 0.0;
        if (i < (order + 1) * r->n) {
            value = values[i];
        }
        if (value != r->values[i]) {
            is_same = 0;
        }
        r->values[i] = value;
    }
    if (is_same == 0) {
        r->unchanged = 0.0;
    }
    r->stamp = stamp;
    r->order = order;
    r->has_sample = 1;
}

static inline int effort_rule_look(
    EffortRule *r,
    double now,
    double stamp,
    int order,
    const double *values)
{
    if ((order < 0) || (order > 2)) {
        return EFFORT_WRONG_ORDER;
    }
    if ((!(isfinite(now))) || (!(isfinite(stamp)))) {
        return EFFORT_NOT_FINITE;
    }
    for (int i = 0; i < (order + 1) * r->n; ++i) {
        if (!(isfinite(values[i]))) {
            return EFFORT_NOT_FINITE;
        }
    }
    if (!(stamp >= now - r->max_age)) {
        return EFFORT_STALE;
    }
    if (!(stamp <= now + r->max_ahead)) {
        return EFFORT_FUTURE;
    }
    if ((r->ordered > 0) && (stamp < r->stamp)) {
        return EFFORT_OVERTAKEN;
    }
    return EFFORT_TAKEN;
}

static inline int effort_rule_take(
    EffortRule *r,
    double now,
    double stamp,
    int order,
    const double *values)
{
    if ((r->ordered > 0) && (stamp == r->stamp)) {
        return EFFORT_TAKEN;
    }
    if (isfinite(now)) {
        if (now < r->clock) {
            r->ordered = 0;
        }
        r->clock = now;
    }
    int found = effort_rule_look(r, now, stamp, order, values);
    r->refusing = 1;
    if (found == EFFORT_TAKEN) {
        r->refusing = 0;
        r->ordered = 1;
        effort_rule_keep(r, stamp, order, values);
    }
    return found;
}

static inline int effort_rule_extrapolate(
    EffortRule *r)
{
    double first = 0.0;
    double second = 0.0;
    if ((r->order > 0) && (r->extrapolation > 0)) {
        first = r->age;
    }
    if ((r->order > 1) && (r->extrapolation > 1)) {
        second = 0.5 * r->age * r->age;
    }
    int n = r->n;
    for (int j = 0; j < n; ++j) {
        double wanted = r->values[j];
        if (first != 0.0) {
            wanted += first * r->values[n + j];
        }
        if (second != 0.0) {
            wanted += second * r->values[2 * n + j];
        }
        r->wanted[j] = wanted;
        if (!(fabs(wanted) <= EFFORT_BEYOND * r->limits[j])) {
            r->beyond = j;
            r->wanted_beyond = wanted;
            return 0;
        }
    }
    return 1;
}

static inline void effort_rule_limit(
    EffortRule *r,
    double period)
{
    double share = effort_rule_share(r->since, r->ease_time);
    for (int j = 0; j < r->n; ++j) {
        double wanted = r->target[j] + share * r->difference[j];
        double within = effort_rule_within(wanted, -r->limits[j], r->limits[j]);
        double step = r->rate_limits[j] * period;
        double reached = effort_rule_within(within, r->command[j] - step, r->command[j] + step);
        r->command[j] = reached;
        r->limited[j] = EFFORT_WITHIN;
        if (within != wanted) {
            r->limited[j] = EFFORT_LIMITED;
        }
        if (reached != within) {
            r->limited[j] = EFFORT_RATE_LIMITED;
        }
    }
}

static inline void effort_rule_update(
    EffortRule *r,
    double now,
    double period)
{
    double counted = effort_rule_period(r, period);
    r->since += counted;
    r->unchanged += counted;
    r->beyond = -1;
    r->age = -1.0;
    int follows = 0;
    if (r->has_sample > 0) {
        r->age = now - r->stamp;
        if ((r->age <= r->max_age) && (r->age >= -r->max_ahead)) {
            follows = effort_rule_extrapolate(r);
        }
    }
    if (follows > 0) {
        for (int j = 0; j < r->n; ++j) {
            r->target[j] = r->wanted[j];
        }
        if (r->state != EFFORT_FOLLOWING) {
            effort_rule_change(r, EFFORT_FOLLOWING);
        }
    } else {
        if (r->state == EFFORT_FOLLOWING) {
            r->losses += 1;
            effort_rule_lose(r, EFFORT_EASING);
        }
        if ((r->state != EFFORT_WAITING) && (r->since >= r->ease_time)) {
            r->state = EFFORT_FALLBACK;
            if ((r->refusing > 0) || (r->beyond >= 0)) {
                r->state = EFFORT_REFUSED;
            }
        }
    }
    effort_rule_limit(r, counted);
}

/* Begin with memory for n joints, the defaults of EffortController and limits (n) of efforts and
 * rates; how many joints have limits that are not finite and > 0: their efforts stay zero. */
static inline int effort_rule_begin(
    EffortRule *r, int n, double *memory, const double *efforts, const double *rates)
{
    int i;
    r->n = n;
    for (i = 0; i < EFFORT_RULE_MEMORY(n); ++i) {
        memory[i] = 0.0;
    }
    r->limits = memory + 0 * n;
    r->rate_limits = memory + 1 * n;
    r->command = memory + 2 * n;
    r->target = memory + 3 * n;
    r->wanted = memory + 4 * n;
    r->difference = memory + 5 * n;
    r->limited = memory + 6 * n;
    r->values = memory + 7 * n;
    r->extrapolation = 2;
    r->holds = 0;
    r->max_age = 0.05;
    r->max_ahead = 0.02;
    r->max_period = 0.005;
    r->ease_time = 0.5;
    r->state = 0;
    r->order = 0;
    r->has_sample = 0;
    r->refusing = 0;
    r->losses = 0;
    r->beyond = -1;
    r->ordered = 0;
    r->clock = 0.0;
    r->stamp = 0.0;
    r->age = -1.0;
    r->since = 0.0;
    r->unchanged = 0.0;
    r->wanted_beyond = 0.0;
    return effort_rule_limits(r, efforts, rates);
}

#endif
