// graphile-worker: `prepare` makes its schema, `work` is one worker process, `enqueue` adds one-shots.
//
// Settings, from its documentation (https://worker.graphile.org/docs/performance, /docs/cron, /docs/config):
// - "Performance": the configuration of its own figures: concurrentJobs 24, maxPoolSize 25, localQueue of 500, and both
//   batch delays 0. Batching is what it recommends where throughput is high, even now and then.
// - perfTest/graphile.config.js, which it measures itself with: `refetchDelay: { durationMs: 10 }`.
// - "Recurring tasks (crontab)": a line and an `id` for each job. It knows minutes only, and adds each line's job by a
//   statement for all that are due.
// - "Configuration": pollInterval 2000, the default (2 s); jobs that are due now come by NOTIFY.
import { argv, env } from "node:process";

import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";

import { starts } from "./starts.mjs";

const jobs = Number(env.JOBS);
const numbers = [...Array(jobs).keys()];
const note = starts(env.STARTS);
const preset = {
  worker: {
    connectionString: env.DATABASE_URL,
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    // A line of log for each job would be what is measured.
    logger: new Logger(() => (level, message) => {
      if (level === "error" || level === "warning") console.error(level, message);
    }),
  },
};
const commands = {
  prepare: () => runMigrations({ preset }),
  work: async () => {
    const line = (number) => `${env.MINUTES} * * * * no_op ?id=job_${number} {number:${number}}`;
    const crontab = env.MINUTES ? numbers.map(line).join("\n") : "";
    const taskList = { no_op: async (payload) => note(payload.number) };
    const runner = await run({ preset, taskList, crontab });
    await runner.promise;
  },
  enqueue: async () => {
    const utils = await makeWorkerUtils({ preset });
    await utils.addJobs(numbers.map((number) => ({ identifier: "no_op", payload: { number } })));
    console.log(Date.now() / 1000);
    await utils.release();
  },
};
await commands[argv[2]]();
