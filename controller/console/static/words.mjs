// States have a hue, a shape and a word, so that no one of them has to be seen to know which it is.
const STATES = {
  completed: ["●", "ok"],
  running: ["◐", "running"],
  scheduled: ["○", "waiting"],
  pending: ["○", "waiting"],
  waiting: ["○", "waiting"],
  late: ["◷", "late"],
  overdue: ["◷", "late"],
  failed: ["✕", "failed"],
  timed_out: ["✕", "failed"],
  lost: ["✕", "failed"],
  out_of_memory: ["✕", "failed"],
  out_of_cpu: ["✕", "failed"],
  cancelled: ["⊘", "skipped"],
  skipped: ["∅", "skipped"],
  paused: ["‖", "paused"],
  orphaned: ["∅", "skipped"],
  alive: ["●", "ok"],
  suspect: ["◷", "late"],
  draining: ["◷", "late"],
  dead: ["✕", "failed"],
  left: ["∅", "skipped"],
  silent: ["✕", "failed"],
  active: ["●", "ok"],
  inactive: ["○", "waiting"],
  full: ["◷", "late"],
  free: ["●", "ok"],
  unaccounted: ["✕", "failed"],
  executed: ["●", "ok"],
  ok: ["●", "ok"],
  warning: ["◷", "late"],
  problem: ["✕", "failed"],
  unchecked: ["○", "waiting"],
};

export const shapeOf = (state) => (STATES[state] ?? ["○", "waiting"])[0];
export const hueOf = (state) => (STATES[state] ?? ["○", "waiting"])[1];
export const wordOf = (state) => state.replaceAll("_", " ");

// Of what an error said, as much as stands in a sentence.
export const firstLine = (message) => message.split("\n")[0].slice(0, 160);

export const number = (value) => Number(value).toLocaleString("en");

// Of one thing, or of several: "1 job", "4 jobs".
export const count = (value, word, plural = `${word}s`) => `${number(value)} ${Number(value) === 1 ? word : plural}`;

// Of a word of a shell: quoted where a shell would read it otherwise.
export const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

// Options that many commands have, where they say something.
export const noted = ({ note }) => (note ? ` --note ${quoted(note)}` : "");
export const inNamespace = ({ namespace }) => (namespace === "default" ? "" : ` --namespace ${quoted(namespace)}`);

export const bytes = (size) => {
  const units = ["B", "KiB", "MiB", "GiB"];
  let value = Number(size),
    unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
};
