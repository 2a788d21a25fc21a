#!/usr/bin/env bash
# Makes the pictures of README.md and docs/ again; the text beside each names the same command.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p docs/pictures
longreach crane c13r --task b --plot docs/pictures/crane_task_b.svg >/dev/null
longreach crane c13r --task c --plot docs/pictures/crane_task_c.svg >/dev/null
longreach crane c13r --task b --matrices as_printed --plot docs/pictures/crane_as_printed.svg >/dev/null
echo 'docs/pictures is up to date'
