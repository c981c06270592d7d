"""What an author's file says of itself, through a real child."""

import os
import signal
import sys
import textwrap
from pathlib import Path

import pytest

from cronring.child.load import compile_file, load_file
from cronring.runner.describe import DescribedFiles, DescribeFailed, Describing, read_program
from cronring.runner.modules import InvalidFile, load_module
from cronring.runner.spawn import Program
from tests.support.faked_clocks import unless_waits_of_threads_never_run_out


def program(tmp_path: Path, source: str, name: str = "mod.py") -> Program:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(source))
    return read_program(file, sys.executable, "default")


def test_annotations_are_told_in_one_spelling(tmp_path: Path) -> None:
    dump = (
        Describing(
            program(
                tmp_path,
                '''
            """About the module."""
            from __future__ import annotations
            import cronring as c
            from cronring import Context as Ctx, cron, every, verb
            print("noise at import")

            @cron("0 6 1 * *", timeout="5m", on_disconnect="finish")
            async def one(ctx: Ctx) -> None:
                """About one."""

            @every("30m")
            def two(ctx: c.Context): ...

            @verb
            def three(items: list[int], *, flag: bool = True) -> dict[str, int]: ...
            ''',
            )
        )
        .described()
        .dump
    )
    assert (dump["version"], dump["module"], dump["doc"], dump["problems"]) == (1, "mod", "About the module.", [])
    one, two, three = dump["verbs"]
    assert one == {
        "name": "one",
        "line": 8,
        "is_async": True,
        "doc": "About one.",
        "params": [{"name": "ctx", "annotation": "Context", "has_default": False, "kind": "positional"}],
        "returns": "None",
        "cron": "0 6 1 * *",
        "every": None,
        "once": None,
        "manual": False,
        "timeout": "5m",
        "on_disconnect": "finish",
        "policy": {},
    }
    assert (two["params"][0]["annotation"], two["returns"], two["is_async"]) == ("Context", None, False)
    assert [(p["annotation"], p["kind"], p["has_default"]) for p in three["params"]] == [
        ("list[int]", "positional", False),
        ("bool", "keyword", True),
    ]
    assert three["returns"] == "dict[str, int]"


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("import os\nimport no_such_package\n", 2, "ModuleNotFoundError: No module named 'no_such_package'"),
        ("def f(:\n", 1, "SyntaxError: invalid syntax"),
        ("def f():\n    1 / 0\n\nf()\n", 2, "ZeroDivisionError: division by zero"),
        ("raise SystemExit('no')\n", 1, "SystemExit: no"),
        ("from cronring import cron\n@cron\ndef f(): ...\n", 2, "TypeError: @cron takes its pattern as text"),
        ("from cronring import cron\n@cron('* * * * *')\nasync def f():\n    yield\n", 2, "it is a generator"),
        ("from cronring import verb\n@verb\ndef f(): ...\n@verb\ndef f(): ...\n", 4, "a verb of this name is declared"),
        ("from cronring import verb\n@verb()\ndef f(): ...\n", 2, "TypeError: @verb takes no arguments"),
        ("from cronring import verb\n@verb\nclass F: ...\n", 2, "it is a class"),
        (
            "from cronring import every\nclass F:\n    @every('1s')\n    @classmethod\n    def f(cls): ...\n",
            3,
            "TypeError: <classmethod",
        ),
        ("import bare\nfrom cronring import verb\n@verb\n@bare.deco\ndef f(): ...\n", 3, "the decorator below"),
        ("class E(Exception):\n    def __str__(self): 1 / 0\nraise E\n", 3, "E: <unprintable: ZeroDivisionError>"),
    ],
)
def test_what_is_wrong_is_told_at_the_authors_own_line(tmp_path: Path, source: str, line: int, message: str) -> None:
    (tmp_path / "bare.py").write_text("def deco(f):\n    def wrapper(): f()\n    return wrapper\n")
    with pytest.raises(InvalidFile) as raised:
        load_module(program(tmp_path, source))
    [problem] = raised.value.problems
    assert (problem.line, problem.file) == (line, str(tmp_path / "mod.py"))
    assert problem.message.startswith(message)
    assert problem.remedy


def test_a_function_from_elsewhere_and_a_decorator_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("def imported(): ...\n")
    (tmp_path / "often.py").write_text("from cronring import every\ndef often(f): return every('1s')(f)\n")
    source = """
from __future__ import annotations
import often, work
from cronring import Context as Ctx, every
every("30m")(work.imported)
@often.often
def helped(ctx: 'Ctx') -> 'None': 'doc'
helped.__doc__ = 5
"""
    loaded = load_module(program(tmp_path, source))
    assert [verb.name for verb in loaded.module.verbs] == ["imported", "helped"]


