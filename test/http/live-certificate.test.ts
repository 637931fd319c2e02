import { X509Certificate } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { createClient } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/grpc/health/v1/health_pb.ts";
import { certificate } from "../../src/http/certificate.ts";
import { liveCertificate } from "../../src/http/live-certificate.ts";
import { openLog } from "../../src/rpc/log.ts";
import { transport } from "../support/clients.ts";
import { temporaryDir } from "../support/database.ts";
import { testServer } from "../support/server.ts";

const dir = temporaryDir();
const cert = join(dir, "cert.pem");
const key = join(dir, "key.pem");

/** A pair of a CA of its own, and its serial number. */
async function pair(host = "localhost") {
  const dataDir = temporaryDir();
  const made = await certificate({ tlsCert: undefined, tlsKey: undefined, dataDir, host });
  return { ...made, ca: readFileSync(made.caFile ?? ""), serial: new X509Certificate(made.cert).serialNumber };
}

const [a, b, c] = [await pair(), await pair(), await pair()] as const;
writeFileSync(cert, a.cert);
writeFileSync(key, a.key);
const server = await testServer({ BELFRY_PLAINTEXT: "0", BELFRY_TLS_CERT: cert, BELFRY_TLS_KEY: key });
const { hostname: host, port } = new URL(server.url);

/** A new connection: the serial number that it is shown, whether it resumed a session, and its own session. */
async function connection(session?: Buffer) {
  const socket: TLSSocket = connect({
    host,
    port: Number(port),
    rejectUnauthorized: false,
    ...(session && { session }),
  });
  const resumable = new Promise<Buffer>((resolve) => socket.once("session", resolve));
  await new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
  const found = { serial: socket.getPeerX509Certificate()?.serialNumber, resumed: socket.isSessionReused() };
  const own = found.resumed ? Buffer.alloc(0) : await resumable;
  socket.destroy();
  return { ...found, session: own };
}

describe("a certificate that is replaced on disk", () => {
  test("is served to the next connection; streams and connections of before go on; half a pair changes nothing", async () => {
    const client = createClient(Health, transport({ url: server.url, ca: caFile(a.ca) }, "grpc", {}));
    const watch = client.watch({})[Symbol.asyncIterator]();
    expect((await watch.next()).value).toMatchObject({ status: Status.SERVING });
    const before = await connection();
    expect(before.serial).toBe(a.serial);
    expect((await connection(before.session)).resumed).toBe(true);

    writeFileSync(cert, b.cert);
    expect((await connection()).serial).toBe(a.serial);
    writeFileSync(key, b.key);
    expect((await connection()).serial).toBe(b.serial);
    expect(await connection(before.session)).toMatchObject({ serial: b.serial, resumed: false });

    writeFileSync(cert, c.cert.slice(0, 200));
    expect((await connection()).serial).toBe(b.serial);
    rmSync(cert);
    expect((await connection()).serial).toBe(b.serial);

    expect(await client.check({})).toMatchObject({ status: Status.SERVING });
    const stopped = server.stop();
    expect((await watch.next()).value).toMatchObject({ status: Status.NOT_SERVING });
    await stopped;
  });
});

const caFile = (pem: Buffer) => {
  const path = join(dir, "ca.pem");
  writeFileSync(path, pem);
  return path;
};

describe("the files of a certificate", () => {
  const lines: { msg: string; level: number }[] = [];
  const log = openLog("info", { write: (text) => lines.push(JSON.parse(text)) });
  const stops: (() => void)[] = [];
  afterAll(() => {
    for (const stop of stops) stop();
  });
  const open = async (...given: Parameters<typeof liveCertificate>) => {
    const live = await liveCertificate(...given);
    stops.push(live.stop);
    return live;
  };

  test("may be links, as Kubernetes makes them; what cannot be used has one line in the log", async () => {
    const folder = temporaryDir();
    for (const [name, of] of Object.entries({ a, b })) {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, "cert.pem"), of.cert);
      writeFileSync(join(folder, name, "key.pem"), of.key);
    }
    symlinkSync("a", join(folder, "now"));
    const files = { tlsCert: join(folder, "now/cert.pem"), tlsKey: join(folder, "now/key.pem") };
    const live = await open({ ...files, dataDir: folder, host: "localhost" }, log);
    expect(live.renewed()).toBeUndefined();
    symlinkSync("b", join(folder, "next"));
    renameSync(join(folder, "next"), join(folder, "now"));
    expect(live.renewed()).toEqual({ cert: b.cert, key: b.key });
    expect(live.renewed()).toBeUndefined();
    writeFileSync(join(folder, "b/key.pem"), a.key);
    for (let i = 0; i < 3; i += 1) expect(live.renewed()).toBeUndefined();
    expect(lines.map(({ msg, level }) => [level, msg])).toEqual([
      [30, "a new certificate is served"],
      [50, "the new certificate cannot be used; the one before goes on"],
    ]);
  });

  test("of the local CA are made again before they end, for the names of the start", async () => {
    const dataDir = temporaryDir();
    const config = { tlsCert: undefined, tlsKey: undefined, dataDir, host: "localhost" };
    await certificate(config);
    const live = await open(config, log, 20);
    const { serialNumber } = new X509Certificate(live.cert);
    const ca = readFileSync(join(dataDir, "ca.pem"), "utf8");
    cpSync(join(dataDir, "server-key.pem"), join(dataDir, "old-key.pem"));
    config.host = "another.test"; // as a machine that has another address meanwhile
    rmSync(join(dataDir, "server.pem")); // as one that ends soon, it is no good any more
    await expect.poll(() => live.renewed()?.cert.length).toBeGreaterThan(0);
    const now = new X509Certificate(readFileSync(join(dataDir, "server.pem")));
    expect(now.serialNumber).not.toBe(serialNumber);
    expect(readFileSync(join(dataDir, "ca.pem"), "utf8")).toBe(ca);
    expect(now.verify(new X509Certificate(ca).publicKey)).toBe(true);
    expect(live.endsMs()).toBe(now.validToDate.getTime());
  });
});
