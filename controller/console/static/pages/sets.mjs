// Jobs that files declare: which sets there are, what each owns, and what was done to that by hand since.
import { html, useEffect, useState } from "../base.mjs";
import { post, queryText } from "../api.mjs";
import { Deeds, inPath, Listing, NOTE, oneOf, parted, useOne, when } from "../listing.mjs";
import { Answered, Copied, Facts, JobLink, Panel, State, When } from "../parts.mjs";
import { useQuery } from "../queries.mjs";
import { applyFile } from "./sets_apply.mjs";
import { count, inNamespace, noted, quoted } from "../words.mjs";

const nameOf = (row) => `${row.namespace}/${row.name}`;
const pathOf = (row) => `/sets${inPath(row.namespace, row.name)}`;

export function Sets({ session }) {
  const [one] = useOne();
  if (one) return html`<${One} key=${one} name=${one} session=${session} />`;
  return html`<${Listing} session=${session} of=${{
    title: "Sets",
    says: html`Jobs that a file declares. <code>cronring apply</code> makes, changes and removes them as the file says.`,
    path: "/sets",
    rows: "sets",
    keyOf: nameOf,
    columns: COLUMNS,
    make: [session.may("operate") && applyFile({ namespace: session.home("operate"), name: "" })],
    deeds: (row) => deeds(row, session),
    none: "No file has been applied.",
    command: "cronring apply jobs.yaml --dry-run",
  }} />`;
}

const COLUMNS = [
  { name: "Set", of: (row) => html`<a href=${oneOf("/sets", nameOf(row))}>${nameOf(row)}</a>` },
  { name: "Jobs", number: true, of: (row) => row.jobs },
  { name: "Revision", number: true, of: (row) => row.revision },
  when("Applied", "applied_at"),
  { name: "By", of: (row) => row.applied_by },
  { name: "Why", of: (row) => row.note },
];

const command = (row, values, options = "") =>
  `cronring sets delete ${quoted(row.name)}${inNamespace(row)}${options}${noted(values)}`;
const would = async (row, how) => {
  const said = await post(`${pathOf(row)}/apply`, { jobs: [], dry_run: true, ...how });
  return [
    `${count(said.removed || said.released, "job")} ${how.prune ? "would be removed" : "would be nobody's"}.`,
    ...said.jobs.slice(0, 7).map((each) => each.key),
  ];
};

const deeds = (row, session) =>
  session.may("operate", row.namespace)
    ? [
        applyFile(row),
        {
          word: "Release",
          title: `Release the jobs of ${nameOf(row)}`,
          verb: "Release them",
          says: "The jobs go on as they are, and are nobody's: people change them by hand, and another set may adopt them.",
          preview: () => would(row, { release: true }),
          undo: "apply its file with --adopt.",
          fields: [NOTE],
          command: (values) => command(row, values, " --keep-jobs"),
          act: ({ note }) => post(`${pathOf(row)}/apply`, { jobs: [], release: true, note }),
        },
        {
          word: "Delete",
          title: `Delete ${nameOf(row)} with its jobs`,
          verb: "Delete it",
          typed: row.name,
          says: "All its jobs are removed. What runs finishes, and history stays.",
          preview: () => would(row, { prune: true }),
          fields: [NOTE],
          command: (values) => command(row, values),
          act: ({ note }) => post(`${pathOf(row)}/apply`, { jobs: [], prune: true, note }),
        },
      ]
    : [];

function One({ name, session }) {
  const [namespace, short] = parted(name);
  const query = useQuery(`/sets${inPath(namespace, short)}`);
  const row = query.data;
  return html`<p><a href="/sets">All sets</a></p><h1 class="key">${name}</h1>
    <${Answered} query=${query}>${
      row &&
      html`<${Deeds} of=${deeds(row, session)} again=${query.again} />
      <${Facts} of=${[
        ["Jobs", row.jobs],
        ["Revision", row.revision],
        ["Applied", html`<${When} at=${row.applied_at} /> by ${row.applied_by}${row.note && `: ${row.note}`}`],
      ]} />
      ${session.may("outputs", row.namespace) && html`<p><a class="button" download=${`${row.name}.ndjson`}
        href=${`/api/v1/cron/jobs:export${queryText({ set_name: row.name, "filter.namespace": row.namespace })}`}>Export its jobs</a></p>`}
      <${Copied} text=${`cronring jobs export --set ${quoted(row.name)}`} />
      ${session.may("operate", row.namespace) && html`<${Drift} row=${row} />`}`
    }<//>
    <${Listing} level=${2} session=${session} of=${{
      title: "Its jobs",
      says: "By their keys.",
      path: `/sets${inPath(namespace, short)}/jobs`,
      rows: "jobs",
      keyOf: (job) => job.key,
      columns: JOBS,
      none: "It owns no job.",
      command: "cronring apply jobs.yaml",
    }} />`;
}

const JOBS = [
  { name: "Job", of: (job) => html`<${JobLink} of=${job.key} />` },
  { name: "State", of: (job) => html`<${State} is=${job.status} />` },
  { name: "Schedule", of: (job) => job.schedule_words },
  { name: "Next", of: (job) => html`<${When} at=${job.next_execution} zone=${job.timezone} />` },
  { name: "Last", of: (job) => (job.last_outcome ? html`<${State} is=${job.last_outcome} />` : "never ran") },
];

// What somebody did by hand to a set's jobs since it was applied: a dry run of nothing tells it of each.
function Drift({ row }) {
  const [found, setFound] = useState({ data: null, problem: null });
  useEffect(() => {
    post(`${pathOf(row)}/apply`, { jobs: [], dry_run: true }).then(
      (data) => setFound({ data: data.jobs.filter((each) => each.by_hand), problem: null }),
      (problem) => setFound({ data: null, problem }),
    );
  }, [row.revision, row.jobs]);
  return html`<${Panel} id="drift" title="Changed by hand" says="Since the set was applied last. The next apply sets these jobs back to the file.">
    <${Answered} query=${found} empty=${found.data?.length === 0 && html`<p>Nothing: its jobs are as the file said.</p>`}>
    <ul class="plain">${found.data?.map(
      (each) => html`<li key=${each.key}><${JobLink} of=${each.key} /> ${each.by_hand.action} by ${each.by_hand.by}
        ${" "}<${When} at=${each.by_hand.at} />${each.by_hand.note && `: ${each.by_hand.note}`}</li>`,
    )}</ul><//><//>`;
}
