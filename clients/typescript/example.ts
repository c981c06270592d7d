// Makes a job, asks what a pause would do, runs it once, and waits for the run's end:
// `node out/example.js http://127.0.0.1:7480`.

import { Cronring } from "./client.js";
declare const process: { argv: string[]; env: Record<string, string | undefined> };

const client = new Cronring({ urls: process.argv.slice(2), token: process.env.CRONRING_TOKEN });
const job = await client.call("CreateJob", {
  body: { module: "billing", verb: "close_day", name: "typed", spec: { schedule: "every 2h" } },
});
for await (const { key, problem } of client.stream("ControlJobs", {
  body: { filter: { keys: [job.key] }, action: "ACTION_PAUSE", dry_run: true },
})) {
  if (key) console.log(`${key}: ${problem || "could be paused"}`);
}
const run = await client.call("TriggerJob", { path: { key: job.key }, body: { note: "by TypeScript" } });
for await (const event of client.stream("WatchExecutions", { query: { job: job.key } })) {
  if (event.kind === "KIND_WATCHING") break; // whatever ends from here on could be heard
}
let execution = run.execution_id;
while (execution === "0") {
  const { executions } = await client.call("ListExecutions", { query: { "filter.job": job.key, page_size: 1 } });
  execution = executions[0]?.id ?? "0";
}
for await (const chunk of client.stream("FollowExecution", { path: { id: execution } })) {
  if (chunk.execution) console.log(`${job.key}: ${chunk.execution.outcome}`);
}
