import type { Broken } from "../../rpc/constraint-rules.ts";

/** Why an address cannot be one that is sent to; one with tags is judged by what stands before them. */
export function brokenUrl(path: string, text: string): Broken[] {
  if (text === "") return []; // the proto says whether it must be there
  const fixed = text.split("{{", 1)[0] as string;
  if (fixed !== text) {
    const good = fixed === "" || /^https?:\/\//i.test(fixed) || /^(?:https?)?:?\/{0,2}$/i.test(fixed);
    return good ? [] : [{ path, rule: "must begin with http:// or https://" }];
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
    return [{ path, rule: "must be an address that begins with http:// or https://" }];
  }
  if (url.username === "" && url.password === "") return [];
  return [{ path, rule: "must not hold a user name or password" }];
}
