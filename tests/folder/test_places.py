"""Where statements were written: proofs, errors and explanations name the users' files, however often the data folder was opened since."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.test_cli import vigilog
from vigilog.core.errors import ProgramError
from vigilog.folder.backup import backup, restore
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.printer import show
from vigilog.store.file import FORMAT, seal

POLICY = """\
// Who may do what.
.type person <: symbol
.decl member(who: person, team: symbol)
.input member

/* Granted to teams. */
.decl grant(team: symbol, what: symbol)
.input grant

.decl may(who: person, what: symbol)
.output may

may(who, what) :-          // line 13
    member(who, team),
    grant(team, what).
"""
FACTS = {"member": [("ann", "ops")], "grant": [("ops", "deploy")]}
GOAL = 'may("ann", "deploy")'


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """The program's file, in a folder of its own, with a data folder `data` beside that."""
    file = tmp_path / "rules" / "policy.dl"
    file.parent.mkdir()
    file.write_text(POLICY)
    with open_program(file, FACTS, data=tmp_path / "data") as db:
        assert place(db) == "policy.dl:13:1", "without the path, from the first moment"
    return file


def place(db: Durable, goal: str = GOAL) -> str:
    proof = db.why(goal)
    assert proof is not None
    return proof.place


def places(db: Durable) -> list[str]:
    return [str(rule.span) for rule in db.whole_program().rules]


def opened(policy: Path) -> Durable:
    return open_program(data=policy.parents[1] / "data")


def test_a_proof_names_the_users_file(policy: Path) -> None:
    for _ in range(2):
        with opened(policy) as db:
            assert place(db) == "policy.dl:13:1"
            db.apply({"insert": {"grant": [("ops", f"more than {db.tx}")]}})
    folder = policy.parents[1]
    assert vigilog(folder, "why", "data", GOAL).out.splitlines()[0].endswith("(policy.dl:13:1)")
    assert "-- policy.dl:13:1: may(who, what) :- " in vigilog(folder, "explain", "data", "--show", "sql").out
    assert str(folder).encode() not in (folder / "data" / "vigilog.db").read_bytes(), "no path of the machine is kept"


def test_a_definition_has_its_own_file(policy: Path) -> None:
    more = policy.with_name("more.dl")
    more.write_text('\n.decl idle(who: symbol)\n.output idle\nidle(who) :- member(who, _), !may(who, _).\n\nmember("bob", "dev").\n')
    assert vigilog(policy.parent, "define", "../data", str(more)).status == 0
    with opened(policy) as db:
        assert (place(db), place(db, 'idle("bob")')) == ("policy.dl:13:1", "more.dl:4:1")
        db.define("\nidle(who) :- member(who, team), !grant(team, _).")
        assert place(db, 'idle("bob")') == "definition:2:1"
    with opened(policy) as db:
        assert (place(db), place(db, 'idle("bob")')) == ("policy.dl:13:1", "definition:2:1")
        db.drop("idle")
    with opened(policy) as db:
        assert places(db) == ["policy.dl:13:1", "more.dl:6:1"]


def test_an_earlier_text_of_the_same_name(policy: Path) -> None:
    """It still has statements in the program: its places must not be taken for those of the file of today."""
    with opened(policy) as db:
        db.define("// 1\n// 2\n.decl a(who: symbol)\n.output a\na(who) :- member(who, _).")
        db.define(".decl b(who: symbol)\n.output b\nb(who) :- a(who).")
        db.define("// this file has changed\n\nmay(who, what) :- member(who, _), grant(_, what).", str(policy))
        assert places(db) == ["definition#1:5:1", "definition:3:1", "policy.dl:3:1"]
        assert str(db.whole_program().declarations[0].span) == "policy.dl#1:3:7"
        with pytest.raises(ProgramError) as refused:
            db.define(".decl member(who: symbol)", "other.dl")
        assert refused.value.message.startswith("definition#1:5:11: error[arity]")
        assert "policy.dl:3:19: error[arity]" in refused.value.message and "may(who, what) :- member(who, _)" in refused.value.message
    with opened(policy) as db:
        assert places(db) == ["definition#1:5:1", "definition:3:1", "policy.dl:3:1"] and db.verify().fine


