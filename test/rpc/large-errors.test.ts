import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { BadRequestSchema, ResourceInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { protocols, transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer();

// gRPC's clients refuse headers of more than some KiB, and then tell neither code nor reason.
describe.each(protocols)("over %s, an error arrives however much is wrong", (protocol) => {
  async function way() {
    const { headers } = await testTenant(server.database.sql);
    return transport(server.target, protocol, headers);
  }
  const thrown = (call: Promise<unknown>) => call.then(() => expect.fail("it succeeded"), ConnectError.from);

  test("a thousand fields: the first hundred are listed, the others counted", async () => {
    const fields = Array.from({ length: 1000 }, () => ({ field: "" }));
    const error = await thrown(createClient(EventQueryService, await way()).searchEvents({ query: { fields } }));
    expect(error.code).toBe(Code.InvalidArgument);
    expect(error.rawMessage).toMatch(/^query\.fields\[0\]\.field: is required; .*; request: has 990 more mistakes$/);
    const violations = error.findDetails(BadRequestSchema)[0]?.fieldViolations ?? [];
    // Headers hold less than a body.
    const listed = protocol === "grpc" ? 10 : 100;
    expect(violations).toHaveLength(listed + 1);
    const last = `query.fields[${listed - 1}].field`;
    expect(violations[listed - 1]).toMatchObject({ field: last, description: "is required" });
    expect(violations[listed]).toMatchObject({ field: "", description: `has ${1000 - listed} more mistakes` });
  });

  test("a name of 1,024 characters: its beginning is reported", async () => {
    const id = "😀".repeat(1024);
    const error = await thrown(createClient(ApiClientService, await way()).getApiClient({ id }));
    expect(error.code).toBe(Code.NotFound);
    expect(error.rawMessage).toMatch(/^no API client found for "(?:😀){256}…"$/u);
    expect(error.findDetails(ResourceInfoSchema)[0]?.resourceName).toBe(`${"😀".repeat(256)}…`);
  });
});
