// A form for a verb's payload, made from the types that it declares. What it can't draw is a text of JSON.
//
// The form's texts become JSON as they stand: whether they are right is said by the API, field by field.
import { html, useState } from "./base.mjs";

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const TEXTS = {
  str: ["text", ""],
  "datetime.datetime": ["text", "2026-03-01T08:00:00Z"],
  "datetime.date": ["date", ""],
  "datetime.time": ["text", "08:00:00"],
  "uuid.UUID": ["text", "12345678-1234-5678-1234-567812345678"],
  "decimal.Decimal": ["text", "12.50"],
};
const UNSAFE = /\d{16}/; // a number that JavaScript would round

// A type as one field of a form: {kind, nullable, options, record}.
function shapeOf(type, types) {
  const nullable = / \| None$|^None \| |^Optional\[/.test(type);
  const inner = type.replace(/ \| None$|^None \| /, "").replace(/^Optional\[(.*)\]$/, "$1");
  const record = types.find((each) => each.name === inner);
  if (record && !nullable) return { kind: "record", record };
  if (inner.startsWith("Literal[")) return { kind: "choice", nullable, options: choices(inner) };
  if (inner === "int" || inner === "float") return { kind: "number", nullable, type: inner };
  if (inner === "bool") return { kind: "flag", nullable };
  if (TEXTS[inner]) return { kind: "text", nullable, input: TEXTS[inner][0], hint: TEXTS[inner][1] };
  return { kind: "json", nullable };
}

// Constants of a Literal, each as JSON.
const choices = (type) => type.slice("Literal[".length, -1).match(/"(?:[^"\\]|\\.)*"|[^,\s][^,]*/g) ?? [];

// Of a described verb: whether a form can be drawn for it. A payload in hand must be one that it can hold.
export function drawable(verb, payload) {
  if (UNSAFE.test(payload) || shapeOf(verb.request, verb.types).kind === "json") return false;
  const records = new Set();
  const nested = (type) => {
    const { record } = shapeOf(type, verb.types);
    if (!record) return true;
    if (records.has(record.name)) return false; // it holds itself
    records.add(record.name);
    const fine = record.fields.every((field) => nested(field.type));
    records.delete(record.name);
    return fine;
  };
  return nested(verb.request) && known(payload ? JSON.parse(payload) : undefined, verb.request, verb.types);
}

// Whether a value has nothing that the form would lose.
function known(value, type, types) {
  const { kind, record } = shapeOf(type, types);
  if (kind !== "record" || value === undefined) return true;
  if (value === null || typeof value !== "object" || Array.isArray(value)) return false;
  return Object.keys(value).every((name) => {
    const field = record.fields.find((each) => each.name === name);
    return field && known(value[name], field.type, types);
  });
}

// The texts of a form by path, of a payload. A field that is absent has none.
function textsOf(value, type, types, path, found) {
  const { kind, record } = shapeOf(type, types);
  if (value === undefined) return found;
  if (kind === "record")
    for (const field of record.fields) textsOf(value[field.name], field.type, types, `${path}.${field.name}`, found);
  else if (kind === "text" && typeof value === "string") found[path] = value;
  else found[path] = JSON.stringify(value);
  return found;
}

// The JSON of the texts; undefined: nothing is given, and it may be left out.
function jsonOf(texts, type, types, path, optional) {
  const shape = shapeOf(type, types);
  if (shape.kind === "record") {
    const parts = shape.record.fields
      .map((field) => [field.name, jsonOf(texts, field.type, types, `${path}.${field.name}`, field.optional)])
      .filter(([, json]) => json !== undefined);
    if (!parts.length && optional) return undefined;
    return `{${parts.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(",")}}`;
  }
  const text = texts[path] ?? "";
  if (text === "") {
    if (optional) return undefined;
    if (shape.nullable) return "null";
    return shape.kind === "text" ? '""' : undefined;
  }
  if (shape.kind === "text") return JSON.stringify(text);
  if (shape.kind === "number") return NUMBER.test(text.trim()) ? text.trim() : JSON.stringify(text);
  return shape.kind === "json" ? readable(text) : text;
}

function readable(text) {
  try {
    JSON.parse(text);
    return text;
  } catch {
    return JSON.stringify(text); // the API says that it is a text, and what it is to be
  }
}

