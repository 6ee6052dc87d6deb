"""The bill of materials."""

from pathlib import Path
from typing import Any

import pytest

from sbom import bill

SHA256 = "ab" * 32


def install(directory: Path, name: str, version: str, *headers: str) -> None:
    info = directory / f"{name}-{version}.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *headers]
    (info / "METADATA").write_text("\n".join(lines) + "\n")


def report(*names: str) -> dict[str, Any]:
    return {
        "install": [
            {
                "metadata": {"name": name},
                "download_info": {
                    "url": f"https://example.org/simple/{name.lower()}-1-py3-none-any.whl",
                    "archive_info": {"hashes": {"sha256": SHA256}},
                },
            }
            for name in names
        ]
    }


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    install(
        tmp_path,
        "disksla-exporter",
        "9",
        "License: Apache-2.0",
        "Classifier: Topic :: System :: Monitoring",
        "Requires-Dist: Tall.Tree>=1",
    )
    install(
        tmp_path,
        "Tall_Tree",
        "1",
        "License-Expression: MIT AND BSD-3-Clause",
        "Requires-Dist: leaf; python_version < '4'",
        "Requires-Dist: pytest; extra == 'test'",
    )
    install(tmp_path, "leaf", "1", "Classifier: License :: OSI Approved :: BSD License")
    return tmp_path


def test_each_library_is_listed_with_its_wheel(libraries: Path) -> None:
    document = bill(libraries, [report("leaf", "Tall_Tree")], 1_790_000_000)
    assert document["metadata"]["timestamp"] == "2026-09-21T14:13:20Z"
    assert document["metadata"]["component"]["purl"] == "pkg:pypi/disksla-exporter@9"
    assert [library["purl"] for library in document["components"]] == [
        "pkg:pypi/leaf@1",
        "pkg:pypi/tall-tree@1",
    ]
    for library in document["components"]:
        [wheel] = library["externalReferences"]
        assert wheel["type"] == "distribution"
        assert wheel["hashes"] == [{"alg": "SHA-256", "content": SHA256}]
        assert wheel["url"] == f"{library['name'].lower()}-1-py3-none-any.whl"


def test_wheels_of_each_python_are_listed_once(libraries: Path) -> None:
    other = report("leaf", "Tall_Tree")
    wheel = other["install"][0]["download_info"]
    wheel["url"] = "https://example.org/simple/leaf-1-cp313-cp313-linux_x86_64.whl"
    wheel["archive_info"]["hashes"]["sha256"] = "cd" * 32
    document = bill(libraries, [report("leaf", "Tall_Tree"), other], 0)
    leaf, tree = document["components"]
    assert [wheel["url"] for wheel in leaf["externalReferences"]] == [
        "leaf-1-cp313-cp313-linux_x86_64.whl",
        "leaf-1-py3-none-any.whl",
    ]
    assert leaf["externalReferences"][0]["hashes"] == [{"alg": "SHA-256", "content": "cd" * 32}]
    assert len(tree["externalReferences"]) == 1


def test_licences_are_as_declared(libraries: Path) -> None:
    document = bill(libraries, [report("leaf", "Tall_Tree")], 0)
    leaf, tree = document["components"]
    assert tree["licenses"] == [{"expression": "MIT AND BSD-3-Clause"}]
    assert leaf["licenses"] == [{"license": {"name": "BSD License"}}]
    assert document["metadata"]["component"]["licenses"] == [{"license": {"name": "Apache-2.0"}}]


def test_dependencies_are_listed(libraries: Path) -> None:
    document = bill(libraries, [report("leaf", "Tall_Tree")], 0)
    assert {each["ref"]: each["dependsOn"] for each in document["dependencies"]} == {
        "pkg:pypi/disksla-exporter@9": ["pkg:pypi/tall-tree@1"],
        "pkg:pypi/tall-tree@1": ["pkg:pypi/leaf@1"],
        "pkg:pypi/leaf@1": [],
    }


def test_document_is_reproducible_and_unique(libraries: Path) -> None:
    once, twice = (
        bill(libraries, [report(*names)], 0)
        for names in (("leaf", "Tall_Tree"), ("Tall_Tree", "leaf"))
    )
    assert once == twice
    later = bill(libraries, [report("leaf", "Tall_Tree")], 1)
    assert later["serialNumber"] != once["serialNumber"]


def test_unknown_library_raises_value_error(libraries: Path) -> None:
    with pytest.raises(ValueError, match="found other libraries"):
        bill(libraries, [report("leaf")], 0)
