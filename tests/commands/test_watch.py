"""`disksla watch`: what was seen, and the file to send."""

from pathlib import Path

import pytest

from disksla.commands.cli import main
from support.fake_host import FakeMachine


def test_a_sample_says_how_to_record_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = FakeMachine(tmp_path)
    assert main(["watch", "300ms", *machine.options]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "vdx, " in out
    assert "with --output watch.jsonl.gz, and attach that file." in out


def test_the_file_says_the_same_on_any_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine, file = FakeMachine(tmp_path), tmp_path / "watch.jsonl.gz"
    assert main(["watch", "300ms", "--output", str(file), *machine.options]) == 0
    said, _, offer = capsys.readouterr().out.partition("\nAttach ")
    assert f"disksla explain --recording {file.name}" in " ".join(offer.split())
    assert main(["explain", "--recording", str(file)]) == 0
    assert capsys.readouterr().out == said
    assert main(["watch", "300ms", "--output", str(file), *machine.options]) == 2
    assert "already exists; choose another name" in capsys.readouterr().err
