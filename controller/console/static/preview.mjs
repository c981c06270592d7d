// What a change would do, asked of the API as a dry run before it is done.
import { html, useEffect, useState } from "./base.mjs";

const SHOWN = 8;

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
