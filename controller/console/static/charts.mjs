// Charts of days, drawn as SVG: for each day a line from the half's value to that of 99 of 100.
import { html } from "./base.mjs";

const WIDE = 480,
  HIGH = 120,
  LEFT = 64,
  BELOW = 20,
  ABOVE = 10;

// `days`: {day, p50, p99}, both undefined where there is nothing to draw. `text(value)`: of a value. `says`: for who
// doesn't see it. `pick(day)`: what a click on a day does.
export function DayChart({ days, text, says, pick }) {
  const top = nice(Math.max(...days.map((each) => each.p99 ?? 0)));
  const step = (WIDE - LEFT) / days.length;
  const y = (value) => HIGH - BELOW - (value / top) * (HIGH - BELOW - ABOVE);
  const every = Math.ceil(days.length / 7);
  return html`<svg class="chart" viewBox=${`0 0 ${WIDE} ${HIGH}`} role="img" aria-label=${says}>
    ${[0, 0.5, 1].map(
      (part) => html`<line class="grid" x1=${LEFT} x2=${WIDE} y1=${y(top * part)} y2=${y(top * part)} />
      <text x=${LEFT - 6} y=${y(top * part) + 4} class="end">${text(top * part)}</text>`,
    )}
    ${days.map((each, index) => {
      const x = LEFT + step * (index + 0.5);
      const label =
        (days.length - 1 - index) % every === 0 &&
        html`<text x=${x} y=${HIGH - 4} class="middle">${each.day.slice(5)}</text>`;
      if (each.p50 === undefined) return label;
      const wide = Math.min(14, step * 0.7);
      return html`<g class="day" onClick=${() => pick?.(each)}>
        <title>${`${each.day}: half within ${text(each.p50)}, 99 of 100 within ${text(each.p99)}`}</title>
        <rect class="hit" x=${x - step / 2} y="0" width=${step} height=${HIGH - BELOW} />
        <rect class="span" x=${x - wide / 2} y=${y(each.p99)} width=${wide}
          height=${Math.max(1, y(each.p50) - y(each.p99))} />
        <rect class="half" x=${x - wide / 2} y=${y(each.p50) - 1.5} width=${wide} height="3" />
        ${label}</g>`;
    })}</svg>`;
}

// The next number above that is 1, 2 or 5 times a power of ten.
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= value) ?? value;
}
