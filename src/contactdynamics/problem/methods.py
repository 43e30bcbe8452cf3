"""The solvers of contact problems: Gauss-Seidel (`nlgs`, `accelerated`), the second-order method (`interior`), `auto`.

Each keeps the contract of `solving`. They work on a graph (`graphs`): that of the bodies where each contact touches two
blocks of freedoms at most and that costs less, else that of the contacts; sweeps and factors each on the one that is
better for them.
"""

import math
from typing import NamedTuple

import numpy as np

from .._jit import cpu_clock, kernel
from . import graphs, second, sweeps
from .cones import Cones, cones, residual
from .feasible import contradiction
from .form import ContactProblem
from .graphs import BodyGraph, ContactGraph
from .residual import judge

COLD, WARM = 1.0, 0.03  # how far inside the cones the interior point starts, of the mean size
BETWEEN = (0.1, 0.3)  # where both have failed
TYPICAL = 20  # iterations of the second-order method
EACH = 500.0  # ns of an iteration for a contact, beside the factors
TRIAL = 0.2  # of the sweeps that take as long: so many are made before it is turned to
STALLED, PATIENT = 25, 60  # iterations of the interior point without a better residual: at first, and at last
HUGE = 1e4  # impulses, over those that stop the free motion: whether a solution exists is then looked at
SHARE = 0.2  # of the friction: the first step where it is raised from zero
AFTER = 500  # sweeps at most where the second-order method has failed


class Prepared(NamedTuple):
    """A problem as the kernels have it."""

    problem: ContactProblem
    graph: BodyGraph | ContactGraph  # for sweeps
    cones: Cones
    scale: float  # sum of (rho b)^2
    sweep: float  # about how long a sweep takes, ns


def prepare(problem: ContactProblem) -> Prepared:
    """The graph and the cones of a checked problem with m > 0 contacts.

    Contacts of one component get a second one without friction, in which nothing moves: kernels for two serve both.
    """
    w, b, friction = problem.blocks, problem.velocity, problem.friction
    m, d = b.shape
    start, column, blocks = w.indptr.astype(np.int64), w.indices.astype(np.int64), w.data
    rho, scale = weights(start, column, blocks, b)
    if d == 1:
        b, friction, d = np.column_stack([b, np.zeros(m)]), np.zeros((m, 2)), 2
        blocks = np.zeros((len(column), 2, 2))
        blocks[:, 0, 0] = w.data[:, 0, 0]
    local = m * (20.0 if d == 2 else 50.0)
    sweep, other, graph = 0.3 * blocks.size + local, m * (20.0 if d == 2 else 50.0) + local, None
    if problem.bodies is not None and other < sweep:
        bodies = _blocks_of_bodies(problem)
        graph = bodies and graphs.body_graph(*bodies, factored=False)
    if graph is None:
        other, graph = sweep, graphs.contact_graph(start, column, blocks, b, factored=False)
    return Prepared(problem, graph, cones(friction, rho, d), scale, other)


def factored(ready: Prepared) -> tuple[BodyGraph | ContactGraph, float]:
    """The graph of the problem for the second-order method, and how long an iteration takes, about, in ns.

    Without room for the factors (`graphs.factorable`) that is infinite.
    """
    problem, known = ready.problem, ready.graph
    if isinstance(known, ContactGraph):
        graph = graphs.contact_graph(known.start, known.column, known.block, known.velocity)
    else:
        w, b = problem.blocks, problem.velocity
        graph = graphs.contact_graph(w.indptr.astype(np.int64), w.indices.astype(np.int64), w.data, b)
    cost, bodies = _iteration(graph, problem.contacts), _blocks_of_bodies(problem)
    if bodies is not None:
        other = graphs.body_graph(*bodies)
        if _iteration(other, problem.contacts) < cost:
            graph, cost = other, _iteration(other, problem.contacts)
    return graph, cost


@kernel
def weights(start, column, blocks, b):
    """rho (m,), one over the mean diagonal of the own block of each contact, and sum (rho b)^2."""
    m, d = b.shape
    rho, scale = np.zeros(m), 0.0
    for k in range(m):
        for at in range(start[k], start[k + 1]):
            if column[at] == k:
                for i in range(d):
                    rho[k] += blocks[at, i, i]
        rho[k] = d / rho[k]
        for i in range(d):
            scale += (rho[k] * b[k, i]) ** 2
    return rho, scale


