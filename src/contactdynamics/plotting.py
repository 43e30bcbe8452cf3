"""Drawing: the one place that imports matplotlib."""

import matplotlib.pyplot as plt
import numpy as np

from .errors import InputError
from .scenes.frames import Moment, make_frame, no_contacts
from .scenes.tables import join_all


def check_format(path) -> None:
    """Refuse a name of a picture whose ending matplotlib cannot write."""
    known = sorted(plt.Figure().canvas.get_supported_filetypes())
    if path.suffix[1:].lower() not in known:
        raise InputError(f"{path} has no ending of a picture; give one of .{', .'.join(known)}.")


def plot_motion(motion, axes=None, *, labels=None):
    """Positions, gaps and energy ledger of a `Motion` over time, one above the other; returns the figure."""
    if axes is None:
        _, axes = plt.subplots(3, 1, figsize=(7, 8), sharex=True, layout="constrained")
    positions, gaps, energy = axes
    labels = labels or [f"q{i}" for i in range(motion.q.shape[1])]
    for column, label in zip(motion.q.T, labels, strict=True):
        positions.plot(motion.times, column, lw=1, label=label)
    middle = motion.times[:-1] + motion.step / 2
    for index in range(motion.gaps.shape[1]):
        gaps.plot(middle, motion.gaps[:, index], lw=1, label=f"gap {index}")
    gaps.axhline(0, color="0.5", lw=0.5)
    ledger = motion.ledger
    energy.plot(motion.times, ledger.kinetic, lw=1, label="kinetic")
    if ledger.potential is not None:
        energy.plot(motion.times, ledger.potential, lw=1, label="potential")
        energy.plot(motion.times, ledger.kinetic + ledger.potential, lw=1.5, color="k", label="total")
    else:
        energy.plot(motion.times[1:], np.cumsum(ledger.force_work), lw=1, label="work of forces")
    normal, tangential = (
        ledger.contact_work.sum(axis=1).T if ledger.contact_work.shape[1] else np.zeros((2, len(middle)))
    )
    energy.plot(motion.times[1:], np.cumsum(normal), lw=1, ls="--", label="work of normal impulses")
    energy.plot(motion.times[1:], np.cumsum(tangential), lw=1, ls=":", label="work of friction")
    if ledger.boundary_work.any():
        energy.plot(
            motion.times[1:], np.cumsum(ledger.boundary_work.sum(axis=1)), lw=1, ls="-.", label="work of boundaries"
        )
    positions.set_ylabel("position")
    gaps.set_ylabel("gap")
    energy.set_ylabel("energy")
    energy.set_xlabel("time")
    for ax in axes:
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return positions.figure


def plot_recording(recording, frame):
    """A frame of a result file beside its ledger and its solver over time; returns the figure."""
    log = recording.log
    if not len(log["time"]):
        return plot_scene(frame).figure
    figure = plt.figure(figsize=(11, 6), layout="constrained")
    grid = figure.add_gridspec(3, 2, width_ratios=(1.5, 1))
    plot_scene(frame, figure.add_subplot(grid[:, 0]))
    energy, solver, overlap = (figure.add_subplot(grid[k, 1]) for k in range(3))
    energy.plot(log["time"], log["kinetic"], lw=1, label="kinetic")
    energy.plot(log["time"], log["potential"] - log["potential"][-1], lw=1, label="potential, from its end")
    energy.plot(log["time"], log["normal_work"] + log["tangential_work"], lw=1, ls="--", label="work of contacts")
    energy.legend(frameon=False, fontsize=8)
    solver.plot(log["time"], log["iterations"], lw=0.7, color="k")
    overlap.plot(log["time"], log["relative_penetration"], lw=0.7, color="k")
    energy.set_ylabel("energy")
    solver.set_ylabel("sweeps")
    overlap.set(ylabel="overlap / radius", xlabel="time")
    for ax in (energy, solver, overlap):
        ax.axvline(frame.time, color="0.6", lw=0.6)
    return figure


