"""Whether a result file can be believed: what must hold of any right run, checked from the file alone.

`audit` goes through the frames and the log and returns a `Line` for each check. Nothing is taken from the run that
wrote the file but what stands in it: energies are computed again from velocities, gaps from positions, velocities at
the contacts from those of the bodies. `compare` says where two files first differ.
"""

from typing import NamedTuple

import numpy as np

from .. import quaternions
from ..state import FREE

CLOSED = 1e-6  # of the energies that went through the ledger
DEEP = 0.25  # of a radius: an overlap that is no longer contact
SOME = 0.01  # of the steps may be unsolved
CARRIED = 0.05  # of the weight may be missing on the ground in a frame at rest
BOUNCE = 0.05  # of the restitution coefficient
STILL = 0.1  # of g h: the largest speed in a frame at rest


class Line(NamedTuple):
    """One check: ``holds`` is None where it could not be made, for the reason in ``words``."""

    name: str
    holds: bool | None
    words: str


class _Frames:
    """A recording with what the checks share."""

    def __init__(self, recording):
        self.recording, self.log = recording, recording.log
        self.h = float(recording.parameters["options"]["time_step"])
        self.tolerance = float(recording.parameters["options"]["tolerance"])
        # frames of `archive` are in single precision, and some have no velocities
        self.exact = recording.file["frame_bodies/position"].dtype == np.float64
        self.steps, self.hashes = recording.frame_steps, recording.more("hash")
        self.open = recording.more("cell") is None  # without images of bodies beyond a border
        self.held = bool(recording._static["held"].any())
        rows = len(self.log["time"])
        self.logged = rows > 0 and rows == int(self.steps[-1])  # one row for each step

    def at_step(self, column: str, k: int):
        """The value of a column of the log after the step of frame ``k``; None at the start."""
        step = int(self.steps[k])
        return float(self.log[column][step - 1]) if self.logged and step > 0 else None


def audit(recording) -> list[Line]:
    """The checks of a `Recording`, one `Line` each."""
    frames = _Frames(recording)
    kinds = ("hashes", "kinetic", "gaps", "cones", "laws", "bounce", "weight", "moved", "momentum")
    gathered = {name: [] for name in kinds}
    last = None
    for k in range(len(recording)):
        frame = recording[k]
        _compare_hashes(frames, k, gathered["hashes"])
        _kinetic(frames, k, gathered["kinetic"])
        _gaps(frames, k, frame, gathered["gaps"])
        _cones(k, frame, gathered["cones"])
        _law(frames, k, frame, gathered["laws"], gathered["bounce"])
        _weight(frames, k, frame, gathered["weight"])
        if last is not None:
            _moved(frames, k, last, frame, gathered["moved"])
            _momentum(frames, k, last, frame, gathered["momentum"])
        last = frame
    return [
        _hashes(frames, gathered["hashes"]),
        _order(frames),
        _worst("kinetic energy", gathered["kinetic"], 1e-9 if frames.exact else 1e-4,
               "velocities of frame {k} against the log, relative difference {value:.1e}", "no log of every step"),
        _ledger(frames),
        _created(frames),
        _overlaps(frames),
        _worst("gaps", gathered["gaps"], 1e-9 if frames.exact else 1e-4,
               "positions of frame {k} against the gaps of its contacts, {value:.1e} of a radius", "no pairs of balls"),
        _worst("friction cone", gathered["cones"], 1e-6 if frames.exact else 1e-3,
               "largest impulse outside of its law in frame {k}, {value:.1e} of the largest impulse", "no contacts"),
        _worst("contact law", gathered["laws"], 1.0,
               "normal velocities of frame {k} against what the law asks, {value:.1e} of what the tolerance allows",
               "no contacts with their targets"),
        _worst("restitution", gathered["bounce"], BOUNCE, "obtained misses what was asked by {value:.1e} in frame {k}",
               "no impact with restitution in a frame"),
        _solved(frames),
        _worst("weight at rest", gathered["weight"], CARRIED,
               "force on the ground of frame {k} misses the weight by {value:.1e}", "no frame at rest on a ground"),
        _worst("positions", gathered["moved"], 1.0,
               "a body moved to frame {k} by {value:.1e} of what its kinetic energy allows", "no log of every step"),
        _worst("momentum", gathered["momentum"], 1e-9,
               "impulses and forces of the step to frame {k} against the change of momentum, {value:.1e}",
               "no frames of successive steps with gravity alone"),
    ]  # fmt: skip


