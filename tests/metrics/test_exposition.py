"""Both formats, beside what the client library of Prometheus prints and reads."""

import math
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric as LibraryFamily
from prometheus_client.openmetrics import exposition as library_openmetrics
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from disksla.metrics.exposition import openmetrics, text_format
from disksla.metrics.families import Family, Sample, page_families, printed_labels
from disksla.pipeline.snapshot import Snapshot
from disksla.text import escape_bytes
from support.examples import scaled
from support.snapshots import ABOUT, USAGE, nasty_text, view, views

GAUGE = "disksla_example_ratio"
numbers = st.one_of(
    st.floats(), st.integers(-(2**60), 2**60), st.floats(-1e7, 1e7), st.integers(-(10**7), 10**7)
)


class Collector:
    """Families for the client library."""

    def __init__(self, families: Iterable[LibraryFamily]) -> None:
        self.families = families

    def collect(self) -> Iterable[LibraryFamily]:
        return self.families


def as_the_library_prints(families: Iterable[LibraryFamily], *, is_text: bool) -> str:
    registry = CollectorRegistry()
    registry.register(Collector(list(families)))
    if is_text:
        return generate_latest(registry).decode()
    page: bytes = library_openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
    return page.decode()


def page_of(shown: Snapshot) -> list[Family]:
    return list(page_families(shown, ABOUT, USAGE))


def gauge(labels: dict[str, str], value: float, text: str = "A ratio.") -> Family:
    labels_text = printed_labels("", tuple(labels), tuple(labels.values()))
    return Family(GAUGE, "gauge", text, [Sample(GAUGE, labels_text, value)])


@scaled(60)
@given(views)
def test_pages_are_those_of_the_client_library(shown: Snapshot) -> None:
    text, om = text_format(page_of(shown)), openmetrics(page_of(shown))
    read = parse_openmetrics(om)  # type: ignore[no-untyped-call]
    assert as_the_library_prints(parse_text(text), is_text=True) == text
    assert as_the_library_prints(read, is_text=False) == om


@pytest.mark.parametrize(
    ("print_page", "parse"), [(text_format, parse_text), (openmetrics, parse_openmetrics)]
)
@given(
    st.dictionaries(st.sampled_from(["device", "kind", "a_b", "z1"]), nasty_text, max_size=4),
    numbers,
    st.text(st.sampled_from('a"\\\n.')).map(str.strip),
)
def test_a_sample_is_read_as_it_was_printed(
    print_page: Callable[[Iterable[Family]], str],
    parse: Callable[[str], Iterable[LibraryFamily]],
    labels: dict[str, str],
    value: float,
    text: str,
) -> None:
    page = print_page([gauge(labels, value, text)])
    [family] = parse(page)
    [sample] = family.samples
    assert sample.labels == {name: escape_bytes(each) for name, each in labels.items()}
    assert sample.value == float(value) or (math.isnan(value) and math.isnan(sample.value))
    assert as_the_library_prints([family], is_text=parse is parse_text) == page


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0, "0.0"),
        (True, "1.0"),
        (0.0001, "0.0001"),
        (1e-7, "1e-07"),
        (999_999.5, "999999.5"),
        (1_234_567, "1.234567e+06"),
        (10**7, "1e+07"),
        (1e16, "1e+16"),
        (-1_234_567, "-1234567.0"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_values(value: float, printed: str) -> None:
    assert text_format([gauge({}, value)]).endswith(f"\n{GAUGE} {printed}\n")


def test_the_head_of_a_counter() -> None:
    family = Family("disksla_example_total", "counter", 'A "b" \\ c\nd.', [])
    assert text_format([family]) == (
        '# HELP disksla_example_total A "b" \\\\ c\\nd.\n# TYPE disksla_example_total counter\n'
    )
    assert openmetrics([family]) == (
        '# HELP disksla_example A \\"b\\" \\\\ c\\nd.\n# TYPE disksla_example counter\n# EOF\n'
    )


def test_process_is_absent_while_it_cannot_be_read() -> None:
    names = {family.name for family in page_families(view(), ABOUT, None)}
    assert not any(name.startswith("process_") for name in names)
