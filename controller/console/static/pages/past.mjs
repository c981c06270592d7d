// How did it stand at that instant?
import { html } from "../base.mjs";
import { clockTime, duration, inZone, viewerZone } from "../clock.mjs";
import { useOwners } from "../owners.mjs";
import { Answered, Empty, JobLink, Panel, Rows, RunLink, State, When } from "../parts.mjs";
import { useQuery } from "../queries.mjs";
import { Ring } from "../ring.mjs";
import { CopyMarkdown, Entries, useTimeline } from "../timeline.mjs";
import { count } from "../words.mjs";

const BEFORE_MS = 3_600_000;
const AFTER_MS = 600_000;

// What became of a life: it goes on, or how it ended.
const ended = (until, departed) =>
  until
    ? html`<${State} is=${departed ? "left" : "dead"} text=${departed ? "left" : "lost"} /> <${When} at=${until} clock />`
    : html`<${State} is="alive" text="still there" />`;

const MEMBERS = [
  { name: "Controller", of: (each) => each.id },
  { name: "Share", number: true, of: (each) => `${(each.share * 100).toFixed(1)} %` },
  { name: "Lease since", of: (each) => html`<${When} at=${each.held_since} clock />` },
  { name: "And then", of: (each) => ended(each.held_until, each.departed) },
  { name: "gRPC", of: (each) => each.grpc_address },
];

const RUNNERS = [
  { name: "Runner", of: (each) => each.id },
  { name: "Machine", of: (each) => each.hostname },
  { name: "Hosted", of: (each) => each.deployments.join(" ") },
  { name: "Seen since", of: (each) => html`<${When} at=${each.seen_since} clock />` },
  { name: "And then", of: (each) => ended(each.seen_until, each.departed) },
];

const runs = (owners) => [
  { name: "Run", of: (run) => html`<${RunLink} of=${run.id} />` },
  { name: "Job", of: (run) => html`<span ...${owners.pointing(run.job)}><${JobLink} of=${run.job} /></span>` },
  { name: "Claimed", of: (run) => html`<${When} at=${run.claimed_at} clock />` },
  { name: "By", of: (run) => run.controller },
  { name: "On", of: (run) => run.runner || "a queue" },
  {
    name: "And then",
    of: (run) =>
      run.outcome
        ? html`<${State} is=${run.outcome} /> after ${duration(run.duration_ms)}`
        : html`<${State} is="running" text="still runs" />`,
  },
];

const late = (at) => [
  { name: "Job", of: (run) => html`<${JobLink} of=${run.job} />` },
  { name: "Due", of: (run) => html`<${When} at=${run.run_at} clock />` },
  { name: "Late by", number: true, of: (run) => duration(run.lateness_ms) },
  {
    name: "Then",
    of: (run) =>
      Date.parse(run.run_at) + run.lateness_ms > at
        ? html`<${State} is="late" text="waited" />`
        : html`<${State} is="running" text="had begun" />`,
  },
  { name: "Why", of: (run) => run.text },
  { name: "Run", of: (run) => html`<${RunLink} of=${run.execution_id} />` },
];

export function Past({ at, iso }) {
  const query = useQuery("/cluster/moment", { at: iso }, { on: (kind) => kind === "cluster_changed", every: 15_000 });
  const owners = useOwners(iso);
  const said = query.data;
  return html`<${Answered} query=${query}>${said && html`<${Stood} said=${said} at=${at} owners=${owners} />`}<//>
    <${Around} at=${at} />`;
}

function Stood({ said, at, owners }) {
  const known = said.known_since && Date.parse(said.known_since);
  const members = said.members.map((each) => ({ ...each, status: "alive" }));
  const unknown = html`Members are known since ${known ? inZone(known, viewerZone) : "now"}.`;
  return html`<p class="lead"><strong>${summary(said)}</strong> ${known && at >= known ? "" : unknown}</p>
    <${Panel} id="ring" title="Ring" says="By leases: a controller that died keeps its share until its lease ends.">
      ${members.length ? html`<${Ring} members=${members} owners=${owners.found} of=${owners.job} />` : html`<${Empty} command="cronring timeline --since -1d">No controller held a lease.<//>`}<//>
    <${Panel} id="late" title="Late" says="What had been due in the ten minutes before, and began a second late or more.">
      ${said.late.length ? html`<${Rows} caption="Late" columns=${late(at)} rows=${said.late} keyOf=${(run) => run.execution_id} />` : html`<${Empty} command="cronring executions list">Nothing was late.<//>`}<//>
    <${Panel} id="ran" title="What ran" says="Point at a job to see who held it.">
      ${said.executions.length ? html`<${Rows} caption="What ran" columns=${runs(owners)} rows=${said.executions} keyOf=${(run) => run.id} />` : html`<${Empty} command="cronring executions list">Nothing ran.<//>`}
      ${said.looked_to && html`<p class="says">Runs of ticks before ${clockTime(Date.parse(said.looked_to))} were not looked at.</p>`}<//>
    <${Panel} id="controllers" title="Controllers"><${Rows} caption="Controllers" columns=${MEMBERS}
      rows=${said.members} keyOf=${(each) => each.id} /><//>
    <${Panel} id="runners" title="Runners"><${Rows} caption="Runners" columns=${RUNNERS} rows=${said.runners}
      keyOf=${(each) => each.id} /><//>`;
}

function summary(said) {
  const waiting = said.late.filter((run) => Date.parse(run.run_at) + run.lateness_ms > Date.parse(said.at)).length;
  const parts = [
    count(said.members.length, "controller"),
    count(said.runners.length, "runner"),
    `${count(said.executions.length, "run")} under way`,
    `${count(waiting, "tick")} waiting`,
    `${said.late.length - waiting} begun late`,
  ];
  return `${parts.join(", ")}.`;
}

function Around({ at }) {
  const query = useTimeline({ since: at - BEFORE_MS, until: at + AFTER_MS });
  const entries = query.data?.entries ?? [];
  return html`<${Panel} id="around" title="What happened around it" says="The hour before, and ten minutes after.">
    <${Answered} query=${query} empty=${query.data && !entries.length && html`<${Empty} command="cronring timeline --since -7d">Nothing happened.<//>`}>
      <${Entries} of=${entries} /><p><${CopyMarkdown} entries=${entries} /></p><//><//>`;
}
