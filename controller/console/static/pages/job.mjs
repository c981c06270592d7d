// Will it run, did it run, and why not?
import { html, useState } from "../base.mjs";
import { keyPath } from "../api.mjs";
import { deleteJob, pauseJob, resumeJob, skipNext, triggerJob } from "../actions.mjs";
import { Bars, useBooks } from "../books.mjs";
import { duration, inZone, viewerZone } from "../clock.mjs";
import { useQuery } from "../queries.mjs";
import { useParameter } from "../router.mjs";
import { Answered, Copied, Empty, Facts, Panel, Rows, RunLink, State, When } from "../parts.mjs";
import { Ring } from "../ring.mjs";
import { count, quoted, wordOf } from "../words.mjs";
import { go } from "../router.mjs";

const RUNS = 100;
const BARS = 100;

export function JobPage({ name, session, health }) {
  const mine = (kind, data) => (data.job?.key ?? data.execution?.job) === name;
  const query = useQuery(keyPath(name), null, { on: mine });
  const job = query.data;
  return html`<h1><span class="key">${name}</span> ${job && html`<${State} is=${job.status} />`}</h1>
    <${Answered} query=${query}>${
      job &&
      html`
      <p class="lead">${job.schedule_words}${job.timezone !== "UTC" ? `, in ${job.timezone}` : ""}.
        ${" "}${next(job)}</p>
      ${
        job.paused &&
        html`<p class="note">Paused <${When}
          at=${job.paused.at} /> by ${job.paused.by || "nobody named"}${job.paused.note && `: ${job.paused.note}`}
        ${job.paused.until && html`, until <${When} at=${job.paused.until} zone=${job.timezone} />`}</p>`
      }
      <${Deeds} job=${job} session=${session} />`
    }<//>
    <div class="columns">
      <${Why} name=${name} job=${job} mine=${mine} />
      <${Settings} job=${job} query=${query} />
      <${Owners} name=${name} cluster=${health.cluster} />
      <${Figures} name=${name} mine=${mine} />
      <${Waiting} name=${name} mine=${mine} />
    </div>
    <${History} name=${name} mine=${mine} />`;
}

const next = (job) =>
  job.next_execution
    ? html`Next <${When} at=${job.next_execution}
      zone=${job.timezone} /> (${inZone(Date.parse(job.next_execution), viewerZone)}).`
    : "No next tick.";

function Deeds({ job, session }) {
  if (!session.may("operate", job.namespace)) return null;
  const paused = job.status === "paused";
  return html`<div class="buttons">
    <button class="act" data-key="t" onClick=${() => triggerJob(job)}>Run now</button>
    ${
      paused
        ? html`<button data-key="p" onClick=${() => resumeJob(job)}>Resume</button>`
        : html`<button data-key="p" onClick=${() => pauseJob(job)}>Pause</button>`
    }
    ${job.next_tick && html`<button onClick=${() => skipNext(job)}>Skip next tick</button>`}
    ${job.source === "api" && html`<button onClick=${() => deleteJob(job)}>Delete</button>`}
  </div>`;
}

// "Why did it not run at 02:30?": an instant on the viewer's clock, or a click on a bar of the history.
function Why({ name, mine }) {
  const [at, setAt] = useParameter("why");
  const query = useQuery(`${keyPath(name)}/why`, { at }, { on: mine, every: 10_000 });
  const said = query.data;
  return html`<${Panel} id="why" title="Why?" says="Of the latest tick, or of the time that you name.">
    <form class="tools" onSubmit=${(event) => {
      event.preventDefault();
      ask(event.target.elements.at.value, setAt);
    }}>
      <label>At (${viewerZone}) <input type="datetime-local" name="at" step="1"
        value=${at ? local(Date.parse(at)) : ""} /></label>
      <button>Ask</button>${at && html`<button type="button" onClick=${() => setAt("")}>Latest</button>`}</form>
    <${Answered} query=${query}>${
      said &&
      html`<p><${State} is=${said.attempts.at(-1)?.outcome || said.verdict} /></p>
      <ul class="sentences">${said.sentences.map((each) => html`<li>${each}</li>`)}</ul>
      ${said.attempts.map((run) => html`<p>Attempt ${run.attempt}: <${RunLink} of=${run.id}><${State}
        is=${run.outcome || "running"} /><//></p>`)}
      <div class="buttons">
        ${said.previous_tick && html`<button class="small"
          onClick=${() => setAt(said.previous_tick)}>The tick before</button>`}
        ${said.following_tick && html`<button class="small"
          onClick=${() => setAt(said.following_tick)}>The tick after</button>`}</div>
      <${Copied} text=${`cronring why ${quoted(name)}${at ? ` --at ${at}` : ""}`} />`
    }<//><//>`;
}

const ask = (text, setAt) => setAt(text ? new Date(text).toISOString() : "");

const local = (at) => {
  const date = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return date.toISOString().slice(0, 19);
};

