import { getComments } from "@bufbuild/protoplugin";

const item = /^(?:[-*] |\d+\. )/;

/**
 * The leading comment of a declaration as Markdown, without lines for linters. A line that continues a sentence joins the
 * line before it; paragraphs and lists stay apart.
 */
export function commentOf(desc: Parameters<typeof getComments>[0]): string {
  const lines = (getComments(desc).leading ?? "").split("\n").map((line) => line.trim());
  const text = lines
    .filter((line) => !line.startsWith("buf:lint:"))
    .map((line, i) => (line === "" ? "\n\n" : item.test(line) ? `\n${line}` : i === 0 ? line : ` ${line}`))
    .join("");
  return text
    .replace(/\n{3,}/g, "\n\n")
    .replace(/\n\n +/g, "\n\n")
    .trim();
}

/** The first sentence of a comment, without its full stop. */
export function summaryOf(comment: string): string {
  const [line = ""] = comment.split("\n");
  return (/^.*?[.](?=\s|$)/.exec(line)?.[0] ?? line).replace(/\.$/, "");
}

/** A member `description`, unless there is nothing to say. */
export function described(...sentences: string[]): { description?: string } {
  const text = sentences.filter((sentence) => sentence !== "").join(" ");
  return text === "" ? {} : { description: text };
}
