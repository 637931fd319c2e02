import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { untilAborted } from "../../src/wire/call.ts";

// One call of a stream whose client had left as it began ended the process.
test("a handler that fails after its client has left leaves no rejection that ends the process", async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on("unhandledRejection", note);
  const gone = new Error("the client went away");
  let thrown = 0;
  const fails = async () => {
    await sleep(1);
    thrown += 1;
    throw new Error("too late");
  };
  await expect(untilAborted(fails(), { signal: AbortSignal.abort(gone) })).rejects.toBe(gone);
  const later = new AbortController();
  const outcome = untilAborted(fails(), later);
  later.abort(gone);
  await expect(outcome).rejects.toBe(gone);
  while (thrown < 2) await sleep(1);
  await nextTurn();
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});
