"""A module as JSON: what its file declares, and what is wrong with it."""

from __future__ import annotations

import inspect
import os
import sys
from types import ModuleType
from typing import Any, Callable

from cronring.child import signature
from cronring.child.buildable import REMEDY, unbuildable
from cronring.child.describe_types import TypeDump
from cronring.child.errors import error_text
from cronring.child.load import compile_file, load_file
from cronring.child.shapes import own_annotations, resolve
from cronring.context import Context
from cronring.declare import Declaration, declarations

VERSION = 1
_NO_POLICIES = ("timeout", "on_disconnect", "anchor", "payload")
_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.VAR_POSITIONAL: "var_positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_KEYWORD: "var_keyword",
}


def describe(path: str, source: bytes, namespace: str, kept: int) -> dict[str, Any]:
    """The dump of the file at `path`. An import that fails is a problem at the author's own line.

    `kept`: the descriptor of a file that takes the compiled code. It is closed before the author's code runs.
    """
    try:
        with os.fdopen(kept, "wb") as file:
            code = compile_file(path, source)
            file.write(code)
        module = load_file(path, source, code)
    except BaseException as error:  # SystemExit at import is a problem like any other
        dump = _dump(path, namespace)
        dump["problems"].append(_import_problem(path, error))
        return dump
    return describe_module(module, path, namespace)


def describe_module(module: ModuleType, path: str, namespace: str) -> dict[str, Any]:
    """The dump of a module that is loaded already."""
    dump = _dump(path, namespace)
    dump["doc"] = _doc(module)
    types = TypeDump(module.__name__)
    for declaration in declarations(module.__name__):
        try:
            dump["verbs"].append(_describe_verb(declaration, module, types))
            dump["problems"] += _parameter_problems(declaration, module)
        except Exception as error:  # a built-in function without a signature, an annotation that raises
            message = f"it can't be inspected: {type(error).__name__}: {error_text(error)}"
            dump["problems"].append(_problem(declaration, message, "decorate a function made by def or async def"))
        dump["problems"] += _verb_problems(declaration, module)
    dump["types"] = list(types.records.values())
    dump["problems"] += _repeated(declarations(module.__name__))
    return dump


def _dump(path: str, namespace: str) -> dict[str, Any]:
    return {
        "version": VERSION,
        "module": os.path.splitext(os.path.basename(path))[0],
        "namespace": namespace,
        "file": path,
        "doc": "",
        "verbs": [],
        "types": [],
        "problems": [],
    }


def _describe_verb(declaration: Declaration, module: ModuleType, types: TypeDump) -> dict[str, Any]:
    function = declaration.function
    annotations = own_annotations(inspect.unwrap(function))
    namespace = getattr(inspect.unwrap(function), "__globals__", vars(module))
    parameters = [
        _describe_parameter(parameter, annotations.get(parameter.name, _MISSING), namespace, types)
        for parameter in signature.parameters(function)
    ]
    returns = annotations.get("return", _MISSING)
    told = {
        "name": declaration.name,
        "line": declaration.line,
        "is_async": _is_async(function),
        "doc": _doc(function),
        "params": parameters,
        "returns": _annotation_text(returns, namespace),
        "cron": declaration.cron,
        "every": declaration.every,
        "once": declaration.once,
        "manual": declaration.manual,
        **{name: value for name, value in declaration.options.items() if name in _NO_POLICIES},
        "policy": {name: value for name, value in declaration.options.items() if name not in _NO_POLICIES},
    }
    if told["returns"] not in {None, "None"}:
        told["returns_type"] = types.text(resolve(returns, namespace))
    return told


def _describe_parameter(
    parameter: inspect.Parameter, annotation: Any, namespace: dict[str, Any], types: TypeDump
) -> dict[str, Any]:
    text = _annotation_text(annotation, namespace)
    told = {
        "name": parameter.name,
        "annotation": text,
        "has_default": parameter.default is not parameter.empty,
        "kind": _KINDS[parameter.kind],
    }
    if text not in {None, "Context"}:
        told["type"] = types.text(resolve(annotation, namespace))
    return told


