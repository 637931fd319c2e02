import { createPrivateKey, randomBytes, webcrypto, X509Certificate } from "node:crypto";
import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import type { Config } from "../config/settings.ts";
import { StartError } from "../db/start-error.ts";

/** Certificate chain and private key of the port, PEM; `caFile` is the local CA's certificate for clients, when there is one. */
export interface Certificate {
  cert: string;
  /** The same without addresses, for clients that ask for a name; absent when the certificate was configured. */
  certByName?: string | undefined;
  key: string;
  caFile: string | undefined;
  /** The files that they were read from. */
  files: { cert: string; certByName?: string; key: string };
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const dayMs = 86_400_000;
const caDays = 3650;
const leafDays = 365;
/** A certificate with less than this left is made again at start. */
const renewDays = 30;

/**
 * The configured certificate, or one of a local CA in the data directory; both are made there when missing, expiring or for other
 * names than `names`.
 */
export async function certificate(
  config: Pick<Config, "tlsCert" | "tlsKey" | "dataDir" | "host">,
  names: readonly string[] = localNames(config.host),
): Promise<Certificate> {
  if (config.tlsCert !== undefined && config.tlsKey !== undefined) {
    const pair = await configured(config.tlsCert, config.tlsKey);
    return { ...pair, caFile: undefined, files: { cert: config.tlsCert, key: config.tlsKey } };
  }
  const files = {
    ca: join(config.dataDir, "ca.pem"),
    caKey: join(config.dataDir, "ca-key.pem"),
    cert: join(config.dataDir, "server.pem"),
    certByName: join(config.dataDir, "server-by-name.pem"),
    key: join(config.dataDir, "server-key.pem"),
  };
  await mkdir(config.dataDir, { recursive: true, mode: 0o700 });
  const [ca, caKey, cert, certByName, key] = await Promise.all([
    readable(files.ca),
    readable(files.caKey),
    readable(files.cert),
    readable(files.certByName),
    readable(files.key),
  ]);
  const signs = ca !== undefined && lasts(ca) && permits(ca, names);
  // Without the key of the CA a certificate by name that is missing cannot be made, and is done without.
  const byName = certByName === undefined ? caKey === undefined : ca && holds(certByName, ca, domains(names));
  if (signs && cert && key && byName && holds(cert, ca, names) && belongs(key, [cert, certByName ?? cert]))
    return { cert, certByName, key, caFile: files.ca, files };
  const authority = signs && caKey ? { ca, caKey } : await makeAuthority(names);
  const leaf = await makeLeaf(authority, names);
  await write(files.caKey, authority.caKey, 0o600);
  await write(files.ca, authority.ca, 0o644);
  await write(files.key, leaf.key, 0o600);
  await write(files.certByName, leaf.certByName, 0o644);
  await write(files.cert, leaf.cert, 0o644);
  return { ...leaf, caFile: files.ca, files };
}

/** The files that the settings name. @throws StartError that names the setting of the one that cannot be used */
async function configured(certFile: string, keyFile: string): Promise<{ cert: string; key: string }> {
  const [cert, key] = await Promise.all([
    settingFile("BELFRY_TLS_CERT", certFile),
    settingFile("BELFRY_TLS_KEY", keyFile),
  ]);
  const leaf = parsed("BELFRY_TLS_CERT", certFile, "certificate", () => new X509Certificate(cert));
  const own = parsed("BELFRY_TLS_KEY", keyFile, "private key without a passphrase", () => createPrivateKey(key));
  if (!leaf.checkPrivateKey(own)) {
    throw new StartError(`BELFRY_TLS_KEY: ${keyFile} is not the key of the first certificate in ${certFile}`);
  }
  return { cert, key };
}

async function settingFile(setting: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const known = readTroubles[code ?? ""];
    if (known !== undefined) throw new StartError(`${setting}: ${file} ${known}`);
    throw new StartError(`${setting}: ${file} cannot be read (${code ?? message})`);
  }
}

const readTroubles: Record<string, string> = {
  ENOENT: "does not exist",
  EACCES: "may not be read by this account",
  EISDIR: "is a directory",
};

function parsed<T>(setting: string, file: string, what: string, parse: () => T): T {
  try {
    return parse();
  } catch {
    throw new StartError(`${setting}: ${file} holds no ${what} in PEM form`);
  }
}

/** The names and addresses that a certificate is valid for. */
export function certifiedNames(cert: string): string[] {
  const names = new X509Certificate(cert).subjectAltName?.split(", ") ?? [];
  return names.flatMap((name) => {
    const [, kind, value = ""] = /^(DNS|IP Address):(.*)$/.exec(name) ?? [];
    if (kind === undefined) return [];
    return [value.includes(":") ? new URL(`http://[${value}]`).hostname.slice(1, -1) : value];
  });
}

/** Every name under which this host is likely called. */
export function localNames(host: string): string[] {
  const names = new Set(["localhost", "127.0.0.1", "::1"]);
  if (host === "0.0.0.0" || host === "::") {
    names.add(hostname());
    for (const addresses of Object.values(networkInterfaces())) {
      for (const { address, scopeid } of addresses ?? []) if (!scopeid) names.add(address);
    }
  } else {
    names.add(host);
  }
  return [...names];
}

