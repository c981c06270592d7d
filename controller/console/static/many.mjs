// One order to many jobs: what it would do to each, tried first; then done, by one call; then undone, where it can be.
import { html, useState } from "./base.mjs";
import { lines } from "./api.mjs";
import { UNTIL, untilOf, untilOption } from "./actions.mjs";
import { ask } from "./doing.mjs";
import { count, noted, number, quoted } from "./words.mjs";

const SHOWN = 5;
const NOTE = { name: "note", label: "Why? Others will ask later.", optional: true };
const CLI = { SKIP_NEXT: "skip-next" };

const DEEDS = [
  {
    action: "PAUSE",
    verb: "Pause",
    inverse: "RESUME",
    undo: "resume them: the button appears when it is done.",
    fields: [UNTIL],
    option: untilOption,
    spec: untilOf,
  },
  { action: "RESUME", verb: "Resume", inverse: "PAUSE", undo: "pause them: the button appears when it is done." },
  { action: "TRIGGER", verb: "Run now", undo: "cancel the executions while they run." },
  { action: "SKIP_NEXT", verb: "Skip next", undo: "run them by hand at that time." },
  { action: "CANCEL", verb: "Cancel", undo: "restore them; what waited is forgotten, and what ran is stopped." },
  { action: "RESTORE", verb: "Restore", undo: "cancel them again." },
];

// One order by the API. `chosen`: {filter, query} of what matches, or {keys}.
async function order(chosen, action, more, heard) {
  const filter = chosen.keys ? { keys: chosen.keys } : { text: chosen.query };
  const found = { done: [], same: 0, refused: [], total: 0 };
  for await (const line of lines("/jobs:control", null, null, { filter, action: `ACTION_${action}`, ...more })) {
    found.total = Number(line.total);
    if (!line.key) continue;
    if (line.problem) found.refused.push(`${line.key}: ${line.problem}`);
    else if (line.unchanged) found.same += 1;
    else found.done.push(line.key);
    heard?.(found);
  }
  return found;
}

const said = (found, would) =>
  [
    `${would}${count(found.done.length, "job")} of ${count(found.total, "job")}.`,
    found.same > 0 && `${count(found.same, "job")} stay as they are.`,
    found.refused.length > 0 && `${found.refused.length} refused:`,
    ...found.refused.slice(0, SHOWN),
  ].filter(Boolean);

const command = (chosen, words) => {
  if (!chosen.keys) return `${words} --filter ${quoted(chosen.query)}`;
  return (
    chosen.keys
      .slice(0, 3)
      .map((key) => `${words} ${quoted(key)}`)
      .join("; ") + (chosen.keys.length > 3 ? " …" : "")
  );
};

// A dialog that tries it, asks, and does it to exactly as many as were shown.
function orderMany(chosen, { action, verb, undo, inverse, typed, fields = [], spec, option }, finished) {
  let tried = null;
  const many = chosen.keys ? chosen.keys.length : chosen.count;
  ask({
    title: `${verb}: ${count(many, "job")}`,
    verb,
    says: chosen.keys
      ? "This is done to each job that is selected."
      : `This is done to each job that fits: ${chosen.query}`,
    preview:
      action !== "UPDATE" &&
      (async () => {
        tried = await order(chosen, action, { dry_run: true });
        return said(tried, "It would change ");
      }),
    undo,
    typed: typed && `${verb.toLowerCase()} ${many}`,
    fields: [...fields, NOTE],
    command: (values) =>
      command(chosen, `cronring jobs ${CLI[action] ?? action.toLowerCase()}`) +
      (option?.(values) ?? "") +
      noted(values),
    act: async (values) => {
      const expected = tried ? tried.total : many;
      const found = await order(chosen, action, { note: values.note, expected, ...spec?.(values) });
      finished({ ...found, verb, inverse });
      return { shows: said(found, "Done to ").map((line) => html`<p key=${line}>${line}</p>`) };
    },
  });
}

const LABEL = {
  action: "UPDATE",
  verb: "Label",
  undo: "set the label to what it was. Jobs that a module declares are refused: their labels stand in its code.",
  fields: [
    { name: "key", label: "Label", hint: "team" },
    { name: "value", label: "Value. Empty: take the label away.", optional: true, hint: "billing" },
  ],
  option: ({ key, value }) => (value ? ` --set-label ${quoted(`${key}=${value}`)}` : ` --remove-label ${quoted(key)}`),
  spec: ({ key, value }) => ({
    spec: { labels: value ? { [key]: value } : {} },
    update_mask: `labels.${key}`,
  }),
};

const DELETE = { action: "DELETE", verb: "Delete", typed: true };

// `picked`: jobs by key. `every`: all that match are meant: {query, count}. `select(…)`, `clear()` change that.
export function Many({ picked, every, matching, session, selectEvery, clear }) {
  const [last, setLast] = useState(null);
  const jobs = [...picked.values()];
  const namespaces = new Set(jobs.map((job) => job.namespace));
  const may = (permission) =>
    every ? session.may(permission) : [...namespaces].every((each) => session.may(permission, each));
  const chosen = every ?? { keys: jobs.map((job) => job.key) };
  const finished = (found) => {
    setLast(found.done.length && found.inverse ? found : null);
    clear();
  };
  const undo = () =>
    orderMany(
      { keys: last.done },
      { action: last.inverse, verb: `Undo: ${last.inverse.toLowerCase()}`, undo: "do it again." },
      () => setLast(null),
    );
  if (!jobs.length && !every) {
    return (
      last &&
      html`<div class="bar" role="region" aria-label="Done">
      <span role="status">${last.verb}: done to ${count(last.done.length, "job")}.</span>
      <button onClick=${undo}>Undo</button><button onClick=${() => setLast(null)}>Keep</button></div>`
    );
  }
  const many = every ? every.count : jobs.length;
  return html`<div class="bar" role="region" aria-label="Selected jobs">
    <span>${count(many, "job")} selected${every ? ": all that match" : ""}</span>
    ${
      !every &&
      matching &&
      matching.count > jobs.length &&
      html`<button class="small"
      onClick=${() => selectEvery(matching)}>Select all ${number(matching.count)} that match</button>`
    }
    ${
      !may("operate") &&
      html`<span class="says">Your role may not change all of these: select those of ${session.where.operate.join(", ")}.</span>`
    }
    ${
      may("operate") &&
      [...DEEDS, LABEL, DELETE].map(
        (deed) =>
          html`<button key=${deed.action} onClick=${() => orderMany(chosen, deed, finished)}>${deed.verb}</button>`,
      )
    }
    <button onClick=${clear}>Select none</button></div>`;
}
