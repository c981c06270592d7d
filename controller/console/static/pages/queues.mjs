// Messages: what waits, who works on it, and what nobody could do.
import { html, useState } from "../base.mjs";
import { post, put } from "../api.mjs";
import { Deeds, inPath, Listing, NOTE, oneOf, parted, useOne, when } from "../listing.mjs";
import { Answered, Copied, Facts, JobLink, RunLink, State, When } from "../parts.mjs";
import { useQuery } from "../queries.mjs";
import { count, noted, number, quoted } from "../words.mjs";

const COUNTED = 100_000; // where the API stops counting
const PAGE = 1_000;
const EVERY_MS = 5_000; // no event tells of messages
const nameOf = (row) => `${row.namespace}/${row.queue}`;
const pathOf = (row) => `/queues${inPath(row.namespace, row.queue)}`;
const short = (row) => quoted(row.namespace === "default" ? row.queue : nameOf(row));
const depth = (row) =>
  Number(row.depth) >= COUNTED ? `${number(COUNTED)} or more` : number(row.depth);
const stateOf = (row) => {
  if (Number(row.dead)) return html`<${State} is="failed" text=${count(row.dead, "dead letter")} />`;
  if (Number(row.leased)) return html`<${State} is="running" text="worked on" />`;
  return Number(row.depth)
    ? html`<${State} is="waiting" text="waits" />`
    : html`<${State} is="completed" text="empty" />`;
};

export function Queues({ session }) {
  const [one] = useOne();
  if (one) return html`<${Queue} key=${one} name=${one} session=${session} />`;
  return html`<${Listing} session=${session} of=${{
    title: "Queues",
    says: "Ticks whose job has a queue as its target become messages here. Consumers take them.",
    path: "/queues",
    rows: "queues",
    keyOf: nameOf,
    columns: COLUMNS,
    deeds: (row) => (session.may("operate", row.namespace) ? [settings(row)] : []),
    none: "There is no queue.",
    command: "cronring jobs create --queue reports --name nightly --cron '0 3 * * *'",
  }} />`;
}

const COLUMNS = [
  { name: "Queue", of: (row) => html`<a href=${oneOf("/queues", nameOf(row))}>${nameOf(row)}</a>` },
  { name: "State", of: stateOf },
  { name: "Waiting", number: true, of: depth },
  when("Oldest", "oldest_at"),
  { name: "Lanes", number: true, of: (row) => row.lanes },
  { name: "Leased", number: true, of: (row) => row.leased },
  { name: "Consumers", number: true, of: (row) => row.consumers },
  { name: "Dead", number: true, of: (row) => row.dead },
  { name: "Deliveries", number: true, of: (row) => row.max_deliveries },
];

const settings = (row) => ({
  word: "Change",
  title: `Change what becomes of messages of ${nameOf(row)}`,
  verb: "Change it",
  says: "It holds for messages that wait already, too.",
  undo: `set ${row.max_deliveries}, ${row.on_retry} and ${row.dead_kept_days} days again.`,
  fields: [
    {
      name: "max_deliveries",
      label: "After so many deliveries that failed a message is dead",
      kind: "number",
      value: row.max_deliveries,
    },
    {
      name: "on_retry",
      label: "While a message waits for its retry, its lane waits (block), or others pass it",
      choices: ["block", "pass"],
      value: row.on_retry,
    },
    { name: "dead_kept_days", label: "Days that dead letters stay", kind: "number", value: row.dead_kept_days },
    NOTE,
  ],
  command: (values) =>
    `cronring queues set ${short(row)} --max-deliveries ${values.max_deliveries} --on-retry ${values.on_retry} --dead-kept-days ${values.dead_kept_days}${noted(values)}`,
  act: ({ max_deliveries, on_retry, dead_kept_days, note }) =>
    put(pathOf(row), {
      max_deliveries: Number(max_deliveries),
      on_retry,
      dead_kept_days: Number(dead_kept_days),
      note,
    }),
});

const putMessage = (row) => ({
  word: "Put a message",
  title: `Put a message into ${nameOf(row)}`,
  verb: "Put it",
  says: "It waits in its lane like those of ticks. Doing it twice puts two.",
  fields: [
    { name: "workspace", label: "Workspace. Empty: none.", optional: true },
    { name: "payload", label: "Payload: JSON", kind: "lines", optional: true },
  ],
  act: async (values) => `It is message ${(await post(`${pathOf(row)}/messages`, values)).id}.`,
});

