"""Nodes as a file would give them."""

from typing import Any

from disksla.schema.reader import Node


def node(value: Any, line: int = 1) -> Node:
    """Give the nodes of plain data; everything stands in one line."""
    match value:
        case dict():
            return Node(line, {key: node(item, line) for key, item in value.items()})
        case list():
            return Node(line, [node(item, line) for item in value])
        case _:
            return Node(line, value)
