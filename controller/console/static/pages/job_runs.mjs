// Running it by hand: once with a payload, or the ticks of a span anew.
import { html } from "../base.mjs";
import { get, keyPath, post } from "../api.mjs";
import { clockTime, viewerZone } from "../clock.mjs";
import { pausedBy } from "../actions.mjs";
import { ask } from "../doing.mjs";
import { PayloadForm } from "../payload_form.mjs";
import { Failed, State } from "../parts.mjs";
import { usePreview } from "../preview.mjs";
import { go } from "../router.mjs";
import { count, noted, number, quoted } from "../words.mjs";
import { localTime } from "./job_why.mjs";

const LISTED = 8;
const WHY = { name: "note", label: "Why? Others will ask later.", optional: true, hint: "the supplier sent it again" };
const DAY = 86_400_000;


// The verb is asked for first: what it takes makes the form.
export async function triggerJob(job) {
  const verb = job.queue ? null : await get(`${keyPath(job.key)}/verb`).catch((problem) => problem);
  const described = verb?.request !== undefined ? verb : { verb: job.verb, request: "Any", types: [], request_optional: true };
  ask({
    title: `Run ${job.key} now`,
    verb: "Run now",
    says: `${pausedBy(job)}It runs once more, as soon as a place is free. Its schedule stays as it is.${
      job.outputs_hidden ? " Your role doesn't show its own payload: leave this empty to use it." : ""
    }`,
    undo: "cancel the execution while it runs.",
    fields: [
      {
        name: "payload",
        value: job.payload ?? "",
        draw: (given) => html`<${PayloadForm} verb=${described} ...${given} />`,
      },
      WHY,
    ],
    command: (values) =>
      `cronring jobs trigger ${quoted(job.key)}` + (own(values, job) ? "" : ` --payload ${quoted(values.payload)}`) + noted(values),
    act: async (values) => {
      const body = { note: values.note, ...(own(values, job) ? {} : { payload: values.payload }) };
      const begun = await post(`${keyPath(job.key)}/trigger`, body);
      if (Number(begun.execution_id)) go(`/executions/${begun.execution_id}`);
      else return "It waits until it may run: the job's page shows it then.";
    },
  });
}

// Whether the run takes the job's own payload.
const own = (values, job) => !values.payload.trim() || values.payload === job.payload;

export const backfillJob = (job) =>
  ask({
    title: `Run past ticks of ${job.key}`,
    verb: "Run them",
    says: `${pausedBy(job)}The ticks of the span run one after the other, the oldest first${
      job.paused ? ", once it is resumed" : ""}. Its schedule goes on as it is.`,
    undo: "cancel what waits, by the panel “Waiting beside the schedule”. What ran, ran.",
    fields: [
      { name: "from", label: `From (${viewerZone})`, kind: "datetime-local", value: localTime(Date.now() - DAY).slice(0, 16) },
      { name: "until", label: `Until (${viewerZone})`, kind: "datetime-local", value: localTime(Date.now()).slice(0, 16) },
      { name: "again", label: "Also ticks that have completed", kind: "check", value: false },
      { name: "beside", label: "Beside its own runs, not between them", kind: "check", value: false },
      WHY,
    ],
    more: (values) => html`<${Preview} job=${job} values=${values} />`,
    command: (values) =>
      `cronring jobs backfill ${quoted(job.key)} --from ${instant(values.from)} --to ${instant(values.until)}` +
      (values.again ? " --again" : "") + (values.beside ? " --overlap allow" : "") + noted(values),
    act: async (values) => {
      const done = await post(`${keyPath(job.key)}/backfill`, { ...spanOf(values), note: values.note });
      if (!done.activation) return "There is no tick in this span: nothing runs.";
      return `${count(done.ticks, "tick")} of the span: those that don't run already ${job.paused ? "begin when it is resumed" : "begin now"}.`;
    },
  });

const instant = (text) => (Number.isNaN(Date.parse(text)) ? "" : new Date(text).toISOString());
const spanOf = (values) => ({
  from_at: instant(values.from),
  until_at: instant(values.until),
  again: values.again,
  beside: values.beside,
});

// What it would do, asked anew as one types.
function Preview({ job, values }) {
  const { from, until, again } = values;
  const asked = instant(from) && instant(until) ? { ...spanOf(values), dry_run: true } : null;
  const found = usePreview(`${keyPath(job.key)}/backfill`, asked);
  if (found.problem) return html`<${Failed} problem=${found.problem} said="It can't be done so." />`;
  if (!found.said) return html`<p class="preview says">Counting the ticks …</p>`;
  const ticks = found.said.first_ticks;
  if (!ticks.length) return html`<p class="preview"><b>No tick is in this span.</b> Nothing would run.</p>`;
  const done = ticks.filter((each) => each.completed).length;
  const all = Number(found.said.ticks);
  const of = all > ticks.length ? `of its first ${number(ticks.length)}, ` : "";
  const first = clockTime(Date.parse(ticks[0].tick));
  const last = clockTime(Date.parse(ticks.at(-1).tick));
  const span = all === 1 ? `at ${first}` : all > ticks.length ? `from ${first}` : `from ${first} to ${last}`;
  return html`<div class="preview" role="status"><p><b>${count(all, "tick")}</b>, ${span}; ${of}${number(done)} completed already
    ${done > 0 && (again ? ", and would run again" : ", and would be left out")}.</p>
    <ul class="plain">${ticks.slice(0, LISTED).map(
      (each) => html`<li key=${each.tick}>${clockTime(Date.parse(each.tick))} ${became(each, again)}</li>`,
    )}${ticks.length > LISTED && html`<li>and ${number(all - LISTED)} more</li>`}</ul></div>`;
}

const became = (each, again) => {
  if (!Number(each.execution_id)) return html`<${State} is="skipped" text="never ran" />, would run`;
  const state = html`<${State} is=${each.outcome || "running"} />`;
  return each.completed && !again ? html`${state}, left out` : html`${state}, would run`;
};
