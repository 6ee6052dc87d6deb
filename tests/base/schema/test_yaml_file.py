"""YAML files: good ones are read, bad ones list their problems; with the configuration file."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.schema.reader import MAX_PROBLEMS
from disksla.base.schema.yaml_file import MAX_FILE_BYTES
from disksla.promise.catalogue import Catalog
from disksla.promise.catalogue.catalog import load_catalog, parse_catalog
from disksla.promise.configuration.custom_terms import SumBurst, SumTerms, TimeSharedTerms
from disksla.promise.configuration.settings import DevicePattern, DiskEntry, Settings
from disksla.promise.configuration.settings_file import parse_settings, read_settings
from disksla.promise.disk_entry import DiskMatch
from support.machine_facts import terms_file

CATALOG = load_catalog()
FILES = Path(__file__).parent / "configurations"
DOCUMENT = Path(__file__).parents[3] / "docs" / "configuration.md"


PROVISIONED = """
terms:
  - id: test.provisioned
    title: Disk whose IOPS are chosen
    provider: test
    provider_name: Test
    sources: [{url: https://example.org, date: 2026-01-01}]
    examples: [{size_bytes: 1GiB, provisioned: {iops: 500}, rates: {read_iops: 500}}]
    budget: separate
    read_iops: {rule: provisioned, minimum: 100, maximum: {rule: clamp, per_gib: 500}}
"""


def problems_of(content: bytes) -> list[str]:
    with pytest.raises(DiskslaError) as caught:
        parse_settings(content, "f.yml", CATALOG)
    return str(caught.value).splitlines()


def expected_in(path: Path) -> Iterator[str]:
    """Yield the problems that the comments at the top of a file list."""
    for line in path.read_text().splitlines():
        if not line.startswith("# "):
            break
        yield f"{path}:{line.removeprefix('# ')}"


@pytest.mark.parametrize("path", sorted(FILES.glob("invalid-*.yml")), ids=lambda path: path.stem)
def test_invalid_file_lists_problems(path: Path) -> None:
    expected = list(expected_in(path))
    assert expected
    with pytest.raises(DiskslaError) as caught:
        read_settings(path, CATALOG)
    assert str(caught.value).splitlines() == expected


@pytest.mark.parametrize("path", sorted(FILES.glob("good-*.yml")), ids=lambda path: path.stem)
def test_good_file_is_read(path: Path) -> None:
    assert isinstance(read_settings(path, CATALOG), Settings)


def test_empty_file_is_default() -> None:
    for name in ("empty", "comments-only", "empty-sections"):
        assert read_settings(FILES / f"good-{name}.yml", CATALOG) == Settings()
    assert read_settings(None, CATALOG) == Settings()


def test_example_file() -> None:
    settings = read_settings(FILES / "good-example.yml", CATALOG)
    assert settings.sampling.interval_s == 0.1
    assert settings.discovery.include == (DevicePattern("^vd[b-z]$"),)
    assert [entry.terms for entry in settings.disks][:3] == [
        "vk.ceph-ssd",
        "yandex.network-hdd",
        SumTerms(
            iops=300.0,
            bytes_per_second=25e6,
            burst=SumBurst(
                iops=2000.0, iops_credits=8000.0, bytes_per_second=60e6, credit_bytes=100_000_000
            ),
        ),
    ]
    assert settings.probes[0].disks == "all"


def test_alias_repeats_anchor() -> None:
    first, second = read_settings(FILES / "good-aliases.yml", CATALOG).disks
    assert isinstance(first.terms, TimeSharedTerms)
    assert first.terms == second.terms


def test_values_stay_text() -> None:
    first, second = read_settings(FILES / "good-texts-that-look-like-numbers.yml", CATALOG).disks
    assert first.match == DiskMatch(serial="0123", model="yes", wwn="0x5000c500a1b2c3d4")
    assert second == DiskEntry(
        match=DiskMatch(serial="10:30", mountpoint="/", by_id="virtio-data"),
        terms="vk.ceph-ssd",  # the present id
    )


def test_byte_order_mark_is_ignored() -> None:
    assert parse_settings(b"\xef\xbb\xbfstate:\n", "f.yml", CATALOG) == Settings()


def test_invalid_utf8_is_an_error_with_its_line() -> None:
    assert problems_of(b"# caf\xc3\xa9\nstate: {directory: /caf\xe9}\n") == [
        "f.yml:2: found byte 0xe9, which is not UTF-8; expected text in UTF-8"
    ]


def test_problems_are_limited_in_number() -> None:
    lines = problems_of(b"".join(b"key%d: 1\n" % number for number in range(1000)))
    assert len(lines) == MAX_PROBLEMS + 1
    assert lines[-1] == f"f.yml: only the first {MAX_PROBLEMS} problems are listed"


def test_what_aliases_repeat_counts() -> None:
    """A bomb of 800 bytes is refused in the line where it has too many values."""
    levels = ["a0: &a0 [x, x]"] + [
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 15)
    ]
    assert problems_of("\n".join([*levels, "disks: *a14"]).encode()) == [
        "f.yml:6: found more than 100000 keys and values, with what aliases repeat; expected fewer"
    ]


def test_items_of_a_list_are_limited_in_number() -> None:
    entries = ", ".join(["*a"] * 5001)
    content = (
        f"common: {{a: &a {{match: {{device: vda}}, terms: vk.ceph-ssd}}}}\ndisks: [{entries}]"
    )
    assert problems_of(content.encode()) == [
        "f.yml:2: disks: found 5001 items; expected at most 5000"
    ]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("iops: 3000", None),
        ("size: 1GiB, iops: 500", None),
        ("size: 1GiB", "needs provisioned IOPS"),
        ("size: 1GiB, iops: 90000", None),  # providers raise the maxima
        ("iops: 3000, options: {tier: P30}", "found option 'tier' of test.provisioned"),
        ("iops: 3000, bandwidth: 5MB", "bandwidth"),
    ],
)
def test_provisioned_values_are_checked(keys: str, problem: str | None) -> None:
    catalog = parse_catalog(PROVISIONED.encode(), "catalog.yml")
    content = f"disks:\n- {{match: {{device: vda}}, terms: test.provisioned, {keys}}}\n".encode()
    if problem is None:
        assert parse_settings(content, "f.yml", catalog).disks[0].iops is not None
    else:
        with pytest.raises(DiskslaError, match=rf"^f\.yml:2: disks\[0\]: .*{problem}"):
            parse_settings(content, "f.yml", catalog)


def test_what_is_no_file_is_an_error_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    irregular = dict.fromkeys((tmp_path, tmp_path / "pipe", Path("/dev/zero")), "it is not a")
    for path, why in {tmp_path / "none.yml": "No such file", **irregular}.items():
        with pytest.raises(DiskslaError, match=f"^cannot read {path}: {why} "):
            read_settings(path, CATALOG)


def test_symbolic_link_is_followed(tmp_path: Path) -> None:
    """Kubernetes mounts a ConfigMap as links."""
    (tmp_path / "link").symlink_to(FILES / "good-empty.yml")
    assert read_settings(tmp_path / "link", CATALOG) == Settings()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "secret.yml"
    path.touch(mode=0)
    with pytest.raises(DiskslaError, match=r"^cannot read .*: Permission denied$"):
        read_settings(path, CATALOG)


def test_file_size_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "huge.yml"
    path.write_bytes(b"#" * MAX_FILE_BYTES)
    assert read_settings(path, CATALOG) == Settings()
    path.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(DiskslaError, match=r"^cannot read .*: it is larger than 1 MiB$"):
        read_settings(path, CATALOG)


def test_examples_in_documentation_are_valid() -> None:
    examples = re.findall(
        r"^```yaml\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    catalogs = [text for text in examples if re.search("^terms:$", text, re.MULTILINE)]
    (rows,) = (parse_catalog(text.encode(), DOCUMENT.name).rows for text in catalogs)
    catalog = Catalog([*CATALOG.rows, *rows])
    terms = [text for text in examples if "/terms.d/" in text.splitlines()[0]]
    for text in terms:
        assert terms_file(text).disks
    assert terms
    settings = [text for text in examples if text not in (*catalogs, *terms)]
    assert len(settings) > 5
    for text in settings:
        assert isinstance(parse_settings(text.encode(), DOCUMENT.name, catalog), Settings), text


def entries(text: str) -> tuple[DiskEntry, ...]:
    return parse_settings(text.encode(), "f.yml", CATALOG).disks


def test_merge_key_adds_missing_keys() -> None:
    first, second = entries("""
disks:
  - &first {match: {device: vda}, terms: vk.ceph-ssd, size: 1TiB}
  - {<<: *first, match: {device: vdb}}
""")
    assert second == msgspec.structs.replace(first, match=DiskMatch(device="vdb"))


def test_merge_key_of_several_mappings_prefers_the_first() -> None:
    (entry,) = entries("""
common:
  a: &a {terms: vk.ceph-ssd}
  b: &b {terms: vk.ceph-hdd, size: 1TiB}
disks:
  - {match: {device: vdb}, <<: [*a, *b, {size: 2TiB}]}
""")
    assert (entry.terms, entry.size_bytes()) == ("vk.ceph-ssd", 2**40)


def test_merged_mapping_may_have_merge_keys() -> None:
    (entry,) = entries("""
common:
  a: &a {terms: vk.ceph-ssd, size: 1TiB}
  b: &b {<<: *a, size: 2TiB}
disks: [{<<: *b, match: {device: vdb}}]
""")
    assert (entry.terms, entry.size_bytes()) == ("vk.ceph-ssd", 2**41)


def test_quoted_merge_key_is_an_ordinary_key() -> None:
    (problem,) = problems_of(b"{'<<': {sampling: {}}}")
    assert problem.startswith("f.yml:1: <<: unknown key; expected one of: sampling,")


@pytest.mark.parametrize(
    ("value", "found"),
    [("text", "found a text"), ("", "found nothing"), ("[{}, []]", "found a list")],
)
def test_merge_key_needs_mappings(value: str, found: str) -> None:
    assert problems_of(f"\nstate:\n  <<: {value}\n".encode()) == [
        f"f.yml:3: state.<<: {found}; expected a mapping to merge, or a list of mappings"
    ]


def test_duplicate_merge_key_is_a_problem() -> None:
    assert problems_of(b"<<: {state: }\n<<: {probes: }\n") == [
        "f.yml:2: <<: duplicate key, first in line 1; expected it once"
    ]


def test_problem_in_merged_value_has_the_line_where_it_was_written() -> None:
    assert problems_of(b"""
common:
  probe: &probe
    every: 1
    evry: 5m
probes:
  - {<<: *probe, kind: read-latency}
  - {<<: *probe, kind: write-latency}
""") == [
        (
            "f.yml:4: probes[0].every: '1' has no unit; expected a duration from 10s to 30d,"
            " such as 10m"
        ),
        (
            "f.yml:5: probes[0].evry: unknown key (did you mean `every`?); expected one of: kind,"
            " disks, every, cron, splay, rate_iops, runtime, target, file_size, busy, credits,"
            " daily"
        ),
    ]


def test_problem_in_aliased_value_has_the_line_of_the_anchor() -> None:
    assert problems_of(b"""
common: [&wrong 5]
sampling: {interval: *wrong}
stat: *wrong
""") == [
        (
            "f.yml:2: sampling.interval: '5' has no unit; expected a duration from 10ms to 10s,"
            " such as 100ms"
        ),
        (
            "f.yml:4: stat: unknown key (did you mean `state`?); expected one of: sampling,"
            " discovery, assessment, disks, machine, probes, metrics, ebs, state, pages,"
            " consumers, common"
        ),
    ]


def test_merged_entries_are_limited_in_number() -> None:
    keys = ", ".join(f"k{number}: 1" for number in range(10_000))
    merges = "".join("  - {<<: *many}\n" for _ in range(11))
    assert problems_of(f"common:\n  many: &many {{{keys}}}\ndisks:\n{merges}".encode()) == [
        "f.yml:7: found more than 100000 keys and values, with what aliases repeat; expected fewer"
    ]


@pytest.mark.parametrize("content", ["common: 5", "common: [&a {b: c}]", "common:"])
def test_common_is_not_read(content: str) -> None:
    assert parse_settings(content.encode(), "f.yml", CATALOG) == Settings()


FRAGMENTS = (
    *("disks: ", "match: ", "terms: ", "sampling: ", "interval: ", "iops: ", "budget: sum"),
    *("vk.ceph-ssd", "300", "100ms", "~", "&a ", "*a", "<<: ", "!!int ", "%YAML 1.1\n"),
    *("- ", "? ", ": ", ",", "{", "}", "[", "]", "'", '"', "#", "@", "`", "---\n", "...\n"),
    *("\n", "  ", "\t", "\x00", "\u2028", "\ufeff"),
)
fragments = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)


@given(st.text() | fragments)
@example("disks: [{match: {device: vda}, terms: {budget: sum, iops: 300}}]")
def test_settings_from_any_text(text: str) -> None:
    check_settings_or_error(text.encode(errors="surrogatepass"))


@given(st.binary())
def test_settings_from_any_bytes(content: bytes) -> None:
    check_settings_or_error(content)


def check_settings_or_error(content: bytes) -> None:
    try:
        answer = parse_settings(content, "f.yml", CATALOG)
    except DiskslaError as error:
        assert re.fullmatch(r"(f\.yml:\d+: .+\n?)+", str(error))  # noqa: PT017 -- either is fine
    else:
        assert isinstance(answer, Settings)
