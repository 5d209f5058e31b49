"""Frames: how requests and responses look to a client that speaks to the in-process server itself.

A frame is one msgpack value: a request ``[api_key, api_version, correlation_id, client_id, body]``, a
response ``[correlation_id, body]``. A body is a map of field names (Kafka's, in snake case) to values;
fields that have their default may be left out. Numbers of error codes are integers, bytes are bytes. Frames
travel as whole messages, so nothing says how long they are.

Whatever is wrong with a frame is one ``FrameError`` that names the place in it.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

import msgpack

from groupsim.protocol.messages import API_OF_REQUEST, APIS, Api, ApiKey, Request, Response, message
from groupsim.trace.plain import plain_default

__all__ = [
    "FrameError",
    "RequestFrame",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]

_MAX_CORRELATION_ID = (1 << 31) - 1
_KEYS = frozenset(int(key) for key in APIS)  # asked for membership only


class FrameError(ValueError):
    """A frame that cannot be understood: ``place`` in it, what was ``found``, what is ``allowed``."""

    def __init__(self, place: str, found: object, allowed: str) -> None:
        self.place = place
        self.found = found
        self.allowed = allowed
        super().__init__(f"bad frame: {place}: found {_short(found)}, allowed: {allowed}")


@message
class RequestFrame:
    """A request with its header."""

    api: Api
    api_version: int
    correlation_id: int
    client_id: str
    request: Request


def encode_request(
    request: Request, *, api_version: int, correlation_id: int, client_id: str
) -> bytes:
    """Return the frame of a request."""
    key = int(API_OF_REQUEST[type(request)].key)
    return _pack([key, api_version, correlation_id, client_id, request])


def encode_response(correlation_id: int, response: Response) -> bytes:
    """Return the frame of a response."""
    return _pack([correlation_id, response])


def decode_request(frame: bytes) -> RequestFrame:
    """Read a request.

    Raises:
        FrameError: it is not a request of a supported kind and version.

    """
    header = _unpack(frame, "[api_key, api_version, correlation_id, client_id, body]", 5)
    key = header[0]
    api = APIS[ApiKey(key)] if type(key) is int and key in _KEYS else None
    if api is None:
        names = ", ".join(f"{int(api.key)} {api.name}" for api in APIS.values())
        raise FrameError("api_key", key, names)
    version, correlation_id, client_id = header[1:4]
    if type(version) is not int or not api.min_version <= version <= api.max_version:
        allowed = f"{api.min_version} to {api.max_version} for {api.name}"
        raise FrameError("api_version", version, allowed)
    if type(correlation_id) is not int or not 0 <= correlation_id <= _MAX_CORRELATION_ID:
        raise FrameError("correlation_id", correlation_id, f"0 to {_MAX_CORRELATION_ID}")
    if type(client_id) is not str:
        raise FrameError("client_id", client_id, "a string")
    return RequestFrame(
        api=api,
        api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
        request=_reader(cast("Any", api.request))(header[4], "body"),
    )


def decode_response(frame: bytes, key: ApiKey) -> tuple[int, Response]:
    """Read the response to a request of kind ``key``: its correlation id and value.

    Raises:
        FrameError: it is not such a response.

    """
    correlation_id, body = _unpack(frame, "[correlation_id, body]", 2)
    if type(correlation_id) is not int:
        raise FrameError("correlation_id", correlation_id, "an integer")
    return correlation_id, _reader(cast("Any", APIS[key].response))(body, "body")


def _pack(value: list[Any]) -> bytes:
    packed: bytes = msgpack.packb(value, default=plain_default)
    return packed


def _unpack(frame: object, shape: str, length: int) -> list[Any]:
    if not isinstance(frame, bytes):
        raise FrameError("frame", frame, "bytes")
    try:
        value = msgpack.unpackb(frame)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise FrameError("frame", f"{len(frame)} bytes ({error})", "one msgpack value") from None
    if not isinstance(value, list) or len(value) != length:
        raise FrameError("frame", value, f"an array {shape}")
    return value


Read = Callable[[Any, str], Any]


@cache
def _reader(kind: Any) -> Read:
    """Return a function that makes a value of type ``kind`` of its plain form."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return _tuple_reader(_reader(arguments[0]))
    if origin in (types.UnionType, typing.Union):
        (inner,) = (a for a in arguments if a is not type(None))
        return _optional_reader(_reader(inner))
    if dataclasses.is_dataclass(kind):
        return _value_reader(kind)
    if isinstance(kind, type) and issubclass(kind, enum.IntEnum):
        return _enum_reader(kind)
    return _plain_reader(kind)


def _tuple_reader(item: Read) -> Read:
    def read(value: Any, place: str) -> Any:
        if not isinstance(value, list):
            raise FrameError(place, value, "an array")
        return tuple(item(each, f"{place}[{index}]") for index, each in enumerate(value))

    return read


def _optional_reader(inner: Read) -> Read:
    def read(value: Any, place: str) -> Any:
        return None if value is None else inner(value, place)

    return read


def _value_reader(kind: Any) -> Read:
    hints = typing.get_type_hints(kind)
    fields = {field.name: _reader(hints[field.name]) for field in dataclasses.fields(kind)}
    required = [
        f.name
        for f in dataclasses.fields(kind)
        if f.default is f.default_factory  # both missing
    ]

    def read(value: Any, place: str) -> Any:
        if not isinstance(value, Mapping):
            raise FrameError(place, value, f"a map of {', '.join(fields)}")
        for name in value:
            if name not in fields:
                raise FrameError(
                    f"{place}.{name}", value[name], f"no such field; {', '.join(fields)}"
                )
        for name in required:
            if name not in value:
                raise FrameError(f"{place}.{name}", "nothing", "the field is required")
        return kind(**{name: fields[name](each, f"{place}.{name}") for name, each in value.items()})

    return read


def _enum_reader(kind: type[enum.IntEnum]) -> Read:
    def read(value: Any, place: str) -> Any:
        try:
            return kind(value)
        except ValueError:
            raise FrameError(place, value, f"a number of {kind.__name__}") from None

    return read


def _plain_reader(kind: Any) -> Read:
    name = {str: "a string", int: "an integer", bytes: "bytes", bool: "true or false"}[kind]

    def read(value: Any, place: str) -> Any:
        if type(value) is not kind:
            raise FrameError(place, value, name)
        return value

    return read


def _short(found: object) -> str:
    text = found if isinstance(found, str) else repr(found)
    return text if len(text) <= 60 else text[:57] + "..."
