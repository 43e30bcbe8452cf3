"""The command ``cdyn``: errors are one sentence on stderr with exit code 2, no traceback unless ``--debug``."""

import sys

import click

from ..errors import ConvergenceError, InputError, RankError, RunawayError
from ..rigid.interrupts import ended_by_sigterm
from . import experiments, problems, recordings  # noqa: F401  (each enters its commands)
from .common import commands


def main(arguments=None):
    """Entry point: turns every foreseen error into one sentence and an exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    try:
        with ended_by_sigterm():
            code = commands.main(args=arguments or ["--help"], prog_name="cdyn", standalone_mode=False)
    except click.ClickException as error:
        said = error.format_message()
        joint = " " if said.endswith("?") else "; "
        code = _fail(f"{said.rstrip('.')}{joint}`cdyn --help` shows what is possible.", debug)
    except (InputError, ConvergenceError, RankError, RunawayError) as error:
        code = _fail(str(error), debug)
    except MemoryError as error:
        code = _fail(f"There is not enough memory ({error}); ask for less: fewer bodies, steps or samples.", debug)
    except OSError as error:
        code = _fail(f"{error.filename or 'A file'} cannot be read or written ({error.strerror or error}).", debug)
    except (KeyboardInterrupt, click.Abort) as stop:  # click makes the one of the other
        code = _fail(str(stop.__cause__ or stop) or "Interrupted.", False, 130)
    except Exception as error:
        code = _fail(
            f"{type(error).__name__}: {error}; this is a bug of the program or of your file: see --debug.", debug, 3
        )
    sys.exit(code or 0)


def _fail(sentence: str, debug: bool, code: int = 2) -> int:
    if debug:
        raise
    click.echo(f"cdyn: {sentence}", err=True)
    return code
