"""All pages are valid HTML and CSS for the Nu Html Checker of the W3C."""

import json
import shutil
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest

from browser.conftest import Address, checker
from support.daemon_process import Daemon


def errors_of(*files: Path) -> list[str]:
    """Return the errors of pages.

    Its warnings are left out: of a policy it does not compare hashes, as browsers do.
    """
    if shutil.which("java") is None:
        pytest.skip("NOT TESTED: java is missing to run the validator")
    validator = checker("vnu-jar/build/dist/vnu.jar")
    command = ["java", "-jar", str(validator), "--errors-only", "--format", "json"]
    checked = subprocess.run(
        [*command, *map(str, files)], capture_output=True, text=True, check=False, timeout=120
    )
    messages = json.loads(checked.stderr)["messages"]
    return [f"{Path(each['url']).name}: {each['message']}" for each in messages]


def test_pages_are_valid(addresses: list[Address], tmp_path: Path) -> None:
    files = []
    for number, address in enumerate(addresses):
        files.append(tmp_path / f"{number}.html")
        with urlopen(address.url) as response:
            files[-1].write_bytes(response.read())
    assert errors_of(*files) == []


@pytest.mark.nightly
def test_validator_finds_errors(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<!DOCTYPE html><html lang=en><title>a</title><style>p { colour: red }</style>"
        "<p><svg role=picture></svg><article><h2></p>"
    )
    found = " ".join(errors_of(page))
    assert all(part in found for part in ("colour", "picture", "h2"))


@pytest.mark.parametrize("path", ["/none", "/disk?name=%3Cscript%3E", "/-/reload"])
def test_errors_are_plain_text(daemons: dict[str, Daemon], path: str) -> None:
    status, text = daemons["busy"].get(path)
    assert status in {404, 405}
    assert "<" not in text
