import { create, type Message } from "@bufbuild/protobuf";
import { type DestinationType, DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { email } from "./kinds/email.tsx";
import { event } from "./kinds/event.tsx";
import { incidentPaging } from "./kinds/incident-paging.tsx";
import { itsm } from "./kinds/itsm.tsx";
import type { DestinationKind, KindName, MessageOf } from "./kinds/kind.ts";
import { officeChat } from "./kinds/office-chat.tsx";
import { teamChat } from "./kinds/team-chat.tsx";
import { webhook } from "./kinds/webhook.tsx";

const kinds: { readonly [K in KindName]: DestinationKind<MessageOf<K>> } = {
  email,
  event,
  officeChat,
  incidentPaging,
  itsm,
  teamChat,
  webhook,
};

/** The names of all kinds, in the order of the oneof. */
export const kindNames = DestinationTypeSchema.fields.map(({ localName }) => localName as KindName);

/** A kind, under the one type that all kinds share. */
export const kindOf = (name: KindName) => kinds[name] as DestinationKind<Message>;

/** What a destination of a kind begins with. */
export function emptyType(name: KindName): DestinationType {
  const { message } = DestinationTypeSchema.field[name] as { message: Parameters<typeof create>[0] };
  return create(DestinationTypeSchema, { type: { case: name, value: create(message) } as DestinationType["type"] });
}

/** A destination's kind in words, and where it goes without a secret. */
export function kindWords({ type }: DestinationType): { word: string; where: string } {
  if (type.case === undefined) return { word: "Unknown", where: "" };
  const { word, where } = kindOf(type.case);
  return { word, where: where(type.value) };
}
