"""Results of DiskSpd 2.0.20 to 2.2, as text and as XML.

The samples were written after DiskSpd's source and its tests, not printed on Windows.
"""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.units import KIB, MIB
from disksla.measure.verification.import_diskspd import is_diskspd, parse_diskspd
from disksla.measure.verification.measurement import Measurement
from support.examples import damaged_text

RESULTS = Path(__file__).parent / "results"
PUBLIC = Path(__file__).parent / "public"
TEXT = (RESULTS / "diskspd-2.1-randread-4k.txt").read_text()
OLD = (RESULTS / "diskspd-2.0.20-randwrite-4k.txt").read_text()
TWO_TARGETS = (RESULTS / "diskspd-2.2-two-targets-8k.txt").read_text()
XML = (RESULTS / "diskspd-2.2-two-timespans.xml").read_text()


def parse_one(text: str) -> Measurement:
    [measurement] = parse_diskspd(text)
    return measurement


FIFTY_THREADS = TEXT.replace("\n     1 |", "\n    50 |")
"""The number of a thread is not the label of a percentile."""


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), FIFTY_THREADS])
def test_parse_text_of_vks_command(text: str) -> None:
    measurement = parse_one(text)
    assert (measurement.pattern, measurement.request_bytes) == ("randread", 4 * KIB)
    assert (measurement.inflight, measurement.is_direct) == (32, True)
    assert measurement.rate_iops is None
    assert measurement.measured.requests == 10000
    assert measurement.measured.bytes == 10000 * 4096
    assert (measurement.measured.runtime_s, measurement.measured.iops) == (10.0, 1000.0)
    assert measurement.measured.mean_latency_s is None
    assert measurement.percentiles == ()


def test_threads_and_targets_are_added_up() -> None:
    measurement = parse_one(TWO_TARGETS)
    assert (measurement.request_bytes, measurement.inflight) == (8 * KIB, 32)
    assert measurement.measured.requests == sum(range(5700, 5708))
    assert measurement.measured.mean_latency_s == pytest.approx(0.04206)
    assert [each.share for each in measurement.percentiles] == [0.5, 0.9, 0.99, 0.999]
    seconds = [each.seconds for each in measurement.percentiles]
    assert seconds == pytest.approx([0.0305, 0.0904, 0.1002, 0.1037])


def test_xml_gives_one_measurement_per_timespan() -> None:
    unlimited, at_rate = parse_diskspd(XML)
    assert (unlimited.pattern, unlimited.request_bytes) == ("randwrite", 16 * KIB)
    assert (unlimited.inflight, unlimited.rate_iops, unlimited.is_direct) == (32, None, True)
    assert unlimited.measured.requests == 15600
    assert unlimited.tool == "DiskSpd 2.2"
    assert (at_rate.pattern, at_rate.rate_iops) == ("randread", 972.0)
    assert at_rate.measured.mean_latency_s == pytest.approx(0.0024)
    assert [each.share for each in at_rate.percentiles] == [0.5, 0.9, 0.99, 0.999]


