// What ran of a job.
import { html, useState } from "../base.mjs";
import { duration } from "../clock.mjs";
import { useQuery } from "../queries.mjs";
import { go } from "../router.mjs";
import { Answered, Empty, Panel, Rows, RunLink, State, When } from "../parts.mjs";
import { quoted, wordOf } from "../words.mjs";

const RUNS = 25;

const COLUMNS = [
  { name: "Run", of: (run) => html`<${RunLink} of=${run.id} />` },
  { name: "Outcome", of: (run) => html`<${State} is=${run.outcome || "running"} />` },
  { name: "Tick", of: (run) => html`<${When} at=${run.tick} clock />` },
  { name: "Why", of: (run) => wordOf(run.trigger) + (run.attempt > 1 ? `, attempt ${run.attempt}` : "") },
  { name: "Late by", number: true, of: (run) => duration(run.lateness_ms) },
  { name: "Took", number: true, of: (run) => (run.outcome ? duration(run.duration_ms) : "…") },
  { name: "Error", of: (run) => (run.error_type ? `${run.error_type}: ${run.error_message.slice(0, 120)}` : "") },
];

// Its runs, the newest first; `until`: of ticks up to there.
export function History({ name, mine, until }) {
  const [token, setToken] = useState("");
  const query = useQuery("/executions", { "filter.job": name, "filter.until": until, page_size: RUNS, page_token: token }, { on: mine });
  const rows = query.data?.executions ?? [];
  return html`<${Panel} id="history" title="History" says=${until ? "What had been due by then, the newest first." : "Its runs, the newest first."}>
    <${Answered} query=${query} empty=${
      query.data &&
      !rows.length &&
      html`<${Empty} command=${`cronring jobs trigger ${quoted(name)}`}>
        It has not run yet.<//>`
    }>
      <${Rows} caption="Runs" columns=${COLUMNS} rows=${rows} keyOf=${(run) => run.id}
        open=${(run) => go(`/executions/${run.id}`)} />
      <div class="buttons">${token && html`<button onClick=${() => setToken("")}>Newest</button>`}
        ${query.data?.next_page_token && html`<button
          onClick=${() => setToken(query.data.next_page_token)}>Older</button>`}</div><//><//>`;
}
