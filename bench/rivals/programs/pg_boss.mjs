// pg-boss: `prepare` makes its schema and queue, `work` is one worker process, `enqueue` adds one-shots.
//
// Settings, from its documentation (https://github.com/timgit/pg-boss/tree/12.37.0/docs/api):
// - workers.md: `batchSize` 500 and `burstWhenBatchFull`: while batches come full, the next is fetched at once. A handler
//   that is given a batch ends all of it by returning.
// - workers.md, "Low-latency dispatch with LISTEN/NOTIFY": `useListenNotify` and `notify: true`, both opt-in.
// - workers.md, `localConcurrency`: 1, the default; there are several processes.
// - constructor.md: ten connections, the default. jobs.md: `insert` for many jobs in one request.
// Its cron is not measured: schedules are looked at every 30 s (scheduling.md).
import { argv, env } from "node:process";

import { PgBoss } from "pg-boss";

import { starts } from "./starts.mjs";

const numbers = [...Array(Number(env.JOBS)).keys()];
const note = starts(env.STARTS);
const options = { batchSize: 500, burstWhenBatchFull: true };
const boss = new PgBoss({ connectionString: env.DATABASE_URL, useListenNotify: true });
boss.on("error", console.error);
const commands = {
  prepare: async () => {
    await boss.start();
    await boss.createQueue("no_op", { notify: true });
    await boss.stop({ graceful: false });
  },
  work: async () => {
    await boss.start();
    await boss.work("no_op", options, async (jobs) => jobs.forEach((job) => note(job.data.number)));
  },
  enqueue: async () => {
    await boss.start();
    await boss.insert("no_op", numbers.map((number) => ({ data: { number } })));
    console.log(Date.now() / 1000);
    await boss.stop({ graceful: false });
  },
};
await commands[argv[2]]();
