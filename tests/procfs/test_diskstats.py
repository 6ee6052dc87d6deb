"""Lines of /proc/diskstats, and what counters rise by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.procfs.diskstats import (
    Counters,
    MalformedLineError,
    Reading,
    difference,
    has_decreased,
    parse_line,
    to_counters,
    unwrap,
)

FIELDS_20 = " 254       0 vda 25821 4829 1458858 10388 4900 2824 247112 1637 3 7408 12196 3152 41 139928 163 238 7"  # noqa: E501 -- a line is a line
MILLISECOND_INDEXES = [
    index for index, name in enumerate(Counters._fields) if name.endswith("_ms")
]

counts = st.integers(0, 2**64 - 1)


def readings(values: st.SearchStrategy[int] = counts) -> st.SearchStrategy[Reading]:
    return st.tuples(*[values] * 16)


def test_every_field_of_a_line_has_its_name() -> None:
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
def test_fields_that_a_kernel_does_not_print_are_absent(
    fields: int, absent: tuple[str, ...]
) -> None:
    parsed = to_counters(parse_line(" ".join(FIELDS_20.split()[:fields])).reading)
    for name in absent:
        assert getattr(parsed, name) is None
    assert sum(value is None for value in parsed) == 20 - fields
    assert parsed.queue_ms == 12196


def test_fields_of_kernels_to_come_are_left_alone() -> None:
    assert parse_line(FIELDS_20 + " 1 2 3") == parse_line(FIELDS_20)


def test_partitions_of_old_kernels_have_four_counters() -> None:
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
    ("line", "complaint"),
    [
        ("", "0 fields where 14 or more are right"),
        ("8 0 sda", "3 fields where 14 or more are right"),
        ("8 0 sda 1 2 3", "6 fields where 14 or more are right"),
        ("8 0 sda 1 2 3 4 5 6 7 8 9 ten 11", "no numbers where counters should be"),
        ("8 0 sda 1 2 3 4 5 6 7 8 -9 10 11", "numbers that no kernel"),
        (f"8 0 sda 1 2 3 4 5 6 7 8 9 10 {2**64}", "numbers that no kernel"),
    ],
)
def test_anything_else_is_refused(line: str, complaint: str) -> None:
    with pytest.raises(MalformedLineError, match=complaint):
        parse_line(line)


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        line = parse_line(text)
    except MalformedLineError:
        return
    assert all(value is None or value >= 0 for value in line.reading)


@given(readings(), st.integers(0, 2**32))
def test_printing_and_parsing_is_the_identity(values: Reading, inflight: int) -> None:
    numbers = [*values[:8], inflight, *values[8:]]
    line = parse_line(f" 8 16 sdb {' '.join(map(str, numbers))}")
    assert (line.reading, line.inflight) == (values, inflight)


def rises(before: Reading, after: Reading) -> Reading | None:
    """Give what counters rose by, as a disk under watch takes it."""
    if not has_decreased(before, after):
        return difference(after, before)
    start = unwrap(before, after)
    return None if start is None else difference(after, start)


@given(readings(st.integers(0, 2**40)), readings(st.integers(0, 2**20)))
def test_what_rose_is_what_was_added(before: Reading, rise: Reading) -> None:
    after = tuple((old or 0) + (new or 0) for old, new in zip(before, rise, strict=True))
    assert rises(before, after) == rise


@given(
    readings(st.integers(2**31, 2**32 - 1)),
    st.sampled_from(MILLISECOND_INDEXES),
    st.integers(0, 100),
)
def test_a_counter_that_wraps_alone_goes_on(before: Reading, index: int, rise: int) -> None:
    at_the_brink = (*before[:index], 2**32 - 1, *before[index + 1 :])
    wrapped = (*before[:index], rise, *before[index + 1 :])
    risen = rises(at_the_brink, wrapped)
    assert risen is not None
    assert risen[index] == rise + 1
    assert sum(filter(None, risen)) == rise + 1


@given(readings(st.integers(1, 2**40)), readings(st.integers(0, 2**40)))
def test_a_disk_that_starts_all_over_is_a_reset(before: Reading, fall: Reading) -> None:
    after = tuple(
        max(0, (old or 0) - 1 - (drop or 0)) for old, drop in zip(before, fall, strict=True)
    )
    assert rises(before, after) is None


@given(readings(), readings())
def test_no_rise_is_ever_negative(before: Reading, after: Reading) -> None:
    risen = rises(before, after)
    assert risen is None or all(rise is not None and rise >= 0 for rise in risen)


def reading_of(**counters: int) -> Reading:
    return Counters(*(0,) * 16)._replace(**counters)


def test_a_count_beyond_32_bits_cannot_have_wrapped() -> None:
    before = reading_of(reads=2**33, writes=10)
    assert rises(before, reading_of(reads=5, writes=10)) is None


def test_a_small_fall_is_no_wrap() -> None:
    before = reading_of(reads=10, read_ms=5000)
    assert rises(before, reading_of(reads=11, read_ms=4000)) is None


def test_a_wrap_seen_on_a_real_machine() -> None:
    before = reading_of(reads=900_000_000, queue_ms=4_294_617_635)
    risen = rises(before, reading_of(reads=900_000_100, queue_ms=1_024_485))
    assert risen is not None
    assert to_counters(risen).queue_ms == 1_374_146


def test_a_kernel_that_prints_other_fields_than_before_is_a_new_start() -> None:
    short = parse_line(" ".join(FIELDS_20.split()[:14])).reading
    assert rises(short, parse_line(FIELDS_20).reading) is None


def test_absent_fields_stay_absent() -> None:
    old = parse_line("   8    1 sda1 100 800 50 400").reading
    new = parse_line("   8    1 sda1 101 808 50 400").reading
    assert to_counters(rises(old, new) or ()) == Counters(*(None,) * 16)._replace(
        reads=1, read_sectors=8, writes=0, written_sectors=0
    )
    assert has_decreased(new, old)
