import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { httpVersions, protocols, raw, transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer({ BELFRY_SHUTDOWN_TIMEOUT: "10m", BELFRY_METRICS_ADDRESS: "0" });
const { headers } = await testTenant(server.database.sql);

test("a server that stops ends its watches at once with code 14, over every protocol", async () => {
  const ended: Promise<string>[] = [];
  for (const version of httpVersions) {
    for (const protocol of protocols) {
      if (protocol === "grpc" && version === "1.1") continue;
      const client = createClient(EventQueryService, transport(server.target, protocol, headers, version));
      ended.push(
        (async () => {
          try {
            for await (const _ of client.watchEvents({ query: {} }));
            return `${protocol} over HTTP/${version} ended in order`;
          } catch (error) {
            const { code } = ConnectError.from(error);
            return code === Code.Unavailable ? "" : `${protocol} over HTTP/${version}: ${code} ${error}`;
          }
        })(),
      );
    }
    for (const accept of ["application/json", "text/event-stream"]) {
      const sent = { ...headers, accept, "content-type": "application/json" };
      const body = [Buffer.from('{"query":{}}')];
      ended.push(
        raw(server.target, version, { path: "/v1/events:watch", headers: sent, body }).then(
          (answer) =>
            /"code":14\b/.test(answer.body.toString()) ? "" : `${accept} over HTTP/${version}: ${answer.body}`,
          (error) => `${accept} over HTTP/${version}: ${error}`,
        ),
      );
    }
  }
  const open = async () => /^belfry_watches (\d+)$/m.exec(await (await fetch(server.metricsUrl ?? "")).text())?.[1];
  await expect.poll(open).toBe(String(ended.length));
  const stopped = server.stop();
  expect((await Promise.all(ended)).filter((wrong) => wrong !== "")).toEqual([]);
  await stopped;
});
