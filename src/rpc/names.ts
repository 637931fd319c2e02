import { invalidField } from "../errors.ts";

/** Characters without width, and those that turn the direction of text. */
const unseen = /[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/;

/** A name by which a thing is found: the same for all ways to write its characters (NFC). */
export const foundBy = (name: string) => name.normalize("NFC");

/**
 * The name that a new thing is stored and found by. @throws code 3 at `path` for characters that are not seen: two names
 * that look alike shall be one
 */
export function uniqueName(name: string, path: string): string {
  if (unseen.test(name)) throw invalidField(path, "must not contain characters without width, nor any of direction");
  return foundBy(name);
}
