// How the last hour went, and how late runs begin now.
import { html } from "../base.mjs";
import { duration } from "../clock.mjs";
import { Answered, Empty, Facts, Panel, State } from "../parts.mjs";
import { useQuery } from "../queries.mjs";
import { number, wordOf } from "../words.mjs";

export function LastHour() {
  const query = useQuery("/recent", null, { every: 10_000 });
  const said = query.data;
  const outcomes = Object.entries(said?.outcomes ?? {});
  const skipped = Object.entries(said?.skip_reasons ?? {});
  const nothing = said && !outcomes.length && !skipped.length;
  return html`<${Panel} id="hour" title="The last hour" says="Ticks by what became of them. Lateness is of five minutes.">
    <${Answered} query=${query} empty=${nothing && html`<${Empty} command="cronring upcoming">No tick was due.<//>`}>${
      said &&
      html`<${Facts} of=${[
        [
          "Begin late by",
          said.lateness_p50_ms === undefined
            ? "no run has begun"
            : html`<strong>${duration(said.lateness_p50_ms)}</strong> p50, <strong>${duration(said.lateness_p99_ms)}</strong> p99`,
        ],
        ...outcomes.map(([outcome, runs]) => [html`<${State} is=${outcome} />`, number(runs)]),
        ...skipped.map(([reason, ticks]) => [html`<${State} is="skipped" text=${wordOf(reason)} />`, number(ticks)]),
      ]} />`
    }<//><//>`;
}
