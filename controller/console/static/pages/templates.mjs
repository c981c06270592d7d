// Stored forms that jobs are made from.
import { html } from "../base.mjs";
import { patch, put, remove } from "../api.mjs";
import { duration } from "../clock.mjs";
import { Deeds, inPath, Listing, NOTE, oneOf, pairs, parted, useOne, when } from "../listing.mjs";
import { Answered, Copied, Facts, Panel, When } from "../parts.mjs";
import { useQuery } from "../queries.mjs";
import { inNamespace, noted, quoted, wordOf } from "../words.mjs";

const pathOf = (row) => `/templates${inPath(row.namespace || "default", row.name)}`;
const nameOf = (row) => `${row.namespace}/${row.name}`;

export function Templates({ session }) {
  const [one] = useOne();
  if (one) return html`<${Template} key=${one} name=${one} session=${session} />`;
  return html`<${Listing} session=${session} of=${{
    title: "Templates",
    says: "Named defaults that jobs are made from. A job copies them: a later change of a template changes no job.",
    path: "/templates",
    rows: "templates",
    keyOf: nameOf,
    columns: COLUMNS,
    make: [session.may("operate") && setTemplate(null, session.home("operate"))],
    deeds: (row) => deeds(row, session),
    none: "There is no template.",
    command: "cronring template set nightly --cron '0 3 * * *'",
  }} /><${Defaults} session=${session} />`;
}

// What all jobs have that don't say it, and whose verbs don't.
function Defaults({ session }) {
  const query = useQuery("/defaults");
  const said = query.data;
  const deeds = said && session.may("admin", "*") ? [setDefaults(said)] : [];
  return html`<${Panel} id="defaults" title="Defaults of the cluster" says="What a job has that doesn't say it, and whose verb doesn't. A change holds for the next run of each.">
    <${Answered} query=${query}>${
      said &&
      html`<${Facts} of=${[
        ["Timeout", said.timeout_ms ? duration(Number(said.timeout_ms)) : "as the controllers' --timeout"],
        ["Late after", said.late_after || "not set: webhooks aren't told of late ticks"],
        ["Retries", said.retries || "not set: what failed isn't tried again"],
        said.changed_at && ["Changed", html`<${When} at=${said.changed_at} /> by ${said.changed_by}${said.note && `: ${said.note}`}`],
      ]} /><${Deeds} of=${deeds} again=${query.again} />`
    }<//><//>`;
}

const DEFAULTS = ["timeout", "late_after", "retries"];

const setDefaults = (said) => ({
  word: "Change the defaults",
  title: "Change the defaults of the cluster",
  verb: "Change them",
  says: "All jobs that don't say it have it from their next run on. What runs keeps what it began with.",
  undo: "change them back to what this form began with.",
  fields: [
    { name: "timeout", label: "Timeout in seconds. Empty: as the controllers' --timeout.", kind: "number",
      value: said.timeout_ms ? Number(said.timeout_ms) / 1_000 : "", optional: true },
    { name: "late_after", label: "Late after. Empty: webhooks aren't told of late ticks.", value: said.late_after,
      optional: true, hint: "30s" },
    { name: "retries", label: "Retries. Empty: what failed isn't tried again.", kind: "number",
      value: said.retries || "", optional: true, hint: "2" },
    NOTE,
  ],
  command: (values) => {
    const wanted = { ...values, timeout: values.timeout && `${values.timeout}s` };
    const before = { ...said, timeout: said.timeout_ms };
    const given = DEFAULTS.filter((name) => wanted[name]).map((name) => `${name}=${wanted[name]}`);
    const gone = DEFAULTS.filter((name) => !wanted[name] && before[name]);
    const words = [given.length && `set ${given.map(quoted).join(" ")}`, gone.length && `unset ${gone.join(" ")}`].filter(Boolean);
    return words.map((each) => `cronring defaults ${each}${noted(values)}`).join("; ") || "cronring defaults show";
  },
  act: (values) =>
    patch(
      "/defaults",
      {
        timeout_ms: Math.round(Number(values.timeout) * 1_000),
        late_after: values.late_after,
        retries: Number(values.retries),
        note: values.note,
      },
      said.etag,
    ),
});

const COLUMNS = [
  { name: "Template", of: (row) => html`<a href=${oneOf("/templates", nameOf(row))}>${nameOf(row)}</a>` },
  { name: "What for", of: (row) => row.description },
  { name: "Schedule", of: (row) => row.schedule_words },
  { name: "Jobs", number: true, of: (row) => row.jobs },
  { name: "Revision", number: true, of: (row) => row.revision },
  when("Changed", "changed_at"),
  { name: "By", of: (row) => row.changed_by },
];

const deeds = (row, session) => (session.may("operate", row.namespace) ? [setTemplate(row), deleteTemplate(row)] : []);

