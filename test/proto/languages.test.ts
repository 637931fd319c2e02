import { readFileSync } from "node:fs";
import { type DescField, type DescMessage, getOption } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { Language, language } from "#gen/belfry/limits/v1/limits_pb.ts";
import { compareExpression } from "../../src/clause/expression.ts";
import { readMatcher } from "../../src/clause/label-matcher.ts";
import { parsePattern } from "../../src/clause/regex.ts";
import { paced } from "../../src/event-loop.ts";
import { hostileExpressions } from "../support/hostile-texts.ts";
import { heldMs, turnMsMax } from "../support/loop-turns.ts";
import { readTree } from "../support/tree.ts";

const root = new URL("../..", import.meta.url).pathname;
const modules = [
  "clause/v1/clause",
  "clause/v1/trigger_clause",
  "notifications/v1/destination",
  "notifications/v1/rule",
  "notifications/v1/rule_service",
  "notifications/v1/silence",
  "notifications/v1/silence_service",
  "notifications/v1/trigger",
];
const messages: DescMessage[] = [];
for (const name of modules) {
  const exported: Record<string, unknown> = await import(`${root}gen/belfry/${name}_pb.ts`);
  for (const each of Object.values(exported))
    if ((each as Partial<DescMessage>)?.kind === "message") messages.push(each as DescMessage);
}
const marked = new Map<string, number>(
  messages
    .flatMap(({ fields }) => fields)
    .filter((field: DescField) => getOption(field, language) !== Language.UNSPECIFIED)
    .map((field) => [`${field.parent.name}.${field.name}`, getOption(field, language)]),
);

/** Which fields, or parameters of an integration, reach the functions that compile or render, by the file that calls them. */
const callers: Readonly<Record<string, readonly string[]>> = {
  "src/clause/check.ts": ["Filter.value"],
  "src/clause/trigger.ts": ["TriggerMatchers.matchers", "TriggerQuery.matchers"],
  "src/integrations/alertmanager/listing.ts": ["?filter", "?receiver"],
  "src/notifications/kinds/kinds.ts": [...marked.keys()].filter((name) => /Destination\.|^Fact\./.test(name)),
  "src/notifications/kinds/webhook.ts": ["WebhookDestination.body"],
  "src/notifications/api/preview-message.ts": ["PreviewMessageRequest.message"],
  "src/notifications/api/rules.ts": ["Rule.matchers", "Rule.message"],
  "src/notifications/api/silences/service.ts": ["ListSilencesRequest.filter"],
  "src/notifications/silences/silences.ts": ["Silence.matchers"],
  "src/notifications/rules/sources/event.ts": ["TriggerQuery.matchers"],
  "src/notifications/api/window-messages.ts": ["Rule.message"],
};
const compiling =
  /(?<![.\w])(?:readMatchers?|readExpression|parsePattern|brokenTemplate|checkedTemplate|render)\(|RE2JS\.compile\(/;
/** They define the functions. */
const own =
  /^src\/(?:clause\/(?:expression|expression-size|label-matcher|regex)|notifications\/templates\/template)\.ts$/;

test("each call that compiles what a request holds is of a field or parameter that is marked, and each mark has its call", () => {
  const found = [...readTree(root)]
    .filter(([path, text]) => path.startsWith("src/") && !own.test(path) && compiling.test(text))
    .map(([path]) => path);
  expect(found.sort()).toEqual(Object.keys(callers).sort());
  const parameters = readFileSync(`${root}src/integrations/alertmanager/alertmanager.ts`, "utf8");
  for (const name of Object.values(callers).flat()) {
    if (name.startsWith("?")) expect(parameters).toContain(`${name.slice(1)}: "`);
    else expect([name, marked.has(name)]).toEqual([name, true]);
  }
  expect([...marked.keys()].filter((name) => !Object.values(callers).flat().includes(name))).toEqual([]);
});

test("hostile expressions, a hundred at once, are read and compared with 64 KB in turns of 250 ms at most", async () => {
  const text = "ab a".repeat(16_384);
  const ask = async (source: string, i: number) => {
    const pace = paced(undefined, `hostile ${i}`);
    await pace();
    const read = readMatcher(`a=~${source}`);
    if (!("column" in read)) await read.matches(text, pace);
    let pattern: ReturnType<typeof parsePattern> | undefined;
    try {
      pattern = parsePattern(source, "value");
    } catch {
      // Refused: that is an answer.
    }
    if (pattern !== undefined) await compareExpression(pattern.expression, text, pace);
  };
  const { turn } = await heldMs(() =>
    Promise.all(
      Array.from({ length: 100 }, (_, i) => ask(hostileExpressions[i % hostileExpressions.length] as string, i)),
    ),
  );
  expect(turn).toBeLessThan(turnMsMax);
}, 120_000);
