import type { Message } from "@bufbuild/protobuf";
import type { ComponentChildren } from "preact";
import type { DestinationSchema, DestinationType } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { Form } from "../../../form/form.ts";

/** The names of the kinds, which are those of the oneof. */
export type KindName = NonNullable<DestinationType["type"]["case"]>;

export type MessageOf<K extends KindName> = Extract<DestinationType["type"], { case: K }>["value"];

/** What the fields of a kind are given: what the form holds, and where errors name it. */
export interface KindProps<M extends Message> {
  readonly form: Form<typeof DestinationSchema>;
  /** The kind's place in the destination, as in `type.webhook`. */
  readonly path: string;
  readonly value: M;
  /** The same as it is stored, when the destination is of this kind already. */
  readonly stored: M | undefined;
  set(fields: Partial<M>): void;
}

/** A kind of destination as people meet it. */
export interface DestinationKind<M extends Message> {
  readonly word: string;
  /** What arrives there. */
  readonly about: string;
  /** What a test of it leaves at the receiver. */
  readonly testLeaves?: string;
  /** Where it goes, without a secret. */
  where(value: M): string;
  Fields(props: KindProps<M>): ComponentChildren;
}
