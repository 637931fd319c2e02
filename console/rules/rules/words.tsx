import type { ComponentChildren } from "preact";
import { type Grouping, RepeatWhile, type Rule } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { linkTo } from "../../data/address.ts";
import rulesLook from "../rules.module.css";

const units = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
] as const;

/** A length of time in words, as in `1 hour 30 minutes`; in its two largest units. */
function lengthWords(seconds: number): string {
  let rest = seconds;
  const parts: string[] = [];
  for (const [unit, size] of units) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count.toLocaleString("en")} ${unit}${count === 1 ? "" : "s"}`);
  }
  return parts.slice(0, 2).join(" ") || "0 seconds";
}

/** `hour` of `1 hour`, after "every". */
const everyWords = (seconds: number) => lengthWords(seconds).replace(/^1 (\w+)$/, "$1");

const shownMax = 5;

/** Names as links to what they name, the last one after a word. */
function Names({ names, section, word }: { names: readonly string[]; section: string; word: string }) {
  const shown = names.slice(0, shownMax);
  const more = names.length - shown.length;
  return (
    <>
      {shown.map((name, at) => (
        <>
          {at > 0 && (at === shown.length - 1 && more === 0 ? ` ${word} ` : ", ")}
          <a key={name} href={linkTo(["rules", section, name])}>
            {name}
          </a>
        </>
      ))}
      {more > 0 && ` ${word} ${more} more`}
    </>
  );
}

type Repetition = Pick<Rule, "repeat" | "repeatInterval" | "repeatWhile">;

/** When it notifies again, or undefined. */
function againWords({ repeat, repeatInterval = 3600n, repeatWhile }: Repetition): string | undefined {
  if (!repeat) return undefined;
  const seconds = Number(repeatInterval);
  if (repeatWhile === RepeatWhile.OPEN) return `again every ${everyWords(seconds)} while it is open`;
  if (repeatWhile === RepeatWhile.UNACKNOWLEDGED)
    return `again every ${everyWords(seconds)} until it is acknowledged or closed`;
  if (seconds === 0) return "again with every report";
  return `again by the first report that comes ${lengthWords(seconds)} or more after the last notification`;
}

/** When the messages of groups are sent. */
function groupWords({ by, waitSec = 30n, intervalSec = 300n }: Grouping, { sendUpdates }: Rule): string {
  const of = by.length === 0 ? "" : by.includes("...") ? " with a set of labels" : ` of one ${by.join(" and ")}`;
  const wait = waitSec === 0n ? "at once with" : `${lengthWords(Number(waitSec))} after`;
  const every = `then at most every ${everyWords(Number(intervalSec))}`;
  const end = sendUpdates
    ? "one message when all of it is over"
    : "no message when it is over, because updates are off";
  return `First message ${wait} the first alert${of}, ${every}; ${end}.`;
}

/** What a rule does, in a sentence or two. */
export function RuleInWords({ rule }: { rule: Rule }) {
  const { triggerNames, matchers, destinationNames, delaySec, sendUpdates, muteDuringMaintenance, enabled, grouping } =
    rule;
  const silent: ComponentChildren[] = [];
  if (triggerNames.length === 0 && matchers.length === 0)
    silent.push("It has neither matchers nor a trigger, so nothing sets it off.");
  if (destinationNames.length === 0) silent.push("It names no destination, so no one is notified.");
  if (!enabled) silent.push("It is off: it sends nothing.");
  const updates = grouping === undefined && sendUpdates && "when it is acknowledged, changes in severity or is over";
  const also = [againWords(rule), updates].filter(Boolean);
  return (
    <div class={rulesLook.inWords}>
      {triggerNames.length + matchers.length > 0 && destinationNames.length > 0 && (
        <p>
          When{" "}
          {triggerNames.length > 0 && (
            <>
              <Names names={triggerNames} section="triggers" word="or" /> matches{matchers.length > 0 && ", or "}
            </>
          )}
          {matchers.length > 0 && <code>{matchers.join(" and ")}</code>}
          {delaySec > 0n && ` and still does after ${lengthWords(Number(delaySec))}`},{" "}
          <Names names={destinationNames} section="destinations" word="and" />{" "}
          {destinationNames.length === 1 ? "is" : "are"} notified{also.map((each) => `; ${each}`).join("")}.
        </p>
      )}
      {grouping && <p>{groupWords(grouping, rule)}</p>}
      {muteDuringMaintenance && (
        <p>While the entity is in maintenance it keeps silent, and notifies at the end of what still matches.</p>
      )}
      {silent.map((each) => (
        <p key={each}>{each}</p>
      ))}
    </div>
  );
}
