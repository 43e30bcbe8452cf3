"""Unit quaternions (w, x, y, z): the orientation of a body, turning vectors of its own axes into vectors of space."""

import numpy as np

from ._jit import kernel

SMALL = 1e-4  # rad^2: half angles, squared, of small turns


@kernel(inline=True)
def multiply(aw, ax, ay, az, bw, bx, by, bz):
    """The product a b, four numbers each."""
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


@kernel(inline=True)
def rotate(q, x, y, z):
    """The vector of space that has the components (x, y, z) in the axes of a body with orientation ``q`` (4,)."""
    tx = 2.0 * (q[2] * z - q[3] * y)
    ty = 2.0 * (q[3] * x - q[1] * z)
    tz = 2.0 * (q[1] * y - q[2] * x)
    return (
        x + q[0] * tx + q[2] * tz - q[3] * ty,
        y + q[0] * ty + q[3] * tx - q[1] * tz,
        z + q[0] * tz + q[1] * ty - q[2] * tx,
    )


@kernel(inline=True)
def series(square):
    """cos(a) and sin(a) / (2 a) by their series, for a^2 = ``square`` below `SMALL`; error below 1e-20."""
    return (
        1.0 - square * (0.5 - square * (1.0 / 24.0 - square * (1.0 / 720.0))),
        0.5 * (1.0 - square * (1.0 / 6.0 - square * (1.0 / 120.0 - square * (1.0 / 5040.0)))),
    )


@kernel(inline=True)
def exponential(x, y, z):
    """The quaternion of the rotation by the vector (x, y, z), rad."""
    square = 0.25 * (x * x + y * y + z * z)
    if square < SMALL:
        cosine, sine = series(square)
        return cosine, sine * x, sine * y, sine * z
    half = np.sqrt(square)
    sine = 0.5 * np.sin(half) / half
    return np.cos(half), sine * x, sine * y, sine * z


def matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrix (3, 3) of a unit quaternion."""
    return np.array([rotate(q, *e) for e in np.eye(3)]).T


def from_matrix(r: np.ndarray) -> np.ndarray:
    """Unit quaternion of a rotation matrix (3, 3), by its largest component (Shepperd)."""
    trace = np.trace(r)
    squares = np.array([trace, r[0, 0], r[1, 1], r[2, 2]])
    k = int(np.argmax(squares))
    q = np.empty(4)
    if k == 0:
        q[:] = 1 + trace, r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]
    else:
        i, j, l = [(0, 1, 2), (1, 2, 0), (2, 0, 1)][k - 1]
        q[1 + i] = 1 + r[i, i] - r[j, j] - r[l, l]
        q[0], q[1 + j], q[1 + l] = r[l, j] - r[j, l], r[i, j] + r[j, i], r[i, l] + r[l, i]
    return q / np.sqrt(q @ q)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of quaternions (..., 4)."""
    plain = getattr(multiply, "py_func", multiply)  # for whole arrays it is not compiled
    return np.stack(plain(*np.moveaxis(a, -1, 0), *np.moveaxis(b, -1, 0)), axis=-1)


def turned(q: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Vectors (k, 3) turned by unit quaternions (k, 4); by their `conjugate` into the axes of bodies."""
    pure = np.concatenate([np.zeros((len(vectors), 1)), vectors], axis=1)
    return product(product(q, pure), conjugate(q))[:, 1:]


def conjugate(q: np.ndarray) -> np.ndarray:
    """The inverse rotation of unit quaternions (..., 4)."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])
