// What a page asks the API, and asks again: when something has happened that changes the answer, and now and then.
import { useCallback, useEffect, useRef, useState } from "./base.mjs";
import { get, queryText } from "./api.mjs";
import { onEvent, useSignal } from "./live.mjs";

const LEAST_MS = 1_000; // between two askings, however much happens
const EVERY_MS = 30_000;

// {data, problem, at, asked, again}: the latest answer, to which address, and why there is no newer one. `path` null: nothing is asked.
// `on(kind, data)`: whether an event changes the answer. `least`: milliseconds between two askings.
export function useQuery(path, query, { on, every = EVERY_MS, least = LEAST_MS } = {}) {
  const [found, set] = useState({ data: null, problem: null, at: 0 });
  const address = path === null ? null : path + queryText(query);
  const lost = useSignal().name === "lost";
  const last = useRef(0);
  const timer = useRef(0);
  const asking = useRef(null);
  const pause = found.problem ? Math.min(every, EVERY_MS) : every;
  const asked = useRef(null);
  const wasLost = useRef(lost);

  const ask = useCallback(async () => {
    clearTimeout(timer.current);
    timer.current = 0;
    asking.current?.abort();
    if (address === null) return;
    const mine = new AbortController();
    asking.current = mine;
    last.current = Date.now();
    try {
      const data = await get(path, query, mine.signal);
      if (asking.current === mine) set({ data, problem: null, at: Date.now(), asked: address });
    } catch (problem) {
      if (problem.name === "AbortError" || asking.current !== mine) return;
      if (problem.violations === undefined) throw problem;
      set((before) => ({ ...before, problem }));
    }
  }, [address]);

  useEffect(() => {
    // What another filter of the same list showed stays until the new answer is there: nothing flickers while one types.
    set((before) => (asked.current === path ? { ...before, problem: null } : { data: null, problem: null, at: 0 }));
    asked.current = path;
    ask();
    return () => {
      clearTimeout(timer.current);
      asking.current?.abort();
      asking.current = null;
    };
  }, [address]);
  useEffect(() => {
    const beat = setInterval(() => {
      if (!document.hidden) ask();
    }, pause);
    return () => clearInterval(beat);
  }, [address, pause]);
  useEffect(
    () =>
      onEvent((kind, data) => {
        if (kind !== "resync" && !on?.(kind, data)) return;
        if (!timer.current) timer.current = setTimeout(ask, Math.max(0, last.current + least - Date.now()));
      }),
    [address, on],
  );
  useEffect(() => {
    if (wasLost.current !== lost) ask();
    wasLost.current = lost;
  }, [lost]);
  return { ...found, again: ask };
}

// What is wrong with what was asked, in the API's words; "": nothing is.
export const faultOf = ({ problem }) =>
  problem?.status === 400 ? (problem.violations[0]?.description ?? problem.message) : "";
