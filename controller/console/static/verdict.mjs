// One verdict in words, worst first. It is drawn on top of every page, from what one place of this tab knows.
import { html, useMemo } from "./base.mjs";
import { clockTime, duration, setClock, useNow, utc } from "./clock.mjs";
import { useSignal } from "./live.mjs";
import { useQuery } from "./queries.mjs";
import { JobLink } from "./parts.mjs";
import { useForecast } from "./strip.mjs";
import { count, firstLine } from "./words.mjs";

const OVERDUE_MS = 10_000; // what the audit calls late
const MANY = 200;
const DAY_MS = 86_400_000;
const SOON_MS = 3_600_000; // what is due later may have its runner by then
const OLD = html`What is grey is as it was. The page asks again by itself; <code>cronring doctor</code> says which
  controllers are well.`;

const ENDS = (kind, data) =>
  kind === "cluster_changed" || (kind === "execution_ended" && data.execution.outcome !== "completed");
const JOBS = (kind, data) =>
  kind === "job_removed" ||
  (kind === "job_changed" && (data.job.failures > 0 || data.job.last_outcome !== "completed" || data.job.paused));

// Everything that the verdict is made of: {failing, failures, cluster, due, forecast}, as `useQuery` gives them.
export function useHealth() {
  const failing = useQuery(
    "/jobs",
    { "filter.outcomes": "unsuccessful", sort: "failures", page_size: MANY },
    { on: anyJob },
  );
  const failures = useQuery("/executions", { "filter.outcomes": "unsuccessful", page_size: MANY }, { on: ENDS });
  const cluster = useQuery("/cluster", null, { on: (kind) => kind === "cluster_changed", every: 10_000 });
  const due = useQuery("/due", { limit: 20 }, { every: 5_000 });
  const forecast = useForecast(DAY_MS);
  if (cluster.data) setClock(cluster.data.database_time, cluster.at);
  return { failing, failures, cluster, due, forecast };
}

const known = new Set(); // jobs that fail: the end of a run of theirs changes the answer, whatever it was
const anyJob = (kind, data) => JOBS(kind, data) || (kind === "job_changed" && known.has(data.job.key));

// Groups of failing jobs that have the same type of error, the largest first: {error, jobs, since}.
export function groups(failing, failures) {
  const of = Map.groupBy(failures, (run) => run.job);
  const found = new Map();
  for (const job of failing) {
    const runs = of.get(job.key) ?? [];
    const run = runs[0];
    const error = run?.error_type || job.last_outcome.replaceAll("_", " ");
    const group = found.get(error) ?? { error, message: run?.error_message ?? "", jobs: [], since: Infinity };
    group.jobs.push(job);
    group.since = Math.min(group.since, failsSince(job, runs));
    found.set(error, group);
  }
  return [...found.values()].sort((a, b) => b.jobs.length - a.jobs.length);
}

// Since the first of its failures in a row. `runs`: the latest that failed, the latest first; there may have been more.
function failsSince(job, runs) {
  const succeeded = Date.parse(job.last_success);
  const inARow = runs.filter((run) => !(Date.parse(run.tick) <= succeeded));
  if (inARow.length < job.failures && succeeded) return succeeded;
  return Math.min(...(inARow.length ? inARow.map((run) => Date.parse(run.ended_at)) : [Date.parse(job.last_ended_at)]));
}

