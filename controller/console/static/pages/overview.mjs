// Is all well, and if not, what first?
import { html, useState } from "../base.mjs";
import { clockTime, duration, useNow } from "../clock.mjs";
import { useEvents } from "../live.mjs";
import { useQuery } from "../queries.mjs";
import { Answered, Empty, Facts, JobLink, Panel, RunLink, State, When } from "../parts.mjs";
import { useAt } from "../moment.mjs";
import { useOwners } from "../owners.mjs";
import { Ring } from "../ring.mjs";
import { groups, useVerdict } from "../verdict.mjs";
import { count, number } from "../words.mjs";
import { Coming } from "./coming.mjs";
import { LastHour } from "./lately.mjs";
import { Past } from "./past.mjs";
import { Lately } from "./timeline.mjs";

const LATEST = 12;

export function Overview({ health }) {
  const { at, iso } = useAt();
  const owners = useOwners();
  if (at !== null) return html`<h1 class="hidden">Overview</h1><${Past} at=${at} iso=${iso} />`;
  return html`<h1 class="hidden">Overview</h1>
    <${Wrong} health=${health} />
    <div class="columns">
      <${Next} due=${health.due} owners=${owners} />
      <${LastHour} />
      <${Members} cluster=${health.cluster} owners=${owners} />
      <${Paused} />
      <${Lately} />
      <${Latest} />
      <${Totals} />
    </div>
    <${Coming} more=${html`<a href="/upcoming">A week</a>`} />`;
}

function Wrong({ health }) {
  const { all } = useVerdict(health);
  const failing = groups(health.failing.data?.jobs ?? [], health.failures.data?.executions ?? []);
  const others = all.filter((each) => each.worse !== 2);
  if (!failing.length && !others.length) return null;
  return html`<${Panel} id="wrong" title="What is wrong">
    ${others.map((each) => html`<p class="finding"><${State} is="failed" text=${each.text} /> ${each.more}</p>`)}
    ${failing.map(
      (group) => html`<details key=${group.error} open=${failing.length < 4}>
      <summary><${State} is="failed" text=${group.error} /> in ${count(group.jobs.length, "job")}, since
        ${" "}${clockTime(group.since)}</summary>
      <p class="message">${group.message.slice(0, 400)}</p>
      <ul class="plain">${group.jobs.slice(0, 20).map(
        (job) => html`<li key=${job.key}><${JobLink} of=${job.key} />
        ${" "}${count(Math.max(1, job.failures), "tick")} in a row, last <${When} at=${job.last_ended_at} /></li>`,
      )}</ul>
      ${group.jobs.length > 20 && html`<p><a href="/jobs?q=outcome:unsuccessful&sort=failures">All of them</a></p>`}
    </details>`,
    )}<//>`;
}

function Next({ due, owners }) {
  const moment = useNow();
  const rows = due.data?.due ?? [];
  return html`<${Panel} id="next" title="Next" says="What runs next in the whole cluster."
      more=${html`<a href="/upcoming">More</a>`}>
    <${Answered} query=${due} empty=${!rows.length && html`<${Empty} command="cronring upcoming">Nothing is due within five minutes.<//>`}>
      <ol class="plain">${rows.slice(0, 10).map(
        (each) => html`<li key=${each.job + each.tick} class="pair" ...${owners.pointing(each.job)}>
        <${JobLink} of=${each.job} /><span class="digits">${
          Date.parse(each.run_at) <= moment
            ? html`<${State} is=${each.running ? "running" : "waiting"}
              text=${each.running ? "a run goes on" : "due"} />`
            : html`<${When} at=${each.run_at} />`
        }</span></li>`,
      )}</ol><//><//>`;
}

