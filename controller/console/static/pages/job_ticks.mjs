// When it runs: its next ticks on the clocks that matter, and a year of days.
import { html } from "../base.mjs";
import { keyPath } from "../api.mjs";
import { inZone, now, viewerZone } from "../clock.mjs";
import { useQuery } from "../queries.mjs";
import { useParameter } from "../router.mjs";
import { Answered, Empty, Panel, When } from "../parts.mjs";
import { count, number, quoted } from "../words.mjs";

const LEAST_MS = 5_000;
const MONTHS = "January February March April May June July August September October November December".split(" ");
const WEEKDAYS = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"];
const FIRST_YEAR = 1971,
  LAST_YEAR = 2098;

export function NextTicks({ name, job, mine }) {
  const query = useQuery(`${keyPath(name)}/schedule`, { count: 10 }, { on: mine, least: LEAST_MS });
  return html`<${Panel} id="ticks" title="Next ten ticks" says=${job?.paused && "It is paused: they are skipped."}>
    <${Answered} query=${query} empty=${query.data && !query.data.ticks.length && html`<${None} name=${name}
      said=${query.data} />`}>
      ${query.data && html`<${Ticks} said=${query.data} caption="Next ten ticks" />
        <${Remarks} of=${query.data.remarks} />`}<//><//>`;
}

const None = ({ name, said }) => html`<${Empty} command=${`cronring jobs trigger ${quoted(name)}`}>${
  said.kind === "manual" ? "It has no ticks of its own: it runs when somebody triggers it." : "It never ticks again."
}<//>`;

// Of an explanation, as of a job or of what somebody types.
export function Ticks({ said, caption }) {
  const zones = [...new Set([said.timezone, viewerZone])];
  const jitters = said.ticks.some((tick) => tick.run_at !== tick.tick);
  const special = said.ticks.some((tick) => tick.note);
  const seconds = said.ticks.some((tick) => tick.local.slice(17, 19) !== "00");
  return html`<div class="scroll"><table class="small"><caption class="hidden">${caption}</caption>
    <thead><tr><th scope="col">In</th><th scope="col">On its clocks, ${said.timezone}</th>
      ${zones.length > 1 && html`<th scope="col">On yours, ${viewerZone}</th>`}
      ${jitters && html`<th scope="col">Runs at</th>`}${special && html`<th scope="col">Special</th>`}</tr></thead>
    <tbody>${said.ticks.map(
      (tick) => html`<tr key=${tick.tick}><td class="digits"><${When} at=${tick.tick} zone=${said.timezone} /></td>
      <td class="digits">${wall(tick.local, seconds)}</td>
      ${zones.length > 1 && html`<td class="digits">${wall(inZone(Date.parse(tick.tick), viewerZone), seconds)}</td>`}
      ${jitters && html`<td class="digits"><${When} at=${tick.run_at} zone=${said.timezone} clock /></td>`}
      ${special && html`<td>${tick.note}</td>`}</tr>`,
    )}</tbody></table></div>`;
}

// "Th 11-26 02:30"; the year only where it isn't this one.
function wall(local, seconds) {
  const day = local.slice(0, 10);
  const weekday = WEEKDAYS[(new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % 7];
  const thisYear = inZone(now(), viewerZone).slice(0, 4);
  return `${weekday} ${day.startsWith(thisYear) ? day.slice(5) : day} ${local.slice(11, seconds ? 19 : 16)}`;
}

// What lint says.
export const Remarks = ({ of }) =>
  of.length > 0 &&
  html`<ul class="plain remarks">${of.map(
    (each) => html`<li key=${each.rule + each.message}><b>${each.level}:</b> ${each.message}.
      ${" "}<span class="says">To mend it: ${each.remedy}.</span></li>`,
  )}</ul>`;

export function YearOfDays({ name }) {
  const today = inZone(now(), viewerZone).slice(0, 4);
  const [asked, setYear] = useParameter("year", today);
  const year = /^\d{4}$/.test(asked) ? Math.min(LAST_YEAR, Math.max(FIRST_YEAR, Number(asked))) : Number(today);
  const query = useQuery(`${keyPath(name)}/schedule`, { count: 1, year });
  const said = query.data;
  const more = html`<span class="buttons tight">
    <button class="small" disabled=${year <= FIRST_YEAR} onClick=${() => setYear(String(year - 1))}>${year - 1}</button>
    <button class="small" disabled=${year >= LAST_YEAR} onClick=${() => setYear(String(year + 1))}>${year + 1}</button>
  </span>`;
  return html`<${Panel} id="year" title=${`The days of ${year}`} more=${more} says=${said && yearWords(said)}>
    <${Answered} query=${query}>${
      said?.year === year &&
      html`<div class="year">${MONTHS.map((month, index) => html`<${Month} key=${month} name=${month}
        number=${index} said=${said} />`)}</div>
      ${
        said.clock_changes.length > 0 &&
        html`<ul class="plain">${said.clock_changes.map(
          (each) => html`<li key=${each.day}><span aria-hidden="true">◆</span> ${each.happens}.</li>`,
        )}</ul>`
      }`
    }<//><//>`;
}

function yearWords(said) {
  const total = said.days.reduce((sum, each) => sum + each, 0);
  const running = said.days.filter(Boolean);
  if (!total) return "It has no tick in this year.";
  const [least, most] = [Math.min(...running), Math.max(...running)];
  const each = least === most ? `${count(most, "tick")} on each of them` : `${number(least)} to ${count(most, "tick")} on each`;
  return `${count(total, "tick")} on ${count(running.length, "day")}, ${each}. The darker a day, the more; ◆ the clocks change.`;
}

// Of five shades. Days that are all alike are of the middle one.
function levelOf(ticks, least, most) {
  if (!ticks) return 0;
  return least === most ? 2 : Math.max(1, Math.ceil((ticks / most) * 4));
}

function Month({ name, number, said }) {
  const first = Date.UTC(said.year, number, 1);
  const days = new Date(Date.UTC(said.year, number + 1, 0)).getUTCDate();
  const before = Math.round((first - Date.UTC(said.year, 0, 1)) / 86_400_000);
  const shift = (new Date(first).getUTCDay() + 6) % 7;
  const [least, most] = [Math.min(...said.days), Math.max(...said.days)];
  const changes = new Map(said.clock_changes.map((each) => [each.day, each.happens]));
  const weeks = Array.from({ length: Math.ceil((shift + days) / 7) }, (_, week) => week);
  const cell = (place) => {
    const day = place - shift + 1;
    if (day < 1 || day > days) return html`<td key=${place}></td>`;
    const ticks = said.days[before + day - 1];
    const date = new Date(first + (day - 1) * 86_400_000).toISOString().slice(0, 10);
    const change = changes.get(date);
    const title = `${date}: ${count(ticks, "tick")}${change ? `. ${change}` : ""}`;
    return html`<td key=${place} class=${`level${levelOf(ticks, least, most)}`}
      title=${title}>${day}${change && html`<span aria-label="the clocks change">◆</span>`}</td>`;
  };
  return html`<table class="month"><caption>${name}</caption>
    <thead class="hidden"><tr>${WEEKDAYS.map((each) => html`<th scope="col" key=${each}>${each}</th>`)}</tr></thead>
    <tbody>${weeks.map((week) => html`<tr key=${week}>${WEEKDAYS.map((_, day) => cell(week * 7 + day))}</tr>`)}</tbody>
  </table>`;
}