function Queue({ name, session }) {
  const [namespace, queue] = parted(name);
  const query = useQuery("/queues", { namespace, page_size: PAGE }, { every: EVERY_MS });
  const [turn, setTurn] = useState(0);
  const changed = () => {
    query.again();
    setTurn((before) => before + 1);
  };
  const together = { changed, turn, every: EVERY_MS };
  const row = query.data?.queues.find((each) => each.queue === queue);
  const may = session.may("operate", namespace);
  const of = { namespace, queue };
  return html`<p><a href="/queues">All queues</a></p><h1><span class="key">${name}</span> ${row && stateOf(row)}</h1>
    <${Answered} query=${query} empty=${query.data && !row && html`<p>There is no queue of this name, or it is empty and nobody has set anything.</p>`}>${
      row &&
      html`<${Deeds} of=${[may && settings(row), session.may("consume", namespace) && putMessage(row)].filter(Boolean)} again=${changed} />
      <${Facts} of=${[
        ["Waiting", html`${depth(row)}${row.oldest_at && html`, the oldest since <${When} at=${row.oldest_at} />`}`],
        ["Worked on", `${row.leased}, by ${count(row.consumers, "consumer")}`],
        ["Lanes", `${row.lanes} with messages: the messages of a workspace are taken in their order`],
        ["Dead after", `${count(row.max_deliveries, "delivery", "deliveries")} that failed`],
        ["While one is tried again", row.on_retry === "block" ? "its lane waits with it" : "others pass it"],
        ["Dead letters stay", count(row.dead_kept_days, "day")],
        row.changed_at && [
          "Set",
          html`<${When} at=${row.changed_at} /> by ${row.changed_by}${row.note && `: ${row.note}`}`,
        ],
      ]} /><${Copied} text=${`cronring queues consume ${short(of)} -- COMMAND`} />`
    }<//>
    <${Listing} level=${2} session=${session} of=${{
      ...together,
      title: "Dead letters",
      says: "Deliveries of them failed so often that nobody is given them any more. The oldest first.",
      path: `${pathOf(of)}/dead-letters`,
      rows: "dead_letters",
      keyOf: (each) => each.id,
      columns: DEAD,
      make: may && row && Number(row.dead) > 0 ? [replay(of), removeDead(of)] : [],
      deeds: (each) => (may ? [replay(of, each), removeDead(of, each)] : []),
      none: "There are none.",
      command: `cronring queues dead ${short(of)}`,
    }} />
    <${Listing} level=${2} session=${session} of=${{
      ...together,
      title: "Messages that aren't done",
      says: "The oldest first.",
      path: `${pathOf(of)}/messages`,
      rows: "messages",
      keyOf: (each) => each.id,
      columns: MESSAGES,
      none: "Nothing waits.",
      command: `cronring queues messages ${short(of)}`,
    }} />`;
}

const origin = (row) =>
  row.job
    ? html`<${JobLink} of=${row.job} />${Number(row.execution_id) > 0 && html` <${RunLink} of=${row.execution_id} />`}`
    : "somebody put it there";
const failure = (row) =>
  row.error_type || row.error_message ? `${row.error_type}: ${row.error_message}` : "";
const payload = (row) => row.payload && html`<code class="json">${row.payload}</code>`;

const MESSAGES = [
  { name: "Message", of: (row) => `#${row.id}` },
  {
    name: "State",
    of: (row) =>
      row.consumer
        ? html`<${State} is="running" text=${`at ${row.consumer}`} /> until <${When} at=${row.leased_until} />`
        : html`<${State} is="waiting" />`,
  },
  { name: "Workspace", of: (row) => row.workspace },
  { name: "From", of: origin },
  { name: "Payload", of: payload },
  { name: "Failed", number: true, of: (row) => row.failures },
  { name: "Error", of: failure },
  when("Since", "enqueued_at"),
];

const DEAD = [
  { name: "Message", of: (row) => `#${row.id}` },
  { name: "Ended", of: (row) => html`<${State} is=${row.outcome} />` },
  { name: "Workspace", of: (row) => row.workspace },
  { name: "From", of: origin },
  { name: "Payload", of: payload },
  { name: "Failed", number: true, of: (row) => row.failures },
  { name: "Error", of: failure },
  when("Died", "died_at"),
];

const which = (each) => (each ? { message_ids: [each.id] } : { all: true });
const dry = async (of, deed, each, words) => {
  const said = await post(`${pathOf(of)}/dead-letters:${deed}`, { ...which(each), dry_run: true });
  return [`${count(said.message_ids.length, "dead letter")} ${words}.`];
};

const replay = (of, each) => ({
  word: each ? "Replay" : "Replay all",
  title: each ? `Replay message ${each.id}` : `Replay all dead letters of ${nameOf(of)}`,
  verb: "Replay",
  says: "They are messages again, with all their deliveries before them. At most 1,000 go at once.",
  preview: () => dry(of, "replay", each, "would be replayed"),
  undo: "remove them when they are dead again; what consumers do meanwhile is done.",
  fields: [NOTE],
  command: (values) => `cronring queues replay ${short(of)} ${each ? each.id : "--all"}${noted(values)}`,
  act: async ({ note }) =>
    `${count((await post(`${pathOf(of)}/dead-letters:replay`, { ...which(each), note })).message_ids.length, "message")} wait again.`,
});

const removeDead = (of, each) => ({
  word: each ? "Remove" : "Remove all",
  title: each ? `Remove dead letter ${each.id}` : `Remove all dead letters of ${nameOf(of)}`,
  verb: "Remove",
  typed: each ? `${each.id}` : of.queue,
  says: "Their payloads are gone then. At most 1,000 go at once.",
  preview: () => dry(of, "remove", each, "would be removed"),
  fields: [NOTE],
  command: (values) => `cronring queues remove ${short(of)} ${each ? each.id : "--all"}${noted(values)}`,
  act: async ({ note }) =>
    `${count((await post(`${pathOf(of)}/dead-letters:remove`, { ...which(each), note })).message_ids.length, "dead letter")} removed.`,
});
