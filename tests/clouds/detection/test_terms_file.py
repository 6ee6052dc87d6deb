"""The file of terms: what is written after each attempt, and what is kept of the last."""

import datetime as dt
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB, MB, MIB, parse_bandwidth_bytes_per_second, parse_size_bytes
from disksla.clouds.detection import decode_terms_file, encode_terms_file, findings, terms_file
from disksla.clouds.detection.terms_file import DetectedTermsFile
from disksla.clouds.http_client.exchange import ExchangeError, Exchanges
from support.exchanges import answered

FIRST = dt.datetime(2026, 11, 23, 1, 2, 3, tzinfo=dt.UTC)
LATER = FIRST + dt.timedelta(minutes=30)
DENIED = findings.DetectionProblem("api", "denied", "disks/read was denied; add it")
DISKS = (
    findings.CloudDisk("os", "Premium_LRS", 30 * GIB, caching="read-write"),
    findings.CloudDisk("0", "PremiumV2_LRS", 500 * GIB, 6000, 250 * MB, options={}),
    findings.CloudDisk("1", "Premium_LRS", 1000 * GIB, options={"tier": "P40"}),
)
METADATA = findings.Listing(
    (
        findings.CloudDisk("os", "Premium_LRS", 30 * GIB, caching="read-write"),
        findings.CloudDisk("0", "PremiumV2_LRS", 500 * GIB),
        findings.CloudDisk("1", "Premium_LRS", 1000 * GIB),
    ),
    incomplete=frozenset({"0"}),
)


def after(
    *,
    api: tuple[findings.CloudDisk, ...] | None = None,
    metadata: findings.Listing | None = None,
    machine: str | None = "D4s_v5",
    provider: str = "azure",
    last: DetectedTermsFile | None = None,
) -> DetectedTermsFile:
    """Return the file after an attempt; half an hour after the last one."""
    listing = None if api is None else findings.Listing(api)
    problems = () if listing else (DENIED,)
    detected = findings.Detected(provider, "Azure", machine, metadata, listing, problems)
    return terms_file(detected, last, FIRST if last is None else LATER)


def volumes(content: DetectedTermsFile) -> dict[str, str]:
    """Return the sizes of the entries, by volume."""
    sizes = {each.match.volume or "": each.size_bytes() for each in content.disks}
    return {volume: f"{(size or 0) // GIB}GiB" for volume, size in sizes.items()}


def test_file_of_a_complete_attempt() -> None:
    content = after(api=DISKS, metadata=METADATA)
    assert json.loads(encode_terms_file(content)) == {
        "source": "api",
        "origin": "Azure API",
        "as_of": "2026-11-23T01:02:03Z",
        "tried_at": "2026-11-23T01:02:03Z",
        "max_age": "2h",
        "provider": "azure",
        "machine": {"type": "D4s_v5"},
        "disks": [
            {
                "match": {"volume": "os"},
                "api_type": "Premium_LRS",
                "size": "30GiB",
                "caching": "read-write",
            },
            {
                "match": {"volume": "0"},
                "api_type": "PremiumV2_LRS",
                "size": "500GiB",
                "iops": 6000,
                "bandwidth": "250MB/s",
            },
            {
                "match": {"volume": "1"},
                "api_type": "Premium_LRS",
                "size": "1000GiB",
                "options": {"tier": "P40"},
            },
        ],
        "problems": [],
    }
    assert decode_terms_file(encode_terms_file(content)) == content


def test_disk_that_the_api_denies_has_the_terms_of_the_metadata() -> None:
    content = after(api=DISKS[1:2], metadata=METADATA)
    assert volumes(content) == {"0": "500GiB", "os": "30GiB", "1": "1000GiB"}


def test_disk_without_provisioned_values_has_no_entry() -> None:
    content = after(metadata=METADATA)
    assert (content.source, content.origin) == ("metadata", "Azure metadata")
    assert list(volumes(content)) == ["os", "1"]
    assert list(volumes(after(api=DISKS[:1], metadata=METADATA))) == ["os", "1"]


def test_failed_attempt_keeps_what_was_good() -> None:
    last = after(api=DISKS)
    content = after(machine=None, last=last)
    assert content.disks == last.disks
    assert content.machine == last.machine
    assert (content.as_of_timestamp_s, content.tried_timestamp_s) == (
        last.as_of_timestamp_s,
        LATER.timestamp(),
    )
    assert content.problems == (DENIED,)
    assert content.source == "api"


def test_machine_type_of_the_metadata_is_newer() -> None:
    content = after(machine="D8s_v5", last=after(api=DISKS))
    assert content.machine.type == "D8s_v5"
    assert content.disks == after(api=DISKS).disks


def test_metadata_replaces_entries_that_it_contradicts() -> None:
    """Another disk was attached to the same slot while the API could not be asked."""
    last = after(api=DISKS)
    grown = findings.Listing(
        (METADATA.disks[0], findings.CloudDisk("1", "Premium_LRS", 2000 * GIB))
    )
    content = after(metadata=grown, last=last)
    assert volumes(content) == {"os": "30GiB", "1": "2000GiB"}
    assert content.disks[1].options == {}
    other_type = findings.Listing((findings.CloudDisk("1", "StandardSSD_LRS", 1000 * GIB),))
    assert after(metadata=other_type, last=last).disks[0].api_type == "StandardSSD_LRS"


