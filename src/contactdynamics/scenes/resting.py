"""Where a ball that comes from above may rest on what is there."""

import math

import numpy as np

from .._jit import kernel
from ..quaternions import multiply
from ..state import Balls, Bodies, Planes


@kernel(inline=True)
def turned(q, v):
    """The vector ``v`` (3,) turned by the quaternion ``q`` (4,), as `quaternions.turned` has it, to the bit."""
    w, x, y, z = multiply(q[0], q[1], q[2], q[3], 0.0, v[0], v[1], v[2])
    return multiply(w, x, y, z, q[0], -q[1], -q[2], -q[3])[1:]


@kernel
def near_a_vertical(place, radius, position, orientation, size, ball_radius, centre, body):
    """Of the balls that a ball on the vertical ``place`` may touch, the heights of their centres, and how far above
    and below it touches them.
    """
    side, reach, found, point = place.size, radius + size.max(), 0, np.empty(3)
    middle, half = np.empty(body.size), np.empty(body.size)
    for i in range(body.size):
        k = body[i]
        away = False
        for c in range(side):
            away |= not abs(position[k, c] - place[c]) < reach
        if away:
            continue
        point[0], point[1], point[2] = position[k, 0], position[k, 1], position[k, 2]
        if centre[i].any():
            x, y, z = turned(orientation[k], centre[i])
            point[0], point[1], point[2] = point[0] + x, point[1] + y, point[2] + z
        square = 0.0
        for c in range(side):
            square += (point[c] - place[c]) ** 2
        left = (ball_radius[i] + radius) ** 2 - square
        if left > 0.0:
            middle[found], half[found] = point[side], np.sqrt(left)
            found += 1
    return middle[:found], half[:found]


@kernel
def clear_heights(middle, half, floor):
    """The heights above the ``floor`` at which a ball touches one of those near its vertical and overlaps none."""
    out, found = np.empty(middle.size + 1), 0
    for i in range(out.size):
        height = middle[i] + half[i] if i < middle.size else floor
        clear = height >= floor and np.isfinite(height)
        for j in range(middle.size):
            clear &= np.abs(height - middle[j]) >= half[j] * (1 - 1e-12)
        if clear:
            out[found] = height
            found += 1
    return out[:found]


@kernel
def turn_normals(orientation, body, normal):
    """The normals (K, 3) of planes in space."""
    out = np.empty(normal.shape)
    for k in range(body.size):
        out[k, 0], out[k, 1], out[k, 2] = turned(orientation[body[k]], normal[k])
    return out


def resting_heights(place, radius: float, bodies: Bodies, balls: Balls, planes: Planes) -> np.ndarray:
    """Heights at which a ball with its centre on the vertical ``place`` (d-1,) touches a body and overlaps none.

    In growing order: the last one is reached from above, the first one may lie below bodies that overhang or fly.
    Planes count where they look up, and everything lies above them.
    """
    side, floor = len(place), -math.inf
    middle, half = near_a_vertical(
        place, radius, bodies.position, bodies.orientation, bodies.size, balls.radius, balls.centre, balls.body
    )
    normals = turn_normals(bodies.orientation, planes.body, planes.normal)
    for normal, row in zip(normals, planes.body, strict=True):
        if normal[side] > 1e-9:
            point = bodies.position[row]
            lift = (radius - (place - point[:side]) @ normal[:side]) / normal[side]
            floor = max(floor, float(point[side] + lift))
    return np.sort(clear_heights(middle, half, floor))