// [{worse, text, more}], the worst first. `worse`: 3 something is broken, 2 something fails, 1 look at it one day.
export function findings(health, signal, moment) {
  const found = [];
  const { failing, failures, cluster, due, forecast } = health;
  const away = [cluster, failing, failures, due].find((each) => each.problem?.away);
  if (away) found.push({ worse: 4, text: away.problem.message, more: OLD });
  else if (signal.name === "lost") {
    found.push({
      worse: 4,
      text: `No signal since ${clockTime(signal.since)}`,
      more: OLD,
    });
  }
  for (const member of cluster.data?.members ?? []) {
    if (member.status === "dead" || member.status === "suspect") {
      found.push({ worse: 3, text: `Controller ${member.id} is ${member.status}`, more: "Others take over its jobs." });
    }
  }
  const silent = (cluster.data?.runners ?? []).filter((each) => !each.alive);
  if (cluster.data && silent.length === cluster.data.runners.length) {
    found.push({
      worse: 3,
      text: "No runner is connected",
      more: "Ticks wait, and are skipped as no_runner after the grace.",
    });
  }
  for (const over of forecast.data?.overloads ?? []) {
    if (over.reason !== "no_runner" || silent.length === cluster.data?.runners.length) continue;
    found.push({
      worse: Date.parse(over.at) - moment < SOON_MS ? 3 : 1,
      text: `No runner hosts ${over.module}`,
      more: html`Its ticks are skipped as no_runner after the grace. Start a runner with its file, or make another
        version active: <a href=${`/deployments?module=${encodeURIComponent(over.module.split("/").pop())}`}>its versions</a>.`,
    });
  }
  const overdue = (due.data?.due ?? []).filter(
    (each) => !each.running && moment - Date.parse(each.run_at) > OVERDUE_MS,
  );
  if (overdue.length) {
    const worst = Math.max(...overdue.map((each) => moment - Date.parse(each.run_at)));
    found.push({
      worse: 3,
      text: `${count(overdue.length, "tick")} overdue, by ${duration(worst)} at most`,
      more: html`The first is of <${JobLink} of=${overdue[0].job} />.`,
    });
  }
  const jobs = failing.data?.jobs ?? [];
  known.clear();
  for (const job of jobs) known.add(job.key);
  if (jobs.length)
    found.push({ worse: 2, ...failed(jobs, groups(jobs, failures.data?.executions ?? []), failing.data) });
  return found.sort((a, b) => b.worse - a.worse);
}

function failed(jobs, grouped, answer) {
  const modules = new Set(jobs.map((job) => `${job.namespace}/${job.module}`));
  const since = Math.min(...grouped.map((group) => group.since));
  const where = modules.size === 1 && jobs.length > 1 ? `, all in ${jobs[0].module}` : "";
  const cause = grouped.length === 1 && jobs.length > 1 ? `, likely one cause: ${grouped[0].error}` : "";
  const more = answer.next_page_token ? "more than " : "";
  const fail = jobs.length === 1 ? `${jobs[0].key} fails` : `${more}${count(jobs.length, "job")} fail`;
  return {
    text: `${fail} since ${clockTime(since)}${where}${cause}`,
    more: firstLine(grouped[0].message),
  };
}

export function useVerdict(health) {
  const signal = useSignal();
  const moment = useNow();
  const all = useMemo(
    () => findings(health, signal, moment),
    [health.failing, health.failures, health.cluster, health.due, health.forecast, signal, Math.floor(moment / 1_000)],
  );
  const ready = health.cluster.data && health.failing.data && health.due.data;
  return { all, ready, signal };
}

export function Verdict({ health }) {
  const { all, ready, signal } = useVerdict(health);
  if (!all.length && !ready) return html`<div class="verdict" role="status">Looking …</div>`;
  const worst = all[0];
  const hue = !worst ? "ok" : worst.worse > 2 ? "failed" : "late";
  const shape = !worst ? "●" : worst.worse > 2 ? "✕" : "◷";
  return html`<div class=${`verdict ${hue}`} role="status" aria-live="polite">
    <span class="shape" aria-hidden="true">${shape}</span>
    <strong>${worst ? worst.text : "All well"}</strong>
    <span class="more">${worst ? worst.more : ""}
      ${all.length > 1 ? ` And ${all.length - 1} more.` : ""}</span>
    <${Signal} signal=${signal} /></div>`;
}

function Signal({ signal }) {
  const said = { live: "live", lost: `no signal since ${clockTime(signal.since)}`, connecting: "connecting …" };
  const title = `since ${utc(signal.since)}${signal.leads ? "; this tab has the stream" : ""}`;
  return html`<span class=${`signal ${signal.name}`} title=${title}>${said[signal.name]}</span>`;
}
