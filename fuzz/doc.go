// Package fuzz holds black-box fuzz targets with their corpora: a whole switch, set up as the
// input says, with packets into its ports and its underlay while it is being changed; and
// members in mode Access, which reach nobody in any framing.
// Decoders, tables and stages have targets of their own, beside the code, and so has the
// golden model of forwarding (internal/lab/model).
//
//	make fuzz FUZZTIME=80s                     every target of the module, an hour in all
//	go test ./fuzz -fuzz FuzzSwitch -fuzztime 1h -fuzzminimizetime 20x
//
// Each target keeps some inputs in testdata/fuzz beside it: of those that go test has found
// interesting (go env GOCACHE, folder fuzz), the smallest that together reach what all of them
// do, ten or twenty. A target whose inputs come to mean something else gets others.
package fuzz
