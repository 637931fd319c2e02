// Loaded into a server process: LOOP_FILE is to hold for how long its event loop was held at most, ms.
import { writeFileSync } from "node:fs";

const file = process.env.LOOP_FILE as string;
const cpuMs = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};
let lastMs = cpuMs();
let mostMs = 0;
// By the time that its thread has worked between two looks: where others have the processors it is not held.
setInterval(() => {
  const nowMs = cpuMs();
  if (nowMs - lastMs > mostMs) {
    mostMs = nowMs - lastMs;
    writeFileSync(file, String(mostMs));
  }
  lastMs = cpuMs();
}, 5).unref();
process.on("SIGUSR2", () => {
  mostMs = 0;
  lastMs = cpuMs();
  writeFileSync(file, "0");
});
