// What a change would do, asked of the API as a dry run before it is done.
import { post } from "./api.mjs";
import { html, useEffect, useState } from "./base.mjs";

const SHOWN = 8;
const TYPING_MS = 300;

// `of()`: a promise of lines.
export function Preview({ of }) {
  const [lines, setLines] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    of().then(setLines, (found) => setProblem(found.message));
  }, []);
  if (problem) return html`<p class="problem" role="alert">${problem}</p>`;
  if (!lines) return html`<p class="loading" role="status">Looking what it would do …</p>`;
  return html`<ul class="plain preview" role="status">${lines
    .slice(0, SHOWN)
    .map((line) => html`<li key=${line}>${line}</li>`)}
    ${lines.length > SHOWN && html`<li>and ${lines.length - SHOWN} more</li>`}</ul>`;
}

// Of an answer that lists jobs by what becomes of them: a line for each fate.
export function fates(answer) {
  const named = { added: "new", removed: "removed", orphaned: "orphaned", back: "back again", carried_over: "kept" };
  const lines = [];
  for (const [name, words] of Object.entries(named)) {
    const jobs = answer[`jobs_${name}`] ?? [];
    if (jobs.length) {
      const some = jobs.slice(0, 5).join(", ");
      lines.push(`${jobs.length} ${words}: ${some}${jobs.length > 5 ? " …" : ""}`);
    }
  }
  return lines.length ? lines : ["No job changes."];
}

// What it would do, asked anew while one types; what was said before stays until then. `body` null: nothing is.
// `etag`: of a job that it changes.
export function usePreview(path, body, etag) {
  const [found, set] = useState({ said: null, problem: null, busy: false });
  const text = JSON.stringify(body);
  useEffect(() => {
    if (!body) {
      set({ said: null, problem: null, busy: false });
      return undefined;
    }
    const stop = new AbortController();
    set((before) => ({ ...before, busy: true }));
    const timer = setTimeout(async () => {
      try {
        const said = await post(path, body, stop.signal);
        if (!stop.signal.aborted) set({ said, problem: null, busy: false });
      } catch (problem) {
        if (problem.name === "AbortError" || stop.signal.aborted) return;
        if (problem.violations === undefined) throw problem;
        set((before) => ({ said: before.said, problem, busy: false }));
      }
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [path, text, etag]);
  return found;
}
