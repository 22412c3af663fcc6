"""Items that are conversations: lists of messages with a role and a content become labels, short and never mixed up."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa

LETTERS = 48
"""Of the last message that a label shows."""
NAMES = (("role", "content"), ("from", "value"))
"""What the two parts of a message are called."""


def is_messages(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds lists of messages."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        return False
    fields = {kind.value_type.field(place).name for place in range(kind.value_type.num_fields)}
    return any(fields >= {*names} for names in NAMES)


def message_label(value: Any) -> str | None:
    """Return the label of a list of messages: the beginning of the last one and a hash of all; None of anything else.

    The hash is the first 12 digits of the SHA-256 of roles and contents, so that what differs anywhere differs here.

    >>> message_label([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello, how are you?"}])
    'Hello, how are you? #daeedef2afc6'
    >>> message_label(["Hi"])
    """
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        return None
    names = next((names for names in NAMES if all({*names} <= {*one} for one in value)), None)
    if names is None:
        return None
    said = [[one[name] for name in names] for one in value]
    whole = json.dumps(said, ensure_ascii=True, sort_keys=True, default=str)
    text = " ".join(_text(said[-1][1]).replace("\0", " ").split())
    text = text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
    text = text.encode("utf-8", "replace").decode()
    return f"{text} #{hashlib.sha256(whole.encode()).hexdigest()[:12]}".lstrip()


def labelled_json(text: str | None) -> str | None:
    """Return the JSON text of the label where a JSON text is a list of messages, any other as it is.

    >>> labelled_json('[{"role": "user", "content": "Hi"}]'), labelled_json("[1]"), labelled_json('"[Hi]"')
    ('"Hi #d7760b4ba307"', '[1]', '"[Hi]"')
    """
    if text is None or not text.startswith("["):
        return text
    label = message_label(json.loads(text))
    return text if label is None else json.dumps(label, ensure_ascii=False)


def _text(content: Any) -> str:
    """Return the words of a content, which may be in parts."""
    if isinstance(content, list):
        return " ".join(_text(one) for one in content)
    if isinstance(content, dict):
        return _text(content.get("text"))
    return "" if content is None else str(content)


def labelled(column: Any) -> Any:
    """Return the labels of a column of messages, or the column itself."""
    if not is_messages(column.type):
        return column
    return pa.array([message_label(value) for value in column.to_pylist()], pa.large_string())
