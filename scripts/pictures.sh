#!/usr/bin/env bash
# Makes the pictures of README.md and docs/ again; the text beside each names the same command.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p docs/pictures
longreach crane c13r --task b --plot docs/pictures/crane_task_b.svg >/dev/null
longreach crane c13r --task c --plot docs/pictures/crane_task_c.svg >/dev/null
longreach crane c13r --task b --matrices as_printed --plot docs/pictures/crane_as_printed.svg >/dev/null
longreach boom release --load 90 --pose site --plot docs/pictures/boom_release.svg >/dev/null
longreach boom statics --load 90 --sweep -5:85:46 --degrees --plot docs/pictures/boom_statics.svg >/dev/null
longreach boom basis --basis printed --plot docs/pictures/boom_basis.svg >/dev/null
longreach boom modes --pose site --pistons free --plot docs/pictures/boom_modes.svg >/dev/null
longreach boom run config/scenarios/boom_wave.yaml --plot docs/pictures/boom_wave.svg >/dev/null
longreach excavator dig --cohesion 17000 --plot docs/pictures/excavator_dig.svg >/dev/null 2>&1
longreach excavator pose --pose dig --plot docs/pictures/excavator_pins.svg >/dev/null
echo 'docs/pictures is up to date'
