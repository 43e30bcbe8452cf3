"""How the contacts of a step are swept: their order, on how many threads, how often.

*Order.* The bodies in contact are cut into slabs, wider than the distance between any two bodies in contact, across the
axis along which they spread most. A contact belongs to the slab of the lower one of its bodies. Contacts of two even
slabs share no free body, so that threads may work on them at the same time; then come the odd ones. The slabs of each
kind are put together to `GROUPS` groups of about as many contacts. Which thread takes which group changes nothing: the
result is the same to the bit for any number of threads. Each takes neighbouring ones, so that its bodies stay in the
cache of its core. In a group, contacts from `STREAMS` distant places of its list follow each other: two contacts of one
body in a row would make the processor wait for the velocity just written (22 against 17 ns per contact).

*How often.* `nlgs` is plain Gauss-Seidel; `accelerated` adds Nesterov's extrapolation and leaves out contacts that need
no more work. Both end by the same residual over all contacts. All threads run through the same decisions.
"""

from typing import NamedTuple

import numpy as np

from . import team
from ._jit import kernel
from .gauss_seidel import measure_general, measure_simple, sweep_ahead, sweep_general, sweep_simple

GROUPS, STREAMS, SLABS, CHUNKS = 8, 4, 512, 16


class Work(NamedTuple):
    """Scratch arrays of the solvers; room for m contacts and N bodies."""

    order: np.ndarray  # (m,) the contacts 0, 1, ...: they stand in the order of a sweep, even slabs and then odd ones
    cuts: np.ndarray  # (2 GROUPS + 1,) where the groups begin
    few: np.ndarray  # (m,) those that need work, in the order of a sweep; before, the places of all (`arrange`)
    few_cuts: np.ndarray  # (2 GROUPS + 1,)
    shares: np.ndarray  # (m,) each contact's part of the squared residual
    impulse: np.ndarray  # (m, 3) the last iterate
    rows: np.ndarray  # (N, 6)
    bodies: np.ndarray  # (N,) the bodies of `few`
    movable: np.ndarray  # the bodies that contacts can move
    mark: np.ndarray  # (N,)
    changes: np.ndarray  # (2, 2 GROUPS) of this and the last sweep, by group
    sums: np.ndarray  # (CHUNKS, 7) parts of the residual
    found: np.ndarray  # (2,) numbers of contacts and bodies in `few`
    barrier: np.ndarray  # see `team`


def work_arrays(contacts: int, rows: np.ndarray) -> Work:
    """Scratch arrays for a solver of so many contacts of the bodies ``rows`` (N, 8)."""
    bodies = len(rows)
    return Work(
        np.empty(contacts, dtype=np.uint32), np.zeros(2 * GROUPS + 1, dtype=np.int64),
        np.empty(contacts, dtype=np.uint32),
        np.zeros(2 * GROUPS + 1, dtype=np.int64),
        np.empty(contacts), np.empty((contacts, 3)), np.empty((bodies, 6)),
        np.empty(bodies, dtype=np.uint32), np.flatnonzero(rows[:, 6]).astype(np.uint32),
        np.zeros(bodies, dtype=np.int8),
        np.zeros((2, 2 * GROUPS)), np.zeros((CHUNKS, 7)), np.zeros(2, dtype=np.int64), team.barrier(),
    )  # fmt: skip


