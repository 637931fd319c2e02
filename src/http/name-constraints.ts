import { isIP } from "node:net";

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
