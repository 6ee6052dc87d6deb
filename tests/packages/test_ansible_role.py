"""The Ansible role: variables, what it writes, how it checks that; `make drill` applies it."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from support.daemon_process import DISKSLA

ROOT = Path(__file__).resolve().parent.parent.parent
ROLE = ROOT / "packaging" / "ansible" / "roles" / "disksla"
PAGE = ROOT / "docs" / "install.md"


TYPE = """
terms:
  - provider: acme
    provider_name: Acme Cloud
    id: acme.fast
    title: Ceph SSD
    budget: sum
    read_iops: {rule: clamp, base: 2000}
    write_iops: {rule: clamp, base: 2000}
    examples: [{size_bytes: 100GiB, rates: {read_iops: 2000, write_iops: 2000}}]
"""


def load(path: str) -> Any:
    return yaml.safe_load((ROLE / path).read_text(encoding="utf-8"))


def options() -> dict[str, Any]:
    found: dict[str, Any] = load("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    return found


def render(template: str, **variables: object) -> str:
    """Return what the role writes, with the filters of Ansible that it uses."""
    environment = Environment(
        loader=FileSystemLoader(ROLE / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["to_nice_yaml"] = lambda value, indent, sort_keys: yaml.dump(
        value, indent=indent, sort_keys=sort_keys, default_flow_style=False
    )
    environment.filters["union"] = lambda one, other: list(dict.fromkeys([*one, *other]))
    return environment.get_template(template).render(
        ansible_managed="Ansible managed", **variables
    )


def test_defaults_are_those_that_are_described() -> None:
    described = {name: each["default"] for name, each in options().items() if "default" in each}
    assert load("defaults/main.yml") == described
    assert [name for name in options() if name not in described] == ["disksla_package"]


def test_every_variable_is_documented() -> None:
    rows = re.findall(r"^\| `(disksla_\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == list(options())


@pytest.mark.parametrize(
    ("web", "args", "expected"),
    [
        ({}, "", ""),
        ({}, "--log.level=debug", "--log.level=debug"),
        ({"basic_auth_users": {}}, "", "--web.config.file=/etc/disksla/web.yml"),
        ({"a": 1}, "--b", "--web.config.file=/etc/disksla/web.yml --b"),
    ],
)
def test_options_of_the_daemon(web: dict[str, object], args: str, expected: str) -> None:
    text = render("disksla-exporter.default.j2", disksla_web_config=web, disksla_args=args)
    assert text.endswith(f'\nARGS="{expected}"\n')


@pytest.mark.parametrize("content", [{}, {"disks": [{"match": {"serial": "0123"}}]}])
def test_mapping_is_written_as_it_is(content: dict[str, object]) -> None:
    assert (yaml.safe_load(render("mapping.yml.j2", content=content)) or {}) == content


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    """Return a directory like /etc/disksla, with a disk type of its own."""
    directory = tmp_path / "etc"
    (directory / "catalog.d").mkdir(parents=True)
    (directory / "catalog.d" / "acme.yml").write_text(TYPE)
    (directory / "disksla.yml").write_text("disks: [{match: {device: vdb}, terms: vk.ceph-ssd}]\n")
    return directory


def check(etc: Path, replaced: str, content: str, option: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the role that validates a new file before it replaces another."""
    new = etc.parent / "new"
    new.write_text(content)
    command = load("vars/main.yml")["disksla_check"]
    command = command.replace("/etc/disksla/", f"{etc}/").replace("/usr/bin/disksla", str(DISKSLA))
    return subprocess.run(
        [*shlex.split(command), replaced, str(new), option],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("replaced", "option", "content"),
    [
        (
            "disksla.yml",
            "--config.file=disksla.yml",
            "disks: [{match: {device: vdb}, terms: acme.fast}]\n",
        ),
        ("terms.d/inventory.yml", "--config.file=disksla.yml", "provider: vk\n"),
        ("web.yml", "--web.config.file=web.yml", "basic_auth_users: {}\n"),
    ],
)
def test_valid_file_is_accepted(etc: Path, replaced: str, option: str, content: str) -> None:
    before = sorted(etc.rglob("*"))
    checked = check(etc, replaced, content, option)
    assert checked.returncode == 0, checked.stderr
    assert sorted(etc.rglob("*")) == before


@pytest.mark.parametrize(
    ("replaced", "option"),
    [
        ("disksla.yml", "--config.file=disksla.yml"),
        ("terms.d/inventory.yml", "--config.file=disksla.yml"),
        ("web.yml", "--web.config.file=web.yml"),
    ],
)
def test_invalid_file_is_rejected(etc: Path, replaced: str, option: str) -> None:
    checked = check(etc, replaced, "nonsense: 1\n", option)
    assert checked.returncode == 2
    assert "nonsense: unknown key" in checked.stderr + checked.stdout
