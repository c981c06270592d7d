// Versions of modules: which one is active, what each says, and what a change from one to another does to ticks.
import { html, useState } from "../base.mjs";
import { post } from "../api.mjs";
import { clockTime, duration, utc } from "../clock.mjs";
import { Deeds, inPath, Listing, NOTE, oneOf, useOne, when } from "../listing.mjs";
import { Answered, Choice, Copied, Empty, Facts, Panel, State, When } from "../parts.mjs";
import { fates } from "../preview.mjs";
import { useQuery } from "../queries.mjs";
import { useParameter } from "../router.mjs";
import { count, noted, quoted } from "../words.mjs";

const VERSIONS = 100;
const SIGNS = { added: "+", removed: "−", changed: "~", same: "" };

export function Deployments({ session }) {
  const [one] = useOne();
  const [module] = useParameter("module");
  if (one) return html`<${Version} key=${one} name=${one} session=${session} />`;
  return html`<${Listing} key=${module} session=${session} of=${{
    title: module ? `Deployments of ${module}` : "Deployments",
    says: html`Versions of modules, of each at most one active. A new one comes by a runner that hosts its file, or by <code>cronring deploy FILE</code>.`,
    path: "/deployments",
    query: { module },
    rows: "deployments",
    keyOf: (row) => row.key,
    columns: COLUMNS,
    deeds: (row) => deeds(row, session),
    none: "No module has been deployed.",
    command: "cronring deploy yours.py",
    tools: module && html`<a href="/deployments">All modules</a>`,
  }} />`;
}

const COLUMNS = [
  { name: "Version", of: (row) => html`<a class="key" href=${oneOf("/deployments", row.key)}>${row.key}</a>` },
  { name: "State", of: (row) => html`<${State} is=${stateOf(row)} text=${stateOf(row) === "silent" ? "active, no runner" : undefined} />` },
  {
    name: "Jobs",
    number: true,
    of: (row) =>
      html`<a href=${`/jobs?q=${encodeURIComponent(`module:${row.module} namespace:${row.namespace}`)}`}>${row.jobs}</a>`,
  },
  { name: "Runners", number: true, of: (row) => row.runners },
  when("Active since", "activated_at"),
  when("Ended", "deactivated_at"),
  when("Made", "created_at"),
];

const hosted = (row) => (row.runners ? [] : ["No runner hosts it: nothing runs until one does."]);
const stateOf = (row) => (!row.active ? "inactive" : row.jobs && !row.runners ? "silent" : "active");

const deeds = (row, session) => {
  if (!session.may("deploy", row.namespace)) return [];
  const path = `/deployments${inPath(row.key)}`;
  if (!row.active) {
    return [
      row.activated_at && {
        word: "Activate",
        title: `Make ${row.key} active`,
        verb: "Make it active",
        says: "Its jobs take the place of those of the version that is active now. Runs that go on aren't stopped.",
        preview: async () => {
          const would = await post(`${path}/activate`, { dry_run: true });
          const instead = would.previous ? [`It takes the place of ${would.previous.key}.`] : [];
          return [...instead, ...hosted(row), ...fates(would)];
        },
        undo: "make the other version active again.",
        fields: [NOTE],
        command: ({ note }) =>
          `cronring rollback ${quoted(row.module)} --to ${quoted(row.key)}${noted({ note })}`,
        act: ({ note }) => post(`${path}/activate`, { note }),
      },
    ];
  }
  return [
    {
      word: "End",
      title: `End ${row.key}`,
      verb: "End it",
      says: "The jobs that it declares are removed; those that somebody made wait for their verb. What runs finishes.",
      preview: async () => fates(await post(`${path}/kill`, { dry_run: true })),
      typed: row.key,
      undo: "activate it again: its jobs come back with their pauses.",
      fields: [NOTE],
      command: ({ note }) => `cronring undeploy ${quoted(row.key)}${noted({ note })}`,
      act: ({ note }) => post(`${path}/kill`, { note }),
    },
  ];
};

function Version({ name, session }) {
  const query = useQuery(`/deployments${inPath(name)}`);
  const row = query.data;
  return html`<p><a href="/deployments">All deployments</a></p>
    <h1><span class="key">${name}</span> ${row && html`<${State} is=${row.active ? "active" : "inactive"} />`}</h1>
    <${Answered} query=${query}>${
      row &&
      html`<${Deeds} of=${deeds(row, session).filter(Boolean)} again=${query.again} />
      <${Difference} row=${row} />
      <div class="columns">
        <${Panel} id="about" title="About"><${Facts} of=${[
          ["Module", html`<a href=${`/deployments?module=${encodeURIComponent(row.module)}`}>${row.module}</a>`],
          ["Namespace", row.namespace],
          ["Jobs", row.jobs],
          ["Runners", row.runners],
          ["Active since", html`<${When} at=${row.activated_at} />`],
          row.deactivated_at && ["Ended", html`<${When} at=${row.deactivated_at} />`],
          ["Made", html`<${When} at=${row.created_at} />`],
          ["Digest", html`<code>${row.digest}</code>`],
        ]} /><${Copied} text=${`cronring deployments get ${quoted(row.key)}`} /><//>
        <${Orders} name=${row.key} />
      </div>
      <${Panel} id="schema" title="Schema" says=${row.outputs_hidden ? "Without payloads: your role doesn't show them." : ""}>
        <pre class="output" tabindex="0">${row.schema_text}</pre><//>`
    }<//>`;
}

