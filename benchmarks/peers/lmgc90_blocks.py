"""LMGC90 on blocks: `python lmgc90_blocks.py JOB.json`, as `cdyn bench peers masonry` calls it (compas_lmgc90)."""

import sys
from importlib.metadata import version

import numpy as np
from blocks import serve
from compas_lmgc90.solver import Solver


class Lmgc90:
    """Moreau-Jean's scheme with the settings of the package; contacts are found once, at the start."""

    def __init__(self, job, blocks):
        self.solver = Solver(dt=job["step"], theta=job["options"]["theta"], density=job["density"])
        self.solver.geometry_from_v_f([{"vertices": b["corners"].tolist(), "faces": b["faces"]} for b in blocks])
        for k, block in enumerate(blocks):
            if block["fixed"]:
                self.solver.v_drvdof[k] = {dof: np.zeros([6]) for dof in range(1, 7)}
        self.solver.contact_law("IQS_CLB", job["friction"])
        self.solver.preprocess()
        self.places = np.array(self.solver.init_coor)

    def step(self):
        self.found = self.solver.lmgc90.compute_one_step()
        self.places = np.array(self.found.bodies)

    def positions(self):
        return self.places[:, :3]


serve(Lmgc90, sys.argv[1], f"compas_lmgc90 {version('compas_lmgc90')}")
