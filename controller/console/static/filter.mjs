// The filter's words, as the command line and the API have them (schema/filters.py): `status:paused module:billing`.
const JOB_LISTS = { namespace: "filter.namespace", module: "filter.module", verb: "filter.verb" };
const RUN_LISTS = {
  job: "filter.job",
  namespace: "filter.namespace",
  module: "filter.module",
  verb: "filter.verb",
  runner: "filter.runner",
  since: "filter.since",
  until: "filter.until",
};
export const JOB_WORDS = { single: JOB_LISTS, many: { status: "filter.statuses", outcome: "filter.outcomes" } };
export const RUN_WORDS = { single: RUN_LISTS, many: { outcome: "filter.outcomes" } };

const UNITS = { s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 };

// {query, problem}. `problem`: what is wrong with the text, in a sentence; "" where nothing is.
export function filterQuery(text, words) {
  const query = {};
  for (const word of text.match(/(?:[^\s"]|"[^"]*")+/g) ?? []) {
    const [, key, value] = word.replaceAll('"', "").match(/^([a-z]+):(.+)$/s) ?? [];
    if (key === "label" && value?.includes("=")) {
      const [name, ...rest] = value.split("=");
      query[`filter.labels.${name}`] = rest.join("=");
    } else if (key in words.single) query[words.single[key]] = /^(since|until)$/.test(key) ? instant(value) : value;
    else if (key in words.many) query[words.many[key]] = [...(query[words.many[key]] ?? []), value];
    else {
      const known = [...Object.keys(words.single), ...Object.keys(words.many), "label"].map((each) => `${each}:`);
      return { query: {}, problem: `${word}: is no term; there are ${known.join(" ")}` };
    }
  }
  return { query, problem: "" };
}

function instant(value) {
  const [, number, unit] = value.match(/^-?(\d+)([smhdw])$/) ?? [];
  return number ? new Date(Date.now() - Number(number) * UNITS[unit]).toISOString() : value;
}
