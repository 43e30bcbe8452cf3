"""From pairs to the contacts of one step: who is active, frames, targets, first guess.

The law of every contact reads: P in its cone, U_n >= r, and P = 0 where U_n > r. The target r carries restitution,
anticipation and repair:

- penetration="moreau": active where the gap at the midpoint is <= 0, r = -rho U_n^- (2003, eq. 40);
- penetration="anticipate": also where the gap would close within the step; r = -max(g, 0) / h, so that the gap at the
  next midpoint is not negative; with restitution and U_n^- < 0 the bounce happens now, r = -rho U_n^-;
- repair before the start (h = 1, displacements in the place of velocities): overlaps are opened, r = -g;
- cohesion and tension: a contact that holds stays active when its gap opens by the curvature of the path or a rounding,
  r = -g / h.

Two classes of contacts. *Simple*: both bodies are homogeneous balls (or planes that do not turn) and the law is
Coulomb's, isotropic. The block of W is then diagonal, W_n = 1/m_a + 1/m_b and W_t = (1 + k) W_n with k = m r^2 / I, no
tangent vectors are needed, and the impulse is kept as a vector in space. *General*: everything else, with a frame,
lever arms and the full block of W.

A body is a row of 8 numbers, one line of cache: v (3), s = c w (3), 1/m, c, where w is the spin in space and c the
radius of a ball (1 for other bodies). Bodies that do not move freely have 1/m = 0: no loop needs to know them.
"""

from typing import NamedTuple

import numpy as np

from ._jit import kernel
from .materials import COHESION, FRICTION_1, FRICTION_2, RHO, ROLLING, SPINNING, STATIC, TAU, TENSION
from .state import OPEN, SEPARATING, STICKING

# Columns of a simple contact's row.
NX, NY, NZ, PX, PY, PZ, TARGET, GAMMA = range(8)

# With anticipation the solver may leave an overlap to a contact: in one step half of what is left to DEEP, at least
# SINKING (both of the smaller radius).
DEEP, SINKING = 9e-3, 1e-5


class Simple(NamedTuple):
    """Simple contacts, in the order of a sweep; arrays with room for more than the active ones."""

    pair: np.ndarray  # (m,) row in the pair list
    a: np.ndarray  # (m,) rows of the bodies
    b: np.ndarray  # (m,)
    row: np.ndarray  # (m, 8) n, P, target r, gamma
    sink: np.ndarray  # (m,) speed below the target that the solver may leave to this contact, m/s
    status: np.ndarray  # (m,)


class General(NamedTuple):
    """General contacts; arrays with room for more than the active ones."""

    pair: np.ndarray  # (m,)
    a: np.ndarray  # (m,)
    b: np.ndarray  # (m,)
    frame: np.ndarray  # (m, 3, 3) rows n, t1, t2
    arm_a: np.ndarray  # (m, 3) from the centre of a to the contact point
    arm_b: np.ndarray  # (m, 3)
    impulse: np.ndarray  # (m, 3) n, t1, t2
    moment: np.ndarray  # (m, 3) about n, t1, t2
    target: np.ndarray  # (m, 3) r, -tau U_t^-
    bound: np.ndarray  # (m, 6) c1, c2, rolling, spinning, cohesion h, tension h
    delassus: np.ndarray  # (m, 6, 6) for (P, M)
    status: np.ndarray  # (m,)


def simple_contacts(room: int) -> Simple:
    """Empty arrays for ``room`` simple contacts."""
    rows = [np.empty(room, dtype=np.uint32) for _ in range(3)]  # unsigned: no test for negative indices
    return Simple(*rows, np.empty((room, 8)), np.empty(room), np.zeros(room, dtype=np.int8))


def general_contacts(room: int) -> General:
    """Empty arrays for ``room`` general contacts."""
    rows = [np.empty(room, dtype=np.int32) for _ in range(3)]
    shapes = ((3, 3), (3,), (3,), (3,), (3,), (3,), (6,), (6, 6))
    return General(*rows, *(np.zeros((room, *shape)) for shape in shapes), np.zeros(room, dtype=np.int8))


@kernel(inline=True)
def target_velocity(gap, before, rho, h, anticipate, repair):
    """The target r of the normal velocity."""
    if repair:
        return -gap / h
    if (gap <= 0.0 and not anticipate) or (rho > 0.0 and before < 0.0):  # held by glue, a gap may be open
        return -rho * before
    return -max(gap, 0.0) / h


