// What is coming?
import { html } from "../base.mjs";
import { useQuery } from "../queries.mjs";
import { Coming } from "./coming.mjs";
import { useParameter } from "../router.mjs";
import { Answered, Choice, Empty, JobLink, Rows, When } from "../parts.mjs";

const SPANS = { "5 minutes": 300_000, "an hour": 3_600_000, "a day": 86_400_000 };

const COLUMNS = [
  { name: "In", of: (due) => html`<${When} at=${due.run_at} />` },
  { name: "At", of: (due) => html`<${When} at=${due.run_at} clock />` },
  { name: "Job", of: (due) => html`<${JobLink} of=${due.job} />` },
];

export function Upcoming() {
  const [span, setSpan] = useParameter("within", "an hour");
  const query = useQuery("/due", { limit: 100, within_ms: SPANS[span] ?? SPANS["an hour"] }, { every: 5_000 });
  const rows = query.data?.due ?? [];
  return html`<h1>Upcoming</h1><${Coming} /><${Coming} days=${7} />
    <h2>Next</h2>
    <div class="tools"><${Choice} label="Within" value=${span} set=${setSpan} of=${Object.keys(SPANS)} /></div>
    <p class="says">The next run of each job, a hundred at most.</p>
    <${Answered} query=${query}
      empty=${query.data && !rows.length && html`<${Empty} command="cronring jobs list">Nothing is due within ${span}.<//>`}>
      <${Rows} caption="What runs next" columns=${COLUMNS} rows=${rows} keyOf=${(due) => due.job} /><//>`;
}
