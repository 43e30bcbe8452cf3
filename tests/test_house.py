"""The house rules: layers, a light import, a silent library, documentation that runs."""

import ast
import doctest
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import contactdynamics as cd

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "contactdynamics"

# From the lowest to the highest; a module or sub-package imports only from lower layers (and from its own package).
LAYERS = [
    {"display", "errors", "_version"},
    {"_jit", "state", "progress", "signatures", "unions", "writing", "interrupts"},
    {"laws", "frames", "quaternions", "shapes", "loads", "team", "elastic", "circles", "hooks", "soundness"},
    {"materials", "solvers", "system", "detection", "rigid", "polygons", "outlets"},
    {"generalised"},
    {"contacts", "scene", "schemes", "sets", "instants", "narrow", "masonry"},
    {
        "gauss_seidel",
        "storage",
        "packings",
        "motion",
        "analysis",
        "sweeping",
        "assembly",
        "explore",
        "events",
        "penalty",
    },
    {"recorders", "archive", "iterations", "recovery", "flat", "activity"},
    {"touching", "encounters", "ledger", "watch"},
    {"simulation"},
    {"plotting"},
    {"experiments"},
    {"bench"},
    {"cli"},
]
# Methods that draw import the drawing when they are called.
EXCEPTIONS = {
    ("motion", "plotting"),
    ("simulation", "plotting"),
    ("explore", "plotting"),
    ("scene", "plotting"),
    ("storage", "plotting"),
}
# Who may import what when it is loaded; the rest only inside functions.
HEAVY = {
    "numba": {"_jit", "team"},
    "matplotlib": {"plotting", "experiments"},
    "h5py": {"storage", "archive", "writing"},
    "scipy": {"experiments", "bench", "elastic", "events", "penalty"},
    "rich": set(),
    "click": {"cli"},
}


def sources():
    return sorted(PACKAGE.rglob("*.py"))


def room(path):
    """The module or sub-package that a file belongs to."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(path):
    """(room imported from, whether inside a function) for every import of the package in a file."""
    tree = ast.parse(path.read_text())
    parent = path.relative_to(PACKAGE).parent.parts
    inside = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*parent[: len(parent) - node.level + 1], *(node.module or "").split(".")]
            base = [part for part in base if part]
            for alias in node.names:
                yield (base[0] if base else alias.name), node in inside
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "contactdynamics":
            for alias in node.names:
                yield [*node.module.split("."), alias.name][1], node in inside
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("contactdynamics."):
                    yield alias.name.split(".")[1], node in inside


def layer(name):
    for height, names in enumerate(LAYERS):
        if name in names:
            return height
    raise AssertionError(f"{name} has no layer: give it one in LAYERS of {Path(__file__).name}")


@pytest.mark.parametrize("path", [p for p in sources() if room(p) != "__init__"], ids=lambda p: p.stem)
def test_imports_point_downwards(path):
    here = room(path)
    for there, inside in imports(path):
        if there == here or there == "__init__":
            continue
        if (here, there) in EXCEPTIONS:
            assert inside, f"{here} may import {there} only inside a function"
            continue
        assert layer(there) < layer(here), f"{here} (layer {layer(here)}) imports {there} (layer {layer(there)})"


def test_the_layer_test_sees_imports():
    # Guards the test above: known imports of known files are found.
    found = dict(imports(PACKAGE / "motion.py"))
    assert found["schemes"] is False and found["plotting"] is True
    assert "simulation" in dict(imports(PACKAGE / "experiments" / "runner.py"))
    assert {"analysis", "archive", "storage"} <= set(dict(imports(PACKAGE / "experiments" / "pile.py")))


@pytest.mark.parametrize("path", sources(), ids=lambda p: p.stem)
def test_heavy_libraries_are_loaded_late(path):
    tree = ast.parse(path.read_text())
    for node in tree.body:  # what runs when the module is loaded
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        for name in names:
            heavy = name.split(".")[0]
            assert room(path) in HEAVY.get(heavy, {room(path)}), f"{path.name} loads {heavy}; import it in a function"


@pytest.mark.parametrize("path", [p for p in sources() if room(p) != "cli"], ids=lambda p: p.stem)
def test_the_library_never_prints_or_exits(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("print", "sys.exit", "exit", "quit", "os._exit"), f"line {node.lineno}: {called}"


LIGHT = """
import sys, time
begin = time.perf_counter()
import contactdynamics
seconds = time.perf_counter() - begin
heavy = [m for m in ("numba", "matplotlib", "h5py", "scipy", "numpy", "rich", "click") if m in sys.modules]
import json
print(json.dumps([seconds, heavy]))
"""


def test_import_is_light():
    runs = [json.loads(subprocess.check_output([sys.executable, "-c", LIGHT], text=True)) for _ in range(4)]
    assert all(heavy == [] for _, heavy in runs)
    assert min(seconds for seconds, _ in runs) < 0.5


def test_public_names():
    assert cd.__version__.count(".") == 2
    assert len(cd.__all__) == len(set(cd.__all__)) and set(cd.__all__) == set(dir(cd))
    for name in cd.__all__:
        assert getattr(cd, name) is not None
        assert name == "__version__" or getattr(cd, name).__doc__, f"{name} has no docstring"
    with pytest.raises(AttributeError, match=r"no attribute 'sistem'.*System"):
        _ = cd.sistem


# ---- documentation that runs -----------------------------------------------------------------------------------------


def modules():
    return sorted(m.name for m in pkgutil.walk_packages([str(PACKAGE)], "contactdynamics."))


def docstring_tests(module):
    """The examples of a module; kernels are compiled objects, which doctest does not look into by itself."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = finder.find(module, extraglobs={"__name__": module.__name__})
    for name, value in vars(module).items():
        function = getattr(value, "py_func", None)
        if function is not None and function.__module__ == module.__name__:
            found += finder.find(function, f"{module.__name__}.{name}", module=module, globs=dict(vars(module)))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", modules())
def test_docstring_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in docstring_tests(importlib.import_module(name)):
        runner.run(test)
    plt.close("all")
    assert runner.failures == 0, "see the output above"


def test_docstring_examples_are_found():
    found = {test.name.rsplit(".", 1)[1] for test in docstring_tests(importlib.import_module("contactdynamics.system"))}
    assert {"System", "derivative"} <= found


PAGES = sorted(p for p in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_of_the_documentation_runs(page, tmp_path, monkeypatch):
    # The blocks of a page are one program, as a reader would type them.
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    names = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block.group(1), str(page), "exec"), names)
    plt.close("all")


def test_the_documentation_has_code():
    assert BLOCK.search((ROOT / "README.md").read_text())
    assert sum(len(BLOCK.findall(page.read_text())) for page in PAGES) >= 2


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_and_links_of_the_documentation_exist(page):
    from contactdynamics.cli import commands
    from contactdynamics.experiments import runner

    text = page.read_text()
    for command in re.findall(r"(?:`|bin/)cdyn ([a-z]+)", text):
        assert command in commands.commands, f"{page.name} names the command `cdyn {command}`"
    for name in re.findall(r"cdyn (?:run|options) ([a-z0-9-]+)\b(?!\.py)", text):
        assert name in runner.names(), f"{page.name} names the experiment {name}"
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
