import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { and, eq, exists, gt, sql } from "drizzle-orm";
import { QueryBuilder } from "drizzle-orm/pg-core";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import {
  BreakerState,
  type Destination,
  DestinationSchema,
  type DestinationType,
  DestinationTypeSchema,
} from "#gen/belfry/notifications/v1/destination_pb.ts";
import {
  CreateDestinationResponseSchema,
  DeleteDestinationResponseSchema,
  type DestinationService,
  GetDestinationResponseSchema,
  type ListDestinationsRequest,
  ListDestinationsRequestSchema,
  ListDestinationsResponseSchema,
  ReplaceDestinationResponseSchema,
} from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import type { Keyring } from "../../credentials/keyring.ts";
import { sealSecrets } from "../../credentials/secrets.ts";
import { releaseCredentials, useCredential } from "../../credentials/used-by.ts";
import { checkQuota, heldBytes, type Kept, type QuotaBounds } from "../../db/admission-quota.ts";
import { databaseNowMs } from "../../db/columns.ts";
import type { Db } from "../../db/connect.ts";
import type { Formats } from "../../db/formats.ts";
import { orm } from "../../db/orm.ts";
import { transaction } from "../../db/transaction.ts";
import { alreadyExists, inUse, invalidFields, notFound } from "../../errors.ts";
import { type Broken, fieldPath } from "../../rpc/constraint-rules.ts";
import { principalOf } from "../../rpc/context.ts";
import { checkEtag } from "../../rpc/etag.ts";
import { normalizedName } from "../../rpc/name-rules.ts";
import { afterRuleChange } from "../deciding/after-rule-change.ts";
import { addressPath } from "../kinds/hidden-address.ts";
import { checkDestination, goTemplates, newFeatureOf, threadPlaceOf } from "../kinds/kinds.ts";
import { checkSecretAddresses } from "../kinds/secret-addresses.ts";
import {
  keptOf,
  type Parted,
  partSecrets,
  secretOwner,
  withPlainAddress,
  withSecrets,
  withStoredAddress,
} from "../kinds/secrets.ts";
import {
  checkCredential,
  checkCredentialHosts,
  credentialIdOf,
  type ProductAddresses,
} from "../kinds/stored-credential.ts";
import { deliveryThreads, destinationStates, summaryMembers } from "../queue/tables.ts";
import { destinations, ruleDestinations } from "../rules/tables.ts";
import { type AddressSealing, sealsAddresses } from "../sending/address-sealing.ts";
import { bindCredential } from "../sending/bound-credentials.ts";
import { withOpenAddress } from "../sending/unseal-destination.ts";
import { keyTroubles } from "./key-troubles.ts";
import { contains, listByName, oneContains, type Part } from "./list-columns.ts";
import { toDestination } from "./messages.ts";
import { forgetCounts, recentNotifications } from "./recent-counts.ts";
import { inRules, usersNamed } from "./references.ts";
import type { Reach } from "./troubles.ts";

const ofRow = (tenantId: string) =>
  and(eq(ruleDestinations.tenantId, tenantId), eq(ruleDestinations.destinationName, destinations.name));
const query = new QueryBuilder();
const ruleNames = (tenantId: string) =>
  query
    .select({ name: ruleDestinations.ruleName })
    .from(ruleDestinations)
    .where(ofRow(tenantId))
    .orderBy(ruleDestinations.ruleName);
const { opened, openUntilMs } = destinationStates;
const { CLOSED, OPEN, HALF_OPEN } = BreakerState;
const breaker = (tenantId: string) =>
  query
    .select({
      state: sql`case when ${opened} = 0 then ${CLOSED}::int4 when ${openUntilMs} > ${databaseNowMs} then ${OPEN}::int4
      else ${HALF_OPEN}::int4 end`,
    })
    .from(destinationStates)
    .where(and(eq(destinationStates.tenantId, tenantId), eq(destinationStates.destinationName, destinations.name)));

const columnsOf = (tenantId: string) => ({
  name: destinations.name,
  description: destinations.description,
  tags: destinations.tags,
  type: destinations.type,
  // Of what is sealed: it changes with any secret, and reveals nothing of it.
  secretsDigest: sql<string>`md5(${destinations.secrets}::text)`,
  maxPerMinute: destinations.maxPerMinute,
  disabledReason: destinations.disabledReason,
  breakerState: sql<BreakerState>`coalesce(${breaker(tenantId)}, ${CLOSED}::int4)`,
  ruleNames: sql<string[]>`array${ruleNames(tenantId)}`,
  recentNotificationCount: recentNotifications(tenantId, "destination", destinations),
});

