// The cluster's time, which is PostgreSQL's, and texts of times. Instants are milliseconds since 1970.
import { useEffect, useRef, useState } from "./base.mjs";

let offset = 0;
const ticking = new Set();
setInterval(() => {
  for (const each of ticking) each();
}, 1000);

export const now = () => Date.now() + offset;

// `text`: the cluster's time just now, as an answer told it.
export function setClock(text) {
  if (text) offset = Date.parse(text) - Date.now();
}

// Draws anew each second, while the page is seen.
export function useNow() {
  const [at, set] = useState(now());
  useEffect(() => {
    const tick = () => {
      if (!document.hidden) set(now());
    };
    ticking.add(tick);
    return () => ticking.delete(tick);
  }, []);
  return at;
}

// A text that is another one as time goes by. It is drawn anew only then: a list has hundreds of them.
export function useText(textAt) {
  const [, set] = useState("");
  const latest = useRef(null);
  latest.current = textAt;
  useEffect(() => {
    const tick = () => {
      if (!document.hidden) set(latest.current(now()));
    };
    ticking.add(tick);
    return () => ticking.delete(tick);
  }, []);
  return textAt(now());
}

export const viewerZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const UNITS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

// "850 ms", "12.4 s", "3 min 20 s", "2 h 5 min"
export function duration(ms) {
  if (ms === undefined || ms === null || Number.isNaN(ms)) return "–";
  const size = Math.abs(ms);
  if (size < 10) return `${ms.toFixed(1)} ms`;
  if (size < 1_000) return `${Math.round(ms)} ms`;
  if (size < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return coarse(ms, 2);
}

function coarse(ms, parts) {
  let rest = Math.round(Math.abs(ms) / 1_000) * 1_000;
  const found = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(rest / size);
    if (count || (unit === "s" && !found.length)) found.push(`${count} ${unit}`);
    rest -= count * size;
  }
  return (ms < 0 ? "-" : "") + found.slice(0, parts).join(" ");
}

// "in 12 s", "3 min ago"
export function relative(at, from = now()) {
  const ms = at - from;
  const said = coarse(Math.abs(ms), Math.abs(ms) < 3_600_000 ? 1 : 2);
  return ms >= 0 ? `in ${said}` : `${said} ago`;
}

const pad = (value, size = 2) => String(value).padStart(size, "0");

// ISO 8601 in UTC, to the second.
export const utc = (at) =>
  new Date(at)
    .toISOString()
    .replace(/\.\d+Z$/, "Z")
    .replace("T", " ");

const clocks = new Map(); // by zone: each costs a browser more than all that it says afterwards

function clockOf(zone) {
  if (!clocks.has(zone)) {
    const format = new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
    });
    clocks.set(zone, format);
  }
  return clocks.get(zone);
}

// On the clocks of a zone, as "2026-03-01 08:00:00 Europe/Berlin".
export function inZone(at, zone) {
  const parts = Object.fromEntries(
    clockOf(zone)
      .formatToParts(at)
      .map((part) => [part.type, part.value]),
  );
  return `${parts.year}-${parts.month}-${parts.day} ${parts.hour}:${parts.minute}:${parts.second} ${zone}`;
}

// Of the viewer's clock: "08:00:00", with the day if it isn't today.
export function clockTime(at) {
  const date = new Date(at);
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return date.toDateString() === new Date(now()).toDateString() ? time : `${day} ${time}`;
}
