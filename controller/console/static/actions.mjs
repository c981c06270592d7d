// What can be done to jobs and executions: each says what it does before it is done.
import { keyPath, post, remove } from "./api.mjs";
import { viewerZone } from "./clock.mjs";
import { noted, quoted } from "./words.mjs";
import { ask } from "./doing.mjs";
import { go } from "./router.mjs";

const WHY = {
  name: "note",
  label: "Why? Others will ask later.",
  optional: true,
  hint: "the supplier is away until 14:00",
};

// A pause may end by itself.
export const UNTIL = {
  name: "until",
  label: `Until (${viewerZone}). Empty: until somebody resumes it.`,
  kind: "datetime-local",
  optional: true,
};
export const untilOf = ({ until }) => (until ? { until: new Date(until).toISOString() } : {});
export const untilOption = (values) => (values.until ? ` --until ${untilOf(values).until}` : "");

export const pauseJob = (job) =>
  ask({
    title: `Pause ${job.key}`,
    verb: "Pause",
    says: "Its ticks are skipped from now on, and recorded as paused. What runs now goes on to its end.",
    undo: "resume it; the next tick after that runs.",
    fields: [UNTIL, WHY],
    command: (values) => `cronring jobs pause ${quoted(job.key)}${untilOption(values)}${noted(values)}`,
    act: (values) => post(`${keyPath(job.key)}/pause`, { note: values.note, ...untilOf(values) }),
  });

// Whose pause stands against it, for who acts on it all the same.
export const pausedBy = (job) =>
  job.paused ? `It is paused by ${job.paused.by || "nobody named"}${job.paused.note && `: ${job.paused.note}`}. ` : "";

export const resumeJob = (job) =>
  ask({
    title: `Resume ${job.key}`,
    verb: "Resume",
    says: `${pausedBy(job)}Its next tick from now on runs, and what waits beside its schedule begins at once. Ticks since the pause stay skipped: a backfill runs them.`,
    undo: "pause it again.",
    fields: [WHY],
    command: (values) => `cronring jobs resume ${quoted(job.key)}${noted(values)}`,
    act: (values) => post(`${keyPath(job.key)}/resume`, { note: values.note }),
  });

export const cancelJob = (job) =>
  ask({
    title: `Cancel ${job.key}`,
    verb: "Cancel it",
    says: "It has no tick and no run by hand until it is restored. What waits is forgotten, and what runs is told to stop.",
    undo: "restore it; what waited stays forgotten.",
    fields: [WHY],
    command: (values) => `cronring jobs cancel ${quoted(job.key)}${noted(values)}`,
    act: (values) => post(`${keyPath(job.key)}/cancel`, { note: values.note }),
  });

export const restoreJob = (job) =>
  ask({
    title: `Restore ${job.key}`,
    verb: "Restore it",
    says: "Its schedule begins anew. Nothing of what passed meanwhile was due.",
    undo: "cancel it again.",
    fields: [WHY],
    command: (values) => `cronring jobs restore ${quoted(job.key)}${noted(values)}`,
    act: (values) => post(`${keyPath(job.key)}/restore`, { note: values.note }),
  });

export const skipNext = (job) =>
  ask({
    title: `Skip the next tick of ${job.key}`,
    verb: "Skip it",
    says: "The next tick doesn't run, and is recorded as skipped by you. The ones after it run.",
    undo: "a change of the schedule, or a run by hand at that time.",
    fields: [WHY],
    command: (values) => `cronring jobs skip-next ${quoted(job.key)}${noted(values)}`,
    act: (values) => post(`${keyPath(job.key)}/skip-next`, { note: values.note }),
  });

export const deleteJob = (job) =>
  ask({
    title: `Delete ${job.key}`,
    verb: "Delete",
    typed: job.key,
    says: "The job is removed with its schedule. What it did stays in the books for as long as history is kept.",
    fields: [WHY],
    command: (values) => `cronring jobs delete ${quoted(job.key)}${noted(values)}`,
    act: async (values) => {
      await remove(keyPath(job.key), { note: values.note });
      go("/jobs");
    },
  });

export const cancelRun = (run) =>
  ask({
    title: `Cancel execution ${run.id} of ${run.job}`,
    verb: "Cancel it",
    says: "Its verb is asked to stop, and is killed if it doesn't. It ends as cancelled, and isn't retried by itself.",
    undo: "retry it.",
    fields: [WHY],
    command: (values) => `cronring executions cancel ${run.id}${noted(values)}`,
    act: (values) => post(`/executions/${run.id}/cancel`, { note: values.note }),
  });

export const retryRun = (run) =>
  ask({
    title: `Retry execution ${run.id} of ${run.job}`,
    verb: "Retry",
    says: "A further attempt at the same tick, with the payload that this one ran with, if it had one that is known.",
    undo: "cancel the new attempt while it runs.",
    fields: [WHY],
    command: (values) => `cronring executions retry ${run.id}${noted(values)}`,
    act: async (values) => {
      const begun = await post(`/executions/${run.id}/retry`, { note: values.note });
      if (Number(begun.execution_id)) go(`/executions/${begun.execution_id}`);
      else return `It waits until it may run, with ${begun.payload_of === "run" ? "the payload of this one" : "the payload of its job"}.`;
    },
  });
