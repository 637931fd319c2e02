import { describe, expect, test } from "vitest";
import { settingsHelp } from "../src/config/settings.ts";
import { documentRules } from "./support/document-rules.ts";
import { errorTexts } from "./support/error-texts.ts";
import { readTree } from "./support/tree.ts";

const tree = readTree(new URL("..", import.meta.url).pathname);

describe.each(documentRules)("$guarantee", ({ broken, violations }) => {
  test("in this tree", () => {
    expect(violations(tree)).toEqual([]);
  });

  test("a tree that breaks it is found", () => {
    expect(violations(new Map(Object.entries(broken))).length).toBeGreaterThan(0);
  });
});

describe("docs/configure.md", () => {
  test("lists every setting with its default, in the order of --help", () => {
    const rows = [...(tree.get("docs/configure.md") ?? "").matchAll(/^\| `([A-Z_]+)` \| (?:`([^`]*)`|–) \|/gm)];
    const settings = settingsHelp()
      .split("\n")
      .map((line) => line.trim().split(/\s+/));
    expect(rows.map(([, name, fallback]) => [name, fallback ?? "(none)"])).toEqual(
      settings.map(([name, fallback]) => [name, fallback]),
    );
  });
});

describe("docs/concepts.md", () => {
  test("explains every word that a newcomer meets", () => {
    const words = [
      "Entity",
      "Dimension",
      "Series",
      "Event",
      "Alert",
      "Occurrence",
      "Instance",
      "Custom property",
      "Updater",
      "Window",
      "Destination",
      "Rule",
      "Matcher",
      "Trigger",
      "Group",
      "Silence",
      "Delivery",
      "Credential",
      "Tenant",
      "API client",
      "Key",
    ];
    const page = tree.get("docs/concepts.md") ?? "";
    expect(words.filter((word) => !page.includes(`\n**${word}.** `))).toEqual([]);
  });
});

describe("docs/errors.md", () => {
  const page = tree.get("docs/errors.md") ?? "";
  const listed = new Set([...page.matchAll(/`([^`\n]+)`/g)].map(([, text]) => text));
  const { texts, carried } = errorTexts(tree);

  /** Parts of messages, and sentences that are none. */
  const otherwise = [
    "…",
    "…: …",
    "… …: …",
    "… of ….…",
    "… and others",
    "… is … on …",
    "… of … … processed",
    "… (trigger …)",
    "… = excluded.…",
    "… notifications: …",
    "…; … (detailedResponse: true lists every failure)",
    "Aged",
    "a client of role …",
    "a client of type …",
    "const g… = m[…];",
    "must be at least 1 characters",
    "must contain at least 1 item(s)",
    "must have at most",
    "must not be $1",
    "too many steps",
    "no data… from …",
    'text collate "C"',
    'text[] collate "C"',
    "…: ((v = …) == null…) ? … : …",
  ];

  test("lists every message that the code can answer", () => {
    const missing = texts.filter(({ text }) => !listed.has(text) && !otherwise.includes(text));
    expect(missing.map(({ place, text }) => `${place}: ${text}`)).toEqual([]);
  });

  test("lists none that the code does not have", () => {
    const known = new Set(texts.map(({ text }) => text));
    const tables = page.slice(page.indexOf("## Messages"));
    const shown = [...tables.matchAll(/^\| `([^`\n]+)` \|/gm)].map(([, text]) => text ?? "");
    expect(shown.length).toBeGreaterThan(100);
    const reasons = reasonsOf(tree.get("src/notifications/kinds/retry.ts"));
    const composed = [...reasons, "sent", "has … more mistakes"];
    expect(shown.filter((text) => !known.has(text) && !composed.includes(text))).toEqual([]);
  });

  test("lists every reason of a delivery", () => {
    const reasons = reasonsOf(tree.get("src/notifications/kinds/retry.ts"));
    expect(reasons.length).toBeGreaterThan(10);
    expect(reasons.filter((reason) => !page.includes(`\n| \`${reason}\` |`))).toEqual([]);
  });

  test("lists every message of a rule in the proto files", () => {
    const rules = [...tree].filter(([path]) => path.endsWith(".proto"));
    const said = rules.flatMap(([, text]) =>
      [...text.matchAll(/\bmessage:\s*((?:"[^"]+"\s*)+)/g)].map(([, words = ""]) =>
        words.trim().replaceAll(/"\s*"/g, "").slice(1, -1),
      ),
    );
    expect(said.length).toBeGreaterThan(10);
    expect(said.filter((words) => !listed.has(words))).toEqual([]);
  });

  // A variable hides its text from the tests above: another one here means to look where its texts are made.
  test("messages that are no literals come from known places", () => {
    expect(carried.sort()).toMatchInlineSnapshot(`
      [
        "src/clause/check.ts: rule",
        "src/clause/label-matcher.ts: mistakeText(read)",
        "src/clause/trigger.ts: rule",
        "src/dictionary/entries.ts: kind.title",
        "src/errors.ts: message",
        "src/errors.ts: what",
        "src/http/http-servers.ts: message",
        "src/http/port.ts: error.message",
        "src/integrations/alertmanager/webhook.ts: mistakesText(mistakes)",
        "src/integrations/sent-again.ts: error.rawMessage",
        "src/maintenance/windows.ts: kind",
        "src/notifications/api/preview-message.ts: broken",
        "src/notifications/api/preview-message.ts: broken.rule",
        "src/notifications/api/rules.ts: broken",
        "src/notifications/kinds/attempt-outcome.ts: error.message",
        "src/notifications/kinds/attempt-outcome.ts: told(answer)",
        "src/notifications/kinds/email.ts: answer",
        "src/notifications/kinds/event.ts: refusal",
        "src/notifications/kinds/event.ts: said",
        "src/notifications/kinds/incident-paging.ts: told(answer)",
        "src/notifications/kinds/itsm.ts: error.message",
        "src/notifications/kinds/itsm.ts: told(answer)",
        "src/notifications/kinds/kinds.ts: texts.message",
        "src/notifications/kinds/office-chat.ts: told(answer)",
        "src/notifications/kinds/stored-credential.ts: refused.rule",
        "src/notifications/kinds/stored-credential.ts: rule",
        "src/notifications/kinds/team-chat.ts: told(answer)",
        "src/notifications/kinds/webhook.ts: why",
        "src/properties/updaters.ts: kind",
        "src/protocols/error-body.ts: message",
        "src/rpc/errors.ts: error.rawMessage",
        "src/rpc/errors.ts: error.rawMessage.toWellFormed()",
        "src/rpc/errors.ts: reason",
        "src/transcoding/body.ts: message",
        "src/transcoding/error-text.ts: error.rawMessage",
        "src/transcoding/json/parse.ts: error.message",
        "src/transcoding/json/read-known.ts: paths",
        "src/transcoding/json/read-known.ts: value",
        "src/transcoding/json/read-scalar.ts: unknownValue(desc, name)",
        "src/transcoding/json/read-scalar.ts: value",
        "src/transcoding/request.ts: error.message",
        "src/transcoding/url/query.ts: error.message",
        "src/transcoding/url/target.ts: paths",
        "src/transcoding/url/target.ts: unknownValue(desc, text)",
        "src/transcoding/url/target.ts: value",
        "src/wire/status.ts: message",
      ]
    `);
  });

  test("a message that is not listed is found, wherever it is made", () => {
    const code = `
      throw invalidField(path, \`must be new, not \${old}\`);
      const check = (text: string) => (text === "" ? "the text says nothing" : undefined);
      broken.push({ path, rule: "has no name" });
      number(path, "must be even");`;
    expect(errorTexts(new Map([["src/events/get.ts", code]])).texts.map(({ text }) => text)).toEqual([
      "must be new, not …",
      "the text says nothing",
      "has no name",
      "must be even",
    ]);
  });
});

/** The members of the type `FailureReason`. */
function reasonsOf(code = ""): string[] {
  const union = /^export type FailureReason =\n(.*?);/ms.exec(code)?.[1] ?? "";
  return [...union.matchAll(/"(\w+)"/g)].map(([, reason]) => reason ?? "");
}
