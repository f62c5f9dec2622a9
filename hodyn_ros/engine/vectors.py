"""Vectors and matrices of three numbers, which may be whatever adds, subtracts and multiplies.

Numbers that change with time are jets. A number that scales a vector stands behind it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hodyn_ros.lie.jets import Jet, derivative

Number = Any


class Vector(NamedTuple):
    """Vector; `@` is the scalar product.

    Examples
    --------
    >>> Vector(1.0, 0.0, 0.0) + Vector(0.0, 1.0, 0.0).cross(Vector(0.0, 0.0, 1.0)) * 2.0
    Vector(x=3.0, y=0.0, z=0.0)
    """

    x: Number
    y: Number
    z: Number

    def __neg__(self) -> Vector:
        return Vector(-self.x, -self.y, -self.z)

    def __add__(self, other: Any) -> Vector:
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vector) -> Vector:
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def __mul__(self, scale: Number) -> Vector:
        return Vector(scale * self.x, scale * self.y, scale * self.z)

    def __matmul__(self, other: Vector) -> Number:
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vector) -> Vector:
        """Vector product."""
        return Vector(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )

    def outer(self, other: Vector) -> Matrix:
        """Product of this column with a row."""
        return Matrix(other * self.x, other * self.y, other * self.z)

    def rate(self) -> Vector:
        """Derivative by time; that of constants is zero."""
        return Vector(*(c.rate() if isinstance(c, Jet) else 0.0 for c in self))

    def order(self, k: int) -> Vector:
        """Derivative k of jets and constants."""
        return Vector(*(derivative(c, k) for c in self))

    def followed(self, by: Vector, count: int | None = None) -> Vector:
        """Jets with one derivative more, behind so many of those that they have."""
        return Vector(*(Jet([*jet[:count], value]) for jet, value in zip(self, by)))


class Matrix(NamedTuple):
    """Matrix of three rows; `@` is its product with a vector."""

    x: Vector
    y: Vector
    z: Vector

    def __add__(self, other: Any) -> Matrix:
        return Matrix(self.x + other.x, self.y + other.y, self.z + other.z)

    def __matmul__(self, v: Vector) -> Vector:
        return Vector(self.x @ v, self.y @ v, self.z @ v)

    @property
    def T(self) -> Matrix:
        """Transpose."""
        return Matrix(*(Vector(*column) for column in zip(*self)))


ZERO = Vector(0.0, 0.0, 0.0)
AXIS = Vector(0.0, 0.0, 1.0)
NULL = Matrix(ZERO, ZERO, ZERO)


def matrix(*entries: Number) -> Matrix:
    """Matrix of nine entries, row by row."""
    return Matrix(*(Vector(*entries[i : i + 3]) for i in (0, 3, 6)))


def trace(A: Matrix) -> Number:
    """Sum of the diagonal."""
    return A.x.x + A.y.y + A.z.z


def complement(A: Matrix) -> Matrix:
    """trace(A) 1 - A."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = A
    return matrix(yy + zz, -xy, -xz, -yx, xx + zz, -yz, -zx, -zy, xx + yy)


def full_matrix(J: tuple[Number, ...]) -> Matrix:
    """Matrix with second moments xx, xy, xz, yy, yz, zz."""
    xx, xy, xz, yy, yz, zz = J
    return matrix(xx, xy, xz, xy, yy, yz, xz, yz, zz)


def symmetric(A: Matrix) -> tuple[Number, Number, Number, Number, Number, Number]:
    """Entries xx, xy, xz, yy, yz, zz of a symmetric matrix; see `full_matrix`."""
    return (*A.x, A.y.y, A.y.z, A.z.z)


def cross_matrix(a: Vector) -> Matrix:
    """Matrix of the product a x."""
    return matrix(0.0, -a.z, a.y, a.z, 0.0, -a.x, -a.y, a.x, 0.0)


def plus_unit(A: Matrix, scale: Number) -> Matrix:
    """Add a multiple of the unit matrix."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = A
    return matrix(xx + scale, xy, xz, yx, yy + scale, yz, zx, zy, zz + scale)