NO_PARAMETERS = (PUBLIC / "diskspd-2.2-no-parameters.txt").read_text()
COMMAND = "-c1G -d60 -r -w40 -t4 -o32 -b4K -Sh -L c:\\testfile.dat"
CACHE = "software cache disabled"
READS = "performing read test"
XML_CACHE = "<DisableOSCache>true"
OLD_MIX = OLD.replace("performing write test", "performing mix test (write/read ratio: 30/100)")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        (TEXT, CACHE, "using software cache", {"is_direct": False}),
        (TEXT, f"\t{CACHE}", f"\tlocal {CACHE}, remote cache enabled", {"is_direct": True}),
        (
            TEXT,
            CACHE,
            "using\n\t\thardware and software write caches disabled",
            {"is_direct": False},
        ),
        (TEXT, READS, f"memory mapped I/O enabled\n\t\t{READS}", {"is_direct": False}),
        (XML, f"{XML_CACHE}</DisableOSCache>", "", {"is_direct": False}),
        (
            XML,
            XML_CACHE,
            f"<MemoryMappedIo>true</MemoryMappedIo>{XML_CACHE}",
            {"is_direct": False},
        ),
        (XML, "DisableOSCache", "DisableLocalCache", {"is_direct": True}),
        (OLD_MIX, CACHE, "software and hardware cache disabled", {"is_direct": True}),
        (OLD_MIX, CACHE, CACHE, {"pattern": "randrw"}),
        (TEXT, "using random I/O", "using sequential I/O", {"pattern": "read"}),
        (TEXT, "using random I/O", "using interlocked sequential I/O", {"pattern": "read"}),
        (TEXT, READS, "performing write test", {"pattern": "randwrite"}),
        (TEXT, READS, "performing mix test (read/write ratio: 70/30)", {"pattern": "randrw"}),
        (XML, "<Random>4096</Random>", "<StrideSize>4096</StrideSize>", {"pattern": "read"}),
        (XML, "<WriteRatio>0<", "<WriteRatio>50<", {"pattern": "randrw"}),
        (XML, "<BlockSize>", "<ThinkTime>5</ThinkTime><BlockSize>", {"is_paced": True}),
        (TEXT, "think time: 0ms", "think time: 5ms", {"is_paced": True}),
        (NO_PARAMETERS, "-Sh", "-Sh -i10 -j5", {"is_paced": True}),
        (NO_PARAMETERS, "-Sh", "-Sh", {"is_paced": False}),
        (XML, "<BlockSize>", "<BlockSize>", {"is_paced": False}),
        *(
            (
                TEXT,
                "IO priority: normal",
                f"\n\t\tthroughput rate-limited to {rate}",
                {"rate_iops": 8000.0},
            )
            for rate in ("250 IOPS", "1024 B/ms")
        ),
        (XML, '<Throughput unit="IOPS">243<', "<Throughput>1024<", {"rate_iops": 1000.0}),
        (TWO_TARGETS, "'E:\\two", "'F:\\two", {"targets": ("E:", "F:")}),
        (XML, "<TimeSpan>", "<TimeSpan><ThreadCount>0</ThreadCount>", {"inflight": 32}),
    ],
)
def test_what_is_said_of_a_load(
    text: str, old: str, new: str, expected: dict[str, object]
) -> None:
    assert old in text
    load = parse_diskspd(text.replace(old, new))[-1]
    assert {name: getattr(load, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (COMMAND, ("randrw", 4 * KIB, 128, True, None, ("C:",))),
        ("-Su t.dat", ("read", 64 * KIB, 2, True, None, ())),
        ("-w100 -b512 -o1 -Sb t.dat", ("write", 512, 1, False, None, ())),
        ("-w -r8K -b1M t.dat", ("randread", MIB, 2, False, None, ())),
        ("-h -si -b8k #1", ("read", 8 * KIB, 2, True, None, ("#1",))),
        ("-Suw -t2 -o3 E:\\a E:\\b", ("read", 64 * KIB, 12, True, None, ("E:",))),
        ("-S -F2 -o3 a b", ("read", 64 * KIB, 12, True, None, ())),
        ("-Sr -F2 -O8 d: e:", ("read", 64 * KIB, 16, True, None, ("D:", "E:"))),
        ("-Shm -t2 a", ("read", 64 * KIB, 4, False, None, ())),
        ("-Sh -g64 -b64K -t2 a", ("read", 64 * KIB, 4, True, 2 * 64000 / 65536, ())),
        ("-Sh -g100i -t2 a b", ("read", 64 * KIB, 8, True, 400.0, ())),
        ('/Sh /r "C:\\my files\\a.dat"', ("randread", 64 * KIB, 2, True, None, ("C:",))),
    ],
)
def test_command_line_without_input_parameters(command: str, expected: tuple[object, ...]) -> None:
    load = parse_one(NO_PARAMETERS.replace(COMMAND, command))
    assert expected == (
        load.pattern,
        load.request_bytes,
        load.inflight,
        load.is_direct,
        load.rate_iops and pytest.approx(load.rate_iops),
        load.targets,
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("-Xprofile.xml", "neither input parameters nor a command line"),
        ("-X profile.xml", "neither input parameters nor a command line"),
        ("-Sh -b4K", "neither input parameters nor a command line"),
        ("-rs50 -Sh a.dat", "random and sequential requests at the same time"),
        ("-o0 a.dat", "found 0 requests in flight"),
    ],
)
def test_command_line_that_does_not_say_the_load(command: str, message: str) -> None:
    with pytest.raises(DiskslaError, match=message):
        parse_diskspd(NO_PARAMETERS.replace(COMMAND, command))


