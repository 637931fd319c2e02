import { createSecretKey, type KeyObject } from "node:crypto";
import { BlockList, isIPv4, isIPv6 } from "node:net";

/** What a setting is: its environment variable, its default as text, how it is read, and its meaning for `--help`. */
export type Setting<T> = readonly [variable: string, fallback: string, read: (text: string) => T, meaning: string];

/** A setting that cannot be used; the message names it, the value's rule and nothing secret. */
export class SettingError extends Error {
  override name = "SettingError";
}

/** A text as it is. */
export const anyText = (value: string) => value;
/** Undefined when it is not set. */
export const optional = (value: string) => (value === "" ? undefined : value);

/** A whole number within bounds. */
export function integer(min: number, max: number) {
  return (value: string) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new SettingError(`must be a whole number from ${min} to ${max}`);
    }
    return number;
  };
}

/** A whole number within bounds, or `auto`. */
export function integerOrAuto(min: number, max: number) {
  const read = integer(min, max);
  return (value: string): number | "auto" => {
    if (value === "auto") return value;
    try {
      return read(value);
    } catch (error) {
      throw error instanceof SettingError ? new SettingError(`${error.message}, or auto`) : error;
    }
  };
}

const unitsMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A number with its unit, in milliseconds; undefined when it is something else. */
function millisecondsOf(value: string): number | undefined {
  const [, count, unit] = /^(\d{1,12})(ms|s|m|h|d)$/.exec(value) ?? [];
  return count === undefined ? undefined : Number(count) * unitsMs[unit as keyof typeof unitsMs];
}

/** A duration within bounds, such as `500ms`, `10s`, `15m`, `24h` or `90d`, in milliseconds. */
export function duration(min: string, max: string) {
  return (value: string) => {
    const ms = millisecondsOf(value);
    if (ms === undefined || ms < (millisecondsOf(min) ?? 0) || ms > (millisecondsOf(max) ?? 0)) {
      throw new SettingError(`must be a duration with its unit (ms, s, m, h or d) from ${min} to ${max}`);
    }
    return ms;
  };
}

/** A duration within bounds, in seconds. */
export function durationSec(min: string, max: string) {
  const read = duration(min, max);
  return (value: string) => Math.round(read(value) / 1000);
}

/** How long things are kept, in seconds; 0 for the word `forever`. */
export function retentionSec(min: string, max: string) {
  const read = durationSec(min, max);
  return (value: string) => {
    if (value === "forever") return 0;
    try {
      return read(value);
    } catch (error) {
      throw error instanceof SettingError ? new SettingError(`${error.message}, or forever`) : error;
    }
  };
}

/** Where to listen: `<host>:<port>`, or a port of 127.0.0.1 alone; undefined when it is not set. */
export function listenAddress(value: string): { host: string; port: number } | undefined {
  if (value === "") return undefined;
  const [, bracketed, bare, port = ""] = /^(?:(?:\[([^\]]+)\]|([^:]+)):)?(\d{1,5})$/.exec(value) ?? [];
  if (port === "" || Number(port) > 65_535) {
    throw new SettingError("must be <host>:<port>, such as 127.0.0.1:9464, or a port alone");
  }
  return { host: bracketed ?? bare ?? "127.0.0.1", port: Number(port) };
}

/** On or off. */
export function flag(value: string) {
  if (value === "" || value === "0") return false;
  if (value === "1") return true;
  throw new SettingError("must be 1 (on) or 0 (off)");
}

/** One of these words. */
export function oneOf<T extends string>(...allowed: T[]) {
  return (value: string) => {
    const found = allowed.find((name) => name === value);
    if (found === undefined) throw new SettingError(`must be one of ${allowed.join(", ")}`);
    return found;
  };
}

/** Web origins, by commas. */
export function origins(value: string) {
  const list = value.split(",").map((part) => part.trim());
  if (value === "") return [];
  for (const origin of list) {
    if (origin !== "*" && (!URL.canParse(origin) || new URL(origin).origin !== origin)) {
      throw new SettingError("must be origins such as https://app.example.com, separated by commas, or *");
    }
  }
  return list;
}

/** Foreign names of services to ours, by commas: `other.v1.Ingest=belfry.receiver.v1.DataReceiverService`. */
export function serviceNames(value: string): ReadonlyMap<string, string> {
  const pairs = value === "" ? [] : value.split(",").map((part) => /^([\w.]+)=([\w.]+)$/.exec(part.trim()));
  const names = new Map(pairs.map((pair) => [pair?.[1] ?? "", pair?.[2] ?? ""]));
  if (pairs.includes(null) || names.size < pairs.length) {
    throw new SettingError(
      "must be full names of services, <foreign>=<ours>, each foreign one once, separated by commas",
    );
  }
  return names;
}

