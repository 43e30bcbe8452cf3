"""Write the list of kernels that scenes need, `src/contactdynamics/kernels.txt`: see `contactdynamics._ahead`.

    python tools/kernels.py [--check]

A small scene of each sort is run in a process of its own; each kernel that Python calls is noted with the types of its
arguments when it is first called. With ``--check`` nothing is written, and lines that differ end in exit code 1.
"""

import difflib
import os
import subprocess
import sys

from contactdynamics import _ahead

NOTE = """
from contactdynamics import _ahead, _jit
compile, noted = _jit._Parts.compile, []
def noting(self, signature):
    if _jit.COMPILATION.depth == 0:
        f = self.dispatcher.py_func
        name = f"{f.__module__}.{f.__qualname__}".removeprefix("contactdynamics.")
        noted.append(f"  {name} {' '.join(map(_ahead.write, getattr(signature, 'args', signature)))}")
    return compile(self, signature)
_jit._Parts.compile = noting
import contactdynamics as cd
"""
SCENES = {
    "balls": """
scene = cd.Scene(gravity=(0, -9.81))
scene.material("m", density=600)
scene.contact("m", "m", friction=0.4)
scene.add(cd.HalfPlane(normal=(0.2, 1)), material="m", fixed=True)
for k in range(6):
    scene.add(cd.Disk(radius=0.1 + 0.01 * k), material="m", position=(0.02 * k, 0.3 + 0.3 * k))
""",
    "polygons": """
scene = cd.Scene(gravity=(0, -9.81))
scene.material("m", density=600)
scene.contact("m", "m", friction=0.4)
scene.add(cd.Rectangle(4.0, 1.0), material="m", position=(0, -0.5), fixed=True)
for k in range(4):
    scene.add(cd.Rectangle(0.4, 0.2), material="m", position=(0.1 * k, 0.1 + 0.25 * k))
""",
    "polyhedra": """
scene = cd.Scene(gravity=(0, 0, -9.81))
scene.material("m", density=600)
scene.contact("m", "m", friction=0.4)
scene.add(cd.Box((4.0, 4.0, 1.0)), material="m", position=(0, 0, -0.5), fixed=True)
for k in range(4):
    scene.add(cd.Box((0.4, 0.3, 0.2)), material="m", position=(0.1 * k, 0, 0.1 + 0.25 * k))
""",
}
RUN = """
cd.Simulation(scene, time_step=1e-3).run(until=0.4)
print("\\n".join(dict.fromkeys(noted)))
"""


def found() -> str:
    """The list as it should be."""
    out, alone = [], os.environ | {_ahead.SWITCH: "0"}
    for sort, scene in SCENES.items():
        done = subprocess.run([sys.executable, "-c", NOTE + scene + RUN], env=alone, stdout=subprocess.PIPE, text=True,
                              check=True)  # fmt: skip
        out += [sort, *done.stdout.splitlines()]
    return "\n".join(out) + "\n"


def main() -> int:
    """Write the list, or compare it."""
    now, path = found(), _ahead.LIST
    if "--check" not in sys.argv:
        path.write_text(now, encoding="utf-8")
        return 0
    said = path.read_text(encoding="utf-8") if path.is_file() else ""
    sys.stdout.writelines(difflib.unified_diff(said.splitlines(True), now.splitlines(True), "kernels.txt", "needed"))
    return int(now != said)


if __name__ == "__main__":
    sys.exit(main())
