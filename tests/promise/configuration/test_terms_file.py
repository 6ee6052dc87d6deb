"""Tests of terms files: content, catalogue's ids, precedence, age."""

import pytest

from disksla.base.errors import DiskslaError
from disksla.promise.catalogue.limits import NO_LIMITS
from disksla.promise.configuration.configuration import Configuration, TermsFile, in_order
from disksla.promise.configuration.found_terms import find_terms
from disksla.promise.configuration.matching import assign, assign_all, machine_type_of, type_limits
from disksla.promise.configuration.settings import (
    DevicePattern,
    DiscoverySettings,
    DiskEntry,
    MachineSettings,
    Settings,
)
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State
from support.machine_facts import terms_file
from support.simulated_host import CATALOG, a_disk

WRITTEN_S = 1_700_000_000.0
DETECTED = """
{"source": "api", "origin": "EC2 API", "as_of": "2026-11-23T01:02:03Z",
 "tried_at": "2026-11-23T01:32:03+00:00", "max_age": "2h", "provider": "aws",
 "machine": {"type": "m6i.large"},
 "disks": [{"match": {"serial": "vol0a1b"}, "api_type": "gp3", "size": "500GiB", "iops": 6000,
            "bandwidth": "250MiB/s", "options": {}}],
 "problems": [{"source": "api", "reason": "denied", "message": "ec2:DescribeVolumes was denied"}]}
"""


def file_of(text: str, name: str = "a.yml") -> TermsFile:
    """Return what a file says that was written at WRITTEN_S."""
    return terms_file(text, name, WRITTEN_S)


def terms_of(file: TermsFile) -> object:
    """Return the terms of the only entry."""
    [(_, entry)] = file.entries()
    return entry.terms


def test_file_of_detect_has_everything() -> None:
    file = file_of(DETECTED)
    assert file.as_of_timestamp_s is not None
    assert (file.source, file.origin, file.provider) == ("api", "EC2 API", "aws")
    assert file.machine.type == "m6i.large"
    assert file.as_of_timestamp_s == 1795395723.0
    assert file.tried_timestamp_s == 1795395723.0 + 1800
    assert file.expiry_timestamp_s == 1795395723.0 + 7200
    assert [(each.reason, each.source) for each in file.problems] == [("denied", "api")]
    [(_, entry)] = file.entries()
    assert (entry.terms, entry.iops, entry.size_bytes()) == ("aws.gp3", 6000.0, 500 * 2**30)


def test_file_of_people_is_as_old_as_the_file() -> None:
    file = file_of("disks:\n- {match: {device: vda}, terms: vk.ceph-ssd}\n", "/etc/x.yml")
    assert (file.source, file.origin) == ("file", "/etc/x.yml")
    assert (file.as_of_timestamp_s, file.expiry_timestamp_s) == (WRITTEN_S, None)


def test_a_file_that_does_not_say_when_it_expires_has_no_such_metric() -> None:
    file = file_of("disks:\n- {match: {device: vda}, terms: vk.ceph-ssd}\n", "/etc/x.yml")
    configuration = Configuration(Settings(), CATALOG, terms_files=(file,))
    terms = Snapshot(State(configuration)).terms
    assert (terms.as_of_timestamp_s, terms.expiry_timestamp_s) == ({"file": WRITTEN_S}, {})


@pytest.mark.parametrize(
    ("keys", "terms"),
    [
        ("api_type: gp3", "aws.gp3"),
        ("api_type: Premium_LRS, provider: azure", "azure.premium-ssd"),
        ("terms: azure.Premium_LRS", "azure.premium-ssd"),
        ("api_type: HYPERDISK_BALANCED, provider: gcp", "gcp.hyperdisk-balanced"),
        ("terms: gcp.persistent-ssd", "gcp.pd-ssd"),
        ("api_type: gp9", "aws.gp9"),
        ("terms: vk.nonesuch", "vk.nonesuch"),
    ],
)
def test_type_is_that_of_the_catalogue_or_as_the_api_spells_it(keys: str, terms: str) -> None:
    file = file_of(f"provider: aws\ndisks:\n- {{match: {{device: vda}}, {keys}}}\n")
    assert assign(a_disk(), Settings(), CATALOG, (file,)).terms == terms


def test_zero_is_no_provisioned_value() -> None:
    """Terraform has `provisioned_iops = 0` where a type has none."""
    text = "disks: [{match: {device: vda}, terms: gcp.pd-ssd, iops: 0, bandwidth: 0MiB/s}]"
    [(_, entry)] = file_of(text).entries()
    assert (entry.terms, entry.iops, entry.bytes_per_second) == ("gcp.pd-ssd", None, None)


def test_type_without_provider_is_kept() -> None:
    assert terms_of(file_of("disks: [{match: {device: vda}, api_type: gp3}]")) == "gp3"


