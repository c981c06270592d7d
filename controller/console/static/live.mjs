// One stream of events for a browser, shared by its tabs. The tab that holds the lock has the stream, and tells the
// others; when it closes, another takes the lock and goes on where that one was.
//
// A browser opens six connections to a host with HTTP/1.1, so a stream for each tab would let the seventh tab hang.
import { useEffect, useState } from "./base.mjs";

const NAME = "cronring-events";
const SILENCE_MS = 13_000; // the server says something every 5 s
const RETRY_MS = 1_000;
const RETRY_MOST_MS = 15_000;
const KINDS = [
  "job_changed",
  "job_removed",
  "execution_started",
  "execution_ended",
  "cluster_changed",
  "resync",
  "beat",
];

const listeners = new Set();
const watchers = new Set();
let channel = null;
let last = ""; // the latest token that was read, by whichever tab
// "connecting" before the first word of it; `since`: since when it is so.
let state = { name: "connecting", since: Date.now(), leads: false };

export const signal = () => state;

function become(name, leads = state.leads) {
  if (state.name === name && state.leads === leads) return;
  state = { name, leads, since: state.name === name ? state.since : Date.now() };
  for (const each of watchers) each(state);
}

function tell(kind, data) {
  for (const each of listeners) each(kind, data);
}

// `listener(kind, data)`: of each event, in the order in which the server told them.
export function onEvent(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// `watcher(state)`: whenever the stream's state is another one.
export function onSignal(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export function useSignal() {
  const [found, set] = useState(state);
  useEffect(() => {
    watchers.add(set);
    set(state);
    return () => watchers.delete(set);
  }, []);
  return found;
}

// Calls `listener` of events of those kinds, while the component is there.
export function useEvents(kinds, listener, inputs) {
  useEffect(
    () =>
      onEvent((kind, data) => {
        if (kinds.includes(kind)) listener(kind, data);
      }),
    inputs,
  );
}

export function begin() {
  if (!navigator.locks || !window.BroadcastChannel) {
    // not a secure context: each tab for itself
    lead(() => {});
    return;
  }
  channel = new BroadcastChannel(NAME);
  channel.onmessage = ({ data }) => {
    if (data.to === "leader" && state.leads) share({ signal: state.name, last });
    if (data.signal) become(data.signal);
    if (data.last) last = data.last;
    if (data.kind) tell(data.kind, data.data);
  };
  channel.postMessage({ to: "leader" });
  navigator.locks.request(NAME, () => new Promise(() => lead(share)));
}

function share(message) {
  channel.postMessage(message);
}

function lead(told) {
  become("connecting", true);
  let wait = RETRY_MS;
  const open = () => {
    const source = new EventSource(`/api/v1/events${last ? `?resume_token=${encodeURIComponent(last)}` : ""}`);
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(again, SILENCE_MS);
      wait = RETRY_MS;
      become("live");
      told({ signal: "live" });
    };
    const again = () => {
      clearTimeout(silence);
      source.close();
      become("lost");
      told({ signal: "lost" });
      setTimeout(open, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, RETRY_MOST_MS);
    };
    let silence = setTimeout(again, SILENCE_MS);
    source.onopen = heard;
    source.onerror = again;
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => {
        heard();
        last = event.lastEventId || last;
        const data = event.data ? JSON.parse(event.data) : {};
        told({ kind, data, last });
        tell(kind, data);
      });
    }
  };
  open();
}
