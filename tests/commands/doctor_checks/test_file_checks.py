"""Checks of configuration, terms files, web configuration and state directory."""

import pytest

from disksla.base.units import MIB
from disksla.commands.doctor_checks.facts import (
    AccessFacts,
    ConfigurationFacts,
    StateFacts,
    WebFacts,
)
from support.machine_facts import HEALTHY, machine, result, results

CONFIGURATION = HEALTHY.configuration.configuration
STATE = "/var/lib/disksla"


def test_valid_configuration() -> None:
    assert result(machine(), "configuration.file").found == "disksla.yml is valid"
    without = machine(configuration=ConfigurationFacts(None, CONFIGURATION))
    assert result(without, "configuration.file").status == "ok"


def test_each_line_of_a_problem_is_a_result() -> None:
    facts = ConfigurationFacts("/etc/x.yml", None, "/etc/x.yml:1: a\n/etc/x.yml:2: b")
    found = results(machine(configuration=facts), "configuration.file")
    assert [each.found for each in found] == ["/etc/x.yml:1: a", "/etc/x.yml:2: b"]
    assert {(each.status, each.fix) for each in found} == {
        ("wrong", "disksla check-config --config.file /etc/x.yml")
    }
    own_catalog = ConfigurationFacts(None, None, "/etc/disksla/catalog.d/x.yml:1: a")
    found = results(machine(configuration=own_catalog), "configuration.file")
    assert [each.fix for each in found] == ["correct the file"]


@pytest.mark.parametrize(("is_root", "status"), [(True, "wrong"), (False, "note")])
def test_file_that_this_user_may_not_read(is_root: bool, status: str) -> None:
    problem = "cannot read /etc/x.yml: Permission denied"
    facts = machine(configuration=ConfigurationFacts("/etc/x.yml", None, problem), is_root=is_root)
    found = result(facts, "configuration.file")
    assert found.status == status
    assert (found.fix == "sudo disksla doctor") == (not is_root)


def test_notes_and_own_catalogue() -> None:
    facts = ConfigurationFacts("x", CONFIGURATION, notes=("disks[0]: beyond",), own_rows=1)
    first, second = results(machine(configuration=facts), "configuration.file")
    assert (first.status, second.status) == ("ok", "note")
    found = result(machine(configuration=facts), "configuration.catalog")
    assert found.found == "catalog.d adds 1 type"
    two = ConfigurationFacts("x", CONFIGURATION, own_rows=2)
    found = result(machine(configuration=two), "configuration.catalog")
    assert found.found == "catalog.d adds 2 types"


def test_terms_files() -> None:
    facts = ConfigurationFacts("x", CONFIGURATION, terms_problems=("a.yml:1: x\na.yml:2: y", "z"))
    found = results(machine(configuration=facts), "configuration.terms")
    assert [each.found for each in found] == ["a.yml:1: x", "a.yml:2: y", "z"]


def test_web_configuration() -> None:
    good = ConfigurationFacts("x", CONFIGURATION, web=WebFacts("w.yml", None, "TLS"))
    assert result(machine(configuration=good), "configuration.web").found == "TLS"
    bad = ConfigurationFacts("x", CONFIGURATION, web=WebFacts("w.yml", "w.yml:1: a\nw.yml:2: b"))
    found = results(machine(configuration=bad), "configuration.web")
    assert [each.fix for each in found] == ["disksla check-config --web.config.file w.yml"] * 2


def test_access() -> None:
    unknown = machine(access=AccessFacts("disksla", "only root can check"))
    assert result(unknown, "configuration.access").status == "note"
    assert result(unknown, "state.directory").found == f"{STATE} exists"
    missing = machine(access=AccessFacts("disksla", "found no user disksla", has_user=False))
    assert result(missing, "configuration.access").fix == "systemd-sysusers"
    denied = machine(access=AccessFacts("disksla", None, ("/etc/x", "/etc/y")))
    assert [each.fix for each in results(denied, "configuration.access")] == [
        f"chgrp disksla {path} && chmod 640 {path}" for path in ("/etc/x", "/etc/y")
    ]


@pytest.mark.parametrize(
    ("state", "access", "status", "fix"),
    [
        (StateFacts(STATE, None, 2**40), AccessFacts("disksla"), "ok", None),
        (
            StateFacts(STATE, "it does not exist"),
            AccessFacts("disksla"),
            "wrong",
            f"install -d -o disksla -g disksla -m 0755 {STATE}",
        ),
        (
            StateFacts(STATE, None, 2**40, is_read_only=True),
            AccessFacts("disksla"),
            "wrong",
            f"mount -o remount,rw $(findmnt -n -o TARGET -T {STATE})",
        ),
        (
            StateFacts(STATE, None, 2**40),
            AccessFacts("disksla", may_write_state=False),
            "wrong",
            f"chown disksla: {STATE}",
        ),
    ],
)
def test_state_directory(
    state: StateFacts, access: AccessFacts, status: str, fix: str | None
) -> None:
    found = result(machine(state=state, access=access), "state.directory")
    assert (found.status, found.fix) == (status, fix)


@pytest.mark.parametrize(("free_mib", "status"), [(31, "wrong"), (32, "ok")])
def test_space(free_mib: int, status: str) -> None:
    facts = machine(state=StateFacts(STATE, None, free_mib * MIB))
    assert result(facts, "state.space").status == status
