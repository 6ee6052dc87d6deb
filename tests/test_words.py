"""Words that code, documents and messages do not use; docs/glossary.md has those that they use."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSTEAD = {
    r"reckon\w*": "compute, count, estimate",
    r"told|tells": "reported, shown, configured; distinguishes",
    r"laid to|lays? to": "attributed to",
    r"gone on with|goes? on with": "resumed, continued",
    r"put(s|ting)? right|put(s|ting)? to rights": "fixed, corrected",
    r"whoever|whosoever|somebody|nobody": "the user, the operator, the client; a passive",
    r"papers?": "certificates, documents",
    r"anew|hence|wherein|whence": "again; therefore; in which",
    r"leash\w*": "sandbox, process limits",
    r"purses?|tally|tallies|ledgers?": "credit account, totals",
    r"held against|holds? (it|them|that|what \w+ \w+) against": "compared with",
    r"cannot be had|is there already|is no more": "is unavailable, already exists, was removed",
    r"mend(s|ed|ing)?": "fix",
    r"shall": "must, will",
    r"rooms?|doors?": "package, directory; field type, address",
    r"honest(ly)?|shy|polite(ly)?": "what the code does",
}
"""What a word or phrase means here, by the expression that finds it."""
INSTEAD_IN_RUSSIAN = {
    r"латентност\w*": "задержка",
    r"тротл\w*|троттлит\w*|троттлят": "троттлинг",
    r"бёрст\w*|берст\w*|бурст\w*": "burst",
    r"инстанс\w*": "машина",
    r"флаш\w*": "flush",
    r"волюм\w*": "том",
    r"д[еэ]шборд\w*": "дашборд",
}
"""The same in pages in Russian."""
UNWANTED_IN_RUSSIAN = re.compile(rf"\b({'|'.join(INSTEAD_IN_RUSSIAN)})\b", re.IGNORECASE)
TWO_ALPHABETS = re.compile(r"\b\w*(?:[a-z][\u0430-\u0451]|[\u0430-\u0451][a-z])\w*", re.IGNORECASE)
"""A word with letters of both alphabets, some of which look alike."""
UNWANTED = re.compile(rf"\b({'|'.join(INSTEAD)})\b", re.IGNORECASE)
PARTS_OF_NAMES = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
DOCSTRING_OPENINGS = re.compile(r"(Gives?|Says?|Takes?|Tells?|Lets?) ")

FOLDERS = ("exporter", "tests", "docs", "grafana", "systemd", "packaging", ".ci", ".github")
SUFFIXES = {"", ".py", ".md", ".yml", ".yaml", ".libsonnet", ".cfg", ".toml", ".service"}
DATA = ("tests/fuzz/seeds/", "tests/hosts/", "tests/lab/recordings/", "grafana/out/")
EXEMPT = {"LICENSE", "packaging/debian/copyright", "tests/test_words.py"}


def written_files() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of files that people wrote and read."""
    paths = [*ROOT.iterdir(), *(path for name in FOLDERS for path in (ROOT / name).rglob("*"))]
    for path in sorted(paths):
        name = path.relative_to(ROOT).as_posix()
        generated = "egg-info" in name or name.startswith((".coverage", *DATA))
        if path.is_file() and path.suffix in SUFFIXES and name not in EXEMPT and not generated:
            yield name, path.read_text(encoding="utf-8")


def unwanted(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        for found in UNWANTED.finditer(PARTS_OF_NAMES.sub(" ", line)):
            word = found.group()
            uses = (use for known, use in INSTEAD.items() if re.fullmatch(known, word.lower()))
            yield f"line {number}: '{word}'; expected {next(uses)}"


def unwanted_in_russian(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        for found in UNWANTED_IN_RUSSIAN.finditer(line):
            word = found.group()
            known = INSTEAD_IN_RUSSIAN.items()
            [use] = (use for pattern, use in known if re.fullmatch(pattern, word.lower()))
            yield f"line {number}: '{word}'; expected {use}"
        for found in TWO_ALPHABETS.finditer(line):
            yield f"line {number}: '{found.group()}'; expected letters of one alphabet"


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, ast.get_docstring(node) or ""


def test_files_have_no_unwanted_words() -> None:
    assert [f"{name}, {found}" for name, text in written_files() for found in unwanted(text)] == []


def test_pages_in_russian_have_no_unwanted_words() -> None:
    pages = [page for page in written_files() if page[0].endswith(".ru.md")]
    assert len(pages) > 1
    assert [
        f"{name}, {found}" for name, text in pages for found in unwanted_in_russian(text)
    ] == []


def test_docstrings_open_with_a_verb_of_pep_257() -> None:
    opened = [
        f"{name}, line {line}: {docstring.splitlines()[0]}"
        for name, text in written_files()
        if name.endswith(".py")
        for line, docstring in docstrings(text)
        if DOCSTRING_OPENINGS.match(docstring)
    ]
    assert opened == [], "a docstring opens with Return, Yield, Write, Check, ..."


def test_the_check_finds_words_in_prose_and_names() -> None:
    assert list(unwanted("The disk\nis told_anew by its LedgerOfBytes, wholly")) == [
        "line 2: 'told'; expected reported, shown, configured; distinguishes",
        "line 2: 'anew'; expected again; therefore; in which",
        "line 2: 'Ledger'; expected credit account, totals",
    ]


def test_the_check_finds_words_in_russian() -> None:
    assert list(unwanted_in_russian("Задержка диска\nи Латентность Lимит, burst-кредиты")) == [
        "line 2: 'Латентность'; expected задержка",
        "line 2: 'Lимит'; expected letters of one alphabet",
    ]
