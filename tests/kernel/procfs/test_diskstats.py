"""Parsing of /proc/diskstats, and differences of counters; close samples of one disk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.procfs.diskstats import (
    CloseSample,
    Counters,
    CounterValues,
    MalformedLineError,
    difference,
    has_decreased,
    parse_close_sample,
    parse_line,
    to_counters,
    unwrap,
)

FIELDS_20 = " 254       0 vda 25821 4829 1458858 10388 4900 2824 247112 1637 3 7408 12196 3152 41 139928 163 238 7"  # noqa: E501 -- one line of the file
MILLISECOND_INDEXES = [
    index for index, name in enumerate(Counters._fields) if name.endswith("_ms")
]

counter_values = st.integers(0, 2**64 - 1)


def readings(values: st.SearchStrategy[int] = counter_values) -> st.SearchStrategy[CounterValues]:
    return st.tuples(*[values] * 16)


def test_parse_line_names_every_field() -> None:
    line = parse_line(FIELDS_20)
    assert line.inflight == 3
    assert to_counters(line.reading) == Counters(
        reads=25821,
        reads_merged=4829,
        read_sectors=1458858,
        read_ms=10388,
        writes=4900,
        writes_merged=2824,
        written_sectors=247112,
        write_ms=1637,
        busy_ms=7408,
        queue_ms=12196,
        discards=3152,
        discards_merged=41,
        discarded_sectors=139928,
        discard_ms=163,
        flushes=238,
        flush_ms=7,
    )


@pytest.mark.parametrize(
    ("fields", "absent"),
    [
        (14, ("discards", "discards_merged", "discarded_sectors", "discard_ms", "flushes")),
        (15, ("discards_merged", "discarded_sectors", "discard_ms", "flushes", "flush_ms")),
        (17, ("discard_ms", "flushes", "flush_ms")),
        (18, ("flushes", "flush_ms")),
        (20, ()),
    ],
)
def test_parse_line_with_fewer_fields_leaves_counters_none(
    fields: int, absent: tuple[str, ...]
) -> None:
    parsed = to_counters(parse_line(" ".join(FIELDS_20.split()[:fields])).reading)
    for name in absent:
        assert getattr(parsed, name) is None
    assert sum(value is None for value in parsed) == 20 - fields
    assert parsed.queue_ms == 12196


def test_parse_line_ignores_fields_of_newer_kernels() -> None:
    assert parse_line(FIELDS_20 + " 1 2 3") == parse_line(FIELDS_20)


def test_parse_line_of_a_2_6_partition_has_four_counters() -> None:
    line = parse_line("   8    1 sda1 100 800 50 400")
    assert line.inflight is None
    assert to_counters(line.reading)._asdict() == {
        **dict.fromkeys(Counters._fields),
        "reads": 100,
        "read_sectors": 800,
        "writes": 50,
        "written_sectors": 400,
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "found 0 fields in ''; expected 14 or more"),
        ("8 0 sda", "found 3 fields in '8 0 sda'; expected 14 or more"),
        ("8 0 sda 1 2 3", "found 6 fields in .*; expected 14 or more"),
        ("8 0 sda 1 2 3 4 5 6 7 8 9 ten 11", "expected counters from 0 to"),
        ("8 0 sda 1 2 3 4 5 6 7 8 -9 10 11", "expected counters from 0 to"),
        (f"8 0 sda 1 2 3 4 5 6 7 8 9 10 {2**64}", "expected counters from 0 to"),
    ],
)
def test_parse_line_rejects_malformed_lines(line: str, message: str) -> None:
    with pytest.raises(MalformedLineError, match=message):
        parse_line(line)


@given(st.text())
def test_parse_line_accepts_or_rejects_any_text(text: str) -> None:
    try:
        line = parse_line(text)
    except MalformedLineError:
        return
    assert all(value is None or value >= 0 for value in line.reading)


@given(readings(), st.integers(0, 2**32))
def test_parse_line_returns_what_was_printed(values: CounterValues, inflight: int) -> None:
    numbers = [*values[:8], inflight, *values[8:]]
    line = parse_line(f" 8 16 sdb {' '.join(map(str, numbers))}")
    assert (line.reading, line.inflight) == (values, inflight)


def increases(before: CounterValues, after: CounterValues) -> CounterValues | None:
    """Return the increase of counters as the pipeline computes it; None after a reset."""
    if not has_decreased(before, after):
        return difference(after, before)
    start = unwrap(before, after)
    return None if start is None else difference(after, start)


@given(readings(st.integers(0, 2**40)), readings(st.integers(0, 2**20)))
def test_difference_is_what_was_added(before: CounterValues, rise: CounterValues) -> None:
    after = tuple((old or 0) + (new or 0) for old, new in zip(before, rise, strict=True))
    assert increases(before, after) == rise


@given(
    readings(st.integers(2**31, 2**32 - 1)),
    st.sampled_from(MILLISECOND_INDEXES),
    st.integers(0, 100),
)
def test_unwrap_continues_a_single_wrapped_counter(
    before: CounterValues, index: int, rise: int
) -> None:
    at_maximum = (*before[:index], 2**32 - 1, *before[index + 1 :])
    wrapped = (*before[:index], rise, *before[index + 1 :])
    increase = increases(at_maximum, wrapped)
    assert increase is not None
    assert increase[index] == rise + 1
    assert sum(filter(None, increase)) == rise + 1


@given(readings(st.integers(1, 2**40)), readings(st.integers(0, 2**40)))
def test_unwrap_detects_a_reset_of_all_counters(
    before: CounterValues, decrease: CounterValues
) -> None:
    after = tuple(
        max(0, (old or 0) - 1 - (drop or 0)) for old, drop in zip(before, decrease, strict=True)
    )
    assert increases(before, after) is None


@given(readings(), readings())
def test_increases_are_never_negative(before: CounterValues, after: CounterValues) -> None:
    increase = increases(before, after)
    assert increase is None or all(rise is not None and rise >= 0 for rise in increase)


def reading_of(**counters: int) -> CounterValues:
    return Counters(*(0,) * 16)._replace(**counters)


def test_unwrap_rejects_counters_beyond_32_bits() -> None:
    before = reading_of(reads=2**33, writes=10)
    assert increases(before, reading_of(reads=5, writes=10)) is None


def test_unwrap_rejects_a_small_decrease() -> None:
    before = reading_of(reads=10, read_ms=5000)
    assert increases(before, reading_of(reads=11, read_ms=4000)) is None


def test_unwrap_of_a_wrap_on_a_real_machine() -> None:
    before = reading_of(reads=900_000_000, queue_ms=4_294_617_635)
    increase = increases(before, reading_of(reads=900_000_100, queue_ms=1_024_485))
    assert increase is not None
    assert to_counters(increase).queue_ms == 1_374_146


def test_unwrap_rejects_a_changed_number_of_fields() -> None:
    short = parse_line(" ".join(FIELDS_20.split()[:14])).reading
    assert increases(short, parse_line(FIELDS_20).reading) is None


def test_difference_keeps_none() -> None:
    old = parse_line("   8    1 sda1 100 800 50 400").reading
    new = parse_line("   8    1 sda1 101 808 50 400").reading
    assert to_counters(increases(old, new) or ()) == Counters(*(None,) * 16)._replace(
        reads=1, read_sectors=8, writes=0, written_sectors=0
    )
    assert has_decreased(new, old)


LINUX_6 = b"  101    2   808    9    50    7   1600   20    3    15   29 0 0 0 0 7 4\n"
LINUX_4 = b"  101    2   808    9    50    7   1600   20    3    15   29\n"
COUNT = st.integers(0, 2**64 - 1)


def test_sample_has_requests_sectors_and_flushes() -> None:
    sample = parse_close_sample(12.3456789, LINUX_6)
    assert sample == CloseSample(12.34568, 101, 50, 808, 1600, 3, 7, 4)


def test_old_kernels_count_no_flushes() -> None:
    assert parse_close_sample(1.0, LINUX_4) == CloseSample(1.0, 101, 50, 808, 1600, 3)


def test_requests_in_flight_of_partitions_are_those_of_sysfs() -> None:
    assert parse_close_sample(1.0, LINUX_6, b"       4       8\n").inflight == 12


def test_kernels_that_count_below_zero() -> None:
    assert parse_close_sample(1.0, LINUX_4.replace(b" 3 ", b" -1 ")).inflight == 0


def test_paths_of_a_disk_add_up() -> None:
    one, other = parse_close_sample(1.0, LINUX_6), parse_close_sample(1.0, LINUX_4)
    assert one + other == CloseSample(1.0, 202, 100, 1616, 3200, 6, 7, 4)


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"1 2 3\n", LINUX_4[:45], LINUX_4.replace(b"808", b"many"), b"\xff" * 40]
)
def test_other_texts_are_rejected(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"^found .*; expected 11 numbers or more$"):
        parse_close_sample(1.0, text)


def test_other_texts_of_inflight_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"^found .*; expected two numbers$"):
        parse_close_sample(1.0, LINUX_6, b"one\n")


@given(st.floats(0, 1e8), st.lists(COUNT, min_size=11, max_size=20))
def test_numbers_are_those_of_the_text(at_s: float, numbers: list[int]) -> None:
    text = b" ".join(b"%8d" % number for number in numbers) + b"\n"
    sample = parse_close_sample(at_s, text)
    assert abs(sample.at_s - at_s) <= 0.000_005 + 1e-8
    assert (sample.reads, sample.writes) == (numbers[0], numbers[4])
    assert (sample.read_sectors, sample.written_sectors) == (numbers[2], numbers[6])
    assert sample.inflight == (numbers[8] if numbers[8] < 2**31 else 0)
    flushes = (*numbers[15:17], 0, 0)[:2]
    assert (sample.flushes, sample.flush_ms) == flushes


@given(st.binary(max_size=200), st.none() | st.binary(max_size=30))
def test_any_bytes_are_a_sample_or_an_error(text: bytes, inflight: bytes | None) -> None:
    try:
        sample = parse_close_sample(1.0, text, inflight)
    except ValueError:
        return
    assert sample.inflight >= 0
