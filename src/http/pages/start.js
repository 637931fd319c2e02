// The first call goes to the address by which the browser has reached this server, through a proxy too.
for (const place of document.querySelectorAll(".address")) place.textContent = location.origin;

const state = document.querySelector("#state");
fetch("/readyz")
  .then((answer) => answer.json())
  .then(({ status, reason }) => {
    state.textContent = reason === undefined ? status : `${status}: ${reason}`;
  })
  .catch(() => {
    state.textContent = "the server does not answer";
  });
