// What happened in this run?
import { html, useEffect, useRef, useState } from "../base.mjs";
import { lines } from "../api.mjs";
import { cancelRun, retryRun } from "../actions.mjs";
import { Output, visible } from "../ansi.mjs";
import { duration, inZone } from "../clock.mjs";
import { useQuery } from "../queries.mjs";
import { Answered, Copied, Facts, JobLink, jobPath, Panel, RunLink, Since, State, When } from "../parts.mjs";
import { bytes, wordOf } from "../words.mjs";

const KEPT = 400_000; // characters of output that a page holds: a tab left open doesn't grow
const AGAIN_MS = 2_000;

export function ExecutionPage({ id, session }) {
  const query = useQuery(`/executions/${id}`, null, { on: (kind, data) => data.execution?.id === id });
  const run = query.data;
  const state = run ? run.outcome || "running" : "";
  return html`<h1>Run ${id} ${run && html`of <${JobLink} of=${run.job} /> <${State} is=${state} />`}</h1>
    <${Answered} query=${query}>${
      run &&
      html`
      <p class="lead">${sentence(run)}</p>
      ${run.error_type && html`<p class="problem"><b>${visible(run.error_type)}</b>: ${visible(run.error_message)}</p>`}
      <${Deeds} run=${run} session=${session} />
      <div class="columns"><${About} run=${run} /><${Attempts} run=${run} /></div>
      <${Printed} run=${run} />
      ${run.stack && html`<${Panel} id="stack" title="Stack"><pre class="output"
        tabindex="0">${visible(run.stack)}</pre><//>`}`
    }<//>`;
}

const sentence = (run) =>
  run.outcome
    ? html`It began <${When}
      at=${run.started_at ?? run.claimed_at} />, ${duration(run.lateness_ms)} after its time,
      and took ${duration(run.duration_ms)}.`
    : html`It has been running for <${Since} at=${run.started_at ?? run.claimed_at} />.`;

function Deeds({ run, session }) {
  const namespace = run.job.includes("/") ? run.job.split("/")[0] : "default";
  const may = session.may("operate", namespace);
  return html`<div class="buttons">
    ${may && !run.outcome && html`<button class="act" onClick=${() => cancelRun(run)}>Cancel</button>`}
    ${may && run.outcome && run.outcome !== "completed" && html`<button class="act"
      onClick=${() => retryRun(run)}>Retry</button>`}
    <a class="button" href=${`${jobPath(run.job)}?why=${encodeURIComponent(run.tick)}`}>Why at this time?</a></div>`;
}

const About = ({ run }) =>
  html`<${Panel} id="about" title="About"><${Facts} of=${[
    ["Tick", html`<${When} at=${run.tick} clock /> <span class="says">${inZone(Date.parse(run.tick), "UTC")}</span>`],
    ["Because of", wordOf(run.trigger)],
    ["Attempt", run.attempt],
    ["Controller", run.controller],
    [
      "Runner",
      html`<a href=${`/executions?q=${encodeURIComponent(`runner:${run.runner}`)}`}>${run.runner || "none"}</a>`,
    ],
    ["Version", html`<code>${run.deployment}</code>`],
    run.cpu_ms !== undefined && ["CPU", duration(run.cpu_ms)],
    Number(run.memory_peak_bytes) > 0 && [
      "Memory",
      `${bytes(run.memory_peak_bytes)} at most${run.memory_shared ? ", with others in its process" : ""}`,
    ],
    Number(run.missed) > 0 && ["Missed before it", run.missed],
    run.metrics_json && ["Metrics", html`<code>${run.metrics_json}</code>`],
    [
      "Payload",
      run.outputs_hidden
        ? "hidden: your role doesn't show payloads"
        : run.payload
          ? html`<code>${visible(run.payload)}</code>`
          : "none",
    ],
    run.cancel_requested_by && [
      "Cancelled by",
      `${run.cancel_requested_by}${run.cancel_note ? `: ${run.cancel_note}` : ""}`,
    ],
  ]} /><${Copied} text=${`cronring executions get ${run.id}`} /><//>`;

function Attempts({ run }) {
  const query = useQuery(
    `${jobPath(run.job)}/why`,
    { at: run.tick },
    { on: (kind, data) => data.execution?.job === run.job },
  );
  const attempts = query.data?.attempts ?? [];
  if (attempts.length < 2) return null;
  return html`<${Panel} id="attempts" title="Attempts at this tick"><ul class="plain">${attempts.map(
    (each) => html`<li key=${each.id} class="pair">
    <span><${RunLink} of=${each.id}>Attempt ${each.attempt}<//> <${State} is=${each.outcome || "running"} />
      ${each.error_type && html` <span class="says">${visible(each.error_type)}</span>`}</span>
    <span class="digits">${duration(each.duration_ms)}</span></li>`,
  )}</ul><//>`;
}

function Printed({ run }) {
  const [text, setText] = useState("");
  const [find, setFind] = useState("");
  const [problem, setProblem] = useState("");
  const [follow, setFollow] = useState(true);
  const box = useRef(null);
  useEffect(() => {
    if (run.outputs_hidden) return undefined;
    const stop = new AbortController();
    read(run.id, stop.signal, setText, setProblem);
    return () => stop.abort();
  }, [run.id, run.outputs_hidden]);
  useEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text, follow]);
  if (run.outputs_hidden)
    return html`<${Panel} id="output" title="Output"><p>Your role doesn't show what runs print.</p><//>`;
  return html`<${Panel} id="output" title="Output">
    <div class="tools"><label>Find <input type="search" value=${find}
      onInput=${(event) => setFind(event.target.value)} /></label>
      <label class="check"><input type="checkbox" checked=${follow}
        onChange=${() => setFollow(!follow)} /> Follow</label></div>
    ${problem && html`<p class="problem">${problem}</p>`}
    ${
      text
        ? html`<pre class="output" ref=${box} tabindex="0" aria-label="Output"><${Output} text=${text}
          find=${find} /></pre>`
        : html`<p class="says">It has printed nothing${run.outcome ? "" : " so far"}.</p>`
    }<//>`;
}

// Goes on where it was when the connection is lost; a run that has ended is read once.
async function read(id, signal, setText, setProblem) {
  const decoder = new TextDecoder();
  let offset = 0,
    text = "";
  for (;;) {
    try {
      for await (const chunk of lines(`/executions/${id}/output`, { from_offset: offset || "" }, signal)) {
        if (chunk.problem) throw Object.assign(new Error(chunk.problem.detail), { violations: [] });
        const data = Uint8Array.from(atob(chunk.data ?? ""), (one) => one.charCodeAt(0));
        offset = Number(chunk.offset ?? offset) + data.length;
        text = (text + decoder.decode(data, { stream: true })).slice(-KEPT);
        setText(text);
        setProblem("");
        if (chunk.execution) return;
      }
    } catch (problem) {
      if (signal.aborted) return;
      setProblem(problem.message);
    }
    await new Promise((go) => setTimeout(go, AGAIN_MS));
    if (signal.aborted) return;
  }
}