// What a change to this version does to ticks, from whichever other one: as `cronring plan` has it of a file.
function Difference({ row }) {
  const [from, setFrom] = useState("");
  const [days, setDays] = useState("7");
  const others = useQuery("/deployments", { module: row.module, namespace: row.namespace, page_size: VERSIONS });
  const names = (others.data?.deployments ?? []).filter((each) => each.key !== row.key);
  const asked = !row.active || from;
  const query = useQuery(
    asked ? `/deployments${inPath(row.key)}/compare` : null,
    { from_key: from, days },
    { every: 300_000 },
  );
  const said = query.data;
  return html`<${Panel} id="difference" title="Difference in ticks" says="What a change to this version does to the ticks of the days ahead. Jobs made by hand keep theirs.">
    <div class="tools"><${Choice} label="From" value=${from} set=${setFrom} of=${[
        ["", row.active ? "choose a version" : "the active version"],
        ...names.map((each) => [each.key, `${each.key}${each.active ? " (active)" : ""}`]),
      ]} />
      <${Choice} label="Days ahead" value=${days} set=${setDays} of=${["1", "7", "31", "366"]} /></div>
    ${
      asked
        ? html`<${Answered} query=${query}>${
            said &&
            html`<p>From <code>${said.from_key || "nothing"}</code> until ${utc(Date.parse(said.until_at))}:
          ${" "}${said.verbs.length ? `${count(said.verbs.length, "job")} differ, ` : "nothing changes, "}${count(said.same, "job")} ${said.same === 1 ? "stays as it is" : "stay as they are"}.</p>
        ${said.verbs.length > 0 && html`<${Verbs} of=${said.verbs} />`}
        <${Copied} text=${`cronring deployments compare ${quoted(row.key)}${from ? ` --from ${quoted(from)}` : ""} --days ${days}`} />`
          }<//>`
        : html`<p class="says">This is the active version. Choose another one to compare it with.</p>`
    }<//>`;
}

const ticks = (sign, times, many) =>
  times.length > 0 &&
  html`<div><span aria-hidden="true">${sign}</span> ${sign === "−" ? "gone: " : "new: "}${times.map((each) => clockTime(Date.parse(each))).join(", ")}${
    many !== undefined && Number(many) > times.length ? `, and ${Number(many) - times.length} more` : ""
  }</div>`;

const moved = (each) => {
  const of = each.ticks;
  if (each.change === "same") return "the same ticks";
  if (of.gone === undefined) return `${of.before} → ${of.after}: too many to compare one by one`;
  const shift = Number(of.shift_ms);
  if (shift) return `${of.gone} move, each ${duration(Math.abs(shift))} ${shift > 0 ? "later" : "earlier"}`;
  return `${of.before} → ${of.after}: ${of.gone} gone, ${of.new} new`;
};

const Verbs = ({
  of,
}) => html`<div class="scroll"><table class="difference"><caption class="hidden">Jobs that differ</caption>
  <thead><tr><th scope="col">Job</th><th scope="col">Change</th><th scope="col">Schedule</th><th scope="col">Ticks</th><th scope="col">First of them</th></tr></thead>
  <tbody>${of.map(
    (each) => html`<tr key=${each.verb}><td class="key">${SIGNS[each.change]} ${each.verb}</td><td>${each.change}${
      each.changed_fields.length ? `: ${each.changed_fields.join(", ")}` : ""
    }</td><td>${
      each.ticks.old_schedule === each.ticks.new_schedule
        ? html`<code>${each.ticks.new_schedule}</code>`
        : html`<code>${each.ticks.old_schedule || "none"}</code> → <code>${each.ticks.new_schedule || "none"}</code>`
    }</td><td>${moved(each)}</td>
    <td>${ticks("−", each.ticks.first_gone, each.ticks.gone)}${ticks("+", each.ticks.first_new, each.ticks.new)}</td></tr>`,
  )}</tbody></table></div>`;

function Orders({ name }) {
  const query = useQuery("/actions", { deployment: name, page_size: 20 });
  const rows = query.data?.actions ?? [];
  return html`<${Panel} id="orders" title="Who, and why"><${Answered} query=${query}
    empty=${query.data && !rows.length && html`<${Empty} command=${`cronring deployments get ${quoted(name)}`}>Nobody has done anything to it by hand.<//>`}>
    <ul class="plain">${rows.map(
      (each) =>
        html`<li key=${each.id}>${each.action} by ${each.actor} <${When} at=${each.at} />${each.note && html`: ${each.note}`}</li>`,
    )}</ul><//><//>`;
}