const domains = (names: readonly string[]) => names.filter((name) => isIP(name) === 0);

function lasts(pem: string) {
  const { validToDate } = new X509Certificate(pem);
  return validToDate.getTime() - Date.now() > renewDays * dayMs;
}

/** Whether this is the key of these certificates; it is not where two servers made them at once. */
function belongs(key: string, certs: readonly string[]) {
  const own = createPrivateKey(key);
  return certs.every((cert) => new X509Certificate(cert).checkPrivateKey(own));
}

/** Whether a CA may sign for these names, and is one that may sign for its own names alone. */
function permits(pem: string, names: readonly string[]) {
  const { raw } = new X509Certificate(pem);
  return names.every((name) => permitsName(raw, name));
}

function holds(cert: string, ca: string, names: readonly string[]) {
  const leaf = new X509Certificate(cert);
  const issuer = new X509Certificate(ca);
  const named = names.every((name) => (isIP(name) ? leaf.checkIP(name) : leaf.checkHost(name)) !== undefined);
  return named && lasts(cert) && lasts(ca) && leaf.verify(issuer.publicKey);
}

async function library() {
  await import("reflect-metadata"); // x509 asks for it, and only here
  return import("@peculiar/x509");
}

async function makeAuthority(names: readonly string[]) {
  const x509 = await library();
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: `CN=Belfry local CA ${randomBytes(4).toString("hex")}`,
    notBefore: new Date(Date.now() - dayMs),
    notAfter: new Date(Date.now() + caDays * dayMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      // A stolen key can sign for this host alone.
      new x509.Extension(nameConstraintsId, true, nameConstraints(names)),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { ca: `${ca.toString("pem")}\n`, caKey: await privatePem(keys.privateKey) };
}

/**
 * The server's certificates, for all names and for those that are no addresses: BoringSSL, which most gRPC libraries bring along,
 * refuses a certificate with addresses of a CA that may sign for some alone ("unsupported name constraint type").
 */
async function makeLeaf({ ca, caKey }: { ca: string; caKey: string }, names: readonly string[]) {
  const x509 = await library();
  const issuer = new x509.X509Certificate(ca);
  const signingKey = await webcrypto.subtle.importKey("pkcs8", x509.PemConverter.decodeFirst(caKey), algorithm, false, [
    "sign",
  ]);
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const sign = async (named: readonly string[]) => {
    const cert = await x509.X509CertificateGenerator.create({
      serialNumber: serial(),
      subject: "CN=localhost",
      issuer: issuer.subject,
      notBefore: new Date(Date.now() - dayMs),
      notAfter: new Date(Date.now() + leafDays * dayMs),
      signingAlgorithm: algorithm,
      signingKey,
      publicKey: keys.publicKey,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension(
          named.map((name) => ({ type: isIP(name) ? ("ip" as const) : ("dns" as const), value: name })),
        ),
        await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return `${cert.toString("pem")}\n`;
  };
  const [cert, certByName] = await Promise.all([sign(names), sign(domains(names))]);
  return { cert, certByName, key: await privatePem(keys.privateKey) };
}

/** 16 random bytes, positive and without a leading zero. */
function serial() {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("hex");
}

async function privatePem(key: webcrypto.CryptoKey) {
  const bytes = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key)).toString("base64");
  return `-----BEGIN PRIVATE KEY-----\n${bytes.replaceAll(/.{64}/g, "$&\n").trimEnd()}\n-----END PRIVATE KEY-----\n`;
}

async function readable(path: string) {
  return readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

/** Whole or not at all, and never readable by others for a moment. */
async function write(path: string, text: string, mode: number) {
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, text, { mode });
  await chmod(temporary, mode);
  await rename(temporary, path);
}

/** The extension's identifier (RFC 5280, 4.2.1.10). */
export const nameConstraintsId = "2.5.29.30";

const dnsName = 0x82; // GeneralName's [2] and [7]
const ipAddress = 0x87;
const sequence = 0x30;
const permitted = 0xa0;

/** The value of name constraints that permit these names and addresses alone, in DER. */
export function nameConstraints(names: readonly string[]): Buffer {
  return der(sequence, der(permitted, ...names.map((name) => der(sequence, generalName(name)))));
}

/** Whether the certificate of a CA, in DER, has constraints of the form above that permit a name. */
export function permitsName(certificate: Buffer, name: string): boolean {
  return certificate.includes(der(sequence, generalName(name)));
}

function generalName(name: string): Buffer {
  if (isIP(name) === 0) return der(dnsName, Buffer.from(name, "latin1"));
  const address = addressBytes(name);
  return der(ipAddress, address, Buffer.alloc(address.byteLength, 0xff)); // with its mask
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  // A last part in the form of IPv4 becomes hexadecimal.
  const [front = "", back] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groups = (text: string | undefined) => (text ? text.split(":") : []);
  const [left, right] = [groups(front), groups(back)];
  const all = [...left, ...Array<string>(8 - left.length - right.length).fill("0"), ...right];
  return Buffer.from(all.map((group) => group.padStart(4, "0")).join(""), "hex");
}

function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const { byteLength } = content;
  const length = byteLength < 128 ? [byteLength] : [0x82, byteLength >> 8, byteLength & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}