def plot_clouds(exploration, contacts=None, ax=None):
    """Draw the impulses (P_t, P_n) of an `Exploration` at some contacts (the first six by default), with their cones.

    Of contacts with three components |P_t| is drawn. Returns the axes.
    """
    if ax is None:
        _, ax = plt.subplots(figsize=(6, 5), layout="constrained")
    found = exploration.impulses[exploration.converged]
    contacts = range(min(6, found.shape[1])) if contacts is None else contacts
    top = max(found[:, list(contacts), 0].max(initial=0.0), 1e-300)
    for k, contact in enumerate(contacts):
        normal, rest = found[:, contact, 0], found[:, contact, 1:]
        tangential = rest[:, 0] if rest.shape[1] == 1 else np.sqrt((rest**2).sum(axis=1))
        ax.plot(tangential, normal, ".", ms=4, color=f"C{k}", label=f"contact {contact}")
        plus, minus = exploration.friction[contact]
        ax.plot([-minus * top, 0, plus * top], [top, 0, top], color=f"C{k}", lw=0.6, alpha=0.5)
    ax.set(xlabel="tangential impulse", ylabel="normal impulse")
    ax.legend(fontsize=8, loc="lower right", framealpha=1.0)
    return ax


SHADES = ((1.0, 0.62), (0.82, 0.76), (0.6, 0.87), (0.36, 0.95))  # radius and brightness of the rings of a shaded ball


def plot_convergence(report, ax=None):
    """The residual of a `SolveReport` over the iterations, method by method, with the tolerance; returns the axes."""
    if not report.history:
        raise InputError("The report has no history of the residual; those of `solve` have one.")
    if ax is None:
        _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    iterations, residuals = np.array(report.history, dtype=float).T
    ends = np.cumsum([count for _, count in report.stages]) if report.stages else np.array([iterations[-1]])
    names = [name for name, _ in report.stages] or [report.solver or "solver"]
    begin = 0.0
    for name, end in zip(names, ends, strict=True):
        part = (iterations >= begin) & (iterations <= max(end, begin))
        if end == ends[-1]:
            part = iterations >= begin
        shown = residuals[part]
        ax.plot(iterations[part], np.where(shown > 0, shown, np.nan), marker="." if part.sum() < 60 else "", lw=1.2,
                label=f"{name}, {int(end - begin)}")  # fmt: skip
        begin = end
    if not np.isnan(report.tolerance):
        ax.axhline(report.tolerance, color="0.4", lw=0.8, ls="--", label=f"tolerance {report.tolerance:.0e}")
    ax.set_yscale("log")
    if iterations[-1] > 300:
        ax.set_xscale("symlog", linthresh=10)
    said = "solved" if report.converged else "not solved"
    ax.set(xlabel="iterations", ylabel="residual", title=f"{report.contacts} contacts, {said}: {report.residual:.1e}")
    ax.legend(frameon=False)
    return ax


def plot_scene(frame, ax=None, *, forces=True, colours=None, azimuth=-60.0, elevation=20.0):
    """Draw a `Frame`: shaded balls, polygons, polyhedra, planes, and the forces at the contacts, with their scale.

    ``colours``: one number or colour per body. In 3D the view is an orthographic one from ``azimuth`` and
    ``elevation`` (degrees), nearer balls and faces drawn over farther ones. Bodies of a periodic cell are drawn in the
    images that lie in it, with its outline. Returns the axes.
    """
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 6), layout="constrained")
    project = _view(frame.dimension, azimuth, elevation)
    tints = _tints(frame, colours)
    if frame.cell is not None:
        frame = frame.inside()
        _draw_cell(ax, frame, project)
    _draw_planes(ax, frame, project)
    if len(frame.polygon_bodies):
        _draw_polygons(ax, frame, tints)
    _draw_solids(ax, frame, project, tints)
    if frame.dimension == 2:
        _draw_marks(ax, frame)
    if forces and len(frame.contacts.gap):
        _draw_forces(ax, frame, project)
    ax.set_aspect("equal")
    ax.autoscale_view()
    if frame.dimension == 2:
        ax.set(xlabel="x", ylabel="y")
    else:
        ax.set_axis_off()
    ax.set_title(f"t = {frame.time:.4g}")
    return ax


