import { Code, ConnectError } from "@connectrpc/connect";
import { useSignal } from "@preact/signals";
import { useEffect, useId, useMemo } from "preact/hooks";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { address, goTo, isBack, linkTo } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf, type Failure, failureOf } from "../data/calls.ts";
import { readEntity } from "../entities/entity-by-id.ts";
import formLook from "../form/form.module.css";
import { MatcherCompletion } from "../form/matcher-completion.tsx";
import { equalityText } from "../form/matcher-text.ts";
import { matchersIn } from "../form/matchers-field.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Problem } from "../ui/problem.tsx";
import { ScreenHead } from "../ui/screen-head.tsx";
import ui from "../ui/ui.module.css";
import { createSilence } from "./changes.ts";
import { SilencePreview, usePreview } from "./preview.tsx";

const silences = clientOf(SilenceService);

const hourMs = 3_600_000;
const untilResolved = "resolved";
const durations: readonly (readonly [value: string, label: string])[] = [
  ["1", "for 1 h"],
  ["2", "for 2 h"],
  ["8", "for 8 h"],
  ["24", "for 1 day"],
  ["168", "for 7 days"],
  [untilResolved, "until what it matches has ended"],
];

/**
 * Reads the labels to silence: those of the occurrence that the address names, or those dimensions of its entity that its open occurrences
 * have as labels. Undefined if it names neither.
 */
async function labelsOf(parameters: URLSearchParams, signal: AbortSignal) {
  const occurrenceId = parameters.get("occurrence");
  if (occurrenceId) return (await silences.listSilences({ occurrenceId }, { signal })).labels;
  const entity = parameters.get("entity");
  if (!entity) return undefined;
  const found = await readEntity(entity, signal);
  if (found === undefined)
    throw new ConnectError("There is no such entity any more, so its labels are not known.", Code.NotFound);
  const { labelsOfEntity } = await import("../events/shared-matchers.ts");
  const labels = await labelsOfEntity(entity, found.dimensions, signal);
  if (Object.keys(labels).length > 0) return labels;
  const message =
    "What is open of this entity came without its dimensions as labels. Choose matchers by what its occurrences show.";
  throw new ConnectError(message, Code.FailedPrecondition);
}

/**
 * The form of a new silence, with the matchers of the address, and before them those of the labels of an occurrence or an entity. It
 * leads back to where it was opened.
 */
export function NewSilence() {
  const id = useId();
  const { parameters } = address.value;
  const given = parameters.get("matchers") ?? "";
  // Those that are given would be too wide without the labels that are read.
  const matchers = useSignal(parameters.has("occurrence") || parameters.has("entity") ? "" : given);
  const duration = useSignal("2");
  const comment = useSignal("");
  const busy = useSignal(false);
  const asking = useSignal(false);
  const failure = useSignal<Failure | undefined>(undefined);
  const preview = usePreview(matchers);
  const from = parameters.get("from") ?? "";
  const back = from.startsWith("#/") ? from : linkTo(["silences"]);
  const canGoBack = useMemo(() => isBack(back), []);
  // Lists keep their place by entries of the history: a new entry would begin at their top.
  const leave = () => (canGoBack ? history.back() : goTo(back));
  const labelled = useAnswer((signal) => labelsOf(parameters, signal), parameters.toString());
  const labels = labelled.value.value;
  useEffect(() => {
    if (labels === undefined || matchers.peek() !== "") return;
    const own = Object.entries(labels).map(([name, value]) => equalityText(name, value));
    matchers.value = [...new Set([...own, ...matchersIn(given)])].join("\n");
  }, [labels]);

  async function make() {
    busy.value = true;
    failure.value = undefined;
    try {
      const hours = Number(duration.value);
      await createSilence({
        matchers: matchersIn(matchers.value),
        comment: comment.value,
        ...(duration.value === untilResolved
          ? { untilResolved: true }
          : { endsAt: BigInt(Date.now() + hours * hourMs) }),
      });
      leave();
    } catch (error) {
      failure.value = failureOf(error);
    } finally {
      busy.value = false;
      asking.value = false;
    }
  }

  const send = () => {
    if (preview.value.value?.broad) asking.value = true;
    else void make();
  };
  const found = preview.value.value;
  return (
    <div class={ui.screen}>
      <ScreenHead title="New silence" />
      <div class={ui.scroll}>
        <Problem failure={labelled.value.failure} again={labelled.value.again} />
        <form
          class={`${ui.card} ${formLook.form}`}
          onSubmit={(submitted) => {
            submitted.preventDefault();
            send();
          }}
        >
          <MatcherCompletion
            value={matchers.value}
            set={(text) => {
              matchers.value = text;
            }}
          >
            <div class={formLook.field}>
              <label for={`${id}-matchers`}>Matchers</label>
              <textarea
                id={`${id}-matchers`}
                rows={6}
                spellcheck={false}
                aria-describedby={`${id}-help`}
                value={matchers.value}
                onInput={({ currentTarget }) => {
                  matchers.value = currentTarget.value;
                }}
              />
              <p class={formLook.help} id={`${id}-help`}>
                A matcher each line, all of which must hold, such as severity="critical" or instance=~web-.+
              </p>
            </div>
          </MatcherCompletion>
          <div class={formLook.field}>
            <label for={`${id}-duration`}>Duration</label>
            <select
              id={`${id}-duration`}
              value={duration.value}
              onChange={({ currentTarget }) => {
                duration.value = currentTarget.value;
              }}
            >
              {durations.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          </div>
          <div class={formLook.field}>
            <label for={`${id}-comment`}>Comment</label>
            <input
              id={`${id}-comment`}
              value={comment.value}
              onInput={({ currentTarget }) => {
                comment.value = currentTarget.value;
              }}
            />
          </div>
          <SilencePreview answer={preview.value} />
          <Problem failure={failure.value} />
          <div class={ui.buttons}>
            <button type="submit" class={ui.primary} disabled={busy.value}>
              Silence
            </button>
            <a
              class={ui.button}
              href={back}
              onClick={(event) => {
                if (!canGoBack || event.ctrlKey || event.metaKey || event.shiftKey) return;
                event.preventDefault();
                leave();
              }}
            >
              Cancel
            </a>
          </div>
        </form>
      </div>
      {asking.value && (
        <Dialog
          title={`Silence ${Number(found?.count ?? 0n).toLocaleString("en")} open occurrences?`}
          close={() => {
            asking.value = false;
          }}
        >
          <p>These are many. Nobody is notified of what these matchers match until the silence ends.</p>
          <div class={ui.buttons}>
            <button type="button" class={ui.primary} disabled={busy.value} onClick={() => void make()}>
              Silence them
            </button>
            <button
              type="button"
              onClick={() => {
                asking.value = false;
              }}
            >
              Cancel
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}
