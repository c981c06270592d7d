// Which of my 10,000 jobs need me?
import { queryText } from "../api.mjs";
import { html, useEffect, useMemo, useRef, useState } from "../base.mjs";
import { clockTime } from "../clock.mjs";
import { ask } from "../doing.mjs";
import { FilterField } from "../filterfield.mjs";
import { useEvents } from "../live.mjs";
import { Many } from "../many.mjs";
import { usePages } from "../paged.mjs";
import { faultOf, useQuery } from "../queries.mjs";
import { go, useLocation, useParameter } from "../router.mjs";
import { Answered, Choice, Empty, jobPath } from "../parts.mjs";
import { Views } from "../views.mjs";
import { useSight, VirtualRows } from "../virtual.mjs";
import { Columns, useBooksInSight, useColumns } from "./jobs_columns.mjs";
import { number } from "../words.mjs";

const PAGE = 200;
const NEAR_END = 60; // rows before the end of what is there when more is asked for
const CHANGES_MS = 500; // changes of rows are drawn together
const SORTS = {
  key: "name",
  next: "what runs next",
  last: "what ran last",
  lateness: "what began latest",
  success: "what has not succeeded for longest",
  failures: "failures in a row",
};
const VIEWS = [
  ["All", ""],
  ["Failing", "q=outcome%3Aunsuccessful&sort=failures"],
  ["Running", "q=status%3Arunning"],
  ["Paused", "q=status%3Apaused"],
  ["Orphaned", "q=status%3Aorphaned"],
  ["Late", "sort=lateness"],
];

const rowsOf = (data) => data.jobs;
const keyOf = (job) => job.key;
const MEMBERS = (kind) => kind === "job_changed" || kind === "job_removed";

export function Jobs({ session }) {
  const [text] = useParameter("q");
  const [sort, setSort] = useParameter("sort", "key");
  const { query: shown } = useLocation();
  const [picked, setPicked] = useState(new Map());
  const [every, setEvery] = useState(null);
  const question = { filter: text, sort: sort === "key" ? "" : sort, page_size: PAGE };
  const list = usePages("/jobs", question, rowsOf, keyOf, { on: MEMBERS, least: 5_000, every: 60_000 });
  const counted = useQuery("/jobs:count", { filter: text }, { on: MEMBERS, least: 10_000, every: 60_000 });
  const wrong = faultOf(list.query);
  const rows = useChanged(list.rows);
  const sight = useSight(rows.length);
  const books = useBooksInSight(rows.slice(sight[1], sight[2]).map(keyOf));
  const [columns, setColumns, all] = useColumns();
  const clear = () => {
    setPicked(new Map());
    setEvery(null);
  };
  useEffect(clear, [text, sort]);
  useEffect(() => {
    if (!list.whole && sight[2] > rows.length - NEAR_END) list.more();
  }, [sight[2], rows.length, list.whole]);

  const pick = useRange(rows, setPicked, () => setEvery(null));
  const many = counted.data && counted.asked === `/jobs:count${queryText({ filter: text })}` ? Number(counted.data.count) : null;
  return html`<h1>Jobs <span class="says">${many === null ? "" : number(many)}</span></h1>
    <${Views} page="/jobs" ready=${VIEWS} query=${shown} />
    <form class="tools" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${FilterField} list="jobs" name="q" says="filter-says"
        hint="part of a name, status:paused module:billing label:team=core" />
      <${Choice} label="Order by" value=${sort} set=${setSort} of=${Object.entries(SORTS)} />
      <${Columns} all=${all} shown=${columns} set=${setColumns} />
      ${session.may("operate") && html`<a class="button" href="/jobs/new">New job</a>`}
      ${session.may("outputs") && html`<button type="button" onClick=${() => exportJobs(text)}>Export</button>`}
    </form>
    <p id="filter-says" class=${wrong ? "problem" : "says"} role="status">${wrong || html`<${News} list=${list} sort=${sort} />`}</p>
    <${Many} picked=${picked} every=${every} session=${session} clear=${clear} selectEvery=${setEvery}
      matching=${many !== null && text ? { query: text, count: many } : null} />
    <${Answered} query=${list.query} empty=${
      list.query.data && !rows.length && !list.came && html`<${Nothing} text=${text} />`
    }>
      <${VirtualRows} caption="Jobs" columns=${columns} rows=${rows.map((job) => ({ ...job, book: books.get(job.key) }))}
        keyOf=${keyOf} open=${(job) => go(jobPath(job.key))} sight=${sight}
        picked=${every ? { has: () => true } : picked} pick=${session.may("operate") ? pick : undefined} />
      <p class="says">${list.problem ? html`More can't be shown now: ${list.problem.message} ` : ""}
        ${
          list.whole
            ? ""
            : html`${number(rows.length)} shown. <button class="small" onClick=${list.more}>More</button>`
        }</p><//>`;
}

