"""Samples that `disksla doctor` reads, beside the parser of the client library."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from disksla.doctor.facts import Sample
from disksla.doctor.samples import parse_samples
from disksla.metrics.exposition import text_format
from disksla.metrics.families import page_families
from disksla.pipeline.snapshot import Snapshot
from support.examples import scaled
from support.snapshots import ABOUT, USAGE, views


@scaled(60)
@given(views)
def test_samples_are_those_of_the_client_library(shown: Snapshot) -> None:
    page = text_format(page_families(shown, ABOUT, USAGE))
    expected = [
        Sample(sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    ]
    assert list(parse_samples(page)) == expected


@given(st.text(alphabet=st.sampled_from('ab1{}=,"\\n \n#')))
def test_any_text_has_samples_or_none(page: str) -> None:
    for sample in parse_samples(page):
        assert sample.name in page


@pytest.mark.parametrize("page", ["<html>", "a{", "x 1 2 3 4", "\0", "a{b} c", "a b", "# a 1"])
def test_page_that_has_no_samples(page: str) -> None:
    assert list(parse_samples(page)) == []
