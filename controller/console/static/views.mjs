// Views of a list: some that everybody has, and those that somebody saved in this browser. Each is an address.
import { html } from "./base.mjs";
import { ask } from "./doing.mjs";
import { useKept } from "./kept.mjs";

// `page`: the path. `ready`: [name, query text] of views that are always there. `query`: the one that is shown.
export function Views({ page, ready, query }) {
  const [saved, setSaved] = useKept(`cronring-views${page}`, []);
  const here = query.replace(/^\?/, "");
  const link = ([name, text]) => html`<a key=${name} class="label" href=${page + (text ? `?${text}` : "")}
    aria-current=${text === here ? "true" : undefined}>${name}</a>`;
  const save = () =>
    ask({
      title: "Save this view",
      verb: "Save",
      says: "Its filter, order and name are kept in this browser. Others see it by its address.",
      undo: "remove it from the list again.",
      fields: [{ name: "name", label: "Name", hint: "my team, failing" }],
      act: async ({ name }) => {
        setSaved([...saved.filter(([each]) => each !== name), [name, here]]);
      },
    });
  const known = [...ready, ...saved].some(([, text]) => text === here);
  return html`<nav class="views" aria-label="Views">${ready.map(link)}
    ${saved.map(
      (each) => html`<span key=${each[0]}>${link(each)}<button class="small" aria-label=${`Remove the view ${each[0]}`}
        onClick=${() => setSaved(saved.filter(([name]) => name !== each[0]))}>✕</button></span>`,
    )}
    ${!known && html`<button class="small" onClick=${save}>Save this view</button>`}</nav>`;
}
