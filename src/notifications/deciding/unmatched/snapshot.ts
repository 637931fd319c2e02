import type { Occurrence } from "../../../events/lifecycle.ts";
import type { RuleChange } from "../rule-changes.ts";

/** Changes as they are stored until they are matched: a text that several share is there once. */
interface Snapshot {
  readonly texts: readonly string[];
  readonly changes: readonly Row[];
}

/** Ids in base64, whole numbers as texts where they may be large; numbers of `texts`. */
type Row = readonly [
  ids: readonly [event: string, entity: string, dedupKey?: string, alertLabels?: number | null],
  place: readonly [name: number, number: number, opened: boolean, reported: boolean, news: boolean],
  from: readonly [chain: readonly string[], root: string],
  state: readonly [severity: number, status: number, acknowledged: boolean],
  texts: readonly [type: number, summary: number, body: number, metadata: number],
  times: readonly [start: string, lastSeen: string, end: string | null, instances: string, expires?: string | null],
];

/** A portion has at most this many changes, and about this many characters: it is read and parsed at once. */
const changesMax = 200;
const charsMax = 128 * 1024;

/** One portion of changes, as text. */
export interface Portion {
  readonly count: number;
  readonly text: string;
}

/** Changes in portions, in their order. */
export function* snapshots(changes: readonly RuleChange[]): Generator<Portion> {
  const metadataTexts = new Map<object, string>();
  for (let from = 0; from < changes.length; ) {
    const texts = new Map<string, number>();
    let chars = 0;
    const placeOf = (text: string) => {
      const there = texts.get(text);
      if (there !== undefined) return there;
      chars += text.length;
      texts.set(text, texts.size);
      return texts.size - 1;
    };
    const rows: Row[] = [];
    while (from < changes.length && rows.length < changesMax && (rows.length === 0 || chars < charsMax)) {
      rows.push(rowOf(changes[from++] as RuleChange, placeOf, metadataTexts));
    }
    const snapshot: Snapshot = { texts: [...texts.keys()], changes: rows };
    yield { count: rows.length, text: JSON.stringify(snapshot) };
  }
}

function rowOf(
  { event, after, opened, reported, news, chain, root }: RuleChange,
  placeOf: (text: string) => number,
  metadataTexts: Map<object, string>,
): Row {
  let metadata = metadataTexts.get(after.metadata);
  if (metadata === undefined) {
    metadata = JSON.stringify(after.metadata);
    metadataTexts.set(after.metadata, metadata);
  }
  return [
    [
      event.id.toString("base64"),
      event.entityId.toString("base64"),
      event.dedupKey,
      event.alertLabels === undefined ? null : placeOf(JSON.stringify(event.alertLabels)),
    ],
    [placeOf(event.name), after.number, opened, reported, news],
    [chain, root],
    [after.severity, after.status, after.acknowledged],
    [placeOf(after.type), placeOf(after.summary), placeOf(after.body), placeOf(metadata)],
    [
      `${after.startMs}`,
      `${after.lastSeenMs}`,
      after.endMs === null ? null : `${after.endMs}`,
      `${after.instanceCount}`,
      after.expiresMs === null ? null : `${after.expiresMs}`,
    ],
  ];
}

/** The changes of a portion. @throws an error for what is none, as only a file that was changed before its import has it */
export function changesOf(text: string): RuleChange[] {
  const { texts, changes } = JSON.parse(text) as Snapshot;
  const at = (place: number) => {
    const found: unknown = texts[place];
    if (typeof found !== "string") throw new RangeError(`a change names a text ${place} that is not there`);
    return found;
  };
  return changes.map(
    ([
      [event, entity, dedupKey = "", labels = null],
      [name, number, opened, reported, news],
      [chain, root],
      state,
      places,
      times,
    ]) => {
      const [severity, status, acknowledged] = state;
      const [type, summary, body, metadata] = places;
      const [start, lastSeen, end, instances, expires = null] = times;
      const after: Occurrence = {
        number,
        severity,
        status,
        acknowledged,
        type: at(type),
        summary: at(summary),
        body: at(body),
        metadata: JSON.parse(at(metadata)),
        startMs: BigInt(start),
        lastSeenMs: BigInt(lastSeen),
        endMs: end === null ? null : BigInt(end),
        instanceCount: BigInt(instances),
        expiresMs: expires === null ? null : BigInt(expires),
        keptOpenMs: null,
      };
      const ids = { id: Buffer.from(event, "base64"), entityId: Buffer.from(entity, "base64") };
      const identity = {
        ...ids,
        name: at(name),
        dedupKey,
        ...(labels !== null && { alertLabels: JSON.parse(at(labels)) }),
      };
      return { event: identity, after, opened, reported, news, chain, root };
    },
  );
}
