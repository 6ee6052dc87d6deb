"""Commands for a shell, as `--dry-run` prints them."""


def commands_in(text: str) -> list[str]:
    """Return the commands, each on one line; check that a terminal of 80 columns shows them."""
    assert max(map(len, text.splitlines())) <= 80 or "/pytest-of-" in text
    return text.replace(" \\\n    ", " ").splitlines()
