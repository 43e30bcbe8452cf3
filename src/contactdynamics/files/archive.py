"""Small files from large ones: some frames of a run in single precision, compressed, with a shortened log.

The layout is that of a result file (`layout`), so that `open` and every analysis read it; a run cannot go on from it.
"""

import json
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..state import FIXED, FREE
from . import hdf5, layout
from .writing import replacing

LOG_ROWS = 2000  # about as many rows of the log are left
LARGEST = ("residual", "penetration", "relative_penetration")
MEANS = ("iterations", *layout.STAGES)


def export_frames(source, target, times, *, full=None, note: dict | None = None, overwrite: bool = False) -> None:
    """Write the frames of ``source`` nearest to ``times`` into the new file ``target``.

    Frames nearest to the times ``full`` (all, unless given) keep everything; the others keep only positions, the
    orientation of bodies that are no balls, and the contacts with fixed bodies. Reals become float32. Rows of the log
    are means (sweeps, seconds), maxima (residual, overlaps) or last values over blocks of steps. ``note`` is added to
    what the file says about its run. A ``target`` that is there already is refused, unless with ``overwrite``.
    """
    target = Path(target)
    if target.exists() and (not overwrite or target.samefile(source)):
        raise InputError(f"There is a file {target} already; give another name, or overwrite=True to replace it.")
    with hdf5.open(source) as recording:
        if not len(times):
            raise InputError("export_frames got no times; give those of the frames to keep.")
        chosen = sorted({_nearest(recording, t) for t in times})
        whole = {_nearest(recording, t) for t in (times if full is None else full)}
        with replacing(target, keep=False) as file:
            said = dict(recording.parameters)
            said["about"] = said["about"] | (note or {})
            file.attrs.update({"format": layout.FORMAT, "layout": layout.LAYOUT, "version": recording.version})
            file.attrs["parameters"] = np.bytes_(json.dumps(said))
            kept = _write_frames(file, recording, chosen, whole)
            _write_bodies(file, recording, kept)
            _write_log(file, recording)


def _nearest(recording, time) -> int:
    return int(np.argmin(np.abs(recording.times - time)))


def _put(group, name, array) -> None:
    """One compressed dataset in the shortest type that serves."""
    array = np.asarray(array)
    if array.dtype.kind == "f":
        array = array.astype(np.float32)
    elif array.dtype.kind in "iu" and array.dtype.itemsize > 4:
        array = array.astype(np.int32)
    packed = {"compression": "gzip", "compression_opts": 9, "shuffle": True} if array.size else {}
    group.create_dataset(name, data=array, **packed)


def _light(bodies: dict, contacts: dict, recording) -> tuple[dict, dict]:
    """Positions, contacts with fixed bodies, and the orientation of what is no ball: its balls and corners turn."""
    still = {name: np.zeros_like(bodies[name]) for name in ("velocity", "scaled_spin", "orientation")}
    balls, *others = recording._parts.values()
    off = balls.body[(balls.centre != 0).any(axis=1)]
    shaped = np.isin(bodies["identity"], np.concatenate([off, *(table.body for table in others)]))
    still["orientation"][:, 0] = 1.0
    still["orientation"][shaped] = bodies["orientation"][shaped]
    kinds = recording._static["kind"][np.searchsorted(recording._static["identity"], contacts["bodies"])]
    ground = (kinds == FIXED).any(axis=1) & (kinds == FREE).any(axis=1)
    return bodies | still, {name: array[ground] for name, array in contacts.items()}


def _write_frames(file, recording, chosen, whole) -> np.ndarray:
    """The chosen frames; returns the numbers of the bodies that occur in them."""
    rows, bodies, contacts = [], [], []
    starts = [0, 0]
    for k in chosen:
        body, contact = recording._rows(k)
        if k not in whole:
            body, contact = _light(body, contact, recording)
        step = int(recording.frame_steps[k])
        rows.append((recording.times[k], step, starts[0], len(body["identity"]), starts[1], len(contact["gap"])))
        starts = [starts[0] + rows[-1][3], starts[1] + rows[-1][5]]
        bodies.append(body)
        contacts.append(contact)
    index = file.create_group("frames")
    for name, column in zip(layout.INDEX, zip(*rows, strict=True), strict=True):
        index.create_dataset(name, data=np.array(column))
    for name in ("gravity", "cell"):
        if name in recording.file["frames"]:
            index.create_dataset(name, data=recording.file[f"frames/{name}"][:][chosen])
    for name, frames in (("frame_bodies", bodies), ("frame_contacts", contacts)):
        group = file.create_group(name)
        for key in frames[0]:
            _put(group, key, np.concatenate([frame[key] for frame in frames]))
    return np.unique(np.concatenate([frame["identity"] for frame in bodies]))


def _write_bodies(file, recording, kept) -> None:
    """What does not change, of the bodies that occur."""
    group = file.create_group("bodies")
    rows = np.isin(recording._static["identity"], kept)
    for name in layout.STATIC:
        _put(group, name, recording._static[name][rows])
    for name, table in recording._parts.items():
        present = np.isin(table.body, kept)
        group = file.create_group(name)
        for key, array in zip(table._fields, table, strict=True):
            _put(group, key, array[present])


def _write_log(file, recording) -> None:
    log = recording.log
    rows = len(log["time"])
    if not rows:
        return
    edges = np.arange(0, rows, max(1, round(rows / LOG_ROWS)))
    ends = np.append(edges[1:], rows)
    group = file.create_group("log")
    group.attrs["steps"] = recording.steps
    for name, column in log.items():
        if name in MEANS:
            column = np.add.reduceat(column, edges) / (ends - edges)
        elif name in LARGEST:
            column = np.maximum.reduceat(column, edges)
        else:
            column = column[ends - 1]
        if name == "time":
            group.create_dataset(name, data=column, compression="gzip")
        else:
            _put(group, name, column)