function Settings({ job, query }) {
  return html`<${Panel} id="settings" title="Settings"><${Answered} query=${query}>${
    job &&
    html`<${Facts} of=${[
      ["Schedule", html`<code>${job.schedule}</code>`],
      ["Zone", job.timezone],
      ["Made by", job.source === "annotation" ? html`its module, <code>${job.deployment}</code>` : "hand (API)"],
      ["Timeout", duration(Number(job.timeout_ms))],
      Object.keys(job.labels).length > 0 && [
        "Labels",
        Object.entries(job.labels).map(
          ([label, value]) => html`<a class="label"
      href=${`/jobs?q=${encodeURIComponent(`label:${label}=${value}`)}`}>${label}=${value}</a> `,
        ),
      ],
      ...Object.entries(job.policy ?? {})
        .filter(([, value]) => value !== "" && value !== null && value !== false)
        .map(([name, value]) => [
          wordOf(name),
          html`<code>${typeof value === "object" ? JSON.stringify(value) : String(value)}</code>`,
        ]),
      job.template && ["Template", job.template],
      [
        "Payload",
        job.outputs_hidden
          ? "hidden: your role doesn't show payloads"
          : job.payload
            ? html`<code>${job.payload}</code>`
            : "none",
      ],
      job.last_success && ["Last success", html`<${When} at=${job.last_success} zone=${job.timezone} />`],
      job.skipped.length > 0 && [
        "Skipped so far",
        job.skipped.map(
          (each) => html`<${State} is="skipped"
      text=${`${each.reason} ${Number(each.ticks).toLocaleString("en")}`} /> `,
        ),
      ],
    ]} />`
  }<//><//>`;
}

function Owners({ name, cluster }) {
  const query = useQuery(`${keyPath(name)}/owners`, null, { on: (kind) => kind === "cluster_changed" });
  return html`<${Panel} id="owners" title="Who runs it"
    says="The first tries each tick; the backup does if the first is silent.">
    <${Answered} query=${query}>${
      query.data &&
      html`<${Facts} of=${[
        ["First", query.data.primary],
        ["Backup", query.data.backup],
        ["Slot", query.data.slot],
      ]} />
      <${Ring} members=${cluster.data?.members ?? []} owners=${query.data} />`
    }<//><//>`;
}

function Figures({ name, mine }) {
  const query = useQuery(`${keyPath(name)}/stats`, null, { on: mine });
  const said = query.data;
  const spread = (of) => (of ? `${duration(of.p50_ms)} · ${duration(of.p95_ms)} · ${duration(of.p99_ms)}` : "–");
  return html`<${Panel} id="figures" title="Figures"
    says="Of all its runs that ended: half, 95 and 99 of 100 are within.">
    <${Answered} query=${query}>${
      said &&
      html`<${Facts} of=${[
        ["Runs", Number(said.executions).toLocaleString("en")],
        said.success_rate !== undefined && ["Completed", `${(said.success_rate * 100).toFixed(2)} %`],
        ["Took", spread(said.duration)],
        ["Began late by", spread(said.lateness)],
        ...Object.entries(said.outcomes)
          .filter(([, number]) => Number(number))
          .map(([outcome, number]) => [html`<${State} is=${outcome} />`, Number(number).toLocaleString("en")]),
      ]} />`
    }<//><//>`;
}

function Waiting({ name, mine }) {
  const query = useQuery(`${keyPath(name)}/activations`, null, { on: mine });
  const rows = query.data?.activations ?? [];
  if (!rows.length) return null;
  return html`<${Panel} id="waiting" title="Waiting beside the schedule"><ul class="plain">${rows.map(
    (each) => html`<li key=${each.id}>
    <${State} is="waiting" text=${wordOf(each.trigger)} /> <${When} at=${each.run_at} />
    ${Number(each.ticks_left) > 0 && `, ${count(each.ticks_left, "tick")} left`}</li>`,
  )}</ul><//>`;
}

const COLUMNS = [
  { name: "Run", of: (run) => html`<${RunLink} of=${run.id} />` },
  { name: "Outcome", of: (run) => html`<${State} is=${run.outcome || "running"} />` },
  { name: "Tick", of: (run) => html`<${When} at=${run.tick} clock />` },
  { name: "Why", of: (run) => wordOf(run.trigger) + (run.attempt > 1 ? `, attempt ${run.attempt}` : "") },
  { name: "Late by", number: true, of: (run) => duration(run.lateness_ms) },
  { name: "Took", number: true, of: (run) => (run.outcome ? duration(run.duration_ms) : "…") },
  { name: "Error", of: (run) => (run.error_type ? `${run.error_type}: ${run.error_message.slice(0, 120)}` : "") },
];

function History({ name, mine }) {
  const [token, setToken] = useState("");
  const query = useQuery("/executions", { "filter.job": name, page_size: RUNS, page_token: token }, { on: mine });
  const rows = query.data?.executions ?? [];
  const { books } = useBooks([name], BARS, { on: mine });
  return html`<${Panel} id="history" title="History"
    says="The newest on the right. A bar's height is how long a run took; ∅ didn't run, and says why.">
    <${Bars} job=${name} entries=${books.get(name) ?? []} />
    <${Answered} query=${query} empty=${
      query.data &&
      !rows.length &&
      html`<${Empty} command=${`cronring jobs trigger ${quoted(name)}`}>
        It has not run yet.<//>`
    }>
      <${Rows} caption="Runs" columns=${COLUMNS} rows=${rows} keyOf=${(run) => run.id}
        open=${(run) => go(`/executions/${run.id}`)} />
      <div class="buttons">${token && html`<button onClick=${() => setToken("")}>Newest</button>`}
        ${query.data?.next_page_token && html`<button
          onClick=${() => setToken(query.data.next_page_token)}>Older</button>`}</div><//><//>`;
}
