"""Big-endian primitives of Kafka's non-compact encodings, with the failures Java has for each."""

from __future__ import annotations

import struct
from collections.abc import Sequence

__all__ = ["Reader", "SchemaError", "Writer"]

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_MAX_STRING_BYTES = 0x7FFF  # Short.MAX_VALUE: strings carry an int16 length


class SchemaError(ValueError):
    """Bytes that are not what they should be, or values that cannot be written.

    ``java_exception`` is the simple name of what Kafka's client throws for the same input: the
    generated message classes throw plain ``RuntimeException`` in several places where a
    ``SchemaException`` might be expected. ``detail`` says what was found.
    """

    def __init__(self, detail: str, *, java_exception: str = "SchemaException") -> None:
        super().__init__(detail)
        self.detail = detail
        self.java_exception = java_exception


class Reader:
    """Reads one value after another from ``data``. Raises ``SchemaError`` on malformed input."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def remaining(self) -> int:
        """Number of bytes not read yet."""
        return len(self._data) - self._position

    def int16(self) -> int:
        """A signed 16-bit integer."""
        return self._number(_INT16)

    def int32(self) -> int:
        """A signed 32-bit integer."""
        return self._number(_INT32)

    def _number(self, kind: struct.Struct) -> int:
        if self.remaining < kind.size:
            raise SchemaError(f"needed {kind.size} bytes for a number, {self.remaining} left")
        (value,) = kind.unpack_from(self._data, self._position)
        self._position += kind.size
        return int(value)

    def nullable_string(self) -> str | None:
        """UTF-8 text after an int16 length; a negative length is null."""
        length = self.int16()
        if length < 0:
            return None
        if length > self.remaining:
            raise SchemaError(
                f"string of {length} bytes, {self.remaining} left",
                java_exception="RuntimeException",
            )
        return self._take(length).decode("utf-8", "replace")

    def string(self) -> str:
        """As ``nullable_string``, where null is not allowed."""
        text = self.nullable_string()
        if text is None:
            raise SchemaError("null for a string", java_exception="RuntimeException")
        return text

    def nullable_bytes(self) -> bytes | None:
        """Bytes after an int32 length; a negative length is null."""
        length = self.int32()
        if length < 0:
            return None
        if length > self.remaining:
            raise SchemaError(
                f"{length} bytes, {self.remaining} left", java_exception="IllegalArgumentException"
            )
        return self._take(length)

    def array_length(self) -> int:
        """An int32 count; null, or more elements than bytes are left, is malformed."""
        count = self.int32()
        if count < 0:
            raise SchemaError("null for an array", java_exception="RuntimeException")
        if count > self.remaining:
            raise SchemaError(
                f"array of {count}, {self.remaining} bytes left", java_exception="RuntimeException"
            )
        return count

    def int32_array(self) -> tuple[int, ...]:
        """An array of signed 32-bit integers."""
        count = self.array_length()
        size = count * _INT32.size
        if size > self.remaining:
            raise SchemaError(f"needed {size} bytes for {count} numbers, {self.remaining} left")
        values = struct.unpack_from(f">{count}i", self._data, self._position)
        self._position += size
        return values

    def _take(self, length: int) -> bytes:
        start = self._position
        self._position += length
        return self._data[start : self._position]


class Writer:
    """Appends one value after another. Raises ``SchemaError`` for what cannot be written."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def getvalue(self) -> bytes:
        """All that was written."""
        return b"".join(self._parts)

    def int16(self, value: int) -> None:
        """A signed 16-bit integer."""
        self._parts.append(_INT16.pack(value))

    def int32(self, value: int) -> None:
        """A signed 32-bit integer."""
        try:
            self._parts.append(_INT32.pack(value))
        except struct.error:
            raise SchemaError(f"{value} does not fit into 32 bits") from None

    def string(self, text: str) -> None:
        """UTF-8 text after an int16 length; unpaired surrogates become ``?``, as in Java."""
        data = text.encode("utf-8", "replace")
        if len(data) > _MAX_STRING_BYTES:
            raise SchemaError(
                f"string of {len(data)} bytes is too long", java_exception="RuntimeException"
            )
        self.int16(len(data))
        self._parts.append(data)

    def nullable_string(self, text: str | None) -> None:
        """As ``string``; None is length −1."""
        if text is None:
            self.int16(-1)
        else:
            self.string(text)

    def nullable_bytes(self, data: bytes | None) -> None:
        """Bytes after an int32 length; None is length −1."""
        if data is None:
            self.int32(-1)
        else:
            self.int32(len(data))
            self._parts.append(data)

    def int32_array(self, values: Sequence[int]) -> None:
        """An array of signed 32-bit integers."""
        self.int32(len(values))
        try:
            self._parts.append(struct.pack(f">{len(values)}i", *values))
        except struct.error:
            raise SchemaError(f"a number of {list(values)} does not fit into 32 bits") from None
