// What is coming within a day or a week, with what jitter would make of it.
import { html, useState } from "../base.mjs";
import { Answered, Copied, Empty, Panel } from "../parts.mjs";
import { Strip, useForecast } from "../strip.mjs";

const DAY_MS = 86_400_000;

export function Coming({ days = 1, more }) {
  const [spread, setSpread] = useState(false);
  const query = useForecast(days * DAY_MS);
  const said = query.data;
  const title = days === 1 ? "Coming: 24 hours" : `Coming: ${days} days`;
  return html`<${Panel} id=${`coming${days}`} title=${title} more=${more}
      says="By the schedules, and by how long runs have lasted.">
    <${Answered} query=${query} empty=${
      said &&
      Number(said.jobs) === 0 &&
      html`<${Empty} command="cronring deploy yours.py">No job has a tick to come.<//>`
    }>${said && html`<button class="small" aria-pressed=${spread}
        onClick=${() => setSpread(!spread)}>As if all jobs had <code>jitter="auto"</code></button><${Strip} said=${said} spread=${spread} />
        ${spread && html`<p class="says">Write it in the module, or in a template. What would move: <${Copied} text="cronring plan yours.py" /></p>`}`}<//><//>`;
}
