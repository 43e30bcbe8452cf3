"""MuJoCo on blocks: `python mujoco_blocks.py JOB.json`, as `cdyn bench peers masonry` calls it."""

import sys

import mujoco
from blocks import box, middle, serve


def row(values):
    return " ".join(f"{v:.17g}" for v in values)


class Mujoco:
    """Soft contacts with elliptic cones; boxes are boxes, other blocks meshes."""

    def __init__(self, job, blocks):
        o, assets, bodies = job["options"], [], []
        for k, block in enumerate(blocks):
            found = box(block["corners"])
            if found is not None:
                place, shape = found[0], f'type="box" size="{row(found[1])}"'
            else:
                place = middle(block)
                assets.append(f'<mesh name="m{k}" vertex="{row((block["corners"] - place).ravel())}"/>')
                shape = f'type="mesh" mesh="m{k}"'
            free = "" if block["fixed"] else "<freejoint/>"
            geom = f'<geom {shape} density="{job["density"]}" friction="{job["friction"]} 0 0" condim="3"/>'
            bodies.append(f'<body pos="{row(place)}">{free}{geom}</body>')
        solver = (
            f'timestep="{job["step"]}" gravity="0 0 {-job["gravity"]}" cone="elliptic" iterations="{o["iterations"]}"'
        )
        text = (
            f'<mujoco><size memory="1G"/><option {solver}/>'
            f'<default><geom solref="{o["solref"]}" solimp="{o["solimp"]}"/></default>'
            f"<asset>{''.join(assets)}</asset><worldbody>{''.join(bodies)}</worldbody></mujoco>"
        )
        self.model = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)

    def step(self):
        mujoco.mj_step(self.model, self.data)

    def positions(self):
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        return self.data.xipos[1:].copy()


serve(Mujoco, sys.argv[1], f"mujoco {mujoco.__version__}")
