#!/usr/bin/env bash
# Checks the TypeScript packages: ./check.sh
#
# Installs what package-lock.json names, compiles with the strictest settings (types are tested by compiling), and runs
# all tests: some start the server. The size of the core is one of them. The pages built into the server are to be what
# their sources give.
#
# Environment: TIDEGATE_BIN, the server's binary (default: the workspace's release, then debug build).
set -euo pipefail
cd "$(dirname "$0")"

npm ci --no-audit --no-fund --silent
rm -rf ./*/build apps/*/build
npx tsc --build
node apps/build.mjs --check
node --test --test-timeout=180000 client/build/test/*.test.js react/build/test/*.test.js tanstack-db/build/test/*.test.js apps/*/build/test/*.test.js
