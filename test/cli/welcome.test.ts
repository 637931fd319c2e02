import { hostname } from "node:os";
import { expect, test } from "vitest";
import { welcome } from "../../src/cli/welcome.ts";
import type { Server } from "../../src/server.ts";
import { raw } from "../support/clients.ts";
import { testServer } from "../support/server.ts";

const server = await testServer({ BELFRY_HOST: "0.0.0.0", BELFRY_PLAINTEXT: "0" });

test("a server at all addresses prints an address that can be called, who can connect and by which names", async () => {
  const lines = welcome(server, "0.0.0.0", { toTerminal: false }).split("\n");
  const [address = ""] = /https:\S+/.exec(lines[0] ?? "") ?? [];
  expect(new URL(address).hostname).toBe("localhost");
  const answer = await raw({ ...server.target, url: address }, "2", { method: "GET", path: "/readyz" });
  expect(answer.status).toBe(200);
  expect(lines[1]).toBe("It listens at 0.0.0.0: other machines can connect.");
  expect(lines[2]).toMatch(
    /^Its certificate is valid for localhost, 127\.0\.0\.1, ::1, .*; clients there need \S*ca\.pem\.$/,
  );
  expect(lines[2]).toContain(hostname());
});

test("a server on a database of the operator's own without a tenant prints how to make one", () => {
  const lines = welcome(server, "0.0.0.0", { toTerminal: false }).split("\n");
  expect(lines).toContain(
    "The database has no tenant yet. Make one, with its first manager key: npm run belfry -- tenants create <name>",
  );
});

/** The first lines of a server at this address. */
function first(host: string, url: string, names: string[], caFile?: string): string[] {
  const made = { url, names, caFile, firstKey: { file: ".belfry/admin.key", made: false } };
  return welcome(made as unknown as Server, host, { toTerminal: false })
    .split("\n")
    .slice(0, -10);
}

test("at home, nothing is said of it; else what others need to know", () => {
  const last = (url: string) => [
    "The first manager key is in .belfry/admin.key",
    `Console: ${url}/console/  (npm run belfry -- console prints a link that logs in)`,
  ];
  const local = ["localhost", "127.0.0.1", "::1"];
  expect(first("localhost", "https://localhost:1", local, "ca.pem")).toEqual([
    "Belfry serves at https://localhost:1",
    ...last("https://localhost:1"),
  ]);
  expect(first("127.0.0.1", "http://127.0.0.1:1", [])).toEqual([
    "Belfry serves at http://127.0.0.1:1",
    ...last("http://127.0.0.1:1"),
  ]);
  expect(first("::", "http://localhost:1", [])).toEqual([
    "Belfry serves at http://localhost:1",
    "It listens at ::: other machines can connect.",
    "Without TLS, keys and data travel in the clear.",
    ...last("http://localhost:1"),
  ]);
  expect(first("0.0.0.0", "https://localhost:1", ["*.example.com", "10.0.0.1", "b.example.com"])).toEqual([
    "Belfry serves at https://b.example.com:1",
    "It listens at 0.0.0.0: other machines can connect.",
    "Its certificate is valid for *.example.com, 10.0.0.1, b.example.com.",
    ...last("https://b.example.com:1"),
  ]);
});

test("to a terminal, while no browser ever logged in: a link that does, and what the browser will warn of", () => {
  const made = { url: "https://localhost:1", names: ["localhost"], caFile: "ca.pem", firstKey: undefined };
  const text = welcome(made as unknown as Server, "localhost", { toTerminal: true, token: "bl_x" });
  expect(text.split("\n").slice(1, -1)).toEqual([
    "Console: https://localhost:1/console/#first=bl_x  (logs in once, within 30 minutes)",
    "Browsers warn of its certificate, which only this machine has signed; https://localhost:1/certificate says how to trust it.",
  ]);
});
