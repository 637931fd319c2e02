import type { Interceptor } from "@connectrpc/connect";
import { beforeAll, describe, expect } from "vitest";
import { raw } from "../support/clients.ts";
import { type DomPage, domPage } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { ordinaryDay } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;
const tenant = await testTenant(sql);
const { onPage } = domPage(server);
const call = v1(server, tenant);
const path = "/v1/modelcontext/maintwindows";

const berlin = "Europe/Berlin";
const now = Temporal.Now.zonedDateTimeISO(berlin);
const change = now.getTimeZoneTransition("next") as Temporal.ZonedDateTime;
const dayOf = (at: Temporal.ZonedDateTime) =>
  new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric" })
    .format(at.toPlainDate() as never)
    .replaceAll(",", "");

const clause = { filter: { field: "name", operation: "OP_STARTS_WITH", value: "web-" } };
const specification = (name: string, schedule: object, more: object = {}) => ({
  specification: { name, maintenanceState: 300, query: { clause }, schedule, ...more },
});
const hourMs = 3_600_000;

async function open(page: DomPage, name: string): Promise<void> {
  await page.getByRole("list").filter({ hasText: name }).getByRole("link", { name, exact: true }).click();
  await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
}

async function put(body: object): Promise<void> {
  const headers = { ...tenant.headers, "content-type": "application/json" };
  const sent = { path, method: "PUT", headers, body: [Buffer.from(JSON.stringify(body))] };
  expect((await raw(server.target, "2", sent)).status).toBe(200);
}

beforeAll(async () => {
  await ordinaryDay(server, tenant);
  const start = now.subtract({ days: 1 }).with({ hour: 22, minute: 0, second: 0, millisecond: 0 }).epochMilliseconds;
  const nightly = { start, duration: 4 * hourMs, timeZone: berlin, recurrence: { type: 3, interval: 1 } };
  await call(path, specification("nightly", nightly));
  const early = now.add({ days: 1 }).with({ hour: 2, minute: 30, second: 0, millisecond: 0 }).epochMilliseconds;
  await call(path, specification("early", { ...nightly, start: early, duration: hourMs }));
  await call(path, specification("by hand", { start: Date.now(), duration: hourMs }, { runMode: "MANUAL" }));
});

describe("the list of windows", () => {
  onPage("says of each what it does, when, and how much it holds; a part of the name finds one", async (page) => {
    await page.logIn(tenant, "#/windows");
    await page.getByText("3 windows").waitFor();
    const row = page.getByRole("row").filter({ hasText: "nightly" });
    await row.getByText("every day, 22:00–02:00, Europe/Berlin").waitFor();
    const weeks = page.getByRole("region", { name: "The weeks to come" });
    const { maintWindows } = await call(`${path}:list`, {});
    const { id } = maintWindows.find((each: { name: string }) => each.name === "nightly");
    const runsIn = async (count: number) => {
      const time_range = { start: Date.now(), end: Date.now() + count * 7 * 24 * hourMs };
      const { windows } = await call(`${path}:runs`, { ids: [id], time_range });
      return windows[0].runs.length;
    };
    await weeks.getByText(new RegExp(`^${await runsIn(5)} runs, the first 5: .*, 22:00 to `)).waitFor();
    await weeks.getByText("no run in this time").waitFor();
    await page.getByLabel("Weeks to show").selectOption("1");
    await weeks.getByText(new RegExp(`^${await runsIn(1)} runs, the first 5: .*, 22:00 to `)).waitFor();
    await page.getByLabel("Part of the name").fill("hand");
    await page.getByText("1 window", { exact: true }).waitFor();
    await page.getByLabel("Part of the name").fill("none of them");
    await page.getByText("No window has this in its name.").waitFor();
  });
});

