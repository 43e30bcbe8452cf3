"""What acts before each step: functions in `Simulation.before_step`, and which of them a result file can hold.

Any function of the simulation serves. A `Hook` can be written into the file, by its numbers and never as code, so that
a resumed run goes on with it; all others are written by name, and asked back from the program that has them.
"""

from typing import ClassVar

from ..errors import InputError


class Hook:
    """A function of the simulation that a result file can hold; `packings.Pour` and `packings.Outlet` are such.

    A subclass says ``to_file()``, the keyword arguments that make it again (numbers, words, lists), and ``from_file``
    where its class does not take just these. What it learns during the run is ``memory()``, numbers too, which
    ``remember`` takes back. Subclasses are known by the name of their class once their module is loaded.
    """

    kinds: ClassVar[dict[str, type["Hook"]]] = {}

    def __init_subclass__(cls):
        Hook.kinds[cls.__name__] = cls

    def __call__(self, simulation) -> None:
        raise NotImplementedError

    def to_file(self) -> dict:
        """What `from_file` needs, as JSON knows it."""
        raise NotImplementedError

    @classmethod
    def from_file(cls, parameters: dict) -> "Hook":
        """The same hook again, with the memory of a new one."""
        return cls(**parameters)

    def memory(self) -> dict:
        """What was learnt since the start, as JSON knows it."""
        return {}

    def remember(self, memory: dict) -> None:
        """Take back what `memory` gave."""


OWN = "function "  # before the name of a user's function, where a file has a word


def name_of(function) -> str:
    """The name by which a user knows his function.

    >>> name_of(name_of), name_of(Hook())
    ('name_of', 'Hook')
    """
    return getattr(function, "__qualname__", type(function).__qualname__).split("<locals>.")[-1]


def written(functions) -> list[dict]:
    """The functions of `before_step` as JSON: hooks with their numbers, others by name."""
    return [
        {"kind": type(f).__name__, "parameters": f.to_file(), "memory": f.memory()}
        if isinstance(f, Hook)
        else {"kind": "function", "name": name_of(f)}
        for f in functions
    ]


def made(entries: list[dict], path) -> list[Hook]:
    """The hooks of a file; functions of the user's program are refused by name."""
    hooks = []
    for entry in entries:
        kind = entry["kind"]
        if kind not in Hook.kinds:
            name = entry.get("name", kind)
            raise InputError(
                f"{path} calls {name} before each step, which is no part of the package and in no file; go on from "
                f"the program that has it: append {name} to before_step of its simulation, then restore({str(path)!r})."
            )
        try:
            hooks.append(Hook.kinds[kind].from_file(entry["parameters"]))
            hooks[-1].remember(entry["memory"])
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise InputError(f"{path} is damaged: the {kind} in before_step cannot be made again ({error}).") from None
    return hooks


def recalled(functions, entries: list[dict]) -> str | None:
    """Give the hooks back what the file's ones had learnt; a sentence where there are others than in the file."""

    def names(all_of):
        return ", ".join(e.get("name", e["kind"]) for e in all_of) or "nothing"

    here = written(functions)
    for function, entry in zip(functions, entries, strict=False):
        if isinstance(function, Hook) and type(function).__name__ == entry["kind"]:
            function.remember(entry["memory"])
    if names(here) == names(entries):
        return None
    return (
        f"The run had {names(entries)} in before_step and goes on with {names(here)}; append what is missing to "
        "simulation.before_step, take out what is too much, or accept another motion."
    )
