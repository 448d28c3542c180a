package main

import _ "embed"

// schema is the JSON schema of a file. "go generate ./node" writes it.
//
//go:embed schema.json
var schema []byte
