// A field whose text goes into the address: a view can be copied, and nothing is lost of what is typed.
import { useEffect, useRef, useState } from "./base.mjs";
import { useParameter } from "./router.mjs";

const parameter = (name) => new URLSearchParams(location.search).get(name) ?? "";

// [value, typed, type]: what the address says, what the field says, and what the field does with an input event.
// The address follows `wait` milliseconds after the last letter. The field follows the address only where another has
// changed that (Back, a link): an answer to earlier letters must not take away later ones.
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
  const type = (event) => {
    const text = event.target.value;
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      said.current = text.trim();
      set(said.current);
    }, wait);
  };
  return [value, typed, type];
}
