// What every page is made of: elements by tagged templates (htm), which put whatever strangers wrote in as text.
import { h, render, Fragment } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.mjs";
export const html = htm.bind(h);
export { render, Fragment };
