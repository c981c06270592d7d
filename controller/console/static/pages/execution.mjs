// What happened in this run?
import { html } from "../base.mjs";
import { cancelRun, retryRun } from "../actions.mjs";
import { duration, inZone, viewerZone } from "../clock.mjs";
import { Printed } from "../output.mjs";
import { useQuery } from "../queries.mjs";
import { Answered, Copied, Facts, JobLink, jobPath, Panel, RunLink, Since, State, When } from "../parts.mjs";
import { bytes, wordOf } from "../words.mjs";

// People may retry what somebody cancelled, too.
const RETRIABLE = ["failed", "timed_out", "lost", "cancelled", "out_of_memory", "out_of_cpu"];

export function ExecutionPage({ id, session, health }) {
  const query = useQuery(`/executions/${encodeURIComponent(id)}`, null, { on: (kind, data) => data.execution?.id === id });
  const run = query.data;
  const state = run ? run.outcome || "running" : "";
  return html`<h1>Run ${id} ${run && html`of <${JobLink} of=${run.job} /> <${State} is=${state} />`}</h1>
    <${Answered} query=${query}>${
      run &&
      html`
      <p class="lead">${sentence(run)}</p>
      ${
        (run.error_type || run.error_message) &&
        html`<div class="problem"><p><b>${run.error_type}</b></p><p class="message">${run.error_message}</p></div>`
      }
      ${run.cancel_requested_by && html`<p class="note">${cancelled(run)}</p>`}
      <${Deeds} run=${run} session=${session} />
      <${Attempts} run=${run} />
      <${Printed} run=${run} />
      ${
        run.stack &&
        html`<${Panel} id="stack" title="Stack trace" says="Frames of the author's code, the latest call last."><pre class="output"
        tabindex="0">${run.stack}</pre><//>`
      }
      <div class="columns"><${About} run=${run} cluster=${health.cluster.data} /><${Used} run=${run} /><${Payload} run=${run} /></div>`
    }<//>`;
}

const began = (run) => run.started_at ?? run.claimed_at;

const sentence = (run) =>
  run.outcome
    ? html`It began <${When} at=${began(run)} />, ${duration(run.lateness_ms)} after its time,
      and took ${duration(run.duration_ms)}.${
        run.retry_at && RETRIABLE.includes(run.outcome)
          ? html` It was to be tried again at <${When} at=${run.retry_at} clock />.`
          : ""
      }`
    : html`It has been running for <${Since} at=${began(run)} />, on ${run.runner}.`;

const cancelled = (run) =>
  html`${run.outcome === "cancelled" ? "Cancelled" : "Its cancelling was asked for"} by ${run.cancel_requested_by}
    ${" "}<${When} at=${run.cancel_requested_at} />${run.cancel_note && `: ${run.cancel_note}`}`;

function Deeds({ run, session }) {
  const namespace = run.job.includes("/") ? run.job.split("/")[0] : "default";
  const may = session.may("operate", namespace);
  return html`<div class="buttons">
    ${may && !run.outcome && html`<button class="act" onClick=${() => cancelRun(run)}>Cancel</button>`}
    ${may && RETRIABLE.includes(run.outcome) && html`<button class="act" onClick=${() => retryRun(run)}>Retry</button>`}
    <a class="button" href=${`${jobPath(run.job)}?why=${encodeURIComponent(run.tick)}`}>Why at this time?</a>
    <a class="button" href=${`/executions?q=${encodeURIComponent(`job:${run.job}`)}`}>Its other runs</a></div>`;
}

function Trace({ of, template }) {
  if (!/^https?:/.test(template)) return html`<${Copied} text=${of} />`;
  return html`<a class="key" href=${template.replaceAll("{trace_id}", of)} target="_blank" rel="noopener">${of}</a>`;
}

const About = ({ run, cluster }) =>
  html`<${Panel} id="about" title="About"><${Facts} of=${[
    ["Tick", html`<${When} at=${run.tick} clock /> ${viewerZone !== "UTC" && html`<span class="says">${inZone(Date.parse(run.tick), "UTC")}</span>`}`],
    ["To begin at", html`<${When} at=${run.run_at} clock />`],
    ["Because of", wordOf(run.trigger)],
    ["Run of its job", `number ${run.number}${run.attempt > 1 ? `, attempt ${run.attempt} at its tick` : ""}`],
    run.beside && ["Beside", "it neither held the job nor set its next tick"],
    ["Controller", run.controller],
    [
      "Runner",
      run.runner
        ? html`<a href=${`/executions?q=${encodeURIComponent(`runner:"${run.runner}"`)}`}>${run.runner}</a>`
        : "none yet",
    ],
    [
      "Version",
      html`<a class="key" href=${`/deployments?of=${encodeURIComponent(run.deployment)}`}>${run.deployment}</a>`,
    ],
    Number(run.missed) > 0 && ["Missed before it", `${run.missed} ticks`],
    ["Trace", html`<${Trace} of=${run.trace_id} template=${cluster?.trace_url_template ?? ""} />`],
    run.previous_success && ["Success before it", html`<${When} at=${run.previous_success} clock />`],
  ]} /><${Copied} text=${`cronring executions get ${run.id}`} /><//>`;

