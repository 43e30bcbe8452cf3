"""The house rules: layers, a light import, a silent library, documentation that runs."""

import ast
import doctest
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import contactdynamics as cd

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "contactdynamics"

# Rooms from the lowest to the highest; a module imports only from lower ones, and from its own room.
LAYERS = [
    {"_lean", "_ahead"},
    {"display", "errors", "_version", "_jit"},
    {"state", "progress", "signatures", "quaternions"},
    {"problem"},
    {"systems", "scenes"},
    {"files"},
    {"rigid", "analysis"},
    {"plotting", "compas"},
    {"views"},
    {"experiments"},
    {"bench", "studies"},
    {"cli"},
    {"__main__"},
]
# The same inside the rooms that have stairs of their own; those of one step do not know each other.
INSIDE = {
    "problem": [
        {"laws", "frames", "form", "factor", "cones"}, {"residual", "graphs", "feasible"},
        {"dense", "sweeps", "interior", "newton"}, {"second"}, {"methods"}, {"solving"}, {"explore"},
    ],
    "systems": [
        {"system", "elastic"}, {"accelerations", "generalised", "penalty", "sets"}, {"events", "schemes", "sweeping"},
        {"motion"},
    ],
    "scenes": [
        {"shapes.unions", "shapes.meshes", "hooks", "loads", "pavement", "resting", "tables",
         "materials"},
        {"shapes.balls", "outlets", "cell", "pressure", "frames"},
        {"shapes.polygons", "shapes.hulls", "sieves"}, {"shapes.polyhedra"},
        {"shapes.clusters", "shapes.convex_parts", "filling"},
        {"blocks", "masonry", "inputs", "making"}, {"compas"},
        {"scene"},
        {"buildings"},
        {"packings"},
    ],
    "files": [
        {"soundness", "writing", "tables", "holding"}, {"layout", "fclib"}, {"hdf5", "writer", "reading"},
        {"archive", "recorders", "resume", "siconos"}, {"problems"},
    ],
    "rigid": [
        {"pages"},
        {"fetch", "fours", "sums"},
        {"crew", "growing"},
        {"interrupts", "step", "space", "threads", "search.contract", "search.touches", "search.laws",
         "search.solids", "search.pairs"},
        {"motion", "neighbours", "ranks.world", "search.outlines", "search.axes", "search.ghosts",
         "equations.contract", "equations.levers", "equations.local", "equations.diagonal_rows",
         "equations.planar_rows", "equations.spatial_rows"},
        {"entries", "advance", "order"},
        {"search.left_out", "search.recovery", "search.cutting", "solvers", "assembly", "together", "ledger",
         "roster", "cell", "equations.held", "equations.joints", "ranks.domains", "ranks.meeting", "ranks.some"},
        {"equations.diagonal_sweep", "equations.diagonal_measure", "equations.diagonal_books",
         "equations.diagonal_fill", "equations.planar_sweep", "equations.spatial_sweep",
         "equations.full_works", "equations.grouped", "search.ball_contacts", "ranks.portions", "ranks.apart"},
        {"gains", "restraint", "search.balls", "search.meeting", "equations.diagonal", "equations.full",
         "equations.angular", "ranks.division", "loading", "watch", "options"},
        {"search.touching", "equations.border", "equations.planar", "equations.spatial", "equations.cellular",
         "ranks.groups"},
        {"search.polygons", "search.polyhedra"},
        {"kinds", "step_solver", "ranks.team"},
        {"contact_set"},
        {"questions", "hardest", "ranks"},
        {"access", "reports"},
        {"simulation"},
    ],
}  # fmt: skip
# Methods that draw import the drawing when they are called.
EXCEPTIONS = {("systems", "plotting"), ("rigid", "plotting"), ("problem", "plotting"), ("scenes", "plotting"),
              ("files", "plotting"), ("state", "plotting"),
              ("files", "views"), ("rigid", "views")}  # fmt: skip
# Who may import what when it is loaded; the rest only inside functions.
HEAVY = {
    "numba": {"_lean", "_ahead", "_jit", "problem", "rigid"},
    "matplotlib": {"plotting", "experiments"},
    "h5py": {"files"},
    "scipy": {"experiments", "bench", "systems"},
    "rich": set(),
    "click": {"cli"},
}


