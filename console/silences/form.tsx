import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { address, goTo, linkTo } from "../frame/address.ts";
import { clientOf, type Failure, failureOf } from "../frame/calls.ts";
import { say } from "../frame/notice.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { MatcherCompletion } from "../parts/form/matcher-completion.tsx";
import { equalityText } from "../parts/form/matcher-text.ts";
import { matchersIn } from "../parts/form/matchers-field.tsx";
import { Problem } from "../parts/problem.tsx";
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

/** The form of a new silence; from an occurrence with the matchers of its labels. */
export function NewSilence() {
  const id = useId();
  const matchers = useSignal("");
  const duration = useSignal("2");
  const comment = useSignal("");
  const busy = useSignal(false);
  const asking = useSignal(false);
  const failure = useSignal<Failure | undefined>(undefined);
  const preview = usePreview(matchers);
  const occurrenceId = address.value.parameters.get("occurrence") ?? "";

  useEffect(() => {
    if (occurrenceId === "") return;
    silences.listSilences({ occurrenceId }).then(
      ({ labels }) => {
        if (matchers.peek() === "")
          matchers.value = Object.entries(labels)
            .map(([name, value]) => equalityText(name, value))
            .join("\n");
      },
      (error) => {
        failure.value = failureOf(error);
      },
    );
  }, [occurrenceId]);

  async function make() {
    busy.value = true;
    failure.value = undefined;
    try {
      const hours = Number(duration.value);
      await silences.createSilence({
        silence: {
          matchers: matchersIn(matchers.value),
          comment: comment.value,
          ...(duration.value === untilResolved
            ? { untilResolved: true }
            : { endsAt: BigInt(Date.now() + hours * hourMs) }),
        },
      });
      say("The silence was made.");
      goTo(linkTo(["silences"]));
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
    <div class="screen">
      <div class="screen-head">
        <h1>New silence</h1>
      </div>
      <div class="scroll">
        <form
          class="card form"
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
            <div class="field">
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
              <p class="help" id={`${id}-help`}>
                A matcher each line, all of which must hold, such as severity="critical" or instance=~web-.+
              </p>
            </div>
          </MatcherCompletion>
          <div class="field">
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
          <div class="field">
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
          <div class="buttons">
            <button type="submit" class="primary" disabled={busy.value}>
              Silence
            </button>
            <a class="button" href={linkTo(["silences"])}>
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
          <div class="buttons">
            <button type="button" class="primary" disabled={busy.value} onClick={() => void make()}>
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
