import { createPrivateKey, webcrypto, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, isIP, type Socket } from "node:net";
import { join } from "node:path";
import { connect, createServer } from "node:tls";
import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import { afterAll, describe, expect, test } from "vitest";
import { certificate } from "../../src/http/certificate.ts";
import { httpListener } from "../../src/http/listener.ts";
import { temporaryDir } from "../support/database.ts";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const dataDir = temporaryDir();
const config = { tlsCert: undefined, tlsKey: undefined, dataDir, host: "localhost" };
const made = await certificate(config);
const ca = readFileSync(join(dataDir, "ca.pem"), "utf8");
const servers: { close(): void }[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

/** What a client says that trusts the CA, of a server with this certificate, whatever it calls itself. */
async function told(identity: { cert: string; key: string }, name: string): Promise<string> {
  const server = createServer(identity, (socket: Socket) => socket.end()).on("tlsClientError", () => {});
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const options = isIP(name) ? { checkServerIdentity: () => undefined } : { servername: name };
  const socket = connect({ host: "127.0.0.1", port, ca, ...options });
  return await new Promise((resolve) => {
    socket.once("secureConnect", () => resolve("trusted"));
    socket.once("error", ({ message }) => resolve(message));
  });
}

/** A certificate for other names that the local CA's own key signs. */
async function stolen(type: "dns" | "ip", value: string) {
  const pem = readFileSync(join(dataDir, "ca-key.pem"), "utf8");
  const pkcs8 = x509.PemConverter.decodeFirst(pem);
  const signingKey = await webcrypto.subtle.importKey("pkcs8", pkcs8, algorithm, false, ["sign"]);
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const cert = await x509.X509CertificateGenerator.create({
    serialNumber: "01",
    subject: `CN=${value}`,
    issuer: new x509.X509Certificate(ca).subject,
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
    signingAlgorithm: algorithm,
    signingKey: signingKey as never,
    publicKey: keys.publicKey as never,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type, value }])],
  });
  const key = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey)).toString("base64");
  return { cert: cert.toString("pem"), key: `-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----\n` };
}

describe("the local CA", () => {
  test("is trusted for the names of this host", async () => {
    expect(await told(made, "localhost")).toBe("trusted");
    expect(await told(made, "127.0.0.1")).toBe("trusted");
  });

  test.each([
    ["dns", "example.com"],
    ["ip", "192.0.2.1"],
    ["ip", "2001:db8::1"],
  ] as const)("cannot vouch for others, although its key signs: %s %s", async (type, value) => {
    expect(await told(await stolen(type, value), value)).toContain("permitted subtree violation");
  });

  test("has a certificate without addresses for clients that ask for a name: some libraries refuse both together", async () => {
    const named = new X509Certificate(made.certByName ?? "");
    expect(named.subjectAltName).toBe("DNS:localhost");
    expect(await told({ cert: made.certByName ?? "", key: made.key }, "localhost")).toBe("trusted");
    const { server } = httpListener({ tls: made, connectionsMax: 10, stallMs: 1000, onRequest() {} });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const shown = async (options: object) => {
      const socket = connect({ host: "127.0.0.1", port, ca, ...options });
      await once(socket, "secureConnect");
      const { subjectaltname } = socket.getPeerCertificate();
      socket.destroy();
      return subjectaltname;
    };
    expect(await shown({ servername: "localhost" })).toBe("DNS:localhost");
    expect(await shown({ servername: "" })).toContain("IP Address:127.0.0.1");
  });

  test("is made again where the files of two servers were mixed up", async () => {
    const own = { ...config, dataDir: temporaryDir() };
    const [first, other] = [await certificate(own), await certificate({ ...config, dataDir: temporaryDir() })];
    writeFileSync(first.files.key, other.key);
    const { cert, key } = await certificate(own);
    expect(new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))).toBe(true);
    expect(key).not.toBe(other.key);
  });

  test("stays the same for the same names, and is made again for others", async () => {
    await certificate(config);
    expect(readFileSync(join(dataDir, "ca.pem"), "utf8")).toBe(ca);
    const other = await certificate({ ...config, host: "2001:db8::2" });
    const anew = readFileSync(join(dataDir, "ca.pem"), "utf8");
    expect(anew).not.toBe(ca);
    expect(new X509Certificate(other.cert).checkIP("2001:db8::2")).toBeDefined();
    expect(new X509Certificate(other.cert).verify(new X509Certificate(anew).publicKey)).toBe(true);
  });
});
