"""The motion of rigid bodies between contacts: rows of velocities, drift, free velocity, loads, works.

All bodies are taken through the halves of a step by `advance`.

Spins are kept in space. A body's spin in its principal axes is constant while it drifts at constant velocity, and so is
the spin in space: the formulation of the papers (2004, section 4.4) with another bookkeeping. The gyroscopic term is
taken by the implicit midpoint rule, which keeps the energy and the size of the angular momentum of a free top to
rounding; its direction in space is kept to second order.

A free body may be held, or driven, in some directions: bits 0 to 2 of ``held`` (N,) are its translations along x, y, z,
bits 3 to 5 its turning about them, of which all, none or all but one are held. It has mass in free directions alone.
"""

import numpy as np

from .._jit import kernel
from ..quaternions import exponential, multiply, rotate
from ..state import FREE
from .threads import BLOCKS, block

KAPPA = {2: 2.0, 3: 2.5}  # m r^2 / I of homogeneous disks and spheres, by the dimension


@kernel
def pack(velocity, spin, mass, kind, simple, size, rows):
    """Fill the rows (N, 8) of `contacts`: v, s = c w, 1/m, c."""
    for i in range(mass.size):
        scale = size[i] if simple[i] else 1.0
        for c in range(3):
            rows[i, c] = velocity[i, c]
            rows[i, 3 + c] = scale * spin[i, c]
        rows[i, 6] = 1.0 / mass[i] if kind[i] == FREE else 0.0
        rows[i, 7] = scale


@kernel(inline=True)
def turn(orientation, i, x, y, z):
    """Turn body ``i`` by the rotation vector (x, y, z), rad."""
    if x != 0.0 or y != 0.0 or z != 0.0:
        ew, ex, ey, ez = exponential(x, y, z)
        w, x, y, z = multiply(
            ew, ex, ey, ez, orientation[i, 0], orientation[i, 1], orientation[i, 2], orientation[i, 3]
        )
        scale = 1.5 - 0.5 * (w * w + x * x + y * y + z * z)  # one Newton step of 1/sqrt
        orientation[i, 0], orientation[i, 1] = w * scale, x * scale
        orientation[i, 2], orientation[i, 3] = y * scale, z * scale


@kernel(inline=True)
def move(position, i, rows, h):
    """Move body ``i`` for a time h."""
    position[i, 0] += h * rows[i, 0]
    position[i, 1] += h * rows[i, 1]
    position[i, 2] += h * rows[i, 2]


@kernel(inline=True)
def travel(rows, i, arm, weight):
    """weight |v|^2 of body ``i``; a corner at the distance ``arm`` turns as well: see `watch.Watch.fastest`."""
    square = rows[i, 0] ** 2 + rows[i, 1] ** 2 + rows[i, 2] ** 2
    if arm[i] > 0.0:
        turning = rows[i, 3] ** 2 + rows[i, 4] ** 2 + rows[i, 5] ** 2
        square = (np.sqrt(square) + arm[i] * np.sqrt(turning)) ** 2
    return square * weight[i]


@kernel
def drift(position, orientation, rows, h):
    """Move and turn all bodies at constant velocity for a time h."""
    for i in range(rows.shape[0]):
        move(position, i, rows, h)
        f = h / rows[i, 7]
        turn(orientation, i, f * rows[i, 3], f * rows[i, 4], f * rows[i, 5])


@kernel(inline=True)
def to_axes(q, x, y, z):
    """Components in the axes of a body with orientation ``q`` of a vector of space."""
    tx, ty, tz = 2.0 * (q[2] * z - q[3] * y), 2.0 * (q[3] * x - q[1] * z), 2.0 * (q[1] * y - q[2] * x)
    return (
        x - q[0] * tx + q[2] * tz - q[3] * ty,
        y - q[0] * ty + q[3] * tx - q[1] * tz,
        z - q[0] * tz + q[1] * ty - q[2] * tx,
    )


@kernel
def free_spin(i1, i2, i3, x, y, z, tx, ty, tz, h):
    """Spin after a step of Euler's equations by the implicit midpoint rule; principal axes, torque (tx, ty, tz)."""
    a, b, c = x, y, z
    for _ in range(50):
        mx, my, mz = 0.5 * (x + a), 0.5 * (y + b), 0.5 * (z + c)
        na = x + h * (tx - (i3 - i2) * my * mz) / i1
        nb = y + h * (ty - (i1 - i3) * mz * mx) / i2
        nc = z + h * (tz - (i2 - i1) * mx * my) / i3
        change = abs(na - a) + abs(nb - b) + abs(nc - c)
        a, b, c = na, nb, nc
        if change <= 1e-16 * (abs(a) + abs(b) + abs(c)):
            break
    return a, b, c


@kernel(inline=True)
def is_held(held, k):
    """Whether the direction ``k`` is held: 0 to 2 translations, 3 to 5 turning."""
    return (held >> k) & 1 == 1


