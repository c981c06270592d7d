"""What a terminal would obey is shown; everything else stays."""

import json
import sys
import unicodedata

import pytest

from cronring.schema.visible import RESET, VisibleStream, visible_block, visible_json, visible_line

# Letters and numbers of scripts that are read from right to left are no orders to a terminal.
SIGNS = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x890, 0x891, 0x8E2}


def test_no_character_that_is_obeyed_or_hidden_is_left_out() -> None:
    orders = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    kinds = {"Cc", "Cf", "Zl", "Zp", "Cs"}
    missed = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if (unicodedata.category(chr(code)) in kinds or unicodedata.bidirectional(chr(code)) in orders)
        and code not in SIGNS
        and visible_line(chr(code)) == chr(code)
    ]
    assert not missed


def test_what_people_write_stays() -> None:
    for text in ("zwölf € 漢字 e\u0301 😀 שלום مرحبا", "C:\\temp [red]x[/red] :smile:", ""):
        assert visible_line(text) == visible_block(text) == visible_json(text) == text


def test_a_line_stays_one() -> None:
    assert visible_line("a\nb\r\n\tc\x1b[31m\x9b\u202e\U000e0041") == r"a\nb\r\n\tc\x1b[31m\x9b\u202e\U000e0041"


def test_a_block_keeps_its_lines() -> None:
    assert visible_block("a\r\nb\tc\rd\n") == "a\nb\tc\\rd\n"


def test_json_stays_the_same_value() -> None:
    value = {"\x7f\u202e": ["\x9b31m", "\U000e0041", "\n", "\ud800"]}
    text = visible_json(json.dumps(value, ensure_ascii=False))
    assert text.isascii()
    assert json.loads(text) == value


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\x1b[31mred" + RESET),
        ("\x1b[1;38;5;208m\x1b[48;2;1;2;3m", "\x1b[1;38;5;208m\x1b[48;2;1;2;3m" + RESET),
        ("\x1b[m", "\x1b[m" + RESET),
        ("\x1b[8mhidden", r"\x1b[8mhidden"),
        ("\x1b[5mblinks", r"\x1b[5mblinks"),
        ("\x1b[38;5;256m", r"\x1b[38;5;256m"),
        ("\x1b[38;5m", r"\x1b[38;5m"),
        ("\x1b[38;2;1;2m", r"\x1b[38;2;1;2m"),
        ("\x1b[2J\x1b]0;t\x07\x9b31m", r"\x1b[2J\x1b]0;t\x07\x9b31m"),
        ("\x1b[" + "1;" * 40 + "m", r"\x1b[" + "1;" * 40 + "m"),
        ("\x1b[31", r"\x1b[31"),
        ("plain\r\n", "plain\n"),
    ],
)
def test_colours_alone_are_obeyed_and_end(text: str, shown: str) -> None:
    whole = VisibleStream(colours=True)
    assert whole.feed(text) + whole.end() == shown
    pieces = VisibleStream(colours=True)
    assert "".join(map(pieces.feed, text)) + pieces.end() == shown


def test_without_colours_none_is() -> None:
    stream = VisibleStream()
    assert "".join(map(stream.feed, "a\x1b[31mb\r\nc\r")) + stream.end() == "a\\x1b[31mb\nc\\r"
