"""Randomness: named streams of integers from one 64-bit seed, the same on every machine.

A stream is a function of (seed, name, number): the BLAKE2b hash of the number under a key made of seed and
name. So no stream knows of any other, a new member disturbs nobody's draws, and the n-th message of a
link has its draw whatever was drawn elsewhere in between. There is no state to save but a counter, and
nothing here depends on the platform, on floats or on Python's ``random``.
"""

from __future__ import annotations

import struct
from hashlib import blake2b

__all__ = ["MAX_SEED", "Stream", "Streams"]

MAX_SEED = (1 << 64) - 1

_WORDS = struct.Struct(">8Q").unpack
_PER_BLOCK = 8  # one BLAKE2b digest holds eight 64-bit words


class Stream:
    """One named stream of 64-bit integers, read by number (``at``) or one after another."""

    __slots__ = ("_block", "_key", "_next", "_words", "name")

    def __init__(self, seed: int, name: str) -> None:
        self.name = name
        seed_bytes = seed.to_bytes(8, "big")
        self._key = blake2b(name.encode(), key=seed_bytes, person=b"groupsim").digest()
        self._block = -1
        self._words: tuple[int, ...] = ()
        self._next = 0

    def at(self, number: int) -> int:
        """Return the draw with this number, in [0, 2⁶⁴). Numbers count from 0."""
        block, word = divmod(number, _PER_BLOCK)
        if block != self._block:
            digest = blake2b(block.to_bytes(8, "big"), key=self._key).digest()
            self._words = _WORDS(digest)
            self._block = block
        return self._words[word]

    def draw(self) -> int:
        """Return the next draw, in [0, 2⁶⁴)."""
        number = self._next
        self._next = number + 1
        return self.at(number)

    def below(self, bound: int) -> int:
        """Return the next integer in [0, ``bound``).

        The draw is scaled, not repeated, so that every call uses one number; the bias is below
        bound / 2⁶⁴.

        Raises:
            ValueError: ``bound`` is not positive or above 2⁶⁴.

        """
        if not 0 < bound <= 1 << 64:
            raise ValueError(f"stream {self.name!r}: bound must be 1 to 2^64; got {bound}")
        return self.draw() * bound >> 64

    def uuid(self) -> str:
        """Return the next random (version 4) UUID, as Java's ``UUID.toString`` writes it."""
        value = self.draw() << 64 | self.draw()
        value = value & ~(0xF << 76) | 4 << 76  # version
        value = value & ~(0x3 << 62) | 2 << 62  # variant
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Streams:
    """All streams of one seed, by name. Asking twice for a name gives the same stream.

    Raises:
        ValueError: the seed is not an unsigned 64-bit integer.

    """

    def __init__(self, seed: int) -> None:
        if not 0 <= seed <= MAX_SEED:
            raise ValueError(f"a seed is an integer from 0 to {MAX_SEED}; got {seed}")
        self.seed = seed
        self._streams: dict[str, Stream] = {}

    def stream(self, name: str) -> Stream:
        """Return the stream called ``name``."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Stream(self.seed, name)
        return stream
