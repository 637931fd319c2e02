# Puts the Node.js of package-lock.json first in PATH; scripts of package.json read this file. npm links it as node_modules/.bin/node, too, but for
# npm 10, which removes the link again with the packages for other systems.
for each in "$PWD"/node_modules/node-*/bin; do
  if [ -x "$each/node" ]; then PATH="$each:$PATH"; fi
done
export PATH
