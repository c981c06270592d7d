// How a job stood at an instant that has been: whose it was, what became of its ticks, and what had run before.
import { html } from "../base.mjs";
import { keyPath } from "../api.mjs";
import { useQuery } from "../queries.mjs";
import { useParameter } from "../router.mjs";
import { Answered, Facts, Panel } from "../parts.mjs";
import { History } from "./job_history.mjs";
import { Timeline } from "./job_timeline.mjs";
import { Why } from "./job_why.mjs";

const SELDOM_MS = 600_000; // what has been hardly changes
const never = () => false;

export function JobThen({ name, at, iso }) {
  const [why, setWhy] = useParameter("why");
  const job = useQuery(keyPath(name), null, { every: SELDOM_MS }).data;
  const schedule = useQuery(`${keyPath(name)}/schedule`, { count: 1 }, { every: SELDOM_MS });
  const often = schedule.data?.per_day.average ?? (schedule.problem ? 24 : null);
  const asked = why || iso;
  return html`<h1 class="key">${name}</h1>
    ${often !== null && html`<${Timeline} name=${name} job=${job} mine=${never} often=${often} why=${asked} ask=${setWhy} at=${at} />`}
    <div class="columns">
      <${Why} name=${name} mine=${never} at=${asked} ask=${setWhy} />
      <${OwnersThen} name=${name} iso=${iso} />
    </div>
    <${History} name=${name} mine=${never} until=${iso} />`;
}

function OwnersThen({ name, iso }) {
  const query = useQuery(`${keyPath(name)}/owners`, { at: iso }, { every: SELDOM_MS });
  const owners = query.data;
  return html`<${Panel} id="owners" title="Who ran it" says="By the leases of then."
      more=${html`<a href=${`/cluster?at=${iso}`}>The cluster at that time</a>`}>
    <${Answered} query=${query}>${
      owners &&
      html`<${Facts} of=${[
        ["First", owners.primary || "nobody"],
        ["Backup", owners.backup || "nobody"],
        ["Slot", owners.slot],
      ]} />`
    }<//><//>`;
}
