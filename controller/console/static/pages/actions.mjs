// What people did to jobs, versions, runs and templates, and why.
import { html } from "../base.mjs";
import { Listing, oneOf, when } from "../listing.mjs";
import { JobLink, PayloadChange, RunLink } from "../parts.mjs";
import { wordOf } from "../words.mjs";

const to = (row) => {
  if (row.job) return html`<${JobLink} of=${row.job} />`;
  if (row.deployment) return html`<a class="key" href=${oneOf("/deployments", row.deployment)}>${row.deployment}</a>`;
  return row.template && html`<a class="key" href=${oneOf("/templates", row.template)}>${row.template}</a>`;
};

const OF = {
  title: "What people did",
  says: "The newest first.",
  path: "/actions",
  rows: "actions",
  keyOf: (row) => row.id,
  columns: [
    when("When", "at"),
    { name: "Who", of: (row) => row.actor },
    { name: "What", of: (row) => wordOf(row.action) },
    { name: "To", of: to },
    { name: "Run", of: (row) => (Number(row.execution_id) ? html`<${RunLink} of=${row.execution_id} />` : "") },
    { name: "Why", of: (row) => row.note },
    { name: "Changed", of: (row) => html`<${PayloadChange} of=${row} />` },
  ],
  none: "Nobody has done anything yet.",
  command: "cronring jobs actions",
};

export const Actions = ({ session }) => html`<${Listing} of=${OF} session=${session} />`;
