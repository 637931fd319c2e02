import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { Config } from "../config/settings.ts";
import { every } from "../every.ts";
import type { Log } from "../log.ts";
import { certificate, localNames } from "./certificate.ts";
import type { Identity, Pair } from "./listener.ts";

/** The certificate of the port, which follows its files. */
export interface LiveCertificate extends Identity {
  readonly caFile: string | undefined;
  renewed(): Pair | undefined;
  /** When it ends, ms since 1970. */
  endsMs(): number;
  stop(): void;
}

const hourMs = 3_600_000;
const warnMs = 14 * 24 * hourMs;

/**
 * The certificate as `certificate` gives it. Its files are looked at before each connection: a pair that was replaced is
 * taken for it and all that follow, one that cannot be used is named in the log, and the pair before goes on. Each hour the
 * local CA's own certificate is made again when it is near its end; of another one the log warns.
 */
export async function liveCertificate(
  config: Pick<Config, "tlsCert" | "tlsKey" | "dataDir" | "host">,
  log: Log,
  everyMs = hourMs,
): Promise<LiveCertificate> {
  // Taken before the files are read: what is written in between is seen as new.
  const { tlsCert, tlsKey } = config;
  const configured = tlsCert !== undefined && tlsKey !== undefined ? { cert: tlsCert, key: tlsKey } : undefined;
  const before = configured && signOf(configured);
  // Addresses come and go while a server runs: for another one the CA would be made again, and no client would know it.
  const names = localNames(config.host);
  const { caFile, files, ...first } = await certificate(config, names);
  let seen = before ?? signOf(files);
  let endsMs = endOf(first.cert);

  function renewed() {
    const sign = signOf(files);
    if (sign === seen) return undefined;
    seen = sign;
    try {
      const pair = readPair(files);
      endsMs = endOf(pair.cert);
      log.info({ certificate: files.cert, ends: new Date(endsMs).toISOString() }, "a new certificate is served");
      return pair;
    } catch (error) {
      const cause = (error as Error).message;
      log.error(
        { certificate: files.cert, key: files.key, cause },
        "the new certificate cannot be used; the one before goes on",
      );
      return undefined;
    }
  }

  async function look() {
    if (configured === undefined) await certificate(config, names);
    else if (endsMs - Date.now() < warnMs)
      log.warn({ certificate: files.cert, ends: new Date(endsMs).toISOString() }, "the certificate ends soon");
  }
  const failed = (error: Error) => log.error({ cause: error.message }, "the certificate was not made anew");
  const rounds = every(everyMs, () => look().catch(failed));

  return { ...first, caFile, renewed, endsMs: () => endsMs, stop: () => void rounds.stop() };
}

/** The certificate of a port that another process owns, which hands over each new pair. */
export interface HandedCertificate extends LiveCertificate {
  replace(pair: Pair): void;
}

/** Made of the pair of now. */
export function handedCertificate(first: Pair, caFile: string | undefined): HandedCertificate {
  let endsMs = endOf(first.cert);
  let next: Pair | undefined;
  return {
    ...first,
    caFile,
    renewed() {
      const pair = next;
      next = undefined;
      return pair;
    },
    replace(pair) {
      next = pair;
      endsMs = endOf(pair.cert);
    },
    endsMs: () => endsMs,
    stop() {},
  };
}

const endOf = (cert: string) => new X509Certificate(cert).validToDate.getTime();

type Files = Awaited<ReturnType<typeof certificate>>["files"];

/** @throws when they are not whole, or do not belong together */
function readPair(files: Files): Pair {
  const key = readFileSync(files.key, "utf8");
  const cert = readFileSync(files.cert, "utf8");
  createSecureContext({ cert, key });
  // Where the local CA has no key it may be missing.
  if (files.certByName === undefined || !existsSync(files.certByName)) return { cert, key };
  const certByName = readFileSync(files.certByName, "utf8");
  createSecureContext({ cert: certByName, key });
  return { cert, certByName, key };
}

/** Changes whenever one of the files does, also when the folder that a link leads to is another one. */
function signOf({ cert, certByName, key }: Files): string {
  return [cert, key, ...(certByName === undefined ? [] : [certByName])]
    .map((path) => {
      try {
        const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
        return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
      } catch (error) {
        return (error as NodeJS.ErrnoException).code; // it is missing, or may not be read
      }
    })
    .join(", ");
}
