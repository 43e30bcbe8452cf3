"""What the scripts share that let another code solve contact problems, as `cdyn bench solvers` calls them.

A job is a JSON file: ``arrays`` (npz: row, column, value of W, q, mu, dimension), ``text`` (the problem in Siconos'
form, 3D), ``plane`` (the same in 2D, or null), ``solver``, ``tolerances``, ``found`` (where to write, one line of JSON
for each tolerance). The code stops by its own measure; where ours is not reached, it is asked again for a hundredth,
and so on.
"""

import json
import sys
import time

import numpy as np

STRICTER = (1.0, 1e-2, 1e-4, 1e-6)  # what the code is asked for, over what is wanted of the solution
SHORT, REPEATS = 0.05, 3  # runs below so many seconds are repeated, and the fastest counts


class Problem:
    """W, q and mu, and our residual: the natural map with rho of each contact, relative to the impulses or rho q."""

    def __init__(self, path):
        with np.load(path) as file:
            self.row, self.column, self.value = file["row"], file["column"], file["value"]
            self.q, self.mu, self.d = file["q"], file["mu"], int(file["dimension"])
        diagonal = np.zeros(len(self.q))
        own = self.row == self.column
        diagonal[self.row[own]] = self.value[own]
        self.rho = self.d / diagonal.reshape(-1, self.d).sum(axis=1)

    def residual(self, r):
        """Of impulses (m d,)."""
        d, rho = self.d, self.rho[:, None]
        u = (np.bincount(self.row, self.value * r[self.column], len(r)) + self.q).reshape(-1, d)
        p, b = r.reshape(-1, d), self.q.reshape(-1, d)
        u[:, 0] += self.mu * np.sqrt((u[:, 1:] ** 2).sum(axis=1))
        x = p - rho * u
        size = np.sqrt((x[:, 1:] ** 2).sum(axis=1))
        along = np.maximum(0.0, (x[:, 0] + self.mu * size) / (1 + self.mu**2))
        inside = (x[:, 0] >= 0) & (size <= self.mu * x[:, 0])
        side = np.where(inside, size, self.mu * along)
        projected = np.column_stack([np.where(inside, x[:, 0], along),
                                     x[:, 1:] * (side / np.where(size > 0, size, 1.0))[:, None]])  # fmt: skip
        scale = max((p**2).sum(), ((rho * b) ** 2).sum())
        return float(np.sqrt(((p - projected) ** 2).sum() / scale)) if scale > 0 else 0.0


def serve(prepare, version):
    """Do the job whose file the command line names; ``prepare(job, problem)`` gives ``solve(tolerance)``.

    That returns the impulses (m d,), the iterations and the seconds of CPU.
    """
    with open(sys.argv[1]) as file:
        job = json.load(file)
    problem = Problem(job["arrays"])
    solve = prepare(job, problem)
    with open(job["found"], "w") as out:
        for tolerance in job["tolerances"]:
            for share in STRICTER:
                best = None
                for _ in range(REPEATS):
                    r, iterations, seconds = solve(max(1e-15, share * tolerance))
                    best = min(best or seconds, seconds)
                    if seconds > SHORT:
                        break
                left = problem.residual(r) if np.isfinite(r).all() else np.inf
                if left <= tolerance:
                    break
            line = {"tolerance": tolerance, "seconds": best, "iterations": int(iterations), "version": version}
            out.write(json.dumps(line | {"impulses": r.tolist() if left < np.inf else None}) + "\n")
            out.flush()


def timed(function, *arguments):
    """What a function returns, and the seconds of CPU that it took."""
    begin = time.process_time()
    found = function(*arguments)
    return found, time.process_time() - begin
