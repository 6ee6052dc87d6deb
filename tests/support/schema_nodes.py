"""Nodes of the schema reader, built from plain data."""

from typing import Any

from disksla.base.schema.reader import Node


def node(value: Any, line: int = 1) -> Node:
    """Return the nodes of plain data, as if it were written in one line of a file."""
    match value:
        case dict():
            return Node(line, {key: node(item, line) for key, item in value.items()})
        case list():
            return Node(line, [node(item, line) for item in value])
        case None:
            return Node(line, None)
        case _:
            return Node(line, str(value))
