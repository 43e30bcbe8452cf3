"""Velocities and the block of W of a contact with lever arms, in its frame: see `full`."""

import numpy as np

from ..._jit import kernel


@kernel
def point_velocity(rows, body, arm, out):
    """Velocity of the point of ``body`` at ``arm`` (3,) from its centre."""
    scale = rows[body, 7]
    wx, wy, wz = rows[body, 3] / scale, rows[body, 4] / scale, rows[body, 5] / scale
    out[0] = rows[body, 0] + wy * arm[2] - wz * arm[1]
    out[1] = rows[body, 1] + wz * arm[0] - wx * arm[2]
    out[2] = rows[body, 2] + wx * arm[1] - wy * arm[0]


@kernel
def relative_velocity(rows, a, b, frame, arm_a, arm_b, out):
    """U (3,) of b with respect to a at the contact, in the frame."""
    va, vb = np.empty(3), np.empty(3)
    point_velocity(rows, a, arm_a, va)
    point_velocity(rows, b, arm_b, vb)
    for i in range(3):
        out[i] = 0.0
        for j in range(3):
            out[i] += frame[i, j] * (vb[j] - va[j])


@kernel
def add_image(rows, frame, image, out):
    """Add what the image of b moves more than b to U (3,)."""
    if image[0] == 0.0 and image[1] == 0.0 and image[2] == 0.0:
        return
    cell = rows.shape[0] - 3
    for j in range(3):
        v = image[0] * rows[cell, j] + image[1] * rows[cell + 1, j] + image[2] * rows[cell + 2, j]
        for i in range(3):
            out[i] += frame[i, j] * v


@kernel
def relative_spin(rows, a, b, frame, out):
    """Relative spin (3,) of b with respect to a, in the frame of the contact."""
    for i in range(3):
        out[i] = 0.0
        for c in range(3):
            out[i] += frame[i, c] * (rows[b, 3 + c] / rows[b, 7] - rows[a, 3 + c] / rows[a, 7])


@kernel
def contact_block(rows, inverse, a, b, frame, arm_a, arm_b, out):
    """The block (6, 6) of W for the impulse and the moment of one contact; ``inverse`` (N, 3, 3) of the inertias."""
    lever_a, lever_b, turn_a, turn_b = np.zeros((6, 3)), np.zeros((6, 3)), np.zeros((6, 3)), np.zeros((6, 3))
    for i in range(3):
        for c in range(3):
            d, e = (c + 1) % 3, (c + 2) % 3
            lever_a[i, c] = arm_a[d] * frame[i, e] - arm_a[e] * frame[i, d]
            lever_b[i, c] = arm_b[d] * frame[i, e] - arm_b[e] * frame[i, d]
            lever_a[3 + i, c] = lever_b[3 + i, c] = frame[i, c]
    for i in range(6):
        for c in range(3):
            for d in range(3):
                turn_a[i, c] += inverse[a, c, d] * lever_a[i, d]
                turn_b[i, c] += inverse[b, c, d] * lever_b[i, d]
    for i in range(6):
        for j in range(6):
            total = rows[a, 6] + rows[b, 6] if i == j and i < 3 else 0.0
            for c in range(3):
                total += lever_a[i, c] * turn_a[j, c] + lever_b[i, c] * turn_b[j, c]
            out[i, j] = total


@kernel
def block_by_direction(rows, linear, a, b, frame, image, out):
    """Replace the part of translations in the block (6, 6): inverse masses ``linear`` (N, 3) by direction."""
    cell = rows.shape[0] - 3
    for i in range(3):
        out[i, i] -= rows[a, 6] + rows[b, 6]
    for c in range(3):
        w = linear[a, c] + linear[b, c]
        for m in range(3):
            if image[m] != 0.0:
                w += image[m] * image[m] * linear[cell + m, c]
        for i in range(3):
            for j in range(3):
                out[i, j] += w * frame[i, c] * frame[j, c]


@kernel
def carried(d, one, two, later, turn_one, turn_two, out):
    """The axis ``d`` (4,) of a law in space, between bodies of materials ``one`` and ``two``: that made of its own.

    Where both are, or none, the one that was added first: the second is, where the first came ``later``.
    """
    mine, its = one == d[3], two == d[3]
    q = turn_one if (mine and not its) or (mine == its and not later) else turn_two
    tx, ty, tz = 2 * (q[2] * d[2] - q[3] * d[1]), 2 * (q[3] * d[0] - q[1] * d[2]), 2 * (q[1] * d[1] - q[2] * d[0])
    out[0] = d[0] + q[0] * tx + q[2] * tz - q[3] * ty
    out[1] = d[1] + q[0] * ty + q[3] * tx - q[1] * tz
    out[2] = d[2] + q[0] * tz + q[1] * ty - q[2] * tx


@kernel
def contact_velocity(rows, contacts, k, out):
    """U (3,) of contact ``k`` of `full.FullContacts`, in its frame."""
    frame = contacts.frame[k]
    relative_velocity(rows, contacts.a[k], contacts.b[k], frame, contacts.arm_a[k], contacts.arm_b[k], out)
    add_image(rows, frame, contacts.image[k], out)
