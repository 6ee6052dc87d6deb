"""File format of the saved state, and what is rejected."""

import math
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.kernel.disks.disk import Disk, disk_key
from disksla.promise.catalogue.limits import Bucket
from disksla.state.pipeline.saved_state import (
    CLOCK_ERROR_S,
    SavedCredits,
    SavedDisk,
    SavedState,
    decode,
    encode,
    resume,
    save_credits,
    seconds_since_saved,
)
from disksla.verdict.credits.account import CreditAccount
from disksla.verdict.credits.bounds import Credits, Use, advance, from_bounds, initial
from disksla.verdict.interval.interval import Clocks
from support.any_records import Kinds, records

MACHINE = "6f1c"
CLOCKS = Clocks(monotonic_s=900.0, boottime_s=1000.0, realtime_s=1.7e9)
BUCKET = Bucket("iops", 5.4e6, 300.0, 300.0, 3000.0)
CREDITS = SavedCredits(5.4e6, 1e6, 3e6, 2e6, 1.0)
STATE = SavedState(
    MACHINE,
    "boot-1",
    CLOCKS,
    {"serial:vol-1": SavedDisk("contract", {"iops": CREDITS}, 300.0, None)},
)


def later(seconds: float) -> Clocks:
    return Clocks(*(clock + seconds for clock in msgspec.structs.astuple(CLOCKS)))


def enveloped(content: bytes, number: int = 1) -> bytes:
    return b'{"disksla_state":%d,"crc32":%d,"content":%s}' % (number, zlib.crc32(content), content)


def with_credits(**values: object) -> bytes:
    saved = {**msgspec.structs.asdict(CREDITS), **values}
    state = msgspec.to_builtins(STATE)
    state["disks"]["serial:vol-1"]["credits"]["iops"] = saved
    return enveloped(msgspec.json.encode(state))


levels = st.floats(0, 1e9)


@st.composite
def saved_credits(draw: st.DrawFn) -> SavedCredits:
    lower, estimate, upper, capacity = sorted(draw(st.tuples(levels, levels, levels, levels)))
    return SavedCredits(capacity or 1.0, lower, upper, estimate, draw(levels))


KINDS: Kinds = {float: levels, str: st.text(), SavedCredits: saved_credits()}
states = records(SavedState, KINDS, machine=st.just(MACHINE))


@given(states)
def test_state_round_trip(state: SavedState) -> None:
    assert decode(encode(state), MACHINE, state.clocks) == state


@given(st.binary())
def test_decode_rejects_arbitrary_bytes(text: bytes) -> None:
    with pytest.raises(DiskslaError):
        decode(text, MACHINE, CLOCKS)


@given(st.data())
def test_decode_rejects_truncated_or_changed_state(data: st.DataObject) -> None:
    text = encode(STATE)
    position = data.draw(st.integers(0, len(text) - 2))
    with pytest.raises(DiskslaError):
        decode(text[:position], MACHINE, CLOCKS)
    flipped = bytearray(text)
    flipped[position] ^= 1 << data.draw(st.integers(0, 7))
    try:
        read = decode(bytes(flipped), MACHINE, CLOCKS)
    except DiskslaError:
        return
    assert read == STATE


@pytest.mark.parametrize(
    ("text", "machine", "message"),
    [
        (b"", MACHINE, "not a saved state"),
        (b"\xff\xfe", MACHINE, "not a saved state"),
        (b'{"content":' + b"[" * 10_000, MACHINE, "not a saved state"),
        (enveloped(msgspec.json.encode(STATE), 2), MACHINE, "found format 2; expected 1"),
        (encode(STATE).replace(b"vol-1", b"vol-2"), MACHINE, "the checksum does not match"),
        (enveloped(b"{}"), MACHINE, "invalid content"),
        (enveloped(b'"\xff"'), MACHINE, "invalid content"),
        (encode(STATE), "another", "saved by another machine"),
        (with_credits(lower_credits=4e6), MACHINE, "expected lower <= estimate <= upper"),
        (with_credits(estimate_credits=0.5e6), MACHINE, "expected lower <= estimate"),
        (with_credits(upper_credits=6e6), MACHINE, "upper <= capacity"),
        (with_credits(lower_credits=-1.0), MACHINE, "invalid content"),
        (with_credits(capacity_credits=0.0), MACHINE, "invalid content"),
        (with_credits(lower_credits=math.nan), MACHINE, "invalid content"),
        (with_credits(surprise=1.0), MACHINE, "invalid content"),
    ],
)
def test_decode_rejects_with_a_reason(text: bytes, machine: str, message: str) -> None:
    with pytest.raises(DiskslaError, match=message):
        decode(text, machine, CLOCKS)


