// The first call goes to the address by which the browser has reached this server, through a proxy too.
for (const place of document.querySelectorAll(".address")) place.textContent = location.origin;
