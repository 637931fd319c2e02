import { dirname, join } from "node:path/posix";
import type { Rule } from "./house-rules.ts";
import type { Tree } from "./tree.ts";

/** Kinds of entries of the change log, most weighty first. */
const changes = "Added|Changed|Deprecated|Removed|Fixed|Security";

const citable = "ts|js|md|proto|sql|json|jsonc|yaml|yml|sh|py";
const citedPath = new RegExp(`(?<![\\w:/.@#<>*…-])((?:[\\w.-]+/)*[\\w-][\\w.-]*\\.(?:${citable}))(?![\\w/*-])`, "g");
const citedDesign = /\bdesign\/([a-z][a-z-]*)\b/g;
/** Released migrations, which never change, name decisions by numbers. */
const formerDecision = /\bdecisions\/(\d{4})\b/g;

/** Packages whose files documents may name. */
const elsewhere = /(?:prometheus|alertmanager|belfry-rules)\.yml|^(?:google|buf|node_modules)\//;

const documents = (tree: Tree) => [...tree].filter(([path]) => path.endsWith(".md"));

/** The trees that break these rules stand in this file. */
const self = "test/support/document-rules.ts";

/** What a file says to its readers: the whole of a document without its examples, the comments of code. */
function prose(path: string, text: string): string {
  if (path === self) return "";
  if (path.endsWith(".md")) return text.replaceAll(/^```[\s\S]*?^```/gm, "");
  const comment = path.endsWith(".sql") ? /--.*$/gm : /\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm;
  return /\.(?:ts|js|proto|sql)$/.test(path) ? (text.match(comment) ?? []).join("\n") : "";
}

