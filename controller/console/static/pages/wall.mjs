// From five metres: green, or what is red. Never green by what is old.
import { html } from "../base.mjs";
import { clockTime, duration, useNow } from "../clock.mjs";
import { useQuery } from "../queries.mjs";
import { When } from "../parts.mjs";
import { Ring } from "../ring.mjs";
import { useVerdict } from "../verdict.mjs";
import { count, number } from "../words.mjs";

export function Wall({ health }) {
  const { all, ready, signal } = useVerdict(health);
  const moment = useNow();
  const stats = useQuery("/stats", null, { every: 15_000 });
  const worst = all[0];
  const lost = worst?.worse === 4;
  const dead = lost || signal.name !== "live" || !ready;
  const hue = dead ? "nosignal" : !worst ? "ok" : worst.worse > 2 ? "failed" : "late";
  const recent = useQuery("/recent", null, { every: 15_000 });
  const next = health.due.data?.due?.find((each) => !each.running && Date.parse(each.run_at) > moment);
  return html`<main id="main" class=${`wall ${hue}`} tabindex="-1"><h1>${
    lost ? "NO SIGNAL" : dead ? "CONNECTING" : !worst ? "All well" : worst.text
  }</h1>
    <p class="big">
      ${dead ? html`since ${clockTime(signal.since)} · ${worst?.text ?? "What is below is old."}` : worst?.more}</p>
    ${!dead && all.slice(1, 5).map((each) => html`<p class="big">${each.text}</p>`)}
    <div class="wallfoot"><${Ring} members=${health.cluster.data?.members ?? []} />
      <div><p class="huge digits">${clockTime(moment)}</p>
        ${
          stats.data &&
          html`<p class="big">${count(
            Object.values(stats.data.jobs).reduce((sum, each) => sum + Number(each), 0),
            "job",
          )},
          ${" "}${number(stats.data.running)} running</p>`
        }
        ${recent.data?.lateness_p50_ms !== undefined && html`<p class="big">
          begin late by ${duration(recent.data.lateness_p50_ms)} p50, ${duration(recent.data.lateness_p99_ms)} p99</p>`}
        ${next && html`<p class="big">next: ${next.job} <${When} at=${next.run_at} /></p>`}</div></div></main>`;
}
