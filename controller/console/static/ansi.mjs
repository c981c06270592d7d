// Colours of a terminal, shown safely: text stays text, and of all that escape sequences can do only colours are done.
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\x1b(?:\[([0-9;]*)m|\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])/g;
// What changes the direction of text, or isn't seen, is shown by its number: else a line may read otherwise than it is.
// Beside Unicode's controls, formats and separators: half characters, and the four fillers that are letters of no width.
const HIDDEN = /[\u115f\u1160\u3164\uffa0]|(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

export const visible = (text) =>
  text.replace(HIDDEN, (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

// Pieces of text with the classes of their colours.
export function coloured(text) {
  const pieces = [];
  let from = 0,
    hue = "",
    bold = false;
  const push = (part) => {
    if (part) pieces.push({ text: visible(part), classes: `${hue} ${bold ? "bold" : ""}`.trim() });
  };
  for (const found of text.matchAll(SEQUENCE)) {
    push(text.slice(from, found.index));
    from = found.index + found[0].length;
    if (found[1] === undefined) continue;
    for (const code of found[1].split(";").map(Number)) {
      if (code === 0) [hue, bold] = ["", false];
      else if (code === 1) bold = true;
      else if (code === 22) bold = false;
      else if (code === 39) hue = "";
      else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) hue = `ansi${code % 10}`;
    }
  }
  push(text.slice(from));
  return pieces;
}
