// Ctrl-K: pages, jobs and actions by their names.
import { html, useEffect, useRef, useState } from "./base.mjs";
import { get } from "./api.mjs";
import { go } from "./router.mjs";
import { jobPath } from "./parts.mjs";

const TYPING_MS = 100;
const MOST = 12;
const RUN = /^#?(\d{1,18})$/;
let show = null;

export const openPalette = () => show?.(true);

export function Palette({ pages }) {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("");
  const [jobs, setJobs] = useState([]);
  const [at, setAt] = useState(0);
  const dialog = useRef(null);
  show = setOpen;
  useEffect(() => {
    if (open && !dialog.current.open) dialog.current.showModal();
  }, [open]);
  useEffect(() => {
    setAt(0);
    if (!open || text.trim().length < 2) return setJobs([]);
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const found = await get("/jobs", { "filter.contains": text.trim(), page_size: MOST }, stop.signal);
        setJobs(found.jobs.map((job) => job.key));
      } catch (problem) {
        if (problem.name !== "AbortError") setJobs([]);
      }
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text, open]);
  if (!open) return null;
  const found = [
    ...pages
      .filter(([, name]) => name.toLowerCase().includes(text.toLowerCase()))
      .map(([path, name]) => [path, `Page: ${name}`]),
    ...(RUN.test(text) ? [[`/executions/${text.match(RUN)[1]}`, `Run ${text.match(RUN)[1]}`]] : []),
    ...jobs.map((key) => [jobPath(key), key]),
  ].slice(0, MOST);
  const choose = (choice) => {
    if (choice) {
      dialog.current.close();
      go(choice[0]);
    }
  };
  const key = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((before) => Math.max(0, Math.min(found.length - 1, before + step)));
    }
    if (event.key === "Enter") {
      event.preventDefault();
      choose(found[at]);
    }
  };
  return html`<dialog ref=${dialog} class="palette" aria-label="Go to" onClose=${() => {
    setOpen(false);
    setText("");
  }}>
    <input autofocus type="search" value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${key}
      role="combobox"
      aria-label="Page, job or run" aria-expanded="true" aria-controls="choices" aria-activedescendant=${`choice${at}`}
      placeholder="a page, a part of a job's name, a run's number" spellcheck="false" />
    <ul id="choices" role="listbox" aria-label="Found">${found.map(
      (choice, index) => html`<li key=${choice[0]} id=${`choice${index}`} role="option"
      aria-selected=${index === at} onClick=${() => choose(choice)}>${choice[1]}</li>`,
    )}</ul>${!found.length && html`<p class="says" role="status">Nothing is called so.</p>`}</dialog>`;
}
