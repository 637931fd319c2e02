import { test } from "vitest";
import { rounds } from "../support/cases.ts";
import { playNotificationsOf } from "./notifications.ts";
import { say, seedOf } from "./random.ts";

const seed = seedOf(11);

test(`every notification arrives although servers and PostgreSQL are killed, twice only what was under way (SEED=${seed})`, async () => {
  await playNotificationsOf({ seed, say }, { events: 200, kills: rounds(1) });
});

test("without faults each event arrives exactly once", async () => {
  await playNotificationsOf({ seed, say }, { events: 200, kills: 0 });
});
