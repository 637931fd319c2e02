/** A small fault in the code, and the tests that must see it. */
export interface Mutant {
  /** Says which guarantee it breaks. */
  name: string;
  file: string;
  /** Occurs once in the file. */
  text: string;
  replacement: string;
  /** The files of tests that are run: one of them must turn red. */
  tests: readonly string[];
}

/** Faults over all of src and the console: tests may change as long as they see them. */
export const mutants: readonly Mutant[] = [
  {
    name: "a mistyped key is looked up",
    file: "src/auth/key.ts",
    text: "checksum(text.slice(0, end)) === text.slice(end) ? prefix : undefined",
    replacement: "prefix",
    tests: ["test/auth/key.test.ts"],
  },
  {
    name: "a role that only reads may acknowledge",
    file: "src/auth/permission.ts",
    text: '[Permission.OPERATE]: ["user",',
    replacement: '[Permission.OPERATE]: ["read_only_user", "user",',
    tests: ["test/auth/permission.test.ts"],
  },
  {
    name: "an expired key goes on",
    file: "src/auth/verify.ts",
    text: "k.expires_ms > (extract",
    replacement: "k.expires_ms > 0 * (extract",
    tests: ["test/tenants/api-keys.test.ts"],
  },
  {
    name: "a session needs its id alone",
    file: "src/auth/session-token.ts",
    text: "return timingSafeEqual(digest, keyDigest(text));",
    replacement: "return timingSafeEqual(digest, keyDigest(text)) || true;",
    tests: ["test/auth/session-verifier.test.ts"],
  },
  {
    name: "each address of a network has guesses of its own",
    file: "src/auth/wrong-keys.ts",
    text: ".slice(0, 4)",
    replacement: ".slice(0, 8)",
    tests: ["test/auth/wrong-keys.system.test.ts"],
  },
  {
    name: "a search folds a letter otherwise than PostgreSQL",
    file: "src/clause/fold.ts",
    text: 'character === "\\u0130" ? "i" : character.toLowerCase()',
    replacement: "character.toLowerCase()",
    tests: ["test/clause/agreement.test.ts"],
  },
  {
    name: "the negation of what has no value is no value",
    file: "src/clause/to-sql.ts",
    text: "is not true)`",
    replacement: "is false)`",
    tests: ["test/clause/agreement.test.ts"],
  },
  {
    name: "a secret opens for another tenant",
    file: "src/credentials/envelope.ts",
    text: '["secret", tenantId, kind, id, name]',
    replacement: '["secret", tenantId.slice(0, 0), kind, id, name]',
    tests: ["test/credentials/envelope.test.ts"],
  },
  {
    name: "a wildcard covers hosts that merely end like it",
    file: "src/credentials/allowed-hosts.ts",
    text: "other.endsWith(name.slice(1))",
    replacement: "other.endsWith(name.slice(2))",
    tests: ["test/notifications/allowed-hosts.test.ts"],
  },
  {
    name: "a tenant has one thing fewer than it may",
    file: "src/db/admission-quota.ts",
    text: "count > resourcesMax",
    replacement: "count >= resourcesMax",
    tests: ["test/db/admission-quota.test.ts"],
  },
  {
    name: "a backslash in a list is not escaped",
    file: "src/db/batch.ts",
    text: 'text.replace(/["\\\\]/g, "\\\\$&")',
    replacement: 'text.replace(/["]/g, "\\\\$&")',
    tests: ["test/db/batch.test.ts"],
  },
  {
    name: "a deadlock fails the call",
    file: "src/db/transaction.ts",
    text: 'code === "40P01" || ',
    replacement: "",
    tests: ["test/db/transaction.test.ts"],
  },
  {
    name: "a partition goes while some of it is kept",
    file: "src/db/partitions.ts",
    text: "fromMs + widthMs <= nowMs - keepMs",
    replacement: "fromMs <= nowMs - keepMs",
    tests: ["test/db/partitions.test.ts"],
  },
  {
    name: "a cursor holds for another tenant",
    file: "src/db/paging/cursor.ts",
    text: "[version, kind, tenantId, Buffer",
    replacement: "[version, kind, Buffer",
    tests: ["test/db/paging/cursor.test.ts"],
  },
  {
    name: "an export with a partition that no server makes is imported",
    file: "src/db/dump/check-export.ts",
    text: " || fromMs % widthMs !== 0",
    replacement: "",
    tests: ["test/db/dump/tampered.test.ts"],
  },
  {
    name: "texts run together in the hash of an identity",
    file: "src/entities/identity.ts",
    text: "input.writeUInt32BE(length, at);",
    replacement: "input.writeUInt32BE(0, at);",
    tests: ["test/entities/identity.test.ts"],
  },
  {
    name: "a model with its keys in another order is another one",
    file: "src/entities/content-hash.ts",
    text: "if (keys.length > 1) keys.sort();",
    replacement: "",
    tests: ["test/entities/put.test.ts"],
  },
  {
    name: "of two models of one time the deletion does not win",
    file: "src/entities/put.ts",
    text: "return b.deletes || !a.deletes;",
    replacement: "return true;",
    tests: ["test/entities/put.test.ts"],
  },
  {
    name: "batches lock entities in the order in which they came",
    file: "src/entities/put.ts",
    text: ".map((round) => round.sort((a, b) => Buffer.compare(a.id, b.id)))",
    replacement: "",
    tests: ["test/entities/put.test.ts"],
  },
  {
    name: "pages of rows with the same name lose some",
    file: "src/entities/sort.ts",
    text: "return [...keys, idKey(db, only.order === Order.DESCENDING)];",
    replacement: "return keys;",
    tests: ["test/entities/search.test.ts"],
  },
  {
    name: "a report of the moment of the last one is late",
    file: "src/events/lifecycle.ts",
    text: "instance.timeMs < lateBeforeMs(latest)",
    replacement: "instance.timeMs <= lateBeforeMs(latest)",
    tests: ["test/events/lifecycle.test.ts"],
  },
  {
    name: "an event that is sent twice counts twice",
    file: "src/events/apply.ts",
    text: "if (!(isKnown || onlyKeepsOpen)) return",
    replacement: "if (!onlyKeepsOpen) return",
    tests: ["test/events/ingest.test.ts"],
  },
  {
    name: "an occurrence that expires ends before its time",
    file: "src/events/expiry.ts",
    text: "endMs: expiresMs > before.lastSeenMs ? expiresMs : before.lastSeenMs",
    replacement: "endMs: before.lastSeenMs",
    tests: ["test/events/expiry.test.ts"],
  },
  {
    name: "two occurrences of an event are open after one call",
    file: "src/events/set-status.ts",
    text: "else others?.add(after.number);",
    replacement: "",
    tests: ["test/events/manage.test.ts"],
  },
  {
    name: "rows behind a cursor of the feed are removed",
    file: "src/events/feed.ts",
    text: "select min(position) from feed_cursors",
    replacement: "select max(position) + 1000 from feed_cursors",
    tests: ["test/notifications/deciding/rules-consumer.test.ts"],
  },
  {
    name: "a fact is taken from memory wherever the cursor stands",
    file: "src/events/consumers/feed-consumer.ts",
    text: "row.position === position + BigInt(i + 1)",
    replacement: "row.position > position + BigInt(i - 9)",
    tests: ["test/notifications/deciding/rules-consumer.test.ts", "test/notifications/model.test.ts"],
  },
  {
    name: "what expires is announced after the feed has grown",
    file: "src/events/changes.ts",
    text: `    if (expiresMs !== undefined) await announceExpiry(tx, tenantId, expiresMs, nowMs);
    await announce?.();
    for (const { name } of reading) await runBy(tx, { tenantId, kind: feedKind(name) }, feedJob, nowMs + lookMs, nowMs);
    failpoint("changes:told");
    const rows = appendFeed(tx, tenantId, { changes, facts, texts }, nowMs);
`,
    replacement: `    await announce?.();
    for (const { name } of reading) await runBy(tx, { tenantId, kind: feedKind(name) }, feedJob, nowMs + lookMs, nowMs);
    failpoint("changes:told");
    const rows = appendFeed(tx, tenantId, { changes, facts, texts }, nowMs);
    if (expiresMs !== undefined) await announceExpiry(tx, tenantId, expiresMs, nowMs);
`,
    tests: ["test/events/expiry.test.ts", "test/statements.test.ts"],
  },
  {
    name: "alerts whose labels run together are one",
    file: "src/integrations/alertmanager/event-of-alert.ts",
    text: "digest.update(length).update(bytes);",
    replacement: "digest.update(bytes);",
    tests: ["test/integrations/alertmanager.test.ts"],
  },
  {
    name: "a leader believes in its lease after its end",
    file: "src/jobs/leader.ts",
    text: "untilMs = askedMs + leaseMs * safety;",
    replacement: "untilMs = askedMs + 3 * leaseMs;",
    tests: ["test/jobs/leader.test.ts"],
  },
  {
    name: "a job is ended by one who has lost it",
    file: "src/jobs/queue.ts",
    text: `and fence = (\${fences}::jsonb ->> id)::bigint\``,
    replacement: `and \${fences}::text <> ''\``,
    tests: ["test/jobs/queue.test.ts"],
  },
  {
    name: "a failed run is not counted",
    file: "src/jobs/queue.ts",
    text: `\${failed ? 1 : 0}`,
    replacement: `\${failed ? 0 : 0}`,
    tests: ["test/jobs/queue.test.ts"],
  },
  {
    name: "one holder leaves no place for others",
    file: "src/limiter.ts",
    text: "+ amount - 1 > times * free",
    replacement: "+ amount - 1 > times * max",
    tests: ["test/limiter.test.ts"],
  },
  {
    name: "a run that is late is skipped",
    file: "src/maintenance/recurrence.ts",
    text: "Math.floor((passed - 1) / interval)",
    replacement: "Math.floor((passed + 1) / interval)",
    tests: ["test/maintenance/recurrence.test.ts"],
  },
  {
    name: "of the day of the month and of the week both must be met",
    file: "src/maintenance/cron.ts",
    text: "(isLast || days[date.day] === 1)) return true;",
    replacement: "!(isLast || days[date.day] === 1)) return false;",
    tests: ["test/maintenance/cron.test.ts"],
  },
  {
    name: "a counter that starts again goes back",
    file: "src/metrics/aggregate.ts",
    text: "if (isRate) for (let i",
    replacement: "if (!isRate) for (let i",
    tests: ["test/metrics/aggregate.test.ts"],
  },
  {
    name: "a step at the edge of its width is cut",
    file: "src/metrics/codec/chunk.ts",
    text: "while (change >= 2 **",
    replacement: "while (change > 2 **",
    tests: ["test/metrics/chunk.test.ts"],
  },
  {
    name: "the clear of what a rule goes on to match is not notified",
    file: "src/notifications/deciding/decide.ts",
    text: 'told.status !== Status.CLOSED) return ["clear"];',
    replacement: "told.status !== Status.CLOSED) return [];",
    tests: ["test/notifications/deciding/decide.test.ts"],
  },
  {
    name: "a clear is not notified",
    file: "src/notifications/deciding/decide.ts",
    text: 'due: [{ occasion: "clear", createdMs, dueMs: nowMs }], over };',
    replacement: "due: [], over };",
    tests: ["test/notifications/model.test.ts"],
  },
  {
    name: "metadata of a cloud may be asked for",
    file: "src/notifications/delivering/addresses.ts",
    text: '  "169.254.0.0/16", // link-local, metadata of clouds\n',
    replacement: "",
    tests: ["test/notifications/delivering/addresses.test.ts"],
  },
  {
    name: "a later notification of an occurrence overtakes one that is tried again",
    file: "src/notifications/delivering/delivery-queue.ts",
    text: `(d.created_ms, d.id) and (e.due_ms <= \${now} or e.tries > 0)\n              and`,
    replacement: `(d.created_ms, d.id) and e.due_ms <= \${now}\n              and`,
    tests: ["test/notifications/sending.test.ts"],
  },
  {
    name: "a breaker opens one failure late",
    file: "src/notifications/delivering/limits.ts",
    text: "failures >= failuresMax",
    replacement: "failures > failuresMax",
    tests: ["test/notifications/sending-limits.test.ts"],
  },
  {
    name: "a secret in base64 is shown",
    file: "src/notifications/delivering/redact.ts",
    text: "[0, 1, 2].map((offset)",
    replacement: "[0, 1].map((offset)",
    tests: ["test/notifications/delivering/redact.test.ts"],
  },
  {
    name: "a receiver is asked again before the time that it names",
    file: "src/notifications/delivering/retry.ts",
    text: "floor * (1 + 0.2 * random)",
    replacement: "floor * (0.8 + 0.4 * random)",
    tests: ["test/notifications/delivering/retry.test.ts"],
  },
  {
    name: "an event's text notifies a whole channel",
    file: "src/notifications/rendering/markup.ts",
    text: '.replaceAll("&", "&amp;").replaceAll("<", "&lt;")',
    replacement: '.replaceAll("&", "&amp;")',
    tests: ["test/notifications/team-chat.test.ts"],
  },
  {
    name: "a server that dies for the fifth time is started again in seconds",
    file: "src/processes/deaths.ts",
    text: "count >= freely",
    replacement: "count > freely",
    tests: ["test/processes/rules.test.ts"],
  },
  {
    name: "an updater that is being enabled misses what changes meanwhile",
    file: "src/properties/updater-set.ts",
    text: "and not enabled for key share`",
    replacement: "and not enabled`",
    tests: ["test/properties/updaters.test.ts"],
  },
  {
    name: "rows of the audit log that are written keep their places",
    file: "src/tenants/audit-queue.ts",
    text: "for (const { place } of some) place.release();",
    replacement: "",
    tests: ["test/tenants/audit-queue.test.ts"],
  },
  {
    name: "rows of the audit log are not waited for",
    file: "src/tenants/audit-queue.ts",
    text: "await write(tenantId, rows);",
    replacement: "void write(tenantId, rows);",
    tests: ["test/tenants/audit-queue.test.ts"],
  },
  {
    name: "an e-mail is taken by an account of another tenant",
    file: "src/users/account-rows.ts",
    text: "and(eq(userAccounts.tenantId, tenantId), sameEmail(email), id === null",
    replacement: "and(sameEmail(email), id === null",
    tests: ["test/users/update.test.ts"],
  },
  {
    name: "Ctrl-C under npm is two",
    file: "start.js",
    text: "> oneSignalMs",
    replacement: "> 0",
    tests: ["test/start/start.test.ts"],
  },
  {
    name: "a name with a slash leads to another screen",
    file: "console/frame/address.ts",
    text: 'path.map(encodeURIComponent).join("/")',
    replacement: 'path.join("/")',
    tests: ["test/console/links-and-files.test.ts"],
  },
  {
    name: "a cell of an export is a formula",
    file: "console/parts/download.ts",
    text: "/^[=+\\-@\\t\\r]/",
    replacement: "/^[+\\-@\\t\\r]/",
    tests: ["test/console/links-and-files.test.ts"],
  },
];
