import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { invalidField } from "../errors.ts";

/** The host of an http or https address as hosts are compared: lower-case ASCII, without the dot of the root. */
export function hostOf(address: string): string | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) return undefined;
  return url.hostname.replace(/\.$/, "");
}

const wildcard = "*.";

/** A name of `allowedHosts` as hosts are compared. */
const compared = (name: string) =>
  name.startsWith(wildcard)
    ? `${wildcard}${hostOf(`https://${name.slice(wildcard.length)}`) ?? ""}`
    : (hostOf(`https://${name}`) ?? "");

/** Whether one name of `allowedHosts` covers another, or a host: `*.a.b` covers `*.c.a.b` and `c.a.b`, and not `a.b`. */
const covers = (name: string, other: string) =>
  name.startsWith(wildcard) ? other === name || other.endsWith(name.slice(1)) : other === name;

/** Tells whether a credential's secrets may be sent to a host, as `hostOf` returns it. Without names there is no credential. */
export function allowsHost(allowedHosts: readonly string[], host: string): boolean {
  return allowedHosts.length === 0 || allowedHosts.some((name) => covers(compared(name), host));
}

/**
 * Checks that stored secrets may go nowhere else than before, since they stay while `allowedHosts` changes: else whoever may
 * change a credential could have its secrets sent to a host of their own. @throws code 3 when they may
 */
export function checkKeptHosts(
  allowedHosts: readonly string[],
  { allowedHosts: allowed, boundHosts: bound }: { allowedHosts: readonly string[]; boundHosts: readonly string[] },
): void {
  const storedHosts = allowed.length > 0 ? allowed : bound;
  if (storedHosts.length === 0) return;
  // They stay bound as they are.
  if (allowed.length === 0 && allowedHosts.length === 0) return;
  const before = storedHosts.map(compared);
  const within = allowedHosts.every((name) => before.some((each) => covers(each, compared(name))));
  if (allowedHosts.length > 0 && within) return;
  throw invalidField(
    "secrets",
    "must be given again: allowedHosts names hosts that were not allowed before",
    FieldRule.SECRET,
  );
}
