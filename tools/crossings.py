"""How often one step of six balls goes from one file of the package to another: ``python tools/crossings.py``.

Counted are calls of Python functions whose caller stands in another file; kernels are machine code and do not count.
"""

import sys
from collections import Counter
from pathlib import Path

import contactdynamics as cd

PACKAGE = Path(cd.__file__).parent
WARM = 30  # steps before: by then kernels are compiled, and called as in any later step


def six_balls() -> cd.Simulation:
    """A leaning tower of six disks on the ground."""
    scene = cd.Scene(gravity=(0, -9.81))
    scene.material("m", density=1000.0)
    scene.contact("m", "m", friction=0.4)
    scene.add(cd.HalfPlane(normal=(0, 1)), material="m", fixed=True)
    for k in range(6):
        scene.add(cd.Disk(0.1), material="m", position=(0.01 * k, 0.1 + 0.2 * k))
    return cd.Simulation(scene, time_step=1e-3)


def crossings(function) -> Counter:
    """(caller, callee), each a file and a name, with the number of calls while ``function()`` runs."""
    found = Counter()

    def place(frame):
        path = Path(frame.f_code.co_filename)
        inside = path.is_relative_to(PACKAGE)
        return (path.relative_to(PACKAGE).as_posix(), frame.f_code.co_name) if inside else (None, "")

    def seen(frame, event, _):
        if event == "call" and frame.f_back is not None:
            caller, callee = place(frame.f_back), place(frame)
            if caller[0] and callee[0] and caller[0] != callee[0]:
                found[caller, callee] += 1

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        function()
    finally:
        sys.setprofile(before)
    return found


def files(found: Counter) -> set[str]:
    """The files that take part."""
    return {file for pair in found for file, _ in pair}


def main() -> None:
    """Print the pairs, most frequent first, and their numbers."""
    sim = six_balls()
    for _ in range(WARM):
        sim.step()
    found = crossings(sim.step)
    for (caller, callee), count in found.most_common():
        print(f"{count:4} {':'.join(caller)} -> {':'.join(callee)}")
    print(f"{found.total()} calls from file to file, {len(files(found))} files")


if __name__ == "__main__":
    main()
