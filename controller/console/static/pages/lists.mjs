// What is set, by whom, since when: a table for each kind of thing, all drawn by one list.
import { html, useState } from "../base.mjs";
import { post } from "../api.mjs";
import { ask } from "../doing.mjs";
import { useQuery } from "../queries.mjs";
import { Answered, Copied, Empty, jobPath, JobLink, Rows, RunLink, State, When } from "../parts.mjs";
import { quoted, wordOf } from "../words.mjs";

const PAGE = 100;
const by = (name) => ({ name, of: (row) => row[`${name.toLowerCase()}_by`] });
const when = (name, field) => ({ name, of: (row) => html`<${When} at=${row[field]} />` });
const grants = (row) => row.grants.map((each) => `${each.role}@${each.namespace}`).join(", ");
const refusal = (row) =>
  `refused: ${wordOf(row.refused).toLowerCase()}${Number(row.times) > 1 ? `, ${row.times} times` : ""}`;
const alive = (row) => (row.revoked_at || row.ended ? "inactive" : "active");

// Of each kind: where it is asked for, what a row is called, its columns, and what to say where there is none.
export const KINDS = {
  deployments: {
    title: "Deployments",
    path: "/deployments",
    rows: "deployments",
    keyOf: (row) => row.key,
    says: "Versions of modules. One version of a module is active.",
    columns: [
      { name: "Version", of: (row) => html`<code>${row.key}</code>` },
      { name: "State", of: (row) => html`<${State} is=${row.active ? "active" : "inactive"} />` },
      {
        name: "Jobs",
        number: true,
        of: (row) => html`<a href=${`/jobs?q=module:${encodeURIComponent(row.module)}`}>${row.jobs}</a>`,
      },
      { name: "Runners", number: true, of: (row) => row.runners },
      when("Active since", "activated_at"),
      when("Made", "created_at"),
      { name: "Source", of: (row) => html`<${Source} of=${row} />` },
    ],
    deed: (row, session) =>
      !row.active &&
      row.activated_at &&
      session.may("deploy", row.namespace) && [
        "Roll back to it",
        () =>
          ask({
            title: `Make ${row.key} active`,
            verb: "Make it active",
            says: "Its jobs take the place of those of the version that is active now. Runs that go on aren't stopped.",
            undo: "make the other version active again.",
            fields: [{ name: "note", label: "Why? Others will ask later.", optional: true }],
            command: () => `cronring deployments activate ${quoted(row.key)}`,
            act: (values) => post(`/deployments/${encodeURIComponent(row.key)}/activate`, { note: values.note }),
          }),
      ],
    command: "cronring deploy yours.py",
    none: "No module has been deployed.",
  },
  limits: {
    title: "Limits",
    path: "/limits",
    rows: "limits",
    keyOf: (row) => `${row.namespace}/${row.module}`,
    says: "How many runs of a module or namespace go on at once.",
    columns: [
      { name: "Of", of: (row) => `${row.namespace}/${row.module}` },
      { name: "State", of: (row) => html`<${State} is=${row.running >= row.max_concurrent ? "full" : "free"} />` },
      { name: "Run now", number: true, of: (row) => row.running },
      { name: "At most", number: true, of: (row) => row.max_concurrent },
      when("Changed", "changed_at"),
      by("Changed"),
      { name: "Why", of: (row) => row.note },
    ],
    command: "cronring limits set billing --max-concurrent 5",
    none: "Nothing is limited.",
  },
  webhooks: {
    title: "Webhooks",
    path: "/webhooks",
    rows: "webhooks",
    keyOf: (row) => row.name,
    needs: ["admin", "*"],
    says: "Who is told of what. A secret part of an address is told to nobody.",
    columns: [
      { name: "Name", of: (row) => row.name },
      {
        name: "State",
        of: (row) =>
          row.disabled_at ? html`<${State} is="paused" text="disabled" />` : html`<${State} is="active" />`,
      },
      { name: "To", of: (row) => row.origin },
      { name: "Of", of: (row) => row.events.join(", ") || "all but completed" },
      { name: "Delivered", number: true, of: (row) => row.delivered },
      { name: "Waiting", number: true, of: (row) => row.waiting },
      { name: "Failed", number: true, of: (row) => row.failed },
      { name: "Why disabled", of: (row) => row.disabled_reason },
      when("Made", "created_at"),
      by("Created"),
    ],
    command: "cronring webhooks add --help",
    none: "Nobody is told of anything.",
  },
  templates: {
    title: "Templates",
    path: "/templates",
    rows: "templates",
    keyOf: (row) => `${row.namespace}/${row.name}`,
    says: "Stored forms from which jobs are made.",
    columns: [
      { name: "Template", of: (row) => `${row.namespace}/${row.name}` },
      { name: "What for", of: (row) => row.description },
      { name: "Schedule", of: (row) => row.schedule_words },
      { name: "Jobs", number: true, of: (row) => row.jobs },
      { name: "Revision", number: true, of: (row) => row.revision },
      when("Changed", "changed_at"),
      by("Changed"),
    ],
    command: "cronring templates set nightly --cron '0 3 * * *'",
    none: "There is no template.",
  },
  tokens: {
    title: "Tokens",
    path: "/tokens",
    rows: "tokens",
    keyOf: (row) => row.name,
    needs: ["admin"],
    says: "What programs and people call with. The secret itself is told once, when it is made.",
    columns: [
      { name: "Token", of: (row) => row.name },
      { name: "State", of: (row) => html`<${State} is=${alive(row)} />` },
      { name: "May", of: grants },
      when("Last used", "last_used_at"),
      when("Ends", "expires_at"),
      when("Made", "created_at"),
      by("Created"),
      by("Revoked"),
    ],
    command: "cronring token create ci --role deployer",
    none: "There is no token.",
  },
  grants: {
    title: "Runner grants",
    path: "/runner-grants",
    rows: "runner_grants",
    keyOf: (row) => row.name,
    needs: ["admin"],
    says: "What runners may host.",
    columns: [
      { name: "Grant", of: (row) => row.name },
      { name: "State", of: (row) => html`<${State} is=${alive(row)} />` },
      { name: "Namespace", of: (row) => row.namespace },
      { name: "Modules", of: (row) => row.modules.join(" ") || "any" },
      { name: "May activate", of: (row) => (row.may_activate ? "yes" : "no") },
      { name: "Uses left", number: true, of: (row) => row.uses_left ?? "any" },
      when("Made", "created_at"),
      by("Created"),
    ],
    command: "cronring runner-grant create billing --module billing",
    none: "There is no grant.",
  },
  sessions: {
    title: "Browsers",
    path: "/sessions",
    rows: "sessions",
    keyOf: (row) => row.id,
    says: "Where you are logged in.",
    columns: [
      { name: "Who", of: (row) => row.principal },
      { name: "State", of: (row) => html`<${State} is=${alive(row)} />` },
      { name: "From", of: (row) => row.origin },
      when("Last used", "last_used_at"),
      when("Ends", "expires_at"),
      when("Made", "created_at"),
    ],
    none: "No browser is logged in.",
  },
  audit: {
    title: "Audit log",
    path: "/audit-log",
    rows: "audit_rows",
    keyOf: (row) => row.id,
    needs: ["admin"],
    says: "Every change and every refusal, in a chain that shows whether a row was changed or taken away.",
    columns: [
      when("When", "at"),
      { name: "Who", of: (row) => row.principal },
      {
        name: "Came of it",
        of: (row) =>
          row.refused
            ? html`<${State} is="failed"
              text=${refusal(row)} />`
            : html`<${State} is="completed" text="done" />`,
      },
      { name: "What", of: (row) => html`<code>${row.method}</code>` },
      { name: "To", of: (row) => row.subject },
      { name: "From", of: (row) => row.origin },
      { name: "Remark", of: (row) => row.remark },
      { name: "Before", of: (row) => html`<code class="json">${row.before_json}</code>` },
      { name: "After", of: (row) => html`<code class="json">${row.after_json}</code>` },
    ],
    command: "cronring audit-log list",
    none: "Nothing has been changed.",
  },
  actions: {
    title: "What people did",
    path: "/actions",
    rows: "actions",
    keyOf: (row) => row.id,
    says: "The newest first.",
    columns: [
      when("When", "at"),
      { name: "Who", of: (row) => row.actor },
      { name: "What", of: (row) => wordOf(row.action) },
      { name: "To", of: (row) => (row.job ? html`<${JobLink} of=${row.job} />` : row.deployment || row.template) },
      { name: "Run", of: (row) => (Number(row.execution_id) ? html`<${RunLink} of=${row.execution_id} />` : "") },
      { name: "Why", of: (row) => row.note },
    ],
    none: "Nobody has done anything yet.",
  },
};

