// How long its runs took on each of the last days, and how late they began.
import { html } from "../base.mjs";
import { keyPath } from "../api.mjs";
import { DayChart } from "../charts.mjs";
import { duration } from "../clock.mjs";
import { useQuery } from "../queries.mjs";
import { useParameter } from "../router.mjs";
import { Answered, Empty, Panel } from "../parts.mjs";
import { count, number, quoted } from "../words.mjs";

const SPANS = ["14", "31", "62"];
const LEAST_MS = 20_000; // a day's figures hardly change by a run

export function Days({ name, mine, show }) {
  const [days, setDays] = useParameter("days", SPANS[0]);
  const asked = SPANS.includes(days) ? days : SPANS[0];
  const query = useQuery(`${keyPath(name)}/days`, { days: asked }, { on: mine, least: LEAST_MS });
  const rows = query.data?.days ?? [];
  const ran = rows.filter((day) => day.runs);
  const more = html`<label class="inline"><span class="hidden">Days</span><select value=${asked}
    onChange=${(event) => setDays(event.target.value)}>${SPANS.map(
      (each) => html`<option key=${each} value=${each}>${each} days</option>`,
    )}</select></label>`;
  return html`<${Panel} id="days" title="Day by day" more=${more}
    says=${`Days on the clocks of ${query.data?.timezone ?? "its zone"}. A click on one shows its books.`}>
    <${Answered} query=${query} empty=${
      query.data &&
      !ran.length &&
      html`<${Empty} command=${`cronring jobs trigger ${quoted(name)}`}>No run has ended in these ${asked} days.<//>`
    }>
      <${Chart} title="How long runs took" rows=${rows} field="duration" show=${show} />
      <${Chart} title="How late they began" rows=${rows} field="lateness" show=${show} />
      <${Table} rows=${ran} />
      ${rows.some((day) => day.runs >= 2_000) && html`<p class="says">Of a day with more than 2,000 runs, the
        latest 2,000 are looked at.</p>`}<//><//>`;
}

function Chart({ title, rows, field, show }) {
  const days = rows.map((row) => ({ day: row.day, row, p50: row[field]?.p50_ms, p99: row[field]?.p99_ms }));
  const latest = rows.findLast((row) => row[field]);
  if (!latest) return null;
  const said = `${title}. On ${latest.day}, half within ${duration(latest[field].p50_ms)}, 99 of 100 within ${duration(
    latest[field].p99_ms,
  )}, all within ${duration(latest[field].most_ms)}.`;
  return html`<figure><figcaption><b>${title}.</b> ${said.slice(title.length + 2)}</figcaption>
    <${DayChart} days=${days} text=${short} says=${said} pick=${(each) => show(each.row)} /></figure>`;
}

// On an axis there is room for one unit.
const short = (ms) => (ms ? duration(ms).replace(/\.0 /, " ") : "0");

const Table = ({ rows }) => html`<details><summary>As a table</summary><div class="scroll"><table>
  <caption class="hidden">Runs day by day</caption><thead><tr><th scope="col">Day</th>
    <th scope="col" class="number">Runs</th><th scope="col" class="number">Completed</th>
    <th scope="col">Took: half, 99 of 100</th><th scope="col">Late: half, 99 of 100</th></tr></thead>
  <tbody>${[...rows].reverse().map(
    (row) => html`<tr key=${row.day}><th scope="row">${row.day}</th><td class="number">${count(row.runs, "run")}</td>
    <td class="number">${number(row.completed)}</td><td>${both(row.duration)}</td>
    <td>${both(row.lateness)}</td></tr>`,
  )}</tbody></table></div></details>`;

const both = (spread) => (spread ? `${duration(spread.p50_ms)} · ${duration(spread.p99_ms)}` : "–");
