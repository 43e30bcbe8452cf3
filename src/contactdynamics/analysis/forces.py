"""Contact forces: as vectors, as chains, their distribution, contacts per grain, mobilised friction."""

from typing import NamedTuple

import numpy as np

from ..display import pictured, short
from ..errors import InputError, as_numbers, explained
from ..state import FREE, SLIDING
from .regions import fitting


def new_axes(ax, **options):
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **options)[1]


@explained
def contact_forces(frame) -> np.ndarray:
    """Forces (C, d) on the second body of each contact, in space: impulses over the time step."""
    contacts = frame.contacts
    return np.einsum("kij,ki->kj", contacts.frame, contacts.impulse) / frame.time_step


def contact_rows(frame) -> np.ndarray:
    """Rows (C, 2) of the two bodies of each contact."""
    return np.searchsorted(frame.identities, frame.contacts.bodies)


def contact_centres(frame) -> np.ndarray:
    """Centres (C, 2, d) of the two bodies; a plane has that of the other body, mirrored at the contact."""
    rows, point = contact_rows(frame), frame.contacts.point
    centres = frame.positions[rows].astype(float)
    plane = np.ones(len(frame.identities), dtype=bool)
    plane[frame.ball_bodies] = False
    plane[frame.polygon_bodies] = False
    plane[frame.solid_bodies] = False
    for side in range(2):
        flat = plane[rows[:, side]]
        centres[flat, side] = 2 * point[flat] - centres[flat, 1 - side]
    return centres


def selected(frame, region) -> np.ndarray:
    """Which contacts (C,) push and have their point in the region (all of space where it is None)."""
    pushing = frame.contacts.impulse[:, 0] > 0
    return pushing if region is None else pushing & fitting(region, frame).contains(frame.contacts.point)


class Bounds(NamedTuple):
    """What the laws of the contacts of a frame allow; forces in N, lengths in m."""

    friction: np.ndarray  # (C, 2) coefficients along t1 and t2 while sliding
    static: np.ndarray  # (C, 2) coefficients at rest
    cohesion: np.ndarray  # (C,) force
    tension: np.ndarray  # (C,) force
    rolling: np.ndarray  # (C,) length
    spinning: np.ndarray  # (C,) length

    __repr__ = short


def bounds_of(frame, friction, name: str) -> Bounds:
    """The bounds of the contacts by the laws that the frame carries; ``friction``, where given, replaces theirs.

    One number, or one per contact. A frame without laws (of an old file, or made by hand) is one of pure friction.
    """
    count, index = len(frame.contacts.gap), frame.contact_laws
    known = [index[k] >= 0 for k in range(count)]
    laws = [frame.laws[place] if here else None for place, here in zip(index, known, strict=True)]
    if friction is not None:
        mu = as_numbers("friction", friction)
        if mu.shape not in ((), (count,)) or not (np.isfinite(mu).all() and (mu >= 0).all()):
            raise InputError(
                f"{name} got friction of shape {mu.shape}, or below zero; give one number >= 0, or one per contact "
                f"({count})."
            )
        sliding = static = np.repeat(np.broadcast_to(mu, (count,))[:, None], 2, axis=1)
    elif not all(known):
        raise InputError(f"{name} got a frame that carries no laws of contact; give friction=...")
    else:
        sliding = np.array([law.anisotropic or (law.friction,) * 2 for law in laws]).reshape(count, 2)
        static = np.array([2 * [law.static_friction or 0.0] for law in laws]).reshape(count, 2)
        static = np.maximum(sliding, static)

    def column(field):
        return np.array([0.0 if law is None else getattr(law, field) for law in laws])

    return Bounds(sliding, static, column("cohesion"), column("tension"), column("rolling"),
                  column("spinning"))  # fmt: skip


class Chains(NamedTuple):
    """Segments between the centres of bodies in contact, with the size of the force."""

    segments: np.ndarray  # (K, 2, d)
    forces: np.ndarray  # (K,)

    __repr__ = short
    _repr_html_ = pictured

    def plot(self, ax=None, *, plane=(0, -1), widest: float = 5.0, scale: float | None = None, colour="k"):
        """Draw the segments in the plane of two axes, as thick as they are strong; ``scale``: force of the widest."""
        from matplotlib.collections import LineCollection

        ax = new_axes(ax)
        scale = (self.forces.max() if len(self.forces) else 1.0) if scale is None else scale
        order = np.argsort(self.forces)
        flat = self.segments[order][:, :, list(plane)]
        width = widest * np.minimum(1.0, self.forces[order] / scale)
        ax.add_collection(LineCollection(flat, linewidths=width, colors=colour, capstyle="round"))
        ax.set_aspect("equal")
        ax.autoscale_view()
        return ax