def test_errors_in_what_was_right_before(policy: Path) -> None:
    with opened(policy) as db, pytest.raises(ProgramError) as refused:
        db.define(".decl grant(team: symbol)", "other.dl")
    assert refused.value.message.startswith(
        "policy.dl:15:5: error[arity]: grant has 1 column, but 2 columns stand here\n      grant(team, what).\n      ^"
    )


def test_a_file_whose_lines_have_moved(policy: Path) -> None:
    policy.write_text(f"// A licence.\n\n{POLICY}")
    with open_program(policy, data=policy.parents[1] / "data") as db:
        assert (place(db), db.tx, db.redefined) == ("policy.dl:15:1", 0, ""), "no definition has changed"
    with opened(policy) as db:
        assert place(db) == "policy.dl:15:1" and db.status().program == 1
    made = check(parse(show(check(POLICY).program))).program
    bare = type(made)(made.types, made.declarations, made.directives, made.rules)
    with open_program(bare, data=policy.parents[1] / "data") as db:
        assert place(db) == "policy.dl:15:1", "a program that was made has no places to tell"


def test_another_version_of_the_whole_program(policy: Path) -> None:
    policy.write_text(POLICY.replace("// Who", "\n// Who").replace("grant(team, what).", 'grant(team, what), what != "all".'))
    with open_program(policy, data=policy.parents[1] / "data", define=True) as db:
        assert place(db) == "policy.dl:14:1" and db.redefined.count("\n") == 1
    with opened(policy) as db:
        assert place(db) == "policy.dl:14:1"


def test_queries_that_are_followed_leave_places_alone(policy: Path) -> None:
    with opened(policy) as db:
        db.follow('may(who, what), what != "nothing"')
        assert place(db) == "policy.dl:13:1"
    with opened(policy) as db:
        assert place(db) == "policy.dl:13:1" and len(db.queries.names) == 1
        db.define(".decl b(who: symbol)\n.output b\nb(who) :- may(who, _).", "b.dl")
        assert (place(db), place(db, 'b("ann")')) == ("policy.dl:13:1", "b.dl:3:1")


def test_backup_and_restore(policy: Path) -> None:
    folder = policy.parents[1]
    backup(folder / "data", folder / "copy")
    restore(folder / "copy", folder / "again")
    with open_program(data=folder / "again") as db:
        assert place(db) == "policy.dl:13:1"


def test_a_folder_of_format_3(policy: Path) -> None:
    """It goes on with what it has, the places in what is printed, until it is opened with its file."""
    folder = policy.parents[1] / "data"
    as_format_3(folder)
    with opened(policy) as db:
        assert db.file.get("format") == FORMAT and place(db) == "program:8:1" and db.verify().fine
        db.define(".decl b(who: symbol)\n.output b\nb(who) :- may(who, _).", "b.dl")
        assert places(db) == ["program:8:1", "b.dl:3:1"]
    assert (folder / "vigilog.db.format3").is_file()


def test_a_folder_of_format_3_with_its_file(policy: Path) -> None:
    folder = policy.parents[1] / "data"
    as_format_3(folder)
    with open_program(policy, data=folder) as db:
        assert place(db) == "policy.dl:13:1" and db.tx == 0


def test_damage_of_the_places_is_found(policy: Path) -> None:
    folder = policy.parents[1] / "data"
    with closing(sqlite3.connect(folder / "vigilog.db", isolation_level=None)) as file:
        file.execute("UPDATE vigilog_programs SET written = replace(written, '13', '14')")
    done = vigilog(policy.parent, "why", "../data", GOAL)
    assert done.status == 1 and done.err.startswith("error[damaged]: the program in ")


def as_format_3(folder: Path) -> None:
    """Takes away what formats 4 to 6 have more, and seals what is left as that version did."""
    with closing(sqlite3.connect(folder / "vigilog.db", isolation_level=None)) as file:
        ((text,),) = file.execute("SELECT text FROM vigilog_programs").fetchall()
        file.execute("ALTER TABLE vigilog_programs DROP COLUMN written")
        file.execute("ALTER TABLE vigilog_log DROP COLUMN digest")
        file.execute("DELETE FROM vigilog_about WHERE name = 'digest'")
        file.execute("UPDATE vigilog_programs SET sum = ?", (zlib.crc32(text.encode()),))
        file.execute("UPDATE vigilog_about SET value = 3 WHERE name = 'format'")
        seal(file)
