// One line of the API's filter language: asked for while one types, and completed by what the API suggests.
import { html, useEffect, useRef, useState } from "./base.mjs";
import { get } from "./api.mjs";
import { useTyped } from "./typing.mjs";

const TYPING_MS = 50; // fast typists need less than twice that between letters, and an answer 70 ms
const SHOWN = 10;

// `list`: "jobs" or "executions". `name`: of the address's parameter. `says`: id of the line that tells faults.
export function FilterField({ list, name, hint, says }) {
  const [value, typed, type, say] = useTyped(name, TYPING_MS);
  const [latest, setOffer] = useState(null); // {text, at, terms}: what may stand from character `at` of `text` on
  const offer = latest?.text === typed ? latest : null;
  const [chosen, setChosen] = useState(-1);
  const asking = useRef(null);
  const field = useRef(null);
  useEffect(() => {
    if (document.activeElement === field.current) suggest(typed);
  }, [value]);

  const suggest = async (text) => {
    asking.current?.abort();
    const mine = new AbortController();
    asking.current = mine;
    try {
      const { at, terms } = await get("/filters:suggest", { list, text }, mine.signal);
      const begun = text.slice(at);
      setOffer(terms.length && begun && terms[0] !== begun ? { at, terms: terms.slice(0, SHOWN), text } : null);
      setChosen(-1);
    } catch (problem) {
      if (problem.name !== "AbortError") setOffer(null);
    }
  };
  const take = (term) => {
    const text = offer.text.slice(0, offer.at) + term + (term.endsWith(":") ? "" : " ");
    setOffer(null);
    type(text);
    field.current.focus();
  };
  const key = (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      if (offer && chosen >= 0) take(offer.terms[chosen]);
      else {
        setOffer(null);
        say(typed);
      }
    }
    if (event.key === "Escape" && offer) {
      event.preventDefault();
      setOffer(null);
    }
    const step = offer && { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setChosen((before) => Math.max(-1, Math.min(offer.terms.length - 1, before + step)));
    }
  };
  return html`<div class="grow suggests"><label for="search">Filter</label>
    <input id="search" type="search" ref=${field} value=${typed} role="combobox" autocomplete="off" spellcheck="false"
      aria-expanded=${offer ? "true" : "false"} aria-controls="suggested" aria-autocomplete="list"
      aria-activedescendant=${chosen >= 0 ? `suggested${chosen}` : undefined} aria-describedby=${says}
      placeholder=${hint} onInput=${(event) => type(event.target.value)} onKeyDown=${key}
      onBlur=${() => setOffer(null)} />
    <ul id="suggested" role="listbox" aria-label="Suggestions" hidden=${!offer}>${offer?.terms.map(
      (term, index) => html`<li key=${term} id=${`suggested${index}`} role="option" aria-selected=${index === chosen}
        onMouseDown=${(event) => {
          event.preventDefault();
          take(term);
        }}>${term}</li>`,
    )}</ul></div>`;
}
