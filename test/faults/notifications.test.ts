import { test } from "vitest";
import { sized } from "../support/part.ts";
import { playNotificationsOf } from "./notifications.ts";
import { seedOf } from "./random.ts";

const seed = seedOf(11);
const say = (line: string) => process.env.FAULTS_SEED && console.log(line);

test(`every notification arrives although servers and PostgreSQL are killed, twice only what was under way (FAULTS_SEED=${seed})`, async () => {
  await playNotificationsOf({ seed, say }, sized({ events: 200, kills: 1 }, { events: 2000, kills: 6 }));
}, 400_000);

test("without faults each event arrives exactly once", async () => {
  await playNotificationsOf({ seed, say }, { events: sized(200, 1000), kills: 0 });
}, 400_000);