const named = (tenantId: string, name: string) =>
  and(eq(destinations.tenantId, tenantId), eq(destinations.name, normalizedName(name)));
const typePath = "destination.type";

/** What is stored of a destination, but for its secrets. Whatever the service had disabled it for is over. */
function valuesOf({ description, tags, maxPerMinute }: Destination, { masked }: Parted) {
  const type = toJson(DestinationTypeSchema, masked);
  return { description, tags, maxPerMinute, kind: masked.type.case ?? "", type, disabledReason: "" };
}

/** A type that was sent, taken apart. @throws code 3 for what its kind refuses; secrets that are kept were checked before */
export async function checkedParts(type: DestinationType, tenantId: string): Promise<Parted> {
  const parted = partSecrets(type);
  const broken = await checkDestination(withSecrets(parted.masked, parted.fresh), tenantId);
  refuse(broken.filter(({ path }) => !parted.kept.includes(path)));
  return parted;
}

/** Makes sure that all servers can read a type. @throws code 9 while one of the version before may be there */
async function beginFormat(type: DestinationType, { begin }: Pick<Formats, "begin">): Promise<void> {
  const feature = newFeatureOf(type);
  if (feature !== undefined) await begin(feature);
}

function refuse(broken: readonly Broken[]): void {
  if (broken.length > 0)
    throw invalidFields(
      broken.map(({ path, rule }) => ({ path: fieldPath(typePath, path), rule, id: FieldRule.DESTINATION })),
    );
}

/** Seals what is secret of a destination, but for its address where that cannot be read by all servers, or not be sealed. */
async function sealed(tx: Db, tenantId: string, name: string, parted: Parted, sealing: AddressSealing) {
  const stored = sealsAddresses(sealing) ? parted : withPlainAddress(parted);
  return { stored, secrets: await sealSecrets(tx, tenantId, secretOwner(name), stored.fresh, sealing.keyring) };
}

/** What a replacement stores: in place of `********` what is stored, as it is sealed there. @throws code 3 */
async function replacement(
  tx: Db,
  tenantId: string,
  name: string,
  { type, parted: sent }: { type: DestinationType; parted: Parted },
  before: { secrets: Record<string, string>; type: DestinationType },
  sealing: AddressSealing,
) {
  const addressed = withStoredAddress(type, before.type, typePath);
  const keepsAddress = addressed !== type;
  const parted = keepsAddress ? partSecrets(addressed) : sent;
  const keptSecrets = keptOf(before.secrets, parted.kept, typePath);
  refuse(goTemplates(addressed, before.type));
  checkSecretAddresses(parted, before.type, typePath);
  const { stored, secrets } = await sealed(tx, tenantId, name, parted, sealing);
  const { [addressPath]: address } = before.secrets;
  const keptAddress = keepsAddress && address !== undefined && secrets[addressPath] !== undefined;
  return { parted, stored, secrets: { ...keptSecrets, ...secrets, ...(keptAddress && { [addressPath]: address }) } };
}

/** What opens secrets, and what decides whether a destination can be reached. */
type Showing = Reach & { keyring: Keyring };

/** @throws code 5 */
async function readDestination(db: Db, tenantId: string, name: string, showing: Showing): Promise<Destination> {
  const row = await readRow(db, tenantId, name);
  return toDestination(row, showing, await keyTroubles(db, tenantId, [row.name], showing.keyring));
}

/** Ends a change, in its transaction; returns the destination as it is now, with the secrets that the service has just made. */
async function readChanged(
  tx: Db,
  context: HandlerContext,
  name: string,
  { generated }: Parted,
  showing: Showing,
): Promise<Destination> {
  await afterRuleChange(tx, context, "destination", name);
  const destination = await readDestination(tx, principalOf(context).tenantId, name, showing);
  if (destination.type !== undefined) destination.type = withSecrets(destination.type, generated);
  return destination;
}

const kept: Kept = {
  things: "destinations",
  table: "destinations",
  key: "name",
  columns: ["name", "description", "tags", "type", "secrets"],
};

