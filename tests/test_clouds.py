"""Tests of the examples in docs/clouds: policies, Terraform, Ansible, terms files."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.configuration.configuration import TermsFile
from disksla.promise.configuration.matching import assign
from disksla.promise.configuration.settings import Settings
from support.machine_facts import terms_file
from support.simulated_host import a_disk

CLOUDS = Path(__file__).resolve().parent.parent / "docs" / "clouds"
PAGES = sorted(CLOUDS.glob("*.md"))
CATALOG = load_catalog()
ANSWERS: dict[str, dict[str, Any]] = {
    "aws": {
        "found": {
            "volumes": [
                {"id": "vol-1", "type": "gp3", "size": 500, "iops": 6000, "throughput": 250},
                {"id": "vol-2", "type": "gp2", "size": 100, "iops": 300, "throughput": None},
                {"id": "vol-3", "type": "io2", "size": 100, "iops": 3000, "throughput": None},
            ]
        }
    },
    "azure": {
        "lun": 3,
        "found": {
            "response": [
                {
                    "sku": {"name": "Premium_LRS"},
                    "properties": {
                        "diskSizeGB": 1024,
                        "diskIOPSReadWrite": 5000,
                        "diskMBpsReadWrite": 200,
                    },
                },
                {
                    "sku": {"name": "PremiumV2_LRS"},
                    "properties": {
                        "diskSizeGB": 1024,
                        "diskIOPSReadWrite": 20000,
                        "diskMBpsReadWrite": 300,
                    },
                },
            ]
        },
    },
    "google": {
        "found": {
            "resources": [
                {"name": "a", "type": "https://x/diskTypes/pd-ssd", "sizeGb": "100"},
                {
                    "name": "b",
                    "type": "https://x/diskTypes/hyperdisk-extreme",
                    "sizeGb": "500",
                    "provisionedIops": "20000",
                },
            ]
        }
    },
    "openstack": {
        "server_id": "s",
        "found": {
            "volumes": [
                {"id": "v", "volume_type": "fast", "size": 9, "attachments": [{"server_id": "s"}]},
                {"id": "w", "volume_type": "slow", "size": 9, "attachments": []},
            ]
        },
    },
}
"""What the modules of Ansible return, as their documentation has it, by page."""


def blocks(language: str) -> list[Any]:
    """Return the examples in a language, each with its page."""
    fence = re.compile(rf"^ *```{language}\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
    return [
        pytest.param(page.stem, block, id=page.stem)
        for page in PAGES
        for block in fence.findall(page.read_text(encoding="utf-8"))
    ]


def terms_of(text: str, page: str) -> TermsFile:
    """Return what a terms file says, whose disks have the limits of their type."""
    file = terms_file(text, page)
    assert file.disks
    for _, entry in file.entries():
        disk = a_disk(volume=entry.match.volume)
        assignment = assign(disk, Settings(), CATALOG, (file,))
        has_limits = assignment.limits.budget is not None
        assert has_limits == (page != "openstack"), assignment.reason
    return file


@pytest.mark.parametrize(("page", "text"), blocks("json"))
def test_policies_are_json(page: str, text: str) -> None:
    assert json.loads(text), page


@pytest.mark.parametrize(("page", "text"), blocks("sh"))
def test_commands_are_valid_shell(page: str, text: str) -> None:
    checked = subprocess.run(
        ["bash", "-n"],
        input=re.sub(r"^   ", "", text, flags=re.MULTILINE),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, ""), page


@pytest.mark.nightly  # its parser takes half a second for a page, and the pages seldom change
@pytest.mark.parametrize(("page", "text"), blocks("hcl"))
def test_terraform_is_valid(page: str, text: str) -> None:
    import hcl2  # noqa: PLC0415 - takes a quarter of a second

    (locals_,) = hcl2.loads(text)["locals"]
    assert "provider" in locals_["terms"], page
    keys = re.findall(r"^ {6}(\w+) +=", text, re.MULTILINE)
    assert set(keys) <= {"match", "api_type", "size", "iops", "bandwidth", "caching", "options"}
    assert {"match", "api_type", "size"} <= set(keys)


@pytest.mark.parametrize(("page", "text"), blocks("yaml"))
def test_terms_files_are_valid(page: str, text: str) -> None:
    if "/terms.d/" in text.splitlines()[0]:
        terms_of(text, page)
        return
    environment = jinja2.Environment(
        trim_blocks=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )  # as Ansible has it
    (play,) = yaml.safe_load(text)
    ask, write = play["tasks"]
    assert ask["delegate_to"] == "localhost"
    copy = write["ansible.builtin.copy"]
    assert re.fullmatch(r"/etc/disksla/terms\.d/\w+\.yml", copy["dest"])
    rendered = environment.from_string(copy["content"]).render(ANSWERS[page])
    file = terms_of(rendered, page)
    answer = ANSWERS[page]["found"]
    assert len(file.disks) == (1 if page == "openstack" else len(*answer.values()))
    if page == "azure":
        assert [entry.iops for _, entry in file.entries()] == [None, 20000.0]


def test_every_page_is_in_the_index() -> None:
    index = (CLOUDS / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\((\w+\.md)\)", index)) == {
        page.name for page in PAGES if page.name != "README.md"
    }


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "README.md"], ids=lambda p: p.stem)
def test_every_page_says_what_cannot_be_known(page: Path) -> None:
    assert "\n## What cannot be known\n" in page.read_text(encoding="utf-8")
