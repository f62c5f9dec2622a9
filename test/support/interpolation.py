"""Functions of time by their derivatives, and derivatives by interpolation."""

import numpy as np


def taylor(motion, times):
    """Polynomial with the given derivatives at zero, evaluated with derivatives."""
    out = np.zeros((len(times), *motion.shape))
    for k in range(len(motion)):
        power = np.ones(len(times))
        for j in range(len(motion) - k):
            out[:, k] += power[:, None] * motion[k + j]
            power = power * times / (j + 1)
    return out


def derivatives_at_zero(function, highest, radius=0.5, nodes=28):
    """Interpolate at Chebyshev nodes and differentiate the interpolant at zero."""
    x = np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)
    samples = function(radius * x)
    fit = np.polynomial.chebyshev.chebfit(x, samples.reshape(nodes, -1), nodes - 1)
    results = []
    for k in range(highest + 1):
        values = np.polynomial.chebyshev.chebval(0.0, fit) / radius**k
        results.append(values.reshape(samples.shape[1:]))
        fit = np.polynomial.chebyshev.chebder(fit)
    return results
