"""The golden cases say what brute force finds. VIGILOG_ACCEPT=1 writes what it finds."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conditions.model import Model, Refusal
from tests.engine.test_changes import CASES, WISHES, accept, applied, opened, told_lines
from tests.golden import Case
from tests.treatments import SIZE, treated
from vigilog.core.errors import VigilogError
from vigilog.engine.places import inputs
from vigilog.engine.transaction import parse_transaction
from vigilog.files import reader
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program
from vigilog.language.check import check

DIRECTIVES = ("\n.alert ", "\n.constraint ", "\n.trigger ")
WITH_CONDITIONS = [case for case in CASES if str(case).startswith("conditions-") or any(word in case.program for word in DIRECTIVES)]

ON_A_FOLDER = treated(WITH_CONDITIONS, WISHES, size="quick" if SIZE == "quick" else "long")  # the inner loop tries each under one strategy


@pytest.mark.parametrize("case", WITH_CONDITIONS, ids=str)
def test_the_model_says_the_same(case: Case, tmp_path: Path) -> None:
    case.write_facts(tmp_path)
    program = check(case.program).program
    model = Model(program, {name: set(reader.rows(place)) for name, place in inputs(program, tmp_path).items()})
    for step in case.steps:
        try:
            told = model.take(parse_transaction(step.transaction))
            found = told_lines(program, told.views, told.alerts, told.triggered)
        except Refusal as refused:
            found = told_lines(program, {}, [], {}, refused.said)
        except VigilogError as error:
            found = [f"error {error.code}"]
        if os.environ.get("VIGILOG_ACCEPT"):
            step.expect = found
        assert found == step.expect, step.transaction
    if os.environ.get("VIGILOG_ACCEPT"):
        accept(case)


@pytest.mark.parametrize(("case", "strategy"), ON_A_FOLDER, ids=str)
def test_on_a_data_folder(case: Case, strategy: str, tmp_path: Path) -> None:
    """Opened anew after every transaction; what is refused leaves every table as it was."""
    folder = tmp_path / "data"
    opened(case, tmp_path, strategy, data=folder).close()
    told = []
    for step in case.steps:
        with open_program(data=folder) as database:
            before = dump(database)
            assert applied(database, step.transaction) == step.expect, step.transaction
            assert not step.refused or dump(database) == before, "a refused transaction leaves no trace"
            told += [line for line in step.expect if line.startswith("alert ")]
    with open_program(data=folder) as database:
        assert database.verify().problems == []
        kept = [{name: value for name, value in said.items() if name != "at"} for _, said in database.reports(0)]
        assert sorted(f"alert {json.dumps(said, ensure_ascii=False)}" for said in kept) == sorted(told)


def dump(database: Durable) -> list[str]:
    return list(database.file.connection.iterdump())