def sources():
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path):
    """The dotted name of a module in the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def room(path):
    """The module or sub-package that a file belongs to."""
    return name_of(path).split(".")[0]


NAMES = {name_of(path) for path in sources()}


@cache
def tree_of(path):
    return ast.parse(path.read_text())


@cache
def imports(path):
    """(module imported from, whether inside a function) for every import of the package in a file."""
    return list(_imports(path))


def _imports(path):
    tree = tree_of(path)
    parent = path.relative_to(PACKAGE).parent.parts
    inside = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = [*parent[: len(parent) - node.level + 1], *(node.module or "").split(".")]
            elif (node.module or "").split(".")[0] == "contactdynamics":
                base = node.module.split(".")[1:]
            else:
                continue
            for alias in node.names:
                name = ".".join(part for part in [*base, alias.name] if part)
                while name and name not in NAMES:
                    name = name.rpartition(".")[0]
                if name:
                    yield name, node in inside
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("contactdynamics."):
                    yield alias.name.removeprefix("contactdynamics."), node in inside


def layer(name, layers):
    for height, names in enumerate(layers):
        if name in names:
            return height
    raise AssertionError(f"{name} has no layer: give it one in {Path(__file__).name}")


@pytest.mark.parametrize("path", [p for p in sources() if room(p) != "__init__"], ids=name_of)
def test_imports_point_downwards(path):
    here, _, below = name_of(path).partition(".")
    for name, inside in imports(path):
        there, _, part = name.partition(".")
        if there == here:
            if here in INSIDE and below and part:
                stairs = INSIDE[here]
                assert layer(part, stairs) < layer(below, stairs), f"{here}: {below} imports {part}"
        elif (here, there) in EXCEPTIONS:
            assert inside, f"{here} may import {there} only inside a function"
        else:
            assert layer(there, LAYERS) < layer(here, LAYERS), f"{name_of(path)} imports {name}"


def test_no_two_modules_name_each_other():
    # Not even inside functions: what draws or shows is named by those below, and names them not.
    named = {name_of(path): {name for name, _ in imports(path)} for path in sources() if path.name != "__init__.py"}
    pairs = {tuple(sorted((one, two))) for one in named for two in named[one] if one in named.get(two, ())}
    assert not {pair for pair in pairs if pair[0] != pair[1]}


def test_the_layer_test_sees_imports():
    # Guards the test above: known imports of known files are found, also from one sub-package to another.
    found = dict(imports(PACKAGE / "systems" / "motion.py"))
    assert found["systems.schemes"] is False and found["plotting"] is True
    assert "rigid.simulation" in dict(imports(PACKAGE / "experiments" / "runner.py"))
    assert {"search.balls", "equations.planar", "contact_set"} <= set().union(*INSIDE["rigid"])
    assert "rigid.search.pairs" in dict(imports(PACKAGE / "rigid" / "equations" / "full.py"))


@pytest.mark.parametrize("path", sources(), ids=lambda p: p.stem)
def test_heavy_libraries_are_loaded_late(path):
    for node in tree_of(path).body:  # what runs when the module is loaded
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
    for node in ast.walk(tree_of(path)):
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
    found = {
        test.name.rsplit(".", 1)[1]
        for test in docstring_tests(importlib.import_module("contactdynamics.systems.system"))
    }
    assert {"System", "derivative"} <= found


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
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
    for command, rest in re.findall(r"^ *(?:\.venv/bin/)?cdyn ([a-z]+)(.*)$", text, flags=re.MULTILINE):
        assert command in commands.commands, f"{page.name} shows the command `cdyn {command}`"
        known = {
            flag for option in commands.commands[command].params for flag in [*option.opts, *option.secondary_opts]
        }
        for flag in re.findall(r"(?<=\s)--[a-z-]+", rest.partition("#")[0]):
            assert flag in known, f"{page.name} gives `cdyn {command}` the option {flag}"
    for name in re.findall(r"cdyn (?:run|options) ([a-z0-9-]+)\b(?!\.py)", text):
        assert name in runner.names(), f"{page.name} names the experiment {name}"
    own = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    linked = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text) + re.findall(r'(?:href|src)="([^"#:]+)"', own)
    for target in linked:
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_each_page_is_found_from_the_index():
    seen, open_ = set(), [ROOT / "docs" / "index.md"]
    while open_:
        page = open_.pop()
        if page not in seen:
            seen.add(page)
            links = re.findall(r"\]\(([^)#:\s]+\.md)(?:#[^)]*)?\)", page.read_text())
            open_ += [(page.parent / link).resolve() for link in links]
    assert set((ROOT / "docs").rglob("*.md")) <= seen
