import { parseSync } from "libpg-query";
import { onCitus } from "./citus.ts";

/** A node of PostgreSQL's parse tree; its members differ by kind. */
type Node = { [member: string]: unknown };

/** A table of the statement that lies distributed by tenant, by the name that the statement calls it. */
interface Reference {
  alias: string;
  table: string;
}

/** What a column reference or parameter says about a tenant. */
type Side = { of: string } | "given" | undefined;

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null;
const at = (node: unknown, ...path: string[]): unknown =>
  path.reduce((found: unknown, member) => (isNode(found) ? found[member] : undefined), node);
const list = (value: unknown): Node[] => (Array.isArray(value) ? value.filter(isNode) : []);
const texts = (value: unknown): string[] => list(value).map((each) => String(at(each, "String", "sval") ?? "*"));

/** Every node below, itself included, with the name of its kind. */
function* walk(node: unknown, kind = ""): Generator<{ kind: string; node: Node }> {
  if (Array.isArray(node)) for (const each of node) yield* walk(each);
  else if (isNode(node)) {
    yield { kind, node };
    for (const [member, value] of Object.entries(node)) yield* walk(value, member);
  }
}

/** Functions whose answer differs from node to node, or from call to call. */
const unsteady = new Set(["now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "timeofday"]);
/** Functions whose answer differs within a statement, too. */
const volatile = new Set(["clock_timestamp", "timeofday", "random", "gen_random_uuid", "uuidv7", "uuidv4"]);
for (const name of volatile) unsteady.add(name);
const ofOneNode = /^(?:nextval|setval|currval|lastval|pg_notify|pg_(?:try_)?advisory_.*)$/;
const ofOneNodeStatements = new Set(["ListenStmt", "NotifyStmt", "UnlistenStmt", "LockStmt"]);
const levels = new Set(["SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"]);
const allowed = new Set(["SelectStmt", "InsertStmt", "UpdateStmt", "DeleteStmt", "TransactionStmt", "VariableSetStmt"]);

/**
 * What would not run, or not run within one tenant, were the tables of `distributed` spread over nodes by their
 * `tenant_id`; a line each. @throws when PostgreSQL cannot read the statement.
 */
export function statementFaults(text: string, distributed: ReadonlySet<string>): string[] {
  const faults: string[] = [];
  for (const { stmt } of (parseSync(text) as { stmts: { stmt: Node }[] }).stmts) {
    const kind = Object.keys(stmt)[0] ?? "";
    if (!allowed.has(kind)) faults.push(`${kind}: only the migrations may`);
    const common = new Set<string>();
    for (const { node } of walk(stmt)) if (typeof node.ctename === "string") common.add(node.ctename);
    for (const { kind, node } of walk(stmt)) {
      if (ofOneNodeStatements.has(kind)) faults.push(`${kind} stays on one node`);
      if (kind === "FuncCall") {
        const name = texts(node.funcname).at(-1) ?? "";
        if (ofOneNode.test(name)) faults.push(`${name}() stays on one node`);
      }
      if (levels.has(kind)) faults.push(...levelFaults(kind, node, distributed, common));
    }
  }
  return [...new Set(faults)];
}

/** The faults of one level: a select, or a write, without those nested in it. */
function levelFaults(kind: string, node: Node, distributed: ReadonlySet<string>, common: ReadonlySet<string>) {
  const faults: string[] = [];
  const references: Reference[] = [];
  const conditions: unknown[] = [node.whereClause];

  function from(item: unknown) {
    const range = at(item, "RangeVar");
    const join = at(item, "JoinExpr");
    if (isNode(range)) refer(range);
    else if (isNode(join)) {
      if (list(join.usingClause).some((each) => at(each, "String", "sval") === "tenant_id")) conditions.push("using");
      else conditions.push(join.quals);
      from(join.larg);
      from(join.rarg);
    }
  }
  function refer(range: Node) {
    const table = String(range.relname);
    const alias = String(at(range, "alias", "aliasname") ?? table);
    if (distributed.has(table) && !(common.has(table) && range.schemaname === undefined)) {
      references.push({ alias, table });
    }
  }

  if (isNode(node.relation) && kind !== "InsertStmt") refer(node.relation);
  for (const item of [...list(node.fromClause), ...list(node.usingClause)]) from(item);

  const bound = boundTo(references, conditions);
  for (const { alias, table } of references) {
    if (bound.get(alias) === "outside")
      faults.push(`${table} as ${alias}: the tenant of an outer row, not a parameter`);
    if (!bound.has(alias)) faults.push(`${table} as ${alias}: no condition says which tenant's`);
  }
  const skips = list(node.lockingClause).some((each) => at(each, "LockingClause", "waitPolicy") === "LockWaitSkip");
  if (skips && references.some(({ alias }) => bound.get(alias) !== "given")) faults.push("skip locked across tenants");

  const table = String(at(node.relation, "relname"));
  if (distributed.has(table) && hasQuery(node.returningClause)) faults.push(`${table}: a query in returning`);
  if (distributed.has(table) && calls(node.returningClause).some((name) => unsteady.has(name)))
    faults.push(`${table}: the time in returning`);
  if (kind === "InsertStmt" && distributed.has(table)) faults.push(...insertFaults(table, node, common.size > 0));
  if (kind === "UpdateStmt" && distributed.has(table) && sets(node.targetList).includes("tenant_id")) {
    faults.push(`${table}: a row never changes its tenant`);
  }
  if ((kind === "UpdateStmt" || kind === "DeleteStmt") && distributed.has(table)) {
    for (const name of calls([node.targetList, node.whereClause])) {
      if (volatile.has(name)) faults.push(`${table}: ${name}() in what a write sets or asks`);
    }
  }
  return faults;
}

/** Names of the functions that are called anywhere below. */
const calls = (node: unknown) =>
  [...walk(node)].flatMap((each) => (each.kind === "FuncCall" ? (texts(each.node.funcname).at(-1) ?? "") : []));

const sets = (targets: unknown) => list(targets).map((each) => String(at(each, "ResTarget", "name")));

function insertFaults(table: string, node: Node, common: boolean): string[] {
  const faults: string[] = [];
  if (!sets(node.cols).includes("tenant_id")) faults.push(`${table}: the columns are not named, or lack the tenant`);
  const selects = at(node.selectStmt, "SelectStmt", "valuesLists") === undefined;
  if (selects) faults.push(...selectedFaults(table, node, common));
  else if (hasQuery(at(node.selectStmt, "SelectStmt", "valuesLists"))) faults.push(`${table}: a query in values`);
  const conflict = node.onConflictClause;
  if (!isNode(conflict)) return faults;
  const target = list(at(conflict, "infer", "indexElems")).map((each) => at(each, "IndexElem", "name"));
  if (target.length > 0 && !target.includes("tenant_id")) faults.push(`${table}: the conflict's key lacks the tenant`);
  for (const { kind, node: inner } of walk([conflict.targetList, conflict.whereClause])) {
    const name = kind === "FuncCall" ? (texts(inner.funcname).at(-1) ?? "") : "";
    if (kind === "SQLValueFunction" || unsteady.has(name)) faults.push(`${table}: ${name || kind}() in do update`);
    if (kind === "SelectStmt") faults.push(`${table}: a query in do update`);
  }
  return faults;
}

const hasQuery = (node: unknown) => [...walk(node)].some(({ kind }) => kind === "SelectStmt");

/**
 * An insert of selected rows goes to its node as a whole where the tenant comes from a row that is there. Beside a common table it is done
 * in steps through the coordinator, which fail while any node is away.
 */
function selectedFaults(table: string, node: Node, common: boolean): string[] {
  const faults: string[] = [];
  const select = at(node.selectStmt, "SelectStmt");
  const place = sets(node.cols).indexOf("tenant_id");
  const tenant = at(list(at(select, "targetList"))[place], "ResTarget", "val");
  const ofRow = texts(at(tenant, "ColumnRef", "fields")).at(-1) === "tenant_id";
  if (common) faults.push(`${table}: a common table beside an insert of selected rows`);
  if (place >= 0 && !ofRow) faults.push(`${table}: the tenant of selected rows comes from no row`);
  for (const name of calls(select)) {
    if (volatile.has(name)) faults.push(`${table}: ${name}() in an insert of selected rows`);
  }
  return faults;
}

/** The conditions that all must hold; `(tenant_id = $1) is true` says whose rows they are, but leads to no node (src/db/plans.ts). */
function conjuncts(condition: unknown): unknown[] {
  if (!onCitus && at(condition, "BooleanTest", "booltesttype") === "IS_TRUE")
    return [at(condition, "BooleanTest", "arg")];
  if (at(condition, "BoolExpr", "boolop") !== "AND_EXPR") return [condition];
  return list(at(condition, "BoolExpr", "args")).flatMap(conjuncts);
}

/** Which references the conditions tie to a tenant: to a given one, or to that of another level or query. */
function boundTo(references: Reference[], conditions: unknown[]) {
  const bound = new Map<string, "given" | "outside">();
  const pairs: [string, string][] = [];
  const side = (value: unknown): Side => {
    const inner = at(value, "TypeCast", "arg") ?? value;
    if (isNode(inner) && ("ParamRef" in inner || "A_Const" in inner)) return "given";
    const fields = texts(at(inner, "ColumnRef", "fields"));
    if (fields.at(-1) !== "tenant_id") return undefined;
    return { of: fields.length > 1 ? (fields.at(-2) as string) : (references[0]?.alias ?? "") };
  };
  const isReference = (alias: string) => references.some((each) => each.alias === alias);
  for (const condition of conditions.flatMap(conjuncts)) {
    if (condition === "using") {
      for (const { alias } of references.slice(1)) pairs.push([references[0]?.alias as string, alias]);
      continue;
    }
    const expression = at(condition, "A_Expr");
    if (at(expression, "kind") !== "AEXPR_OP" || texts(at(expression, "name"))[0] !== "=") continue;
    const sides = [side(at(expression, "lexpr")), side(at(expression, "rexpr"))];
    for (const [one, other] of [sides, sides.toReversed()]) {
      if (typeof one !== "object" || other === undefined || !isReference(one.of)) continue;
      if (other === "given") bound.set(one.of, "given");
      else if (isReference(other.of)) pairs.push([one.of, other.of]);
      else if (!bound.has(one.of)) bound.set(one.of, "outside");
    }
  }
  for (let changed = true; changed; ) {
    changed = false;
    for (const [one, other] of [...pairs, ...pairs.map(([a, b]) => [b, a] as const)]) {
      const from = bound.get(one);
      if (from === undefined || bound.has(other)) continue;
      bound.set(other, from);
      changed = true;
    }
  }
  return bound;
}
