"""All checks together, and the facts of a daemon and of a unit of systemd."""

import re
import socket
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
    UnitFacts,
    WebFacts,
    parse_unit,
)
from disksla.commands.doctor_checks.gather_facts import ask_daemon, parse_samples
from disksla.commands.doctor_checks.provider_checks import _FIXES
from disksla.kernel.disks.disk import Disk
from disksla.promise.configuration.settings_file import parse_settings
from metrics_page import OF_DISKS, OF_THE_DAEMON
from support.answering import answering, page
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


def test_samples_are_read() -> None:
    body = 'disksla_build_info{version="1"} 1\n'
    with answering(page("ready\nnever scraped\n"), page(body)) as url:
        facts = ask_daemon(url)
    assert facts.problem is None
    assert facts.ready_text == "ready\nnever scraped"
    [sample] = facts.values("disksla_build_info", version="1")
    assert sample.value == 1


@pytest.mark.parametrize(
    "body", ["<html>", "disksla_build_info{", "x 1 2 3 4", "\0", "a{b} c", "{, =1"]
)
def test_page_that_is_not_of_metrics(body: str) -> None:
    with answering(page("", 404), page(body)) as url:
        facts = ask_daemon(url)
    assert (facts.ready_status, facts.metrics_status) == (404, 200)
    assert facts.values("disksla_build_info") == []


WORDS = ("# HELP ", "# TYPE ", "a", "counter", "{", "}", "=", '"', "\\", ",", " ", "\n", "1")


@given(st.text() | st.lists(st.sampled_from(WORDS)).map("".join))
def test_any_text_has_samples_or_none(text: str) -> None:
    for sample in parse_samples(text):
        assert sample.name.removesuffix("_total") in text


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "it does not speak HTTP: BadStatusLine"),
        (b"", "Remote end closed connection without response"),
    ],
)
def test_another_protocol(answer: bytes, problem: str) -> None:
    with answering(answer) as url:
        assert ask_daemon(url).problem == problem


def test_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert ask_daemon(url).problem == "Connection refused"


def test_tls_that_the_other_side_does_not_speak() -> None:
    with answering(page("ready\n")) as url:
        facts = ask_daemon(url.replace("http:", "https:"))
    assert "TLS failed" in (facts.unseen or "")


def test_unix_socket_is_asked(tmp_path: Path) -> None:
    body = 'disksla_build_info{version="1"} 1\n'
    with answering(page("ready\n"), page(body), path=tmp_path / "socket") as url:
        facts = ask_daemon(url)
    assert (facts.url, facts.ready_status, facts.metrics_status) == (url, 200, 200)
    assert facts.values("disksla_build_info", version="1")


SYSTEMD = Path(__file__).resolve().parents[3] / "systemd"
UNIT_TEXT = (SYSTEMD / "disksla-exporter.service").read_text(encoding="utf-8")


def test_unit_of_the_package() -> None:
    unit = UnitFacts("unit", parse_unit([UNIT_TEXT]))
    assert unit.last("User") == "disksla"
    assert unit.last("PrivateDevices") == "yes"
    assert unit.last("WantedBy") is None


def test_drop_ins_come_after_the_unit() -> None:
    folder = SYSTEMD / "disksla-exporter.service.d"
    texts = [
        UNIT_TEXT,
        *(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.conf"))),
    ]
    unit = UnitFacts("unit", parse_unit(texts))
    assert unit.last("PrivateDevices") == "no"
    assert unit.last("SupplementaryGroups") == "disk"


def test_lines() -> None:
    text = "[Unit]\nA=0\n[Service]\n# A=1\n;A=2\nA = 3 \nB=x \\\n  y\nC\nD=1\nD=\nA=4\n"
    assert parse_unit([text]) == {"A": ("3", "4"), "B": ("x    y",), "D": ()}


@given(st.lists(st.text()))
def test_any_text_is_accepted(texts: list[str]) -> None:
    for key, values in parse_unit(texts).items():
        assert key == key.strip()
        assert all(values)
