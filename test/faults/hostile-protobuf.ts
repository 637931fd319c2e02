/** A number as Protobuf writes it. */
export const varint = (value: number): number[] =>
  value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];

const tag = (number: number, type: number) => varint(number * 8 + type);

/** A field that holds bytes, a text or a message of such parts. */
export function part(number: number, ...parts: readonly (Uint8Array | string)[]): Buffer {
  const bytes = Buffer.concat(parts.map((each) => (typeof each === "string" ? Buffer.from(each) : each)));
  return Buffer.concat([Buffer.from([...tag(number, 2), ...varint(bytes.length)]), bytes]);
}

/** A field that holds a number of eight bytes. */
export function fixed64(number: number, value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return Buffer.concat([Buffer.from(tag(number, 1)), bytes]);
}

export function double(number: number, value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([Buffer.from(tag(number, 1)), bytes]);
}

/** The same bytes again and again. */
export const repeated = (count: number, bytes: Uint8Array): Buffer => Buffer.alloc(count * bytes.length, bytes);

/** As many empty values of a field that holds messages. */
export const empties = (number: number, count: number): Buffer => repeated(count, part(number));

/** As many fields that no schema has. */
export const unknown = (count: number): Buffer => repeated(count, Buffer.from([...tag(3000, 0), 0]));

/** Fields that say they are longer than what follows. */
export const lying = (number: number): Buffer => Buffer.from([...tag(number, 2), ...varint(2 ** 31), 0]);

/** A value within as many others, in the fields of these numbers in turn. */
export function deep(levels: number, numbers: readonly number[]): Buffer {
  let bytes: Buffer = Buffer.alloc(0);
  for (let i = 0; i < levels; i += 1) bytes = part(numbers[i % numbers.length] as number, bytes);
  return bytes;
}
