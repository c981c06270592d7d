// The editor: what a change comes to is said by the API while one types, and somebody else's change isn't overwritten.
import { html, useEffect, useMemo, useState } from "../base.mjs";
import { get, keyPath, patch, post } from "../api.mjs";
import { PayloadForm } from "../payload_form.mjs";
import { useQuery } from "../queries.mjs";
import { Answered, Copied, Failed, Panel, When } from "../parts.mjs";
import { count, number, wordOf } from "../words.mjs";
import { bodyOf, changedIn, meanwhile, onTop, textsOf } from "./job_draft.mjs";
import { Remarks, Ticks } from "./job_ticks.mjs";

const TYPING_MS = 300;
const CHOICES = /: ([a-z_]+(?: \([^)]*\))?(?:, [a-z_]+(?: \([^)]*\))?)*,? or [a-z_]+)/;

// Where a job is edited that isn't edited here; null: it is.
export function elsewhere(job) {
  if (job.source === "annotation") {
    return html`<p>Its module declares it: it is edited in the module's file.</p>
      <${Copied} text="cronring plan FILE" /> says what that changes, <${Copied} text="cronring deploy FILE" /> does it.`;
  }
  return null;
}

export const ofSet = (job) =>
  job.set_name &&
  html`<p class="note">The set <b>${job.set_name}</b> owns it: it is edited in the set's file, and then
    ${" "}<${Copied} text="cronring apply FILE" /> A change that is made here is set back by the next apply.</p>`;

export function Editor({ job, again, close }) {
  const policies = useQuery("/policies");
  const verb = useQuery(`${keyPath(job.key)}/verb`);
  const fields = policies.data?.policies;
  return html`<${Panel} id="edit" title=${`Edit ${job.key}`} says="Nothing is changed before you save it.">
    <${Answered} query=${policies}>${
      fields && (verb.data || verb.problem) && html`<${Form} job=${job} policies=${fields} verb=${verb.data}
        again=${again} close=${close} />`
    }<//><//>`;
}

function Form({ job, policies, verb, again, close }) {
  const [seen, setSeen] = useState({ texts: textsOf(job, policies), etag: job.etag });
  const [texts, setTexts] = useState(seen.texts);
  const [round, setRound] = useState(0); // draws the payload's form anew
  const [note, setNote] = useState("");
  const [saving, setSaving] = useState(false);
  const [refused, setRefused] = useState(null);
  const paths = changedIn(texts, seen.texts);
  const body = useMemo(() => bodyOf(texts, paths, policies), [texts, seen]);
  const { said, problem, busy } = usePreview(job.key, paths.length ? body : null, seen.etag);
  const theirs = useMemo(() => textsOf(job, policies), [job.etag]);
  const other = job.etag && job.etag !== seen.etag ? meanwhile(seen.texts, theirs, texts) : null;
  const set = (path) => (text) => setTexts((before) => ({ ...before, [path]: text }));
  const faults = (path) =>
    [refused, problem]
      .flatMap((each) => each?.violations ?? [])
      .filter((each) => each.field === `spec.${path}` || each.field.startsWith(`spec.${path}.`))
      .map((each) => each.description)
      .filter((each, index, all) => all.indexOf(each) === index);
  const rebase = (current, etag) => {
    setTexts(onTop(seen.texts, current, texts));
    setSeen({ texts: current, etag });
    setRefused(null);
    setRound(round + 1);
  };
  const anew = async () => {
    const current = await get(keyPath(job.key));
    await again(); // the page may not have heard of it yet
    rebase(textsOf(current, policies), current.etag);
  };
  const save = async (event) => {
    event.preventDefault();
    setSaving(true);
    setRefused(null);
    try {
      await patch(keyPath(job.key), { ...body, note }, seen.etag);
      again();
      close();
      return;
    } catch (found) {
      if (found.violations === undefined) throw found;
      setRefused(found);
    }
    setSaving(false);
  };
  const given = { texts, base: seen.texts, set, faults };
  return html`<form class="editor" onSubmit=${save}>
    <div>
      <${Line} path="schedule" label="Schedule" given=${given} hint="0 6 1 * *, every 30m, at 2026-03-01T08:00:00Z, manual" />
      <${Line} path="policy.timezone" label="Time zone" given=${given} hint="UTC" list="zones"
        help=${helpOf(policies, "timezone")} />
      <datalist id="zones">${zones().map((each) => html`<option key=${each} value=${each}></option>`)}</datalist>
      <details open=${policies.some(({ name }) => name !== "timezone" && seen.texts[`policy.${name}`])}>
        <summary>Policies</summary>
        ${policies
          .filter(({ name }) => name !== "timezone")
          .map(({ name, help }) => html`<${Line} key=${name} path=${`policy.${name}`} label=${wordOf(name)} help=${help}
            given=${given} />`)}</details>
      <${Line} path="timeout_ms" label="Timeout, in milliseconds" given=${given} />
      <${Line} path="labels" label="Labels, one name=value a line" given=${given} rows="3" />
      ${
        job.outputs_hidden
          ? html`<p class="says">Its payload is hidden from your role, and stays as it is.</p>`
          : verb && html`<${PayloadForm} key=${round} verb=${verb} value=${texts.payload} set=${set("payload")}
            problem=${refused ?? problem} field="spec.payload" />`
      }
    </div>
    <div class="comes">
      ${other && html`<${Changed} other=${other} take=${() => rebase(theirs, job.etag)} />`}
      <${Preview} said=${said} problem=${problem} busy=${busy} changed=${paths.length} />
      <label>Why? Others will ask later.<input value=${note} onInput=${(event) => setNote(event.target.value)} /></label>
      ${refused && html`<${Refused} problem=${refused} anew=${anew} />`}
      <div class="buttons"><button class="act" disabled=${saving || !paths.length || problem || other}>${
        saving ? "…" : "Save"
      }</button><button type="button" onClick=${close}>Keep as it is</button></div>
      <p class="says">To undo it: edit it again, by the values that this shows as old.</p>
    </div></form>`;
}

