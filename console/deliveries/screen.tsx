export function DeliveriesScreen() { return <p>Deliveries</p>; }
