"""LIKE: exactly what its definition says, in time that does not explode with the number of `%`."""

from __future__ import annotations

import random
import threading

import pytest

from tallybook.errors import ProblemError

from .evaluation import check

ALPHABET = [
    "a",
    "b",
    "%",
    "_",
    "\\%",
    "\\_",
    "\\\\",
    "\n",
    "😀",
    "é",
    ".",
    "*",
    "(",
    "[",
    "$",
    "^",
    "Q",
    "E",
    "\\\\E",
    " ",
]
SECONDS = 120
"""Far more than it takes; going back over the text would take years."""


def fits(text: str, pattern: str) -> bool:
    """The definition, character by character: which prefixes of the text fit the pattern so far."""
    ends = {0}
    at = 0
    while at < len(pattern):
        if pattern[at] == "%":
            ends = set(range(min(ends), len(text) + 1)) if ends else set()
        else:
            wanted = None if pattern[at] == "_" else pattern[at + (pattern[at] == "\\")]
            ends = {end + 1 for end in ends if end < len(text) and wanted in (None, text[end])}
            at += pattern[at] == "\\"
        at += 1
    return len(text) in ends


def random_pairs(seed: int, count: int) -> list[tuple[str, str]]:
    """Texts and patterns; half of the texts are made of the pattern, so that many fit."""
    choice = random.Random(seed)
    pairs = []
    for _ in range(count):
        pieces = choice.choices(ALPHABET, k=choice.randrange(8))
        plain = [piece[-1] for piece in choice.choices(ALPHABET, k=choice.randrange(10))]
        if choice.random() < 0.5:
            wild = {
                "%": lambda: "".join(choice.choices("ab\n😀", k=choice.randrange(3))),
                "_": lambda: choice.choice("a😀"),
            }
            plain = [wild[piece]() if piece in wild else piece.removeprefix("\\") for piece in pieces]
        pairs.append(("".join(plain), "".join(pieces)))
    return pairs


def written(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@pytest.mark.parametrize("seed", range(2))
def test_it_means_what_its_definition_says(evaluate, seed):
    pairs = random_pairs(seed, 150)
    texts, patterns = [text for text, _ in pairs], [pattern for _, pattern in pairs]
    literal = evaluate.over(
        [f"x LIKE {written(pattern)}" for pattern in patterns], {"x": "string"}, [(t,) for t in texts]
    )
    for text, values in zip(texts, literal, strict=True):
        assert values == [fits(text, pattern) for pattern in patterns], text
    of_column = evaluate.over(["x LIKE y"], {"x": "string", "y": "string"}, pairs)
    assert [value for (value,) in of_column] == [fits(*pair) for pair in pairs]
    assert {fits(*pair) for pair in pairs} == {True, False}


LONG = {
    "%a%a%a%a%a%b": False,
    "%a_a%aa%a%_%a%": True,
    "a%a%a%a%a%a%ba": False,
    "%" + "_a%" * 60 + "b": False,
}


def test_long_texts_take_no_time(spark, evaluate):
    guard = threading.Timer(SECONDS, spark.interruptAll)
    guard.start()
    try:
        text = "a" * 50_000
        literal = evaluate.over([f"x LIKE {written(pattern)}" for pattern in LONG], {"x": "string"}, [(text,)])
        of_column = evaluate.over(["x LIKE y"], {"x": "string", "y": "string"}, [(text, pattern) for pattern in LONG])
    finally:
        guard.cancel()
    assert literal == [list(LONG.values())]
    assert of_column == [[value] for value in LONG.values()]


def test_a_pattern_has_a_limit(evaluate):
    """Java's regular expressions need stack for every part of a pattern; without any the JVM would end."""
    pattern = "%a" * 1_000
    with pytest.raises(ProblemError, match="a LIKE pattern can have at most 1,000 %, but this one has 1,001"):
        check(f'"a" LIKE "{pattern}%"')
    rows = [("ab" * 2_000, pattern + "b"), ("ab" * 2_000, "%%%%" * 2_000)]
    assert evaluate.over(["x LIKE y"], {"x": "string", "y": "string"}, rows) == [[True], [True]]
    evaluate.table('"a" LIKE y => fails', {"y": ("string", "%a" * 100_000)})
