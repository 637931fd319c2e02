import { describe, expect, test } from "vitest";
import {
  newDataKey,
  openSecret,
  proofOf,
  proves,
  sealSecret,
  unwrapDataKey,
  wrapDataKey,
} from "../../src/credentials/envelope.ts";

const tenant = "11111111-1111-7111-8111-111111111111";
const other = "22222222-2222-7222-8222-222222222222";
const owner = { kind: "credential", id: "c1" };

describe("a sealed secret", () => {
  const key = newDataKey();
  const sealed = sealSecret(key, tenant, owner, "token", "geheim😀");

  test("opens in its place", () => {
    expect(openSecret(key, tenant, owner, "token", sealed)).toBe("geheim😀");
    expect(openSecret(key, tenant, owner, "token", sealSecret(key, tenant, owner, "token", ""))).toBe("");
  });

  test("differs each time, and does not hold its text", () => {
    expect(sealSecret(key, tenant, owner, "token", "geheim😀")).not.toBe(sealed);
    expect(Buffer.from(sealed, "base64").toString()).not.toContain("geheim");
  });

  test.each([
    ["another tenant", () => openSecret(key, other, owner, "token", sealed)],
    ["another credential", () => openSecret(key, tenant, { ...owner, id: "c2" }, "token", sealed)],
    ["another kind of owner", () => openSecret(key, tenant, { ...owner, kind: "destination" }, "token", sealed)],
    ["another secret", () => openSecret(key, tenant, owner, "password", sealed)],
    ["a shifted boundary", () => openSecret(key, tenant, { ...owner, id: 'c1","tok' }, "en", sealed)],
    ["another key", () => openSecret(newDataKey(), tenant, owner, "token", sealed)],
  ])("does not open for %s", (_what, open) => {
    expect(open()).toBeUndefined();
  });

  test("does not open when any bit of it is another, or any of it is missing or added", () => {
    const bytes = Buffer.from(sealed, "base64");
    const open = (changed: Buffer) => openSecret(key, tenant, owner, "token", changed.toString("base64"));
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
      expect(open(changed), `bit ${bit}`).toBeUndefined();
    }
    for (let length = 0; length < bytes.length; length += 1) expect(open(bytes.subarray(0, length))).toBeUndefined();
    expect(open(Buffer.concat([bytes, Buffer.of(0)]))).toBeUndefined();
  });
});

describe("a wrapped data key", () => {
  const master = newDataKey();
  const dataKey = newDataKey();
  const wrapped = wrapDataKey(master, "m1", tenant, dataKey);

  test("unwraps for its tenant, by its master key, under that key's id", () => {
    expect(unwrapDataKey(master, "m1", tenant, wrapped)?.equals(dataKey)).toBe(true);
    expect(unwrapDataKey(master, "m2", tenant, wrapped)).toBeUndefined();
    expect(unwrapDataKey(newDataKey(), "m1", tenant, wrapped)).toBeUndefined();
    expect(unwrapDataKey(master, "m1", other, wrapped)).toBeUndefined();
  });

  test("is none of the other things that this key seals", () => {
    expect(proves(master, "m1", wrapped)).toBe(false);
    expect(unwrapDataKey(master, "m1", tenant, proofOf(master, "m1"))).toBeUndefined();
    expect(openSecret(master, tenant, owner, "token", wrapped.toString("base64"))).toBeUndefined();
  });
});

test("a proof holds for its key and id alone", () => {
  const master = newDataKey();
  expect(proves(master, "m1", proofOf(master, "m1"))).toBe(true);
  expect(proves(master, "m2", proofOf(master, "m1"))).toBe(false);
  expect(proves(newDataKey(), "m1", proofOf(master, "m1"))).toBe(false);
});