// `value`: a payload as JSON, "" for none. `problem`: of the API, whose violations of `field` are told beside fields.
export function PayloadForm({ verb, value, set, problem, field = "payload", label = "Payload" }) {
  const canDraw = drawable(verb, value.trim() && valid(value) ? value : "");
  const [raw, setRaw] = useState(!canDraw);
  const [texts, setTexts] = useState(() =>
    canDraw && valid(value) ? textsOf(JSON.parse(value), verb.request, verb.types, "$", {}) : {},
  );
  const faults = (problem?.violations ?? []).filter((each) => each.field === field).map((each) => each.description);
  const draw = (next) => {
    setTexts(next);
    const empty = verb.request_optional && Object.values(next).every((text) => text === "");
    set(empty ? "" : (jsonOf(next, verb.request, verb.types, "$", false) ?? ""));
  };
  const turn = () => {
    if (raw && valid(value)) setTexts(textsOf(JSON.parse(value), verb.request, verb.types, "$", {}));
    setRaw(!raw);
  };
  if (verb.request === "Unit") return html`<p class="says">${verb.verb} takes no payload.</p>`;
  const toggle =
    canDraw && html`<button type="button" class="small" onClick=${turn}>${raw ? "As a form" : "As JSON"}</button>`;
  if (raw || !canDraw) {
    const id = `payload-${field}`;
    return html`<div class="payload"><label for=${id}>${label}: a ${verb.request}, as JSON. Empty: none.</label>
      <textarea id=${id} rows="5" value=${value} spellcheck="false" aria-invalid=${faults.length > 0}
        onInput=${(event) => set(event.target.value)}></textarea>${toggle}
      ${faults.map((each) => html`<p class="fault" key=${each}>${each}</p>`)}</div>`;
  }
  const given = { verb, field, texts, faults, put: (path, text) => draw({ ...texts, [path]: text }) };
  return html`<fieldset class="payload"><legend>${label}: a ${verb.request} ${toggle}</legend>
    <${Part} type=${verb.request} path="$" name="value" optional=${verb.request_optional} given=${given} />
    ${faults.filter((each) => !each.startsWith("$.")).map((each) => html`<p class="fault" key=${each}>${each}</p>`)}
  </fieldset>`;
}

const valid = (text) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

function Part({ type, path, name, optional, standard, given }) {
  const shape = shapeOf(type, given.verb.types);
  if (shape.kind === "record") {
    const fields = shape.record.fields.map(
      (field) => html`<${Part} key=${field.name} type=${field.type} path=${`${path}.${field.name}`} name=${field.name}
        optional=${field.optional} standard=${field.default_json} given=${given} />`,
    );
    if (path === "$") return fields;
    return html`<fieldset><legend>${name}${optional && " (may be left out)"}</legend>${fields}</fieldset>`;
  }
  const faults = given.faults.filter((each) => each.startsWith(`${path}:`) || each.startsWith(`${path}[`));
  const hint = optional ? (standard ? `${standard} if it is left out` : "may be left out") : (shape.hint ?? "");
  const id = `${given.field}-${path}`;
  return html`<div class="field"><label for=${id}>${name} <span class="type">${type}</span></label>
    <${Input} id=${id} shape=${shape} text=${given.texts[path] ?? ""} hint=${hint} optional=${optional}
      wrong=${faults.length > 0} put=${(text) => given.put(path, text)} />
    ${faults.map((each) => html`<p class="fault" key=${each} id=${`${id}-fault`}>${each}</p>`)}</div>`;
}

function Input({ id, shape, text, hint, optional, wrong, put }) {
  const given = {
    id,
    "aria-invalid": wrong,
    "aria-describedby": wrong ? `${id}-fault` : undefined,
    onInput: (event) => put(event.target.value),
  };
  const options = shape.kind === "flag" ? ["true", "false"] : shape.options;
  if (options) {
    return html`<select ...${given} value=${text}><option value="">${optional ? hint : "choose"}</option>
      ${options.map((each) => html`<option key=${each} value=${each}>${each.replace(/^"|"$/g, "")}</option>`)}</select>`;
  }
  if (shape.kind === "json") return html`<textarea ...${given} rows="2" value=${text} placeholder=${hint || "JSON"}
    spellcheck="false"></textarea>`;
  return html`<input ...${given} type=${shape.input ?? "text"} value=${text} placeholder=${hint} autocomplete="off"
    inputmode=${shape.kind === "number" ? "decimal" : undefined} />`;
}
