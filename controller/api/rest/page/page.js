"use strict";
// What strangers wrote is only ever put in as text.

const VERBS = ["get", "post", "put", "patch", "delete"];
const MANY_LINES = 500;
let api = null;
let csrf = null;

const byId = (id) => document.getElementById(id);

function make(tag, properties, ...children) {
  const found = Object.assign(document.createElement(tag), properties);
  found.append(...children);
  return found;
}

function resolved(part) {
  return part.$ref ? part.$ref.split("/").slice(1).reduce((at, name) => at[name], api) : part;
}

function words(schema) {
  const bound = schema.maxLength ? `, ${schema.maxLength} characters at most` : "";
  const kind = [schema.type].flat().join(" or ");
  return schema.enum ? `one of ${schema.enum.join(", ")}` : `${schema.format ?? kind}${bound}`;
}

function field(parameter) {
  const input = make("input", { name: parameter.name, required: Boolean(parameter.required), spellcheck: false });
  input.dataset.place = parameter.in;
  const said = [parameter.description, words(parameter.schema)].filter(Boolean).join(" — ");
  return make("label", {}, make("code", {}, parameter.name), make("small", {}, said), input);
}

function bodyFields(schema) {
  const lines = Object.entries(resolved(schema).properties ?? {}).map(([name, each]) => {
    const inner = resolved(each);
    return `${name}: ${inner.properties ? `{${Object.keys(inner.properties).join(", ")}}` : words(inner)}`;
  });
  return make("pre", {}, lines.join("\n"));
}

function addressOf(path, form) {
  const query = new URLSearchParams();
  let address = path;
  for (const input of form.querySelectorAll("input")) {
    if (input.dataset.place === "path") address = address.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.dataset.place === "query" && input.value !== "") query.append(input.name, input.value);
  }
  return query.size ? `${address}?${query}` : address;
}

function headersFor(verb, body, form) {
  const headers = new Headers();
  for (const input of form.querySelectorAll("input[data-place=header]")) {
    if (input.value !== "") headers.set(input.name, input.value);
  }
  const token = byId("token").value.trim();
  if (token) headers.set("Authorization", `Bearer ${token}`);
  else if (csrf && verb !== "get") headers.set("X-CSRF-Token", csrf);
  if (body) headers.set("Content-Type", "application/json");
  return headers;
}

async function read(answer, output) {
  const head = `${answer.status} ${answer.statusText}\n${[...answer.headers].map((pair) => pair.join(": ")).join("\n")}\n\n`;
  if (!(answer.headers.get("content-type") ?? "").includes("ndjson")) {
    const text = await answer.text();
    const isJson = (answer.headers.get("content-type") ?? "").includes("json");
    output.textContent = head + (isJson && text ? JSON.stringify(JSON.parse(text), null, 2) : text);
    return;
  }
  const lines = [];
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    lines.push(part.value);
    output.textContent = head + lines.slice(-MANY_LINES).join("");
  }
}

async function send(verb, path, form, output, controller) {
  const text = form.querySelector("textarea")?.value.trim();
  output.textContent = "…";
  try {
    const answer = await fetch(addressOf(path, form), {
      method: verb.toUpperCase(), headers: headersFor(verb, text, form), body: text || undefined, signal: controller.signal,
    });
    await read(answer, output);
  } catch (error) {
    output.textContent += `\n${error.name === "AbortError" ? "stopped" : error}`;
  }
}

function opened(details, path, verb, operation) {
  const form = make("form", {}, ...operation.parameters.map(resolved).map(field));
  const output = make("pre", { hidden: true });
  const schema = operation.requestBody?.content["application/json"].schema;
  if (schema) form.append(make("label", {}, "Body", make("textarea", { rows: 5, value: "{}" })), bodyFields(schema));
  const stop = make("button", { type: "button", hidden: true }, "Stop");
  form.append(make("button", {}, "Send"), stop);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const controller = new AbortController();
    stop.onclick = () => controller.abort();
    output.hidden = stop.hidden = false;
    await send(verb, path, form, output, controller);
    stop.hidden = true;
  });
  details.append(make("p", {}, operation.description), form, output);
}

function entry(path, verb, operation) {
  const title = make("b", {}, `${verb.toUpperCase()} ${path}`);
  const details = make("details", {}, make("summary", {}, title, make("small", {}, operation.summary ?? "")));
  details.dataset.text = `${verb} ${path} ${operation.operationId} ${operation.description}`.toLowerCase();
  details.addEventListener("toggle", () => opened(details, path, verb, operation), { once: true });
  return details;
}

function show() {
  byId("about").textContent = api.info.description;
  for (const tag of api.tags) {
    const section = make("section", {}, make("h2", {}, tag.name), make("p", {}, tag.description));
    for (const [path, operations] of Object.entries(api.paths)) {
      for (const verb of VERBS.filter((each) => operations[each]?.tags.includes(tag.name))) {
        section.append(entry(path, verb, operations[verb]));
      }
    }
    byId("operations").append(section);
  }
}

function find() {
  const wanted = byId("find").value.toLowerCase().split(/\s+/);
  for (const section of document.querySelectorAll("section")) {
    const entries = [...section.querySelectorAll("details")];
    for (const each of entries) each.hidden = !wanted.every((word) => each.dataset.text.includes(word));
    section.hidden = entries.every((each) => each.hidden);
  }
}

async function begin() {
  api = await (await fetch("/api/openapi.json")).json();
  show();
  byId("find").addEventListener("input", find);
  const session = await fetch("/session?optional");
  const who = session.status === 200 ? await session.json() : null;
  csrf = who?.csrf_token ?? null;
  byId("who").textContent = who ? `You are ${who.kind}:${who.name}.` : "Nobody is logged in: give a token, or log in at /login.";
}

begin().catch((error) => { byId("about").textContent = `This page can't be shown: ${error}`; });
