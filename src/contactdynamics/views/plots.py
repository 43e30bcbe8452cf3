"""Plots of a result file: `cdyn plot FILE --what ...`, for print (PNG, PDF, SVG)."""

import numpy as np

from .. import plotting
from ..errors import InputError
from ..state import FREE
from .measures import measure, radii_and_volumes, touching


def _axes(rows=1, columns=1, size=(7.0, 5.0), **options):
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=size, layout="constrained", **options)


def _scene(frame, **options):
    """The frame around its free bodies and its cell; in the plane, in a figure of their shape."""
    frame = frame.inside()
    radius, _ = radii_and_volumes(frame)
    keep = (frame.kinds == FREE) & (radius > 0)
    if frame.dimension == 3 or not keep.any():
        return plotting.plot_scene(frame, _axes(size=(7, 6))[1], **options)
    low = (frame.positions[keep] - radius[keep, None]).min(axis=0)
    high = (frame.positions[keep] + radius[keep, None]).max(axis=0)
    if frame.cell is not None:
        ends = frame.edges_of_cell().reshape(-1, 2)
        low, high = np.minimum(low, ends.min(axis=0)), np.maximum(high, ends.max(axis=0))
    margin = 0.06 * (high - low).max()
    wide, tall = high - low + 2 * margin
    ax = plotting.plot_scene(frame, _axes(size=(8, 1.2 + float(np.clip(7 * tall / wide, 1.5, 9))))[1], **options)
    ax.set(xlim=(low[0] - margin, high[0] + margin), ylim=(low[1] - margin, high[1] + margin))
    return ax


def plot_bodies(recording, frame):
    """The bodies of the frame."""
    return _scene(frame, forces=False).figure


def plot_forces(recording, frame):
    """The bodies of the frame, and the contact forces with their scale."""
    return _scene(frame, forces=True).figure


def plot_stress(recording, frame):
    """The bodies coloured by their pressure, a third (in 2D, half) of the trace of their mean stress."""
    import matplotlib.pyplot as plt
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    pressure = measure(frame).pressure
    free = frame.kinds == FREE
    low, high = np.quantile(pressure[free], (0.005, 0.995), method="nearest") if free.any() else (0.0, 1.0)
    span = Normalize(min(low, 0.0), high if high > min(low, 0.0) else min(low, 0.0) + 1.0)
    colours = np.where(free[:, None], plt.cm.viridis(span(pressure)), (0.75, 0.75, 0.75, 1.0))
    ax = _scene(frame, forces=False, colours=[tuple(colour[:3]) for colour in colours])
    ax.figure.colorbar(ScalarMappable(span, "viridis"), ax=ax, label="pressure (compression > 0)", shrink=0.8)
    return ax.figure


def _logged(recording) -> dict:
    log = recording.log
    if not len(log["time"]):
        raise InputError(f"{recording.path} has no log of its steps; plot --what bodies, forces, stress or histograms.")
    return log


def plot_energy(recording, frame):
    """The ledger: energies and works since the start, and the error of its balance."""
    log = _logged(recording)
    figure, (energy, closure) = _axes(2, 1, (7, 6.5), sharex=True, height_ratios=(3, 1))
    time = log["time"]
    energy.plot(time, log["kinetic"], lw=1.2, label="kinetic")
    energy.plot(time, log["potential"] - log["potential"][0], lw=1.2, label="potential, from its start")
    for name, style in (("normal_work", "--"), ("tangential_work", ":"), ("rolling_work", "-."), ("drive_work", "-")):
        if np.any(log[name]):
            energy.plot(time, log[name], style, lw=1.2, label=name.replace("_", " "))
    energy.set_ylabel("energy, work")
    energy.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    closure.plot(time, log["closure"], color="k", lw=0.8)
    closure.set(xlabel="time", ylabel="error of\nthe balance")
    for ax in (energy, closure):
        ax.axvline(frame.time, color="0.6", lw=0.6)
    return figure


def plot_residual(recording, frame):
    """The residual of each step with the tolerance, sweeps, contacts and the largest overlap."""
    log, tolerance = _logged(recording), recording.parameters["options"]["tolerance"]
    figure, axes = _axes(4, 1, (7, 8), sharex=True)
    residual = np.where(log["residual"] > 0, log["residual"], np.nan)
    axes[0].semilogy(log["time"], residual, ".", ms=2, color="k")
    axes[0].axhline(tolerance, color="C3", lw=0.8, ls="--")
    axes[0].set_title(f"dashed: the tolerance, {tolerance:g}", fontsize=9, loc="right")
    for ax, name, label in zip(axes[1:], ("iterations", "contacts", "relative_penetration"),
                               ("sweeps", "contacts", "overlap / radius"), strict=True):  # fmt: skip
        ax.plot(log["time"], log[name], lw=0.8, color="k")
        ax.set_ylabel(label)
    axes[0].set_ylabel("residual")
    axes[-1].set_xlabel("time")
    for ax in axes:
        ax.axvline(frame.time, color="0.6", lw=0.6)
    return figure


def plot_histograms(recording, frame):
    """Normal forces over their mean, mobilised friction, contacts of a body, speeds of the frame."""
    m, t, free = measure(frame), touching(frame), frame.kinds == FREE
    figure, axes = _axes(2, 2, (8, 6))
    pushing = t.normal_force > 0
    forces = t.normal_force[pushing]
    speed = np.sqrt((m.velocity[free] ** 2).sum(axis=1))
    panels = (
        (forces / forces.mean() if len(forces) else forces, "normal force / mean", True),
        (t.friction_force[pushing] / forces, "friction force / normal force", False),
        (m.contacts[free], "contacts of a free body", False),
        (speed, "speed of a free body", False),
    )
    for ax, (values, label, logarithmic) in zip(axes.flat, panels, strict=True):
        if len(values):
            whole = values.dtype.kind in "iu"
            bins = np.arange(values.max() + 2) - 0.5 if whole else min(40, max(5, round(len(values) ** 0.5)))
            ax.hist(values, bins=bins, color="#4e79a7", edgecolor="white", lw=0.4, density=True, log=logarithmic)
        else:
            ax.text(0.5, 0.5, "none in this frame", ha="center", va="center", transform=ax.transAxes)
        ax.set(xlabel=label, ylabel="density")
    figure.suptitle(f"t = {frame.time:.4g}: {len(forces)} contacts that push, {int(free.sum())} free bodies")
    return figure


PLOTS = {"bodies": plot_bodies, "forces": plot_forces, "stress": plot_stress, "energy": plot_energy,
         "residual": plot_residual, "histograms": plot_histograms}  # fmt: skip
