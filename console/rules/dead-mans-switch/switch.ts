import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import {
  type StaleDataSource,
  StaleDataSourceSchema,
  type Trigger,
  TriggerSchema,
} from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { clientOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { blank } from "../../form/form.ts";
import { blankRule } from "../rules/blank-rule.ts";

const triggers = clientOf(TriggerService);
const rules = clientOf(RuleService);

/** The name that Prometheus' own rules give the alert. */
export const watchdog = "Watchdog";

/** Alerts of Prometheus that have neither `job` nor `instance` are of this entity. */
const usualSender = {
  clause: {
    filter: {
      field: "dimensions.source",
      operation: Operation.OP_EQUALS,
      value: { kind: { case: "stringValue" as const, value: "prometheus" } },
    },
  },
};

/** Returns the switch that the form begins with: Watchdog of Prometheus has stayed away for five minutes. */
export const blankSwitch = () =>
  blank(TriggerSchema, {
    name: `No ${watchdog}`,
    type: {
      source: {
        case: "staleData",
        value: { eventName: watchdog, durationSec: 300n, entityQuery: usualSender },
      },
    },
  });

export const staleOf = ({ type }: Trigger): StaleDataSource =>
  type?.source.case === "staleData" ? type.source.value : create(StaleDataSourceSchema);

/** The words of its notifications, which would name the entity alone. */
const messageOf = (eventName: string) => {
  // Braces would begin a tag of the template.
  const name = eventName.replaceAll(/[{}]/g, "");
  return `{{^clear}}${name} stays away: alerts may not arrive any more{{/clear}}{{#clear}}${name} has come again{{/clear}}`;
};

/** The server takes a rule without a destination; this one would be of no use. */
const noDestination = () =>
  new ConnectError("no destination", Code.InvalidArgument, undefined, [
    {
      desc: BadRequestSchema,
      value: {
        fieldViolations: [{ field: "rule.destinationNames", description: "at least one destination is needed" }],
      },
    },
  ]);

/** Creates the trigger and its rule of the same name: both, or none of them. */
export async function createSwitch(trigger: Trigger, destinationNames: string[]): Promise<Trigger | undefined> {
  const { name } = trigger;
  if (destinationNames.length === 0) throw noDestination();
  const made = await triggers.createTrigger({ trigger });
  const rule = create(RuleSchema, {
    ...blankRule(),
    name,
    triggerNames: [name],
    destinationNames,
    message: messageOf(staleOf(trigger).eventName),
    muteDuringMaintenance: false,
  });
  try {
    await rules.createRule({ rule });
  } catch (error) {
    await triggers.deleteTrigger({ name });
    throw error;
  }
  say(`The rule "${name}" was created, with a trigger of this name.`, async () => {
    await rules.deleteRule({ name });
    await triggers.deleteTrigger({ name });
    if (location.hash === linkTo(["rules", "rules", name])) goTo(linkTo(["rules", "rules"]));
  });
  return made.trigger;
}
