// Will it run, did it run, and why not?
import { html } from "../base.mjs";
import { keyPath, remove } from "../api.mjs";
import { cancelJob, deleteJob, pauseJob, restoreJob, resumeJob, skipNext } from "../actions.mjs";
import { duration, inZone, viewerZone } from "../clock.mjs";
import { ask } from "../doing.mjs";
import { useQuery } from "../queries.mjs";
import { useAt } from "../moment.mjs";
import { go, useParameter } from "../router.mjs";
import { Answered, Facts, Panel, RunLink, State, When } from "../parts.mjs";
import { count, firstLine, number, quoted, wordOf } from "../words.mjs";
import { Actions, Settings, Versions } from "./job_about.mjs";
import { Days } from "./job_days.mjs";
import { Editor, elsewhere, ofSet } from "./job_edit.mjs";
import { History } from "./job_history.mjs";
import { Owners } from "./job_owners.mjs";
import { backfillJob, triggerJob } from "./job_runs.mjs";
import { JobThen } from "./job_then.mjs";
import { NextTicks, YearOfDays } from "./job_ticks.mjs";
import { Timeline } from "./job_timeline.mjs";
import { Why } from "./job_why.mjs";

const FIGURES_LEAST_MS = 5_000;

export function JobPage(props) {
  const { at, iso } = useAt();
  return at === null ? html`<${JobNow} ...${props} />` : html`<${JobThen} name=${props.name} at=${at} iso=${iso} />`;
}

function JobNow({ name, session, health }) {
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
        ${job.paused.until && html`, until <${When} at=${job.paused.until} zone=${job.timezone} clock />`}</p>`
      }
      ${
        job.cancelled &&
        html`<p class="note">Cancelled <${When} at=${job.cancelled.at} /> by ${job.cancelled.by || "nobody named"}${
          job.cancelled.note && `: ${job.cancelled.note}`
        }. It has no tick until it is restored.</p>`
      }
      ${
        job.orphaned &&
        html`<p class="note">Orphaned <${When} at=${job.orphaned.at} />: no active version of its module has its verb.
        It goes on once one has.</p>`
      }
      ${job.failures > 0 && job.last_outcome !== "completed" && html`<${Failing} job=${job} failures=${health.failures.data?.executions ?? []} />`}
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
  if (job.cancelled)
    return html`<div class="buttons"><button class="act" onClick=${() => restoreJob(job)}>Restore</button>
      ${job.source === "api" && html`<button onClick=${() => deleteJob(job)}>Delete</button>`}</div>`;
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
    <button onClick=${() => cancelJob(job)}>Cancel job</button>
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
