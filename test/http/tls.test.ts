import { readFileSync } from "node:fs";
import { connect } from "node:tls";
import { describe, expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { served, testPort } from "../support/port.ts";

const port = await testPort([served(DataReceiverService, {})], { secure: true });

/** The cipher that a client and the port agree on; undefined when they find none. */
async function agreed(options: object): Promise<string | undefined> {
  const socket = connect({
    port: port.address.port,
    host: "127.0.0.1",
    ...(port.ca !== undefined && { ca: readFileSync(port.ca) }),
    ...options,
  });
  const name = await new Promise<string | undefined>((resolve) => {
    socket.once("secureConnect", () => resolve(socket.getCipher().name)).once("error", () => resolve(undefined));
  });
  socket.destroy();
  return name;
}

describe("TLS", () => {
  test("1.3 is spoken", async () => {
    expect(await agreed({ minVersion: "TLSv1.3" })).toMatch(/^TLS_/);
  });

  test("1.2 only with forward secrecy and authenticated encryption", async () => {
    const old = { maxVersion: "TLSv1.2" };
    expect(await agreed(old)).toMatch(/^ECDHE-.*(GCM|POLY1305)/);
    for (const ciphers of ["AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-SHA384", "ECDHE-ECDSA-AES128-SHA"]) {
      expect(await agreed({ ...old, ciphers }), ciphers).toBeUndefined();
    }
  });
});
