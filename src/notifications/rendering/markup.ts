import type { Escaping } from "./template.ts";

/** A way of writing: how values come into it, and how it writes a link. */
export interface Markup extends Escaping {
  link(url: string, text: string): string;
}

const plain = (text: string) => text;

// The ampersand first, which the others bring in.
const signs: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** A text as HTML shows it, in elements and in attributes. */
export const escapeHtml = (text: string) =>
  Object.entries(signs).reduce((escaped, [sign, name]) => escaped.replaceAll(sign, name), text);

/** What is no markup: two braces still escape for HTML, as Mustache says. */
export const plainText: Markup = { double: escapeHtml, triple: plain, link: plain };

export const html: Markup = {
  double: escapeHtml,
  triple: plain,
  link: (url, text) => `<a href="${escapeHtml(url)}">${escapeHtml(text)}</a>`,
};

/** Two braces make of a value a part of a path or a query, three leave it. */
export const address: Markup = {
  double: (text) => encodeURIComponent(text.toWellFormed()),
  triple: plain,
  link: plain,
};

/** A text that makes no link and no picture in the Markdown of cards. */
export const escapeCard = (text: string) => text.replace(/[[\]\\]/g, "\\$&");

/** The Markdown of cards. */
export const markdown: Markup = {
  double: (text) => escapeCard(escapeHtml(text)),
  triple: plain,
  link: (url, text) => `[${escapeCard(text)}](${url.replace(/[()\s]/g, encodeURIComponent)})`,
};

const escapeChat = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Team chat's own: without escaping, `<!channel>` in an event's text would notify the whole channel, so three braces escape too. */
export const chat: Markup = {
  double: escapeChat,
  triple: escapeChat,
  link: (url, text) => `<${escapeChat(url).replaceAll("|", "%7C")}|${escapeChat(text)}>`,
};
