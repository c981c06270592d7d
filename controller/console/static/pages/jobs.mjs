// Which of my 10,000 jobs need me?
import { html, useEffect, useMemo, useState } from "../base.mjs";
import { post } from "../api.mjs";
import { Bars, useBooks } from "../books.mjs";
import { duration } from "../clock.mjs";
import { ask } from "../doing.mjs";
import { useEvents } from "../live.mjs";
import { faultOf, useQuery } from "../queries.mjs";
import { go, useParameter } from "../router.mjs";
import { Answered, Empty, jobPath, JobLink, Rows, State, When } from "../parts.mjs";
import { useTyped } from "../typing.mjs";
import { count } from "../words.mjs";

const PAGE = 100;
const BARS = 20;
const TYPING_MS = 120;
const SORTS = { key: "name", next: "what runs next", last: "what ran last", failures: "failures in a row" };

export function Jobs({ session }) {
  const [text, typed, type] = useTyped("q", TYPING_MS);
  const [sort, setSort] = useParameter("sort", "key");
  const [token, setToken] = useState("");
  const [picked, setPicked] = useState(new Map());
  const query = useQuery(
    "/jobs",
    { filter: text, sort: sort === "key" ? "" : sort, page_size: PAGE, page_token: token },
    { every: 60_000 },
  );
  const wrong = faultOf(query);
  const counted = useQuery("/jobs:count", { filter: text }, { every: 60_000 });
  const [rows, fresh, refresh] = useLiveRows(query);
  const { books } = useBooks(
    useMemo(() => (query.data?.jobs ?? []).map((job) => job.key), [query.data]),
    BARS,
    { on: ended, least: 5_000 },
  );
  useEffect(() => {
    setToken("");
    setPicked(new Map());
  }, [text, sort]);

  const pick = (job) =>
    setPicked((before) => {
      const after = new Map(before);
      if (!after.delete(job.key)) after.set(job.key, job);
      return after;
    });
  return html`<h1>Jobs <span
    class="says">${counted.data ? Number(counted.data.count).toLocaleString("en") : ""}</span></h1>
    <form class="tools" role="search" onSubmit=${(event) => event.preventDefault()}>
      <label class="grow">Filter <input id="search" type="search" value=${typed} onInput=${type} spellcheck="false"
        placeholder="status:paused module:billing label:team=core"
          aria-describedby="filter-says" /></label>
      <label>Order by <select value=${sort} onChange=${(event) => setSort(event.target.value)}>
        ${Object.entries(SORTS).map(([name, words]) => html`<option value=${name}>${words}</option>`)}</select></label>
    </form>
    <p id="filter-says" class=${wrong ? "problem" : "says"} role="status">${
      wrong ||
      (fresh
        ? html`${count(fresh, "job")} changed their place in this list. <button class="small"
          onClick=${refresh}>Show</button>`
        : "")
    }</p>
    ${picked.size > 0 && html`<${Many} picked=${picked} session=${session} clear=${() => setPicked(new Map())} />`}
    <${Answered} query=${query} empty=${query.data && !rows.length && html`<${Nothing} text=${text} />`}>
      <${Rows} caption="Jobs" columns=${COLUMNS} rows=${rows.map((job) => ({ ...job, book: books.get(job.key) }))}
        keyOf=${(job) => job.key} open=${(job) => go(jobPath(job.key))}
        picked=${picked} pick=${session.may("operate") ? pick : undefined} />
      <div class="buttons">
        ${token && html`<button onClick=${() => setToken("")}>First page</button>`}
        ${query.data?.next_page_token && html`<button
          onClick=${() => setToken(query.data.next_page_token)}>Next ${PAGE}</button>`}
      </div><//>`;
}

// Rows stay where they are while one looks at them: what changes is drawn in its place, and what would move is counted.
function useLiveRows(query) {
  const [changes, setChanges] = useState(new Map());
  const [fresh, setFresh] = useState(0);
  useEffect(() => {
    setChanges(new Map());
    setFresh(0);
  }, [query.data]);
  const listed = query.data?.jobs ?? [];
  const keys = useMemo(() => new Set(listed.map((job) => job.key)), [query.data]);
  useEvents(
    ["job_changed"],
    (_, data) => {
      if (keys.has(data.job.key)) setChanges((before) => new Map(before).set(data.job.key, data.job));
    },
    [keys],
  );
  useEvents(
    ["job_removed"],
    (_, data) => {
      if (keys.has(data.job.key)) setFresh((before) => before + 1);
    },
    [keys],
  );
  return [listed.map((job) => changes.get(job.key) ?? job), fresh, query.again];
}

const COLUMNS = [
  { name: "Job", of: (job) => html`<${JobLink} of=${job.key} />` },
  { name: "State", of: (job) => html`<${State} is=${job.status} />` },
  { name: "Schedule", of: (job) => html`<span title=${job.schedule}>${job.schedule_words}</span>` },
  { name: "Next", of: (job) => html`<${When} at=${job.next_execution} zone=${job.timezone} />` },
  {
    name: "Last",
    of: (job) =>
      job.last_outcome
        ? html`<${State} is=${job.last_outcome} /> <${When} at=${job.last_ended_at} zone=${job.timezone} />`
        : "never ran",
  },
  { name: "Latest 20", of: (job) => html`<${Bars} job=${job.key} entries=${job.book ?? []} high=${20} />` },
  { name: "Late by", number: true, of: (job) => (job.last_started_at ? duration(job.last_lateness_ms) : "–") },
  { name: "Failures", number: true, of: (job) => job.failures || "" },
];

const ended = (kind) => kind === "execution_ended";

const Nothing = ({ text }) =>
  text
    ? html`<${Empty} command=${`cronring jobs list`}>No job fits this filter. Without it there may be some.<//>`
    : html`<${Empty}
      command="cronring runner --module yours.py">There is no job yet. A runner that hosts a module brings its
    verbs' jobs.<//>`;

const DEEDS = [
  ["pause", "Pause"],
  ["resume", "Resume"],
  ["trigger", "Run now"],
  ["skip-next", "Skip next"],
];

function Many({ picked, session, clear }) {
  const jobs = [...picked.values()];
  const allowed = jobs.every((job) => session.may("operate", job.namespace));
  const act = (name, verb) =>
    ask({
      title: `${verb}: ${count(jobs.length, "job")}`,
      verb,
      says: `This is done to each of: ${jobs
        .slice(0, 8)
        .map((job) => job.key)
        .join(", ")}${jobs.length > 8 ? " …" : ""}`,
      undo: name === "pause" ? "resume them." : name === "resume" ? "pause them." : "see each job's page.",
      fields: [{ name: "note", label: "Why? Others will ask later.", optional: true }],
      act: async (values) => {
        const refused = [];
        for (const job of jobs) {
          try {
            await post(`${jobPath(job.key)}/${name}`, { note: values.note });
          } catch (problem) {
            refused.push(`${job.key}: ${problem.message}`);
          }
        }
        clear();
        return `Done to ${jobs.length - refused.length} of ${jobs.length}. ${refused.slice(0, 5).join(" ")}`;
      },
    });
  return html`<div class="bar" role="region"
    aria-label="Selected jobs"><span>${count(jobs.length, "job")} selected</span>
    ${DEEDS.map(([name, verb]) => html`<button key=${name} disabled=${!allowed}
      onClick=${() => act(name, verb)}>${verb}</button>`)}
    <button onClick=${clear}>Select none</button></div>`;
}
