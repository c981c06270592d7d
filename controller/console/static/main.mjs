// The console: its frame, and which page is at which address.
import { html, render, useEffect, useLayoutEffect, useRef, useState } from "./base.mjs";
import { onSession, openSession, Problem } from "./api.mjs";
import { visible } from "./ansi.mjs";
import { Asking } from "./doing.mjs";
import { begin as beginKeys, Help } from "./keys.mjs";
import { begin as beginLive } from "./live.mjs";
import { begin as beginMoving, know } from "./moving.mjs";
import { openPalette, Palette } from "./palette.mjs";
import { PastBar } from "./moment.mjs";
import { begin as beginRouter, useLocation } from "./router.mjs";
import { Page } from "./scripts.mjs";
import { useHealth, Verdict } from "./verdict.mjs";

const PAGES = [
  ["/", "Overview"],
  ["/jobs", "Jobs"],
  ["/executions", "Runs"],
  ["/upcoming", "Upcoming"],
  ["/cluster", "Cluster"],
  ["/timeline", "Timeline"],
  ["/checks", "Checks"],
  ["/deployments", "Deployments"],
  ["/queues", "Queues"],
  ["/limits", "Limits"],
  ["/sets", "Sets"],
  ["/templates", "Templates"],
  ["/workspaces", "Workspaces"],
  ["/webhooks", "Webhooks"],
  ["/access", "Access"],
  ["/actions", "Actions"],
  ["/audit", "Audit log"],
  ["/wall", "Wall"],
];
const AT_HAND = 9; // of them, beside each other; a row of all does not fit a laptop
// The script of a page, and what of it draws the page.
const SCRIPTS = {
  "/": ["overview", "Overview"],
  "/access": ["access", "Access"],
  "/actions": ["actions", "Actions"],
  "/audit": ["audit", "Audit"],
  "/checks": ["checks", "Checks"],
  "/cluster": ["cluster", "Cluster"],
  "/deployments": ["deployments", "Deployments"],
  "/executions": ["executions", "Executions"],
  "/jobs": ["jobs", "Jobs"],
  "/jobs/new": ["job_new", "NewJob"], // no key is so: each has a dot
  "/limits": ["limits", "Limits"],
  "/queues": ["queues", "Queues"],
  "/sets": ["sets", "Sets"],
  "/templates": ["templates", "Templates"],
  "/timeline": ["timeline", "TimelinePage"],
  "/upcoming": ["upcoming", "Upcoming"],
  "/wall": ["wall", "Wall"],
  "/webhooks": ["webhooks", "Webhooks"],
  "/workspaces": ["workspaces", "Workspaces"],
};

// An address that somebody typed may have a "%" that begins nothing.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function page(path, props) {
  const [, first, rest] = path.match(/^\/([^/]*)\/?(.*)$/);
  if (SCRIPTS[path]) return html`<${Page} key=${path} script=${SCRIPTS[path]} props=${props} />`;
  if (first === "jobs") return html`<${Page} key=${path} script=${["job", "JobPage"]} props=${{ ...props, name: decoded(rest) }} />`;
  if (first === "executions")
    return html`<${Page} key=${path} script=${["execution", "ExecutionPage"]} props=${{ ...props, id: decoded(rest) }} />`;
  return html`<h1>There is no page here</h1><p><a href="/">Overview</a></p>`;
}

function Console({ session }) {
  const { path } = useLocation();
  const health = useHealth();
  // At once, and not after the page is painted: else the focus leaves a field in which somebody types already.
  useLayoutEffect(() => {
    const name = PAGES.find(([address]) => address === path)?.[1] ?? decoded(path.split("/").pop());
    document.title = visible(`${name} - cronring`);
    document.querySelector("#main")?.focus({ preventScroll: true });
  }, [path]);
  useEffect(() => know(health.cluster.data?.members), [health.cluster.data]);
  const frame =
    path === "/wall"
      ? page(path, { health })
      : html`
    <a class="skip" href="#main">To the page</a>
    <header><${Pages} path=${path} />
      <div class="who"><button class="small" onClick=${openPalette}>Go to <kbd>Ctrl-K</kbd></button>
        <a href="/login" title="who you are, and log out">${session.name}</a></div></header>
    <${Verdict} health=${health} /><${PastBar} path=${path} />
    <main id="main" tabindex="-1">${page(path, { session, health })}</main>`;
  return html`${frame}<${Palette} pages=${[...PAGES, ["/jobs/new", "New job"]]} /><${Help} /><${Asking} />`;
}

function Pages({ path }) {
  const menu = useRef(null);
  const link = ([address, name]) => html`<a key=${address} href=${address}
    aria-current=${here(path, address) ? "page" : undefined}>${name}</a>`;
  const close = () => {
    menu.current.open = false;
  };
  useEffect(() => {
    const outside = (event) => menu.current.contains(event.target) || close();
    document.addEventListener("click", outside);
    document.addEventListener("focusin", outside);
    return () => {
      document.removeEventListener("click", outside);
      document.removeEventListener("focusin", outside);
    };
  }, []);
  const escape = (event) => {
    if (event.key !== "Escape") return;
    close();
    menu.current.querySelector("summary").focus();
  };
  return html`<nav aria-label="Pages"><a class="brand" href="/">cronring</a>
    ${PAGES.filter((each, place) => place < AT_HAND || here(path, each[0])).map(link)}
    <details class="menu" ref=${menu} onKeyDown=${escape}><summary>All pages</summary>
      <div class="pages" onClick=${close}>${PAGES.map(link)}</div></details></nav>`;
}

const here = (path, address) => (address === "/" ? path === "/" : path === address || path.startsWith(`${address}/`));

function Begin() {
  const [session, setSession] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    let timer = 0;
    onSession(setSession);
    const open = async () => {
      try {
        setSession(await openSession());
        beginLive();
        beginMoving();
      } catch (found) {
        if (!(found instanceof Problem)) throw found;
        setProblem(found);
        timer = setTimeout(open, 3_000);
      }
    };
    open();
    return () => clearTimeout(timer);
  }, []);
  if (session) return html`<${Console} session=${session} />`;
  return (
    problem &&
    html`<main class="problem" role="alert"><h1>cronring can't be asked now</h1><p>${problem.message}</p>
    <p>This page asks again every three seconds.</p></main>`
  );
}

beginKeys();
beginRouter((path) => PAGES.some(([address]) => here(path, address)));
render(html`<${Begin} />`, document.body);
