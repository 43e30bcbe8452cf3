"""What tests of the command share."""

import pytest

from contactdynamics.cli import main


@pytest.fixture
def cdyn(tmp_path, monkeypatch, capsys):
    """Run the command in an empty folder: exit code, output, error output."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    monkeypatch.chdir(work)

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return end.value.code, captured.out, captured.err

    return run