def _draw_cell(ax, frame, project) -> None:
    """The edges of the periodic cell."""
    for pair in frame.edges_of_cell():
        ends, _ = project(pair)
        ax.plot(ends[:, 0], ends[:, 1], color="0.4", lw=0.8, ls="--", zorder=0)


def plot_state_of(scene, ax=None):
    """Draw a `Scene` as it was stated, before any step; returns the axes."""
    d = scene.dimension
    frame = make_frame(Moment.none(d), join_all(scene.blocks), no_contacts(d))
    return plot_scene(frame, ax, forces=False)


def film(draw, count: int, *, figure, rate: float = 12.0):
    """A film of ``count`` pictures: ``draw(k)`` draws the k-th one into ``figure``; returns matplotlib's animation.

    ``film(...).save("film.gif", writer="pillow")``, or "film.mp4" where ffmpeg is installed.
    """
    from matplotlib.animation import FuncAnimation

    return FuncAnimation(figure, draw, frames=count, interval=1000 / rate, init_func=lambda: None, repeat=False)


def _view(dimension, azimuth, elevation):
    """The projection: points (k, d) -> places on the page (k, 2) and depths (k,), larger is farther."""
    if dimension == 2:
        return lambda points: (points, np.zeros(len(points)))
    a, e = np.radians([azimuth, elevation])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    back = -np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    up = np.cross(right, back)
    return lambda points: (np.stack([points @ right, points @ up], axis=1), points @ back)


def _tints(frame, colours):
    """RGB colours (N, 3) of the bodies."""
    from matplotlib.colors import to_rgb

    base = {0: "#c9b48f", 1: "#9a9a9a", 2: "#7f9fbf"}  # free, fixed, driven
    if colours is None:
        return np.array([to_rgb(base[int(kind)]) for kind in frame.kinds])
    colours = np.asarray(colours)
    if colours.ndim == 1 and colours.dtype.kind in "fiu":
        span = np.ptp(colours) or 1.0
        return plt.cm.viridis((colours - colours.min()) / span)[:, :3]
    return np.array([to_rgb(colour) for colour in colours])


def _draw_solids(ax, frame, project, tints):
    """Balls and the faces of polyhedra that look at the reader, from the farthest to the nearest.

    A face is as far as its farthest corner: a floor then lies behind what stands on it.
    """
    from matplotlib.collections import PolyCollection

    places, depth = project(frame.ball_centres)
    corners, away = project(frame.solid_corners)
    faces = [corners[rim] for rim in np.split(frame.face_corners, frame.face_starts[1:-1])] if len(corners) else []
    turns = np.array([_area(face) for face in faces])
    shown = np.flatnonzero(turns > 1e-9 * np.abs(turns).max(initial=0.0))
    if len(shown):
        depth = np.append(depth, np.maximum.reduceat(away[frame.face_corners], frame.face_starts[:-1])[shown])
        normals = _normals(frame)[shown]
        light = 0.45 + 0.55 * np.clip(normals @ (np.array([-0.35, -0.5, 0.8]) / 1.006), 0.0, 1.0)
        colours = tints[frame.face_bodies[shown]] * light[:, None]
        ax.update_datalim(corners)
    balls, order = len(places), np.argsort(-depth, kind="stable")
    for level, run in enumerate(np.split(order, np.flatnonzero(np.diff(order < balls)) + 1)):
        if not len(run):
            continue
        if run[0] < balls:
            artist = _draw_balls(ax, places[run], frame.ball_radii[run], tints[frame.ball_bodies[run]])
        else:
            run = run - balls
            artist = PolyCollection([faces[k] for k in shown[run]], facecolors=colours[run], edgecolors="0.25",
                                    linewidths=0.5)  # fmt: skip
            ax.add_collection(artist)
        artist.set_zorder(1 + level / (1 + len(order)))


