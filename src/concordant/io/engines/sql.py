"""The one SQL text that counts judgments, made of quoted names only; every SQL engine runs it in its dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """What differs between engines: the quote around names, and how the rows of a group become a sorted list.

    ``gathered`` holds the ``fields`` of a row and the columns ``order`` that its rows are sorted by; a field is a
    ``column`` and its ``name``.
    """

    quote: str
    field: str
    gathered: str


DUCKDB = Dialect('"', "{name} := {column}", "list(struct_pack({fields}) ORDER BY {order})")
SPARK = Dialect("`", "{column} AS {name}", "sort_array(collect_list(struct({fields})))")


def identifier(name: str, dialect: Dialect = DUCKDB) -> str:
    """Return a name as an SQL identifier.

    >>> print(identifier('a"b; drop table x'), identifier("a`b", SPARK))
    "a""b; drop table x" `a``b`
    """
    quote = dialect.quote
    return quote + name.replace(quote, quote * 2) + quote


def literal(value: str) -> str:
    """Return a text as an SQL literal.

    >>> literal("o'brien.csv")
    "'o''brien.csv'"
    """
    return "'" + value.replace("'", "''") + "'"


def count_rows(source: str, roles: Mapping[str, str], dialect: Dialect = DUCKDB) -> str:
    """Return the statement that counts equal rows; ``source`` is SQL already, ``roles`` maps names to columns.

    >>> count_rows("votes", {"winner": "w"})
    'SELECT log."w" AS "winner", count(*) AS "rows" FROM votes AS log GROUP BY log."w"'
    """

    def name(text: str) -> str:
        return identifier(text, dialect)

    chosen = ", ".join(f"log.{name(column)} AS {name(role)}" for role, column in roles.items())
    groups = ", ".join(dict.fromkeys(f"log.{name(column)}" for column in roles.values()))
    return f"SELECT {chosen}, count(*) AS {name('rows')} FROM {source} AS log GROUP BY {groups}"


def count_lists(
    source: str, keys: Mapping[str, str], entries: Mapping[str, str], owner: str | None, dialect: Dialect = DUCKDB
) -> str:
    """Return the statement that gathers the rows of each list, sorted, and counts equal lists.

    Lists are told apart by all ``keys``; of the key ``owner`` (session, judgment) only the least is kept, to show one,
    and whether it is there at all.

    >>> print(count_lists("clicks", {"session": "s"}, {"item": "i"}, "session"))
    SELECT lists."entries", count(*) AS "lists", min(lists."session") AS "session" FROM (SELECT log."s" AS "session", \
list(struct_pack("item" := log."i") ORDER BY log."i") AS "entries" FROM clicks AS log GROUP BY log."s") AS lists \
GROUP BY lists."entries", lists."session" IS NULL
    """

    def name(text: str) -> str:
        return identifier(text, dialect)

    inner = "".join(f"log.{name(column)} AS {name(role)}, " for role, column in keys.items())
    fields = ", ".join(
        dialect.field.format(column=f"log.{name(column)}", name=name(role)) for role, column in entries.items()
    )
    order = ", ".join(f"log.{name(column)}" for column in entries.values())
    groups = ", ".join(dict.fromkeys(f"log.{name(column)}" for column in keys.values()))
    gathered = (
        f"SELECT {inner}{dialect.gathered.format(fields=fields, order=order)} AS {name('entries')} "
        f"FROM {source} AS log GROUP BY {groups}"
    )
    kept: Sequence[str] = [*(f"lists.{name(role)}" for role in keys if role != owner), f"lists.{name('entries')}"]
    least = f", min(lists.{name(owner)}) AS {name(owner)}" if owner else ""
    same = ", ".join(kept)
    apart = f", lists.{name(owner)} IS NULL" if owner else ""
    return f"SELECT {same}, count(*) AS {name('lists')}{least} FROM ({gathered}) AS lists GROUP BY {same}{apart}"
