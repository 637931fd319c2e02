import { randomUUIDv7 } from "node:crypto";
import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import type { ConnectError, ServiceImpl } from "@connectrpc/connect";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { ExplanationStep } from "#gen/belfry/notifications/v1/explanation_pb.ts";
import { PreviewRuleResponseSchema, type RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import type { Db } from "../../db/connect.ts";
import { pageBytesMax } from "../../db/paging/page-contents.ts";
import { invalidField, notFound } from "../../errors.ts";
import { type Pace, paced } from "../../event-loop.ts";
import { principalOf } from "../../rpc/context.ts";
import { withoutAddress } from "../kinds/hidden-address.ts";
import type { Composed } from "../kinds/kind.ts";
import { compose } from "../kinds/kinds.ts";
import type { SendEnvironment } from "../kinds/send-environment.ts";
import { type Fields, fieldsOf, type MatchRow } from "../rules/rows.ts";
import { storedTriggerType } from "../rules/sources.ts";
import type { Notification } from "../subject/notification.ts";
import { sampleGroup } from "../templates/group-notification.ts";
import { ownTriggers, ruleStep, type StoredTrigger, triggerStep } from "./explanation-steps.ts";
import { previewRow, previewSubject } from "./preview-subject.ts";

/** Members of the group that a preview shows of a rule with groups. */
export const sampleMembers = 3;

interface RuleRow {
  message: string;
  enabled: boolean;
  repeatIntervalSec: bigint;
  matchers: string[];
  triggerNames: string[];
  destinationNames: string[];
  isGrouped: boolean;
}

/** A rule with its triggers, in their order. @throws code 5 when there is none */
async function ruleOf(db: Db, tenantId: string, name: string) {
  const [row] = await db<RuleRow[]>`
    select r.message, r.enabled, r.matchers, r.repeat_interval_sec as "repeatIntervalSec", r.grouping is not null as "isGrouped",
      array(select t.trigger_name from rule_triggers t where t.tenant_id = ${tenantId} and t.rule_name = r.name
        order by t.place) as "triggerNames",
      array(select d.destination_name from rule_destinations d where d.tenant_id = ${tenantId} and d.rule_name = r.name
        order by d.place) as "destinationNames"
    from rules r where r.tenant_id = ${tenantId} and r.name = ${name}`;
  if (row === undefined) throw notFound("rule", name);
  const triggers = await db<StoredTrigger[]>`
    select t.name, t.type from rule_triggers u
      join triggers t on t.tenant_id = ${tenantId} and t.name = u.trigger_name
    where u.tenant_id = ${tenantId} and u.rule_name = ${name} order by u.place`;
  return { rule: { name, ...row }, triggers: [...triggers, ...ownTriggers(row.matchers)] };
}

export interface StoredDestination {
  name: string;
  type: JsonValue;
}

/** A destination as previews see it: its secrets are hidden, which none shows. */
export const previewedDestination = ({ name, type }: StoredDestination) => ({
  name,
  type: withoutAddress(fromJson(DestinationTypeSchema, type)),
});
export type PreviewedDestination = ReturnType<typeof previewedDestination>;

async function destinationsOf(db: Db, tenantId: string, rule: string) {
  const rows = await db<StoredDestination[]>`
    select d.name, d.type
    from rule_destinations r join destinations d on d.tenant_id = r.tenant_id and d.name = r.destination_name
    where r.tenant_id = ${tenantId} and r.rule_name = ${rule} order by r.place`;
  return rows.map(previewedDestination);
}

/** @throws what `tooMuch` makes when they hold more than an answer may: then the rest of them is not rendered */
export async function previewsOf(
  destinations: readonly PreviewedDestination[],
  notification: Notification,
  world: SendEnvironment,
  pace: Pace,
  tooMuch: () => ConnectError,
) {
  let bytes = 0;
  const previews: (Composed & { destination: string })[] = [];
  for (const { name, type } of destinations) {
    const preview = { destination: name, ...(await compose(type, notification, world, pace)) };
    for (const text of Object.values(preview)) bytes += Buffer.byteLength(text);
    if (bytes > pageBytesMax) throw tooMuch();
    previews.push(preview);
  }
  return previews;
}

/** Whether each trigger matches, in their order. */
export async function triggerSteps(
  triggers: readonly StoredTrigger[],
  row: MatchRow,
  values: Fields["events"],
  pace: Pace,
) {
  const steps: ExplanationStep[] = [];
  for (const trigger of triggers) {
    await pace();
    steps.push(await triggerStep(trigger, { row, match: undefined }, values, pace));
  }
  return steps;
}

/** Shows whether rules would match, and what they would send. */
export function rulePreviews(db: Db, world: SendEnvironment): Pick<ServiceImpl<typeof RuleService>, "previewRule"> {
  return {
    async previewRule(request, context) {
      const { tenantId, tenantName } = principalOf(context);
      const pace = paced(() => context.signal.throwIfAborted(), tenantId, { holdsNothing: true });
      const { rule, triggers } = await ruleOf(db, tenantId, request.name);
      const row = await previewRow(db, tenantId, request.subject, triggers);
      const steps = await triggerSteps(triggers, row, fieldsOf(tenantId, tenantName).events, pace);
      const first = steps.findIndex(({ result }) => result === "passed");
      const named = triggers[Math.max(first, 0)];
      const notification: Notification = {
        rule,
        trigger: { name: named?.name ?? "", type: storedTriggerType(named?.type ?? {}) },
        ...previewSubject(row),
        id: randomUUIDv7(),
        timeMs: world.nowMs(),
        tenant: { id: tenantId, name: tenantName },
        chain: [],
      };
      const said = rule.isGrouped ? sampleGroup(notification, sampleMembers) : notification;
      const destinations = await destinationsOf(db, tenantId, request.name);
      return create(PreviewRuleResponseSchema, {
        matches: first >= 0,
        steps: [ruleStep(rule), ...steps],
        previews: await previewsOf(destinations, said, world, pace, () =>
          invalidField(
            "name",
            `names a rule whose previews hold more than ${pageBytesMax} bytes together: take a smaller event, or fewer destinations`,
            FieldRule.SIZE,
          ),
        ),
      });
    },
  };
}
