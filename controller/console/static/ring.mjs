// The ring: who tries which share of the 4,096 slots, primary outside and backup inside. It is a table as well.
import { html, useEffect, useState } from "./base.mjs";
import { State } from "./parts.mjs";

const SLOTS = 4096;
const OUTSIDE = 88,
  INSIDE = 68,
  WIDTH = 14;
// Hues that colour-blind eyes tell apart (Okabe and Ito). The table beside the ring names them.
const HUES = 7;
const FADING_MS = 700; // what has gone shrinks for half a second

// A member keeps its place and hue while the tab is open: those of others don't move when it goes.
const places = new Map();

function placed(members) {
  for (const member of [...members].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    if (!places.has(member.id)) places.set(member.id, places.size);
  }
  return [...members].sort((a, b) => places.get(a.id) - places.get(b.id));
}

// With those that have just gone, whose arcs shrink while the others grow over them.
function useFading(members) {
  const [gone, setGone] = useState([]);
  const [before, setBefore] = useState(members);
  const ids = new Set(members.map((each) => each.id));
  const left = before.filter((each) => !ids.has(each.id));
  useEffect(() => {
    setBefore(members);
    if (!left.length) return undefined;
    setGone(left.map((each) => ({ ...each, status: "dead", primary_slots: 0, backup_slots: 0 })));
    const timer = setTimeout(() => setGone([]), FADING_MS);
    return () => clearTimeout(timer);
  }, [members.map((each) => each.id).join(" ")]);
  return [...members, ...(left.length ? left.map((each) => ({ ...each, status: "dead" })) : gone)];
}

function arcs(members, field) {
  let from = 0;
  return members.map((member) => {
    const size = member[field] / SLOTS;
    const arc = { member, from, size };
    from += size;
    return arc;
  });
}

function Arc({ radius, arc, held, dim }) {
  const length = 2 * Math.PI * radius;
  const hue = places.get(arc.member.id) % HUES;
  return html`<circle class=${`arc hue${hue} ${arc.member.status}${held ? " held" : dim ? " dim" : ""}`}
    data-member=${arc.member.id} cx="100" cy="100" r=${radius} fill="none" stroke-width=${WIDTH}
    stroke-dasharray=${`${Math.max(0, arc.size * length - 1)} ${length}`} stroke-dashoffset=${-arc.from * length}
    transform="rotate(-90 100 100)"><title>${arc.member.id}</title></circle>`;
}

// `owners`: {primary, backup} of a job, `of`: its key. Their arcs stand out.
export function Ring({ members, owners, of }) {
  const sorted = placed(members);
  const drawn = placed(useFading(sorted));
  const alive = sorted.filter((each) => each.primary_slots > 0).length;
  const circle = (radius, field, holder) =>
    arcs(drawn, field).map(
      (arc) => html`<${Arc} key=${field + arc.member.id} radius=${radius} arc=${arc}
        held=${holder === arc.member.id} dim=${holder && holder !== arc.member.id} />`,
    );
  return html`<figure class="ring">
    <svg viewBox="0 0 200 200" role="img" aria-label=${`${alive} controllers share the ring`}>
      ${circle(OUTSIDE, "primary_slots", owners?.primary)}${circle(INSIDE, "backup_slots", owners?.backup)}
      <text x="100" y="98" class="big">${alive}</text><text x="100" y="118">controllers</text>
    </svg>
    <table class="small"><caption class="hidden">Shares of the ring</caption>
      <thead><tr><th scope="col">Controller</th><th scope="col" class="number">First</th><th scope="col"
        class="number">Backup</th></tr></thead>
      <tbody>${sorted.map((member) => html`<tr key=${member.id}>
        <td><span class=${`swatch hue${places.get(member.id) % HUES}`} aria-hidden="true"></span> <${State}
          is=${member.status} text=${member.id} />
          ${owners?.primary === member.id && " (has this job)"}${owners?.backup === member.id && " (is next)"}</td>
        <td class="number">${share(member.primary_slots)}</td><td
          class="number">${share(member.backup_slots)}</td></tr>`)}</tbody>
    </table>
    <p class="says whose" role="status">${of && owners ? `${of}: ${owners.primary || "nobody"} first, then ${owners.backup || "nobody"}` : ""}</p>
  </figure>`;
}

const share = (slots) => `${((slots / SLOTS) * 100).toFixed(1)} %`;
