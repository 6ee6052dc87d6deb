"""The reader of records: types of fields, checks, and how often a problem is listed."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import pytest

from disksla.base import schema
from disksla.base.schema.reader import Node, path_text, read_record
from support.schema_nodes import node

T = TypeVar("T")


class Box(msgspec.Struct, Generic[T], frozen=True, tag_field="kind", tag="box"):
    content: T


class Bag(msgspec.Struct, frozen=True, tag_field="kind", tag="bag"):
    size: schema.Text | None = None


class Shelf(msgspec.Struct, frozen=True):
    durations: tuple[Box[schema.Seconds] | Bag, ...] = ()
    names: Mapping[str, Box[schema.Text]] = {}
    ignored: Any = None


def read(value: Any) -> tuple[Shelf | None, list[str]]:
    record, problems = read_record(node(value), Shelf)
    return record, [problem.as_line() for problem in problems]


def test_generic_record_is_read_with_the_field_type_of_its_parameter() -> None:
    record, _ = read(
        {
            "durations": [{"kind": "box", "content": "5ms"}, {"kind": "bag"}],
            "names": {"a": {"content": "5ms"}},
            "ignored": {"any": ["thing"]},
        }
    )
    assert record == Shelf((Box(0.005), Bag()), {"a": Box("5ms")}, None)


def test_generic_record_lists_problems_by_its_parameter() -> None:
    _, problems = read({"durations": [{"kind": "box", "content": "x"}], "names": {"a": "b"}})
    assert problems == [
        "1: durations[0].content: found 'x'; expected a duration such as 100ms, 5s, 10m, 1h or 1d",
        "1: names.a: found 'b'; expected a mapping of kind, content",
    ]


def test_problem_in_a_shared_node_is_listed_once() -> None:
    shared = node({"kind": "box", "content": "5"}, line=7)
    root = Node(1, {"durations": Node(2, [shared, shared])})
    _, problems = read_record(root, Shelf)
    assert [problem.as_line() for problem in problems] == [
        "7: durations[0].content: '5' has no unit; expected a duration such as 1ms"
    ]


def test_shared_node_is_read_once() -> None:
    shared = node({"kind": "box", "content": "5ms"})
    record, _ = read_record(Node(1, {"durations": Node(2, [shared, shared])}), Shelf)
    assert record is not None
    first, second = record.durations
    assert first is second


def test_check_of_a_record_names_places_within_it() -> None:
    def check(_: Shelf) -> None:
        raise schema.InvalidFieldsError(
            {("durations", 0, "content"): "found 5 ms; expected 6 ms", ("none", 1): "missing"}
        )

    root = Node(1, {"durations": Node(2, [node({"kind": "box", "content": "5ms"}, line=3)])})
    _, problems = read_record(root, Shelf, {Shelf: check})
    assert [problem.as_line() for problem in problems] == [
        "1: none[1]: missing",
        "3: durations[0].content: found 5 ms; expected 6 ms",
    ]


def test_path_text_cuts_long_keys() -> None:
    assert path_text(["a", 0, "b" * 100]) == f"a[0].{'b' * 60}"
    assert path_text([]) == ""


class Fields(msgspec.Struct, frozen=True):
    flag: schema.Flag | None = None
    date: schema.Date | None = None
    number: schema.Number | None = None
    note: schema.LongText | None = None
    whole: Annotated[int, schema.whole_number(1, 10)] | None = None


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ("flag", "true", None),
        ("flag", "yes", "found 'yes'; expected true or false"),
        ("date", "2026-02-28", None),
        ("date", "2026-2-28", "found '2026-2-28'; expected a date such as 2026-08-21"),
        (
            "date",
            "2026-02-30",
            r"found '2026-02-30' \(day .*\); expected a date such as 2026-08-21",
        ),
        ("number", "0.5", None),
        ("number", "0", "found '0'; expected a plain number above 0, such as 300"),
        ("number", "1e3", "found '1e3'; expected a plain number above 0, such as 300"),
        ("note", "two\nlines", None),
        ("note", "x" * 5001, "found 5001 characters; expected at most 5000, for a text"),
        ("whole", "10", None),
        ("whole", "11", "found '11'; expected a whole number from 1 to 10"),
        ("whole", "1.5", "found '1.5'; expected a whole number from 1 to 10"),
    ],
)
def test_field_types(field: str, text: str, problem: str | None) -> None:
    record, problems = read_record(node({field: text}), Fields)
    if problem is None:
        assert getattr(record, field) is not None
    else:
        (found,) = problems
        assert found.path == field
        assert re.fullmatch(problem, found.text)


def test_duration_has_a_parser() -> None:
    parse = schema.duration("1s", "1d", "60s").parse
    assert parse("90s") == 90
    for text, problem in (
        ("90", "^'90' has no unit; expected a duration from 1s to 1d, such as 60s$"),
        ("1ms", "^'1ms' is out of range; expected a duration from 1s to 1d, such as 60s$"),
        ("long", "^found 'long'; expected a duration such as"),
    ):
        with pytest.raises(ValueError, match=problem):
            parse(text)
