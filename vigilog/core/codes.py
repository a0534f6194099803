"""Every error and warning code, with what it means: the source of docs/errors.md."""

from __future__ import annotations

PROGRAM = {
    "syntax": "The text does not follow the grammar. All such errors of a file come together.",
    "unsupported": "A part of Soufflé that Vigilog does not have, named.",
    "reserved": "A relation is called like a word of the language.",
    "unknown-relation": "A relation is used that no `.decl` declares.",
    "unknown-functor": "A functor is used that the language does not have.",
    "unknown-type": "A column or a `.type` names a type that there is not.",
    "unknown-option": "A directive has an option, or a value of one, that there is not.",
    "arity": "A relation or functor has another number of arguments than it is declared with.",
    "duplicate": "A relation, column, type or option is given twice.",
    "input": "A relation has two `.input` directives, or a source lacks an option that it needs.",
    "key": "A `.key` names a column that its relation does not have, or a relation has two.",
    "type": "Two places that must have one type have different ones.",
    "range": "A constant does not fit its type, or something is larger than its limit.",
    "pattern": "The constant pattern of `match` is no regular expression, or has a part that RE2 does not have.",
    "division-by-zero": "A division or modulo by the constant 0.",
    "wildcard": "A `_` stands where a value is needed.",
    "ungrounded": "A variable has no values to take.",
    "stratification": "A relation depends on itself through negation or an aggregate; the cycle is shown.",
    "nesting": "A term or parenthesis nests more than 100 levels deep.",
    "expansion": "A rule expands to more than 1,000 alternatives.",
}

WARNINGS = {
    "no-effect": "A statement is accepted, because Soufflé has it, and changes nothing.",
    "unused-relation": "A relation is declared and nothing uses it.",
    "single-variable": "A variable occurs only once in its rule, which often is a slip of the pen.",
}

DATA = {
    "unreadable": "A file cannot be opened.",
    "unwritable": "A result cannot be written to its place.",
    "encoding": "A text is not UTF-8, or its lines end in CR alone; the line is named.",
    "columns": "A row has another number of columns than its relation, or a source has other columns.",
    "value": "A cell is no value of its column's type; file, line and column are named.",
    "null": "A source has a null, or an object lacks a key; `.input r(nulls=skip)` leaves such rows out.",
    "type": "A source's column has a type that the relation's column cannot take.",
    "spark": "Spark cannot start, or failed; the first line of its reason is given.",
    "disk": "The disk is full.",
}

RUNNING = {
    "rounds": "A recursion took more rounds than `--max-rounds` allows; the relation is named.",
    "timeout": "An evaluation took longer than `--timeout` allows; what it was doing is named.",
    "interrupted": "Ctrl-C stopped the evaluation; nothing was written. The exit status is 130.",
    "limit": "A rule is larger than the executor can take: too many atoms, arguments, levels or steps.",
    "budget": "A transaction would derive more rows on demand than allowed, and `--strict` refuses to recompute.",
    "goal": "A goal is not of the shape that a command takes.",
    "why": "A proof may rest on more rows than can be brought to one place. Ask why a row holds that it is derived from: nearer to the facts there is less to look at.",
    "usage": "What was asked for makes no sense together. The exit status is 2.",
    "not-installed": "Packages are needed that this installation does not have; the command that installs them is told.",
}

TRANSACTIONS = {
    "json": "A line is not JSON, or not of a transaction's shape.",
    "operation": "A transaction has an operation that there is not.",
    "unknown-relation": "A transaction names a relation that there is not.",
    "derived": "A transaction changes a relation that is derived by rules.",
    "absent": "An update's old row is not there.",
    "columns": "A row has another number of columns than its relation.",
    "value": "A cell is no value of its column's type.",
    "type": "A value of a key is none of its column's type.",
    "key": "Two rows would have the same key, or a relation has none where one is needed.",
}

STORE = {
    "no-data": "A folder is not a data folder, or not there.",
    "folder": "A folder cannot be made or read, or is not empty where a new one is needed.",
    "in-use": "Another process has the data folder open.",
    "closed": "A database was used after it was closed.",
    "warehouse": "A data folder that has snapshots was given another warehouse.",
    "format": "A data folder was made by a later Vigilog.",
    "program-changed": "A data folder was made with another program; `--define` changes its definitions.",
    "facts": "A data folder that has data already was given facts to begin with.",
    "has-rows": "A base relation that has rows would get other columns.",
    "needed": "A relation cannot be dropped, because others are derived from it.",
    "gap": "A state or a change that was asked for is no longer retained; or a state lies before a change of the program, or before one of too many rows.",
    "future": "A transaction was asked for that there is not yet.",
    "cascade": "Changes follow from each other without end; the chain of them is cut off after some rounds.",
    "large": "Rows were asked for that are too many to come to one process.",
    "damaged": "Something stored is not as it was written. It is never taken for the truth; restore a backup.",
    "stream": "A relation that is no stream was to be followed, or a stream was to be read without a data folder.",
    "source": "A source cannot be followed from where it was left: it is another one, or what it had is gone.",
    "history": "A sink has changes of another history of the database: a backup was restored in between.",
    "unwritable": "A sink does not take a change. It is tried again until it does.",
    "unknown-option": "A source was named with an option, or a value of one, that there is not.",
    "read-only": "The data folder cannot be written.",
    "disk": "The disk is full. Nothing was changed.",
}

SERVICE = {
    "connection": "A server cannot be reached, or was lost before it answered.",
    "message": "What a client or a server has sent is none of its messages, or does not fit what was sent before.",
    "token": "No token was said, or one that the server does not know, or not any more.",
    "forbidden": "The token may not do this, or the page that asks may not.",
    "tokens": "A file of tokens is none.",
    "size": "A body, a message or a transaction is larger than a limit of the server.",
    "rate": "The token has made more requests than it may; `Retry-After` says how long to wait.",
    "limit": "There are as many subscriptions or queries as a limit of the server allows.",
    "unknown-path": "There is nothing at this path; `GET /` says what there is.",
    "method": "There is no such call for this path.",
    "column": "A column is bound that the view does not have.",
    "bind": "A query cannot be bound; it says its values itself.",
    "id": "A message is about a subscription that this connection does not have, or has already.",
    "ack": "A transaction was acknowledged that was not sent yet.",
    "history": "A position belongs to another history of the database: a backup was restored in between.",
    "gap": "A change that is needed is no longer retained, or was of other columns; a first answer follows.",
    "definition": "A view was dropped or declared anew. The subscription has ended.",
    "taken-over": "Another connection goes on with this name.",
    "cancelled": "The subscription was cancelled by another connection.",
    "unknown-subscription": "There is no subscription of this name.",
    "stopping": "The server is stopping; try again when it is back.",
    "closed": "The database was closed while it was read.",
    "internal": "A mistake of the server, which is in its log.",
}

SECTIONS = {
    "Errors in a program": PROGRAM,
    "Warnings": WARNINGS,
    "Errors in data": DATA,
    "Errors while running": RUNNING,
    "Errors in a transaction": TRANSACTIONS,
    "Errors of a data folder": STORE,
    "Errors between client and server": SERVICE,
}
