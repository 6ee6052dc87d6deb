"""The catalogue: rows of the package with sources and examples, and rows of an operator."""

import datetime as dt
import os
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.schema.yaml_file import MAX_FILE_BYTES
from disksla.promise.catalogue import catalog
from disksla.promise.catalogue.catalog import load_catalog, parse_catalog
from disksla.promise.catalogue.derive import beyond_bounds, beyond_sizes, derive_limits
from disksla.promise.catalogue.examples import check_examples
from disksla.promise.catalogue.rules import Clamp, Provisioned
from disksla.promise.catalogue.terms import Provision, Terms
from support.examples import scaled

CATALOG = load_catalog()
ROWS = pytest.mark.parametrize("row", CATALOG.rows, ids=lambda row: row.id)
PROVIDERS = Path(catalog.__file__).parent / "providers"

ROW = """
terms:
  - id: acme.disk
    title: A disk
    provider: acme
    provider_name: Acme
    sources: [{url: 'https://example.com/', date: 2026-01-02}]
    examples: [{size_bytes: 1GiB, rates: {}}]
"""
"""A row of an operator."""


@ROWS
def test_rows_have_dated_sources_with_notes(row: Terms) -> None:
    assert row.sources
    for source in row.sources:
        assert source.url.startswith("https://")
        assert dt.date(2018, 1, 1) <= source.date
        assert source.note


@ROWS
def test_each_provider_has_a_file(row: Terms) -> None:
    assert re.fullmatch(rf"{row.provider}\.[a-z0-9-]+", row.id)
    assert (PROVIDERS / f"{row.provider}.yaml").exists()


@ROWS
def test_names_in_the_api_are_names_of_the_row(row: Terms) -> None:
    for name in row.api_names:
        assert CATALOG[f"{row.provider}.{name}"] is row


@ROWS
def test_worked_examples(row: Terms) -> None:
    check_examples(row)
    for example in row.examples:
        limits = derive_limits(row, example.size_bytes, example.provisioned)
        assert limits.rates == example.rates
        assert not beyond_bounds(row, example.size_bytes, example.provisioned)
        assert not beyond_sizes(row, example.size_bytes)


def chosen(row: Terms) -> Provision:
    """Return values of a disk for which some must be chosen."""
    is_chosen = [isinstance(rule, Provisioned) for rule in (row.read_iops, row.read_bandwidth)]
    return Provision(5000.0 if is_chosen[0] else None, 1e8 if is_chosen[1] else None)


LIMITED = [row for row in CATALOG.rows if row.budget and not row.is_file_storage]


@pytest.mark.parametrize("row", LIMITED, ids=lambda row: row.id)
@scaled(40)
@given(st.integers(1, 2**48), st.integers(1, 2**48), st.data())
def test_limits_do_not_decrease_with_size(
    row: Terms, one: int, other: int, data: st.DataObject
) -> None:
    options = {
        name: data.draw(st.sampled_from([option.default, *option.values]))
        for name, option in row.options.items()
    }
    values = [row.options[name].values.get(value) for name, value in options.items()]
    least = max((value.least_size_bytes or 1 for value in values if value), default=1)
    provision = msgspec.structs.replace(chosen(row), options=options)
    small, large = (
        derive_limits(row, max(size, least), provision).rates for size in sorted((one, other))
    )
    for before, after in zip(
        msgspec.structs.astuple(small), msgspec.structs.astuple(large), strict=True
    ):
        assert (before is None) == (after is None)
        assert before is None or 0 < before <= after


def test_only_generic_terms_have_no_limits() -> None:
    disks = [row for row in CATALOG.rows if not row.is_file_storage]
    assert {row.provider for row in disks if not row.budget} == {"generic"}
    for row in LIMITED:
        assert derive_limits(row, 2**40, chosen(row)).rates.read_iops is not None


@pytest.mark.parametrize(
    ("scalar", "value"), [("32GiB", 32 * 2**30), ("4KiB", 4096), ("1GB", 10**9)]
)
def test_sizes_are_read_as_bytes(scalar: str, value: int) -> None:
    (row,) = parse_catalog(ROW.replace("1GiB", scalar).encode(), "f.yml").rows
    assert row.examples[0].size_bytes == value


def test_durations_and_bandwidths_are_read_in_base_units() -> None:
    text = ROW.replace("rates: {}", "rates: {read_bytes_per_second: 15MiB/s}")
    content = f"""{text}
    latency: {{seconds: 0.5ms, kind: guaranteed}}
    budget: separate
    read_bandwidth: {{rule: clamp, minimum: 15MiB/s}}
"""
    (row,) = parse_catalog(content.encode(), "f.yml").rows
    assert row.latency is not None
    assert row.latency.seconds == 0.0005
    assert row.read_bandwidth == Clamp(minimum=15.0 * 2**20)


