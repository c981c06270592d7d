// A job as somebody edits it: texts of its fields, what of them is changed, and what others changed meanwhile.

// The texts of a job's fields, by the paths of UpdateJob.
export function textsOf(job, policies) {
  const found = {
    schedule: job.schedule,
    payload: job.payload ?? "",
    labels: Object.entries(job.labels)
      .map(([name, value]) => `${name}=${value}`)
      .sort()
      .join("\n"),
    timeout_ms: String(job.timeout_ms),
  };
  for (const { name } of policies) {
    const value = name === "jitter" && job.jitter_is_default ? "" : job.policy?.[name];
    found[`policy.${name}`] = value === undefined || value === null ? "" : [value].flat().join(", ");
  }
  return found;
}

export const changedIn = (texts, base) => Object.keys(texts).filter((path) => texts[path] !== base[path]);

// The body of UpdateJob and PreviewJob. What is emptied is named by the mask, and absent.
export function bodyOf(texts, paths, policies) {
  const spec = {};
  for (const path of paths) {
    const text = texts[path].trim();
    if (path === "labels") spec.labels = labelsOf(text);
    else if (path.startsWith("policy.")) {
      if (text !== "") (spec.policy ??= {})[path.slice(7)] = valueOf(text, policies, path.slice(7));
    } else if (text !== "") spec[path] = text;
  }
  return { spec, update_mask: paths.join(",") };
}

function valueOf(text, policies, name) {
  const { kind } = policies.find((each) => each.name === name);
  if (kind === "names") return text.split(/[\s,]+/);
  return kind === "count" && /^-?\d{1,9}$/.test(text) ? Number(text) : text;
}

const labelsOf = (text) =>
  Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line.trim())
      .map((line) => [line.split("=")[0].trim(), line.split("=").slice(1).join("=").trim()]),
  );

// Somebody else's change under an edit: {theirs: [{path, old, new}], both: [path]}. `both`: the editor changed it, too.
export function meanwhile(base, theirs, texts) {
  const paths = changedIn(theirs, base);
  return {
    theirs: paths.map((path) => ({ path, old: base[path], new: theirs[path] })),
    both: paths.filter((path) => texts[path] !== base[path] && texts[path] !== theirs[path]),
  };
}

// The edit on top of what others have made of the job: what was not edited is theirs.
export const onTop = (base, theirs, texts) =>
  Object.fromEntries(Object.keys(theirs).map((path) => [path, texts[path] === base[path] ? theirs[path] : texts[path]]));

