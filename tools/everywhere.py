"""The test suite on what one machine can imitate: other processors, the oldest versions allowed, other Pythons.

    python tools/everywhere.py [PLACE ...] [-- PYTEST OPTIONS]

All places are run, whatever fails; a line for each at the end. Exit code 0 if all passed or were skipped with a reason.
NumPy and SciPy choose the kernels of OpenBLAS by the processor (`OPENBLAS_CORETYPE`), Numba the instructions of ours
(`NUMBA_CPU_NAME`): other kernels and instructions round otherwise.
"""

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRATCH = ROOT / ".cache" / "everywhere"
GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}  # x86-64 as it began: no AVX, no fused products
PLACES = {
    "haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "skylakex": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "zen": {"OPENBLAS_CORETYPE": "Zen"},
    "prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "generic": GENERIC,
    "prescott-generic": {"OPENBLAS_CORETYPE": "Prescott", **GENERIC},  # both at once: what `.ci/run` asks for
    "oldest": {},
    **{f"python3.{minor}": {} for minor in (12, 13, 14)},  # with the newest versions of everything
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OLDEST = "python" + PROJECT["requires-python"].removeprefix(">=")
NEWER = {"coal"}  # asks for a newer NumPy than the oldest: its test is skipped there
PROBE = "import numpy as np, scipy.linalg as s; a = np.eye(300) + 1; np.linalg.solve(a, a @ a); s.eigh(a)"


class Skipped(Exception):
    """Why a place cannot be imitated here."""


def core(environment: dict) -> str:
    """Which kernels OpenBLAS takes in this environment, in its own words (Prescott is "Katmai" to some versions)."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE], env={**environment, "OPENBLAS_VERBOSE": "2"}, capture_output=True, text=True
    )
    if done.returncode < 0:
        raise Skipped("this processor lacks its instructions")
    found = re.findall(r"^Core: (\w+)", done.stdout + done.stderr, re.M)
    if done.returncode or not found:
        raise Skipped("NumPy works without OpenBLAS here")
    return " and ".join(sorted(set(found)))


def requirements() -> list[str]:
    """What pyproject.toml asks for, for the tests too: their newest versions."""
    return PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]


def oldest_requirements() -> list[str]:
    """The lower bounds in pyproject.toml as exact versions, those of the tests included."""
    bounds = [re.fullmatch(r"([\w-]+)>=([\d.]+)(; .+)?", line) for line in requirements()]
    return [bound.expand(r"\1==\2\3") for bound in bounds if bound[1] not in NEWER]


def installed(place: str, wanted: list[str]) -> str:
    """The Python of an environment of its own, made anew when what is ``wanted`` has changed."""
    name = place if place.startswith("python") else OLDEST
    found = shutil.which(name)
    if found is None or subprocess.run([found, "-c", ""], capture_output=True).returncode:
        raise Skipped(f"there is no {name} here")
    folder = SCRATCH / f"venv-{place}"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists() or ready.read_text() != "\n".join(wanted):
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([found, "-m", "venv", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *wanted], check=True)
        subprocess.run([*install, "--no-deps", "--editable", ROOT], check=True)
        ready.write_text("\n".join(wanted))
    return str(python)


def prepare(name: str, taken: dict) -> tuple[str, dict, str]:
    """Python, environment and a word on what is imitated; ``taken`` holds the kernels of the places before."""
    environment = {**os.environ, **PLACES[name]}
    own = name == "oldest" or name.startswith("python")
    if own:
        wanted = oldest_requirements() if name == "oldest" else requirements()
        python, told = installed(name, wanted), ", ".join(wanted[:3])
        environment["PATH"] = str(Path(python).parent) + os.pathsep + environment["PATH"]
    else:
        python, told = sys.executable, ""
    if "OPENBLAS_CORETYPE" in PLACES[name]:
        kernels = core(environment)
        told = f"OpenBLAS takes {kernels}"
        key = kernels, "NUMBA_CPU_NAME" in PLACES[name]
        if key in taken:
            raise Skipped(f"{told}, as in {taken[key]}")
        taken[key] = name
    if "NUMBA_CPU_NAME" in PLACES[name] or own:
        environment["CONTACTDYNAMICS_CACHE"] = str(SCRATCH / "kernels" / name)
    return python, environment, told


def suite(python: str, environment: dict, options: list[str]) -> tuple[bool, str]:
    """Run pytest, show what it says, and keep its last line."""
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", *options]
    last = ""
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return run.returncode == 0, last


def main(arguments: list[str]) -> int:
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    names, options = arguments[:cut] or list(PLACES), arguments[cut + 1 :]
    unknown = [name for name in names if name not in PLACES]
    if unknown:
        print(f"Unknown: {', '.join(unknown)}; the places are {', '.join(PLACES)}.", file=sys.stderr)
        return 2
    lines, failed, taken = [], 0, {}
    for name in names:
        began = time.perf_counter()
        try:
            python, environment, told = prepare(name, taken)
            print(f"\n== {name} {told}", flush=True)
            passed, last = suite(python, environment, options)
            failed += not passed
            state = "passed" if passed else "FAILED"
        except Skipped as reason:
            state, last, told = "skipped", str(reason), ""
        except subprocess.CalledProcessError as error:
            failed, state, last, told = failed + 1, "FAILED", f"the set-up: {error}", ""
        words = "; ".join(word for word in (told, last) if word)
        lines.append(f"{name:17} {state:8} {time.perf_counter() - began:6.0f} s  {words}")
    print("\n" + "\n".join(lines), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