def _doc(documented: object) -> str:
    doc = documented.__doc__
    return inspect.cleandoc(doc) if isinstance(doc, str) else ""  # anything can be assigned to it


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(inspect.unwrap(function))


class _Missing:
    pass


_MISSING = _Missing()


def _annotation_text(annotation: object, namespace: dict[str, Any]) -> str | None:
    """One spelling for one type: "Context" for our class whatever it is called there, "None", "int", "list[int]"."""
    if annotation is _MISSING:
        return None
    written = getattr(annotation, "__forward_arg__", annotation)
    annotation = resolve(annotation, namespace)
    if isinstance(annotation, str):
        # Resolved to itself: a name that only exists for type checkers.
        return annotation.rpartition("cronring.")[2] if annotation == written else annotation
    if annotation is Context:
        return "Context"
    if annotation is None or annotation is type(None):
        return "None"
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        qualified = f"{annotation.__module__}.{annotation.__qualname__}"
        return qualified.replace("builtins.", "", 1)
    return repr(annotation).replace("typing.", "").replace("cronring.context.Context", "Context")


def _verb_problems(declaration: Declaration, module: ModuleType) -> list[dict[str, Any]]:
    qualified = getattr(declaration.function, "__qualname__", "")
    if declaration.function.__module__ != module.__name__ and "<locals>" in qualified:
        message = f"the decorator below @cron, @every or @verb returns {qualified} of {declaration.function.__module__}"
        remedy = (
            f"write @functools.wraps(function) above `def {declaration.name}` there, so that the verb keeps its name"
        )
        return [_problem(declaration, message, remedy)]
    if isinstance(declaration.function, type):
        return [_problem(declaration, "it is a class", "decorate a function made by def or async def")]
    function = inspect.unwrap(declaration.function)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return [_problem(declaration, "it is a generator, which nobody would iterate", "replace `yield`")]
    return []


def _parameter_problems(declaration: Declaration, module: ModuleType) -> list[dict[str, Any]]:
    """Parameters whose class can't be made of JSON: the run would get bare JSON where it asks for an object."""
    function = inspect.unwrap(declaration.function)
    namespace = getattr(function, "__globals__", vars(module))
    problems = []
    annotations = {} if isinstance(function, type) else own_annotations(function)
    for name, annotation in annotations.items():
        found = None if name == "return" else unbuildable(resolve(annotation, namespace))
        if found is not None:
            where, made = found
            what = f"its parameter {name}" + (f" ({name}{where})" if where else "")
            message = f"{what} is a {made}, which can't be made of a JSON payload"
            problems.append(_problem(declaration, message, REMEDY))
    return problems


def _repeated(declared: list[Declaration]) -> list[dict[str, Any]]:
    first: dict[str, Declaration] = {}
    problems = []
    for declaration in declared:
        earlier = first.setdefault(declaration.name, declaration)
        if earlier is not declaration:
            message = f"a verb of this name is declared already, in line {earlier.line}"
            problems.append(_problem(declaration, message, "rename one, and give each verb one decorator"))
    return problems


def _problem(declaration: Declaration, message: str, remedy: str) -> dict[str, Any]:
    return {"line": declaration.line, "verb": declaration.name, "message": message, "remedy": remedy}


def _import_problem(path: str, error: BaseException) -> dict[str, Any]:
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename == path:
        line = error.lineno or 0
    kind = type(error).__name__
    message = error.msg if isinstance(error, SyntaxError) else error_text(error)
    if isinstance(error, ModuleNotFoundError):
        remedy = f"install it where --python points ({sys.executable})"
    elif isinstance(error, SyntaxError):
        remedy = "correct the syntax"
    else:
        remedy = "the file must import without errors"
    return {"line": line, "verb": "", "message": f"{kind}: {message}", "remedy": remedy}
