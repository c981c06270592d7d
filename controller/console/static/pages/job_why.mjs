// "Why did it not run at 02:30?": an instant on the viewer's clock, or a click on the books.
import { html } from "../base.mjs";
import { keyPath } from "../api.mjs";
import { viewerZone } from "../clock.mjs";
import { useQuery } from "../queries.mjs";
import { Answered, Copied, Panel, RunLink, State } from "../parts.mjs";
import { quoted } from "../words.mjs";
import { useAnswerInSight } from "./job_timeline.mjs";

export function Why({ name, mine, at, ask }) {
  const query = useQuery(`${keyPath(name)}/why`, { at }, { on: mine, every: 10_000, least: 2_000 });
  useAnswerInSight(at);
  const said = query.data;
  return html`<${Panel} id="why" title="Why?" says="Of the latest tick, or of the time that you name.">
    <form class="tools" onSubmit=${(event) => {
      event.preventDefault();
      const text = event.target.elements.at.value;
      ask(text ? new Date(text).toISOString() : "");
    }}>
      <label>At (${viewerZone}) <input type="datetime-local" name="at" step="1"
        value=${at ? localTime(Date.parse(at)) : ""} /></label>
      <button>Ask</button>${at && html`<button type="button" onClick=${() => ask("")}>Latest</button>`}</form>
    <${Answered} query=${query}>${
      said &&
      html`<p><${State} is=${said.attempts.at(-1)?.outcome || said.verdict} /></p>
      <ul class="sentences">${said.sentences.map((each) => html`<li>${each}</li>`)}</ul>
      ${said.attempts.map((run) => html`<p>Attempt ${run.attempt}: <${RunLink} of=${run.id}><${State}
        is=${run.outcome || "running"} /><//></p>`)}
      <div class="buttons">
        ${said.previous_tick && html`<button class="small"
          onClick=${() => ask(said.previous_tick)}>The tick before</button>`}
        ${said.following_tick && html`<button class="small"
          onClick=${() => ask(said.following_tick)}>The tick after</button>`}</div>
      <${Copied} text=${`cronring why ${quoted(name)}${at ? ` --at ${at}` : ""}`} />`
    }<//><//>`;
}

// As an input of that type has it, on the viewer's clock.
export const localTime = (at) => new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