def _worst(name: str, found: list, bound: float, words: str, none: str) -> Line:
    """The line of a check that has a value for each of some frames, (frame, value)."""
    if not found:
        return Line(name, None, none)
    k, value = max(found, key=lambda pair: np.inf if np.isnan(pair[1]) else pair[1])
    return Line(name, bool(value <= bound), f"{words.format(k=k, value=value)}; at most {bound:g}")


def _compare_hashes(frames, k, out) -> None:
    """What of frame ``k`` is not as it was written."""
    if frames.hashes is not None:
        found = frames.recording.fingerprints(k)
        out += [(k, what) for here, written, what in zip(found, frames.hashes[k], ("bodies", "contacts"), strict=True)
                if here != written]  # fmt: skip


def _hashes(frames, wrong) -> Line:
    """Rows as they were written."""
    if frames.hashes is None:
        return Line("as written", None, "the file has no hashes")
    if wrong:
        return Line("as written", False, "the {1} of frame {0} are not those that were written".format(*wrong[0]))
    return Line("as written", True, f"{len(frames.hashes)} frames have the bits that were written")


def _order(frames) -> Line:
    """Frames at the times of their steps, and a log of all of them."""
    times, steps, h = frames.recording.times, frames.steps, frames.h
    off = np.abs(times - steps * h) > 1e-9 * np.maximum(times, h)
    if off.any():
        k = int(np.argmax(off))
        return Line(
            "times", False, f"frame {k} of step {steps[k]} has t = {times[k]:.9g} instead of {steps[k] * h:.9g}"
        )
    log = frames.log["time"]
    if frames.logged and (np.abs(log - h * np.arange(1, len(log) + 1)) > 1e-9 * np.maximum(log, h)).any():
        return Line("times", False, "rows of the log are not at the times of their steps")
    if not frames.logged:
        return Line("times", True, f"{len(times)} frames; the log does not have one row for each step")
    return Line("times", True, f"{len(times)} frames and {len(log)} steps in order")


def _kinetic(frames, k, out) -> None:
    logged = frames.at_step("kinetic", k)
    if logged is not None and frames.exact:
        here = frames.recording.kinetic(k)
        largest = max(logged, here, 1e-12 * float(frames.log["kinetic"].max()))
        out.append((k, abs(here - logged) / largest if largest > 0 else 0.0))


def _ledger(frames) -> Line:
    """The sum of |dT - works| over the steps, against the works."""
    log = frames.log
    if not len(log["time"]):
        return Line("energy ledger", None, "no log")
    names = ("kinetic", "force_work", "drive_work", "normal_work", "tangential_work", "rolling_work")
    size = max(float(np.abs(log[name]).max()) for name in names)
    value = float(log["closure"][-1]) / size if size > 0 else 0.0
    return Line("energy ledger", value <= CLOSED, f"closed to {value:.1e} of its largest entry; at most {CLOSED:g}")


def _created(frames) -> Line:
    """Energy that contact laws created; restitution with friction may."""
    created = frames.recording.more("created")
    if created is None:
        return Line("energy created", None, "the file does not say")
    size = max(1e-300, *(float(np.abs(frames.log[name]).max(initial=0.0)) for name in ("kinetic", "force_work")))
    bouncing = any(law.restitution > 0 or law.tangential_restitution > 0 for law in frames.recording.laws[0])
    share = float(created[-1]) / size
    words = f"{created[-1]:.3g} J by the contacts, {share:.1e} of the energies of the run"
    if bouncing and share > 1e-9:
        return Line("energy created", True, f"{words}; laws with restitution and friction may create some")
    return Line("energy created", share <= 1e-9, f"{words}; at most 1e-09")


def _overlaps(frames) -> Line:
    depth = frames.log["relative_penetration"]
    if not len(depth):
        return Line("overlaps", None, "no log")
    k, half = int(np.argmax(depth)), len(depth) // 2
    words = f"at most {depth[k]:.2%} of a radius (t = {frames.log['time'][k]:.4g}), {depth[-1]:.2%} at the end"
    if half and depth[half:].max() > 0:
        words += f", {depth[half:].max():.2%} in the second half"
    return Line("overlaps", bool(depth[k] <= DEEP), f"{words}; at most {DEEP:.0%}")


def _solved(frames) -> Line:
    failures, log = frames.recording.more("failures"), frames.log
    if failures is None and not len(log["time"]):
        return Line("steps solved", None, "no log")
    many = int(frames.steps[-1]) if failures is not None else len(log["time"])
    missed = int(failures[-1]) if failures is not None else int((log["residual"] > frames.tolerance).sum())
    worst = f", largest residual {log['residual'].max():.1e}" if len(log["time"]) else ""
    words = f"{missed} of {many} steps were not solved to {frames.tolerance:g}{worst}"
    return Line("steps solved", missed <= SOME * many, f"{words}; at most {SOME:.0%}")