/** Names of headers, by commas, as they are compared: in lower case. */
export function headerNames(value: string): readonly string[] {
  const names = value === "" ? [] : value.split(",").map((part) => part.trim().toLowerCase());
  if (!names.every((name) => /^[a-z0-9][\w!#$%&'*+.^`|~-]*$/.test(name))) {
    throw new SettingError("must be names of headers, separated by commas");
  }
  return names;
}

/** Names of labels. */
export function labelNames(value: string): ReadonlySet<string> {
  const names = value.split(",").map((part) => part.trim());
  if (names.length > 64 || !names.every((name) => name !== "" && name.length <= 255)) {
    throw new SettingError("must be 1 to 64 names of labels, separated by commas");
  }
  return new Set(names);
}

/** The address of a PostgreSQL. */
export function databaseUrl(value: string) {
  if (value === "") return undefined;
  if (!URL.canParse(value) || !["postgres:", "postgresql:"].includes(new URL(value).protocol)) {
    throw new SettingError("must be an address of the form postgres://user:password@host:port/database");
  }
  return value;
}

/** An address of this service or of a product, without a slash at its end; undefined when it is not set. */
export function baseUrl(value: string) {
  if (value === "") return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.username + url.password + url.search + url.hash !== ""
  ) {
    throw new SettingError("must be an address of the form https://host/path");
  }
  return value.replace(/\/+$/, "");
}

/** The address of a mail relay; it may hold a password, which no error repeats. */
export function relayUrl(value: string) {
  if (value === "") return undefined;
  if (!URL.canParse(value) || !/^smtps?:$/.test(new URL(value).protocol) || new URL(value).hostname === "") {
    throw new SettingError("must be an address of the form smtp://user:password@host:port, or smtps://");
  }
  return value;
}

/** An e-mail address, with or without a name before it: `Belfry <alerts@example.com>`. */
export function sender(value: string) {
  if (value === "") return undefined;
  if (!/^(?:[^<>@\p{Cc}]* )?<[^\s<>@]+@[^\s<>@]+>$|^[^\s<>@]+@[^\s<>@]+$/u.test(value)) {
    throw new SettingError("must be an e-mail address: alerts@example.com, or Name <alerts@example.com>");
  }
  return value;
}

/** Ranges of addresses, or single ones, by commas: `10.0.0.0/8,::1`. */
export function addressRanges(value: string): BlockList {
  const list = new BlockList();
  for (const range of value.split(",").map((part) => part.trim())) {
    if (value.trim() === "") break;
    const [, address = "", bits] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(range) ?? [];
    const family = isIPv4(address) ? "ipv4" : isIPv6(address) && !address.includes("%") ? "ipv6" : undefined;
    const whole = family === "ipv4" ? 32 : 128;
    if (family === undefined || Number(bits ?? 0) > whole) {
      throw new SettingError("must be address ranges such as 10.0.0.0/8, separated by commas");
    }
    list.addSubnet(address, Number(bits ?? whole), family);
  }
  return list;
}

const severities = ["DEFAULT", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

/** Such as `INFO=1d,WARNING=3d`: seconds by the number of the severity. */
export function secondsBySeverity(value: string): ReadonlyMap<number, number> {
  const parts = value === "" ? [] : value.split(",").map((part) => part.trim().split("="));
  const ages = parts.map(([name = "", age = ""]) => {
    const ms = millisecondsOf(age) ?? 0;
    return [severities.indexOf(name), Math.round(ms / 1000)] as const;
  });
  if (ages.some(([severity, seconds]) => severity < 0 || !(seconds > 0))) {
    throw new SettingError(`must be severities (${severities.join(", ")}) with durations, such as INFO=1d,WARNING=3d`);
  }
  return new Map(ages);
}

/** A key that the keys of secrets are wrapped by, and the name by which it is distinguished from others. */
export interface MasterKey {
  readonly id: string;
  readonly key: KeyObject;
}

/**
 * Master keys as settings and key files write them: `<id>:<32 bytes in base64>`, separated by commas or white space.
 * @throws SettingError, which quotes nothing
 */
export function readMasterKeys(value: string): readonly MasterKey[] {
  const keys = value.split(/[\s,]+/).filter((part) => part !== "");
  const found = keys.map((part) => {
    const [, id = "", text = ""] = /^([\w.-]{1,64}):([A-Za-z0-9+/_-]{43}=?)$/.exec(part) ?? [];
    const bytes = Buffer.from(text, "base64");
    if (bytes.length !== 32) {
      throw new SettingError("must be master keys of the form <id>:<32 bytes in base64>, separated by commas");
    }
    return { id, key: createSecretKey(bytes) };
  });
  if (new Set(found.map(({ id }) => id)).size < found.length) throw new SettingError("must name each master key once");
  return found;
}
