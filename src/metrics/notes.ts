import {
  MetricSeries_Temporality as Temporality,
  MetricSeries_Type as Type,
} from "#gen/belfry/metrics/v1/metric_series_pb.ts";

/** What senders say of a series beside its points; empty texts: nothing. */
export interface Notes {
  units: string;
  description: string;
  /** An `Instrument`, or what a later version has stored. */
  instrument: string;
}

export const noNotes: Readonly<Notes> = { units: "", description: "", instrument: "" };

type TypeName = Exclude<keyof typeof Type, "TYPE_UNSPECIFIED">;
type TemporalityName = Exclude<keyof typeof Temporality, "TEMPORALITY_UNSPECIFIED">;

/** What a series is read from, as it is stored: the name of its metric's type, and that of its temporality where it has one. */
export type Instrument = "" | TypeName | `${TypeName} ${TemporalityName}`;

/** The type and temporality of an `Instrument`. A name that a later version has stored is passed over. */
export function readInstrument(stored: string): { type?: Type; temporality?: Temporality } {
  const [typeName = "", temporalityName = ""] = stored.split(" ");
  const type = Type[typeName as keyof typeof Type];
  const temporality = Temporality[temporalityName as keyof typeof Temporality];
  return { ...(type !== undefined && { type }), ...(temporality !== undefined && { temporality }) };
}

/** The series of histograms and summaries that count. */
const counting = /[._](?:count|sum|bucket)$/;

/** Whether the values of a series only grow, until what counts them starts again at 0. */
export function isCounter({ metric, instrument }: { metric: string; instrument: string }): boolean {
  const { type, temporality } = readInstrument(instrument);
  if (temporality === Temporality.DELTA) return false;
  return type === Type.COUNTER || ((type === Type.HISTOGRAM || type === Type.SUMMARY) && counting.test(metric));
}

/** Earlier notes, with those that came later. */
export const withNotes = (known: Notes, said: Notes): Notes => ({
  units: said.units || known.units,
  description: said.description || known.description,
  instrument: said.instrument || known.instrument,
});

/** Whether nothing new is said. */
export const agrees = (known: Notes, { units, description, instrument: own }: Notes): boolean =>
  (units === "" || units === known.units) &&
  (description === "" || description === known.description) &&
  (own === "" || own === known.instrument);
