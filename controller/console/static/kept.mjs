// What a browser keeps of how its user likes to look: views by their names, and which columns are shown.
import { useState } from "./base.mjs";

const read = (name, otherwise) => {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise; // it is nobody's JSON, or the browser keeps nothing
  }
};

// A value that this browser keeps under that name, and how to set it.
export function useKept(name, otherwise) {
  const [value, set] = useState(() => read(name, otherwise));
  return [
    value,
    (next) => {
      set(next);
      try {
        localStorage.setItem(name, JSON.stringify(next));
      } catch {
        // The browser keeps nothing: it is as it is said for as long as the page is open.
      }
    },
  ];
}
