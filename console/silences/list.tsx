import { type Silence, Silence_State as State } from "#gen/belfry/notifications/v1/silence_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { address, linkTo } from "../data/address.ts";
import { clientOf } from "../data/calls.ts";
import { useList } from "../data/list.ts";
import { oneOrNull } from "../data/one-or-null.ts";
import { may } from "../data/session.ts";
import { ListScreen } from "../ui/list-screen.tsx";
import { ChoiceFilter } from "../ui/text-filters.tsx";
import ui from "../ui/ui.module.css";
import { SilenceCard } from "./card.tsx";

const silences = clientOf(SilenceService);

interface Choice {
  readonly label: string;
  readonly state: State;
  /** Title of a list without any. */
  readonly none: string;
}

const active: Choice = { label: "Active", state: State.ACTIVE, none: "No silence is active." };
const states: Readonly<Record<string, Choice>> = {
  active,
  pending: { label: "Scheduled", state: State.PENDING, none: "No silence is scheduled." },
  expired: { label: "Over", state: State.EXPIRED, none: "No silence is over." },
  any: { label: "Any", state: State.STATE_UNSPECIFIED, none: "There are no silences yet." },
};

/** The choice of the address. Reads signals. */
const choiceHere = () => states[address.value.parameters.get("state") ?? "active"] ?? active;

interface Asked {
  readonly state: State;
  readonly id: string;
}

/** A page of silences, or the one that the address names. */
async function readPage({ state, id }: Asked, pageToken: string, options: { signal?: AbortSignal }) {
  if (id !== "") {
    const silence = (await oneOrNull(silences.getSilence({ id }, options)))?.silence;
    const rows = silence ? [silence] : [];
    return { rows, next: "", total: rows.length };
  }
  const page = await silences.listSilences({ state, pageToken, pageSize: 50 }, options);
  return { rows: page.silences as readonly Silence[], next: page.nextPageToken, total: Number(page.totalCount) };
}

/** Silences by their state, the newest first. */
export function SilenceList() {
  const list = useList(
    (): Asked => ({ state: choiceHere().state, id: address.value.parameters.get("id") ?? "" }),
    readPage,
  );
  return (
    <ListScreen
      title="Silences"
      list={list}
      counted={["silence", "silences"]}
      tools={
        <ChoiceFilter
          name="state"
          label="State"
          first="active"
          clears="id"
          choices={Object.entries(states).map(([name, { label }]) => [name, label])}
        />
      }
      make={may(SilenceService.method.createSilence) && ["New silence", linkTo(["silences", "new"])]}
      follows
      none={address.value.parameters.get("id") ? "There is no such silence." : choiceHere().none}
      about={
        <p>
          A silence holds notifications back by labels, for a time. A person makes one here or from an occurrence, or
          with amtool, karma or Grafana.
        </p>
      }
      draw={(rows) => (
        <div class={ui.scroll}>
          {rows.map((silence) => (
            <SilenceCard key={silence.id} silence={silence} changed={list.again} />
          ))}
          {list.later.next !== "" && (
            <button type="button" disabled={list.later.reading} onClick={list.more}>
              More
            </button>
          )}
        </div>
      )}
    />
  );
}