def _iteration(graph, m: int) -> float:
    """About how long an iteration of the second-order method takes, ns."""
    if not graphs.factorable(graph):
        return math.inf
    links = np.diff(graph.factors.pattern.start).astype(float)
    return float(0.5 * len(graph.factors.size) ** 3 * ((links + 1.0) ** 2).sum()) + EACH * m


def _blocks_of_bodies(problem: ContactProblem):
    """What `graphs.body_graph` needs, where M consists of small blocks, of which each contact links two at most.

    Blocks are the freedoms in threes in the plane, in sixes in space, or those that M links. Smaller ones are filled up
    by freedoms that nothing moves, those without contacts are left out.
    """
    from scipy.sparse.csgraph import connected_components

    if problem.bodies is None:
        return None
    mass, maps, free, drift = problem.bodies.mass.tocoo(), problem.bodies.jacobian.tocoo(), *problem.bodies[2:4]
    m, d = drift.shape
    s, components = (3, 2) if d < 3 else (6, 3)
    contact = maps.row // d
    for label in (np.arange(len(free)) // s, connected_components(mass, directed=False)[1]):
        count = int(label.max(initial=-1)) + 1
        links = np.unique(contact.astype(np.int64) * count + label[maps.col])
        of, touched = links // max(count, 1), links % max(count, 1)
        size = np.bincount(label, minlength=count)
        apart = (label[mass.row] == label[mass.col]).all()
        if apart and size[touched].max(initial=0) <= s and np.bincount(of, minlength=m).max(initial=0) <= 2:
            break
    else:
        return None
    block = label[maps.col]
    used = np.unique(touched)
    node = np.full(count, -1)
    node[used] = np.arange(len(used))
    order = np.argsort(label, kind="stable")
    place = np.empty(len(label), dtype=np.int64)
    place[order] = np.arange(len(label)) - np.repeat(np.cumsum(size) - size, size)
    first = np.concatenate([[True], of[1:] != of[:-1]]) if len(of) else np.zeros(0, dtype=bool)
    a, b = np.full(m, -1), np.full(m, -1)
    a[of[first]], b[of[~first]] = node[touched[first]], node[touched[~first]]
    inertia, v = np.zeros((len(used), s, s)), np.zeros((len(used), s))
    inertia[:, np.arange(s), np.arange(s)] = 1.0
    mine = node[label[mass.row]] >= 0
    row, column = mass.row[mine], mass.col[mine]
    inertia[node[label[row]], place[row], place[column]] = mass.data[mine]
    held = np.flatnonzero(node[label] >= 0)
    v[node[label[held]], place[held]] = free[held]
    sides = np.zeros((2, m, components, s))
    sides[(node[block] != a[contact]).astype(int), contact, maps.row % d, place[maps.col]] = maps.data
    drift = np.column_stack([drift, np.zeros((m, components - d))])
    return inertia, v, a, b, sides[0], sides[1], drift


class Way:
    """What a solver has done so far: counts iterations, keeps history and best impulses, asks the callback."""

    def __init__(self, ready: Prepared, impulses, tolerance, most, callback, stride=1):
        self.stride = stride  # iterations of the second-order method between two looks at it
        self.ready, self.tolerance, self.most, self.callback = ready, tolerance, most, callback
        self.begin, self.done, self.stages, self.history = cpu_clock(), 0, {}, []
        self.given, d = impulses.shape[1], len(ready.cones.size)  # components, those of the kernels
        self.impulses = np.column_stack([impulses, np.zeros((len(impulses), d - self.given))])
        self.velocities, self.stopped, self.own = np.empty_like(self.impulses), False, None
        self.residual, self.strong = math.inf, None  # the graph with factors

    @classmethod
    def of(cls, problem: ContactProblem, *arguments) -> "Way":
        """The way of a solver through a checked problem; its time is counted from here."""
        begin = cpu_clock()
        way = cls(prepare(problem), *arguments)
        way.begin = begin
        return way

    @property
    def solved(self) -> bool:
        """Whether the residual is small enough."""
        return self.residual <= self.tolerance

    @property
    def over(self) -> bool:
        """Whether to stop."""
        return self.solved or self.stopped or self.done >= self.most

    def look(self) -> None:
        """The residual of the present impulses."""
        graphs.respond(self.ready.graph, self.impulses, self.velocities)
        self.residual = residual(self.ready.cones, self.impulses, self.velocities, self.ready.scale)

    def take_best(self, memory: sweeps.Memory) -> None:
        """Go on with the best impulses of sweeps that have not solved it."""
        if not self.solved:
            self.impulses[:] = memory.kept
            self.look()

    def enter(self, stage: str, count: int, error: float, impulses) -> None:
        """Note ``count`` iterations of a stage and the residual after them."""
        self.done += count
        self.stages[stage] = self.stages.get(stage, 0) + count
        self.history.append((self.done, float(error)))
        if self.callback is not None:
            self.stopped = self.callback(self.done, float(error), impulses[:, : self.given].copy()) is True

    def report(self, told: str = ""):
        """The impulses and the `SolveReport`; ``told`` is added to its message.

        Where no solution exists the impulses grow beyond all bounds, and the residual relative to them falls: very
        large ones are not believed before that has been looked at.
        """
        seconds, problem = cpu_clock() - self.begin, self.ready.problem
        impulses = self.impulses[:, : self.given]
        residual, evidence = float(self.residual), ""
        stopping = math.sqrt(self.ready.scale)
        size = float(np.linalg.norm(impulses))
        if not self.stopped and (not self.solved or size > HUGE * stopping):
            evidence = contradiction(problem)
        if evidence and self.solved:
            residual *= size / stopping
        found = judge(
            problem, impulses, self.tolerance, iterations=self.done, stages=tuple(self.stages.items()),
            history=tuple(self.history), residual=residual, cpu_seconds=seconds, evidence=evidence,
        )  # fmt: skip
        return impulses, found._replace(message=f"{found.message} {told}") if told else found


def nlgs(problem, guess, tolerance, max_iterations, callback):
    """Plain nonlinear Gauss-Seidel, the reference (2004, section 6.2)."""
    way = Way.of(problem, guess, tolerance, max_iterations, callback)
    way.take_best(_sweep(way, ahead=False))
    return way.report()


def accelerated(problem, guess, tolerance, max_iterations, callback):
    """Gauss-Seidel with Nesterov's extrapolation; plain where that does not pay."""
    way = Way.of(problem, guess, tolerance, max_iterations, callback)
    way.take_best(_sweep(way, ahead=True))
    return way.report()


def interior(problem, guess, tolerance, max_iterations, callback):
    """The interior point with Coulomb's law made smooth, finished by a proximal Newton method."""
    way = Way.of(problem, guess, tolerance, max_iterations, callback)
    way.strong, _ = factored(way.ready)
    if not graphs.factorable(way.strong):
        way.look()
        return way.report("The factors of its matrix would be too large; use Gauss-Seidel, or give the bodies' form.")
    second_order(way, cold=not guess.any())
    return way.report()


def auto(problem, guess, tolerance, max_iterations, callback):
    """Gauss-Seidel, and the second-order method where the rate of the sweeps says that it is faster.

    The sweeps are given the time of a share of the other method first: extrapolation takes some of them to show.
    """
    way = Way.of(problem, guess, tolerance, max_iterations, callback)
    least = TYPICAL * EACH * problem.contacts / way.ready.sweep  # whatever its factors take
    memory = _sweep(way, ahead=True, first=TRIAL * least, worth=least)
    if not way.over:
        way.strong, cost = factored(way.ready)
        worth = TYPICAL * cost / way.ready.sweep
        _sweep(way, ahead=True, first=TRIAL * worth, worth=worth, memory=memory)
    way.take_best(memory)
    if way.over:
        return way.report()
    more = sweeps.to_come(memory, way.tolerance)
    told = (
        f"Gauss-Seidel was left after {way.done} sweeps, which would have needed "
        f"{f'about {more:.0f} more' if more < 1e6 else 'more than a million'}."
    )
    second_order(way, cold=False)
    if not way.over:
        way.take_best(_sweep(way, ahead=True, worth=AFTER))
        told += " The second-order method got stuck, and sweeps went on."
    return way.report(told)


def _sweep(way: Way, ahead: bool, first: float = 0.0, worth: float = math.inf, memory=None) -> sweeps.Memory:
    """Sweeps until solved, or until their rate says after ``first`` of them that more than ``worth`` are to come.

    Goes on from the ``memory`` of earlier ones, where given.
    """
    graph, c, p = way.ready.graph, way.ready.cones, way.impulses
    if way.own is None:
        way.own = sweeps.own_blocks(graph, c)
    if memory is None:
        memory = sweeps.new_memory(graph, p, ahead)
    number, first = memory.number, max(first, float(sweeps.FIRST))
    begun = way.done - int(number[sweeps.MADE])
    looks, ended = 1 if way.callback is not None else sweeps.ROOM, False
    while not (way.over or ended):
        stage, made, at = "accelerated" if number[sweeps.AHEAD] else "nlgs", way.done - begun, int(number[sweeps.LOOKS])
        goal = way.tolerance, way.ready.scale, float(way.most - begun)
        ended = sweeps.sweep_until(graph, c, way.own, p, way.velocities, memory, goal, first, worth, looks)
        for done, error in memory.seen[at : int(number[sweeps.LOOKS])].tolist():
            way.enter(stage, int(done) - made, error, p)
            made = int(done)
        way.residual = float(number[sweeps.ERROR])
    return memory


def second_order(way: Way, cold: bool) -> None:
    """The second-order method from the present impulses, and from those that the free velocities ask for.

    Where it gets stuck, again with more patience, and by raising friction from zero. A problem without friction is
    convex; of the solutions for more friction the nearest is found from the last one, by steps that become longer
    where that is easy.
    """
    p, c = way.impulses, way.ready.cones
    best, found = math.inf, p.copy()
    insides = (COLD,) if cold else (WARM, COLD, *BETWEEN)
    for inside, patience in [(inside, patience) for patience in (STALLED, PATIENT) for inside in insides]:
        p[:] = found
        _run_second(way, c, way.tolerance, inside, patience)
        if way.over:
            return
        if way.residual < best:
            best, found = way.residual, p.copy()
    d, reached, step = p.shape[1], -1.0, SHARE
    while c.friction.any() and reached < 1.0 and step >= SHARE / 100 and not way.stopped and way.done < way.most:
        share = 0.0 if reached < 0 else min(1.0, reached + step)
        before = p.copy()
        last = share == 1.0
        some = c if last else cones(share * c.friction, c.rho, d)
        solved = _run_second(way, some, way.tolerance if last else max(way.tolerance, second.SWITCH),
                             COLD if share == 0.0 else WARM, STALLED, "friction")  # fmt: skip
        if solved:
            reached, step = share, 1.5 * step
        elif share == 0.0:
            break
        else:
            p[:], step = before, 0.5 * step
    way.look()
    if way.residual > best:
        p[:] = found
        way.look()


def _run_second(way: Way, c: Cones, tolerance: float, inside: float, patience: int, stage: str = "") -> bool:
    """The second-order method with the cones ``c`` from the present impulses; whether it has solved that.

    ``inside`` = COLD: from the impulses that the free velocities ask for. ``stage``: its name, where not that of its
    parts.
    """
    graph, scale, p = way.strong, way.ready.scale, way.impulses
    m, d = p.shape
    state = second.new_second(m, d)
    if inside == COLD:
        graphs.respond(graph, np.zeros((m, d)), way.velocities)
        p[:] = 0.0
        p[:, 0] = 10.0 * math.sqrt(scale / m)
    else:
        graphs.respond(graph, p, way.velocities)
    second.begin(graph, c, state, p, way.velocities, tolerance, scale, inside, patience)
    number = state.number
    while number[second.PHASE] < second.SOLVED and not way.stopped and way.done < way.most:
        now = stage or ("interior" if number[second.PHASE] == second.FOLLOWING else "newton")
        made = number[second.ITERATIONS] + number[second.STEPS]
        error = second.advance(graph, c, state, tolerance, scale, way.stride)
        way.enter(now, int(number[second.ITERATIONS] + number[second.STEPS] - made), error, state.kept)
    p[:] = state.kept
    way.look()
    return bool(number[second.PHASE] == second.SOLVED)


def warm_up_second_order(problem: ContactProblem) -> None:
    """Load the kernels for both forms of a ``problem`` of one contact."""
    ready = prepare(problem)
    bodies = _blocks_of_bodies(problem)
    for graph in [factored(ready)[0]] if bodies is None else [factored(ready)[0], graphs.body_graph(*bodies)]:
        way = Way(ready._replace(graph=graph), np.zeros_like(problem.velocity), 1e-8, 20, None)
        _sweep(way, ahead=True)
        way.impulses[:], way.strong = 0.0, graph
        second_order(way, cold=True)
