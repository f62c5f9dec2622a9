/* SPDX-License-Identifier: 0BSD
 *
 * @made@
 *
 * Compares the functions with efforts that hodyn_ros computed by another
 * formulation ("nth_order"). Returns 0 if they agree, or says what differs.
 *
 * cc -std=c99 @flags@ -o @unit@_test \
 *     @unit@_test.c @unit@.c -lm \
 *     && ./@unit@_test
 */
#include "@unit@.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SAMPLES @samples@
#define TOLERANCE @tolerance@

static @real@ largest = 0;

/* Errors are relative to the scale of each order: its largest effort; of accelerations the largest
 * one, times the condition of the mass matrix. */
static int differs(
    const char *function, int orders, const @real@ *found, const @real@ *expected,
    const @real@ *scale)
{
    int i, wrong = 0;
    for (i = 0; i < SAMPLES * orders * @n@; ++i) {
        const int j = i % @n@, k = i / @n@ % orders;
        const @real@ error = fabs@f@(found[i] - expected[i]) / scale[k];
        largest = error > largest ? error : largest;
        if (!(error <= TOLERANCE)) {
            printf("%s, motion %d: derivative %d of the result of joint %s "
                   "is %.9g, expected %.9g\n", function, i / @n@ / orders, k,
                   @name@_joint_names[j], (double)found[i], (double)expected[i]);
            wrong = 1;
        }
    }
    return wrong;
}

int main(void)
{
    static @real@ found[SAMPLES * @size@]@closed@;
    int i, wrong = 0;
@checks@    printf("@unit@: %s, largest error %.1e of the largest effort of its order\n",
           wrong ? "wrong" : "correct", (double)largest);
    return wrong;
}
