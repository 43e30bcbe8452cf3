"""The pictures of the pile: one function per figure of the papers, and those of the force statistics."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import EllipseCollection
from matplotlib.patches import Patch

from contactdynamics import analysis
from contactdynamics.files.layout import STAGES
from contactdynamics.state import FREE

RATIO, GREYS = 0.18, ("0", "0.35", "0.6", "0.82", "1")  # thresholds of speed, and grey levels from black to white
GROUND = "#e9e4d8"
ARROW = {"angles": "xy", "scale_units": "xy", "width": 0.003}


def circles(ax, places, radii, faces, *, edge="k", width=0.3, zorder=1):
    """Balls as discs; later ones cover earlier ones."""
    size = 2 * np.asarray(radii)
    ax.add_collection(
        EllipseCollection(size, size, np.zeros(len(size)), units="xy", offsets=places, facecolors=faces,
                          edgecolors=edge, linewidths=width, transOffset=ax.transData, zorder=zorder)
    )  # fmt: skip


def perspective(points, *, target, distance, elevation):
    """Places (k, 2) on a page through ``target``, depths and magnifications (k,) seen from the front and above."""
    e = np.radians(elevation)
    back = np.array([0.0, np.cos(e), -np.sin(e)])
    up = np.array([0.0, np.sin(e), np.cos(e)])
    away = points - target
    depth = away @ back
    zoom = distance / (distance + depth)
    return np.stack([away[:, 0] * zoom, away @ up * zoom], axis=1), depth, zoom


def speeds(pile):
    """The pile while it is poured, in grey levels by speed (1999, figure 1; 2003, figure 2; 2004, figure 3)."""
    frame = pile.poured
    speed = np.sqrt((frame.velocities**2).sum(axis=1))
    free = frame.kinds == FREE
    fastest = float(speed[free].max()) or 1.0
    bounds = fastest * RATIO ** np.arange(1, 5)
    level = (speed[:, None] < bounds).sum(axis=1)
    foot = pile.slope.foot
    shown = free | (np.hypot(*frame.positions[:, :2].T) < 1.12 * foot)
    body = frame.ball_bodies
    balls = np.flatnonzero(shown[body])
    target = np.array([0.0, 0.0, 0.35 * pile.height])
    places, depth, zoom = perspective(frame.ball_centres[balls], target=target, distance=5 * foot, elevation=22)
    order = np.argsort(-depth)
    balls, places, zoom = balls[order], places[order], zoom[order]
    faces = np.where(free[body[balls]], np.array(GREYS)[level[body[balls]]], GROUND)
    figure, ax = plt.subplots(figsize=(11, 5.2), layout="constrained")
    circles(ax, places, frame.ball_radii[balls] * zoom, faces, width=0.25)
    low, high = places.min(axis=0), places.max(axis=0)
    ax.set(xlim=(low[0] - 0.5, high[0] + 0.5), ylim=(low[1] - 0.5, high[1] + 0.5))
    ax.set_aspect("equal")
    ax.set_axis_off()
    edges = [fastest, *bounds, 0.0]
    names = [f"{edges[k + 1]:.3g} to {edges[k]:.3g}" for k in range(5)]
    patches = [Patch(fc=grey, ec="k", lw=0.5, label=name) for grey, name in zip(GREYS, names, strict=True)]
    ax.legend(handles=[*patches, Patch(fc=GROUND, ec="k", lw=0.5, label="ground")], ncols=6, frameon=False,
              loc="upper center", bbox_to_anchor=(0.5, 0.0), title="speed, cm/s", fontsize=9)  # fmt: skip
    ax.set_title(f"{int(free.sum())} grains at t = {frame.time:.4g} s")
    return figure


def slab(pile, frame, thickest):
    """Rows of the balls with centres in a vertical slice (thinner in a small pile), those behind first."""
    half = 0.5 * min(thickest, 0.6 * pile.height)
    y = frame.ball_centres[:, 1]
    rows = np.flatnonzero(np.abs(y) <= half)
    return rows[np.argsort(-y[rows])], 2 * half


def draw_slice(ax, pile, frame, faces, *, edge="0.55", thickest=2.0):
    """The slice of a frame; ``faces``: colours of the balls (S,), those not white on top. Returns its thickness."""
    rows, thick = slab(pile, frame, thickest)
    rows = rows[np.argsort(faces[rows] != "w", kind="stable")]
    ground = frame.kinds[frame.ball_bodies[rows]] != FREE
    colours = np.where(ground, GROUND, faces[rows])
    edges = np.where(faces[rows] != "w", "k", edge)
    circles(ax, frame.ball_centres[rows][:, [0, 2]], frame.ball_radii[rows], colours, edge=edges)
    reach = 1.15 * pile.slope.foot
    top = float((pile.poured.ball_centres[:, 2] + pile.poured.ball_radii).max())  # there are grains in flight
    ax.set(xlim=(-reach, reach), ylim=(-0.3, max(pile.height + 0.8, top + 0.1)), ylabel="z, cm")
    ax.set_aspect("equal")
    return thick


def fossil_layers(pile):
    """A slice at four epochs, with the grains created between two dates in black (1999, 2; 2003, 3; 2004, 4)."""
    early, late = pile.layers[0]
    frames = pile.frames_at(pile.epoch_times())
    figure, axes = plt.subplots(len(frames), 1, figsize=(10, 2.6 * len(frames) + 0.6), sharex=True,
                                layout="constrained", squeeze=False)  # fmt: skip
    for ax, frame in zip(axes[:, 0], frames, strict=True):
        date = pile.dates(frame)[frame.ball_bodies]
        faces = np.where((date >= early) & (date < late), "k", "w")
        thick = draw_slice(ax, pile, frame, faces)
        ax.text(0.01, 0.93, f"t = {frame.time:.4g} s", transform=ax.transAxes, va="top")
    axes[-1, 0].set_xlabel("x, cm")
    figure.suptitle(
        f"a slice {thick:.2g} cm thick; in black the grains created between t = {early:.3g} and {late:.3g} s"
    )
    return figure


def draw_profile(ax, pile):
    """The mean free surface and the ground in the meridian half-plane."""
    shape = pile.slope
    ax.plot(
        np.append(0, shape.radii), shape.level + np.append(shape.heights[0], shape.heights), color="0.4", lw=1, zorder=3
    )
    ax.axhline(shape.level, color="0.4", lw=1)
    ax.set(xlim=(0, 1.1 * shape.foot), ylim=(-0.1 * pile.height, 1.15 * pile.height), xlabel="r, cm", ylabel="z, cm")
    ax.set_aspect("equal")


def cuts(pile):
    """Reciprocal cuts: the force across each is parallel to the other (1999, figure 3; 2003, 4; 2004, 5)."""
    figure, ax = plt.subplots(figsize=(10, 5), layout="constrained")
    draw_profile(ax, pile)
    pairs = pile.reciprocal_cuts
    largest = max((np.hypot(*s.density) for cut in pairs for s in cut.strips), default=1.0)
    scale = largest / (0.3 * pile.height)
    for cut in pairs:
        for segment, force, colour in zip(cut.segments, cut.strips, ("#1f5fa8", "#b2182b"), strict=True):
            ax.plot(*segment.T, color=colour, lw=2.2, solid_capstyle="round")
            ax.quiver(*cut.point, *force.density, color=colour, scale=scale, zorder=3, **ARROW)
        ax.plot(*cut.point, "ko", ms=3, zorder=4)
    ax.plot([], [], color="#1f5fa8", lw=2.2, label="cylinder, and the force across it")
    ax.plot(
        [],
        [],
        color="#b2182b",
        lw=2.2,
        label="cone parallel to that force, and the force across it: vertical by the lemma",
    )
    ax.legend(frameon=False, loc="upper right")
    ax.set_title(f"reciprocal cuts, {pile.state}; error {pile.reciprocity_error:.3f} (root mean square)")
    return figure


def forces_and_layers(pile):
    """Forces across cylinders and two fossil layers, in the unrelaxed pile (1999, figure 4; 2003, 5; 2004, 6)."""
    frame = pile.poured
    date = pile.dates(frame)[frame.ball_bodies]
    faces = np.full(len(date), "w", dtype="<U7")
    tints = ("#c6c6c6", "#f2cfa5")
    for (early, late), tint in zip(pile.layers, tints, strict=True):
        faces[(date >= early) & (date < late)] = tint
    figure, (ax, side) = plt.subplots(2, 1, figsize=(10, 6.8), height_ratios=(1.2, 1), layout="constrained")
    draw_slice(ax, pile, frame, faces)
    rows = []
    spacing, length = 2 * pile.mean_diameter, 3 * pile.mean_diameter
    for r in np.arange(spacing, 0.95 * pile.slope.foot, spacing):
        for z in np.arange(pile.slope.level + 0.5 * length, pile.top(r), length):
            force = analysis.strip(frame, ((r, z - length / 2), (r, z + length / 2)))
            if force.contacts >= 5:
                rows.append((r, z, *force.density))
    rows = np.array(rows).reshape(-1, 4)
    size = np.hypot(rows[:, 2], rows[:, 3])
    scale = size.max() / (2.5 * spacing) if len(rows) else 1.0
    for sign in (-1, 1):  # the same averages on both sides
        ax.quiver(sign * rows[:, 0], rows[:, 1], sign * rows[:, 2], rows[:, 3], color="#1f5fa8", scale=scale, zorder=3,
                  **ARROW)  # fmt: skip
    names = [f"layer of t = {early:.3g} to {late:.3g} s" for early, late in pile.layers]
    handles = [Patch(fc=tint, ec="k", lw=0.5, label=name) for tint, name in zip(tints, names, strict=True)]
    ax.legend(handles=handles, frameon=False, loc="upper right")
    ax.set(title=f"force densities on cylinders about the axis, t = {frame.time:.4g} s", xlabel="x, cm")
    angles = pile.layer_angles
    for number, (tint, name) in enumerate(zip(tints, names, strict=True)):
        own = angles[angles[:, 4] == number]
        side.plot(own[:, 0], -own[:, 2], "-", color=tint, lw=3, label=name)
        side.plot(own[:, 0], -own[:, 3], "o", mfc=tint, mec="#1f5fa8", ms=6, label="force on a cylinder there")
    side.set(xlabel="distance from the axis, cm", ylabel="degrees downwards", xlim=(0, None))
    side.legend(frameon=False, ncols=2, fontsize=8, loc="best")
    return figure


def pressure(pile):
    """Ground pressure in rings, with the hydrostatic one (1999, figure 5; 2003, 6; 2004, 7)."""
    figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
    epochs, shape = pile.pressure, pile.slope
    weight = pile.volume_mass * pile.parameters["gravity"]
    ax.plot(shape.radii, weight * shape.heights, color="0.6", ls="--", lw=1, label="volume mass × g × height above")
    ax.errorbar(epochs.final.radii, epochs.mean, epochs.deviation, color="#1f5fa8", marker="s", ms=4, lw=1, capsize=2,
                label=f"mean and deviation of {len(epochs.times)} epochs, scaled to this size")  # fmt: skip
    epochs.final.plot(ax, label=pile.state)
    if np.isfinite(pile.hydrostatic):
        label = f"hydrostatic at the centre: {pile.hydrostatic:.0f} dPa"
        ax.axhline(pile.hydrostatic, color="#b2182b", lw=1, label=label)
    if int((pile.relaxed.kinds == FREE).sum()) >= 10_000:
        ax.axhline(3320, color="#b2182b", lw=1, ls=":", label="the papers' hydrostatic pressure: 3320 dPa")
    ax.set(xlabel="distance from the axis, cm", ylabel="pressure on the ground, dPa", xlim=(0, epochs.final.edges[-1]),
           ylim=(0, 1.45 * pile.hydrostatic if np.isfinite(pile.hydrostatic) else None))  # fmt: skip
    ax.legend(frameon=False, loc="upper right", fontsize=9)
    return figure


def stress(pile):
    """Mean stress over the meridian half-plane, with principal directions."""
    figure, ax = plt.subplots(figsize=(10, 4.6), layout="constrained")
    level = pile.slope.level
    cell = max(1.5 * pile.mean_diameter, pile.height / 10)
    seen = analysis.stress_map(pile.relaxed, cell=cell, reach=pile.slope.foot, low=level, high=level + pile.height)
    seen.plot(ax, label="mean pressure, dPa")
    r = np.linspace(0, 1.2 * pile.slope.foot, 200)
    ax.fill_between(r, pile.top(r), 2 * pile.height, color="w", lw=0, zorder=2.5)
    draw_profile(ax, pile)
    ax.set_title(f"{pile.state}: mean pressure, and principal directions in the meridian plane")
    return figure


def chains(pile):
    """Force chains in a slice of the relaxed pile, as thick as the force."""
    frame = pile.relaxed
    figure, ax = plt.subplots(figsize=(12, 4.4), layout="constrained")
    thick = draw_slice(ax, pile, frame, np.full(len(frame.ball_radii), "w"), edge="0.8", thickest=1.0)
    reach = 2 * pile.slope.foot
    region = analysis.Box((-reach, -thick / 2, -1.0), (reach, thick / 2, 2 * pile.height))
    drawn = analysis.force_chains(frame, region)
    widest = 0.15 * pile.mean_diameter * 12 * 72 / (2.1 * pile.slope.foot)  # of a grain's diameter on the page
    drawn.plot(ax, widest=widest, scale=float(np.quantile(drawn.forces, 0.99)))
    ax.set(title=f"contact forces in a slice {thick:.2g} cm thick, {pile.state}", xlabel="x, cm",
           xlim=(-1.05 * pile.slope.foot, 1.05 * pile.slope.foot))  # fmt: skip
    return figure


def statistics(pile):
    """Distribution of forces, contacts per grain, friction in use, contact directions in core and bank, profile."""
    frame, shape = pile.relaxed, pile.slope
    figure = plt.figure(figsize=(12, 8), layout="constrained")
    flat = [figure.add_subplot(2, 3, k) for k in (1, 2, 3, 6)]
    core = analysis.Cylinder(0.35 * shape.foot, shape.level + pile.mean_diameter, 1e9)
    bank = analysis.Cylinder(0.9 * shape.foot, shape.level + pile.mean_diameter, 1e9, inner=0.45 * shape.foot)
    analysis.normal_forces(frame).plot(flat[0])
    counts = analysis.coordination(frame)
    flat[1].bar(*np.unique(counts.counts, return_counts=True), color="0.7", edgecolor="k", lw=0.5)
    flat[1].set(xlabel="contacts of a grain", ylabel="grains", title=f"mean {counts.mean:.2f}")
    friction = analysis.mobilised_friction(frame)
    friction.plot(flat[2]).set_title(f"mean {friction.mean:.2f}")
    for place, (name, region) in enumerate((("core", core), ("bank", bank))):
        rose = figure.add_subplot(2, 3, 4 + place, projection="polar")
        analysis.directions(frame, region, meridian=True).plot(rose)
        texture = analysis.fabric(frame, region, meridian=True)
        lean = np.degrees(np.arctan2(texture.axes[0, 2], texture.axes[0, 0])) % 180
        rose.set_title(f"contact normals (r, z), {name}\nmost at {lean:.0f}°, anisotropy {texture.anisotropy:.2f}")
    shape.plot(flat[3]).set(xlabel="distance from the axis, cm", ylabel="height, cm", title="mean free surface")
    return figure


def growth(pile):
    """Contacts, sweeps and time per step as the pile grows."""
    log = pile.recording.log
    seconds = sum(log[stage] for stage in STAGES)
    rows = max(1, len(seconds) // 150)
    edges = np.arange(0, len(seconds), rows)
    number = np.diff(np.append(edges, len(seconds)))

    def mean(column):
        return np.add.reduceat(column, edges) / number

    figure, axes = plt.subplots(4, 1, figsize=(8, 9), sharex=True, layout="constrained")
    time = mean(log["time"])
    steps_per_row = pile.recording.steps / len(seconds)
    curves = (log["contacts"], log["iterations"], 1e3 * seconds, log["relative_penetration"])
    names = ("contacts", "sweeps per step", "ms per step", "largest overlap / radius")
    for ax, column, name in zip(axes, curves, names, strict=True):
        ax.plot(time, mean(column), "k-", lw=1)
        ax.set(ylabel=name, ylim=(0, None))
    total = np.cumsum(seconds) * steps_per_row
    twin = axes[2].twinx()
    twin.plot(log["time"], total, color="#1f5fa8", lw=1)
    twin.set_ylabel("seconds in all", color="#1f5fa8")
    twin.set_ylim(0, None)
    axes[-1].set_xlabel("simulated time, s")
    return figure
