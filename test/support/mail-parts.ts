/** Splits a mail into the headers and the decoded bodies of its parts. */
export function mailParts(raw: string): { headers: string[]; parts: string[] } {
  const [head = "", ...rest] = raw.split("\r\n\r\n");
  const headers = head.replace(/\r\n[ \t]+/g, " ").split("\r\n");
  const boundary = /boundary="([^"]+)"/.exec(head)?.[1] ?? "";
  const parts = rest
    .join("\r\n\r\n")
    .split(`--${boundary}`)
    .slice(1, -1)
    .map((part) => {
      const [own = "", ...lines] = part.replace(/^\r\n/, "").split("\r\n\r\n");
      const content = lines.join("\r\n\r\n");
      if (/base64/i.test(own)) return Buffer.from(content, "base64").toString("utf8");
      const quoted = /quoted-printable/i.test(own);
      return quoted ? Buffer.from(unquoted(content), "latin1").toString("utf8") : content;
    });
  return { headers, parts };
}

const unquoted = (text: string) =>
  text.replace(/=\r\n/g, "").replace(/=([\dA-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
/** Decodes the encoded words of a header. */
export const decodedWords = (header: string) =>
  header
    .replace(/\?=\s+=\?/g, "?==?")
    .replace(/=\?UTF-8\?B\?([^?]*)\?=/g, (_, word) => Buffer.from(word, "base64").toString("utf8"))
    .replace(/=\?UTF-8\?Q\?([^?]*)\?=/g, (_, word) =>
      Buffer.from(unquoted(word.replaceAll("_", " ")), "latin1").toString("utf8"),
    );
