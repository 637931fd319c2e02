import { createRegistry, type DescFile, type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { commentOf } from "./comments.ts";

/**
 * Reads which keys may call an RPC from an option of RPCs whose value is an enum: each value's comment has the form
 * `<what may be done>: <by whom>.`
 */
export function callers(files: readonly DescFile[], option: string): (method: DescMethod) => string {
  const extension = createRegistry(...files).getExtension(option);
  const values = extension?.enum?.values;
  if (extension === undefined || values === undefined) throw new Error(`callers: there is no enum option ${option}`);
  return (method) => {
    if (!hasOption(method, extension)) return "";
    const value = values.find(({ number }) => number === getOption(method, extension));
    const [, who = ""] = /: ([^:]+)$/.exec(value === undefined ? "" : commentOf(value)) ?? [];
    return who === "" ? "" : `**Keys:** ${who}`;
  };
}
