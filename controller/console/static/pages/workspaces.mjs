// Tenants of a product: values of the label `workspace`, with all that is theirs.
import { html } from "../base.mjs";
import { post, lines } from "../api.mjs";
import { Deeds, inPath, Listing, NOTE, oneOf, parted, useOne } from "../listing.mjs";
import { Answered, Copied, Facts, State } from "../parts.mjs";
import { useQuery } from "../queries.mjs";
import { count, inNamespace, noted, quoted } from "../words.mjs";

const nameOf = (row) => `${row.namespace}/${row.workspace}`;
const pathOf = (row) => `/workspaces${inPath(row.namespace, row.workspace)}`;
const label = (row) => `label:"workspace=${row.workspace}" namespace:${row.namespace}`;
const stateOf = (row) => {
  if (Number(row.running)) return html`<${State} is="running" />`;
  return html`<${State} is=${Number(row.jobs) && Number(row.paused) === Number(row.jobs) ? "paused" : "scheduled"} />`;
};

export function Workspaces({ session }) {
  const [one] = useOne();
  if (one) return html`<${One} key=${one} name=${one} session=${session} />`;
  return html`<${Listing} session=${session} of=${{
    title: "Workspaces",
    says: "Values of the label workspace: tenants of a product, whose jobs are paused, limited and deleted together.",
    path: "/workspaces",
    rows: "workspaces",
    keyOf: nameOf,
    columns: COLUMNS,
    deeds: (row) => deeds(row, session),
    none: "No job has the label workspace, and no message.",
    command: "cronring jobs create MODULE.VERB --name NAME --label workspace=ws_3",
  }} />`;
}

const COLUMNS = [
  { name: "Workspace", of: (row) => html`<a href=${oneOf("/workspaces", nameOf(row))}>${nameOf(row)}</a>` },
  { name: "State", of: stateOf },
  {
    name: "Jobs",
    number: true,
    of: (row) => html`<a href=${`/jobs?q=${encodeURIComponent(label(row))}`}>${row.jobs}</a>`,
  },
  { name: "Paused", number: true, of: (row) => row.paused },
  { name: "Running", number: true, of: (row) => row.running },
];

const deeds = (row, session) =>
  session.may("operate", row.namespace)
    ? [
        Number(row.paused) < Number(row.jobs) &&
          all(
            row,
            "pause",
            "Pause all",
            "Their ticks are skipped from now on. What runs goes on to its end.",
            "resume them.",
          ),
        Number(row.paused) > 0 &&
          all(row, "resume", "Resume all", "Their next ticks from now on run.", "pause them again."),
        deleteAll(row),
      ].filter(Boolean)
    : [];

const all = (row, action, verb, says, undo) => ({
  word: verb,
  title: `${verb}: the ${count(row.jobs, "job")} of ${nameOf(row)}`,
  verb,
  says,
  undo,
  fields: [NOTE],
  command: (values) =>
    `cronring jobs ${action} --label ${quoted(`workspace=${row.workspace}`)}${inNamespace(row)}${noted(values)}`,
  act: async ({ note }) => {
    const filter = { namespace: row.namespace, labels: { workspace: row.workspace } };
    const found = { done: 0, refused: [] };
    for await (const line of lines("/jobs:control", null, null, { filter, action: `ACTION_${action.toUpperCase()}`, note })) {
      if (line.problem) found.refused.push(`${line.key}: ${line.problem}`);
      else if (line.key && !line.unchanged) found.done += 1;
    }
    return `Done to ${count(found.done, "job")}. ${found.refused.slice(0, 5).join(" ")}`;
  },
});

const deleteAll = (row) => {
  let found = null;
  return {
    word: "Delete",
    title: `Delete all of ${nameOf(row)}`,
    verb: "Delete it all",
    typed: row.workspace,
    says: "Its schedules end, what waits is forgotten, what runs is told to stop, and its messages and jobs are removed. History stays.",
    preview: async () => {
      found = (await post(`${pathOf(row)}/delete`, { dry_run: true })).found;
      return [
        `${count(found.jobs, "job")} would be removed,`,
        `${count(found.running, "run")} stopped, ${count(found.waiting, "waiting run")} forgotten,`,
        `and ${count(found.messages, "message")} removed.`,
      ];
    },
    fields: [NOTE],
    command: (values) => `cronring workspaces delete ${quoted(row.workspace)}${inNamespace(row)}${noted(values)}`,
    act: async ({ note }) => {
      let [deleted, first] = [0, found ? { expected: found.jobs } : {}];
      for (;;) {
        const said = await post(`${pathOf(row)}/delete`, { note, ...first });
        deleted += Number(said.deleted);
        first = {};
        if (said.done)
          return `${count(deleted, "job")} removed. ${Number(said.left?.running) ? `${said.left.running} runs have been told to stop.` : ""}`;
        if (![said.ended, said.deleted, said.messages].some(Number))
          return `${count(deleted, "job")} removed. ${count(said.left.jobs, "job")} and ${count(said.left.messages, "message")} are left, as others have them locked: delete it again in a while.`;
      }
    },
  };
};

function One({ name, session }) {
  const [namespace, short] = parted(name);
  const query = useQuery(`/workspaces${inPath(namespace, short)}`, null, { every: 10_000 });
  const row = query.data;
  return html`<p><a href="/workspaces">All workspaces</a></p><h1><span class="key">${name}</span> ${row && stateOf(row)}</h1>
    <${Answered} query=${query}>${
      row &&
      html`<${Deeds} of=${deeds(row, session)} again=${query.again} />
      <${Facts} of=${[
        ["Jobs", html`<a href=${`/jobs?q=${encodeURIComponent(label(row))}`}>${row.jobs}</a>, ${row.paused} paused`],
        ["Running", html`<a href=${`/executions?q=${encodeURIComponent(`running ${label(row)}`)}`}>${row.running}</a>`],
        ["Waiting", `${row.waiting} beside the schedule: retries, runs by hand, backfills`],
        ["Messages", `${row.messages} of queues, dead letters among them`],
      ]} /><${Copied} text=${`cronring workspaces show ${quoted(row.workspace)}${inNamespace(row)}`} />`
    }<//>`;
}
