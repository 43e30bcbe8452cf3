"""From a result file to files for others: all of them are written whole, or not at all."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from ..errors import InputError
from .packing import chosen

OURS = {"vtk": (".vtp", ".pvd"), "csv": (".csv",)}  # endings of what an earlier export left in a folder


@contextlib.contextmanager
def new_file(path: Path, *, force: bool):
    """A scratch path that becomes ``path`` when the block ends well; a file that is there needs ``force``."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")
    if path.exists() and not force:
        raise InputError(f"There is a file {path} already; give another name, or --force to replace it.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} for {path.name}; create it first.")
    handle, scratch = tempfile.mkstemp(prefix=".cdyn-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    try:
        yield Path(scratch)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(scratch, 0o666 & ~mask)
        os.replace(scratch, path)
    finally:
        Path(scratch).unlink(missing_ok=True)


@contextlib.contextmanager
def new_folder(folder: Path, endings: tuple, *, force: bool):
    """A scratch folder that becomes ``folder`` when the block ends well.

    A folder that has something in it needs ``force``, and may hold nothing but what an earlier export left there.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give the name of a folder.")
    inside = [path for path in folder.rglob("*") if not path.is_dir()] if folder.exists() else []
    if inside and not force:
        raise InputError(f"The folder {folder} is not empty; give another one, or --force to replace what is in it.")
    strange = [path for path in inside if path.suffix not in endings]
    if strange:
        raise InputError(f"{folder} holds {strange[0].name}, which no export made; give another folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".cdyn-", dir=folder.parent))
    try:
        yield scratch
        scratch.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def export_vtk(recording, folder, *, every: int = 1, force: bool = False, advance=lambda: None) -> list[str]:
    """Write a run for ParaView into ``folder``: see `views.vtk`; returns the names of the series."""
    from . import vtk

    frames = chosen(recording, every)
    with new_folder(folder, OURS["vtk"], force=force) as scratch:
        return vtk.write(recording, scratch, frames, advance)


def export_html(recording, path, *, every: int = 1, force: bool = False, advance=lambda: None) -> int:
    """Write a run as one page that needs nothing else, into the file ``path``; returns its size in bytes."""
    from . import page

    pieces = page.Pieces(recording, chosen(recording, every))
    with new_file(path, force=force) as scratch:
        page.write(pieces, scratch, advance)
        return scratch.stat().st_size


def export_csv(recording, folder, *, every: int = 1, force: bool = False, advance=lambda: None) -> list[str]:
    """Write a run as tables into ``folder``: see `views.tables`; returns the names of the files."""
    from . import tables

    frames = chosen(recording, every)
    with new_folder(folder, OURS["csv"], force=force) as scratch:
        return tables.write_csv(recording, scratch, frames, advance)


def export_ovito(recording, path, *, every: int = 1, force: bool = False, advance=lambda: None) -> int:
    """Write the balls of a run as extended XYZ, which OVITO and ASE read, into the file ``path``.

    Returns how many free bodies of the last frame are no balls and left out.
    """
    from . import tables

    frames = chosen(recording, every)
    with new_file(path, force=force) as scratch:
        return tables.write_xyz(recording, scratch, frames, advance)
