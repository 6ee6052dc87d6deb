"""The status page, read as HTML."""

import base64
import hashlib
import re

import msgspec
from hypothesis import example, given

from disksla.base.histogram import Histogram
from disksla.base.text import escape_control
from disksla.promise.catalogue import SharedLimits
from disksla.promise.catalogue.limits import NO_LIMITS, Limits, Rates, build_limits
from disksla.serve.metrics.self_metrics import BuildInfo
from disksla.serve.pages.page import CONTENT_SECURITY_POLICY, Frame
from disksla.serve.pages.status_page import status_page
from disksla.state.pipeline.snapshot import SamplerStats, Snapshot
from disksla.tell.explanation.past import HistoryView
from disksla.verdict.throttling.throttle import UNKNOWN_LIMIT, Ceiling, Throttle
from disksla.verdict.throttling.verdict import Verdict
from support.examples import scaled
from support.html_page import HtmlPage
from support.snapshots import (
    ABOUT,
    BURST_LIMITS,
    SAMPLER,
    KnownSnapshot,
    changed,
    disk_view,
    group_view,
    unknown_disk_view,
    view,
    views,
)

ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "strong", "h1", "small", "nav",
    "a", "p", "main", "article", "h2", "svg", "g", "rect", "line", "path", "text", "figure",
    "b", "i", "figcaption", "table", "thead", "tbody", "tr", "th", "td", "div", "span", "meter",
    "code", "script", "output", "time", "dl", "dt", "dd", "details", "summary",
}  # fmt: skip
FRAME = Frame("db-1", "0.2.0", "/metrics")
HOSTILE = "<script>alert(1)</script>\"'&\udcff"


def page(snapshot: Snapshot, build_info: BuildInfo = ABOUT) -> str:
    return status_page(snapshot, build_info, HistoryView(), FRAME)


def read(text: str) -> HtmlPage:
    found = HtmlPage(text)
    assert found.tags <= ALLOWED
    return found


def last_row(text: str) -> list[str]:
    return read(text).rows[-1]


def cells(snapshot: Snapshot) -> list[str]:
    return read(page(snapshot)).rows[1]


@scaled(80)
@given(views)
@example(view(disk_view(HOSTILE, hostile=HOSTILE)))
def test_names_of_disks_are_escaped(snapshot: Snapshot) -> None:
    text = page(snapshot)
    rows = read(text).rows
    assert len(rows) == (1 + len(snapshot.disks) if snapshot.disks else 0)
    disks = sorted(snapshot.disks, key=lambda each: each.disk.name)
    for row, disk in zip(rows[1:], disks, strict=True):
        assert len(row) == 9
        shown = "".join(row[0].split())
        for name in (disk.disk.name, disk.disk.model or "", disk.disk.serial or ""):
            assert "".join(escape_control(name).split()) in shown


def test_disk_is_one_row() -> None:
    assert cells(view(disk_view(limits=BURST_LIMITS))) == [
        "vdb 500 GiB Virtual Disk 6ea73b81-555e-4a74-9",
        "/var/lib/postgresql",
        "Throttled at an unknown limit at 300 IOPS throttled 0.8 % hung under 0.1 %",
        "vk.high-iops vk",
        "300 / 300 IOPS 28.61 MiB/s / 28.61 MiB/s latency 20 ms, indicative shared",
        "4010 / 1210 IOPS 156.7 MiB/s / 47.3 MiB/s",
        "47 %",
        "5",
        "9800 / 4990 IOPS 382.8 MiB/s / 194.9 MiB/s",
    ]