def _area(outline) -> float:
    """Area of an outline (k, 2), negative where it turns clockwise."""
    x, y = outline.T
    return 0.5 * float(x @ np.roll(y, -1) - np.roll(x, -1) @ y)


def _normals(frame) -> np.ndarray:
    """Outward unit normals (F, 3) of the faces of polyhedra."""
    starts, corner = frame.face_starts, frame.solid_corners[frame.face_corners]
    after = np.arange(1, len(corner) + 1)
    after[starts[1:] - 1] = starts[:-1]
    origin = np.repeat(corner[starts[:-1]], np.diff(starts), axis=0)
    normal = np.add.reduceat(np.cross(corner - origin, corner[after] - origin), starts[:-1])
    return normal / np.sqrt((normal**2).sum(axis=1))[:, None]


def _draw_balls(ax, places, radii, tints):
    from matplotlib.collections import EllipseCollection

    # Ring by ring within a ball, ball by ball: nearer balls cover farther ones with all their rings.
    k, rings = len(radii), len(SHADES)
    scale = np.array([s for s, _ in SHADES])
    light = np.array([b for _, b in SHADES])
    sizes = (2 * radii[:, None] * scale).ravel()
    offset = radii[:, None, None] * (1 - scale)[None, :, None] * np.array([-0.45, 0.55])
    centres = (places[:, None, :] + offset).reshape(k * rings, 2)
    faces = (tints[:, None, :] * light[None, :, None]).reshape(k * rings, 3)
    widths = np.tile([0.3] + [0.0] * (rings - 1), k)
    artist = EllipseCollection(sizes, sizes, np.zeros(k * rings), units="xy", offsets=centres, facecolors=faces,
                               edgecolors="0.25", linewidths=widths, transOffset=ax.transData)  # fmt: skip
    ax.add_collection(artist)
    if k:
        low, high = (places - radii[:, None]).min(axis=0), (places + radii[:, None]).max(axis=0)
        ax.update_datalim([low, high])
    return artist


def _draw_polygons(ax, frame, tints):
    """Convex parts of polygons; the seams inside a body are not drawn."""
    from matplotlib.collections import LineCollection, PolyCollection

    starts = frame.polygon_starts
    parts = [frame.polygon_corners[starts[k] : starts[k + 1]] for k in range(len(starts) - 1)]
    ax.add_collection(PolyCollection(parts, facecolors=tints[frame.polygon_bodies], edgecolors="none"))
    edges = np.concatenate([np.stack([part, np.roll(part, -1, axis=0)], axis=1) for part in parts])
    body = np.repeat(frame.polygon_bodies, np.diff(starts))
    whole = np.bincount(frame.polygon_bodies, minlength=len(frame.kinds))[body] == 1
    seams = {(b, *q.tobytes(), *p.tobytes()) for b, (p, q) in zip(body[~whole], edges[~whole], strict=True)}
    outer = [w or (b, *p.tobytes(), *q.tobytes()) not in seams for w, b, (p, q) in zip(whole, body, edges, strict=True)]
    ax.add_collection(LineCollection(edges[outer], colors="0.25", linewidths=0.5))
    ax.update_datalim(frame.polygon_corners)


