import { expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { headers } = await testTenant(server.database.sql);
const call = v1(server.url, headers);
let made = 0;
const rule = (more: object) => call("POST", "/v1/notification/rules", { name: `r${++made}`, ...more });

test.each([
  ["1h30m", "5400"],
  ["90s", "90"],
  ["2000ms", "2"],
  ["1d", "86400"],
  ["500ms500ms", "1"],
  ["0s", "0"],
  ["30", "30"],
  [30, "30"],
  [3e1, "30"],
])("a delay of %j is %s seconds, and is answered as a number", async (delaySec, seconds) => {
  expect(await rule({ delaySec })).toMatchObject({ status: 200, body: { rule: { delaySec: seconds } } });
});

test.each(["1.5h", "-1h", "+1h", "1500ms", "1h 30m", "h", "1w", "", "1H", `${"9".repeat(15)}d`.repeat(200), "PT1H"])(
  "%j is no duration",
  async (delaySec) => {
    const { status, body } = await rule({ delaySec });
    expect([status, body.message]).toEqual([
      400,
      expect.stringMatching(/^delaySec: must be a number of seconds, or a duration in whole seconds such as "1h30m"/),
    ]);
  },
);

test("every number of seconds of rules and triggers is read as a duration, and its bounds name the unit", async () => {
  const grouping = { by: ["a"], waitSec: "1m", intervalSec: "5m" };
  expect(await rule({ repeatInterval: "4h", grouping })).toMatchObject({
    body: { rule: { repeatInterval: "14400", grouping: { waitSec: "60", intervalSec: "300" } } },
  });
  const trigger = (durationSec: string) =>
    call("POST", "/v1/notification/triggers", { name: "t", type: { staleData: { metricName: "m", durationSec } } });
  expect(await trigger("10m")).toMatchObject({
    body: { trigger: { type: { staleData: { durationSec: "600" } } } },
  });
  expect((await trigger("500d")).body.message).toMatch(/durationSec: .* 34560000 \(seconds\)/);
  expect((await rule({ grouping: { waitSec: "2h" } })).body.message).toMatch(/waitSec: .* 3600 \(seconds\)/);
});

test("JSON of the Connect protocol reads numbers alone", async () => {
  const { status } = await call("POST", "/belfry.notifications.v1.RuleService/CreateRule", {
    rule: { name: "connect", delaySec: "1h" },
  });
  expect(status).toBe(400);
});
