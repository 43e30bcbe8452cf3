"""The second-order method: `interior` to a residual of 1e-6, `newton` to the end, and back where that fails.

One call makes any number of iterations, so that a program can look at each of them or have all at once.
"""

from typing import NamedTuple

import numpy as np

from .._jit import kernel
from . import interior, newton
from .cones import put, residual
from .interior import Path, new_path
from .newton import Proximal, new_proximal

SWITCH = 1e-6  # residual at which Newton's method takes over
TRIES, LAST = 0.6, 2.5  # of the patience: Newton steps without a better residual; the interior point then goes on to a
# tenth. More where it has not been asked, or has nothing more to give
FOLLOWING, FINISHING, SOLVED, STUCK = 0.0, 1.0, 2.0, 3.0
PHASE, LEVEL, BEST, SEEN, IDLE, TRIED, ITERATIONS, STEPS, PATIENCE = range(9)


class Second(NamedTuple):
    """Where the method is, m contacts of d components."""

    path: Path
    prox: Proximal
    p: np.ndarray  # (m, d) impulses of the present point
    u: np.ndarray  # (m, d) their velocities
    kept: np.ndarray  # (m, d) the best impulses so far
    number: (
        np.ndarray
    )  # (9,) phase, residual for Newton's method, best, best of the phase, iterations without better, ..


def new_second(m: int, d: int) -> Second:
    """Room for m contacts of d components."""
    return Second(new_path(m, d), new_proximal(m, d), *(np.empty((m, d)) for _ in range(3)), np.zeros(9))


def head(second: Second, m: int) -> Second:
    """The first m contacts of a larger room."""
    path = Path(*[array[:m] for array in second.path[:-1]], second.path.short)
    prox = Proximal(*[array[:m] for array in second.prox[:-1]], second.prox.number)
    return Second(path, prox, second.p[:m], second.u[:m], second.kept[:m], second.number)


@kernel
def begin(graph, cones, second, p, u, tolerance, scale, inside, patience):
    """Start from impulses ``p`` and their velocities ``u`` (m, d); ``inside``: see `interior.enter`.

    ``patience``: iterations without a better residual after which the interior point is given up.
    """
    number = second.number
    number[:] = 0.0
    number[PATIENCE] = patience
    number[LEVEL], number[BEST], number[SEEN] = max(SWITCH, tolerance), residual(cones, p, u, scale), np.inf
    put(p, second.kept)
    put(p, second.p)
    put(u, second.u)
    if number[BEST] <= tolerance:
        number[PHASE] = SOLVED
    elif number[BEST] <= number[LEVEL]:
        number[PHASE] = FINISHING
        newton.begin(second.prox, p, u)
    else:
        interior.begin(graph, cones, second.path, second.p, second.u, inside)


@kernel
def advance(graph, cones, second, tolerance, scale, count):
    """``count`` iterations, less where solved or stuck; returns the last residual. The best impulses are ``kept``."""
    p, u, number = second.p, second.u, second.number
    error = number[BEST]
    for _ in range(count):
        if number[PHASE] >= SOLVED:
            break
        if number[PHASE] == FOLLOWING:
            alive = interior.interior_step(graph, cones, second.path, p, u)
            number[ITERATIONS] += 1.0
            error = residual(cones, p, u, scale) if alive else np.inf
        else:
            error = newton.newton_step(graph, cones, second.prox, p, u, tolerance, scale)
            number[STEPS] += 1.0
        number[IDLE] += 1.0
        if error < 0.9 * number[SEEN]:
            number[IDLE], number[SEEN] = 0.0, error
        if error < number[BEST]:
            number[BEST] = error
            put(p, second.kept)
        turn(graph, cones, second, tolerance, error)
    return error


@kernel
def turn(graph, cones, second, tolerance, error):
    """Which method goes on after an iteration."""
    p, u, number = second.p, second.u, second.number
    if number[BEST] <= tolerance:
        number[PHASE] = SOLVED
    elif number[PHASE] == FOLLOWING:
        lost = number[IDLE] >= number[PATIENCE] or not error < np.inf
        if error <= number[LEVEL] or lost:
            number[PHASE], number[IDLE], number[SEEN] = FINISHING, 0.0, np.inf
            number[TRIED] += 100.0 if lost else 1.0
            if lost:
                put(second.kept, p)
            else:
                put(p, second.path.s)  # to come back to
            interior.graphs.respond(graph, p, u)
            newton.begin(second.prox, p, u)
    elif number[IDLE] >= (TRIES if 0.0 < number[TRIED] < 100.0 else LAST) * number[PATIENCE] or not error < np.inf:
        if number[TRIED] >= 100.0:  # the interior point has nothing more to give
            number[PHASE] = STUCK
        else:
            number[PHASE], number[IDLE], number[SEEN] = FOLLOWING, 0.0, np.inf
            number[LEVEL] = max(0.1 * number[LEVEL], tolerance)
            if number[TRIED] == 0.0:  # it was never asked
                number[LEVEL] = max(SWITCH, tolerance)
                put(second.kept, p)
                interior.graphs.respond(graph, p, u)
                interior.begin(graph, cones, second.path, p, u, 0.03)
            else:
                put(second.path.s, p)
                interior.graphs.respond(graph, p, u)
