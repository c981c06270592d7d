// Who is told of what, and how that goes.
import { html, useState } from "../base.mjs";
import { post, postForSecret, put, remove } from "../api.mjs";
import { Deeds, inPath, Listing, oneOf, pairs, Refused, Secret, useOne, when, words } from "../listing.mjs";
import { Answered, Choice, Copied, Facts, JobLink, State } from "../parts.mjs";
import { useQuery } from "../queries.mjs";
import { noted, quoted, wordOf } from "../words.mjs";

const NEEDS = ["admin", "*"];
const STATES = { waiting: "waiting", delivered: "completed", failed: "failed" };
const pathOf = (name) => `/webhooks${inPath(name)}`;
const stateOf = (row) =>
  row.disabled_at ? html`<${State} is="paused" text="disabled" />` : html`<${State} is="active" />`;
const of = (row) =>
  [
    row.events.join(", ") || "all but completed",
    row.namespace && `namespace ${row.namespace}`,
    row.module && `module ${row.module}`,
    row.job && `job ${row.job}`,
    ...Object.entries(row.labels).map(([key, value]) => `${key}=${value}`),
    row.outcomes.length && `outcomes ${row.outcomes.join(", ")}`,
    row.reasons.length && `reasons ${row.reasons.join(", ")}`,
  ]
    .filter(Boolean)
    .join("; ");

export function Webhooks({ session }) {
  const [one] = useOne();
  if (one && !session.may(...NEEDS)) return html`<h1>Webhooks</h1><${Refused} needs=${NEEDS} />`;
  if (one) return html`<${Webhook} key=${one} name=${one} session=${session} />`;
  return html`<${Listing} session=${session} of=${{
    title: "Webhooks",
    says: "Who is told of what. The secret part of an address is told to nobody.",
    path: "/webhooks",
    rows: "webhooks",
    keyOf: (row) => row.name,
    needs: NEEDS,
    columns: COLUMNS,
    make: [ADD],
    deeds,
    none: "Nobody is told of anything.",
    command: "cronring webhook add pager URL",
  }} />`;
}

const COLUMNS = [
  { name: "Name", of: (row) => html`<a href=${oneOf("/webhooks", row.name)}>${row.name}</a>` },
  { name: "State", of: stateOf },
  { name: "To", of: (row) => row.origin },
  { name: "Of", of },
  { name: "Delivered", number: true, of: (row) => row.delivered },
  { name: "Waiting", number: true, of: (row) => row.waiting },
  { name: "Failed", number: true, of: (row) => row.failed },
  { name: "Why disabled", of: (row) => row.disabled_reason },
  when("Made", "created_at"),
  { name: "By", of: (row) => row.created_by },
];

const ADD = {
  word: "Add a webhook",
  title: "Add a webhook",
  verb: "Add it",
  says: "Its address is told of what happens from now on. Each delivery is signed with a secret, which is shown once.",
  undo: "remove it, or disable it.",
  fields: [
    { name: "name", label: "Name", hint: "pager" },
    { name: "url", label: "Address", kind: "url", hint: "of the receiver, by https" },
    { name: "events", label: "Events. Empty: all but completed.", optional: true, hint: "failed recovered late" },
    { name: "namespace", label: "Only of jobs in this namespace", optional: true },
    { name: "module", label: "Only of jobs of this module", optional: true },
    { name: "job", label: "Only of this job", optional: true, hint: "billing.close_month" },
    { name: "labels", label: "Only of jobs with these labels", optional: true, hint: "team=billing" },
  ],
  command: ({ name, events, namespace, module, job, labels }) =>
    `cronring webhook add ${quoted(name || "NAME")} @FILE${words(events)
      .map((each) => ` --event ${quoted(each)}`)
      .join("")}` +
    (namespace ? ` --namespace ${quoted(namespace)}` : "") +
    (module ? ` --module ${quoted(module)}` : "") +
    (job ? ` --job ${quoted(job)}` : "") +
    Object.entries(pairs(labels))
      .map(([key, value]) => ` --label ${quoted(`${key}=${value}`)}`)
      .join(""),
  act: async (values) => {
    const made = await postForSecret("/webhooks", { ...values, events: words(values.events), labels: pairs(values.labels) });
    return {
      shows: html`<${Secret} name=${values.name} secret=${made.secret}>Its receiver checks signatures with this.<//>`,
    };
  },
};

