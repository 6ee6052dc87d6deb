"""The whole screen: its size, what is on it, and the order of the disks."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.tell.api.disks_document import DisksDocument, MachineLimitDocument
from disksla.tell.explanation import SHOWN_TEXT
from disksla.tell.top import Look, block, in_ascii
from disksla.tell.top.line import Line, cells
from disksla.tell.top.screen import current, place_of, screen
from disksla.tell.top.view import SORT_KEYS, Size, SortKey, View, listed, press
from support.documents import HOSTILE, disk, disks_documents, document, used, with_credits
from support.examples import scaled

LOOK = Look("asks the daemon at http://127.0.0.1:10056/metrics")
PLAIN = LOOK._replace(has_blocks=False, has_colours=False)
USUAL = Size(80, 24)
LARGE = Size(100, 40)
SORTS = tuple(SORT_KEYS.values())
SIZES = st.builds(Size, st.integers(1, 220), st.integers(1, 60))
VIEWS = st.builds(
    View,
    sort=st.sampled_from(SORTS),
    selected=st.none() | st.sampled_from(("sda", "vdb", "nvme10n1", HOSTILE)),
    is_open=st.booleans(),
    is_who=st.booleans(),
    is_help=st.booleans(),
    is_frozen=st.booleans(),
    scrolled=st.integers(0, 99),
    filter=st.sampled_from(("", "vd", "zz")),
    is_typing=st.booleans(),
)
LOOKS = st.builds(
    Look,
    st.just("samples by itself"),
    has_blocks=st.booleans(),
    has_colours=st.booleans(),
    utc_offset_s=st.integers(-50000, 50000),
    problem=st.sampled_from(("", "NO ANSWER for 9 s")),
)


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


def shown(
    whole: DisksDocument | None, view: View | None = None, size: Size = USUAL, look: Look = LOOK
) -> list[str]:
    return [text_of(line).rstrip() for line in screen(whole, view or View(), size, look)]


@scaled(100)
@given(st.none() | disks_documents, VIEWS, SIZES, LOOKS)
def test_any_screen_has_its_size_and_nothing_to_execute(
    whole: DisksDocument | None, view: View, size: Size, look: Look
) -> None:
    lines = screen(whole, view, size, look)
    assert len(lines) == size.rows
    for line in lines:
        assert text_of(line).isprintable()
        assert cells(text_of(line)) == size.columns


@pytest.mark.parametrize(
    ("rows", "first", "last"),
    [
        (1, ">vdb ", ">vdb "),
        (2, " Device ", ">vdb "),
        (3, "disksla top:", ">vdb "),
        (8, "disksla top:", "?:help"),
        (12, "disksla top:", "?:help"),
    ],
)
def test_lines_of_a_low_screen(rows: int, first: str, last: str) -> None:
    """The selected disk stays; what is left out first are sentences, then the keys."""
    lines = shown(document(disk("vdb", "met", 0.0)), size=Size(80, rows))
    assert len(lines) == rows
    assert lines[0].startswith(first)
    assert lines[-1].startswith(last)
    assert any(line.startswith("vdb: ") for line in lines) == (rows >= 12)


@scaled(100)
@given(disks_documents, VIEWS, SIZES, st.lists(st.sampled_from(("down", "up", "page-down", "k"))))
def test_selected_disk_is_visible(
    whole: DisksDocument, view: View, size: Size, keys: list[str]
) -> None:
    view = view._replace(is_open=False, is_help=False, is_typing=False)
    for key in keys:
        view = press(view, key, place_of(whole, view, size, LOOK))
    chosen = current(whole, view)
    marked = [line for line in screen(whole, view, size, LOOK) if text_of(line).startswith(">")]
    if chosen is None:
        assert not marked
    else:
        assert len(marked) == 1 or any(each.device.startswith(">") for each in whole.disks)


def test_sixty_four_disks_scroll() -> None:
    whole = document(*(disk(f"nvme{number}n1", "idle", 0.0) for number in range(64)))
    view = View()
    for number in range(64):
        rows = [line for line in shown(whole, view) if line[1:].startswith("nvme")]
        [marked] = [line for line in rows if line.startswith(">")]
        assert marked.split()[0] == f">nvme{number}n1"
        assert len(rows) == 17
        view = press(view, "down", place_of(whole, view, USUAL, LOOK))


@scaled(60)
@given(disks_documents, st.sampled_from(SORTS), st.randoms(use_true_random=False))
def test_order_is_total(whole: DisksDocument, sort: SortKey, random: object) -> None:
    ordered = listed(whole.disks, sort)
    assert sorted(map(id, ordered)) == sorted(map(id, whole.disks))
    shuffled = list(whole.disks)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert listed(shuffled, sort) == ordered


@pytest.mark.parametrize("sort", SORTS)
def test_order(sort: SortKey) -> None:
    calm = disk("nvme10n1", "met", 0.0)
    busy = msgspec.structs.replace(
        disk("nvme2n1", "met", 0.0),
        present=msgspec.structs.replace(calm.present, read_iops=9e3, read_bytes_per_second=9e8),
        await_s=1.0,
        load_ratio=1.2,
    )
    first, second = listed((calm, busy), sort)
    assert (first, second) == (busy, calm)


def test_disk_that_is_in_trouble_now_comes_before_one_that_was() -> None:
    was = msgspec.structs.replace(disk("vda", "below", 200.0), last_minute=("idle",) * 60)
    now = disk("vdb", "throttled", 70.0)
    longer = disk("vdc", "throttled", 80.0)
    calm = disk("vdd", "met", 0.0)
    ordered = listed((calm, was, now, longer), "trouble")
    assert [each.device for each in ordered] == ["vdc", "vdb", "vda", "vdd"]
    slow = msgspec.structs.replace(SLOW, device="vde", slow_s=75.0)
    ordered = listed((calm, was, now, longer, slow), "trouble")
    assert [each.device for each in ordered] == ["vdc", "vde", "vdb", "vda", "vdd"]


KNOWN = msgspec.structs.replace(
    with_credits(disk()),
    machine_limits=(
        MachineLimitDocument(limits="m5.large: 3600 IOPS for all volumes", load_ratio=0.5),
    ),
    claim="shop/data", said_by="the API of AWS", as_of_timestamp_s=1764000000.0 - 600,
)  # fmt: skip
NEW = msgspec.structs.replace(
    disk(),
    verdict=None, limit=None, condition=None, last_minute=(None,),
    charts=type(disk().charts)(**dict.fromkeys(disk().charts.__struct_fields__, ())),
    load_ratio=None, limits=type(disk().limits)(), mount_points=(), inflight=None,
    machine_limits=(MachineLimitDocument(limits="2 vCPUs", load_ratio=None),),
)  # fmt: skip
LASTING = msgspec.structs.replace(with_credits(NEW).credits[0], exhaustion_s=None)
BY_MACHINE = msgspec.structs.replace(disk(), limit="machine_iops", condition="machine_limit")
BANDWIDTH = msgspec.structs.replace(disk("vdc"), throttled_seconds={"machine_bandwidth": 41.0})
WITHOUT = msgspec.structs.replace(
    disk(), why_no_consumers="the controller io is off; switch it on"
)
SLOW = msgspec.structs.replace(
    disk("vdb", "unproven", 300.0), slow_s=300.0, condition="slow", last_minute=("slow",) * 60,
)  # fmt: skip
OPENED = View(selected="vdb", is_open=True)
LATE = LOOK._replace(problem="NO ANSWER for 9 s")


def test_screens(golden: Callable[[Path, str], None]) -> None:
    one, two = document(disk()), document(disk("vdc", "unproven", 0.0), disk())
    cases: dict[str, tuple[DisksDocument | None, View, Size, Look]] = {
        "list in ASCII": (two, View(), USUAL, PLAIN),
        "narrow list": (document(with_credits(disk())), View(), Size(40, 12), LOOK),
        "list": (document(with_credits(disk())), View(), USUAL, LOOK),
        "wide list": (document(with_credits(disk()), KNOWN), View(), Size(140, 12), LOOK),
        "list with who": (
            document(used(disk()), used(BANDWIDTH), disk("vdd")), View(), Size(150, 12), LOOK,
        ),
        "who": (document(used(disk())), OPENED._replace(is_who=True), USUAL, LOOK),
        "who: throttled": (
            document(used(BANDWIDTH)), View("name", "vdc", is_open=True, is_who=True), USUAL, LOOK,
        ),
        "who: not known": (document(WITHOUT), OPENED._replace(is_who=True), Size(60, 8), LOOK),
        "who: idle": (document(disk()), OPENED._replace(is_who=True), Size(90, 8), LOOK),
        "machine": (document(BY_MACHINE), View(), Size(80, 12), LOOK),
        "slow": (document(SLOW), View(), USUAL, LOOK),
        "opened: slow": (document(SLOW), OPENED, Size(80, 12), LOOK),
        "opened: machine": (document(BY_MACHINE), OPENED, Size(80, 12), LOOK),
        "opened": (document(KNOWN), OPENED, LARGE, LOOK),
        "opened in ASCII": (document(KNOWN), OPENED, LARGE, PLAIN),
        "opened on a usual terminal": (document(KNOWN), OPENED, USUAL, LOOK),
        "opened: new": (document(NEW), OPENED, LARGE, LOOK),
        "opened: credits that last": (
            document(msgspec.structs.replace(NEW, credits=(LASTING,))), OPENED, LARGE, LOOK,
        ),
        "opened: gone": (one, View(selected="vdx", is_open=True), Size(80, 8), LOOK),
        "waiting": (None, View(), Size(80, 4), LOOK),
        "frozen": (one, View(is_frozen=True), Size(80, 4), LOOK),
        "no answer": (one, View(), Size(80, 4), LATE),
        "filter": (one, View(filter="vd"), Size(80, 4), LOOK),
        "typing a filter": (one, View(filter="v", is_typing=True), Size(80, 4), LOOK),
        "filter without a disk": (one, View(filter="zz"), Size(80, 12), LOOK),
        "no disk": (document(), View(), Size(80, 5), LOOK),
        "help": (document(), View(is_help=True), Size(100, 60), LOOK),
        "help in ASCII": (document(), View(is_help=True), Size(100, 60), PLAIN),
    }  # fmt: skip
    found = {name: "\n".join(shown(*case)).rstrip() for name, case in cases.items()}
    found["block of text"] = block(two, 120, PLAIN)
    assert all(text.isascii() for name, text in found.items() if "ASCII" in name)
    assert all(each.words in found["help"] for each in SHOWN_TEXT.values())
    assert place_of(document(), View(is_help=True), Size(100, 60), LOOK).longest == 0
    assert place_of(None, View(), USUAL, LOOK).names == ()
    text = "".join(f"# {name}\n{text}\n\n" for name, text in found.items())
    golden(Path(__file__).parent / "screens.txt", text)


def test_colours_are_those_of_the_verdict_and_never_alone() -> None:
    [row] = [line for line in screen(document(disk()), View(), USUAL, LOOK)
             if text_of(line).startswith(">")]  # fmt: skip
    [label] = [span for span in row if span.is_label]
    assert (label.text, label.style) == ("You: limit    ", "throttled")
    [minute] = [span for span in row if span.style == "throttled" and not span.is_label]
    assert set(minute.text) == {"▅"}
    calm = screen(document(disk("vdb", "met", 0.0)), View(), USUAL, LOOK)
    assert not [span for line in calm for span in line if span.is_label]


def test_filter_finds_mount_points_and_claims() -> None:
    claimed = msgspec.structs.replace(disk("vdc"), claim="shop/data")
    assert listed((disk(), claimed), "name", "postgres") == [disk()]
    assert listed((disk(), claimed), "name", "shop") == [claimed]


def test_opened_disk_scrolls_to_its_last_line() -> None:
    whole = document(disk())
    view, size = View(selected="vdb", is_open=True), Size(80, 12)
    assert "more lines" in shown(whole, view, size)[-1]
    place = place_of(whole, view, size, LOOK)
    view = press(view, "end", place)
    assert "more lines" not in shown(whole, view, size)[-1]
    assert shown(whole, view, size)[-2] == "mounted on  /var/lib/postgresql"


def test_ascii_where_the_terminal_has_nothing_else() -> None:
    foreign = msgspec.structs.replace(disk("данные"), mount_points=("/数据",))
    whole = in_ascii(document(foreign, with_credits(disk())))
    assert whole.disks[1] == with_credits(disk())
    for view in (View(), View(is_help=True), View(selected=whole.disks[0].device, is_open=True)):
        text = "\n".join(shown(whole, view, Size(140, 40), PLAIN))
        assert text.isascii()
    assert "\\u0434\\u0430" in "\n".join(shown(whole, size=Size(140, 40)))


@scaled(100)
@given(disks_documents)
def test_any_block_has_nothing_to_execute(whole: DisksDocument) -> None:
    lines = block(whole, 160, PLAIN).split("\n")
    assert all(line.isprintable() for line in lines)
    assert len(lines) >= 4 + len(whole.disks)