const given = ({ schedule, payload, labels, timeout }) => ({
  ...(schedule ? { schedule } : {}),
  ...(payload ? { payload } : {}),
  ...(labels ? { labels: pairs(labels) } : {}),
  ...(timeout ? { timeout_ms: Math.round(Number(timeout) * 1_000) } : {}),
});

const setTemplate = (row, home) => {
  const spec = row?.spec ?? {};
  const at = (values) => row ?? { namespace: values.namespace, name: values.name };
  return {
    word: row ? "Change" : "Make a template",
    title: row ? `Change ${nameOf(row)}` : "Make a template",
    verb: row ? "Change it" : "Make it",
    says: "What is empty here is left to the job. Policies that aren't asked for here stay as they are.",
    undo: row ? "change it back; jobs that were made meanwhile keep what they copied." : "delete it.",
    fields: [
      ...(row
        ? []
        : [
            { name: "name", label: "Name", hint: "nightly" },
            { name: "namespace", label: "Namespace", value: home },
          ]),
      { name: "description", label: "What for", value: row?.description ?? "", optional: true },
      {
        name: "schedule",
        label: "Schedule: a pattern, every 30m, manual",
        value: spec.schedule ?? "",
        optional: true,
        hint: "0 3 * * *",
      },
      ...(row?.outputs_hidden
        ? []
        : [{ name: "payload", label: "Payload: JSON", kind: "lines", value: spec.payload ?? "", optional: true }]),
      {
        name: "labels",
        label: "Labels",
        value: Object.entries(spec.labels ?? {})
          .map(([key, value]) => `${key}=${value}`)
          .join(", "),
        optional: true,
        hint: "team=core, tier=slow",
      },
      {
        name: "timeout",
        label: "Timeout in seconds",
        kind: "number",
        value: spec.timeout_ms ? Number(spec.timeout_ms) / 1_000 : "",
        optional: true,
      },
      NOTE,
    ],
    command: (values) =>
      `cronring template set ${quoted(at(values).name || "NAME")}${inNamespace(at(values))}` +
      (values.schedule ? ` --cron ${quoted(values.schedule)}` : "") +
      (values.timeout ? ` --timeout ${values.timeout}s` : "") +
      Object.entries(pairs(values.labels))
        .map(([key, value]) => ` --label ${quoted(`${key}=${value}`)}`)
        .join("") +
      noted(values),
    act: async (values) => {
      const mask = ["description", "schedule", "labels", "timeout_ms", ...(row?.outputs_hidden ? [] : ["payload"])];
      await put(pathOf(at(values)), {
        description: values.description,
        spec: given(values),
        update_mask: mask.join(","),
        note: values.note,
      });
    },
  };
};

const deleteTemplate = (row) => ({
  word: "Delete",
  title: `Delete ${nameOf(row)}`,
  verb: "Delete it",
  typed: row.name,
  says: `${row.jobs} jobs came from it: they stay as they are.`,
  fields: [NOTE],
  command: (values) => `cronring template delete ${quoted(row.name)}${inNamespace(row)}${noted(values)}`,
  act: ({ note }) => remove(pathOf(row), { note }),
});

function Template({ name, session }) {
  const [namespace, short] = parted(name);
  const query = useQuery(`/templates${inPath(namespace, short)}`);
  const row = query.data;
  const set = row
    ? Object.entries(row.spec.policy ?? {}).filter(
        ([, value]) => value !== "" && value !== null && value !== false && value.length !== 0,
      )
    : [];
  return html`<p><a href="/templates">All templates</a></p><h1 class="key">${name}</h1>
    <${Answered} query=${query}>${
      row &&
      html`<p class="lead">${row.description} ${row.schedule_words}</p>
      <${Deeds} of=${deeds(row, session)} again=${query.again} />
      <${Facts} of=${[
        ["Schedule", row.spec.schedule ? html`<code>${row.spec.schedule}</code>` : "left to the job"],
        row.spec.timeout_ms && ["Timeout", duration(Number(row.spec.timeout_ms))],
        [
          "Labels",
          Object.entries(row.spec.labels).map(([key, value]) => html`<span class="label">${key}=${value}</span> `),
        ],
        [
          "Payload",
          row.outputs_hidden
            ? "hidden: your role doesn't show payloads"
            : row.spec.payload
              ? html`<code>${row.spec.payload}</code>`
              : "left to the job",
        ],
        ...set.map(([field, value]) => [
          wordOf(field),
          html`<code>${typeof value === "object" ? JSON.stringify(value) : String(value)}</code>`,
        ]),
        ["Jobs that came from it", row.jobs],
        ["Changed", html`<${When} at=${row.changed_at} /> by ${row.changed_by}, revision ${row.revision}`],
      ]} />
      <${Copied} text=${`cronring jobs create MODULE.VERB --name NAME --template ${quoted(row.name)}`} />`
    }<//>`;
}
