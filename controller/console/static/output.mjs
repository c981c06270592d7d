// What a run prints, as it prints it: followed, searched, and with no more of a terminal than its colours.
import { html, useEffect, useMemo, useRef, useState } from "./base.mjs";
import { lines } from "./api.mjs";
import { coloured } from "./ansi.mjs";
import { Copied, Panel } from "./parts.mjs";

const KEPT = 400_000; // characters that a page holds: a tab left open doesn't grow
const AGAIN_MS = 2_000;
const DRAWN_MS = 150; // however often it prints, it is drawn so often
const NEAR_END = 24; // pixels from the end that count as the end
const MOST_FOUND = 2_000;

// Where `wanted` stands in a text, in whatever case: [from, to) of each.
export function places(text, wanted) {
  const found = [];
  if (!wanted) return found;
  // Each character by itself: some have another length in lower case.
  const low = [...text].map((one) => (one.toLowerCase().length === one.length ? one.toLowerCase() : one)).join("");
  const word = wanted.toLowerCase();
  for (let at = low.indexOf(word); at >= 0 && found.length < MOST_FOUND; at = low.indexOf(word, at + word.length)) {
    found.push([at, at + word.length]);
  }
  return found;
}

// Pieces of `coloured`, cut where a place begins or ends: what is found may have several colours.
export function marked(pieces, found) {
  const cut = [];
  let at = 0,
    next = 0;
  for (const piece of pieces) {
    let from = 0;
    while (from < piece.text.length) {
      while (next < found.length && found[next][1] <= at + from) next += 1;
      const [begin, end] = found[next] ?? [Infinity, Infinity];
      const inside = begin <= at + from;
      const to = Math.min(piece.text.length, (inside ? end : begin) - at);
      cut.push({ text: piece.text.slice(from, to), classes: piece.classes, place: inside ? next : -1 });
      from = to;
    }
    at += piece.text.length;
  }
  return cut;
}

export function Printed({ run }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (run.outputs_hidden) return undefined;
    const stop = new AbortController();
    read(run.id, stop.signal, setText, setProblem);
    return () => stop.abort();
  }, [run.id, run.outputs_hidden]);
  if (run.outputs_hidden)
    return html`<${Panel} id="output" title="Output"><p>Your role doesn't show what runs print.</p><//>`;
  return html`<${Panel} id="output" title="Output">
    ${problem && html`<p class="problem" role="alert">${problem} It is asked for again by itself.</p>`}
    ${
      text
        ? html`<${Text} text=${text} live=${!run.outcome} />`
        : html`<p class="says">It has printed nothing${run.outcome ? "" : " so far"}.</p>`
    }
    <${Copied} text=${`cronring logs ${run.outcome ? "" : "-f "}${run.id}`} /><//>`;
}

function Text({ text, live }) {
  const [find, setFind] = useState("");
  const [at, setAt] = useState(0);
  const [follow, setFollow] = useState(live);
  const box = useRef(null);
  const pieces = useMemo(() => coloured(text), [text]);
  const found = useMemo(() => places(pieces.map((each) => each.text).join(""), find), [pieces, find]);
  useEffect(() => {
    if (follow && !find) box.current.scrollTop = box.current.scrollHeight;
  }, [text, follow]);
  useEffect(() => {
    box.current.querySelector("mark.here")?.scrollIntoView({ block: "nearest" });
  }, [at, find]);
  const step = (by) => found.length && setAt((before) => (before + by + found.length) % found.length);
  // Who scrolls up wants to read; who scrolls to the end, to follow.
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    setFollow(scrollHeight - scrollTop - clientHeight < NEAR_END);
  };
  return html`<div class="tools">
      <label>Find <input id="search" type="search" value=${find} spellcheck="false"
        onInput=${(event) => {
          setFind(event.target.value);
          setAt(0);
        }}
        onKeyDown=${(event) => {
          if (event.key === "Enter") {
            event.preventDefault();
            step(event.shiftKey ? -1 : 1);
          }
        }} /></label>
      ${
        find &&
        html`<span role="status">${found.length ? `${at + 1} of ${found.length}${found.length === MOST_FOUND ? " or more" : ""}` : "not found"}</span>
        <span class="deeds"><button onClick=${() => step(-1)} aria-label="The one before">↑</button>
        <button onClick=${() => step(1)} aria-label="The next one">↓</button></span>`
      }
      <label class="check"><input type="checkbox" checked=${follow} onChange=${() => setFollow(!follow)} /> Follow</label></div>
    <pre class="output" ref=${box} tabindex="0" aria-label="Output" onScroll=${scrolled}>${marked(pieces, found).map(
      (piece) =>
        piece.place < 0
          ? html`<span class=${piece.classes}>${piece.text}</span>`
          : html`<mark class=${`${piece.classes} ${piece.place === at ? "here" : ""}`}>${piece.text}</mark>`,
    )}</pre>`;
}

// Goes on where it was when the connection is lost; a run that has ended is read once.
async function read(id, signal, setText, setProblem) {
  const decoder = new TextDecoder();
  let offset = 0,
    text = "",
    timer = 0;
  const draw = () => {
    timer = 0;
    if (!signal.aborted) setText(text);
  };
  for (;;) {
    try {
      for await (const chunk of lines(`/executions/${id}/output`, { from_offset: offset || "" }, signal)) {
        if (chunk.problem) throw Object.assign(new Error(chunk.problem.detail), { violations: [] });
        const data = Uint8Array.from(atob(chunk.data ?? ""), (one) => one.charCodeAt(0));
        const begins = Number(chunk.offset ?? offset);
        if (data.length && begins > offset)
          text += `${decoder.decode()}\n… ${begins - offset} bytes are gone: only the last of a run's output is kept …\n`;
        offset = data.length ? begins + data.length : offset;
        text = (text + decoder.decode(data, { stream: true })).slice(-KEPT);
        timer ||= setTimeout(draw, DRAWN_MS);
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
