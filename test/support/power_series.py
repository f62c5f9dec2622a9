"""Truncated power series in time, on which formulas are evaluated as on numbers.

`Series(derivatives)` holds a function of time; `exp` to `cosh` take the place of a library's, so
that `formula(library, ...)` gives all derivatives of a formula: term by term, without any rule
for the derivative of a composed function.
"""

from math import factorial

import numpy as np


class Series:
    """A function of time by its derivatives (R,) at zero."""

    __array_ufunc__ = None  # so that NumPy's numbers leave products to this class

    def __init__(self, derivatives):
        values = np.asarray(derivatives)
        self.terms = values / [float(factorial(k)) for k in range(len(values))]

    @property
    def derivatives(self):
        return self.terms * [float(factorial(k)) for k in range(len(self.terms))]

    @classmethod
    def of(cls, terms):
        made = cls([])
        made.terms = np.asarray(terms)
        return made

    def rate(self):
        """Time derivative, one term shorter."""
        return Series.of(self.terms[1:] * np.arange(1, len(self.terms)))

    def _like(self, other):
        if isinstance(other, Series):
            return other.terms
        return other * (np.arange(len(self.terms)) == 0)

    def __add__(self, other):
        theirs = self._like(other)
        count = min(len(theirs), len(self.terms))
        return Series.of(self.terms[:count] + theirs[:count])

    def __mul__(self, other):
        theirs = self._like(other)
        count = min(len(theirs), len(self.terms))
        return Series.of(np.convolve(self.terms, theirs)[:count])

    def __truediv__(self, other):
        theirs, quotient = self._like(other), []
        for k in range(min(len(theirs), len(self.terms))):
            known = sum(quotient[i] * theirs[k - i] for i in range(k))
            quotient.append((self.terms[k] - known) / theirs[0])
        return Series.of(quotient)

    def __pow__(self, power):
        result = self
        for _ in range(power - 1):
            result = result * self
        return result

    def __neg__(self):
        return Series.of(-self.terms)

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __rtruediv__(self, other):
        return Series.of(self._like(other)) / self

    __radd__, __rmul__ = __add__, __mul__


def exp(x):
    """From y' = x' y."""
    y = [np.exp(x.terms[0])]
    for k in range(1, len(x.terms)):
        y.append(sum(i * x.terms[i] * y[k - i] for i in range(1, k + 1)) / k)
    return Series.of(y)


def sin(x):
    return Series.of(exp(x * 1j).terms.imag)


def cos(x):
    return Series.of(exp(x * 1j).terms.real)


def sinh(x):
    return 0.5 * (exp(x) - exp(-x))


def cosh(x):
    return 0.5 * (exp(x) + exp(-x))


def tanh(x):
    return sinh(x) / cosh(x)
