// Who runs it, who is next, and a drill that shows it.
import { html, useEffect, useState } from "../base.mjs";
import { keyPath, lines } from "../api.mjs";
import { ask } from "../doing.mjs";
import { duration, now, useNow } from "../clock.mjs";
import { useQuery } from "../queries.mjs";
import { Answered, Copied, Facts, jobPath, Panel, State } from "../parts.mjs";
import { Ring } from "../ring.mjs";
import { quoted } from "../words.mjs";

const DRILL_S = 10;

export function Owners({ name, cluster, session }) {
  const query = useQuery(`${keyPath(name)}/owners`, null, { on: (kind) => kind === "cluster_changed" });
  const owners = query.data;
  return html`<${Panel} id="owners" title="Who runs it"
    says="The first tries each tick; the backup does if the first is silent; then the third is the backup.">
    <${Answered} query=${query}>${
      owners &&
      html`<${Facts} of=${[
        ["First", owners.primary || "nobody"],
        ["Backup", owners.backup || "nobody: there is one controller"],
        ["Third", owners.third || "nobody: there are two controllers at most"],
        ["Slot", owners.slot],
      ]} />
      <${Ring} members=${cluster.data?.members ?? []} owners=${owners} />
      ${session.may("admin", "*") && html`<${Drill} name=${name} owners=${owners} cluster=${cluster.data} />`}`
    }<//><//>`;
}

// A drill is held by the controller that is asked, and this page asks one alone.
function Drill({ name, owners, cluster }) {
  const [drill, setDrill] = useState(null);
  useEffect(() => () => drill?.stop.abort(), [drill?.stop]);
  const first = cluster?.members.find((each) => each.id === owners.primary);
  if (!first || !owners.backup) return null;
  const command = `cronring drill kill-owner --job ${quoted(name)} --for ${DRILL_S}s`;
  if (drill) return html`<${Held} drill=${drill} owners=${owners} close=${() => setDrill(null)} />`;
  if (cluster.answered_by !== first.id) {
    const there = `${location.protocol}//${first.http_address}${jobPath(name)}#owners`;
    return html`<p class="says">A drill is begun at its first owner: <a href=${there}>the console of ${first.id}</a>, or
      ${" "}<${Copied} text=${command} /></p>`;
  }
  const begin = () =>
    ask({
      title: `Drill: ${owners.primary} claims nothing for ${DRILL_S} s`,
      verb: "Begin the drill",
      says: `Ticks of all jobs that ${owners.primary} has are taken by their backups, half a second late. Here that is
        ${" "}${owners.backup}. What runs goes on, and nothing is lost. To close this page ends it.`,
      undo: "“End it now”.",
      command: () => command,
      act: async () => hold(owners.primary, setDrill),
    });
  return html`<div class="buttons"><button onClick=${begin}>Drill: let the backup take over</button></div>`;
}

async function hold(controller, set) {
  const stop = new AbortController();
  const words = lines("/drills", null, stop.signal, { controller, for_ms: String(DRILL_S * 1_000) });
  const first = await words.next(); // refused, it says why in the dialog
  set({ stop, until: Date.parse(first.value.until), begun: now(), over: "" });
  listen(words, set);
}

async function listen(words, set) {
  let over = "the connection to the controller was lost, which ends it";
  try {
    for await (const word of words) {
      if (word.kind === "KIND_ENDED") over = word.time_over ? "it lasted as long as was asked" : word.reason;
    }
  } catch (problem) {
    over = problem.name === "AbortError" ? "you ended it" : problem.message;
  }
  set((drill) => drill && { ...drill, over });
}

function Held({ drill, owners, close }) {
  const moment = useNow();
  if (drill.over) {
    return html`<div class="note" role="status"><p>The drill is over: ${drill.over}.
      The timeline above shows whose ticks came how late.</p><button class="small" onClick=${close}>Close</button></div>`;
  }
  return html`<div class="note" role="status"><p><${State} is="draining" text=${`${owners.primary} claims nothing`} />
    ${" "}for another ${duration(Math.max(0, drill.until - moment))}. ${owners.backup} takes its ticks.</p>
    <button class="small" onClick=${() => drill.stop.abort()}>End it now</button></div>`;
}
