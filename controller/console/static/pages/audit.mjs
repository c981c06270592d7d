// Who changed what, and who was refused; and whether the chain of it is whole.
import { html } from "../base.mjs";
import { Listing, when } from "../listing.mjs";
import { Answered, Choice, Copied, Facts, Panel, State, Words } from "../parts.mjs";
import { useQuery } from "../queries.mjs";
import { useParameter } from "../router.mjs";
import { count, quoted, wordOf } from "../words.mjs";

const NEEDS = ["admin"];
const HOUR_MS = 3_600_000;
const SPANS = { "": "all that is kept", 1: "the last hour", 24: "the last day", 168: "the last week" };
const KINDS = [["", "anything"], "refused", ["changes", "changed"]];
const LAST = "9223372036854775806"; // of a chain: nothing comes after, so that only its state is told

const refusal = (row) =>
  `refused: ${wordOf(row.refused).toLowerCase()}${Number(row.times) > 1 ? `, ${row.times} times` : ""}`;

export function Audit({ session }) {
  const [principal, setPrincipal] = useParameter("who");
  const [method, setMethod] = useParameter("what");
  const [subject, setSubject] = useParameter("to");
  const [namespace, setNamespace] = useParameter("namespace");
  const [hours, setHours] = useParameter("hours");
  const [kind, setKind] = useParameter("kind");
  const field = (label, value, set, hint) => html`<${Words} label=${label} value=${value} set=${set} hint=${hint} />`;
  const command =
    "cronring audit-log list" +
    Object.entries({ principal, method, subject, namespace })
      .filter(([, value]) => value)
      .map(([name, value]) => ` --${name} ${quoted(value)}`)
      .join("") +
    (hours ? ` --since -${hours}h` : "") +
    (kind ? ` --${kind}` : "");
  const since = hours ? new Date(Math.floor((Date.now() - hours * HOUR_MS) / 60_000) * 60_000).toISOString() : "";
  return html`<${Listing} key=${[principal, method, subject, namespace, hours, kind].join()} session=${session} of=${{
    title: "Audit log",
    says: "Every change and every refusal, the latest first.",
    path: "/audit-log",
    query: {
      principal,
      method,
      subject,
      namespace,
      since,
      refused_only: kind === "refused" || "",
      changes_only: kind === "changes" || "",
    },
    rows: "audit_rows",
    keyOf: (row) => row.id,
    needs: NEEDS,
    columns: COLUMNS,
    tools: html`${field("Who", principal, setPrincipal, "token:ci")}${field("What", method, setMethod, "PauseJob")}
      ${field("To", subject, setSubject, "job billing/close")}${field("Namespace", namespace, setNamespace, "any")}
      <${Choice} label="Since" value=${hours} set=${setHours} of=${Object.entries(SPANS)} />
      <${Choice} label="Outcome" value=${kind} set=${setKind} of=${KINDS} />`,
    none: "Nothing fits. All that there is:",
    command: "cronring audit-log list",
  }} />${session.may("admin") && html`<${Copied} text=${command} />`}
  ${session.may("admin", "*") && html`<${Chain} />`}`;
}

// As the filter takes it: the service and its method, without the package that all have.
const shortened = (method) => method.replace(/^\/cronring\.v1\.(\w+)\//, "$1.");

const COLUMNS = [
  when("When", "at"),
  { name: "Who", of: (row) => row.principal },
  {
    name: "Outcome",
    of: (row) =>
      row.refused ? html`<${State} is="failed" text=${refusal(row)} />` : html`<${State} is="completed" text="done" />`,
  },
  { name: "What", of: (row) => html`<code>${shortened(row.method)}</code>` },
  { name: "To", of: (row) => row.subject },
  { name: "From", of: (row) => row.origin },
  { name: "Remark", of: (row) => row.remark },
  { name: "Change", of: (row) => (row.before_json || row.after_json ? html`<${Change} of=${row} />` : "") },
  { name: "Sealed", number: true, of: (row) => (Number(row.seq) ? `#${row.seq}` : "not yet") },
];

const parse = (text) => {
  try {
    const value = JSON.parse(text || "{}");
    return value && typeof value === "object" && !Array.isArray(value) ? value : { value };
  } catch {
    return { value: text };
  }
};
const told = (value) =>
  value === undefined ? "nothing" : typeof value === "string" ? value : JSON.stringify(value);

// Of what stood before and after, only what differs.
function Change({ of }) {
  const [before, after] = [parse(of.before_json), parse(of.after_json)];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  );
  return html`<details><summary>${count(names.length, "field")}</summary><dl class="facts">${names.map(
    (name) =>
      html`<div key=${name}><dt>${name}</dt><dd><code>${told(before[name])}</code> → <code>${told(after[name])}</code></dd></div>`,
  )}</dl></details>`;
}

// How far rows are sealed. Whether they are whole is checked by whoever asks, not by the controller that is asked.
function Chain() {
  const query = useQuery("/audit-log/chain", { after_seq: LAST, page_size: 1 });
  const said = query.data;
  return html`<${Panel} id="chain" title="The chain" says="Each sealed row has a hash of the row before it. So a row that was changed, or taken away, shows.">
    <${Answered} query=${query}>${
      said &&
      html`<${Facts} of=${[
        ["Sealed up to", said.head ? html`#${said.head.seq} <code>${hex(said.head.hash)}</code>` : "nothing yet"],
        ["Not sealed yet", count(said.unsealed, "row")],
        [
          "Kept from",
          said.cut && Number(said.cut.seq)
            ? html`after #${said.cut.seq} <code>${hex(said.cut.hash)}</code>: retention has removed what was before`
            : "the first row",
        ],
      ]} />
      <p class="says">To check all of it, without believing this controller, and against a hash that you wrote down:</p>
      <${Copied} text="cronring audit-log verify" />`
    }<//><//>`;
}

const hex = (text) =>
  [...atob(text || "")]
    .map((one) => one.charCodeAt(0).toString(16).padStart(2, "0"))
    .join("")
    .slice(0, 16);
