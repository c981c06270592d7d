// The editor: what a change comes to is said by the API while one types, and somebody else's change isn't overwritten.
import { html, useMemo, useState } from "../base.mjs";
import { get, keyPath, patch } from "../api.mjs";
import { PayloadForm } from "../payload_form.mjs";
import { usePreview } from "../preview.mjs";
import { useQuery } from "../queries.mjs";
import { Answered, Copied, Failed, Panel } from "../parts.mjs";
import { bodyOf, changedIn, meanwhile, onTop, textsOf } from "./job_draft.mjs";
import { faultsOf, Fields, Preview, Why } from "./job_form.mjs";

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
  const { said, problem, busy } = usePreview(`${keyPath(job.key)}/preview`, paths.length ? body : null, seen.etag);
  const theirs = useMemo(() => textsOf(job, policies), [job.etag]);
  const other = job.etag && job.etag !== seen.etag ? meanwhile(seen.texts, theirs, texts) : null;
  const set = (path) => (text) => setTexts((before) => ({ ...before, [path]: text }));
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
  const given = { texts, base: seen.texts, set, faults: faultsOf(refused, problem) };
  return html`<form class="editor" onSubmit=${save}>
    <div>
      <${Fields} given=${given} policies=${policies} open=${policies.some(({ name }) => name !== "timezone" && seen.texts[`policy.${name}`])} />
      ${
        job.outputs_hidden
          ? html`<p class="says">Its payload is hidden from your role, and stays as it is.</p>`
          : verb && html`<${PayloadForm} key=${round} verb=${verb} value=${texts.payload} set=${set("payload")}
            problem=${refused ?? problem} field="spec.payload" />`
      }
    </div>
    <div class="comes">
      ${other && html`<${Changed} other=${other} take=${() => rebase(theirs, job.etag)} />`}
      <${Preview} said=${said} problem=${problem} busy=${busy}
        idle=${!paths.length && "Change something: what it comes to is said here."} />
      <${Why} note=${note} set=${setNote} />
      ${refused && html`<${Refused} problem=${refused} anew=${anew} />`}
      <div class="buttons"><button class="act" disabled=${saving || !paths.length || problem || other}>${
        saving ? "…" : "Save"
      }</button><button type="button" onClick=${close}>Keep as it is</button></div>
      <p class="says">To undo it: edit it again, by the values that this shows as old.</p>
    </div></form>`;
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

