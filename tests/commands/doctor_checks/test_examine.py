"""All checks together: a machine without problems, and what every result has."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import Sample

from disksla.base.errors import ExchangeReason
from disksla.base.units import GIB
from disksla.commands.doctor_checks import CheckResult, counts, examine, in_groups, worst
from disksla.commands.doctor_checks.check_result import GROUPS
from disksla.commands.doctor_checks.daemon_checks import METRICS
from disksla.commands.doctor_checks.disk_checks import _key
from disksla.commands.doctor_checks.facts import (
    AccessFacts,
    ClockFacts,
    ConfigurationFacts,
    DaemonFacts,
    FioFacts,
    KernelFacts,
    StateFacts,
    WebFacts,
)
from disksla.commands.doctor_checks.provider_checks import _FIXES
from disksla.kernel.disks.disk import Disk
from disksla.promise.configuration.settings_file import parse_settings
from metrics_page import OF_DISKS, OF_THE_DAEMON
from support.machine_facts import (
    CATALOG,
    DISK,
    HEALTHY,
    SETTINGS,
    UNIT,
    configured,
    machine,
    result,
    terms_file,
)

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "exporter" / "disksla" / "commands" / "doctor_checks"
TEXT = st.text(max_size=20)
MAYBE_TEXT = st.none() | TEXT
FACTS = st.fixed_dictionaries(
    {},
    optional={
        "kernel": st.builds(
            KernelFacts, TEXT, diskstats=MAYBE_TEXT, wait_problems=st.dictionaries(TEXT, TEXT)
        ),
        "provider": st.sampled_from((None, "aws", "vk", "acme")),
        "disks": st.sampled_from(((), (DISK,))),
        "iostats": st.dictionaries(st.just("nvme1n1"), TEXT),
        "configuration": st.sampled_from((configured(SETTINGS), configured("")))
        | st.builds(
            ConfigurationFacts,
            MAYBE_TEXT,
            st.none(),
            TEXT,
            terms_problems=st.tuples(TEXT),
            web=st.none() | st.builds(WebFacts, TEXT, MAYBE_TEXT),
        ),
        "state": st.builds(StateFacts, TEXT, MAYBE_TEXT, st.integers(0, 2**60), st.booleans()),
        "access": st.builds(AccessFacts, TEXT, MAYBE_TEXT, st.tuples(TEXT), st.booleans()),
        "unit": st.sampled_from((None, UNIT)),
        "fio": st.builds(FioFacts, problem=MAYBE_TEXT),
        "clock": st.builds(ClockFacts, st.none() | st.booleans()),
        "daemon": st.builds(
            DaemonFacts,
            TEXT,
            MAYBE_TEXT,
            MAYBE_TEXT,
            st.integers(100, 599),
            TEXT,
            st.just(200) | st.integers(100, 599),
            st.lists(
                st.builds(
                    Sample,
                    st.sampled_from(METRICS),
                    st.dictionaries(st.sampled_from(("version", "collector")), TEXT),
                    st.floats(0, 1e9),
                    *[st.none()] * 3,
                ),
                max_size=8,
            ).map(tuple),
        ),
        "is_root": st.booleans(),
    },
)


def test_nothing_is_noted_on_a_healthy_machine() -> None:
    found = list(examine(HEALTHY))
    assert [each for each in found if each.status != "ok"] == []
    assert {each.group for each in found} == set(GROUPS)


@given(FACTS)
def test_every_problem_has_what_is_expected_and_wrong_ones_a_fix(facts: dict[str, Any]) -> None:
    found = list(examine(machine(**facts)))
    assert found
    for each in found:
        assert each.group in GROUPS
        assert each.found is not None
        assert (each.expected is None) == (each.status == "ok")
        assert each.fix or each.status != "wrong"
    assert sum(counts(found).values()) == len(found)
    grouped = [each for _, group in in_groups(found) for each in group]
    assert sorted(map(repr, grouped)) == sorted(map(repr, found))


@given(st.lists(st.sampled_from(("ok", "note", "wrong"))))
def test_worst_is_the_last_of_the_order(statuses: list[Any]) -> None:
    found = [CheckResult(check="kernel.x", status=status, found="") for status in statuses]
    order = ["ok", "note", "wrong"]
    assert worst(found) == max(statuses, key=order.index, default="ok")
    if found:
        [(_, group)] = in_groups(found)
        assert [each.status for each in group] == sorted(statuses, key=order.index)


def test_groups_with_problems_are_last() -> None:
    found = [
        CheckResult(check="kernel.a", status="wrong", found=""),
        CheckResult(check="disks.b", status="ok", found=""),
        CheckResult(check="state.c", status="note", found=""),
    ]
    assert [name for name, _ in in_groups(found)] == ["disks", "state", "kernel"]


def test_document_has_the_ids_of_all_checks() -> None:
    ids = re.compile(rf'["`]((?:{"|".join(GROUPS)})\.[a-z_]+)["`]')
    modules = [*(SOURCE.glob("*.py"))]
    used = {found for path in modules for found in ids.findall(path.read_text("utf-8"))}
    used |= {"kernel.iowait"}  # composed of the source's name
    document = (ROOT / "docs" / "install.md").read_text("utf-8")
    assert set(ids.findall(document)) == used


def test_metrics_that_are_asked_for_exist() -> None:
    assert set(METRICS) <= {metric.name for metric in (*OF_DISKS, *OF_THE_DAEMON)}


@pytest.mark.parametrize("source", ["api", "metadata"])
@pytest.mark.parametrize("reason", get_args(ExchangeReason))
def test_each_problem_of_a_provider_is_wrong_and_has_a_fix(source: str, reason: str) -> None:
    problems = f"problems: [{{source: {source}, reason: {reason}, message: it failed}}]"
    file = terms_file(f"source: api\n{problems}")
    found = result(machine(configuration=configured(SETTINGS, file)), "provider.detect")
    assert (found.status, found.found, found.fix) == ("wrong", "it failed", _FIXES[reason])


def test_disk_without_terms_names_a_line_that_matches_it() -> None:
    fix = result(machine(configuration=configured("")), "disks.terms").fix or ""
    line = fix.partition("#")[0].replace("TYPE", "aws.gp3")
    settings = parse_settings(line.encode(), "x", CATALOG)
    assert settings.disks[0].match.volume == "vol-0a1b"


@given(st.sampled_from(("volume", "serial", "wwn")), st.text(min_size=1, max_size=30))
def test_key_of_a_disk_is_read_as_it_was(key: str, value: str) -> None:
    value = "".join(filter(str.isprintable, value)).strip() or "x"
    disk = Disk("nvme2n1", 259, 9, GIB, **{key: value})  # type: ignore[arg-type]
    line = f"disks: [{{match: {{{_key(disk)}}}, terms: aws.gp3}}]"
    settings = parse_settings(line.encode("utf-8", "replace"), "x", CATALOG)
    if value.isascii():
        assert settings.disks[0].match.given() == {key: value}


@pytest.mark.parametrize("name", ["vdb", "cciss/c0d0"])
def test_key_without_anything_else_is_the_device(name: str) -> None:
    assert _key(Disk(name, 259, 9, GIB)) == f"device: {name}"
