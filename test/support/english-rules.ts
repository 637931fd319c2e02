import exceptions from "./english-exceptions.json" with { type: "json" };
import type { Rule } from "./house-rules.ts";
import type { Tree } from "./tree.ts";

/** Words that a native engineer would not write here, and what to write instead. Only what can be recognised without reading. */
const words: readonly { word: RegExp; instead: string }[] = [
  { word: /[;.,:] answers? (?:the|a|an|its|how|whether|what|which|with|undefined|true)\b/gi, instead: "returns" },
  { word: /\b(?:tells?|told)\b/gi, instead: "reports, notifies, records" },
  { word: /\bbehind\b/gi, instead: "after" },
  { word: /\bso (?:many|long)\b/gi, instead: "n, for that long" },
  { word: /\banew\b/gi, instead: "again" },
  { word: /\bgone\b/gi, instead: "removed" },
  { word: /\b(?:no|some)body\b/gi, instead: "no client, the caller" },
  { word: /\basks? nothing\b/gi, instead: "is idle" },
  { word: /\bstands? (?:in|at)\b/gi, instead: "is in, is at" },
  { word: /\b(?:takes?|took|taken) the place of\b/gi, instead: "replaces" },
  { word: /\bwhat is known\b/gi, instead: "cached" },
  { word: /\blost sight of\b/gi, instead: "abandoned" },
];

/** Decisions and the released part of the change log are not edited later; the list of words stands in this file. */
const unread = /^(?:docs\/decisions\/|CHANGELOG\.md$|test\/support\/english-|scripts\/record-english\.ts$)/;

/** What a file says to its readers: documents without examples, comments and, in src, the texts of log lines and errors. */
function prose(path: string, text: string): string {
  if (unread.test(path)) return "";
  if (/^(?:docs\/.*|[A-Z]+)\.md$|^bench\/README\.md$/.test(path)) return text.replaceAll(/^```[\s\S]*?^```/gm, "");
  if (!/^(?:src|console|test|bench|scripts|proto)\/.*\.(?:tsx?|proto)$/.test(path)) return "";
  const comments = text.match(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*$/gm) ?? [];
  const titles = path.startsWith("test/") ? (text.match(/\b(?:test|describe)(?:\.\w+)?\(\s*["`].*?["`]/g) ?? []) : [];
  const logged = path.startsWith("src/") ? (text.match(/"[^"\n]* [^"\n]*"/g) ?? []) : [];
  return [...comments, ...titles, ...logged].join("\n");
}

/** How often each file uses words of the list, for those that do. */
export function englishCounts(tree: Tree): Map<string, string[]> {
  const found = [...tree].map(([path, text]): [string, string[]] => {
    const own = prose(path, text);
    return [
      path,
      words.flatMap(({ word, instead }) => [...own.matchAll(word)].map(([match]) => `"${match}" (${instead})`)),
    ];
  });
  return new Map(found.filter(([, all]) => all.length > 0));
}

const allowed: Readonly<Record<string, number>> = exceptions;

/** The rule on words. What was there before it is counted by file; `node scripts/record-english.ts` lowers the counts, none is raised. */
export const englishRules: readonly Rule[] = [
  {
    guarantee:
      "no file gains a word that is not plain English, but for those counted in test/support/english-exceptions.json",
    broken: {
      "src/events/get.ts": "// Tells watchers what stands in the row.",
      "README.md": "Anew, somebody tells nobody what is gone.",
    },
    violations: (tree) =>
      [...englishCounts(tree)]
        .filter(([path, found]) => found.length > (allowed[path] ?? 0))
        .map(
          ([path, found]) =>
            `${path}: ${found.length}, allowed ${allowed[path] ?? 0}: ${[...new Set(found)].join(", ")}`,
        ),
  },
];
