import { describe, expect } from "vitest";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const { onPage } = domPage(server);

const form = (page: DomPage) => page.getByRole("form", { name: "Maintenance window" });
const preview = (page: DomPage) => page.getByRole("region", { name: "Preview" });

/** Opens the form of a new window whose schedule alone is still to be written. */
async function newWindow(page: DomPage, timeZone: string, start: string): Promise<void> {
  await page.logIn(tenant, "#/windows/new");
  await form(page).getByLabel("Field", { exact: true }).fill("name");
  await form(page).getByLabel("Value", { exact: true }).fill("web-1");
  await form(page).getByLabel("Time zone").fill(timeZone);
  await form(page).getByLabel("Start of the first run").fill(start);
}

/** The day of a zone's next change to summer time. */
function dayOfSummerTime(timeZone: string): string {
  let at = Temporal.Now.zonedDateTimeISO(timeZone);
  for (;;) {
    const next = at.getTimeZoneTransition("next");
    if (next === null) throw new Error(`the clock of ${timeZone} is not changed any more`);
    if (next.offsetNanoseconds > next.subtract({ seconds: 1 }).offsetNanoseconds) return next.toPlainDate().toString();
    at = next;
  }
}

describe("what most leave as it is", () => {
  const more = async (page: DomPage) => (await page.getByText("More", { exact: true }).element()).parentElement;

  onPage("stands after the name, the entities and the times, and is folded in a new window", async (page) => {
    await newWindow(page, "UTC", "2090-01-01T10:00");
    const fold = await more(page);
    expect(fold?.hasAttribute("open")).toBe(false);
    const labels = (within: Awaited<ReturnType<typeof more>>) =>
      Array.from(within?.querySelectorAll("label") ?? [], ({ textContent }) => textContent);
    const folded = labels(fold);
    const first = labels(await form(page).element()).filter((label) => !folded.includes(label));
    expect(first[0]).toBe("Name");
    expect(first).toEqual(expect.arrayContaining(["Start of the first run", "A run takes", "Time zone", "Repeats"]));
    expect(folded).toEqual(expect.arrayContaining(["Description", "Owner", "Status", "It starts", "Runs to skip"]));
    await form(page).getByLabel("Runs to skip").fill("1");
    await page.reload();
    await eventually(async () => (await more(page))?.hasAttribute("open")).toBe(true);
  });

  onPage("is open where a window says something in it", async (page) => {
    const write = async (name: string, part: object) => {
      const schedule = { start: Date.now() + 3_600_000, duration: 3_600_000, timeZone: "UTC" };
      const clause = { filter: { field: "name", operation: "OP_EQUALS", value: "web-1" } };
      const specification = { name, maintenanceState: 300, query: { clause }, schedule, ...part };
      const { id } = await v1(server, tenant)("/v1/modelcontext/maintwindows", { specification });
      await page.goto(`#/windows/${encodeURIComponent(id)}?edit=1`);
      await page.getByRole("heading", { level: 1, name: `Change ${name}` }).waitFor();
      await form(page).waitFor();
      return (await more(page))?.hasAttribute("open");
    };
    await page.logIn(tenant);
    expect(await write("plain", {})).toBe(false);
    expect(await write("of another state", { maintenanceState: 400 })).toBe(true);
    expect(await write("owned", { owner: "storage" })).toBe(true);
  });

  onPage("is opened by an error at a field in it, beside one above", async (page) => {
    await newWindow(page, "UTC", "2090-01-01T10:00");
    await form(page).getByLabel("Name", { exact: true }).fill("n".repeat(256));
    await form(page).getByLabel("Owner").fill("o".repeat(256));
    const fold = await more(page);
    expect(fold?.hasAttribute("open")).toBe(false);
    await form(page).getByRole("button", { name: "Create the window" }).click();
    await form(page).getByRole("alert").first().waitFor();
    await eventually(() => fold?.hasAttribute("open")).toBe(true);
    await form(page).getByText("Refused: see “Name” and “Owner”.").waitFor();
  });
});

