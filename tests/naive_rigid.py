"""Naive twins of the rigid-body kernels: dense matrices, loops over all pairs, formulas from their definitions.

A body's velocity is (v, w), w the spin in space; all bodies together a vector (6 N,). A contact between a and b with
frame (rows n, t1, t2) and arms gives U = G u, (6,): three components of the velocity, three of the spin.
"""

import itertools

import numpy as np

import naive

FREE, DRIVEN = 0, 2
OPEN, SEPARATING, STICKING, SLIDING = 0, 1, 2, 3


# ---- rotations -------------------------------------------------------------------------------------------------------


def product(a, b):
    """Hamilton's product: scalar and vector parts."""
    return np.array([a[0] * b[0] - a[1:] @ b[1:], *(a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:]))])


def conjugate(q):
    return np.array([q[0], -q[1], -q[2], -q[3]])


def rotate(q, x):
    """q x q*."""
    return product(product(q, np.array([0.0, *x])), conjugate(q))[1:]


def matrix(q):
    return np.array([rotate(q, e) for e in np.eye(3)]).T


def cross(a):
    """Matrix of b -> a x b."""
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def exponential(x):
    """The quaternion of a rotation vector."""
    angle = np.linalg.norm(x)
    axis = x / angle if angle > 0 else x
    return np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)])


def turned(q, spin, h):
    """Orientation after a time h at constant spin (in space)."""
    out = product(exponential(h * np.asarray(spin)), q)
    return out / np.linalg.norm(out)


# ---- bodies ----------------------------------------------------------------------------------------------------------


def velocities(rows):
    """(N, 6) v and w from the rows of the engine."""
    return np.column_stack([rows[:, :3], rows[:, 3:6] / rows[:, 7:8]])


def inverse_inertia(kind, mass, inertia, orientation, dimension):
    """A^-1 (6 N, 6 N), zero for bodies that do not move freely; in two dimensions only x, y and the turning about z."""
    n = len(kind)
    out = np.zeros((6 * n, 6 * n))
    for i in range(n):
        if kind[i] == FREE:
            r = matrix(orientation[i])
            out[6 * i : 6 * i + 3, 6 * i : 6 * i + 3] = np.eye(3) / mass[i]
            turning = r @ np.diag(1 / inertia[i]) @ r.T if dimension == 3 else np.diag([0, 0, 1 / inertia[i, 2]])
            out[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] = turning
    return out


def kinetic(kind, mass, inertia, orientation, rows):
    total = 0.0
    for i, (v, w) in enumerate(zip(rows[:, :3], velocities(rows)[:, 3:], strict=True)):
        if kind[i] == FREE:
            r = matrix(orientation[i])
            total += 0.5 * mass[i] * v @ v + 0.5 * w @ (r @ np.diag(inertia[i]) @ r.T) @ w
    return total


def spring_energy(springs, position, orientation):
    """Elastic energy of all springs."""
    return sum(
        0.5 * k * (np.linalg.norm(end(b, q, position, orientation) - end(a, p, position, orientation)) - length) ** 2
        for a, b, p, q, k, _, length in zip(*springs, strict=True)
    )


def end(body, anchor, position, orientation):
    return anchor if body < 0 else position[body] + rotate(orientation[body], anchor)


# ---- which bodies touch ----------------------------------------------------------------------------------------------


def places(position, orientation, centre, body):
    return np.array([position[k] + rotate(orientation[k], c) for k, c in zip(body, centre, strict=True)]).reshape(-1, 3)


def can_touch(i, j, body, kind):
    return body[i] != body[j] and FREE in (kind[body[i]], kind[body[j]])


def neighbours(i, reference, radius, margin, body, kind):
    """All j that may meet i while both stay within their margins."""
    return [
        j
        for j in range(len(radius))
        if j != i
        and can_touch(i, j, body, kind)
        and np.linalg.norm(reference[j] - reference[i]) < radius[i] + radius[j] + margin[i] + margin[j]
    ]


