"""Materials and the table of material pairs.

The law of a contact belongs to a pair of materials. Where a pair was not stated, it is mixed from the two materials'
own coefficients, if both have them: friction, rolling, spinning, restitution and tangential restitution are geometric
means (tangential restitution: the smaller one), cohesion and tension the smaller one. A pair that was neither stated
nor can be mixed is an error when the scene is frozen: nothing is guessed. A pair of bodies may have a law of its own, a
joint, which goes before that of their materials.
"""

import math

import numpy as np

from ..errors import InputError, as_numbers, is_number, is_one_of
from ..problem.laws import Law

# Columns of the law table that the kernels read.
FRICTION_1, FRICTION_2, STATIC, RHO, TAU, ROLLING, SPINNING, COHESION, TENSION = range(9)
COLUMNS = 9
GEOMETRIC = ("friction", "restitution", "rolling", "spinning")
SMALLER = ("tangential_restitution", "cohesion", "tension")


class Materials:
    """Names, densities and pair laws of a scene."""

    def __init__(self):
        self.names: list[str] = []
        self.densities: list[float] = []
        self.own: list[dict] = []
        self.pairs: dict[tuple[int, int], Law] = {}
        self.axes: dict[tuple[int, int], np.ndarray] = {}
        self.special: list[Law] = []  # of joints
        self.joints: dict[tuple[int, int], int] = {}  # numbers of two bodies: place of their law among the special ones
        self.order: list[tuple[int, int]] = []  # of the laws in the table, (-1, k) special ones; only grows

    def add(self, name: str, density: float, own: dict) -> None:
        if not isinstance(name, str) or not name:
            raise InputError(f"A material's name is {name!r}; give a word.")
        if name in self.names:
            raise InputError(f"The material {name!r} is stated twice; change the second name.")
        if not (is_number(density) and density > 0):
            raise InputError(f"The material {name!r} has density={density!r}; give a positive number.")
        unknown = set(own) - set(GEOMETRIC) - set(SMALLER)
        if unknown:
            raise InputError(
                f"The material {name!r} has unknown options {', '.join(sorted(unknown))}; it may have "
                f"{', '.join(GEOMETRIC + SMALLER)}."
            )
        Law(**own)  # checks the values
        self.names.append(name)
        self.densities.append(float(density))
        self.own.append(own)

    def index(self, name: str) -> int:
        if not is_one_of(name, self.names):
            known = ", ".join(self.names) or "none yet"
            raise InputError(
                f"Unknown material {name!r} (known: {known}); state it with scene.material(name, density=...)."
            )
        return self.names.index(name)

    def set_pair(self, a: str, b: str, law: Law, axis) -> None:
        i, j = self.index(a), self.index(b)
        if callable(law.friction) or law.two_sided is not None:
            raise InputError(
                "Rigid-body scenes take a constant friction coefficient or anisotropic=(c1, c2); velocity-dependent "
                "and two-sided friction belong to finite-freedom systems."
            )
        self.pairs[min(i, j), max(i, j)] = law
        if law.anisotropic is not None:
            direction = np.zeros(3) if axis is None else as_numbers("axis", axis)
            if direction.shape != (3,) or not direction @ direction > 0:
                raise InputError(
                    f"The anisotropic pair {a}/{b} needs axis=(x, y, z), the direction of its first coefficient in the "
                    f"frame of the body made of {a}."
                )
            self.axes[min(i, j), max(i, j)] = np.append(direction, i)

    def set_joint(self, a: int, b: int, law: Law) -> None:
        """State the law between two bodies, by their numbers."""
        if callable(law.friction) or law.two_sided is not None or law.anisotropic is not None:
            raise InputError(
                "A joint takes a constant friction coefficient; state anisotropic friction by materials "
                "(scene.contact), velocity-dependent and two-sided friction in finite-freedom systems."
            )
        if law not in self.special:
            self.special.append(law)
        self.joints[min(a, b), max(a, b)] = self.special.index(law)

    def law(self, i: int, j: int) -> Law:
        """The law of materials i and j, stated or mixed; of a joint, the special law j, where i is -1."""
        if i < 0:
            return self.special[j]
        key = (min(i, j), max(i, j))
        if key in self.pairs:
            return self.pairs[key]
        a, b = self.own[i], self.own[j]
        if "friction" not in a or "friction" not in b:
            one, two = self.names[key[0]], self.names[key[1]]
            raise InputError(
                f"The contact of {one!r} with {two!r} is not stated; add scene.contact({one!r}, {two!r}, friction=...)."
            )
        mixed = {name: math.sqrt(a.get(name, 0.0) * b.get(name, 0.0)) for name in GEOMETRIC}
        mixed |= {name: min(a.get(name, 0.0), b.get(name, 0.0)) for name in SMALLER}
        return Law(**mixed)

    def table(self, used) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Law rows (L, COLUMNS), law index of each material pair (M, M), axes (L, 4) of anisotropic laws.

        ``used`` are the pairs of material indices that can meet; only these must be known.
        """
        stated = [*sorted(used | set(self.pairs)), *((-1, k) for k in range(len(self.special)))]
        self.order += [pair for pair in stated if pair not in self.order]
        m = len(self.names)
        index = np.full((m, m), -1, dtype=np.int64)
        rows, axes = [], []
        for i, j in self.order:
            law = self.law(i, j)
            c1, c2 = law.anisotropic or (law.friction, law.friction)
            static = law.friction if law.static_friction is None else law.static_friction
            if i >= 0:
                index[i, j] = index[j, i] = len(rows)
            rows.append([c1, c2, static, law.restitution, law.tangential_restitution, law.rolling, law.spinning,
                         law.cohesion, law.tension])  # fmt: skip
            axes.append(self.axes.get((i, j), np.zeros(4)))
        return np.array(rows).reshape(-1, COLUMNS), index, np.array(axes).reshape(-1, 4)

    @classmethod
    def from_file(cls, said: dict) -> "Materials":
        """The materials and laws that a file states in its parameters."""
        materials = cls()
        for material in said["materials"]:
            materials.add(material["name"], material["density"], material["own"])
        materials.special = [_read(law) for law in said.get("special", [])]
        materials.joints = {(a, b): k for a, b, k in said.get("joints", [])}
        for entry in said["pairs"]:
            materials.pairs[tuple(entry["pair"])] = _read(entry["law"])
            if entry["axis"]:
                materials.axes[tuple(entry["pair"])] = np.array(entry["axis"])
        materials.order = [tuple(pair) for pair in said["order"]]
        return materials

    def joint_table(self) -> np.ndarray:
        """(J, 3) numbers of the two bodies of each joint, the smaller first, and the place of its law; in order."""
        place = {k: n for n, (i, k) in enumerate(self.order) if i < 0}
        rows = [(a, b, place[k]) for (a, b), k in sorted(self.joints.items()) if k in place]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)

    def laws(self) -> tuple[tuple[Law, ...], np.ndarray, np.ndarray]:
        """The laws of the table in its order, the place of each pair of materials (M, M) or -1, the joints (J, 3)."""
        index = np.full((len(self.names), len(self.names)), -1, dtype=np.int64)
        for place, (i, j) in enumerate(self.order):
            if i >= 0:
                index[i, j] = index[j, i] = place
        return tuple(self.law(i, j) for i, j in self.order), index, self.joint_table()


def _read(law: dict) -> Law:
    """A law as a file states it."""
    return Law(**{name: tuple(value) if isinstance(value, list) else value for name, value in law.items()})
