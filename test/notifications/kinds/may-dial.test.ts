import { describe, expect, test } from "vitest";
import { addressRanges, SettingError } from "../../../src/config/parsers.ts";
import { mayDial } from "../../../src/notifications/kinds/may-dial.ts";

const ranges = addressRanges;
const none = ranges("");

const refused = [
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.1",
  "10.255.255.255",
  "100.64.0.1",
  "100.127.255.254",
  "127.0.0.1",
  "127.255.255.254",
  "168.63.129.16",
  "169.254.0.1",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.1",
  "192.0.0.170",
  "192.0.2.1",
  "192.88.99.1",
  "192.168.0.1",
  "192.168.255.255",
  "198.18.0.1",
  "198.19.255.255",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::7f00:1", // IPv4-compatible
  "::127.0.0.1",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "::ffff:10.0.0.1",
  "::ffff:a9fe:a9fe",
  "::ffff:0:127.0.0.1", // translated
  "64:ff9b::127.0.0.1",
  "64:ff9b::8.8.8.8",
  "64:ff9b:1::1",
  "100::1",
  "2001::1", // Teredo
  "2001:10::1",
  "2001:db8::1",
  "2002:7f00:1::1",
  "2002:808:808::1",
  "3fff::1",
  "5f00::1",
  "fc00::1",
  "fd12:3456:789a::1",
  "fe80::1",
  "fe80::1%eth0",
  "2606:4700::1111%eth0",
  "fec0::1",
  "ff02::1",
  "4000::1", // not assigned
];
const dialled = [
  "1.1.1.1",
  "8.8.8.8",
  "9.255.255.255",
  "100.63.255.255",
  "100.128.0.1",
  "126.255.255.255",
  "168.63.129.17",
  "172.15.255.255",
  "172.32.0.1",
  "192.167.255.255",
  "198.17.255.255",
  "223.255.255.255",
  "::ffff:8.8.8.8",
  "::ffff:808:808",
  "2606:4700:4700::1111",
  "2a00:1450:4001::1",
];

describe("addresses that are not public are refused, in whatever form", () => {
  test.each(refused)("%s", (address) => expect(mayDial(address, none)).toBe(false));
  test.each(["", "localhost", "1.2.3", "2130706433"])("no address at all: %j", (text) =>
    expect(mayDial(text, none)).toBe(false),
  );
});

test.each(dialled)("a public address may be dialled: %s", (address) => expect(mayDial(address, none)).toBe(true));

describe("the operator's ranges may be dialled", () => {
  test.each([
    ["127.0.0.0/8", "127.9.9.9"],
    ["127.0.0.1", "127.0.0.1"],
    ["10.1.0.0/16", "::ffff:10.1.2.3"],
    ["::1", "::1"],
    ["fd00::/8", "fd12::1"],
    ["0.0.0.0/0", "192.168.1.1"],
  ])("%s holds %s", (range, address) => expect(mayDial(address, ranges(range))).toBe(true));

  test.each([
    ["127.0.0.1", "127.0.0.2"],
    ["10.1.0.0/16", "10.2.0.1"],
    ["10.0.0.0/8", "fd00::1"],
  ])("%s does not hold %s", (range, address) => expect(mayDial(address, ranges(range))).toBe(false));

  test.each([
    "10.0.0.0/33",
    "::1/129",
    "10.0.0",
    "localhost",
    "10.0.0.0/8/8",
    "fe80::1%eth0",
    "10.0.0.0/-1",
    ",",
    "::1,",
  ])("what is no range is refused: %j", (text) => expect(() => ranges(text)).toThrow(SettingError));
});
