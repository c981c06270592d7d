// What is set of it, in which versions of its module, and who did what to it.
import { html } from "../base.mjs";
import { keyPath } from "../api.mjs";
import { duration } from "../clock.mjs";
import { useQuery } from "../queries.mjs";
import { Answered, Copied, Empty, Facts, Panel, PayloadChange, RunLink, State, When } from "../parts.mjs";
import { number, quoted, wordOf } from "../words.mjs";

const VERSIONS = 8,
  ACTIONS = 20;

export function Settings({ job, query }) {
  return html`<${Panel} id="settings" title="Settings"><${Answered} query=${query}>${
    job &&
    html`<${Facts} of=${[
      ["Schedule", html`<code>${job.schedule}</code>`],
      ["Zone", job.timezone],
      ["Made by", job.source === "annotation" ? html`its module, <code>${job.deployment}</code>` : "hand (API)"],
      job.set_name && ["Set", job.set_name],
      ["Timeout", duration(Number(job.timeout_ms))],
      Object.keys(job.labels).length > 0 && [
        "Labels",
        Object.entries(job.labels).map(
          ([label, value]) => html`<a class="label"
      href=${`/jobs?q=${encodeURIComponent(`label:${label}=${value}`)}`}>${label}=${value}</a> `,
        ),
      ],
      ...policies(job),
      job.template && ["Template", job.template],
      [
        "Payload",
        job.outputs_hidden
          ? "hidden: your role doesn't show payloads"
          : job.payload
            ? html`<code>${job.payload}</code>`
            : "none",
      ],
      job.last_success && ["Last success", html`<${When} at=${job.last_success} zone=${job.timezone} />`],
      job.skipped.length > 0 && [
        "Skipped so far",
        job.skipped.map(
          (each) => html`<${State} is="skipped"
      text=${`${each.reason} ${number(each.ticks)}`} /> `,
        ),
      ],
    ]} />`
  }<//><//>`;
}

// Those that are set. The zone stands above.
const policies = (job) =>
  Object.entries(job.policy ?? {})
    .filter(([name, value]) => name !== "timezone" && value !== "" && value !== null && [value].flat().length)
    .map(([name, value]) => [
      wordOf(name),
      html`<code>${[value].flat().join(", ")}</code>${
        name === "jitter" && job.jitter_is_default ? " (the cluster's)" : ""
      }`,
    ]);

export function Versions({ job, name }) {
  const verb = useQuery(job && !job.queue ? `${keyPath(name)}/verb` : null);
  const where = job && { namespace: job.namespace, module: job.module, page_size: VERSIONS };
  const query = useQuery(job && !job.queue ? "/deployments" : null, where);
  if (!job || job.queue) return null;
  const rows = query.data?.deployments ?? [];
  return html`<${Panel} id="versions" title="Versions of its module"
    more=${html`<a href="/deployments">all deployments</a>`}>
    <${Answered} query=${query} empty=${
      query.data && !rows.length && html`<${Empty} command="cronring deploy FILE">Its module has no version.<//>`
    }>
      ${verb.data?.doc && html`<p><b>${verb.data.verb}</b>: ${verb.data.doc}</p>`}
      <ul class="plain">${rows.map(
        (row) => html`<li key=${row.key} class="pair"><span><code>${row.key}</code> <${State}
        is=${row.active ? "active" : "inactive"} />${row.key === job.deployment && " (this job's)"}</span>
        <span class="digits">${row.activated_at ? "active" : "made"} <${When}
          at=${row.activated_at ?? row.created_at} /></span></li>`,
      )}</ul><//><//>`;
}

export function Actions({ name, mine }) {
  const query = useQuery(
    "/actions",
    { job: name, page_size: ACTIONS },
    { on: (kind, data) => kind === "job_changed" && mine(kind, data), least: 3_000 },
  );
  const rows = query.data?.actions ?? [];
  return html`<${Panel} id="actions" title="Who did what to it">
    <${Answered} query=${query} empty=${
      query.data &&
      !rows.length &&
      html`<${Empty} command=${`cronring jobs pause ${quoted(name)} --note WHY`}>Nobody did anything to it by hand.<//>`
    }>
      <ul class="plain">${rows.map(
        (row) => html`<li key=${row.id}><b>${wordOf(row.action)}</b> by ${row.actor || "nobody named"},
        ${" "}<${When} at=${row.at} />${Number(row.execution_id) > 0 && html`, <${RunLink} of=${row.execution_id} />`}
        ${row.note && html`<div class="quote">${row.note}</div>`}<${PayloadChange} of=${row} /></li>`,
      )}</ul>
      ${query.data?.next_page_token && html`<${Copied} text=${`cronring jobs actions ${quoted(name)}`} />`}<//><//>`;
}
