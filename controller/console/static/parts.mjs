// What pages share: states, times, panels, tables.
import { html, useEffect, useMemo, useRef, useState } from "./base.mjs";
import { clockTime, duration, inZone, relative, useNow, useText, utc, viewerZone } from "./clock.mjs";
import { visible } from "./ansi.mjs";
import { useSignal } from "./live.mjs";
import { hueOf, shapeOf, wordOf } from "./words.mjs";

const LOADING_MS = 300; // what is there sooner needs no word of it

export const State = ({ is, text }) => html`
  <span class=${`state ${hueOf(is)}`}><span class="shape" aria-hidden="true">${shapeOf(is)}</span>
    ${" "}${text ?? wordOf(is)}</span>`;

// An instant: how far away it is; where one points at it, when it is, on all clocks that matter.
export function When({ at, zone, clock }) {
  const time = Date.parse(at);
  const text = useText((moment) => (!at ? "–" : clock ? clockTime(time) : relative(time, moment)));
  const zones = useMemo(() => (at ? onClocks(time, zone) : ""), [at, zone]);
  return at ? html`<time datetime=${at} title=${zones}>${text}</time>` : html`<span class="none">${text}</span>`;
}

const onClocks = (time, zone) =>
  [...new Set([viewerZone, zone, "UTC"].filter(Boolean))].map((each) => inZone(time, each)).join("\n");

// How long something that goes on has been going on.
export function Since({ at }) {
  const moment = useNow();
  return html`<span>${duration(Math.max(0, moment - Date.parse(at)))}</span>`;
}

export const JobLink = ({ of }) => html`<a class="key" href=${jobPath(of)}>${of}</a>`;
export const jobPath = (key) => `/jobs/${encodeURIComponent(key)}`;
export const RunLink = ({ of, children }) => html`<a href=${`/executions/${of}`}>${children ?? `#${of}`}</a>`;

// What a question's answer looks like while it isn't there, and when it isn't to be had.
export function Answered({ query, empty, children }) {
  const [slow, setSlow] = useState(false);
  const signal = useSignal();
  const waits = !query.data && !query.problem;
  useEffect(() => {
    setSlow(false);
    if (!waits) return undefined;
    const timer = setTimeout(() => setSlow(true), LOADING_MS);
    return () => clearTimeout(timer);
  }, [waits]);
  if (query.problem && !query.data) return html`<${Failed} problem=${query.problem} again=${query.again} />`;
  if (waits) return html`<p class="loading" role="status">${slow && "Loading …"}</p>`;
  // What was answered after the stream was lost is not old.
  const unheard = signal.name === "lost" && query.at < signal.since && "nothing was heard since.";
  const why = query.problem?.message ?? unheard;
  const stale =
    why &&
    html`<p class="stale" role="status">Old, as of ${utc(query.at)}:
    ${" "}${why} <button class="small" onClick=${query.again}>Try again</button></p>`;
  return html`<div class=${why ? "aged" : ""}>${stale}${empty || children}</div>`;
}

export const Failed = ({ problem, again, said = "This can't be shown now." }) => html`
  <div class="problem" role="alert"><p><b>${said}</b> ${problem.violations.length ? "" : problem.message}</p>
    ${problem.violations.map((each) => html`<p><code>${each.field}</code>: ${each.description}</p>`)}
    ${again && html`<button onClick=${again}>Try again</button>`}</div>`;

export const Panel = ({ title, says, id, children, more }) => html`
  <section class="panel" aria-labelledby=${id}>
    <h2 id=${id}>${title}${more && html`<span class="more">${more}</span>`}</h2>
    ${says && html`<p class="says">${says}</p>`}
    ${children}
  </section>`;

const NO_TEXT = "its text is for roles that see payloads, and kept only of a job that was changed alone";
const EXCERPT_BYTES = 4_096; // an action keeps so much of a payload
// Of an action that changed a payload: how the old and the new one begin. Neither the roles that see no payload have
// that, nor is it kept of several jobs at once; an action doesn't tell which.
export function PayloadChange({ of }) {
  const changed = JSON.parse(of.details || "{}").payload;
  if (!changed) return null;
  const shown = (each) => {
    if (!each) return "none";
    if (each.text === undefined) return `${each.bytes} bytes; ${NO_TEXT}`;
    return html`<code class="json">${each.text}</code>${each.bytes > EXCERPT_BYTES && ` (of ${each.bytes} bytes)`}`;
  };
  return html`<details><summary>Payload</summary><dl class="facts"><dt>Old</dt><dd>${shown(changed.old)}</dd>
    <dt>New</dt><dd>${shown(changed.new)}</dd></dl></details>`;
}

// A list of nothing teaches the command that fills it.
export const Empty = ({ children, command }) => html`
  <div class="empty"><p>${children}</p>${command && html`<${Copied} text=${command} />`}</div>`;

// Text with a button to copy it. The clipboard fails on plain HTTP: then it is selected, to be copied by hand.
export function Copied({ text }) {
  const [said, say] = useState("");
  const place = useRef(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(visible(text)); // what is copied is what is seen
      say("copied");
    } catch {
      getSelection().selectAllChildren(place.current);
      say("selected: press Ctrl-C");
    }
    setTimeout(() => say(""), 2_000);
  };
  return html`<span class="copied"><code ref=${place}>${text}</code>
    <button class="small" onClick=${copy} aria-label=${`Copy ${text}`}>Copy</button>
    <span role="status">${said}</span></span>`;
}

// `columns`: {name, of(row), title, number, wide}. A row opens by Enter where it has the focus.
export function Rows({ caption, columns, rows, keyOf, open, picked, pick, mark }) {
  return html`<div class="scroll"><table class="rows"><caption class="hidden">${caption}</caption>
    <thead><tr>${pick && html`<th scope="col"><span class="hidden">Selected</span></th>`}
      ${columns.map((each) => html`<th scope="col"
        class=${each.number ? "number" : ""}>${each.name}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => {
      const key = keyOf(row);
      return html`<tr key=${key} tabindex="-1" data-row=${key} class=${mark?.(row) ?? ""}
          onKeyDown=${(event) => {
            if (event.key === "Enter" && event.target === event.currentTarget) open?.(row);
          }}>
        ${
          pick &&
          html`<td><input type="checkbox" aria-label=${`Select ${key}`} checked=${picked.has(key)}
          onChange=${() => pick(row)} /></td>`
        }
        ${columns.map((each) => html`<td class=${each.number ? "number" : ""}
          data-name=${each.name}>${each.of(row)}</td>`)}
      </tr>`;
    })}</tbody></table></div>`;
}

export const Facts = ({ of }) => html`<dl class="facts">
  ${of.filter(Boolean).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

// One of a few: `of` are words, or pairs of a value and its words.
export const Choice = ({ label, value, set, of }) => html`
  <label>${label} <select value=${value} onChange=${(event) => set(event.target.value)}>${of
    .map((each) => [each].flat())
    .map(([name, words = name]) => html`<option key=${name} value=${name}>${words}</option>`)}</select></label>`;

// What is typed is its own until Enter: an answer that comes meanwhile draws the page, and must not take it away.
export function Words({ label, value, set, hint, wide }) {
  const [typed, setTyped] = useState(value);
  return html`<label class=${wide ? "grow" : ""}>${label} <input class=${wide ? "wide" : ""} value=${typed}
    placeholder=${hint} spellcheck="false" onInput=${(event) => setTyped(event.target.value)}
    onChange=${(event) => set(event.target.value.trim())} /></label>`;
}
