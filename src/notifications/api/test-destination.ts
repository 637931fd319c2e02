import { randomUUIDv7 } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import {
  type Destination,
  DestinationSchema,
  DestinationTypeSchema,
} from "#gen/belfry/notifications/v1/destination_pb.ts";
import {
  type DestinationService,
  TestDestinationResponseSchema,
} from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { EventSourceSchema, TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Keyring } from "../../credentials/keyring.ts";
import type { Db } from "../../db/connect.ts";
import { transaction } from "../../db/transaction.ts";
import { failedPrecondition } from "../../errors.ts";
import { principalOf } from "../../rpc/context.ts";
import { normalizedName } from "../../rpc/name-rules.ts";
import { audited } from "../../tenants/audit.ts";
import { withoutAddress } from "../kinds/hidden-address.ts";
import { send } from "../kinds/kinds.ts";
import { givenRefreshToken, refreshTokenPath, storedRefreshToken } from "../kinds/refresh-token.ts";
import { withSecrets, withStoredAddress } from "../kinds/secrets.ts";
import type { SendEnvironment } from "../kinds/send-environment.ts";
import { checkCredentialHosts } from "../kinds/stored-credential.ts";
import { bindCredential } from "../sending/bound-credentials.ts";
import { unsealDestination } from "../sending/unseal-destination.ts";
import type { Notification } from "../subject/notification.ts";
import { checkedParts } from "./destinations.ts";

/** A notification of a made-up event, which says that it is one. */
function testNotification(tenant: Notification["tenant"], destination: string, nowMs: number): Notification {
  const id = randomUUIDv7();
  return {
    id,
    occasion: "first",
    clear: false,
    timeMs: nowMs,
    tenant,
    rule: {
      name: "test",
      message: "",
      enabled: true,
      repeatIntervalSec: 0n,
      triggerNames: ["test"],
      destinationNames: [destination],
    },
    trigger: {
      name: "test",
      type: create(TriggerTypeSchema, { source: { case: "event", value: create(EventSourceSchema) } }),
    },
    subjectId: `test:${id}`,
    event: {
      id: "",
      name: "belfry-test",
      type: "test",
      summary: `Test of destination ${destination}`.slice(0, 128),
      body: "Nothing has happened. This notification shows that the destination works.",
      severity: Severity.INFO,
      status: Status.OPEN,
      acknowledged: false,
      timeMs: nowMs,
      startMs: nowMs,
      count: 1n,
      metadata: {},
    },
    entity: { id: "", name: "belfry-test", dimensions: { source: "belfry-test" } },
    chain: [],
  };
}

const typePath = "destination.type";

/**
 * The type of a destination to test, with its secrets readable, and its refresh token.
 * @throws code 3 for what is wrong with it; code 9 for secrets that do not open
 */
async function opened(
  db: Db,
  tenantId: string,
  { name, type: given }: Destination,
  keyring: Keyring,
  world: SendEnvironment,
) {
  const parted = await checkedParts(given ?? create(DestinationTypeSchema), tenantId);
  const unmasked = withSecrets(parted.masked, parted.fresh);
  // A test sends the secrets, too: what it is bound by is stored before, unless the test is refused.
  const open = await transaction(db, async (tx) => {
    await bindCredential(tx, tenantId, unmasked, world);
    const unsealed = await unsealDestination(tx, tenantId, name, unmasked, keyring, world, typePath);
    checkCredentialHosts(unsealed.type, unsealed.allowedHosts, world, typePath);
    return unsealed;
  });
  const shown = withoutAddress(withStoredAddress(parted.masked, open.type, typePath));
  const refreshToken = parted.kept.includes(refreshTokenPath)
    ? storedRefreshToken(db, tenantId, normalizedName(name), open.type, keyring)
    : givenRefreshToken(parted.fresh[refreshTokenPath] ?? "");
  return { ...open, refreshToken, masked: shown };
}

/** Tests destinations, stored or not, by a notification that is sent for real, once. */
export function destinationTests(
  db: Db,
  keyring: Keyring,
  world: SendEnvironment,
): Pick<ServiceImpl<typeof DestinationService>, "testDestination"> {
  return {
    async testDestination({ destination = create(DestinationSchema) }, context) {
      const { tenantId, tenantName } = principalOf(context);
      const { name } = destination;
      const { masked, ...open } = await opened(db, tenantId, destination, keyring, world);
      const notification = testNotification({ id: tenantId, name: tenantName }, name, world.nowMs());
      const outcome = await send(
        {
          ...open,
          destinationKey: `test ${tenantId}/${name}`,
          notification,
          state: {},
          signal: context.signal,
        },
        world,
      );
      if (outcome.result === "failed") {
        throw failedPrecondition(
          `the test notification was not taken (${outcome.reason}): ${outcome.answer}`,
          ErrorReason.TEST_NOT_TAKEN,
        );
      }
      await transaction(db, (tx) => audited(tx, context, name));
      return create(TestDestinationResponseSchema, {
        destination: { ...destination, type: masked },
        answer: outcome.answer,
      });
    },
  };
}