def _rows_of(frame, numbers) -> np.ndarray:
    return np.searchsorted(frame.identities, numbers)


def _gaps(frames, k, frame, out) -> None:
    """Gaps of pairs of balls at the middle of the step, from the positions and velocities at its end."""
    if frame.step == 0 or not len(frame.contacts.gap) or not frames.open:
        return
    radius, balls = np.zeros(len(frame.masses)), np.bincount(frame.ball_bodies, minlength=len(frame.masses))
    radius[frame.ball_bodies] = frame.ball_radii
    centred = np.zeros(len(frame.masses), dtype=bool)
    near = np.abs(frame.ball_centres - frame.positions[frame.ball_bodies]).max(axis=1, initial=0.0)
    centred[frame.ball_bodies] = near <= 1e-12 * frame.ball_radii
    a, b = _rows_of(frame, frame.contacts.bodies).T
    pair = centred[a] & centred[b] & (balls[a] == 1) & (balls[b] == 1)
    moving = np.abs(frame.velocities).max(initial=0.0) > 0
    if not pair.any() or (not frames.exact and not moving):
        return
    a, b = a[pair], b[pair]
    middle = frame.positions - 0.5 * frames.h * frame.velocities
    gap = np.linalg.norm(middle[b] - middle[a], axis=1) - radius[a] - radius[b]
    size = np.minimum(radius[a], radius[b])
    recovery = float(frames.recording.parameters["options"]["recovery"])
    if recovery == 0:  # which moves bodies after the step
        error = np.abs(gap - frame.contacts.gap[pair]) / (size + 1e-3 * np.abs(frame.positions).max())
        out.append((k, float(error[np.abs(frame.contacts.gap[pair]) > 0].max(initial=0.0))))


def _cones(k, frame, out) -> None:
    """Impulses in the cones of their laws."""
    p, laws = frame.contacts.impulse, frame.contact_laws
    if frame.step == 0 or not len(p) or (laws < 0).any():
        return
    h = frame.time_step
    rule = [(max(*np.ravel(law.anisotropic or law.friction), law.static_friction or 0.0), law.cohesion * h,
             law.tension * h) for law in frame.laws]  # fmt: skip
    friction, cohesion, tension = np.array(rule)[laws].T
    size = np.linalg.norm(p, axis=1)
    largest = size.max()
    if largest == 0:
        return
    active = size > 0
    pull = -(p[:, 0] + np.maximum(cohesion, tension))
    slide = np.linalg.norm(p[:, 1:], axis=1) - friction * np.maximum(p[:, 0] + cohesion, 0.0)
    out.append((k, float(np.maximum(pull, slide)[active].max() / largest)))


def _law(frames, k, frame, laws_out, bounce_out) -> None:
    """Signorini's law with the target r of the file: U_n >= r, and U_n = r where the contact pushes.

    By the natural map with rho = 1 / W_nn (without its lever arms it is up to six times as large, for blocks), relative
    to the impulses, as the residual of the solver: over ten times what that is to be.
    """
    targets, c = frames.recording.targets(k), frame.contacts
    if targets is None or frame.step == 0 or not len(c.gap) or not (frames.exact and frames.open):
        return
    index = frame.contact_laws
    if (index < 0).any() or any(law.cohesion > 0 or law.tension > 0 for law in frame.laws):
        return
    bodies = frames.recording.bodies(k)
    point, normal = (np.pad(array, ((0, 0), (0, 3 - frame.dimension))) for array in (c.point, c.normal))
    velocity, lightness = 0.0, 0.0
    for row, sign in zip(_rows_of(frame, c.bodies).T, (-1.0, 1.0), strict=True):
        arm = point - (bodies.position[row] - 0.5 * frames.h * bodies.velocity[row])
        velocity = velocity + sign * (bodies.velocity[row] + np.cross(bodies.spin[row], arm))
        lightness = lightness + _lightness(bodies, row, np.cross(arm, normal))
    u, rho = (velocity * normal).sum(axis=1), 1.0 / lightness
    p = c.impulse[:, 0]
    left = p - np.maximum(0.0, p - rho * (u - targets))
    size = np.sqrt((c.impulse**2).sum())
    logged = frames.at_step("residual", k)
    allowed = 10.0 * max(frames.tolerance, logged if logged is not None else 0.0)
    scale = max(size, float(np.sqrt(((rho * targets) ** 2).sum())))
    if scale > 0:
        laws_out.append((k, float(np.sqrt((left**2).sum()) / scale / allowed)))
    asked = np.array([law.restitution for law in frame.laws])[index]
    # impacts whose rebound is far above what the solver may leave
    hit = (asked > 0) & (p > 0) & (c.gap <= 0) & (rho * targets > allowed / BOUNCE * scale)
    if hit.any():
        weight = p[hit] * targets[hit]
        obtained = asked[hit] * u[hit] / targets[hit]
        error = float((np.abs(obtained - asked[hit]) * weight).sum() / weight.sum())
        bounce_out.append((k, error))


