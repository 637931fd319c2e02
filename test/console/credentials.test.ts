import { getOption } from "@bufbuild/protobuf";
import { describe, expect } from "vitest";
import { CredentialInfoSchema } from "#gen/belfry/credentials/v1/credential_pb.ts";
import { field as fieldRules } from "#gen/buf/validate/validate_pb.ts";
import { raw } from "../support/clients.ts";
import type { Place } from "../support/dom-locator.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, type TestTenant, testTenant } from "../support/tenant.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;
const { onPage } = domPage(server);

const secret = "a-s3cret-of-another-system";

async function stored(tenant: TestTenant) {
  const answer = await raw(server.target, "2", { method: "GET", path: "/v1/credentials", headers: tenant.headers });
  const { credentials } = JSON.parse(answer.body.toString());
  return credentials as { id: string; info: Record<string, unknown> }[];
}

const formOf = (page: DomPage, name = "New credential") => page.getByRole("form", { name, exact: true });
const secretsOf = (form: Place) => form.getByRole("group", { name: "Secrets" }).locator("input");

describe("credentials", () => {
  onPage("of all types of the API are made, and their secrets are nowhere afterwards", async (page) => {
    const tenant = await testTenant(sql);
    await page.logIn(tenant, "#/settings/credentials");
    await page.getByText("There are no credentials yet.").waitFor();
    await page.getByRole("link", { name: "New credential" }).click();
    const options = formOf(page).getByLabel("Kind").locator("option");
    await options.first().waitFor({ state: "attached" });
    const words = await options.allTextContents();
    for (const word of words) {
      await page.goto("#/settings/credentials?new=teamChat");
      const form = formOf(page);
      await form.getByLabel("Name", { exact: true }).fill(word);
      await form.getByLabel("Kind").selectOption({ label: word });
      for (const input of await secretsOf(form).all()) await input.fill(secret);
      expect(JSON.stringify(page.sessionStored())).not.toContain(secret);
      await form.getByRole("button", { name: "Create" }).click();
      await page.getByRole("heading", { level: 1, name: word }).waitFor();
      await formOf(page, "Credential").waitFor();
      expect(await page.held()).not.toContain(secret);
    }
    const rules = getOption(CredentialInfoSchema.field.type, fieldRules).type;
    const known = rules.case === "string" ? rules.value.in : [];
    expect((await stored(tenant)).map(({ info }) => info.type).sort()).toEqual([...known].sort());
    await page.getByRole("link", { name: "Credentials" }).first().click();
    await page.getByText(`${words.length} in all`).waitFor();
  });

  onPage("serve destinations: what uses one is named, and keeps it from being deleted", async (page) => {
    const tenant = await testTenant(sql);
    await v1(server, tenant)("/v1/credentials", {
      info: { name: "chat", type: "teamChat" },
      secrets: { token: secret },
    });
    await v1(server, tenant)("/v1/credentials", {
      info: { name: "pager", type: "incidentPaging" },
      secrets: { routingKey: secret },
    });
    await page.logIn(tenant, "#/rules/destinations?new=1");
    const destination = page.getByRole("form", { name: "New destination" });
    await destination.getByLabel("Name", { exact: true }).fill("team");
    await destination.getByLabel("Kind").selectOption({ label: "Slack (teamChat)" });
    await destination.getByLabel("Channel").fill("ops");
    const choice = destination.getByLabel("Token from");
    await choice.locator("option", { hasText: "chat" }).waitFor({ state: "attached" });
    expect(await choice.locator("option").allTextContents()).toEqual(["the token below", "chat"]);
    await choice.selectOption({ label: "chat" });
    await destination.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { level: 1, name: "team" }).waitFor();

    await page.goto("#/settings/credentials");
    await page.getByRole("row").filter({ hasText: "chat" }).getByText("team").waitFor();
    await page.getByRole("grid", { name: "Credentials" }).press("Enter");
    await page.getByRole("button", { name: "Delete…" }).click();
    const question = page.getByRole("dialog", { name: 'Delete the credential "chat"?' });
    await question.getByRole("button", { name: "Delete" }).click();
    await question.getByText(/is used by destination "team"/).waitFor();
    await question.getByRole("link", { name: "team" }).click();
    await page.getByRole("heading", { level: 1, name: "team" }).waitFor();
  });

  onPage("keep their secrets while the rest is changed; other hosts ask for them again", async (page) => {
    const tenant = await testTenant(sql);
    const info = { name: "desk", type: "usernamePassword", allowedHosts: ["acme.example.com"] };
    const made = await v1(server, tenant)("/v1/credentials", { info, secrets: { username: "u", password: secret } });
    await page.logIn(tenant, `#/settings/credentials/${made.info.id}`);
    const form = formOf(page, "Credential");
    const done = page.getByRole("status", { name: "Done" });
    await form.getByLabel("Description").fill("of the desk");
    await form.getByRole("button", { name: "Save" }).click();
    await done.getByText('Credential "desk" was changed.').waitFor();
    expect((await stored(tenant))[0]?.info.description).toBe("of the desk");
    await page.getByRole("button", { name: "Undo" }).click();
    await eventually(() => form.getByLabel("Description").inputValue()).toBe("");
    await form.getByLabel("May be sent to", { exact: true }).fill("other.example.com");
    await form.getByLabel("May be sent to", { exact: true }).press("Enter");
    await form.getByRole("button", { name: "Save" }).click();
    await form.getByText("must be given again: allowedHosts names hosts that were not allowed before").waitFor();
    await form.getByLabel("User name", { exact: true }).fill("v");
    await form.getByLabel("Password", { exact: true }).fill(`${secret}-2`);
    await form.getByRole("button", { name: "Save" }).click();
    await eventually(async () => (await stored(tenant))[0]?.info.allowedHosts).toEqual([
      "acme.example.com",
      "other.example.com",
    ]);
    await eventually(() => form.getByLabel("Password", { exact: true }).inputValue()).toBe("");
    expect(await page.held()).not.toContain(secret);
  });

  onPage("are for managers: another key is told so", async (page) => {
    const tenant = await testTenant(sql);
    const reader = { ...tenant, headers: await keyHeaders(sql, tenant.id, "USER", "read_only_user") };
    await page.logIn(reader, "#/settings/credentials");
    await page.getByRole("alert").waitFor();
    expect(await page.getByRole("link", { name: "New credential" }).count()).toBe(0);
  });
});