def problems_of(text: str) -> list[str]:
    with pytest.raises(DiskslaError) as caught:
        parse_catalog(text.encode(), "f.yml")
    return str(caught.value).splitlines()


def test_unknown_key_is_an_error_with_its_place() -> None:
    (problem,) = problems_of(ROW + "    colour: red\n")
    assert problem.startswith("f.yml:9: terms[0].colour: unknown key; expected one of: id, title,")


def test_invalid_yaml_is_an_error() -> None:
    assert problems_of("terms: [\n") == [
        "f.yml:2: not valid YAML: while parsing a flow node, did not find expected node content"
    ]


def test_operator_rows_follow_the_rows_of_the_package(tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text(ROW.replace("acme.disk", "acme.b"))
    (tmp_path / "a.yml").write_text(ROW.replace("acme.disk", "acme.a"))
    for ignored in (".c.yml", "d.yaml", "e.yml~"):
        (tmp_path / ignored).write_text("not a catalogue")
    ids = [row.id for row in load_catalog(tmp_path).rows]
    assert ids == [*(row.id for row in CATALOG.rows), "acme.a", "acme.b"]


def test_missing_directory_has_no_rows(tmp_path: Path) -> None:
    assert load_catalog(tmp_path / "catalog.d").rows == CATALOG.rows


def test_empty_file_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("# nothing yet\n")
    assert load_catalog(tmp_path).rows == CATALOG.rows


def test_file_instead_of_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "catalog.d").touch()
    with pytest.raises(DiskslaError, match=r"^cannot read .*/catalog\.d: Not a directory$"):
        load_catalog(tmp_path / "catalog.d")


def test_problems_of_all_files_are_listed_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("terms: [{id: acme.a}]\n")
    (tmp_path / "b.yml").write_text("terms: [\n")
    (tmp_path / "c.yml").mkdir()
    os.mkfifo(tmp_path / "d.yml")
    (tmp_path / "e.yml").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(DiskslaError) as caught:
        load_catalog(tmp_path)
    lines = str(caught.value).replace(f"{tmp_path}/", "").splitlines()
    assert lines == [
        "a.yml:1: terms[0].title: missing; expected a text",
        (
            "a.yml:1: terms[0].provider: missing; expected a name of lower-case letters, digits, -"
            " and _, such as vk"
        ),
        "a.yml:1: terms[0].provider_name: missing; expected a text",
        (
            "a.yml:1: terms[0].examples: missing; expected a list, each item a mapping of"
            " size_bytes, rates, provisioned, burst"
        ),
        "b.yml:2: not valid YAML: while parsing a flow node, did not find expected node content",
        "cannot read c.yml: it is not a regular file",
        "cannot read d.yml: it is not a regular file",
        "cannot read e.yml: it is larger than 1 MiB",
    ]


def test_duplicate_id_is_an_error_with_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(ROW)
    (tmp_path / "b.yml").write_text(ROW.replace("title:", "aliases: [acme.b, vk.dp1]\n    title:"))
    with pytest.raises(DiskslaError) as caught:
        load_catalog(tmp_path)
    first, second = str(caught.value).splitlines()
    assert first == (
        f"{tmp_path}/b.yml:3: terms[0].id: found 'acme.disk', which exists in {tmp_path}/a.yml:3;"
        " expected another id"
    )
    assert re.fullmatch(
        r".*/b\.yml:4: terms\[0\]\.aliases\[1\]: found 'vk\.dp1', which exists in"
        r" /.*/providers/vk\.yaml:\d+; expected another id",
        second,
    )
    place = Path(second.partition("exists in ")[2].partition(":")[0])
    line = int(second.partition("vk.yaml:")[2].partition(";")[0])
    assert "vk.dp1" in place.read_text(encoding="utf-8").splitlines()[line - 1]


def test_problem_in_merged_mapping_is_listed_once_with_its_line() -> None:
    rows = "".join(f"  - {{<<: *acme, id: acme.{name}, title: A}}\n" for name in "abc")
    text = f"""common:
  acme: &acme
    provider: acme
    provider_name: Acme
    latency: {{seconds: 5, kind: guarantied}}
    examples: [{{size_bytes: 1GiB, rates: {{}}}}]
terms:
{rows}"""
    assert problems_of(text) == [
        (
            "f.yml:5: terms[0].latency.kind: found 'guarantied' (did you mean `guaranteed`?);"
            " expected one of: guaranteed, indicative"
        ),
        "f.yml:5: terms[0].latency.seconds: '5' has no unit; expected a duration such as 1ms",
    ]
    text = text.replace("5, kind: guarantied", "5ms, kind: guaranteed")
    assert [row.id for row in parse_catalog(text.encode(), "f.yml").rows] == [
        "acme.a",
        "acme.b",
        "acme.c",
    ]
