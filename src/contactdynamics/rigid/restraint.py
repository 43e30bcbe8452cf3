"""What a step leaves may not create energy.

In an exact solution every law has P . (U - r) <= 0: a contact that pushes does not open faster than its target r, and
friction acts against the slip. A solver that stops early leaves impulses that are too large in some places and too
small in others. Where their sum over a group of bodies that hang together is positive, all impulses of the group are
multiplied by the factor below one that makes it zero,

    s = 1 - sum P . (U - r) / sum P . (U - U_free),

which is the minimum of the kinetic energy along P, counted against the targets. The kinetic energy is then at most that
of the free motion less P . W P / 2, as in an exact solution, whatever the tolerance and the number of sweeps; all laws
allow a smaller impulse. The velocities of the group become those of the free motion and of the solution in the
proportion 1 - s to s, so that a heap sinks as one body, by what its ground could not carry.
"""

import numpy as np
from numba import literal_unroll

from .._jit import kernel
from .equations.contract import add_powers

ROUNDING = 1e-14  # of the powers summed without sign: not a gain


@kernel
def join(a, b, rows, parent):
    """Join the groups of the two bodies of each contact, if both move freely; the smaller row leads."""
    for k in range(a.size):
        i, j = int(a[k]), int(b[k])
        if rows[i, 6] > 0.0 and rows[j, 6] > 0.0:
            while parent[i] != i:
                parent[i] = parent[parent[i]]
                i = parent[i]
            while parent[j] != j:
                parent[j] = parent[parent[j]]
                j = parent[j]
            if i < j:
                parent[j] = i
            else:
                parent[i] = j


@kernel
def label(parent):
    """Replace ``parent`` (N,), which points to smaller rows, by the number of the group; returns their count."""
    count = 0
    for i in range(parent.size):
        if parent[i] == i:
            parent[i] = count
            count += 1
        else:
            parent[i] = parent[parent[i]]
    return count


@kernel
def factors(sums):
    """(G,) by what the impulses of each group are to be multiplied; ``sums`` (G, 3): see `Kernels`."""
    out = np.ones(sums.shape[0])
    for g in range(out.size):
        gain, size = sums[g, 0], sums[g, 1]
        if gain > ROUNDING * sums[g, 2]:
            out[g] = max(0.0, 1.0 - gain / size) if size > 0.0 else 0.0
    return out


@kernel
def gains(rows, free, kinds, one):
    """The group (N,) of each body, those that hang together by contacts, the factor (G,) of each, and the least one.

    ``one``: all hang together, by a cell that moves.
    """
    group = np.arange(rows.shape[0])
    for kind in literal_unroll(kinds):
        join(kind.contacts.a, kind.contacts.b, rows, group)
    count = label(group)
    if one:
        group[:] = 0
        count = 1
    sums = np.zeros((count, 3))
    for kind in literal_unroll(kinds):
        add_powers(free, rows, kind.contacts, group, sums)
    factor = factors(sums)
    return group, factor, factor.min()


@kernel
def slow(rows, free, group, factor):
    """Velocities of the impulses multiplied by the ``factor`` (G,) of each group."""
    for i in range(rows.shape[0]):
        s = factor[group[i]]
        if s < 1.0 and rows[i, 6] > 0.0:
            for c in range(6):
                rows[i, c] = free[i, c] + s * (rows[i, c] - free[i, c])