def _lightness(bodies, row, lever) -> np.ndarray:
    """(K,) velocity of a point along a direction by a unit impulse there: 1/m + l . I^-1 l with ``lever`` l = r x n."""
    own = quaternions.turned(quaternions.conjugate(bodies.orientation[row]), lever)  # along the axes of the body
    inertia = bodies.inertia[row]
    turning = np.divide(own**2, inertia, out=np.zeros_like(own), where=inertia > 0).sum(axis=1)
    return np.where(bodies.kind[row] == FREE, 1.0 / bodies.mass[row] + turning, 0.0)


def _weight(frames, k, frame, out) -> None:
    """Force on fixed and driven bodies against the weight, in frames at rest."""
    loads = frames.recording.parameters
    g = float(np.linalg.norm(frame.gravity))
    if frames.held or not frames.open:
        return
    if g == 0 or frame.step == 0 or loads["forces"] or loads["springs"] or not len(frame.contacts.gap):
        return
    free = frame.kinds == FREE
    if not free.any() or np.linalg.norm(frame.velocities[free], axis=1).max() > STILL * g * frames.h:
        return
    if not frames.exact and not frame.velocities.any():
        return  # of `archive`, without velocities
    a, b = _rows_of(frame, frame.contacts.bodies).T
    impulse = np.einsum("ki,kij->kj", frame.contacts.impulse, frame.contacts.frame)
    down = frame.gravity / g
    carried = (impulse[~free[b]] @ down).sum() - (impulse[~free[a]] @ down).sum()
    weight = frame.masses[free].sum() * g * frames.h
    out.append((k, float(abs(carried / weight - 1.0))))


def _moved(frames, k, last, frame, out) -> None:
    """No free body went farther than its mass lets it with the kinetic energy of all; fixed ones stay."""
    if not frames.logged or not frames.open:
        return
    first, end = int(last.step), int(frame.step)
    both, i, j = np.intersect1d(last.identities, frame.identities, return_indices=True)
    del both
    free = frame.kinds[j] == FREE
    if not free.any():
        return
    start = frames.log["kinetic"][first - 1] if first > 0 else frames.recording.kinetic(k - 1)
    most = max(float(frames.log["kinetic"][first:end].max()), float(start))
    recovery = float(frames.recording.parameters["options"]["recovery"])
    given = frames.log["recovery_work"][max(first - 1, 0) : end]
    if recovery == 0 and np.ptp(given) > 0:  # what solvers had left was given back by moving bodies
        return
    allowed = (end - first) * frames.h * (np.sqrt(2.0 * most / frame.masses[j][free]) + recovery)
    way = np.linalg.norm(frame.positions[j][free] - last.positions[i][free], axis=1)
    rounding = 1e-9 * np.abs(frame.positions).max() if frames.exact else 1e-6 * np.abs(frame.positions).max()
    out.append((k, float((way / (1.000001 * allowed + max(rounding, 1e-300))).max())))


def _momentum(frames, k, last, frame, out) -> None:
    """m (v - v_before) = h m g + impulses for each free body, where frames are one step apart."""
    loads = frames.recording.parameters
    if frame.step - last.step != 1 or loads["forces"] or loads["springs"] or not frames.exact or frames.held:
        return
    if not np.array_equal(last.identities, frame.identities):
        return
    given = np.zeros_like(frame.velocities)
    impulse = np.einsum("ki,kij->kj", frame.contacts.impulse, frame.contacts.frame)
    a, b = _rows_of(frame, frame.contacts.bodies).T
    np.add.at(given, a, -impulse)
    np.add.at(given, b, impulse)
    free = frame.kinds == FREE
    steady = isinstance(loads["gravity"], list)
    if not steady or not free.any():
        return
    change = frame.masses[:, None] * (frame.velocities - last.velocities - frames.h * frame.gravity) - given
    size = np.abs(given).max(initial=0.0) + (frame.masses * frames.h).max() * np.linalg.norm(frame.gravity)
    size += (frame.masses * np.linalg.norm(frame.velocities, axis=1))[free].max()
    out.append((k, float(np.abs(change[free]).max() / size) if size > 0 else 0.0))


