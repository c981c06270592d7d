// The keyboard: what each key does, and where the focus goes.
import { html, useEffect, useRef, useState } from "./base.mjs";
import { go } from "./router.mjs";
import { openPalette } from "./palette.mjs";

const GO_MS = 1_500; // after g, how long the second letter is waited for
let show = null;
let going = 0;

export const LETTERS = {
  o: "/",
  j: "/jobs",
  r: "/executions",
  u: "/upcoming",
  c: "/cluster",
  t: "/timeline",
  d: "/deployments",
  l: "/limits",
  a: "/audit",
  w: "/wall",
};

const rows = () => [...document.querySelectorAll("[data-row]")];

function move(step) {
  const all = rows();
  const now = all.indexOf(document.activeElement.closest?.("[data-row]"));
  all[Math.max(0, Math.min(all.length - 1, now + step))]?.focus();
}

const press = (key) => document.querySelector(`[data-key="${key}"]`)?.click();

const KEYS = {
  "/": () => {
    const field = document.querySelector("#search");
    if (field) field.focus();
    else openPalette();
  },
  j: () => move(1),
  k: () => move(-1),
  t: () => press("t"),
  p: () => press("p"),
  "?": () => show?.(true),
  x: () => document.activeElement.closest?.("[data-row]")?.querySelector("input[type=checkbox]")?.click(),
  g: () => {
    going = Date.now();
  },
};

export function begin() {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return openPalette();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return undefined;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.type !== "checkbox") {
      if (event.key === "Escape") event.target.blur();
      return undefined;
    }
    const page = Date.now() - going < GO_MS && LETTERS[event.key];
    going = 0;
    if (page) {
      event.preventDefault();
      return go(page);
    }
    if (KEYS[event.key]) {
      event.preventDefault();
      KEYS[event.key]();
    }
    return undefined;
  });
}

const HELP = [
  ["Ctrl-K", "go to a page or a job"],
  ["/", "search"],
  ["j  k", "next, previous row"],
  ["Enter", "open the row"],
  ["x", "select the row"],
  ["t", "run the job now"],
  ["p", "pause or resume the job"],
  ["g o", "Overview"],
  ["g j", "Jobs"],
  ["g r", "Runs"],
  ["g u", "Upcoming"],
  ["g c", "Cluster"],
  ["g t", "Timeline"],
  ["g d", "Deployments"],
  ["g l", "Limits"],
  ["g a", "Audit log"],
  ["g w", "Wallboard"],
  ["?", "this list"],
  ["Esc", "close, or leave a field"],
];

export function Help() {
  const [open, set] = useState(false);
  const dialog = useRef(null);
  show = set;
  useEffect(() => {
    if (open && !dialog.current.open) dialog.current.showModal();
  }, [open]);
  if (!open) return null;
  return html`<dialog ref=${dialog} onClose=${() => set(false)} aria-labelledby="keys"><h2 id="keys">Keys</h2>
    <dl class="facts">${HELP.map(([key, says]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${says}</dd></div>`)}</dl>
    <div class="buttons"><button autofocus onClick=${() => dialog.current.close()}>Close</button></div></dialog>`;
}
