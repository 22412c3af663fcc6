"""Is an output what a document shows? ``…`` stands for what may differ."""

from __future__ import annotations

import difflib
import re

NUMBER = re.compile(r"(?<![\w.])[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?%?(?![\w])")


def difference(shown: str, said: str, notes: dict[str, str]) -> str:
    """Return how an output differs from the one shown; empty where it does not.

    Runs of blanks count as one and empty lines as none. A line ``…`` stands for any lines, ``…`` within a line for any
    text of that line. The note ``numbers within 2%`` lets numbers differ by that much.
    """
    wanted, heard = _lines(shown), _lines(said)
    tolerance = float(notes["numbers"].removesuffix("%")) / 100 if "numbers" in notes else None
    match = re.fullmatch("".join(_pattern(line, tolerance is not None) for line in wanted), "".join(heard))
    if match is not None:
        if tolerance is None:
            return ""
        expected = [_value(one) for line in wanted if line != "…\n" for one in NUMBER.findall(line)]
        far = [
            f"{was:g} is shown, {now} said"
            for was, now in zip(expected, match.groups(), strict=True)
            if abs(_value(now) - was) > tolerance * abs(was)
        ]
        return "; ".join(far)
    return "".join(difflib.unified_diff(wanted, heard, "shown", "said", n=2))


def _lines(text: str) -> list[str]:
    return [f"{' '.join(line.split())}\n" for line in text.splitlines() if line.strip()]


def _pattern(line: str, loose: bool) -> str:
    if line == "…\n":
        return r"(?:[^\n]*\n)*?"
    between = NUMBER.split(line) if loose else [line]
    return r"([-+−\d.,e%]+)".join(re.escape(part).replace("…", r"[^\n]*?") for part in between)


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("−", "-").removesuffix("%"))
