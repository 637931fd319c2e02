import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import {
  type Delivery,
  DeliveryService,
  type ListDeliveriesRequestSchema,
  type ListDeliveriesResponse,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { clientOf } from "../data/calls.ts";
import type { List } from "../data/list.ts";
import { useNews } from "../data/news.ts";
import { nowMs } from "../ui/time.tsx";

const deliveries = clientOf(DeliveryService);
/** The shortest time between two questions while events change. */
const askAgainMs = 2000;

type Asked = MessageInitShape<typeof ListDeliveriesRequestSchema>;
const msOf = (time: Timestamp | undefined) => (time === undefined ? 0 : timestampMs(time));

/**
 * Keeps a list current: its first page is read again with the news of events, and as the present moves, since answers of receivers are no
 * news. New rows wait while one reads.
 */
export function useNewest(list: List<Delivery, Asked>, reading: Signal<boolean>) {
  const newest = useSignal<{ of: Asked; page: ListDeliveriesResponse } | undefined>(undefined);
  const news = useNews(askAgainMs);
  const beat = `${news.value} ${nowMs.value}`;
  const seen = useRef(beat);
  const asking = useRef(false);
  const shown = useRef<ReadonlySet<string>>(new Set());
  const { asked } = list;
  useEffect(() => {
    if (beat === seen.current || asked === undefined || asking.current) return;
    seen.current = beat;
    asking.current = true;
    void deliveries
      .listDeliveries(asked)
      .then((page) => {
        newest.value = { of: asked, page };
      })
      .catch(() => undefined)
      .finally(() => {
        asking.current = false;
      });
  }, [beat, asked]);

  const page = newest.value !== undefined && newest.value.of === asked ? newest.value.page : undefined;
  const loaded = new Set(list.rows.map(({ id }) => id));
  const first = page?.deliveries ?? [];
  const firstIds = new Set(first.map(({ id }) => id));
  const lastMs = msOf(first.at(-1)?.createTime);
  const later =
    page?.nextPageToken === ""
      ? []
      : list.rows.filter(({ id, createTime }) => !firstIds.has(id) && msOf(createTime) <= lastMs);
  // More have come than a page holds: what lies between is not known.
  const torn = page !== undefined && page.nextPageToken !== "" && !first.some(({ id }) => loaded.has(id));
  useEffect(() => {
    if (torn) list.again();
  }, [torn]);
  if (page === undefined || torn) {
    shown.current = loaded;
    return { list, waiting: 0 };
  }
  const waits = ({ id }: Delivery) => reading.value && !loaded.has(id) && !shown.current.has(id);
  const rows = [...first.filter((row) => !waits(row)), ...later];
  if (!reading.value) shown.current = new Set(rows.map(({ id }) => id));
  return {
    list: { ...list, rows, total: Number(page.totalCount) },
    waiting: first.length + later.length - rows.length,
  };
}
