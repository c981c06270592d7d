// What a list of jobs can show of each, which of it is shown, and the books of those that are in sight.
import { html, useMemo, useRef } from "../base.mjs";
import { Bars, useBooks } from "../books.mjs";
import { duration } from "../clock.mjs";
import { useKept } from "../kept.mjs";
import { JobLink, State, When } from "../parts.mjs";
import { number, wordOf } from "../words.mjs";

const BARS = 20;
const MOST = 100; // jobs whose books one call tells

const labels = (job) =>
  Object.entries(job.labels).map(
    ([label, value]) => html`<a key=${label} class="label"
      href=${`/jobs?q=${encodeURIComponent(`label:${label}=${value}`)}`}>${label}=${value}</a> `,
  );

const ALL = [
  { name: "Job", always: true, of: (job) => html`<${JobLink} of=${job.key} />` },
  { name: "State", ready: true, of: (job) => html`<${State} is=${job.status} />` },
  { name: "Schedule", ready: true, of: (job) => html`<span title=${job.schedule}>${job.schedule_words}</span>` },
  { name: "Next", ready: true, of: (job) => html`<${When} at=${job.next_execution} zone=${job.timezone} />` },
  {
    name: "Last",
    ready: true,
    of: (job) =>
      job.last_outcome
        ? html`<${State} is=${job.last_outcome} text=${job.failures > 1 && job.last_outcome !== "completed" ? `${wordOf(job.last_outcome)} ×${job.failures}` : undefined}
            /> <${When} at=${job.last_ended_at} zone=${job.timezone} />`
        : "never ran",
  },
  {
    name: "Latest 20",
    title: "Runs, and ∅ where ticks didn't run: the newest on the right",
    ready: true,
    of: (job) => html`<${Bars} job=${job.key} entries=${job.book ?? []} high=${20} />`,
  },
  {
    name: "Late by",
    ready: true,
    number: true,
    of: (job) => (job.last_started_at ? duration(job.last_lateness_ms) : "–"),
  },
  { name: "Failures", number: true, of: (job) => job.failures || "" },
  { name: "Last success", of: (job) => html`<${When} at=${job.last_success} zone=${job.timezone} />` },
  { name: "Skipped", number: true, title: "ticks of all time", of: (job) => skipped(job) },
  { name: "Labels", of: labels },
  { name: "Zone", of: (job) => job.timezone },
  { name: "Set", of: (job) => job.set_name },
  { name: "Template", of: (job) => job.template },
  { name: "Version", of: (job) => html`<code>${job.deployment}</code>` },
];

const skipped = (job) => {
  const ticks = job.skipped.reduce((sum, each) => sum + Number(each.ticks), 0);
  return ticks
    ? html`<span title=${job.skipped.map((each) => `${each.reason} ${each.ticks}`).join(", ")}>${number(ticks)}</span>`
    : "";
};

// [columns, set(names), all of them]
export function useColumns() {
  const [names, set] = useKept(
    "cronring-columns",
    ALL.filter((each) => each.ready).map((each) => each.name),
  );
  const shown = useMemo(() => ALL.filter((each) => each.always || names.includes(each.name)), [names]);
  return [shown, set, ALL];
}

export function Columns({ all, shown, set }) {
  const names = shown.map((each) => each.name);
  const toggle = (name) => set(names.includes(name) ? names.filter((each) => each !== name) : [...names, name]);
  return html`<details class="menu"><summary class="button">Columns</summary><fieldset><legend class="hidden">Columns</legend>
    ${all
      .filter((each) => !each.always)
      .map(
        (each) => html`<label key=${each.name} class="check"><input type="checkbox" checked=${names.includes(each.name)}
          onChange=${() => toggle(each.name)} /> ${each.name}</label>`,
      )}</fieldset></details>`;
}

const ended = (kind) => kind === "execution_ended" || kind === "job_changed";

// Books by key, of what is in sight; those that were asked for before stay known while one scrolls.
export function useBooksInSight(keys) {
  const known = useRef(new Map());
  const asked = keys.slice(0, MOST);
  const { books } = useBooks(asked, BARS, { on: ended, least: 5_000 });
  return useMemo(() => {
    for (const [key, book] of books) known.current.set(key, book);
    return new Map(known.current);
  }, [books]);
}
