import "./frame/language.ts";
import { overHttp } from "./data/calls.ts";
import { drawPage } from "./draw.tsx";
import { startPage } from "./frame/start.ts";
import { screens } from "./screens.ts";

startPage(overHttp());
drawPage();

// The other screens are fetched when there is nothing else to do, so that each opens at once.
setTimeout(() => {
  for (const { load } of screens) void load().catch(() => undefined);
}, 3000);
