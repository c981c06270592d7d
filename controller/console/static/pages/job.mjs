// Will it run, did it run, and why not?
import { html, useState } from "../base.mjs";
import { keyPath, remove } from "../api.mjs";
import { deleteJob, pauseJob, resumeJob, skipNext } from "../actions.mjs";
import { duration, inZone, viewerZone } from "../clock.mjs";
import { ask } from "../doing.mjs";
import { useQuery } from "../queries.mjs";
import { go, useParameter } from "../router.mjs";
import { Answered, Empty, Facts, Panel, Rows, RunLink, State, When } from "../parts.mjs";
import { count, firstLine, number, quoted, wordOf } from "../words.mjs";
import { Actions, Settings, Versions } from "./job_about.mjs";
import { Days } from "./job_days.mjs";
import { Editor, elsewhere, ofSet } from "./job_edit.mjs";
import { Owners } from "./job_owners.mjs";
import { backfillJob, triggerJob } from "./job_runs.mjs";
import { NextTicks, YearOfDays } from "./job_ticks.mjs";
import { Timeline } from "./job_timeline.mjs";
import { Why } from "./job_why.mjs";

const RUNS = 25;
const FIGURES_LEAST_MS = 5_000;

export function JobPage({ name, session, health }) {
  const mine = (kind, data) => (data.job?.key ?? data.execution?.job) === name;
  const query = useQuery(keyPath(name), null, { on: mine });
  const schedule = useQuery(`${keyPath(name)}/schedule`, { count: 1 });
  const [why, setWhy] = useParameter("why");
  const [editing, setEditing] = useParameter("edit");
  const job = query.data;
  const may = job && session.may("operate", job.namespace);
  const often = schedule.data?.per_day.average ?? (schedule.problem ? 24 : null);
  return html`<h1><span class="key">${name}</span> ${job && html`<${State} is=${job.status} />`}</h1>
    <${Answered} query=${query}>${
      job &&
      html`
      <p class="lead">${job.schedule_words}${job.timezone === "UTC" || job.schedule_words.includes(job.timezone) ? "" : `, in ${job.timezone}`}.
        ${" "}${next(job)}</p>
      ${
        job.paused &&
        html`<p class="note">Paused <${When}
          at=${job.paused.at} /> by ${job.paused.by || "nobody named"}${job.paused.note && `: ${job.paused.note}`}
        ${job.paused.until && html`, until <${When} at=${job.paused.until} zone=${job.timezone} />`}</p>`
      }
      ${job.failures > 0 && html`<${Failing} job=${job} failures=${health.failures.data?.executions ?? []} />`}
      ${may && html`<${Deeds} job=${job} edit=${() => setEditing("yes")} />`}`
    }<//>
    ${may && editing && !elsewhere(job) && html`${ofSet(job)}<${Editor} job=${job} again=${query.again} close=${() => setEditing("")} />`}
    ${may && editing && elsewhere(job) && html`<div class="note">${elsewhere(job)}</div>`}
    ${
      often === null
        ? html`<${Panel} id="timeline" title="What the books have"><${Answered} query=${schedule} /><//>`
        : html`<${Timeline} name=${name} job=${job} mine=${mine} often=${often} why=${why} ask=${setWhy} />`
    }
    <div class="columns">
      <${Why} name=${name} mine=${mine} at=${why} ask=${setWhy} />
      <${NextTicks} name=${name} job=${job} mine=${mine} />
      <${Days} name=${name} mine=${mine} show=${showDay} />
      <${Figures} name=${name} mine=${mine} />
      <${Owners} name=${name} cluster=${health.cluster} session=${session} />
      <${Settings} job=${job} query=${query} />
      <${Waiting} name=${name} mine=${mine} may=${may} />
      <${Versions} job=${job} name=${name} />
      <${Actions} name=${name} mine=${mine} />
    </div>
    <${YearOfDays} name=${name} />
    <${History} name=${name} mine=${mine} />`;
}

// What one came for, most often. `failures`: of all jobs, the latest first.
function Failing({ job, failures }) {
  const run = failures.find((each) => each.job === job.key);
  return html`<p class="problem"><${State} is="failed" text=${`${count(job.failures, "tick")} in a row without success`} />.
    ${run && html` The last one <${RunLink} of=${run.id}>${wordOf(run.outcome)}<//> <${When} at=${run.ended_at} />${
      run.error_type && `: ${run.error_type}. ${firstLine(run.error_message)}`
    }.`}
    ${job.last_success && html` The last success was <${When} at=${job.last_success} zone=${job.timezone} />.`}</p>`;
}

// A day of the charts, in the timeline.
function showDay(row) {
  const query = new URLSearchParams(location.search);
  query.set("span", "a day");
  if (Date.parse(row.until_at) < Date.now()) query.set("until", row.until_at);
  else query.delete("until");
  go(`${location.pathname}?${query}`, true);
  document.querySelector("#timeline")?.scrollIntoView({ block: "start" });
}

const next = (job) =>
  job.next_execution
    ? html`Next <${When} at=${job.next_execution}
      zone=${job.timezone} /> (${inZone(Date.parse(job.next_execution), viewerZone)}).`
    : "No next tick.";

function Deeds({ job, edit }) {
  const paused = job.status === "paused";
  return html`<div class="buttons">
    <button class="act" data-key="t" onClick=${() => triggerJob(job)}>Run now</button>
    ${
      paused
        ? html`<button data-key="p" onClick=${() => resumeJob(job)}>Resume</button>`
        : html`<button data-key="p" onClick=${() => pauseJob(job)}>Pause</button>`
    }
    ${job.next_tick && html`<button onClick=${() => skipNext(job)}>Skip next tick</button>`}
    ${job.schedule !== "manual" && html`<button onClick=${() => backfillJob(job)}>Backfill</button>`}
    <button onClick=${edit}>Edit</button>
    ${job.source === "api" && html`<button onClick=${() => deleteJob(job)}>Delete</button>`}
  </div>`;
}

function Figures({ name, mine }) {
  const query = useQuery(`${keyPath(name)}/stats`, null, { on: mine, least: FIGURES_LEAST_MS });
  const said = query.data;
  const spread = (of) => (of ? `${duration(of.p50_ms)} · ${duration(of.p95_ms)} · ${duration(of.p99_ms)}` : "–");
  return html`<${Panel} id="figures" title="Figures"
    says="Of all its runs that ended: half, 95 and 99 of 100 are within.">
    <${Answered} query=${query}>${
      said &&
      html`<${Facts} of=${[
        ["Runs", number(said.executions)],
        said.success_rate !== undefined && ["Completed", `${(said.success_rate * 100).toFixed(2)} %`],
        ["Took", spread(said.duration)],
        ["Began late by", spread(said.lateness)],
        ...Object.entries(said.outcomes)
          .filter(([, runs]) => Number(runs))
          .map(([outcome, runs]) => [html`<${State} is=${outcome} />`, number(runs)]),
      ]} />`
    }<//><//>`;
}

function Waiting({ name, mine, may }) {
  const query = useQuery(`${keyPath(name)}/activations`, null, { on: mine, least: 2_000 });
  const rows = query.data?.activations ?? [];
  if (!rows.length) return null;
  return html`<${Panel} id="waiting" title="Waiting beside the schedule"><ul class="plain">${rows.map(
    (each) => html`<li key=${each.id}>
    <${State} is="waiting" text=${wordOf(each.trigger)} /> <${When} at=${each.run_at} />
    ${Number(each.ticks_left) > 0 && `, ${count(each.ticks_left, "tick")} left`}
    ${may && html` <button class="small" onClick=${() => forget(name, each)}>Cancel it</button>`}</li>`,
  )}</ul><//>`;
}

const forget = (name, each) =>
  ask({
    title: `Cancel what waits: ${wordOf(each.trigger)}`,
    verb: "Cancel it",
    says: "It doesn't run. What of it runs now goes on to its end.",
    undo: "begin it again.",
    command: () => `cronring jobs activations ${quoted(name)} --cancel ${each.id}`,
    act: () => remove(`${keyPath(name)}/activations/${each.id}`),
  });

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
  return html`<${Panel} id="history" title="History" says="Its runs, the newest first.">
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
