// The ring: who tries which share of the 4,096 slots, primary outside and backup inside. It is a table as well.
import { html } from "./base.mjs";
import { State } from "./parts.mjs";

const SLOTS = 4096;
const OUTSIDE = 88,
  INSIDE = 68,
  WIDTH = 14;
// Of members in the order of their ids: hues that colour-blind eyes tell apart (Okabe and Ito), and dashes beside them.
const HUES = 7;

function arcs(members, field) {
  let from = 0;
  return members.map((member, index) => {
    const size = member[field] / SLOTS;
    const arc = { member, index, from, size };
    from += size;
    return arc;
  });
}

function Arc({ radius, arc }) {
  const length = 2 * Math.PI * radius;
  return html`<circle class=${`arc hue${arc.index % HUES} ${arc.member.status}`} cx="100" cy="100" r=${radius}
    fill="none"
    stroke-width=${WIDTH} stroke-dasharray=${`${Math.max(0, arc.size * length - 1)} ${length}`}
    stroke-dashoffset=${-arc.from * length} transform="rotate(-90 100 100)"><title>${arc.member.id}</title></circle>`;
}

export function Ring({ members, owners }) {
  const sorted = [...members].sort((a, b) => (a.id < b.id ? -1 : 1));
  const alive = sorted.filter((each) => each.primary_slots > 0).length;
  return html`<figure class="ring">
    <svg viewBox="0 0 200 200" role="img" aria-label=${`${alive} controllers share the ring`}>
      ${arcs(sorted, "primary_slots").map((arc) => html`<${Arc} key=${`p${arc.member.id}`} radius=${OUTSIDE}
        arc=${arc} />`)}
      ${arcs(sorted, "backup_slots").map((arc) => html`<${Arc} key=${`b${arc.member.id}`} radius=${INSIDE}
        arc=${arc} />`)}
      <text x="100" y="98" class="big">${alive}</text><text x="100" y="118">controllers</text>
    </svg>
    <table class="small"><caption class="hidden">Shares of the ring</caption>
      <thead><tr><th scope="col">Controller</th><th scope="col" class="number">First</th><th scope="col"
        class="number">Backup</th></tr></thead>
      <tbody>${sorted.map(
        (member, index) => html`<tr key=${member.id}>
        <td><span class=${`swatch hue${index % HUES}`} aria-hidden="true"></span> <${State} is=${member.status}
          text=${member.id} />
          ${owners?.primary === member.id && " (has this job)"}${owners?.backup === member.id && " (is next)"}</td>
        <td class="number">${share(member.primary_slots)}</td><td
          class="number">${share(member.backup_slots)}</td></tr>`,
      )}</tbody>
    </table></figure>`;
}

const share = (slots) => `${((slots / SLOTS) * 100).toFixed(1)} %`;
