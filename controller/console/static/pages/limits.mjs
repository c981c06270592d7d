// How much may run at once: of a module, of a namespace, or of each value of a label; and who waits for a place.
import { html, useMemo } from "../base.mjs";
import { put, remove } from "../api.mjs";
import { now } from "../clock.mjs";
import { inPath, Listing, NOTE, when } from "../listing.mjs";
import { jobPath, Panel, State, When } from "../parts.mjs";
import { useQuery } from "../queries.mjs";
import { noted, quoted } from "../words.mjs";

const DUE = 100;

const nameOf = (row) => `${row.namespace}/${row.module}${row.label ? ` by ${row.label}` : ""}`;
const groupOf = (row) => (row.namespace === "default" ? row.module : `${row.namespace}/${row.module}`);
const pathOf = ({ namespace, module }) => `/limits${inPath(...[namespace || "default", module].filter(Boolean))}`;
const command = (deed, row) =>
  `cronring limits ${deed}${groupOf(row) ? ` ${quoted(groupOf(row))}` : ""}${row.label ? ` --by ${quoted(`label:${row.label}`)}` : ""}`;
const full = (row) => (row.label ? row.full_values > 0 : row.running >= row.max_concurrent);

export function Limits({ session }) {
  return html`<${Listing} session=${session} of=${{
    title: "Limits",
    says: "How many runs go on at once. What finds no place waits for one, and isn't skipped.",
    path: "/limits",
    rows: "limits",
    keyOf: nameOf,
    columns: COLUMNS,
    on: (kind) => kind === "execution_started" || kind === "execution_ended",
    make: [session.may("admin") && setLimit({ namespace: session.home("admin"), module: "", label: "", max_concurrent: "" })],
    deeds: (row) => (session.may("admin", row.namespace) ? [setLimit(row), removeLimit(row)] : []),
    none: "Nothing is limited.",
    command: "cronring limits set billing --max-concurrent 5",
  }} /><${Waiting} />`;
}

const COLUMNS = [
  {
    name: "Of",
    of: (row) =>
      html`<a href=${`/jobs?q=${encodeURIComponent(`${row.module ? `module:${row.module} ` : ""}namespace:${row.namespace}`)}`}>${row.namespace}/${row.module}</a>`,
  },
  { name: "Each value of", of: (row) => row.label && html`<code>${row.label}</code>` },
  {
    name: "State",
    of: (row) =>
      html`<${State} is=${full(row) ? "full" : "free"} text=${row.label && full(row) ? `${row.full_values} of ${row.values} full` : undefined} />`,
  },
  { name: "Running", number: true, of: (row) => row.running },
  { name: "At most", number: true, of: (row) => row.max_concurrent },
  {
    name: "Fullest",
    of: (row) =>
      row.fullest.map(
        (each) =>
          html`<a key=${each.value} class="label" href=${`/jobs?q=${encodeURIComponent(`label:"${row.label}=${each.value}" namespace:${row.namespace}`)}`}>${each.value}: ${each.running}</a> `,
      ),
  },
  when("Changed", "changed_at"),
  { name: "By", of: (row) => row.changed_by },
  { name: "Why", of: (row) => row.note },
];

const setLimit = (row) => {
  const made = !row.changed_at;
  const of = (values) => (made ? values : row);
  return {
    word: made ? "Set a limit" : "Change",
    title: made ? "Set a limit" : `Change the limit of ${nameOf(row)}`,
    verb: "Set it",
    says: "What runs goes on, and counts. Beyond the limit nothing begins until enough has ended.",
    undo: made ? "remove it." : `set it to ${row.max_concurrent} again.`,
    fields: [
      ...(made
        ? [
            { name: "namespace", label: "Namespace", value: row.namespace },
            { name: "module", label: "Module. Empty: all of the namespace together.", optional: true, hint: "billing" },
            {
              name: "label",
              label: "Label: so many of each of its values. Empty: none.",
              optional: true,
              hint: "workspace",
            },
          ]
        : []),
      { name: "max_concurrent", label: "At most so many at once", kind: "number", value: row.max_concurrent },
      NOTE,
    ],
    command: (values) => `${command("set", of(values))} --max-concurrent ${values.max_concurrent}${noted(values)}`,
    act: (values) =>
      put(pathOf(of(values)), {
        max_concurrent: Number(values.max_concurrent),
        note: values.note,
        label: of(values).label,
      }),
  };
};

const removeLimit = (row) => ({
  word: "Remove",
  title: `Remove the limit of ${nameOf(row)}`,
  verb: "Remove it",
  says: "As many run as there are. What waited for a place begins.",
  undo: `set it to ${row.max_concurrent} again.`,
  fields: [NOTE],
  command: (values) => command("remove", row) + noted(values),
  act: ({ note }) => remove(pathOf(row), { note, label: row.label }),
});

// Ticks whose time has come and that haven't begun. Why each of them waits, its job's page says in words.
function Waiting() {
  const query = useQuery("/due", { limit: DUE }, { every: 5_000 });
  const late = useMemo(
    () => (query.data?.due ?? []).filter((each) => !each.running && Date.parse(each.run_at) < now() - 1_000),
    [query.data],
  );
  if (!late.length) return null;
  return html`<${Panel} id="waits" title="Who waits" says="Their time has come, and they haven't begun: for a place, a runner, or their own run before.">
    <ul class="plain">${late.map(
      (
        each,
      ) => html`<li key=${each.job} class="pair"><a class="key" href=${`${jobPath(each.job)}?why=${encodeURIComponent(each.tick)}`}>${each.job}</a>
        <span class="digits">due <${When} at=${each.run_at} /></span></li>`,
    )}</ul><//>`;
}