@explained
def force_chains(frame, region=None) -> Chains:
    """The network of forces, of the contacts in the region.

    At a boundary that is no single ball (a wall, a table, a drum) a segment goes through the contact point, as for a
    plane: the centre of a drum has no part in the network.
    """
    keep, rows, centres = selected(frame, region), contact_rows(frame), contact_centres(frame)
    single = np.bincount(frame.ball_bodies, minlength=len(frame.identities)) == 1
    boundary = (frame.kinds != FREE) & ~single
    for side in range(2):
        flat = boundary[rows[:, side]] & ~boundary[rows[:, 1 - side]]
        centres[flat, side] = 2 * frame.contacts.point[flat] - centres[flat, 1 - side]
    return Chains(centres[keep], np.sqrt((contact_forces(frame)[keep] ** 2).sum(axis=1)))


class NormalForces(NamedTuple):
    """Normal forces over their mean, and the rate of the exponential tail exp(-decay f) of those above the mean."""

    mean: float
    relative: np.ndarray  # (K,) sorted
    decay: float

    __repr__ = short
    _repr_html_ = pictured

    def plot(self, ax=None, *, bins: int = 40):
        """The density of the relative forces on a logarithmic scale, with the tail."""
        ax = new_axes(ax)
        top = max(2.0, self.relative[-1])
        number, edges = np.histogram(self.relative, bins=bins, range=(0, top))
        density = number / (len(self.relative) * np.diff(edges))
        middle, some = 0.5 * (edges[1:] + edges[:-1]), number > 0
        ax.semilogy(middle[some], density[some], "ko", ms=3)
        share = (self.relative > 1).mean()
        tail = np.array([1.0, top])
        if np.isfinite(self.decay):
            ax.semilogy(tail, share * self.decay * np.exp(-self.decay * (tail - 1)), "r-", lw=1,
                        label=f"exp(−{self.decay:.2f} f)")  # fmt: skip
            ax.legend(frameon=False)
        ax.set(xlabel="normal force over its mean", ylabel="density", ylim=(0.3 * density[some].min(), None))
        return ax


@explained
def normal_forces(frame, region=None) -> NormalForces:
    """The distribution of the normal forces of contacts that push.

    The decay is the likeliest one for the part above the mean: 1 / (mean excess).
    """
    force = frame.contacts.impulse[selected(frame, region), 0] / frame.time_step
    if not len(force):
        raise InputError("normal_forces found no contact that pushes; take a frame of bodies that touch.")
    relative = np.sort(force / force.mean())
    excess = relative[relative > 1] - 1
    return NormalForces(float(force.mean()), relative, float(1 / excess.mean()) if len(excess) else float("inf"))


class Coordination(NamedTuple):
    """Contacts that push, per free body."""

    mean: float  # over all free bodies
    bearing: float  # over the bodies with at least two contacts
    rattlers: float  # share of bodies with fewer
    counts: np.ndarray  # (N,) of each free body

    __repr__ = short


@explained
def coordination(frame, region=None) -> Coordination:
    """The number of contacts that push of each free body (whose centre lies in the region)."""
    counts = np.bincount(contact_rows(frame)[selected(frame, None)].ravel(), minlength=len(frame.identities))
    keep = frame.kinds == FREE
    if region is not None:
        keep &= fitting(region, frame).contains(frame.positions)
    counts = counts[keep]
    bearing = counts >= 2
    return Coordination(
        float(counts.mean()) if len(counts) else 0.0,
        float(counts[bearing].mean()) if bearing.any() else 0.0,
        float(1 - bearing.mean()) if len(counts) else 0.0,
        counts,
    )


class Mobilised(NamedTuple):
    """Tangential over normal force, relative to the friction coefficient: 1 where a contact may slide."""

    ratios: np.ndarray  # (K,)
    mean: float
    sliding: float  # share of contacts that slide

    __repr__ = short
    _repr_html_ = pictured

    def plot(self, ax=None, *, bins: int = 25):
        ax = new_axes(ax)
        ax.hist(
            self.ratios,
            bins=bins,
            range=(0, 1.0001),
            density=bool(len(self.ratios)),
            color="0.7",
            edgecolor="k",
            lw=0.5,
        )
        ax.set(xlabel="mobilised friction |F_t| / (γ F_n)", ylabel="density", xlim=(0, 1))
        return ax


@explained
def mobilised_friction(frame, friction=None, region=None) -> Mobilised:
    """How much of the friction is in use at the contacts that push, by the laws of the frame.

    ``friction`` (one number or one per contact) replaces theirs. Contacts that slide have the coefficient of sliding,
    the others that of rest; cohesion counts as normal force, as in its law. Contacts without friction are left out.
    """
    bounds = bounds_of(frame, friction, "mobilised_friction")
    slides = frame.contacts.status == SLIDING
    coefficient = np.where(slides[:, None], bounds.friction, bounds.static)
    keep = selected(frame, region) & (coefficient > 0).all(axis=1)
    impulse = frame.contacts.impulse[keep]
    pressed = impulse[:, 0] + bounds.cohesion[keep] * frame.time_step
    scaled = impulse[:, 1:] / coefficient[keep, : impulse.shape[1] - 1]
    ratios = np.sqrt((scaled**2).sum(axis=1)) / pressed
    sliding = frame.contacts.status[keep] == SLIDING
    return Mobilised(
        ratios, float(ratios.mean()) if len(ratios) else 0.0, float(sliding.mean()) if len(ratios) else 0.0
    )
