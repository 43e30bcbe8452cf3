"""The sweeping process: a dragged point, a turning polygon, water in a cave, springs that yield.

2004, section 2. A disk that moves in a straight line drags a point along a tractrix: the catching-up algorithm (eq. 6)
and the explicit scheme with the lazy selector (section 2.4) against the exact curve, for shorter and shorter steps. A
polygon that turns about its centre pushes a point inwards along the involute of its inscribed circle. Water drips
through a cave whose cross-section at the depth t is f(t, x) <= 0, not convex (section 2.6). An elastoplastic network of
springs, the origin of the process, describes hysteresis loops (`_springs.py`).
"""

import math

import matplotlib.pyplot as plt
import numpy as np

from contactdynamics.errors import InputError
from contactdynamics.experiments import _springs as springs
from contactdynamics.experiments.runner import Option, Options, Row, Verdict
from contactdynamics.systems import sets
from contactdynamics.systems.sweeping import sweep

FIGURE = "2004, section 2.6"
PARAMETERS = Options(
    radius=Option(1.0, "radius of the disk that drags a point", "m", least=1e-3, most=1e3),
    speed=Option(1.0, "speed of the disk", "m/s", least=1e-3, most=1e3),
    duration=Option(4.0, "time of the dragging", "s", above=0, most=1000),
    step=Option(0.1, "longest time step", "s", least=1e-4, most=100),
    halvings=Option(5, "how often the step is halved", least=2, most=12),
    sides=Option(3, "sides of the polygon that turns", least=3, most=100),
    cave_steps=Option(1000, "steps of the water through the cave", least=50, most=1_000_000),
    amplitude=Option(1.2, "amplitude of the end that drives the springs", "m", least=1e-6, most=1e3),
)
QUICK = {"halvings": 3, "cave_steps": 300}

DEPTH = 10.0  # of the cave
SPRINGS_OF_WATER = 9  # streams that enter at the top


def build(parameters):
    """A dragged point by two schemes and several steps, a turning polygon, drops in a cave, springs."""
    checked(parameters)
    count = round(parameters["duration"] / parameters["step"])  # the step nearest to the one asked that divides it
    steps = [parameters["duration"] / (count * 2**k) for k in range(parameters["halvings"] + 1)]
    return {
        "steps": steps,
        "dragged": {name: [drag(parameters, h, name) for h in steps] for name in ("catching-up", "lazy")},
        "polygon": turn(parameters["sides"], 400),
        "water": [drip(point, parameters["cave_steps"]) for point in sources()],
        "loops": [springs.loop(parameters["amplitude"] * part, 60) for part in (0.5, 1.0)],
    }


def checked(parameters):
    """Refuse a step that does not resolve the motion."""
    if parameters["step"] > 0.25 * min(parameters["duration"], parameters["radius"] / parameters["speed"]):
        raise InputError(
            f"The step {parameters['step']} is over a quarter of the duration or of radius/speed; give a shorter one."
        )


# ---- the disk that drags a point -------------------------------------------------------------------------------------


def drag(parameters, step, scheme):
    """A point that starts on the rim, at right angles to the motion of the disk."""
    radius, speed = parameters["radius"], parameters["speed"]
    disk = sets.Ball(centre=lambda t: (speed * t, 0.0), radius=radius)
    times = np.linspace(0.0, parameters["duration"], round(parameters["duration"] / step) + 1)
    return sweep(disk, (0.0, radius), times, scheme=scheme)