def normal_velocity(rows, a, b, n, point, position):
    """U_n at a point."""
    va, vb = (
        rows[k, :3] + np.cross(velocities(rows)[k, 3:], point - position[k]) for k in (a, b)
    )  # fmt: skip
    return n @ (vb - va)


def pairs_of_balls(body, kind, radius, centres):
    """(first, second, normal, distance - radii) of all pairs that could touch, in order."""
    for i, j in itertools.combinations(range(len(radius)), 2):
        if can_touch(i, j, body, kind):
            x = centres[j] - centres[i]
            distance = np.linalg.norm(x)
            yield i, j, x / distance, distance - radius[i] - radius[j]


def pairs_with_planes(body, kind, radius, centres, normals, points):
    for p, (n, at) in enumerate(zip(normals, points, strict=True)):
        for i in range(len(radius)):
            if kind[body[i]] == FREE:
                yield p, i, n, n @ (centres[i] - at) - radius[i]


# ---- contacts --------------------------------------------------------------------------------------------------------


def contact_map(a, b, frame, arm_a, arm_b, bodies):
    """G (6, 6 N): U and the relative spin of b with respect to a, in the frame."""
    out = np.zeros((6, 6 * bodies))
    for body, arm, sign in ((a, arm_a, -1.0), (b, arm_b, 1.0)):
        out[:3, 6 * body : 6 * body + 3] += sign * frame
        out[:3, 6 * body + 3 : 6 * body + 6] += sign * frame @ -cross(arm)  # w x arm = -arm x w
        out[3:, 6 * body + 3 : 6 * body + 6] += sign * frame
    return out


def target(gap, before, rho, h, anticipate):
    """The target of U_n: restitution; else, anticipating or held by glue, the velocity that closes the gap."""
    bounces = rho > 0 and before < 0
    if bounces or (not anticipate and gap <= 0):
        return -rho * before
    return -max(gap, 0.0) / h


def local_solution(w, b, gamma):
    """The impulse of one contact with isotropic friction, exact, from the twins of the laws; d = 2 or 3."""
    if gamma == 0:
        return np.array([max(0.0, -b[0] / w[0, 0]), *np.zeros(len(b) - 1)])
    (p,) = {2: naive.two, 3: naive.three}[len(b)](w, b, (gamma, gamma))[:1]
    return p


def recover(position, inverse_mass, contacts, keep, most, gravity, mass, rounds=1000):
    """Displacements of `recovery.recover_pairs`; ``contacts`` of (a, b, normal, radius, depth). Positions and work."""
    shift, given = np.zeros_like(position), np.zeros(len(contacts))
    for _ in range(rounds):
        moved = 0.0
        for k, (a, b, n, size, depth) in enumerate(contacts):
            way = (depth - keep) * size - n @ (shift[b] - shift[a])
            part = max(way / (inverse_mass[a] + inverse_mass[b]), -given[k])
            if part != 0:
                moved, given[k] = max(moved, abs(part) * (inverse_mass[a] + inverse_mass[b]) / size), given[k] + part
                shift[a] -= inverse_mass[a] * part * n
                shift[b] += inverse_mass[b] * part * n
        if moved < 0.1 * keep:
            break
    size = np.linalg.norm(shift, axis=1, keepdims=True)
    shift *= np.minimum(1.0, most / np.where(size > 0, size, 1.0))
    return position + shift, -float((mass[:, None] * shift * gravity).sum())


# ---- the order of a sweep --------------------------------------------------------------------------------------------


def in_turns(order, chosen):
    """Those of an ``order`` that are ``chosen``: every fourth one, the next ones, ..; then from four places in turn."""
    some = [int(k) for first in range(4) for k in order[first::4] if k in chosen]
    stride = -(-len(some) // 4)
    return [k for row in range(stride) for k in some[row::stride]]
