import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { DeliveryService } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import type { Keyring } from "../../credentials/keyring.ts";
import type { QuotaBounds } from "../../db/admission-quota.ts";
import type { Db } from "../../db/connect.ts";
import type { Formats } from "../../db/formats.ts";
import type { InForce } from "../deciding/engine.ts";
import type { SendEnvironment } from "../kinds/send-environment.ts";
import { deliveryService } from "./deliveries.ts";
import { destinationService } from "./destinations.ts";
import { explanations, type OpenWindows } from "./explain.ts";
import { notificationHealth } from "./health.ts";
import { rulePreviews } from "./preview.ts";
import { messagePreviews } from "./preview-message.ts";
import { triggerPreviews } from "./preview-trigger.ts";
import { ruleService } from "./rules.ts";
import { silenceService } from "./silences/service.ts";
import { destinationTests } from "./test-destination.ts";
import { triggerService } from "./triggers.ts";

interface Options {
  /** How much a tenant may set up. */
  bounds: QuotaBounds;
  keyring: Keyring;
  formats: Pick<Formats, "begun" | "begin">;
  world: SendEnvironment;
  openWindows: OpenWindows;
  readonly inForce: InForce;
  nowMs(): number;
  /** Reports what sends that a tenant has something due. */
  wake(tenantId: string): void;
  /** Reports that there are jobs. */
  wakeJobs(): void;
}

/** Makes the services of notifications, whose parts serve one RPC service together. */
export function notificationServices(
  db: Db,
  { bounds, keyring, formats, world, openWindows, inForce, ...sending }: Options,
): [DescService, Partial<ServiceImpl<DescService>>][] {
  const destinations: Partial<ServiceImpl<typeof DestinationService>> = {
    ...destinationService(db, bounds, { keyring, ...formats }, world),
    ...destinationTests(db, keyring, world),
  };
  const rules: Partial<ServiceImpl<typeof RuleService>> = {
    ...ruleService(db, bounds),
    ...rulePreviews(db, world),
    ...messagePreviews(db, world),
  };
  const triggers: Partial<ServiceImpl<typeof TriggerService>> = {
    ...triggerService(db, bounds),
    ...triggerPreviews(db, sending.nowMs),
  };
  const deliveries: Partial<ServiceImpl<typeof DeliveryService>> = {
    ...deliveryService(db, sending),
    ...explanations(db, { ...sending, openWindows, inForce }),
    ...notificationHealth(db, sending),
  };
  return [
    [TriggerService, triggers],
    [DestinationService, destinations],
    [RuleService, rules],
    [DeliveryService, deliveries],
    [SilenceService, silenceService(db, { ...sending, bounds, inForce })],
  ];
}