def test_metadata_keeps_entries_that_it_does_not_contradict() -> None:
    last = after(api=DISKS)
    assert after(metadata=METADATA, last=last).disks == last.disks


def test_types_of_google_metadata_have_other_names() -> None:
    last = after(api=(findings.CloudDisk("data", "pd-ssd", GIB),), provider="gcp")
    metadata = findings.Listing((findings.CloudDisk("data", "PERSISTENT-SSD"),))
    content = after(metadata=metadata, provider="gcp", last=last)
    assert content.disks == last.disks


def test_new_disk_without_provisioned_values_waits_for_the_api() -> None:
    last = after(api=DISKS[:1])
    assert list(volumes(after(metadata=METADATA, last=last))) == ["os", "1"]


def test_last_metadata_are_kept_while_nothing_answers() -> None:
    last = after(metadata=METADATA)
    content = after(machine=None, last=last)
    assert (content.disks, content.as_of_timestamp_s) == (last.disks, last.as_of_timestamp_s)
    assert content.source == "metadata"


def test_file_of_another_provider_is_not_kept() -> None:
    content = after(machine=None, last=after(api=DISKS, provider="aws"))
    assert (content.provider, content.disks) == ("azure", ())


def test_openstack_without_credentials_keeps_the_file_of_its_cloud() -> None:
    last = after(api=DISKS[2:], provider="vk")
    content = after(machine=None, provider="openstack", last=last)
    assert (content.provider, content.disks) == ("vk", last.disks)


def test_first_attempt_that_finds_nothing_has_no_time() -> None:
    content = after(machine=None)
    assert b"as_of" not in encode_terms_file(content)
    assert b'"machine": {}' in encode_terms_file(content)
    assert decode_terms_file(encode_terms_file(content)) == content


def test_machine_type_alone_has_a_time() -> None:
    assert after().as_of_timestamp_s == FIRST.timestamp()


def test_provider_without_an_api_is_complete() -> None:
    content = terms_file(findings.Detected("oracle", "Oracle Cloud", "VM.Standard"), None, FIRST)
    assert (content.source, content.disks, content.problems) == ("metadata", (), ())
    assert content.as_of_timestamp_s == FIRST.timestamp()


@pytest.mark.parametrize("data", [b"", b"{}", b'{"source": "file"}', b"\xff", b"[" * 100_000])
def test_other_files_are_rejected(data: bytes) -> None:
    with pytest.raises(DiskslaError, match="found another file than that of disksla detect"):
        decode_terms_file(data)


amounts = st.integers(1, 2**60)


@given(amounts, amounts, st.sampled_from([1, MB, MIB]))
def test_quantities_are_exact(size: int, rate: int, unit: int) -> None:
    content = after(api=(findings.CloudDisk("x", "t", size, None, rate * unit),))
    [entry] = json.loads(encode_terms_file(content))["disks"]
    assert parse_size_bytes(entry["size"]) == size
    assert int(entry["bandwidth"].rstrip("MiB/s")) > 0
    assert parse_bandwidth_bytes_per_second(entry["bandwidth"]) == float(rate * unit)


def failing(reason: str) -> Exchanges[findings.CloudDisk]:
    yield from ()
    raise ExchangeError(reason, f"x failed: {reason}")  # type: ignore[arg-type]


def disk(name: str) -> Exchanges[findings.CloudDisk]:
    if name in {"denied", "not_found", "throttled"}:
        return (yield from failing(name))
    return findings.CloudDisk(name, "t")


def test_one_denied_disk_does_not_hide_the_others() -> None:
    listing, _ = answered(findings.each_disk(["a", "denied", "not_found", "b"], disk), [])
    assert [each.volume for each in listing.disks] == ["a", "b"]
    assert [each.reason for each in listing.problems] == ["denied", "not_found"]


@pytest.mark.parametrize(
    ("names", "reason"), [(["denied", "denied"], "denied"), (["a", "throttled"], "throttled")]
)
def test_listing_that_fails_as_a_whole(names: list[str], reason: str) -> None:
    with pytest.raises(ExchangeError) as raised:
        answered(findings.each_disk(names, disk), [])
    assert raised.value.reason == reason


def test_problems_of_the_metadata_count_only_without_the_api() -> None:
    lacking = findings.DetectionProblem("metadata", "not_found", "no IOPS of 0")

    def metadata() -> Exchanges[findings.Metadata[str]]:
        yield from ()
        return findings.Metadata("i", "t", findings.Listing((), (lacking,)))

    def api(name: str) -> Exchanges[findings.Listing]:
        return (yield from findings.each_disk([name], disk))

    found, _ = answered(findings.detect("azure", "Azure", metadata(), lambda _: api("a")), [])
    assert found.problems == ()
    found, _ = answered(
        findings.detect("azure", "Azure", metadata(), lambda _: api("throttled")), []
    )
    assert [each.reason for each in found.problems] == ["throttled", "not_found"]
    assert found.metadata is not None