function Latest() {
  const [fresh, setFresh] = useState([]);
  const query = useQuery("/executions", { page_size: LATEST }, { every: 60_000 });
  useEvents(
    ["execution_started", "execution_ended"],
    (_, data) =>
      setFresh((before) =>
        [data.execution, ...before.filter((each) => each.id !== data.execution.id)].slice(0, LATEST),
      ),
    [],
  );
  const rows = merged(fresh, query.data?.executions ?? []).slice(0, LATEST);
  return html`<${Panel} id="latest" title="Latest runs" more=${html`<a href="/executions">All</a>`}>
    <${Answered} query=${query} empty=${
      !rows.length &&
      html`<${Empty} command="cronring runner yours.py">
        Nothing has run yet. A runner that hosts a module brings its jobs.<//>`
    }>
      <ol class="plain">${rows.map(
        (run) => html`<li key=${run.id} class="pair">
        <span><${State} is=${run.outcome || "running"} /> <${RunLink} of=${run.id}>${run.job}<//></span>
        <span class="digits">${run.outcome ? html`${duration(run.duration_ms)}, <${When} at=${run.ended_at} />` : html`<${When} at=${run.claimed_at} />`}</span>
      </li>`,
      )}</ol><//><//>`;
}

function merged(fresh, listed) {
  const ids = new Set(fresh.map((each) => each.id));
  return [...fresh, ...listed.filter((each) => !ids.has(each.id))].sort((a, b) => Number(b.id) - Number(a.id));
}

function Members({ cluster, owners }) {
  return html`<${Panel} id="members" title="Cluster" says="Which controller tries which share of the jobs."
      more=${html`<a href="/cluster">More</a>`}>
    <${Answered} query=${cluster}><${Ring} members=${cluster.data?.members ?? []}
        owners=${owners.found} of=${owners.job} />
      <p>${count((cluster.data?.members ?? []).filter((each) => each.status === "alive").length, "controller")},
        ${" "}${count((cluster.data?.runners ?? []).filter((each) => each.alive).length, "runner")} alive.</p><//><//>`;
}

function Totals() {
  const query = useQuery("/stats", null, { every: 15_000 });
  const said = query.data;
  return html`<${Panel} id="totals" title="Books" says="Of all time, as runs ended.">
    <${Answered} query=${query}>${
      said &&
      html`<${Facts} of=${[
        [
          "Jobs",
          html`<a href="/jobs">${count(
            Object.values(said.jobs).reduce((sum, each) => sum + Number(each), 0),
            "job",
          )}</a>`,
        ],
        ...Object.entries(said.jobs).map(([status, jobs]) => [
          html`<a href=${`/jobs?q=status:${status}`}><${State} is=${status} /></a>`,
          number(jobs),
        ]),
        ["Runs", number(said.executions)],
        said.success_rate !== undefined && ["Completed", `${(said.success_rate * 100).toFixed(2)} %`],
        said.average_lateness_ms !== undefined && ["Began late by", `${duration(said.average_lateness_ms)} on average`],
      ]} />`
    }<//><//>`;
}

const OLD_MS = 7 * 86_400_000; // a pause of which somebody may have forgotten

function Paused() {
  const moment = useNow();
  const query = useQuery(
    "/jobs",
    { "filter.statuses": "paused", page_size: 200 },
    { on: (kind, data) => kind === "job_removed" || kind === "job_changed" && (known.paused.has(data.job.key) || Boolean(data.job.paused)) },
  );
  const rows = [...(query.data?.jobs ?? [])].sort((a, b) => Date.parse(a.paused?.at) - Date.parse(b.paused?.at));
  known.paused = new Set(rows.map((job) => job.key));
  if (query.data && !rows.length) return null;
  const old = rows.filter((job) => moment - Date.parse(job.paused?.at) > OLD_MS).length;
  return html`<${Panel} id="paused" title="Paused" says="By whom, since when, and why. The oldest first.">
    <${Answered} query=${query}>
      ${old > 0 && html`<p><${State} is="late" text=${`${count(old, "pause")} older than a week`} /></p>`}
      <ul class="plain">${rows.slice(0, 10).map(
        (job) => html`<li key=${job.key}>
      <${JobLink} of=${job.key} /> <${When} at=${job.paused?.at} /> by ${job.paused?.by || "nobody named"},
      ${" "}${job.paused?.until ? html`until <${When} at=${job.paused.until} />` : "until somebody resumes it"}
      ${job.paused?.note && html`<span class="says">: ${job.paused.note}</span>`}</li>`,
      )}</ul>
      ${rows.length > 10 && html`<a href="/jobs?q=status:paused">All of them</a>`}<//><//>`;
}

const known = { paused: new Set() }; // a change of theirs changes the answer, whatever it was
