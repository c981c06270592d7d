// What happened, and when?
import { html, useEffect, useState } from "../base.mjs";
import { Answered, Choice, Copied, Empty, Panel } from "../parts.mjs";
import { useAt, written } from "../moment.mjs";
import { useParameter } from "../router.mjs";
import { CopyMarkdown, Entries, useTimeline } from "../timeline.mjs";

const HOUR_MS = 3_600_000;
const SPANS = { "an hour": HOUR_MS, "6 hours": 6 * HOUR_MS, "a day": 24 * HOUR_MS, "a week": 168 * HOUR_MS };
const LATEST = 8;

export function TimelinePage() {
  const [span, setSpan] = useParameter("within", "a day");
  const [token, setToken] = useState("");
  useEffect(() => setToken(""), [span]);
  const hours = (SPANS[span] ?? SPANS["a day"]) / HOUR_MS;
  const { at } = useAt();
  const query = useTimeline(at === null ? { within: hours * HOUR_MS, token } : { since: at - hours * HOUR_MS, until: at, token });
  const entries = query.data?.entries ?? [];
  const next = query.data?.next_page_token;
  return html`<h1>Timeline</h1>
    <div class="tools"><${Choice} label="Within" value=${span} set=${setSpan} of=${Object.keys(SPANS)} />
      <span><${CopyMarkdown} entries=${entries} /></span></div>
    <p class="says">What failed and recovered, who came and went, and what people did. The latest first.</p>
    <${Answered} query=${query} empty=${query.data && !entries.length && html`<${Nothing} />`}>
      <${Entries} of=${entries} />
      ${query.data?.looked_to && html`<p class="says">What failed before ${query.data.looked_to} is too much to tell:
        ask for a shorter time.</p>`}
      <div class="buttons">${token && html`<button onClick=${() => setToken("")}>The latest</button>`}
        ${next && html`<button onClick=${() => setToken(next)}>Earlier</button>`}</div><//>
    <${Copied} text=${at === null ? `cronring timeline --since -${hours}h` : `cronring timeline --since ${written(at - hours * HOUR_MS)} --until ${written(at)}`} />`;
}

const Nothing = () => html`<${Empty} command="cronring timeline --since -7d">Nothing happened in this time.<//>`;

// The latest of a day, on the overview.
export function Lately() {
  const query = useTimeline({ within: 24 * HOUR_MS });
  const entries = query.data?.entries ?? [];
  return html`<${Panel} id="lately" title="What happened" says="Failures, members, and what people did, of a day."
      more=${html`<a href="/timeline">All</a>`}>
    <${Answered} query=${query} empty=${query.data && !entries.length && html`<${Nothing} />`}>
      <${Entries} of=${entries.slice(0, LATEST)} />
      <p><${CopyMarkdown} entries=${entries} /></p><//><//>`;
}
