// The form of a job, whether it is there or made anew: its fields, and what they come to, said by the API meanwhile.
import { html } from "../base.mjs";
import { Failed, When } from "../parts.mjs";
import { count, number, wordOf } from "../words.mjs";
import { Remarks, Ticks } from "./job_ticks.mjs";

const CHOICES = /: ([a-z_]+(?: \([^)]*\))?(?:, [a-z_]+(?: \([^)]*\))?)*,? or [a-z_]+)/;

// All but the payload. `given`: {texts, base, set(path), faults(path)}. `open`: whether policies are shown at once.
export const Fields = ({ given, policies, open }) => html`
  <${Line} path="schedule" label="Schedule" given=${given} hint="0 6 1 * *, every 30m, at 2026-03-01T08:00:00Z, manual" />
  <${Line} path="policy.timezone" label="Time zone" given=${given} hint="UTC" list="zones"
    help=${policies.find((each) => each.name === "timezone")?.help} />
  <datalist id="zones">${zones().map((each) => html`<option key=${each} value=${each}></option>`)}</datalist>
  <details open=${open}><summary>Policies</summary>
    ${policies
      .filter(({ name }) => name !== "timezone")
      .map(({ name, help }) => html`<${Line} key=${name} path=${`policy.${name}`} label=${wordOf(name)} help=${help}
        given=${given} />`)}</details>
  <${Line} path="timeout_ms" label="Timeout, in milliseconds" given=${given} />
  <${Line} path="labels" label="Labels, one name=value a line" given=${given} rows="3" />`;

// What problems say of a field, whether it is one of the spec or stands beside that.
export const faultsOf = (...problems) => (path) =>
  problems
    .flatMap((each) => each?.violations ?? [])
    .filter((each) => `${each.field}.`.replace(/^spec\./, "").startsWith(`${path}.`))
    .map((each) => each.description)
    .filter((each, index, all) => all.indexOf(each) === index);

export const Why = ({ note, set }) => html`<label>Why? Others will ask later.<input value=${note}
  onInput=${(event) => set(event.target.value)} /></label>`;

const zones = () => ["UTC", ...(Intl.supportedValuesOf?.("timeZone") ?? [])];

export function Line({ path, label, help, hint, list, rows, given }) {
  const id = `edit-${path}`;
  const faults = given.faults(path);
  const options = help?.match(CHOICES)?.[1].match(/[a-z_]+(?= \(|,| or|$)/g)?.filter((each) => each !== "or");
  const named = {
    id,
    value: given.texts[path],
    "aria-invalid": faults.length > 0,
    "aria-describedby": help || faults.length ? `${id}-help` : undefined,
    onInput: (event) => given.set(path)(event.target.value),
    spellcheck: false,
  };
  return html`<div class="field"><label for=${id}>${label}${
    given.texts[path] !== given.base[path] && html` <b>changed</b>`
  }</label>
    ${rows ? html`<textarea ...${named} rows=${rows}></textarea>` : html`<input ...${named} placeholder=${hint ?? ""}
      autocomplete="off" list=${list ?? (options ? `${id}-options` : undefined)} />`}
    ${options && html`<datalist id=${`${id}-options`}>${options.map((each) => html`<option key=${each}
      value=${each}></option>`)}</datalist>`}
    <div id=${`${id}-help`}>${help && html`<p class="says">${help}</p>`}
    ${faults.map((each) => html`<p class="fault" key=${each}>${each}</p>`)}</div></div>`;
}

// `idle`: what to say while nothing is asked; false: it is asked.
export function Preview({ said, problem, busy, idle }) {
  if (idle) return html`<p class="says">${idle}</p>`;
  const other = problem && (problem.violations.length ? null : problem);
  if (other) return html`<${Failed} problem=${other} said="It can't be saved so." />`;
  if (problem) return html`<p class="problem" role="status">It can't be saved so: see the fields that are marked.</p>`;
  if (!said) return html`<p class="says" role="status">Asking what it comes to …</p>`;
  const { explanation } = said;
  return html`<div class=${busy ? "aged" : ""} aria-busy=${busy}><p class="lead" role="status">It runs
    ${" "}${explanation.words}.</p>
    <${Remarks} of=${explanation.remarks} />
    ${said.etag && html`<${Changes} said=${said} />`}
    <h3>Next ticks</h3>
    ${explanation.ticks.length ? html`<${Ticks} said=${explanation} caption="Next ticks after the change" />`
      : html`<p>None: it runs when somebody triggers it.</p>`}</div>`;
}

// Of a job that is there.
const Changes = ({ said }) => html`<h3>What changes</h3>
  ${said.fields.length ? html`<ul class="plain">${said.fields.map(
    (each) => html`<li key=${each.field}><code>${each.field}</code>: ${each.old ? html`<s>${each.old}</s>` : "nothing"}
      → ${each.new ? html`<b>${each.new}</b>` : "nothing"}</li>`,
  )}</ul>` : html`<p>Nothing: it is so already.</p>`}
  <${Difference} of=${said.ticks} until=${said.until_at} />`;

// The ticks that go and come: counts, and the first of them.
function Difference({ of, until }) {
  const same = of.gone === "0" && of.new === "0";
  return html`<h3>Its ticks until <${When} at=${until} clock />: ${number(of.before)} →
    ${" "}${count(of.after, "tick")}</h3>
    ${same ? html`<p>All of them stay as they are.</p>` : html`<${Moved} of=${of} />`}`;
}

function Moved({ of }) {
  if (of.gone === undefined) return html`<p>Too many to compare one by one.</p>`;
  const row = (sign, word, number, first) =>
    Number(number) > 0 &&
    html`<li>${sign} ${count(number, "tick")} ${word}: ${first.map((at, index) => html`${index > 0 && ", "}<${When}
      at=${at} clock />`)}${Number(number) > first.length && ", …"}</li>`;
  const shift = Number(of.shift_ms);
  return html`<ul class="plain">
    ${shift !== 0 && html`<li>All of them move ${shift > 0 ? "later" : "earlier"} by the same time.</li>`}
    ${row("−", Number(of.gone) === 1 ? "goes" : "go", of.gone, of.first_gone)}
    ${row("+", Number(of.new) === 1 ? "comes" : "come", of.new, of.first_new)}</ul>`;
}

