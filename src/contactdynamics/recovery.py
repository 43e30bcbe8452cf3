"""Overlaps, and their recovery: bodies are moved apart, velocities stay as they are."""

import numpy as np

from ._jit import kernel
from .contacts import NX, NY, NZ, relative_velocity
from .gauss_seidel import slip


@kernel
def overlaps(rows, simple, m, general, g, pairs, radius, h, depth):
    """Overlap (m + g,) of each contact at the end of the step over the smaller radius; returns the largest.

    The gap at the end is that at the midpoint plus h U_n / 2.
    """
    worst = 0.0
    u = np.empty(3)
    for k in range(m + g):
        if k < m:
            c = simple.row[k]
            x, y, z = slip(rows, simple.a[k], simple.b[k], c[NX], c[NY], c[NZ])
            u_n, pair = x * c[NX] + y * c[NY] + z * c[NZ], int(simple.pair[k])
        else:
            q = k - m
            relative_velocity(rows, general.a[q], general.b[q], general.frame[q], general.arm_a[q], general.arm_b[q], u)
            u_n, pair = u[0], int(general.pair[q])
        size = radius[pairs.second[pair]]
        if pair < pairs.balls:
            size = min(size, radius[pairs.first[pair]])
        depth[k] = -(pairs.gap[pair] + 0.5 * h * u_n) / size
        worst = max(worst, depth[k])
    return worst


@kernel
def recover(position, rows, simple, m, general, g, pairs, radius, depth, keep, most, gravity, mass):
    """Move bodies apart until no contact overlaps by more than ``keep`` of the smaller radius, each by ``most`` at
    most.

    Gauss-Seidel on displacements, without friction, in the metric of masses; velocities stay as they are. ``depth`` of
    `overlaps`. Returns the work done against gravity.
    """
    shift = np.zeros((rows.shape[0], 3))
    for _ in range(100):
        moved = 0.0
        for k in range(m + g):
            if k < m:
                a, b, pair = int(simple.a[k]), int(simple.b[k]), int(simple.pair[k])
            else:
                a, b, pair = int(general.a[k - m]), int(general.b[k - m]), int(general.pair[k - m])
            size = radius[pairs.second[pair]]
            if pair < pairs.balls:
                size = min(size, radius[pairs.first[pair]])
            n = pairs.normal[pair]
            open_ = (depth[k] - keep) * size
            for c in range(3):
                open_ -= n[c] * (shift[b, c] - shift[a, c])
            if open_ > 0.0:
                moved = max(moved, open_ / size)
                share = open_ / (rows[a, 6] + rows[b, 6])
                for c in range(3):
                    shift[a, c] -= rows[a, 6] * share * n[c]
                    shift[b, c] += rows[b, 6] * share * n[c]
        if moved < 0.1 * keep:
            break
    work = 0.0
    for i in range(shift.shape[0]):
        size = np.sqrt(shift[i, 0] ** 2 + shift[i, 1] ** 2 + shift[i, 2] ** 2)
        scale = most / size if size > most else 1.0
        for c in range(3):
            position[i, c] += scale * shift[i, c]
            work -= mass[i] * gravity[c] * scale * shift[i, c]
    return work
