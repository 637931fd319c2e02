import { expect, test } from "vitest";
import { redacted } from "../../src/notifications/redact.ts";

const secret = "s3cret-".repeat(1000);

test("a secret is hidden in all that is shown of a long answer, also where reading ends within it", () => {
  expect(redacted(`no: ${secret} ${"x".repeat(100_000)}`, [secret])).toMatch(/^no: \*{8} x+…$/);
  const shown = redacted(secret.repeat(10), [secret]);
  expect(shown).toMatch(/^\**$/);
});

test("an answer is not shown where looking for all secrets would take long", () => {
  const headers = Array.from({ length: 100 }, (_, i) => `Bearer ${i}-abcdefgh ${i}-ijklmnop ${i}-qrstuvwx`);
  expect(redacted("no: 42-abcdefgh", headers.slice(40, 45))).toBe("no: ********");
  const tokens = Array.from({ length: 10 }, (_, i) => headers.map((header) => `${header}${i}`).join(" "));
  expect(redacted("no: 42-abcdefgh", tokens)).toBe("not shown: the destination has too many secrets to hide");
});
