"""Escaping of characters that a terminal interprets; JSON output; exceptions have one base."""

import importlib
import json
import pkgutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

import disksla
from disksla.base.console import to_json
from disksla.base.errors import DiskslaError
from disksla.base.text import command_lines, escape_control, escape_html, label_value


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("vdb, 16 GiB\nö 東", "vdb, 16 GiB\nö 東"),
        ("a\x1b[2J\x9b\x07\t\r", r"a\x1b[2J\x9b\x07\t\r"),
        ("\u202eads\udcff\u200b", r"\u202eads\udcff\u200b"),
    ],
)
def test_escape_control_escapes_control_characters(text: str, escaped: str) -> None:
    assert escape_control(text) == escaped
    assert escape_control(escaped) == escaped


def test_direction_marks_are_escaped_in_pages_and_labels() -> None:
    assert escape_html("/srv/\u202ecod.exe<\u2066\u05d0") == "/srv/\\u202ecod.exe&lt;\\u2066\u05d0"
    assert label_value("/srv/\u202ecod.exe\udcff\u05d0") == "/srv/\\u202ecod.exe\\udcff\u05d0"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), max_size=20))
def test_shell_reads_the_same_words(words: list[str]) -> None:
    command = command_lines(["printf", r"%s\0", *words, "end"])
    printed = subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout
    assert printed.decode().split("\0")[:-1] == [*words, "end"]


@given(st.lists(st.from_regex(r"--[a-z]{1,20}=[a-z0-9/]{1,40}", fullmatch=True), min_size=1))
def test_command_of_short_words_fits_in_the_width(words: list[str]) -> None:
    lines = command_lines(words).split("\n")
    assert max(map(len, lines)) <= 80
    assert all(line.endswith(" \\") for line in lines[:-1])


def test_whole_numbers_are_written_without_a_point() -> None:
    assert to_json([1.0, 11250.000000000002, 0.5, None, True, "1.0"]) == (
        '[\n  1,\n  11250,\n  0.5,\n  null,\n  true,\n  "1.0"\n]'
    )


@given(st.floats(-1e14, 1e14))
def test_numbers_keep_fifteen_digits(number: float) -> None:
    assert abs(json.loads(to_json({"n": number}))["n"] - number) <= abs(number) * 1e-14


MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(disksla.__path__, "disksla.")
    if module.name != "disksla.__main__"
]
EXCEPTIONS = [
    value
    for module in MODULES
    for value in vars(module).values()
    if isinstance(value, type)
    and issubclass(value, BaseException)
    and value.__module__ == module.__name__
]


@pytest.mark.parametrize("exception", EXCEPTIONS, ids=lambda exception: exception.__name__)
def test_exception_derives_from_disksla_error(exception: type[BaseException]) -> None:
    assert issubclass(exception, DiskslaError)
    assert exception.__name__.endswith("Error")