describe("a change of the clock", () => {
  onPage("moves no run of a night; the page says what it does in UTC and to the run through it", async (page) => {
    await page.logIn(tenant, "#/windows");
    await open(page, "nightly");
    const clock = page.getByRole("region", { name: "When the clock is changed" });
    const forward = change.offsetNanoseconds > change.subtract({ seconds: 1 }).offsetNanoseconds;
    await clock.getByText(`On ${dayOf(change)} the clock is put ${forward ? "forward" : "back"} by 1 h`).waitFor();
    const sentence = (await clock.getByRole("paragraph").first().textContent()) ?? "";
    expect(sentence).toContain("Runs go on to begin at 22:00 by the clock; in UTC they begin 1 h");
    const rows = clock.getByRole("row");
    expect(await rows.nth(1).textContent()).toContain(`22:00 UTC${change.subtract({ seconds: 1 }).offset}`);
    expect(await rows.nth(2).textContent()).toContain(`${dayOf(change)}, 22:00 UTC${change.offset}`);
  });

  onPage("delays the run whose time it leaves out, that day alone", async (page) => {
    const forward = change.offsetNanoseconds > change.subtract({ seconds: 1 }).offsetNanoseconds;
    await page.logIn(tenant, "#/windows");
    await open(page, "early");
    const clock = page.getByRole("region", { name: "When the clock is changed" });
    await clock.getByText(/^On /).waitFor();
    const sentence = (await clock.getByRole("paragraph").first().textContent()) ?? "";
    if (!forward) return expect(sentence).toContain("02:30");
    expect(sentence).toContain(
      "02:30 does not exist on that day, so that run begins at 03:30; those after it begin at 02:30 again.",
    );
    const rows = clock.getByRole("row");
    expect(await rows.nth(2).textContent()).toContain(`${dayOf(change)}, 03:30 UTC${change.offset}`);
    expect(await rows.nth(3).textContent()).toContain("02:30");
  });
});

describe("a window", () => {
  onPage("is deleted after a question, and made again by undo; a reader has no buttons", async (page) => {
    await call(path, specification("short-lived", { start: Date.now() + hourMs, duration: hourMs }));
    await page.logIn(tenant, "#/windows");
    await open(page, "short-lived");
    await page.getByRole("button", { name: "Delete…" }).click();
    const question = page.getByRole("dialog", { name: 'Delete the window "short-lived"?' });
    await question.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("3 windows").waitFor();
    await page.getByRole("status", { name: "Done" }).getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    await page.reload();
    await page.getByText("4 windows").waitFor();
    const reader = { ...tenant, headers: await keyHeaders(sql, tenant.id, "USER", "read_only_user") };
    await page.getByRole("button", { name: "Log out" }).click();
    await page.logIn(reader, "#/windows");
    await open(page, "short-lived");
    for (const name of ["Start now", "Delete…"]) expect(page.getByRole("button", { name }).count()).toBe(0);
    expect(page.getByRole("link", { name: "Change" }).count()).toBe(0);
  });
});

describe("the form", () => {
  onPage("says at its field what is wrong, in the server's words, and keeps what was typed", async (page) => {
    await page.logIn(tenant, "#/windows/new");
    const form = page.getByRole("form", { name: "Maintenance window" });
    await form.getByLabel("Name").fill("far away");
    await form.getByLabel("Time zone").fill("Mars/Olympus");
    await form.getByLabel("Field", { exact: true }).fill("name");
    await form.getByLabel("Value", { exact: true }).fill("web-1");
    await page
      .getByRole("region", { name: "Preview" })
      .getByText(/must be the IANA name/)
      .waitFor();
    await form.getByRole("button", { name: "Create the window" }).click();
    await form.getByRole("alert").getByText("must be the IANA name of a time zone, such as Europe/Berlin").waitFor();
    await page.reload();
    expect(await form.getByLabel("Name").inputValue()).toBe("far away");
    await form.getByLabel("Time zone").fill("UTC");
    await form.getByRole("button", { name: "Create the window" }).click();
    await page.getByRole("heading", { level: 1, name: "far away" }).waitFor();
  });

  onPage("shows what another person has changed meanwhile, and writes neither without a word", async (page) => {
    const schedule = { start: Date.now() + hourMs, duration: hourMs };
    const { id } = await call(path, specification("contested", schedule));
    await page.logIn(tenant, `#/windows/${id}?edit=1`);
    const form = page.getByRole("form", { name: "Maintenance window" });
    await form.getByLabel("Owner").fill("ours");
    const { maintWindows } = await call(`${path}:search`, {
      search_input: { query: { clause: { withIds: { ids: [id] } } } },
    });
    const { etag: _, ...theirs } = maintWindows[0];
    await put({ id, specification: { ...theirs, description: "theirs" } });
    await form.getByRole("button", { name: "Save the window" }).click();
    const conflict = page.getByRole("alert", { name: "Changed meanwhile" });
    await conflict.getByText("theirs").waitFor();
    await conflict.getByRole("button", { name: "Overwrite it with mine" }).click();
    await page.getByRole("region", { name: "About" }).getByText("ours").waitFor();
    const done = page.getByRole("status", { name: "Done" });
    await done.getByText('The window "contested" was changed.').waitFor();
    // What was there before is the other person's too.
    expect(await done.getByRole("button", { name: "Undo" }).count()).toBe(0);
  });

  onPage("offers no way back over what another person changed between the save and the look at it", async (page) => {
    const daily = { start: Date.now() + hourMs, duration: hourMs, recurrence: { type: 3, interval: 1 } };
    const { id } = await call(path, specification("raced", daily));
    const done = page.getByRole("status", { name: "Done" });
    const stored = async () => {
      const search_input = { query: { clause: { withIds: { ids: [id] } } } };
      return (await call(`${path}:search`, { search_input })).maintWindows[0];
    };
    const save = async (owner: string) => {
      await page.getByRole("link", { name: "Change" }).click();
      const form = page.getByRole("form", { name: "Maintenance window" });
      await form.getByLabel("Owner").fill(owner);
      await form.getByLabel("Value", { exact: true }).fill(`web-${owner}`);
      await page.getByRole("button", { name: "Save the window" }).click();
      await done.getByText('The window "raced" was changed.').waitFor();
    };
    await page.logIn(tenant, `#/windows/${id}`);
    await save("first");
    await done.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    expect(await stored()).toMatchObject({ owner: "", query: { clause } });

    // The other person's change falls between the two calls of the page.
    page.passBy("ReplaceMaintenanceWindow", (next) => async (request) => {
      const answer = await next(request);
      const { etag: _, ...theirs } = await stored();
      await put({ id, specification: { ...theirs, description: "theirs" } });
      return answer;
    });
    await page.reload();
    await save("second");
    await done.getByText("What stands now is not what was sent, so it cannot be taken back.").waitFor();
    expect(await done.getByRole("button", { name: "Undo" }).count()).toBe(0);
    expect(await stored()).toMatchObject({ owner: "second", description: "theirs" });
  });

  onPage("takes a change back, in the session that made it alone", async (page) => {
    const schedule = { start: Date.now() + hourMs, duration: hourMs };
    const { id } = await call(path, specification("changed", schedule));
    const done = page.getByRole("status", { name: "Done" });
    const change = async (owner: string) => {
      await page.getByRole("link", { name: "Change" }).click();
      await page.getByRole("form", { name: "Maintenance window" }).getByLabel("Owner").fill(owner);
      await page.getByRole("button", { name: "Save the window" }).click();
      await done.getByText('The window "changed" was changed.').waitFor();
    };
    await page.logIn(tenant, `#/windows/${id}`);
    await change("first");
    await done.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    await change("second");
    await done.getByRole("button", { name: "Undo" }).waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByRole("heading", { name: "Log in" }).waitFor();
    await page.logIn(await testTenant(sql));
    await page.getByText("Nothing is open.").waitFor();
    expect(await done.getByRole("button", { name: "Undo" }).count()).toBe(0);
  });
});

