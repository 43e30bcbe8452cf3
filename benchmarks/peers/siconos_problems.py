"""Siconos on a contact problem: `/usr/bin/python3 siconos_problems.py JOB.json`; the solver is NSGS, PROX or ADMM.

W is in sparse blocks. PROX and ADMM know three components only: a problem in 2D has a third one there, which nothing
moves.
"""

from importlib import metadata

import numpy as np
import siconos.numerics as sn
from problems import serve, timed

CALLS = {"NSGS": "fc3d_nsgs", "PROX": "fc3d_proximal", "ADMM": "fc3d_admm"}
MOST = 1_000_000  # iterations; the time is bounded from outside


def prepare(job, problem):
    plane = job["plane"] is not None and job["solver"] == "NSGS"
    data = sn.frictionContact_new_from_filename(job["plane"] if plane else job["text"])
    size, m = data.dimension * data.numberOfContacts, data.numberOfContacts
    call = sn.fc2d_driver if plane else getattr(sn, CALLS[job["solver"]])
    number = sn.SICONOS_FRICTION_2D_NSGS if plane else getattr(sn, f"SICONOS_FRICTION_3D_{job['solver']}")

    def solve(tolerance):
        options = sn.SolverOptions(number)
        options.dparam[sn.SICONOS_DPARAM_TOL], options.iparam[sn.SICONOS_IPARAM_MAX_ITER] = tolerance, MOST
        r, u = np.zeros(size), np.zeros(size)
        _, seconds = timed(call, data, r, u, options)
        found = r.reshape(m, -1)[:, : problem.d].ravel()
        return found, options.iparam[sn.SICONOS_IPARAM_ITER_DONE], seconds

    return solve


serve(prepare, metadata.version("siconos"))
