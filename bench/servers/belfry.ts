// The whole server, as `npm start` makes it.
import { readConfig } from "../../src/config.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { given, serving } from "./child.ts";

const server = await startServer(readConfig(given()), openLog("info"));
serving(Number(new URL(server.url).port));