POOL = TEXT.replace("threads per file: 32\n", "\n")
SHARED = "\tthread pool with 4 threads\n\tnumber of outstanding I/O operations per thread: {}\n"


def with_pool(text: str, depth: int) -> str:
    """Return a result of threads that all targets share: -F4, with -O if the depth is not 0."""
    path = text.index("path: ")
    start = text.rindex("\n", 0, path) + 1
    return text[:start] + SHARED.format(depth) + text[start:]


@pytest.mark.parametrize(
    ("text", "inflight"),
    [
        (with_pool(POOL, 0), 4),
        (with_pool(POOL, 8), 32),
        (with_pool(TWO_TARGETS, 0), 2 * 4 * 4),
        (with_pool(TWO_TARGETS, 8), 32),
        (
            with_pool(POOL, 8).replace(
                "\t\tnumber of outstanding I/O operations per thread: 1\n",
                "\t\trelative IO weight in thread pool: 1\n",
            ),
            32,
        ),
        (XML.replace("<TimeSpan>", "<TimeSpan><ThreadCount>3</ThreadCount>"), 3 * 8),
        (
            XML.replace(
                "<TimeSpan>",
                "<TimeSpan><ThreadCount>3</ThreadCount><RequestCount>5</RequestCount>",
            ),
            15,
        ),
    ],
)
def test_threads_that_all_targets_share(text: str, inflight: int) -> None:
    assert parse_diskspd(text)[0].inflight == inflight


def test_mix_has_reads_writes_and_percentiles_of_both() -> None:
    mix = parse_one(NO_PARAMETERS)
    assert (mix.read.requests, mix.write.requests) == (955795, 636092)
    assert mix.write_share == pytest.approx(0.4, abs=0.001)
    assert mix.measured.mean_latency_s == pytest.approx(0.001142, rel=1e-3)
    assert mix.mean_inflight == pytest.approx(30.3, rel=1e-3)
    assert [each.seconds for each in mix.percentiles] == pytest.approx(
        [0.000311, 0.003942, 0.012896, 0.035402]
    )


def test_results_of_several_runs_in_one_text() -> None:
    runs = parse_diskspd(TEXT + NO_PARAMETERS + OLD)
    assert [run.name for run in runs] == [f"run {n}, timespan 1" for n in (1, 2, 3)]
    assert [run.pattern for run in runs] == ["randread", "randrw", "randwrite"]


def test_run_that_is_cut_off_does_not_cost_the_others() -> None:
    whole, cut = parse_diskspd(NO_PARAMETERS + TEXT.partition("Read IO")[0])
    assert (whole.problem, whole.pattern) == ("", "randrw")
    assert cut.problem == "found no total in section 'Read IO'"


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (r"e:\data\t.dat", ("E:",)),
        ("#12", ("#12",)),
        (r"\\.\PhysicalDrive3", ("PHYSICALDRIVE3",)),
        (r"\\?\Volume{ab-1}\t.dat", ("VOLUME{AB-1}",)),
        (r"C:\ClusterStorage\Volume2\t.dat", (r"C:\CLUSTERSTORAGE\VOLUME2",)),
        (r"\\server\share\t.dat", (r"\\SERVER\SHARE",)),
        ("t.dat", ()),
    ],
)
def test_place_of_a_target(path: str, place: tuple[str, ...]) -> None:
    load = parse_one(NO_PARAMETERS.replace("c:\\testfile.dat", path))
    assert load.targets == place


