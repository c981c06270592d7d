// All runs, by the filter's words.
import { html, useEffect, useState } from "../base.mjs";
import { duration } from "../clock.mjs";
import { FilterField } from "../filterfield.mjs";
import { useEvents } from "../live.mjs";
import { faultOf, useQuery } from "../queries.mjs";
import { go, useParameter } from "../router.mjs";
import { Answered, Choice, Empty, JobLink, Rows, RunLink, State, When } from "../parts.mjs";
import { count, number, wordOf } from "../words.mjs";

const PAGE = 100;
const SORTS = { newest: "the newest first", slowest: "what took longest", latest: "what began latest" };

const ofRuns = (kind) => kind.startsWith("execution_");

const COLUMNS = [
  { name: "Run", of: (run) => html`<${RunLink} of=${run.id} />` },
  { name: "Job", of: (run) => html`<${JobLink} of=${run.job} />` },
  { name: "Outcome", of: (run) => html`<${State} is=${run.outcome || "running"} />` },
  { name: "Tick", of: (run) => html`<${When} at=${run.tick} />` },
  { name: "Why", of: (run) => wordOf(run.trigger) },
  { name: "Late by", number: true, of: (run) => duration(run.lateness_ms) },
  { name: "Took", number: true, of: (run) => (run.outcome ? duration(run.duration_ms) : "…") },
  { name: "Error", of: (run) => (run.error_type ? `${run.error_type}: ${run.error_message.slice(0, 100)}` : "") },
];

export function Executions() {
  const [text] = useParameter("q");
  const [sort, setSort] = useParameter("sort", "newest");
  const [token, setToken] = useState("");
  const [fresh, setFresh] = useState(0);
  const [none, setNone] = useState(true);
  // Rows that somebody reads stay where they are. Where there is none, the first ones come by themselves.
  const asking = { on: none ? ofRuns : undefined, least: 5_000, every: 60_000 };
  const query = useQuery(
    "/executions",
    { filter: text, sort: sort === "newest" ? "" : sort, page_size: PAGE, page_token: token },
    asking,
  );
  // Of none that is narrowed by nothing: that many are counted for a while.
  const counted = useQuery(text ? "/executions:count" : null, { filter: text }, asking).data;
  const wrong = faultOf(query);
  useEvents(["execution_started"], () => setFresh((before) => before + 1), []);
  useEffect(() => {
    setFresh(0);
    setNone(!query.data?.executions.length);
  }, [query.data]);
  useEffect(() => setToken(""), [text, sort]);
  const rows = query.data?.executions ?? [];
  return html`<h1>Runs <span class="says">${counted ? `${counted.at_least ? "at least " : ""}${number(counted.count)}` : ""}</span></h1>
    <form class="tools" role="search" onSubmit=${(event) => event.preventDefault()}>
      <${FilterField} list="executions" name="q" says="filter-says"
        hint="outcome:unsuccessful job:billing.close_day since:24h" />
      <${Choice} label="Order by" value=${sort} set=${setSort} of=${Object.entries(SORTS)} /></form>
    <p id="filter-says" class=${wrong ? "problem" : "says"} role="status">${
      wrong ||
      (fresh > 0 && !token
        ? html`${count(fresh, "run")} began since. <button class="small" onClick=${query.again}>Show</button>`
        : "")
    }</p>
    <${Answered} query=${query} empty=${
      query.data &&
      !rows.length &&
      !query.data.next_page_token &&
      html`<${Empty}
        command="cronring executions list">No run fits.<//>`
    }>
      <${Rows} caption="Runs" columns=${COLUMNS} rows=${rows} keyOf=${(run) => run.id}
        open=${(run) => go(`/executions/${run.id}`)} />
      <div class="buttons">${token && html`<button onClick=${() => setToken("")}>Newest</button>`}
        ${query.data?.next_page_token && html`<button
          onClick=${() => setToken(query.data.next_page_token)}>Older</button>`}</div><//>`;
}
