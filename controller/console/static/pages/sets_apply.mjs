// A file of jobs is applied: what each of them becomes, and its ticks, is shown first; exactly that is done then.
import { html } from "../base.mjs";
import { post, Problem } from "../api.mjs";
import { inPath, NOTE } from "../listing.mjs";
import { Failed } from "../parts.mjs";
import { usePreview } from "../preview.mjs";
import { count, number } from "../words.mjs";

const LISTED = 12;
const WEEK_HOURS = 168;
const SIGNS = { created: "+", adopted: "+", changed: "~", removed: "−", released: "−", left: "", refused: "✕" };

// `of`: the set; without a name it is a new one, and its name is asked for.
export function applyFile(of) {
  let would = null; // the etag of what is shown
  const at = (values) => (of.name ? of : values);
  return {
    word: of.name ? "Apply" : "Apply a file",
    title: of.name ? `Apply a file to ${of.name}` : "Apply a file",
    verb: "Apply it",
    says: html`The set's jobs become those of the file: JSON, as “Export” writes it, or lines of it. YAML and TOML are
      taken by <code>cronring apply FILE</code>.`,
    undo: "apply the file of before, or release the set: then its jobs go on as nobody's.",
    fields: [
      ...(of.name
        ? []
        : [
            { name: "name", label: "Set", hint: "billing-prod" },
            { name: "namespace", label: "Namespace", value: of.namespace },
          ]),
      { name: "file", draw: File },
      { name: "prune", label: "Remove jobs that the set owns and the file lacks (--prune)", kind: "check", value: false },
      { name: "adopt", label: "Take jobs that were made by hand, and that no set owns (--adopt)", kind: "check", value: false },
      NOTE,
    ],
    more: (values) => html`<${Would} of=${at(values)} values=${values} found=${(etag) => {
      would = etag;
    }} />`,
    act: async (values) => {
      const said = await post(pathOf(at(values)), { ...bodyOf(values), note: values.note, etag: would });
      if (!said.applied) throw new Problem(409, { detail: "What is refused is told above, and nothing was changed." });
    },
  };
}

const pathOf = (of) => `/sets${inPath(of.namespace || "default", of.name)}/apply`;
const bodyOf = ({ file, prune, adopt }) => ({ jobs: file?.jobs ?? [], prune, adopt, hours: WEEK_HOURS });

const File = ({ value, set }) => html`<div class="field"><label for="jobs-file">File</label>
  <input id="jobs-file" type="file" accept=".json,.ndjson" required onChange=${async (event) => {
    const [file] = event.target.files;
    set(file ? read(await file.text()) : "");
  }} />${value?.wrong && html`<p class="fault">${value.wrong}</p>`}
  ${value?.jobs && html`<p class="says">${count(value.jobs.length, "job")}.</p>`}</div>`;

// {jobs}, of a list, of {"jobs": list}, or of lines; or {wrong}.
function read(text) {
  try {
    const whole = JSON.parse(text);
    return { jobs: whole.jobs ?? [whole].flat() };
  } catch {
    const jobs = [];
    for (const [place, line] of text.split("\n").entries()) {
      if (!line.trim()) continue;
      try {
        jobs.push(JSON.parse(line));
      } catch (error) {
        return { wrong: `Line ${place + 1} is no JSON: ${error.message}` };
      }
    }
    return { jobs };
  }
}

function Would({ of, values, found }) {
  const ready = of.name && values.file?.jobs;
  const { said, problem, busy } = usePreview(pathOf(of), ready ? { ...bodyOf(values), dry_run: true } : null);
  found(said && !busy && !problem ? said.etag : "");
  if (!ready) return null;
  if (problem) return html`<${Failed} problem=${problem} said="It can't be applied so." />`;
  if (busy || !said) return html`<p class="preview says">Comparing …</p>`;
  return html`<div class="preview" role="status"><${Told} said=${said} /></div>`;
}

const CHANGES = ["created", "changed", "adopted", "removed", "released", "left", "refused", "unchanged"];

const Told = ({ said }) => html`<p><b>${CHANGES.filter((each) => said[each])
    .map((each) => `${number(said[each])} ${each}`)
    .join(", ") || "Nothing changes"}.</b></p>
  <ul class="plain">${said.jobs.slice(0, LISTED).map(
    (each) => html`<li key=${each.key}>${SIGNS[each.change]} <code>${each.key}</code> ${each.change}${
      each.ticks && `, ${number(each.ticks.before)} → ${count(each.ticks.after, "tick")} a week`
    }${each.refusal && `: ${each.refusal.problem}`}
      ${each.fields.map((field) => html`<div class="says">${field.field}: ${field.old || "nothing"} → ${field.new || "nothing"}</div>`)}
      ${each.by_hand && html`<div class="says">${each.by_hand.action} by hand, by ${each.by_hand.by}</div>`}</li>`,
  )}${said.jobs.length > LISTED && html`<li>and ${number(said.jobs.length - LISTED)} more</li>`}</ul>`;
