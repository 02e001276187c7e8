"""Text on Spark, counted in code points."""

from __future__ import annotations

COLUMNS = {
    "none": ("string", None),
    "nothing": ("integer", None),
    "smile": ("string", "🙂a🙂"),
    "accent": ("string", "e\u0301"),
    "family": ("string", "👨\u200d👩\u200d👧"),
    "lines": ("string", "one\ntwo"),
    "huge": ("integer", 2**63 - 1),
    "tiny": ("integer", -(2**63)),
}


def test_quotes_and_escapes(evaluate):
    evaluate.table(
        r"""
        "a ""b"" c"                 => a "b" c
        "a \"b\" c"                 => a "b" c
        'it''s'                     => it's
        'it\'s'                     => it's
        "it's"                      => it's
        'a "b"'                     => a "b"
        "a\\b"                      => a\b
        "a\nb"                      => a\nb
        "100\%"                     => 100\%
        ""                          => ""
        "{{a}} (b"                  => {{a}} (b
        LEN(lines)                  => 7
        """,
        COLUMNS,
    )


def test_text_functions(evaluate):
    evaluate.table(
        """
        CONCAT("Q", "1", "-", "2026")       => Q1-2026
        CONCAT("a")                         => a
        CONCAT("a", none)                   => NULL
        UPPER("straße é")                   => STRASSE É
        LOWER("ÀB")                         => àb
        TRIM("  a b ")                      => "a b"
        LEN("café")                         => 4
        LEN("")                             => 0
        LEN(smile)                          => 3
        LEN(accent)                         => 2
        LEN(family)                         => 5
        CONTAINS("month end", "END")        => false
        CONTAINS("a", "")                   => true
        CONTAINS(smile, "🙂")                => true
        STARTS_WITH("4000", "40")           => true
        STARTS_WITH("4000", "00")           => false
        ENDS_WITH("4000", "00")             => true
        ENDS_WITH(none, "0")                => NULL
        REPLACE("a-b-c", "-", "")           => abc
        REPLACE("aaa", "aa", "b")           => ba
        REPLACE("abc", "", "x")             => abc
        REPLACE(smile, "a", "b")            => 🙂b🙂
        REPLACE("abc", "b", none)           => NULL
        """,
        COLUMNS,
    )


def test_parts_of_text(evaluate):
    evaluate.table(
        """
        LEFT("abc", 2)                      => ab
        LEFT("abc", 0)                      => ""
        LEFT("abc", -1)                     => ""
        LEFT("abc", 10)                     => abc
        LEFT("abc", huge)                   => abc
        LEFT("abc", tiny)                   => ""
        LEFT("abc", nothing)                => NULL
        LEFT(smile, 2)                      => 🙂a
        LEFT(accent, 1)                     => e
        RIGHT("abc", 2)                     => bc
        RIGHT("abc", 0)                     => ""
        RIGHT("abc", -1)                    => ""
        RIGHT("abc", huge)                  => abc
        RIGHT("abc", nothing)               => NULL
        RIGHT(smile, 2)                     => a🙂
        SUBSTRING("abcdef", 2)              => bcdef
        SUBSTRING("abcdef", 2, 3)           => bcd
        SUBSTRING("abcdef", 1, 1)           => a
        SUBSTRING("abcdef", 0)              => abcdef
        SUBSTRING("abcdef", 0, 3)           => ab
        SUBSTRING("abcdef", -1, 3)          => a
        SUBSTRING("abcdef", -5, 3)          => ""
        SUBSTRING("abcdef", -5)             => abcdef
        SUBSTRING("abcdef", 6, 5)           => f
        SUBSTRING("abcdef", 7)              => ""
        SUBSTRING("abcdef", 7, 1)           => ""
        SUBSTRING("abcdef", 2, 0)           => ""
        SUBSTRING("abcdef", 2, -1)          => ""
        SUBSTRING("abcdef", 2, huge)        => bcdef
        SUBSTRING("abcdef", huge, huge)     => ""
        SUBSTRING("abcdef", tiny, huge)     => ""
        SUBSTRING("abcdef", nothing)        => NULL
        SUBSTRING("abcdef", 1, nothing)     => NULL
        SUBSTRING(smile, 3, 1)              => 🙂
        SUBSTRING("abc", 1.5)               => TypeMismatch
        LEFT(1, 1)                          => TypeMismatch
        """,
        COLUMNS,
    )


def test_more_text_functions(evaluate):
    evaluate.table(
        """
        PROPER("o'neil & SONS-gmbh 2nd")        => O'Neil & Sons-Gmbh 2Nd
        PROPER("éCOLE")                         => École
        LPAD("42", 5, "0")                      => 00042
        LPAD("12345", 3, "0")                   => 123
        RPAD("a", 4, "🙂x")                     => a🙂x🙂
        LPAD("a", 3, "")                        => a
        LPAD("a", 100001, "x")                  => fails
        FIND("b", "abcb")                       => 2
        FIND("x", "abc")                        => 0
        FIND("c", "🙂bc")                       => 3
        SPLIT_PART("a/b//c", "/", 3)            => ""
        SPLIT_PART("a/b//c", "/", 5)            => NULL
        SPLIT_PART("a/b", "/", 0)               => NULL
        SPLIT_PART("a/b", "", 1)                => a/b
        SPLIT_PART("a.b", ".", 2)               => b
        ISBLANK("")                             => true
        ISBLANK(" 　 ")                => true
        ISBLANK(" x ")                          => false
        """
    )