def test_a_file_in_a_package_imports_its_siblings(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "prices.py").write_text("VALUE = 1\n")
    source = "from .prices import VALUE\nfrom cronring import every\n@every('30m')\ndef tick(): ...\n"
    loaded = load_module(program(tmp_path, source, "shop/jobs.py"))
    assert [verb.name for verb in loaded.module.verbs] == ["tick"]
    assert loaded.module.name == "jobs"


def test_a_file_that_ends_its_interpreter_shows_what_it_printed(tmp_path: Path) -> None:
    with pytest.raises(DescribeFailed, match=r"(?s)exit code 4.*goodbye"):
        Describing(program(tmp_path, "import os\nprint('goodbye', flush=True)\nos._exit(4)\n")).described()


@unless_waits_of_threads_never_run_out
def test_an_import_that_never_ends_is_killed(tmp_path: Path) -> None:
    with pytest.raises(DescribeFailed, match=r"took longer than 500ms"):
        Describing(program(tmp_path, "while True: pass\n"), timeout_s=0.5).described()


def test_no_file_and_no_interpreter(tmp_path: Path) -> None:
    with pytest.raises(DescribeFailed, match="No such file"):
        read_program(tmp_path / "none.py", sys.executable, "default")
    (tmp_path / "mod.py").write_text("")
    with pytest.raises(DescribeFailed, match="--python /no/python"):
        Describing(read_program(tmp_path / "mod.py", "/no/python", "default")).described()


@pytest.fixture
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def described(*files: Path) -> DescribedFiles:
    return DescribedFiles(files, sys.executable, "default")


MEETS = """
import os, time
from cronring import verb
open(__file__ + ".here", "w").close()
folder, name = os.path.split(__file__)
other = os.path.join(folder, {"a.py": "b.py", "b.py": "a.py"}[name])
deadline = time.monotonic() + 25
while not os.path.exists(other + ".here"):
    assert time.monotonic() < deadline, "nobody else is at work"
    time.sleep(0.01)
@verb
def work(): ...
"""


def test_two_files_are_described_at_a_time_and_told_in_their_order(two_cpus: None, tmp_path: Path) -> None:
    a, b = (program(tmp_path, MEETS, f"{name}.py").file for name in "ab")
    assert [(each.file, told.dump["problems"]) for each, told in described(b, a)] == [(b, []), (a, [])]


def test_who_fails_stops_those_that_are_at_work(two_cpus: None, tmp_path: Path) -> None:
    endless = program(tmp_path, "while True: pass\n").file
    files = described(tmp_path / "none.py", endless)
    with pytest.raises(DescribeFailed, match="No such file"):
        list(files)
    [begun] = files._at_work
    assert not isinstance(begun, DescribeFailed)
    _, stopped = begun
    assert stopped._process.returncode == -signal.SIGKILL


def test_an_answer_may_wait_to_be_asked_for(tmp_path: Path) -> None:
    describing = Describing(program(tmp_path, "from cronring import verb\n@verb\ndef work(): ...\n"))
    os.waitid(os.P_PID, describing._process.pid, os.WEXITED | os.WNOWAIT)
    describing._expire()
    assert describing.described().dump["problems"] == []


def test_children_run_what_was_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    here = program(tmp_path, "FROM = 'the source'\n", "compiled_once.py")
    code = compile_file(str(here.file), b"FROM = 'the code'\n")
    loaded = [load_file(str(here.file), here.source, code)]
    del sys.modules["compiled_once"]
    other_version = bytes([code[0] ^ 1]) + code[1:]
    loaded.append(load_file(str(here.file), here.source, other_version))
    assert [module.FROM for module in loaded] == ["the code", "the source"]
    assert load_module(program(tmp_path, "from cronring import verb\n@verb\ndef work(): ...\n")).program.code


def test_the_code_is_out_of_the_authors_reach(tmp_path: Path) -> None:
    """It is written and closed before the author's file runs, which writes to all that is open."""
    source = """
import os
from cronring import verb
for descriptor in range(3, 64):
    try:
        os.pwrite(descriptor, b"mine", 0)
    except OSError:
        pass
@verb
def work(): ...
"""
    mine = program(tmp_path, source)
    assert Describing(mine).described().code == compile_file(str(mine.file), mine.source)


def spent_s() -> float:
    """CPU, ours and that of children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def test_five_thousand_verbs_load_in_a_second_or_two(tmp_path: Path) -> None:
    verbs = "\n".join(
        f"@cron('{i % 60} * * * *')\nasync def verb_{i}(ctx: Context) -> None: ...\n" for i in range(5000)
    )
    began_s = spent_s()
    loaded = load_module(program(tmp_path, f"from cronring import Context, cron\n{verbs}"))
    assert len(loaded.module.verbs) == 5000
    assert spent_s() - began_s < 8  # about 1 s alone; other tests share the machine's caches
