"""The configuration file: every good one is read, every bad one names its problems."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disksla.config.custom_terms import SumBurst, SumTerms, TimeSharedTerms
from disksla.config.device_pattern import DevicePattern
from disksla.config.settings import DiskEntry, DiskMatch, Settings
from disksla.config.settings_file import parse_settings, read_settings
from disksla.errors import DiskslaError
from disksla.limits.catalog import load_catalog, parse_terms
from disksla.limits.terms import Catalog
from disksla.schema.reader import MAX_PROBLEMS
from disksla.schema.yaml_file import MAX_FILE_BYTES

CATALOG = load_catalog()
FILES = Path(__file__).parent / "configurations"
DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "configuration.md"


PROVISIONED = """
terms:
  - id: test.provisioned
    title: Disk whose IOPS are chosen
    provider: test
    provider_name: Test
    sources: [{url: https://example.org, date: 2026-01-01}]
    examples: [{size_bytes: 1GiB, provisioned: {iops: 500}, rates: {read_iops: 500}}]
    budget: separate
    read_iops: {law: provisioned, minimum: 100, maximum: 64000, maximum_per_gib: 500}
"""


def problems_of(content: bytes) -> list[str]:
    with pytest.raises(DiskslaError) as caught:
        parse_settings(content, "f.yml", CATALOG)
    return str(caught.value).splitlines()


def expected_in(path: Path) -> Iterator[str]:
    """Give the comments that open a file."""
    for line in path.read_text().splitlines():
        if not line.startswith("# "):
            break
        yield f"{path}:{line.removeprefix('# ')}"


@pytest.mark.parametrize("path", sorted(FILES.glob("invalid-*.yml")), ids=lambda path: path.stem)
def test_an_invalid_file_names_its_problems(path: Path) -> None:
    expected = list(expected_in(path))
    assert expected
    with pytest.raises(DiskslaError) as caught:
        read_settings(path, CATALOG)
    assert str(caught.value).splitlines() == expected


@pytest.mark.parametrize("path", sorted(FILES.glob("good-*.yml")), ids=lambda path: path.stem)
def test_a_good_file_is_read(path: Path) -> None:
    assert isinstance(read_settings(path, CATALOG), Settings)


def test_no_file_is_the_default() -> None:
    assert read_settings(None, CATALOG) == Settings()


@pytest.mark.parametrize("name", ["empty", "comments-only", "sections-left-empty"])
def test_an_empty_file_is_the_default(name: str) -> None:
    assert read_settings(FILES / f"good-{name}.yml", CATALOG) == Settings()


def test_the_example_in_full() -> None:
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


def test_an_alias_repeats_what_it_names() -> None:
    first, second = read_settings(FILES / "good-aliases.yml", CATALOG).disks
    assert isinstance(first.terms, TimeSharedTerms)
    assert first.terms == second.terms


def test_texts_stay_as_they_are_written() -> None:
    first, second = read_settings(FILES / "good-texts-that-look-like-numbers.yml", CATALOG).disks
    assert first.match == DiskMatch(serial="0123", model="yes", wwn="0x5000c500a1b2c3d4")
    assert second == DiskEntry(
        match=DiskMatch(serial="10:30", mountpoint="/", by_id="virtio-data"),
        terms="vk.ceph-ssd",  # by its present name
    )


def test_a_byte_order_mark_is_no_problem() -> None:
    assert parse_settings(b"\xef\xbb\xbfstate:\n", "f.yml", CATALOG) == Settings()


def test_what_is_not_utf8_is_told_with_its_line() -> None:
    assert problems_of(b"# caf\xc3\xa9\nstate: {directory: /caf\xe9}\n") == [
        "f.yml:2: byte 0xe9 is not UTF-8; expected a text in UTF-8"
    ]


def test_problems_have_an_end() -> None:
    lines = problems_of(b"".join(b"key%d: 1\n" % number for number in range(1000)))
    assert len(lines) == MAX_PROBLEMS + 1
    assert lines[-1] == f"f.yml: no more than {MAX_PROBLEMS} problems are listed"


def test_aliases_cannot_blow_up() -> None:
    levels = ["a0: &a0 [x, x]"] + [
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 15)
    ]
    assert len(problems_of("\n".join([*levels, "disks: *a14"]).encode())) == len(levels) + 10


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("iops: 3000", None),
        ("size: 1GiB, iops: 500", None),
        ("size: 1GiB", "no IOPS .*provisioned"),
        ("iops: 50", "50 IOPS"),
        ("size: 1GiB, iops: 3000", "3000 IOPS"),
        ("iops: 3000, bandwidth: 5MB", "bandwidth"),
    ],
)
def test_what_is_provisioned_must_be_given_and_fit(keys: str, problem: str | None) -> None:
    (row,) = parse_terms(PROVISIONED)
    content = f"disks:\n- {{match: {{device: vda}}, terms: test.provisioned, {keys}}}\n".encode()
    if problem is None:
        assert parse_settings(content, "f.yml", Catalog([row])).disks[0].iops is not None
    else:
        with pytest.raises(DiskslaError, match=rf"^f\.yml:2: disks\[0\]: .*{problem}"):
            parse_settings(content, "f.yml", Catalog([row]))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(
        DiskslaError, match=r"none\.yml: cannot be read: No such file or directory"
    ):
        read_settings(tmp_path / "none.yml", CATALOG)


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match="is no regular file; expected a configuration file"):
        read_settings(tmp_path, CATALOG)


def test_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(DiskslaError, match=f"^{path} is no regular file; expected"):
            read_settings(path, CATALOG)


def test_a_link_is_followed(tmp_path: Path) -> None:
    """Kubernetes mounts a configuration so."""
    (tmp_path / "link").symlink_to(FILES / "good-empty.yml")
    assert read_settings(tmp_path / "link", CATALOG) == Settings()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "secret.yml"
    path.touch(mode=0)
    with pytest.raises(DiskslaError, match="cannot be read: Permission denied"):
        read_settings(path, CATALOG)


def test_a_huge_file(tmp_path: Path) -> None:
    path = tmp_path / "huge.yml"
    path.write_bytes(b"#" * MAX_FILE_BYTES)
    assert read_settings(path, CATALOG) == Settings()
    path.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(DiskslaError, match="larger than 1 MiB"):
        read_settings(path, CATALOG)


def test_every_example_of_the_reference_is_good() -> None:
    examples = re.findall(
        r"^```yaml\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(examples) > 5
    for text in examples:
        assert isinstance(parse_settings(text.encode(), DOCUMENT.name, CATALOG), Settings), text


FRAGMENTS = (
    *("disks: ", "match: ", "terms: ", "sampling: ", "interval: ", "iops: ", "budget: sum"),
    *("vk.ceph-ssd", "300", "100ms", "~", "&a ", "*a", "<<: ", "!!int ", "%YAML 1.1\n"),
    *("- ", "? ", ": ", ",", "{", "}", "[", "]", "'", '"', "#", "@", "`", "---\n", "...\n"),
    *("\n", "  ", "\t", "\x00", "\u2028", "\ufeff"),
)
fragments = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)


@given(st.text() | fragments)
@example("disks: [{match: {device: vda}, terms: {budget: sum, iops: 300}}]")
def test_any_text_is_settings_or_a_refusal(text: str) -> None:
    is_settings_or_a_refusal(text.encode(errors="surrogatepass"))


@given(st.binary())
def test_any_bytes_are_settings_or_a_refusal(content: bytes) -> None:
    is_settings_or_a_refusal(content)


def is_settings_or_a_refusal(content: bytes) -> None:
    try:
        answer = parse_settings(content, "f.yml", CATALOG)
    except DiskslaError as error:
        assert re.fullmatch(r"(f\.yml:\d+: .+\n?)+", str(error))  # noqa: PT017 -- either is fine
    else:
        assert isinstance(answer, Settings)
