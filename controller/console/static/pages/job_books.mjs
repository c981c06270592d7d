// What the books have of a span of time, and what they lack: read in pages, as many as a picture can show.
import { useEffect, useRef, useState } from "../base.mjs";
import { get, keyPath } from "../api.mjs";
import { onEvent } from "../live.mjs";

const PAGE = 200;
const PAGES = 6;
const LEAST_MS = 3_000;
const LATE_MS = 15_000; // a tick that is younger may still be decided
const EXPECTED = 100;

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
  const query = { from_at: new Date(from - 1).toISOString(), count: EXPECTED };
  const said = await get(`${keyPath(name)}/schedule`, query, signal).catch((problem) => {
    if (problem.status !== 409) throw problem; // what a newer release wrote can't be said here
    return { ticks: [] };
  });
  const expected = said.ticks.filter((tick) => !tick.note.includes("doesn't run")).map((tick) => Date.parse(tick.tick));
  return { entries: all, expected: expected.filter((at) => at < until), since, from, until };
}

export const endOf = (row) =>
  row.reason ? Date.parse(row.last_tick) : Date.parse(row.tick) + Math.max(0, row.lateness_ms) + row.duration_ms;

// Stretches in which nothing ran, each with its name: {from, until, ticks, reason, at}. `at`: what to ask why about.
export function gapsOf(data, created, moment) {
  const found = [];
  for (const row of data.entries.filter((each) => each.reason)) {
    const before = found.at(-1);
    const [from, until] = [Date.parse(row.tick), Date.parse(row.last_tick)];
    if (before && before.reason === row.reason && !ranBetween(data, before.until, from)) {
      before.until = until;
      before.ticks += Number(row.ticks);
    } else found.push({ from, until, ticks: Number(row.ticks), reason: row.reason, at: row.tick });
  }
  const kept = data.entries.map((row) => [Date.parse(row.tick), Date.parse(row.last_tick)]);
  for (const at of data.expected) {
    if (at < Math.max(created, data.since) || at > moment - LATE_MS) continue;
    if (kept.some(([first, last]) => first <= at && at <= last)) continue;
    found.push({ from: at, until: at, ticks: 1, reason: "nothing in the books", at: new Date(at).toISOString() });
  }
  return found.sort((a, b) => a.from - b.from);
}

const ranBetween = (data, from, until) =>
  data.entries.some((row) => !row.reason && Date.parse(row.tick) > from && Date.parse(row.tick) < until);
