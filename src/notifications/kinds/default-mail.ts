import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import type { Notification } from "../subject/notification.ts";
import { escapeHtml, visible } from "../templates/markup.ts";
import { title } from "../templates/titles.ts";
import { severityName } from "../templates/variables.ts";
import { allFactsOf, bodyOf, linksOf, occasionText } from "./default-texts.ts";

const grey = "#5f6b7a";
const green = "#1a7f4b";
const colours: Readonly<Record<number, string>> = {
  [Severity.CRITICAL]: "#b3261e",
  [Severity.ERROR]: "#c4541a",
  [Severity.WARNING]: "#9a6b00",
};

/** The mail of a destination without a body, as text. */
export function textMail(notification: Notification, message: string, publicUrl: string): string {
  const lines = allFactsOf(notification).map(({ title, value }) => `${title}: ${value}`);
  const parts = [
    notification.clear ? "" : occasionText(notification),
    message,
    visible(bodyOf(notification)),
    visible(lines.join("\n")),
    linksOf(notification, publicUrl)
      .map(({ text, url }) => `${text}: ${url}`)
      .join("\n"),
  ];
  return `${parts.filter((part) => part.trim() !== "").join("\n\n")}\n`;
}

function banner({ clear, event }: Notification): { colour: string; word: string } {
  if (clear) return { colour: green, word: "RESOLVED" };
  if (event === undefined) return { colour: colours[Severity.ERROR] as string, word: "ALERT" };
  return { colour: colours[event.severity] ?? grey, word: severityName(event.severity) };
}

/** The same as HTML, with all of its style in place: mail programs keep nothing else. */
export function htmlMail(notification: Notification, message: string, publicUrl: string): string {
  const { colour, word } = banner(notification);
  const links = linksOf(notification, publicUrl).map(
    ({ text: word, url }) => `<a href="${escapeHtml(url)}" style="color:#0b5cad">${word}</a>`,
  );
  const occasion = occasionText(notification);
  const text = (body: string) => escapeHtml(body).replaceAll("\n", "<br>");
  const rows = allFactsOf(notification).map(
    ({ title: name, value }) =>
      `<tr><td style="padding:3px 16px 3px 0;min-width:84px;color:${grey};vertical-align:top">${escapeHtml(name)}</td>` +
      `<td style="padding:3px 0">${text(value)}</td></tr>`,
  );
  const paragraph = (body: string, below = 16) =>
    body.trim() === "" ? "" : `<p style="margin:0 0 ${below}px">${text(body)}</p>`;
  // The title stands above: what a rule without a message says of a group are the lines beneath it.
  const [, ...members] = message.split("\n");
  const said =
    notification.rule.message === ""
      ? members.map((line, i) => paragraph(line, i < members.length - 1 ? 6 : 16)).join("")
      : paragraph(message);
  return [
    '<!DOCTYPE html><html><head><meta charset="utf-8"></head>',
    '<body style="margin:0;padding:24px;background:#f4f5f7;font:15px/1.5 -apple-system,Segoe UI,Roboto,Arial,sans-serif;color:#1d2530">',
    '<div style="max-width:600px;margin:0 auto;background:#fff;border-radius:6px;overflow:hidden;overflow-wrap:anywhere">',
    `<div style="background:${colour};color:#fff;padding:16px 24px">`,
    `<div style="font-size:12px;letter-spacing:1px">${escapeHtml(word)}${occasion && !notification.clear ? ` · ${escapeHtml(occasion)}` : ""}</div>`,
    `<div style="font-size:20px;font-weight:600">${escapeHtml(title(notification))}</div></div>`,
    `<div style="padding:20px 24px">${said}${paragraph(bodyOf(notification))}`,
    `<table style="border-collapse:collapse;font-size:14px">${rows.join("")}</table>`,
    links.length === 0 ? "" : `<p style="margin:20px 0 0">${links.join(" &middot; ")}</p>`,
    "</div></div></body></html>",
  ].join("\n");
}
