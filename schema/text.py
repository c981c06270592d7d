"""The text form of a module, read: `module billing { verb close_month(Unit) Unit +cron "0 6 1 * *" }`.

    // Comments directly above a module, a verb or a record document it; others are for the reader of the text alone.
    module finance/billing {
      verb close_month(Closing) Unit
        +cron "0 6 1 * *"
        +timezone "Europe/Berlin"
        +retries 3
        +timeout "5m"
        +on_disconnect finish
        +payload {"month":1}
        +async

      data Closing {
        month: int,
        note: str | None = null,
        tags?: list[str],
      }
    }

Layout is free. The namespace before the slash is left out for the default one. Of a job's policies (schema.policy),
each stands under its own name.
"""

from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.module import DataField, DataType, Module, Verb
from cronring.schema.text_cursor import Cursor
from cronring.schema.text_lex import END, SchemaError, joined, tokenize
from cronring.schema.text_metadata import Metadata
from cronring.schema.text_print import print_module
from cronring.schema.types import UNIT
from cronring.schema.validate import data_name_fault, name_fault, namespace_fault, validate

__all__ = ["SchemaError", "parse_module", "print_module"]


def parse_module(text: str) -> Module:
    """The module that a text describes, its schedules in canonical form.

    Raises SchemaError with every wrong value of metadata; anything else that is wrong ends the reading where it stands.
    """
    cursor = Cursor(tokenize(text))
    try:
        module = _Parser(cursor).module()
    except SchemaError as error:
        raise joined([*cursor.faults, error]) from None
    if cursor.faults:
        raise joined(cursor.faults)
    return module


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._places: dict[str, int] = {}  # tokens, by what validate() calls the values there

    def module(self) -> Module:
        cursor = self._cursor
        doc = cursor.doc
        cursor.take("module", "a module's text starts with `module`")
        namespace, name = DEFAULT_NAMESPACE, cursor.word(namespace_fault)
        if cursor.take_if("/"):
            namespace, name = name, cursor.word(name_fault)
        else:
            cursor.check(cursor.index - 1, name_fault)
        cursor.take("{", "`{` opens the module")
        verbs: dict[str, Verb] = {}
        types: dict[str, DataType] = {}
        while cursor.next in {"verb", "data"}:
            at = cursor.index + 1
            if cursor.next == "verb":
                verb = self._verb(f"verbs[{len(verbs)}]")
                if verbs.setdefault(verb.name, verb) is not verb:
                    raise cursor.error(at, f"the verb {verb.name} is declared twice")
            else:
                data = self._data(f"types[{len(types)}]")
                if types.setdefault(data.name, data) is not data:
                    raise cursor.error(at, f"the record {data.name} is declared twice")
        cursor.take("}", "a verb starts with `verb`, a record with `data`, and `}` closes the module")
        cursor.take(END, "a text describes one module, so nothing follows its `}`")
        module = Module(name, tuple(verbs.values()), namespace, doc, tuple(types.values()))
        if cursor.faults:  # what is missing for them would be found wrong again
            return module
        for flaw in validate(module):  # limits, payloads, defaults: all else has been checked at its place
            if flaw.path in self._places:
                subject = "+payload: " if flaw.path.endswith(".payload") else ""
                raise cursor.error(self._places[flaw.path], subject + flaw.message)
            raise SchemaError(f"{flaw.path}: {flaw.message}", 1, 1)
        return module

    def _verb(self, path: str) -> Verb:
        cursor = self._cursor
        doc = cursor.doc
        cursor.advance()
        name = cursor.word(name_fault)
        cursor.take("(", "`(` stands before the type that the verb takes")
        self._places[f"{path}.request"] = cursor.index
        request = cursor.type()
        optional = cursor.take_if("?")
        cursor.take(")", "`)` stands after the type that the verb takes")
        response_at = cursor.index
        response = cursor.type()
        verb = Verb(name, request, response, doc=doc, request_optional=optional)
        metadata = Metadata(cursor)
        verb = metadata.read(verb)
        self._places[f"{path}.payload"] = metadata.at.get("payload", response_at)
        if verb.schedule and response != UNIT:
            raise cursor.error(response_at, f"a verb with a schedule returns {UNIT}, not {response}", UNIT)
        return verb

    def _data(self, path: str) -> DataType:
        cursor = self._cursor
        doc = cursor.doc
        cursor.advance()
        at = cursor.index
        name = cursor.type()
        cursor.check_text(at, name, data_name_fault)
        cursor.take("{", "`{` opens the record")
        fields: dict[str, DataField] = {}
        while cursor.next != "}":
            at = cursor.index
            field = self._field(f"{path}.fields[{len(fields)}]")
            if field.name in fields:
                raise cursor.error(at, f"the field {field.name} is declared twice")
            fields[field.name] = field
            if not cursor.take_if(","):
                break
        cursor.take("}", "`,` stands between the fields of a record, and `}` closes it")
        return DataType(name, tuple(fields.values()), doc)

    def _field(self, path: str) -> DataField:
        cursor = self._cursor
        name = cursor.word(name_fault)
        optional = cursor.take_if("?")
        cursor.take(":", "`:` stands between a field's name and its type")
        type_ = cursor.type()
        if not optional and cursor.take_if("="):
            self._places[f"{path}.default"] = cursor.index
            return DataField(name, type_, True, cursor.json())
        return DataField(name, type_, optional)
