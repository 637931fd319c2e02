import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { redacted } from "../../../src/notifications/kinds/redact.ts";
import { cases } from "../../support/cases.ts";

const secret = "s3cret.".repeat(1000);

test("a secret is hidden in all that is shown of a long answer, also where reading ends within it", () => {
  expect(redacted(`no: ${secret} ${"x".repeat(100_000)}`, [secret])).toMatch(/^no: \*{8} x+…$/);
  const shown = redacted(secret.repeat(10), [secret]);
  expect(shown).toMatch(/^\**$/);
  expect(redacted(`${"x".repeat(100)}${" ".repeat(8080)}abcdefghijklmnop`, ["abcdefghijklmnopqrstuv"])).toBe(
    `${"x".repeat(100)} ********`,
  );
});

test("an answer is not shown where looking for all secrets would take long", () => {
  const headers = Array.from({ length: 100 }, (_, i) => `Bearer ${i}-abcdefgh ${i}-ijklmnop ${i}-qrstuvwx`);
  expect(redacted("no: 42-abcdefgh", headers.slice(40, 45))).toBe("no: ********");
  const tokens = Array.from({ length: 10 }, (_, i) => headers.map((header) => `${header}${i}`).join(" "));
  expect(redacted("no: 42-abcdefgh", tokens)).toBe("not shown: the destination has too many secrets to hide");
});

test("looking for many long secrets that are alike takes little", () => {
  const alike = Array.from({ length: 240 }, (_, i) => `${"a".repeat(i % 48)}b${"a".repeat(8000)}`);
  const began = process.cpuUsage();
  expect(redacted("a".repeat(1_000_000), alike)).toMatch(/^\*{8}$|^a+…$/);
  const { user, system } = process.cpuUsage(began);
  expect((user + system) / 1000).toBeLessThan(1000);
});

test("what a token endpoint repeats of its form is hidden", () => {
  const form = new URLSearchParams({ client_id: "belfry", client_secret: "Summer2026!" }).toString();
  expect(form).toContain("Summer2026%21");
  expect(redacted(`HTTP 400: bad request: ${form}`, ["Summer2026!"])).toBe(
    "HTTP 400: bad request: client_id=belfry&client_secret=********",
  );
});

test("what Basic credentials in a header say is hidden, and what follows a scheme", () => {
  const header = `Basic ${Buffer.from("ada:open sesame").toString("base64")}`;
  expect(redacted(`no ada:open sesame, no open sesame, no ${header}`, [header])).toBe(
    "no ********, no ********, no ********",
  );
  expect(redacted("no token abcde", ["Bearer abcde"])).toBe("no token ********");
});

test("secrets of one to three characters are not looked for", () => {
  expect(redacted("abc", ["abc", "b", ""])).toBe("abc");
});

const lowerHex = (text: string) => text.replace(/%[\dA-F]{2}/g, (escape) => escape.toLowerCase());
const form = (text: string) => new URLSearchParams({ "": text }).toString().slice(1);
const json = (text: string) => JSON.stringify(text).slice(1, -1);
const htmlSigns: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Ways in which a receiver may write a text that it was sent. */
const encodings: Record<string, (text: string) => string> = {
  "as it is": (text) => text,
  "of a form": form,
  "of a form, in small letters": (text) => lowerHex(form(text)),
  "of an address": encodeURIComponent,
  "of an address, in small letters": (text) => lowerHex(encodeURIComponent(text)),
  "of JSON": json,
  "of JSON, with slashes escaped": (text) => json(text).replaceAll("/", "\\/"),
  "of HTML": (text) => text.replace(/[&<>"']/g, (sign) => htmlSigns[sign] as string),
  "in upper case digits": (text) => Buffer.from(text).toString("hex").toUpperCase(),
  "in hexadecimal digits": (text) => Buffer.from(text).toString("hex"),
};
const names = fc.constantFrom(...Object.keys(encodings));
const encoded = (text: string, name: string) => (encodings[name] as (text: string) => string)(text);
/** As answers are shown. */
const oneLine = (text: string) => text.replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();
const anyText = fc.string({ unit: "binary", maxLength: 40 });
const anySecret = fc
  .oneof(
    fc.string({ unit: "binary", minLength: 4, maxLength: 40 }),
    fc.string({ unit: "grapheme-ascii", minLength: 4, maxLength: 100 }),
    fc.string({ unit: fc.constantFrom(...'%+ &\\"/<a1=-_;#xu'), minLength: 4, maxLength: 30 }),
  )
  .filter((text) => oneLine(text).length >= 4 && !/^\**$/.test(oneLine(text)) && text.isWellFormed());
const runs = { numRuns: cases(3000) };

describe("no secret is in what is shown", () => {
  const expectHidden = (said: string, written: string, own: string) => {
    const shown = redacted(said, [own]);
    if (oneLine(written).length >= 4) expect(shown).not.toContain(oneLine(written));
    expect(shown).not.toContain(own);
  };

  test("however it was written, and whatever is around it", () => {
    fc.assert(
      fc.property(anySecret, names, anyText, anyText, (own, name, before, after) => {
        const written = encoded(own, name);
        expectHidden(`${before}${written}${after}`, written, own);
      }),
      runs,
    );
  });

  test("in base64 of what it is a part of", () => {
    fc.assert(
      fc.property(anySecret, anyText, anyText, fc.boolean(), (own, before, after, url) => {
        const [start, middle] = [Buffer.from(before), Buffer.from(own)];
        const text = Buffer.concat([start, middle, Buffer.from(after)]).toString(url ? "base64url" : "base64");
        const shown = redacted(`no: ${text}.`, [own]);
        // The digits that say nothing but the secret.
        const from = Math.ceil((start.length * 8) / 6);
        const to = Math.floor(((start.length + middle.length) * 8) / 6);
        expect(shown).not.toContain(text.slice(from, to));
      }),
      runs,
    );
  });
});
