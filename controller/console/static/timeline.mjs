// What happened, as the API's timeline tells it: a list, marks on the slider, and text to paste.
import { html, useMemo, useState } from "./base.mjs";
import { visible } from "./ansi.mjs";
import { clockTime, useNow, utc } from "./clock.mjs";
import { useQuery } from "./queries.mjs";
import { JobLink, RunLink, State } from "./parts.mjs";
import { wordOf } from "./words.mjs";

const HOUR_MS = 3_600_000;
const STATES = {
  lost: "dead",
  left: "left",
  joined: "alive",
  back: "alive",
  no_lease: "failed",
  lease_again: "completed",
  failing: "failed",
  recovered: "completed",
  pause: "paused",
};
const BAD = new Set(["controller_lost", "runner_lost", "no_lease", "failing"]);

const stateOf = (kind) => STATES[kind] ?? STATES[kind.match(/^(?:controller|runner)_(.*)$/)?.[1]] ?? "pending";

const changes = (kind, data) =>
  kind === "cluster_changed" ||
  kind === "job_removed" ||
  (kind === "job_changed" && (data.job.paused || data.job.failures > 0)) ||
  (kind === "execution_ended" && data.execution.outcome !== "completed");

// The latest entries since so long ago, or around an instant. An end that is to come is the last minute: one that moved
// with each answer would be asked for with each.
export function useTimeline({ within, since, until, size = 100, token = "" }) {
  const minute = Math.floor(useNow() / 60_000) * 60_000;
  const begins = since ?? Math.floor((minute - within) / HOUR_MS) * HOUR_MS;
  const iso = (at) => new Date(at).toISOString();
  return useQuery(
    "/timeline",
    { since: iso(begins), until: until && iso(until > minute ? minute : until), page_size: size, page_token: token },
    { on: until ? undefined : changes, every: 30_000, least: 5_000 },
  );
}

// The first place where a sentence names its job leads there.
function Sentence({ of: { text, job } }) {
  const from = job ? text.indexOf(job) : -1;
  if (from < 0) return text;
  return html`${text.slice(0, from)}<${JobLink} of=${job} />${text.slice(from + job.length)}`;
}

export const Entries = ({ of }) => html`<ol class="plain timeline">${of.map(
  (each) => html`<li key=${each.at + each.kind + each.subject + each.execution_id}>
    <a href=${`/cluster?at=${each.at.replace(/\.\d+Z$/, "Z")}`} title=${`${utc(Date.parse(each.at))}: the cluster at that time`}><time
      datetime=${each.at}>${clockTime(Date.parse(each.at))}</time></a>
    <span><${State} is=${stateOf(each.kind)} text=${wordOf(each.kind)} /> <${Sentence} of=${each} />
      ${each.error_message && html` <span class="says">${each.error_message}</span>`}
      ${Number(each.execution_id) > 0 && html` <${RunLink} of=${each.execution_id} />`}</span></li>`,
)}</ol>`;

const escaped = (text) => visible(text).replace(/[\\`*_[\]<>#|~]/g, "\\$&").replace(/\s+/g, " ");

// The earliest first, as a report is read.
export const markdown = (entries) =>
  [...entries]
    .reverse()
    .map((each) => `- ${utc(Date.parse(each.at))} **${wordOf(each.kind)}** ${escaped(each.text)}`)
    .join("\n");

// The clipboard fails on plain HTTP: then the text is shown, to be copied by hand.
export function CopyMarkdown({ entries }) {
  const [said, say] = useState("");
  const [shown, show] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(markdown(entries));
      say("copied");
    } catch {
      show(markdown(entries));
      say("select it, and press Ctrl-C");
    }
  };
  return html`<button class="small" onClick=${copy} disabled=${!entries.length}>Copy as Markdown</button>
    <span role="status">${said}</span>${shown && html`<textarea readonly rows="8" class="wide"
      aria-label="As Markdown">${shown}</textarea>`}`;
}

// Where on the slider something went wrong. The list beside it says what.
export function TimelineMarks({ from, until }) {
  const query = useTimeline({ within: until - from, size: 500 });
  const marks = useMemo(
    () =>
      (query.data?.entries ?? [])
        .filter((each) => BAD.has(each.kind))
        .map((each) => ({ ...each, x: ((Date.parse(each.at) - from) / (until - from)) * 1_000 }))
        .filter((each) => each.x >= 0),
    [query.data, from, until],
  );
  return html`<svg class="marks" viewBox="0 0 1000 12" preserveAspectRatio="none" aria-hidden="true">
    ${marks.map((each) => html`<rect key=${each.at + each.subject} x=${each.x} y="0" width="3"
      height="12"><title>${each.text}</title></rect>`)}</svg>`;
}
