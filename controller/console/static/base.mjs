// What every page is made of: elements by tagged templates (htm), which put whatever strangers wrote in as text.
import { h, options, render, Fragment } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";
import { visible } from "./ansi.mjs";
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.mjs";
export const html = htm.bind(h);
export { render, Fragment };

// What must stay as it is: a field's text goes back to the API, and an address has its own escapes.
const KEPT = new Set(["value", "href"]);

// All text of all pages comes by here, whoever wrote it: so no page has to remember it (docs/decisions/0119).
options.vnode = (node) => {
  if (node.type === null && typeof node.props === "string") node.props = visible(node.props);
  if (typeof node.type !== "string") return;
  for (const [name, value] of Object.entries(node.props)) {
    if (typeof value === "string" && !KEPT.has(name)) node.props[name] = visible(value);
  }
};
