// The books of jobs as bars, the newest on the right: runs, and between them ticks that didn't run, with their reasons.
import { html, useMemo } from "./base.mjs";
import { clockTime, duration } from "./clock.mjs";
import { jobPath } from "./parts.mjs";
import { useQuery } from "./queries.mjs";
import { count, hueOf, shapeOf, wordOf } from "./words.mjs";

const HIGHEST = 40,
  LEAST = 8; // pixels

// What became of an entry: the word of its state, and a sentence.
export function became(entry) {
  const at = clockTime(Date.parse(entry.tick));
  if (entry.reason) {
    const until = clockTime(Date.parse(entry.last_tick));
    const span = entry.ticks > 1 ? `${count(entry.ticks, "tick")} from ${at} to ${until}` : `the tick of ${at}`;
    return ["skipped", `${wordOf(entry.reason)}: ${span} didn't run`];
  }
  const state = entry.outcome || "running";
  const took = entry.outcome ? `, took ${duration(entry.duration_ms)}` : "";
  const error = entry.error_type ? `, ${entry.error_type}` : "";
  return [state, `${wordOf(state)}: tick ${at}${took}${error}`];
}

// Of those jobs, by key. `how`: as of useQuery.
export function useBooks(keys, last, how) {
  const query = useQuery(keys.length ? "/books" : null, { keys, last }, how);
  const books = useMemo(() => new Map((query.data?.books ?? []).map((book) => [book.job, book.entries])), [query.data]);
  return { query, books };
}

// A bar opens its run; of ticks that didn't run it asks why.
export function Bars({ job, entries, high = HIGHEST }) {
  const most = Math.max(1, ...entries.map((entry) => entry.duration_ms));
  return html`<div class="bars" style=${{ height: `${high + LEAST}px` }}>${[...entries].reverse().map((entry) => {
    const [state, said] = became(entry);
    const height = entry.reason ? LEAST + 4 : LEAST + (high - LEAST) * Math.sqrt(entry.duration_ms / most);
    const href = entry.reason
      ? `${jobPath(job)}?why=${encodeURIComponent(entry.tick)}`
      : `/executions/${entry.execution_id}`;
    return html`<a key=${entry.execution_id + entry.tick} href=${href} class=${`bar ${hueOf(state)}`} title=${said}
      aria-label=${said}
      style=${{ height: `${height}px` }}><span aria-hidden="true">${shapeOf(state)}</span></a>`;
  })}</div>`;
}
