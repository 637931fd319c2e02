import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { openRecord } from "../../src/rpc/context.ts";
import { requestMemory } from "../../src/rpc/request-memory.ts";

const nobody = {};
const refused = expect.objectContaining({ code: Code.ResourceExhausted });
const request = () => openRecord({ headers: {} }, "r-1");

test("bytes of all requests together are bounded; one that is alone may have more", () => {
  const held = requestMemory(100);
  const [one, two] = [request(), request()];
  held.check(nobody, "1000");
  held.reserve(one, 150);
  expect(() => held.check(nobody, "1")).toThrow(refused);
  expect(() => held.reserve(two, 1)).toThrow(refused);
  held.release(one, 120);
  held.check(nobody, "70");
  held.check(nobody, null);
  expect(() => held.check(nobody, "71")).toThrow(refused);
  held.reserve(two, 70);
  expect(() => held.reserve(two, 1)).toThrow(refused);
});

test("what has gone is gone once, also when it is reported twice, or more than came", () => {
  const held = requestMemory(100);
  const [one, two] = [request(), request()];
  held.reserve(one, 60);
  held.reserve(two, 40);
  held.release(one, 1000);
  held.release(one);
  expect(() => held.check(nobody, "61")).toThrow(refused);
  held.check(nobody, "60");
});

test("what comes for a request that is over is refused, and not counted", () => {
  const held = requestMemory(100);
  const late = request();
  held.reserve(late, 50);
  late.over = true;
  held.release(late);
  expect(() => held.reserve(late, 10)).toThrow(refused);
  held.reserve(request(), 100);
});
