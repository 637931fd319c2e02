import type { DescEnum, DescMessage } from "@bufbuild/protobuf";
import type { Route } from "../../src/transcoding/routes/binding.ts";

type Named = DescMessage | DescEnum;

/** Names the components of a document, and knows which of them are in answers. */
export interface Names {
  /** The name of a message or enum: its own, and its package's before it where two have the same. */
  short(desc: Named): string;
  answered(desc: DescMessage): boolean;
}

/** The names of all that the requests and answers of these routes hold. */
export function namesOf(routes: readonly Route[]): Names {
  const answers = new Set<Named>();
  const requests = new Set<Named>();
  for (const { method } of routes) {
    collect(method.output, answers);
    collect(method.input, requests);
  }
  const taken = new Map<string, number>();
  for (const desc of new Set([...answers, ...requests])) taken.set(plain(desc), (taken.get(plain(desc)) ?? 0) + 1);
  return {
    answered: (desc) => answers.has(desc),
    short: (desc) => (taken.get(plain(desc)) === 1 ? plain(desc) : domain(desc) + plain(desc)),
  };
}

function collect(desc: Named, into: Set<Named>): void {
  if (into.has(desc)) return;
  into.add(desc);
  if (desc.kind === "enum") return;
  for (const { message, enum: values } of desc.fields) {
    const inner = message ?? values;
    if (inner !== undefined) collect(inner, into);
  }
}

/** The name within its package. */
function plain({ typeName, file }: Named): string {
  const { package: name } = file.proto;
  return name === "" ? typeName : typeName.slice(name.length + 1);
}

/** The last part of the package that is no version, as in `Events` for `belfry.events.v1`. */
function domain({ file }: Named): string {
  const part = file.proto.package.split(".").findLast((name) => !/^v\d/.test(name)) ?? "";
  return part.slice(0, 1).toUpperCase() + part.slice(1);
}