BILLION_LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
    "<Results>&b;</Results>"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BILLION_LAUGHS, "invalid XML: undefined entity"),
        ("<Results><!DOCTYPE r></Results>", "a declaration"),
        ("<Results>", "it is cut off: found no </Results>"),
        ("<Results><a></Results>", "invalid XML"),
        ("<Results></Results>", "found 0 timespans and 0 results"),
        (XML.replace("<BlockSize>4096</BlockSize>", ""), "found <Target> without <BlockSize>"),
        (
            XML.replace("<TestTimeSeconds>60.01", "<TestTimeSeconds>0.00"),
            "found a test time of 0 s",
        ),
        (
            XML.replace("<TestTimeSeconds>60.01", "<TestTimeSeconds>nan"),
            "found 'nan'; expected a number",
        ),
        (
            XML.replace(">58320<", ">x<").replace(">14580<", ">1e9<"),
            "found '1e9'; expected a number",
        ),
        (XML.replace(">14580<", f">{10**19}<"), "expected a number below"),
        (
            XML.replace("<Random>4096</Random>", "<Random>1</Random><RandomRatio>5</RandomRatio>"),
            "random and sequential requests at the same time",
        ),
        (
            TEXT.replace("threads per file", "threads"),
            "found no text that matches /\\^threads per file",
        ),
        (  # DiskSpd was interrupted
            TEXT.partition("actual test time")[0] + "No results are displayed.",
            "found no text that matches /actual test time",
        ),
        (TEXT.replace("Read IO", "Reads"), "found no total in section 'Read IO'"),
        (TEXT.replace(" |       3.91 |    1000.00\n", "\n"), "a total of 2 columns"),
        (
            TEXT.replace("timespan:   1", "time").replace("Command Line", "Command"),
            "found 0 timespans and 1 results",
        ),
        (TEXT.replace("block size: 4KiB", "block size: 4XB"), "unknown unit 'XB'"),
        (TEXT.replace("block size: 4KiB", "block size: 0B"), "found 0 bytes in a block"),
        (TEXT.replace("threads per file: 32", "threads per file: 0"), "found 0 threads"),
        (XML.replace("<RequestCount>8<", "<RequestCount>0<"), "found 0 requests in flight"),
        (XML.replace("<BlockSize>4096<", "<BlockSize>0<"), "found 0 bytes in a block"),
        (TEXT.replace("path: ", "way: "), "found 0 kinds of requests"),
        (
            TWO_TARGETS.replace("block size: 8KiB", "block size: 4KiB", 1),
            "found 2 kinds of requests",
        ),
        (
            TEXT.replace("using random I/O", "using mixed random/sequential I/O (50% random)"),
            "found no text that matches /\\^using",
        ),
    ],
)
def test_invalid_result_is_rejected(text: str, message: str) -> None:
    with pytest.raises(DiskslaError, match=message):
        parse_diskspd(text)


@given(
    st.text() | st.text().map("<Results>".__add__) | damaged_text([TEXT, OLD, TWO_TARGETS, XML])
)
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    try:
        measurements = parse_diskspd(text)
    except DiskslaError:
        return
    assert measurements
    for measurement in measurements:
        assert measurement.measured.runtime_s > 0


def test_is_diskspd_recognises_text_and_xml() -> None:
    assert is_diskspd(TEXT)
    assert is_diskspd(f"\n {XML}")
    assert not is_diskspd('{"fio version": "fio-3.33"}')


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("path: ", "\n" * 300_000 + "x"),
        f"{TEXT}\n%-ile |  Read (ms)\n50th{' ' * 300_000}x",
    ],
    ids=["lines", "blanks"],
)
def test_parse_time_is_linear_in_length(text: str) -> None:
    """With quadratic regular expressions either would take two minutes."""
    with contextlib.suppress(DiskslaError):
        assert parse_diskspd(text)
