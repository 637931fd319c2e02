import { createRegistry, type DescFile, type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { commentOf } from "./comments.ts";

/**
 * Reads which keys may call an RPC from an option of RPCs whose value is an enum: each value's comment has the form
 * `<what may be done>: <by whom>.` `keyless` is the name of the value whose RPCs take no key.
 */
export function callers(
  files: readonly DescFile[],
  option: string,
  keyless: string,
): { callers(method: DescMethod): string; keyless(method: DescMethod): boolean } {
  const extension = createRegistry(...files).getExtension(option);
  const values = extension?.enum?.values;
  if (extension === undefined || values === undefined) throw new Error(`callers: there is no enum option ${option}`);
  const valueOf = (method: DescMethod) =>
    hasOption(method, extension) ? values.find(({ number }) => number === getOption(method, extension)) : undefined;
  return {
    keyless: (method) => keyless !== "" && valueOf(method)?.name === keyless,
    callers(method) {
      const value = valueOf(method);
      const [, who = ""] = /: ([^:]+)$/.exec(value === undefined ? "" : commentOf(value)) ?? [];
      return who === "" ? "" : `**Keys:** ${who}`;
    },
  };
}