@kernel(contract=True)
def activate_simple(
    pairs, ball_body, plane_body, radius, before, free, rows, laws, h, anticipate, repair, kappa, dimension, places,
    out,
):  # fmt: skip
    """Fill ``out`` with the contacts of simple pairs and add their first guess to ``rows``, which start as ``free``.

    ``places`` (m,): where each is to stand. Returns the sum of (rho b)^2 over them.
    """
    count, scale = 0, 0.0
    first, second, law, gap, normal = pairs.first, pairs.second, pairs.law, pairs.gap, pairs.normal
    memory, status, balls = pairs.impulse, pairs.status, pairs.balls
    for k in range(first.size):
        if not pairs.simple[k]:
            continue
        found = places[count]
        count += 1
        a = ball_body[first[k]] if k < balls else plane_body[first[k]]
        b = ball_body[second[k]]
        nx, ny, nz = normal[k, 0], normal[k, 1], normal[k, 2]
        rule = laws[law[k]]
        gamma, u_before = rule[FRICTION_1], 0.0
        if rule[RHO] > 0.0 or rule[STATIC] > gamma:  # only these laws look at the velocity before
            x, y, z = before[b, 0] - before[a, 0], before[b, 1] - before[a, 1], before[b, 2] - before[a, 2]
            u_before = x * nx + y * ny + z * nz
            if rule[STATIC] > gamma:
                sx, sy, sz = before[a, 3] + before[b, 3], before[a, 4] + before[b, 4], before[a, 5] + before[b, 5]
                tx = x - (sy * nz - sz * ny) - u_before * nx
                ty = y - (sz * nx - sx * nz) - u_before * ny
                tz = z - (sx * ny - sy * nx) - u_before * nz
                resting = tx * tx + ty * ty + tz * tz <= 1e-24 * (u_before * u_before + gap[k] * gap[k] / (h * h))
                if status[k] == STICKING or (status[k] <= SEPARATING and resting):
                    gamma = rule[STATIC]
        r = target_velocity(gap[k], u_before, rule[RHO], h, anticipate, repair)
        px, py, pz = memory[k, 0], memory[k, 1], memory[k, 2]
        fix = max(0.0, -(px * nx + py * ny + pz * nz))  # the memory is a vector in space: P_n must stay a push
        px, py, pz = px + fix * nx, py + fix * ny, pz + fix * nz
        row = out.row[found]
        row[NX], row[NY], row[NZ], row[PX], row[PY], row[PZ] = nx, ny, nz, px, py, pz
        row[TARGET], row[GAMMA] = r, gamma
        out.pair[found], out.a[found], out.b[found], out.status[found] = k, a, b, OPEN
        out.sink[found] = np.inf
        if anticipate:
            size = min(radius[first[k]], radius[second[k]]) if k < balls else radius[second[k]]
            out.sink[found] = max(0.5 * (DEEP * size + min(gap[k], 0.0)), SINKING * size) / h
        fa, fb, ra, rb = free[a], free[b], rows[a], rows[b]
        ma, mb = fa[6], fb[6]
        rho = dimension / ((ma + mb) * (1.0 + (dimension - 1) * (1.0 + kappa)))
        sx, sy, sz = fa[3] + fb[3], fa[4] + fb[4], fa[5] + fb[5]
        tx = fb[0] - fa[0] - (sy * nz - sz * ny) - r * nx
        ty = fb[1] - fa[1] - (sz * nx - sx * nz) - r * ny
        tz = fb[2] - fa[2] - (sx * ny - sy * nx) - r * nz
        scale += rho * rho * (tx * tx + ty * ty + tz * tz)
        ra[0] -= ma * px
        ra[1] -= ma * py
        ra[2] -= ma * pz
        rb[0] += mb * px
        rb[1] += mb * py
        rb[2] += mb * pz
        mx, my, mz = kappa * (ny * pz - nz * py), kappa * (nz * px - nx * pz), kappa * (nx * py - ny * px)
        ra[3] -= ma * mx
        ra[4] -= ma * my
        ra[5] -= ma * mz
        rb[3] -= mb * mx
        rb[4] -= mb * my
        rb[5] -= mb * mz
    return scale


