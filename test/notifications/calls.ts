import { randomUUIDv7 } from "node:crypto";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { Db } from "../../src/db/connect.ts";
import type { Call, Calls, World } from "../support/calls.ts";
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

const named = (make: (world: World) => Promise<string>): Call => ({
  request: async (world) => ({ name: await make(world) }),
  elsewhere: "not found",
});
const listed = (make: (world: World) => Promise<string>): Call => ({
  request: async (world) => {
    await make(world);
    return {};
  },
  elsewhere: "nothing",
});

/** A delivery that has failed, of the rule of this name if there is one, which matches what it is about; returns its id. */
async function doneDelivery(db: Db, tenantId: string, mark: string): Promise<string> {
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

const ofSilence = (more: (world: World) => object = () => ({})): Call => ({
  request: async (world) => ({ id: await silence(world), ...more(world) }),
  elsewhere: "not found",
});

export const calls: Calls = {
  "SilenceService/CreateSilence": { request: (world) => ({ silence: silenceOf(world) }), elsewhere: "his own" },
  "SilenceService/GetSilence": ofSilence(),
  "SilenceService/ListSilences": listed(silence),
  "SilenceService/ReplaceSilence": ofSilence((world) => ({ silence: silenceOf(world) })),
  "SilenceService/ExpireSilence": ofSilence(),
  "SilenceService/PreviewSilence": {
    request: async (world) => {
      await world.client(DataReceiverService).putEvents({
        events: [
          {
            name: world.mark,
            timestamp: BigInt(Date.now()),
            dimensions: { source: world.mark },
            severity: 4,
            status: 1,
          },
        ],
      });
      return { silence: silenceOf(world) };
    },
    elsewhere: "nothing",
  },
  "TriggerService/CreateTrigger": { request: (world) => ({ trigger: triggerOf(world) }), elsewhere: "his own" },
  "TriggerService/GetTrigger": named(trigger),
  "TriggerService/ListTriggers": listed(trigger),
  "TriggerService/PreviewTrigger": {
    request: async ({ client, mark }) => {
      await client(DataReceiverService).putEvents({
        events: [{ name: mark, timestamp: BigInt(Date.now()), dimensions: { source: mark }, severity: 4, status: 1 }],
      });
      return { type: eventTrigger(mark) };
    },
    elsewhere: "nothing",
  },
  "TriggerService/UpdateTrigger": {
    request: async (world) => ({ trigger: { name: await trigger(world), description: "changed" } }),
    elsewhere: "not found",
  },
  "TriggerService/DeleteTrigger": named(trigger),
  "DestinationService/CreateDestination": {
    request: (world) => ({ destination: destinationOf(world) }),
    elsewhere: "his own",
  },
  "DestinationService/GetDestination": named(destination),
  "DestinationService/ListDestinations": listed(destination),
  "DestinationService/ReplaceDestination": {
    request: async (world) => {
      await destination(world);
      return { destination: destinationOf(world) };
    },
    elsewhere: "not found",
  },
  "DestinationService/DeleteDestination": named(destination),
  "DestinationService/TestDestination": {
    // The kind that needs no receiver.
    request: ({ mark }) => ({ destination: { name: mark, type: eventDestination(mark) } }),
    elsewhere: "his own",
  },
  "RuleService/CreateRule": { request: ({ mark }) => ({ rule: { name: mark, message: mark } }), elsewhere: "his own" },
  "RuleService/GetRule": named(rule),
  "RuleService/ListRules": listed(rule),
  "RuleService/UpdateRule": {
    request: async (world) => ({ rule: { name: await rule(world), description: "changed" } }),
    elsewhere: "not found",
  },
  "RuleService/DeleteRule": named(rule),
  "RuleService/PreviewRule": {
    request: async (world) => ({
      name: await rule(world),
      subject: {
        case: "event",
        value: { timestamp: BigInt(Date.now()), name: world.mark, dimensions: { host: world.mark } },
      },
    }),
    elsewhere: "not found",
  },
  "RuleService/PreviewMessage": {
    request: async ({ client, mark }) => {
      await client(DataReceiverService).putEvents({
        events: [{ name: mark, timestamp: BigInt(Date.now()), dimensions: { source: mark }, severity: 4, status: 1 }],
      });
      const { results } = await client(EventQueryService).searchEvents({ query: {} });
      return { message: mark, occurrenceId: results[0]?.occurrences[0]?.id ?? "" };
    },
    elsewhere: "not found",
  },
  "DeliveryService/ListDeliveries": {
    request: async ({ db, tenant, mark }) => {
      await doneDelivery(db, tenant.id, mark);
      return {};
    },
    elsewhere: "nothing",
  },
  "DeliveryService/GetDelivery": {
    request: async ({ db, tenant, mark }) => ({ id: await doneDelivery(db, tenant.id, mark) }),
    elsewhere: "not found",
  },
  "DeliveryService/ListDeliveryMembers": {
    request: async ({ db, tenant, mark }) => ({ id: await doneDelivery(db, tenant.id, mark) }),
    elsewhere: "not found",
  },
  "DeliveryService/ExplainNotification": {
    request: async (world) => {
      const name = await rule(world);
      await doneDelivery(world.db, world.tenant.id, name);
      return { name, about: { case: "subject", value: Buffer.alloc(24).toString("base64url") } };
    },
    elsewhere: "not found",
  },
  "DeliveryService/ExplainOccurrence": {
    request: async (world) => {
      await world.client(DataReceiverService).putEvents({
        events: [{ timestamp: BigInt(Date.now()), name: world.mark, dimensions: { source: world.mark }, severity: 4 }],
      });
      await Promise.all([trigger(world), destination(world)]);
      // Nothing comes of the event by itself: it was there before, and the rule is disabled.
      await world.client(RuleService).createRule({ rule: { ...ruleOf(world), enabled: false } });
      const { results } = await world.client(EventQueryService).searchEvents({ query: {} });
      return { id: results[0]?.occurrences[0]?.id ?? "" };
    },
    elsewhere: "not found",
  },
  "DeliveryService/GetNotificationHealth": {
    request: async (world) => {
      await destination(world);
      await world.db`update destinations set disabled_reason = 'gone' where tenant_id = ${world.tenant.id}`;
      return {};
    },
    elsewhere: "nothing",
  },
  "DeliveryService/RetryDeliveries": {
    request: async (world) => {
      await rule(world);
      await doneDelivery(world.db, world.tenant.id, world.mark);
      return { destination: world.mark };
    },
    elsewhere: "not found",
  },
  "DeliveryService/RetryDelivery": {
    request: async (world) => {
      await rule(world);
      return { id: await doneDelivery(world.db, world.tenant.id, world.mark) };
    },
    elsewhere: "not found",
  },
};
