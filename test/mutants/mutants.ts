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

type Fault = [name: string, text: string, replacement: string];

/** Faults of one file that one file of tests must see. */
const inFile = (file: string, test: string, ...faults: Fault[]): Mutant[] =>
  faults.map(([name, text, replacement]) => ({ name, file, text, replacement, tests: [test] }));

/** Faults over all of src and the console: tests may change as long as they see them. */
export const mutants: readonly Mutant[] = [
  ...inFile("src/auth/key.ts", "test/auth/key.test.ts", [
    "a mistyped key is looked up",
    "checksum(text.slice(0, end)) === text.slice(end) ? prefix : undefined",
    "prefix",
  ]),
  ...inFile("src/auth/permission.ts", "test/auth/permission.test.ts", [
    "a role that only reads may acknowledge",
    '[Permission.OPERATE]: ["user",',
    '[Permission.OPERATE]: ["read_only_user", "user",',
  ]),
  ...inFile("src/auth/key-verifier.ts", "test/tenants/api-keys.test.ts", [
    "an expired key goes on",
    "k.expires_ms > (extract",
    "k.expires_ms > 0 * (extract",
  ]),
  ...inFile("src/auth/fresh-cache.ts", "test/auth/session-verifier.test.ts", [
    "a session needs its id alone",
    "if (!timingSafeEqual(entry.digest, keyDigest(text))) return false;",
    "",
  ]),
  ...inFile("src/limiter.ts", "test/limiter.test.ts", [
    "each address of a network has a share of its own",
    ".slice(0, 4)",
    ".slice(0, 8)",
  ]),
  ...inFile("src/clause/fold.ts", "test/clause/agreement.test.ts", [
    "a search folds a letter otherwise than PostgreSQL",
    'character === "\\u0130" ? "i" : character.toLowerCase()',
    "character.toLowerCase()",
  ]),
  ...inFile("src/clause/to-sql.ts", "test/clause/agreement.test.ts", [
    "the negation of what has no value is no value",
    "is not true)`",
    "is false)`",
  ]),
  ...inFile("src/credentials/envelope.ts", "test/credentials/envelope.test.ts", [
    "a secret opens for another tenant",
    '["secret", tenantId, kind, id, name]',
    '["secret", tenantId.slice(0, 0), kind, id, name]',
  ]),
  ...inFile("src/credentials/allowed-hosts.ts", "test/notifications/allowed-hosts.test.ts", [
    "a wildcard covers hosts that merely end like it",
    "other.endsWith(name.slice(1))",
    "other.endsWith(name.slice(2))",
  ]),
  ...inFile("src/db/admission-quota.ts", "test/db/admission-quota.test.ts", [
    "a tenant has one thing fewer than it may",
    "count > bounds.resourcesMax",
    "count >= bounds.resourcesMax",
  ]),
  ...inFile("src/db/batch.ts", "test/db/batch.test.ts", [
    "a backslash in a list is not escaped",
    'text.replace(/["\\\\]/g, "\\\\$&")',
    'text.replace(/["]/g, "\\\\$&")',
  ]),
  ...inFile("src/db/transaction.ts", "test/db/transaction.test.ts", [
    "a deadlock fails the call",
    'code === "40P01" || ',
    "",
  ]),
  ...inFile("src/db/partitions.ts", "test/db/partitions.test.ts", [
    "a partition goes while some of it is kept",
    "fromMs + widthMs <= nowMs - keepMs",
    "fromMs <= nowMs - keepMs",
  ]),
  ...inFile("src/db/paging/cursor.ts", "test/db/paging/cursor.test.ts", [
    "a cursor holds for another tenant",
    "[version, kind, tenantId, Buffer",
    "[version, kind, Buffer",
  ]),
  ...inFile("src/backup/check-export.ts", "test/backup/tampered.test.ts", [
    "an export with a partition that no server makes is imported",
    " || fromMs % widthMs !== 0",
    "",
  ]),
  ...inFile("src/entities/identity.ts", "test/entities/identity.test.ts", [
    "texts run together in the hash of an identity",
    "input.writeUInt32BE(length, at);",
    "input.writeUInt32BE(0, at);",
  ]),
  ...inFile(
    "src/entities/put.ts",
    "test/entities/put.test.ts",
    ["a model with its keys in another order is another one", "if (keys.length > 1) keys.sort();", ""],
    ["of two models of one time the deletion does not win", "return b.deletes || !a.deletes;", "return true;"],
    [
      "batches lock entities in the order in which they came",
      ".map((round) => round.sort((a, b) => Buffer.compare(a.id, b.id)))",
      "",
    ],
  ),
  ...inFile("src/entities/sort.ts", "test/entities/search.test.ts", [
    "pages of rows with the same name lose some",
    "return [...keys, idKey(db, only.order === Order.DESCENDING)];",
    "return keys;",
  ]),
  ...inFile(
    "src/events/lifecycle.ts",
    "test/events/ingest.test.ts",
    [
      "a report of the moment of the last one is late",
      "instance.timeMs < lateBeforeMs(latest)",
      "instance.timeMs <= lateBeforeMs(latest)",
    ],
    ["a first report leaves its severity out", "    severity: instance.severity,", "    severity: 4,"],
    [
      "what is first seen closed is open",
      "    endMs: instance.status === CLOSED ? instance.timeMs : null,",
      "    endMs: null,",
    ],
    [
      "a new occurrence is acknowledged as the one before",
      "instance.acknowledged ?? false",
      "instance.acknowledged ?? number > 1",
    ],
    ["a repeat does not move the last sight", ", lastSeenMs: instance.timeMs };", " };"],
    ["a report that closes what is closed changes it", "  if (before.status === CLOSED) return after;\n", ""],
    ["a repeat of no severity takes it away", "if (instance.severity !== DEFAULT) ", ""],
    ["a repeat of no status takes it away", "if (instance.status !== DEFAULT) ", ""],
    ["a repeat that says nothing of it is not acknowledged", "if (instance.acknowledged !== undefined) after", "after"],
    ["a repeat without a type takes it away", 'if (instance.type !== "") ', ""],
    ["a repeat without a body takes it away", 'if (instance.body !== "") ', ""],
    ["a repeat without metadata takes them away", "for (const _ in instance.metadata) {", "for (const _ of [1]) {"],
    ["what closes leaves no end", "  if (instance.status === CLOSED) after.endMs = instance.timeMs;\n", ""],
    ["a late report counts in the first occurrence", "startMs <= timeMs) return i;", "startMs <= timeMs) return 0;"],
    ["a late report does not move the start back", "timeMs < occurrence.startMs ? timeMs :", "timeMs < 0n ? timeMs :"],
    [
      "what came before an end is not late",
      "endMs !== null && endMs > lastSeenMs ? endMs : lastSeenMs;",
      "lastSeenMs;",
    ],
    ["a late report of an earlier occurrence moves its last sight", "isLatest && timeMs > occ", "timeMs > occ"],
  ),
  ...inFile("src/events/apply.ts", "test/events/ingest.test.ts", [
    "an event that is sent twice counts twice",
    "if (!(isKnown || onlyKeepsOpen)) return",
    "if (!onlyKeepsOpen) return",
  ]),
  ...inFile("src/events/apply.ts", "test/integrations/alert-ends.test.ts", [
    "an alert that fires opens again what people have closed",
    "(onlyKeepsOpen && closer === ClosedBy.ALERT)",
    "onlyKeepsOpen",
  ]),
  ...inFile("src/events/lifecycle.ts", "test/events/expiry.test.ts", [
    "an occurrence that expires ends before its time",
    "const endMs = atMs > before.lastSeenMs ? atMs : before.lastSeenMs",
    "const endMs = before.lastSeenMs",
  ]),
  ...inFile("src/events/set-status.ts", "test/events/manage.test.ts", [
    "two occurrences of an event are open after one call",
    "else others?.add(after.number);",
    "",
  ]),
  ...inFile("src/events/feed.ts", "test/notifications/deciding/rules-consumer.test.ts", [
    "rows behind a cursor of the feed are removed",
    "select min(position) from feed_cursors",
    "select max(position) + 1000 from feed_cursors",
  ]),
  ...inFile("src/events/feed.ts", "test/events/feed-forms.test.ts", [
    "watches are told each report of a row alone",
    'entries.every(({ kind }) => kind !== "again")',
    "entries.length > 0",
  ]),
  ...inFile("src/server.ts", "test/events/feed-forms.test.ts", [
    "the feed is written in a form that a server of 0.3 beside it cannot read",
    "const oldForm = () => !formats.begun();",
    "const oldForm = () => formats === undefined;",
  ]),
  {
    name: "a fact is taken from memory wherever the cursor stands",
    file: "src/events/consumers/consume-next.ts",
    text: "let row = byPosition.get(position + 1n)",
    replacement: "let row = rows[0]",
    tests: ["test/notifications/deciding/rules-consumer.test.ts", "test/notifications/model.test.ts"],
  },
  {
    name: "what expires is announced after the feed has grown",
    file: "src/events/changes.ts",
    text: `    if (expiresMs !== undefined) await announceExpiry(tx, tenantId, expiresMs, nowMs);
    await announce?.();
    for (const { name } of reading) await runBy(tx, { tenantId, kind: feedKind(name) }, feedJob, nowMs + lookMs, nowMs);
    failpoint("changes:told");
    const rows = appendFeed(tx, tenantId, { changes, facts, texts, oldForm }, nowMs);
`,
    replacement: `    await announce?.();
    for (const { name } of reading) await runBy(tx, { tenantId, kind: feedKind(name) }, feedJob, nowMs + lookMs, nowMs);
    failpoint("changes:told");
    const rows = appendFeed(tx, tenantId, { changes, facts, texts, oldForm }, nowMs);
    if (expiresMs !== undefined) await announceExpiry(tx, tenantId, expiresMs, nowMs);
`,
    tests: ["test/events/expiry.test.ts", "test/statements.test.ts"],
  },
  ...inFile("src/integrations/alertmanager/event-of-alert.ts", "test/integrations/alertmanager.test.ts", [
    "alerts whose labels run together are one",
    "digest.update(length).update(bytes);",
    "digest.update(bytes);",
  ]),
  ...inFile("src/jobs/leader.ts", "test/jobs/leader.test.ts", [
    "a leader believes in its lease after its end",
    "untilMs = askedMs + leaseMs * safety;",
    "untilMs = askedMs + 3 * leaseMs;",
  ]),
  ...inFile(
    "src/jobs/queue.ts",
    "test/jobs/queue.test.ts",
    [
      "a job is ended by one who has lost it",
      `and fence = (\${fences}::jsonb ->> id)::bigint\``,
      `and \${fences}::text <> ''\``,
    ],
    ["a failed run is not counted", `\${failed ? 1 : 0}`, `\${failed ? 0 : 0}`],
  ),
  ...inFile("src/limiter.ts", "test/limiter.test.ts", [
    "one holder leaves no place for others",
    "+ amount - 1 > times * free",
    "+ amount - 1 > times * max",
  ]),
  ...inFile("src/maintenance/recurrence.ts", "test/maintenance/recurrence.test.ts", [
    "a run that is late is skipped",
    "Math.floor((passed - 1) / interval)",
    "Math.floor((passed + 1) / interval)",
  ]),
  ...inFile("src/maintenance/cron.ts", "test/maintenance/cron.test.ts", [
    "of the day of the month and of the week both must be met",
    "(isLast || days[date.day] === 1)) return true;",
    "!(isLast || days[date.day] === 1)) return false;",
  ]),
  ...inFile("src/metrics/aggregate.ts", "test/metrics/aggregate.test.ts", [
    "a counter that starts again goes back",
    "if (isRate) for (let i",
    "if (!isRate) for (let i",
  ]),
  ...inFile("src/metrics/codec/chunk.ts", "test/metrics/chunk.test.ts", [
    "a step at the edge of its width is cut",
    "while (change >= 2 **",
    "while (change > 2 **",
  ]),
  ...inFile("src/notifications/deciding/decide.ts", "test/notifications/deciding/decide.test.ts", [
    "the clear of what a rule goes on to match is not notified",
    'told.status !== Status.CLOSED) return ["clear"];',
    "told.status !== Status.CLOSED) return [];",
  ]),
  ...inFile("src/notifications/deciding/decide.ts", "test/notifications/model.test.ts", [
    "a clear is not notified",
    'due: [{ occasion: "clear", createdMs, dueMs: nowMs }], over };',
    "due: [], over };",
  ]),
  ...inFile("src/notifications/kinds/may-dial.ts", "test/notifications/kinds/may-dial.test.ts", [
    "metadata of a cloud may be asked for",
    '  "169.254.0.0/16", // link-local, metadata of clouds\n',
    "",
  ]),
  ...inFile("src/notifications/queue/delivery-queue.ts", "test/notifications/sending.test.ts", [
    "a later notification of an occurrence overtakes one that is tried again",
    `(d.created_ms, d.id) and (e.due_ms <= \${now} or (e.tries > 0 and e.silence_id is null))\n              and`,
    `(d.created_ms, d.id) and e.due_ms <= \${now}\n              and`,
  ]),
  ...inFile("src/notifications/groups/flush.ts", "test/notifications/groups/timelines.test.ts", [
    "a group is sent before its wait is over",
    "Math.min(...first) > nowMs",
    "Math.min(...first) > Infinity",
  ]),
  ...inFile("src/notifications/groups/run-groups.ts", "test/notifications/groups/groups.test.ts", [
    "a flush does not wait for what is matched and not yet taken in",
    "if (untilMs !== undefined) return { ...late, untilMs };",
    "",
  ]),
  ...inFile("src/notifications/groups/flush.ts", "test/notifications/groups/timelines.test.ts", [
    "a group whose rule sends no updates reports what has ended",
    'if (sendUpdates && ended.length > 0) return "members";',
    'if (ended.length > 0) return "members";',
  ]),
  ...inFile(
    "src/notifications/groups/run-groups.ts",
    "test/notifications/groups/groups.test.ts",
    [
      "a group whose rule sends no updates lists what has ended",
      "(rule.sendUpdates && isResolved(each, name))",
      "isResolved(each, name)",
    ],
    [
      "a member whose labels have changed stays in its group",
      "const fires = now?.fires === true && !leaves;",
      "const fires = now?.fires === true;",
    ],
  ),
  ...inFile("src/notifications/groups/run-groups.ts", "test/notifications/groups/stored-timelines.test.ts", [
    "alerts with different values of a label are one group",
    "const labels = groupLabels(grouping, each.labels);",
    "const labels = groupLabels({ ...grouping, by: [] }, each.labels);",
  ]),
  ...inFile(
    "src/notifications/groups/flush.ts",
    "test/notifications/groups/timelines.test.ts",
    [
      "the wait of a group counts from a member that is held",
      'state !== "gone" && !isHeldEverywhere(manner, holds)',
      'state !== "gone" && holds.size >= 0',
    ],
    [
      "a group repeats although all that fires is acknowledged",
      " && !(whileUnacknowledged && acknowledged));",
      " && (whileUnacknowledged || !acknowledged || true));",
    ],
    [
      "a group repeats an interval late",
      ": nextFlushMs(base, intervalMs, nowMs);",
      ": nextFlushMs(base, intervalMs, nowMs) + intervalMs;",
    ],
    [
      "the end of a group is sent although its rule sends none",
      "if (!goesOn) return sendUpdates && ended.length > 0",
      "if (!goesOn) return ended.length > 0",
    ],
  ),
  ...inFile("src/notifications/deciding/enqueue.ts", "test/notifications/silences/held.test.ts", [
    "what a silence holds is sent",
    "?.silenceId ?? null",
    "?.silenceId.slice(36) || null",
  ]),
  ...inFile("src/notifications/deciding/recheck.ts", "test/notifications/silences/held.test.ts", [
    "an end is held by a silence",
    `!ofWindow(each) && each.occasion !== "clear" &&`,
    "!ofWindow(each) &&",
  ]),
  ...inFile("src/notifications/deciding/recheck-silenced.ts", "test/notifications/silences/held.test.ts", [
    "what a silence held is sent though nothing has changed since",
    "if (acknowledged === since.acknowledged) return undefined;",
    "",
  ]),
  ...inFile("src/notifications/queue/destination-state.ts", "test/notifications/sending-limits.test.ts", [
    "a breaker opens one failure late",
    "failures >= failuresMax",
    "failures > failuresMax",
  ]),
  ...inFile("src/notifications/kinds/redact.ts", "test/notifications/kinds/redact.test.ts", [
    "a secret in base64 is shown",
    "[0, 1, 2].map((offset)",
    "[0, 1].map((offset)",
  ]),
  ...inFile("src/notifications/kinds/retry.ts", "test/notifications/kinds/retry.test.ts", [
    "a receiver is asked again before the time that it names",
    "floor * (1 + 0.2 * random)",
    "floor * (0.8 + 0.4 * random)",
  ]),
  ...inFile("src/notifications/templates/markup.ts", "test/notifications/team-chat.test.ts", [
    "an event's text notifies a whole channel",
    '.replaceAll("&", "&amp;").replaceAll("<", "&lt;")',
    '.replaceAll("&", "&amp;")',
  ]),
  ...inFile("src/processes/fleet.ts", "test/processes/rules.system.test.ts", [
    "a server that dies for the fifth time is started again in seconds",
    "count >= freely",
    "count > freely",
  ]),
  ...inFile("src/properties/updater-set.ts", "test/properties/updaters.test.ts", [
    "an updater that is being enabled misses what changes meanwhile",
    "and not enabled for key share`",
    "and not enabled`",
  ]),
  ...inFile(
    "src/tenants/audit-queue.ts",
    "test/tenants/audit-queue.test.ts",
    ["rows of the audit log that are written keep their places", "for (const { place } of some) place.release();", ""],
    ["rows of the audit log are not waited for", "await write(tenantId, rows);", "void write(tenantId, rows);"],
  ),
  ...inFile("src/users/account-rows.ts", "test/users/update.test.ts", [
    "an e-mail is taken by an account of another tenant",
    "and(eq(userAccounts.tenantId, tenantId), sameEmail(email), id === null",
    "and(sameEmail(email), id === null",
  ]),
  ...inFile("start.js", "test/start/start.system.test.ts", ["Ctrl-C under npm is two", "> oneSignalMs", "> 0"]),
  ...inFile("console/data/address.ts", "test/console/links-and-files.test.ts", [
    "a name with a slash leads to another screen",
    'path.map(encodeURIComponent).join("/")',
    'path.join("/")',
  ]),
  ...inFile("console/data/download.ts", "test/console/links-and-files.test.ts", [
    "a cell of an export is a formula",
    "[=+\\-@＝＋－＠]",
    "[+\\-@＝＋－＠]",
  ]),
  ...inFile(
    "src/maintenance/members.ts",
    "test/maintenance/run.test.ts",
    [
      "a decommissioned entity enters a window without force",
      "(window.force || !decommissioned)",
      "(true || !decommissioned)",
    ],
    ["a window takes in children that it leaves out", "window.doNotPropagateToChildren ? [] : childIds(", "childIds("],
  ),
  ...inFile(
    "src/maintenance/members.ts",
    "test/maintenance/model.test.ts",
    [
      "of two windows the one that started first rules",
      "order by run_start_ms desc, window_id desc limit 1\n      ) as latest",
      "order by run_start_ms, window_id limit 1\n      ) as latest",
    ],
    ["a window leaves no exit state", "...(exit !== null && { modelState: BigInt(exit) })", ""],
  ),
  ...inFile(
    "src/integrations/prometheus/version2.ts",
    "test/integrations/prometheus/write-request.test.ts",
    ["half a pair of references is a label", 'if (places.length % 2 === 1) return "labels_refs must name pairs";', ""],
    [
      "a reference names a symbol that there is not",
      "if (place >= symbols.count()) return absent(place, symbols);",
      "",
    ],
    [
      "a first symbol is taken that is not empty",
      "symbols.count() === 0 || symbols.bytes(0) > 0",
      "symbols.count() === 0",
    ],
  ),
  ...inFile("src/integrations/prometheus/message-walk.ts", "test/integrations/prometheus/write-request.test.ts", [
    "a field of another wire type is passed over",
    "if (expected === unknownField || type === expected) return tag;",
    "return tag;",
  ]),
];
