// The time machine: which instant a page shows, a bar that says so, and a slider over the last day.
import { html, useEffect, useRef, useState } from "./base.mjs";
import { inZone, now, relative, useNow, viewerZone } from "./clock.mjs";
import { useParameter } from "./router.mjs";
import { TimelineMarks } from "./timeline.mjs";

export const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const DRAGGING_MS = 150; // after the last move, before the past is asked for
const SHOWN = /^\/(cluster|timeline|jobs\/(?!new$).+)?$/; // pages that can show an instant that has been

// "03:12" is the latest of the viewer's clock that has been.
function read(text) {
  const clock = text.match(/^(\d{1,2}):(\d{2})(?::(\d{2}))?$/);
  if (!clock) return Date.parse(text);
  const date = new Date(now());
  date.setHours(Number(clock[1]), Number(clock[2]), Number(clock[3] ?? 0), 0);
  return date.getTime() > now() ? date.getTime() - DAY_MS : date.getTime();
}

// As addresses and commands have it.
export const written = (at) => new Date(at).toISOString().replace(/\.\d+Z$/, "Z");

// {at, wrong, set}: `at` in milliseconds; null: now. `wrong`: a text that is no instant that has been.
export function useAt() {
  const [text, setText] = useParameter("at");
  const found = text ? read(text) : null;
  const wrong = text && (Number.isNaN(found) || found > now()) ? text : "";
  return {
    at: wrong ? null : found,
    wrong,
    iso: found === null || wrong ? "" : written(found),
    set: (at) => setText(at === null ? "" : written(at)),
  };
}

// On top of a page that has `?at=`. The whole page has an edge as long as it shows what has been.
export function PastBar({ path }) {
  const { at, wrong, set } = useAt();
  const moment = useNow();
  const shown = at !== null && SHOWN.test(path);
  useEffect(() => {
    document.body.classList.toggle("historic", shown);
    return () => document.body.classList.remove("historic");
  }, [shown]);
  if (wrong)
    return html`<section class="past" aria-label="Time machine"><strong>${wrong} is no instant that has been.</strong>
      <span>Write 03:12, or 2026-03-29T02:30:00Z.</span> <button class="small" onClick=${() => set(null)}>Now</button></section>`;
  if (at === null) return null;
  if (!shown)
    return html`<section class="past" aria-label="Time machine"><strong>This page only shows now.</strong>
      <a href=${`/cluster?at=${written(at)}`}>The cluster at that time</a></section>`;
  return html`<section class="past" aria-label="Time machine">
    <strong>As it was at ${inZone(at, viewerZone)}</strong>
    ${viewerZone !== "UTC" && html`<span>${inZone(at, "UTC")}</span>`} <span>${relative(at, moment)}</span>
    <button class="small" onClick=${() => set(at - MINUTE_MS)}>A minute before</button>
    <button class="small" onClick=${() => set(Math.min(at + MINUTE_MS, now()))}>A minute after</button>
    <button class="small" onClick=${() => set(null)}>Back to now</button></section>`;
}

// The last 24 hours to slide over. At its right end it is now.
export function Slider() {
  const { at, set } = useAt();
  const minute = Math.floor(useNow() / MINUTE_MS) * MINUTE_MS;
  const [dragged, drag] = useState(null);
  const timer = useRef(0);
  const from = minute - DAY_MS;
  const shown = dragged ?? at ?? minute;
  const slide = (event) => {
    const to = Number(event.target.value);
    drag(to);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      drag(null);
      set(to >= minute ? null : to);
    }, DRAGGING_MS);
  };
  const said = shown >= minute ? "now" : inZone(shown, viewerZone);
  return html`<div class="slider"><label for="slide">The cluster as it was: <output>${said}</output></label>
    <input id="slide" type="range" min=${from} max=${minute} step=${MINUTE_MS} value=${Math.max(from, shown)}
      aria-valuetext=${said} onInput=${slide} />
    <${TimelineMarks} from=${from} until=${minute} /></div>`;
}
