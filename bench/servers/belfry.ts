// The whole server, as `npm start` makes it.
import { type Config, readConfig } from "../../src/config/settings.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { given, serving } from "./child.ts";

/** The environment, and the limits that are fixed elsewhere. */
const { limits, ...env } = given<Record<string, string> & { limits?: Partial<Config> }>();
const server = await startServer({ ...readConfig(env), ...limits }, openLog("info"));
serving(Number(new URL(server.url).port));
