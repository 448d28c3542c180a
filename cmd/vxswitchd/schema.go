package main

import _ "embed"

// schema is the JSON schema of a file. "go generate ./cmd/internal/file" writes it.
//
//go:embed schema.json
var schema []byte
