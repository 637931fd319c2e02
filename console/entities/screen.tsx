export function EntitiesScreen() { return <p>Entities</p>; }