def test_decode_rejects_state_from_the_future() -> None:
    assert decode(encode(STATE), MACHINE, later(-CLOCK_ERROR_S)) == STATE
    with pytest.raises(DiskslaError, match="saved 61 s in the future"):
        decode(encode(STATE), MACHINE, later(-CLOCK_ERROR_S - 1))


def test_seconds_since_saved_within_and_across_boots() -> None:
    assert seconds_since_saved(STATE, "boot-1", later(5)) == (5.0, 5.0)
    assert seconds_since_saved(STATE, "boot-2", later(5)) == (0.0, 65.0)
    assert seconds_since_saved(STATE, "boot-2", later(3600)) == (3540.0, 3660.0)
    assert seconds_since_saved(STATE, "boot-2", later(-5)) == (0.0, 60.0)
    assert seconds_since_saved(STATE, "boot-1", later(-5)) == (0.0, 60.0)


def test_disk_key_is_wwn_or_serial() -> None:
    disk = Disk("vda", 254, 0, size_bytes=1)
    assert disk_key(disk) is None
    disk = msgspec.structs.replace(disk, serial="vol-1")
    assert disk_key(disk) == "serial:vol-1"
    assert disk_key(msgspec.structs.replace(disk, wwn="0x5000")) == "wwn:0x5000"


def saved_as(credit: Credits) -> SavedCredits:
    return save_credits(CreditAccount((credit,), 0.0), [BUCKET])["iops"]


def test_credits_round_trip_without_elapsed_time() -> None:
    now = advance(from_bounds(BUCKET, 1e6, 2e6, 1.5e6), BUCKET, 0.1, Use.exactly(100.0), 100, 0)
    back = resume(saved_as(now), BUCKET, (0.0, 0.0))
    assert back is not None
    assert back.lower_credits == pytest.approx(now.lower_credits, rel=1e-3)
    assert back.upper_credits == pytest.approx(now.upper_credits, rel=1e-3)
    assert back.estimate_credits == now.estimate_credits
    assert back.request_credits == 1.0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 5000), st.floats(0, 60), st.floats(0, 1))
def test_resumed_bounds_contain_the_true_level(
    level_share: float, wide_share: float, elapsed_s: float, error_s: float, use_share: float
) -> None:
    level = level_share * BUCKET.capacity
    wide = wide_share * BUCKET.capacity
    lower, upper = max(0.0, level - wide), min(BUCKET.capacity, level + wide)
    saved = saved_as(from_bounds(BUCKET, lower, upper, level))
    now = resume(saved, BUCKET, (max(0.0, elapsed_s - error_s), elapsed_s + error_s))
    drained = use_share * BUCKET.peak_per_second - BUCKET.fill_per_second
    truth = min(max(level - drained * elapsed_s, 0.0), BUCKET.capacity)
    assert now is not None
    assert now.lower_credits <= truth <= now.upper_credits


def test_credits_of_another_capacity_are_dropped() -> None:
    larger = msgspec.structs.replace(BUCKET, capacity=6e6)
    assert resume(CREDITS, larger, (0.0, 0.0)) is None


def test_initial_credits_can_be_saved() -> None:
    saved = saved_as(initial(BUCKET))
    state = msgspec.structs.replace(STATE, disks={"wwn:1": SavedDisk("x", {"iops": saved})})
    assert decode(encode(state), MACHINE, CLOCKS) == state
