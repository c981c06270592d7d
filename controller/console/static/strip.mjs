// What is coming, as bars: how many runs begin, how many go on, and where a herd is.
import { html, useState } from "./base.mjs";
import { clockTime } from "./clock.mjs";
import { JobLink, State } from "./parts.mjs";
import { useQuery } from "./queries.mjs";
import { count, number } from "./words.mjs";

const HIGH = 64; // pixels
const HERD = 20; // that begin in one second, and a part of the most:
const HERD_PART = 0.5;

const CHANGES = (kind) => kind === "cluster_changed";
export const useForecast = (within) => useQuery("/forecast", { within_ms: within }, { every: 120_000, on: CHANGES });

const runsOf = (load) => (load < 10 ? load.toFixed(1) : number(Math.round(load)));
const at = (step) => clockTime(Date.parse(step.at));

// {most, herds}: the most in one second; the steps that have a herd, the largest first.
export function herdsOf(steps, spread) {
  const field = spread ? "spread" : "herd";
  const most = Math.max(0, ...steps.map((step) => Number(step[field])));
  const herds = steps
    .filter((step) => Number(step[field]) >= Math.max(HERD, most * HERD_PART))
    .sort((a, b) => Number(b[field]) - Number(a[field]));
  return { most, herds };
}

export function Strip({ said, spread }) {
  const [pointed, point] = useState(null);
  const { most, herds } = herdsOf(said.steps, spread);
  const field = spread ? "spread" : "herd";
  const busiest = said.steps.reduce((one, other) => (other.load > one.load ? other : one), said.steps[0]);
  const highest = Math.max(1e-9, ...said.steps.map((step) => step.load));
  const told = (step) =>
    `From ${at(step)}: ${number(step.starts)} begin, ${runsOf(step.load)} at once on average, ${number(step[field])} at most in one second`;
  const width = 1000 / said.steps.length;
  const total = said.steps.reduce((sum, step) => sum + Number(step.starts), 0);
  return html`${said.overloads.map(
      (over) => html`<p key=${over.module + over.lane + over.reason}><${State} is="late" text=${`${at(over)}: ${over.text}`} /></p>`,
    )}${said.overloads.length === 0 && html`<p class="says">It fits the places of the runners.</p>`}<p><strong>${number(total)}</strong> ticks of ${count(said.jobs, "job")}. Busiest at ${at(busiest)}:
      ${" "}${runsOf(busiest.load)} runs at once. Most in one second: ${number(most)}.</p>
    <figure class="strip"><svg viewBox=${`0 0 1000 ${HIGH * 2 + 4}`} preserveAspectRatio="none" role="img"
      aria-label=${`Runs that begin in one second, above; runs at once, below. ${herds.length ? told(herds[0]) : ""}`}>
      ${said.steps.map((step, index) => {
        const herd = (Number(step[field]) / Math.max(1, most)) * HIGH;
        const load = (step.load / highest) * HIGH;
        return html`<g key=${step.at} onMouseEnter=${() => point(step)} onMouseLeave=${() => point(null)}>
          <rect class="back" x=${index * width} y="0" width=${width} height=${HIGH * 2 + 4}><title>${told(step)}</title></rect>
          <rect class=${herds.includes(step) ? "herd" : "begin"} x=${index * width} y=${HIGH - herd} width=${width * 0.8}
            height=${herd}></rect>
          <rect class="load" x=${index * width} y=${HIGH + 4} width=${width * 0.8} height=${load}></rect></g>`;
      })}</svg>
      <figcaption><span>${at(said.steps[0])}</span><span>above: begin in one second; below: run at once</span>
        <span>${at(said.steps.at(-1))}</span></figcaption></figure>
    <p class="says pointed" role="status">${pointed ? told(pointed) : ""}</p>
    ${herds.slice(0, 3).map(
      (step) => html`<p key=${step.at}><${State} is="late" text=${`${number(step[field])} begin in one second`} /> at
        ${" "}${clockTime(Date.parse(step.herd_at))}${step.herd_jobs.length > 0 && html`, such as ${step.herd_jobs.map((key) => html`<${JobLink} of=${key} /> `)}`}
        ${!spread && Number(step.spread) < Number(step.herd) && html` With <code>jitter="auto"</code>: ${number(step.spread)}.`}</p>`,
    )}
    ${Number(said.unmeasured) > 0 && html`<p class="says">${count(said.unmeasured, "job")} of which no run has ended yet count as lasting no time.</p>`}
    ${Number(said.left_out) > 0 && html`<p class="says">${count(said.left_out, "job")} of rare schedules are not among them.</p>`}`;
}
