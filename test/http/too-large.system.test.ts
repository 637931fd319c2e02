import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { temporaryDir } from "../support/database.ts";
import { served, testPort } from "../support/port.ts";

const MiB = 1024 * 1024;
const port = await testPort([served(EntityService, { searchEntities: () => ({}) })], { secure: true });
const { text: key } = await port.key();
const ca = readFileSync(port.ca ?? "");
const rpc = "/belfry.entities.v1.EntityService/SearchEntities";
const json = "/v1/modelcontext/entities:search";

// Beyond the bound of a message by so much that the rest is not taken in, and by less.
describe.each([5, 17, 40])("a body of %i MiB over HTTP/2 is refused in its protocol", (size) => {
  const body = Buffer.alloc(size * MiB, 32);

  test("curl, JSON", async () => {
    const file = join(temporaryDir(), "body");
    await writeFile(file, body);
    const form = ["-H", "content-type: application/json", "-H", `service-api-key: ${key}`, "--data-binary", `@${file}`];
    const asked = [
      "-sS",
      "--cacert",
      port.ca ?? "",
      "-m",
      "20",
      "--http2",
      "-w",
      "\n%{http_code}",
      ...form,
      port.url + json,
    ];
    const { stdout } = await promisify(execFile)("curl", asked);
    const [answer = "", status] = stdout.split(/\n+/);
    expect([status, JSON.parse(answer).code]).toEqual(["413", 8]);
  });

  test("grpc-js", async () => {
    const client = new Client(`localhost:${new URL(port.url).port}`, credentials.createSsl(ca), {
      "grpc.max_send_message_length": -1,
    });
    const metadata = new Metadata();
    metadata.set("service-api-key", key);
    const error = await new Promise<ServiceError | null>((resolve) =>
      client.makeUnaryRequest(
        rpc,
        (bytes: Buffer) => bytes,
        (bytes) => bytes,
        body,
        metadata,
        { deadline: Date.now() + 15_000 },
        resolve,
      ),
    );
    client.close();
    expect(error?.code).toBe(8);
    expect(error?.details).toMatch(/larger than 4194304 bytes/);
  });

  test.each([
    ["/v1", json, "application/json", "413"],
    ["Connect", rpc, "application/json", "429"],
    ["gRPC-Web", rpc, "application/grpc-web+proto", "8"],
    ["gRPC", rpc, "application/grpc", "8"],
  ])("Node's client, all at once: %s", async (_name, path, type, outcome) => {
    // Megabytes; Node's own client gives up a session that has more than 10 unsent.
    const session = connect(port.url, { maxSessionMemory: 100, ca }).on("error", () => {});
    const headers = { "content-type": type, "service-api-key": key };
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    const heads: IncomingHttpHeaders[] = [];
    stream.on("response", (head) => heads.push(head)).on("trailers", (head) => heads.push(head));
    stream.end(body);
    const ended = await new Promise<string>((resolve, reject) => {
      let text = "";
      stream.setEncoding("latin1").on("data", (piece) => {
        text += piece;
      });
      stream.on("end", () => resolve(text)).on("error", reject);
    });
    session.destroy();
    const [head, trailers] = heads;
    const inFrame = /grpc-status: *(\d+)/i.exec(ended)?.[1];
    expect(trailers?.["grpc-status"] ?? head?.["grpc-status"] ?? inFrame ?? String(head?.[":status"])).toBe(outcome);
  });
});
