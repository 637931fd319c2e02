import { expect, test } from "vitest";
import { tellingFirst } from "../../console/occurrence/telling-metrics.ts";

const seriesOf = (metric: string, labels: Record<string, string> = {}, title = metric) => ({ metric, title, labels });
const order = (metrics: readonly string[], about: Partial<Parameters<typeof tellingFirst>[1]>) =>
  tellingFirst(
    metrics.map((metric) => seriesOf(metric)),
    { name: "", summary: "", labels: {}, ...about },
  ).map(({ metric }) => metric);

const host = [
  "http_requests_total",
  "node_context_switches_total",
  "node_cpu_seconds_total",
  "node_disk_io_time_seconds_total",
  "node_filesystem_avail_bytes",
  "node_memory_MemFree_bytes",
  "node_network_receive_bytes_total",
];

test.each([
  ["disk full", "node_disk_io_time_seconds_total", "node_filesystem_avail_bytes"],
  ["HostFilesystemAlmostFull", "node_filesystem_avail_bytes", "node_disk_io_time_seconds_total"],
  ["swap in use", "node_memory_MemFree_bytes", "http_requests_total"],
  ["link down", "node_network_receive_bytes_total", "http_requests_total"],
])("metrics that share words with %s come first, then those of its part, the rest as they came", (name, ...first) => {
  const [one, two] = first;
  const rest = host.filter((metric) => metric !== one && metric !== two);
  expect(order(host, { name })).toEqual([one, two, ...rest]);
});

test("an event's name tells more than its summary, and that more than its labels", () => {
  const metrics = ["a", "cpu_busy", "disk_busy", "queue_size"];
  const about = { name: "queues grow", summary: "the disk is slow", labels: { team: "cpu" } };
  expect(order(metrics, about)).toEqual(["queue_size", "disk_busy", "cpu_busy", "a"]);
});

test("numbers, units, small words and addresses tell nothing", () => {
  const metrics = ["a", "bytes_total", "example_com", "of_12_seconds"];
  const about = { summary: "12 seconds of bytes in total", labels: { graph: "https://example.com/a", count: 3 } };
  expect(order(metrics, about)).toEqual(metrics);
});

test("the metric of the trigger that made it comes first, with all of its series", () => {
  const all = [seriesOf("disk_used"), seriesOf("temperature", { core: "0" }), seriesOf("temperature", { core: "1" })];
  const ordered = tellingFirst(all, { name: "disk hot", summary: "", labels: {}, metric: "temperature" });
  expect(ordered.map(({ metric, labels }) => labels.core ?? metric)).toEqual(["0", "1", "disk_used"]);
});

test("of equal metrics each shows the series that shares its labels before any shows another", () => {
  const devices = ["sda", "sdb"];
  const all = ["disk_reads", "disk_writes"].flatMap((metric) => devices.map((device) => seriesOf(metric, { device })));
  const ordered = tellingFirst(all, { name: "disk failed", summary: "", labels: { device: "sdb" } });
  expect(ordered.map(({ metric, labels }) => `${metric} ${labels.device}`)).toEqual([
    "disk_reads sdb",
    "disk_writes sdb",
    "disk_reads sda",
    "disk_writes sda",
  ]);
});

test("the label that the dictionary has for a metric counts, too", () => {
  const all = [seriesOf("a"), seriesOf("sys.x1", {}, "CPU utilization")];
  const [first] = tellingFirst(all, { name: "CPU high", summary: "", labels: {} });
  expect(first?.metric).toBe("sys.x1");
});