@kernel
def grid(position, second, ball_body, gap, reach):
    """The slabs: their axis, width, the first one and how many there are.

    The axis is that along which the contacts (their ``second`` balls) spread most; slabs hold nearly all of them, the
    outer ones what is beyond. ``reach``: no two bodies in contact are farther from each other than this and their gap.
    The width is ``reach`` times a power of 1.25, and the bounds are its multiples: they stay where they are from step
    to step.
    """
    total, square = np.zeros(3), np.zeros(3)
    every = 1 + second.size // 4096  # some thousand contacts tell the spread of all
    count = max(1, (second.size + every - 1) // every)
    for k in range(0, second.size, every):
        i = ball_body[second[k]]
        for c in range(3):
            total[c] += position[i, c]
            square[c] += position[i, c] * position[i, c]
    best, axis, middle = 0.0, 0, 0.0
    for c in range(3):
        mean = total[c] / count
        variance = square[c] / count - mean * mean
        if variance > 1.5 * best:  # the first axis where there is little to choose: slabs do not turn from step to step
            best, axis, middle = variance, c, mean
    extent = 6.0 * np.sqrt(best)
    least, width = 0.0, reach if reach > 0.0 else 1.0
    for k in range(gap.size):
        least = max(least, gap[k])
    least = max(1.001 * (reach + least), extent / SLABS)
    while width < least:
        width *= 1.25
    first = np.floor((middle - 0.5 * extent) / width)
    return axis, width, first, int(np.floor((middle + 0.5 * extent) / width) - first) + 1


def slices(position, second, ball_body, reach) -> np.ndarray:
    """The order (N,) of bodies slab by slab; in a slab row by row. Gaps do not count: they are in no checkpoint."""
    axis, width, _, _ = grid(position, second, ball_body, np.zeros(0), reach)
    if not len(second):  # no contact yet
        axis = int(np.argmax(np.var(position, axis=0)))
    two, three = (k for k in np.argsort(-np.var(position, axis=0), kind="stable") if k != axis)
    cells = np.floor(position / width)
    return np.lexsort((position[:, three], cells[:, two], cells[:, axis]))


@kernel
def arrange(position, rows, pairs, ball_body, plane_body, reach, work):
    """Where the contacts of the simple pairs are to stand, in the order of a sweep; returns their number.

    ``work.few`` gets the place of each, ``work.cuts`` where the groups begin. ``position`` (N, 3) of the bodies;
    ``reach``: see `grid`. Nothing is valid where there is no room.
    """
    simple, one, two, balls = pairs.simple, pairs.first, pairs.second, pairs.balls
    order, few = work.order, work.few
    m = 0
    for k in range(simple.size):
        m += simple[k]
    if m > order.size:
        return m
    axis, width, first, slabs = grid(position, two, ball_body, pairs.gap, reach)
    counts, m, scale = np.zeros(slabs, dtype=np.int64), 0, 1.0 / width
    home = np.empty(rows.shape[0], dtype=np.int32)  # the slab of a body; those that do not move follow the others
    for i in range(home.size):
        slab = int(min(max(np.floor(position[i, axis] * scale) - first, 0.0), slabs - 1.0))
        home[i] = slab if rows[i, 6] > 0.0 else slabs
    for k in range(simple.size):
        if not simple[k]:
            continue
        a = ball_body[one[k]] if k < balls else plane_body[one[k]]
        slab = min(home[a], home[ball_body[two[k]]], slabs - 1)
        few[m] = slab
        counts[slab] += 1
        m += 1
    begin = cut_groups(counts, work.cuts)
    for k in range(m):
        slab = few[k]
        order[begin[slab]] = k
        begin[slab] += 1
    few[:m] = order[:m]
    for group in range(2 * GROUPS):
        interleave(few[work.cuts[group] : work.cuts[group + 1]], order[work.cuts[group] :])
    for k in range(m):
        few[order[k]] = k
    for k in range(m):
        order[k] = k
    return m


@kernel
def cut_groups(counts, cuts):
    """Put even and odd slabs into groups of about as many contacts; returns where each slab begins."""
    slabs = counts.size
    begin = np.zeros(slabs, dtype=np.int64)
    at = 0
    for parity in range(2):
        total = 0
        for slab in range(parity, slabs, 2):
            total += counts[slab]
        first, group = at, 0
        cuts[parity * GROUPS] = at
        for slab in range(parity, slabs, 2):
            # a slab goes where its middle is
            while group < GROUPS - 1 and (2 * (at - first) + counts[slab]) * GROUPS > 2 * (group + 1) * total:
                group += 1
                cuts[parity * GROUPS + group] = at
            begin[slab] = at
            at += counts[slab]
        for rest in range(group + 1, GROUPS):
            cuts[parity * GROUPS + rest] = at
    cuts[2 * GROUPS] = at
    return begin


@kernel
def interleave(list_, out):
    """Write ``list_`` so that contacts from `STREAMS` places of it follow each other."""
    length = list_.size
    stride = (length + STREAMS - 1) // STREAMS
    at = 0
    for i in range(stride):
        for k in range(i, length, stride):
            out[at] = list_[k]
            at += 1


@kernel
def sweep_slabs(rows, simple, order, cuts, kappa, beta, last, changes, barrier, thread, threads):
    """One sweep over all groups, shared among the threads, ahead by ``beta`` (plain where it is negative).

    Returns the kinetic size of the change, sum W_n |dP|^2.
    """
    first, after = part(GROUPS, thread, threads)  # the same place in space for both kinds: it stays in a core's cache
    for parity in range(2):
        for group in range(parity * GROUPS + first, parity * GROUPS + after):
            some = order[cuts[group] : cuts[group + 1]]
            if beta < 0.0:
                changes[group] = sweep_simple(rows, simple, some, kappa)
            else:
                changes[group] = sweep_ahead(rows, simple, some, kappa, beta, last)
        team.wait(barrier, threads)
    total = 0.0
    for group in range(2 * GROUPS):
        total += changes[group]
    return total


@kernel
def part(length, thread, threads):
    """The share of a thread in a loop: begin and end."""
    return length * thread // threads, length * (thread + 1) // threads


@kernel
def extrapolate(rows, bodies, last, beta):
    """v = x + beta (x - x_last) for the velocities and spins of ``bodies``; ``last`` (N, 6) takes x."""
    for k in range(bodies.size):
        at = bodies[k]
        for i in range(6):
            x = rows[at, i]
            if beta > 0.0:
                rows[at, i] = x + beta * (x - last[at, i])
            last[at, i] = x


@kernel
def small_enough(shares, allowed):
    """The power of two below which the ``shares`` (m,) together are at most ``allowed``."""
    parts, exponent = np.zeros(2048), shares.view(np.int64)
    for k in range(shares.size):
        parts[exponent[k] >> 52] += shares[k]
    total = 0.0
    for n in range(2048):
        total += parts[n]
        if total > allowed:
            return 2.0 ** (n - 1023)
    return np.inf


@kernel
def hot_contacts(simple, m, work, limit):
    """The contacts of all bodies that some contact with a share above ``limit`` acts on, into ``work.few``.

    No branches on what the processor could not foresee: what is not chosen is written over by the next.
    """
    a, b, shares = simple.a, simple.b, work.shares
    mark, few, chosen = work.mark, work.few, work.bodies
    mark[:] = 0
    for k in range(m):
        hot = np.int8(shares[k] >= limit)
        mark[a[k]] |= hot
        mark[b[k]] |= hot
    contacts, bodies = 0, 0
    for group in range(2 * GROUPS):
        work.few_cuts[group] = contacts
        for k in range(work.cuts[group], work.cuts[group + 1]):
            i, j = a[k], b[k]
            taken = (mark[i] | mark[j]) & np.int8(1)
            few[contacts] = k
            contacts += taken
            near = taken << np.int8(1)  # 2 for a neighbour: its velocity changes, its other contacts wait
            mark[i] |= near
            mark[j] |= near
    work.few_cuts[2 * GROUPS] = contacts
    for body in range(mark.size):
        if mark[body]:
            chosen[bodies] = body
            bodies += 1
    work.found[0], work.found[1] = contacts, bodies


@kernel
def measure(rows, simple, m, general, g, kappa, dimension, scale_free, work, thread, threads):
    """Residual, worst contact (general ones come after the simple ones), bipotential (relative), the square of what the
    residual is relative to, and how many contacts sink.
    """
    first, after = part(CHUNKS, thread, threads)
    for chunk in range(first, after):
        begin, end = part(m, chunk, CHUNKS)
        e, s, w, l, b, k, d = measure_simple(rows, simple, begin, end, kappa, dimension, work.shares)
        one = work.sums[chunk]
        one[0], one[1], one[2], one[3], one[4], one[5], one[6] = e, s, w, l, b, k, d
    team.wait(work.barrier, threads)
    error, size, worst, largest, bipotential, kinetic, sinking = 0.0, 0.0, -1, -1.0, 0.0, 0.0, 0.0
    for chunk in range(CHUNKS):
        one = work.sums[chunk]
        sinking += one[6]
        error, size, bipotential, kinetic = error + one[0], size + one[1], bipotential + one[4], kinetic + one[5]
        if one[3] > largest:
            worst, largest = int(one[2]), one[3]
    if g > 0:
        e, s, w, l, b, k = measure_general(rows, general, g, dimension)
        error, size, bipotential, kinetic = error + e, size + s, bipotential + b, kinetic + k
        if l > largest:
            worst = m + w
    team.wait(work.barrier, threads)  # the sums are read: they may be written again
    scale = max(size, scale_free)
    if scale == 0.0:
        return 0.0, worst, 0.0, 0.0, 0.0
    return np.sqrt(error / scale), worst, bipotential / kinetic if kinetic > 0.0 else 0.0, scale, sinking


@kernel
def enough(done, residual, tolerance, sinking, met):
    """Whether to stop after ``done`` sweeps; ``met``: the sweeps after which the residual was first small enough.

    The residual is relative to all impulses: in a compaction a few contacts may sink step after step without being
    seen. They get twice as much work again, and 100 sweeps.
    """
    return residual <= tolerance and (sinking == 0 or done >= 3 * met + 100)


@kernel
def plain_sweep(rows, inverse, simple, general, g, kappa, work, flip, thread, threads):
    """One sweep over all contacts."""
    sweep_slabs(rows, simple, work.order, work.cuts, kappa, -1.0, work.impulse, work.changes[flip], work.barrier,
                thread, threads)  # fmt: skip
    if g > 0:
        if thread == 0:
            sweep_general(rows, inverse, general, g)
        team.wait(work.barrier, threads)


@kernel
def nlgs(
    rows, inverse, simple, m, general, g, kappa, dimension, scale_free, tolerance, max_iterations, work, thread,
    threads,
):  # fmt: skip
    """Plain nonlinear Gauss-Seidel, the reference: sweep until the residual is below the tolerance.

    Returns sweeps, residual, worst contact, bipotential. ``work`` are the arrays of `work_arrays`, arranged.
    """
    residual, worst, bipotential = 0.0, -1, 0.0
    next_check, met = 1, max_iterations
    for iteration in range(1, max_iterations + 1):
        plain_sweep(rows, inverse, simple, general, g, kappa, work, iteration % 2, thread, threads)
        if iteration < next_check and iteration < max_iterations:
            continue
        next_check = iteration + max(1, iteration // 5)
        residual, worst, bipotential, _, sinking = measure(
            rows, simple, m, general, g, kappa, dimension, scale_free, work, thread, threads
        )
        if residual <= tolerance:
            met = min(met, iteration)
        if enough(iteration, residual, tolerance, sinking, met):
            return iteration, residual, worst, bipotential
    return max_iterations, residual, worst, bipotential


@kernel
def accelerated_sweeps(
    rows, simple, kappa, order, cuts, bodies, work, count, target, t, last, thread, threads,
):  # fmt: skip
    """Sweeps over the contacts ``order`` with Nesterov's extrapolation before each, until the change made by a sweep is
    at most ``target``, ``count`` at most; ends on a sweep.

    ``t`` is the momentum (1 at a start) and ``last`` the change of the sweep before; restarted when the change grows.
    Returns the number of sweeps, t and the last change.
    """
    first, after = part(bodies.size, thread, threads)
    done = 0
    while done < count and (done == 0 or last > target):
        new = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        beta = (t - 1.0) / new
        extrapolate(rows, bodies[first:after], work.rows, beta)
        team.wait(work.barrier, threads)
        t = new
        change = sweep_slabs(
            rows, simple, order, cuts, kappa, beta, work.impulse, work.changes[done % 2], work.barrier, thread, threads
        )
        if change > last:
            t = 1.0
        last = change
        done += 1
    team.wait(work.barrier, threads)
    return done, t, last


@kernel
def accelerated(
    rows, inverse, simple, m, general, g, kappa, dimension, scale_free, tolerance, max_iterations, work, thread,
    threads,
):  # fmt: skip
    """Gauss-Seidel with Nesterov's extrapolation, on the contacts that need it.

    Rounds of sweeps between full evaluations of the residual: a round ends when the change made by a sweep has fallen
    as much as the residual must. It goes over all contacts or, where the residual sits on few of them, over those
    around it; only the full residual decides when to stop. General contacts are not extrapolated: where there are
    some, all sweeps are plain. Returns as `nlgs`.
    """
    residual, worst, bipotential, best = 0.0, -1, 0.0, np.inf
    done, since, count, met, target = 0, 0, 1, max_iterations, 0.0
    order, cuts, bodies = work.order[:m], work.cuts, work.movable
    fresh, plain, t, last = True, g > 0, 1.0, np.inf
    while done < max_iterations:
        count = min(count, max_iterations - done)
        if plain:
            for n in range(count):
                plain_sweep(rows, inverse, simple, general, g, kappa, work, n % 2, thread, threads)
            team.wait(work.barrier, threads)
        else:
            if fresh:
                t, last = 1.0, np.inf
            count, t, last = accelerated_sweeps(
                rows, simple, kappa, order, cuts, bodies, work, count, target, t, last, thread, threads
            )
        done += count
        before = residual
        residual, worst, bipotential, scale, sinking = measure(
            rows, simple, m, general, g, kappa, dimension, scale_free, work, thread, threads
        )
        if residual <= tolerance:
            met = min(met, done)
        if enough(done, residual, tolerance, sinking, met):
            break
        count, target = 4, 0.0
        if residual > tolerance:
            # the first sweep says less than one with momentum
            goal = (0.75 if done == 1 else 0.92) * tolerance
            count, target = min(max(16, done // 2), 64), last * (goal / residual) ** 2
        # Friction can make the extrapolation cycle: where 150 sweeps have not halved the residual, go on without it.
        if residual < 0.5 * best:
            best, since = residual, done
        elif done - since >= 150:
            plain = True
        if plain:
            continue
        if thread == 0:
            # Contacts with the smallest shares, together below half the tolerance, may stay as they are.
            hot_contacts(simple, m, work, small_enough(work.shares[:m], 0.25 * tolerance**2 * scale))
        team.wait(work.barrier, threads)
        fresh = order.size < m
        # A round over few contacts may push the residual outwards only; then, where most contacts need work, and where
        # contacts sink, go on over all, with the momentum gained.
        if 2 * work.found[0] > m or (fresh and residual > 0.5 * before) or residual <= tolerance:
            order, cuts, bodies = work.order[:m], work.cuts, work.movable
            if fresh and residual > tolerance:  # the change of a sweep over few contacts says nothing of one over all
                count, target = min(int(3.0 * np.log(residual / (0.75 * tolerance))) + 2, 64), 0.0
        else:
            order, cuts, bodies = work.few[: work.found[0]], work.few_cuts, work.bodies[: work.found[1]]
            fresh = True
    return done, residual, worst, bipotential
