"""Drawing: the one place that imports matplotlib."""

import matplotlib.pyplot as plt
import numpy as np


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
