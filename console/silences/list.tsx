import { type Silence, Silence_State as State } from "#gen/belfry/notifications/v1/silence_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { address, linkTo, setParameters } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { useLaterPages } from "../data/later-pages.ts";
import { may } from "../data/session.ts";
import { Empty, Problem } from "../ui/problem.tsx";
import { SilenceCard } from "./card.tsx";

const silences = clientOf(SilenceService);

const states: Readonly<Record<string, { label: string; state: State }>> = {
  active: { label: "Active", state: State.ACTIVE },
  pending: { label: "Scheduled", state: State.PENDING },
  expired: { label: "Over", state: State.EXPIRED },
  any: { label: "Any", state: State.STATE_UNSPECIFIED },
};

interface Asked {
  readonly state: State;
  readonly id: string;
}

/** A page of silences, or the one that the address names. */
async function readPage({ state, id }: Asked, pageToken: string, signal?: AbortSignal) {
  const options = signal ? { signal } : {};
  if (id !== "") {
    const { silence } = await silences.getSilence({ id }, options);
    return { rows: silence ? [silence] : [], next: "", total: 1 };
  }
  const page = await silences.listSilences({ state, pageToken, pageSize: 50 }, options);
  return { rows: page.silences as readonly Silence[], next: page.nextPageToken, total: Number(page.totalCount) };
}

/** Silences by their state, the newest first. */
export function SilenceList() {
  const answer = useAnswer(async (signal) => {
    const { parameters } = address.value;
    const asked = {
      state: (states[parameters.get("state") ?? "active"] ?? states.active)?.state ?? State.ACTIVE,
      id: parameters.get("id") ?? "",
    };
    return { asked, page: await readPage(asked, "", signal) };
  });
  const { value, loading, failure, again } = answer.value;
  const later = useLaterPages(value, value?.page.next ?? "", ({ asked }, next) => readPage(asked, next));
  const rows = [...(value?.page.rows ?? []), ...later.rows];
  const total = value?.page.total ?? 0;
  return (
    <div class="screen">
      <div class="screen-head">
        <h1>Silences</h1>
        <p class="count" role="status">
          {loading ? "Loading…" : `${total.toLocaleString("en")} ${total === 1 ? "silence" : "silences"}`}
        </p>
        <div class="tools">
          <select
            aria-label="State"
            value={address.value.parameters.get("state") ?? "active"}
            onChange={({ currentTarget }) => setParameters({ state: currentTarget.value, id: undefined })}
          >
            {Object.entries(states).map(([name, { label }]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
          {may(SilenceService.method.createSilence) && (
            <a class="button" href={linkTo(["silences", "new"])}>
              New silence
            </a>
          )}
        </div>
      </div>
      <Problem failure={failure} again={again} />
      <Problem failure={later.failure} again={() => void later.again()} />
      <div class="scroll">
        {rows.length === 0 && value ? (
          <Empty title="There is no such silence.">
            <p>
              A silence holds notifications back by labels, for a time. A person makes one here or from an occurrence,
              or with amtool, karma or Grafana.
            </p>
          </Empty>
        ) : (
          rows.map((silence) => <SilenceCard key={silence.id} silence={silence} changed={again} />)
        )}
        {later.next !== "" && (
          <button type="button" disabled={later.reading} onClick={() => void later.more()}>
            More
          </button>
        )}
      </div>
    </div>
  );
}
