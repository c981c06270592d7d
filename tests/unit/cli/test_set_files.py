"""Files that declare jobs: what is read of them, and how everything that is wrong is told at once."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cronring.cli.commands.job_writes import create_job
from cronring.cli.failures import Failure
from cronring.cli.files import toml_form, yaml_form
from cronring.cli.files.parsed import UnreadableFile
from cronring.cli.files.reading import FORMS, Files, found_in
from cronring.cli.job_lines import JobLines

CLOSE = "set: prod\njobs:\n- {verb: billing.close, name: a, cron: 0 6 * * *}\n"


def read(tmp_path: Path, **files: str) -> Files:
    """`a_yaml` is a file a.yaml."""
    found = Files(JobLines(create_job))
    for name, text in files.items():
        path = tmp_path / name.replace("_", ".")
        path.write_text(text, "utf-8")
        found.read(path)
    return found


def told(tmp_path: Path, files: Files) -> list[str]:
    return [str(fault).removeprefix(f"{tmp_path}/") for fault in files.faults]


@pytest.mark.parametrize(
    "word", ["on", "yes", "No", "12:30", "2027-03-29", "007", "0o7", "0x1F", "1_000", ".nan", "=", "+5"]
)
def test_words_are_texts(word: str) -> None:
    assert yaml_form.parse(f"a: {word}").values == {"a": word}


@pytest.mark.parametrize(
    ("word", "value"), [("true", True), ("null", None), ("~", None), ("", None), ("-5", -5), ("1.5", 1.5), ("1e3", 1e3)]
)
def test_what_json_has_is_what_it_is_there(word: str, value: Any) -> None:
    assert yaml_form.parse(f"a: {word}").values == {"a": value}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "stands twice: also in line 1"),
        ("a:\n  b: &x [*x]\n", 2, "names what it stands in"),
        ("a: !!python/object/apply:os.system [x]\n", 1, "none of JSON's types"),
        ("a: !!timestamp 2027-01-01\n", 1, "none of JSON's types"),
        ("1: 2\n", 1, "is no text"),
        ("? [a]\n: b\n", 1, "is no text"),
        ("- a\n", 1, "no mapping"),
        ("a: b\n---\nc: d\n", 2, "another document"),
        ("a: [\n", 2, "no YAML"),
        ("a: *x\n", 1, "undefined alias"),
        ('a: "\\ud800"\n', 1, "no YAML"),
        ("a: " + "[" * 5_000, 1, "nesting"),
        ("a: " + "1" * 5_000, 0, "can't be read"),
        ("a: !!bool maybe\n", 0, "can't be read"),
        ("\x00", 0, "no YAML"),
    ],
)
def test_what_is_no_yaml_of_ours_is_told_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(UnreadableFile) as error:
        yaml_form.parse(text)
    assert error.value.faults[0][0] == line
    assert words in error.value.faults[0][1]


def test_aliases_that_repeat_themselves_are_bounded_before_they_are_made() -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    with pytest.raises(UnreadableFile, match="repeat themselves"):
        yaml_form.parse("\n".join(["a0: &a0 [x]", *levels]))


def test_anchors_and_merges_save_writing() -> None:
    text = "set: prod\nbase: &base {verb: a.b, retries: 3}\njobs:\n- {<<: *base, name: x}\n"
    assert yaml_form.parse(text).values["jobs"] == [{"verb": "a.b", "retries": 3, "name": "x"}]


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(VALUES)
def test_what_is_written_is_read_again_by_us_and_by_others(value: Any) -> None:
    text = yaml_form.dump({"v": value})
    assert yaml_form.parse(text).values == {"v": value}
    assert repr(yaml_form.parse(text).values) == repr({"v": value})
    assert yaml.safe_load(text) == {"v": value}


def test_toml_has_instants_as_texts_and_names_its_lines() -> None:
    parsed = toml_form.parse("at = 2027-03-29T09:00:00Z\n[[jobs]]\nday = 2027-03-29\n")
    assert parsed.values == {"at": "2027-03-29T09:00:00+00:00", "jobs": [{"day": "2027-03-29"}]}
    with pytest.raises(UnreadableFile, match="line 2"):
        toml_form.parse("a = 1\nb = \n")


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        a_yaml="set: prod\nnamespce: x\njobs:\n- {verb: a.b, name: c, retrys: 3, evry: 5m, timeout: x}\n- 5\n"
        "- {name: d, every: 5m}\n- {verb: a.b, name: e, at: now}\n- {verb: a.b, name: f, start_at: +2h, every: 5m}\n",
        b_toml='[[jobs]]\nverb = "a.b"\nname = "g"\nlabels = {a = 1.1}\n',
        c_yaml="set: x\njobs: 5\n",
        d_yaml="a: [\n",
    )
    keys = "Keys are the options of `cronring jobs create`, and verb"
    assert told(tmp_path, found) == [
        "a.yaml: there is no key 'namespce' at the top of a file. Did you mean 'namespace'? "
        "There are set, namespace, jobs",
        f"a.yaml:4: a.b:c: there is no key 'retrys'. Did you mean 'retries'? {keys}",
        f"a.yaml:4: a.b:c: there is no key 'evry'. Did you mean 'every'? {keys}",
        "a.yaml:4: a.b:c: timeout: 'x': a number is missing; units are d, h, m, s and ms, as in `1h30m`. "
        'Leave it out for the default; "" unsets it.',
        "a.yaml:5: job 2: it is no mapping of keys and values, like verb: billing.close",
        'a.yaml:6: job 3: it needs a "verb", like "billing.close", and a "name", both texts; or a "queue"',
        "a.yaml:7: a.b:e: at: 'now' is another instant each time; write a date, like 2027-03-29T09:00",
        "a.yaml:8: a.b:f: start_at: '+2h' is another instant each time; write a date, like 2027-03-29T09:00",
        "b.toml: it names no set: give it one at the top, like `set: billing-prod`",
        "b.toml: a.b:g: labels.a: 1.1 must be a text",
        "c.yaml: jobs must be a list, an item for each job",
        "d.yaml:2: it is no YAML: did not find expected node content",
    ]


def test_files_of_one_set_are_one_and_a_key_stands_in_one_of_them(tmp_path: Path) -> None:
    found = read(tmp_path, a_yaml=CLOSE, b_yaml=CLOSE.replace("name: a", "name: b"), c_yaml=CLOSE)
    assert list(found.sets["default", "prod"].jobs) == ["billing.close:a", "billing.close:b"]
    assert told(tmp_path, found) == [
        f"c.yaml:3: billing.close:a: it stands in {tmp_path}/a.yaml:3 already; give it another name"
    ]


def test_a_set_has_a_namespace_of_its_own(tmp_path: Path) -> None:
    found = read(tmp_path, a_yaml=f"namespace: ops\n{CLOSE}", b_yaml=CLOSE)
    assert {of: list(each.jobs) for of, each in found.sets.items()} == {
        ("ops", "prod"): ["ops/billing.close:a"], ("default", "prod"): ["billing.close:a"],
    }  # fmt: skip


def test_a_folder_counts_with_all_below_and_without_what_is_hidden(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.toml", "in/c.yml", ".hidden.yaml", ".git/d.yaml", "README.md", "in/e.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    assert [str(each.relative_to(tmp_path)) for each in found_in((str(tmp_path),))] == ["a.toml", "b.yaml", "in/c.yml"]
    with pytest.raises(Failure, match="it must end in"):
        found_in((str(tmp_path / "README.md"),))
    (tmp_path / "empty").mkdir()
    with pytest.raises(Failure, match="there is no file in it"):
        found_in((str(tmp_path / "empty"),))


def test_a_file_that_is_no_text_or_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"set: prod\n# \xff\n")
    found = Files(JobLines(create_job))
    found.read(path)
    assert told(tmp_path, found) == ["a.yaml:2: it is no UTF-8 text"]
    monkeypatch.setattr("cronring.cli.files.reading.FILE_MAX", 5)
    found.read(path)
    assert told(tmp_path, found)[1] == "a.yaml: it has more than 5 bytes; divide it"
    with pytest.raises(Failure, match="No such file"):
        found.read(tmp_path / "none.yaml")


def test_there_are_these_forms() -> None:
    assert sorted(FORMS) == [".toml", ".yaml", ".yml"]
