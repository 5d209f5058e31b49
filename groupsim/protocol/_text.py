"""How Java compares strings, where Python would compare them otherwise."""

from __future__ import annotations

__all__ = ["java_sort_key"]

_LAST_SINGLE_UNIT = "\uffff"


def java_sort_key(text: str) -> str:
    """A string that Python orders as ``String.compareTo`` orders ``text`` (rule A-02).

    Java compares UTF-16 code units, Python code points. They differ only where a character beyond
    the basic plane meets one in U+E000–U+FFFF; spelling the former as its two surrogates settles
    it. For every other string the key is the string itself.
    """
    if text.isascii() or max(text) <= _LAST_SINGLE_UNIT:
        return text
    data = text.encode("utf-16-be", "surrogatepass")
    return "".join(chr(data[i] << 8 | data[i + 1]) for i in range(0, len(data), 2))
