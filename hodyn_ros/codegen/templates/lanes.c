#ifdef __GNUC__
#define INLINE static inline __attribute__((always_inline))
/* A compiler that put the parts of a long function together would take as long as without them. */
#define SEPARATE static __attribute__((noinline))
#define RESTRICT __restrict
#else
#define INLINE static
#define SEPARATE static
#define RESTRICT
#endif

/* Samples that a batch function computes beside each other, number i of sample l at i LANES + l. */
#define LANES @lanes@


/* Numbers of the first LANES of n samples beside each other; the last one fills up. */
static void interleave(
    const size_t n, const int size, const @real@ *RESTRICT rows, @real@ *RESTRICT block)
{
    const @real@ *row[LANES];
    int i, l;
    for (l = 0; l < LANES; ++l) {
        row[l] = rows + (size_t)size * ((size_t)l < n ? (size_t)l : n - 1);
    }
    for (i = 0; i < size; ++i) {
        for (l = 0; l < LANES; ++l) {
            block[i * LANES + l] = row[l][i];
        }
    }
}


/* The reverse of interleave. */
static void separate(
    const size_t n, const int size, @real@ *rows, const @real@ *RESTRICT block)
{
    @real@ *row[LANES];
    int i, l;
    for (l = 0; l < LANES; ++l) {
        row[l] = rows + (size_t)size * ((size_t)l < n ? (size_t)l : n - 1);
    }
    for (i = 0; i < size; ++i) {
        for (l = 0; l < LANES; ++l) {
            row[l][i] = block[i * LANES + l];
        }
    }
}


/* Sign: -1, 0 or 1. */
static @real@ sign@f@(const @real@ x)
{
    return (@real@)((x > 0) - (x < 0));
}


/* Signs of an array. */
static void signs(
    const int count, const @real@ *RESTRICT velocity, @real@ *RESTRICT direction)
{
    int i;
    for (i = 0; i < count; ++i) {
        direction[i] = sign@f@(velocity[i]);
    }
}


/* Derivative of tanh, as precise far out as near zero. */
static @real@ tanh_slope@f@(const @real@ x)
{
    const @real@ decay = exp@f@(-2.0@f@ * fabs@f@(x));
    return 4.0@f@ * decay / ((1.0@f@ + decay) * (1.0@f@ + decay));
}


/* Sines and cosines to 1.5 units in the last place, 2.4 of angles near 1e6. Angles are k pi/2 + r,
 * |r| <= pi/4; the polynomials in r are those of fdlibm. Larger ones are left to the C library. */
static void sines(
    const int count, const @real@ *RESTRICT angles, @real@ *RESTRICT sine, @real@ *RESTRICT cosine)
{
    int i, beyond = 0;
    for (i = 0; i < count; ++i) {
        const double angle = angles[i];
        const double k = rint(angle * 0.6366197723675814);
        const double m = k - 4.0 * rint(0.25 * k); /* -2 to 2 */
        /* k times the first two parts of pi/2 is exact. */
        const double r = angle - k * 1.570796326734125614166
            - k * 6.077100506303965977e-11 - k * 2.02226624879595063154e-21;
        const double x = r * r;
        const double s = r + r * x * (-1.66666666666666324348e-01 + x * (
            8.33333333332248946124e-03 + x * (-1.98412698298579493134e-04 + x * (
            2.75573137070700676789e-06 + x * (-2.50507602534068634195e-08 + x *
            1.58969099521155010221e-10)))));
        const double c = 1.0 - (0.5 * x - x * x * (4.16666666666666019037e-02 + x * (
            -1.38888888888741095749e-03 + x * (2.48015872894767294178e-05 + x * (
            -2.75573143513906633035e-07 + x * (2.08757232129817482790e-09 + x *
            -1.13596475577881948265e-11))))));
        const double a = fabs(fabs(m) - 1.0) < 0.5 ? c : s;
        const double b = fabs(fabs(m) - 1.0) < 0.5 ? s : c;
        const @real@ u = (@real@)a, v = (@real@)b;
        sine[i] = fabs(m - 0.5) > 1.0 ? -u : u;
        cosine[i] = fabs(m + 0.5) > 1.0 ? -v : v;
        beyond |= fabs(angle) <= 1e6 ? 0 : 1;
    }
    for (i = 0; beyond && i < count; ++i) {
        if (!(fabs@f@(angles[i]) <= 1e6@f@)) {
            sine[i] = sin@f@(angles[i]);
            cosine[i] = cos@f@(angles[i]);
        }
    }
}


/* Exponential of x, -1e20 to 709, and the same less one: 2^k exp(r), |r| <= log(2) / 2, with a Taylor
 * polynomial of exp - 1. */
INLINE double exponential(const double x, double *less)
{
    const double k = rint(1.4426950408889634 * x);
    const double r = x - k * 6.93147180369123816490e-01 - k * 1.90821492927058770002e-10;
    const double rest = r * (1.0 + r * (1.0 / 2.0 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (
        1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0 + r * (1.0 / 40320.0 + r * (
        1.0 / 362880.0 + r * (1.0 / 3628800.0 + r * (1.0 / 39916800.0 + r * (
        1.0 / 479001600.0 + r * (1.0 / 6227020800.0)))))))))))));
    /* The last bits of this sum are k + 1023, the exponent of 2^k. */
    const double shifted = k + 6755399441056767.0;
    double power;
    int64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits -= 0x4338000000000000;
    bits = (bits > 0 ? bits : 0) << 52;
    memcpy(&power, &bits, sizeof power);
    *less = power - 1.0 + power * rest;
    return power * rest + power;
}


/* tanh to three and its derivative to four units in the last place. */
static void steps(
    const int count, const @real@ *RESTRICT step, @real@ *RESTRICT shape, @real@ *RESTRICT slope)
{
    int i;
    for (i = 0; i < count; ++i) {
        double less;
        const double decay = exponential(-2.0 * fabs((double)step[i]), &less);
        const @real@ size = (@real@)(-less / (1.0 + decay));
        shape[i] = step[i] < 0 ? -size : size;
        slope[i] = (@real@)(4.0 * decay / ((1.0 + decay) * (1.0 + decay)));
    }
}


/* exp to 1.2 units in the last place. */
static void exponentials(const int count, const @real@ *RESTRICT power, @real@ *RESTRICT decay)
{
    int i;
    for (i = 0; i < count; ++i) {
        double less;
        decay[i] = (@real@)exponential(power[i], &less);
    }
}