def _draw_marks(ax, frame):
    """A radius on each disk shows how it has turned."""
    from matplotlib.collections import LineCollection

    angle = frame.rotations[frame.ball_bodies]
    tips = frame.ball_centres + 0.9 * frame.ball_radii[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ax.add_collection(LineCollection(np.stack([frame.ball_centres, tips], axis=1), colors="0.3", linewidths=0.4))


def _draw_planes(ax, frame, project):
    points = np.concatenate([frame.ball_centres, frame.parts[0]])
    span = np.ptp(points, axis=0).max() if len(points) else 1.0
    middle = points.mean(axis=0) if len(points) else np.zeros(frame.dimension)
    for normal, point in zip(frame.plane_normals, frame.plane_points, strict=True):
        foot = middle - ((middle - point) @ normal) * normal
        if frame.dimension == 2:
            along = np.array([-normal[1], normal[0]]) * 0.6 * max(span, 1e-9)
            ax.plot(*np.stack([foot - along, foot + along]).T, color="0.4", lw=1.2, zorder=0)
        elif abs(normal[2]) > 0.5:  # floors, not walls, which would hide the scene
            one = np.cross(normal, [1.0, 0.0, 0.0])
            one /= np.sqrt(one @ one)
            two = np.cross(normal, one)
            reach = 0.6 * np.ptp(points, axis=0)[:2].max() + 2 * frame.ball_radii.max(initial=0.05 * span)
            corners = [foot + reach * (i * one + j * two) for i, j in ((1, 1), (1, -1), (-1, -1), (-1, 1))]
            ax.fill(*project(np.array(corners))[0].T, color="0.9", ec="0.7", lw=0.6, zorder=0)


def _draw_forces(ax, frame, project):
    """Each force as a segment centred at its contact point, as long as it is strong; a bar gives the scale.

    Red where the contact pushes, blue where it pulls (cohesion, tension). The longest is as long as the median body of
    those in contact is wide.
    """
    from matplotlib.collections import LineCollection
    from mpl_toolkits.axes_grid1.anchored_artists import AnchoredSizeBar

    contacts = frame.contacts
    force = np.einsum("kij,ki->kj", contacts.frame, contacts.impulse) / frame.time_step
    strength = np.sqrt((force**2).sum(axis=1))
    strongest = strength.max(initial=0.0)
    if not (np.isfinite(strongest) and strongest > 0):
        return
    length = 2.0 * _size_in_contact(frame) / strongest  # of the page, per force
    origin, middle = project(np.zeros((1, frame.dimension)))[0], project(contacts.point)[0]
    half = 0.5 * length * (project(force)[0] - origin)
    order = np.argsort(strength)
    lines = np.stack([middle - half, middle + half], axis=1)[order]
    colours = np.where(contacts.impulse[order, 0] < 0, "#2166ac", "#b2182b")
    ax.add_collection(LineCollection(lines, linewidths=1.6, colors=colours, capstyle="round", zorder=3))
    nice = _round_below(strongest)
    bar = AnchoredSizeBar(ax.transData, length * nice, f"force {nice:g}", "upper right", pad=0.3, sep=3, frameon=True,
                          color="#b2182b", prop={"size": 8}, bbox_to_anchor=(1.0, 1.0), bbox_transform=ax.transAxes,
                          )  # fmt: skip
    bar.patch.set(alpha=0.8, linewidth=0)
    ax.add_artist(bar)


def _size_in_contact(frame) -> float:
    """Median radius of the free bodies in contact: of the ball around a body's balls and corners."""
    rows = np.searchsorted(frame.identities, np.unique(frame.contacts.bodies))
    size = np.zeros(len(frame.identities))
    away = np.sqrt(((frame.ball_centres - frame.positions[frame.ball_bodies]) ** 2).sum(axis=1)) + frame.ball_radii
    np.maximum.at(size, frame.ball_bodies, away)
    corners, starts, bodies = frame.parts
    body = np.repeat(bodies, np.diff(starts))
    if len(body):
        np.maximum.at(size, body, np.sqrt(((corners - frame.positions[body]) ** 2).sum(axis=1)))
    free = size[rows][(frame.kinds[rows] == 0) & (size[rows] > 0)]
    return float(np.median(free)) if len(free) else 1.0


def _round_below(value: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is not above ``value``."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(max(step * power for step in (1, 2, 5) if step * power <= value * (1 + 1e-12)))