@kernel
def local_frame(n, axis, flat, out):
    """Rows n, t1, t2: t1 along ``axis`` where one is given, z x n in two dimensions, any tangent otherwise."""
    out[0] = n
    if flat:
        out[1, 0], out[1, 1], out[1, 2] = -n[1], n[0], 0.0
    else:
        tx, ty, tz = axis[0], axis[1], axis[2]
        along = tx * n[0] + ty * n[1] + tz * n[2]
        tx, ty, tz = tx - along * n[0], ty - along * n[1], tz - along * n[2]
        size = np.sqrt(tx * tx + ty * ty + tz * tz)
        if size > 1e-9:
            out[1, 0], out[1, 1], out[1, 2] = tx / size, ty / size, tz / size
        else:  # Duff et al. (2017)
            sign = 1.0 if n[2] >= 0.0 else -1.0
            f = -1.0 / (sign + n[2])
            out[1, 0], out[1, 1], out[1, 2] = 1.0 + sign * n[0] * n[0] * f, sign * n[0] * n[1] * f, -sign * n[0]
    out[2, 0] = n[1] * out[1, 2] - n[2] * out[1, 1]
    out[2, 1] = n[2] * out[1, 0] - n[0] * out[1, 2]
    out[2, 2] = n[0] * out[1, 1] - n[1] * out[1, 0]


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
def activate_general(
    pairs, ball_body, plane_body, ball_material, plane_material, places, radius, position, orientation, before, free,
    inverse, laws, axes, h, anticipate, repair, dimension, out,
):  # fmt: skip
    """Fill ``out`` with the general contacts; returns their number and the sum of (rho b)^2 over them."""
    found, scale = 0, 0.0
    first, second, law, gap, normal = pairs.first, pairs.second, pairs.law, pairs.gap, pairs.normal
    memory, memory_moment, status, balls = pairs.impulse, pairs.moment, pairs.status, pairs.balls
    u_before, u_free, axis = np.empty(3), np.empty(3), np.empty(3)
    frame, arm_a, arm_b = np.empty((3, 3)), np.empty(3), np.empty(3)
    for k in range(first.size):
        if pairs.simple[k]:
            continue
        a = ball_body[first[k]] if k < balls else plane_body[first[k]]
        b = ball_body[second[k]]
        rule = laws[law[k]]
        # The contact point lies halfway in the gap.
        for c in range(3):
            point = places[second[k], c] - (radius[second[k]] + 0.5 * gap[k]) * normal[k, c]
            arm_a[c], arm_b[c] = point - position[a, c], point - position[b, c]
        d = axes[law[k]]
        # The axis is carried by the body made of its material; by the first one, where both are.
        made_of = ball_material[first[k]] if k < balls else plane_material[first[k]]
        q = orientation[a] if made_of == d[3] or ball_material[second[k]] != d[3] else orientation[b]
        tx, ty, tz = 2 * (q[2] * d[2] - q[3] * d[1]), 2 * (q[3] * d[0] - q[1] * d[2]), 2 * (q[1] * d[1] - q[2] * d[0])
        axis[0] = d[0] + q[0] * tx + q[2] * tz - q[3] * ty
        axis[1] = d[1] + q[0] * ty + q[3] * tx - q[1] * tz
        axis[2] = d[2] + q[0] * tz + q[1] * ty - q[2] * tx
        local_frame(normal[k], axis, dimension == 2, frame)
        relative_velocity(before, a, b, frame, arm_a, arm_b, u_before)
        relative_velocity(free, a, b, frame, arm_a, arm_b, u_free)
        if found < out.pair.size:
            out.pair[found], out.a[found], out.b[found], out.status[found] = k, a, b, OPEN
            out.frame[found], out.arm_a[found], out.arm_b[found] = frame, arm_a, arm_b
            r = target_velocity(gap[k], u_before[0], rule[RHO], h, anticipate, repair)
            out.target[found, 0] = r
            c1, c2 = rule[FRICTION_1], rule[FRICTION_2]
            resting = u_before[1] ** 2 + u_before[2] ** 2 <= 1e-24 * (u_before[0] ** 2 + (gap[k] / h) ** 2)
            if rule[STATIC] > c1 and (status[k] == STICKING or (status[k] <= SEPARATING and resting)):
                c1 = c2 = rule[STATIC]
            bound = out.bound[found]
            bound[0], bound[1], bound[2], bound[3] = c1, c2, rule[ROLLING], rule[SPINNING]
            bound[4], bound[5] = h * rule[COHESION], h * rule[TENSION]
            contact_block(free, inverse, a, b, frame, arm_a, arm_b, out.delassus[found])
            mean = out.delassus[found, 0, 0] + out.delassus[found, 1, 1]
            mean += out.delassus[found, 2, 2] if dimension == 3 else 0.0
            rho = dimension / mean
            scale += (rho * (u_free[0] - r)) ** 2
            for i in range(3):
                out.impulse[found, i] = 0.0
                out.moment[found, i] = 0.0
                for c in range(3):
                    out.impulse[found, i] += frame[i, c] * memory[k, c]
                    out.moment[found, i] += frame[i, c] * memory_moment[k, c]
                if i > 0:
                    out.target[found, i] = -rule[TAU] * u_before[i]
                    scale += (rho * (u_free[i] - out.target[found, i])) ** 2
        found += 1
    return found, scale
