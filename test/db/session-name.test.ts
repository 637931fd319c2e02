import { expect, test } from "vitest";
import { formatsNumber, isOfBefore, sessionName } from "../../src/db/session-name.ts";

test("a connection's name says which formats its process reads, and then what it is for", () => {
  expect([sessionName(), sessionName("sending")]).toEqual(["belfry 2", "belfry 2 sending"]);
});

test.each(["belfry", "belfry sending", "belfry listener", "belfry 1", "belfry 1 sending", "belfry 0", "belfry 2x"])(
  "%j is of a process of before",
  (name) => expect(isOfBefore(name)).toBe(true),
);

test.each([
  sessionName(),
  sessionName("sending"),
  `belfry ${formatsNumber + 1} sending`,
  "belfry 10",
  "",
  "psql",
  "citus_internal gpid=10000000041",
  "belfry-backup",
  "belfry_exporter",
  "the belfry sending",
])("%j is not", (name) => expect(isOfBefore(name)).toBe(false));
