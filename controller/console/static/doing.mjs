// Doing something: what it will do, to what, how to undo it, and the same on the command line, before it is done.
import { html, useEffect, useRef, useState } from "./base.mjs";
import { Copied, Failed } from "./parts.mjs";
import { Preview } from "./preview.mjs";

let show = null;

// `what`: {title, says, preview(), undo, command(values), fields, more(values), typed, act(values)}.
// A field: {name, label, value, kind, optional, choices}; or one that draws itself, by draw({value, set, problem}).
// What `act` gives is shown: a text, or elements as {shows}.
// `typed`: what has to be typed first, where nothing undoes it.
export const ask = (what) => show?.(what);

export function Asking() {
  const [what, set] = useState(null);
  const dialog = useRef(null);
  show = set;
  useEffect(() => {
    if (what && !dialog.current.open) dialog.current.showModal();
  }, [what]);
  if (!what) return null;
  // What it was opened by may be gone by what was done.
  const closed = () => {
    set(null);
    setTimeout(() => document.activeElement === document.body && document.querySelector("#main")?.focus({ preventScroll: true }));
  };
  return html`<dialog ref=${dialog} onClose=${closed} aria-labelledby="asking">
    <${Form} key=${what.title} what=${what} close=${() => dialog.current.close()} /></dialog>`;
}

function Form({ what, close }) {
  const [values, setValues] = useState(
    Object.fromEntries((what.fields ?? []).map((each) => [each.name, each.value ?? ""])),
  );
  const [typed, setTyped] = useState("");
  const [doing, setDoing] = useState(false);
  const [problem, setProblem] = useState(null);
  const [done, setDone] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    setDoing(true);
    setProblem(null);
    try {
      const said = await what.act(values);
      if (typeof said === "string" || said?.shows) setDone(said.shows ?? said);
      else close();
    } catch (found) {
      if (found.violations === undefined) throw found;
      setProblem(found);
    }
    setDoing(false);
  };
  if (done) {
    return html`<h2 id="asking">${what.title}</h2><div role="status">${done}</div>
      <div class="buttons"><button autofocus onClick=${close}>Close</button></div>`;
  }
  return html`<form onSubmit=${submit}>
    <h2 id="asking">${what.title}</h2>
    <p>${what.says}</p>
    ${what.preview && html`<${Preview} of=${what.preview} />`}
    ${(what.fields ?? []).map(
      (each) => html`<${Field} key=${each.name} of=${each} value=${values[each.name]}
      problem=${problem} set=${(value) => {
        setProblem(null);
        setValues((before) => ({ ...before, [each.name]: value }));
      }} />`,
    )}
    ${what.more?.(values)}
    ${
      what.typed &&
      html`<label>Type <code>${what.typed}</code> to go on: nothing undoes this
      <input value=${typed} onInput=${(event) => setTyped(event.target.value)} autocomplete="off"
        spellcheck="false" /></label>`
    }
    ${what.undo && html`<p class="says">To undo it: ${what.undo}</p>`}
    ${what.command && html`<p class="says">The same on the command line:</p><${Copied} text=${what.command(values)} />`}
    ${problem && html`<${Failed} problem=${problem} said="It is not done." />`}
    <div class="buttons">
      <button type="button" onClick=${close}>Keep as it is</button>
      <button class="act" disabled=${doing || (what.typed && typed !== what.typed)}>
        ${doing ? "…" : what.verb}</button>
    </div></form>`;
}

function Field({ of, value, set, problem }) {
  if (of.draw) return of.draw({ value, set, problem });
  const input = (event) => set(event.target.value);
  if (of.kind === "check")
    return html`<label class="check"><input type="checkbox" checked=${value}
      onChange=${(event) => set(event.target.checked)} /> ${of.label}</label>`;
  if (of.choices)
    return html`<label>${of.label} <select value=${value} onChange=${input}>${of.choices.map(
      (each) => html`<option key=${each} value=${each}>${each}</option>`,
    )}</select></label>`;
  return html`<label>${of.label}
    ${
      of.kind === "lines"
        ? html`<textarea rows="4" value=${value} onInput=${input} spellcheck="false"></textarea>`
        : html`<input type=${of.kind ?? "text"} value=${value} onInput=${input} required=${!of.optional}
          placeholder=${of.hint ?? ""} />`
    }</label>`;
}