describe("a way to repeat that is chosen", () => {
  const year = Temporal.Now.plainDateISO().year + 1;
  const weekday = new Intl.DateTimeFormat("en-GB", { weekday: "long", timeZone: "UTC" });
  const day = weekday.format(new Date(`${year}-08-17T00:00Z`));

  for (const [choice, words] of [
    ["By weeks", `Runs every ${day}, 21:40–23:40, Europe/Berlin.`],
    ["By months", "Runs on the 17th of every month, 21:40–23:40, Europe/Berlin."],
    ["By years", "Runs on the 17th of August, every year, 21:40–23:40, Europe/Berlin."],
    ["As in cron", "Runs by cron: minutes 40, hours 21, for 2 h, Europe/Berlin."],
  ] as const)
    onPage(`begins with a run at the start: ${choice}`, async (page) => {
      await newWindow(page, "Europe/Berlin", `${year}-08-17T21:40`);
      await form(page).getByLabel("Repeats").selectOption({ label: choice });
      await preview(page).getByText(words).waitFor();
      const runs = preview(page).getByRole("table", { name: "The next runs" });
      await runs
        .getByRole("cell")
        .getByText(/17 Aug \d+, 21:40/)
        .first()
        .waitFor();
      expect(
        preview(page)
          .getByText(/The preview waits/)
          .count(),
      ).toBe(0);
    });
});

describe("the preview of a window that cannot run yet", () => {
  onPage("names the form's fields, and says no times by another clock", async (page) => {
    await newWindow(page, "Mars/Olympus", "2090-01-01T10:00");
    await form(page).getByLabel("Repeats").selectOption({ label: "By weeks" });
    for (const weekday of form(page).getByRole("group", { name: "Days of the week" }).getByRole("checkbox").all())
      if (await weekday.isChecked()) await weekday.uncheck();
    await preview(page).getByText("Time zone: must be the IANA name of a time zone, such as Europe/Berlin").waitFor();
    await preview(page)
      .getByText(/^Days of the week: must be days of the week, as in MON,WED/)
      .waitFor();
    expect(
      preview(page)
        .getByText(/^Runs /)
        .count(),
    ).toBe(0);
    expect(await preview(page).textContent()).not.toMatch(/schedule\./);
    await form(page).getByLabel("Time zone").fill("UTC");
    await eventually(() =>
      preview(page)
        .getByText(/^Time zone: /)
        .count(),
    ).toBe(0);
  });
});

describe("the change of the clock", () => {
  const change = (page: DomPage) => preview(page).getByText("The clock of UTC is not changed.");

  onPage("is no matter of a window that runs once, where the clock is never changed", async (page) => {
    await newWindow(page, "UTC", `${Temporal.Now.plainDateISO().year + 1}-01-05T10:00`);
    await form(page).getByLabel("Repeats").selectOption({ label: "By days" });
    await change(page).waitFor();
    await form(page).getByLabel("Repeats").selectOption({ label: "Once" });
    await change(page).waitFor({ state: "detached" });
    await preview(page).getByRole("table", { name: "The next runs" }).waitFor();
  });
});

describe("a first run at a time that the clock leaves out", () => {
  onPage("says at the field when it begins, and that later runs begin then, too", async (page) => {
    const timeZone = "America/New_York";
    const start = form(page).getByRole("status");
    await newWindow(page, timeZone, `${dayOfSummerTime(timeZone)}T02:30`);
    await start
      .getByText(/02:30 does not exist on that day.* begins at 03:30, and later runs keep that time/)
      .waitFor();
    await form(page).getByLabel("Repeats").selectOption({ label: "By days" });
    await preview(page).getByText("Runs every day, 03:30–05:30, America/New_York.").waitFor();
    await form(page).getByLabel("Time zone").fill("UTC");
    await start.getByText(/does not exist/).waitFor({ state: "detached" });
  });
});
