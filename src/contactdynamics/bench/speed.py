"""The speed of scenes: sweep, step, side by side with other codes, growth, profile."""

import ctypes
import math
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..rigid import solvers
from ..rigid.contact_set import ContactSet
from ..rigid.entries import table
from ..rigid.equations import diagonal_sweep
from ..rigid.kinds import EQUATIONS, SEARCHES
from ..rigid.neighbours import Neighbours
from ..rigid.simulation import Simulation
from ..rigid.threads import Team
from ..scenes.scene import Scene
from ..scenes.shapes.balls import Disk, Plane, Sphere
from ..state import FREE
from . import heaps

SETTLING, ROUNDS, EQUAL = 60, 7, 5  # `growth`: steps before it measures, times through all sizes, sweeps
REFERENCE = Path(__file__).parents[3] / "benchmarks" / "sweep.c"


def _best(function, repeats: int = 30) -> float:
    """The shortest time of ``function``, s: the repeat that met the least other work on the machine."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


def _c_sweep():
    """The sweep in C, compiled here; None without gcc or the source."""
    if not shutil.which("gcc") or not REFERENCE.exists():
        return None
    folder = Path(tempfile.mkdtemp(prefix="cdyn-"))
    library = folder / "sweep.so"
    subprocess.run(
        ["gcc", "-O3", "-march=native", "-fPIC", "-shared", "-o", library, REFERENCE, "-lm"], check=True
    )  # fmt: skip
    function = ctypes.CDLL(str(library)).sweep
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64, ctypes.c_double]
    shutil.rmtree(folder, ignore_errors=True)
    return function


def sweep(echo) -> dict:
    """Nanoseconds per contact update of spheres, beside the same loop in C (gcc -O3 -march=native)."""
    c_sweep = _c_sweep()
    results, table = {}, []
    for n in (2000, 14_000, 50_000):
        sim = heaps.lattice(n) if n > 14_000 else heaps.simulation(heaps.settled(n, echo=echo))
        for _ in range(3):
            sim.step()
        s, plan = sim.contact_set.equations[0].kind
        m, order, mobility = len(s.pair), plan.order.copy(), sim.contact_set.mobility(sim.model)
        plain = (sim.rows, mobility, s, order, -1.0, plan.last)
        ours = _best(lambda plain=plain: diagonal_sweep.sweep_contacts(*plain)) / m * 1e9
        theirs = math.nan
        if c_sweep:
            pointers = [x.ctypes.data for x in (sim.rows, s.a, s.b, s.row, order)]
            theirs = _best(lambda pointers=pointers, m=m: c_sweep(*pointers, m, 2.5)) / m * 1e9
        table.append({"grains": n, "contacts": m, "nanoseconds": ours, "c_nanoseconds": theirs})
        echo(
            f"{n:>7} grains {m:>7} contacts: {ours:6.1f} ns per contact, in C {theirs:6.1f}, ratio {ours / theirs:.2f}"
        )
        if n == 14_000:
            results = {"nanoseconds": ours, "ratio_to_c": ours / theirs if c_sweep else None} | _on_threads(sim, echo)
    return results | {"table": table, "target_ratio": 1.3}


def _on_threads(sim, echo) -> dict:
    """Accelerated sweeps on one and on two threads, in turn: nanoseconds per contact, and the ratio of their speeds."""
    met, best = sim.contact_set, {1: math.inf, 2: math.inf}
    m, kinds = met.count, tuple(equations.kind for equations in met.equations if equations.count)
    scratch = solvers.scratch_arrays(sim.rows, len(kinds))
    problem = (kinds, sim.rows, met.mobility(sim.model), table(kinds), False, scratch, 20, -1.0, 1.0, math.inf)
    teams = {threads: Team(threads) for threads in best}
    for _ in range(200):  # on a shared machine both cores are seldom free together
        for threads, team in teams.items():
            best[threads] = min(best[threads], _best(lambda team=team: team(solvers.accelerated_sweeps, *problem), 1))
    one, two = (best[threads] / m / 20 * 1e9 for threads in (1, 2))
    echo(f"with extrapolation on one thread {one:.1f} ns per contact, on two {two:.1f}: {one / two:.2f} times faster")
    return {"one_thread_nanoseconds": one, "two_threads_nanoseconds": two, "threads_ratio": one / two}


def _pour(heap: dict, steps: int, **options) -> dict:
    """Steps of a settled heap with one grain dropped every 25; times by stage in ms, sweeps."""
    dimension = int(heap["dimension"])
    sim = heaps.simulation(heap, **options)
    cold = sim.step().report.iterations
    for _ in range(50):
        sim.step()
    top = heap["positions"][heap["positions"][:, -1].argmax()]
    rng = np.random.default_rng(1)
    shape = Sphere(0.2) if dimension == 3 else Disk(0.2)
    sim.seconds = dict.fromkeys(sim.seconds, 0.0)
    sweeps, begin, cpu = [], time.perf_counter(), time.process_time()
    for k in range(steps):
        if k % 25 == 0:
            place = top + np.append(rng.uniform(-0.8, 0.8, dimension - 1), 0.6 + 0.45 * (k // 25 % 20))
            sim.add(shape, material="grain", position=place)
        sweeps.append(sim.step().report.iterations)
    total, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return {
        "milliseconds": total / steps * 1e3,
        "cpu_milliseconds": cpu / steps * 1e3,
        **{f"{stage}_milliseconds": value / steps * 1e3 for stage, value in sim.seconds.items()},
        "contacts": sim.contact_set.count,
        "sweeps": float(np.mean(sweeps)),
        "most_sweeps": int(max(sweeps)),
        "cold_sweeps": cold,
    }


def _on_two_threads(make, rounds: int, echo) -> dict:
    """Whole steps of the same scene on one and on two threads, five in turn: ratios of their times.

    By the clock, where both cores are free (the best tenth of the steps); and by CPU, that of one thread over that of
    the first of two, which does what cannot be shared and counts what it spins while it waits for the other.
    """
    sims, clock, cpu = {k: make(threads=k) for k in (1, 2)}, {1: [], 2: []}, {1: [], 2: []}
    for _ in range(20):
        for sim in sims.values():
            sim.step()
    for _ in range(rounds):
        for threads, sim in [(threads, sim) for threads, sim in sims.items() for _ in range(5)]:
            begin, used = time.perf_counter(), time.thread_time()
            sim.step()
            clock[threads].append(time.perf_counter() - begin)
            cpu[threads].append(time.thread_time() - used)
    if not np.array_equal(sims[1].rows, sims[2].rows):
        raise AssertionError("two threads have other bits than one")
    grains = int((sims[1].bodies.kind == FREE).sum())
    found = {"grains": grains, "ratio": float(np.quantile(clock[1], 0.1) / np.quantile(clock[2], 0.1)),
             "cpu_ratio": float(np.sum(cpu[1]) / np.sum(cpu[2]))}  # fmt: skip
    echo(f"{grains} grains on two threads: whole steps {found['ratio']:.2f} times faster by the clock, "
         f"{found['cpu_ratio']:.2f} by the CPU of the first")  # fmt: skip
    return found


def _impact(heap: dict, **options) -> int:
    """The most sweeps of a step when a grain hits the settled heap at 4 m/s."""
    sim = heaps.simulation(heap, **options)
    for _ in range(30):
        sim.step()
    top = heap["positions"][heap["positions"][:, -1].argmax()]
    sim.add(Sphere(0.2), material="grain", position=top + np.array([0, 0, 0.6]), velocity=(0.0, 0.0, -400.0))
    return max(sim.step().report.iterations for _ in range(30))


def step(echo) -> dict:
    """Milliseconds per step and by stage: 14 000 spheres at rest, one grain dropped every 25 steps; disks; threads."""
    heap = heaps.settled(14_000, echo=echo)
    results = _pour(heap, 500) | {"impact_sweeps": _impact(heap)}
    plain = _pour(heap, 200, solver="nlgs")
    results["nlgs_milliseconds"], results["nlgs_cold_sweeps"] = plain["milliseconds"], plain["cold_sweeps"]
    results["nlgs_impact_sweeps"] = _impact(heap, solver="nlgs", max_iterations=5000)
    disks = _pour(heaps.settled(10_000, 2, echo), 500)
    results["disks"] = disks
    results["two_threads"] = [
        _on_two_threads(lambda **options: heaps.simulation(heap, **options), 40, echo),
        _on_two_threads(lambda **options: heaps.lattice(100_000, **options), 4, echo),
    ]
    for name, r in (("14 000 spheres", results), ("10 000 disks", disks)):
        echo(
            f"{name}: {r['milliseconds']:.2f} ms per step ({r['cpu_milliseconds']:.2f} of CPU), "
            + ", ".join(f"{s} {r[f'{s}_milliseconds']:.2f}" for s in ("detection", "frames", "solve", "integrate"))
            + f"; {r['contacts']} contacts, {r['sweeps']:.1f} sweeps, "
            f"{r['milliseconds'] / r['contacts'] * 1e6:.0f} ns per contact"
        )
    echo(
        f"cold start {results['cold_sweeps']} sweeps (plain {results['nlgs_cold_sweeps']}), "
        f"impact {results['impact_sweeps']} (plain {results['nlgs_impact_sweeps']}); "
        f"plain Gauss-Seidel {results['nlgs_milliseconds']:.2f} ms per step"
    )
    return results


def box_scene(path: Path) -> tuple[Scene, np.ndarray]:
    """A scene of `bench scenes`: spheres above an open box; also their radii."""
    with np.load(path) as file:
        data = {name: file[name] for name in file.files}
    scene = Scene(gravity=(0.0, 0.0, -float(data["gravity"])))
    scene.material("grain", density=float(data["density"]))
    scene.contact("grain", "grain", friction=float(data["mu"]), restitution=float(data["restitution"]))
    low, high = data["box"]
    for normal, point in (((0, 0, 1), low), ((1, 0, 0), low), ((0, 1, 0), low), ((-1, 0, 0), high), ((0, -1, 0), high)):
        scene.add(Plane(normal), material="grain", position=point, fixed=True)
    scene.add_many(data["radii"], material="grain", position=data["positions"])
    return scene, data["radii"]


def scene_files(folder: str | None, name: str) -> list[Path]:
    """The scenes scene_*.npz of a folder, the smallest first."""
    paths = sorted(Path(folder or ".").glob("scene_*.npz"), key=lambda p: p.stat().st_size)
    if not paths:
        raise InputError(
            f"There is no scene_*.npz in {folder or 'this folder'}; give the folder: cdyn bench {name} FOLDER."
        )
    return paths


def scenes(echo, folder: str | None = None) -> dict:
    """Whole fall and bed at rest of the scenes scene_*.npz in FOLDER, every step solved to 1e-3."""
    paths = scene_files(folder, "scenes")
    heaps.lattice(100).run(until=4e-4)  # compile
    results = {}
    for path in paths:
        scene, radii = box_scene(path)
        sim = Simulation(scene, time_step=1e-3, tolerance=1e-3, max_iterations=20_000, penetration="anticipate")
        sim.step()
        rows = [_timed(sim, 499), _timed(sim, 500)]
        speed = float(np.sqrt((sim.velocities[sim.frame().kinds == FREE] ** 2).sum(axis=1)).mean())
        results[path.stem] = {
            "grains": len(radii), "fall_milliseconds": rows[0][0], "rest_milliseconds": rows[1][0],
            "fall_sweeps": rows[0][1], "rest_sweeps": rows[1][1], "overlap": max(rows[0][2], rows[1][2]),
            "residual": max(rows[0][3], rows[1][3]), "speed_at_rest": speed, "contacts": sim.contact_set.count,
        }  # fmt: skip
        r = results[path.stem]
        echo(
            f"{path.stem}: fall {r['fall_milliseconds']:.2f} ms per step, {r['fall_sweeps']:.1f} sweeps; at rest "
            f"{r['rest_milliseconds']:.2f} ms, {r['rest_sweeps']:.1f} sweeps; overlap {r['overlap']:.2%} of a radius; "
            f"largest residual {r['residual']:.1e}; mean speed left {speed:.1e}"
        )
    return results


def _timed(sim, steps):
    """ms per step, sweeps per step, largest overlap and residual over ``steps``."""
    sweeps, overlap, residual, begin = 0, 0.0, 0.0, time.perf_counter()
    for _ in range(steps):
        report = sim.step().report
        sweeps += report.iterations
        overlap, residual = max(overlap, report.relative_penetration), max(residual, report.residual)
    return (time.perf_counter() - begin) / steps * 1e3, sweeps / steps, overlap, residual


def growth(echo, largest: str | None = None) -> dict:
    """Time and memory per grain from 10^3 to 10^5 grains (or to the number given, such as 1000000); fitted exponent.

    The same steps of lattices of all sizes, one size after the other in each round: what else the machine does meets
    all of them. Then steps of `EQUAL` sweeps each, whatever the residual: the same work for every contact. The largest,
    of a million grains, comes last and alone.
    """
    try:
        limit = int(float(largest or 100_000))
    except ValueError:
        limit = 0
    if limit < 3000:  # two sizes at least
        raise InputError(f"bench growth got {largest!r}; give the largest number of grains, 3000 or more.")
    sizes = [n for n in (1000, 3000, 10_000, 30_000, 100_000, 200_000, 1_000_000) if n <= limit]
    heaps.lattice(100).run(until=4e-4)  # compile
    rows = []
    for group in ([n for n in sizes if n <= 200_000], [n for n in sizes if n > 200_000]):
        sims, peaks = [], [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]
        for n in group:
            sims.append(heaps.lattice(n, tolerance=1e-3))
            sims[-1].run(until=SETTLING * sims[-1].time_step, progress=False)
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        found = [_in_turns(sims, ROUNDS)]
        for sim in sims:
            sim.tolerance, sim.max_iterations = 1e-15, EQUAL
        found.append(_in_turns(sims, ROUNDS))
        for n, sim in enumerate(sims):
            grains, contacts = int((sim.bodies.kind == FREE).sum()), sim.contact_set.count
            (seconds, sweeps), (equal, _) = (each[n] for each in found)
            rows.append({
                "grains": grains, "contacts": contacts, "milliseconds": seconds * 1e3, "sweeps": sweeps,
                "microseconds_per_grain": seconds / grains * 1e6,
                "equal_work_microseconds_per_grain": equal / grains * 1e6,
                "bytes_per_grain": (_bytes(vars(sim)) - _bytes(_of_contacts(sim))) / grains,
                "bytes_per_contact": _bytes(_of_contacts(sim)) / contacts,
                "peak_rss_bytes_per_grain": (peaks[n + 1] - peaks[n]) * 1024 / grains,
            })  # fmt: skip
            r = rows[-1]
            echo(
                f"{grains:>8} grains {contacts:>8} contacts: {r['milliseconds']:9.3f} ms per step, "
                f"{r['microseconds_per_grain']:.3f} us per grain with {sweeps:.1f} sweeps, "
                f"{r['equal_work_microseconds_per_grain']:.3f} with {EQUAL}, "
                f"{r['bytes_per_grain']:.0f} bytes per grain and {r['bytes_per_contact']:.0f} per contact in arrays"
            )
    x, y = np.log([r["grains"] for r in rows]), np.log([r["milliseconds"] for r in rows])
    exponent = float(np.polyfit(x, y, 1)[0])
    spread, equal_spread = (
        max(values) / min(values) - 1
        for values in (
            [r[key] for r in rows if r["grains"] < 210_000]
            for key in ("microseconds_per_grain", "equal_work_microseconds_per_grain")
        )
    )
    echo(
        f"time per step grows as grains^{exponent:.3f}; up to 200 000 grains the time per grain differs by "
        f"{spread:.0%}, for the same work by {equal_spread:.0%}"
    )
    return {"table": rows, "exponent": exponent, "spread": spread, "equal_work_spread": equal_spread}


def draw_growth(results: dict, out: Path) -> None:
    """Time per step, time per grain and memory over the number of grains."""
    import matplotlib.pyplot as plt

    rows = results["table"]
    grains, real, equal, bytes_, of_contact = (
        np.array([r[key] for r in rows])
        for key in ("grains", "microseconds_per_grain", "equal_work_microseconds_per_grain", "bytes_per_grain",
                    "bytes_per_contact")
    )  # fmt: skip
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    axes[0].loglog(grains, 1e-3 * real * grains, "ko")
    middle = np.exp(np.log(1e-3 * real * grains).mean())
    line = middle * (grains / np.exp(np.log(grains).mean())) ** results["exponent"]
    axes[0].loglog(grains, line, "k-", lw=0.8, label=f"grains^{results['exponent']:.3f}")
    axes[0].set(title="ms per step")
    axes[1].semilogx(grains, real, "ko-", label="solved to 1e-3")
    axes[1].semilogx(grains, equal, "rs-", label=f"{EQUAL} sweeps")
    axes[1].axhspan(equal.min(), 1.25 * equal.min(), color="r", alpha=0.12, lw=0, label="25 %")
    axes[1].set(title="µs per grain", ylim=(0, 1.5 * max(real.max(), equal.max())))
    axes[2].semilogx(grains, bytes_, "ko-", label="per grain")
    axes[2].semilogx(grains, of_contact, "rs-", label="per contact")
    axes[2].set(title="bytes in arrays", ylim=(0, 1.3 * bytes_.max()))
    for ax in axes:
        ax.set_xlabel("grains")
        ax.legend(frameon=False, loc="lower right" if ax is axes[0] else "upper left")
    figure.savefig(out / "growth.png", dpi=110)
    plt.close(figure)


def _in_turns(sims, rounds: int) -> list[tuple[float, float]]:
    """Median seconds and mean sweeps of a step of each simulation, in ``rounds`` through all of them."""
    times, sweeps = np.empty((rounds, 3, len(sims))), np.empty((rounds, 3, len(sims)))
    for k in range(rounds):
        for n, sim in enumerate(sims):
            sim.step()  # finds the caches full of another size
            for again in range(3):
                begin = time.perf_counter()
                sweeps[k, again, n] = sim.step().report.iterations
                times[k, again, n] = time.perf_counter() - begin
    return [(float(np.median(times[..., n])), float(sweeps[..., n].mean())) for n in range(len(sims))]


def _of_contacts(sim) -> tuple:
    """The arrays of a simulation that are as long as the list of contacts."""
    met = sim.contact_set
    lists = tuple((search.found, search._spare, search._filled) for search in met.searches)
    return lists + tuple((equations._contacts, equations._plan) for equations in met.equations)


def _bytes(items) -> int:
    """Bytes in all arrays among ``items``, each counted once."""
    seen, total, queue = set(), 0, [items]
    while queue:
        item = queue.pop()
        if isinstance(item, dict):
            queue += item.values()
        elif isinstance(item, list | tuple):
            queue += item
        elif isinstance(item, (ContactSet, Neighbours, *SEARCHES, *EQUATIONS)):
            queue.append(vars(item))
        elif isinstance(item, np.ndarray):
            base = item if item.base is None or not isinstance(item.base, np.ndarray) else item.base
            if id(base) not in seen:
                seen.add(id(base))
                total += base.nbytes
    return total


def profile(echo) -> dict:
    """Where the time of a step goes, in a quiet heap, a pour and a fall; draws profile.png into the output folder."""
    heap = heaps.settled(2000, echo=echo)
    runs = {"pour, 2000": _pour(heap, 500), "pour, 14 000": _pour(heaps.settled(14_000, echo=echo), 200)}
    stages = ("detection", "frames", "solve", "integrate", "record")
    for name, r in runs.items():
        total = sum(r[f"{s}_milliseconds"] for s in stages)
        echo(f"{name}: " + ", ".join(f"{s} {r[f'{s}_milliseconds'] / total:.0%}" for s in stages))
    return {name: {s: r[f"{s}_milliseconds"] for s in stages} for name, r in runs.items()}
