// A job that somebody makes: of a verb or of a queue, by the form that also changes jobs.
import { html, useMemo, useState } from "../base.mjs";
import { post } from "../api.mjs";
import { inPath } from "../listing.mjs";
import { Answered, Choice, Copied, Failed, jobPath } from "../parts.mjs";
import { PayloadForm } from "../payload_form.mjs";
import { usePreview } from "../preview.mjs";
import { useQuery } from "../queries.mjs";
import { go } from "../router.mjs";
import { noted, quoted } from "../words.mjs";
import { bodyOf } from "./job_draft.mjs";
import { faultsOf, Fields, Line, Preview, Why } from "./job_form.mjs";

const MODULES = 1_000;
const QUEUE = "a queue";
const OF_QUEUE = { verb: "the queue", request: "Any", types: [], request_optional: true };
const IDLE = "Say of what it is, its name, and when it runs: what that comes to is said here.";

export function NewJob({ session }) {
  const policies = useQuery("/policies");
  const deployments = useQuery("/deployments", { active_only: true, page_size: MODULES });
  const given = deployments.data && policies;
  const modules = (deployments.data?.deployments ?? []).filter((each) => session.may("operate", each.namespace));
  return html`<p><a href="/jobs">All jobs</a></p><h1>New job</h1>
    ${
      session.may("operate")
        ? html`<${Answered} query=${deployments.data ? policies : deployments}>${
            given?.data && html`<${Form} policies=${given.data.policies} modules=${modules} home=${session.home("operate")} />`
          }<//>`
        : html`<p class="problem">Your role makes no jobs: it takes operate.</p>`
    }`;
}

function Form({ policies, modules, home }) {
  const [of, setOf] = useState(modules[0]?.key ?? QUEUE); // a deployment's key
  const [verbName, setVerb] = useState("");
  const [texts, setTexts] = useState({ name: "", template: "", namespace: home, "queue.queue": "", "queue.workspace": "" });
  const [now, setNow] = useState(false);
  const [note, setNote] = useState("");
  const [saving, setSaving] = useState(false);
  const [refused, setRefused] = useState(null);
  const ofQueue = of === QUEUE;
  const module = modules.find((each) => each.key === of);
  const namespace = module?.namespace ?? texts.namespace;
  const version = useQuery(module ? `/deployments${inPath(of)}` : null);
  const verbs = version.data?.verbs ?? [];
  const verb = verbs.includes(verbName) ? verbName : (verbs[0] ?? "");
  const described = useQuery(module && verb ? `/verbs${inPath(namespace, module.module, verb)}` : null);
  const templates = useQuery("/templates", { namespace, page_size: MODULES }).data?.templates ?? [];
  const takes = ofQueue ? OF_QUEUE : described.data;
  const set = (path) => (text) => setTexts((before) => ({ ...before, [path]: text }));
  const text = (path) => texts[path] ?? "";
  const target = ofQueue
    ? { namespace, queue: { queue: text("queue.queue").trim(), workspace: text("queue.workspace").trim() } }
    : { namespace, module: module?.module, verb };
  const paths = Object.keys(texts).filter((path) => text(path).trim() && SPEC.test(path));
  const { spec } = bodyOf(texts, paths, policies);
  const body = { ...target, spec, name: text("name").trim(), template: text("template"), run_now: now };
  const ready = (ofQueue ? body.queue.queue : verb && body.name) && (text("schedule") || text("template") || text("policy.after"));
  const asked = useMemo(() => (ready ? { create: body } : null), [JSON.stringify(body), ready]);
  const { said, problem, busy } = usePreview("/jobs:preview", asked, of);
  const given = { texts: { ...EMPTY, ...texts }, base: { ...EMPTY, ...texts }, set, faults: faultsOf(refused, problem) };
  const save = async (event) => {
    event.preventDefault();
    setSaving(true);
    setRefused(null);
    try {
      go(jobPath((await post("/jobs", { ...body, note })).key));
      return;
    } catch (found) {
      if (found.violations === undefined) throw found;
      setRefused(found);
    }
    setSaving(false);
  };
  return html`<form class="editor" onSubmit=${save}>
    <div>
      <div class="field"><${Choice} label="Of" value=${of} set=${setOf} of=${[
        ...modules.map((each) => [each.key, `module ${each.namespace === "default" ? "" : `${each.namespace}/`}${each.module}`]),
        [QUEUE, "a queue: each tick is a message, for its consumers"],
      ]} /></div>
      ${
        ofQueue
          ? html`<${Line} path="queue.queue" label="Queue" hint="reports" given=${given} />
            <${Line} path="queue.workspace" label="Workspace: one consumer at a time for each; empty: of none" given=${given} />
            <${Line} path="namespace" label="Namespace" given=${given} />`
          : html`<div class="field"><${Choice} label="Verb" value=${verb} set=${setVerb} of=${verbs} /></div>
            ${described.data?.doc && html`<p class="says">${described.data.doc}</p>`}`
      }
      <${Line} path="name" label="Name, which tells it from other jobs of the same verb or queue" hint="berlin" given=${given} />
      ${
        templates.length > 0 &&
        html`<div class="field"><${Choice} label="Template" value=${text("template")} set=${set("template")}
          of=${[["", "none"], ...templates.map((each) => each.name)]} /></div>`
      }
      <${Fields} given=${given} policies=${policies} />
      ${takes && html`<${PayloadForm} key=${of + verb} verb=${takes} value=${text("payload")} set=${set("payload")}
        problem=${refused ?? problem} field="spec.payload" />`}
      <label class="check"><input type="checkbox" checked=${now} onChange=${(event) => setNow(event.target.checked)} />
        Run it once at once, too</label>
    </div>
    <div class="comes">
      ${ready && said && !problem && html`<p class="key">${said.key}</p>`}
      <${Preview} said=${said} problem=${problem} busy=${busy} idle=${!ready && IDLE} />
      <${Why} note=${note} set=${setNote} />
      ${refused && html`<${Failed} problem=${refused} said="It is not made." />`}
      <div class="buttons"><button class="act" disabled=${saving || !ready || problem}>${saving ? "…" : "Make it"}</button></div>
      <p class="says">To undo it: delete it on its page. The same on the command line:</p>
      <${Copied} text=${commandOf(body, texts, policies, note)} />
    </div></form>`;
}

const SPEC = /^(schedule|labels|payload|timeout_ms|policy\..*)$/;
const EMPTY = { schedule: "", labels: "", payload: "", timeout_ms: "" };

function commandOf(body, texts, policies, note) {
  const within = body.namespace === "default" ? "" : `${body.namespace}/`;
  const of = body.queue
    ? `--queue ${quoted(within + (body.queue.queue || "QUEUE"))}${option("workspace", body.queue.workspace)}`
    : quoted(`${within}${body.module ?? "MODULE"}.${body.verb || "VERB"}`);
  return [
    `cronring jobs create ${of}`,
    option("name", body.name),
    option("template", body.template),
    scheduled(body.spec.schedule ?? ""),
    ...policies.map(({ name }) => option(name.replaceAll("_", "-"), texts[`policy.${name}`])),
    body.spec.timeout_ms ? option("timeout", `${body.spec.timeout_ms}ms`) : "",
    ...Object.entries(body.spec.labels ?? {}).map(([name, value]) => option("label", `${name}=${value}`)),
    option("payload", body.spec.payload),
    body.run_now ? " --now" : "",
    noted({ note }),
  ].join("");
}

const option = (name, value) => (value ? ` --${name} ${quoted(value)}` : "");

function scheduled(text) {
  if (text === "manual") return " --manual";
  const [, kind, rest] = text.match(/^(every|at) +(.*)$/) ?? [];
  return option(kind ?? "cron", rest ?? text);
}
