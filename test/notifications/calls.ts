import { randomUUIDv7 } from "node:crypto";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { after, type Call, type Calls, hisOwn, notFound, nothing, type World } from "../support/calls.ts";
import { eventDestination, eventTrigger, webhook } from "./samples.ts";

const triggerOf = ({ mark }: World) => ({ name: mark, description: mark, type: eventTrigger(mark) });
const destinationOf = ({ mark }: World) => ({ name: mark, description: mark, type: webhook(mark) });
const ruleOf = ({ mark }: World) => ({
  name: mark,
  enabled: true,
  message: mark,
  triggerNames: [mark],
  destinationNames: [mark],
});

async function trigger(world: World): Promise<string> {
  await world.client(TriggerService).createTrigger({ trigger: triggerOf(world) });
  return world.mark;
}

async function destination(world: World): Promise<string> {
  await world.client(DestinationService).createDestination({ destination: destinationOf(world) });
  return world.mark;
}

/** A rule with its trigger and its destination. */
async function rule(world: World): Promise<string> {
  await Promise.all([trigger(world), destination(world)]);
  await world.client(RuleService).createRule({ rule: ruleOf(world) });
  return world.mark;
}

const named = (make: (world: World) => Promise<string>): Call => notFound(after(make, (name) => ({ name })));
const listed = (make: (world: World) => Promise<string>): Call => nothing(after(make));

/** A delivery that has failed, of the rule of this name if there is one, which matches what it is about; returns its id. */
async function doneDelivery({ db, tenant, mark }: World): Promise<string> {
  const tenantId = tenant.id;
  const id = randomUUIDv7();
  const createdMs = BigInt(`0x${id.slice(0, 8)}${id.slice(9, 13)}`);
  const [own] = await db<{ id: string }[]>`select id from rules where tenant_id = ${tenantId} and name = ${mark}`;
  const ruleId = own?.id ?? id;
  await db`
    insert into rule_matches (tenant_id, subject, rule_id, entity_id, trigger_names, standing, muted, chain, matched_ms, last_ms)
    values (${tenantId}, ${Buffer.alloc(24)}, ${ruleId}, ${Buffer.alloc(20)}, array[${mark}], true, false, '{}', 0, 0)
    on conflict do nothing`;
  await db`
    insert into delivery_history (tenant_id, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
      entity_id, occasion, told, attempts, error, status, ended_ms)
    values (${tenantId}, ${id}, ${createdMs}, ${ruleId}, ${mark}, array[${mark}], ${mark}, ${Buffer.alloc(24)}, ${Buffer.alloc(20)},
      'first', '{}', '[]', ${mark}, 'FAILED', ${createdMs})`;
  return id;
}

async function ruleWithDelivery(world: World): Promise<string> {
  await rule(world);
  return doneDelivery(world);
}

/** An open event; the id of its occurrence. */
async function event({ client, mark }: World): Promise<string> {
  await client(DataReceiverService).putEvents({
    events: [{ name: mark, timestamp: BigInt(Date.now()), dimensions: { source: mark }, severity: 4, status: 1 }],
  });
  const { results } = await client(EventQueryService).searchEvents({ query: {} });
  return results[0]?.occurrences[0]?.id ?? "";
}

const silenceOf = ({ mark }: World) => ({
  matchers: [`source="${mark}"`],
  endsAt: BigInt(Date.now() + 3_600_000),
  comment: mark,
});

/** Returns the id of a silence. */
async function silence(world: World): Promise<string> {
  const answer = await world.client(SilenceService).createSilence({ silence: silenceOf(world) });
  return answer.silence?.id ?? "";
}

const ofSilence = (more: (world: World) => object = () => ({})): Call =>
  notFound(after(silence, (id, world) => ({ id, ...more(world) })));

export const calls: Calls = {
  "SilenceService/CreateSilence": hisOwn((world) => ({ silence: silenceOf(world) })),
  "SilenceService/GetSilence": ofSilence(),
  "SilenceService/ListSilences": listed(silence),
  "SilenceService/ReplaceSilence": ofSilence((world) => ({ silence: silenceOf(world) })),
  "SilenceService/ExpireSilence": ofSilence(),
  "SilenceService/PreviewSilence": nothing(after(event, (_, world) => ({ silence: silenceOf(world) }))),
  "TriggerService/CreateTrigger": hisOwn((world) => ({ trigger: triggerOf(world) })),
  "TriggerService/GetTrigger": named(trigger),
  "TriggerService/ListTriggers": listed(trigger),
  "TriggerService/PreviewTrigger": nothing(after(event, (_, { mark }) => ({ type: eventTrigger(mark) }))),
  "TriggerService/UpdateTrigger": notFound(async (world) => ({
    trigger: { name: await trigger(world), description: "changed" },
  })),
  "TriggerService/DeleteTrigger": named(trigger),
  "DestinationService/CreateDestination": hisOwn((world) => ({ destination: destinationOf(world) })),
  "DestinationService/GetDestination": named(destination),
  "DestinationService/ListDestinations": listed(destination),
  "DestinationService/ReplaceDestination": notFound(
    after(destination, (_, world) => ({ destination: destinationOf(world) })),
  ),
  "DestinationService/DeleteDestination": named(destination),
  // The kind that needs no receiver.
  "DestinationService/TestDestination": hisOwn(({ mark }) => ({
    destination: { name: mark, type: eventDestination(mark) },
  })),
  "RuleService/CreateRule": hisOwn(({ mark }) => ({ rule: { name: mark, message: mark } })),
  "RuleService/GetRule": named(rule),
  "RuleService/ListRules": listed(rule),
  "RuleService/UpdateRule": notFound(async (world) => ({ rule: { name: await rule(world), description: "changed" } })),
  "RuleService/DeleteRule": named(rule),
  "RuleService/PreviewRule": notFound(async (world) => ({
    name: await rule(world),
    subject: {
      case: "event",
      value: { timestamp: BigInt(Date.now()), name: world.mark, dimensions: { host: world.mark } },
    },
  })),
  "RuleService/PreviewMessage": notFound(after(event, (occurrenceId, { mark }) => ({ message: mark, occurrenceId }))),
  "DeliveryService/ListDeliveries": nothing(after(doneDelivery)),
  "DeliveryService/GetDelivery": notFound(after(doneDelivery, (id) => ({ id }))),
  "DeliveryService/ListDeliveryMembers": notFound(after(doneDelivery, (id) => ({ id }))),
  "DeliveryService/ExplainNotification": notFound(
    after(ruleWithDelivery, (_, { mark }) => ({
      name: mark,
      about: { case: "subject", value: Buffer.alloc(24).toString("base64url") },
    })),
  ),
  "DeliveryService/ExplainOccurrence": notFound(async (world) => {
    const id = await event(world);
    await Promise.all([trigger(world), destination(world)]);
    // Nothing comes of the event by itself: it was there before, and the rule is disabled.
    await world.client(RuleService).createRule({ rule: { ...ruleOf(world), enabled: false } });
    return { id };
  }),
  "DeliveryService/GetNotificationHealth": nothing(async (world) => {
    await destination(world);
    await world.db`update destinations set disabled_reason = 'gone' where tenant_id = ${world.tenant.id}`;
    return {};
  }),
  "DeliveryService/RetryDeliveries": notFound(after(ruleWithDelivery, (_, { mark }) => ({ destination: mark }))),
  "DeliveryService/RetryDelivery": notFound(after(ruleWithDelivery, (id) => ({ id }))),
};
