// What the books have of a span of time, and what they lack: read in pages, as many as a picture can show.
import { useEffect, useRef, useState } from "../base.mjs";
import { get, keyPath } from "../api.mjs";
import { onEvent } from "../live.mjs";

const PAGE = 200;
const PAGES = 6;
const LEAST_MS = 3_000;
const LATE_MS = 15_000; // a tick that is younger may still be decided
const EXPECTED = 100; // ticks of one answer, of which there are at most:
const EXPECTED_PAGES = 3;

// {entries, expected, since, problem}: entries of the books in [from, until), the earliest first, and the one that
// reaches into it. `expected`: instants at which the schedule of today ticks there. `since`: from where on there are
// all entries; earlier ones were too many. `live`: it ends now, and so changes.
export function useSpan(name, from, until, live, mine) {
  const [found, set] = useState({ data: null, problem: null, at: 0 });
  const again = useRef(() => {});
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0,
      last = 0,
      reading = false;
    const read = async () => {
      timer = 0;
      if (reading) return;
      reading = true;
      last = Date.now();
      try {
        const data = await spanOf(name, from(), until(), stop.signal);
        set({ data, problem: null, at: Date.now() });
      } catch (problem) {
        if (problem.name === "AbortError") return;
        if (problem.violations === undefined) throw problem;
        set((before) => ({ ...before, problem }));
      }
      reading = false;
    };
    again.current = read;
    const soon = () => {
      if (!timer) timer = setTimeout(read, Math.max(0, last + LEAST_MS - Date.now()));
    };
    read();
    const deaf = onEvent((kind, data) => {
      if (kind === "resync" || (live && mine(kind, data))) soon();
    });
    const beat = setInterval(() => {
      if (live && !document.hidden) soon();
    }, 15_000);
    return () => {
      stop.abort();
      deaf();
      clearTimeout(timer);
      clearInterval(beat);
    };
  }, [name, live, live ? until() - from() : from(), live ? 0 : until()]);
  return { ...found, again: () => again.current() };
}

async function spanOf(name, from, until, signal) {
  const entries = new Map();
  let before = until,
    since = from;
  for (let page = 0; page < PAGES; page++) {
    const query = { keys: name, last: PAGE, before: new Date(before).toISOString() };
    const rows = (await get("/books", query, signal)).books[0]?.entries ?? [];
    for (const row of rows) entries.set(`${row.execution_id}/${row.tick}`, row);
    const earliest = rows.length ? Date.parse(rows.at(-1).tick) : from;
    const all = rows.length < PAGE || earliest <= from;
    since = all ? from : earliest;
    if (all) break;
    before = earliest + 1; // its other attempts, too
  }
  const all = [...entries.values()].filter((row) => endOf(row) >= from).sort((a, b) => (a.tick < b.tick ? -1 : 1));
  return { entries: all, expected: await expectedOf(name, since, until, signal), since, from, until };
}

// Instants at which it ticks and runs, of today's schedule.
async function expectedOf(name, from, until, signal) {
  const found = [];
  let after = from - 1;
  for (let page = 0; page < EXPECTED_PAGES && after < until; page++) {
    const query = { from_at: new Date(after).toISOString(), count: EXPECTED };
    const said = await get(`${keyPath(name)}/schedule`, query, signal).catch((problem) => {
      if (problem.status !== 409) throw problem; // what a newer release wrote can't be said here
      return { ticks: [] };
    });
    for (const tick of said.ticks) if (!tick.note.includes("doesn't run")) found.push(Date.parse(tick.tick));
    if (said.ticks.length < EXPECTED) break;
    after = Date.parse(said.ticks.at(-1).tick);
  }
  return found.filter((at) => at < until);
}

export const endOf = (row) =>
  row.reason ? Date.parse(row.last_tick) : Date.parse(row.tick) + Math.max(0, row.lateness_ms) + row.duration_ms;

// Stretches in which nothing ran, each with its name: {from, until, ticks, reason, at}. `at`: what to ask why about.
// Ticks of a job that is paused come into the books once it is resumed: until then, they are told by its pause.
export function gapsOf(data, job, moment) {
  const found = data.entries
    .filter((each) => each.reason)
    .map((row) => ({ from: Date.parse(row.tick), until: Date.parse(row.last_tick), ticks: Number(row.ticks), reason: row.reason, at: row.tick }));
  const kept = data.entries.map((row) => [Date.parse(row.tick), Date.parse(row.last_tick)]);
  const begin = Math.max(Date.parse(job?.created_at ?? 0), data.since);
  const paused = job?.paused ? Date.parse(job.paused.at) : Infinity;
  for (const at of data.expected) {
    if (at < begin || at > moment - LATE_MS || kept.some(([first, last]) => first <= at && at <= last)) continue;
    const reason = at >= paused ? "paused" : "nothing in the books";
    found.push({ from: at, until: at, ticks: 1, reason, at: new Date(at).toISOString() });
  }
  return joined(data, found.sort((a, b) => a.from - b.from));
}

// Neighbours of one name, where nothing ran between them, are one gap.
function joined(data, gaps) {
  const found = [];
  for (const gap of gaps) {
    const before = found.at(-1);
    if (before && before.reason === gap.reason && !ranBetween(data, before.until, gap.from)) {
      before.until = Math.max(before.until, gap.until);
      before.ticks += gap.ticks;
    } else found.push({ ...gap });
  }
  return found;
}

const ranBetween = (data, from, until) =>
  data.entries.some((row) => !row.reason && Date.parse(row.tick) > from && Date.parse(row.tick) < until);
