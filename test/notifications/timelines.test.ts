import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { decide } from "../../src/notifications/deciding/decide.ts";
import type { Match, Signature } from "../../src/notifications/rules/match-store.ts";
import type { Manner } from "../../src/notifications/rules/tenant-rules.ts";

const pages = ["rules", "silences"].map((name) =>
  readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), "utf8"),
);
const timelines = [...pages.join("\n").matchAll(/```timeline\n([\s\S]*?)```/g)].map(([, body = ""]) =>
  body.trim().split("\n"),
);
const severities = ["DEFAULT", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];
const [OPEN, CLOSED] = [1, 3];

/** What the first line of a timeline says of its rule. */
function mannerOf(line: string): Manner {
  const number = (name: string, usual: number) => Number(new RegExp(`${name} (\\d+)`).exec(line)?.[1] ?? usual) * 1000;
  return {
    repeat: /\brepeat\b/.test(line),
    repeatIntervalMs: number("repeatInterval", 3600),
    repeatWhile:
      /repeatWhile (OPEN|UNACKNOWLEDGED)/.exec(line)?.[1] === "OPEN" ? 1 : line.includes("repeatWhile") ? 2 : 0,
    delayMs: number("delaySec", 0),
    sendUpdates: line.includes("sendUpdates"),
    muteDuringMaintenance: line.includes("muteDuringMaintenance"),
  };
}

/** One occurrence of one rule, whose trigger matches whatever is open. */
class Story {
  private match: Match | undefined;
  private now: Signature | undefined;
  private inMaintenance = false;
  private recovered = false;
  private readonly manner: Manner;

  constructor(manner: Manner) {
    this.manner = manner;
  }

  /** Does what a line says, and answers what is reported. */
  does(atMs: number, what: string): string {
    const [verb = "", severity = ""] = what.split(" ");
    if (verb === "maintenance") this.inMaintenance = severity === "begins";
    if (verb === "open" && this.now?.status === CLOSED) this.match = undefined; // another occurrence
    if (verb === "open") this.now = { severity: severities.indexOf(severity), status: OPEN, acknowledged: false };
    if (this.now === undefined) return "";
    if (verb === "severity") this.now = { ...this.now, severity: severities.indexOf(severity) };
    if (verb === "acknowledge") this.now = { ...this.now, acknowledged: true };
    if (verb === "close") this.now = { ...this.now, status: CLOSED };
    if (verb === "recovers" || verb === "crosses") this.recovered = verb === "recovers";
    if (what === "maintenance begins") return "";
    const delayEnds = what === "the delay ends";
    const waited = this.match?.firstDueMs !== undefined && this.match.standing;
    const seen = {
      matches: this.now.status !== CLOSED && !this.recovered,
      again: ["open", "report", "severity", "close", "crosses"].includes(verb),
      inMaintenance: this.inMaintenance,
      now: this.now,
      delayEnds,
    };
    const decision = decide(this.manner, this.match, seen, atMs);
    this.match = decision?.match ?? this.match;
    if (delayEnds && waited && this.match?.standing) return "first";
    return (decision?.due ?? [])
      .filter(({ dueMs }) => dueMs <= atMs)
      .map(({ occasion }) => occasion)
      .join(" ");
  }
}

test.each(
  timelines.map(
    (lines) =>
      [
        lines
          .slice(1)
          .map((line) => line.trim())
          .join("; "),
        lines,
      ] as const,
  ),
)("docs/rules.md, docs/silences.md: %s", (_, [rule = "", ...lines]) => {
  const story = new Story(mannerOf(rule));
  const told = lines.map((line) => {
    const [, second = "", what = "", expected = ""] = /^(\d+)\s+(.+?)(?:\s{2,}(\S+))?$/.exec(line.trimEnd()) ?? [];
    return { line, expected, told: story.does(Number(second) * 1000, what) };
  });
  expect(told.filter((each) => each.told !== each.expected)).toEqual([]);
});

test("there are timelines", () => expect(timelines.length).toBeGreaterThanOrEqual(6));
