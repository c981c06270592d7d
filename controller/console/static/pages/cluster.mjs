// Who holds what, and what if it dies?
import { html } from "../base.mjs";
import { duration } from "../clock.mjs";
import { Answered, Copied, Empty, Facts, JobLink, Panel, Rows, State, When } from "../parts.mjs";
import { Slider, useAt } from "../moment.mjs";
import { useOwners } from "../owners.mjs";
import { Ring } from "../ring.mjs";
import { number } from "../words.mjs";
import { Past } from "./past.mjs";

const DUE = 12;

const MEMBERS = [
  { name: "Controller", of: (each) => html`<${State} is=${each.status} text=${each.id} />` },
  { name: "State", of: (each) => each.status },
  { name: "Tries", number: true, of: (each) => `${(each.share * 100).toFixed(1)} %` },
  { name: "Lease until", of: (each) => html`<${When} at=${each.lease_expires_at} />` },
  { name: "Began", of: (each) => html`<${When} at=${each.started_at} />` },
  { name: "HTTP", of: (each) => each.http_address },
  { name: "gRPC", of: (each) => each.grpc_address },
  { name: "Version", of: (each) => each.version },
];

const RUNNERS = [
  { name: "Runner", of: (each) => html`<${State} is=${each.alive ? "alive" : "silent"} text=${each.id} />` },
  { name: "Machine", of: (each) => each.hostname },
  { name: "Hosts", of: (each) => each.deployments.join(" ") },
  {
    name: "Places",
    of: (each) => (each.sync_places ? `${number(each.sync_places)} sync · ${number(each.async_places)} async` : "–"),
  },
  { name: "Last heard", of: (each) => html`<${When} at=${each.last_seen_at} />` },
  { name: "Began", of: (each) => html`<${When} at=${each.started_at} />` },
];

export function Cluster({ health }) {
  const { at, iso } = useAt();
  return html`<h1>Cluster</h1><${Slider} />
    ${at === null ? html`<${Present} health=${health} />` : html`<${Past} at=${at} iso=${iso} />`}`;
}

function Present({ health }) {
  const said = health.cluster.data;
  const owners = useOwners();
  const due = (health.due.data?.due ?? []).slice(0, DUE);
  return html`<${Answered} query=${health.cluster}>${
    said &&
    html`
    <${Panel} id="ring" title="Ring"
      says="When a controller dies, its backups claim its ticks half a second late; gossip takes it
        off the ring within five seconds. Point at a job to see whose it is."><${Ring} members=${said.members}
        owners=${owners.found} of=${owners.job} />
      ${due.length > 0 && html`<ul class="plain across" aria-label="What runs next">${due.map(
        (each) => html`<li key=${each.job} ...${owners.pointing(each.job)}><${JobLink} of=${each.job} /></li>`,
      )}</ul>`}<//>
    <${Panel} id="controllers" title="Controllers"><${Rows} caption="Controllers" columns=${MEMBERS}
      rows=${said.members}
      keyOf=${(each) => each.id} /><//>
    <${Panel} id="runners" title="Runners"><${Answered} query=${health.cluster} empty=${
      !said.runners.length &&
      html`<${Empty}
        command="cronring runner yours.py">No runner is connected, so nothing can run.<//>`
    }>
      <${Rows} caption="Runners" columns=${RUNNERS} rows=${said.runners} keyOf=${(each) => each.id} /><//><//>
    <${Panel} id="clock" title="Clock and answers"><${Facts} of=${[
      ["PostgreSQL's time", html`<${When} at=${said.database_time} clock />`],
      ["This controller's clock is off by", duration(said.clock_offset_ms)],
      ["Answered by", said.answered_by],
      ["Ring", html`<code>${said.ring_digest}</code>`],
    ]} />
      <${Copied} text="cronring doctor" /><//>`
  }<//>`;
}
