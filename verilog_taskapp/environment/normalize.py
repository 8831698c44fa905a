"""What the text of ``write_file`` goes through: encoding artefacts are repaired, the code is left alone.

Every change is named in a note for the model. Characters that look like Verilog but are not (typographic quotes and
the like) stay, because what they should have been is the model's to say: a note names the place.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

VERILOG_SUFFIXES: Final = (".v", ".sv", ".vh", ".svh")
MAX_PLACES: Final = 5
"""Foreign characters that are named one by one; further ones are counted."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_FENCE = re.compile(r"[ \t]*(```+|~~~+)([^`~\n]*)")
_VERILOG_INFO = re.compile(
    r"(?:(?:verilog|systemverilog|svh?|vh?|hdl|rtl|text|plaintext|txt)(?:[\s:{,].*)?)?", re.IGNORECASE
)
_CODE_OUTSIDE = re.compile(r"\bendmodule\b|;[ \t]*$|^[ \t]*`\w", re.MULTILINE)

_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"?', re.DOTALL)
# Comments and strings (and escaped identifiers, whose quotes open no string), each possibly unclosed.
_NOT_CODE = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*"?|(?P<escaped>\\\S+)', re.DOTALL)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")

_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_LINE_BREAKS = "\u0085\u2028\u2029"
_INVISIBLE = (
    "\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
)
_REPLACEMENTS = {
    **dict.fromkeys(_SPACES, " "),
    **dict.fromkeys(_LINE_BREAKS, "\n"),
    **dict.fromkeys(_INVISIBLE, ""),
}
_TABLE = str.maketrans(_REPLACEMENTS)
_MEANT = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
    "\u00d7": "*",
    "\u2264": "<=",
    "\u2265": ">=",
    "\u2260": "!=",
    **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # the full-width forms of ASCII
}
UNWRAPPED: Final = "The Markdown fence around the code was removed."


def normalize(path: str, content: str) -> tuple[str, tuple[str, ...]]:
    """The text to write for ``content``, and notes for the model on what was changed or looks wrong.

    Byte order mark and line ends are repaired in every file; fences and Unicode spaces only where ``path`` has a
    Verilog suffix. Notes give lines and columns of the returned text, counted from 1.
    """
    notes: list[str] = []
    text, surrogates = _SURROGATE.subn("\ufffd", content)  # cannot be written as UTF-8
    if surrogates:
        notes.append(f"{_times(surrogates, 'lone surrogate')} replaced by U+FFFD.")
    if text.startswith("\ufeff"):
        text = text.lstrip("\ufeff")
        notes.append("The byte order mark at the start was removed.")
    if breaks := text.count("\r"):
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        notes.append(f"{_times(breaks, 'CR or CRLF line end')} changed to LF.")
    if path.lower().endswith(VERILOG_SUFFIXES):
        text, note = _unwrap(text)
        notes += [note] if note else []
        text, repaired = _repair(text)
        notes += repaired
        notes += _foreign(text)
        if "\n" not in text.strip() and (escapes := _STRING.sub("", text).count("\\n")):
            notes.append(
                f"The text is a single line with {escapes} times a backslash and an n outside of strings, as if line "
                "breaks had been escaped twice. The text was kept as it is."
            )
    return text, tuple(notes)


def _times(count: int, what: str) -> str:
    return f"1 {what} was" if count == 1 else f"{count} {what}s were"


def _unwrap(text: str) -> tuple[str, str]:
    """Without the Markdown fence around the code, if there is no doubt what is inside; and a note if it was removed."""
    lines = text.split("\n")
    fences = [(number, match) for number, line in enumerate(lines) if (match := _FENCE.fullmatch(line))]
    if not 1 <= len(fences) <= 2 or not _VERILOG_INFO.fullmatch(fences[0][1][2].strip()):
        return text, ""
    first, last = fences[0][0], fences[-1][0]
    if len(fences) == 1:
        before, after = _is_blank(lines[:first]), _is_blank(lines[first + 1 :])
        if before == after:  # in the middle, or alone
            return text, ""
        rest = _joined(lines[first + 1 :] if before else lines[:first])
        if before and rest.rstrip().endswith("```"):
            return _joined([rest.rstrip().rstrip("`")]), UNWRAPPED
        return rest, "A Markdown fence line was removed."
    if fences[1][1][2].strip() or fences[0][1][1][0] != fences[1][1][1][0]:
        return text, ""
    inside, outside = lines[first + 1 : last], [*lines[:first], *lines[last + 1 :]]
    if _is_blank(inside):
        return text, ""
    if _is_blank(outside):
        return _joined(inside), UNWRAPPED
    if "endmodule" in _joined(inside) and not _CODE_OUTSIDE.search("\n".join(outside)):
        return _joined(inside), "Only the fenced code block was written; the fence and the text around it were removed."
    return text, ""


def _is_blank(lines: list[str]) -> bool:
    return not any(line.strip() for line in lines)


def _joined(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n") + "\n"


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces; true for those that are code, false for comments and strings."""
    start = 0
    for match in _NOT_CODE.finditer(text):
        if match["escaped"] is None:
            yield text[start : match.start()], True
            yield match[0], False
            start = match.end()
    yield text[start:], True


def _repair(text: str) -> tuple[str, list[str]]:
    """With spaces, line breaks and invisible characters of Unicode in the code replaced by plain ones."""
    if text.isascii():
        return text, []
    counts: dict[str, int] = {}
    pieces: list[str] = []
    for part, is_code in _parts(text):
        if is_code and not part.isascii():
            for character in _NOT_ASCII.findall(part):
                if character in _REPLACEMENTS:
                    counts[character] = counts.get(character, 0) + 1
            pieces.append(part.translate(_TABLE))
        else:
            pieces.append(part)
    notes = []
    for character, count in counts.items():
        plain = _REPLACEMENTS[character]
        done = "removed" if not plain else f"replaced by {'a plain space' if plain == ' ' else 'a line break'}"
        notes.append(f"{_described(character)} ({count} x) was {done}.")
    return "".join(pieces), notes


def _foreign(text: str) -> list[str]:
    """Notes on characters that cannot stand in Verilog outside of comments and strings."""
    if text.isascii():
        return []
    notes: list[str] = []
    found, line, column = 0, 1, 1
    for part, is_code in _parts(text):
        for match in _NOT_ASCII.finditer(part) if is_code else ():
            found += 1
            if found > MAX_PLACES:
                continue
            before = part[: match.start()]
            row = line + before.count("\n")
            place = len(before) - before.rfind("\n") if "\n" in before else column + len(before)
            meant = f"; use {_MEANT[match[0]]}" if match[0] in _MEANT else ""
            notes.append(
                f"Line {row}, column {place}: {match[0]} ({_described(match[0])}) is not Verilog outside of comments "
                f"and strings{meant}. The text was kept as it is."
            )
        line += part.count("\n")
        column = len(part) - part.rfind("\n") if "\n" in part else column + len(part)
    if found > MAX_PLACES:
        notes.append(f"{found - MAX_PLACES} further characters of this kind.")
    return notes


def _described(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'unnamed')}"
