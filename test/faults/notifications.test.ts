import { test } from "vitest";
import { playNotificationsOf } from "./notifications.ts";
import { seedOf } from "./random.ts";

const seed = seedOf(11);
const say = (line: string) => process.env.FAULTS_SEED && console.log(line);

test(`every notification arrives although servers and PostgreSQL are killed, twice only what was under way (FAULTS_SEED=${seed})`, async () => {
  await playNotificationsOf({ seed, say }, { events: 200, kills: 1 });
});

test("without faults each event arrives exactly once", async () => {
  await playNotificationsOf({ seed, say }, { events: 200, kills: 0 });
});
