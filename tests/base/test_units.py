"""Quantities with units, parsed and formatted."""

import subprocess
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base import units

PARSERS = (units.parse_size_bytes, units.parse_bandwidth_bytes_per_second, units.parse_duration_s)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("500GiB", 500 * units.GIB),
        ("500 GiB", 500 * units.GIB),
        ("500GB", 500 * 10**9),
        ("1.5TB", 1_500_000_000_000),
        ("1.005kB", 1005),
        ("4.35MB", 4_350_000),
        ("4096B", 4096),
        ("0B", 0),
        ("4096", 4096),
        ("107374182400", 100 * units.GIB),
        ("100G", 100 * units.GIB),
        ("100g", 100 * units.GIB),
        ("100Gi", 100 * units.GIB),
        ("4k", 4096),
        ("4K", 4096),
        ("1.5T", 1536 * units.GIB),
        ("9007199254740993B", 9007199254740993),
    ],
)
def test_parse_size_is_exact(text: str, size_bytes: int) -> None:
    assert units.parse_size_bytes(text) == size_bytes


@given(st.integers(0, 2**70), st.sampled_from(sorted(units.BYTES_PER_UNIT)))
def test_parse_size_of_any_whole_number(number: int, unit: str) -> None:
    number = number if unit else number * 512
    assert units.parse_size_bytes(f"{number}{unit}") == number * units.BYTES_PER_UNIT[unit]


@given(st.integers(1, 10**6), st.sampled_from(["kB", "KB", "MB", "GB", "TB", "GiB", "G", "Ti"]))
def test_size_in_the_gb_of_a_provider_is_that_in_gib(number: int, unit: str) -> None:
    text, gib = f"{number}{unit}", f"{number}{unit[0].upper()}iB"
    assert units.parse_size_bytes(text, binary_gb=True) == units.parse_size_bytes(gib)
    assert units.is_decimal(text) is (
        units.parse_size_bytes(text) != units.parse_size_bytes(text, binary_gb=True)
    )


@pytest.mark.parametrize(
    ("scale", "text"),
    [("iec", "100G"), ("iec", "4K"), ("iec", "1.5T"), ("iec-i", "100Gi"), ("iec-i", "4Mi")],
)
def test_sizes_without_b_mean_what_coreutils_say(scale: str, text: str) -> None:
    command = ["numfmt", f"--from={scale}", text]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert units.parse_size_bytes(text) == int(printed)


@pytest.mark.parametrize("text", ["25MB", "25MB/s", "25MBps", "25000000", "25000000/s"])
def test_bandwidth_as_providers_write_it(text: str) -> None:
    assert units.parse_bandwidth_bytes_per_second(text) == 25e6


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("25", "'25' has no unit; expected a bandwidth"),
        ("25/s", "'25/s' has no unit"),
        ("25Mbps", "unknown unit 'Mbps' .*b is for bits, B for bytes"),
        ("25Mb/s", "unknown unit 'Mb' .*b is for bits"),
        ("25MB/m", "found '25MB/m'; expected a bandwidth"),
    ],
)
def test_parse_bandwidth_rejects_other_texts(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        units.parse_bandwidth_bytes_per_second(text)


@given(st.integers(0, 10**9), st.sampled_from(sorted(units.SECONDS_PER_UNIT)))
def test_parse_duration_to_nearest_float(number: int, unit: str) -> None:
    text = f"{number // 1000}.{number % 1000:03}{unit}"
    assert units.parse_duration_s(text) == float(
        Fraction(number, 1000) * units.SECONDS_PER_UNIT[unit]
    )


@pytest.mark.parametrize("text", ["25MB", "25MB/s"])
def test_parse_bandwidth_with_and_without_per_second(text: str) -> None:
    assert units.parse_bandwidth_bytes_per_second(text) == 25e6


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected a size such as 500GiB"),
        ("500", "expected a size such as 500GiB"),
        ("-5GiB", "found '-5GiB'; expected a size"),
        ("1e3GiB", "found '1e3GiB'; expected"),
        ("٣GiB", "expected a size"),
        ("500Gb", "unknown unit 'Gb' in '500Gb'.* b is for bits"),
        ("500gb", "unknown unit 'gb' in '500gb'"),
        ("5Gs", r"unknown unit 'Gs' in '5Gs'.*without a unit\)$"),
        ("0.3KiB", "found '0.3KiB'; expected a whole number of bytes"),
        ("0.5B", "found '0.5B'; expected a whole number of bytes"),
        ("1" * 50 + "B", "expected a size"),
    ],
)
def test_parse_size_rejects_other_texts(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        units.parse_size_bytes(text)


def test_part_of_a_byte_of_a_large_size_is_rounded() -> None:
    """AWS calls 4.8 TiB what has 4800 GiB, and has such sizes in its examples."""
    assert units.parse_size_bytes("4.8TiB") == 5277655813325
    assert units.parse_size_bytes("1.1MiB") == 1153434


@given(st.text(max_size=50) | st.from_regex(r"[0-9.]{1,8} ?[a-zA-Z/]{0,5}", fullmatch=True))
def test_parse_any_text(text: str) -> None:
    for parse in PARSERS:
        try:
            quantity = parse(text)
        except ValueError as error:
            assert text in str(error)  # noqa: PT017 -- both outcomes are valid
        else:
            assert quantity >= 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.format_size(500 * units.GIB), "500 GiB"),
        (units.format_size(37.5 * units.MIB), "37.5 MiB"),
        (units.format_size(0), "0 B"),
        (units.format_bandwidth(240 * units.MIB), "240 MiB/s"),
        (units.format_bandwidth(1172 * units.MIB), "1172 MiB/s"),
        (units.format_bandwidth(119.7 * units.MIB), "119.7 MiB/s"),
        (units.format_bandwidth(16384 * units.MIB), "16384 MiB/s"),
        (units.format_bandwidth(2048), "2 KiB/s"),
        (units.format_listed_bandwidth(200e6), "200 MB/s"),
        (units.format_listed_bandwidth(200 * units.MIB), "200 MiB/s"),
        (units.format_listed_bandwidth(0.12 * units.MIB), "0.12 MiB/s"),
        (units.format_listed_bandwidth(250e3), "0.25 MB/s"),
        (units.format_listed_bandwidth(600 * 4096), "2.344 MiB/s"),
        (units.format_duration(0.0000123), "12.3 us"),
        (units.format_duration(0.0001), "0.1 ms"),
        (units.format_duration(0.00052), "0.52 ms"),
        (units.format_duration(3), "3 s"),
        (units.format_duration(1878.3), "31.3 min"),
        (units.format_duration(43200), "12 h"),
        (units.format_duration(3 * 86400), "3 d"),
        (units.format_count(15000), "15000"),
        (units.format_count(7.5), "7.5"),
        (units.format_percent(0), "0 %"),
        (units.format_percent(0.0000041), "under 0.1 %"),
        (units.format_percent(0.00775), "0.8 %"),
        (units.format_percent(0.3125), "31.2 %"),
        (units.format_percent(4.37), "437 %"),
    ],
)
def test_format_quantities(text: str, expected: str) -> None:
    assert text == expected


@given(st.integers(1, 2**60))
def test_format_size_round_trip_has_three_digits(size_bytes: int) -> None:
    again = float(units.parse_bandwidth_bytes_per_second(units.format_size(size_bytes)))
    assert again == pytest.approx(size_bytes, rel=0.005)