def test_written_out_terms_are_kept() -> None:
    text = "disks: [{match: {device: vda}, terms: {budget: sum, iops: 300}}]"
    file = file_of(text)
    assignment = assign(a_disk(), Settings(), CATALOG, (file,))
    assert (assignment.terms, assignment.source) == ("custom", "file")
    assert assignment.limits.rates.read_iops == 300


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("disks: [{match: {device: vda}}]", "terms and api_type"),
        ("disks: [{match: {device: vda}, terms: aws.gp3, api_type: gp3}]", "terms and api_type"),
        ("as_of: 2026-11-23", "a time with its zone"),
        ("as_of: yesterday", "a time with its zone"),
        ("as_of: 2026-11-23T01:02:03", "a time with its zone"),
        ("source: heaven", "one of: file, api, metadata"),
        ("problems: [{source: api, reason: bad, message: x}]", "one of: unreachable"),
        ("disc: []", "disks"),
    ],
)
def test_invalid_file_is_refused(text: str, problem: str) -> None:
    with pytest.raises(DiskslaError, match=problem):
        file_of(text)


def entries(source: str, terms: str, name: str = "a") -> TermsFile:
    """Return a file of a source with an entry for vda."""
    return file_of(
        f"{{source: {source}, disks: [{{match: {{device: vda}}, terms: {terms}}}]}}", name
    )


def test_precedence() -> None:
    files = in_order(
        (
            entries("metadata", "aws.gp2"),
            entries("api", "aws.gp3"),
            entries("file", "aws.io1", "b"),
            entries("file", "aws.io2", "a"),
        )
    )
    assert [terms_of(file) for file in files] == ["aws.io2", "aws.io1", "aws.gp3", "aws.gp2"]
    entry = DiskEntry(match=DiskMatch(device="vda"), terms="vk.ceph-ssd")
    found = find_terms(a_disk(), Settings(disks=(entry,)), files)
    assert found is not None
    assert (found.entry, found.file) == (entry, None)
    found = find_terms(a_disk(), Settings(), files)
    assert found is not None
    assert (found.entry.terms, found.place) == ("aws.io2", "disks[0] of a")
    assert find_terms(a_disk("vdb"), Settings(), files) is None


def test_assignment_says_who_said_it_and_when() -> None:
    file = file_of(DETECTED)
    disk = a_disk(serial="vol0a1b")
    assignment = assign(disk, Settings(), CATALOG, (file,))
    assert assignment.reason == "EC2 API matches serial vol0a1b"
    assert (assignment.source, assignment.origin) == ("api", "EC2 API")
    assert file.as_of_timestamp_s is not None
    now_s = file.as_of_timestamp_s + 720
    assert assignment.said_by(now_s) == "EC2 API, 12 min ago"
    assert assignment.said_by(now_s + 7200) == "EC2 API, 2.2 h ago (too old)"
    assert assignment.limits.rates.read_iops == 6000
    assert assign(a_disk(), Settings(), CATALOG, (file,)).said_by(now_s) == ""


def test_unknown_type_has_no_limits_and_says_so() -> None:
    file = file_of("disks: [{match: {device: vda}, provider: aws, api_type: gp9}]")
    assignment = assign(a_disk(), Settings(), CATALOG, (file,))
    assert (assignment.terms, assignment.provider) == ("aws.gp9", "aws")
    assert assignment.limits == NO_LIMITS
    assert "unknown terms 'aws.gp9'" in assignment.reason


def test_machine_type_is_that_of_the_best_source() -> None:
    files = (file_of("machine: {type: m5.large}"), file_of(DETECTED))
    assert machine_type_of(Settings(), files) == "m5.large"
    assert machine_type_of(Settings(machine=MachineSettings(type="c5.large")), files) == "c5.large"
    assert machine_type_of(Settings(), ()) is None


def test_sizes_of_the_provider_are_added_up_where_disks_share_limits() -> None:
    """A size in the configuration may be the total of several disks; that of the API is not."""
    entry = "{{match: {{device: {}}}, api_type: pd-ssd, size: 100GiB}}"
    text = f"{{provider: gcp, disks: [{entry.format('vda')}, {entry.format('vdb')}]}}"
    disks = (a_disk("vda"), a_disk("vdb", 1))
    assignments = assign_all(disks, Settings(), CATALOG, (file_of(text),)).monitored
    for assignment in assignments.values():
        assert assignment.shares_limits
        assert assignment.size_bytes == 200 * 2**30
        assert assignment.limits.rates.read_iops == 6000 + 30 * 200


def test_size_of_a_disk_that_is_not_monitored_counts_for_the_limits_of_its_type() -> None:
    entry = "{{match: {{device: {}}}, api_type: pd-ssd, size: 100GiB}}"
    text = f"{{provider: gcp, disks: [{entry.format('vda')}, {entry.format('vdb')}]}}"
    settings = Settings(discovery=DiscoverySettings(exclude=(DevicePattern.parse("vdb"),)))
    disks = (a_disk("vda"), a_disk("vdb", 1), a_disk("loop0", 2))
    assignments = assign_all(disks, settings, CATALOG, (file_of(text),))
    assert assignments.monitored.keys() == {"vda"}
    assert assignments.others.keys() == {"vdb"}
    assert assignments.monitored["vda"].limits.rates.read_iops == 6000 + 30 * 200
    (limits,) = type_limits([*assignments.monitored.values(), *assignments.others.values()])
    assert limits.covers == ("gcp.pd-ssd",)
