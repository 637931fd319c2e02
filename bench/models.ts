// PutModels beside the upsert that comes to mind first: same process, same pool, same models.
import { readConfig } from "../src/config/settings.ts";
import { connect } from "../src/db/connect.ts";
import { startDatabase } from "./support/database.ts";
import { machineFacts, move } from "./support/machine.ts";
import { putLines } from "./support/model-puts.ts";
import { commandOf, settingsOf } from "./support/settings.ts";

const args = process.argv.slice(2);
const { size = 200_000 } = settingsOf(args, { rounds: 1, countMs: 1 });

await using stack = new AsyncDisposableStack();
process.once("SIGINT", () => void stack.disposeAsync().finally(() => process.exit(130)));
const database = stack.use(await startDatabase());
move(process.pid, "server");
const pool = connect(database.env.DATABASE_URL ?? "", readConfig(database.env));
stack.defer(() => pool.close());

console.log(`${commandOf("models", args)}\n`);
for (const line of machineFacts(database.version)) console.log(line);
console.log(`PutModels of ${size}, 1,000 a request, 4 at once`);
for await (const line of putLines(pool.ingest, size)) console.log(line);
