import {
  adapters,
  domains,
  edges,
  importOrder,
  mechanisms,
  notificationLayers,
  observers,
  pages,
} from "../../scripts/import-order.ts";
import type { Tree } from "./tree.ts";

/** A rule of the house: what it promises, a tree that breaks it, and the search for what does. */
export interface Rule {
  guarantee: string;
  broken: Readonly<Record<string, string>>;
  /** One line for each violation: the path, and what is wrong with it. */
  violations(tree: Tree): string[];
}

/** Packages of `proto/belfry` with messages and options of a mechanism: they have no service. */
const mechanismPackages = ["auth", "clause", "errors", "limits", "paging", "transcoding"];

const drawers = /^(?:utils?|lib|libs|helpers?|types?|common|core|misc|shared|base|managers?|stuff)$/;
const kebab = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const dice = /^\d{4}_/;

/** Words that code of ours does not hold, where, and why. */
const banned: readonly { word: RegExp; where: RegExp; why: string }[] = [
  {
    word: /\b(?:TODO|FIXME|XXX|HACK)\b/,
    where: /^(?:src|console|test|scripts|bench|proto)\//,
    why: "do it, or open an issue",
  },
  { word: /\bas any\b/, where: /^(?:src|console|scripts|bench)\//, why: "name the type" },
  { word: /@ts-(?:ignore|nocheck)/, where: /^(?:src|console|test|scripts|bench)\//, why: "repair the type" },
  { word: /\bgetOption\b/, where: /^src\/(?!proto-option\.ts)/, why: "options are read once, by optionOf" },
  { word: /\$typeName:/, where: /^src\/(?!transcoding\/)/, why: "make messages with create()" },
  { word: /\bprocess\.env\b(?!\.PATH\b)/, where: /^src\/(?!main\.ts)/, why: "settings are handed down from main.ts" },
  { word: /\bconsole\.\w/, where: /^src\/(?!main\.ts)/, why: "the log is handed down" },
  {
    word: /\bvi\.(?:mock|doMock|fn|spyOn|stub\w+|useFakeTimers\((?!\{ toFake: \["Date"\]))/,
    where: /^test\//,
    why: "tests use the real thing; only the clock on the wall may be wrong",
  },
  {
    word: /\bfor update skip locked\b/i,
    where: /^src\/(?!jobs\/|notifications\/)/,
    why: "work is claimed by the queues",
  },
  {
    word: /\bget \w+\(\)[^{;]*\{(?!\s*return [\w.? ]+;\s*\})/,
    where: /^src\/(?!wire\/call\.ts|http\/grpc-stream\.ts)/, // their getters are those of interfaces of Connect and Node
    why: "what computes is a function: reading a property, or spreading its object, costs nothing",
  },
];

const sources = (tree: Tree, where: RegExp) =>
  [...tree].filter(([path]) => where.test(path) && /\.(?:tsx?|js)$/.test(path));

/** The names directly below a folder, each once. */
function namesIn(tree: Tree, folder: string) {
  const names = new Set<string>();
  for (const path of tree.keys()) {
    if (path.startsWith(`${folder}/`)) names.add(path.slice(folder.length + 1).split("/", 1)[0] ?? "");
  }
  return [...names];
}

/** The rules that look at names and texts of the code alone. */
export const houseRules: readonly Rule[] = [
  {
    guarantee: "no file is a barrel or a drawer",
    broken: { "src/events/index.ts": "", "src/lib/page.ts": "", "test/support/utils.ts": "" },
    violations: (tree) =>
      sources(tree, /^(?:src|console|test|scripts|bench)\//).flatMap(([path]) =>
        path
          .split("/")
          .map((name) => name.split(".", 1)[0] ?? "")
          .filter((name) => name === "index" || drawers.test(name))
          .map((name) => `${path}: ${name} says nothing of what is inside`),
      ),
  },
  {
    guarantee: "names of files and folders are kebab-case",
    broken: { "src/events/setStatus.ts": "", "src/events/events.service.ts": "" },
    violations: (tree) =>
      sources(tree, /^(?:src|console|test|scripts|bench)\//)
        .filter(([path]) =>
          path
            .replace(/(?:(?:\.system)?\.test|\.config|\.d)?\.\w+$/, "")
            .split("/")
            .some((name) => !kebab.test(name)),
        )
        .map(([path]) => `${path}: not kebab-case`),
  },
  {
    guarantee: "everything in src has its place in the import order",
    broken: { "src/webhooks/send.ts": "" },
    violations: (tree) =>
      namesIn(tree, "src")
        .filter((name) => !importOrder.includes(name.replace(/\.ts$/, "")))
        .map((name) => `src/${name}: not in scripts/import-order.ts`),
  },
  {
    guarantee: "every folder of src/notifications is a layer, and only what starts them stands beside them",
    broken: { "src/notifications/escalations/levels.ts": "", "src/notifications/later.ts": "" },
    violations: (tree) =>
      namesIn(tree, "src/notifications")
        .filter((name) => ![...notificationLayers, "start.ts"].includes(name))
        .map((name) => `src/notifications/${name}: not in scripts/import-order.ts`),
  },
  {
    guarantee: "a domain folder is a proto package of the same name, and the other way round",
    broken: { "src/events/service.ts": "", "proto/belfry/alarms/v1/alarm.proto": "" },
    violations: (tree) => {
      const folders = namesIn(tree, "src").filter((name) => !name.includes("."));
      const packages = namesIn(tree, "proto/belfry");
      return [
        ...folders
          .filter((name) => ![...edges, ...mechanisms, ...adapters, ...observers, ...pages, ...packages].includes(name))
          .map((name) => `src/${name}: no package proto/belfry/${name}`),
        ...packages
          .filter((name) => !mechanismPackages.includes(name) && !domains.includes(name))
          .map((name) => `proto/belfry/${name}: neither a domain nor a package of a mechanism`),
        ...packages
          .filter((name) => domains.includes(name) && !folders.includes(name))
          .map((name) => `proto/belfry/${name}: no folder src/${name}`),
      ];
    },
  },
  {
    guarantee: "only packages of domains have services, in version 1",
    broken: { "proto/belfry/clause/v1/clause.proto": "service A {}", "proto/belfry/events/v2/event.proto": "" },
    violations: (tree) =>
      [...tree]
        .filter(([path]) => path.startsWith("proto/belfry/"))
        .flatMap(([path, text]) => {
          const [, , name = "", version] = path.split("/");
          if (version !== "v1") return [`${path}: not in a folder v1`];
          const serves = /^service /m.test(text);
          return serves && mechanismPackages.includes(name) ? [`${path}: a mechanism serves nothing`] : [];
        }),
  },
  {
    guarantee: "errors are made by errors.ts, rpc/errors.ts and what stands below them alone",
    broken: { "src/events/get.ts": 'throw new ConnectError("no")' },
    violations: (tree) =>
      sources(tree, /^src\/(?!errors\.ts$|rpc\/errors\.ts$|wire\/|transcoding\/)/)
        .filter(([, text]) => /\bnew ConnectError\b/.test(text))
        .map(([path]) => `${path}: makes a ConnectError`),
  },
  {
    guarantee: "an exported function says what it does",
    broken: { "src/events/get.ts": "export async function getEvent() {}\n" },
    violations: (tree) =>
      // What a service does stands in its proto file.
      sources(tree, /^src\/(?!\w+\/service\.ts$)/).flatMap(([path, text]) =>
        [...text.matchAll(/^export (?:async )?function\*? (\w+)/gm)]
          .filter((match) => !/\*\/\s*$/.test(text.slice(0, match.index)))
          .filter((match) => !overloaded(text, match.index, match[1] ?? ""))
          .map((match) => `${path}: ${match[1]} has no docstring`),
      ),
  },
  {
    guarantee: "comments between statements have three lines at most",
    broken: { "src/events/get.ts": "  // a\n  // b\n  // c\n  // d\n" },
    violations: (tree) =>
      sources(tree, /^src\//)
        .filter(([, text]) => /(?:^[ \t]+\/\/.*\n){4}/m.test(text))
        .map(([path]) => `${path}: a comment of more than three lines; a design page has room for more`),
  },
  {
    guarantee: "banned words do not occur",
    broken: { "src/events/get.ts": "// TODO: later", "src/limiter.ts": "get sum() {\n  return add(rows);\n}" },
    violations: (tree) =>
      [...tree]
        .filter(([path]) => path !== "test/support/house-rules.ts")
        .flatMap(([path, text]) =>
          banned
            .filter(({ where }) => where.test(path))
            .flatMap(({ word, why }) => {
              const found = word.exec(text)?.[0];
              return found === undefined ? [] : [`${path}: "${found}": ${why}`];
            }),
        ),
  },
  {
    guarantee: "a test lies beside what it tests: test/<folder of src>/<file>.test.ts",
    broken: { "test/alarms/alarm.test.ts": "" },
    violations: (tree) =>
      [...tree.keys()]
        .filter((path) => /^test\/[^/]+\/.*\.test\.ts$/.test(path))
        .filter((path) => {
          const [, folder = ""] = path.split("/");
          return ![
            ...edges,
            ...mechanisms,
            ...domains,
            ...adapters,
            ...observers,
            ...pages,
            "proto",
            "bench",
            "clients",
            "start",
            "faults",
            "regressions",
            "mutants",
          ].includes(folder);
        })
        .map((path) => `${path}: no such folder in src`),
  },
  {
    guarantee: "a test that starts a process, a program or a browser of ours ends in .system.test.ts",
    broken: { "test/faults/kill.test.ts": 'import { serverProcess } from "./server-process.ts";' },
    violations: (tree) =>
      sources(tree, /^test\/.*(?<!\.system)\.test\.tsx?$/)
        .filter(([, text]) => /from ".*\/(?:server-process|browser|program|embedded-server)\.ts"/.test(text))
        .map(([path]) => `${path}: rename it to .system.test.ts (CONTRIBUTING.md)`),
  },
  {
    guarantee: "migrations are SQL files numbered without gaps, once each",
    broken: { "migrations/0001_events.sql": "" },
    violations: (tree) => {
      const names = namesIn(tree, "migrations").filter((name) => name !== "meta");
      return names
        .sort()
        .filter((name, index) => !(dice.test(name) && name.endsWith(".sql") && Number(name.slice(0, 4)) === index))
        .map((name) => `migrations/${name}: not the next number, or no .sql`);
    },
  },
];

/** Whether the function is a further signature of one that was documented above. */
function overloaded(text: string, index: number, name: string) {
  return new RegExp(`^export (?:async )?function\\*? ${name}\\b`, "m").test(text.slice(0, index));
}
