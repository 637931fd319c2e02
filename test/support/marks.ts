import { randomInt } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { Db } from "../../src/db/connect.ts";

/** Texts that stand for secrets in one run, and a way to find them again in whatever form they were written. */
export interface Marks {
  /** A new text; `number` makes it one of digits alone. */
  next(number?: "number"): string;
  /** What surrounds each mark that a text or some bytes hold, also in hexadecimal or base64. */
  within(text: string | Buffer): string[];
}

export function newMarks(): Marks {
  // No character three times in a row: marks are passwords too.
  const random = (alphabet: string, length: number) => {
    let text = "";
    while (text.length < length) {
      const next = alphabet[randomInt(alphabet.length)] as string;
      if (!text.endsWith(next)) text += next;
    }
    return text;
  };
  const stem = `Zq7${random("bcdfghjkmnpqrstvwxz", 12)}`;
  const digits = `9${random("0123456789", 14)}`;
  const needles = [stem, digits].flatMap((text) => {
    const bytes = Buffer.from(text);
    const hex = bytes.toString("hex");
    // At each place within groups of three bytes, without the characters that its neighbours share.
    const base64 = [0, 1, 2].map((offset) =>
      Buffer.concat([Buffer.alloc(offset), bytes])
        .toString("base64")
        .slice(offset === 0 ? 0 : 4, -4),
    );
    const url = base64.map((each) => each.replaceAll("+", "-").replaceAll("/", "_"));
    return [...new Set([text, hex, hex.toUpperCase(), ...base64, ...url])];
  });
  let made = 0;
  return {
    next(number) {
      made += 1;
      return number === undefined ? `${stem}x${made}y` : `${digits}${made}`;
    },
    within(text) {
      const bytes = Buffer.isBuffer(text) ? text : Buffer.from(text);
      return needles.flatMap((needle) => {
        const at = bytes.indexOf(needle);
        return at < 0 ? [] : [bytes.subarray(Math.max(0, at - 60), at + 60).toString("latin1")];
      });
    },
  };
}

/** Every row of every table, as text and as JSON, each after its table's name. */
export async function everyRow(db: Db): Promise<string[]> {
  const tables = await db<{ name: string }[]>`
    select table_name as name from information_schema.tables where table_schema = 'public' order by 1`;
  const rows = await Promise.all(
    tables.map(async ({ name }) => {
      const found = await db<{ text: string }[]>`
        select t::text || to_jsonb(t)::text as text from ${db(name)} t`;
      return found.map(({ text }) => `${name}: ${text}`);
    }),
  );
  return rows.flat();
}

/** Every file below a directory with what it holds. */
export function* everyFile(dir: string): Iterable<{ path: string; bytes: Buffer }> {
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    yield { path: relative(dir, path), bytes: readFileSync(path) };
  }
}
