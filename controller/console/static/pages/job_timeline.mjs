// The books as a timeline: runs where they were, ticks that didn't run with their reason, and why at any place of it.
import { html, useEffect } from "../base.mjs";
import { became } from "../books.mjs";
import { clockTime, now, useNow, viewerZone } from "../clock.mjs";
import { useParameter } from "../router.mjs";
import { Answered, Panel } from "../parts.mjs";
import { count, hueOf, shapeOf, wordOf } from "../words.mjs";
import { proofPath } from "./checks.mjs";
import { endOf, gapsOf, useSpan } from "./job_books.mjs";

const MINUTE = 60_000,
  HOUR = 3_600_000,
  DAY = 86_400_000;
// How long, its name, and how far apart its marks are.
const SPANS = [
  [10 * MINUTE, "10 minutes", MINUTE],
  [HOUR, "an hour", 10 * MINUTE],
  [6 * HOUR, "6 hours", HOUR],
  [DAY, "a day", 3 * HOUR],
  [7 * DAY, "7 days", DAY],
];
const GAPS_SHOWN = 12;
const AFTER = 0.25; // of a span, beyond an instant that it is about
const LEAST = 0.3; // of a run's width, percent

// `often`: ticks a day, by which the first view is chosen. `why`: what is asked about, and `ask(at)`. `at`: an instant
// that has been, around which it begins; undefined: it ends now.
export function Timeline({ name, job, mine, often, why, ask, at }) {
  const [span, setSpan] = useParameter("span");
  const [given, setEnd] = useParameter("until");
  const fitting = SPANS.findLast(([size]) => (often * size) / DAY <= 250) ?? SPANS[0];
  const chosen = SPANS.find(([, word]) => word === span) ?? (often < 3 ? SPANS[4] : fitting[0] > DAY ? SPANS[3] : fitting);
  const [size, , step] = chosen;
  const end = given || (at === undefined ? "" : new Date(at + size * AFTER).toISOString());
  const live = !Date.parse(end);
  const until = () => (live ? now() + size * 0.04 : Date.parse(end));
  const query = useSpan(name, () => until() - size, until, live, mine);
  const moment = useNow();
  const place = SPANS.indexOf(chosen);
  const move = (by) => {
    const next = until() + by * size;
    setEnd(next >= now() ? "" : new Date(Math.round(next)).toISOString());
  };
  const zoom = (to) => setSpan(SPANS[to][1]);
  const data = query.data;
  const gaps = data ? gapsOf(data, job, moment) : [];
  return html`<${Panel} id="timeline" title="What the books have"
    more=${html`<a href=${proofPath(name)}>Is every tick accounted for?</a>`}
    says=${`On your clocks, ${viewerZone}. Height: how long a run took. A click on any place asks why.`}>
    <div class="tools"><div class="buttons tight">
      <button onClick=${() => move(-1)}>Earlier</button>
      <button disabled=${live} onClick=${() => move(1)}>Later</button>
      <button disabled=${!given} onClick=${() => setEnd("")}>${at === undefined ? "Now" : "Then"}</button>
      <button disabled=${place === 0} onClick=${() => zoom(place - 1)} aria-label="Zoom in">+</button>
      <button disabled=${place === SPANS.length - 1} onClick=${() => zoom(place + 1)} aria-label="Zoom out">−</button>
      </div><label class="inline"><span class="hidden">Shown</span><select value=${chosen[1]}
        onChange=${(event) => setSpan(event.target.value)}>${SPANS.map(([, word]) => html`<option key=${word}
        value=${word}>${word}</option>`)}</select></label>
      <label class="inline">Day <input type="date" value=${localDay(until() - 1)} max=${localDay(now())}
        onChange=${(event) => {
          if (!event.target.value) return;
          const day = new Date(`${event.target.value}T00:00:00`);
          setSpan("a day");
          setEnd(day.getTime() + DAY >= now() ? "" : new Date(day.getTime() + DAY).toISOString());
        }} /></label></div>
    <${Answered} query=${query}>${
      data &&
      html`<${Strip} data=${data} step=${step} gaps=${gaps} why=${why} ask=${ask} moment=${moment}
        created=${Date.parse(job?.created_at ?? 0)} />
      ${data.since > data.from && html`<p class="says">Only the latest entries are drawn, from
        ${" "}${clockTime(data.since)} on. Zoom in for more.</p>`}
      <${Named} gaps=${gaps} ask=${ask} empty=${!data.entries.length} />`
    }<//><//>`;
}

const localDay = (at) => {
  const date = new Date(at);
  return new Date(at - date.getTimezoneOffset() * MINUTE).toISOString().slice(0, 10);
};