# ---- two files -------------------------------------------------------------------------------------------------------


class Difference(NamedTuple):
    """Where two runs first differ; ``step`` -1 where they have no step in common or differ in what they are."""

    step: int
    quantity: str
    body: int  # number of a body, -1 where it is none
    size: float
    words: str


BODIES = ("positions", "rotations", "velocities", "spins")
LOGGED = ("contacts", "iterations", "residual", "penetration", "kinetic", "potential", "force_work", "drive_work",
          "normal_work", "tangential_work", "rolling_work")  # fmt: skip


def compare(one, two) -> Difference | None:
    """The first difference of two recordings, bit by bit: of the log step by step, then of the frames both have.

    None where there is none. Times that the computer took are not compared.
    """
    for what, x, y in (
        ("dimension", one.parameters["dimension"], two.parameters["dimension"]),
        ("time_step", one.parameters["options"]["time_step"], two.parameters["options"]["time_step"]),
    ):
        if x != y:
            return Difference(-1, what, -1, abs(x - y), f"{what} is {x:g} and {y:g}")
    found = [difference for difference in (_in_logs(one, two), _in_frames(one, two)) if difference is not None]
    if found:
        return min(found, key=lambda difference: difference.step)  # a frame before the log where both: more is said
    if one.steps != two.steps or len(one) != len(two):
        words = (
            f"as long as both go they are the same; {one.steps} and {two.steps} steps, {len(one)} and {len(two)} frames"
        )
        return Difference(-1, "length", -1, float(abs(one.steps - two.steps)), words)
    return None


def _in_logs(one, two) -> Difference | None:
    count = min(len(one.log["time"]), len(two.log["time"]))
    if count == 0 or len(one.log["time"]) != one.steps or len(two.log["time"]) != two.steps:
        return None
    first, logs = None, (one.log, two.log)
    for name in LOGGED:
        x, y = (log[name][:count] for log in logs)
        differ = np.flatnonzero(~((x == y) | (np.isnan(x) & np.isnan(y))))
        if len(differ) and (first is None or differ[0] < first[0]):
            first = int(differ[0]), name, float(abs(x[differ[0]] - y[differ[0]])), x[differ[0]], y[differ[0]]
    if first is None:
        return None
    row, name, size, x, y = first
    words = f"{name} of the log is {x:.17g} and {y:.17g} after step {row + 1} (t = {logs[0]['time'][row]:.6g})"
    return Difference(row + 1, name, -1, size, words)


def _in_frames(one, two) -> Difference | None:
    steps, rows, others = np.intersect1d(one.frame_steps, two.frame_steps, return_indices=True)
    if not len(steps):
        return Difference(-1, "frames", -1, np.inf, "they have no frame of the same step")
    for step, i, j in zip(steps, rows, others, strict=True):
        if one.fingerprints(i) != two.fingerprints(j):
            return _in_frame(int(step), one[i], two[j])
    return None


def _in_frame(step: int, x, y) -> Difference:
    at = f"after step {step} (t = {x.time:.6g})"
    if not np.array_equal(x.identities, y.identities):
        number = int(np.setxor1d(x.identities, y.identities)[0])
        return Difference(step, "bodies", number, 1.0, f"body {number} is in one of them only {at}")
    for name in BODIES:
        u, v = (np.reshape(getattr(frame, name), (len(x.identities), -1)) for frame in (x, y))
        off = np.abs(u - v).max(axis=1)
        if off.any():
            row = int(np.argmax(off))
            number, many = int(x.identities[row]), int(np.count_nonzero(off))
            words = f"{name} differ {at}: most for body {number}, by {off[row]:.3g}; {many} of {len(off)} bodies differ"
            return Difference(step, name, number, float(off[row]), words)
    a, b = x.contacts, y.contacts
    if not np.array_equal(a.bodies, b.bodies):
        words = f"contacts differ {at}: {len(a.gap)} and {len(b.gap)}, or between other bodies"
        return Difference(step, "contacts", -1, float(abs(len(a.gap) - len(b.gap))), words)
    for name in ("impulse", "gap", "point", "normal", "moment", "status"):
        u, v = (np.reshape(getattr(c, name), (len(a.gap), -1)).astype(float) for c in (a, b))
        off = np.abs(u - v).max(axis=1)
        if off.any():
            row = int(np.argmax(off))
            first, second = (int(n) for n in a.bodies[row])
            words = f"{name} of contacts differs {at}: most between bodies {first} and {second}, by {off[row]:.3g}"
            return Difference(step, name, first, float(off[row]), words)
    return Difference(step, "bits", -1, 0.0, f"they differ {at} in bits that change no number (-0 and 0)")
