import { useSignal } from "@preact/signals";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { clientOf, failureOf } from "../../data/calls.ts";
import { may } from "../../data/session.ts";
import ui from "../../ui/ui.module.css";
import rulesLook from "../rules.module.css";

const destinations = clientOf(DestinationService);

/** Sends a test to a stored destination, and shows what its receiver said. */
export function DestinationTest({ name }: { name: string }) {
  const state = useSignal<{ readonly busy: boolean; readonly taken?: boolean; readonly answer?: string }>({
    busy: false,
  });
  if (!may(DestinationService.method.testDestination)) return null;
  const send = async () => {
    state.value = { busy: true };
    try {
      const { destination } = await destinations.getDestination({ name });
      const { answer } = await destinations.testDestination(destination === undefined ? {} : { destination });
      state.value = { busy: false, taken: true, answer };
    } catch (error) {
      state.value = { busy: false, taken: false, answer: failureOf(error).message };
    }
  };
  const { busy, taken, answer } = state.value;
  return (
    <section class={rulesLook.try} aria-label="Test of the destination">
      <h3>Does the destination work?</h3>
      <p>A test sends a notification to {name} for real, which says that it is a test.</p>
      <div class={ui.buttons}>
        <button type="button" disabled={busy} onClick={() => void send()}>
          {busy ? "Sending…" : "Send a test"}
        </button>
      </div>
      <div role="status">
        {taken !== undefined && (
          <>
            <p class={ui.state} data-tone={taken ? "good" : "critical"}>
              {taken ? "✓ The receiver has taken it." : "▲ It was not taken."}
            </p>
            <p class={ui.answer}>{answer}</p>
          </>
        )}
      </div>
    </section>
  );
}