def test_of_many_disks_twenty_are_shown_and_the_others_are_links() -> None:
    names = [f"vd{a}{b}" for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrstuvwxy"]
    text = page(view(*map(disk_view, names)))
    assert len(read(text).rows) == 1 + 20
    assert text.count("<article") == 20
    assert "<summary>480 other disks" in text
    others = text.partition("<details")[2].partition("</details>")[0]
    assert re.findall(r'href="/disk\?name=(\w+)"', others) == names[20:]
    assert len(text) < 120_000


def throttled_at(throttle: Throttle, limits: Limits, verdict: Verdict = "throttled") -> Snapshot:
    disk = disk_view(limits=limits)
    ceiling = Ceiling(throttle, 300.0, 300.0 * 65536)
    now = throttle if verdict == "throttled" else None
    return view(changed(disk, verdict=verdict, ceiling=ceiling, throttle=now))


def test_rate_at_which_a_disk_is_throttled() -> None:
    assert cells(throttled_at(Throttle("base", "bandwidth"), BURST_LIMITS))[2].startswith(
        "You: throttled at the limit you bought at 18.75 MiB/s throttled"
    )
    shown = throttled_at(Throttle("base", "iops"), BURST_LIMITS, verdict="met")
    assert cells(shown)[2].startswith("OK, 47 % of the limit throttled")
    unknown = Ceiling(Throttle("base", "iops"), None, None, 0.1)
    [disk] = throttled_at(Throttle("base", "iops"), BURST_LIMITS).disks
    shown = view(changed(disk, ceiling=unknown))
    assert cells(shown)[2].startswith("You: throttled at the limit you bought throttled")


def test_unknown_limit_is_explained_if_there_are_terms() -> None:
    limits = build_limits(Rates(400.0, 400.0), "sum")
    shown = throttled_at(UNKNOWN_LIMIT, limits)
    assert cells(shown)[2].startswith("Throttled at an unknown limit at 300 IOPS throttled")
    assert "The terms of vdb do not explain the rate" in page(shown)
    for other in (
        throttled_at(UNKNOWN_LIMIT, NO_LIMITS),
        throttled_at(UNKNOWN_LIMIT, limits, verdict="met"),
        throttled_at(Throttle("base", "iops"), limits),
    ):
        assert "do not explain" not in page(other)


def test_disk_that_is_throttled_by_its_machine() -> None:
    shown = throttled_at(Throttle("base", "machine_iops"), BURST_LIMITS)
    assert cells(shown)[2].startswith("The machine: throttled at its limit throttled")
    assert "do not explain" not in page(shown)


def test_machine_has_a_table_of_its_limits() -> None:
    shown = page(changed(view(disk_view()), groups=(group_view(),)))
    assert last_row(shown) == [
        "m5.large all EBS volumes of the instance together",
        "vdb vdc",
        "3600 / 3600 IOPS 77.49 MiB/s / 77.49 MiB/s shared",
        "98 %",
        "42 s",
        "iops 31.2 %",
    ]
    other = changed(
        group_view(),
        shared=SharedLimits("configuration", HOSTILE, "", NO_LIMITS),
        throttled_s={"iops": 0.0},
        credits=(),
    )
    shown = page(changed(view(disk_view()), groups=(other,)))
    assert last_row(shown)[0].startswith("limits written out <script>")
    assert last_row(shown)[4:] == ["never", "–"]  # noqa: RUF001 -- it is the dash shown


def test_unknown_values_are_dashes() -> None:
    _, mounted, verdict, _, limits, _, load, inflight, _ = cells(view(unknown_disk_view()))
    assert {mounted, verdict, load, inflight} == {"–"}  # noqa: RUF001 -- it is the dash shown
    assert limits == "none"


def test_limit_of_writes_only_is_shown() -> None:
    limits = Limits(rates=Rates(write_iops=400.0), latency_s=0.001)
    shown = cells(view(disk_view(limits=limits)))[4]
    assert shown == "– / 400 IOPS latency 1 ms"  # noqa: RUF001 -- it is the dash shown


def test_load_meter_ends_at_the_limit() -> None:
    disk = disk_view(load_now=1.37)
    assert read(page(view(disk))).of("meter")[0]["value"] == "1.000"
    assert cells(view(disk))[6] == "137 %"


def test_page_without_disks_has_a_hint() -> None:
    assert "No disk is monitored" in page(view())


def test_failed_reload_and_unreadable_sources_are_shown() -> None:
    failed = BuildInfo(
        "0.1.0", "unknown", "3.11", "6.1", reload_successful=False, reload_success_timestamp_s=0
    )
    text = page(view(), failed)
    assert "Not working: inflight." in text
    assert "The last reload failed" in text
    assert "The last reload failed" not in page(view())


def test_list_of_problems_is_limited() -> None:
    problems = {f"inflight:vd{number}": "<gone>" for number in range(12)}
    text = page(KnownSnapshot((), msgspec.structs.replace(SAMPLER, problems=problems)))
    assert "<p>inflight:vd9: &lt;gone&gt;</p>" in text
    assert "vd10" not in text
    assert "<p>and 2 more</p>" in text


def test_disk_without_samples_has_no_rates() -> None:
    row = cells(view(disk_view(totals=None)))
    assert (row[5], row[8]) == ("\u2013", "\u2013")


def sampler_line(lateness_s: Histogram) -> str:
    sampler = SamplerStats(10, 0, lateness_s, {"late": 0}, {"diskstats": 0})
    line = re.search("<p>Sampler: .*</p>", page(KnownSnapshot((), sampler)))
    assert line is not None
    return line[0]


def test_sampler_line_shows_lateness_gaps_and_errors() -> None:
    on_time = Histogram((0.001, 0.01), (990, 10, 0))
    late = Histogram((0.001, 0.01), (900, 10, 90))
    assert "10 ticks, 0 missed, 99 % at most 1 ms late. Gaps: none. Errors: none." in (
        sampler_line(on_time)
    )
    assert "1 % more than 10 ms late" in sampler_line(late)
    assert "Gaps: late 3, swapped 1. Errors: inflight 2." in page(KnownSnapshot((), SAMPLER))
    failed = msgspec.structs.replace(SAMPLER, errors={"diskstats": 0, "sampler": 7})
    assert "Errors: sampler 7." in page(KnownSnapshot((), failed))


def test_content_security_policy_allows_what_is_in_the_page_by_its_hash() -> None:
    for tag in ("style", "script"):
        [content] = re.findall(f"<{tag}>(.*?)</{tag}>", page(view()), re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}';" in CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
