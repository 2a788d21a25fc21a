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
# Two cameras watch the release of a load: a recording of the boom, drawn and tracked.
bag=$(mktemp -d)/boom
longreach launch boom controller:=false real_time_factor:=0.0 duration:=20.0 record:="$bag" >/dev/null 2>&1
longreach vision simulate "$bag" --duration 8 --plot docs/pictures/vision_release.svg >/dev/null
longreach vision simulate "$bag" --reaction truck=0.002 --movement truck=docs/pictures/vision_truck.svg >/dev/null
rm -r "$(dirname "$bag")"
echo 'docs/pictures is up to date'
