// The log of starts that every no-op writes: as starts.py, and read by the same reader.
import { openSync, writeSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";

const CALLS = 50_000;

export function starts(path) {
  const file = openSync(path, "a");
  const record = Buffer.alloc(12);
  return (number) => {
    record.writeDoubleLE((performance.timeOrigin + performance.now()) / 1000, 0);
    record.writeUInt32LE(number, 8);
    writeSync(file, record);
  };
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const note = starts(argv[2]);
  const begun = performance.now();
  for (let number = 0; number < CALLS; number++) note(number);
  console.log((((performance.now() - begun) / CALLS) * 1000).toFixed(2));
}
