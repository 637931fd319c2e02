import { Code, ConnectError } from "@connectrpc/connect";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Destination, DestinationSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { clientOf, failureOf, isCancelled } from "../../data/calls.ts";
import formLook from "../../form/form.module.css";
import type { Form } from "../../form/form.ts";
import { nowMs, Time } from "../../ui/time.tsx";
import ui from "../../ui/ui.module.css";
import rulesLook from "../rules.module.css";
import { kindOf } from "./kinds.ts";

const destinations = clientOf(DestinationService);

type State =
  | { readonly at: "rest" | "sending" | "cancelled" | "refused" }
  | { readonly at: "taken" | "failed"; readonly answer: string; readonly ms: number };

/** Sends a test of what the form holds, and shows what the receiver said. */
export function TestOfDestination({ form }: { form: Form<typeof DestinationSchema> }) {
  const state = useSignal<State>({ at: "rest" });
  const running = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const { value } = form;
  const kind = value.type?.type.case;
  const send = async (destination: Destination) => {
    const own = new AbortController();
    running.current = own;
    state.value = { at: "sending" };
    form.refused();
    try {
      const { answer } = await destinations.testDestination({ destination }, { signal: own.signal });
      state.value = { at: "taken", answer, ms: Date.now() };
    } catch (error) {
      state.value = stateAfter(error, form);
    }
  };
  const now = state.value;
  return (
    <section class={rulesLook.test} aria-label="Test">
      <div class={ui.buttons}>
        <button
          type="button"
          disabled={now.at === "sending"}
          onClick={({ currentTarget }) => {
            if (currentTarget.form?.reportValidity() !== false) void send(value);
          }}
        >
          Send a test
        </button>
        {now.at === "sending" && (
          <button type="button" onClick={() => running.current?.abort()}>
            Cancel the test
          </button>
        )}
        <span class={formLook.help}>
          It sends a notification for real, by what is in the form now. {kind && kindOf(kind).testLeaves}
        </span>
      </div>
      <Result now={now} />
    </section>
  );
}

function stateAfter(error: unknown, form: Form<typeof DestinationSchema>): State {
  if (isCancelled(error)) return { at: "cancelled" };
  // Code 9 is what the receiver said; of all else the form says where it stands.
  if (ConnectError.from(error).code === Code.FailedPrecondition) {
    return { at: "failed", answer: failureOf(error).message, ms: Date.now() };
  }
  form.refused(error);
  return { at: "refused" };
}

function Result({ now }: { now: State }) {
  return (
    <div role="status" aria-label="Result of the test">
      {now.at === "sending" && <p>Sending…</p>}
      {now.at === "cancelled" && <p>Cancelled. What was sent before may have arrived.</p>}
      {now.at === "refused" && <p>Nothing was sent.</p>}
      {(now.at === "taken" || now.at === "failed") && (
        <>
          <p class={ui.state} data-tone={now.at === "taken" ? "good" : "critical"}>
            {now.at === "taken" ? "✓ The receiver has taken it." : "▲ It was not taken."}{" "}
            <span class={ui.quiet}>
              <Time at={Math.min(now.ms, nowMs.value)} short />
            </span>
          </p>
          <p class={ui.answer}>{now.answer}</p>
        </>
      )}
    </div>
  );
}
