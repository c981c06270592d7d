// A table of which only the rows in sight are elements: ten thousand scroll as smoothly as fifty.
import { html, useEffect, useRef, useState } from "./base.mjs";

const ROW = 40; // pixels; console.css has the same
const STEP = 20; // rows: what is in sight is told in such steps
const AROUND = 15; // rows beyond what is in sight

// Of so many rows those to draw, [from, to), and where the table is.
export function useSight(many) {
  const place = useRef(null);
  const [sight, setSight] = useState([0, 2 * STEP]);
  useEffect(() => {
    let waiting = 0;
    const look = () => {
      waiting = 0;
      if (!place.current) return;
      const above = -place.current.getBoundingClientRect().top / ROW;
      const from = Math.max(0, Math.floor((above - AROUND) / STEP) * STEP);
      const to = Math.ceil((above + innerHeight / ROW + AROUND) / STEP) * STEP;
      setSight((before) => (before[0] === from && before[1] === to ? before : [from, Math.max(to, STEP)]));
    };
    const soon = () => {
      if (!waiting) waiting = requestAnimationFrame(look);
    };
    look();
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    return () => {
      cancelAnimationFrame(waiting);
      removeEventListener("scroll", soon);
      removeEventListener("resize", soon);
    };
  }, [many > 0]);
  return [place, Math.min(sight[0], many), Math.min(sight[1], many)];
}

const space = (rows, columns) =>
  rows > 0 &&
  html`<tr aria-hidden="true" class="space"><td colspan=${columns} style=${{ height: `${rows * ROW}px` }}></td></tr>`;

// As Rows of parts.mjs; `sight`: what `useSight` gave of these rows.
export function VirtualRows({ caption, columns, rows, keyOf, open, picked, pick, mark, sight }) {
  const [place, from, to] = sight;
  const wide = columns.length + (pick ? 1 : 0);
  return html`<div class="scroll" ref=${place}><table class="rows virtual" aria-rowcount=${rows.length + 1}>
    <caption class="hidden">${caption}</caption>
    <thead><tr aria-rowindex="1">${pick && html`<th scope="col"><span class="hidden">Selected</span></th>`}
      ${columns.map(
        (each) => html`<th key=${each.name} scope="col" title=${each.title}
        class=${each.number ? "number" : ""}>${each.name}</th>`,
      )}</tr></thead>
    <tbody>${space(from, wide)}${rows.slice(from, to).map((row, index) => {
      const key = keyOf(row);
      return html`<tr key=${key} tabindex="-1" data-row=${key} aria-rowindex=${from + index + 2} class=${mark?.(row) ?? ""}
          onKeyDown=${(event) => {
            if (event.key === "Enter" && event.target === event.currentTarget) open(row);
          }}>
        ${
          pick &&
          html`<td><input type="checkbox" aria-label=${`Select ${key}`} checked=${picked.has(key)}
          onChange=${(event) => pick(row, event)} /></td>`
        }
        ${columns.map(
          (each) => html`<td key=${each.name} class=${each.number ? "number" : ""}
          data-name=${each.name}>${each.of(row)}</td>`,
        )}</tr>`;
    })}${space(rows.length - to, wide)}</tbody></table></div>`;
}
