import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createRegistry, type DescFile, type DescMethod, hasOption } from "@bufbuild/protobuf";
import { getComments } from "@bufbuild/protoplugin";
import { optionOf } from "../../src/proto-option.ts";

const item = /^(?:[-*] |\d+\. )/;

/**
 * The leading comment of a declaration as Markdown, without lines for linters. A line that continues a sentence joins the
 * line before it; paragraphs and lists stay apart.
 */
export function commentOf(desc: Parameters<typeof getComments>[0]): string {
  const lines = (getComments(desc).leading ?? "").split("\n").map((line) => line.trim());
  const text = lines
    .filter((line) => !line.startsWith("buf:lint:"))
    .map((line, i) => (line === "" ? "\n\n" : item.test(line) ? `\n${line}` : i === 0 ? line : ` ${line}`))
    .join("");
  return text
    .replace(/\n{3,}/g, "\n\n")
    .replace(/\n\n +/g, "\n\n")
    .trim();
}

/** The first sentence of a comment, without its full stop. */
export function summaryOf(comment: string): string {
  const [line = ""] = comment.split("\n");
  return (/^.*?[.](?=\s|$)/.exec(line)?.[0] ?? line).replace(/\.$/, "");
}

/** A member `description`, unless there is nothing to say. */
export function described(...sentences: string[]): { description?: string } {
  const text = sentences.filter((sentence) => sentence !== "").join(" ");
  return text === "" ? {} : { description: text };
}

/** A request of one operation and what a server answered to it. */
export interface Example {
  /** The RPC, as in `TriggerService/CreateTrigger`. */
  readonly rpc: string;
  readonly path?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  /** The answer's body; of a stream, its first records. */
  readonly answer?: unknown;
}

/** All examples in the `.json` files of a folder, a list each, by their RPC. */
export function readExamples(folder: string): ReadonlyMap<string, Example> {
  const found = new Map<string, Example>();
  for (const path of globSync("*.json", { cwd: folder }).sort()) {
    for (const example of JSON.parse(readFileSync(join(folder, path), "utf8")) as Example[]) {
      if (found.has(example.rpc)) throw new Error(`${path}: ${example.rpc} has two examples`);
      found.set(example.rpc, example);
    }
  }
  return found;
}

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
    hasOption(method, extension) ? values.find(({ number }) => number === optionOf(method, extension)) : undefined;
  return {
    keyless: (method) => keyless !== "" && valueOf(method)?.name === keyless,
    callers(method) {
      const value = valueOf(method);
      const [, who = ""] = /: ([^:]+)$/.exec(value === undefined ? "" : commentOf(value)) ?? [];
      return who === "" ? "" : `**Keys:** ${who}`;
    },
  };
}