/** Where notifications go. */
export function destinationService(
  db: Db,
  bounds: QuotaBounds,
  sealing: AddressSealing & Pick<Formats, "begin">,
  products: ProductAddresses & Reach,
): Partial<ServiceImpl<typeof DestinationService>> {
  const { keyring } = sealing;
  const showing = { ...products, keyring };
  return {
    async createDestination({ destination = create(DestinationSchema) }, context) {
      const { tenantId } = principalOf(context);
      const { type = create(DestinationTypeSchema) } = destination;
      const { name } = destination;
      const parted = await checkedParts(type, tenantId);
      refuse(goTemplates(type));
      keptOf({}, parted.kept, typePath);
      checkSecretAddresses(parted, undefined, typePath);
      await beginFormat(type, sealing);
      return await transaction(db, async (tx) => {
        const { stored, secrets } = await sealed(tx, tenantId, name, parted, sealing);
        const made = await orm(tx)
          .insert(destinations)
          .values({ tenantId, name, secrets, ...valuesOf(destination, stored), createdMs: databaseNowMs })
          .onConflictDoNothing({ target: [destinations.tenantId, destinations.name] })
          .returning({ name: destinations.name });
        if (made.length === 0) throw alreadyExists("destination", name);
        await noteCredential(tx, tenantId, name, type, products);
        await checkQuota(tx, tenantId, kept, name, bounds);
        return create(CreateDestinationResponseSchema, {
          destination: await readChanged(tx, context, name, parted, showing),
        });
      });
    },

    async getDestination({ name }, context) {
      const destination = await readDestination(db, principalOf(context).tenantId, name, showing);
      return create(GetDestinationResponseSchema, { destination });
    },

    async listDestinations(request, context) {
      const { tenantId } = principalOf(context);
      const { items, ...page } = await listDestinations(db, tenantId, request);
      const names = items.map(({ name }) => name);
      const troubles = await keyTroubles(db, tenantId, names, keyring);
      return create(ListDestinationsResponseSchema, {
        ...page,
        destinations: items.map((row) => toDestination(row, products, troubles)),
      });
    },

    async replaceDestination({ destination = create(DestinationSchema) }, context) {
      const { tenantId } = principalOf(context);
      const { type = create(DestinationTypeSchema) } = destination;
      const given = { destination, type, parted: await checkedParts(type, tenantId) };
      await beginFormat(type, sealing);
      return await transaction(db, async (tx) => {
        const parted = await replaceStored(tx, tenantId, given, bounds, { sealing, products });
        const { name } = destination;
        return create(ReplaceDestinationResponseSchema, {
          destination: await readChanged(tx, context, normalizedName(name), parted, showing),
        });
      });
    },

    async deleteDestination({ name }, context) {
      await transaction(db, async (tx) => {
        await deleteDestination(tx, principalOf(context).tenantId, normalizedName(name), products);
        await afterRuleChange(tx, context, "destination", name);
      });
      return create(DeleteDestinationResponseSchema);
    },
  };
}

/** Stores a destination in the place of the one of its name; returns what it is then. @throws code 3, code 5, code 8, code 10 */
async function replaceStored(
  tx: Db,
  tenantId: string,
  given: { destination: Destination; type: DestinationType; parted: Parted },
  bounds: QuotaBounds,
  { sealing, products }: { sealing: AddressSealing; products: ProductAddresses & Reach },
): Promise<Parted> {
  const { destination, type } = given;
  const name = normalizedName(destination.name);
  const own = named(tenantId, name);
  const { keyring } = sealing;
  const [stored] = await orm(tx)
    .select({ ...columnsOf(tenantId), secrets: destinations.secrets })
    .from(destinations)
    .where(own)
    .for("no key update");
  if (stored === undefined) throw notFound("destination", name);
  checkEtag("destination", name, destination, DestinationSchema, toDestination(stored, products));
  const masked = fromJson(DestinationTypeSchema, stored.type as JsonValue);
  const before = await withOpenAddress(tx, tenantId, name, { ...stored, type: masked }, keyring);
  const next = await replacement(tx, tenantId, name, given, { ...stored, type: before }, sealing);
  const heldBefore = await heldBytes(tx, tenantId, kept, name);
  await bindCredential(tx, tenantId, before, products);
  await orm(tx)
    .update(destinations)
    .set({ secrets: next.secrets, ...valuesOf(destination, next.stored) })
    .where(own);
  if (threadPlaceOf(before) !== threadPlaceOf(next.parted.masked)) await forgetThreads(tx, tenantId, name);
  await noteCredential(tx, tenantId, name, type, products);
  await checkQuota(tx, tenantId, kept, name, bounds, heldBefore);
  return next.parted;
}

