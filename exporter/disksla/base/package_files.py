"""Stylesheets and scripts of the package. They are read when a module is imported, as code is."""

from pathlib import Path


def file_beside(module: str, name: str) -> str:
    """Return the text of a file that is beside a module (its `__file__`)."""
    return Path(module).with_name(name).read_text(encoding="utf-8")
