"""How often the contacts of a step are swept: `nlgs` and `accelerated`, for all kinds of equations.

`nlgs` is plain Gauss-Seidel; `accelerated` adds Nesterov's extrapolation and leaves out contacts that need no more
work. Both end by the same residual over all contacts. All threads run through the same decisions; sums are taken group
by group, in a fixed order, so that the number of threads changes no bit. ``kinds`` is the table of the contacts of all
kinds, and what they do is called by its address: see `entries`.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import types

from .._jit import kernel
from .crew import enlist
from .entries import MEASURE, MOBILITY, NUMBERS, SWEEP, TABLE, by_address, common, there
from .equations.contract import ALL, GROUPS, SHARED, measure, own_groups, sweep
from .growing import grown, longer
from .order import STREAMS, interleave
from .sums import CHUNKS, add_all, rounded
from .threads import CHOSEN, MARKED, MEASURED, SUMMED, after_groups, meet, own_part, part, share_out

LEFT = 100.0  # times the tolerance: what contacts may lose, over the kinetic size of what they do
EXACT = 1e-8  # residual that is enough whatever is left: arches multiply forces, and 1e-11 is beyond numbers
FINER = 1e-3  # of the tolerance: how far a small scene is solved
FINEST = 1e-12  # residual beyond which nothing is improved: only roundings would change
MANY = 2000  # contacts from which a round over those with most of the residual pays: of a tower it takes more sweeps
WORTH = 0.25  # of the contacts at most in a round over few: a look at all of them takes as long as a sweep
EVERY = 64  # contacts of which four tell, after the first sweep, whether a step is surely not solved yet
UNSOLVED, FAR = 1.0, 8.0  # of the tolerance: what they say then; beyond, the residual may sit on few contacts
LOOK = 30  # sweeps after which their rate is looked at, where another method is at hand
PATIENCE = 150  # sweeps in which the extrapolation must halve the residual
LINE = 64  # bytes of a line of cache


class Scratch(NamedTuple):
    """What a solver notes of the bodies; room for N of them."""

    rows: np.ndarray  # (N, 6) velocities of the last iterate
    bodies: np.ndarray  # (N,) the bodies of the contacts that need work: of each thread, from its part of `movable` on
    movable: np.ndarray  # the bodies that contacts can move; of those processes that share them, a process's own
    free: np.ndarray  # (N,) whether a body is among them
    pushed: np.ndarray  # the same, where processes share them those that one answers for: each body has one
    hot: np.ndarray  # (N,) that a contact acts on which needs work; behind them a line of cache for each thread
    near: np.ndarray  # the same that a contact of a hot body acts on, free or not
    losses: np.ndarray  # (GROUPS, 2048) what contacts lose, thread by thread: see `add_losses`
    changes: np.ndarray  # (2, ALL) of this and the last sweep, by group
    sums: np.ndarray  # (kinds, ALL, 8) parts of the residual; room for all kinds of the scene
    pushes: np.ndarray  # (1,) kinetic size of what the contacts do
    chunks: np.ndarray  # (GROUPS, CHUNKS) parts of it, thread by thread: see `sums`
    found: np.ndarray  # (GROUPS, 3) thread by thread: contacts that need work, all, bodies that need work


class Solution(NamedTuple):
    """What a solver returns."""

    iterations: int  # sweeps over all contacts
    residual: float  # relative to the impulses
    left: float  # what the contacts lose, over the kinetic size of what they do
    kind: int  # place of the kind of the worst contact among the kinds
    worst: int  # the contact with the largest share of the residual, in its kind; -1 without contacts
    bipotential: float  # relative


def scratch_arrays(rows: np.ndarray, kinds: int, known: Scratch | None = None) -> Scratch:
    """Scratch arrays for a solver of the bodies ``rows`` (N, 8) and so many kinds of equations.

    ``known``: those for the first of these bodies, which are used no more.
    """
    if known is None:
        every = np.zeros(0, dtype=np.uint32)
        known = Scratch(
            np.empty((0, 6)), every, every, np.zeros(0, dtype=np.bool_), every, None, None,
            np.zeros((GROUPS, 2048), dtype=np.int64), np.zeros((2, ALL)), np.zeros((kinds, ALL, 8)),
            np.zeros(1), np.zeros((GROUPS, CHUNKS), dtype=np.int64), np.zeros((GROUPS, 3), dtype=np.int64),
        )  # fmt: skip
    n, first = len(rows), len(known.free)
    free = rows[first:, 6] > 0.0
    movable = grown(known.movable, len(known.movable), (first + np.flatnonzero(free)).astype(np.uint32))
    hot, near = (np.zeros(n + LINE * (GROUPS + 1), dtype=np.bool_) for _ in range(2))
    return known._replace(
        rows=longer(known.rows, n, 6), bodies=longer(known.bodies, n), movable=movable, pushed=movable,
        free=grown(known.free, first, free), hot=hot, near=near,
    )  # fmt: skip


@kernel
def sweep_kind(place, rows, mobility, first, after, few, beta, changes):
    """Sweep over the contacts of the kind at a ``place`` in the groups from ``first`` on, before ``after``."""
    kind = there(place)
    contacts, plan = kind.contacts, kind.plan
    order, cuts, ends = (plan.few, plan.cuts, plan.few_ends) if few else (plan.order, plan.cuts, plan.cuts[1:])
    for group in range(first, after):
        if cuts[group] < ends[group]:
            some = order[cuts[group] : ends[group]]
            changes[group] += sweep(rows, mobility, contacts, some, beta, plan.last)


sweep_groups = by_address(
    SWEEP, sweep_kind, types.none, TABLE, MOBILITY, types.int64, types.int64, types.boolean, types.float64, NUMBERS
)


@kernel
def sweep_all(rows, mobility, kinds, few, beta, changes, meeting):
    """One sweep over all groups, divided among the threads, ahead by ``beta`` (plain where it is negative).

    ``few``: only over the contacts that need work. Returns the kinetic size of the change, sum W |dP|^2. Groups of one
    parity share no free body: kind after kind is the same as group after group.
    """
    first, after = own_part(meeting, GROUPS)  # the same place in space for both: it stays in a core's cache
    for parity in range(2):
        begin, end = parity * GROUPS + first, parity * GROUPS + after
        for group in range(begin, end):
            changes[group] = 0.0
        for at in range(len(kinds)):
            sweep_groups(kinds, at, (rows, mobility, begin, end, few, beta, changes))
        after_groups(meeting, rows, parity, changes)
    if some_shared(kinds):
        if meeting.thread == 0:
            changes[SHARED] = 0.0
            for at in range(len(kinds)):
                sweep_groups(kinds, at, (rows, mobility, SHARED, SHARED + 1, few, beta, changes))
        meet(meeting, rows)
    total = 0.0
    for group in range(ALL):
        total += changes[group]
    return total


@kernel
def some_shared(kinds):
    """Whether there are contacts that one thread must sweep: those across the border of a cell."""
    found = 0
    for at in range(len(kinds)):
        cuts = common(kinds, at).plan.cuts
        found += cuts[ALL] - cuts[SHARED]
    return found > 0


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
def add_losses(order, begin, end, shares, which, out):
    """Add what contacts lose to ``out`` (2048,), by the exponent of each of the ``shares`` (m, 2), column ``which``.

    In whole numbers, the 32 leading bits of each: their sum is the same in any order, and there is room for 2^31 of
    them. Those of the contacts ``order`` from ``begin`` on, before ``end``.
    """
    bits = shares.view(np.uint64)
    for at in range(begin, end):
        one = bits[order[at], which]
        out[(one >> np.uint64(52)) & np.uint64(2047)] += np.int64(
            (one >> np.uint64(21)) & np.uint64(0x7FFFFFFF) | np.uint64(0x80000000)
        )


@kernel
def small_enough(losses, allowed):
    """The power of two below which the shares together are at most ``allowed``, and how many contacts have more.

    As a part of all, by the leading bits of their shares, which are between one and two in each. ``losses`` (threads,
    2048): see `add_losses`. Contacts that sink lose more than any bound.
    """
    total, limit, above, every = 0.0, np.inf, 0.0, 0.0
    for n in range(losses.shape[1]):
        parts = 0
        for thread in range(losses.shape[0]):
            parts += losses[thread, n]
        if parts > 0:
            every += parts
            if 0 < n < 2047 and total <= allowed:
                total += math.ldexp(parts, n - 1054)
                if total > allowed:
                    limit = math.ldexp(1.0, n - 1023)
            if total > allowed or n == 2047:
                above += parts
    return limit, above / max(every, 1.0)


@kernel
def mark_bodies(a, b, order, begin, end, shares, which, limit, free, hot, spare):
    """Mark the free bodies of those contacts with a share (column ``which``) above ``limit`` as ``hot``.

    No branch, which nobody could foresee: where there is nothing to mark, it is the place ``spare``. Threads that mark
    one body at the same time write the same.
    """
    for at in range(begin, end):
        k = order[at]
        i, j, above = np.uint64(a[k]), np.uint64(b[k]), shares[k, which] >= limit
        hot[i if above & free[i] else spare] = True
        hot[j if above & free[j] else spare] = True


@kernel
def choose(a, b, plan, group, hot, near, spare):
    """The contacts of hot bodies in a ``group`` into ``plan.few``; marks all their bodies as ``near``.

    Returns their number. No branches either: what is not chosen is written over by the next. Those of each of the
    places from which the order takes its contacts in turns are put together, and then taken in turns again: see
    `order.interleave`.
    """
    few, order, begin, end = plan.few, plan.order, plan.cuts[group], plan.cuts[group + 1]
    count = begin
    for first in range(STREAMS):
        for at in range(begin + first, end, STREAMS):
            k = order[at]
            i, j = np.uint64(a[k]), np.uint64(b[k])
            taken = hot[i] | hot[j]
            few[count] = k
            count += taken
            near[i if taken else spare] = True
            near[j if taken else spare] = True
    interleave(few[begin:count].copy(), few[begin:count])
    plan.few_ends[group] = count
    return count - begin


@kernel
def choose_few(rows, kinds, scratch, allowed, which, shared, most, meeting):
    """Choose the contacts of all bodies that some contact acts on whose share is not among the smallest ones.

    These, together at most ``allowed``, may stay as they are; ``which`` of the shares: see `Plan`. Bodies that do not
    move carry nothing from one of their contacts to another. The last ``shared`` rows are always among the bodies. Each
    worker chooses among the contacts of its groups. Returns the number of those chosen and of all; those of bodies are
    in ``scratch.found``. Where it sees that they would be more than ``most`` of all, it chooses none and returns 1, 1.
    """
    thread, n, free, hot, near = meeting.thread, rows.shape[0], scratch.free, scratch.hot, scratch.near
    losses, spare = scratch.losses, np.uint64(n + LINE * (thread + 1))
    movable, bodies, found = scratch.movable, scratch.bodies, scratch.found
    first, after = part(movable.size, meeting)
    for k in range(first, after):  # those that a thread has in its cache; others are never marked
        hot[movable[k]] = False
        near[movable[k]] = movable[k] >= n - shared
    for exponent in range(losses.shape[1]):
        losses[thread, exponent] = 0
    for parity in range(2):
        begin, end = own_groups(meeting, parity)
        for at in range(len(kinds)):
            plan = common(kinds, at).plan
            add_losses(plan.order, plan.cuts[begin], plan.cuts[end], plan.shares, which, losses[thread])
    share_out(meeting, rows, SUMMED)
    limit, above = small_enough(losses[: meeting.threads], allowed)
    if 2.0 * above > most:  # with those that share their bodies they are more than twice as many
        return 1, 1
    for parity in range(2):
        begin, end = own_groups(meeting, parity)
        for at in range(len(kinds)):
            one = common(kinds, at)
            plan = one.plan
            mark_bodies(
                one.a, one.b, plan.order, plan.cuts[begin], plan.cuts[end], plan.shares, which, limit, free, hot, spare
            )
    share_out(meeting, rows, MARKED)
    contacts, every = 0, 0
    for parity in range(2):
        begin, end = own_groups(meeting, parity)
        for at in range(len(kinds)):
            one = common(kinds, at)
            every += one.plan.cuts[end] - one.plan.cuts[begin]
            for group in range(begin, end):
                one.plan.few_ends[group] = one.plan.cuts[group]
                if one.plan.cuts[group] < one.plan.cuts[group + 1]:
                    contacts += choose(one.a, one.b, one.plan, group, hot, near, spare)
    found[thread, 0], found[thread, 1] = contacts, every
    share_out(meeting, rows, CHOSEN)
    count = first
    for k in range(first, after):
        bodies[count] = movable[k]
        count += near[movable[k]]
    found[thread, 2] = count - first
    contacts, every = 0, 0
    for other in range(meeting.threads):
        contacts, every = contacts + found[other, 0], every + found[other, 1]
    return contacts, every


@kernel
def measure_kind(place, rows, mobility, first, after, few, sums):
    """The sums of the residual over the contacts of the kind at a ``place``, by group, into ``sums`` (ALL, 8)."""
    kind = there(place)
    contacts, plan = kind.contacts, kind.plan
    order, cuts, ends = (plan.few, plan.cuts, plan.few_ends) if few else (plan.order, plan.cuts, plan.cuts[1:])
    for group in range(first, after):
        one = sums[group]
        for part_ in range(8):
            one[part_] = 0.0
        one[3] = -1.0
        if cuts[group] < ends[group]:
            some = order[cuts[group] : ends[group]]
            e, s, w, l, b, k, c, d = measure(rows, mobility, contacts, some, plan.shares)
            one[0], one[1], one[2], one[3], one[4], one[5], one[6], one[7] = e, s, w, l, b, k, c, d


measure_groups = by_address(
    MEASURE, measure_kind, types.none, TABLE, MOBILITY, types.int64, types.int64, types.boolean, TABLE
)


@kernel
def add_pushes(rows, free, bodies, out):
    """The sum of m |v - v_free|^2 over the ``bodies`` into the chunks ``out``: see `sums`."""
    some = np.empty(256)
    out[:] = 0
    for begin in range(0, bodies.size, some.size):
        count = min(some.size, bodies.size - begin)
        for k in range(count):
            i = bodies[begin + k]
            x, y, z = rows[i, 0] - free[i, 0], rows[i, 1] - free[i, 1], rows[i, 2] - free[i, 2]
            some[k] = (x * x + y * y + z * z) / rows[i, 6]
        add_all(some[:count], out)


@kernel
def measure_all(rows, mobility, kinds, goal, scratch, meeting):
    """The errors as a `Solution`, the size of what the contacts do, that of impulses, and how many of them sink."""
    first, after = part(scratch.pushed.size, meeting)
    add_pushes(rows, goal.free, scratch.pushed[first:after], scratch.chunks[meeting.thread])
    for parity in range(2):
        begin, end = own_groups(meeting, parity)
        for at in range(len(kinds)):
            measure_groups(kinds, at, (rows, mobility, begin, end, False, scratch.sums[at]))
    share_out(meeting, rows, MEASURED)
    size = rounded(scratch.chunks[: meeting.threads])
    if meeting.thread == 0:
        scratch.pushes[0] = size
    found, push, scale, sinking = judge(goal, scratch.sums[: len(kinds)], size)
    meet(meeting, rows)  # the sums are read: they may be written again
    return found, push, scale, sinking


@kernel
def sample(plan, first, after):
    """Four contacts in a row of each `EVERY` of the groups from ``first`` on, before ``after``, into ``few``."""
    few, order, cuts, ends = plan.few, plan.order, plan.cuts, plan.few_ends
    for group in range(first, after):
        count, end = cuts[group], cuts[group + 1]
        for begin in range(count, end, EVERY):
            for at in range(begin, min(begin + 4, end)):
                few[count] = order[at]
                count += 1
        ends[group] = count


@kernel
def estimate(rows, mobility, kinds, goal, scratch, meeting):
    """The residual by one contact in sixteen, without what is left: a look at all takes longer than a sweep."""
    some = scratch.free.size > 0  # True, but no constant: one signature
    for parity in range(2):
        begin, end = own_groups(meeting, parity)
        for at in range(len(kinds)):
            sample(common(kinds, at).plan, begin, end)
            measure_groups(kinds, at, (rows, mobility, begin, end, some, scratch.sums[at]))
    share_out(meeting, rows, MEASURED)
    error, size, part_ = 0.0, 0.0, EVERY / 4
    for at in range(len(kinds)):
        for group in range(ALL):
            error, size = error + part_ * scratch.sums[at, group, 0], size + part_ * scratch.sums[at, group, 1]
    meet(meeting, rows)  # the sums are read: they may be written again
    scale = max(size, goal.scale)
    return np.sqrt(error / scale) if scale > 0.0 else 0.0


@kernel
def judge(goal, sums, push):
    """What the parts of the residual say, ``sums`` of `Scratch` and the kinetic size ``push``: see `measure_all`."""
    error, size, which, worst, largest, bipotential, work = 0.0, 0.0, 0, -1, -1.0, 0.0, 0.0
    push, lost, sinking = push + goal.work, 0.0, 0.0  # of what the contacts do, and the work that they pass on
    for at in range(sums.shape[0]):
        for group in range(ALL):
            one = sums[at, group]
            lost, sinking = lost + one[6], sinking + one[7]
            error, size, bipotential, work = error + one[0], size + one[1], bipotential + one[4], work + one[5]
            if one[3] > largest:
                which, worst, largest = at, int(one[2]), one[3]
    scale = max(size, goal.scale)
    if scale == 0.0:
        return Solution(0, 0.0, 0.0, which, worst, 0.0), 0.0, scale, sinking
    relative = bipotential / work if work > 0.0 else 0.0
    left = lost / push if push > 0.0 else (np.inf if lost > 0.0 else 0.0)
    return Solution(0, np.sqrt(error / scale), left, which, worst, relative), push, scale, sinking


@kernel
def error_of(residual, left):
    """What is compared with the tolerance: the residual, and what is left in its measure."""
    return max(residual, left / LEFT) if residual > EXACT else residual


@kernel
def aim(goal, error):
    """What to go on to when the first sweep has left this error: see `error_of`.

    A quiet step is improved all the same, where the goal says so, to a tenth of its first error where a few sweeps do
    it: what is at rest then comes to rest entirely, in some steps, and does not creep. A small scene is solved more
    exactly than it is asked to be, as far as that costs nothing beside the rest of a step.
    """
    tolerance, finest = goal.tolerance, min(FINEST, goal.tolerance)
    if goal.few:
        return max(FINER * tolerance, finest)
    return max(0.1 * error, goal.quiet * tolerance, finest) if error <= tolerance else tolerance


@kernel
def enough(done, residual, goal, wanted, more, sinking, met):
    """Whether to stop after ``done`` sweeps; ``met``: the sweeps after which the residual was first small enough.

    The residual is relative to all impulses: in a compaction a few contacts may sink step after step without being
    seen. They get twice as much work again, and 100 sweeps.
    """
    solved = residual <= wanted or (residual <= goal.tolerance and done >= more)
    return solved and (sinking == 0 or done >= 3 * met + 100)


@kernel
def hopeless(done, count, before, residual, goal):
    """Whether more sweeps than they are worth are still to come, by the rate of the last ``count`` of them."""
    if done < LOOK or residual <= goal.tolerance or not goal.worth < np.inf:
        return False
    return np.log(residual / goal.tolerance) * count > goal.worth * np.log(before / residual)


@kernel(inline=True)
def counted(done, found):
    """The solution ``found``, with the number of sweeps."""
    return Solution(done, found.residual, found.left, found.kind, found.worst, found.bipotential)


@kernel
def nlgs(rows, mobility, kinds, goal, scratch, meeting):
    """Plain nonlinear Gauss-Seidel, the reference: sweep until the residual is below the tolerance.

    Without sweeps, as `accelerated`: the errors of what is there.
    """
    enlist(meeting)
    most = goal.max_iterations
    met, next_check, wanted, more = most, 1, 0.0, goal.polish
    found = Solution(0, 0.0, 0.0, 0, -1, 0.0)
    if most == 0:
        found, _, _, _ = measure_all(rows, mobility, kinds, goal, scratch, meeting)
    for done in range(1, most + 1):
        sweep_all(rows, mobility, kinds, most < 0, -1.0, scratch.changes[done % 2], meeting)
        if done < next_check and done < most:
            continue
        next_check = done + max(1, done // 5)
        found, _, _, sinking = measure_all(rows, mobility, kinds, goal, scratch, meeting)
        error = error_of(found.residual, found.left)
        if done == 1:
            wanted = aim(goal, error)
        if error <= goal.tolerance:
            met = min(met, done)
        if enough(done, error, goal, wanted, more, sinking, met):
            return counted(done, found)
    return counted(most, found)


@kernel
def accelerated_sweeps(rows, mobility, kinds, few, scratch, count, target, t, last, meeting):
    """Sweeps with Nesterov's extrapolation before each, until the change made by a sweep is at most ``target``,
    ``count`` at most; ends on a sweep.

    ``few``: over the contacts that need work. ``t`` is the momentum (1 at a start) and ``last`` the change of the sweep
    before; restarted when the change grows. Returns the number of sweeps, t and the last change.
    """
    first, after = part(scratch.movable.size, meeting)
    some = scratch.bodies[first : first + scratch.found[meeting.thread, 2]]
    bodies = some if few else scratch.movable[first:after]
    done = 0
    while done < count and (done == 0 or last > target):
        new = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        beta = (t - 1.0) / new
        extrapolate(rows, bodies, scratch.rows, beta)
        meet(meeting, rows)
        t = new
        change = sweep_all(rows, mobility, kinds, few, beta, scratch.changes[done % 2], meeting)
        if change > last:
            t = 1.0
        last = change
        done += 1
    meet(meeting, rows)
    return done, t, last


@kernel
def accelerated(rows, mobility, kinds, goal, scratch, meeting):
    """Gauss-Seidel with Nesterov's extrapolation, on the contacts that need it.

    Rounds of sweeps between full evaluations of the residual: a round ends when the change made by a sweep has fallen
    as much as the residual must. It goes over all contacts or, where the residual sits on few of them, over those
    around it; only the full residual decides when to stop. Where some equations are not to be extrapolated, all sweeps
    are plain.
    """
    enlist(meeting)
    found, best, tolerance, wanted = Solution(0, 0.0, 0.0, 0, -1, 0.0), np.inf, goal.tolerance, 0.0
    done, since, count, met, target = 0, 0, 1, goal.max_iterations, 0.0
    more = goal.polish
    no = more < 0  # a constant would be a type of its own, and all that it is given to compiled twice
    busy = goal.ahead and not (goal.few or goal.rest) and goal.max_iterations > 1  # the first sweep may not do
    if goal.max_iterations == 0:
        found, _, _, _ = measure_all(rows, mobility, kinds, goal, scratch, meeting)
    few, fresh, plain, t, last = no, True, not goal.ahead, 1.0, np.inf
    while done < goal.max_iterations:
        count = min(count, goal.max_iterations - done)
        if plain:
            for n in range(count):
                sweep_all(rows, mobility, kinds, no, -1.0, scratch.changes[n % 2], meeting)
            meet(meeting, rows)
        else:
            if fresh:
                t, last = 1.0, np.inf
            count, t, last = accelerated_sweeps(rows, mobility, kinds, few, scratch, count, target, t, last, meeting)
        done += count
        if busy and done == 1:
            residual = estimate(rows, mobility, kinds, goal, scratch, meeting)
            if UNSOLVED * tolerance < residual < FAR * tolerance:
                wanted, fresh = tolerance, no
                count, target = max(3, int(2.0 * np.log(residual / (0.75 * tolerance))) + 2), 0.0
                continue
        before = error_of(found.residual, found.left)
        found, push, scale, sinking = measure_all(rows, mobility, kinds, goal, scratch, meeting)
        residual = error_of(found.residual, found.left)
        if done == 1:
            wanted = aim(goal, residual)
        if residual <= tolerance:
            met = min(met, done)
        if enough(done, residual, goal, wanted, more, sinking, met) or hopeless(done, count, before, residual, goal):
            break
        count, target = 4, 0.0
        if residual > wanted:
            # the first sweep says less than one with momentum
            near = (0.75 if done == 1 else 0.92) * (tolerance if residual > tolerance else wanted)
            count, target = min(max(16, done // 2), 64), last * (near / residual) ** 2
            if residual <= tolerance:
                count = max(4, min(count, more - done))  # where contacts sink, more than that
        # Friction can make the extrapolation cycle: where so many sweeps have not halved the residual, go on without,
        # as long again; a tall pile only needs its time, and gets the extrapolation back.
        if found.residual < 0.5 * best:
            best, since = found.residual, done
        elif goal.ahead and done - since >= (2 * PATIENCE if goal.rest else PATIENCE):
            plain, since, fresh = not plain, done, True
        if plain:
            continue
        fresh = few
        # A round over few contacts may push the residual outwards only; then, where most contacts need work, and where
        # contacts sink, go on over all, with the momentum gained.
        every = goal.rest or residual <= tolerance
        if not every and not (few and residual > 0.5 * before):
            # by what they lose or, where that is little, by their residual
            which = np.int64(found.left <= LEFT * tolerance)
            allowed = 0.25 * tolerance * tolerance * scale if which == 1 else 0.5 * LEFT * tolerance * push
            chosen, contacts = choose_few(rows, kinds, scratch, allowed, which, goal.shared, WORTH, meeting)
            few = chosen <= WORTH * contacts and (which == 0 or contacts > MANY)
        else:
            few = no
        if few:
            fresh = True
        elif fresh and residual > tolerance:  # the change of a sweep over few contacts says nothing of one over all
            count, target = min(int(3.0 * np.log(residual / (0.75 * tolerance))) + 2, 64), 0.0
    return counted(done, found)


SOLVERS = {"accelerated": accelerated, "nlgs": nlgs}
