import { type Escaping, type Value, Verbatim, variableText } from "./template.ts";

/** A way of writing: how values come into it, and how it writes a link. */
export interface Markup extends Escaping {
  link(url: string, text: string): string;
  /** How long a value is as its product counts it; absent: its bytes. */
  readonly size?: (text: string) => number;
}

/** Characters that change the direction in which a text is read: what follows them may look like another text. */
const directions = /[\u202a-\u202e\u2066-\u2069]/g;

/** A text whose marks of direction are shown as `[U+202E]`. */
export const visible = (text: string): string =>
  text.replace(directions, (mark) => `[U+${mark.charCodeAt(0).toString(16).toUpperCase()}]`);

const signs: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** A text as HTML shows it, in elements and in attributes. */
export const escapeHtml = (text: string) => visible(text).replace(/[&<>"']/g, (sign) => signs[sign] as string);

/** No markup: nothing is escaped. */
export const plainText: Markup = { double: visible, triple: visible, link: visible };

export const html: Markup = {
  double: escapeHtml,
  triple: visible,
  link: (url, text) => `<a href="${escapeHtml(url)}">${escapeHtml(text)}</a>`,
};

/** The beginning of an address up to its path, and all characters that lead out of a path. */
const beforePath = /^[a-z]+:\/\/[^/?#\\]*[/\\]/i;
const separators = /[/\\]/g;
/** Those of `https://` and the first one of its path. */
const separatorsBeforePath = 3;

/**
 * An address: two braces make of a value a part of a path or a query; three leave it, but within a path it stays in its segment. Of one
 * rendering: it remembers where it is.
 */
export function address(): Markup {
  let begin = "";
  let found = 0;
  let isPath: boolean | undefined;
  return {
    double: (text) => encodeURIComponent(text.toWellFormed()),
    triple: (text) => (isPath ? text.toWellFormed().replace(/[/\\?#\s\p{Cc}]/gu, encodeURIComponent) : text),
    link: (url) => url,
    wrote(piece) {
      if (isPath !== false && /[?#]/.test(piece)) isPath = false;
      if (isPath !== undefined) return;
      begin += piece;
      found += piece.match(separators)?.length ?? 0;
      if (found >= separatorsBeforePath) isPath = beforePath.test(begin);
    },
  };
}

/** Tells whether an address has a segment that leads out of those before it, as `URL` reads it. */
export const leavesSegment = (url: string): boolean =>
  url
    .replace(/[\t\n\r]/g, "")
    .replace(/[?#].*$/s, "")
    .split(/[/\\]/)
    .some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment.trim()));

/** A text that makes no link and no picture in the Markdown of cards. */
export const escapeCard = (text: string) => visible(text).replace(/[[\]\\]/g, "\\$&");

/** The bytes of a text in the JSON of a card. */
export const cardBytes = (text: string) => Buffer.byteLength(JSON.stringify(escapeCard(text))) - 2;

/** The Markdown of cards. */
export const markdown: Markup = {
  double: (text) => escapeCard(escapeHtml(text)),
  triple: visible,
  link: (url, text) => `[${escapeCard(text)}](${url.replace(/[()\s]/g, encodeURIComponent)})`,
  size: cardBytes,
};

const escapeChat = (text: string) =>
  visible(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Team chat's own: without escaping, `<!channel>` in an event's text would notify the whole channel, so three braces escape too. */
export const chat: Markup = {
  double: escapeChat,
  triple: escapeChat,
  link: (url, text) => `<${escapeChat(url).replaceAll("|", "%7C")}|${escapeChat(text)}>`,
  size: (text) => escapeChat(text).length,
};

/**
 * JSON: within a string a value is escaped as its text, elsewhere it is a JSON value. Of one rendering: it remembers whether it is within
 * a string.
 */
export function jsonMarkup(): Markup {
  let isString = false;
  let isEscaped = false;
  const value = (of: Value | undefined) => {
    if (isString) return JSON.stringify(variableText(of)).slice(1, -1);
    return of instanceof Verbatim ? JSON.stringify(of.text) : JSON.stringify(of ?? null);
  };
  return {
    double: (text) => text,
    triple: (text) => text,
    link: (url) => url,
    value,
    wrote(piece) {
      for (const sign of piece) {
        if (isEscaped) isEscaped = false;
        else if (sign === '"') isString = !isString;
        else isEscaped = isString && sign === "\\";
      }
    },
  };
}
