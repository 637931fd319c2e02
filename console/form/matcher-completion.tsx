import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { type LabelValues, SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { useSettled } from "../data/settled.ts";
import ui from "../ui/ui.module.css";
import { matcherText, nameText } from "./matcher-text.ts";

const silences = clientOf(SilenceService);

const shownMax = 8;
/** Every occurrence has this label, but for alerts that came without a name. */
const any = 'alertname!=""';

interface CompletionProps {
  /** Matchers, a line each. */
  readonly value: string;
  set(value: string): void;
  /** The field itself, which has a textarea. */
  readonly children: ComponentChildren;
}

/** Completes the line that is typed: a label's name, then its value, of open occurrences that the other lines match. */
export function MatcherCompletion({ value, set, children }: CompletionProps) {
  const place = useRef<HTMLDivElement>(null);
  const used = useSignal(false);
  const lines = value.split("\n");
  const at = useTypedLine(lines);
  const others = lines.filter((line, i) => i !== at && line.trim() !== "");
  const settled = useSettled(others.join("\n"));
  const answer = useAnswer(async (signal) => {
    if (!used.value) return [];
    const matchers = settled === "" ? [any] : settled.split("\n");
    return (await silences.previewSilence({ silence: { matchers } }, { signal })).labels;
  }, settled);
  const found = completionsOf(lines[at] ?? "", answer.value.value ?? []).slice(0, shownMax);

  function take(line: string) {
    set(lines.with(at, line).join("\n"));
    place.current?.querySelector("textarea")?.focus();
  }

  return (
    <div
      ref={place}
      onFocusCapture={() => {
        used.value = true;
      }}
    >
      {children}
      {found.length > 0 && (
        <fieldset class={ui.buttons} aria-label="Completions">
          {found.map(({ shown, line }) => (
            <button
              key={line}
              type="button"
              // A press would take the focus from the field.
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => take(line)}
            >
              {shown}
            </button>
          ))}
        </fieldset>
      )}
    </div>
  );
}

/** Returns which line was changed last; at first the last one. */
function useTypedLine(lines: readonly string[]): number {
  const last = useRef<{ lines: readonly string[]; at: number }>({ lines, at: lines.length - 1 });
  const before = last.current;
  const changed = lines.findLastIndex((line, i) => line !== before.lines[i]);
  const at = Math.min(changed === -1 ? before.at : changed, lines.length - 1);
  last.current = { lines, at };
  return at;
}

/** Lists how a line may go on, and what is shown of each way. Expressions are not completed. */
function completionsOf(line: string, labels: readonly LabelValues[]): { shown: string; line: string }[] {
  const [, name = "", operator, value = ""] = /^\s*"?([^="!~]*)"?\s*(=~|!~|!=|=)?\s*(.*)$/s.exec(line) ?? [];
  const has = (text: string, part: string) => text.toLowerCase().includes(part.toLowerCase());
  if (operator === undefined)
    return labels
      .filter((label) => has(label.name, name.trim()))
      .map((label) => ({ shown: label.name, line: `${nameText(label.name)}=` }));
  if (operator !== "=" && operator !== "!=") return [];
  const typed = value.replaceAll('"', "");
  const known = labels.find((label) => label.name === name.trim())?.values ?? [];
  return known
    .map((each) => ({ shown: each, line: matcherText(name.trim(), operator, each) }))
    .filter((each) => has(each.shown, typed) && each.line !== line);
}
