import { hereWith, linkTo } from "../data/address.ts";

/** Returns the link to the form of a silence, from which one comes back to this address. */
export const silenceLink = (of: { occurrence: string } | { matchers: string }): string =>
  linkTo(["silences", "new"], { ...of, from: hereWith({}) });
