import { afterAll, beforeAll, describe, expect } from "vitest";
import { raw } from "../support/clients.ts";
import { domPage, eventually } from "../support/dom-page.ts";
import { answering, httpReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { ordinaryDay, sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const receiver = await httpReceiver();
receiver.answer(answering(200, "got it"));
afterAll(() => receiver[Symbol.asyncDispose]());
const server = await testServer({ BELFRY_OUTBOUND_ALLOW: "127.0.0.1" });
const { sql } = server.database;
const tenant = await testTenant(sql);
const { onPage } = domPage(server);
beforeAll(() => ordinaryDay(server, tenant));

const stored = async (name: string) => {
  const [row] = await sql`
    select r.enabled, r.message, r.repeat, r.repeat_interval_sec::int as interval, r.delay_sec as delay, r.tags,
      array(select trigger_name from rule_triggers t where t.tenant_id = r.tenant_id and t.rule_name = r.name order by place)
        as triggers
    from rules r where r.tenant_id = ${tenant.id} and r.name = ${name}`;
  return row;
};

describe("the list of rules", () => {
  onPage("turns a rule on where it stands, takes that back, and is filtered", async (page) => {
    await page.logIn(tenant, "#/rules");
    await page.getByText("2 in all").waitFor();
    await page.getByRole("switch", { name: "Rule quiet" }).click();
    await page.getByText('The rule "quiet" is on.').waitFor();
    await page.getByRole("switch", { name: "Rule quiet", checked: true }).waitFor();
    expect(await stored("quiet")).toMatchObject({ enabled: true });
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("switch", { name: "Rule quiet", checked: false }).waitFor();
    expect(await stored("quiet")).toMatchObject({ enabled: false });
    await page.getByLabel("On or off").selectOption("On");
    await page.getByText("1 in all").waitFor();
    await page.getByLabel("Name", { exact: true }).fill("qui");
    await page.getByText("No rule matches these filters.").waitFor();
    page.goBack();
    await page.getByText("2 in all").waitFor();
  });

  onPage("shows a reader whether rules are on, and has no buttons for what the key may not do", async (page) => {
    const reader = { ...tenant, headers: await keyHeaders(sql, tenant.id, "USER", "read_only_user") };
    await page.logIn(reader, "#/rules");
    await page.getByRole("row").filter({ hasText: "quiet" }).getByText("Off").waitFor();
    expect(await page.getByRole("switch").count()).toBe(0);
    expect(await page.getByRole("link", { name: "New rule" }).count()).toBe(0);
    await page.getByRole("row").filter({ hasText: "quiet" }).getByText("quiet").click();
    const words = page.getByRole("region", { name: "The rule in words" });
    await words.getByText("It is off: it sends nothing.").waitFor();
    await page.getByRole("region", { name: "Rendered message" }).waitFor();
    for (const name of ["Save", "Delete…"]) expect(await page.getByRole("button", { name }).count()).toBe(0);
  });
});

describe("which alerts a rule notifies of", () => {
  onPage("is said by matchers, a row each, with what they would have matched, and is in the list", async (page) => {
    const own = await testTenant(sql);
    await ordinaryDay(server, own);
    await page.logIn(own, "#/rules/rules?new=1");
    const form = page.getByRole("form", { name: "New rule" });
    expect(await form.getByLabel("On", { exact: true }).isChecked()).toBe(true);
    expect(await form.getByLabel(/^Notify when it is acknowledged/).isChecked()).toBe(true);
    await form.getByLabel("Name", { exact: true }).fill("disks");
    await form.getByLabel("Label 1").focus();
    await form.getByLabel("Label 1").fill("alertname");
    await form.getByLabel("Comparison 1").selectOption("=~ matches");
    await form.getByLabel("Value 1").fill("disk(");
    await form.getByRole("alert").filter({ hasText: "missing closing )" }).waitFor();
    await form.getByLabel("Value 1").fill("(disk|link).+");
    await form.getByRole("button", { name: "Add a matcher" }).click();
    await form.getByLabel("Label 2").fill("team");
    await form.getByText("Without a value it means alerts that do not have this label.").waitFor();
    await form.getByLabel("Value 2").fill("storage");
    await form.getByText("1 event of the last day would have matched").click();
    await form.getByRole("list", { name: "Events that would have matched" }).getByText("disk full").waitFor();
    await page.getByText("The latest that the rule matches.").waitFor();
    await page.getByText("This event triggers the rule.").waitFor();
    await form.getByLabel("Destinations", { exact: true }).fill("on call");
    await form.getByRole("button", { name: "Create the rule" }).click();
    await page.getByRole("heading", { level: 1, name: "disks" }).waitFor();
    await page.goto("#/rules");
    const row = page.getByRole("row").filter({ hasText: "disks" });
    await row.getByText('alertname=~"(disk|link).+" and team="storage"').waitFor();
  });

  onPage("stays as it was written where it is only read, and can be written as text", async (page) => {
    const own = await testTenant(sql);
    await v1(server, own)("/v1/notification/rules", {
      name: "as text",
      matchers: ["severity=critical", '"a.b"!~"x\\\\d"'],
    });
    await page.logIn(own, "#/rules/rules/as%20text");
    const form = page.getByRole("form", { name: "Rule" });
    expect(await form.getByLabel("Value 2").inputValue()).toBe("x\\d");
    expect(form.getByRole("button", { name: "Discard changes" }).count()).toBe(0);
    await form.getByRole("button", { name: "Write as text" }).click();
    expect(await form.getByLabel("Matchers").inputValue()).toBe('severity=critical\n"a.b"!~"x\\\\d"');
    await form.getByLabel("Matchers").fill("team=db\nsite");
    expect(await form.getByRole("button", { name: "Show as rows" }).isDisabled()).toBe(true);
    await form.getByLabel("Matchers").fill("team=db\nsite!=a");
    await form.getByRole("button", { name: "Show as rows" }).click();
    await form.getByRole("button", { name: "Remove matcher 1" }).click();
    expect(await form.getByLabel("Label 1").inputValue()).toBe("site");
    await form.getByRole("button", { name: "Discard changes" }).click();
    expect(await form.getByLabel("Value 1").inputValue()).toBe("critical");
  });

  onPage("is open at the triggers where these alone say it", async (page) => {
    await page.logIn(tenant, "#/rules/rules/quiet");
    await page.getByRole("tab", { name: "By trigger (1)", selected: true }).waitFor();
    await page.getByRole("tab", { name: "By trigger (1)" }).press("ArrowLeft");
    await page.getByRole("tab", { name: "By labels", selected: true }).waitFor();
    await page.getByLabel("Label 1").waitFor();
  });

  onPage("opens at the trigger that was refused", async (page) => {
    await v1(server, tenant)("/v1/notification/triggers", {
      name: "soon deleted",
      type: { event: { query: { matchers: ["alertname=x"] } } },
    });
    await page.logIn(tenant, "#/rules/rules?new=1");
    const form = page.getByRole("form", { name: "New rule" });
    await form.getByLabel("Name", { exact: true }).fill("refused");
    await form.getByRole("tab", { name: "By trigger" }).click();
    await form.getByLabel("Triggers", { exact: true }).fill("soon deleted");
    await form.getByRole("tab", { name: "By labels" }).click();
    await call("/v1/notification/triggers/soon%20deleted", "DELETE");
    await form.getByRole("button", { name: "Create the rule" }).click();
    await form.getByRole("alert").filter({ hasText: "soon deleted" }).waitFor();
    await form.getByRole("tab", { name: "By trigger (1)", selected: true }).waitFor();
  });
});

describe("a rule", () => {
  onPage("groups what has the same labels, and says in words what is sent when", async (page) => {
    await page.logIn(tenant, "#/rules/rules/quiet");
    await page.getByLabel("Group what has the same labels").check();
    const words = page.getByRole("region", { name: "The rule in words" });
    const said = "First message 30 seconds after the first alert of one alertname, then at most every 5 minutes";
    await words.getByText(`${said}; no message when it is over, because updates are off.`).waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    const grouping = async () =>
      (await sql`select grouping from rules where tenant_id = ${tenant.id} and name = 'quiet'`)[0]?.grouping;
    await expect.poll(grouping).toEqual({ by: ["alertname"], waitSec: 30, intervalSec: 300 });
    await call("/v1/notification/rules/quiet", "PUT", { grouping: null });
  });

  onPage("is written, its message rendered for an event that its triggers match, changed, deleted", async (page) => {
    await page.logIn(tenant, "#/rules/rules?new=1");
    const form = page.getByRole("form", { name: "New rule" });
    await form.getByLabel("Name").fill("page storage");
    await form.getByRole("tab", { name: "By trigger" }).click();
    await form.getByLabel("Triggers", { exact: true }).fill("critical");
    await form.getByLabel("Destinations", { exact: true }).fill("on call");
    await form.getByLabel("Wait before the first notification", { exact: true }).fill("5");
    await form.getByLabel("Message").fill("");
    await form.getByText("Insert a variable").click();
    await form.getByLabel("Variables with").fill("event.summ");
    await form.getByRole("button", { name: "Insert event.summary" }).waitFor();
    await form.getByLabel("Variables with").press("Enter");
    await form.getByLabel("Message").type(" {{{event.body}}}");
    const says = page.getByRole("region", { name: "What it says" });
    await says.getByText("97 % of /var is used").first().waitFor();
    await says.getByText("This event triggers the rule.").waitFor();
    await says.getByText("Empty for this event: event.body").waitFor();
    await form.getByLabel("Notify again").selectOption("by the clock, while it is open");
    const words = page.getByRole("region", { name: "The rule in words" });
    await words
      .getByText(
        "When critical matches and still does after 5 minutes, on call is notified; again every hour while it is open; when it is acknowledged, changes in severity or is over.",
      )
      .waitFor();
    await form.getByRole("button", { name: "Create the rule" }).click();
    await page.getByRole("heading", { level: 1, name: "page storage" }).waitFor();
    expect(await stored("page storage")).toMatchObject({
      enabled: true,
      message: "{{{event.summary}}} {{{event.body}}}",
      repeat: true,
      interval: 3600,
      delay: 300,
      triggers: ["critical"],
    });
    const change = page.getByRole("form", { name: "Rule" });
    await change.getByLabel("Wait before the first notification", { exact: true }).fill("");
    await change.getByLabel("Notify again").selectOption("never");
    await change.getByLabel("Tags").fill("storage");
    await change.getByRole("button", { name: "Save" }).click();
    await page.getByText('The rule "page storage" was changed.').waitFor();
    expect(await stored("page storage")).toMatchObject({ repeat: false, delay: 0, tags: ["storage"] });
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    expect(await stored("page storage")).toMatchObject({ repeat: true, delay: 300, tags: [] });
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText('The rule "page storage" was deleted.').waitFor();
    expect(await stored("page storage")).toBeUndefined();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("heading", { level: 1, name: "page storage" }).waitFor();
    expect(await stored("page storage")).toMatchObject({ delay: 300 });
  });

  onPage("says at its fields what is wrong, and keeps what was typed over a reload", async (page) => {
    await page.logIn(tenant, "#/rules/rules?new=1");
    const form = page.getByRole("form", { name: "New rule" });
    await form.getByLabel("Name").fill("broken");
    await form.getByLabel("Message").fill("{{{event.name}}");
    await form.getByText(/The message is no Mustache template: unclosed tag/).waitFor();
    await form.getByLabel("Wait before the first notification", { exact: true }).fill("2000");
    await form.getByRole("button", { name: "Create the rule" }).click();
    await form.getByRole("alert").filter({ hasText: "86400" }).waitFor();
    await page.reload();
    expect(await form.getByLabel("Message").inputValue()).toBe("{{{event.name}}");
    await form.getByLabel("Wait before the first notification", { exact: true }).fill("1");
    await form.getByRole("button", { name: "Create the rule" }).click();
    await form.getByRole("alert").filter({ hasText: "is no Mustache template" }).waitFor();
    expect(await form.getByLabel("Message").getAttribute("aria-invalid")).toBe("true");
  });

  onPage("that another person has changed meanwhile shows both, and is saved over it on demand", async (page) => {
    await page.logIn(tenant, "#/rules/rules/quiet");
    const form = page.getByRole("form", { name: "Rule" });
    await form.getByLabel("Description").fill("mine");
    const put = { path: "/v1/notification/rules/quiet", body: { description: "theirs" } };
    await call(put.path, "PUT", put.body);
    await form.getByRole("button", { name: "Save" }).click();
    const conflict = page.getByRole("alert", { name: "Changed meanwhile" });
    await conflict.getByText("theirs").waitFor();
    await conflict.getByRole("button", { name: "Overwrite it with mine" }).click();
    await page.getByText('The rule "quiet" was changed.').waitFor();
    // To take it back would take back the other person's change as well.
    expect(await page.getByRole("button", { name: "Undo" }).count()).toBe(0);
    const [row] = await sql`select description from rules where tenant_id = ${tenant.id} and name = 'quiet'`;
    expect(row).toEqual({ description: "mine" });
  });

  onPage("shows its message for any event that is found by name, and why it kept silent about it", async (page) => {
    await sendEvents(server, tenant, [
      { name: "<img src=x onerror=alert(1)>", source: "web-1", summary: "{{{event.id}}}" },
    ]);
    await page.logIn(tenant, "#/rules/rules/quiet");
    const says = page.getByRole("region", { name: "What it says" });
    await says.getByText("This event triggers the rule.").waitFor();
    await says.getByLabel("or look for another").fill("onerror");
    await says.getByText("The latest of this name.").waitFor();
    await says.getByLabel("For the event").selectOption({ index: 0 });
    await says.getByText('trigger "critical" does not match').waitFor();
    // It is as it was written: nothing is wrong.
    expect(await says.locator('[data-tone="critical"]').count()).toBe(0);
    await says.getByText("What on call gets").click();
    await says.getByText(/"message": "<img src=x/).waitFor();
    await says.getByText("Why was I (not) notified?").click();
    await says.getByText("The rule is disabled, or names no destination.").waitFor();
  });
});

async function call(path: string, method: "PUT" | "DELETE", body?: object): Promise<void> {
  const headers = { ...tenant.headers, "content-type": "application/json" };
  const sent = { path, method, headers, ...(body && { body: [Buffer.from(JSON.stringify(body))] }) };
  const answer = await raw(server.target, "2", sent);
  expect(answer.status).toBe(200);
}

describe("the guide", () => {
  onPage("offers another way only where there is something to take", async (page) => {
    await page.logIn(await testTenant(sql), "#/rules/guide");
    await page.getByRole("form", { name: "New destination" }).waitFor();
    await page.settled();
    expect(await page.getByText("Or make one").count()).toBe(0);
    await page.getByRole("button", { name: "Log out" }).click();
    await page.logIn(tenant, "#/rules/guide");
    await page.getByLabel("Use an existing destination").waitFor();
    await page.getByRole("heading", { name: "Or make one" }).waitFor();
  });

  onPage("leads from nothing to a rule that notifies of a real event, with a test on the way", async (page) => {
    const empty = await testTenant(sql);
    await page.logIn(empty, "#/rules");
    await page.getByRole("link", { name: "Make the first one, step by step" }).click();
    await page.getByRole("heading", { level: 1, name: "Your first rule, in three steps" }).waitFor();
    const destination = page.getByRole("form", { name: "New destination" });
    await destination.getByLabel("Name", { exact: true }).fill("hook");
    await destination.getByLabel("Kind").selectOption({ label: "Webhook" });
    await destination.getByLabel("Address").fill(`${receiver.url}/hook`);
    await destination.getByRole("button", { name: "Create" }).click();
    const rule = page.getByRole("form", { name: "New rule" });
    await rule.getByLabel("Name", { exact: true }).fill("first");
    await rule.getByLabel("Label 1").fill("alertname");
    await rule.getByLabel("Value 1").fill("DiskFull");
    await rule.getByRole("button", { name: "Add a matcher" }).click();
    await rule.getByLabel("Label 2").fill("team");
    await rule.getByLabel("Value 2").fill("storage");
    await page.getByText("There are no events yet: this is a made-up one.").waitFor();
    await page
      .getByRole("region", { name: "Rendered message" })
      .getByText("ERROR: sample event on sample entity: A sample")
      .waitFor();
    await rule.getByRole("button", { name: "Create the rule" }).click();
    const test = page.getByRole("region", { name: "Test of the destination" });
    await test.getByRole("button", { name: "Send a test" }).click();
    await test.getByText("The receiver has taken it.").waitFor();
    await test.getByText("got it").waitFor();
    const event = page.getByRole("region", { name: "A real event" });
    await event.getByText("team=storage").waitFor();
    expect(await event.getByLabel("Name").inputValue()).toBe("DiskFull");
    await event.getByRole("button", { name: "Send the event" }).click();
    await expect
      .poll(
        async () => {
          const seen = await event.getByText("A notification was sent.").isVisible();
          if (!seen) await event.getByRole("button", { name: "Look again" }).click();
          return seen;
        },
        // An answer has to come before the next one is asked for.
        { interval: 500 },
      )
      .toBe(true);
    expect(receiver.received.map(({ path }) => path)).toEqual(["/hook", "/hook"]);
    expect(String(receiver.received[1]?.body)).toContain("Sent by hand from the console");
    await page.goBack();
    await page.getByText("Which alerts go there").waitFor();
  });

  onPage("goes back to a choice that was deleted since", async (page) => {
    await page.logIn(tenant, "#/rules/guide?destination=on%20call&rule=never");
    await page.getByRole("form", { name: "New rule" }).waitFor();
    await eventually(() => page.hash()).toMatch(/#\/rules\/guide\?destination=on(%20|\+)call$/);
  });
});
