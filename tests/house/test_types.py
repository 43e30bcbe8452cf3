"""What editors and type checkers see agrees with what there is."""

import ast
import inspect
import tomllib
from pathlib import Path

import contactdynamics as cd
from contactdynamics import plotting, signatures
from contactdynamics.scenes import materials

PACKAGE = Path(cd.__file__).parent


def test_the_names_for_type_checkers_are_the_public_ones():
    (block,) = (node for node in ast.parse((PACKAGE / "__init__.py").read_text()).body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    seen = {}
    for node in block.body:
        for alias in node.names:
            assert alias.name == alias.asname  # "as" makes a name public for type checkers
            module = f"{node.module}.{alias.name}" if node.module else alias.name
            seen[alias.name] = (
                module if (PACKAGE / f"{module.replace('.', '/')}.py").is_file() else node.module or module
            )
    assert seen == cd._NAMES


def test_the_package_says_that_it_has_types():
    assert (PACKAGE / "py.typed").is_file()
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())
    assert "py.typed" in project["tool"]["setuptools"]["package-data"]["contactdynamics"]


def options_of(function, leave=()):
    """{name: whether it must be given} of the keyword-only arguments of a function."""
    arguments = inspect.signature(function).parameters.values()
    return {p.name: p.default is p.empty for p in arguments if p.kind is p.KEYWORD_ONLY and p.name not in leave}


def stated(kind):
    return {name: name in kind.__required_keys__ for name in kind.__annotations__}


def test_options_that_are_handed_on_are_those_of_the_receiver():
    assert stated(signatures.BodyOptions) == options_of(cd.Scene.add)
    assert stated(signatures.BodiesOptions) == options_of(cd.Scene.add_many)
    assert stated(signatures.ViewOptions) == options_of(plotting.plot_scene)
    assert stated(signatures.LawOptions) == options_of(cd.Law)
    assert signatures.LawOptions.__annotations__ == cd.Law.__annotations__
    assert set(stated(signatures.MaterialOptions)) == {*materials.GEOMETRIC, *materials.SMALLER}
    received = options_of(cd.Simulation.__init__, leave=("check",))  # a file has been checked
    assert stated(signatures.SimulationOptions) == dict.fromkeys(received, False)


def test_who_hands_options_on_says_which():
    for function in (cd.Simulation.add, cd.Simulation.add_many, cd.Simulation.from_file, cd.Simulation.plot,
                     cd.Scene.contact, cd.Scene.material):  # fmt: skip
        (last,) = (p for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_KEYWORD)
        assert "Options" in str(last.annotation), f"{function.__qualname__} does not say its options"
