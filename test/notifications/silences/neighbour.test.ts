import { expect, test } from "vitest";
import { silencePlace } from "./place.ts";

/** A text whose states are hard to foresee. */
function mixed(length: number, from: number): string {
  let state = from;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return "ab"[(state >> 16) % 2];
  }).join("");
}

test("a neighbour's notification goes out before twelve alerts of one tenant are compared with its twelve silences", async () => {
  const [hostile, neighbour] = [await silencePlace(), await silencePlace()];
  for (const each of [hostile, neighbour]) await each.rule("r");
  for (let i = 0; i < 12; i++)
    await hostile.silence({ matchers: ["source=web", `long=~(?:a|b)*a(?:a|b){200}[^ab${i}](?:a|b)*`] });
  const events = Array.from({ length: 12 }, (_, i) => ({
    name: `long ${i}`,
    timestamp: String(Date.now()),
    dimensions: { source: "web" },
    severity: "SEVERITY_ERROR",
    status: "STATUS_OPEN",
    metadataFields: { long: mixed(9000, i + 1) },
  }));
  await hostile.ok("POST", "/v1/data-receiver/events", { events });
  await neighbour.report("short");
  await neighbour.until("first SENT");
  expect(neighbour.arrived()).toHaveLength(1);
  expect(hostile.arrived().length).toBeLessThan(12);
  await hostile.until(...Array(12).fill("first SENT"));
  expect(hostile.arrived()).toHaveLength(12);
}, 300_000);