def tractrix(times, radius, speed):
    """(N, 2): the point keeps the distance R from the centre, seen under the angle a with tan(a/2) = exp(-v t / R)."""
    angle = 2 * np.arctan(np.exp(-speed * times / radius))
    return np.stack([speed * times - radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def errors(swept, parameters):
    """Largest distance from the tractrix, at equal times."""
    return float(
        np.linalg.norm(swept.q - tractrix(swept.times, parameters["radius"], parameters["speed"]), axis=1).max()
    )


# ---- the polygon that turns ------------------------------------------------------------------------------------------


def turn(sides, steps):
    """A regular polygon of inscribed radius 1 turns by one turn; the point starts on an edge, near the corner."""
    angles = 2 * math.pi * np.arange(sides) / sides
    normals = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    polygon = sets.Moved(sets.Polyhedron(normals, np.ones(sides)), rotation=rotation)
    times = np.linspace(0.0, 2 * math.pi, steps + 1)
    return sweep(polygon, (1.0, 0.95 * math.tan(math.pi / sides)), times)


def rotation(t):
    """The matrix of a turn by t."""
    return np.array([[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]])


def involute(times, start):
    """(N, 2): q = n + s n', s = start - t until it vanishes: the normal velocity of the edge there is -s."""
    s = start - np.minimum(times, start)
    angle = np.minimum(times, start)
    normal = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    along = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    return normal + s[:, None] * along


# ---- water in a cave -------------------------------------------------------------------------------------------------


def cave_axis(t):
    """Centre of the cave at the depth t."""
    return np.array([1.1 * math.sin(0.75 * t), 0.8 * math.cos(0.5 * t) - 0.8])


def wall(t, angle):
    """Distance of the wall from the axis: three lobes that turn slowly, now wider, now narrower."""
    return (1.25 + 0.25 * np.sin(2.1 * t)) * (1.0 + 0.22 * np.cos(3 * (angle - 0.15 * t)))


def cave(t, x):
    """f(t, x) <= 0 in the cave."""
    across, along = x - cave_axis(t)
    return math.hypot(across, along) - wall(t, math.atan2(along, across))


def cave_gradient(t, x):
    """(2,): the radial unit vector less d wall / d angle times the gradient of the angle."""
    across, along = x - cave_axis(t)
    distance, angle = math.hypot(across, along), math.atan2(along, across)
    turn = 0.66 * (1.25 + 0.25 * math.sin(2.1 * t)) * math.sin(3 * (angle - 0.15 * t)) / distance**2
    return np.array([across / distance - turn * along, along / distance + turn * across])


CAVE = sets.Region(cave, gradient=cave_gradient)


def sources():
    """Where the water enters: points inside the top of the cave."""
    angles = 2 * math.pi * np.arange(SPRINGS_OF_WATER) / SPRINGS_OF_WATER + 0.2
    return [cave_axis(0.0) + 0.75 * wall(0.0, a) * np.array([math.cos(a), math.sin(a)]) for a in angles]


def drip(point, steps):
    """The path of a drop in the cave."""
    return sweep(CAVE, point, np.linspace(0.0, DEPTH, steps + 1))


def steepest(swept):
    """Largest angle (rad), where water runs, between the displacement of a step and the inward normal at its end."""
    worst = 0.0
    for i in np.flatnonzero(swept.moves > 1e-9):
        step = swept.q[i + 1] - swept.q[i]
        normal = CAVE.rows(swept.times[i + 1], swept.q[i + 1]).gradients[0]
        across = step[0] * normal[1] - step[1] * normal[0]
        worst = max(worst, abs(math.atan2(across, -(step @ normal))))
    return worst


# ---- numbers and pictures --------------------------------------------------------------------------------------------


def order(steps, sizes):
    """Slope of the last halvings in the logarithms."""
    return float(np.polyfit(np.log(steps[-3:]), np.log(sizes[-3:]), 1)[0])


def check(outcome, parameters):
    """Orders of convergence, the involute, water on and off the wall, forces of springs that yield."""
    steps = outcome["steps"]
    error = {name: [errors(s, parameters) for s in runs] for name, runs in outcome["dragged"].items()}
    orders = {name: order(steps, sizes) for name, sizes in error.items()}
    drift = [float(np.abs(np.linalg.norm(s.q - centres(s, parameters), axis=1) - parameters["radius"]).max())
             for s in outcome["dragged"]["lazy"]]  # fmt: skip
    inside = max(float(s.violation.max()) for s in outcome["dragged"]["catching-up"])
    swept = outcome["polygon"]
    start = 0.95 * math.tan(math.pi / parameters["sides"])
    off = float(np.linalg.norm(swept.q - involute(swept.times, start), axis=1).max())
    water = outcome["water"]
    angle = max(steepest(s) for s in water)
    running = float(np.mean([(s.moves > 1e-9).mean() for s in water]))
    leak = max(float(s.violation.max()) for s in water)
    plastic = max(
        float(np.abs(force - springs.exact_loop(parameters["amplitude"] * part, 60)).max())
        for part, (_, force) in zip((0.5, 1.0), outcome["loops"], strict=True)
    )
    loss = [float(np.trapezoid(force[-121:], drive[-121:])) for drive, force in outcome["loops"]]
    turn_step = 2 * math.pi / (len(swept.times) - 1)
    rows = [
        Row("order of the catching-up algorithm", 1, orders["catching-up"], abs(orders["catching-up"] - 1) < 0.1,
            "closed form"),
        Row("order of the lazy selector", 1, orders["lazy"], abs(orders["lazy"] - 1) < 0.15, "closed form"),
        Row("outside the disk, catching-up", "never", inside, inside <= 1e-14 * reach(parameters), "identity"),
        Row("polygon: distance from the involute / step", "order 1", off / turn_step, off < 2 * turn_step,
            "closed form"),
        Row("water: angle to the steepest descent, rad", 0, angle, angle < 1e-6, "closed form"),
        Row("water: outside the cave", "never", leak, leak < 1e-12, "identity"),
        Row("water: some runs on the wall, some falls", "both", running, 0 < running < 1, "own reference"),
        Row("springs: largest error of the force, N", 0, plastic, plastic < 1e-12, "closed form"),
    ]  # fmt: skip
    results = {
        "error": {f"{h:g}": e for h, e in zip(steps, error["catching-up"], strict=True)},
        "order": orders["catching-up"],
        "lazy_error": {f"{h:g}": e for h, e in zip(steps, error["lazy"], strict=True)},
        "lazy_order": orders["lazy"],
        "lazy_drift": {f"{h:g}": e for h, e in zip(steps, drift, strict=True)},
        "polygon_error": off,
        "water_running_share": running,
        "water_steepest_angle": angle,
        "springs_error": plastic,
        "loop_loss": {"half amplitude": loss[0], "amplitude": loss[1]},
    }
    return Verdict(results, rows)


def centres(swept, parameters):
    """Where the centre of the dragging disk is."""
    return np.stack([parameters["speed"] * swept.times, np.zeros(len(swept.times))], axis=1)


def reach(parameters):
    """The size of the coordinates of the dragged point."""
    return parameters["radius"] + parameters["speed"] * parameters["duration"]


def figure(outcome, parameters):
    """The cave, and the motions in the plane."""
    return {"figure": cave_picture(outcome), "plane": plane_pictures(outcome, parameters)}


def cave_picture(outcome):
    """The wall as a mesh of horizontal sections, the water thick where it runs on the wall, thin where it falls."""
    picture = plt.figure(figsize=(6, 8))
    axes = picture.add_axes((-0.12, -0.06, 1.2, 1.14), projection="3d", computed_zorder=False)
    axes.set_proj_type("ortho")
    depth, angle = np.meshgrid(np.linspace(0, DEPTH, 81), np.linspace(0, 2 * math.pi, 61), indexing="ij")
    axis = np.array([cave_axis(t) for t in depth[:, 0]])
    radius = wall(depth, angle)
    x = axis[:, :1] + radius * np.cos(angle)
    y = axis[:, 1:] + radius * np.sin(angle)
    axes.plot_surface(x, y, depth, color="tan", alpha=0.16, linewidth=0, rcount=81, ccount=61)
    axes.plot_wireframe(x, y, depth, color="0.55", lw=0.35, rcount=41, ccount=16)
    for k, swept in enumerate(outcome["water"]):
        axes.plot(*swept.q.T, swept.times, color="tab:blue", lw=0.8, label=None if k else "water falls")
        runs = np.append(swept.moves > 1e-9, False)
        running = np.where(runs[:, None], swept.q, np.nan)
        axes.plot(*running.T, swept.times, color="navy", lw=2, label=None if k else "water runs on the wall")
    axes.set(xlabel="$x^1$", ylabel="$x^2$", zlabel="depth $t$", zlim=(DEPTH, 0))
    axes.set_box_aspect((np.ptp(x), np.ptp(y), np.ptp(depth)))
    axes.view_init(elev=14, azim=-60)
    axes.legend(loc="upper left", bbox_to_anchor=(0.11, 0.95), facecolor="w", edgecolor="none", framealpha=1)
    return picture


def plane_pictures(outcome, parameters):
    """Tractrix and its errors, polygon, springs."""
    picture, axes = plt.subplots(2, 2, figsize=(11, 8.4), layout="constrained")
    draw_tractrix(axes[0, 0], outcome, parameters)
    draw_errors(axes[0, 1], outcome, parameters)
    draw_polygon(axes[1, 0], outcome["polygon"], parameters["sides"])
    for (drive, force), part in zip(outcome["loops"], (0.5, 1.0), strict=True):
        amplitude = parameters["amplitude"] * part
        line = axes[1, 1].plot(drive, force, lw=1.4, label=f"amplitude {amplitude:g} m")[0]
        axes[1, 1].plot(
            drive[::6], springs.exact_loop(amplitude, 60)[::6], "o", mfc="none", ms=4, color=line.get_color()
        )
    axes[1, 1].plot([], [], "o", mfc="none", ms=4, color="0.4", label="closed form")
    axes[1, 1].set(xlabel="displacement of the end, m", ylabel="force, N", title="springs that yield")
    axes[1, 1].legend(frameon=False, loc="upper left")
    return picture


def draw_tractrix(axes, outcome, parameters):
    """The dragged point, beside the exact curve."""
    coarse = {name: runs[0] for name, runs in outcome["dragged"].items()}
    fine = np.linspace(0, parameters["duration"], 400)
    radius, speed = parameters["radius"], parameters["speed"]
    for t in np.linspace(0, parameters["duration"], 4):
        axes.add_patch(plt.Circle((speed * t, 0), radius, fill=False, color="0.8", lw=0.8))
    axes.plot(*tractrix(fine, radius, speed).T, color="k", lw=1, label="tractrix")
    every = max(1, len(coarse["lazy"].times) // 24)
    for (name, swept), mark in zip(coarse.items(), ("o", "x"), strict=True):
        axes.plot(*swept.q[::every].T, mark, ms=4, mfc="none", label=f"{name}, h = {outcome['steps'][0]:g} s")
    axes.set(xlabel="x, m", ylabel="y, m", title="a disk drags a point", aspect="equal")
    axes.set_ylim(-1.1 * radius, 2.3 * radius)
    axes.legend(frameon=False, loc="upper right")


def draw_errors(axes, outcome, parameters):
    """Errors over the step, for both schemes."""
    steps = np.array(outcome["steps"])
    for (name, runs), mark in zip(outcome["dragged"].items(), ("o-", "x-"), strict=True):
        axes.loglog(steps, [errors(s, parameters) for s in runs], mark, mfc="none", lw=1, label=name)
    first = errors(outcome["dragged"]["catching-up"][0], parameters)
    axes.loglog(steps, 0.5 * first * steps / steps[0], ":", color="0.5", label="order 1")
    axes.set(xlabel="step h, s", ylabel="largest distance from the tractrix, m", title="convergence")
    axes.legend(frameon=False)


def draw_polygon(axes, swept, sides):
    """The point in the turning polygon."""
    angles = 2 * math.pi * (np.arange(sides + 1) + 0.5) / sides
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1) / math.cos(math.pi / sides)
    end = 0.95 * math.tan(math.pi / sides)
    for k, t in enumerate(np.linspace(0, end, 4)):
        axes.plot(*(corners @ rotation(t).T).T, color=str(0.85 - 0.2 * k), lw=0.9)
    axes.add_patch(plt.Circle((0, 0), 1, fill=False, color="0.6", lw=0.7, ls=":"))
    axes.plot(*involute(np.linspace(0, end, 100), end).T, color="k", lw=1, label="involute")
    axes.plot(*swept.q[:: max(1, len(swept.q) // 60)].T, "o", ms=4, mfc="none", color="tab:blue", label="catching-up")
    axes.plot(*swept.q[0], "o", ms=5, color="tab:red", label="start")
    axes.set(xlabel="x, m", ylabel="y, m", title="a polygon turns", aspect="equal", xlim=(-2.2, 4.4))
    axes.legend(frameon=False, loc="upper right")
