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

test("an alert waits while its tenant owes for comparisons; a neighbour's goes out meanwhile", async () => {
  const [hostile, neighbour] = [await silencePlace(), await silencePlace()];
  for (const each of [hostile, neighbour]) await each.rule("r");
  // Twelve comparisons of three million steps each: eight seconds of what a tenant may take, in which a busy machine sends, too.
  for (let i = 0; i < 12; i++)
    await hostile.silence({ matchers: ["source=web", `long=~(?:a|b)*a(?:a|b){200}[^ab${i}](?:a|b)*`] });
  await hostile.report("long 1", { metadataFields: { long: mixed(4000, 1) } });
  await hostile.until("first SENT");
  const second = hostile.report("long 2");
  await neighbour.report("short");
  await neighbour.until("first SENT");
  expect(neighbour.arrived()).toHaveLength(1);
  expect(hostile.arrived()).toHaveLength(1);
  await second;
  await hostile.until("first SENT", "first SENT");
});
