"""Vectors and matrices of three numbers, which may be whatever adds, subtracts and multiplies."""

from __future__ import annotations

from typing import Any

Number = Any
Vector = tuple[Number, Number, Number]
Matrix = tuple[Vector, Vector, Vector]

ZERO: Vector = (0.0, 0.0, 0.0)
AXIS: Vector = (0.0, 0.0, 1.0)


def plus(a: Vector, b: Vector) -> Vector:
    """Sum."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def plus_scaled(a: Vector, scale: Number, b: Vector) -> Vector:
    """Add a multiple: a + scale b."""
    return (a[0] + scale * b[0], a[1] + scale * b[1], a[2] + scale * b[2])


def scaled(scale: Number, a: Vector) -> Vector:
    """Multiple."""
    return (scale * a[0], scale * a[1], scale * a[2])


def cross(a: Vector, b: Vector) -> Vector:
    """Vector product."""
    return plus_cross(ZERO, a, b)


def product(A: Matrix, b: Vector) -> Vector:
    """Product A b."""
    return plus_product(ZERO, A, b)


def plus_cross(c: Vector, a: Vector, b: Vector) -> Vector:
    """Add a vector product: c + a x b."""
    return (
        c[0] + a[1] * b[2] - a[2] * b[1],
        c[1] + a[2] * b[0] - a[0] * b[2],
        c[2] + a[0] * b[1] - a[1] * b[0],
    )


def plus_product(c: Vector, A: Matrix, b: Vector) -> Vector:
    """Add a product: c + A b."""
    return tuple(c[i] + A[i][0] * b[0] + A[i][1] * b[1] + A[i][2] * b[2] for i in range(3))


def dot(a: Vector, b: Vector) -> Number:
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def trace(A: Matrix) -> Number:
    """Sum of the diagonal."""
    return A[0][0] + A[1][1] + A[2][2]


def complement(A: Matrix) -> Matrix:
    """trace(A) 1 - A."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = A
    return ((yy + zz, -xy, -xz), (-yx, xx + zz, -yz), (-zx, -zy, xx + yy))


def full_matrix(J: tuple[Number, ...]) -> Matrix:
    """Matrix with second moments xx, xy, xz, yy, yz, zz."""
    xx, xy, xz, yy, yz, zz = J
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))


def symmetric(A: Matrix) -> tuple[Number, Number, Number, Number, Number, Number]:
    """Entries xx, xy, xz, yy, yz, zz of a symmetric matrix; see `full_matrix`."""
    return (A[0][0], A[0][1], A[0][2], A[1][1], A[1][2], A[2][2])


def transposed(A: Matrix) -> Matrix:
    """Transpose."""
    x, y, z = zip(*A)
    return (x, y, z)


def outer(a: Vector, b: Vector) -> Matrix:
    """Product a b^T."""
    return (
        scaled(a[0], b),
        scaled(a[1], b),
        scaled(a[2], b),
    )


def cross_matrix(a: Vector) -> Matrix:
    """Matrix of the product a x."""
    return ((0.0, -a[2], a[1]), (a[2], 0.0, -a[0]), (-a[1], a[0], 0.0))


def plus_matrix(A: Matrix, B: Matrix) -> Matrix:
    """Sum."""
    x, y, z = (plus(p, q) for p, q in zip(A, B))
    return (x, y, z)


def plus_unit(A: Matrix, scale: Number) -> Matrix:
    """Add a multiple of the unit matrix."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = A
    return ((xx + scale, xy, xz), (yx, yy + scale, yz), (zx, zy, zz + scale))
