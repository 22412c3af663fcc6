"""The one SQL text that counts judgments, made of quoted names only; every SQL engine runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["count_lists", "count_rows", "identifier", "literal"]


def identifier(name: str) -> str:
    """Return a name as an SQL identifier.

    >>> print(identifier('a"b; drop table x'))
    "a""b; drop table x"
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """Return a text as an SQL literal.

    >>> literal("o'brien.csv")
    "'o''brien.csv'"
    """
    return "'" + value.replace("'", "''") + "'"


def count_rows(source: str, roles: Mapping[str, str]) -> str:
    """Return the statement that counts equal rows; ``source`` is SQL already, ``roles`` maps names to columns.

    >>> count_rows("votes", {"winner": "w"})
    'SELECT log."w" AS "winner", count(*) AS "rows" FROM votes AS log GROUP BY log."w"'
    """
    chosen = ", ".join(f"log.{identifier(column)} AS {identifier(role)}" for role, column in roles.items())
    groups = ", ".join(dict.fromkeys(f"log.{identifier(column)}" for column in roles.values()))
    return f'SELECT {chosen}, count(*) AS "rows" FROM {source} AS log GROUP BY {groups}'


def count_lists(source: str, keys: Mapping[str, str], entries: Mapping[str, str], owner: str | None) -> str:
    """Return the statement that gathers the rows of each list, sorted, and counts equal lists.

    Lists are told apart by all ``keys``; of the key ``owner`` (session, judgment) only the least is kept, to show one,
    and whether it is there at all.

    >>> print(count_lists("clicks", {"session": "s"}, {"item": "i"}, "session"))
    SELECT lists."entries", count(*) AS "lists", min(lists."session") AS "session" FROM (SELECT log."s" AS "session", \
list(struct_pack("item" := log."i") ORDER BY log."i") AS "entries" FROM clicks AS log GROUP BY log."s") AS lists \
GROUP BY lists."entries", lists."session" IS NULL
    """
    inner = ", ".join(f"log.{identifier(column)} AS {identifier(role)}" for role, column in keys.items())
    fields = ", ".join(f"{identifier(role)} := log.{identifier(column)}" for role, column in entries.items())
    order = ", ".join(f"log.{identifier(column)}" for column in entries.values())
    groups = ", ".join(dict.fromkeys(f"log.{identifier(column)}" for column in keys.values()))
    gathered = (
        f'SELECT {inner}, list(struct_pack({fields}) ORDER BY {order}) AS "entries" '
        f"FROM {source} AS log GROUP BY {groups}"
    )
    kept: Sequence[str] = [*(f"lists.{identifier(role)}" for role in keys if role != owner), 'lists."entries"']
    least = f", min(lists.{identifier(owner)}) AS {identifier(owner)}" if owner else ""
    same = ", ".join(kept)
    apart = f", lists.{identifier(owner)} IS NULL" if owner else ""
    return f'SELECT {same}, count(*) AS "lists"{least} FROM ({gathered}) AS lists GROUP BY {same}{apart}'
