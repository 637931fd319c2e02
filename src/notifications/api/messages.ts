import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import {
  type BreakerState,
  type Destination,
  DestinationSchema,
  DestinationTypeSchema,
} from "#gen/belfry/notifications/v1/destination_pb.ts";
import { GroupingSchema, RepeatWhile, type Rule, RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { type Trigger, TriggerSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { joinedTroubles } from "../../clause/label-matcher.ts";
import { etagOf } from "../../rpc/etag.ts";
import { withoutAddress } from "../kinds/hidden-address.ts";
import { shownTriggerType } from "../rules/sources.ts";
import type { StoredRule } from "../rules/stored-rules.ts";
import { destinationTrouble, type Reach, ruleTrouble } from "./troubles.ts";

/** What triggers, destinations and rules have alike. */
interface Named {
  name: string;
  description: string;
  tags: string[];
  recentNotificationCount: bigint;
}

/** A trigger as it is stored, with the names of the rules that use it. */
export interface TriggerRow extends Named {
  type: JsonValue;
  ruleNames: string[];
}

/** A destination as it is stored, its secrets masked, with the names of the rules that use it. */
export interface DestinationRow extends Named {
  type: JsonValue;
  /** Distinguishes its secrets from those of before. */
  secretsDigest: string;
  maxPerMinute: number;
  disabledReason: string;
  breakerState: BreakerState;
  ruleNames: string[];
}

/** A rule as the API shows it, before its trouble is known. */
export interface ShownRule extends Named, Omit<StoredRule, "repeatWhile"> {
  repeatWhile: RepeatWhile | null;
  /** Whether one of its destinations keeps open what it was sent until that is resolved there. */
  hasOpenRecords: boolean;
}

/** A trigger as the API shows it. */
export function toTrigger({ type, ...row }: TriggerRow, troubles: ReadonlyMap<string, string> = new Map()): Trigger {
  const shown = shownTriggerType(type);
  const etag = etagOf([row.description, row.tags, type]);
  return create(TriggerSchema, { ...row, ...shown, etag, trouble: shown.trouble || (troubles.get(row.name) ?? "") });
}

/** A destination as the API shows it. @param keyTroubles what is wrong with keys, by the names of destinations */
export function toDestination(
  { type: stored, secretsDigest, ...row }: DestinationRow,
  reach: Reach,
  keyTroubles: ReadonlyMap<string, string> = new Map(),
): Destination {
  const etag = etagOf([row.description, row.tags, row.maxPerMinute, stored, secretsDigest]);
  const type = fromJson(DestinationTypeSchema, stored);
  const trouble = joinedTroubles([destinationTrouble(type, reach), keyTroubles.get(row.name) ?? ""]);
  return create(DestinationSchema, { ...row, etag, type: withoutAddress(type), trouble });
}

/** A rule as the API shows it. @param alertsAlone the ids of rules whose matches all came as alerts */
export function toRule(
  { id, hasOpenRecords, ...stored }: ShownRule,
  alertsAlone: ReadonlySet<string> = new Set(),
): Rule {
  const { repeatIntervalSec, delaySec, repeatWhile, grouping, ...row } = stored;
  const { description, tags, enabled, message, repeat, sendUpdates, muteDuringMaintenance } = row;
  const { triggerNames, destinationNames, matchers } = row;
  return create(RuleSchema, {
    ...row,
    etag: etagOf([
      description,
      tags,
      enabled,
      message,
      repeat,
      sendUpdates,
      muteDuringMaintenance,
      triggerNames,
      destinationNames,
      ...(matchers.length > 0 ? [matchers] : []),
      ...(grouping === null ? [] : [grouping]),
      repeatWhile ?? RepeatWhile.UNSPECIFIED,
      repeatIntervalSec,
      delaySec,
    ]),
    repeatWhile: repeatWhile ?? RepeatWhile.UNSPECIFIED,
    repeatInterval: repeatIntervalSec,
    delaySec: BigInt(delaySec),
    ...(grouping && {
      grouping: create(GroupingSchema, {
        by: [...grouping.by],
        waitSec: BigInt(grouping.waitSec),
        intervalSec: BigInt(grouping.intervalSec),
      }),
    }),
    trouble: ruleTrouble({ ...row, repeatIntervalSec, hasOpenRecords, matchesAlertsAlone: alertsAlone.has(id) }),
  });
}
