// Pages, whose scripts are asked for when somebody goes there: the first page needs few of them.
import { html, useEffect, useState } from "./base.mjs";
import { Failed } from "./parts.mjs";

const known = new Map();

// `script`: [its name, what of it draws the page].
export function Page({ script: [script, name], props }) {
  const [problem, setProblem] = useState(null);
  const [, setHere] = useState(known.has(script));
  const load = async () => {
    setProblem(null);
    try {
      known.set(script, await import(`./pages/${script}.mjs`));
      setHere(true);
    } catch {
      setProblem({ message: `${location.host} doesn't answer. This page's script is to come from there.`, violations: [] });
    }
  };
  useEffect(() => {
    if (!known.has(script)) load();
  }, [script]);
  if (known.has(script)) return html`<${known.get(script)[name]} ...${props} />`;
  return problem ? html`<${Failed} problem=${problem} again=${load} />` : html`<p class="loading"></p>`;
}