/** @throws code 5 */
async function readRow(db: Db, tenantId: string, name: string) {
  const [row] = await orm(db).select(columnsOf(tenantId)).from(destinations).where(named(tenantId, name));
  if (row === undefined) throw notFound("destination", name);
  return row;
}

/** Notes which stored credential a destination uses now. @throws code 3 when there is none, or one that does not fit */
async function noteCredential(
  tx: Db,
  tenantId: string,
  name: string,
  type: DestinationType,
  products: ProductAddresses,
): Promise<void> {
  const user = { kind: "destination", id: name } as const;
  await releaseCredentials(tx, tenantId, user);
  const id = credentialIdOf(type);
  const path = `${typePath}.${type.type.case}.credentialId`;
  const bind = () => bindCredential(tx, tenantId, type, products);
  const credential = id === "" ? undefined : await useCredential(tx, tenantId, id, user, path, bind);
  checkCredential(type, credential, typePath);
  checkCredentialHosts(type, credential?.allowedHosts ?? [], products, typePath);
}

async function listDestinations(db: Db, tenantId: string, request: ListDestinationsRequest) {
  const ofRule = contains(ruleDestinations.ruleName, request.ruleNames);
  const matching = and(
    eq(destinations.tenantId, tenantId),
    contains(destinations.name, request.name),
    contains(destinations.description, request.description),
    contains(destinations.kind, request.type),
    oneContains(destinations.tags, request.tags),
    ofRule &&
      exists(
        query
          .select({ one: sql`1` })
          .from(ruleDestinations)
          .where(and(ofRow(tenantId), ofRule)),
      ),
  );
  const read = ({ after, limit }: Part) =>
    orm(db)
      .select(columnsOf(tenantId))
      .from(destinations)
      .where(and(matching, gt(destinations.name, after)))
      .orderBy(destinations.name)
      .limit(limit);
  const total = () => orm(db).$count(destinations, matching);
  return await listByName(ListDestinationsRequestSchema, tenantId, request, read, total);
}

/** Deletes a destination that no rule uses. @throws code 5; code 9 when one does */
async function deleteDestination(tx: Db, tenantId: string, name: string, products: ProductAddresses): Promise<void> {
  const own = named(tenantId, name);
  // Locked first: a rule that begins to use it meanwhile waits, and then finds it gone.
  const [locked] = await orm(tx).select({ type: destinations.type }).from(destinations).where(own).for("update");
  if (locked === undefined) throw notFound("destination", name);
  const users = await orm(tx)
    .select({ name: ruleDestinations.ruleName })
    .from(ruleDestinations)
    .where(and(eq(ruleDestinations.tenantId, tenantId), eq(ruleDestinations.destinationName, name)))
    .orderBy(ruleDestinations.ruleName)
    .limit(usersNamed + 1);
  if (users.length > 0) throw inUse("destination", name, inRules(users));
  await bindCredential(tx, tenantId, fromJson(DestinationTypeSchema, locked.type as JsonValue), products);
  await releaseCredentials(tx, tenantId, { kind: "destination", id: name });
  await orm(tx).delete(destinations).where(own);
  await orm(tx).delete(deliveryThreads).where(threadsOf(tenantId, name));
  await orm(tx)
    .delete(summaryMembers)
    .where(
      and(
        eq(summaryMembers.tenantId, tenantId),
        eq(summaryMembers.destinationName, name),
        sql`${summaryMembers.createdMs} >= 0`, // by summary_members_by_subject
      ),
    );
  await forgetCounts(tx, tenantId, "destination", name);
  await forgetCounts(tx, tenantId, "failed", name);
}

const threadsOf = (tenantId: string, name: string) =>
  and(eq(deliveryThreads.tenantId, tenantId), eq(deliveryThreads.destinationName, name));

/** Forgets where a destination's threads were; what was sent is still to be cleared. */
async function forgetThreads(tx: Db, tenantId: string, name: string): Promise<void> {
  await orm(tx).update(deliveryThreads).set({ state: {} }).where(threadsOf(tenantId, name));
}
