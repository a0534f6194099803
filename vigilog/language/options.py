"""The options of directives: which there are, and what they may say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from vigilog.core.errors import Findings, did_you_mean
from vigilog.core.secrets import SECRET_OPTIONS, without_secrets
from vigilog.language.syntax import Directive

FILES = ("file", "csv", "json", "parquet", "orc", "table")
SOURCES = ("jdbc", "delta", "iceberg", "stream")
FORMATS = (*FILES, *SOURCES)
STREAMED = ("json", "csv", "parquet", "debezium", "delta", "iceberg")

Rule = tuple[Callable[[str], bool], str]


def _one_of(*values: str) -> Callable[[str], bool]:
    return lambda value: value in values


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WHOLE: Rule = (lambda value: value.isascii() and value.isdigit(), "a whole number")
_TEXT: Rule = (bool, "a text")
_COLUMN = re.compile(r"\s*[A-Za-z_]\w*\s*(:\s*\w+\s*(\([\d\s,]*\))?)?\s*")
NULLS = ("nulls", "optional", "of")  # options of sources alone

_CATALOG: dict[str, Rule] = {
    "catalog": (bool, "the name of a catalog"),
    "uri": (bool, "where a catalog is"),
    "type": (bool, "what a catalog is, like rest or sql"),
    "warehouse": (bool, "where a catalog keeps its tables"),
}

ANY: dict[str, Rule] = {
    "IO": (_one_of(*FORMATS, "stdout"), f"one of {', '.join(FILES)}; for .input also {', '.join(SOURCES)}; for .output also stdout"),
    "filename": (bool, "a path"),
    "name": (bool, "the name of a table"),
    "delimiter": (bool, "one character or more"),
    "headers": (_one_of("true", "false"), "true or false"),
    "rfc4180": (_one_of("true", "false"), "true or false"),
    "nulls": (
        lambda value: value in ("refuse", "skip") or all("=" in part for part in value.split(",")),
        'refuse, skip, or values for columns, like "manager=0, phone=none"',
    ),
    "optional": (
        lambda value: all(_COLUMN.fullmatch(part) for part in re.split(r",(?![^()]*\))", value)),
        'columns of the source that may be null, with their types, like "manager: number"',
    ),
    "of": (bool, "the relation whose source it is a column of"),
    "missing": (_one_of("refuse", "empty"), "refuse or empty"),
}
OF_SOURCE: dict[str, dict[str, Rule]] = {
    "jdbc": {
        "url": (lambda value: value.startswith(("jdbc:", "${")), 'an address like "jdbc:postgresql://host/database"'),
        "dbtable": (bool, "the name of a table"),
        "query": (bool, "a SELECT"),
        "driver": (bool, "the name of a Java class"),
        "user": _TEXT,
        "password": _TEXT,
        "sessionInitStatement": _TEXT,
        "partitionColumn": (bool, "a column"),
        "lowerBound": _TEXT,
        "upperBound": _TEXT,
        "numPartitions": _WHOLE,
        "fetchsize": _WHOLE,
        "queryTimeout": _WHOLE,
    },
    "delta": {"version": _WHOLE},
    "iceberg": {
        "name": (bool, 'the name of a table, like "shop.orders"'),
        **_CATALOG,
        "snapshot": (bool, "the number of a snapshot, or the name of a branch or a tag"),
    },
    "stream": {
        "format": (_one_of(*STREAMED), f"one of {', '.join(STREAMED)}"),
        "path": (bool, "a folder or a table"),
        **_CATALOG,
        "op": (bool, "the column with the operation"),
        "timestamps": (_one_of("ms", "us", "ns"), "ms, us or ns: what a timestamp counts that is a number (format=debezium)"),
        "max_files": _WHOLE,
        "every": (lambda value: value.isascii() and value.isdigit() and int(value) > 0, "a number of seconds"),
    },
}
_SECONDS: Rule = (lambda value: _WHOLE[0](value) and len(value) < 10, "a number of seconds, below a billion")
_COLUMNS: Rule = (bool, 'a column, or several: key="city, item"')
_RELATION: Rule = (bool, "a base relation")
_PRIORITY: Rule = (_SECONDS[0], "a whole number below a billion; what has the smallest comes first")
OF_CONDITION: dict[str, dict[str, Rule]] = {
    "alert": {
        "name": (lambda value: bool(_NAME.fullmatch(value)), "a name: letters, digits, _ and -"),
        "key": _COLUMNS,
        "mode": (_one_of("nonresatisfiable", "resatisfiable"), "nonresatisfiable or resatisfiable"),
        "unfold": (_one_of("true", "false"), "true or false"),
        "message": (bool, 'a text, like "{item} is down to {level}"'),
        "severity": (bool, "a word, like warning"),
        "every": _SECONDS,
        "for": _SECONDS,
        "keep": _SECONDS,
    },
    "constraint": {
        "mode": (_one_of("enforced", "report", "deferred"), "enforced, report or deferred"),
        "key": _COLUMNS,
        "priority": _PRIORITY,
        "message": (bool, 'a text, like "{item} is paid twice"'),
    },
    "trigger": {"insert": _RELATION, "delete": _RELATION, "upsert": _RELATION, "delete_key": _RELATION, "priority": _PRIORITY},
}
NEEDED = {"jdbc": ("url",), "delta": ("filename",), "iceberg": (), "stream": ("format", "path")}
_OF_FILES = ("json", "csv", "parquet", "debezium")
OF_FORMAT: dict[str, tuple[str, ...]] = {  # options of streams that only some formats have
    "op": ("json", "csv", "parquet"),
    "timestamps": ("debezium",),
    "max_files": _OF_FILES,
    **dict.fromkeys(_CATALOG, ("iceberg",)),
}
_DATABASE = {
    "input": 'a database is read by IO=jdbc: .input r(IO=jdbc, url="jdbc:sqlite:rows.db", dbtable="r")',
    "output": 'a table of a database is kept equal to a view by db.sink("r", "jdbc", …): docs/sources.md',
}
_OF_INPUT = frozenset({*NULLS, "missing"})
_PLACED = frozenset({"filename", "name"})  # options that say where, which sources say in their own way
_WITHOUT = {
    "jdbc": ANY.keys() - {"IO", *NULLS},
    "delta": ANY.keys() - {"IO", *NULLS, "filename"},
    "iceberg": ANY.keys() - {"IO", *NULLS, "name"},
    "stream": _PLACED | {"missing"},
}


def known_options(kind: str, format_: str, streamed: str = "") -> Mapping[str, Rule]:
    """The options that a directive may have; of a stream, those that go with the format in which it is `streamed`."""
    if kind == "printsize":
        return {}
    if kind in OF_CONDITION:
        return OF_CONDITION[kind]
    if kind == "limitsize":
        return {"n": _WHOLE}
    if kind == "output":
        return {key: rule for key, rule in ANY.items() if key not in _OF_INPUT}
    without = _WITHOUT.get(format_, ())
    own = {key: rule for key, rule in OF_SOURCE.get(format_, {}).items() if streamed in OF_FORMAT.get(key, (streamed,)) or not streamed}
    return {key: rule for key, rule in ANY.items() if key not in without} | own


def check_options(directive: Directive, findings: Findings) -> None:
    word, option = f".{directive.kind}", directive.option
    format_ = option.get("IO", "file")
    if format_ == "sqlite" and directive.kind in _DATABASE:
        findings.error(
            "unknown-option", f"{word} does not know IO=sqlite", directive.span, rule=_rule("IO"), hint=_DATABASE[directive.kind]
        )
        return
    streamed = option.get("format", "") if format_ == "stream" else ""
    allowed = known_options(directive.kind, format_, streamed if streamed in STREAMED else "")
    for key, value in directive.options:
        if key not in allowed:
            hint = (
                _elsewhere(key, directive.kind)
                or did_you_mean(key, allowed)
                or ("options are " + ", ".join(sorted(allowed)) if allowed else "")
            )
            of = f" for IO={format_}" if directive.kind == "input" and format_ in SOURCES else ""
            of += f" with format={streamed}" if key in OF_FORMAT and of and streamed else ""
            findings.error("unknown-option", f"{word} has no option {key}{of}", directive.span, hint=hint)
        elif not allowed[key][0](value) or (key == "IO" and value in _refused_formats(directive.kind)):
            shown = "…" if key in SECRET_OPTIONS else without_secrets(value)
            findings.error("unknown-option", f"{word} does not know {key}={shown}", directive.span, rule=_rule(key, allowed))
    if directive.kind == "input":
        for key in NEEDED.get(format_, ()):
            if key not in option:
                findings.error("input", f"IO={format_} needs the option {key}", directive.span, rule=_rule(key, allowed))
    if directive.kind == "limitsize" and "n" not in option:
        hint = f"write .limitsize {directive.relation}(n=1000)"
        findings.error("unknown-option", ".limitsize needs the option n", directive.span, rule=_rule("n", allowed), hint=hint)
    _check_delimiter(directive, findings)
    if any("\x00" in value for _, value in directive.options):
        findings.error("unknown-option", f"{word} has an option with the character U+0000", directive.span)
    keys = [key for key, _ in directive.options]
    for key in sorted({key for key in keys if keys.count(key) > 1}):
        findings.error("duplicate", f"the option {key} is given twice", directive.span)


def _rule(key: str, allowed: Mapping[str, Rule] = ANY) -> str:
    return f"{key} is {allowed[key][1]}"


def _elsewhere(key: str, kind: str) -> str:
    """What to write instead of an option that Soufflé has."""
    match key:
        case "dbname":
            return _DATABASE.get(kind, "")
        case "columns":
            return "the columns are those of the .decl, in that order or in the order of a header (headers=true)"
        case _:
            return ""


def _refused_formats(kind: str) -> tuple[str, ...]:
    return SOURCES if kind == "output" else ("stdout",)


def _check_delimiter(directive: Directive, findings: Findings) -> None:
    option = directive.option
    delimiter = option.get("delimiter", ",")
    quoted = option.get("rfc4180", "true" if "csv" in (option.get("IO"), option.get("format")) else "false") == "true"
    if set(delimiter) & {"\n", "\r", '"'} or (quoted and len(delimiter) > 1):
        rule = "a delimiter holds no line break and no quote, and is one character if fields may be quoted"
        findings.error("unknown-option", f".{directive.kind} does not know delimiter={delimiter!r}", directive.span, rule=rule)
