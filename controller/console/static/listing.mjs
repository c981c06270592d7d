// What lists of things that are set have in common: their state, their pages, what can be done to a row and to all.
import { html, useEffect, useState } from "./base.mjs";
import { ask } from "./doing.mjs";
import { useQuery } from "./queries.mjs";
import { useParameter } from "./router.mjs";
import { Answered, Empty, Rows, When } from "./parts.mjs";

const PAGE = 100;

export const NOTE = { name: "note", label: "Why? Others will ask later.", optional: true };
export const when = (name, field) => ({ name, of: (row) => html`<${When} at=${row[field]} />` });

// Of a key that has its namespace in it: [namespace, name]; what has none is of "default".
export const parted = (key) =>
  key.includes("/") ? [key.slice(0, key.indexOf("/")), key.slice(key.indexOf("/") + 1)] : ["default", key];

// Of a path: each part stands for itself, whatever is in it.
export const inPath = (...parts) => parts.map((each) => `/${encodeURIComponent(each)}`).join("");

// "a=1" a line, or with commas between, as an object.
export const pairs = (text) =>
  Object.fromEntries(
    text
      .split(/[\n,]/)
      .map((each) => each.trim())
      .filter(Boolean)
      .map((each) => [each.split("=")[0], each.slice(each.indexOf("=") + 1)]),
  );

export const words = (text) => text.split(/[\s,]+/).filter(Boolean);

// Nobody is asked what would be refused: says which role it takes.
export const Refused = ({ needs: [permission, namespace] }) =>
  html`<p class="problem">Your role doesn't show this: it takes ${permission}${namespace === "*" ? " of all namespaces" : ""}.</p>`;

// `of`: {title, says, path, query, rows, keyOf, columns, none, command, needs, deeds(row), make, open(row), on, every}.
// A deed is what `ask` takes, and `word`, which stands on its button. `make`: deeds of the list as a whole.
// Lists of one page that change together: `changed()` is called after a deed, and a new `turn` asks for rows anew.
export function Listing({ of, session, level = 1 }) {
  const [token, setToken] = useState("");
  const allowed = !of.needs || session.may(...of.needs);
  const query = useQuery(allowed ? of.path : null, { ...of.query, page_size: PAGE, page_token: token }, {
    on: of.on,
    every: of.every,
  });
  useEffect(() => {
    if (of.turn) query.again();
  }, [of.turn]);
  const again = of.changed ?? query.again;
  const rows = query.data?.[of.rows] ?? [];
  const deeds = rows.map((row) => (of.deeds?.(row) || []).filter(Boolean));
  const done = {
    name: "Do",
    of: (row) => html`<${Deeds} of=${deeds[rows.indexOf(row)]} again=${again} small />`,
  };
  const columns = deeds.some((each) => each.length) ? [...of.columns, done] : of.columns;
  const make = (of.make ?? []).filter(Boolean);
  const head = level === 1 ? html`<h1>${of.title}</h1>` : html`<h2 class="apart">${of.title}</h2>`;
  if (!allowed) return html`${head}<p class="says">${of.says}</p><${Refused} needs=${of.needs} />`;
  return html`${head}<p class="says">${of.says}</p>
    <div class="tools">${of.tools}<${Deeds} of=${make} again=${again} /></div>
    <${Answered} query=${query} empty=${
      query.data && !rows.length && !token && html`<${Empty} command=${of.command}>${of.none}<//>`
    }>
      <${Rows} caption=${of.title} columns=${columns} rows=${rows} keyOf=${of.keyOf} open=${of.open} />
      <div class="buttons">${token && html`<button onClick=${() => setToken("")}>First page</button>`}
        ${
          query.data?.next_page_token &&
          html`<button onClick=${() => setToken(query.data.next_page_token)}>Next ${PAGE}</button>`
        }</div><//>`;
}

// Buttons of deeds; after each of them `again` asks for what is there now.
export const Deeds = ({ of, again, small }) =>
  of?.length > 0 &&
  html`<div class=${small ? "deeds" : "buttons"}>${of.map(
    (deed) =>
      html`<button key=${deed.word} class=${small ? "small" : ""} onClick=${() => begin(deed, again)}>${deed.word}</button>`,
  )}</div>`;

const begin = (deed, again) =>
  ask({
    ...deed,
    act: async (values) => {
      const said = await deed.act(values);
      again?.();
      return said;
    },
  });

// A page of one thing of a list: what the address says by `of=`; else the list itself.
export const useOne = () => useParameter("of");

export const oneOf = (page, name) => `${page}?of=${encodeURIComponent(name)}`;

// A secret that is told once.
export const Secret = ({ name, secret, children }) => html`<p>${children}</p>
  <p><b>Copy it now: it is never told again.</b></p><pre class="output" tabindex="0" aria-label=${`The secret of ${name}`}>${secret}</pre>`;
