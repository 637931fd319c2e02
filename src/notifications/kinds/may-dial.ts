import { type BlockList, isIPv4, isIPv6 } from "node:net";
import { addressRanges } from "../../config/parsers.ts";

/*
 * Which addresses are public: the registries of special addresses of IANA (RFC 6890), and what else is known to answer
 * for the machine or its provider. IPv6: nothing but global unicast (2000::/3), less what is special within it; so all
 * forms that carry an IPv4 address are refused.
 */
const specialV4 = [
  "0.0.0.0/8", // this network
  "10.0.0.0/8",
  "100.64.0.0/10", // shared by customers of a provider
  "127.0.0.0/8",
  "168.63.129.16/32", // a cloud's own agent
  "169.254.0.0/16", // link-local, metadata of clouds
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, broadcast
];
const specialV6 = [
  "2001::/23", // protocol assignments, Teredo
  "2001:db8::/32",
  "2002::/16", // 6to4
  "2620:4f:8000::/48",
  "3fff::/20",
];

const special = addressRanges([...specialV4, ...specialV6].join());
const globalV6 = addressRanges("2000::/3");

/** An IPv4 address that is written as IPv6 (`::ffff:10.0.0.1`, `::ffff:a00:1`) in its own form. */
function unmapped(address: string): string {
  if (!isIPv6(address)) return address;
  const groups = /^\[::ffff:([\da-f]{1,4}):([\da-f]{1,4})\]$/.exec(new URL(`http://[${address}]`).hostname);
  if (groups === null) return address;
  const [high, low] = [Number.parseInt(groups[1] as string, 16), Number.parseInt(groups[2] as string, 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

/** Whether an address may be dialled: it is public, or one of those that the operator allows. */
export function mayDial(address: string, allowed: BlockList): boolean {
  if (address.includes("%")) return false; // a zone: never public
  const own = unmapped(address);
  if (isIPv4(own)) return allowed.check(own, "ipv4") || !special.check(own, "ipv4");
  if (!isIPv6(own)) return false;
  return allowed.check(own, "ipv6") || (globalV6.check(own, "ipv6") && !special.check(own, "ipv6"));
}
