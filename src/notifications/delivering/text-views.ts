/** A text as it reads when escapes are undone, with the place of each of its characters in the text that it is made of. */
export interface View {
  readonly text: string;
  /** Where each character begins there. */
  readonly starts: ArrayLike<number>;
  /** Where it ends. */
  readonly ends: ArrayLike<number>;
}

/** The escapes of one kind, and the character that each means. */
interface Escaping {
  readonly escape: RegExp;
  undone(escape: string): string;
}

/** Of addresses and forms; bytes that are no UTF-8 are read as ISO 8859-1. A plus sign stays: `comparable` takes it for a blank. */
const percent: Escaping = {
  escape:
    /%[0-7][\da-f]|%(?:c[2-9a-f]|d[\da-f])%[89ab][\da-f]|%e[\da-f](?:%[89ab][\da-f]){2}|%f[0-4](?:%[89ab][\da-f]){3}|%[\da-f]{2}/gi,
  undone(escape) {
    try {
      return decodeURIComponent(escape);
    } catch {
      return Buffer.from(escape.replaceAll("%", ""), "hex").toString("latin1");
    }
  },
};

const controls: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Of JSON, and of string literals of programming languages. */
const backslash: Escaping = {
  escape: /\\(?:u[\da-fA-F]{4}|x[\da-fA-F]{2}|["'\\/bfnrt])/g,
  undone([, sign = "", ...digits]) {
    if (digits.length > 0) return String.fromCharCode(Number.parseInt(digits.join(""), 16));
    return controls[sign] ?? sign;
  },
};

const names: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " };

/** Of HTML and XML. */
const reference: Escaping = {
  escape: /&(?:#x[\da-f]{1,6}|#\d{1,7}|amp|lt|gt|quot|apos|nbsp);/gi,
  undone(escape) {
    const name = escape.slice(1, -1).toLowerCase();
    if (!name.startsWith("#")) return names[name] ?? "";
    const code = name.startsWith("#x") ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code <= 0x10ffff ? String.fromCodePoint(code) : "";
  },
};

const escapings = [percent, backslash, reference];
/** As often may one escaping stand within another. */
const layersMax = 3;

/** A view with one layer of escapes undone; undefined when it has none. */
function withoutEscapes({ text, starts, ends }: View, { escape, undone }: Escaping): View | undefined {
  const made = { text: "", starts: [] as number[], ends: [] as number[] };
  let at = 0;
  const copy = (to: number) => {
    made.text += text.slice(at, to);
    for (; at < to; at++) {
      made.starts.push(starts[at] as number);
      made.ends.push(ends[at] as number);
    }
  };
  for (const { 0: found, index } of text.matchAll(escape)) {
    copy(index);
    at += found.length;
    const meant = undone(found);
    made.text += meant;
    for (let unit = 0; unit < meant.length; unit++) {
      made.starts.push(starts[index] as number);
      made.ends.push(ends[at - 1] as number);
    }
  }
  if (at === 0) return undefined;
  copy(text.length);
  return made;
}

/** A text in all the ways in which it may be read: as it is, and with up to three layers of escapes undone. */
export function viewsOf(text: string): View[] {
  const views: View[] = [{ text, starts: units(text), ends: units(text, 1) }];
  const seen = new Set([text]);
  let layer: readonly View[] = views;
  for (let depth = 0; depth < layersMax; depth++) {
    const below: View[] = [];
    for (const view of layer) {
      for (const escaping of escapings) {
        const made = withoutEscapes(view, escaping);
        if (made === undefined || seen.has(made.text)) continue;
        seen.add(made.text);
        below.push(made);
      }
    }
    views.push(...below);
    layer = below;
  }
  return views;
}

const units = (text: string, from = 0) => Int32Array.from({ length: text.length }, (_, i) => i + from);

const blank = /[\p{Cc}\p{Cf}\s]/u;
const [upperA, upperZ, caseStep] = [0x41, 0x5a, 0x20];

/** A character as it is compared: see `comparable`. */
function comparableUnit(text: string, at: number): string {
  const code = text.charCodeAt(at);
  const unit = text[at] as string;
  if (code >= upperA && code <= upperZ) return String.fromCharCode(code + caseStep);
  if (unit === "+" || unit === "-") return " ";
  if (unit === "_") return "/";
  if (code > 0x20 && code < 0x7f) return unit;
  if (blank.test(unit)) return " ";
  return code >= 0x80 && code <= 0xff ? "\ufffd" : unit;
}

/**
 * A text as it is compared, of the same length: without regard to case (hexadecimal digits), to blanks, plus and minus signs
 * (forms; both kinds of base64), to slashes and low lines (both kinds of base64), and to characters of ISO 8859-1 that were read as
 * bad UTF-8. What is alike by that, and not the same, is rare.
 */
export function comparable(text: string): string {
  let made = "";
  for (let at = 0; at < text.length; at++) made += comparableUnit(text, at);
  return made;
}

/** A view with each run of blanks as one: so are they shown. Undefined when it has no runs. */
export function withoutRuns({ text, starts, ends }: View): View | undefined {
  if (!text.includes("  ")) return undefined;
  const made = { text: "", starts: [] as number[], ends: [] as number[] };
  for (let at = 0; at < text.length; at++) {
    if (text[at] === " " && made.text.endsWith(" ")) made.ends[made.ends.length - 1] = ends[at] as number;
    else {
      made.text += text[at];
      made.starts.push(starts[at] as number);
      made.ends.push(ends[at] as number);
    }
  }
  return made;
}
