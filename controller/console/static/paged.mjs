// A list that grows as one scrolls, whose rows stay where they are: what came or went since is counted, not moved.
import { useCallback, useEffect, useMemo, useRef, useState } from "./base.mjs";
import { get, queryText } from "./api.mjs";
import { useQuery } from "./queries.mjs";

// `read(data)`: the rows of an answer. `on`: as of useQuery: what may change which rows there are.
// Gives {query, rows, more, whole, came, went, show}: `more()` asks for the next page, `whole`: there is none;
// `came`, `went`: rows that the first page has gained and lost; `show()` shows them.
export function usePages(path, question, read, keyOf, how) {
  const name = path + queryText(question);
  const latest = useQuery(path, question, how);
  const [shown, setShown] = useState({ name: "", pages: [], token: "", problem: null });
  const asking = useRef(false);
  const current = useRef(name);
  current.current = name;
  const fresh = useRef(true); // the next answer is shown as it is
  useEffect(() => {
    fresh.current = true;
  }, [name]);
  useEffect(() => {
    if (!latest.data || latest.asked !== name) return;
    if (fresh.current) {
      fresh.current = false;
      setShown({ name, pages: [read(latest.data)], token: latest.data.next_page_token, problem: null });
    }
  }, [latest.data]);
  const more = useCallback(async () => {
    if (asking.current || !shown.token || shown.name !== current.current) return;
    asking.current = true;
    try {
      const data = await get(path, { ...question, page_token: shown.token });
      setShown((before) =>
        before === shown
          ? { ...before, pages: [...before.pages, read(data)], token: data.next_page_token, problem: null }
          : before,
      );
    } catch (problem) {
      if (problem.violations === undefined) throw problem;
      setShown((before) => ({ ...before, problem }));
    } finally {
      asking.current = false;
    }
  }, [shown]);
  const rows = useMemo(() => {
    const seen = new Map(); // a row that moved while pages were asked for stands where it was first
    for (const row of shown.pages.flat()) if (!seen.has(keyOf(row))) seen.set(keyOf(row), row);
    return [...seen.values()];
  }, [shown]);
  const [came, went] = useMemo(() => {
    if (!latest.data || latest.asked !== shown.name || !shown.pages.length) return [0, 0];
    const first = new Set(read(latest.data).map(keyOf));
    const all = new Set(rows.map(keyOf));
    const end = !latest.data.next_page_token; // what the first page lacks may be on another one
    return [
      [...first].filter((key) => !all.has(key)).length,
      end ? [...all].filter((key) => !first.has(key)).length : 0,
    ];
  }, [latest.data, rows]);
  const show = () => {
    fresh.current = true;
    latest.again();
  };
  return { query: latest, rows, more, whole: !shown.token, problem: shown.problem, came, went, show };
}