function Strip({ data, step, gaps, why, ask, moment, created }) {
  const whole = data.until - data.from;
  const left = (at) => Math.min(100, Math.max(0, ((at - data.from) / whole) * 100));
  const width = (from, until) => Math.max(LEAST, left(until) - left(from));
  const most = Math.max(1, ...data.entries.map((row) => row.duration_ms));
  const known = new Set(data.entries.map((row) => Date.parse(row.tick)));
  const click = (event) => {
    if (event.target.closest("a")) return;
    const box = event.currentTarget.getBoundingClientRect();
    ask(nearest(data, data.from + ((event.clientX - box.left) / box.width) * whole));
  };
  const at = Date.parse(why);
  return html`<div class="stretch" onClick=${click} role="group" aria-label=${`From ${clockTime(data.from)} to ${clockTime(
    data.until,
  )}: ${count(data.entries.filter((row) => !row.reason).length, "run")}, ${count(gaps.length, "gap")}`}>
    ${created > data.from && html`<span class="before" style=${{ width: `${left(created)}%` }}>not there yet</span>`}
    <span class="tocome" style=${{ left: `${left(moment)}%`, width: `${100 - left(moment)}%` }}></span>
    ${marks(data, step).map((each) => html`<span class="tick" key=${each}
      style=${{ left: `${left(each)}%` }}>${markText(each, step)}</span>`)}
    ${gaps.map((gap) => html`<button type="button" key=${`g${gap.at}${gap.reason}`} tabindex="-1"
      class=${`gap ${gap.reason.startsWith("nothing") ? "late" : "skipped"}`}
      style=${{ left: `${left(gap.from)}%`, width: `${width(gap.from, gap.until)}%` }}
      title=${gapWords(gap)} aria-label=${gapWords(gap)} onClick=${(event) => {
        event.stopPropagation();
        ask(gap.at);
      }}>${width(gap.from, gap.until) > 6 ? wordOf(gap.reason) : "∅"}</button>`)}
    ${data.entries
      .filter((row) => !row.reason)
      .map((row) => {
        const [state, said] = became(row);
        const high = 16 + 56 * Math.sqrt(row.duration_ms / most);
        const begun = Date.parse(row.tick) + Math.max(0, row.lateness_ms);
        return html`<a key=${row.execution_id} tabindex="-1" href=${`/executions/${row.execution_id}`}
          class=${`run ${hueOf(state)}`} title=${said} aria-label=${said} style=${{
            left: `${left(begun)}%`,
            width: `${width(begun, row.outcome ? endOf(row) : moment)}%`,
            height: `${high}px`,
          }}><span aria-hidden="true">${state === "completed" ? "" : shapeOf(state)}</span></a>`;
      })}
    ${data.expected
      .filter((each) => each > moment && !known.has(each))
      .map((each) => html`<span class="due" key=${`d${each}`} style=${{ left: `${left(each)}%` }}
        title=${`due at ${clockTime(each)}`}>○</span>`)}
    ${at >= data.from && at <= data.until && html`<span class="asked" style=${{ left: `${left(at)}%` }}></span>`}
  </div>`;
}

// A click is seldom on the pixel of a tick: within a hundredth of the picture, the nearest one is meant.
function nearest(data, at) {
  const near = (data.until - data.from) / 100;
  const ticks = [...data.entries.map((row) => Date.parse(row.tick)), ...data.expected];
  const best = ticks.reduce((found, tick) => (Math.abs(tick - at) < Math.abs(found - at) ? tick : found), Infinity);
  return new Date(Math.abs(best - at) <= near ? best : Math.floor(at / 1_000) * 1_000).toISOString();
}

function marks(data, step) {
  const shift = new Date(data.from).getTimezoneOffset() * MINUTE;
  const found = [];
  for (let at = Math.ceil((data.from - shift) / step) * step + shift; at < data.until; at += step) found.push(at);
  return found;
}

const markText = (at, step) => {
  const date = new Date(at);
  const pad = (value) => String(value).padStart(2, "0");
  const day = `${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return step >= DAY || (!date.getHours() && !date.getMinutes())
    ? day
    : `${pad(date.getHours())}:${pad(date.getMinutes())}`;
};

const gapWords = (gap) =>
  gap.ticks > 1
    ? `${clockTime(gap.from)} to ${clockTime(gap.until)}: ${wordOf(gap.reason)}, ${count(gap.ticks, "tick")}`
    : `${clockTime(gap.from)}: ${wordOf(gap.reason)}`;

// The same for who sees no picture, and for the keyboard.
function Named({ gaps, ask, empty }) {
  if (empty && !gaps.length) return html`<p class="says">The books have nothing here. Ask why at any time of it.</p>`;
  if (!gaps.length) return html`<p class="says">No gap: every tick here ran.</p>`;
  const shown = gaps.slice(-GAPS_SHOWN);
  return html`<p class="says">${count(gaps.length, "gap")}, the latest first:</p>
    <ul class="plain gaps">${[...shown].reverse().map(
      (gap) => html`<li key=${gap.at + gap.reason}><span class="state skipped"><span class="shape"
      aria-hidden="true">∅</span></span> ${gapWords(gap)}
      ${" "}<button class="small" onClick=${() => ask(gap.at)}
        aria-label=${`Why did it not run at ${clockTime(gap.from)}?`}>Why?</button></li>`,
    )}</ul>`;
}

// Leaves the page where it is, but for who can't see the answer.
export function useAnswerInSight(at) {
  useEffect(() => {
    if (at) document.querySelector("#why")?.closest("section").scrollIntoView({ block: "nearest" });
  }, [at]);
}