const deeds = (row) => [
  {
    word: "Test",
    title: `Test ${row.name}`,
    verb: "Send a test",
    says: `One signed event "webhook.test" is sent to ${row.origin} now, once, also if the webhook is disabled.`,
    command: () => `cronring webhook test ${quoted(row.name)}`,
    act: async () => {
      const said = await post(`${pathOf(row.name)}/test`);
      const came = said.delivered ? "It was delivered" : "It was not delivered";
      return `${came}: ${said.status ? `HTTP ${said.status}` : "no answer"}, in ${said.took_ms} ms. ${said.error}`;
    },
  },
  {
    word: row.disabled_at ? "Enable" : "Disable",
    title: `${row.disabled_at ? "Enable" : "Disable"} ${row.name}`,
    verb: row.disabled_at ? "Enable it" : "Disable it",
    says: row.disabled_at
      ? "It is told of what happens from now on, and what waited for it is tried again."
      : "It is told nothing until it is enabled again. What happens meanwhile it never hears of.",
    undo: row.disabled_at ? "disable it again." : "enable it again.",
    fields: row.disabled_at ? [] : [{ name: "reason", label: "Why? Others will ask later.", optional: true }],
    command: ({ reason }) =>
      `cronring webhook ${row.disabled_at ? "enable" : "disable"} ${quoted(row.name)}${noted({ note: reason })}`,
    act: ({ reason }) => put(`${pathOf(row.name)}/enabled`, { enabled: Boolean(row.disabled_at), reason }),
  },
  {
    word: "Remove",
    title: `Remove ${row.name}`,
    verb: "Remove it",
    typed: row.name,
    says: "It goes with its log, and with what waits for it.",
    command: () => `cronring webhook remove ${quoted(row.name)}`,
    act: () => remove(pathOf(row.name)),
  },
];

function Webhook({ name, session }) {
  const [state, setState] = useState("");
  const query = useQuery(pathOf(name), null, { every: 10_000 });
  const row = query.data;
  return html`<p><a href="/webhooks">All webhooks</a></p><h1>${name} ${row && stateOf(row)}</h1>
    <${Answered} query=${query}>${
      row &&
      html`<${Deeds} of=${deeds(row)} again=${query.again} /><${Facts} of=${[
        ["To", row.origin],
        ["Of", of(row)],
        ["Delivered", row.delivered],
        ["Waiting", row.waiting],
        ["Failed", row.failed],
        row.disabled_at && ["Why disabled", row.disabled_reason || "nobody said"],
      ]} /><${Copied} text=${`cronring webhook show ${quoted(name)}`} />`
    }<//>
    <${Listing} key=${state} level=${2} session=${session} of=${{
      title: "Deliveries",
      says: "The newest first. One event keeps its id at every try.",
      path: "/deliveries",
      query: { webhook: name, state },
      rows: "deliveries",
      keyOf: (each) => each.id,
      columns: DELIVERIES,
      tools: html`<${Choice} label="State" value=${state} set=${setState} of=${[["", "any"], ...Object.keys(STATES)]} />`,
      make: [redeliver(name)],
      deeds: (each) => each.state !== "waiting" && [redeliver(name, each)],
      none: state ? `None is ${state}.` : "Nothing has happened that it is told of.",
      command: `cronring webhook test ${quoted(name)}`,
    }} />`;
}

const DELIVERIES = [
  { name: "Delivery", of: (row) => `#${row.id}` },
  { name: "State", of: (row) => html`<${State} is=${STATES[row.state] ?? row.state} text=${row.state} />` },
  { name: "Event", of: (row) => wordOf(row.event) },
  { name: "Job", of: (row) => row.job && html`<${JobLink} of=${row.job} />` },
  { name: "Tries", number: true, of: (row) => row.attempts },
  {
    name: "Answer",
    of: (row) => [row.last_status ? `HTTP ${row.last_status}` : "", row.last_error].filter(Boolean).join(": "),
  },
  when("Happened", "created_at"),
  when("Next try", "next_try_at"),
  {
    name: "Body",
    of: (row) =>
      html`<details><summary>Body</summary><pre class="output" tabindex="0">${row.body}</pre></details>`,
  },
];

const redeliver = (webhook, delivery) => ({
  word: delivery ? "Redeliver" : "Redeliver all that failed",
  title: delivery ? `Deliver #${delivery.id} again` : `Deliver all that failed to ${webhook} again`,
  verb: "Deliver again",
  says: "The same events with the same ids are tried anew. A receiver that has seen an id passes it over.",
  command: () => `cronring webhook redeliver ${quoted(webhook)}${delivery ? ` ${delivery.id}` : ""}`,
  act: async () => {
    const said = await post(`${pathOf(webhook)}/redeliver`, delivery ? { delivery_id: delivery.id } : {});
    return `${said.deliveries} tried again.`;
  },
});