const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};
const figures = (text) => {
  const value = parsed(text);
  return value && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : [["metrics", value]];
};
const told = (value) => typeof value === "object" ? JSON.stringify(value) : String(value);

// CPU as a share of the time: a run that waits for others has little.
function Used({ run }) {
  const rows = [
    run.cpu_ms !== undefined && [
      "CPU",
      duration(run.cpu_ms) +
        (run.duration_ms > 0 ? `, ${Math.round((100 * run.cpu_ms) / run.duration_ms)} % of its time` : ""),
    ],
    Number(run.memory_peak_bytes) > 0 && [
      "Memory",
      `${bytes(run.memory_peak_bytes)} at most${run.memory_shared ? ", with others in its process" : ""}`,
    ],
    ...(run.metrics_json
      ? figures(run.metrics_json).map(([name, value]) => [name, html`<code>${told(value)}</code>`])
      : []),
  ].filter(Boolean);
  return html`<${Panel} id="used" title="What it used, and measured">${
    rows.length
      ? html`<${Facts} of=${rows} />`
      : html`<p class="says">${
          run.outcome ? "Nothing is known of that." : "It is known when it ends."
        } A verb reports figures of its own by <code>ctx.report()</code>.</p>`
  }<//>`;
}

const WHOSE = { run: "It was given to this run.", job: "It was its job's at that time.", "": "" };

function Payload({ run }) {
  const value = run.payload ? parsed(run.payload) : null;
  return html`<${Panel} id="payload" title="Payload" says=${run.payload ? WHOSE[run.payload_of] : ""}>${
    run.outputs_hidden
      ? html`<p>Your role doesn't show payloads.</p>`
      : run.payload
        ? html`<pre class="output" tabindex="0">${JSON.stringify(value, null, 2)}</pre>`
        : html`<p class="says">None.</p>`
  }<//>`;
}

const SIDES = [
  ["Because of", (run) => wordOf(run.trigger)],
  ["Outcome", (run) => html`<${State} is=${run.outcome || "running"} />`],
  ["Began", (run) => html`<${When} at=${began(run)} clock />`],
  ["Late by", (run) => duration(run.lateness_ms)],
  ["Took", (run) => (run.outcome ? duration(run.duration_ms) : html`<${Since} at=${began(run)} />`)],
  ["CPU", (run) => (run.cpu_ms === undefined ? "–" : duration(run.cpu_ms))],
  ["Memory", (run) => (Number(run.memory_peak_bytes) ? bytes(run.memory_peak_bytes) : "–")],
  ["Runner", (run) => run.runner],
  ["Controller", (run) => run.controller],
  ["Version", (run) => html`<code>${run.deployment}</code>`],
  [
    "Error",
    (run) => (run.error_type ? `${run.error_type}: ${run.error_message.slice(0, 160)}` : "–"),
  ],
];

// What differs between the attempts at one tick is seen in a row of this table.
function Attempts({ run }) {
  const query = useQuery(
    `${jobPath(run.job)}/why`,
    { at: run.tick },
    { on: (kind, data) => data.execution?.job === run.job && data.execution?.tick === run.tick },
  );
  const attempts = (query.data?.attempts ?? []).filter((each) => each.tick === run.tick);
  if (attempts.length < 2) return null;
  return html`<${Panel} id="attempts" title="Attempts at this tick"><div class="scroll"><table>
    <caption class="hidden">Attempts side by side</caption>
    <thead><tr><td></td>${attempts.map(
      (each) =>
        html`<th key=${each.id} scope="col" aria-current=${each.id === run.id ? "true" : undefined}>${
          each.id === run.id
            ? `Attempt ${each.attempt}, this one`
            : html`<${RunLink} of=${each.id}>Attempt ${each.attempt}<//>`
        }</th>`,
    )}</tr></thead>
    <tbody>${SIDES.map(
      ([name, of]) =>
        html`<tr key=${name}><th scope="row">${name}</th>${attempts.map((each) => html`<td key=${each.id}>${of(each)}</td>`)}</tr>`,
    )}</tbody></table></div><//>`;
}