const Source = ({ of }) =>
  html`<details><summary>Text</summary><pre class="output" tabindex="0">${of.schema_text}</pre></details>`;

export function Listed({ kind, session }) {
  const of = KINDS[kind];
  const [token, setToken] = useState("");
  const allowed = !of.needs || session.may(...of.needs);
  const query = useQuery(allowed ? of.path : null, { page_size: PAGE, page_token: token });
  const rows = query.data?.[of.rows] ?? [];
  const deed = {
    name: "Do",
    of: (row) => {
      const [text, act] = of.deed?.(row, session) || [];
      return text ? html`<button class="small" onClick=${act}>${text}</button>` : "";
    },
  };
  return html`<h1>${of.title}</h1><p class="says">${of.says}</p>${
    !allowed
      ? html`<p
        class="problem">Your role doesn't show this: it takes ${of.needs[0]}
            ${of.needs[1] ? " of all namespaces" : ""}.</p>`
      : html`<${Answered} query=${query} empty=${query.data && !rows.length && html`<${Empty}
        command=${of.command}>${of.none}<//>`}>
      <${Rows} caption=${of.title} columns=${of.deed ? [...of.columns, deed] : of.columns} rows=${rows}
        keyOf=${of.keyOf} />
      <div class="buttons">${token && html`<button onClick=${() => setToken("")}>First page</button>`}
        ${query.data?.next_page_token && html`<button
          onClick=${() => setToken(query.data.next_page_token)}>Next ${PAGE}</button>`}
      </div>${of.command && html`<p class="says">Change it by the command line:</p><${Copied}
        text=${of.command} />`}<//>`
  }`;
}

export const Access = ({
  session,
}) => html`<${Listed} kind="tokens" session=${session} /><${Listed} kind="grants" session=${session} />
  <${Listed} kind="sessions" session=${session} />`;
