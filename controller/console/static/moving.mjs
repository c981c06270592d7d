// When the controller that this page is of is gone, the page goes on at another one: the same address, the same session.
//
// A cookie is of a host, whatever the port. So it goes to controllers of the same host alone: elsewhere one would have
// to log in. Behind a name that leads to all controllers (--public-url) the page stays, and whoever is left answers
// (docs/decisions/0115).
import { onSignal } from "./live.mjs";

const ASK_MS = 1_000;
const PATIENCE_MS = 2_000; // for a controller that stands still, and keeps its connections open
const SILENT = 2; // times in a row

let addresses = []; // HOST:PORT of controllers, as the latest answer named them
let timer = 0;
let silent = 0;

// `members`: of the cluster, as the API names them.
export function know(members) {
  if (members) addresses = members.filter((each) => each.status !== "left").map((each) => each.http_address);
}

const hostOf = (address) => address.slice(0, address.lastIndexOf(":"));

// Answers of other origins can't be read, but whether there is one can be told.
async function answers(origin) {
  try {
    await fetch(`${origin}/healthz`, { mode: "no-cors", cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    return true;
  } catch {
    return false;
  }
}

async function look() {
  timer = 0;
  if (await answers(location.origin)) {
    silent = 0;
  } else {
    silent += 1;
    // Somebody who fills in a form goes on with it first.
    if (silent >= SILENT && addresses.includes(location.host) && !document.querySelector("dialog[open], form.editor")) await move();
  }
  again();
}

async function move() {
  const others = addresses.filter((each) => each !== location.host && hostOf(each) === location.hostname);
  for (const each of others) {
    const origin = `${location.protocol}//${each}`;
    if (await answers(origin)) {
      location.replace(origin + location.pathname + location.search + location.hash);
      return;
    }
  }
}

let lost = false;

function again() {
  if (lost && !timer) timer = setTimeout(look, ASK_MS);
}

export function begin() {
  onSignal(({ name }) => {
    lost = name === "lost";
    if (!lost) silent = 0;
    again();
  });
}
