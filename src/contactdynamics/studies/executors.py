"""Who makes the runs of a study: processes of this machine, a cluster of dask, MPI.

All have the face of `concurrent.futures`; any other object with `submit` may be given to `study`.
"""

import contextlib
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

from ..errors import InputError, is_whole

WAIT = 10.0  # s for a scheduler to answer


def check_workers(workers: int | None) -> None:
    """Refuse a number of processes that makes no sense."""
    if workers is not None and not is_whole(workers, 1):
        raise InputError(f"A study got workers={workers!r}; give a whole number from 1 on.")


def processes(workers: int | None) -> ProcessPoolExecutor:
    """``workers`` processes of this machine, as many as it has cores by default; begun afresh, not forked."""
    if workers is None:
        workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


@contextlib.contextmanager
def dask(address: str):
    """The workers of the dask scheduler at ``address``."""
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "--scheduler needs dask's distributed; install it by `pip install contactdynamics[study]`, or leave it out."
        ) from None
    try:
        client = Client(address, timeout=WAIT)
    except (OSError, ValueError) as error:
        raise InputError(
            f"No dask scheduler answers at {address} ({str(error) or type(error).__name__}); start one by `dask "
            "scheduler` and give the address that it prints."
        ) from None
    with client:
        yield client.get_executor(pure=False)


@contextlib.contextmanager
def mpi():
    """The other processes of `mpiexec -n N python -m mpi4py.futures -m contactdynamics study ...`."""
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPIPoolExecutor
    except (ImportError, RuntimeError) as error:
        raise InputError(
            f"--mpi needs mpi4py and an MPI ({error}); install them by `pip install contactdynamics[mpi]`, or leave it "
            "out."
        ) from None
    if MPI.COMM_WORLD.Get_size() == 1:
        raise InputError(
            "--mpi found one process; start it by `mpiexec -n 4 python -m mpi4py.futures -m contactdynamics study ...`."
        )
    with MPIPoolExecutor() as pool:
        yield pool
