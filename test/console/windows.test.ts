import type { Page } from "playwright-core";
import { beforeAll, describe, expect } from "vitest";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { openConsole, ordinaryDay } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { sql } = server.database;
const tenant = await testTenant(sql);
const { onPage } = testBrowser();
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

async function open(page: Page, name: string): Promise<void> {
  await page.getByRole("list").filter({ hasText: name }).getByRole("link", { name, exact: true }).click();
  await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
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
    await openConsole(page, server, tenant, "#/windows");
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
  onPage(
    "moves no run of a night, and the page says what it does in UTC and to the run that goes through it",
    async (page) => {
      await openConsole(page, server, tenant, "#/windows");
      await open(page, "nightly");
      const clock = page.getByRole("region", { name: "When the clock is changed" });
      const forward = change.offsetNanoseconds > change.subtract({ seconds: 1 }).offsetNanoseconds;
      await clock.getByText(`On ${dayOf(change)} the clock is put ${forward ? "forward" : "back"} by 1 h`).waitFor();
      const sentence = (await clock.getByRole("paragraph").first().textContent()) ?? "";
      expect(sentence).toContain("Runs go on to begin at 22:00 by the clock; in UTC they begin 1 h");
      const rows = clock.getByRole("row");
      expect(await rows.nth(1).textContent()).toContain(`22:00 UTC${change.subtract({ seconds: 1 }).offset}`);
      expect(await rows.nth(2).textContent()).toContain(`${dayOf(change)}, 22:00 UTC${change.offset}`);
    },
  );

  onPage("delays the run whose time it leaves out, that day alone", async (page) => {
    const forward = change.offsetNanoseconds > change.subtract({ seconds: 1 }).offsetNanoseconds;
    await openConsole(page, server, tenant, "#/windows");
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
    await openConsole(page, server, tenant, "#/windows");
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
    const other = await page.context().browser()?.newContext({ ignoreHTTPSErrors: true });
    const second = await other?.newPage();
    if (second === undefined) throw new Error("no second page");
    await openConsole(second, server, reader, "#/windows");
    await open(second, "short-lived");
    for (const name of ["Start now", "Delete…"]) expect(await second.getByRole("button", { name }).count()).toBe(0);
    expect(await second.getByRole("link", { name: "Change" }).count()).toBe(0);
    await other?.close();
  });
});

describe("the form", () => {
  onPage("sets a window by keyboard alone, with the server's preview beside it", async (page) => {
    const own = await testTenant(sql);
    await ordinaryDay(server, own);
    await openConsole(page, server, own, "#/windows");
    await page.getByText("There are no maintenance windows.").waitFor();
    const { keyboard } = page;
    const tabTo = async (name: string) => {
      for (let steps = 0; steps < 80; steps++) {
        const found = await page.evaluate(
          `(() => { const e = document.activeElement; const l = [...(e?.labels ?? [])].map((x) => x.textContent).join(" "); return (e?.getAttribute("aria-label") ?? (l || e?.textContent) ?? "").trim(); })()`,
        );
        if (found === name) return;
        await keyboard.press("Tab");
      }
      throw new Error(`no way by keyboard to ${name}`);
    };
    await tabTo("New window");
    await keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "New window" }).waitFor();
    await tabTo("Name");
    await keyboard.type("patch night");
    await tabTo("Start of the first run");
    const day = change.subtract({ days: 1 });
    await keyboard.type([day.month, day.day, day.year].map((part) => String(part).padStart(2, "0")).join(""));
    await keyboard.press("Tab");
    await keyboard.type("1000PM");
    await tabTo("A run takes");
    await keyboard.press("Control+A");
    await keyboard.type("4");
    await tabTo("Time zone");
    await keyboard.press("Control+A");
    await keyboard.type(berlin);
    await tabTo("Repeats");
    await keyboard.type("By days");
    await tabTo("Field");
    await keyboard.type("name");
    await tabTo("Comparison");
    await keyboard.type("starts with");
    await tabTo("Value");
    await keyboard.type("web-");
    const preview = page.getByRole("region", { name: "Preview" });
    await preview.getByText("Runs every day, 22:00–02:00, Europe/Berlin.").waitFor();
    await preview.getByText(/^On .* Runs go on to begin at 22:00 by the clock/).waitFor();
    await preview.getByRole("heading", { name: /begins? now: 2$|began now: 2$/ }).waitFor();
    await tabTo("Create the window");
    await keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "patch night" }).waitFor();
    const { maintWindows } = await v1(server, own)(`${path}:list`, {});
    expect(maintWindows).toHaveLength(1);
    const local = day.with({ hour: 22, minute: 0, second: 0, millisecond: 0 });
    expect(maintWindows[0].schedule).toMatchObject({
      start: `${local.epochMilliseconds}`,
      duration: `${4 * hourMs}`,
      timeZone: berlin,
      recurrence: expect.objectContaining({ type: "3", interval: "1" }),
    });
  });

  onPage("says at its field what is wrong, in the server's words, and keeps what was typed", async (page) => {
    await openConsole(page, server, tenant, "#/windows/new");
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
    await openConsole(page, server, tenant, `#/windows/${id}?edit=1`);
    const form = page.getByRole("form", { name: "Maintenance window" });
    await form.getByLabel("Owner").fill("ours");
    const { maintWindows } = await call(`${path}:search`, {
      search_input: { query: { clause: { withIds: { ids: [id] } } } },
    });
    const { etag: _, ...theirs } = maintWindows[0];
    const put = { headers: { ...tenant.headers, "content-type": "application/json" }, method: "PUT" } as const;
    const answer = await page.request.fetch(server.url + path, {
      ...put,
      data: { id, specification: { ...theirs, description: "theirs" } },
    });
    expect(answer.status()).toBe(200);
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

  onPage(
    "offers no way back over what another person has changed between the save and the look at it",
    async (page) => {
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
      await openConsole(page, server, tenant, `#/windows/${id}`);
      await save("first");
      await done.getByRole("button", { name: "Undo" }).click();
      await page.getByText("Taken back.").waitFor();
      expect(await stored()).toMatchObject({ owner: "", query: { clause } });

      // The other person's change falls between the two calls of the page.
      await page.route("**/ReplaceMaintenanceWindow", async (route) => {
        const answer = await route.fetch();
        const { etag: _, ...theirs } = await stored();
        const data = { id, specification: { ...theirs, description: "theirs" } };
        const headers = { ...tenant.headers, "content-type": "application/json" };
        const put = await page.request.fetch(server.url + path, { method: "PUT", headers, data });
        expect(put.status()).toBe(200);
        await route.fulfill({ response: answer });
      });
      await page.reload();
      await save("second");
      await done.getByText("What stands now is not what was sent, so it cannot be taken back.").waitFor();
      expect(await done.getByRole("button", { name: "Undo" }).count()).toBe(0);
      expect(await stored()).toMatchObject({ owner: "second", description: "theirs" });
    },
  );

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
    await openConsole(page, server, tenant, `#/windows/${id}`);
    await change("first");
    await done.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    await change("second");
    await done.getByRole("button", { name: "Undo" }).waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByRole("heading", { name: "Log in" }).waitFor();
    await openConsole(page, server, await testTenant(sql));
    await page.getByText("Nothing is open.").waitFor();
    expect(await done.getByRole("button", { name: "Undo" }).count()).toBe(0);
  });
});
