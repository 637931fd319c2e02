/** A part of a template, and what it holds when it is a section. */
export type Token =
  | { readonly kind: "text"; text: string }
  /** `{{a}}`, and `{{{a}}}` or `{{&a}}`. */
  | { readonly kind: "double" | "triple"; readonly path: readonly string[] }
  /** `{{#a}}…{{/a}}` and `{{^a}}…{{/a}}`. */
  | { readonly kind: "section" | "inverted"; readonly path: readonly string[]; readonly inner: Token[] };

/** A mistake in a template. The message reads on after the template's path. */
export class TemplateError extends Error {
  override name = "TemplateError";
}

function place(template: string, index: number) {
  const before = template.slice(0, index).split("\n");
  return `line ${before.length}, column ${(before.at(-1) as string).length + 1}`;
}

const sectionsDeepMax = 32;
/** Of both tags together. The search for longer ones may take a time that grows with the square of the template. */
const tagCharsMax = 64;

interface OpenSection {
  readonly name: string;
  readonly outer: Token[];
}

/** `.` is the value of the section itself. */
const pathOf = (name: string) => (name === "." ? [] : name.split("."));

/**
 * The line that is read: one that holds nothing but sections, comments and blanks leaves nothing, as the specification of Mustache
 * has it for these tags.
 */
function lineReader(add: (token: Token) => void) {
  let blanks: { text: string }[] = [];
  let hasTag = false;
  let hasContent = false;
  const end = () => {
    if (hasTag && !hasContent) for (const blank of blanks) blank.text = "";
    blanks = [];
    hasTag = false;
    hasContent = false;
  };
  const piece = (text: string) => {
    if (text === "") return;
    const token: Token = { kind: "text", text };
    add(token);
    if (text.trim() === "") blanks.push(token);
    else hasContent = true;
  };
  return {
    end,
    tag: () => {
      hasTag = true;
    },
    content: () => {
      hasContent = true;
    },
    /** The text between two tags: only its first and its last line share theirs with a tag. */
    text(text: string) {
      const first = text.indexOf("\n") + 1;
      if (first === 0) return piece(text);
      piece(text.slice(0, first));
      end();
      const last = text.lastIndexOf("\n") + 1;
      if (last > first) add({ kind: "text", text: text.slice(first, last) });
      piece(text.slice(last));
    },
  };
}

/**
 * Parses a template in time that grows with its length alone. Reads as mustache.js does, whose time grows with the square of
 * a run of blanks. @throws TemplateError
 */
export function parsed(template: string): readonly Token[] {
  const broken = (what: string, index: number) =>
    new TemplateError(`is no Mustache template: ${what} at ${place(template, index)}`);
  const root: Token[] = [];
  const sections: OpenSection[] = [];
  let tokens = root;
  let [open, close] = ["{{", "}}"];
  const line = lineReader((token) => void tokens.push(token));
  /** Where a text begins from `from` on; the end of the template is no place for it. */
  const find = (text: string, from: number) => {
    const at = template.indexOf(text, from);
    if (at < 0) throw broken("unclosed tag", template.length);
    return at;
  };
  let at = 0;
  for (;;) {
    const start = template.indexOf(open, at);
    line.text(template.slice(at, start < 0 ? undefined : start));
    if (start < 0) break;
    line.tag();
    at = skipBlanks(template, start + open.length);
    const sign = "#^/>{&=!".includes(template[at] ?? " ") ? (template[at] as string) : "";
    at = skipBlanks(template, at + sign.length);
    const end = find(sign === "{" ? `}${close}` : sign === "=" ? "=" : close, at);
    const name = template.slice(at, end).trimEnd();
    at = (sign === "{" || sign === "=" ? find(close, end + 1) : end) + close.length;
    switch (sign) {
      case "":
      case "{":
      case "&":
        line.content();
        tokens.push({ kind: sign === "" ? "double" : "triple", path: pathOf(name) });
        break;
      case "#":
      case "^": {
        if (sections.length === sectionsDeepMax) {
          throw new TemplateError(`has sections more than ${sectionsDeepMax} deep at ${place(template, start)}`);
        }
        const inner: Token[] = [];
        tokens.push({ kind: sign === "#" ? "section" : "inverted", path: pathOf(name), inner });
        sections.push({ name, outer: tokens });
        tokens = inner;
        break;
      }
      case "/": {
        const opened = sections.pop();
        if (opened === undefined) throw broken(`unopened section "${name.slice(0, 64)}"`, start);
        if (opened.name !== name) throw broken(`unclosed section "${opened.name.slice(0, 64)}"`, start);
        tokens = opened.outer;
        break;
      }
      case ">":
        throw new TemplateError(
          `has a partial ({{> ${name.slice(0, 64)}}}) at ${place(template, start)}: there are none`,
        );
      case "=": {
        const [opens, closes] = name.split(/\s+/, 2);
        if (opens === undefined || closes === undefined) throw broken("invalid tags", start);
        if (opens.length + closes.length > tagCharsMax)
          throw broken(`tags of more than ${tagCharsMax} characters`, start);
        [open, close] = [opens, closes];
      }
    }
  }
  line.end();
  const unclosed = sections.pop();
  if (unclosed !== undefined) {
    throw broken(`unclosed section "${unclosed.name.slice(0, 64)}"`, template.length);
  }
  return root;
}

const blank = /\S/g;

function skipBlanks(text: string, from: number): number {
  blank.lastIndex = from;
  return blank.exec(text)?.index ?? text.length;
}