@kernel
def axle(held):
    """The axis about which a body turns that is held about two others; -1 where it is held about all three."""
    for c in range(3):
        if not is_held(held, 3 + c):
            return c
    return -1


@kernel
def about_axis(q, inertia, axis):
    """The moment of inertia about an axis of space through the centre; ``q`` (4,), principal moments (3,)."""
    x, y, z = to_axes(q, 1.0 * (axis == 0), 1.0 * (axis == 1), 1.0 * (axis == 2))
    return inertia[0] * x * x + inertia[1] * y * y + inertia[2] * z * z


@kernel(inline=True)
def relax_one(rows, i, mass, inertia, orientation, force, torque, gravity, h, loaded, held):
    """`relax` of the free body ``i``."""
    for c in range(3):
        if is_held(held[i], c):
            continue
        rows[i, c] += h * gravity[c]
        if loaded:
            rows[i, c] += h * force[i, c] / mass[i]
    one = inertia[i, 0]
    if held[i] >= 8:  # one axis at most: no gyroscopic term
        axis = axle(held[i])
        if loaded and axis >= 0:
            rows[i, 3 + axis] += rows[i, 7] * h * torque[i, axis] / about_axis(orientation[i], inertia[i], axis)
    elif one == inertia[i, 1] and one == inertia[i, 2]:
        if loaded:
            for c in range(3):
                rows[i, 3 + c] += rows[i, 7] * h * torque[i, c] / one
    else:
        scale, q = rows[i, 7], orientation[i]
        x, y, z = to_axes(q, rows[i, 3] / scale, rows[i, 4] / scale, rows[i, 5] / scale)
        tx, ty, tz = 0.0, 0.0, 0.0
        if loaded:
            tx, ty, tz = to_axes(q, torque[i, 0], torque[i, 1], torque[i, 2])
        x, y, z = free_spin(one, inertia[i, 1], inertia[i, 2], x, y, z, tx, ty, tz, h)
        x, y, z = rotate(q, x, y, z)
        rows[i, 3], rows[i, 4], rows[i, 5] = scale * x, scale * y, scale * z


@kernel
def relax(rows, kind, mass, inertia, orientation, force, torque, gravity, h, loaded, held):
    """The free velocity u_r = u + h A^-1 F (2004, eq. 36), in place; ``force`` and ``torque`` (N, 3) where loaded."""
    for i in range(kind.size):
        if kind[i] == FREE:
            relax_one(rows, i, mass, inertia, orientation, force, torque, gravity, h, loaded, held)


@kernel
def invert_one(i, kind, inertia, orientation, dimension, out, held):
    """`invert_inertia` of body ``i``."""
    out[i] = 0.0
    if kind[i] != FREE:
        return
    if held[i] >= 8:
        axis = axle(held[i])
        if axis >= 0:
            out[i, axis, axis] = 1.0 / about_axis(orientation[i], inertia[i], axis)
        return
    if dimension == 2:
        out[i, 2, 2] = 1.0 / inertia[i, 2]
        return
    for k in range(3):
        x, y, z = rotate(orientation[i], 1.0 * (k == 0), 1.0 * (k == 1), 1.0 * (k == 2))
        f = 1.0 / inertia[i, k]
        out[i, 0, 0] += f * x * x
        out[i, 0, 1] += f * x * y
        out[i, 0, 2] += f * x * z
        out[i, 1, 1] += f * y * y
        out[i, 1, 2] += f * y * z
        out[i, 2, 2] += f * z * z
    out[i, 1, 0], out[i, 2, 0], out[i, 2, 1] = out[i, 0, 1], out[i, 0, 2], out[i, 1, 2]


@kernel
def invert_inertia(kind, inertia, orientation, dimension, out, held):
    """Inverse inertia (N, 3, 3) in space, of the free turning; zero where there is none, z alone in two dimensions."""
    for i in range(kind.size):
        invert_one(i, kind, inertia, orientation, dimension, out, held)


@kernel(inline=True)
def add_energies(sums, i, before, free, rows, mass, inertia, orientation, held):
    """The ``sums`` of `energies` with the free body ``i``."""
    first, last, work = sums
    for c in range(3):
        if is_held(held[i], c):
            continue
        first += 0.5 * mass[i] * before[i, c] ** 2
        last += 0.5 * mass[i] * rows[i, c] ** 2
        work += 0.5 * mass[i] * (free[i, c] - before[i, c]) * (before[i, c] + rows[i, c])
    f = 1.0 / rows[i, 7]
    if held[i] >= 8:
        axis = axle(held[i])
        if axis >= 0:
            x, rx, ex = f * before[i, 3 + axis], f * free[i, 3 + axis], f * rows[i, 3 + axis]
            i1 = about_axis(orientation[i], inertia[i], axis)
            first += 0.5 * i1 * x * x
            last += 0.5 * i1 * ex * ex
            work += 0.5 * i1 * (rx - x) * (x + ex)
        return first, last, work
    x, y, z = f * before[i, 3], f * before[i, 4], f * before[i, 5]
    rx, ry, rz = f * free[i, 3], f * free[i, 4], f * free[i, 5]
    ex, ey, ez = f * rows[i, 3], f * rows[i, 4], f * rows[i, 5]
    i1, i2, i3 = inertia[i, 0], inertia[i, 1], inertia[i, 2]
    if i1 != i2 or i1 != i3:
        x, y, z = to_axes(orientation[i], x, y, z)
        rx, ry, rz = to_axes(orientation[i], rx, ry, rz)
        ex, ey, ez = to_axes(orientation[i], ex, ey, ez)
    first += 0.5 * (i1 * x * x + i2 * y * y + i3 * z * z)
    last += 0.5 * (i1 * ex * ex + i2 * ey * ey + i3 * ez * ez)
    work += 0.5 * (i1 * (rx - x) * (x + ex) + i2 * (ry - y) * (y + ey) + i3 * (rz - z) * (z + ez))
    return first, last, work


