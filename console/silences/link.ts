import { hereWith, linkTo } from "../data/address.ts";

/** Returns the link to a new silence; its form returns to this address. */
export const silenceLink = (
  of: { occurrence: string } | { entity: string; matchers?: string } | { matchers: string },
): string => linkTo(["silences", "new"], { ...of, from: hereWith({}) });
