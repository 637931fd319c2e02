/** Numbers that look random and are the same for the same seed (mulberry32); each in [0, 1). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** An entity as its model describes it, and the custom properties that users have set on it. */
export interface MadeEntity {
  dimensions: Record<string, string>;
  metadata: Record<string, unknown>;
  customProperties: Record<string, unknown>;
}

const words = (
  "api auth batch billing cache cart catalog checkout core data edge feed gateway image index ingest ledger mail " +
  "match media order payment print profile proxy queue report search session shop storage stream sync tax token user vault"
).split(" ");
const types = ["Host.Linux", "Host.Windows", "Network.Switch", "Network.Router", "Storage.Array", "Container.Pod"];
const systems = ["debian-13", "ubuntu-26.04", "rhel-10", "windows-2025", "ios-xe-17", "ontap-9"];

/** Entities that are in one rack: their names begin alike, so that questions have as many answers at every size. */
export const rackSize = 50;

/** What the entities of a rack are called before their own numbers, and the rack. */
export function rackNames(rack: number): { name: string; rack: string } {
  return { name: `${words[rack % words.length]}-${pad(rack, 5)}-`, rack: `rack-${pad(rack, 5)}` };
}

const pad = (number: number, digits: number) => String(number).padStart(digits, "0");

/**
 * The `count` entities of a seed, each with 8 dimensions and 10 custom properties: unique values, values that few and
 * that many share, texts, numbers, booleans and lists.
 */
export function* madeEntities(count: number, seed = 1): Generator<MadeEntity> {
  const random = seeded(seed);
  const below = (bound: number) => Math.floor(random() * bound);
  const word = () => words[below(words.length)] as string;
  for (let i = 0; i < count; i++) {
    const kind = below(types.length);
    const region = below(10);
    // Neighbours in a rack do not arrive one after the other.
    const { name, rack } = rackNames(i % (count / rackSize));
    const source = `${name}${pad(i, 6)}`;
    yield {
      dimensions: {
        source,
        "source-type": `agent.${types[kind]?.toLowerCase()}`,
        device: `dev-${pad(below(1_000_000), 6)}`,
        region: `region-${region}`,
        zone: `zone-${region}${below(10)}`,
        rack,
        serial: `SN${Math.floor(random() * 2 ** 48).toString(16)}`,
        application: `${word()}-${word()}`,
      },
      metadata: {
        name: source,
        type: types[kind],
        description: `${word()} ${word()} ${word()} in room ${below(4000)}`,
        _orgs_location: [`/Earth/Region ${region}`, `/Owners/${word()}`],
      },
      customProperties: {
        owner: `${word()}.${word()}@example.net`,
        team: `team-${pad(below(60), 2)}`,
        costCenter: 1000 + below(count / 20),
        cores: 2 ** below(8),
        memoryGiB: 4 * (1 + below(128)),
        system: systems[kind],
        purchased: `20${pad(15 + below(11), 2)}-${pad(1 + below(12), 2)}-${pad(1 + below(28), 2)}`,
        critical: below(10) === 0,
        score: Math.round(random() * 1_000_000) / 1000,
        labels: [word(), word(), `tier-${below(4)}`],
      },
    };
  }
}