describe("a window that runs", () => {
  onPage("takes its entities in before one's eyes, and names no start within its run as the next", async (page) => {
    const soon = { start: Date.now() + hourMs / 2, duration: hourMs, timeZone: berlin };
    const { id } = await call(path, specification("begun early", soon));
    // What a server says before its job has found the entities.
    const before: Interceptor = (next) => async (request) => {
      const answer = await next(request);
      if (!answer.stream) Object.assign(answer.message, { held: [], heldCount: 0n });
      return answer;
    };
    await page.logIn(tenant, `#/windows/${id}`);
    await page.getByRole("heading", { level: 1, name: "begun early" }).waitFor();
    await page.settled();
    // A change of the clock after its only run is not spoken of.
    expect(page.getByRole("region", { name: "When the clock is changed" }).count()).toBe(0);
    page.passBy("PreviewMaintenanceWindow", before);
    await page.getByRole("button", { name: "Start now" }).click();
    await page.getByRole("heading", { name: "The run has just begun and is taking its entities in" }).waitFor();
    await page.getByRole("heading", { name: "Held now: 2" }).waitFor();
    await page
      .getByRole("region", { name: "Now and next" })
      .getByText(/^none: that at .* makes this run longer$/)
      .waitFor();
    await page.getByRole("button", { name: "End now" }).click();
    await page.getByRole("heading", { name: "Held now: 0" }).waitFor();
  });

  onPage("is followed by the next run that begins after its end", async (page) => {
    const start = now.subtract({ days: 1 }).add({ minutes: 30 }).epochMilliseconds;
    const daily = { start, duration: hourMs, timeZone: berlin, recurrence: { type: 3, interval: 1 } };
    const { id } = await call(path, specification("begun before its time", daily));
    await call(`${path}:start`, { id });
    await page.logIn(tenant, `#/windows/${id}`);
    const next = page.getByRole("region", { name: "Now and next" });
    await next.getByText("Running").waitFor();
    const { windows } = await call(`${path}:runs`, { ids: [id] });
    const [, second] = windows[0].runs;
    const times = next.locator("time");
    await times.first().waitFor();
    const shown = await times.last().getAttribute("datetime");
    expect(shown).toBe(new Date(Number(second.start)).toISOString());
    await call(`${path}:stop`, { id });
  });
});