const exportJobs = (filter) =>
  ask({
    title: "Export jobs",
    verb: "Export them",
    says: `Those that ${filter ? `fit “${filter}” and` : ""} were made by hand, as lines of JSON, which Sets takes. Jobs of modules are left out: their file is the module.`,
    command: () => "cronring jobs export > jobs.yaml",
    act: async () => {
      const link = document.createElement("a");
      link.href = `/api/v1/cron/jobs:export${queryText({ filter })}`;
      link.download = "jobs.ndjson";
      link.click();
    },
  });

// What has come and gone since, which would move rows; and by when an order of times is as it is.
function News({ list, sort }) {
  const said = [list.came && `${list.came} new`, list.went && `${list.went} no longer fit`].filter(Boolean).join(", ");
  if (said) return html`${said}. <button class="small" onClick=${list.show}>Show</button>`;
  if (sort === "key" || !list.query.at) return "";
  return html`In the order of ${clockTime(list.query.at)}. <button class="small" onClick=${list.show}>Order anew</button>`;
}

// Rows as events tell of them since: drawn in their places.
function useChanged(listed) {
  const [changes, setChanges] = useState(new Map());
  const waiting = useRef(new Map());
  const timer = useRef(0);
  const keys = useMemo(() => new Set(listed.map(keyOf)), [listed]);
  useEffect(() => {
    waiting.current = new Map();
    setChanges(new Map());
  }, [listed]);
  useEffect(() => () => clearTimeout(timer.current), []);
  useEvents(
    ["job_changed"],
    (_, { job }) => {
      if (!keys.has(job.key)) return;
      waiting.current.set(job.key, job);
      timer.current ||= setTimeout(() => {
        timer.current = 0;
        const news = waiting.current;
        waiting.current = new Map();
        setChanges((before) => new Map([...before, ...news]));
      }, CHANGES_MS);
    },
    [keys],
  );
  return useMemo(() => listed.map((job) => changes.get(job.key) ?? job), [listed, changes]);
}

// One row, or with Shift all from the one before it.
function useRange(rows, setPicked, changed) {
  const last = useRef(null);
  return (job, event) => {
    changed();
    const keys = rows.map(keyOf);
    const [from, to] = [keys.indexOf(last.current), keys.indexOf(job.key)];
    const range =
      event?.nativeEvent?.shiftKey || event?.shiftKey
        ? rows.slice(Math.min(from < 0 ? to : from, to), Math.max(from, to) + 1)
        : [job];
    last.current = job.key;
    setPicked((before) => {
      const after = new Map(before);
      const on = !before.has(job.key);
      for (const each of range) {
        if (on) after.set(each.key, each);
        else after.delete(each.key);
      }
      return after;
    });
  };
}

const Nothing = ({ text }) =>
  text
    ? html`<${Empty} command="cronring jobs list">No job fits this filter. Without it there may be some. A word of its own
        is looked for in the keys of jobs.<//>`
    : html`<${Empty} command="cronring runner yours.py">There is no job yet. A runner that hosts a module brings the
        jobs of its verbs.<//>`;
