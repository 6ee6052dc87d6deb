"""Checks of the disks, and of the limits of the machine over them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import GIB
from disksla.commands.doctor_checks.disk_checks import _key
from disksla.commands.doctor_checks.facts import ConfigurationFacts
from disksla.kernel.disks.disk import Disk
from disksla.promise.configuration.settings_file import parse_settings
from support.machine_facts import (
    CATALOG,
    DAEMON,
    DISK,
    NOW_S,
    SAMPLES,
    SETTINGS,
    configured,
    machine,
    result,
    results,
    sample,
    terms_file,
    with_disk,
)

API = """
source: api
origin: EC2 API
as_of: 2027-01-15T07:50:00Z
max_age: 2h
provider: aws
machine: {type: m6i.large}
disks: [{match: {volume: vol-0a1b}, api_type: gp3, size: 500GiB, iops: 4000}]
"""
RESCAN = "echo 1 > /sys/class/nvme/nvme1/rescan_controller"


def other(name: str = "nvme2n1", **fields: object) -> Disk:
    return Disk(name, 259, 9, **{"size_bytes": GIB, **fields})  # type: ignore[arg-type]


def test_terms_of_the_configuration_and_of_the_provider() -> None:
    assert result(machine(), "disks.terms").found == "aws.gp3, configuration"
    found = result(machine(configuration=configured("", terms_file(API))), "disks.terms")
    assert (found.status, found.subject) == ("ok", "nvme1n1")
    assert found.found == "aws.gp3, EC2 API, 10 min ago"


def test_terms_that_are_too_old() -> None:
    people = API.replace("source: api\norigin: EC2 API\n", "")
    facts = machine(configuration=configured("", terms_file(people)), now_s=NOW_S + 7200)
    assert result(facts, "disks.age").fix == "write /state-detect/cloud.json again"


def test_disk_without_terms_names_a_line_that_matches_it() -> None:
    found = result(machine(configuration=configured("")), "disks.terms")
    assert found.status == "note"
    assert found.fix is not None
    line = found.fix.partition("#")[0].replace("TYPE", "aws.gp3")
    settings = parse_settings(line.encode(), "x", CATALOG)
    assert settings.disks[0].match.volume == "vol-0a1b"


@given(st.sampled_from(("volume", "serial", "wwn")), st.text(min_size=1, max_size=30))
def test_key_of_a_disk_is_read_as_it_was(key: str, value: str) -> None:
    value = "".join(filter(str.isprintable, value)).strip() or "x"
    line = f"disks: [{{match: {{{_key(other(**{key: value}))}}}, terms: aws.gp3}}]"
    settings = parse_settings(line.encode("utf-8", "replace"), "x", CATALOG)
    if value.isascii():
        assert settings.disks[0].match.given() == {key: value}


def test_key_without_anything_else_is_the_device() -> None:
    assert _key(other("vdb")) == "device: vdb"
    assert _key(other("cciss/c0d0")) == "device: cciss/c0d0"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("provider: aws\ndisks: [{match: {volume: vol-0a1b}, api_type: gp9}]", "gp9"),
        ("provider: aws\ndisks: [{match: {volume: vol-0a1b}, api_type: gp2, iops: 9000}]", "gp2"),
    ],
)
def test_terms_without_limits_although_they_should_have_some(text: str, words: str) -> None:
    found = result(machine(configuration=configured("", terms_file(text))), "disks.terms")
    assert found.status == "wrong"
    assert words in found.found
    assert "without limits" in found.found


def test_local_disk_and_type_without_limits_are_as_configured() -> None:
    local = msgspec.structs.replace(DISK, serial="AWS1", volume=None, is_local=True)
    found = result(machine(disks=(local,), configuration=configured("")), "disks.terms")
    assert found.status == "ok"
    text = "disks: [{match: {device: nvme1n1}, terms: generic.ssd}]"
    assert result(machine(configuration=configured(text)), "disks.terms").status == "ok"


def test_invalid_configuration_leaves_the_terms_unchecked() -> None:
    facts = machine(
        configuration=ConfigurationFacts("x", None, "x:1: bad"), iostats={"nvme1n1": "0"}
    )
    assert result(facts, "disks.terms").status == "note"
    assert result(facts, "disks.iostats").status == "wrong"


@pytest.mark.parametrize(
    ("fields", "status", "fix"),
    [
        ({"size_bytes": 500 * GIB}, "ok", None),
        ({"size_bytes": 499 * GIB}, "ok", None),
        ({"size_bytes": 465 * GIB}, "note", RESCAN),
        ({"size_bytes": 537 * GIB}, "wrong", "remove `size: 500GiB` from disks[0] of"),
        (
            {"name": "sdb", "size_bytes": 100 * GIB},
            "note",
            "echo 1 > /sys/class/block/sdb/device/rescan",
        ),
        (
            {"name": "vdb", "size_bytes": 100 * GIB},
            "note",
            "correct `size` if it is 100 GiB; else attach the disk again",
        ),
    ],
)
def test_size_that_was_sold(fields: dict[str, object], status: str, fix: str | None) -> None:
    found = result(with_disk(**fields), "disks.size")
    assert found.status == status
    assert (found.fix or "").startswith(fix or "")


def test_size_of_the_provider_is_asked_for_again() -> None:
    facts = machine(disks=(msgspec.structs.replace(DISK, size_bytes=600 * GIB),))
    detected = msgspec.structs.replace(facts, configuration=configured("", terms_file(API)))
    assert result(detected, "disks.size").fix == "systemctl start disksla-detect"


def test_size_is_not_compared_where_it_may_be_a_total() -> None:
    text = "disks: [{match: {device: nvme1n1}, terms: gcp.pd-balanced, size: 2TiB}]"
    assert results(machine(configuration=configured(text)), "disks.size") == []
    custom = "disks: [{match: {device: nvme1n1}, terms: {budget: sum, iops: 300}, size: 2TiB}]"
    assert result(machine(configuration=configured(custom)), "disks.size").status == "note"
    without = "disks: [{match: {device: nvme1n1}, terms: aws.gp3}]"
    assert results(machine(configuration=configured(without)), "disks.size") == []


def test_discovery_that_excludes_all() -> None:
    facts = machine(configuration=configured("discovery: {exclude: ['.']}"))
    found = result(facts, "disks.monitored")
    assert found.status == "wrong"
    assert "nvme1n1" in found.found
    included = machine(configuration=configured("discovery: {include: ['^x']}"))
    assert result(included, "disks.monitored").status == "wrong"
    nothing = machine(configuration=configured(""), disks=(other("loop0"),))
    assert result(nothing, "disks.monitored").status == "note"


def test_unused_entry_is_wrong_while_a_disk_has_no_terms() -> None:
    text = "disks: [{match: {serial: typo}, terms: aws.gp3}]"
    found = result(machine(configuration=configured(text)), "disks.entries")
    assert found.status == "wrong"
    assert found.subject == "disks[0] of the configuration"
    assert found.found == "(serial typo) matches no disk, and nothing says what nvme1n1 is"
    more = SETTINGS.replace("disks: [", "disks: [{match: {serial: other}, terms: aws.gp2}, ")
    found = result(machine(configuration=configured(more)), "disks.entries")
    assert found.status == "note"
    assert found.fix == "remove it, if the disk will not be attached again"


def test_shadowed_entry_and_volume_of_the_provider() -> None:
    text = SETTINGS.replace("}]", "}, {match: {device: nvme1n1}, terms: aws.gp2}]")
    found = result(machine(configuration=configured(text)), "disks.entries")
    assert (found.status, found.fix) == ("note", "remove it, or move it up")
    detected = terms_file(API.replace("vol-0a1b", "vol-9"))
    found = result(machine(configuration=configured(SETTINGS, detected)), "disks.entries")
    assert (found.fix or "").startswith("disksla disks")


def test_machine_type() -> None:
    assert "m6i.large" in result(machine(), "disks.machine").found
    unknown = SETTINGS.replace("machine: {type: m6i.large}", "")
    found = result(machine(configuration=configured(unknown)), "disks.machine")
    assert (found.status, found.fix) == ("note", "machine: {type: TYPE}   # such as m6i.large")
    new = terms_file(API.replace("m6i.large", "m99.huge"))
    found = result(machine(configuration=configured("", new)), "disks.machine")
    assert found.status == "note"
    assert "'m99.huge'" in found.found
    elsewhere = "disks: [{match: {device: nvme1n1}, terms: hetzner.volume}]"
    assert results(machine(configuration=configured(elsewhere)), "disks.machine") == []
    written = "machine: {limits: {budget: sum, iops: 3000}}"
    assert result(machine(configuration=configured(written)), "disks.machine").status == "ok"


def test_disk_of_the_machine_that_is_not_monitored() -> None:
    text = SETTINGS + "discovery: {exclude: ['^nvme2', '^nvme3']}\n"
    disks = (DISK, other(), other("nvme2n1p1", partition_of="nvme2n1"), other("loop0"))
    found = results(machine(configuration=configured(text), disks=disks), "disks.machine")
    assert [(each.status, each.subject) for each in found] == [("ok", None), ("note", "nvme2n1")]
    assert "discovery.exclude[0]" in found[1].found


@pytest.mark.parametrize(
    "settings",
    [
        "machine: {limits: {budget: sum, iops: 3000}}",
        "machine: {type: m6i.large, exclude: ['^nvme2']}",
    ],
)
def test_disk_that_is_not_monitored_and_counted_or_excluded(settings: str) -> None:
    text = SETTINGS.replace("machine: {type: m6i.large}", settings)
    text += "discovery: {exclude: ['^nvme2']}\n"
    found = results(
        machine(configuration=configured(text), disks=(DISK, other())), "disks.machine"
    )
    assert [each.status for each in found] == ["ok"]


def test_disk_that_is_not_counted() -> None:
    found = result(machine(iostats={"nvme1n1": "0"}), "disks.iostats")
    assert found.fix == "echo 1 > /sys/class/block/nvme1n1/queue/iostats"
    disks = (DISK, other("loop0"))
    assert results(machine(disks=disks, iostats={"loop0": "0"}), "disks.iostats") == []


def test_what_the_daemon_says_comes_first() -> None:
    """It may have been started with other files than those here."""
    said = [
        sample("disk_info", device="nvme1n1", terms="aws.io2"),
        sample("disk_info", device="loop0", terms="custom"),
    ]
    facts = machine(daemon=msgspec.structs.replace(DAEMON, samples=(*SAMPLES, *said)))
    same, other_files = results(facts, "disks.monitored")
    assert same.found == "the daemon monitors nvme1n1, loop0"
    assert (other_files.status, other_files.found) == (
        "note", "by disksla.yml, it would be nvme1n1",
    )  # fmt: skip
    assert result(facts, "disks.terms").found == "aws.io2, as the daemon says"