/** In comments a bare file name may be anybody's; in documents it stands in code quotes and is ours. */
function citations(path: string, text: string): string[] {
  const where = path.endsWith(".md") ? (prose(path, text).match(/`[^`\n]+`/g) ?? []).join("\n") : prose(path, text);
  const found = [...where.matchAll(citedPath)].map((match) => match[1] ?? "");
  return path.endsWith(".md")
    ? found
    : found.filter((name) => /^(?:src|test|docs|scripts|proto|migrations)\//.test(name));
}

function exists(tree: Tree, name: string, from: string): boolean {
  if (elsewhere.test(name)) return true;
  if (!name.includes("/")) return [...tree.keys()].some((path) => path.endsWith(`/${name}`) || path === name);
  const folders = ["", "src", "proto/belfry", "docs", "test", dirname(from)];
  return folders.some((folder) => tree.has(join(folder, name)));
}

/** The rules that look at documents and at what comments cite. */
export const documentRules: readonly Rule[] = [
  {
    guarantee: "every path that a document or a comment cites exists",
    broken: { "docs/architecture.md": "see `events/gone.ts`", "src/events/get.ts": "// see docs/gone.md" },
    violations: (tree) =>
      [...tree].flatMap(([path, text]) =>
        citations(path, text)
          .filter((name) => !exists(tree, name, path))
          .map((name) => `${path}: cites ${name}`),
      ),
  },
  {
    guarantee:
      "every design page that is cited exists; so does the page of a decision that is cited by its former number",
    broken: { "src/events/get.ts": "// design/gone", "migrations/0001_a.sql": "-- decisions/0999" },
    violations: (tree) => {
      const former = tree.get("docs/design/README.md") ?? "";
      return [...tree].flatMap(([path, text]) => {
        const said = prose(path, text);
        return [
          ...[...said.matchAll(citedDesign)]
            .filter(([, page]) => !tree.has(`docs/design/${page}.md`))
            .map(([, page]) => `${path}: cites design/${page}`),
          ...[...said.matchAll(formerDecision)]
            .filter(([, number = ""]) => !former.includes(number))
            .map(([, number]) => `${path}: cites decision ${number}`),
        ];
      });
    },
  },
  {
    guarantee: "links between documents lead somewhere",
    broken: { "README.md": "[map](docs/map.md)" },
    violations: (tree) =>
      documents(tree).flatMap(([path, text]) =>
        [...prose(path, text).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)]
          .map((match) => match[1] ?? "")
          .filter((target) => !/^\w+:/.test(target))
          .filter((target) => {
            const place = join(dirname(path), target).replace(/\/$/, "");
            return !tree.has(place) && ![...tree.keys()].some((name) => name.startsWith(`${place}/`));
          })
          .map((target) => `${path}: links to ${target}`),
      ),
  },
  {
    guarantee: "a design page is listed, and ends with what was tried and refused and what is not promised",
    broken: { "docs/design/README.md": "| [a](a.md) | a |", "docs/design/b.md": "# B\n\n## Not promised\n" },
    violations: (tree) => {
      const list = tree.get("docs/design/README.md");
      const pages = documents(tree).filter(([path]) => /^docs\/design\/(?!(?:README|refused)\.md$)/.test(path));
      return pages.flatMap(([path, text]) => {
        const parts = [...text.matchAll(/^## (.+)$/gm)].map((match) => match[1]);
        return [
          ...(list?.includes(`(${path.slice("docs/design/".length)})`)
            ? []
            : [`${path}: is not in docs/design/README.md`]),
          ...(parts.slice(-2).join() === "Tried and refused,Not promised" ? [] : [`${path}: does not end so`]),
        ];
      });
    },
  },
  {
    guarantee: "docs/architecture.md names every file and folder of the first level of the repository and of src/",
    broken: { "docs/architecture.md": "`src/`, `docs/` and `main.ts`", "src/main.ts": "", "src/new.ts": "" },
    violations: (tree) => {
      const map = tree.get("docs/architecture.md");
      if (map === undefined) return [];
      const first = (path: string) => path.replace(/\/.*/, "/");
      const names = [...tree.keys()].flatMap((path) =>
        path.startsWith("src/") ? ["src/", first(path.slice("src/".length))] : first(path),
      );
      return [...new Set(names)]
        .filter((name) => (name === ".ci/" || !name.startsWith(".")) && !map.includes(`\`${name}\``))
        .map((name) => `docs/architecture.md: does not name ${name}`);
    },
  },
  {
    guarantee: "each line of docs/osps-baseline.md names paths that exist, or says that it is not met",
    broken: {
      "docs/osps-baseline.md":
        "| OSPS-AC-01.01 | 1 | a | `gone/` |\n| OSPS-AC-02.01 | 1 | b | yes |\n| OSPS-AC-03.01 | 1 | c | *not met* |",
    },
    violations: (tree) => {
      const lines = (tree.get("docs/osps-baseline.md") ?? "").split("\n").filter((line) => line.startsWith("| OSPS-"));
      return lines.flatMap((line) => {
        const paths = (line.split("|")[4]?.match(/`[^`\s]*[./A-Z][^`\s]*`/g) ?? []).map((path) => path.slice(1, -1));
        const missing = paths.filter(
          (path) => ![...tree.keys()].some((name) => name === path || name.startsWith(path)),
        );
        const empty = paths.length === 0 && !line.includes("*not met*");
        return [...missing, ...(empty ? ["nothing"] : [])].map(
          (what) => `docs/osps-baseline.md: ${line.slice(2, 15)} names ${what}`,
        );
      });
    },
  },
  {
    guarantee:
      "the change log keeps the form of Keep a Changelog, and its newest release is the version of the package",
    broken: { "CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n### New\n\n- Search is faster\n" },
    violations: (tree) => {
      const text = tree.get("CHANGELOG.md");
      if (text === undefined) return [];
      const lines = text.split("\n");
      const [first, ...releases] = lines.filter((line) => line.startsWith("## "));
      const { version } = JSON.parse(tree.get("package.json") ?? "{}") as { version?: string };
      const wrong = [
        ...(first === "## [Unreleased]" ? [] : ["[Unreleased] does not come first"]),
        ...(version === undefined || releases[0]?.startsWith(`## [${version}] `) ? [] : [`no release ${version}`]),
        ...releases.filter((line) => !/^## \[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}$/.test(line)),
        ...lines.filter((line) => line.startsWith("### ") && !new RegExp(`^### (?:${changes})$`).test(line)),
        ...lines
          .filter((line) => line.startsWith("-") && !/^- [a-z-]+: .*[^.]$/.test(line))
          .map((line) => `not "- area: what": ${line}`),
        ...lines
          .filter((line) => line.startsWith("- ") && line.split(/\s+/).length > 25 + 2)
          .map((line) => `more than 25 words: ${line}`),
      ];
      return wrong.map((what) => `CHANGELOG.md: ${what}`);
    },
  },
  {
    guarantee: "every dependency has its line of reason, and no other",
    broken: { "package.json": '{"dependencies":{"left-pad":"1.0.0"}}', "docs/dependencies.md": "- `right-pad`: pads" },
    violations: (tree) => {
      const {
        dependencies = {},
        optionalDependencies = {},
        devDependencies = {},
      } = JSON.parse(tree.get("package.json") ?? "{}") as Record<string, Record<string, string>>;
      const needed = Object.keys({ ...dependencies, ...optionalDependencies, ...devDependencies });
      const lines = [...(tree.get("docs/dependencies.md") ?? "").matchAll(/^- `([^`]+)`: \S/gm)];
      const given = lines.map((match) => match[1] ?? "");
      return [
        ...needed.filter((name) => !given.includes(name)).map((name) => `docs/dependencies.md: no reason for ${name}`),
        ...given.filter((name) => !needed.includes(name)).map((name) => `docs/dependencies.md: ${name} is not used`),
      ];
    },
  },
  {
    guarantee: "docs/errors.md explains every error that errors.ts makes",
    broken: { "src/errors.ts": "export function tooOld(): ConnectError {}", "docs/errors.md": "" },
    violations: (tree) =>
      [...(tree.get("src/errors.ts") ?? "").matchAll(/^export function (\w+)/gm)]
        .map((match) => match[1] ?? "")
        .filter((name) => !tree.get("docs/errors.md")?.includes(`\`${name}\``))
        .map((name) => `docs/errors.md: nothing on ${name}`),
  },
  {
    guarantee: "the repository speaks of the product, not of the machine it was written on or of numbers of issues",
    broken: { "README.md": "see /work/main", "test/regressions/issue-7-lost.test.ts": "", "src/a.ts": "// issue #7" },
    violations: (tree) =>
      [...tree]
        .filter(([path]) => path !== self && path !== "package-lock.json")
        .filter(([path, text]) =>
          /\/work\/|\/tmp\/belfry|\/root\/|shared\/spec|\bissues?[ -]#?\d/i.test(`${path}\n${text}`),
        )
        .map(([path]) => `${path}: names a path of one machine, or an issue`),
  },
];
