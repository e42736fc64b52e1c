#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes evenringpb/*.pb.go anew. Needs protoc (any version from 3.21) with its
# well-known types; the two Go plugins are built here, at the versions below.
set -eu

cd "$(dirname "$0")"
plugins=$(mktemp -d)
trap 'rm -rf "$plugins"' EXIT

GOBIN="$plugins" go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN="$plugins" go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2

protoc \
	--plugin="$plugins/protoc-gen-go" --plugin="$plugins/protoc-gen-go-grpc" \
	--go_out=. --go_opt=paths=source_relative \
	--go-grpc_out=. --go-grpc_opt=paths=source_relative \
	evenringpb/evenring.proto
