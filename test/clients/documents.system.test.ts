import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { createClient, createKey, createTenant } from "../../src/auth/create-tenant.ts";
import { answersOf, consoleSteps, script, shape } from "../support/console.ts";
import { temporaryDir } from "../support/database.ts";
import { testServer } from "../support/server.ts";

const docs = new URL("../../docs/", import.meta.url).pathname;
const pages = readdirSync(docs)
  // tour.test.ts plays these.
  .filter((name) => name.endsWith(".md") && name !== "tutorial.md" && name !== "tour.md")
  .map((name) => ({ name, steps: consoleSteps(readFileSync(join(docs, name), "utf8")) }))
  .filter(({ steps }) => steps.length > 0);
/** The function by which the pages call. */
const [, helper = ""] = /^```sh\n(belfry\(\).*?)^```/ms.exec(readFileSync(join(docs, "tour.md"), "utf8")) ?? [];

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { sql } = server.database;

/** A folder as the first start makes it: of a tenant of its own, with the key of a manager. */
async function firstStart(name: string): Promise<string> {
  const dir = join(temporaryDir(), name);
  mkdirSync(dir);
  copyFileSync(server.target.ca ?? "", join(dir, "ca.pem"));
  const tenant = await createTenant(sql, `${name} ${process.pid}`);
  const client = await createClient(sql, tenant.id, { name: "admin", type: "USER", role: "manager" });
  const { text } = await createKey(sql, tenant.id, client.id, { description: "first key", expiresMs: null });
  writeFileSync(join(dir, "admin.key"), `${text}\n`);
  return dir;
}

describe("the commands of each page answer what it shows", () => {
  test("each part of the API has a page with commands", () => {
    expect(pages.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        "accounts.md",
        "api-clients.md",
        "credentials.md",
        "data-receiver.md",
        "dead-mans-switch.md",
        "destinations.md",
        "dictionary.md",
        "entities.md",
        "events.md",
        "maintenance.md",
        "metrics.md",
        "notifications.md",
        "properties.md",
        "rules.md",
        "silences.md",
        "templates.md",
      ]),
    );
  });

  test.concurrent.each(pages)("$name", async ({ name, steps }) => {
    const dir = await firstStart(name);
    const here = (text: string) =>
      text.replaceAll(".belfry/", `${dir}/`).replaceAll("https://localhost:8443", server.url);
    const lines = script(
      here(helper),
      steps.map(({ command }) => command),
    );
    const { stdout, stderr } = await promisify(execFile)("bash", ["-c", lines], { timeout: 50_000 });
    expect(stderr).toBe("");
    const answers = answersOf(stdout);
    for (const [i, { command, answer }] of steps.entries()) {
      if (answer !== "") expect(answers[i]?.trim(), command).toMatch(shape(answer));
    }
  });
});
