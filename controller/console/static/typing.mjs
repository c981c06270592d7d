// A field whose text goes into the address: a view can be copied, and nothing is lost of what is typed.
import { useEffect, useRef, useState } from "./base.mjs";
import { useParameter } from "./router.mjs";

const parameter = (name) => new URLSearchParams(location.search).get(name) ?? "";

// [value, typed, type, say]: what the address says, what the field says, and what the field does with its new text.
// The address follows `wait` milliseconds after the last letter, or at once where `say(text)` is called. The field
// follows the address only where another has changed that (Back, a link): an answer to earlier letters must not take
// away later ones.
export function useTyped(name, wait) {
  const [value, set] = useParameter(name);
  const [typed, setTyped] = useState(value);
  const said = useRef(value);
  const timer = useRef(0);
  useEffect(() => {
    if (parameter(name) === said.current) return;
    clearTimeout(timer.current);
    said.current = parameter(name);
    setTyped(said.current);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const say = (text) => {
    clearTimeout(timer.current);
    said.current = text.trim();
    set(said.current);
  };
  const type = (text) => {
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => say(text), wait);
  };
  return [value, typed, type, say];
}
