// Pages by their addresses. Links are ordinary ones: they can be opened in a new tab, copied, and gone back from.
import { useEffect, useState } from "./base.mjs";

const watchers = new Set();

function changed() {
  for (const each of watchers) each();
}

export function go(address, replace = false) {
  if (address === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  changed();
}

export function useLocation() {
  const [at, set] = useState({ path: location.pathname, query: location.search });
  useEffect(() => {
    const look = () => set({ path: location.pathname, query: location.search });
    watchers.add(look);
    addEventListener("popstate", look);
    return () => {
      watchers.delete(look);
      removeEventListener("popstate", look);
    };
  }, []);
  return at;
}

// A click on a link of ours goes without loading the page anew.
export function begin(ours) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    if (link.origin !== location.origin || link.target || link.hasAttribute("download") || !ours(link.pathname)) return;
    event.preventDefault();
    go(link.pathname + link.search);
    scrollTo(0, 0);
  });
}

// A value of the address's query, and how to set it: a view can be copied by its address.
export function useParameter(name, otherwise = "") {
  useLocation();
  const value = new URLSearchParams(location.search).get(name) ?? otherwise;
  const set = (next) => {
    const query = new URLSearchParams(location.search);
    if (next === otherwise || next === "") query.delete(name);
    else query.set(name, next);
    go(location.pathname + (query.size ? `?${query}` : ""), true);
  };
  return [value, set];
}