@kernel
def energies(before, free, rows, kind, mass, inertia, orientation, held):
    """Kinetic energy before and after, and the work of the forces, h F . (u_i + u_f) / 2 (2004, eq. 48).

    Those of the free directions: what a body has along held ones is its drive's.
    """
    first, last, work = 0.0, 0.0, 0.0
    for k in range(BLOCKS):
        begin, end = block(kind.size, k)
        sums = 0.0, 0.0, 0.0
        for i in range(np.uint64(begin), np.uint64(end)):  # unsigned: no test for negative indices
            if kind[i] == FREE:
                sums = add_energies(sums, i, before, free, rows, mass, inertia, orientation, held)
        first, last, work = first + sums[0], last + sums[1], work + sums[2]
    return first, last, work


@kernel(inline=True)
def add_height(total, i, position, mass, kind, gravity, held):
    """The ``total`` of `gravity_energy` with body ``i``."""
    fall = 0.0
    if kind[i] == FREE:
        for c in range(3):
            if not is_held(held[i], c):
                fall += gravity[c] * position[i, c]
    return total - mass[i] * fall


@kernel
def gravity_energy(position, mass, kind, gravity, held):
    """-m g . x summed over the free bodies and their free directions."""
    total = 0.0
    for i in range(mass.size):
        total = add_height(total, i, position, mass, kind, gravity, held)
    return total


@kernel
def spring_end(body, anchor, position, orientation, rows, point, velocity, arm):
    """Place and velocity of a spring's end; the ground (body -1) is at ``anchor`` in space."""
    if body < 0:
        for c in range(3):
            point[c], velocity[c], arm[c] = anchor[c], 0.0, 0.0
        return
    x, y, z = rotate(orientation[body], anchor[0], anchor[1], anchor[2])
    f = 1.0 / rows[body, 7]
    wx, wy, wz = f * rows[body, 3], f * rows[body, 4], f * rows[body, 5]
    arm[0], arm[1], arm[2] = x, y, z
    point[0], point[1], point[2] = position[body, 0] + x, position[body, 1] + y, position[body, 2] + z
    velocity[0] = rows[body, 0] + wy * z - wz * y
    velocity[1] = rows[body, 1] + wz * x - wx * z
    velocity[2] = rows[body, 2] + wx * y - wy * x


@kernel
def pull_springs(springs, position, orientation, rows, force, torque):
    """Add the forces of springs and dashpots to ``force`` and ``torque`` (N, 3); returns their elastic energy."""
    energy = 0.0
    p, q, u, v, r, s = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for k in range(springs.first.size):
        a, b = springs.first[k], springs.second[k]
        spring_end(a, springs.anchor_first[k], position, orientation, rows, p, u, r)
        spring_end(b, springs.anchor_second[k], position, orientation, rows, q, v, s)
        x, y, z = q[0] - p[0], q[1] - p[1], q[2] - p[2]
        distance = np.sqrt(x * x + y * y + z * z)
        stretch = distance - springs.length[k]
        energy += 0.5 * springs.stiffness[k] * stretch * stretch
        if distance == 0.0:
            continue
        x, y, z = x / distance, y / distance, z / distance
        rate = x * (v[0] - u[0]) + y * (v[1] - u[1]) + z * (v[2] - u[2])
        size = springs.stiffness[k] * stretch + springs.damping[k] * rate
        for side in range(2):
            body, arm, f = (a, r, size) if side == 0 else (b, s, -size)
            if body >= 0:
                force[body, 0] += f * x
                force[body, 1] += f * y
                force[body, 2] += f * z
                torque[body, 0] += f * (arm[1] * z - arm[2] * y)
                torque[body, 1] += f * (arm[2] * x - arm[0] * z)
                torque[body, 2] += f * (arm[0] * y - arm[1] * x)
    return energy


def by_direction(bodies) -> np.ndarray:
    """(N, 3) inverse masses by direction: none where a body is held, or does not move freely."""
    free = (bodies.kind == FREE)[:, None] & ((bodies.held[:, None] >> np.arange(3)) & 1 == 0)
    return free / bodies.mass[:, None]
