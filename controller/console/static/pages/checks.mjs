// Is every tick accounted for, and is the cluster well? What `cronring audit` and `cronring doctor` say.
import { html, useState } from "../base.mjs";
import { duration, now, utc } from "../clock.mjs";
import { Answered, Choice, Copied, Facts, JobLink, Panel, Rows, RunLink, State, Words } from "../parts.mjs";
import { useQuery } from "../queries.mjs";
import { useParameter } from "../router.mjs";
import { count, number, quoted, wordOf } from "../words.mjs";

const HOUR_MS = 3_600_000;
const SPANS = { "an hour": HOUR_MS, "a day": 24 * HOUR_MS, "a week": 168 * HOUR_MS, "all that is kept": 0 };
const WRONG = ["unaccounted", "duplicates", "early", "undue"]; // what must be 0
const HOW = ["on_time", "late", "caught_up", "backfilled"];
const ONCE = { every: 24 * HOUR_MS }; // it costs something: asked again by the button
const WORST_FIRST = ["problem", "unchecked", "warning"];

export const proofPath = (job) => `/checks?job=${encodeURIComponent(job)}`;

export function Checks({ session }) {
  return html`<h1>Checks</h1><${Proof} />${session.may("view", "*") && html`<${Doctor} />`}`;
}

function Proof() {
  const [span, setSpan] = useParameter("within", "a day");
  const [job, setJob] = useParameter("job");
  const [asked, ask] = useState(now);
  const back = SPANS[span] ?? SPANS["a day"];
  const since = back ? new Date(asked - back).toISOString() : undefined;
  return html`<${Panel} id="proof" title="Is every tick accounted for?"
      says="What was due is reckoned anew from the schedules, and held against the books.">
    <div class="tools"><${Choice} label="Within" value=${span} set=${setSpan} of=${Object.keys(SPANS)} />
      <${Words} label="Job. Empty: all." value=${job} set=${setJob} hint="billing.close_month" wide />
      <button onClick=${() => ask(now())}>Check again</button></div>
    <${Audited} key=${job} job=${job} since=${since} />
    <${Copied} text=${`cronring audit${back ? ` --since -${back / HOUR_MS}h` : ""}${job ? ` --job ${quoted(job)}` : ""}`} /><//>`;
}

function Audited({ job, since }) {
  const query = useQuery("/ledger/audit", { since, job, thorough: job ? true : undefined }, ONCE);
  return html`<${Answered} query=${query}>${query.data && html`<${Verdict} of=${query.data} />`}<//>`;
}

const parts = (of, names) =>
  names
    .filter((name) => Number(of[name] ?? 0))
    .map((name) => `${wordOf(name)} ${number(of[name])}`)
    .join(", ");

function Verdict({ of }) {
  const skipped = Object.values(of.skipped ?? {}).reduce((sum, ticks) => sum + Number(ticks), 0);
  const wrong = parts(of, WRONG);
  return html`<p class="lead"><${State} is=${wrong ? "failed" : "executed"}
      text=${wrong ? `Not as it must be: ${wrong}.` : `All ${count(of.ticks ?? 0, "tick")} of ${count(of.jobs ?? 0, "job")} are accounted for.`} />
      ${" "}<span class="says">As of ${utc(Date.parse(of.until))}.</span></p>
    ${of.remark && html`<p class="note">${of.remark}</p>`}
    <${Facts} of=${[
      ["Ran", `${number(of.executed ?? 0)}${Number(of.executed) ? ` (${parts(of, HOW)})` : ""}`],
      ["Skipped", `${number(skipped)}${skipped ? ` (${parts(of.skipped, Object.keys(of.skipped))})` : ""}`],
      ["Running", number(of.running ?? 0)],
      ["Wait", number(of.pending ?? 0)],
      ["Ended", parts(of.outcomes ?? {}, Object.keys(of.outcomes ?? {})) || "none"],
    ]} />
    ${of.findings?.length > 0 && html`<${Rows} caption="What is not as it must be" columns=${FOUND} rows=${of.findings} keyOf=${(each) => `${each.kind} ${each.job} ${each.tick}`} />`}`;
}

const FOUND = [
  { name: "What", of: (each) => html`<${State} is="failed" text=${wordOf(each.kind)} />` },
  { name: "Job", of: (each) => html`<${JobLink} of=${each.job} />` },
  { name: "Ticks", number: true, of: (each) => number(each.ticks ?? 1) },
  {
    name: "Says",
    of: (each) => html`${each.text} ${(each.execution_ids ?? []).map((id) => html`<${RunLink} of=${id} /> `)}`,
  },
  { name: "Look", of: (each) => each.look && html`<${Copied} text=${each.look} />` },
];

const CHECKED = [
  { name: "Check", of: (each) => each.check },
  { name: "Verdict", of: (each) => html`<${State} is=${each.verdict} />` },
  { name: "Seen", of: (each) => each.seen },
  { name: "What to do", of: (each) => each.advice },
];

function Doctor() {
  const base = useQuery("/doctor/database");
  const findings = base.data?.findings ?? [];
  const ill = WORST_FIRST.flatMap((verdict) => findings.filter((each) => each.verdict === verdict));
  const well = findings.filter((each) => each.verdict === "ok");
  const table = (caption, rows) =>
    html`<${Rows} caption=${caption} columns=${CHECKED} rows=${rows} keyOf=${(each) => `${each.check} ${each.seen}`} />`;
  return html`<${Panel} id="database" title="Is the database well?" says="As this controller reaches it.">
      <${Answered} query=${base}>${base.data && !ill.length && html`<p class="lead"><${State} is="executed" text="Nothing is wrong." /></p>`}
        ${ill.length > 0 && table("What is not well", ill)}
        <details><summary>${count(well.length, "check is", "checks are")} well</summary>${table("What is well", well)}</details><//><//>
    <${Controller} />`;
}

function Controller() {
  const query = useQuery("/doctor/controller", null, { on: (kind) => kind === "cluster_changed" });
  const said = query.data;
  const away = (said?.members ?? []).filter((each) => each.unreachable);
  const problems = [said?.not_ready, said?.certificate_problem, said?.issuer_problem, said?.secrets_problem].filter(Boolean);
  return html`<${Panel} id="controller" title="Is this controller well?" says="The one that answers this page.">
    <${Answered} query=${query}>${
      said &&
      html`<${Facts} of=${[
        ["Controller", `${said.id}, version ${said.version}`],
        [
          "May claim",
          problems.length
            ? html`<${State} is="failed" text=${problems.join("; ")} />`
            : html`<${State} is=${said.in_drill ? "draining" : "executed"} text=${said.in_drill ? "no: it is in a drill" : "yes"} />`,
        ],
        ["Lease", said.lease_valid ? `${duration(Number(said.lease_left_ms))} left, held for ${duration(Number(said.lease_held_ms))}` : "none"],
        ["Clock", said.database_time ? `PostgreSQL's, known to ${number(said.clock_error_us)} µs` : "PostgreSQL's isn't known"],
        ["Ring", `${said.ring_digest} (the same on all that agree)`],
        [
          "Others",
          away.length
            ? html`<${State} is="failed" text=${away.map((each) => `${each.id}: ${each.unreachable}`).join("; ")} />`
            : "all are reached",
        ],
      ]} />`
    }<//>
    <p class="says">All controllers, and whether they agree: <${Copied} text="cronring doctor" /></p><//>`;
}
