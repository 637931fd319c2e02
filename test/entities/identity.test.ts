import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  entityId,
  eventIds,
  ID_BYTES,
  idText,
  nameFromDimensions,
  parseId,
  parseIds,
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
    const digest = (kind: number, ...texts: string[]) => {
      const bytes = [Buffer.from([kind]), Buffer.from(tenant.replaceAll("-", ""), "hex"), ...texts.map(prefixed)];
      return createHash("sha256").update(Buffer.concat(bytes)).digest().subarray(0, 20).toString("base64url");
    };
    expect(digest(1)).toHaveLength(27);
    for (const zone of ["ä", "", "ä".repeat(6000), "\u{1F600}".repeat(30_000), "b"]) {
      const dimensions = { zone, host: "web-1" };
      const entity = `${digest(1, "host", "web-1", "zone", zone)}=`;
      expect(idText(entityId(tenant, dimensions))).toBe(entity);
      const ids = eventIds(tenant, dimensions, "down", "key");
      expect(idText(ids.entityId)).toBe(entity);
      expect(idText(ids.eventId)).toBe(`${digest(2, "host", "web-1", "zone", zone, "down", "key")}=`);
    }
  });

  test("without a key is that of 0.1.0, and every key makes another event", () => {
    const dimensions = { zone: "eu", source: "web-1" };
    expect(idText(entityId(tenant, dimensions))).toBe("Co_IO5WWngpJGmTZe4gQP74y95g=");
    expect(idText(eventId(tenant, dimensions, "disk full"))).toBe("qHBcYXRKZMs9DSJDRQsnuf98wQY=");
    const keys = ["", "/var", "/home", "disk full"];
    const ids = keys.map((key) => idText(eventIds(tenant, dimensions, "disk full", key).eventId));
    expect(ids[0]).toBe("qHBcYXRKZMs9DSJDRQsnuf98wQY=");
    expect(new Set(ids).size).toBe(keys.length);
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

  test("of many are read each once, without texts that cannot be one", () => {
    const [a, b] = [Buffer.alloc(ID_BYTES, 1), Buffer.alloc(ID_BYTES, 2)].map(idText) as [string, string];
    const texts = [a, "", b, `${"A".repeat(26)}B=`, a, b.slice(1), `${b}=`, "A".repeat(28)];
    expect(parseIds(texts).map(idText)).toEqual([a, b]);
  });
});
