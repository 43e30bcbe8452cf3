"""The command ``cdyn`` as tests call it."""

import pytest

from contactdynamics.cli import main


def cdyn(*arguments) -> int:
    """The exit code of the command."""
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    return end.value.code
