"""How uncertain the contact forces of a packing of disks are: clouds of possible forces.

2003, section 8.2: the contact problem of one step from rest is solved many times, from random impulses in a plausible
domain and in random orders of the sweep. A small packing, with the clouds at its least certain contacts against the
exact ranges of statics (linear programming), and a larger one: how wide are its forces?
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import contactdynamics as cd
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.plotting import plot_clouds, plot_scene
from contactdynamics.problem.explore import static_range

FIGURE = "2003, section 8.2 (no figure)"
PARAMETERS = Options(
    small=Option(12, "disks of the small packing", least=2, most=200),
    disks=Option(200, "disks of the large packing", least=2, most=100_000),
    friction=Option(0.5, "friction coefficient", "1", least=0, most=100),
    samples=Option(400, "solutions of the small packing", least=2, most=1_000_000),
    samples_large=Option(40, "solutions of the large packing", least=2, most=1_000_000),
    tolerance_large=Option(1e-4, "residual to which the large packing is solved", "1", least=1e-12, most=0.1),
    seed=Option(3, "seed of the random numbers", least=0),
    duration=Option(2.0, "time in which the disks settle", "s", least=0.1, most=1000),
)
QUICK = {"disks": 40, "samples": 60, "samples_large": 10, "duration": 0.8}

RADIUS, GRAVITY, STEP = 0.01, 9.81, 1e-3
WIDTHS = {"small": 8.0, "disks": 30.0}  # of the boxes, in radii; the larger one grows with the root of the number


def settle(count, width, parameters):
    """Disks dropped into a box, after `duration` seconds."""
    rng = np.random.default_rng(parameters["seed"])
    scene = cd.Scene(gravity=(0, -GRAVITY))
    scene.material("disk", density=1000.0)
    scene.contact("disk", "disk", friction=parameters["friction"])
    for normal, x in (((0, 1), 0.0), ((1, 0), 0.0), ((-1, 0), width)):
        scene.add(cd.HalfPlane(normal), material="disk", position=(x, 0), fixed=True)
    columns = max(1, int(width / (2.1 * RADIUS)))
    k = np.arange(count)
    x = (k % columns + 0.5) * width / columns + rng.uniform(-0.02, 0.02, count) * RADIUS
    position = np.stack([x, (k // columns + 0.5) * 2.1 * RADIUS], axis=1)
    scene.add_many(rng.uniform(0.7, 1.0, count) * RADIUS, material="disk", position=position)
    sim = cd.Simulation(scene, time_step=STEP, tolerance=1e-6, max_iterations=5000, on_failure="ignore")
    return sim.run(until=parameters["duration"], progress=False)


def build(parameters):
    """Two packings at rest, the solutions of their contact problems from many guesses, and what statics allows."""
    small = settle(parameters["small"], WIDTHS["small"] * RADIUS, parameters)
    width = WIDTHS["disks"] * RADIUS * (parameters["disks"] / 200) ** 0.5
    large = settle(parameters["disks"], width, parameters)
    problem = touching(small)
    seed = parameters["seed"]
    found = cd.explore_forces(problem, parameters["samples"], seed)
    bare = problem._replace(friction=np.zeros_like(problem.friction))
    crowd, options = touching(large), {"tolerance": parameters["tolerance_large"]}
    return {
        "small": small.frame(), "large": large.frame(), "problem": problem, "found": found,
        "order": cd.explore_forces(problem, parameters["samples"], seed, vary="order"),
        "bare": cd.explore_forces(bare, 20, seed),
        "ranges": np.array([static_range(problem, c) for c in range(len(problem.gap))]),
        "crowd": cd.explore_forces(crowd, parameters["samples_large"], seed, **options),
        "crowd_order": cd.explore_forces(crowd, parameters["samples_large"], seed, vary="order", **options),
        "frames": {"small": contacts_at_rest(small), "large": contacts_at_rest(large)},
    }  # fmt: skip


def touching(sim):
    """The contact problem of a step from rest."""
    return sim.contact_problem(from_rest=True, slack=1e-6)


def contacts_at_rest(sim):
    """The contacts of that problem, for drawing."""
    return sim.is_equilibrium(slack=1e-6).contacts


def resting(found):
    """(s,) the solutions that converged and leave everything at rest."""
    return found.converged & (np.abs(found.velocities).max(axis=(1, 2)) < 1e-3 * GRAVITY * STEP)


def check(outcome, parameters):
    """Ranges of the forces that leave the packing at rest, against those of statics."""
    found, ranges, crowd = outcome["found"], outcome["ranges"], outcome["crowd"]
    mean = found.impulses[found.converged, :, 0].mean()
    still = found.impulses[resting(found), :, 0]
    excess = max((ranges[:, 0] - still).max(initial=0.0), (still - ranges[:, 1]).max(initial=0.0)) / mean
    bare = outcome["bare"].width[:, 0].max()
    widths = {"impulses": crowd.width[:, 0], "order": outcome["crowd_order"].width[:, 0]}
    rows = [
        Row(
            "solutions of the small packing that leave it at rest", "some", len(still), len(still) > 0, "own reference"
        ),
        Row(
            "excess of their forces over the ranges of statics / mean force",
            0.0,
            excess,
            excess < 1e-3,
            "own reference",
        ),
        Row("same contacts without friction: largest width / mean force", 0.0, bare, bare < 1e-3, "closed form"),
        Row("solved, larger packing", 1.0, crowd.converged.mean(), crowd.converged.mean() >= 0.9, "own reference"),
    ]
    if parameters["friction"] > 0.1:
        wide = np.median(widths["impulses"])
        rows.append(Row("larger packing: median width / mean force", "> 0", wide, wide > 0.01, "own reference"))
    results = {
        "small_contacts": len(ranges),
        "small_width": summary(found.width[:, 0]),
        "small_width_of_statics": summary((ranges[:, 1] - ranges[:, 0]) / mean),
        "contacts": len(crowd.friction),
        "width": summary(widths["impulses"]),
        "width_by_order": summary(widths["order"]),
    }
    return Verdict(results, rows)


def summary(widths):
    """Median, ninth decile and largest of the widths (over the mean normal force)."""
    return {"median": np.median(widths), "ninth_decile": np.quantile(widths, 0.9), "largest": widths.max()}


# ---- figures ---------------------------------------------------------------------------------------------------------


def figure(outcome, parameters):
    """The small packing, the clouds of its least certain forces, and how uncertain those of the large one are."""
    figure, ((one, two), (three, four)) = plt.subplots(2, 2, figsize=(11, 9), layout="constrained")
    found = outcome["found"]
    chosen = np.argsort(-found.width[:, 0])[:4]
    plot_scene(outcome["small"], one, forces=False)
    for k, contact in enumerate(chosen):
        point = outcome["frames"]["small"].point[contact]
        one.plot(*point, "o", ms=9, color=f"C{k}", mec="k")
    one.set(title="small packing and its four least certain contacts", xlabel="x, m", ylabel="y, m")
    in_newtons = found._replace(impulses=found.impulses / STEP)
    plot_clouds(in_newtons, chosen, two)
    for k, contact in enumerate(chosen):
        for end in outcome["ranges"][contact]:
            two.axhline(end / STEP, color=f"C{k}", lw=0.8, ls=":")
    two.set(xlabel="tangential force P_t / h, N", ylabel="normal force P_n / h, N",
            title="possible forces, cones (lines) and statics (dotted)")  # fmt: skip
    draw_widths(figure, three, outcome["large"], outcome["frames"]["large"], outcome["crowd"])
    bins = np.linspace(0, max(1e-9, outcome["crowd"].width[:, 0].max()), 30)
    for key, name in (("crowd", "random impulses"), ("crowd_order", "random orders")):
        four.hist(outcome[key].width[:, 0], bins, alpha=0.6, label=name)
    four.set(xlabel="width of the normal force / mean normal force", ylabel="contacts",
             title=f"{parameters['disks']} disks: how uncertain the forces are")  # fmt: skip
    four.legend(frameon=False)
    return figure


def draw_widths(figure, ax, frame, contacts, found):
    """Branches as thick as the mean force, coloured by its width."""
    plot_scene(frame, ax, forces=False, colours=np.full(len(frame.identities), "0.97"))
    mean = found.impulses[found.converged, :, 0].mean(axis=0)
    rows = np.searchsorted(frame.identities, contacts.bodies)
    ends = frame.positions[rows]
    plane = ~np.isin(rows, frame.ball_bodies)
    ends[plane] = np.broadcast_to(contacts.point[:, None, :], ends.shape)[plane]
    lines = LineCollection(ends, linewidths=0.3 + 4 * mean / mean.max(), cmap="plasma_r", capstyle="round", zorder=4)
    lines.set_array(found.width[:, 0])
    ax.add_collection(lines)
    ax.set(title="larger packing: mean forces, coloured by width", xlabel="x, m", ylabel="y, m")
    figure.colorbar(lines, ax=ax, label="width / mean normal force", shrink=0.8)
