#!/usr/bin/env bash
# Run a command with ROS 2 and the workspace sourced. exec: signals reach the command itself.
set -e
source /longreach/docker/environment.sh
exec "$@"
