import { readFileSync } from "node:fs";
import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { OperationSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const page = readFileSync(new URL("../../docs/query-language.md", import.meta.url), "utf8");
const server = await testServer();
const tenant = await testTenant(server.database.sql);
const search = v1(server.url, tenant.headers);
const now = BigInt(Date.now());

await createClient(DataReceiverService, transport(server.target, "grpc", tenant.headers)).putEvents({
  events: [
    {
      name: "disk full",
      dimensions: { source: "web-1" },
      timestamp: now,
      severity: Severity.ERROR,
      metadataFields: { used: "97", owners: ["storage", "web"] },
    },
    { name: "disk slow", dimensions: { source: "web-1" }, timestamp: now, severity: Severity.WARNING },
    {
      name: "link down",
      dimensions: { source: "db-1" },
      timestamp: now,
      severity: Severity.ERROR,
      summary: "eth0 is down",
      metadataFields: { owners: "network" },
    },
  ],
});

async function names(clause: unknown): Promise<{ status: number; names: string[] }> {
  const { status, body } = await search("POST", "/v1/events:search", { query: { clause } });
  return { status, names: (body.results ?? []).map(({ name }: { name: string }) => name).toSorted() };
}

describe("the examples of docs/query-language.md", () => {
  const examples = [...page.matchAll(/```json\n(.*?)```\n\n→ ([^\n]*)\n/gs)].map(([, json = "", answer = ""]) => ({
    json,
    answer,
  }));

  test("are there", () => expect(examples.length).toBeGreaterThanOrEqual(7));

  test.each(examples)("$json", async ({ json, answer }) => {
    expect(await names(JSON.parse(json))).toEqual({ status: 200, names: answer.split(", ") });
  });
});

describe("the table of operations in docs/query-language.md", () => {
  const rows = [...page.matchAll(/^\| `(OP_\w+)` \| (\d+) \| (\S+) \| (\S+) \| (\S+) \|/gm)].map(
    ([, name = "", number, ...kinds]) => ({ name, number: Number(number), kinds: kinds.slice(0, 3) }),
  );

  test("has every operation with its number", () => {
    const known = OperationSchema.values
      .filter(({ number }) => number > 0)
      .map(({ name, number }) => ({ name, number }));
    expect(rows.map(({ name, number }) => ({ name, number }))).toEqual(known);
  });

  test.each(rows)("tells which kinds of value $name takes", async ({ name, kinds }) => {
    const values = ["a", 1, true];
    const taken = await Promise.all(
      values
        .flatMap((value) => [value, [value]])
        .map(async (value) => {
          const { status } = await names({ filter: { field: "name", operation: name, value } });
          return status === 200;
        }),
    );
    expect(taken).toEqual(kinds.flatMap((kind) => [kind === "yes", kind === "list"]));
  });
});
