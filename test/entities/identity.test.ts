import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  entityId,
  eventIds,
  ID_BYTES,
  idText,
  JOINED_ID_BYTES,
  joinedIds,
  nameFromDimensions,
  parseId,
} from "../../src/entities/identity.ts";

const eventId = (owner: string, dimensions: Record<string, string>, name: string) =>
  eventIds(owner, dimensions, name).eventId;
const tenant = "018f0000-0000-7000-8000-000000000001";

describe("the identity of entities and events", () => {
  test("does not depend on the order of the dimensions", () => {
    expect(entityId(tenant, { a: "1", b: "2" })).toEqual(entityId(tenant, { b: "2", a: "1" }));
  });

  test("differs by tenant, key, value, name and kind, also when their texts run together alike", () => {
    const ids = [
      entityId(tenant, { a: "bc" }),
      entityId(tenant, { ab: "c" }),
      entityId(tenant, { a: "b", c: "" }),
      entityId(tenant.replace(/1$/, "2"), { a: "bc" }),
      eventId(tenant, { a: "bc" }, ""),
      eventId(tenant, { a: "b" }, "c"),
      eventId(tenant, { a: "bc" }, "c"),
    ].map(idText);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("is the documented one: SHA-256 over kind, tenant and length-prefixed texts, 20 bytes, URL-safe base64 with padding", () => {
    const prefixed = (text: string) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(Buffer.byteLength(text));
      return Buffer.concat([length, Buffer.from(text)]);
    };
    const bytes = Buffer.concat([
      Buffer.from([1]),
      Buffer.from(tenant.replaceAll("-", ""), "hex"),
      ...["host", "web-1", "zone", "ä"].map(prefixed),
    ]);
    const expected = createHash("sha256").update(bytes).digest().subarray(0, 20).toString("base64url");
    expect(idText(entityId(tenant, { zone: "ä", host: "web-1" }))).toBe(`${expected}=`);
    expect(expected).toHaveLength(27);
  });

  test("orders dimension keys by code point, not by UTF-16 unit", () => {
    expect(nameFromDimensions({ "\u{1F600}": "1", "\uFFFD": "2" })).toBe("\uFFFD=2,\u{1F600}=1");
  });

  test("a text that is no id is told apart, whatever is wrong with it", () => {
    const id = idText(entityId(tenant, { a: "1" }));
    expect(parseId(id)).toEqual(entityId(tenant, { a: "1" }));
    for (const wrong of [
      "",
      "x",
      id.slice(0, 27),
      `${id}=`,
      id.replace(/^./, "+"),
      `${id.slice(0, 26)}-=`.replace(/.-=$/, "B="),
    ]) {
      expect(parseId(wrong), wrong).toBeUndefined();
    }
  });

  test("many at once are the bytes of each that is an id, at its place", () => {
    const good = fc.uint8Array({ minLength: ID_BYTES, maxLength: ID_BYTES }).map((bytes) => idText(Buffer.from(bytes)));
    // One character of an id is another, or missing, or too much.
    const wrong = fc
      .tuple(
        good,
        fc.nat(28),
        fc.nat(1),
        fc.constantFrom("", "A", "B", "Q", "-", "_", "+", "/", "=", " ", "\n", "é", "😀"),
      )
      .map(([id, at, without, other]) => id.slice(0, at) + other + id.slice(at + without));
    fc.assert(
      fc.property(fc.array(fc.oneof({ weight: 9, arbitrary: good }, wrong), { maxLength: 12 }), (texts) => {
        const expected = texts.flatMap((text) => parseId(text) ?? []).map((id) => id.toString("hex"));
        const joined = joinedIds(texts);
        const places = Array.from({ length: joined.byteLength / JOINED_ID_BYTES }, (_, i) => i * JOINED_ID_BYTES);
        expect(places.map((at) => joined.toString("hex", at, at + ID_BYTES))).toEqual(expected);
      }),
      {
        numRuns: 2000,
        examples: [
          [["A".repeat(28)]],
          [[`${"A".repeat(26)}B=`]],
          [[`${"A".repeat(27)}=`, `${"A".repeat(26)}B=`]],
          [[`${"A".repeat(27)}=`, "A".repeat(28)]],
        ],
      },
    );
  });
});