const helpOf = (policies, name) => policies.find((each) => each.name === name)?.help;
const zones = () => ["UTC", ...(Intl.supportedValuesOf?.("timeZone") ?? [])];

function Line({ path, label, help, hint, list, rows, given }) {
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

// What the change would do, asked anew while one types; what was said before stays until then. `body` null: nothing is.
// `etag`: of the job that it changes.
function usePreview(key, body, etag) {
  const [found, set] = useState({ said: null, problem: null, busy: false });
  const text = JSON.stringify(body);
  useEffect(() => {
    if (!body) {
      set({ said: null, problem: null, busy: false });
      return undefined;
    }
    const stop = new AbortController();
    set((before) => ({ ...before, busy: true }));
    const timer = setTimeout(async () => {
      try {
        const said = await post(`${keyPath(key)}/preview`, body, stop.signal);
        if (!stop.signal.aborted) set({ said, problem: null, busy: false });
      } catch (problem) {
        if (problem.name === "AbortError" || stop.signal.aborted) return;
        if (problem.violations === undefined) throw problem;
        set((before) => ({ said: before.said, problem, busy: false }));
      }
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text, etag]);
  return found;
}

function Preview({ said, problem, busy, changed }) {
  if (!changed) return html`<p class="says">Change something: what it comes to is said here.</p>`;
  const other = problem && (problem.violations.length ? null : problem);
  if (other) return html`<${Failed} problem=${other} said="It can't be saved so." />`;
  if (problem) return html`<p class="problem" role="status">It can't be saved so: see the fields that are marked.</p>`;
  if (!said) return html`<p class="says" role="status">Asking what it comes to …</p>`;
  const { explanation } = said;
  return html`<div class=${busy ? "aged" : ""} aria-busy=${busy}><p class="lead" role="status">It runs
    ${" "}${explanation.words}.</p>
    <${Remarks} of=${explanation.remarks} />
    <h3>What changes</h3>
    ${said.fields.length ? html`<ul class="plain">${said.fields.map(
      (each) => html`<li key=${each.field}><code>${each.field}</code>: ${each.old ? html`<s>${each.old}</s>` : "nothing"}
      → ${each.new ? html`<b>${each.new}</b>` : "nothing"}</li>`,
    )}</ul>` : html`<p>Nothing: it is so already.</p>`}
    <${Difference} of=${said.ticks} until=${said.until_at} />
    <h3>Next ticks</h3>
    ${explanation.ticks.length ? html`<${Ticks} said=${explanation} caption="Next ticks after the change" />`
      : html`<p>None: it runs when somebody triggers it.</p>`}</div>`;
}

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

// Somebody else has changed it since the editor was opened.
function Changed({ other, take }) {
  return html`<div class="problem" role="alert"><p><b>Somebody else has changed it meanwhile.</b></p>
    <ul class="plain">${other.theirs.map(
      (each) => html`<li key=${each.path}><code>${each.path}</code>: <s>${each.old || "nothing"}</s> →
      ${" "}<b>${each.new || "nothing"}</b>${other.both.includes(each.path) && " (you changed it, too: yours stays)"}</li>`,
    )}</ul>
    ${!other.theirs.length && html`<p>What you edit is as it was.</p>`}
    <button type="button" onClick=${take}>Go on from theirs, with my changes on top</button></div>`;
}

// A save that wasn't: where it was outdated, the job is read anew.
function Refused({ problem, anew }) {
  const outdated = problem.status === 412 || problem.reason === "ETAG_MISMATCH";
  return html`<${Failed} problem=${problem} said="It is not saved." />${
    outdated && html`<button type="button" onClick=${anew}>Go on from theirs, with my changes on top</button>`
  }`;
}

